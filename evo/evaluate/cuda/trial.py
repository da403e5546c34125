"""Which programs make a GPU fail: each suspect runs again by itself, in a process of its own, on the same device.

Owns the verdict, and the process with its time limit; `trial_child` runs the programs. A program is at fault if it fails twice as
the first program of a process, while an empty program runs there before it, and in another process after it. Whatever else
fails is the machine's fault. Knows nothing of batches and quarantine.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, BinaryIO

from numpy.typing import NDArray

from evo.compile.compiler import Module

# -P: modules in the user's current folder are not imported.
COMMAND = (sys.executable, "-P", "-m", "evo.evaluate.cuda.trial_child")
START_S = 60.0  # for a process to open the device and upload the points, on a busy machine with a cold disk
MAX_AT_FAULT = 8  # each costs two processes, and its whole time limit if it never ends; what is left is found when it fails again
_KILL_S = 5.0  # a process that waits inside a driver may never end
_TIMES = 2  # the machine may be the cause of one failure

PASSED = b"."  # what the child writes when a program has run
EXIT_UNTESTED = 3  # of a child that lacked memory, which says nothing of its program


@dataclass(frozen=True)
class Kernel:
    """What launching programs takes, apart from their cubins.

    ordinal: of the device. outputs: of the task. num_results: values that a task's own kernel writes for each program; None: the
    kernel is not a task's. arrays, num_points: as `DeviceInputs` takes them.
    """

    ordinal: int
    outputs: Mapping[str, str]
    num_results: int | None
    arrays: Sequence[NDArray[Any]]
    num_points: int


@dataclass(frozen=True)
class Verdict:
    """at_fault: the suspects that fail alone. reason: why there is none, as the end of a message."""

    at_fault: tuple[int, ...] = ()
    reason: str = ""


def try_alone(kernel: Kernel, empty: Module, suspects: Sequence[Module], seconds: float) -> Verdict:
    """Runs each suspect by itself.

    Args:
        empty: an empty program.
        suspects: modules of one program each.
        seconds: limit for one program.
    """
    at_fault: list[int] = []
    first = num_failures = 0
    while True:
        num_passed = _run_child(kernel, [empty, *suspects[first:]], seconds)
        if num_passed < 1:
            # It says nothing of the programs that failed before it either.
            return Verdict(reason="an empty program fails as well" if num_passed == 0 else "the device can no longer be used")
        if num_passed > 1:
            num_failures = 0
        first += num_passed - 1
        if first == len(suspects) or len(at_fault) == MAX_AT_FAULT:
            reason = "" if at_fault else f"none of the {len(suspects)} programs that ran fails by itself"
            return Verdict(tuple(at_fault), reason)
        num_failures += num_passed == 1
        if num_failures == _TIMES:
            at_fault.append(first)
            first, num_failures = first + 1, 0


def _run_child(kernel: Kernel, modules: Sequence[Module], seconds: float) -> int:
    """How many of the modules run, one after the other, in a new process; -1 if it cannot be told."""
    with os.fdopen(os.memfd_create("evo-trial"), "w+b") as file:
        pickle.dump((kernel, list(modules)), file, protocol=5)
        file.seek(0)
        return _watch_child(file, len(modules), seconds)


def _watch_child(file: BinaryIO, num_modules: int, seconds: float) -> int:
    try:
        # A session of its own keeps Ctrl-C from it, so that it is not taken for a program's failure.
        child = subprocess.Popen(
            COMMAND, stdin=file, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0, start_new_session=True
        )
    except OSError:
        return -1
    assert child.stdout
    try:
        num_passed = 0
        while num_passed < num_modules:
            if not select.select([child.stdout], [], [], seconds + (0 if num_passed else START_S))[0]:
                return num_passed
            if not os.read(child.stdout.fileno(), 1):
                with suppress(subprocess.TimeoutExpired):
                    return -1 if child.wait(_KILL_S) == EXIT_UNTESTED else num_passed
                return num_passed
            num_passed += 1
        return num_passed
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            child.wait(_KILL_S)
        child.stdout.close()
