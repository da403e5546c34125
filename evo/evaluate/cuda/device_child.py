"""Work with a GPU in a process of its own, which may hang or die with the driver.

Owns the outcome of such work. Knows nothing of what the work is.
"""

import importlib
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from evo.errors import DeviceFailure, UserError, one_line
from evo.evaluate.cuda.device import OUT_OF_MEMORY
from evo.workers.process import ProcessDied, WorkerProcess, report

KILL_S = 5.0  # for a process to end that is killed; one that waits inside a driver may never do

# Does the work with its argument, and calls the second one with each step. Returns the problem in one line, or None.
Work = Callable[[Any, Callable[[str], None]], str | None]


@dataclass(frozen=True)
class Report:
    """The outcome of work.

    steps: that it has reported. problem: in one line what is wrong, or how the process ended; None: nothing is. is_final: another
    try is not expected to differ. is_timeout: the work took too long.
    """

    steps: tuple[str, ...]
    problem: str | None
    is_final: bool = True
    is_timeout: bool = False


def run_in_child(work: str, argument: object, limit_s: float) -> Report:
    """Runs `work`, a `module:function` that is a `Work`, in a new process, which is dead or left behind afterwards.

    Args:
        limit_s: for the whole work.
    """
    steps: list[str] = []

    def ended(problem: str, *, is_timeout: bool = False) -> Report:
        during = f", during: {steps[-1]}" if steps else ""
        return Report(tuple(steps), f"{problem}{during}", is_timeout=is_timeout)

    with tempfile.TemporaryFile() as errors:
        try:
            process = WorkerProcess(run_work, work, argument, log=errors)
        except (OSError, RuntimeError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            return Report((), f"its process cannot be started: {reason}", is_final=False)
        try:
            problem, is_final = process.wait_until_ready(limit_s, steps.append)
            return Report(tuple(steps), problem, is_final)
        except TimeoutError:
            return ended(f"not finished after {limit_s:g} s", is_timeout=True)
        except ProcessDied as death:
            errors.seek(0)
            *_, last = ["", *errors.read().decode(errors="replace").strip().splitlines()]  # of a traceback: the exception
            return ended(f"its process {death}" + (f" ({last})" if last and death.exit_code in range(256) else ""))
        finally:
            process.hang_up()
            process.kill(KILL_S)


def run_work(work: str, argument: Any) -> tuple[str | None, bool]:
    """Does the work, in the process. Gives the problem and whether it is final."""
    try:
        module, _, name = work.partition(":")
        return getattr(importlib.import_module(module), name)(argument, report), True
    except UserError as error:
        return one_line(error), False
    except DeviceFailure as error:
        # Another process may have taken the memory: that says nothing of the device.
        return one_line(error), OUT_OF_MEMORY not in str(error)
    except Exception as error:  # noqa: BLE001 - whatever fails on this device is a reason not to use it
        return one_line(f"{type(error).__name__}: {error}"), True
