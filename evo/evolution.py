"""Searches from Python: `evo.evolve`, and what it finds as tables and figures.

Owns the way from keyword arguments to a search. Writes no files, and imports the caller's script nowhere else: a task that this
process has made is scored on its threads.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from evo.config import make_config
from evo.errors import UserError
from evo.evaluate import by_name
from evo.evaluate.cpu import without_cpu_meaning
from evo.instructions import SHIPPED, load_instruction_set, shipped_instruction_set
from evo.language.expression import expression_of, infix
from evo.language.program import Language, format_program
from evo.native.ptx_vm import VirtualMachine
from evo.report.front import front_of, why_no_front
from evo.run.problem import load_problem, problem_of
from evo.run.search import Search
from evo.search.map_elites import Generation
from evo.task import Task, check_declarations, load_task, point_arrays

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Section = Mapping[str, Any]
Callback = Callable[[Generation], Any]

NUM_CELLS = 1024  # about, of an archive that nobody has described


class Result:
    """What a search has found.

    Attributes:
        search: with its archive, task and config.
        stop_reason: why it ended.
    """

    def __init__(self, search: Search, generations: list[dict[str, Any]], stop_reason: str):
        self.search = search
        self.stop_reason = stop_reason
        self._generations = generations

    def __repr__(self) -> str:
        best = f", best objective {self._elites.objective.max():.6g}" if len(self._elites) else ""
        return f"<evo.Result: {len(self._elites)} elites{best}; {self.stop_reason}>"

    @cached_property
    def _elites(self) -> Any:
        return self.search.elites()

    @cached_property
    def archive(self) -> pd.DataFrame:
        """The elites, sorted by cell: `cell`, `objective`, a column for each measure, `num_instructions`, `generation`,
        `expression` and `program`, the text that `evo.language.program` describes.
        """
        import pandas as pd

        problem, elites, layout = self.search.problem, self._elites, self.search.layout
        return pd.DataFrame(
            {
                "cell": [layout.cell_name(int(cell)) for cell in elites.cell],
                "objective": elites.objective,
                **dict(zip(problem.task.measures, elites.measures.T, strict=True)),
                "num_instructions": elites.num_instructions,
                "generation": elites.generation,
                "expression": [_on_one_line(infix(expression_of(problem.language, words))) for words in elites.solution],
                "program": [_on_one_line(format_program(problem.language, words), " ") for words in elites.solution],
            }
        )

    @cached_property
    def history(self) -> pd.DataFrame:
        """A row for each generation: the counters of `evo.search.map_elites`, `num_elites`, `coverage`, `qd_score` and
        `best_objective`.
        """
        import pandas as pd

        return pd.DataFrame(self._generations)

    @property
    def best(self) -> pd.Series:
        """The row of `archive` with the greatest objective.

        Raises:
            UserError: the archive is empty.
        """
        self._check_not_empty()
        return self.archive.loc[self._elites.objective.argmax()]

    def front(self) -> pd.DataFrame:
        """The rows of `archive` than which none is simpler and as good.

        Raises:
            UserError: the archive is empty, or the task has no `complexity`.
        """
        if reason := why_no_front(self):
            raise UserError(f"front(): {reason}")
        return self.archive.loc[front_of(self).rows]

    def plot(self, kind: Literal["heatmap", "front"] = "heatmap") -> Figure:
        """The archive's heat map, or the front of objective against complexity.

        Raises:
            UserError: there is nothing to show.
        """
        from evo.report.plot import charts

        figures = {"heatmap": charts.heatmap_figure, "front": charts.front_figure}
        if kind not in figures:
            raise UserError(f"plot(): unknown kind '{kind}', one of: {', '.join(figures)}")
        self._check_not_empty()
        if kind == "front" and (reason := why_no_front(self)):
            raise UserError(f"plot(): {reason}")
        return figures[kind](self)

    def outputs(self, points: Mapping[str, Any], row: int | None = None) -> dict[str, NDArray[Any]]:
        """Each output of an elite, `(num_points,)`, computed on the CPU.

        Args:
            points: the value of each input at each point, as `Task.points` gives them.
            row: of `archive`; None: the best.

        Raises:
            UserError: the archive is empty, there is no such row, the points do not fit the task's inputs, or only a GPU can run
                the program.
        """
        self._check_not_empty()
        elites, problem = self._elites, self.search.problem
        row = int(elites.objective.argmax()) if row is None else row
        if not 0 <= row < len(elites):
            raise UserError(f"outputs(): no row {row}; the archive has {len(elites)}")
        words = elites.solution[row : row + 1]
        names = list(expression_of(problem.language, words[0]).instructions())
        if unsupported := without_cpu_meaning(problem.language, names):
            raise UserError(f"outputs(): only a GPU can run {', '.join(unsupported)}")
        arrays, _ = point_arrays(problem.task, dict(points), "outputs()")
        registers = [*arrays, *[None] * (len(problem.language.registers) - len(arrays))]
        stored = VirtualMachine(problem.language.lowering).store(words, registers)
        return {name: values[0] for name, values in by_name(problem.task, stored).items()}

    def _check_not_empty(self) -> None:
        if not len(self._elites):
            raise UserError("the archive is empty: every program was rejected")


def evolve(
    task: Task | type[Task] | str | Path,
    *,
    task_options: Section | None = None,
    vocabulary: Sequence[str] | Section | None = None,
    archive: Sequence[int] | Section | None = None,
    seed: int = 1,
    seconds: float | None = None,
    generations: int | None = None,
    evaluations: int | None = None,
    objective: float | None = None,
    program: Section | None = None,
    search: Section | None = None,
    evaluation: Section | None = None,
    on_generation: Callback | Sequence[Callback] = (),
) -> Result:
    """Searches for programs, as `evo run` does, without config and files.

    Equal arguments give equal archives, unless the search ends by `seconds`.

    Args:
        task: a task, its class, or the folder of its `task.py`, whose score then runs in worker processes too.
        task_options: of a class or folder, what the task is made with.
        vocabulary: names of instructions, a mapping from names to weights, or all of `program.vocabulary`; None: all instructions
            on the types of inputs and outputs that a CPU can run.
        archive: cells along each measure, or all of `search.archive`; None: a grid of about 1,024 cells.
        seed: decides everything random.
        seconds, generations, evaluations, objective: the search ends after the generation that reaches the first of these.
        program, search, evaluation: further keys of these sections of a config; docs/api/files.md lists them.
        on_generation: called with each `Generation`; the search ends if one returns True.

    Raises:
        UserError: an argument is wrong, or the task is or fails.
        DeviceFailure: the GPU failed.
    """
    callbacks = [on_generation] if callable(on_generation) else list(on_generation)
    options = dict(task_options or {})
    if options and isinstance(task, Task):
        raise UserError("evolve: task_options are for a class or a folder; this task is made already")
    made = task(**options) if inspect.isclass(task) else task
    if not isinstance(made, (Task, str, Path)):
        raise UserError(f"evolve: a task is an evo.Task, its class or a folder, got {type(made).__name__}")
    data: dict[str, Any] = {
        "task": type(made).__name__ if isinstance(made, Task) else str(Path(made).absolute()),
        "task_options": options,
        "seed": seed,
        "program": dict(program or {}),
        "search": dict(search or {}),
        "evaluation": dict(evaluation or {}),
        "stop": {"seconds": seconds, "generations": generations, "evaluations": evaluations, "objective": objective},
    }
    for name, value, section in (("vocabulary", vocabulary, "program"), ("archive", archive, "search")):
        if value is not None and name in data[section]:
            raise UserError(f"evolve: {name} and {section}.{name} are the same; give one of them")
    if vocabulary is not None:
        is_section = isinstance(vocabulary, Mapping) and "instructions" in vocabulary
        data["program"]["vocabulary"] = vocabulary if is_section else {"instructions": vocabulary}
    if archive is not None:
        data["search"]["archive"] = archive if isinstance(archive, Mapping) else {"dims": archive}
    known = made if isinstance(made, Task) else load_task(Path(made), options)
    check_declarations(known)
    if "vocabulary" not in data["program"]:
        data["program"]["vocabulary"] = {"instructions": _instructions_for(known, data["program"])}
    if "archive" not in data["search"]:
        data["search"]["archive"] = {"dims": [max(2, round(NUM_CELLS ** (1 / len(known.measures))))] * len(known.measures)}
    found = make_search("evolve", data, made if isinstance(made, Task) else None)
    history: list[dict[str, Any]] = []
    stop_reason = None
    with closing(found.problem):
        for generation in found.generations():
            history.append(_history_row(generation, found.elapsed_s))
            answers = [callback(generation) for callback in callbacks]
            if any(answer is True for answer in answers):
                stop_reason = "on_generation"
                break
    return Result(found, history, stop_reason or str(found.stop_reason))


def make_search(caller: str, data: dict[str, Any], task: Task | None) -> Search:
    """The search of a config's sections with a task that this process has made; None: with the config's own.

    Args:
        caller: what messages about the sections begin with.

    Raises:
        UserError: the task or the config is wrong.
    """
    config = make_config(_plain(data), caller)
    problem = problem_of(config, task) if task else load_problem(config)
    search = Search(problem)
    search.choose_backend(_warn)
    return search


def _plain(value: Any) -> Any:
    """The same without NumPy, tuples and other mappings than dicts, which configs refuse."""
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value.tolist() if isinstance(value, (np.generic, np.ndarray)) else value


def _on_one_line(text: str, separator: str = "; ") -> str:
    return separator.join(text.splitlines())


def _warn(line: str) -> None:
    warnings.warn(line, stacklevel=6)  # where the user called


def _instructions_for(task: Task, program: Section) -> list[str]:
    """The instructions that a CPU can run, whose operands and results have the types of the task's inputs and outputs."""
    chosen = program.get("instruction_set", "default")
    instruction_set = shipped_instruction_set(chosen) if chosen in SHIPPED else load_instruction_set(chosen)
    # The names of inputs and outputs are checked with the problem.
    types = sorted({*task.inputs.values(), *task.outputs.values()})
    language = Language(instruction_set, tuple((f"{kind}_value", kind) for kind in types), ())
    stacks = {stack for _, stack in language.registers}
    names = [
        instruction.name
        for instruction in instruction_set.instructions
        if {instruction_set.arg_types[arg].stack_idx for arg in (*instruction.args, *instruction.rets)} <= stacks
    ]
    unsupported = without_cpu_meaning(language, names)
    return [name for name in names if name not in unsupported]


def _history_row(generation: Generation, elapsed_s: float) -> dict[str, Any]:
    return {
        **asdict(generation.counters),
        "num_elites": generation.num_elites,
        "coverage": generation.coverage,
        "qd_score": generation.qd_score,
        "best_objective": generation.best_objective,
        "elapsed_s": elapsed_s,
    }
