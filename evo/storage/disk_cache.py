"""The cache of what compilers make: a folder of files that any number of processes read and write at once.

Owns the files' format and the folder's size. Knows nothing of what keys stand for; they are hashes of all that decides the
content, its kind among it.

A file is a magic line, the SHA-256 of the rest, and the content. It appears whole, by renaming, or not at all. One that is
damaged all the same is dropped when it is read, and is then as one that never was.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evo.errors import UserError

_MAGIC = b"evo cache 1\n"
_HEADER_BYTES = len(_MAGIC) + hashlib.sha256().digest_size
_SUFFIX = ".compiled"
_PARTIAL_SUFFIX = ".partial"
# A file that a killed process left half-written is removed when it is this old; no write takes as long.
_PARTIAL_SECONDS = 3600.0


def cache_folder() -> Path:
    """Where what was compiled for this user is kept between calls."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "evo"


class DiskCache:
    """A cache that drops what was not used for longest when the folder exceeds its bound.

    Args:
        folder: made if it is not there.
        max_bytes: bound on the folder's size. Each process looks whenever it has written a sixteenth of it, so that the folder
            may exceed the bound by that much for each process that writes.

    Raises:
        UserError: here and in all methods, the folder or a file in it cannot be read or written.
    """

    def __init__(self, folder: str | Path, max_bytes: int = 2 * 1024**3):
        self._folder = Path(folder)
        with self._usable():
            self._folder.mkdir(parents=True, exist_ok=True)
        self._max_bytes = max_bytes
        self._written_bytes = max_bytes  # the folder's size is not known yet: look at the first write

    def get(self, key: str) -> bytes | None:
        """What was put under this key, or None."""
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
            try:
                os.utime(path)  # used now
            except FileNotFoundError:
                pass  # another process evicted it, which does not harm what was read
            return content

    def put(self, key: str, content: bytes) -> None:
        """Stores content; of several writers of one key any may win."""
        with self._usable():
            self._write(key, _header(content) + content)
            self._written_bytes += _HEADER_BYTES + len(content)
            if self._written_bytes * 16 >= self._max_bytes:
                self._evict()
                self._written_bytes = 0

    @contextmanager
    def _usable(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise UserError(f"{self._folder}: cannot be used as cache: {error.strerror}") from error

    def _write(self, key: str, entry: bytes) -> None:
        handle, partial = tempfile.mkstemp(_PARTIAL_SUFFIX, dir=self._folder)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(entry)
            os.replace(partial, self._path(key))
        except BaseException:
            Path(partial).unlink(missing_ok=True)
            raise

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
            elif entry.name.endswith(_PARTIAL_SUFFIX) and time.time() - status.st_mtime > _PARTIAL_SECONDS:
                Path(entry.path).unlink(missing_ok=True)
        for _, name, num_bytes in sorted(files):
            if total_bytes <= self._max_bytes:
                break
            (self._folder / name).unlink(missing_ok=True)
            total_bytes -= num_bytes


def _header(content: bytes) -> bytes:
    return _MAGIC + hashlib.sha256(content).digest()
