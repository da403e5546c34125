"""What programs cost on a GPU: kernels alone, and batches from end to end. Parts of the report.

Owns what is timed. One pack is in flight at a time where kernels are timed, so that none shares the device.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.cli.gpu_report.driver import Spinner
from evo.cli.gpu_report.work import MIX, Order, Told, evaluator_of, has_nvrtc, programs_of_length, row
from evo.compile.packing import Packing
from evo.evaluate.backends import CPU, CUDA, Assignment, calibrate_cpu, calibrate_lanes
from evo.evaluate.cpu import CpuEvaluator
from evo.evaluate.cuda.choice import COMPILE, INTERPRET, LANES
from evo.evaluate.cuda.device import Device
from evo.evaluate.options import EvaluationOptions
from evo.instructions import shipped_instruction_set
from evo.language.batch import Batch
from evo.language.program import Language
from evo.shipped import shipped
from evo.storage.disk_cache import DiskCache
from evo.sums import Regression
from evo.task import Programs, Scores, Task
from evo.task_folder import load_task

# Of a multiprocessor, which issues an instruction for each of four warps: the bound of every instruction, on all architectures.
_LANES = 128
_LEVELS = (0, 1, 3)
_NUM_PROGRAMS, _MOST_VALUES = 128, 1 << 27  # of a launch: programs, and programs times points
_PACKING = Packing(sites_per_kernel=64, kernels_per_module=2)


class Probe(Task):
    """Two inputs, one output, and sums against a target: programs of which only what running them costs matters."""

    inputs = {"x": "f32", "y": "f32"}  # noqa: RUF012 - as tasks are declared
    outputs = {"f": "f32"}  # noqa: RUF012 - as tasks are declared
    measures = {"num_instructions": (0.0, 64.0)}  # noqa: RUF012 - as tasks are declared
    reduction = "regression"

    def __init__(self, num_points: int):
        self.x = np.linspace(-1.0, 1.0, num_points, dtype=np.float32)

    def points(self) -> dict[str, NDArray[Any]]:
        """A line through the plane."""
        return {"x": self.x, "y": self.x[::-1].copy()}

    def targets(self) -> dict[str, NDArray[Any]]:
        """The product of the inputs."""
        return {"f": self.x * self.x[::-1]}

    def score(self, outputs: Any, programs: Programs) -> Scores:
        """The mean squared error."""
        assert isinstance(outputs, Regression)
        return Scores(-outputs.mse[:, 0], programs.num_instructions[:, None].astype(np.float64))


class Stores(Probe):
    """As `Probe`, but its outputs are stored; the score looks at one point only."""

    reduction = None  # type: ignore[assignment]

    def score(self, outputs: Any, programs: Programs) -> Scores:
        """The value at the first point."""
        first = outputs["f"][:, 0].astype(np.float64)
        return Scores(first, first[:, None])


def alone(order: Order, told: Told) -> str | None:
    """The issue slots that an operation takes at a point: time x clock x multiprocessors x 128, divided by operations x points.

    1 is the bound. The clock is that of a busy kernel, measured before.
    """
    device = Device(order.ordinal)  # the evaluators' contexts are this one
    issued_hz = Spinner(device).clock_hz(order.extent.spin_s) * device.num_multiprocessors * _LANES
    batches: dict[tuple[str, int], Batch] = {}
    with tempfile.TemporaryDirectory() as folder:
        cache = DiskCache(folder)
        for wanted in order.extent.timed_points:
            for kind, task in _tasks(wanted):
                language, num_points = _language_of(task), len(task.points()["x"])
                for lane, level in ((INTERPRET, 0), *((COMPILE, level) for level in _LEVELS)):
                    options = {"opt_level": level, "packing": _PACKING, "compile_workers": 2}
                    with evaluator_of(order, language, task, lane, MIX, cache, **options) as gpu:
                        for length in order.extent.lengths:
                            if (kind, length) not in batches:
                                batches[kind, length] = programs_of_length(language, length, _NUM_PROGRAMS)
                            batch = batches[kind, length][: max(4, min(order.extent.num_programs, _MOST_VALUES // num_points))]
                            gpu.evaluate(batch)  # compiles
                            taken = min(gpu.evaluate(batch).times_s["kernels"] for _ in range(order.extent.rounds))
                            slots = taken * issued_hz / (float(batch.num_instructions.sum()) * num_points)
                            way = f"{lane}{level if lane == COMPILE else ''}, {kind}, {length} instructions"
                            told(row(way, f"{slots:.3g}", f"{wanted:,} points", seconds=taken, slots=slots, share=1 / slots))
    device.close()
    return None


def end_to_end(order: Order, told: Told) -> str | None:
    """Programs a second by lane and size of a batch, and what `auto` would choose."""
    device = Device(order.ordinal)  # the evaluators' contexts are this one
    extent, language = order.extent, _language_of(Probe(1))
    most = programs_of_length(language, 32, max(*extent.batches, 128))
    for num_points in extent.batch_points:
        task = Probe(num_points)
        rates: dict[str, float] = {}
        for way in (CPU.name, *LANES):
            on_cpu = way == CPU.name
            with closing(CpuEvaluator(language, task)) if on_cpu else evaluator_of(order, language, task, way, MIX) as ran:
                ran.evaluate(most[: extent.batches[0] // 8])  # starts workers
                rate = 0.0
                for size in extent.batches:
                    if rate and size / rate > extent.cell_s:
                        break
                    start = time.perf_counter()
                    stages = ran.evaluate(most[:size]).times_s
                    taken = time.perf_counter() - start
                    rate = size / taken
                    rates.setdefault(way, rate)  # of the smallest batch, which all ways have
                    text, at = f"{rate:,.0f}/s", f"batches of {size:,}"
                    told(row(f"{num_points:,} points, {way}", text, at, seconds=taken, stages=stages))
        work = Assignment(language, task, MIX, EvaluationOptions(device=order.ordinal), {}, batch_size=extent.batches[0])
        measured = calibrate_lanes(CUDA, work, most[:128], calibrate_cpu(work, most[:128]))
        chosen, best = measured.fastest(), max(rates, key=lambda way: rates[way])
        lost = rates[best] / rates[chosen]
        text = f"auto: {chosen}; fastest: {best}" + (f", {lost:.2f} times as fast" if chosen != best else "")
        told(row(f"{num_points:,} points", text, costs=measured.costs(), lost=lost))
    device.close()
    return None


def _language_of(task: Task) -> Language:
    return Language(shipped_instruction_set("default"), tuple(task.inputs.items()), tuple(task.outputs.items()))


def _tasks(num_points: int) -> Iterator[tuple[str, Task]]:
    yield "sums", Probe(num_points)
    yield "stores", Stores(num_points)
    if has_nvrtc():  # at a square of points
        yield "own kernel", load_task(shipped("templates")["kernel"] / "task", {"size": round(num_points**0.5)})
