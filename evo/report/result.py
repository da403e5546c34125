"""Result of a search from Python, as tables, figures and a run folder.

Owns what users of `evo.evolve` see of its outcome, in notebooks too. Knows nothing of how the search was asked for.
"""

from __future__ import annotations

import base64
import html
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from evo.errors import UserError, plural
from evo.evaluate.backends import Backend
from evo.evaluate.cpu import without_cpu_meaning
from evo.evaluate.loops import trajectories
from evo.language.dag import Dag, dag_of
from evo.language.formula_text import infix, infix_line
from evo.language.program import format_program
from evo.native.ptx_vm import VirtualMachine
from evo.report.elites import program_lines
from evo.report.pareto import default_row, front_of, why_no_front
from evo.report.recompute import makes_formulas, program_expression, whole_expressions
from evo.run.loaded_task import Problem
from evo.run.run import save_search
from evo.run.search import Search
from evo.search.state import Counters
from evo.task import DTYPES
from evo.tasks.answers import point_arrays

if TYPE_CHECKING:
    import pandas as pd

    from evo.report.plot.charts import NotebookFigure
    from evo.search.archives.pyribs import RibsArchive

NUM_SHOWN = 5  # of the best programs, in a notebook


class ProgramView:
    """A program, shown as an infix expression.

    Attributes:
        expression: the infix form, a line for each output.
        text: the form that `evo eval` reads, a line for each word.
    """

    def __init__(self, problem: Problem, words: NDArray[np.uint64]):
        self.expression = infix(_expressions(problem, words[None])[0])
        self.text = format_program(problem.language, words)

    def __repr__(self) -> str:
        return self.expression.rstrip("\n")

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"


