"""Failures: the exceptions that end a command, the kinds of failures of a program, which end nothing, and how a message
about an unknown name, about the end of a process, or about what the machine lacks, ends.

Owns the promise that each exception ends in one clear line, a user's mistake with exit code 2 and a GPU's failure with 3; the
command line keeps it.
"""

import errno
import mmap
import os
import re
import resource
import shlex
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

from evo.escape import cut, printable


class FailureKind(StrEnum):
    """Why a program has no scores although its words are valid."""

    REJECTED = "rejected"  # by the compiler
    TIMED_OUT = "timed out"  # its compilation exceeded the time limit: the one kind that another try may change
    DIED = "died"  # the process that compiled it, twice


class UserError(Exception):
    """Something that the user gave is wrong; the message is one line that names it and says what would be right.

    It may repeat long values of the user's, with any characters: its text has the ends of long lines, and no controls.

    Args:
        reason: what is wrong, and what would be right.
        place: a file with its line, a key, a value, from outside in; nothing if the reason names it. `located` adds to its front.
    """

    def __init__(self, reason: object = "", *place: object):
        super().__init__(reason, *place)
        self.reason, self.place = str(reason), tuple(map(str, place))

    def __str__(self) -> str:
        text = ": ".join((*self.place, self.reason))
        return "\n".join(cut(line, MAX_CHARACTERS) for line in printable(text).split("\n"))


@contextmanager
def located(*place: object) -> Iterator[None]:
    """Puts a location in front of a UserError's."""
    try:
        yield
    except UserError as error:
        error.place = (*map(str, place), *error.place)
        raise


@contextmanager
def renamed(names: Mapping[str, str]) -> Iterator[None]:
    """Renames files, folders and keys in the location of a UserError; what follows them stays."""
    try:
        yield
    except UserError as error:
        for old, new in names.items():
            error.place = tuple(
                new + part[len(old) :] if part == old or part.startswith((f"{old}/", f"{old}:")) else part for part in error.place
            )
        raise


MAX_CHARACTERS = 1000  # of a line of a message


@contextmanager
def os_errors_as(what: str) -> Iterator[None]:
    """Turns errors of the system, and text that is not UTF-8, into a UserError: `what`, and the reason."""
    try:
        yield
    except OSError as error:
        raise UserError(f"{what}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{what}: not UTF-8 at byte {error.start}") from error


def one_line(message: object) -> str:
    """A message without line breaks."""
    return " ".join(str(message).splitlines())


def command_line(*words: object) -> str:
    """The command `evo` with these words, quoted as a shell needs it."""
    return f"evo {shlex.join(map(str, words))}"


def plural(count: int, noun: str) -> str:
    """A count and its noun: `1 elite`, `1,024 elites`."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


class DeviceFailure(Exception):
    """The GPU failed, and this process cannot use it any more."""


MAX_LISTED = 17  # names that a message lists
_MAX_NEAR = 3
_NEAR, _CLEARLY_NEAR = 0.6, 0.7  # least similarity of a near name among many and among few, which are as well all listed
_BEHIND = 0.2  # how far behind the nearest another near name may be


def near_names(name: str, known: Iterable[str]) -> list[str]:
    """The names that someone who wrote `name` may have meant, the likeliest first; at most three.

    Similarity is difflib's ratio or, if greater, the mean over the parts of `name`, between `_` or `.`, of each part's best
    ratio with a part of the other: `add_f32` is near `add_ftz_f32`.
    """
    from difflib import SequenceMatcher

    def ratio(left: str, right: str) -> float:
        return SequenceMatcher(None, left, right, autojunk=False).ratio()

    wanted = name.lower().replace(".", "_")
    parts = [part for part in wanted.split("_") if part]
    scored = []
    for candidate in dict.fromkeys(known):
        lower = candidate.lower().replace(".", "_")
        whole = ratio(wanted, lower)
        by_part = [max(ratio(part, known_part) for known_part in lower.split("_")) for part in parts]
        scored.append((-max(whole, sum(by_part) / max(len(by_part), 1)), -whole, candidate))
    scored.sort()
    least = _NEAR if len(scored) > MAX_LISTED else _CLEARLY_NEAR
    return [candidate for score, _, candidate in scored[:_MAX_NEAR] if -score >= max(least, -scored[0][0] - _BEHIND)]


def suggestion(name: str, known: Iterable[str]) -> str | None:
    """`did you mean ...?` with the nearest names, or None if none is near."""
    near = near_names(name, known)
    return f"did you mean {', '.join(near[:-1])}{' or ' * (len(near) > 1)}{near[-1]}?" if near else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: its nearest names; without any, all names, or the first of many."""
    known = list(known)
    if len(known) <= MAX_LISTED:
        everything = f"one of: {', '.join(known) or 'none'}"
    else:
        everything = f"one of {len(known)}, such as: {', '.join(known[:_MAX_NEAR])}"
    return suggestion(name, known) or everything


