"""What this machine offers to evo, and what each missing piece means for the user.

Owns the probes; none of them opens a device context or needs a GPU.
"""

from __future__ import annotations

import ctypes.util
import importlib.util
import os
import platform

from evo import __version__
from evo.native import ptx_vm


def report() -> str:
    """The report that `evo doctor` prints: a line a piece."""
    rows = [
        ("evo", __version__, ""),
        ("python", platform.python_version(), ""),
        ("machine", platform.machine(), ""),
        ("cores", str(len(os.sched_getaffinity(0))), "programs are evaluated on all of them unless evaluation.threads says otherwise"),
        ("SIMD", ptx_vm.levels()[-1], f"CPU evaluation; this CPU can run: {', '.join(ptx_vm.levels())}"),
        ("nvPTXCompiler", *_nvptxcompiler()),
        ("NVRTC", *_nvrtc()),
        ("GPU", *_gpu()),
    ]
    return "".join(f"{name:<14} {state:<14} {meaning}".rstrip() + "\n" for name, state, meaning in rows)


def _nvptxcompiler() -> tuple[str, str]:
    if importlib.util.find_spec("evo.native.nvptxcompiler") is None:
        return "missing", "no cubins can be made; install again where the wheel nvidia-nvptxcompiler 13.0.88 can be had"
    from evo.native import nvptxcompiler

    return ".".join(map(str, nvptxcompiler.version())), "PTX is assembled to cubins, without driver or nvcc"


def _nvrtc() -> tuple[str, str]:
    if importlib.util.find_spec("nvidia") and importlib.util.find_spec("nvidia.cu13"):
        for folder in importlib.util.find_spec("nvidia.cu13").submodule_search_locations or ():
            if any(name.startswith("libnvrtc.so") for name in _files(os.path.join(folder, "lib"))):
                return "found", "CUDA kernels of tasks can be compiled to PTX"
    if ctypes.util.find_library("nvrtc"):
        return "found", "CUDA kernels of tasks can be compiled to PTX"
    return "missing", "only tasks with a CUDA kernel of their own need it: pip install nvidia-cuda-nvrtc==13.0.*"


def _gpu() -> tuple[str, str]:
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "none", "no NVIDIA driver; programs run on the CPU, which means the same"
    count = ctypes.c_int(0)
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0 or count.value == 0:
        return "none", "the NVIDIA driver finds no usable GPU; programs run on the CPU, which means the same"
    return f"{count.value} found", "this version evaluates on the CPU"


def _files(folder: str) -> list[str]:
    return os.listdir(folder) if os.path.isdir(folder) else []
