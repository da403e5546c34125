"""Constraints on programs: size, depth, and which instructions may be nested in which.

Owns what they are, and the evaluator that rejects programs before they run. Knows nothing of how programs are bred.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.evaluate import Evaluation, Evaluator, Status
from evo.language.batch import Batch, ProgramRows
from evo.language.program import Language

ANY = "any"  # as the name of an instruction


@dataclass(frozen=True)
class Constraints:
    """Limits on programs. Instructions go by their names.

    max_size: the greatest sum of costs. max_depth: the most instructions on a path. nesting: of an instruction, how often each
    other may come on a path to its operands, and ANY, how many instructions may. costs: of instructions, where it is not 1; they
    count in place of instructions in all scores.
    """

    max_size: float | None = None
    max_depth: int | None = None
    nesting: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    costs: Mapping[str, float] = field(default_factory=dict)

    def cost_of(self, language: Language, programs: ProgramRows) -> NDArray[np.float64]:
        """The sum of a program's costs, `(n,)`."""
        return language.lowering.sums(programs, self._numbers(language, self.costs, 1.0))

    def admitted(self, language: Language, programs: ProgramRows) -> NDArray[np.bool_]:
        """Mask of the programs that satisfy all of them, `(n,)`."""
        lowering, is_admitted = language.lowering, np.ones(len(programs), np.bool_)
        if self.max_size is not None:
            is_admitted &= self.cost_of(language, programs) <= self.max_size
        if self.max_depth is not None:
            everywhere = self._numbers(language, {}, 1.0)
            is_admitted &= lowering.longest(programs, everywhere, everywhere) < self.max_depth
        for outer, limits in self.nesting.items():
            at = self._numbers(language, {outer: 1.0}, 0.0)
            for inner, most in limits.items():
                counted = self._numbers(language, {}, 1.0) if inner == ANY else self._numbers(language, {inner: 1.0}, 0.0)
                is_admitted &= lowering.longest(programs, counted, at) <= most
        return is_admitted

    @staticmethod
    def _numbers(language: Language, numbers: Mapping[str, float], otherwise: float) -> NDArray[np.float64]:
        row = np.full(len(language.instruction_set.instructions), otherwise)
        for name, number in numbers.items():
            row[language.instruction_set.instruction_index(name)] = number
        return row


class ConstrainedEvaluator:
    """Rejects programs beyond constraints without running them; another evaluator does the rest."""

    def __init__(self, evaluator: Evaluator, language: Language, constraints: Constraints):
        self._evaluator, self._language, self._constraints = evaluator, language, constraints

    def __getattr__(self, name: str) -> Any:
        return getattr(self._evaluator, name)

    def evaluate(self, batch: Batch) -> Evaluation:
        """As `Evaluator.evaluate`."""
        rows = np.flatnonzero(self._constraints.admitted(self._language, batch.programs))
        chosen = batch[rows]
        if self._constraints.costs:
            costs = self._constraints.cost_of(self._language, chosen.programs)
            chosen = Batch(chosen.words, chosen.hashes, costs, chosen.lowered)  # type: ignore[arg-type]  # scores take any number
        evaluation = self._evaluator.evaluate(chosen)
        status, objective = np.full(len(batch), Status.REJECTED, np.uint8), np.full(len(batch), np.nan)
        measures = np.full((len(batch), evaluation.measures.shape[1]), np.nan)
        status[rows], objective[rows], measures[rows] = evaluation.status, evaluation.objective, evaluation.measures
        return replace(evaluation, status=status, objective=objective, measures=measures)
