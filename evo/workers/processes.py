"""Worker processes that take turns at calls, and are replaced when they die.

Owns which process makes a call, how often a call that loses its process is made again, and why processes cannot start. Knows
nothing of what the calls do.
"""

import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, CancelledError
from functools import partial
from typing import Any, TypeVar

from evo.errors import UserError, shortage
from evo.workers.process import ProcessDied, WorkerProcess

_T = TypeVar("_T")

MAX_STARTS = 3  # of a process, in a row, that end before they begin


class WorkerDied(BrokenExecutor):
    """The process that made a call crashed or was killed before the call returned, as often as it was made."""


class StartError(UserError):
    """The processes cannot start, or not begin."""


def start_error(kind: str, error: OSError | RuntimeError) -> StartError:
    """The error of a system that refuses files, processes or threads."""
    reason = shortage(error) or (f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else error)
    return StartError(f"the {kind} processes cannot be started: {reason}")


class Processes:
    """Processes of one kind. As many threads as there are processes may call them at once.

    Args:
        size: their number.
        kind: names them in messages: `compile` in `the compile processes`.
        begin, args: the first call of each process.
        begin_s: limit for it.
        files, folder: as of `WorkerProcess`.

    Attributes:
        num_deaths, last_end: how many have died, and how the last one ended.

    Raises StartError: the system refuses them.
    """

    def __init__(
        self,
        size: int,
        kind: str,
        begin: Callable[..., object],
        *args: Any,
        begin_s: float = math.inf,
        files: Sequence[int] = (),
        folder: str | None = None,
    ):
        self.num_deaths, self.last_end = 0, ""
        self._kind, self._begin_s = kind, begin_s
        self._make = partial(WorkerProcess, begin, *args, files=files, folder=folder)
        self._lock = threading.Lock()
        self._all: set[WorkerProcess] = set()
        self._idle: list[WorkerProcess] = []
        self._is_closed = False
        try:
            for _ in range(size):
                self._idle.append(self._started())
        except StartError:
            self.close()
            raise

    def call(
        self,
        function: Callable[..., _T],
        limit_s: float,
        /,
        *args: Any,
        tries: int = 1,
        may_begin: Callable[[WorkerProcess], bool] = lambda _: True,
        **kwargs: Any,
    ) -> _T:
        """Makes a call in one of them. Returns its result or raises its exception.

        Args:
            tries: processes that may die with it.
            may_begin: gets the process that is about to make the call, and says whether it still should.

        Raises:
            WorkerDied: its processes died.
            TimeoutError: the limit passed. The process has been killed.
            CancelledError: `may_begin` said no.
            StartError: no process begins, or they have been closed.
        """
        with self._lock:
            process = self._idle.pop()
        try:
            while True:
                process = self._begun(process)
                if not may_begin(process):
                    raise CancelledError
                try:
                    return process.call(function, limit_s, *args, **kwargs)
                except ProcessDied as death:
                    self._note_death(process, death)
                    process.kill()
                    tries -= 1
                    if not tries:
                        raise WorkerDied(f"the {self._kind} process {death}") from None
                except TimeoutError:
                    process.kill()
                    process.is_ready = False  # its end does not count as a death
                    raise
        finally:
            with self._lock:
                self._idle.append(process)

    def close(self, patience_s: float = 0.0) -> None:
        """Ends them. Idle ones may end by themselves within the seconds, so that no printed text is lost."""
        with self._lock:
            self._is_closed = True
            idle = [process for process in self._idle if process.is_ready]
            busy = self._all.difference(idle)
        for process in busy:
            process.kill(0.0)
        for process in idle:
            process.hang_up()
        end_s = time.monotonic() + patience_s
        for process in idle:
            process.close(max(0.0, end_s - time.monotonic()))
        for process in busy:
            process.kill()
            if process in self._idle:  # else the thread that waits for it may still look at its connection
                process.hang_up()

    def _begun(self, process: WorkerProcess) -> WorkerProcess:
        """This process, or its replacement if it has died, once it has begun."""
        how = ""
        for _ in range(MAX_STARTS):
            if not process.is_alive:
                process = self._replaced(process)
            try:
                process.wait_until_ready(self._begin_s)
            except ProcessDied as death:
                how = str(death)
                process.kill()
            except TimeoutError:
                process.kill()
                raise StartError(
                    f"a {self._kind} process has not begun within {self._begin_s:g} s; "
                    "it may wait for something that another process holds"
                ) from None
            except BaseException:
                process.kill()
                raise
            else:
                return process
        limits = "look at the limits of threads and memory (ulimit -u and -v)"
        raise StartError(f"the {self._kind} processes ended {MAX_STARTS} times before they began, the last {how}; {limits}")

    def _replaced(self, process: WorkerProcess) -> WorkerProcess:
        if process.is_ready:  # it died while it was idle
            self._note_death(process, process.death())
        with self._lock:
            self._all.discard(process)
            process.close()
            return self._started()

    def _note_death(self, process: WorkerProcess, death: ProcessDied) -> None:
        process.is_ready = False
        with self._lock:
            self.num_deaths, self.last_end = self.num_deaths + 1, str(death)

    def _started(self) -> WorkerProcess:
        if self._is_closed:
            raise StartError(f"the {self._kind} processes have been ended")
        try:
            process = self._make()
        except (OSError, RuntimeError) as error:
            raise start_error(self._kind, error) from error
        self._all.add(process)
        return process
