"""Comparison of a GPU's bits with the CPU's, in both lanes, however the work is divided.

Owns the checks that take more programs and points than the self-test, whose comparisons they use
(`evo.evaluate.cuda.device_tests`).
"""

import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

from evo.evaluate.cpu import CpuEvaluator
from evo.evaluate.cuda.agreement import (
    BOUNDS,
    EXACT,
    LANGUAGE,
    NAMES,
    compare,
    different_rows,
    output_of,
    programs_of,
    results_of,
)
from evo.evaluate.cuda.choice import COMPILE, INTERPRET, LANES
from evo.evaluate.cuda.device_tests import compare_case, compare_instructions, random_case, random_programs, sums_case
from evo.language.batch import Batch
from evo.storage.disk_cache import DiskCache
from evo.tasks.folder import load_task

from .work import gpu_evaluator, has_nvrtc, row

BITS = Path(__file__).parent / "bits"
_MOST_VALUES = 4_000_000  # programs times points of a check


def instructions(ordinal, extent):
    """Every instruction that the CPU knows."""
    with tempfile.TemporaryDirectory() as folder:
        for lane in LANES:
            problem = compare_instructions(ordinal, lane, extent.num_random, DiskCache(folder))
            assert problem is None, f"{lane}: {problem}"
            yield row(f"{len(NAMES)} instructions, {lane}", f"agree at edges and {extent.num_random:,} points")


def programs(ordinal, extent):
    """Random programs of exact instructions."""
    return _at_all_points(ordinal, extent, partial(random_case, EXACT))


def sums(ordinal, extent):
    """The sums of a reduction over such programs, also with values in registers."""
    yield from _at_all_points(ordinal, extent, sums_case)
    for num_points in extent.points:
        case = sums_case(num_points, 64)
        with gpu_evaluator(ordinal, case.language, case.task, INTERPRET, case.names, registers=True) as gpu:
            rows = different_rows(case.results(CpuEvaluator(case.language, case.task, 1)), case.results(gpu))
        assert not len(rows), f"in registers, at {num_points:,} points: {len(rows)} of {len(case.words)} programs differ"
        yield row(f"{num_points:,} points", f"{len(case.words)} programs agree in registers")


def _at_all_points(ordinal, extent, make):
    with tempfile.TemporaryDirectory() as folder:
        for num_points in extent.points:
            case = make(num_points, max(16, min(extent.num_programs, _MOST_VALUES // num_points)))
            for lane in LANES:
                problem = compare_case(case, ordinal, lane, DiskCache(folder))
                assert problem is None, f"{lane}, at {num_points:,} points: {problem}"
            yield row(f"{num_points:,} points", f"{len(case.words):,} programs agree in both lanes")


def own_kernel(ordinal, extent):
    """Every instruction, and random programs, in a task's own kernel whose threads part ways."""
    if not has_nvrtc():
        yield row("a task's own kernel", "not checked: NVRTC is missing")
        return
    task = load_task(BITS, {})
    random = random_programs(LANGUAGE, NAMES, extent.num_programs // 10)
    single = np.pad(programs_of(NAMES), ((0, 0), (0, random.shape[1] - 16)))
    batch = Batch.analyze(LANGUAGE.lowering, np.concatenate([single, random]))
    lanes = []
    for lane in LANES:
        with gpu_evaluator(ordinal, LANGUAGE, task, lane, NAMES) as gpu:
            lanes.append(gpu.evaluate(batch))
    bits = [
        each.measures.reshape(len(batch), -1, 3).astype(np.uint32)
        for each in (CpuEvaluator(LANGUAGE, task).evaluate(batch), lanes[0])
    ]
    for i, name in enumerate(NAMES):
        output = "fgh".index(output_of(name))
        problem = compare(name, task.points(), *(np.ascontiguousarray(each[i, :, output]) for each in bits)).problem
        assert problem is None, problem
    rows = different_rows(*map(results_of, lanes))
    assert not len(rows), f"{len(rows)} of {len(batch)} programs differ between lanes"
    yield row("a task's own kernel", f"{len(batch)} programs agree; {lanes[0].stats.lanes[INTERPRET]} of them interpreted")


def schedules(ordinal, extent):
    """Programs, approximate ones too, in both lanes, packs of all sizes, and from another thread."""
    case = random_case([*EXACT, *BOUNDS], 300, extent.num_programs // 10 + 40)

    def results(lane, sites=64, kernels=2, workers=2, level=0):
        options = {"packing": {"sites_per_kernel": sites, "kernels_per_module": kernels}, "compile_workers": workers}
        evaluator = gpu_evaluator(ordinal, LANGUAGE, case.task, lane, case.names, opt_level=level, **options)
        with evaluator as gpu, ThreadPoolExecutor(1) as another:
            found = case.results(gpu)
            assert not len(different_rows(found, another.submit(case.results, gpu).result())), f"{lane}: differs on a thread"
            return found

    expected, num_programs = results(COMPILE), len(case.words)
    for way in ((INTERPRET,), (COMPILE, 1, 3, 1), (COMPILE, 7, 1, 3), (COMPILE, 128, 1)):
        rows = different_rows(expected, results(*way))
        assert not len(rows), f"{way}: {len(rows)} of {num_programs} programs differ"
    yield row("packs, threads", f"{num_programs} programs have the same bits in both lanes")
    for level in (1, 3):
        different = len(different_rows(expected, results(COMPILE, level=level)))
        text = f"{different} of {num_programs} programs have other bits than at level 0"
        yield row(f"optimisation level {level}", text, different=different)
