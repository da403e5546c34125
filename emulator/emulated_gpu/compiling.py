"""Cubins that carry the PTX they were made from, which is what the stand-in driver runs.

Owns the wrapping of nvPTXCompiler: it assembles as ever, long texts without optimisation, and still refuses what it refuses; a
marker and the PTX are appended to its cubin, which is kept for the next test where EVO_EMULATED_GPU_CUBINS names a folder. Knows
nothing of the driver.
"""

from __future__ import annotations

import hashlib
import os
import sys

import evo.compile.request
from emulated_gpu import child
from emulated_gpu.marker import MARKER
from evo.evaluate import calibration
from evo.evaluate.cuda import device_child, self_test
from evo.native import nvptxcompiler
from evo.storage.disk_cache import DiskCache

LONG = 1 << 16  # bytes of a text that takes seconds, and a third of them without optimisation
_assemble = nvptxcompiler.compile
_compile_request = evo.compile.request.compile_request
run_work_on_device = device_child.run_work


def compile_with_ptx(ptx, options=("--gpu-name=sm_90",)) -> bytes:
    """As `nvptxcompiler.compile`."""
    text = ptx.encode() if isinstance(ptx, str) else bytes(ptx)
    cache = DiskCache(folder, 1 << 28) if (folder := os.environ.get("EVO_EMULATED_GPU_CUBINS")) else None
    key = hashlib.sha256(b"\0".join([repr((nvptxcompiler.version(), *options)).encode(), text])).hexdigest()
    cubin = cache.get(key) if cache else None
    if cubin is None:
        cubin = _assemble(ptx, (*options, *["--opt-level=0"] * (len(text) > LONG)))
        if cache:
            cache.put(key, cubin)
    return cubin + MARKER + len(text).to_bytes(8, "little") + text


def compile_request(request):
    """As `evo.compile.request.compile_request`. A worker that gets this function imports this module and wraps its assembler."""
    nvptxcompiler.compile = compile_with_ptx
    return _compile_request(request)


def _costs(cpu_s: float, gpu_s: float):
    """Replace the measurements of a calibration. The GPU's are made nevertheless."""
    measure_gpu = calibration.measure_gpu

    def measured(evaluator, batch, batch_size):
        return measure_gpu(evaluator, batch[:1], 1)[0], gpu_s

    yield calibration, "measure_cpu", lambda scorer, batch, num_threads: (cpu_s, 0.0)
    yield calibration, "measure_gpu", measured


def replacements():
    """(object, attribute, value) of what makes a process and its workers compile with PTX, and a self-test run on a stand-in."""
    yield device_child, "run_work", child.run_work
    if seconds := os.environ.get("EVO_EMULATED_GPU_SELF_TEST_SECONDS"):
        yield self_test, "TIME_LIMIT_S", float(seconds)
    if costs := os.environ.get("EVO_EMULATED_GPU_COSTS"):
        yield from _costs(*map(float, costs.split(",")))
    yield nvptxcompiler, "compile", compile_with_ptx
    yield evo.compile.request, "compile_request", compile_request
    for name, module in list(sys.modules.items()):
        if name.startswith("evo.") and getattr(module, "compile_request", None) is _compile_request:
            yield module, "compile_request", compile_request
    if "evo.compile.compiler" in sys.modules:
        initialise = sys.modules["evo.compile.compiler"].PackCompiler.__init__
        yield initialise, "__kwdefaults__", {**initialise.__kwdefaults__, "compile_function": compile_request}
