"""Values that reports compute anew from a run's programs: a task's facts, scalings, and whole formulas.

Owns where these are computed, which is always this machine, and what may come back from the task. Knows nothing of how they are
shown.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from evo.errors import UserError
from evo.evaluate import stored_types
from evo.evaluate.backends import BACKENDS, CPU, Backend
from evo.evaluate.loops import LoopRunner
from evo.evaluate.options import AUTO
from evo.language.dag import REAL, Dag, dag_of
from evo.language.formula import evaluate, formula_of, has_real_form, is_real_function
from evo.language.printer import with_names
from evo.run.loaded_task import Problem
from evo.run.saved_search import SavedSearch
from evo.task import Task
from evo.tasks.answers import method_place, point_arrays, task_errors

CHUNK_BYTES = 1 << 26  # of outputs


class Searched(Protocol):
    """Owner of a search: a run, or a result of `evo.evolve`."""

    @property
    def search(self) -> SavedSearch:
        """Its search."""

    @property
    def backend(self) -> Backend:
        """Backend that scored the elites."""


@contextmanager
def problem_here(run: Searched) -> Iterator[tuple[Problem, str | None]]:
    """A run's problem, evaluated on this machine, and what the user should know of that, if anything.

    Its backend is the one that the elites' scores come from, or that the config names. Where it cannot be used, the CPU takes its
    place.
    """
    problem = run.search.problem
    wanted = problem.config.evaluation.backend
    backend = run.backend if wanted == AUTO else BACKENDS[wanted]
    note = None
    if reason := backend.why_unusable() or backend.why_untrusted(problem.config.evaluation):
        note = f"computed on the CPU, whose approximate instructions differ in their last bits; {backend.name}: {reason}"
        backend = CPU
    if problem.is_local and problem.backend is backend:
        yield problem, note
        return
    local = problem.here(backend)
    try:
        yield local, note
    finally:
        local.close()


@contextmanager
def problem_for_facts(run: Searched) -> Iterator[tuple[Problem, str | None]]:
    """As `problem_here`, for `report_facts`, `whole_expression` and `predicted`. No backend is needed where a task has nothing to
    say, or by formulas of real numbers.
    """
    problem = run.search.problem
    has_facts = type(problem.task).report_points is not Task.report_points
    if makes_formulas(problem) or not (has_facts or problem.task.has_scaling()):
        yield problem, None
    else:
        with problem_here(run) as local:
            yield local


def makes_formulas(problem: Problem) -> bool:
    """Return whether all programs of the vocabulary are formulas of real numbers."""
    known = problem.language.instruction_set
    return problem.task.has_scaling() and all(
        is_real_function(known, known.instructions[known.instruction_index(name)])
        for name in problem.config.program.vocabulary.instructions
    )


def report_facts(problem: Problem, words: NDArray[np.uint64]) -> dict[str, NDArray[np.float64]]:
    """Task's report of programs, `(num_programs, max_length)`: name -> a number for each; empty if it reports nothing.

    Raises:
        UserError: the task fails or returns the wrong thing.
    """
    task = problem.task
    with task_errors(type(task), "report_points"):
        points = task.report_points()
    if isinstance(points, dict) and not points:
        return {}
    if task.rollout is None:
        _, num_points = point_arrays(task, points, "report_points()")
    else:
        loop = LoopRunner(problem.language, task, in_pieces=False)
        num_points = loop.num_records * loop.columns(points, "report_points()")[1]
    parts: list[dict[str, NDArray[np.float64]]] = []
    for outputs in _outputs(problem, words, points, num_points):
        count = len(next(iter(outputs.values())))
        with np.errstate(all="ignore"), task_errors(type(task), "report"):
            part = {name: np.asarray(values, np.float64) for name, values in task.report(outputs).items()}
        wrong = [name for name, values in part.items() if not isinstance(name, str) or values.shape != (count,)]
        if wrong or (parts and part.keys() != parts[0].keys()):
            raise UserError(
                f"report() must return the same names each time, with arrays of shape ({count},)",
                method_place(type(task), "report"),
            )
        parts.append(part)
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def scalings_of(problem: Problem, words: NDArray[np.uint64]) -> list[dict[str, tuple[float, float]]]:
    """For each program its scaled outputs with offset and scale (`Task.scaling`).

    Raises:
        UserError: the task fails or returns the wrong thing.
    """
    task = problem.task
    if not task.has_scaling():
        return [{} for _ in words]
    with task_errors(type(task), "points"):
        points = task.points()
    _, num_points = point_arrays(task, points, "points()")
    scalings = []
    for outputs in _outputs(problem, words, points, num_points):
        count = len(next(iter(outputs.values())))
        with np.errstate(all="ignore"), task_errors(type(task), "scaling"):
            pairs = {name: np.array([*pair], np.float64) for name, pair in task.scaling(outputs).items()}
        scalable = [name for name, kind in task.outputs.items() if kind == "f32"]
        if not pairs.keys() <= set(scalable) or any(pair.shape != (2, count) for pair in pairs.values()):
            raise UserError(
                f"scaling() must return a dict of output -> (offset, scale), arrays of "
                f"shape ({count},); outputs of type f32 are {', '.join(scalable) or 'none'}",
                method_place(type(task), "scaling"),
            )
        scalings += [{name: (float(pair[0, row]), float(pair[1, row])) for name, pair in pairs.items()} for row in range(count)]
    return scalings


def program_expression(problem: Problem, words: NDArray[np.uint64]) -> Dag:
    """A program of `(max_length,)` words, of inputs in the user's units, without the scaling of its outputs."""
    program, inputs = dag_of(problem.language, words), problem.task.input_scaling()
    return with_names(formula_of(program, inputs, {}) if inputs else program, problem.task.column_names)


