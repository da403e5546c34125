"""Functions that numba compiles when they are first called.

Owns the compilation and the place of its cache: the user's cache folder, never the task's. Importing it does not import numba,
which is slow to load. If the cache folder cannot be used, functions are compiled in every process.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
import types
from collections.abc import Callable
from pathlib import Path

_lock = threading.Lock()  # numba's settings are the process's


class Compiled:
    """A function that is compiled at its first call, for arguments of the types in `signature`."""

    def __init__(self, signature: str, function: Callable[..., None]):
        self._signature = signature
        self._function = function
        self._source = Path(function.__code__.co_filename).read_bytes()  # as it is imported
        self._compiled: Callable[..., None] | None = None

    def __call__(self, *arguments) -> None:
        if self._compiled is None:
            with _lock:
                self._compiled = self._compiled or _compile(self._signature, self._function, self._source)
        self._compiled(*arguments)


def compiled(signature: str) -> Callable[[Callable[..., None]], Compiled]:
    """Decorates a function that numba compiles. It may call no other Python function."""
    return lambda function: Compiled(signature, function)


def _compile(signature: str, function: Callable[..., None], source: bytes) -> Callable[..., None]:
    import numba

    # Operations keep their written order: no fastmath, no parallel loops.
    options = {"nogil": True, "error_model": "numpy"}
    folder = _cache_folder()
    if folder is None:
        return numba.njit([signature], **options)(function)
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = folder
    try:
        return numba.njit([signature], cache=True, **options)(_kept_by_content(function, source, Path(folder)))
    except Exception:  # noqa: BLE001 damaged entries raise anything; a wrong function raises again here
        return numba.njit([signature], **options)(function)
    finally:
        numba.config.CACHE_DIR = before


def _kept_by_content(function: Callable[..., None], source: bytes, folder: Path) -> Callable[..., None]:
    """The same function as if it were from a copy of its file that is named by its content, in a module that all processes have.

    numba keeps results by the file's path and time, and by the module's name. Each run has a copy of the task of its own.
    """
    path = folder / hashlib.sha256(source).hexdigest()[:16] / Path(function.__code__.co_filename).name
    if not path.is_file():
        path.parent.mkdir(exist_ok=True)
        partial = path.with_name(f"{path.name}.{os.getpid()}")
        partial.write_bytes(source)
        partial.rename(path)
    code = function.__code__.replace(co_filename=str(path))
    return types.FunctionType(code, {**function.__globals__, "__name__": "numba"}, function.__name__)


def _cache_folder() -> str | None:
    """$NUMBA_CACHE_DIR, or a folder in evo's own cache; None if it cannot be written."""
    try:
        user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        folder = Path(os.environ.get("NUMBA_CACHE_DIR") or user / "evo" / "numba")
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except (OSError, RuntimeError):  # not writable, or there is no home folder
        return None
    return str(folder)
