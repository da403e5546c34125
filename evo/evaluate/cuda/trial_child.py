"""Runs programs one by one, in a process of its own: `python -m evo.evaluate.cuda.trial_child`.

Owns these runs. Reads a pickled `Kernel` and modules of `evo.evaluate.cuda.trial`, which judges; writes a byte when a program has
run. The process may hang or die with the driver. Knows nothing of tasks and scores.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Sequence

from evo.compile.compiler import Module
from evo.errors import DeviceFailure, UserError
from evo.evaluate.cuda.device import OUT_OF_MEMORY, Device
from evo.evaluate.cuda.lane import Plan
from evo.evaluate.cuda.plans import DeviceInputs, KernelPlan, StorePlan
from evo.evaluate.cuda.trial import EXIT_UNTESTED, PASSED, Kernel
from evo.task import Task


class Declaration(Task):
    """What plans ask of a task to launch its kernels."""

    def __init__(self, kernel: Kernel):
        self.outputs, self.kernel_sums = dict(kernel.outputs), kernel.num_results


def main() -> None:
    """Runs the modules and ends the process."""
    kernel, modules = pickle.load(sys.stdin.buffer)
    code = 0
    try:
        run(kernel, modules)
    except UserError:
        code = EXIT_UNTESTED
    except DeviceFailure as error:
        code = EXIT_UNTESTED if OUT_OF_MEMORY in str(error) else 1
    os._exit(code)  # Python's own end might wait for the device


def run(kernel: Kernel, modules: Sequence[Module]) -> None:
    """Runs the modules' programs.

    Raises:
        DeviceFailure: one fails.
        UserError: the device cannot be opened, or has too little memory.
    """
    device = Device(kernel.ordinal)
    inputs = DeviceInputs(device, kernel.arrays, kernel.num_points)
    task = Declaration(kernel)
    plan: Plan = KernelPlan(task, inputs) if kernel.num_results else StorePlan(task, inputs)
    results, scratch = device.allocate(plan.result_bytes(1)), device.allocate(plan.scratch_bytes(1))
    stream, event = device.stream(), device.event()
    for module in modules:
        loaded = device.load(module.cubin)
        plan.prepare(device, module, int(results), int(scratch), stream)
        plan.launch(device, loaded, module, int(results), int(scratch), stream)
        device.record(event, stream)
        device.wait(event, lambda: False)
        device.unload(loaded)
        os.write(sys.stdout.fileno(), PASSED)


if __name__ == "__main__":
    main()
