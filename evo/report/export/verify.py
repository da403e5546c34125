"""Verification of exports before they are written, against the archive's scores and formulas' predictions.

Owns the tolerances, the places where exports run, and their scores, which the evaluator's own code computes. Knows nothing of
formats.
"""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.errors import UserError, plural
from evo.evaluate import Evaluation
from evo.evaluate.backends import CPU, CUDA
from evo.evaluate.chunks import ChunkScorer, Points
from evo.evaluate.cpu import without_cpu_meaning
from evo.evaluate.slots import MEASURE
from evo.language.batch import Batch
from evo.language.dag import Dag, dag_of
from evo.language.formula import formula_of, has_real_form
from evo.language.formula_text import display_note, infix, rounded
from evo.language.program import Language, word
from evo.native.stack_ptx_words import WordType
from evo.report.check import SHARE, TOLERANCE
from evo.report.elites import batch_of, cell_names, program_lines
from evo.report.export.arithmetic import samples, values_of
from evo.report.recompute import is_real, predicted, report_facts, scalings_of, whole_expression
from evo.run.loaded_task import Problem
from evo.run.run import Run
from evo.task import DTYPES

# Relative to max(1, |objective|), or to a measure's range. Exports that compute what the archive was made with may differ in the
# last bits of the task's own arithmetic, which another machine or version of NumPy changes.
EXACT_TOLERANCE = 1e-9

_NUM_SPREAD = 256  # points of a task that has none, a power of two


@dataclass(frozen=True)
class Elite:
    """A row of the archive. name: of its cell. program: as it ran; expression: its formula, if the task scales. facts: what the
    task reports. scaling: of its outputs.
    """

    name: str
    batch: Batch
    objective: float
    measures: NDArray[np.float64]
    program: Dag
    expression: Dag
    facts: dict[str, float]
    scaling: dict[str, tuple[float, float]]

    @property
    def num_instructions(self) -> int:
        """Live PTX instructions."""
        return int(self.batch.num_instructions[0])


def _spread_points(language: Language) -> Points:
    """Inputs from -4 to 4, or the integers there, in another order each."""
    indices = np.arange(_NUM_SPREAD)
    inputs: list[NDArray[Any] | None] = [None] * len(language.registers)
    for number, (_, kind) in enumerate(language.inputs):
        values = (indices * (2 * number + 1) * 37 % _NUM_SPREAD) * (8.0 / _NUM_SPREAD) - 4.0
        inputs[number] = values.astype(np.int64).astype(DTYPES[kind]) if kind != "f32" else values.astype(np.float32)
    return Points(inputs, _NUM_SPREAD, None)


