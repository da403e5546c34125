"""What this machine offers to evo, and what each missing piece means for the user.

Owns the probes. None of them needs a GPU. A GPU is opened if there is one: that is the only way to learn how much memory is free.
"""

from __future__ import annotations

import os
import platform

from evo import __version__
from evo.errors import UserError
from evo.evaluate.backends import why_no_compiler
from evo.evaluate.cuda.device import MIN_CAPABILITY, Device, DeviceInfo, probe
from evo.kernel import nvrtc
from evo.native import ptx_vm

# Three packs of 128 programs with two outputs at 16,384 points, and as much again, for a lane takes half of what is free.
LITTLE_MEMORY = 128 << 20


def report() -> str:
    """The report that `evo doctor` prints: a line a piece."""
    rows = [
        ("evo", __version__, ""),
        ("python", platform.python_version(), ""),
        ("machine", platform.machine(), ""),
        (
            "cores",
            str(len(os.sched_getaffinity(0))),
            "programs are evaluated on all of them unless evaluation.threads says otherwise",
        ),
        ("SIMD", ptx_vm.levels()[-1], f"CPU evaluation; this CPU can run: {', '.join(ptx_vm.levels())}"),
        ("nvPTXCompiler", *_nvptxcompiler()),
        ("NVRTC", *_nvrtc()),
        *_gpu(),
    ]
    return "".join(f"{name:<14} {state:<14} {meaning}".rstrip() + "\n" for name, state, meaning in rows)


def _nvptxcompiler() -> tuple[str, str]:
    if why_no_compiler():
        return "missing", "no cubins can be made; install again where the wheel nvidia-nvptxcompiler 13.0.88 can be had"
    from evo.native import nvptxcompiler

    return ".".join(map(str, nvptxcompiler.version())), "PTX is assembled to cubins, without driver or nvcc"


def _nvrtc() -> tuple[str, str]:
    try:
        return ".".join(map(str, nvrtc.version())), "CUDA kernels of tasks can be compiled to PTX"
    except nvrtc.NvrtcMissing:
        return "missing", f"only tasks with a CUDA kernel of their own need it: {nvrtc.INSTALL}"


def _gpu() -> list[tuple[str, str, str]]:
    """The driver, and each GPU with the memory that is free on it."""
    found = probe()
    driver = "none" if found.driver is None else "CUDA {}.{}".format(*found.driver)
    if found.problem:
        return [("GPU", driver, f"{found.problem}; programs run on the CPU, with the same semantics")]
    meaning = (
        "of no use without nvPTXCompiler"
        if why_no_compiler()
        else "programs run on a GPU unless evaluation.backend says otherwise"
    )
    rows = [("NVIDIA driver", driver, meaning)]
    for info in found.devices:
        rows.append((f"GPU {info.ordinal}", info.target, f"{info.name}, {_memory(info)}"))
    return rows


def _memory(info: DeviceInfo) -> str:
    if info.capability < MIN_CAPABILITY:
        return "too old: compute capability {}.{} is needed".format(*MIN_CAPABILITY)
    try:
        device = Device(info.ordinal)
    except UserError as error:
        return str(error)
    free, gib = device.free_bytes(), 1 << 30
    device.close()
    short = "" if free >= LITTLE_MEMORY else ": little; end what else uses it, or take fewer points or smaller packs"
    return f"{free / gib:.1f} of {info.num_bytes / gib:.1f} GiB free{short}"
