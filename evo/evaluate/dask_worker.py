"""A Dask worker's side of an evaluation: the evaluators that it holds.

Owns the task's folder as it was sent, and the evaluator made for it. A worker keeps those of the last few runs. Knows nothing of
the other workers.
"""

import ctypes
import io
import os
import pickle
import shutil
import tempfile
import threading
import time
import zipfile
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evo.compile.language import decode_language
from evo.errors import UserError, renamed
from evo.evaluate import Evaluator, TaskSource
from evo.evaluate.backends import BACKENDS, Assignment, Quarantine, share_gpus
from evo.evaluate.options import EvaluationOptions
from evo.tasks.folder import declared_files, load_task, task_digest

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
    """Everything that a worker needs to make its evaluator.

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


class _Held:
    """An evaluator with its task's folder."""

    def __init__(self, setup: RemoteSetup):
        packed = setup.packed
        self._root = Path(tempfile.mkdtemp(prefix="evo-task-", dir=_worker().local_directory))
        self.names = {str(self._root): packed.root.rstrip("/")}  # of files: here, and where the run is
        try:
            with renamed(self.names), zipfile.ZipFile(io.BytesIO(packed.zip)) as files:
                files.extractall(self._root)
                self.evaluator = self._make(setup)
        except BaseException:
            shutil.rmtree(self._root, ignore_errors=True)
            raise

    def close(self) -> None:
        """Frees everything."""
        self.evaluator.close()
        shutil.rmtree(self._root, ignore_errors=True)

    def _make(self, setup: RemoteSetup) -> Evaluator:
        packed = setup.packed
        options = {**setup.options, **{name: str(self._root / path) for name, path in packed.options.items()}}
        source = TaskSource(self._root / packed.folder, options)
        task = load_task(source.folder, dict(source.options))
        if task_digest(source.folder, declared_files(task, source.folder)) != setup.task_digest:
            raise UserError(f"Dask worker {_worker().address} has other files of the task than the run", packed.original)
        share_gpus()
        executor = setup.settings.executor
        if executor == "auto":  # a score in Python would keep the worker from talking: processes do it
            executor = "threads" if task.reduction else "processes"
        settings = setup.settings.model_copy(update={"threads": _worker().state.nthreads, "executor": executor})
        language = decode_language(setup.language)
        return BACKENDS[setup.backend].start(Assignment(language, task, setup.instructions, settings, setup.quarantine, source))


_held: OrderedDict[str, _Held] = OrderedDict()
_lock = threading.Lock()  # evaluators use all threads of the worker: one works at a time


def call(setup: bytes, run: str, method: str, *args: Any) -> tuple[Any, float]:
    """Calls a method of the run's evaluator. Gives the result, and its seconds.

    Args:
        setup: a pickled `RemoteSetup`.
        run: who asks, until it calls `forget`.

    Raises:
        UserError: the task is wrong, or cannot be evaluated here.
        DeviceFailure: the device failed.
    """
    with _lock:
        if not _held:
            _keep_memory()
        _held[run] = held = _held.pop(run, None) or _Held(pickle.loads(setup))
        while len(_held) > MAX_HELD:
            _held.popitem(last=False)[1].close()
        start_s = time.perf_counter()
        with renamed(held.names):
            return getattr(held.evaluator, method)(*args), time.perf_counter() - start_s


def forget(run: str) -> None:
    """Frees a run's evaluator, soon."""

    def free() -> None:
        with _lock:
            if held := _held.pop(run, None):
                held.close()

    threading.Thread(target=free, daemon=True).start()  # the caller is the worker's event loop


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
