"""The GPU: kernels against the device's own peak, and a whole run with the share of each stage.

Kernels: GPops/s = live instructions x points / seconds of the device / 1e9, of mix A (bench_vm.py) in `tree` programs of one
length; the peak is one FP32 instruction a lane and cycle at the device's highest clock. Copying back and scoring are not in it.
The run: configs/domain_coloring.yaml on the GPU; stages of the calling thread add up to the whole, sums over threads and
processes do not.
"""

import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from bench_vm import draw_program

import evo
from evo.compile.packing import Packing
from evo.evaluate.cuda.device import Device, probe
from evo.evaluate.cuda.evaluator import CudaEvaluator
from evo.evaluate.options import EvaluationOptions
from evo.instructions import shipped_instruction_set
from evo.language.batch import Batch
from evo.language.program import Language
from evo.storage.disk_cache import DiskCache

CONFIG = Path(__file__).parents[2] / "configs" / "domain_coloring.yaml"
NUM_ROUNDS = 5
# FP32 lanes of a multiprocessor by architecture (CUDA C++ Programming Guide, arithmetic instructions); 128 for all others.
FP32_LANES = {"sm_75": 64, "sm_80": 64}


class Grid(evo.Task):
    """Three inputs at random points; the score looks at one point only."""

    inputs = {"x": "f32", "y": "f32", "z": "f32"}
    outputs = {"f": "f32"}
    measures = {"value": (-1.0, 1.0)}

    def __init__(self, num_points: int):
        values = np.random.default_rng(22).uniform(-2, 2, (3, num_points)).astype(np.float32)
        self.values = dict(zip("xyz", values, strict=True))

    def points(self):
        return self.values

    def score(self, outputs, programs):
        first = outputs["f"][:, 0].astype(np.float64)
        return evo.Scores(first, first[:, None])


def kernel_rate(num_operations: int, num_points: int, packing: Packing, num_programs: int) -> float:
    """GPops/s."""
    task = Grid(num_points)
    language = Language(shipped_instruction_set("default"), tuple(task.inputs.items()), tuple(task.outputs.items()))
    rng = np.random.default_rng(20)
    drawn = [draw_program(language, rng, "tree", "A", num_operations) for _ in range(num_programs)]
    words = np.zeros((num_programs, max(map(len, drawn))), np.uint64)
    for row, program in zip(words, drawn, strict=True):
        row[: len(program)] = program
    batch = Batch.analyze(language.lowering, words)
    with tempfile.TemporaryDirectory() as folder:
        evaluator = CudaEvaluator(language, task, EvaluationOptions(packing=packing, lane="compile"), DiskCache(folder))
        evaluator.evaluate(batch)  # fills the cache
        best_s = min(evaluator.evaluate(batch).times_s["kernels"] for _ in range(NUM_ROUNDS))
        evaluator.close()
    return batch.num_instructions.sum() * num_points / best_s / 1e9


def peak_rate(device: Device) -> float:
    """FP32 instructions a second / 1e9."""
    return FP32_LANES.get(device.info.target, 128) * device.num_multiprocessors * device.clock_hz / 1e9


def kernel_rows():
    device = Device()
    peak = peak_rate(device)
    device.close()
    yield "peak of FP32 instructions", f"{peak:,.0f} GPops/s", "", ""
    cases = [(length, 1 << 20, Packing(sites_per_kernel=64, kernels_per_module=2), 128) for length in (10, 32, 100, 300)]
    cases += [(32, num_points, Packing(sites_per_kernel=64, kernels_per_module=2), 128) for num_points in (4096, 65_536)]
    cases += [
        (32, 65_536, Packing(sites_per_kernel=sites, kernels_per_module=kernels), 1024)
        for sites, kernels in ((16, 1), (64, 1), (128, 1), (64, 16))
    ]
    for length, num_points, packing, num_programs in cases:
        rate = kernel_rate(length, num_points, packing, num_programs)
        what = f"kernels, mix A, {length} instructions, {num_points:,} points, packs of {packing.kernels_per_module} x "
        is_goal = length == 32 and num_points == 1 << 20
        bounds = ("30 %", "60 %") if is_goal else ("", "")
        yield f"{what}{packing.sites_per_kernel}", f"{rate:,.0f} GPops/s, {rate / peak:.0%} of the peak", *bounds


def run_rows():
    with tempfile.TemporaryDirectory() as folder:
        overrides = ("evaluation.backend=cuda", "evaluation.cache_megabytes=0", f"output.runs={folder}", "output.plots=[]")
        command = ["evo", "run", str(CONFIG), *(part for override in overrides for part in ("--set", override))]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        (metrics_path,) = Path(folder).glob("*/*/metrics.jsonl")
        metrics = [json.loads(line) for line in metrics_path.read_text().splitlines()]
    last = metrics[-1]
    elapsed_s = last["elapsed_s"]
    yield "domain colouring run on the GPU", f"{elapsed_s:.1f} s", "", ""
    yield "programs a second, end to end", f"{last['evaluations'] / elapsed_s:,.0f}", "", ""
    yield "coverage", f"{last['coverage']:.1%}", "", ""
    totals = {stage: sum(row["times_s"].get(stage, 0.0) for row in metrics) for stage in metrics[-1]["times_s"]}
    stages = ("variation", "hash", "wait_for_cubins", "load", "wait_for_results", "archive", "statistics", "previous_save")
    for stage in stages:
        yield f"share of {stage.replace('_', ' ')}", f"{totals[stage] / elapsed_s:.1%}", "", ""
    for stage in ("kernels", "score_threads", "compiler_workers", "emission_workers"):
        yield f"{stage.replace('_', ' ')}, seconds for each second of the run", f"{totals[stage] / elapsed_s:.2f}", "", ""


def rows():
    """Rows of the table; one that says why there are no others, where there is no GPU."""
    problem = probe().problem
    if problem:
        yield "GPU", f"not measured: {problem}", "", ""
        return
    yield from kernel_rows()
    yield from run_rows()
