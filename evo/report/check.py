"""Whether CPU and GPU agree: scores all elites of a run on both.

Owns the comparison and its verdict. Exact instructions give the same bits on both. Approximate ones differ in their last bits,
and these differences grow within a program, so agreement is a distribution. Knows nothing of how either evaluates.
"""

from __future__ import annotations

from contextlib import ExitStack, closing
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evo.errors import UserError
from evo.evaluate import Evaluation
from evo.evaluate.backends import CPU, CUDA
from evo.language.batch import Batch
from evo.report.show import elite_names
from evo.run.run import Run

# A check passes if the objectives of at least this share of the elites differ by at most the tolerance. Rounding moves single
# elites further, whose programs amplify it; a wrong kernel moves most.
TOLERANCE = 0.01
SHARE = 0.95


@dataclass(frozen=True)
class CheckReport:
    """Scores of elites on CPU and GPU. names: the elites' cells. device: the GPU's name."""

    names: list[str]
    device: str
    cpu: Evaluation
    gpu: Evaluation

    @property
    def difference(self) -> NDArray[np.float64]:
        """Absolute difference of the objectives, `(num_elites,)`: infinite if one of the two failed, 0 if both did."""
        cpu, gpu = self.cpu.objective, self.gpu.objective
        both_failed = np.isnan(cpu) & np.isnan(gpu)
        return np.where(both_failed, 0.0, np.nan_to_num(np.abs(cpu - gpu), nan=np.inf))

    @property
    def passed(self) -> bool:
        """Whether enough elites agree."""
        return bool((self.difference <= TOLERANCE).mean() >= SHARE)

    def text(self) -> str:
        """The report that `evo check` prints. It lists the elites beyond the tolerance, worst first."""
        difference = self.difference
        same = sum(
            a.tobytes() == b.tobytes() and m.tobytes() == n.tobytes()
            for a, b, m, n in zip(self.cpu.objective, self.gpu.objective, self.cpu.measures, self.gpu.measures, strict=True)
        )
        count = len(difference)
        rows = [
            ("elites", f"{count:,}"),
            ("GPU", self.device),
            ("bit-identical scores", f"{same / count:.2%}"),
            *((f"objective within {bound:g}", f"{(difference <= bound).mean():.2%}") for bound in (1e-6, 1e-4, TOLERANCE, 0.1)),
            ("largest difference", f"{difference.max():.6g}"),
            ("verdict", f"{'passed' if self.passed else 'FAILED'}: {SHARE:.0%} must be within {TOLERANCE:g}"),
        ]
        lines = [f"{name:<26} {value}\n" for name, value in rows]
        apart = [int(row) for row in np.argsort(-difference, kind="stable") if difference[row] > TOLERANCE]
        lines += [
            f"{self.names[row]:<26} CPU {self.cpu.objective[row]:.6g}  GPU {self.gpu.objective[row]:.6g}\n" for row in apart
        ]
        return "".join(lines)


def check_elites(run: Run) -> CheckReport:
    """Scores a run's elites on the CPU and on the GPU that its config chooses.

    Raises:
        UserError: the archive is empty, or this machine cannot use the GPU or run the programs on the CPU.
    """
    if reason := CUDA.why_unusable():
        raise UserError(f"a check needs a GPU, and none can be used here: {reason}")
    elites = run.search.elites()
    if not len(elites):
        raise UserError(f"{run.run_dir.path}: the archive is empty")
    batch = Batch(elites.solution, elites.hash, elites.num_instructions)
    problem = run.search.problem
    with ExitStack() as problems:
        gpu, cpu = (problems.enter_context(closing(problem.here(backend))).evaluator for backend in (CUDA, CPU))
        return CheckReport(elite_names(run), gpu.device, cpu.evaluate(batch), gpu.evaluate(batch))
