"""Search for the programs that make a GPU fail: each suspect runs again by itself, in a process of its own, on the same device.

Owns the verdict, and what the process runs. A program is at fault if it fails twice as the first program of a process, while an
empty program runs there before it, and in another process after it. Whatever else fails is the machine's fault. Knows nothing of
batches and quarantine.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from evo.compile.compiler import Module
from evo.evaluate.cuda.device import Device
from evo.evaluate.cuda.device_child import run_in_child
from evo.evaluate.cuda.device_inputs import DeviceInputs
from evo.evaluate.cuda.plans import KernelPlan, Plan, StorePlan
from evo.task import Task
from evo.tasks.rollout import Rollout

START_S = 60.0  # for a process to open the device and upload the points, on a busy machine with a cold disk
MAX_AT_FAULT = 8  # each costs two processes, and its whole time limit if it never ends; what is left is found when it fails again
MODULES = f"{__name__}:run_modules"
_TIMES = 2  # the machine may be the cause of one failure


@dataclass(frozen=True)
class Kernel:
    """Everything that a launch needs, apart from cubins.

    ordinal: of the device. inputs, outputs: of the task. num_results: values that a task's own kernel writes for each program;
    None: the kernel is not a task's. arrays, num_points, rollout: as `DeviceInputs` takes them.
    """

    ordinal: int
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    num_results: int | None
    arrays: Sequence[NDArray[Any]]
    num_points: int
    rollout: Rollout | None = None


@dataclass(frozen=True)
class Verdict:
    """at_fault: the suspects that fail alone. reason: why there is none, as the end of a message."""

    at_fault: tuple[int, ...] = ()
    reason: str = ""


# How many of the modules run, one after the other, in a new process; -1: unknown. Takes a program's seconds, too.
Runner = Callable[[Kernel, Sequence[Module], float], int]


def run_alone(kernel: Kernel, modules: Sequence[Module], seconds: float) -> int:
    """The `Runner` on a device."""
    report = run_in_child(MODULES, (kernel, list(modules)), START_S + seconds, seconds)
    return len(report.steps) if report.is_final else -1


def try_alone(kernel: Kernel, empty: Module, suspects: Sequence[Module], seconds: float, run: Runner = run_alone) -> Verdict:
    """Runs each suspect by itself.

    Args:
        empty: an empty program.
        suspects: modules of one program each.
        seconds: limit for one program.
        run: does it.
    """
    at_fault: list[int] = []
    first = num_failures = 0
    while True:
        num_passed = run(kernel, [empty, *suspects[first:]], seconds)
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


class _Declaration(Task):
    """Part of a task that plans need to launch its kernels."""

    def __init__(self, kernel: Kernel):
        self.inputs, self.outputs, self.kernel_sums = dict(kernel.inputs), dict(kernel.outputs), kernel.num_results
        self.rollout = kernel.rollout


def run_modules(work: tuple[Kernel, Sequence[Module]], report: Callable[[str], None]) -> None:
    """Runs the modules' programs, one after the other, and reports each that has run.

    Raises:
        DeviceFailure: one fails.
        UserError: the device cannot be opened, or has too little memory.
    """
    kernel, modules = work
    device = Device(kernel.ordinal)
    inputs = DeviceInputs(device, kernel.arrays, kernel.num_points, kernel.rollout)
    task = _Declaration(kernel)
    plan: Plan = KernelPlan(task, inputs) if kernel.num_results else StorePlan(task, inputs)
    results, scratch = device.allocate(plan.result_bytes(1)), device.allocate(plan.scratch_bytes(1))
    stream, event = device.stream(), device.event()
    for number, module in enumerate(modules):
        loaded = device.load(module.cubin)
        plan.prepare(device, module, int(results), int(scratch), stream)
        plan.launch(device, loaded, module, int(results), int(scratch), stream)
        device.record(event, stream)
        device.wait(event, lambda: False)
        device.unload(loaded)
        report(str(number))
