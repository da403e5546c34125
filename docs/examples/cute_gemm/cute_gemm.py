"""One CuTe kernel, many semirings: CUDA is compiled once; after that, each semiring takes milliseconds.

    python docs/examples/cute_gemm/cute_gemm.py [sm_90]

Needs the packages of `pip install ".[test]"`, but no GPU. Prints the time that NVRTC takes from CUDA to the PTX that all
semirings share, and from CUDA to a cubin of one of them. For each semiring it prints the stub, and the times from stub to PTX
and from PTX to a cubin for the given architecture.
"""

import math
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path
from types import SimpleNamespace

from evo import stack_ptx
from evo.native.nvptxcompiler import compile as compile_ptx
from evo.ptx_inject import PTXInject

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "cuda"))

from nvrtc import CSRC, CUDA_HEADERS, compile_cuda  # noqa: E402 - in the folder above

KERNEL = HERE / "semiring_gemm.cu"

WORDS = stack_ptx.Words()
I = WORDS.instructions


@dataclass(frozen=True)
class Semiring:
    """Start of sums, and both sites: as programs over the words of their variables, and as equivalent C++."""

    zero: float
    mma: Callable
    epilogue: Callable
    cuda_mma: str
    cuda_epilogue: str = "y = x"


def identity(v):
    """The epilogue that leaves values unchanged."""
    return [v.x]


SEMIRINGS = {
    "plus-times": Semiring(0.0, lambda v: [v.sum, v.b, v.a, I.fma_rn_ftz_f32], identity, "sum = fmaf(a, b, sum)"),
    "min-plus": Semiring(
        math.inf, lambda v: [v.sum, v.b, v.a, I.add_ftz_f32, I.min_ftz_f32], identity, "sum = fminf(a + b, sum)"
    ),
    "max-plus": Semiring(
        -math.inf, lambda v: [v.sum, v.b, v.a, I.add_ftz_f32, I.max_ftz_f32], identity, "sum = fmaxf(a + b, sum)"
    ),
    "L1": Semiring(
        0.0, lambda v: [v.sum, v.b, v.a, I.sub_ftz_f32, I.abs_ftz_f32, I.add_ftz_f32], identity, "sum = fabsf(a - b) + sum"
    ),
    "L2": Semiring(
        0.0,
        lambda v: [v.sum, v.b, v.a, I.sub_ftz_f32, WORDS.meta.dup("f32"), I.fma_rn_ftz_f32],
        lambda v: [v.x, I.sqrt_approx_ftz_f32],
        "sum = fmaf(a - b, a - b, sum)",
        'asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x))',
    ),
}


def include_paths():
    """Folders of headers: CuTe, CUDA and the C++ standard library for CUDA from their wheels, and ours."""
    cccl = Path(distribution("nvidia-cuda-cccl").locate_file("nvidia/cu13/include/cccl"))
    cutlass = Path(distribution("nvidia-cutlass").locate_file("cutlass_library/source/include"))
    return cutlass, CUDA_HEADERS, cccl, CSRC


# CuTe has functions without __device__; NVRTC must be told to compile them for the device.
OPTIONS = ("--std=c++17", "--device-as-default-execution-space", "--ftz=true")


def annotated_ptx(architecture="compute_80"):
    """The kernel's PTX with its sites, 512 of `mma` and 64 of `epilogue`. Takes seconds."""
    return without_unused_constants(compile_cuda(KERNEL.read_text(), architecture, include_paths(), OPTIONS).decode())


def without_unused_constants(ptx):
    """PTX without unused global constants: CuTe's headers define 3,000, which make a cubin 30 times as large."""
    num_mentions = Counter(re.findall(r"[A-Za-z_$][\w$]*", ptx))
    constant = re.compile(r"^\.global [^\n;]*?\b([A-Za-z_$][\w$]*)(?:\[\d+\])?(?: = [^;]*)?;\n", re.MULTILINE)
    return constant.sub(lambda found: "" if num_mentions[found[1]] == 1 else found[0], ptx)


def cubin_from_cuda(semiring, architecture):
    """The kernel with a semiring as C++ instead of sites. Takes seconds."""
    macros = (
        f"--define-macro=SEMIRING_MMA(sum, a, b)={semiring.cuda_mma}",
        f"--define-macro=SEMIRING_EPILOGUE(y, x)={semiring.cuda_epilogue}",
    )
    return compile_cuda(KERNEL.read_text(), architecture, include_paths(), (*OPTIONS, *macros))


def stub_of(program, sites, output):
    """The stub of a program for the sites of one name; it writes the variable `output`."""
    registers = WORDS.registers({variable.register: "f32" for variable in sites.values()})
    variables = {name: registers[variable.register] for name, variable in sites.items()}
    return stack_ptx.Compiler(registers, requests=[variables[output]]).compile(program(SimpleNamespace(**variables)))


def stubs_of(semiring, inject):
    """The stub for each name."""
    return {"mma": stub_of(semiring.mma, inject["mma"], "sum"), "epilogue": stub_of(semiring.epilogue, inject["epilogue"], "y")}


def milliseconds(function, *arguments, num_rounds=5):
    """The best of several times."""
    times = []
    for _ in range(num_rounds):
        start = time.perf_counter()
        function(*arguments)
        times.append(time.perf_counter() - start)
    return min(times) * 1000


def main(architecture="sm_90"):
    """Prints the table."""
    start = time.perf_counter()
    ptx = annotated_ptx()
    to_ptx_s = time.perf_counter() - start
    start = time.perf_counter()
    cubin_from_cuda(SEMIRINGS["L2"], architecture)
    to_cubin_s = time.perf_counter() - start
    inject = PTXInject(ptx)
    sites = ", ".join(f"{sites.num_sites} of {name}" for name, sites in inject.items())
    print(f"CUDA -> PTX with sites {to_ptx_s:.1f} s, {len(ptx):,} bytes, sites: {sites}")
    print(f"CUDA -> {architecture} cubin {to_cubin_s:.1f} s for each semiring, when written in CUDA")
    print(f"PTX -> prepared {milliseconds(PTXInject, ptx):.3f} ms, then for each semiring:\n")
    print(f"{'semiring':12}{'render':>10}{'PTX -> cubin':>16}{'cubin':>16}   stub of mma")
    for name, semiring in SEMIRINGS.items():
        stubs = stubs_of(semiring, inject)
        rendered = inject.render(stubs)
        options = (f"--gpu-name={architecture}",)
        render_ms = milliseconds(inject.render, stubs)
        compile_ms = milliseconds(compile_ptx, rendered, options)
        size = len(compile_ptx(rendered, options))
        instructions = [line.strip() for line in stubs["mma"].splitlines() if not re.match(r"\s*[{}.]", line)]
        print(f"{name:12}{render_ms:7.3f} ms{compile_ms:13.1f} ms{size:10,} bytes   {' '.join(instructions)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
