"""Work with a GPU in a process of its own, which may hang or die with the driver: `python -m` this module and WORK.

Owns both sides of the talk, and the process with its time limits. The child unpickles the work's argument from its input, prints
a line for each step that the work reports, and one with the outcome. Knows nothing of what the work is.
"""

import atexit
import importlib
import os
import pickle
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any

from evo.errors import DeviceFailure, UserError, how_it_ended
from evo.evaluate.cuda.device import OUT_OF_MEMORY

# -P: modules in the user's current folder are not imported.
COMMAND = (sys.executable, "-P", "-m", "evo.evaluate.cuda.device_child")
KILL_S = 5.0  # for a process to end that is killed, or has closed its output; one that waits inside a driver may never do

# What the child's lines begin with.
STEP, PASSED, FAILED, UNTESTED = "step: ", "passed", "failed: ", "untested: "

# Does the work with its argument, and calls the second one with each step. Gives in one line what is wrong, or None.
Work = Callable[[Any, Callable[[str], None]], str | None]


@dataclass(frozen=True)
class Report:
    """What became of the work.

    steps: that it has reported. problem: in one line what is wrong, or how the process ended; None: nothing is. is_final: another
    try is not expected to differ. is_timeout: the work took too long.
    """

    steps: tuple[str, ...]
    problem: str | None
    is_final: bool = True
    is_timeout: bool = False


def run_in_child(work: str, argument: object, limit_s: float, step_s: float | None = None) -> Report:
    """Runs `work`, a `module:function` that is a `Work`, in a new process, which is dead or left behind afterwards.

    Args:
        limit_s: for the whole work or, with `step_s`, until its first step.
        step_s: from each step to the next one.
    """
    with os.fdopen(os.memfd_create("evo-work"), "w+b") as given, tempfile.TemporaryFile() as errors:
        pickle.dump(argument, given, protocol=5)
        given.seek(0)
        try:
            # A session of its own keeps Ctrl-C from it, and lets its processes be killed with it.
            child = subprocess.Popen(
                [*COMMAND, work], stdin=given, stdout=subprocess.PIPE, stderr=errors, bufsize=0, start_new_session=True
            )
        except OSError as error:
            return Report((), f"its process cannot be started: {error.strerror}", is_final=False)
        assert child.stdout
        try:
            return _listen(child, child.stdout, errors, limit_s, step_s)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):
                child.wait(KILL_S)
            child.stdout.close()


def _listen(child: subprocess.Popen[bytes], output: IO[bytes], errors: IO[bytes], limit_s: float, step_s: float | None) -> Report:
    steps: list[str] = []
    text, end_s = b"", time.monotonic() + limit_s
    while True:
        if not select.select([output], [], [], max(0.0, end_s - time.monotonic()))[0]:
            return Report(tuple(steps), f"not finished after {limit_s:g} s{_during(steps)}", is_timeout=True)
        if not (some := os.read(output.fileno(), 1 << 16)):
            return Report(tuple(steps), f"its process {_how_it_ended(child, errors)}{_during(steps)}")
        *lines, text = (text + some).split(b"\n")
        for line in (each.decode(errors="replace") for each in lines):
            if line.startswith(STEP):
                steps.append(line.removeprefix(STEP))
                end_s = end_s if step_s is None else time.monotonic() + step_s
            elif line == PASSED:
                return Report(tuple(steps), None)
            elif line.startswith((FAILED, UNTESTED)):
                return Report(tuple(steps), line.partition(": ")[2], is_final=line.startswith(FAILED))


def _during(steps: list[str]) -> str:
    return f", during: {steps[-1]}" if steps else ""


def _how_it_ended(child: subprocess.Popen[bytes], errors: IO[bytes]) -> str:
    try:
        code = child.wait(KILL_S)
    except subprocess.TimeoutExpired:
        return "closed its output"
    errors.seek(0)
    *_, last = ["", *errors.read().decode(errors="replace").strip().splitlines()]  # of a traceback: the exception
    return how_it_ended(code) + (f" ({last})" if last and code >= 0 else "")


def main(work: str) -> None:
    """Does the work and ends the process."""
    try:
        module, _, name = work.partition(":")
        problem = getattr(importlib.import_module(module), name)(pickle.load(sys.stdin.buffer), _report)
        outcome = PASSED if problem is None else f"{FAILED}{problem}"
    except UserError as error:
        outcome = f"{UNTESTED}{error}"
    except DeviceFailure as error:
        # Another process may have taken the memory: that says nothing of the device.
        outcome = f"{UNTESTED if OUT_OF_MEMORY in str(error) else FAILED}{error}"
    except Exception as error:  # noqa: BLE001 - whatever fails on this device is a reason not to use it
        outcome = f"{FAILED}{type(error).__name__}: {error}"
    _print(outcome)
    # Python's own end would wait for threads that wait for a device that may never answer. This part ends the compile workers.
    atexit._run_exitfuncs()  # noqa: SLF001 - there is no public way to run exit functions and then end at once
    os._exit(0)


def _report(step: str) -> None:
    _print(f"{STEP}{step}")


def _print(line: str) -> None:
    print(" ".join(line.split()), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
