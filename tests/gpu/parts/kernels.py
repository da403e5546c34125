"""The cost of programs on a GPU: kernels alone, and batches from end to end.

Owns what is timed. One pack is in flight at a time where kernels are timed, so that none shares the device.
"""

import tempfile
import time
from contextlib import closing

import numpy as np

from evo.compile.packing import Packing
from evo.evaluate.backends import CPU, CUDA, Assignment, calibrate_cpu, calibrate_gpu
from evo.evaluate.cpu import CpuEvaluator
from evo.evaluate.cuda.agreement import scrambled
from evo.evaluate.cuda.choice import COMPILE, INTERPRET, LANES
from evo.evaluate.cuda.device import Device
from evo.evaluate.options import EvaluationOptions
from evo.instructions import shipped_instruction_set
from evo.language.batch import Batch
from evo.language.program import Language, word
from evo.native.stack_ptx_words import WordType
from evo.shipped import shipped
from evo.storage.disk_cache import DiskCache
from evo.task import Scores, Task
from evo.tasks.folder import load_task

from .work import MIX, gpu_evaluator, has_nvrtc, row

# Of a multiprocessor, which issues an instruction for each of four warps: the bound of every instruction, on all architectures.
_LANES = 128
# Lane, level of the assembler, and whether the interpreter's values are in registers.
_WAYS = ((INTERPRET, 0, False), (INTERPRET, 0, True), *((COMPILE, level, False) for level in (0, 1, 3)))
_OWN_KERNEL = "own kernel"
_NUM_PROGRAMS, _MOST_VALUES = 128, 1 << 27  # of a launch: programs, and programs times points
_PACKING = Packing(sites_per_kernel=64, kernels_per_module=2)


class Probe(Task):
    """Two inputs, one output, and sums against a target: programs of which only what running them costs matters."""

    inputs = {"x": "f32", "y": "f32"}
    outputs = {"f": "f32"}
    measures = {"num_instructions": (0.0, 64.0)}
    reduction = "regression"

    def __init__(self, num_points):
        self.x = np.linspace(-1.0, 1.0, num_points, dtype=np.float32)

    def points(self):
        return {"x": self.x, "y": self.x[::-1].copy()}

    def targets(self):
        return {"f": self.x * self.x[::-1]}

    def score(self, outputs, programs):
        return Scores(-outputs.mse[:, 0], programs.num_instructions[:, None].astype(np.float64))


class Stores(Probe):
    """As `Probe`, but its outputs are stored; the score looks at one point only."""

    reduction = None

    def score(self, outputs, programs):
        first = outputs["f"][:, 0].astype(np.float64)
        return Scores(first, first[:, None])


