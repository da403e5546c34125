"""PTX Inject in C: reading annotated PTX and rendering stubs into it, on one core; and what its macro costs NVRTC."""

import shutil
import subprocess
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
CSRC = HERE.parent.parent / "csrc"
KINDS = {"macro": "macro form", "distinct": "macro form, variables of its own at each site", "comment": "comment form"}
CREATE = {"64": ("60 us", "30 us"), "1024": ("1 ms", "0.5 ms"), "4096": ("4 ms", "2 ms")}
NUM_MACRO_SITES = 64
NUM_ROUNDS = 15


def time_text(time_us: float) -> str:
    return f"{time_us / 1000:.2f} ms" if time_us >= 1000 else f"{time_us:.1f} us"


def nvrtc_ms(body: str) -> float:
    """Best time in which NVRTC compiles a kernel around some lines."""
    from cuda.bindings import nvrtc

    source = (
        f'#include <ptx_inject.h>\nextern "C" __global__ void kernel(float* out) {{ float x = out[0], y = out[1], z;\n{body}}}\n'
    )
    options = [b"--gpu-architecture=compute_90", f"--include-path={CSRC}".encode()]
    best = float("inf")
    for _ in range(NUM_ROUNDS):
        _, program = nvrtc.nvrtcCreateProgram(source.encode(), b"kernel.cu", 0, [], [])
        start = time.perf_counter()
        (result,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
        best = min(best, time.perf_counter() - start)
        assert result == nvrtc.nvrtcResult.NVRTC_SUCCESS
        nvrtc.nvrtcDestroyProgram(program)
    return best * 1000


def macro_rows():
    """Sites by macro beside the same sites as a preprocessor writes them; nothing where NVRTC or g++ is missing."""
    try:
        import cuda.bindings.nvrtc  # noqa: F401
    except ImportError:
        return
    preprocessor = shutil.which("g++")
    if preprocessor is None:
        return
    sites = "".join(
        f'PTX_INJECT("s{i}", PTX_IN(F32, x), PTX_IN(F32, y), PTX_OUT(F32, z)); out[{i}] = z;\n' for i in range(NUM_MACRO_SITES)
    )
    command = [
        preprocessor,
        "-E",
        "-P",
        "-x",
        "c++",
        "-D__CUDACC__",
        "-D__CUDACC_RTC__",
        "-I",
        CSRC,
        "-include",
        "ptx_inject.h",
        "-",
    ]
    expanded = subprocess.run(command, input=sites, capture_output=True, text=True, check=True).stdout
    by_macro, by_hand = nvrtc_ms(sites), nvrtc_ms(expanded)
    what = f"NVRTC, kernel with {NUM_MACRO_SITES} sites by macro of three variables (the same as plain inline assembly)"
    yield what, f"{by_macro:.1f} ms ({by_hand:.1f} ms)", "", ""


def rows():
    """Rows of the table."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "inject"
        command = ["gcc", "-std=c99", "-O2", "-I", CSRC, HERE / "inject.c", "-o", program]
        subprocess.run(command, check=True)
        pin = ["taskset", "-c", "0"] if shutil.which("taskset") else []
        lines = subprocess.run([*pin, program], capture_output=True, text=True, check=True).stdout.splitlines()
    for kind, num_sites, create, render, copy in map(str.split, lines):
        yield f"ptx_inject_create, {num_sites} sites, {KINDS[kind]}", time_text(float(create)), *CREATE[num_sites]
        if kind == "macro":
            at_least = "130 us" if num_sites == "1024" else ""
            what = f"ptx_inject_render, {num_sites} sites, 32-instruction stubs"
            yield what, time_text(float(render)), at_least, f"{time_text(float(copy))} (memcpy of the result)"
    yield from macro_rows()