def how_it_ended(exit_code: int) -> str:
    """Describe a process's end: `ended with exit code 3`, or `was killed by SIGKILL` if it is negative."""
    if exit_code >= 0:
        return f"ended with exit code {exit_code}"
    try:
        return f"was killed by {signal.Signals(-exit_code).name}"
    except ValueError:
        return f"was killed by signal {-exit_code}"


_LACKING = {errno.EAGAIN, errno.ENOMEM, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE, errno.ENFILE}


_SCIPY_BYTES = 128 << 20  # it takes 97 MiB
_MOST_USED = 0.85  # of the address space; libraries reserve tens of MiB at a time


def shortage(error: BaseException) -> str | None:
    """Name the resource that the machine lacks or whose limit is reached, if an error or its cause says so; else None."""
    cause: BaseException | None = error
    while cause:
        if isinstance(cause, MemoryError) or (isinstance(cause, ImportError) and "failed to map segment" in str(cause)):
            return f"out of memory, or beyond its limit (ulimit -v): {cause}".removesuffix(": ")
        if isinstance(cause, RuntimeError) and str(cause) == "can't start new thread":
            return "the system starts no more threads: too many run (ulimit -u), or memory is short (ulimit -v)"
        if isinstance(cause, OSError) and cause.errno in _LACKING:
            return f"{cause.filename or 'the system refuses'}: {cause.strerror}"
        cause = cause.__cause__ or cause.__context__
    if _used_memory() > _MOST_USED:  # libraries raise something else, such as ValueError, where memory was refused
        return f"out of memory, or beyond its limit (ulimit -v): {type(error).__name__}: {cut(str(error), MAX_CHARACTERS)}"
    return None


_REFUSING = {errno.EACCES, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOTDIR, errno.EPERM}


def refusal(error: BaseException) -> str | None:
    """Says in one line what is wrong with a path, of a user or in a run; None if the error does not say."""
    if isinstance(error, RuntimeError) and str(error).startswith("Symlink loop from "):
        return f"{str(error).partition(' from ')[2].strip(chr(39))}: {os.strerror(errno.ELOOP)}"
    if isinstance(error, OSError) and error.errno in _REFUSING and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return None


class _RoomForSciPy:
    """A finder of modules that finds none."""

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        if name.startswith("scipy."):
            try:
                mmap.mmap(-1, _SCIPY_BYTES).close()
            except OSError:
                raise MemoryError(f"SciPy needs {_SCIPY_BYTES >> 20} MiB to load") from None


def refuse_scipy_without_room() -> None:
    """Raise UserError where a limited address space has no room for SciPy's OpenBLAS, which would wait for ever."""
    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        sys.meta_path.insert(0, _RoomForSciPy)


def _used_memory() -> float:
    """The largest share so far of the address space that the process may have; 0 without a limit."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return 0.0
    match = re.search(r"VmPeak:\s+(\d+)", Path("/proc/self/status").read_text())
    return int(match[1]) * 1024 / limit if match else 0.0
