"""A search's progress: a bar on a terminal or in a notebook, plain lines elsewhere; at its end what became of emitters.

Owns how a generation's numbers are shown. Changes nothing of a search's state.
"""

from __future__ import annotations

import html
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from evo.errors import plural
from evo.escape import echo, printable
from evo.report.screen import is_terminal
from evo.run.search import Search
from evo.search.emitter import Success
from evo.search.map_elites import Beginning, Step
from evo.search.state import Counters
from evo.task import MAX_OBJECTIVE, Task
from evo.tasks.answers import method_place

if TYPE_CHECKING:
    from rich.console import RenderableType

PLAIN_SECONDS = 5.0  # between two plain lines
NOTEBOOK_SECONDS = 0.25  # between two updates in a notebook, at least
HUGE = 1e9  # numbers from here on are written in scientific notation


def progress_of(search: Search, *, shown: bool | None = True) -> Progress:
    """Shows a search's progress while it is entered. shown: whether; None: on a terminal or in a notebook only."""
    in_notebook = is_notebook()
    if shown is None:
        shown = in_notebook or is_terminal()
    if not shown:
        return Progress(search)
    if in_notebook:
        return _NotebookProgress(search)
    return _TerminalProgress(search) if is_terminal() else _PlainProgress(search)


def is_notebook() -> bool:
    """Return whether this process is the kernel of a notebook, which shows HTML."""
    if "IPython" not in sys.modules:
        return False
    from rich.console import Console

    return Console().is_jupyter


class Progress(AbstractContextManager["Progress"]):
    """Formats a search's numbers and shows nothing; subclasses show them.

    `say` and `end` may be called by a signal's handler: no other method holds a lock that they wait for.
    """

    def __init__(self, search: Search):
        self._search = search
        self._first = (search.counters.evaluations, search.elapsed_s)
        self._latest: tuple[Step, float] | None = None
        self._has_warned = False

    def __exit__(self, *_: object) -> None:
        self.end()

    def __call__(self, generation: Step, elapsed_s: float) -> None:
        """Shows a step, and the seconds that the search has taken. Says once that nothing survives."""
        if isinstance(generation, Beginning):
            if not (generation.num_scored or self._has_warned):
                self._has_warned = True
                self.say(f"warning: {_why_none_survives(self._search.problem.task, generation.done)}")
            if generation.done == generation.total:  # the next line says more
                return
        self._latest = (generation, elapsed_s)
        self._renew()

    def _renew(self) -> None:
        """Shows the latest numbers."""

    def say(self, message: str) -> None:
        """Shows a line to the user."""

    def end(self) -> None:
        """Gives the terminal back, as leaving the context does."""

    def _share_done(self, generation: Step, elapsed_s: float) -> float | None:
        """Progress of the search towards its nearest stop, up to 1; None if the only stop is an objective."""
        stop = self._search.problem.config.stop
        counters = Counters(evaluations=generation.done) if isinstance(generation, Beginning) else generation.counters
        bounds = (counters.generations, stop.generations), (counters.evaluations, stop.evaluations), (elapsed_s, stop.seconds)
        shares = [done / total for done, total in bounds if total]
        return min(1.0, max(shares)) if shares else None

    def _parts(self, generation: Step, elapsed_s: float) -> tuple[str, str]:
        """Two texts: how far the run is, and how good its elites are."""
        if isinstance(generation, Beginning):
            speed = f" ({generation.done / max(elapsed_s, 1e-9):,.0f}/s)" if generation.stage == "evaluated" else ""
            done = f"{generation.done:,} of {plural(generation.total, 'program')} {generation.stage}"
            return f"generation 0  {done}{speed}", f"{generation.num_scored:,} with a score"
        counters = generation.counters
        rate = (counters.evaluations - self._first[0]) / max(elapsed_s - self._first[1], 1e-9)
        farm = "".join(f"  {name} {count:,}" for name, count in generation.stats.farm.items() if count)
        return (
            (
                f"generation {counters.generations:,}  evaluations {counters.evaluations:,} ({rate:,.0f}/s)  "
                f"duplicates {counters.duplicates / counters.offspring:.0%}  "
                f"unchanged {counters.neutral / counters.offspring:.0%}{farm}"
            ),
            (
                f"coverage {generation.coverage:.1%}  QD score {_short(generation.qd_score, ',.2f')}  "
                f"best {_short(generation.best_objective, '.4f')}"
            ),
        )