def whole_expression(problem: Problem, words: NDArray[np.uint64], *, for_code: bool = False) -> Dag:
    """The formula of a program of `(max_length,)` words that has a score. Arguments and errors as of `whole_expressions`."""
    [expression] = whole_expressions(problem, words[None], for_code=for_code)
    return expression


def whole_expressions(problem: Problem, words: NDArray[np.uint64], *, for_code: bool = False) -> list[Dag]:
    """The formulas of programs, `(num_programs, max_length)`, that have scores, with the scalings of their inputs and outputs.

    Args:
        for_code: inputs have the task's names, which are identifiers, in place of the user's.

    Raises:
        UserError: as `scalings_of`, or a scaling is not finite.
    """
    formulas = []
    for row, scaling in enumerate(scalings_of(problem, words)):
        for name, (offset, scale) in scaling.items():
            if not np.isfinite([offset, scale]).all():
                location = method_place(type(problem.task), "scaling")
                raise UserError(f"scaling() gives {name} the offset {offset:g} and the scale {scale:g}, must be finite", location)
        program, inputs = dag_of(problem.language, words[row]), problem.task.input_scaling()
        formula = formula_of(program, inputs, scaling) if inputs or problem.task.has_scaling() else program
        formulas.append(formula if for_code else with_names(formula, problem.task.column_names))
    return formulas


def is_real(formula: Dag) -> bool:
    """Return whether a formula is one of real numbers alone."""
    return all(value.type in (REAL, "pred") for value in formula.nodes)


def predicted(
    problem: Problem, words: NDArray[np.uint64], points: dict[str, NDArray[Any]], num_points: int
) -> dict[str, NDArray[Any]]:
    """Predictions of a scored program of `(max_length,)` words, `(num_points,)` for each output.

    Args:
        points: in the user's units.

    Raises:
        UserError: as `whole_expressions`.
    """
    task = problem.task
    if task.has_scaling():
        formula = whole_expression(problem, words)
        if is_real(formula):
            values = evaluate(formula, [points[name] for name in task.inputs])
            return dict(zip(task.outputs, values, strict=True))
    outputs = problem.evaluator.outputs(np.ascontiguousarray(words[None]), program_points(task, points))
    [scaling] = scalings_of(problem, words[None])
    columns: dict[str, NDArray[Any]] = {name: np.broadcast_to(values[0], num_points) for name, values in outputs.items()}
    for name, (offset, scale) in scaling.items():
        with np.errstate(all="ignore"):
            columns[name] = offset + scale * columns[name].astype(np.float64)
    return columns


def program_points(task: Task, points: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Points in the user's units as programs read them."""
    scaling = task.input_scaling()
    return points | {
        name: (np.asarray(points[name], np.float64) - offset) / scale
        for name, (offset, scale) in scaling.items()
        if name in points
    }


def _outputs(
    problem: Problem, words: NDArray[np.uint64], points: dict[str, NDArray[Any]], num_points: int
) -> Iterator[dict[str, NDArray[Any]]]:
    """Yields the outputs of programs at points, in chunks of programs."""
    task = problem.task
    step = max(1, CHUNK_BYTES // (8 * len(stored_types(task)) * num_points))
    for start in range(0, len(words), step):
        chunk = np.ascontiguousarray(words[start : start + step])
        programs = [dag_of(problem.language, row) for row in chunk]
        is_formula = np.array([task.has_scaling() and has_real_form(program) for program in programs])
        outputs = {} if is_formula.all() else problem.evaluator.outputs(chunk[~is_formula], points)
        if is_formula.any():
            values = np.empty((len(task.outputs), len(chunk), num_points))
            values[:, ~is_formula] = np.array([*outputs.values()]) if outputs else 0.0
            for row in np.flatnonzero(is_formula):
                values[:, row] = evaluate(formula_of(programs[row], {}, {}), [points[name] for name in task.inputs])
            outputs = dict(zip(task.outputs, values, strict=True))
        yield outputs
