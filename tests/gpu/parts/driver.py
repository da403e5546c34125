"""Facts about a GPU, its driver and this installation."""

import shutil
import subprocess
from itertools import product

from cuda.bindings import driver as cuda

from evo.about import VERSION
from evo.evaluate.cuda.device import Device, driver_name
from evo.evaluate.cuda.interpreter_kernels import open_kernel
from evo.instructions import shipped_instruction_set
from evo.kernel import nvrtc
from evo.language.program import Language
from evo.native import nvptxcompiler

from .work import MIX, has_nvrtc, row

LANGUAGE = Language(shipped_instruction_set("default"), (("x", "f32"), ("y", "f32"), ("z", "f32")), (("f", "f32"),))
_FUNCTION = cuda.CUfunction_attribute
_SMI = "clocks.sm,clocks.max.sm,clocks.max.mem,power.limit,temperature.gpu,ecc.mode.current,mig.mode.current,compute_mode"
_ATTRIBUTES = (
    "MULTIPROCESSOR_COUNT CLOCK_RATE MEMORY_CLOCK_RATE GLOBAL_MEMORY_BUS_WIDTH L2_CACHE_SIZE ECC_ENABLED "
    "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR MAX_SHARED_MEMORY_PER_BLOCK_OPTIN MAX_REGISTERS_PER_MULTIPROCESSOR"
).split()


def device(ordinal, extent):
    """Facts about the device, its driver and this installation, and the interpreter's share of a multiprocessor."""
    opened = Device(ordinal)
    info = opened.info
    memory = f"{opened.free_bytes() / 2**30:.1f} of {info.num_bytes / 2**30:.1f} GiB free"
    yield row("device", f"{info.name}, {info.architecture}, {memory}")
    yield row("UUID", f"{info.uuid}{', an instance of a GPU (MIG)' if 'MIG' in info.name else ''}")
    yield row("driver", driver_name())
    for name in _ATTRIBUTES:
        yield row(name, f"{opened.attribute(name):,}", value=opened.attribute(name))
    if shutil.which("nvidia-smi"):
        command = ["nvidia-smi", f"--id=GPU-{info.uuid}", f"--query-gpu={_SMI}", "--format=csv,noheader"]
        asked = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
        yield row("nvidia-smi", f"{_SMI}: {asked.stdout or asked.stderr}")
    yield row("evo", f"{VERSION}, assembler {nvptxcompiler.version()}, NVRTC {nvrtc.version() if has_nvrtc() else 'missing'}")
    for sums, in_registers in product((False, True), repeat=2):
        kernel = open_kernel(opened, LANGUAGE, sums, MIX, None, in_registers=in_registers)
        function, layout = kernel._function, kernel.layout
        _, registers = cuda.cuFuncGetAttribute(_FUNCTION.CU_FUNC_ATTRIBUTE_NUM_REGS, function)
        _, carveout = cuda.cuFuncGetAttribute(_FUNCTION.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, function)
        _, blocks = cuda.cuOccupancyMaxActiveBlocksPerMultiprocessor(function, layout.block_size, layout.shared_bytes)
        text = f"{registers} registers, carve-out {carveout} %, {blocks} blocks at once"
        yield row(f"interpreter that {'sums' if sums else 'stores'}{' in registers' if in_registers else ''}", text)
