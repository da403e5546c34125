"""What exports are compared with before they are written: the archive's scores, and of formulas their predictions.

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
from evo.language.formula import display_note, evaluate, formula_of, rounded
from evo.language.program import Language, word
from evo.native.stack_ptx_words import WordType
from evo.report.check import TOLERANCE
from evo.report.elites import batch_of, cell_names
from evo.report.recompute import is_real, predicted, report_facts, scalings_of, whole_expression
from evo.run.loaded_task import Problem
from evo.run.run import Run
from evo.task import DTYPES

# Relative to max(1, |objective|), or to a measure's range. Exports that compute what the archive was made with may differ in the
# last bits of the task's own arithmetic, which another machine or version of NumPy changes.
EXACT_TOLERANCE = 1e-9
FORMULA_TOLERANCE = 1e-6  # times the deviation of its predictions: of a formula's export

_Execute = Callable[[Expression], list[NDArray[Any]] | None]


@dataclass(frozen=True)
class Elite:
    """A row of the archive. name: of its cell. program: as it ran; expression: its formula, if the task scales. facts: what the
    task reports. scaling: of its outputs.
    """

    name: str
    batch: Batch
    objective: float
    measures: NDArray[np.float64]
    program: Expression
    expression: Expression
    facts: dict[str, float]
    scaling: dict[str, tuple[float, float]]

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
        precision: digits that numbers of formulas are rounded to once they are checked; None: all.

    Attributes:
        notes: lines for the user.
    """

    def __init__(self, run: Run, local: Problem, note: str | None, arch: str, precision: int | None = None):
        self.run = run
        self.local = local
        self.arch = arch
        self.precision = precision
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
        """Each input at all of these places, one after the other, in the user's units."""
        scaling = self.problem.task.input_scaling()
        found = []
        for name, values in zip(self.problem.task.inputs, self._read, strict=True):
            offset, scale = scaling.get(name, (0.0, 1.0))
            found.append(offset + scale * values.astype(np.float64) if name in scaling else values)
        return found

    @cached_property
    def _read(self) -> list[NDArray[Any]]:
        """The same as programs read them."""
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
        expression = program = expression_of(language, batch.words[0])
        facts: dict[str, float] = {}
        scaling: dict[str, tuple[float, float]] = {}
        if self.local.backend is CPU and program.instructions().keys() & self.unsupported:
            if self.problem.task.has_scaling():
                raise UserError(f"cell {name}: the scale of its output needs a GPU, and none can be used here")
        else:
            expression = whole_expression(self.local, batch.words[0])
            facts = {fact: float(values[0]) for fact, values in report_facts(self.local, batch.words).items()}
            [scaling] = scalings_of(self.local, batch.words)
        if self._note and (scaling or facts) and not is_real(expression):
            self.notes[f"{', '.join([*facts] or ['scale and offset'])}: {self._note}"] = None
        return Elite(name, batch, float(elites.objective[row]), elites.measures[row], program, expression, facts, scaling)

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
        """Raises UserError if scores are not those of the archive. Where instructions are approximate, that is the objective,
        which may be better.
        """
        pairs = [("objective", float(scores.objective[0]), elite.objective, max(1.0, abs(elite.objective)))]
        is_exact = tolerance < TOLERANCE
        for i, (name, (low, high)) in enumerate(self.problem.task.measures.items() if is_exact else ()):
            pairs.append((name, float(scores.measures[0, i]), float(elite.measures[i]), high - low))
        for name, found, archived, scale in pairs:
            if not (abs(found - archived) <= tolerance * scale or (found > archived and not is_exact)):
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
        """Whether an elite's export could be run here.

        Args:
            execute: runs the text of an expression at `inputs`; None: it cannot be run.

        Raises:
            UserError: the program does not score what the archive says, or the formula predicts something else than it should.
        """
        outputs = execute(elite.expression)
        if outputs is None:
            return False
        if elite.expression == elite.program:
            self.compare(elite, self.score(elite, outputs), tolerance, format_name)
            return True
        columns = dict(zip(self.problem.task.inputs, self.inputs, strict=True))
        expected = predicted(self.local, elite.batch.words[0], columns, self.num_points)
        allowed = FORMULA_TOLERANCE if is_real(elite.expression) else max(tolerance, FORMULA_TOLERANCE)
        for (name, wanted), found in zip(expected.items(), outputs, strict=True):
            with np.errstate(all="ignore"):
                known = np.isfinite(wanted)
                deviation = float(np.std(wanted[known].astype(np.float64))) if known.any() else 0.0
                difference = np.abs(np.broadcast_to(found, len(wanted)) - wanted)[known]
            if not (difference <= allowed * deviation + EXACT_TOLERANCE * np.abs(wanted[known]) * (deviation == 0)).all():
                raise self.disagreement(
                    elite,
                    f"the {format_name} export predicts another {name}, by {difference.max():.3g}; it may differ by "
                    f"{allowed * deviation:.3g}",
                )
        if is_real(elite.expression):
            real = self.score(elite, [*evaluate(formula_of(elite.program, {}, {}), self._read)])
            if not real.objective[0] >= elite.objective - TOLERANCE * max(1.0, abs(elite.objective)):
                self.notes[
                    f"cell {elite.name}: its formula has objective {real.objective[0]:.6g} in real numbers, its program "
                    f"{elite.objective:.6g} in float32"
                ] = None
        return True

    def float32_error(self, elite: Elite) -> float:
        """How far the program, scaled, is from its formula at the worst point, in standard deviations of the formula's values."""
        points = dict(zip(self.problem.task.inputs, self._read, strict=True))
        outputs = self.local.evaluator.outputs(np.ascontiguousarray(elite.batch.words), points)
        columns = dict(zip(self.problem.task.inputs, self.inputs, strict=True))
        expected = predicted(self.local, elite.batch.words[0], columns, self.num_points)
        errors = []
        for name, (offset, scale) in elite.scaling.items():
            with np.errstate(all="ignore"):
                difference = np.abs(offset + scale * outputs[name][0].astype(np.float64) - expected[name])
                errors.append(np.nanmax(difference) / np.nanstd(expected[name]))
        return float(max(errors))

    def own_scores(self, elite: Elite) -> None:
        """Compares the program itself: on a GPU if there is one, otherwise on the CPU if it can run it."""
        if CUDA.why_unusable() is None:
            with closing(self.problem.here(CUDA)) as on_gpu:
                self.compare(elite, on_gpu.evaluator.evaluate(elite.batch), TOLERANCE, "PTX")
        elif elite.program.instructions().keys() & self.unsupported:
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
        lines = infix(rounded(elite.expression, self.precision)).rstrip("\n")
        head = f"Cell {elite.name} of a run of evo, {elite.num_instructions} instructions.{display_note(self.precision)}"
        return f"{head}\n{text}\n\n{lines}\n"
