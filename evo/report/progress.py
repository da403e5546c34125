"""A run's progress: a bar on a terminal, plain lines elsewhere.

Owns how a generation's numbers are shown. Reads the run and never changes it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import click

from evo.run.run import Run
from evo.search.map_elites import Generation

# Takes each generation, and the seconds that the run has taken so far.
ShowGeneration = Callable[[Generation, float], None]

PLAIN_SECONDS = 5.0  # between two plain lines


def progress_of(run: Run) -> AbstractContextManager[ShowGeneration]:
    """A context that shows the run's progress. Entering it gives the function to call after each generation."""
    return _TerminalProgress(run) if sys.stdout.isatty() else _PlainProgress(run)


class _Progress:
    """Formats a run's numbers. Subclasses show them."""

    def __init__(self, run: Run):
        self._run = run
        self._first = (run.search.counters.evaluations, run.search.elapsed_s)

    def _parts(self, generation: Generation, elapsed_s: float) -> tuple[str, str]:
        """Two texts: how far the run is, and how good its elites are."""
        counters = generation.counters
        rate = (counters.evaluations - self._first[0]) / max(elapsed_s - self._first[1], 1e-9)
        return (
            (
                f"generation {counters.generations:,}  evaluations {counters.evaluations:,} ({rate:,.0f}/s)  "
                f"duplicates {counters.duplicates / counters.offspring:.0%}  neutral {counters.neutral / counters.offspring:.0%}"
            ),
            f"coverage {generation.coverage:.1%}  QD score {generation.qd_score:,.2f}  best {generation.best_objective:.4f}",
        )


class _PlainProgress(_Progress):
    """Prints a line every few seconds and one at the end, for logs."""

    def __enter__(self) -> ShowGeneration:
        self._shown_s = float("-inf")
        self._last: str | None = None
        return self._show

    def __exit__(self, *_: object) -> None:
        if self._last:
            click.echo(self._last)

    def _show(self, generation: Generation, elapsed_s: float) -> None:
        self._last = "  ".join(self._parts(generation, elapsed_s))
        if elapsed_s - self._shown_s >= PLAIN_SECONDS:
            click.echo(self._last)
            self._last = None
            self._shown_s = elapsed_s


class _TerminalProgress(_Progress):
    """Shows a bar towards the nearest stop above the numbers. If the only stop is an objective, the bar just pulses."""

    def __enter__(self) -> ShowGeneration:
        from rich.console import Group
        from rich.live import Live
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.text import Text

        self._bar = Progress(BarColumn(bar_width=None), TaskProgressColumn(), TimeElapsedColumn(), TimeRemainingColumn())
        self._bar_task = self._bar.add_task("", total=None)
        self._text = Text("starting")
        self._live = Live(Group(self._bar, self._text), refresh_per_second=8)
        self._live.__enter__()
        return self._show

    def __exit__(self, *error: Any) -> None:
        self._live.__exit__(*error)

    def _show(self, generation: Generation, elapsed_s: float) -> None:
        stop, counters = self._run.search.problem.config.stop, generation.counters
        parts = [
            done / total
            for done, total in (
                (counters.generations, stop.generations),
                (counters.evaluations, stop.evaluations),
                (elapsed_s, stop.seconds),
            )
            if total
        ]
        if parts:
            self._bar.update(self._bar_task, total=1.0, completed=min(1.0, max(parts)))
        self._text.plain = "\n".join(self._parts(generation, elapsed_s))