class Result:
    """Result of a search. A notebook shows its heat map and its best programs.

    Attributes:
        search: with its archive, task and config.
        stop_reason: why it ended.

    Args:
        metrics: of each generation, as in metrics.jsonl.
        environment: as in environment.json.
        quarantine: records of programs that could not be compiled or run, by their hashes.
    """

    def __init__(
        self,
        search: Search,
        metrics: Sequence[dict[str, Any]],
        stop_reason: str,
        environment: Mapping[str, Any],
        quarantine: Mapping[str, dict[str, Any]],
    ):
        self.search = search
        self.stop_reason = stop_reason
        self._metrics = metrics
        self._environment = environment
        self._quarantine = quarantine

    def __repr__(self) -> str:
        best = f", best objective {self._elites.objective.max():.6g}" if len(self._elites) else ""
        return f"<evo.Result: {plural(len(self._elites), 'elite')}{best}; {self.stop_reason}>"

    @cached_property
    def _picture(self) -> bytes | None:
        if not len(self._elites):
            return None
        return self.plot()._repr_png_()

    def _repr_png_(self) -> bytes | None:
        return self._picture

    def _repr_html_(self) -> str:
        title, picture = html.escape(repr(self)), self._picture
        if picture is None:
            return f"<p>{title}</p>"
        ranked = self.archive.drop(columns=["generation", "program"]).sort_values("objective", ascending=False, kind="stable")
        different = ~ranked.objective.map("{:.6g}".format).duplicated()  # the same to all digits shown: the same function, longer
        best = ranked[different].head(NUM_SHOWN)
        table = best.to_html(index=False, escape=True, float_format="{:.6g}".format)
        image = f'<img width="480" src="data:image/png;base64,{base64.b64encode(picture).decode()}">'
        return f"<p>{title}</p>{image}{table}"

    @property
    def backend(self) -> Backend:
        """The backend that scored the elites."""
        return self.search.problem.backend

    @cached_property
    def _elites(self) -> Any:
        return self.search.elites()

    @cached_property
    def archive(self) -> pd.DataFrame:
        """The elites, sorted by cell: `cell`, `objective`, a column for each measure, `num_instructions`, `generation`,
        `expression`, which is the whole formula if the task scales, and `program`, the text that
        `evo.language.program` describes.
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
                "expression": [*map(infix_line, _expressions(problem, elites.solution))],
                "program": program_lines(problem.language, elites.solution),
            }
        )

    def to_ribs(self) -> RibsArchive:
        """The elites in a new GridArchive or CVTArchive of pyribs, with its `stats`, `data()` and plots.

        Its solutions are programs: `max_length` words each, with zeros at the end. Further fields tell where each came from.
        """
        return self.search.to_ribs()

    @cached_property
    def history(self) -> pd.DataFrame:
        """A row for each generation: the counters of `evo.search.map_elites`, `num_elites`, `coverage`, `qd_score` and
        `best_objective`.
        """
        import pandas as pd

        return pd.DataFrame([_history_row(row) for row in self._metrics])

    @property
    def best(self) -> pd.Series:
        """The row of `archive` that `evo show` takes by default: the shortest description if the task knows description lengths,
        otherwise the greatest objective.

        Raises:
            UserError: the archive is empty.
        """
        self._check_not_empty()
        return self.archive.loc[default_row(self)]

    def program(self, row: int | None = None) -> ProgramView:
        """The program in a row of `archive`, shown as an infix expression; None: that of `best`.

        Raises:
            UserError: the archive is empty, or there is no such row.
        """
        return ProgramView(self.search.problem, self._words("program()", row))

    def front(self) -> pd.DataFrame:
        """The rows of `archive` on the Pareto front: no simpler elite is as good.

        Raises:
            UserError: the archive is empty, or the task has no `complexity`.
        """
        if reason := why_no_front(self):
            raise UserError(f"front(): {reason}")
        return self.archive.loc[front_of(self).rows]

    def plot(self, kind: Literal["heatmap", "front"] = "heatmap") -> NotebookFigure:
        """The archive's heat map, or the front of objective against complexity: a matplotlib `Figure` that a notebook shows.

        Raises:
            UserError: there is nothing to show.
        """
        from evo.report.plot import charts

        figures = {"heatmap": charts.heatmap, "front": charts.front}
        if kind not in figures:
            raise UserError(f"plot(): unknown kind '{kind}', one of: {', '.join(figures)}")
        self._check_not_empty()
        if kind == "front" and (reason := why_no_front(self)):
            raise UserError(f"plot(): {reason}")
        return figures[kind](self)

    def outputs(self, points: Mapping[str, Any], row: int | None = None) -> dict[str, NDArray[Any]]:
        """Compute each output of an elite's program, `(num_points,)`, once at each point on the CPU.

        Args:
            points: the value of each of the task's inputs at each point.
            row: of `archive`; None: that of `best`.

        Raises:
            UserError: the archive is empty, there is no such row, the points do not fit the task's inputs, or only a GPU can run
                the program.
        """
        words, machine = self._runnable("outputs()", row)
        language, task = self.search.problem.language, self.search.problem.task
        if set(points) != set(task.inputs):
            raise UserError(f"outputs(): points are those of exactly {', '.join(task.inputs)}; got {', '.join(points)}")
        arrays, _ = point_arrays(task, dict(points), "outputs()")
        stored = machine.store(words, [*arrays, *[None] * (len(language.registers) - len(arrays))])[0]
        return {name: values.view(DTYPES[kind]) for values, (name, kind) in zip(stored, task.outputs.items(), strict=True)}

    def trajectories(self, points: Mapping[str, Any], row: int | None = None) -> dict[str, NDArray[Any]]:
        """The records of each state when an elite's program runs in the task's rollout, on the CPU.

        Each is `(num_records, num_trajectories)`; of a rollout over a grid, `(..., height, width)` more.

        Args:
            points: where trajectories begin, as `Task.points` gives them.
            row: of `archive`; None: that of `best`.

        Raises:
            UserError: as `outputs` does; or the task has no rollout.
        """
        words, machine = self._runnable("trajectories()", row)
        language, task = self.search.problem.language, self.search.problem.task
        if not task.rollout:
            raise UserError("trajectories(): the task has no rollout; outputs() runs its program once")
        records = trajectories(machine, language, task, words, dict(points), "trajectories()")
        return {name: values[0] for name, values in records.items()}

    def save(self, folder: str | Path) -> Path:
        """Writes the search to a new folder as a run, which `evo show`, `evo plot` and the others read; returns its path.

        A task's folder is copied into it: `evo resume` goes on, also elsewhere. For a task that this process has made
        `evo.resume(task, folder)` goes on.

        Raises:
            UserError: the folder exists or cannot be written, or files of the task's folder have changed since the search began.
        """
        path = Path(folder).absolute()
        save_search(
            self.search,
            path,
            dict(self._environment),
            self._metrics,
            self._quarantine,
            lambda line: warnings.warn(line, stacklevel=4),
        )
        return path

    def _runnable(self, caller: str, row: int | None) -> tuple[NDArray[np.uint64], VirtualMachine]:
        """The words of a row, `(1, max_length)`, and the virtual machine that runs them."""
        words, language = self._words(caller, row), self.search.problem.language
        if unsupported := without_cpu_meaning(language, list(dag_of(language, words).ptx_by_name())):
            raise UserError(f"only a GPU can run {', '.join(unsupported)}", caller)
        return words[None], VirtualMachine(language.lowering)

    def _words(self, caller: str, row: int | None) -> NDArray[np.uint64]:
        """The words of a row, `(max_length,)`."""
        self._check_not_empty()
        row = default_row(self) if row is None else row
        if not 0 <= row < len(self._elites):
            raise UserError(f"no row {row}; the archive has {len(self._elites)}", caller)
        words: NDArray[np.uint64] = self._elites.solution[row]
        return words

    def _check_not_empty(self) -> None:
        if not len(self._elites):
            raise UserError("the archive is empty: every program was rejected")


def _expressions(problem: Problem, words: NDArray[np.uint64]) -> list[Dag]:
    """The formulas of elites, `(num_elites, max_length)`; programs as they are where a scaling would take a backend."""
    if makes_formulas(problem):
        return whole_expressions(problem, words)
    return [program_expression(problem, row) for row in words]


def _history_row(metrics: dict[str, Any]) -> dict[str, Any]:
    """A row of `Result.history` from one of metrics.jsonl."""
    best = metrics["best_objective"]
    return {
        **{field.name: metrics[field.name] for field in fields(Counters)},
        "num_elites": metrics["elites"],
        "coverage": metrics["coverage"],
        "qd_score": metrics["qd_score"],
        "best_objective": float("-inf") if best is None else best,
        "elapsed_s": metrics["elapsed_s"],
    }
