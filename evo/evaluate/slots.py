"""Issue slots as a measure: a program's cost on a GPU by the table of instructions.

Owns the evaluator that fills it in. Knows nothing of what else is measured.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.compile.targets import ASSEMBLED
from evo.errors import UserError
from evo.evaluate import Evaluation, Evaluator, Status
from evo.instructions import InstructionSet
from evo.language.batch import Batch
from evo.language.program import Language
from evo.task import Task

MEASURE = "slots"


class SlotsEvaluator:
    """Fills in the measure `slots` of a task; another evaluator does the rest.

    Raises:
        UserError: the task has no such measure, or the table does not know what an instruction costs its GPU.
    """

    def __init__(self, evaluator: Evaluator, language: Language, task: Task, instructions: Iterable[str]):
        self._evaluator, self._lowering = evaluator, language.lowering
        if MEASURE not in task.measures:
            raise UserError(f"has slots, so it must have a measure '{MEASURE}'", type(task).__name__)
        self._column = list(task.measures).index(MEASURE)
        target = str(task.slots)
        self._slots = slots_of(language.instruction_set, target)
        unknown = np.isnan(self._slots)
        for name in instructions:
            if unknown[language.instruction_set.instruction_index(name)]:
                raise UserError(f"the issue slots of '{name}' on {target} are not known", "program.vocabulary.instructions")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._evaluator, name)

    def evaluate(self, batch: Batch) -> Evaluation:
        """As `Evaluator.evaluate`."""
        evaluation = self._evaluator.evaluate(batch)
        measures = evaluation.measures.copy()
        is_scored = evaluation.status == Status.OK
        measures[is_scored, self._column] = self._lowering.sums(batch.programs, self._slots)[is_scored]
        return replace(evaluation, measures=measures)


def slots_of(instruction_set: InstructionSet, target: str) -> NDArray[np.float64]:
    """The issue slots of each instruction of a set; NaN where they are not known. Raises UserError if the target is not."""
    targets = [f"sm_{number}" for number in ASSEMBLED]
    if target not in targets:
        raise UserError(f"unknown GPU {target!r}; one of: {', '.join(targets)}", "slots")
    return np.array([instruction.semantics.slots_on(target) for instruction in instruction_set.instructions], np.float64)
