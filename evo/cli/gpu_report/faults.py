"""What becomes of a GPU that fails: parts of the report. Each failure must name its programs, and leave the next process a GPU.

Owns the failures that are brought about.
"""

import numpy as np

from evo.cli.gpu_report.bits.task import ENDLESS, FAULTY_INSTRUCTIONS, ILLEGAL_ADDRESS
from evo.cli.gpu_report.checks import BITS
from evo.cli.gpu_report.work import Order, Told, evaluator_of, has_nvrtc, row
from evo.errors import DeviceFailure, UserError
from evo.evaluate.cuda.agreement import EXACT, LANGUAGE
from evo.evaluate.cuda.choice import INTERPRET
from evo.evaluate.cuda.device import Device
from evo.evaluate.cuda.device_tests import compare_programs, random_programs
from evo.kernel import nvrtc
from evo.language.batch import Batch
from evo.task_folder import load_task

_NUM_PROGRAMS = 4


def illegal_address(order: Order, told: Told) -> str | None:
    """A program whose kernel writes to an address that is none."""
    return _fail(order, told, ILLEGAL_ADDRESS)


def endless_kernel(order: Order, told: Told) -> str | None:
    """A program whose kernel never ends."""
    return _fail(order, told, ENDLESS)


def no_memory(order: Order, told: Told) -> str | None:
    """More memory than there is; afterwards the same process goes on."""
    device = Device(order.ordinal)
    try:
        device.allocate(device.free_bytes() + (1 << 30))
    except UserError as error:
        told(row("too much memory is asked for", str(error)))
        device.close()
        return still_there(order, told)
    return "more memory than there is was given"


def still_there(order: Order, told: Told) -> str | None:
    """A new process computes what it should."""
    told(row("a new process", "compares random programs with the CPU"))
    return compare_programs(order.ordinal)


def _fail(order: Order, told: Told, fault: int) -> str | None:
    if not has_nvrtc():
        told(row("a fault", f"not brought about: NVRTC is missing: {nvrtc.INSTALL}"))
        return None
    task = load_task(BITS, {"fault": fault})
    drawn = Batch.analyze(LANGUAGE.lowering, random_programs(LANGUAGE, EXACT, 64))
    is_faulty = drawn.num_instructions >= FAULTY_INSTRUCTIONS
    batch = drawn[np.concatenate([np.flatnonzero(~is_faulty)[: _NUM_PROGRAMS - 1], np.flatnonzero(is_faulty)[:1]])]
    with evaluator_of(order, LANGUAGE, task, INTERPRET, EXACT, launch_seconds=order.extent.launch_s) as gpu:
        try:
            gpu.evaluate(batch)
        except DeviceFailure as failure:
            told(row("the run would end with", str(failure)))
            blamed = [each.words.tobytes() for each in failure.failures]
            return None if blamed == [batch.words[-1].tobytes()] else f"{len(blamed)} programs are blamed, or the wrong one"
    return "the kernel ended as if nothing had happened"