def alone(ordinal, extent):
    """The issue slots that an operation takes at a point: time x clock x multiprocessors x 128, divided by operations x points.

    1 is the bound. The clock is the highest; a GPU that keeps below it shows more slots.
    """
    device = Device(ordinal)  # the evaluators' contexts are this one
    issued_hz = device.attribute("CLOCK_RATE") * 1e3 * device.num_multiprocessors * _LANES
    batches = {}
    with tempfile.TemporaryDirectory() as folder:
        cache = DiskCache(folder)
        for wanted in extent.timed_points:
            for kind, task in _tasks(wanted):
                language, num_points = language_of(task), len(task.points()["x"])
                for lane, level, registers in _WAYS:
                    if registers and kind == _OWN_KERNEL:
                        continue
                    options = {"opt_level": level, "packing": _PACKING, "compile_workers": 2, "registers": registers}
                    with gpu_evaluator(ordinal, language, task, lane, MIX, cache, **options) as gpu:
                        for length in extent.lengths:
                            if (kind, length) not in batches:
                                batches[kind, length] = programs_of_length(language, length, _NUM_PROGRAMS)
                            batch = batches[kind, length][: max(4, min(extent.num_programs, _MOST_VALUES // num_points))]
                            gpu.evaluate(batch)  # compiles
                            taken = min(gpu.evaluate(batch).stats.times_s["kernels"] for _ in range(extent.rounds))
                            slots = taken * issued_hz / (float(batch.num_instructions.sum()) * num_points)
                            how = level if lane == COMPILE else " in registers" if registers else ""
                            way = f"{lane}{how}, {kind}, {length} instructions"
                            yield row(way, f"{slots:.3g}", f"{wanted:,} points", seconds=taken, slots=slots, share=1 / slots)


def end_to_end(ordinal, extent):
    """Programs a second by lane and size of a batch, and what `auto` would choose."""
    _device = Device(ordinal)  # kept: the evaluators' contexts are this one
    language = language_of(Probe(1))
    most = programs_of_length(language, 32, max(*extent.batches, 128))
    for num_points in extent.batch_points:
        task = Probe(num_points)
        rates = {}
        for way in (CPU.name, *LANES):
            on_cpu = way == CPU.name
            with closing(CpuEvaluator(language, task)) if on_cpu else gpu_evaluator(ordinal, language, task, way, MIX) as ran:
                ran.evaluate(most[: extent.batches[0] // 8])  # starts workers
                rate = 0.0
                for size in extent.batches:
                    if rate and size / rate > extent.cell_s:
                        break
                    start = time.perf_counter()
                    stages = ran.evaluate(most[:size]).stats.times_s
                    taken = time.perf_counter() - start
                    rate = size / taken
                    rates.setdefault(way, rate)  # of the smallest batch, which all ways have
                    text, at = f"{rate:,.0f}/s", f"batches of {size:,}"
                    yield row(f"{num_points:,} points, {way}", text, at, seconds=taken, stages=stages)
        work = Assignment(language, task, MIX, EvaluationOptions(device=ordinal), {}, batch_size=extent.batches[0])
        measured = calibrate_gpu(CUDA, work, most[:128], calibrate_cpu(work, most[:128]))
        chosen, best = measured.fastest(), max(rates, key=lambda way: rates[way])
        lost = rates[best] / rates[chosen]
        text = f"auto: {chosen}; fastest: {best}" + (f", {lost:.2f} times as fast" if chosen != best else "")
        yield row(f"{num_points:,} points", text, costs=measured.costs(), lost=lost)


def _tasks(num_points):
    yield "sums", Probe(num_points)
    yield "stores", Stores(num_points)
    if has_nvrtc():  # at a square of points
        yield _OWN_KERNEL, load_task(shipped("templates")["kernel"] / "task", {"size": round(num_points**0.5)})


def language_of(task):
    """The default instruction set with a task's inputs and outputs."""
    return Language(shipped_instruction_set("default"), tuple(task.inputs.items()), tuple(task.outputs.items()))


def programs_of_length(language, length, count):
    """Different programs of that many live instructions, with 256 shapes of trees; the others differ in a constant."""
    rows = [_tree(language, length, seed) for seed in range(min(count, 256))]
    words = np.zeros((len(rows), max(map(len, rows))), np.uint64)
    for words_of, each in zip(words, rows, strict=True):
        words_of[: len(each)] = each
    words = words[np.arange(count) % len(rows)]
    factors = (1.0 + np.arange(count) / count).astype(np.float32).view(np.uint32)
    words[:, 0] = [word(WordType.CONSTANT, 0, payload) for payload in factors.tolist()]
    return Batch.analyze(language.lowering, words)


def _tree(language, length, seed):
    """A constant, which is replaced, and instructions whose operands are results that nothing has used, or inputs."""
    known, drawn = language.instruction_set, iter(scrambled(8 * length, seed).tolist())
    words, num_left, num_done = [0], 1, 0
    while num_done + num_left - 1 < length:
        index = known.instruction_index(MIX[next(drawn) % len(MIX)])
        num_operands = len(known.instructions[index].args)
        num_taken = 0 if num_done and next(drawn) % 3 == 0 else min(num_left, 1 + next(drawn) % num_operands)
        inputs = [next(drawn) % len(language.inputs) for _ in range(num_operands - num_taken)]
        words += [*(word(WordType.INPUT, payload=each) for each in inputs), word(WordType.PTX, payload=index)]
        num_left, num_done = num_left + 1 - num_taken, num_done + 1
    return words + [word(WordType.PTX, payload=known.instruction_index("add_ftz_f32"))] * (num_left - 1)
