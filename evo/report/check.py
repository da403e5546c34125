"""Do CPU and GPU mean the same? All elites of a run, scored on both.

Owns the comparison and its verdict. Exact instructions give the same bits on both; approximate ones differ in their last
bits, and in whole programs such differences grow, so that the agreement is a distribution.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evo.errors import UserError
from evo.evaluate import Evaluation
from evo.report.show import elite_names
from evo.run.problem import load_problem
from evo.run.run import Run

# Passed: this share of the elites has objectives that differ by no more than this.
TOLERANCE = 0.01
SHARE = 0.99


@dataclass(frozen=True)
class CheckReport:
    """Objectives of elites on both: `(num_elites,)` float64, NaN where a program failed.

    names: of the elites; runs_on: the GPU; cpu, gpu: their evaluations.
    """

    names: list[str]
    runs_on: str
    cpu: Evaluation
    gpu: Evaluation

    @property
    def difference(self) -> np.ndarray:
        """Of the objectives, at least 0; infinite where only one of them has failed."""
        cpu, gpu = self.cpu.objective, self.gpu.objective
        both_failed = np.isnan(cpu) & np.isnan(gpu)
        return np.where(both_failed, 0.0, np.nan_to_num(np.abs(cpu - gpu), nan=np.inf))

    @property
    def passed(self) -> bool:
        """True where enough of the elites agree."""
        return bool((self.difference <= TOLERANCE).mean() >= SHARE)

    def text(self) -> str:
        """The report that `evo check` prints; elites beyond the tolerance are listed, the worst first."""
        difference = self.difference
        same = sum(
            a.tobytes() == b.tobytes() and m.tobytes() == n.tobytes()
            for a, b, m, n in zip(self.cpu.objective, self.gpu.objective, self.cpu.measures, self.gpu.measures, strict=True)
        )
        count = len(difference)
        rows = [
            ("elites", f"{count:,}"),
            ("GPU", self.runs_on),
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
    elites = run.elites
    if not len(elites):
        raise UserError(f"{run.run_dir.path}: the archive is empty")
    gpu = load_problem(run.problem.config, "cuda").evaluator
    cpu = load_problem(run.problem.config, "cpu").evaluator
    try:
        evaluations = [evaluator.evaluate(elites.solution, elites.num_instructions) for evaluator in (cpu, gpu)]
        return CheckReport(elite_names(run), str(gpu.environment()["device"]), *evaluations)
    finally:
        gpu.close()
        cpu.close()
