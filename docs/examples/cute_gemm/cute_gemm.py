"""One CuTe kernel, many semirings: CUDA is compiled once, and then each semiring takes milliseconds.

    python docs/examples/cute_gemm/cute_gemm.py [sm_90]

Needs the packages of `pip install ".[test]"`, and no GPU. Prints, for the architecture named,

    one row for each semiring: its stub, and the times from stub to PTX and from PTX to cubin;
    and the time of NVRTC from CUDA to the PTX that all of them share, and from CUDA to a cubin of one of them.
"""

import re
import sys
import time
from collections import Counter
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

from evo.instructions import default_instruction_set
from evo.native.nvptxcompiler import CompileError
from evo.native.nvptxcompiler import compile as compile_ptx
from evo.native.ptx_inject import PtxInject
from evo.program import Language, parse_program

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "cuda"))

from nvrtc import compile_cuda  # noqa: E402

CSRC = HERE.parents[2] / "csrc"
KERNEL = HERE / "semiring_gemm.cu"


@dataclass(frozen=True)
class Semiring:
    """What a sum begins with, and both sites: as Stack PTX, and as the C++ that would do the same."""

    zero: float
    mma: str
    epilogue: str
    cuda_mma: str
    cuda_epilogue: str


SEMIRINGS = {
    "plus-times": Semiring(0.0, "%sum %b %a fma_rn_ftz_f32", "%x", "sum = fmaf(a, b, sum)", "y = x"),
    "min-plus": Semiring(float("inf"), "%sum %b %a add_ftz_f32 min_ftz_f32", "%x", "sum = fminf(a + b, sum)", "y = x"),
    "max-plus": Semiring(float("-inf"), "%sum %b %a add_ftz_f32 max_ftz_f32", "%x", "sum = fmaxf(a + b, sum)", "y = x"),
    "L1": Semiring(0.0, "%sum %b %a sub_ftz_f32 abs_ftz_f32 add_ftz_f32", "%x", "sum = fabsf(a - b) + sum", "y = x"),
    "L2": Semiring(
        0.0, "%sum %b %a sub_ftz_f32 dup.f32 fma_rn_ftz_f32", "%x sqrt_approx_ftz_f32",
        "sum = fmaf(a - b, a - b, sum)", 'asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x))',
    ),
}  # fmt: skip


def include_paths():
    """Folders of headers: CuTe's, CUDA's and C++'s standard library for CUDA, from their wheels, and ours."""
    cuda = Path(distribution("nvidia-cuda-runtime").locate_file("nvidia/cu13/include"))
    cccl = Path(distribution("nvidia-cuda-cccl").locate_file("nvidia/cu13/include/cccl"))
    cutlass = Path(distribution("nvidia-cutlass").locate_file("cutlass_library/source/include"))
    return cutlass, cuda, cccl, CSRC


# CuTe has functions without __device__, which NVRTC has to be told to take as such.
OPTIONS = ("--std=c++17", "--device-as-default-execution-space", "--ftz=true")


def annotated_ptx(architecture="compute_80"):
    """The kernel's PTX with its sites, 512 of `mma` and 64 of `epilogue`. Takes seconds."""
    return without_unused_constants(compile_cuda(KERNEL.read_text(), architecture, include_paths(), OPTIONS).decode())


def without_unused_constants(ptx):
    """PTX without the global constants that nothing reads: 3,000 of CuTe's headers, which make a cubin 30 times as large."""
    num_mentions = Counter(re.findall(r"[A-Za-z_$][\w$]*", ptx))
    constant = re.compile(r"^\.global [^\n;]*?\b([A-Za-z_$][\w$]*)(?:\[\d+\])?(?: = [^;]*)?;\n", re.MULTILINE)
    return constant.sub(lambda found: "" if num_mentions[found[1]] == 1 else found[0], ptx)


def cubin_from_cuda(semiring, architecture):
    """The kernel with a semiring written as C++ instead of sites. Takes seconds."""
    macros = (
        f"--define-macro=SEMIRING_MMA(sum, a, b)={semiring.cuda_mma}",
        f"--define-macro=SEMIRING_EPILOGUE(y, x)={semiring.cuda_epilogue}",
    )
    return compile_cuda(KERNEL.read_text(), architecture, include_paths(), (*OPTIONS, *macros))


def program_of(text, inject, output):
    """(language, words) of a program over a site's variables, which writes `output`."""
    registers = {variable.name: variable.register for variable in inject.variables}
    inputs = [(variable.register, "f32") for variable in inject.variables if variable.kind != "out"]
    language = Language(default_instruction_set(), tuple(inputs), ((registers[output], "f32"),))
    text = re.sub(r"%(\w+)", lambda found: f"%{registers[found[1]]}", text)
    return language, parse_program(language, text, "semiring")


def stubs_of(semiring, inject):
    """The stubs of a semiring in the order that `render` takes."""
    stubs = [""] * inject.num_injects
    for name, text, output in (("mma", semiring.mma, "sum"), ("epilogue", semiring.epilogue, "y")):
        language, words = program_of(text, inject.info(name), output)
        [stubs[inject.info(name).index]] = language.lowering.emit(words[None])
    return stubs


def milliseconds(function, num_rounds=5):
    """Best time of several."""
    times = []
    for _ in range(num_rounds):
        start = time.perf_counter()
        function()
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
    inject = PtxInject(ptx)
    sites = ", ".join(f"{one.num_sites} of {one.name}" for one in inject.injects)
    print(f"CUDA -> PTX with sites {to_ptx_s:.1f} s, {len(ptx):,} bytes, sites: {sites}")
    print(f"CUDA -> {architecture} cubin {to_cubin_s:.1f} s for each semiring, when written in CUDA")
    print(f"PTX -> prepared {milliseconds(lambda: PtxInject(ptx)):.3f} ms, then for each semiring:\n")
    print(f"{'semiring':12}{'render':>10}{'PTX -> cubin':>16}{'cubin':>16}   stub of mma")
    for name, semiring in SEMIRINGS.items():
        stubs = stubs_of(semiring, inject)
        rendered = inject.render(stubs)
        options = (f"--gpu-name={architecture}",)
        render_ms = milliseconds(lambda: inject.render(stubs))  # noqa: B023 - called at once
        compile_ms = milliseconds(lambda: compile_ptx(rendered, options))  # noqa: B023
        size = len(compile_ptx(rendered, options))
        instructions = [line.strip() for line in stubs[inject.info("mma").index].splitlines() if not re.match(r"\s*[{}.]", line)]
        print(f"{name:12}{render_ms:7.3f} ms{compile_ms:13.1f} ms{size:10,} bytes   {' '.join(instructions)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
