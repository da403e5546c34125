"""Status of a farm's worker: one line that is kept up to date on a terminal, plain lines elsewhere, or JSON.

Owns their form. Knows nothing of how the work is done.
"""

import json
import shutil
import time
from collections import deque
from contextlib import AbstractContextManager

import click

from evo.compile.farm.farm_worker import Status
from evo.errors import plural
from evo.escape import echo, printable
from evo.report.screen import is_terminal

RATE_S = 10.0  # the rate is that of this long
PLAIN_S = 60.0  # between two plain lines, unless the worker finds or loses its run


class StatusLine(AbstractContextManager["StatusLine"]):
    """Shows a worker's status when it is called with it. address: the run's. as_json: an object a line instead of text."""

    def __init__(self, address: str, *, as_json: bool):
        self._address = address
        self._as_json = as_json
        self._is_terminal = is_terminal() and not as_json
        self._past: deque[tuple[float, int]] = deque()  # time and number of programs
        self._shown: tuple[float, bool] | None = None  # when the last plain line was printed, and whether there was a run

    def __call__(self, status: Status) -> None:
        """Shows a status, unless it would repeat a plain line."""
        now_s = time.monotonic()
        self._past.append((now_s, status.programs))
        while len(self._past) > 2 and self._past[1][0] < now_s - RATE_S:
            self._past.popleft()
        seconds = now_s - self._past[0][0]
        rate = (status.programs - self._past[0][1]) / seconds if seconds > 0 else 0.0
        if self._as_json:
            fields = {"address": self._address, **vars(status), "programs_per_s": round(rate, 1)}
            echo(json.dumps(fields))
            return
        state = "works for" if status.run else "waits for"
        text = (
            f"{state} {self._address}  {rate:,.0f} programs/s  queue {status.queue}  "
            f"done {plural(status.requests, 'request')}, {plural(status.programs, 'program')}  failed {status.failures:,}"
        )
        if self._is_terminal:
            click.echo(f"\r\x1b[K{printable(text)[: shutil.get_terminal_size().columns - 1]}", nl=False)
        elif self._shown is None or status.run != self._shown[1] or now_s - self._shown[0] >= PLAIN_S:
            echo(text)
            self._shown = (now_s, status.run)

    def __exit__(self, *_: object) -> None:
        if self._is_terminal:
            echo()

    def say(self, line: str) -> None:
        """Shows a line to the worker's operator."""
        if self._is_terminal:
            echo()
        echo(f"evo: {line}", err=True)
