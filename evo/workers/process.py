"""A process of its own, which makes one call after the other: `python -P -m evo.workers CONNECTION PARENT SIGNAL`.

Owns both sides of the talk, and how such a process starts and ends. It has a group of its own, so signals to this process's
group, such as Ctrl-C, do not reach it. It ends when this process does, however that happens. It finds what this process can
import, but never imports its main script. Knows nothing of what the calls do.
"""

import ctypes
import math
import os
import pickle
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import cache
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import IO, Any, ParamSpec, TypeVar, cast

from evo.errors import UserError, how_it_ended, refuse_scipy_without_room
from evo.workers import WAKE_S

# -P: modules in the user's current folder are not imported.
COMMAND = (sys.executable, "-P", "-m", "evo.workers")
END_S = 5.0  # for the end of a process whose connection has closed
# Parallel work is done by processes. A library that starts threads in each of them would only disturb.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"), "1")
_PR_SET_PDEATHSIG = 1
_RETURNED, _RAISED, _STEP = "returned", "raised", "step"  # kinds of messages of a process

_connection: Connection | None = None  # with the parent, in a worker process

OnStep = Callable[[str], object]

_P = ParamSpec("_P")
_T = TypeVar("_T")


class ProcessDied(Exception):
    """The process ended before a call did. exit_code: negative: it was killed by this signal; None: it closed its connection."""

    def __init__(self, exit_code: int | None):
        super().__init__("closed its connection" if exit_code is None else how_it_ended(exit_code))
        self.exit_code = exit_code


class WorkerProcess:
    """A process. One thread at a time uses it; only `kill` is for all.

    Args:
        begin: its first call. The process starts with it, and nobody waits.
        files: numbers of open files that it inherits.
        folder: where it starts; None: where this process is.
        log: what it prints goes there; None: where this process prints.
        last_signal: it gets this one when this process ends.

    Attributes:
        is_ready: whether `wait_until_ready` has seen the first call return.

    Raises:
        OSError, RuntimeError: the system refuses processes or threads, or Python is at its end.
    """

    def __init__(
        self,
        begin: Callable[..., object],
        *args: Any,
        files: Sequence[int] = (),
        folder: str | None = None,
        log: IO[bytes] | None = None,
        last_signal: int = signal.SIGKILL,
    ):
        self.is_ready = False
        with ExitStack() as stack:
            self._connection, theirs = Pipe()
            stack.enter_context(self._connection)
            with theirs:
                command = [*COMMAND, str(theirs.fileno()), str(os.getpid()), str(int(last_signal))]
                environment = {**ONE_THREAD, **os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
                options: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log, "cwd": folder}
                options |= {"env": environment, "process_group": 0}
                inherited = (theirs.fileno(), *files)
                start = _starter().submit(lambda: subprocess.Popen(command, pass_fds=inherited, **options))
                self._process: subprocess.Popen[bytes] = start.result()
            stack.pop_all()
        with suppress(ProcessDied):  # the next call reports it
            self._send((tuple(sys.path), os.environ.get("PYTHONPATH"), tuple(files)))
            self._send((begin, args, {}))

    @property
    def is_alive(self) -> bool:
        """Return whether it has not ended yet."""
        return self._process.poll() is None

    def has_begun(self) -> bool:
        """Return whether `wait_until_ready` returns at once."""
        return self.is_ready or self._connection.poll(0)

    def wait_until_ready(self, limit_s: float = math.inf, on_step: OnStep = lambda _: None) -> Any:
        """Returns after the first call, the first time with its result. Raises as `call`.

        Args:
            on_step: called with each step that the first call reports (`report`).
        """
        if self.is_ready:
            return None
        result = self._receive(limit_s, on_step)
        self.is_ready = True
        return result

    def call(self, function: Callable[_P, _T], limit_s: float, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Makes a call there. The function is found by its name. Returns its result or raises its exception.

        Raises:
            ProcessDied: the process ended first.
            TimeoutError: the limit passed. The process works on. Time in which this process was stopped hardly counts.
        """
        self.wait_until_ready()
        self._send((function, args, kwargs))
        return cast(_T, self._receive(limit_s))

    def hang_up(self) -> None:
        """Has it end by itself, once it is idle."""
        self._connection.close()

    def close(self, patience_s: float = 0.0) -> None:
        """Ends it: by itself within the seconds, so that nothing that was printed is lost, or at once."""
        self.hang_up()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(patience_s)
        self.kill()

    def send_signal(self, number: int) -> None:
        """Sends a signal to it, unless it has ended."""
        self._process.send_signal(number)

    def kill(self, limit_s: float | None = None) -> None:
        """Ends it at once, with the processes that it has started, and waits for that at most so long."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(limit_s)

    def death(self) -> ProcessDied:
        """Describes its end. Its connection has closed, so it has ended or is about to."""
        try:
            return ProcessDied(self._process.wait(END_S))
        except subprocess.TimeoutExpired:
            return ProcessDied(None)

    def _send(self, message: object) -> None:
        try:
            self._connection.send(message)
        except ConnectionError:
            raise self.death() from None

    def _receive(self, limit_s: float, on_step: OnStep = lambda _: None) -> Any:
        waited_s = 0.0
        while True:
            before_s = time.monotonic()
            if self._connection.poll(max(0.0, min(WAKE_S, limit_s - waited_s))):
                try:
                    kind, value = self._connection.recv()
                except (EOFError, ConnectionError):
                    raise self.death() from None
                if kind == _RETURNED:
                    return value
                if kind == _RAISED:
                    raise value
                on_step(value)
            elif not self.is_alive and not self._connection.poll(0):  # a child of its own may keep the connection open
                raise self.death()
            waited_s += min(time.monotonic() - before_s, 2 * WAKE_S)  # this process may have been stopped
            if waited_s >= limit_s:
                raise TimeoutError


@cache
def _starter() -> ThreadPoolExecutor:
    """The kernel ends a process with the thread that started it, which may be none that ends before this process."""
    return ThreadPoolExecutor(1, "start_workers")


def main(arguments: Sequence[str]) -> None:
    """Makes the parent's calls until it closes the connection."""
    connection_file, parent, last_signal = map(int, arguments)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, last_signal)
    if os.getppid() != parent:  # it ended before the line above
        return
    refuse_scipy_without_room()
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # its group is not the terminal's, which may be set to stop it when it prints
    global _connection  # noqa: PLW0603 - of the process
    connection = _connection = Connection(connection_file)
    with suppress(EOFError, OSError):  # the parent has gone, or the call has closed the connection
        sys.path[:], python_path, files = connection.recv()
        for file in (connection_file, *files):
            os.set_inheritable(file, False)
        del os.environ["PYTHONPATH"]
        if python_path is not None:
            os.environ["PYTHONPATH"] = python_path
        while True:
            connection.send_bytes(_answer(connection.recv_bytes()))


def report(step: str) -> None:
    """Tells the parent of a step of the call that this process makes."""
    assert _connection, "this process has no parent to report to"
    _connection.send((_STEP, step))


def _answer(message: bytes) -> bytes:
    try:
        function, args, kwargs = pickle.loads(message)
        return pickle.dumps((_RETURNED, function(*args, **kwargs)))
    except BaseException as error:  # noqa: BLE001 - the parent raises whatever it is
        if not isinstance(error, UserError):
            error.add_note(traceback.format_exc())
        return pickle.dumps((_RAISED, error))
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):  # the call may have closed it, or there is none
                stream.flush()
