"""Compiling programs to cubins: throughput of a core and of two workers, overhead around the compiler, memory of a worker."""

import multiprocessing
import time
from pathlib import Path

import numpy as np
from bench_lowering import live_programs

from evo.compile.assembler import assembler_options
from evo.compile.compiler import Module, PackCompiler
from evo.compile.packing import Packing
from evo.compile.pool import CompilePool
from evo.compile.request import CompileExecutor, InLine
from evo.instructions import shipped_instruction_set
from evo.language.batch import Batch
from evo.language.program import Language

NUM_PROGRAMS = 2048
NUM_ROUNDS = 5
TARGET = "sm_90"


def workers_mb() -> float:
    """The most memory that any child of this process ever had, in MB."""
    statuses = [Path(f"/proc/{child.pid}/status").read_text() for child in multiprocessing.active_children()]
    return max(int(status.split("VmHWM:")[1].split()[0]) * 1024 / 1e6 for status in statuses)


def rounds(
    language: Language, batch: Batch, executor: CompileExecutor, packing: Packing, opt_level: int = 3
) -> list[tuple[float, float, float]]:
    """NUM_ROUNDS times: wall time of compiling all, time inside nvPTXCompiler, summed over workers, and this process's CPU time.

    A first round is not counted.
    """
    options = assembler_options(opt_level)
    times = []
    for _ in range(NUM_ROUNDS + 1):
        compiler = PackCompiler(language, TARGET, executor, packing=packing, options=options)
        start, start_cpu = time.perf_counter(), time.process_time()
        modules = list(compiler.compile(batch))
        wall_s, cpu_s = time.perf_counter() - start, time.process_time() - start_cpu
        assert all(isinstance(module, Module) for module in modules)
        times.append((wall_s, sum(module.compiler_s for module in modules), cpu_s))
    return times[1:]


def rows():
    """Rows of the table."""
    language = Language(shipped_instruction_set("default"), (("x", "f32"), ("y", "f32")), (("z", "f32"),))
    words = live_programs(language, 32, 1, NUM_PROGRAMS)
    batch = Batch.analyze(language.lowering, words)
    assert batch.num_instructions.mean() > 30
    num_distinct = len(np.unique(batch.hashes, axis=0))
    few = batch[:512]
    num_few = len(np.unique(few.hashes, axis=0))

    with InLine() as executor:
        for packing in (
            Packing(sites_per_kernel=32, kernels_per_module=2),
            Packing(sites_per_kernel=64, kernels_per_module=1),
            Packing(sites_per_kernel=64, kernels_per_module=2),
            Packing(sites_per_kernel=128, kernels_per_module=1),
        ):
            cpu_s = min(cpu_s for _, _, cpu_s in rounds(language, few, executor, packing))
            what = f"{TARGET}, 32 live instructions, {packing.kernels_per_module} x {packing.sites_per_kernel} sites, by CPU time"
            yield f"programs compiled, {what}", f"{num_few / cpu_s:.0f} / s", "896 / s", "1165 / s"
        for opt_level in (1, 0):
            cpu_s = min(cpu_s for _, _, cpu_s in rounds(language, few, executor, Packing(), opt_level))
            yield f"the same, 2 x 64 sites, at optimisation level {opt_level}", f"{num_few / cpu_s:.0f} / s", "", ""

    walls = {}
    for num_workers in (1, 2):
        with CompilePool(num_workers) as pool:
            times = rounds(language, batch, pool, Packing())
            walls[num_workers] = min(wall_s for wall_s, _, _ in times)
            overhead = min(wall_s / (compiler_s / num_workers) for wall_s, compiler_s, _ in times)
            memory_mb = workers_mb()
        what = f"{num_distinct} programs, {num_workers} workers"
        yield f"compile: wall time / time inside nvPTXCompiler, {what}", f"{overhead:.3f}", "1.15", "1.03"
        yield f"programs compiled, {what}", f"{num_distinct / walls[num_workers]:.0f} / s", "", ""
        yield f"memory of a compile worker at its peak, {what}", f"{memory_mb:.0f} MB", "300 MB", "150 MB"
    yield "compile: 2 workers against 1", f"{walls[1] / walls[2]:.2f} x", "1.85 x", "1.95 x"