class Verifier:
    """The elites of a run, and the points and scores that exports are compared with.

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
    def point_sets(self) -> tuple[Points, ...]:
        """Points of an export's check: the task's, its check points if it has any; if it simulates, some points."""
        if self.problem.task.rollout is not None:
            raise UserError("a program of a task with a rollout is exported as ptx and cuda only; `evo show` has its formula")
        if self.problem.task.has_simulation():
            return (_spread_points(self.problem.language),)
        points = self.scorer.points
        return (points, points.check) if points.check else (points,)

    @cached_property
    def inputs(self) -> list[NDArray[Any]]:
        """Inputs at all of these points, one set after the other, in the user's units."""
        scaling = self.problem.task.input_scaling()
        scaled = []
        for name, values in zip(self.problem.task.inputs, self._read, strict=True):
            offset, scale = scaling.get(name, (0.0, 1.0))
            scaled.append(offset + scale * values.astype(np.float64) if name in scaling else values)
        return scaled

    @cached_property
    def _read(self) -> list[NDArray[Any]]:
        """The inputs as programs read them."""
        values = [
            [np.broadcast_to(array, point_set.num_points) for array in point_set.inputs if array is not None]
            for point_set in self.point_sets
        ]
        return [np.concatenate(parts) for parts in zip(*values, strict=True)]

    @property
    def _scores_outputs(self) -> bool:
        """Return whether the task scores outputs at points; else it runs programs itself."""
        return not self.problem.task.has_simulation()

    @property
    def num_points(self) -> int:
        """Number of points in all sets."""
        return sum(point_set.num_points for point_set in self.point_sets)

    def elite(self, row: int) -> Elite:
        """The elite of a row. Raises UserError if its scaling cannot be computed here."""
        elites, language = self.run.search.elites(), self.problem.language
        batch, [name] = batch_of(self.run)[row : row + 1], cell_names(self.run, [row])
        expression = program = dag_of(language, batch.words[0])
        facts: dict[str, float] = {}
        scaling: dict[str, tuple[float, float]] = {}
        if self.local.backend is CPU and program.ptx_by_name().keys() & self.unsupported:
            if self.problem.task.has_scaling():
                raise UserError(f"cell {name}: the scale of its output needs a GPU, and none can be used here")
        else:
            expression = whole_expression(self.local, batch.words[0], for_code=True)
            facts = {fact: float(values[0]) for fact, values in report_facts(self.local, batch.words).items()}
            [scaling] = scalings_of(self.local, batch.words)
        if self._note and (scaling or facts) and not is_real(expression):
            self.notes[f"{', '.join([*facts] or ['scale and offset'])}: {self._note}"] = None
        return Elite(name, batch, float(elites.objective[row]), elites.measures[row], program, expression, facts, scaling)

    def score(self, elite: Elite, outputs: list[NDArray[Any]]) -> Evaluation:
        """Score an export's outputs at `inputs` with the task: the evaluator's score of a program that copies them."""
        language, task = self.problem.language, self.problem.task
        copies = Language(language.instruction_set, language.outputs, language.outputs, language.limits)
        words = [word(WordType.INPUT, payload=i) for i in reversed(range(len(outputs)))] + [word(WordType.RETURN)]
        columns = [self._stored(output, kind) for output, (_, kind) in zip(outputs, language.outputs, strict=True)]
        points, *check = (
            replace(point_set, inputs=list(part))
            for point_set, part in zip(self.point_sets, self._by_point_set(columns), strict=True)
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

    def _by_point_set(self, columns: list[NDArray[Any]]) -> Iterator[list[NDArray[Any]]]:
        start = 0
        for point_set in self.point_sets:
            yield [np.ascontiguousarray(column[start : start + point_set.num_points]) for column in columns]
            start += point_set.num_points

    def verify(self, elite: Elite, *, is_exact: bool = True) -> None:
        """Compares an elite's program with the archive, and with the formula of real numbers that an export has in its place.

        Args:
            is_exact: the format has the arithmetic of programs; otherwise that of real numbers.

        Raises:
            UserError: the program does not score what the archive says, or the formula does not give what the program gives.
        """
        self._compare_here(elite)
        if is_real(elite.expression) or (not is_exact and has_real_form(elite.program)):
            self.compare_formula(elite)

    def own_scores(self, elite: Elite) -> None:
        """Compares the program itself: on a GPU if there is one, otherwise on the CPU if it can run it."""
        if CUDA.why_unusable() is None:
            with closing(self.problem.here(CUDA)) as on_gpu:
                self._compare(elite, "the program", on_gpu.evaluator.evaluate(elite.batch), TOLERANCE)
        elif elite.program.ptx_by_name().keys() & self.unsupported:
            self.notes["not run: this needs a GPU, and none can be used here"] = None
        else:
            self.notes["assembled but not run on a GPU: none can be used here; the CPU ran the program itself"] = None
            self._compare_here(elite)

    def _compare_here(self, elite: Elite) -> None:
        """Compares the program's score on this CPU with the archive."""
        scores = self.scorer.score(elite.batch.words, elite.batch.num_instructions)
        self._compare(elite, "the program", scores, EXACT_TOLERANCE if self.run.backend is CPU else TOLERANCE)

    def _compare(self, elite: Elite, what: str, scores: Evaluation, tolerance: float) -> None:
        """Raises UserError if scores differ from the archive's. If those are from another machine, approximate instructions may
        move them.
        """
        nearby = [scores]
        if tolerance == TOLERANCE and has_real_form(elite.program) and self._scores_outputs:
            formula = formula_of(elite.program, {}, {}, usual_names=False)
            nearby += [self.score(elite, outputs) for outputs in samples(formula, self._read, is_f32=True)]
        numbers = [
            ("objective", elite.objective, max(1.0, abs(elite.objective)), [evaluation.objective[0] for evaluation in nearby])
        ]
        for i, (name, (low, high)) in enumerate(self.problem.task.measures.items()):
            if self.problem.task.slots and name == MEASURE:  # does not depend on outputs
                continue
            numbers.append((name, float(elite.measures[i]), high - low, [evaluation.measures[0, i] for evaluation in nearby]))
        for name, archived, scale, values in numbers:
            if not np.fmin.reduce(values) - tolerance * scale <= archived <= np.fmax.reduce(values) + tolerance * scale:
                raise self._disagreement(
                    elite,
                    f"{what} has {name} {values[0]:.9g}, the archive {archived:.9g}; they may differ by {tolerance * scale:.3g}",
                )

    def compare_formula(self, elite: Elite) -> None:
        """Compares the program with the formula of real numbers that it stands for. Near poles nothing bounds their distance."""
        formula = formula_of(elite.program, {}, {}, usual_names=False)
        values, allowed = values_of(formula, self._read, is_f32=True)
        outputs = self.scorer.outputs(elite.batch.words, dict(zip(self.problem.task.inputs, self._read, strict=True)))
        for (name, [wanted]), actual, most in zip(outputs.items(), values, allowed, strict=True):
            with np.errstate(all="ignore"):
                distance = np.abs(np.broadcast_to(actual, self.num_points) - wanted.astype(np.float64))
            is_far = np.isfinite(wanted) & np.isfinite(most) & ~(distance <= most)
            if is_far.mean() > 1.0 - SHARE:
                worst = np.flatnonzero(is_far)[np.argmax(np.nan_to_num(distance[is_far], nan=np.inf))]
                bound = np.broadcast_to(most, self.num_points)[worst]
                raise self._disagreement(
                    elite,
                    f"the formula in real numbers gives another {name}, by {distance[worst]:.3g}; it may differ by {bound:.3g}",
                )
        real = float(self.score(elite, [*values]).objective[0]) if self._scores_outputs else elite.objective
        if not real >= elite.objective - TOLERANCE * max(1.0, abs(elite.objective)):
            self.notes[
                f"cell {elite.name}: its formula has objective {real:.6g} in real numbers, its program {elite.objective:.6g} in "
                "float32"
            ] = None

    def _disagreement(self, elite: Elite, what: str) -> UserError:
        return UserError(f"cell {elite.name}: {what}; nothing was written", self.run.run_dir.path)

    def float32_error(self, elite: Elite) -> float:
        """Largest distance of the scaled program from its formula, in standard deviations of the formula's values."""
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

    def comment(self, elite: Elite) -> str:
        """Comment at the head of an export: scores, the formula, and the user's names of inputs that code cannot have."""
        measures = zip(self.problem.task.measures, elite.measures, strict=True)
        numbers = [("objective", elite.objective), *measures, *elite.facts.items()]
        text = "".join(f"\n{name} {value:.9g}" for name, value in numbers)
        lines = infix(rounded(elite.expression, self.precision)).rstrip("\n")
        count = plural(elite.num_instructions, "instruction")
        head = f"Cell {elite.name} of a run of evo, {count}.{display_note(self.precision)}"
        [program] = program_lines(self.problem.language, elite.batch.words)
        known = self.problem.task.known_of(program, self.run.run_dir.path)
        user_names = self.problem.task.column_names
        names = [f"{name}: {user_names[name]}" for name, _ in elite.expression.inputs if user_names.get(name, name) != name]
        return "\n".join([head, text, "", lines, *names, *(["", known.rstrip()] if known else []), ""])
