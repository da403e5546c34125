"""What a GPU must compute: the bits of the CPU, in both lanes, however the work is divided.

Owns the checks of the report and of tests/gpu, which take more programs and points than the self-test
(`evo.evaluate.cuda.device_tests`). Each is the work of a `device_child`: it gives in one line what is wrong, or None.
"""

import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from evo.cli.gpu_report.work import Order, Told, evaluator_of, has_nvrtc, row
from evo.evaluate.calibration import VERBS
from evo.evaluate.cpu import CpuEvaluator
from evo.evaluate.cuda.agreement import BOUNDS, EXACT, LANGUAGE, NAMES, Operands, Points, compare, output_of, programs_of
from evo.evaluate.cuda.choice import COMPILE, INTERPRET, LANES
from evo.evaluate.cuda.device_tests import (
    compare_instructions,
    compare_programs,
    compare_sums,
    difference,
    moderate_points,
    random_programs,
)
from evo.kernel import nvrtc
from evo.language.batch import Batch
from evo.storage.disk_cache import DiskCache
from evo.task import Programs, Scores
from evo.task_folder import load_task

BITS = Path(__file__).parent / "bits"
_MOST_VALUES = 4_000_000  # programs times points of a check


class Hashes(Operands):
    """Scores that depend on each bit of each output."""

    measures = dict.fromkeys(("hash", "ones"), (0.0, 32.0))

    def score(self, outputs: Points, programs: Programs) -> Scores:
        """A sum of all bits, weighted by place, as 53 of its bits."""
        bits = np.concatenate([outputs[name].view(np.uint32) for name in "fgh"], axis=1)
        weights = np.arange(1, 2 * bits.shape[1], 2, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        sums = (bits.astype(np.uint64) * weights).sum(axis=1, dtype=np.uint64) >> np.uint64(11)
        return Scores(sums.astype(np.float64), np.stack([sums / 2.0**53, np.bitwise_count(bits).mean(axis=1)], axis=1))


def instructions(order: Order, told: Told) -> str | None:
    """Every instruction that the CPU knows."""
    with tempfile.TemporaryDirectory() as folder:
        for lane in LANES:
            if problem := compare_instructions(order.ordinal, lane, order.extent.num_random, DiskCache(folder)):
                return f"{VERBS[lane]}: {problem}"
            told(row(f"{len(NAMES)} instructions, {VERBS[lane]}", f"agree at edges and {order.extent.num_random:,} points"))
    return None


def programs(order: Order, told: Told) -> str | None:
    """Random programs of exact instructions."""
    return _at_all_points(order, told, compare_programs)


def sums(order: Order, told: Told) -> str | None:
    """The sums of a reduction over such programs."""
    return _at_all_points(order, told, compare_sums)


def own_kernel(order: Order, told: Told) -> str | None:
    """Every instruction, and random programs, in a task's own kernel whose threads part ways."""
    if not has_nvrtc():
        told(row("a task's own kernel", f"not checked: NVRTC is missing: {nvrtc.INSTALL}"))
        return None
    task = load_task(BITS, {})
    random = random_programs(LANGUAGE, NAMES, order.extent.num_programs // 10)
    single = np.pad(programs_of(NAMES), ((0, 0), (0, random.shape[1] - 16)))
    batch = Batch.analyze(LANGUAGE.lowering, np.concatenate([single, random]))
    results = [CpuEvaluator(LANGUAGE, task).evaluate(batch)]
    for lane in LANES:
        with evaluator_of(order, LANGUAGE, task, lane, NAMES) as gpu:
            results.append(gpu.evaluate(batch))
    cpu, interpreted, compiled = results
    bits = [each.measures.reshape(len(batch), -1, 3).astype(np.uint32) for each in (cpu, compiled)]
    for i, name in enumerate(NAMES):
        output = "fgh".index(output_of(name))
        if problem := compare(name, task.points(), *(np.ascontiguousarray(each[i, :, output]) for each in bits)).problem:
            return problem
    if problem := difference(compiled, interpreted):
        return f"interpreted, not compiled: {problem}"
    told(row("a task's own kernel", f"{len(batch)} programs agree; {interpreted.lanes[INTERPRET]} of them interpreted"))
    return None


def schedules(order: Order, told: Told) -> str | None:
    """Programs, approximate ones too, in both lanes, packs of all sizes, another order and from another thread."""
    task = Hashes(moderate_points(300))
    names = [*EXACT, *BOUNDS]
    batch = Batch.analyze(LANGUAGE.lowering, random_programs(LANGUAGE, names, order.extent.num_programs // 10 + 8))
    with evaluator_of(order, LANGUAGE, task, COMPILE, names) as gpu:
        expected = gpu.evaluate(batch[::-1])
        outputs = gpu.outputs(batch.words[:4], task.points())
    ways = [(INTERPRET, 128, 1, 1), *((COMPILE, *each) for each in ((1, 3, 1), (7, 1, 3), (128, 1, 2)))]
    for lane, sites, kernels, workers in ways:
        packing = {"sites_per_kernel": sites, "kernels_per_module": kernels}
        with (
            evaluator_of(order, LANGUAGE, task, lane, names, packing=packing, compile_workers=workers) as gpu,
            ThreadPoolExecutor(1) as another,
        ):
            for found in (gpu.evaluate(batch[::-1]), another.submit(gpu.evaluate, batch[::-1]).result()):
                if problem := difference(expected, found):
                    return f"{lane}, {packing}: {problem}"
            again = another.submit(gpu.outputs, batch.words[:4], task.points()).result()
            if any(outputs[name].tobytes() != again[name].tobytes() for name in outputs):
                return f"{lane}: outputs differ on another thread"
    told(row("packs, orders, threads", f"{len(batch)} programs have the same bits in {len(ways)} ways of work"))
    for level in (1, 3):
        with evaluator_of(order, LANGUAGE, task, COMPILE, names, opt_level=level) as gpu:
            different = int((gpu.evaluate(batch[::-1]).objective != expected.objective).sum())
        text = f"{different} of {len(batch)} programs have other bits than at level 0"
        told(row(f"optimisation level {level}", text, different=different))
    return None


CHECKS = {check.__name__: check for check in (instructions, programs, sums, own_kernel, schedules)}


def _at_all_points(order: Order, told: Told, compare: Callable[[int, str, int, int, DiskCache], str | None]) -> str | None:
    with tempfile.TemporaryDirectory() as folder:
        for num_points in order.extent.points:
            count = max(16, min(order.extent.num_programs, _MOST_VALUES // num_points))
            for lane in LANES:
                if problem := compare(order.ordinal, lane, num_points, count, DiskCache(folder)):
                    return f"{VERBS[lane]}, at {num_points:,} points: {problem}"
            told(row(f"{num_points:,} points", f"{count:,} programs agree in both lanes"))
    return None
