"""PTX Inject in C: reading annotated PTX and rendering stubs into it, on one core; and what its macro costs NVRTC.

Where the package mm-ptx is installed, the same C file is built with its header too, and runs in turns with ours.
"""

import importlib.util
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
CSRC = HERE.parent.parent / "csrc"
KINDS = {
    "one": "macro form, one name",
    "macro": "macro form",
    "distinct": "macro form, variables of its own at each site",
    "comment": "comment form",
}
CREATE = {64: ("60 us", "30 us"), 1024: ("1 ms", "0.5 ms"), 4096: ("4 ms", "2 ms")}
STUB_INSTRUCTIONS = (1, 32)
NUM_TURNS = 3
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


def includes():
    """The folders of our header and, where it is installed, of mm-ptx's."""
    peer = importlib.util.find_spec("mm_ptx")
    return [CSRC, *([Path(peer.origin).parent / "include"] if peer else [])]


def best_us(programs, *arguments):
    """For each program the best times of some turns, or None if its header refuses the text."""
    pin = ["taskset", "-c", "0"] if shutil.which("taskset") else []
    best = [None] * len(programs)
    for _ in range(NUM_TURNS):
        for i, program in enumerate(programs):
            done = subprocess.run([*pin, program, *map(str, arguments)], capture_output=True, text=True, check=False)
            if done.returncode == 0:
                times = [float(time_us) for time_us in done.stdout.split()]
                best[i] = times if best[i] is None else [min(pair) for pair in zip(best[i], times, strict=True)]
    return best


def beside(times, index):
    """Our time, and mm-ptx's with the ratio if there is one."""
    ours, *peers = times
    text = time_text(ours[index])
    for peer in filter(None, peers):
        text += f"; mm-ptx {time_text(peer[index])} ({peer[index] / ours[index]:.1f} times)"
    return text


def rows():
    """Rows of the table."""
    with tempfile.TemporaryDirectory() as folder:
        programs = []
        for i, include in enumerate(includes()):
            programs.append(Path(folder) / f"inject_{i}")
            command = ["gcc", "-std=c99", "-O2", "-w", "-I", include, HERE / "inject.c", "-o", programs[-1]]
            subprocess.run(command, check=True)
        for kind, what in KINDS.items():
            for num_sites, bounds in CREATE.items():
                for num_instructions in STUB_INSTRUCTIONS if kind in ("one", "macro") else STUB_INSTRUCTIONS[-1:]:
                    times = best_us(programs, kind, num_sites, num_instructions)
                    if num_instructions == STUB_INSTRUCTIONS[-1]:
                        yield f"ptx_inject_create, {num_sites} sites, {what}", beside(times, 0), *bounds
                    if kind in ("one", "macro"):
                        rendering = f"ptx_inject_render, {num_sites} sites, {what}, stubs of {num_instructions} instructions"
                        yield rendering, beside(times, 1), "", f"{time_text(times[0][2])} (memcpy of the result)"
    yield from macro_rows()
