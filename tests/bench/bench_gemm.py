"""The CuTe GEMM of docs/examples: PTX Inject on its PTX, and from CUDA or from PTX to a cubin. Nothing where NVRTC is missing."""

import importlib.util
import os
import sys
import time
from pathlib import Path

EXAMPLE = Path(__file__).parent.parent.parent / "docs" / "examples" / "cute_gemm" / "cute_gemm.py"
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
    what = f"CuTe GEMM 128x128x8, {num_sites} sites, {len(ptx) / 1000:.0f} KB of PTX"
    yield f"{what}: ptx_inject_create, from Python", f"{best_ms(lambda: gemm.PTXInject(ptx), NUM_ROUNDS):.3f} ms", "0.36 ms", "0.18 ms"

    semiring = gemm.SEMIRINGS["L2"]
    stubs = gemm.stubs_of(semiring, inject)
    encoded = inject.render(stubs).encode()
    render_ms = best_ms(lambda: inject.render(stubs), NUM_ROUNDS)
    copy_ms = best_ms(lambda: bytearray(encoded), NUM_ROUNDS)
    yield f"{what}: render, L2 distance, from Python", f"{render_ms:.3f} ms", "0.043 ms", f"0.022 ms (copying the text: {copy_ms:.3f} ms)"

    for target in TARGETS:
        from_cuda = best_ms(lambda: gemm.cubin_from_cuda(semiring, target), 1)
        yield f"CuTe GEMM, CUDA to cubin, NVRTC, {target}, L2 distance", f"{from_cuda / 1000:.1f} s", "", ""
        from_ptx = best_ms(lambda: gemm.compile_ptx(inject.render(stubs), (f"--gpu-name={target}",)), NUM_COMPILE_ROUNDS)
        what = f"CuTe GEMM, PTX to cubin, render and nvPTXCompiler, {target}, L2 distance"
        yield what, f"{from_ptx:.0f} ms ({from_cuda / from_ptx:.0f} times faster)", "", ""
