"""The CuTe GEMM of docs/examples: PTX Inject on its PTX, and from CUDA or from PTX to a cubin. Nothing where NVRTC is missing.

Where the package mm-ptx is installed, the same C file is built with its header too, and runs on the same PTX.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
CSRC = HERE.parent.parent / "csrc"
EXAMPLE = HERE.parent.parent / "docs" / "examples" / "cute_gemm" / "cute_gemm.py"
TARGETS = ("sm_80", "sm_90")
NUM_ROUNDS = 300
NUM_COMPILE_ROUNDS = 10


def best_ms(function, num_rounds):
    """Best time of many."""
    best = float("inf")
    for _ in range(num_rounds):
        start = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - start)
    return best * 1000


def c_times_ms(include, ptx, stubs):
    """Best times in C of create, of render, and of copying the rendered text, with the header of this folder."""
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "annotated.ptx", Path(folder) / "gemm"
        source.write_text(ptx)
        subprocess.run(["gcc", "-std=c99", "-O2", "-w", "-I", include, HERE / "gemm.c", "-o", program], check=True)
        pin = ["taskset", "-c", "0"] if shutil.which("taskset") else []
        done = subprocess.run([*pin, program, source, *stubs], capture_output=True, text=True, check=True)
    return [float(time_us) / 1000 for time_us in done.stdout.split()]


def rows():
    """Rows of the table."""
    try:
        import cuda.bindings.nvrtc  # noqa: F401
        import cutlass_library  # noqa: F401
    except ImportError:
        return
    spec = importlib.util.spec_from_file_location("cute_gemm", EXAMPLE)
    gemm = importlib.util.module_from_spec(spec)
    sys.modules["cute_gemm"] = gemm
    spec.loader.exec_module(gemm)
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        yield from gemm_rows(gemm)
    finally:
        os.sched_setaffinity(0, cores)


def gemm_rows(gemm):
    """The rows, on the core that this process is pinned to."""
    ptx = gemm.annotated_ptx()
    inject = gemm.PTXInject(ptx)
    num_sites = " + ".join(str(sites.num_sites) for sites in inject.values())
    semiring = gemm.SEMIRINGS["L2"]
    stubs = gemm.stubs_of(semiring, inject)
    in_order = [stubs[name] for name in inject]
    create_ms, render_ms, copy_ms = c_times_ms(CSRC, ptx, in_order)
    peer = importlib.util.find_spec("mm_ptx")
    peers = c_times_ms(Path(peer.origin).parent / "include", ptx, in_order) if peer else []
    beside = [f"; mm-ptx {time_ms:.3f} ms" for time_ms in peers] or ["", ""]

    what = f"CuTe GEMM 128x128x8, {num_sites} sites, {len(ptx) / 1000:.0f} KB of PTX"
    yield f"{what}: ptx_inject_create", f"{create_ms:.3f} ms{beside[0]}", "0.36 ms", "0.18 ms"
    aim = f"0.022 ms (copying the text: {copy_ms:.3f} ms)"
    yield f"{what}: ptx_inject_render, L2 distance", f"{render_ms:.3f} ms{beside[1]}", "0.043 ms", aim
    yield f"{what}: PTXInject(ptx), Python", f"{best_ms(lambda: gemm.PTXInject(ptx), NUM_ROUNDS):.3f} ms", "", ""
    yield f"{what}: PTXInject.render, Python", f"{best_ms(lambda: inject.render(stubs), NUM_ROUNDS):.3f} ms", "", ""

    for target in TARGETS:
        from_cuda = best_ms(lambda t=target: gemm.cubin_from_cuda(semiring, t), 1)
        yield f"CuTe GEMM, CUDA to cubin, NVRTC, {target}, L2 distance", f"{from_cuda / 1000:.1f} s", "", ""
        options = (f"--gpu-name={target}",)
        from_ptx = best_ms(lambda o=options: gemm.compile_ptx(inject.render(stubs), o), NUM_COMPILE_ROUNDS)
        what = f"CuTe GEMM, PTX to cubin, render and nvPTXCompiler, {target}, L2 distance"
        yield what, f"{from_ptx:.0f} ms ({from_cuda / from_ptx:.0f} times faster)", "", ""
