"""A process of its own, which makes one call after the other: `python -P -m evo.worker_process CONNECTION PARENT SIGNAL`.

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
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import cache
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import IO, Any, ParamSpec, TypeVar, cast

from evo.errors import UserError, how_it_ended, refuse_scipy_without_room
from evo.waiting import WAKE_S

# -P: modules in the user's current folder are not imported.
COMMAND = (sys.executable, "-P", "-m", "evo.worker_process")
MAX_WORKERS = 512  # processes or threads that a user can ask for; each takes tens of MB
END_S = 5.0  # for the end of a process whose connection has closed
# Parallel work is done by processes. A library that starts threads in each of them would only disturb.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"), "1")
_PR_SET_PDEATHSIG = 1

_P = ParamSpec("_P")
_T = TypeVar("_T")


class ProcessDied(Exception):
    """The process ended before a call did; the message says how."""


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
        with suppress(ProcessDied):  # the next call tells of it
            self._send((tuple(sys.path), os.environ.get("PYTHONPATH"), tuple(files)))
            self._send((begin, args, {}))

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended yet."""
        return self._process.poll() is None

    def has_begun(self) -> bool:
        """Whether `wait_until_ready` returns at once."""
        return self.is_ready or self._connection.poll(0)

    def wait_until_ready(self, limit_s: float = math.inf) -> Any:
        """Returns when the first call has, the first time what it does. Raises as `call`."""
        if self.is_ready:
            return None
        result = self._receive(limit_s)
        self.is_ready = True
        return result

    def call(self, function: Callable[_P, _T], limit_s: float, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """What the function, which is found by its name, returns or raises there.

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

    def kill(self, *, waits: bool = True) -> None:
        """Ends it at once, with the processes that it has started. Without `waits` it may be still there afterwards."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        if waits:
            self._process.wait()

    def how_it_ended(self) -> str:
        """What its end was, for a message. Its connection has closed, so it has ended or is about to."""
        try:
            return how_it_ended(self._process.wait(END_S))
        except subprocess.TimeoutExpired:
            return "closed its connection"

    def _send(self, message: object) -> None:
        try:
            self._connection.send(message)
        except ConnectionError:
            raise ProcessDied(self.how_it_ended()) from None

    def _receive(self, limit_s: float) -> Any:
        waited_s = 0.0
        while not self._connection.poll(min(WAKE_S, limit_s - waited_s)):
            # A child of its own may keep the connection open.
            if not self.is_alive and not self._connection.poll(0):
                raise ProcessDied(self.how_it_ended())
            waited_s += WAKE_S
            if waited_s >= limit_s:
                raise TimeoutError
        try:
            is_result, value = self._connection.recv()
        except (EOFError, ConnectionError):
            raise ProcessDied(self.how_it_ended()) from None
        if is_result:
            return value
        raise value


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
    connection = Connection(connection_file)
    with suppress(EOFError, OSError):  # the parent has gone, or the call has closed the connection
        sys.path[:], python_path, files = connection.recv()
        for file in (connection_file, *files):
            os.set_inheritable(file, False)
        del os.environ["PYTHONPATH"]
        if python_path is not None:
            os.environ["PYTHONPATH"] = python_path
        while True:
            connection.send_bytes(_answer(connection.recv_bytes()))


def _answer(message: bytes) -> bytes:
    try:
        function, args, kwargs = pickle.loads(message)
        return pickle.dumps((True, function(*args, **kwargs)))
    except BaseException as error:  # noqa: BLE001 - the parent raises whatever it is
        if not isinstance(error, UserError):
            error.add_note(traceback.format_exc())
        return pickle.dumps((False, error))
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):  # the call may have closed it, or there is none
                stream.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
