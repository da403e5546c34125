"""Do CPU and GPU agree? All elites of a run, scored on both.

Owns the comparison and its verdict. Exact instructions give the same bits on both. Approximate ones differ in their last
bits, and such differences grow in whole programs, so the agreement is a distribution.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evo.errors import UserError
from evo.evaluate import Evaluation
from evo.evaluate.backends import CPU, CUDA
from evo.language.batch import Batch
from evo.report.show import elite_names
from evo.run.problem import load_problem
from evo.run.run import Run

# A check passes if this share of the elites has objectives that differ by no more than the tolerance.
TOLERANCE = 0.01
SHARE = 0.99


@dataclass(frozen=True)
class CheckReport:
    """Scores of elites on both. names: of the elites; device: the GPU's."""

    names: list[str]
    device: str
    cpu: Evaluation
    gpu: Evaluation

    @property
    def difference(self) -> np.ndarray:
        """Of the objectives, `(num_elites,)`, at least 0; infinite where only one of them failed."""
        cpu, gpu = self.cpu.objective, self.gpu.objective
        both_failed = np.isnan(cpu) & np.isnan(gpu)
        return np.where(both_failed, 0.0, np.nan_to_num(np.abs(cpu - gpu), nan=np.inf))

    @property
    def passed(self) -> bool:
        """True where enough of the elites agree."""
        return bool((self.difference <= TOLERANCE).mean() >= SHARE)

    def text(self) -> str:
        """The report that `evo check` prints. It lists elites beyond the tolerance, the worst first."""
        difference = self.difference
        same = sum(
            a.tobytes() == b.tobytes() and m.tobytes() == n.tobytes()
            for a, b, m, n in zip(self.cpu.objective, self.gpu.objective, self.cpu.measures, self.gpu.measures, strict=True)
        )
        count = len(difference)
        rows = [
            ("elites", f"{count:,}"),
            ("GPU", self.device),
            ("bits of all scores equal", f"{same / count:.2%}"),
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
        UserError: there are none, or one of the two cannot be used.
    """
    elites = run.search.archive.elites()
    if not len(elites):
        raise UserError(f"{run.run_dir.path}: the archive is empty")
    batch = Batch(elites.solution, elites.hash, elites.num_instructions)
    config = run.search.problem.config
    gpu = load_problem(config, CUDA).evaluator
    cpu = load_problem(config, CPU).evaluator
    try:
        return CheckReport(elite_names(run), gpu.device, *(evaluator.evaluate(batch) for evaluator in (cpu, gpu)))
    finally:
        gpu.close()
        cpu.close()
