"""Agreement of CPU and GPU: scores all elites of a run on both.

Owns the comparison and its verdict. Exact instructions give the same bits on both. Approximate ones differ in their last bits,
and these differences grow within a program, so agreement is a distribution. Knows nothing of how either evaluates.
"""

from contextlib import ExitStack, closing
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evo.errors import UserError
from evo.evaluate import Evaluation
from evo.evaluate.backends import CPU, CUDA
from evo.evaluate.cuda.agreement import different_rows, results_of
from evo.report.elites import batch_of, cell_names
from evo.run.run import Run
from evo.tasks.answers import task_kernel

# A check passes if the objectives of at least SHARE of the elites differ by at most TOLERANCE, and those of half of the accurate
# elites, without tanh, by at most NEAR. Rounding moves single elites far, whose programs amplify it, and most hardly; a wrong
# instruction moves most of its users a little. 256 elites of domain colouring over the stand-in for a GPU (emulator/):
#
#     errors                                    within TOLERANCE   median of accurate elites
#     the largest that the PTX ISA allows       98.4 %             6e-7
#     sin wrong by 1e-4; rcp by a factor 1e-4   95.7 %; 99.2 %     5e-5; 1e-5
#     tanh wrong by a factor of 1e-2            96.1 %             1e-7
#     abs left out; max for min; sin for cos    91 %; 95.7 %; 32 % 2e-7; 1e-7; 2e-2
TOLERANCE = 0.01
SHARE = 0.97
NEAR = 5e-6


@dataclass(frozen=True)
class CheckReport:
    """Scores of elites on CPU and GPU. names: the elites' cells. device: the GPU's name. is_accurate: `(num_elites,)`, whether
    each must be near: its instructions are accurate, and it was not scored by a task's own kernel.
    """

    names: list[str]
    device: str
    cpu: Evaluation
    gpu: Evaluation
    is_accurate: NDArray[np.bool_]

    @property
    def difference(self) -> NDArray[np.float64]:
        """Absolute difference of the objectives, `(num_elites,)`: infinite if one of the two failed, 0 if both did."""
        cpu, gpu = self.cpu.objective, self.gpu.objective
        both_failed = np.isnan(cpu) & np.isnan(gpu)
        return np.where(both_failed, 0.0, np.nan_to_num(np.abs(cpu - gpu), nan=np.inf))

    @property
    def median(self) -> float:
        """The difference that half of the accurate elites do not exceed; 0 without any."""
        return float(np.median(self.difference[self.is_accurate])) if self.is_accurate.any() else 0.0

    @property
    def passed(self) -> bool:
        """Return whether enough elites agree, and the accurate ones closely enough."""
        return bool((self.difference <= TOLERANCE).mean() >= SHARE and self.median <= NEAR)

    def text(self) -> str:
        """The report that `evo doctor RUN` prints. It lists the elites beyond the tolerance, worst first."""
        difference = self.difference
        count, apart = len(difference), different_rows(results_of(self.cpu), results_of(self.gpu))
        near = f", and half of those without tanh within {NEAR:g}" if self.is_accurate.any() else ""
        rows = [
            ("elites", f"{count:,}"),
            ("GPU", self.device),
            ("bit-identical scores", f"{1 - len(apart) / count:.2%}"),
            *((f"objective within {bound:g}", f"{(difference <= bound).mean():.2%}") for bound in (1e-6, 1e-4, TOLERANCE, 0.1)),
            ("largest difference", f"{difference.max():.6g}"),
            ("median without tanh", f"{self.median:.3g}"),
            ("verdict", f"{'passed' if self.passed else 'FAILED'}: {SHARE:.0%} must be within {TOLERANCE:g}{near}"),
        ]
        lines = [f"{name:<26} {value}\n" for name, value in rows]
        far = [int(row) for row in np.argsort(-difference, kind="stable") if difference[row] > TOLERANCE]
        lines += [f"{self.names[row]:<26} CPU {self.cpu.objective[row]:.6g}  GPU {self.gpu.objective[row]:.6g}\n" for row in far]
        return "".join(lines)


def check_elites(run: Run) -> CheckReport:
    """Scores a run's elites on the CPU and on the GPU that its config chooses.

    Raises:
        UserError: the archive is empty, or this machine cannot use the GPU or run the programs on the CPU.
    """
    if reason := CUDA.why_unusable():
        raise UserError(f"a check needs a GPU, and none can be used here: {reason}")
    if not len(run.search.elites()):
        raise UserError("the archive is empty", run.run_dir.path)
    batch, problem = batch_of(run), run.search.problem
    with ExitStack() as problems:
        gpu, cpu = (problems.enter_context(closing(problem.here(backend))).evaluator for backend in (CUDA, CPU))
        # A task states how near its own kernel comes to its `score`.
        is_own = task_kernel(problem.task) is not None
        stubs = problem.language.lowering.emit(batch.words)
        coarse = [i.ptx for i in problem.language.instruction_set.instructions if i.semantics.is_coarse]
        is_accurate = np.array([not is_own and not any(ptx in stub for ptx in coarse) for stub in stubs])
        return CheckReport(
            [f"cell {name}" for name in cell_names(run)], gpu.device, cpu.evaluate(batch), gpu.evaluate(batch), is_accurate
        )