class _PlainProgress(Progress):
    """Prints a line every few seconds and one at the end, for logs."""

    def __init__(self, search: Search):
        super().__init__(search)
        self._shown_s: dict[type, float] = {}

    def __exit__(self, *_: object) -> None:
        self._print()

    def _renew(self) -> None:
        if self._latest and self._latest[1] - self._shown_s.get(type(self._latest[0]), float("-inf")) >= PLAIN_SECONDS:
            self._shown_s[type(self._latest[0])] = self._latest[1]
            self._print()

    def _print(self) -> None:
        if self._latest:
            echo("  ".join(self._parts(*self._latest)))
        self._latest = None

    def say(self, message: str) -> None:
        echo(message, err=True)


class _TerminalProgress(Progress):
    """Shows a bar towards the nearest stop above the numbers. If the only stop is an objective, the bar just pulses.

    Only the display's own thread draws, so that the search waits for no terminal.
    """

    def __init__(self, search: Search):
        from rich.live import Live
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TimeElapsedColumn, TimeRemainingColumn

        super().__init__(search)
        self._said: list[str] = []
        self._bar = Progress(BarColumn(bar_width=None), TaskProgressColumn(), TimeElapsedColumn(), TimeRemainingColumn())
        self._bar_task = self._bar.add_task("", total=None)
        self._live = Live(get_renderable=self._drawn, refresh_per_second=8)

    def __enter__(self) -> Progress:
        self._live.start(refresh=True)
        return self

    def say(self, message: str) -> None:
        self._said.append(printable(message))

    def end(self) -> None:
        self._live.stop()

    def _drawn(self) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        lines = ["starting"]
        if self._latest:
            if (share := self._share_done(*self._latest)) is not None:
                self._bar.update(self._bar_task, total=1.0, completed=share)
            lines = list(self._parts(*self._latest))
        return Group(self._bar, Text("\n".join([*lines, *self._said])))


class _NotebookProgress(Progress):
    """Shows a bar towards the nearest stop above the numbers, in the output of a notebook's cell.

    By IPython's own display: rich's needs ipywidgets in a notebook.
    """

    def __enter__(self) -> Progress:
        ipython: Any = import_module("IPython.display")  # which no notebook is without
        self._html: Callable[[str], Any] = ipython.HTML
        self._shown_s = time.monotonic()
        self._handle = ipython.display(self._html("starting"), display_id=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._show()

    def _renew(self) -> None:
        if time.monotonic() - self._shown_s >= NOTEBOOK_SECONDS:
            self._show()

    def say(self, message: str) -> None:
        echo(message, err=True)

    def _show(self) -> None:
        self._shown_s = time.monotonic()
        if self._latest:
            share = self._share_done(*self._latest)
            value = "" if share is None else f' value="{share:.4f}"'
            lines = "\n".join(html.escape(part) for part in self._parts(*self._latest))
            self._handle.update(self._html(f'<progress style="width: 100%" max="1"{value}></progress><pre>{lines}</pre>'))


def _why_none_survives(task: Task, num_programs: int) -> str:
    location = method_place(type(task), "simulate" if task.has_simulation() else "score")
    return (
        f"none of the first {plural(num_programs, 'program')} survives: {location} gives NaN, infinity or more than "
        f"{MAX_OBJECTIVE:g} as objective or measure, or they could not run; try one with: evo eval CONFIG PROGRAM"
    )


def success_text(success: Mapping[str, Success]) -> str:
    """A table of the outcomes of each emitter's programs, with the share of evaluated ones that became elites."""
    width = max(len("emitter"), *map(len, success))
    lines = [f"{'emitter':<{width}} {'offspring':>12} {'evaluated':>12} {'new cells':>10} {'improved':>10}  became elites"]
    for name, outcome in success.items():
        counts = f"{outcome.offspring:>12,} {outcome.evaluations:>12,} {outcome.new_cells:>10,} {outcome.improved:>10,}"
        lines.append(f"{name:<{width}} {counts}  {(outcome.new_cells + outcome.improved) / max(outcome.evaluations, 1):.2%}")
    return "\n".join(lines)


def _short(number: float, form: str) -> str:
    """A number in this form, without the sign of a zero; in scientific notation where that would have too many digits."""
    return format(number, f"z{form}" if abs(number) < HUGE else ".6g")
