"""The cache of compiled files: a folder that any number of processes read and write at once.

Owns the entries' format and the folder's size. Knows nothing of what keys stand for: each is a hash of all that
decides the content, including its kind.

An entry is a file: a magic line, the SHA-256 of the content, and the content. Corrupt entries are deleted and treated as misses.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from evo.errors import os_errors_as
from evo.storage.files import PARTIAL_SUFFIX, write_atomically

_MAGIC = b"evo cache 3\n"
_HEADER_BYTES = len(_MAGIC) + hashlib.sha256().digest_size
_SUFFIX = ".compiled"
# A file that a killed process left half-written is removed when it is this old; no write takes that long.
_PARTIAL_SECONDS = 3600.0


def cache_folder() -> Path:
    """Folder of this user's compiled files between calls."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "evo"


def open_cache(megabytes: int) -> DiskCache | None:
    """This user's cache with a bound in MiB; None for 0, which means no cache. Raises UserError: the folder cannot be made."""
    return DiskCache(cache_folder(), megabytes << 20) if megabytes else None


class DiskCache:
    """A cache that evicts the least recently used entries when the folder exceeds its bound.

    Args:
        folder: made if it does not exist.
        max_bytes: bound on the folder's size. Each process checks it whenever it has written a sixteenth of the bound, so the
            folder may exceed the bound by that much for each process that writes.

    Raises:
        UserError: here and in all methods: the folder or a file in it cannot be read or written.
    """

    def __init__(self, folder: str | Path, max_bytes: int = 2 * 1024**3):
        self._folder = Path(folder)
        with self._usable():
            self._folder.mkdir(parents=True, exist_ok=True)
        self._max_bytes = max_bytes
        self._written_bytes = max_bytes  # the folder's size is not known yet: check it at the first write

    def get(self, key: str) -> bytes | None:
        """The content stored under this key, or None."""
        path = self._path(key)
        with self._usable():
            try:
                entry = path.read_bytes()
            except FileNotFoundError:
                return None
            content = entry[_HEADER_BYTES:]
            if entry[:_HEADER_BYTES] != _header(content):
                path.unlink(missing_ok=True)
                return None
            with suppress(FileNotFoundError):  # another process evicted it; the content was read before
                os.utime(path)  # marks it as used now
            return content

    def put(self, key: str, content: bytes) -> None:
        """Stores content. If several processes write one key, any of them may win."""
        with self._usable():
            write_atomically(self._path(key), _header(content) + content)
            self._written_bytes += _HEADER_BYTES + len(content)
            if self._written_bytes * 16 >= self._max_bytes:
                self._evict()
                self._written_bytes = 0

    @contextmanager
    def _usable(self) -> Iterator[None]:
        with os_errors_as(f"{self._folder}: cannot be used as cache"):
            yield

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}{_SUFFIX}"

    def _evict(self) -> None:
        files, total_bytes = [], 0
        for entry in os.scandir(self._folder):
            try:
                status = entry.stat()
            except FileNotFoundError:
                continue  # another process evicted it
            if entry.name.endswith(_SUFFIX):
                files.append((status.st_mtime_ns, entry.name, status.st_size))
                total_bytes += status.st_size
            elif entry.name.endswith(PARTIAL_SUFFIX) and time.time() - status.st_mtime > _PARTIAL_SECONDS:
                Path(entry.path).unlink(missing_ok=True)
        for _, name, num_bytes in sorted(files):
            if total_bytes <= self._max_bytes:
                break
            (self._folder / name).unlink(missing_ok=True)
            total_bytes -= num_bytes


def _header(content: bytes) -> bytes:
    return _MAGIC + hashlib.sha256(content).digest()
