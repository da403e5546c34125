"""A Dask worker's side of an evaluation: the evaluators that it holds.

Owns the task's folder as it was sent, and the evaluator made for it. A worker keeps those of the last few runs. Knows nothing of
the other workers.
"""

import ctypes
import io
import os
import pickle
import shutil
import signal
import tempfile
import threading
import time
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from evo.compile.language import decode_language
from evo.errors import DeviceFailure, UserError
from evo.evaluate import Evaluation, Evaluator, Failure, TaskSource
from evo.evaluate.backends import BACKENDS, Assignment, Quarantine, share_gpus
from evo.evaluate.options import EvaluationOptions
from evo.language.batch import Batch
from evo.tasks.folder import declared_files, load_task, task_digest

T = TypeVar("T")

MAX_HELD = 4  # evaluators of a worker

# Dask's nannies fix the C library's threshold at a value at which each chunk's arrays are mapped and paged in anew. These are the
# largest that it would reach by itself.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_MMAP_BYTES = 32 << 20


@dataclass(frozen=True)
class PackedTask:
    """A task's folder and the files that it declares, laid out as they lie to each other.

    zip: of them. folder: the task's, in the zip. root: what the zip's top is where the run is. options: of the task, those that
    are paths of such files, with the paths in the zip.
    """

    zip: bytes
    folder: str
    root: str
    options: Mapping[str, str]

    @property
    def original(self) -> str:
        """The task's folder where the run is."""
        return str(Path(self.root, self.folder))


@dataclass(frozen=True)
class RemoteSetup:
    """What a worker needs to make its evaluator.

    packed: the task's folder and the files that it declares. options: of the task. task_digest: as of `evo.tasks.folder`.
    backend: its name. quarantine: as of `Assignment`. settings: of the run.
    """

    packed: PackedTask
    options: Mapping[str, Any]
    task_digest: str
    language: bytes
    instructions: tuple[str, ...]
    backend: str
    quarantine: Quarantine
    settings: EvaluationOptions


@dataclass(frozen=True)
class RemoteFailure:
    """A device failure of a worker. `DeviceFailure` itself does not survive the way back."""

    worker: str
    message: str
    failures: tuple[Failure, ...]


class _Held:
    """An evaluator with its task's folder."""

    def __init__(self, setup: RemoteSetup):
        self._setup = setup
        self._root = Path(tempfile.mkdtemp(prefix="evo-task-", dir=_worker().local_directory))
        self.lock = threading.Lock()  # an evaluator works at one batch at a time
        self.is_closed = False
        try:
            with self.original_places():
                self.evaluator = self._make()
        except BaseException:
            shutil.rmtree(self._root, ignore_errors=True)
            raise

    @contextmanager
    def original_places(self) -> Iterator[None]:
        """Errors name the files as they are called where the run is."""
        try:
            yield
        except UserError as error:
            raise UserError(str(error).replace(str(self._root), self._setup.packed.root.rstrip("/"))) from None

    def close(self) -> None:
        """Frees everything, after the batch that it works at."""
        with self.lock:
            self.is_closed = True
            self.evaluator.close()
        shutil.rmtree(self._root, ignore_errors=True)

    def _make(self) -> Evaluator:
        setup, packed = self._setup, self._setup.packed
        with zipfile.ZipFile(io.BytesIO(packed.zip)) as files:
            files.extractall(self._root)
        options = {**setup.options, **{name: str(self._root / path) for name, path in packed.options.items()}}
        source = TaskSource(self._root / packed.folder, options)
        task = load_task(source.folder, dict(source.options))
        if task_digest(source.folder, declared_files(task, source.folder)) != setup.task_digest:
            raise UserError(f"Dask worker {_worker().address} has other files of the task than the run", packed.original)
        backend = BACKENDS[setup.backend]
        share_gpus()
        # A score in Python would keep the worker from talking: processes do it.
        executor = setup.settings.executor
        if executor == "auto":
            executor = "threads" if task.reduction else "processes"
        settings = setup.settings.model_copy(update={"threads": _worker().state.nthreads, "executor": executor})
        return backend.start(
            Assignment(decode_language(setup.language), task, setup.instructions, settings, setup.quarantine, source)
        )


_held: OrderedDict[str, _Held] = OrderedDict()
_held_lock = threading.Lock()


def call(setup: bytes, run: str, function: Callable[..., T], *args: Any) -> T | RemoteFailure:
    """What a function such as `evaluate` makes of the run's evaluator and these arguments.

    Args:
        setup: a pickled `RemoteSetup`.
        run: who asks, until it calls `forget`.

    Raises:
        UserError: the task is wrong, or cannot be evaluated here.
    """
    with _evaluator(setup, run) as evaluator:
        try:
            return function(evaluator, *args)
        except DeviceFailure as failure:
            return RemoteFailure(_worker().address, str(failure), tuple(failure.failures))


def evaluate(evaluator: Evaluator, batch: Batch) -> Evaluation:
    """Scores programs. times_s has the whole time as `part`."""
    start_s = time.perf_counter()
    evaluation = evaluator.evaluate(batch)
    return replace(evaluation, times_s={**evaluation.times_s, "part": time.perf_counter() - start_s})


def outputs(evaluator: Evaluator, words: NDArray[np.uint64], points: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Outputs at given points, by name."""
    return evaluator.outputs(words, points)


def describe(evaluator: Evaluator) -> tuple[str, dict[str, str | int]]:
    """Device and environment."""
    return evaluator.device, evaluator.environment()


def forget(run: str) -> None:
    """Frees a run's evaluator, soon."""
    threading.Thread(target=_forget, args=(run,), daemon=True).start()  # the caller is the worker's event loop


def dask_setup(_: object) -> None:
    """Called by a local cluster's workers as they start. Only the run's process handles Ctrl-C."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def _evaluator(setup: bytes, run: str) -> Iterator[Evaluator]:
    """The evaluator of a run, for one call. If it is closed before the call begins, another one is made."""
    while True:
        held = _hold(setup, run)
        with held.lock:
            if not held.is_closed:
                with held.original_places():
                    yield held.evaluator
                return


def _hold(setup: bytes, run: str) -> _Held:
    """The evaluator of a run, made if the worker does not have it."""
    with _held_lock:
        if not _held:
            _keep_memory()
        _held[run] = held = _held.pop(run, None) or _Held(pickle.loads(setup))
        surplus = [_held.popitem(last=False)[1] for _ in range(len(_held) - MAX_HELD)]
    for other in surplus:
        other.close()
    return held


def _forget(run: str) -> None:
    with _held_lock:
        held = _held.pop(run, None)
    if held:
        held.close()


def _keep_memory() -> None:
    """Lets the C library keep the memory of arrays that are made again and again, here and in child processes."""
    os.environ.pop("MALLOC_TRIM_THRESHOLD_", None)
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt:
        mallopt(_M_MMAP_THRESHOLD, _MMAP_BYTES)
        mallopt(_M_TRIM_THRESHOLD, 2 * _MMAP_BYTES)


def _worker() -> Any:
    from distributed import get_worker

    return get_worker()
