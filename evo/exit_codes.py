"""End of a command: its exit codes, at once after a failure, and in order after Ctrl-C.

Owns signals of the command line. A user's mistake ends with 2, a check that fails or a task that ends the process
with 1, a run whose GPU failed with 3, an interrupted run that was saved with 130. Knows nothing of what is interrupted.
"""

import atexit
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn, Protocol

from evo.escape import echo
from evo.native.crash_line import on_crash

EXIT_CHECK_FAILED = 1
EXIT_USER_ERROR = 2
EXIT_DEVICE_FAILED = 3
EXIT_INTERRUPTED = 130

_exit = os._exit


class Shown(Protocol):
    """Display of progress; a signal's handler may call it."""

    def say(self, message: str) -> None:
        """Shows a line."""

    def end(self) -> None:
        """Gives the terminal back."""


def end_at_once(exit_code: int, message: str = "") -> NoReturn:
    """Ends the process, with a line. Python's own end would wait for threads that wait for a device that may never answer."""
    if message:
        echo(f"evo: {message}", err=True)
    sys.stdout.flush()
    # This part of Python's end stops processes and frees what multiprocessing would otherwise warn about.
    atexit._run_exitfuncs()  # noqa: SLF001 - there is no public way to run exit functions and then end at once
    _exit(exit_code)


@contextmanager
def exits_told() -> Iterator[None]:
    """Makes an `os._exit` of a task's code print a message and end with `EXIT_CHECK_FAILED`: it must not look like the end of a
    command. A crash prints the message given to `on_crash`.
    """
    on_crash("")
    process = os.getpid()

    def exit_told(status: int) -> NoReturn:
        if os.getpid() == process:
            line = f"evo: the task's code ended this process with os._exit({status}); a run goes on from its last checkpoint\n"
            os.write(2, line.encode())
            status = EXIT_CHECK_FAILED
        _exit(status)

    os._exit = exit_told
    try:
        yield
    finally:
        os._exit = _exit


class Interrupt:
    """The first Ctrl-C, SIGTERM or SIGHUP asks the run to finish its generation and save; Ctrl-C after it aborts.

    A SIGHUP that is ignored, as under nohup, stays ignored. what: is done then, in words.
    """

    def __init__(self, progress: Shown, what: str = "finishing this generation and saving") -> None:
        self._progress = progress
        self._what = what
        self._asked = False
        self._previous: dict[int, Any] = {}

    def __call__(self, *_: object) -> bool:
        """Return whether it has been asked."""
        return self._asked

    def __enter__(self) -> None:
        self._terminals = [file for file in (0, 1, 2) if os.isatty(file)]
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                self._previous[number] = signal.signal(number, self._handle)

    def __exit__(self, *_: object) -> None:
        for number, previous in self._previous.items():
            signal.signal(number, previous)

    def _handle(self, number: int, _: object) -> None:
        if self._asked:
            if number == signal.SIGINT:
                with suppress(OSError):
                    self._progress.end()
                end_at_once(EXIT_INTERRUPTED, "aborted; the last checkpoint stands")
            return
        self._asked = True
        with suppress(OSError):
            again = "; Ctrl-C again aborts" if number == signal.SIGINT else ""
            self._progress.say(f"evo: {self._what}{again}")
        if number == signal.SIGHUP:
            self._leave_terminal()

    def _leave_terminal(self) -> None:
        """Writes to a terminal that is gone would fail, before or while the run is saved."""
        with suppress(OSError):
            self._progress.end()
        nothing = os.open(os.devnull, os.O_RDWR)
        for file in self._terminals:
            os.dup2(nothing, file)
        os.close(nothing)
