"""Report on the parts of this machine that evo uses, and the consequence of each missing one.

Owns the report and its wording. Needs none of the pieces. Opens each GPU that it finds, since only an open one tells how much
memory is free. Knows nothing of runs.
"""

import os
import platform

from evo.about import VERSION
from evo.compile.targets import is_assembled_by_driver
from evo.errors import UserError
from evo.evaluate.backends import INSTALL_COMPILER, why_no_compiler
from evo.evaluate.cuda.device import MIN_CAPABILITY, Device, DeviceInfo, Probe, probe
from evo.evaluate.cuda.self_test import TEST_AGAIN, remembered, run_self_test
from evo.kernel import nvrtc
from evo.native import ptx_vm

# Three packs of 128 programs with two outputs at 16,384 points take 48 MiB, and a lane may take half of the free memory.
LITTLE_MEMORY = 128 << 20


def report() -> str:
    """The report that `evo doctor` prints: one line for each piece."""
    rows = [
        ("evo", VERSION, ""),
        ("python", platform.python_version(), ""),
        ("machine", platform.machine(), ""),
        ("cores", str(len(os.sched_getaffinity(0))), "all of them evaluate programs unless evaluation.threads says otherwise"),
        ("SIMD", ptx_vm.levels()[-1], f"used by CPU evaluation; this CPU supports: {', '.join(ptx_vm.levels())}"),
        ("nvPTXCompiler", *_nvptxcompiler()),
        ("NVRTC", *_nvrtc()),
        *_gpu(),
    ]
    return "".join(f"{name:<14} {state:<14} {meaning}".rstrip() + "\n" for name, state, meaning in rows)


def test_gpus() -> list[str]:
    """Tests each usable GPU, whatever is remembered of it. Gives a line for each that cannot be tested now."""
    outcomes = [(info, run_self_test(info)) for info in _testable(probe())]
    return [f"{info.name} could not be tested: {outcome.problem}" for info, outcome in outcomes if not outcome.is_final]


def _nvptxcompiler() -> tuple[str, str]:
    if why_no_compiler():
        return "missing", f"evo cannot compile cubins: {INSTALL_COMPILER}"
    from evo.native import nvptxcompiler

    return ".".join(map(str, nvptxcompiler.version())), "assembles PTX to cubins; needs neither driver nor nvcc"


def _nvrtc() -> tuple[str, str]:
    try:
        return ".".join(map(str, nvrtc.version())), "compiles tasks' CUDA kernels to PTX"
    except nvrtc.NvrtcMissing:
        return "missing", f"needed only by tasks with their own CUDA kernel: {nvrtc.INSTALL}"


def _gpu() -> list[tuple[str, str, str]]:
    """The driver, and each GPU with its free memory."""
    probed = probe()
    driver = "none" if probed.driver is None else "CUDA {}.{}".format(*probed.driver)
    if probed.problem:
        return [("GPU", driver, f"{probed.problem}; programs run on the CPU, with the same semantics")]
    meaning = (
        "unusable without nvPTXCompiler"
        if why_no_compiler()
        else "'auto' measures before each run whether programs run faster on a GPU"
    )
    gpus = [(f"GPU {info.ordinal}", info.architecture, f"{info.name}, {_memory(info)}{_target(info)}") for info in probed.devices]
    tests = [(f"self-test {info.ordinal}", *_self_test(info)) for info in _testable(probed)]
    return [("NVIDIA driver", driver, meaning), *gpus, *tests]


def _testable(probed: Probe) -> list[DeviceInfo]:
    """The GPUs that evo could use."""
    if probed.problem or why_no_compiler():
        return []
    return [info for info in probed.devices if info.capability >= MIN_CAPABILITY]


def _self_test(info: DeviceInfo) -> tuple[str, str]:
    outcome = remembered(info)
    if outcome is None:
        return "not yet run", f"runs before the GPU is first used, or with: {TEST_AGAIN}"
    if outcome.problem is None:
        return "passed", "instructions, programs, reductions and unloading agree with the CPU"
    return "failed", f"{outcome.problem}; this GPU is not used; test it again with: {TEST_AGAIN}"


def _target(info: DeviceInfo) -> str:
    """Describe compiling for a GPU that the assembler does not know."""
    if info.capability < MIN_CAPABILITY or info.target == info.architecture:
        return ""
    if is_assembled_by_driver(info.target):
        return "; newer than the assembler: the driver compiles programs; if the self-test fails, they run on the CPU"
    return f"; newer than the assembler: programs are compiled for {info.target}; if the self-test fails, they run on the CPU"


def _memory(info: DeviceInfo) -> str:
    if info.capability < MIN_CAPABILITY:
        return "too old, evo needs compute capability {}.{}".format(*MIN_CAPABILITY)
    try:
        device = Device(info.ordinal)
    except UserError as error:
        return str(error)
    free, gib = device.free_bytes(), 1 << 30
    device.close()
    advice = "" if free >= LITTLE_MEMORY else ": low; end other processes on it, or use fewer points or smaller packs"
    return f"{free / gib:.1f} of {info.num_bytes / gib:.1f} GiB free{advice}"
