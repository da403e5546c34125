"""What exports are compared with before they are written: the archive's scores.

Owns the tolerances, the places where exports run, and their scores, which the evaluator's own code computes. Knows nothing of
formats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.errors import UserError
from evo.evaluate import Evaluation
from evo.evaluate.backends import CPU, CUDA
from evo.evaluate.chunks import ChunkScorer, Points
from evo.evaluate.cpu import without_cpu_meaning
from evo.language.batch import Batch
from evo.language.expression import Expression, expression_of, infix
from evo.language.program import Language, word
from evo.native.stack_ptx_words import WordType
from evo.report.check import TOLERANCE
from evo.report.elites import batch_of, cell_names
from evo.report.recompute import report_facts, whole_expression
from evo.run.loaded_task import Problem
from evo.run.run import Run
from evo.task import DTYPES

# Relative to max(1, |objective|), or to a measure's range. Exports that compute what the archive was made with may differ in the
# last bits of the task's own arithmetic, which another machine or version of NumPy changes.
EXACT_TOLERANCE = 1e-9

_Execute = Callable[[Expression], list[NDArray[Any]] | None]


@dataclass(frozen=True)
class Elite:
    """A row of the archive. name: of its cell. expression: with the scaling of its outputs. facts: what the task reports."""

    name: str
    batch: Batch
    objective: float
    measures: NDArray[np.float64]
    expression: Expression
    facts: dict[str, float]

    @property
    def num_instructions(self) -> int:
        """Live PTX instructions."""
        return int(self.batch.num_instructions[0])


class Verifier:
    """The elites of a run, and what their exports are compared with.

    Args:
        run: whose archive has the scores.
        local: its problem on this machine, which facts and scalings are computed with.
        note: what the user should know of that, if anything.
        arch: GPU architecture of exports for one.

    Attributes:
        notes: lines for the user.
    """

    def __init__(self, run: Run, local: Problem, note: str | None, arch: str):
        self.run = run
        self.local = local
        self.arch = arch
        self.problem: Problem = run.search.problem
        self.notes: dict[str, None] = {}
        self._note = note
        instructions = {i.name for i in self.problem.language.instruction_set.instructions}
        self.unsupported = set(without_cpu_meaning(self.problem.language, sorted(instructions)))

    @cached_property
    def scorer(self) -> ChunkScorer:
        """Runs programs as a search on the CPU does."""
        return ChunkScorer(self.problem.language, self.problem.task)

    @cached_property
    def places(self) -> tuple[Points, ...]:
        """Where exports run: the task's points, and its check points if it has any."""
        points = self.scorer.points
        return (points, points.check) if points.check else (points,)

    @cached_property
    def inputs(self) -> list[NDArray[Any]]:
        """Each input at all of these places, one after the other."""
        values = [
            [np.broadcast_to(array, place.num_points) for array in place.inputs if array is not None] for place in self.places
        ]
        return [np.concatenate(parts) for parts in zip(*values, strict=True)]

    @property
    def num_points(self) -> int:
        """Of all these places."""
        return sum(place.num_points for place in self.places)

    def elite(self, row: int) -> Elite:
        """The elite of a row. Raises UserError if its scaling cannot be computed here."""
        elites, language = self.run.search.elites(), self.problem.language
        batch, [name] = batch_of(self.run)[row : row + 1], cell_names(self.run, [row])
        expression, facts = expression_of(language, batch.words[0]), {}
        if self.local.backend is CPU and expression.instructions().keys() & self.unsupported:
            if self.problem.task.has_scaling():
                raise UserError(f"cell {name}: the scale of its output needs a GPU, and none can be used here")
        else:
            expression = whole_expression(self.local, batch.words[0])
            facts = {fact: float(values[0]) for fact, values in report_facts(self.local, batch.words).items()}
        if self._note and (expression.scaling or facts):
            self.notes[f"{', '.join([*facts] or ['scale and offset'])}: {self._note}"] = None
        return Elite(name, batch, float(elites.objective[row]), elites.measures[row], expression, facts)

    def score(self, elite: Elite, outputs: list[NDArray[Any]]) -> Evaluation:
        """What the task gives for an export's outputs at `inputs`: the evaluator's score of a program that copies them."""
        language, task = self.problem.language, self.problem.task
        copies = Language(language.instruction_set, language.outputs, language.outputs, language.limits)
        words = [word(WordType.INPUT, payload=i) for i in reversed(range(len(outputs)))] + [word(WordType.RETURN)]
        columns = [self._stored(output, kind) for output, (_, kind) in zip(outputs, language.outputs, strict=True)]
        points, *check = (
            replace(place, inputs=list(part)) for place, part in zip(self.places, self._by_place(columns), strict=True)
        )
        points = replace(points, check=check[0] if check else None)
        scorer = ChunkScorer(copies, task, points=points)
        return scorer.score(np.array([words], np.uint64), elite.batch.num_instructions)

    def _stored(self, output: NDArray[Any], kind: str) -> NDArray[Any]:
        """An output of any export as the evaluator stores it. Those of integers come as bits."""
        values = np.asarray(output)
        with np.errstate(over="ignore"):  # SymPy's are float64
            values = values.astype(np.float32) if kind == "f32" else values.view(DTYPES[kind])
        return np.broadcast_to(values, self.num_points)

    def _by_place(self, columns: list[NDArray[Any]]) -> Iterator[list[NDArray[Any]]]:
        start = 0
        for place in self.places:
            yield [np.ascontiguousarray(column[start : start + place.num_points]) for column in columns]
            start += place.num_points

    def compare(self, elite: Elite, scores: Evaluation, tolerance: float, format_name: str) -> None:
        """Raises UserError if scores are not those of the archive."""
        pairs = [("objective", float(scores.objective[0]), elite.objective, max(1.0, abs(elite.objective)))]
        for i, (name, (low, high)) in enumerate(self.problem.task.measures.items()):
            pairs.append((name, float(scores.measures[0, i]), float(elite.measures[i]), high - low))
        for name, found, archived, scale in pairs:
            if not abs(found - archived) <= tolerance * scale:
                raise self.disagreement(
                    elite,
                    f"the {format_name} export has {name} {found:.9g}, the archive {archived:.9g}; they may differ by "
                    f"{tolerance * scale:.3g}",
                )

    def disagreement(self, elite: Elite, what: str) -> UserError:
        """That an export is not what the archive says."""
        return UserError(f"{self.run.run_dir.path}: cell {elite.name}: {what}; nothing was written")

    @property
    def exact_tolerance(self) -> float:
        """Of exports that compute what the virtual machine computes."""
        return EXACT_TOLERANCE if self.run.backend is CPU else TOLERANCE

    def verify(self, elite: Elite, execute: _Execute, tolerance: float, format_name: str) -> bool:
        """Whether an elite's export could be run here: its program, and then with the scaling of its outputs.

        Args:
            execute: runs the text of an expression at `inputs`; None: it cannot be run.

        Raises:
            UserError: the program does not score what the archive says, or is not scaled as it should be.
        """
        whole, program = elite.expression, replace(elite.expression, scaling={})
        outputs = execute(program)
        if outputs is None:
            return False
        self.compare(elite, self.score(elite, outputs), tolerance, format_name)
        if not whole.scaling:
            return True
        for (name, _), scaled, output in zip(whole.outputs, execute(whole) or (), outputs, strict=True):
            if name in whole.scaling and not _is_scaled(scaled, *whole.scaling[name], output, tolerance):
                raise self.disagreement(elite, f"the {format_name} export is not offset + scale * program in {name}")
        return True

    def own_scores(self, elite: Elite) -> None:
        """Compares the program itself: on a GPU if there is one, otherwise on the CPU if it can run it."""
        if CUDA.why_unusable() is None:
            with closing(self.problem.here(CUDA)) as on_gpu:
                self.compare(elite, on_gpu.evaluator.evaluate(elite.batch), TOLERANCE, "PTX")
        elif elite.expression.instructions().keys() & self.unsupported:
            self.notes["not run: this needs a GPU, and none can be used here"] = None
        else:
            self.notes["assembled but not run on a GPU: none can be used here; the CPU ran the program itself"] = None
            scores = self.scorer.score(elite.batch.words, elite.batch.num_instructions)
            self.compare(elite, scores, self.exact_tolerance, "PTX")

    def comment(self, elite: Elite) -> str:
        """What the head of an export says."""
        measures = zip(self.problem.task.measures, elite.measures, strict=True)
        numbers = [("objective", elite.objective), *measures, *elite.facts.items()]
        text = "".join(f"\n{name} {value:.9g}" for name, value in numbers)
        lines = infix(elite.expression).rstrip("\n")
        return f"Cell {elite.name} of a run of evo, {elite.num_instructions} instructions.\n{text}\n\n{lines}\n"


def _is_scaled(scaled: NDArray[Any], offset: float, scale: float, output: NDArray[Any], tolerance: float) -> bool:
    """Whether an output was scaled, where it is finite. SymPy may compute in another order."""
    with np.errstate(all="ignore"):
        product = scale * np.asarray(output, np.float64)
        expected = offset + product
        within = tolerance * (abs(offset) + np.abs(product))
        return bool((~np.isfinite(expected) | (np.abs(scaled - expected) <= within)).all())
