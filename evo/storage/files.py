"""Files that appear whole or not at all.

Owns atomic writes, reads of files that may be anything, locks, and what commands promise of their output files: all of them or
none, and never over an input. Knows nothing of what is written.
"""

import errno
import fcntl
import os
import secrets
import stat
from collections.abc import Iterable, Mapping
from io import BufferedReader
from pathlib import Path
from typing import IO, Any

from evo.errors import UserError, os_errors_as

PARTIAL_SUFFIX = ".partial"
"""Suffix of files that are still being written. One whose writer was killed stays behind."""


MAX_INPUT = 1 << 28
"""Bytes of a file that a user writes by hand or by a program."""


def open_file(path: Path) -> BufferedReader:
    """A regular file to read. Raises OSError also for pipes and devices, which may never end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe without a writer would wait
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return open(path, "rb", opener=lambda *_: descriptor)  # whose name is the path
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OSError(errno.EINVAL, "not a regular file", str(path))


def read_file(path: Path, most: int = MAX_INPUT) -> bytes:
    """The bytes of a file. Raises OSError as `open_file`, and beyond `most` bytes."""
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise OSError(errno.EFBIG, f"{size:,} bytes are more than {most:,}", str(path))
        return file.read(size)  # of `most` bytes, it would ask for the memory first


def read_text(path: Path) -> str:
    """The UTF-8 text of a file, with plain line ends. Raises UnicodeDecodeError, and OSError as `read_file`."""
    return read_file(path).decode().replace("\r\n", "\n")


def try_lock(file: IO[Any], *, is_shared: bool = False) -> bool:
    """Locks an open file until it is closed; False: another process has. `EVO_NO_LOCK=1` is for file systems without locks.

    Raises:
        UserError: the system cannot lock it.
    """
    if os.environ.get("EVO_NO_LOCK"):
        return True
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        hint = "if no other process uses this folder, go on without locks: EVO_NO_LOCK=1"
        raise UserError(f"cannot lock it: {error.strerror}; {hint}", file.name) from error
    return True


def read_input(path: Path) -> bytes:
    """As `read_file`. Raises UserError."""
    with os_errors_as(f"{path}: cannot read it"):
        return read_file(path)


def write_atomically(path: Path, content: bytes | Iterable[bytes | memoryview], *, durable: bool = False) -> None:
    """Replaces a file's content as a whole. On failure the old file is kept, and nothing else is left behind.

    Args:
        content: all of it, or its parts in order.
        durable: returns only when content and name are on disk, so that they survive a power failure.

    Raises:
        OSError: the file cannot be written.
    """
    partial = _write_partial(path, content, durable=durable)
    try:
        os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    if durable:
        _sync_folder(path.parent)


def write_outputs(outputs: Mapping[Path, bytes], inputs: Iterable[Path]) -> None:
    """Writes all files or none; missing folders are made.

    Raises:
        UserError: a path is one of the inputs, or no regular file, or cannot be written.
    """
    inputs = list(inputs)
    for path in outputs:
        if path.exists() and not path.is_file():
            raise UserError("exists and is not a file", path)
        for input_path in inputs:
            if path.resolve() == input_path.resolve() or (path.exists() and path.samefile(input_path)):
                raise UserError(f"would overwrite the input {input_path}", path)
    partials: dict[Path, Path] = {}
    try:
        for path, content in outputs.items():
            with os_errors_as(f"{path}: cannot write it"):
                if not path.parent.exists():
                    path.parent.mkdir(parents=True, exist_ok=True)
                partials[path] = _write_partial(path, content)
        for path, partial in partials.items():
            with os_errors_as(f"{path}: cannot write it"):
                os.replace(partial, path)
    finally:
        for partial in partials.values():
            partial.unlink(missing_ok=True)


def _write_partial(path: Path, content: bytes | Iterable[bytes | memoryview], *, durable: bool = False) -> Path:
    """Writes a new file beside `path` that can be renamed to it. Raises OSError and leaves nothing behind."""
    # Not by `tempfile`, whose files only their owner may read.
    partial = path.with_name(f".{path.name}.{secrets.token_hex(8)}{PARTIAL_SUFFIX}")
    partial.touch(exist_ok=False)
    try:
        with partial.open("wb") as file:
            file.writelines([content] if isinstance(content, bytes) else content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    return partial


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def exists(path: Path) -> bool:
    """Return whether there is such a file or folder; not for a text that cannot be a path, such as one that is too long."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False
