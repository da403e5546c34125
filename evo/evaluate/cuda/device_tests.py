"""What a GPU is tested with before its first use: `run`, the work of a `device_child`.

Owns the steps of the self-test. Knows nothing of records and backends.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
from numpy.typing import NDArray

from evo.compile.compiler import Module, PackCompiler
from evo.compile.packing import Packing
from evo.compile.request import InLine
from evo.evaluate import Evaluation, Evaluator
from evo.evaluate.cpu import CpuEvaluator
from evo.evaluate.cuda.agreement import (
    EXACT,
    LANGUAGE,
    NAMES,
    Operands,
    Points,
    compare,
    edge_columns,
    output_of,
    points_of,
    programs_of,
)
from evo.evaluate.cuda.choice import COMPILE, INTERPRET
from evo.evaluate.cuda.device import Device
from evo.evaluate.cuda.evaluator import CudaEvaluator
from evo.evaluate.cuda.plans import DeviceInputs, StorePlan
from evo.evaluate.cuda.self_test import LANES_DIFFER, TIME_LIMIT_S
from evo.evaluate.options import EvaluationOptions
from evo.instructions import shipped_instruction_set
from evo.language.batch import Batch
from evo.language.program import Language, word
from evo.native.stack_ptx_words import WordType
from evo.native.vary import OPERATORS, RATES, Draw, Variation
from evo.storage.disk_cache import DiskCache
from evo.sums import Regression
from evo.task import Programs, Scores, Task
from evo.task_answers import point_arrays

# The instructions' programs go together, as in a search: a kernel of 64 sites and one with the rest.
_LARGE_PACKS = Packing(sites_per_kernel=64, kernels_per_module=2)
_SMALL_PACKS = Packing(sites_per_kernel=5, kernels_per_module=2)
_NUM_PROGRAMS = 24
_LENGTHS = 20, 40  # words of a random program
_MOST_VALUES = 1_000_000  # of an output, at once
_NUM_POINTS = 5000  # of the reduction: two blocks of its first kernel
_NUM_LAUNCHES = 4  # of the module that runs while another is unloaded


class Sums(Task):
    """A reduction over two outputs. The scores show its sums."""

    inputs = dict.fromkeys("xy", "f32")
    outputs = dict.fromkeys("fg", "f32")
    measures = dict.fromkeys(("y", "yy", "ty", "error", "worst"), (-1.0, 1.0))
    reduction = "regression"

    def __init__(self, num_points: int = _NUM_POINTS):
        self.num_points = num_points

    def points(self) -> Points:
        """Two waves."""
        return {"x": _wave(0.7, 3.0, self.num_points), "y": _wave(1.3, 0.5, self.num_points)}

    def targets(self) -> Points:
        """Two other waves."""
        return {"f": _wave(0.4, 2.0, self.num_points), "g": _wave(0.1, 1.0, self.num_points)}

    def score(self, outputs: Regression, programs: Programs) -> Scores:
        """The sums of the first output, and one of the second."""
        sums = (outputs.sum_y, outputs.sum_yy, outputs.sum_yt, outputs.sum_squared_error, outputs.max_abs_error)
        return Scores(outputs.sum_squared_error[:, 1], np.stack([column[:, 0] for column in sums], axis=1))


def run(ordinal: int, report: Callable[[str], None]) -> str | None:
    """Tests a device: in one line what is wrong, or None. Reports each step, and how the lanes differ if they do."""
    for name, step in STEPS.items():
        report(name)
        if problem := step(ordinal):
            return problem
    report("the interpreter")
    if problem := _compare_lanes(ordinal):
        report(f"{LANES_DIFFER}{problem}")
    return None


def _compare_lanes(ordinal: int) -> str | None:
    """How interpreted programs differ from compiled ones, which have passed: every instruction, random programs, a reduction."""
    for what, language, task, words in _lane_cases():
        batch = Batch.analyze(language.lowering, words)
        results = []
        for lane in (COMPILE, INTERPRET):
            evaluator = CudaEvaluator(language, task, _options(ordinal, _LARGE_PACKS, lane), instructions=NAMES)
            if task.reduction:
                evaluation = evaluator.evaluate(batch)
                results.append([evaluation.objective.tobytes(), evaluation.measures.tobytes()])
            else:
                outputs = evaluator.outputs(words, task.points())
                results.append([b"".join(values[row].tobytes() for values in outputs.values()) for row in range(len(words))])
            evaluator.close()
        if wrong := [row for row, (one, other) in enumerate(zip(*results, strict=True)) if one != other]:
            return what(wrong[0])
    return None


def _lane_cases() -> Iterator[tuple[Callable[[int], str], Language, Task, NDArray[np.uint64]]]:
    """What to say of a difference, given its index, the language, the task, and programs."""
    operands = Operands(points_of(edge_columns()))
    yield NAMES.__getitem__, LANGUAGE, operands, programs_of(NAMES)
    yield lambda _: "random programs", LANGUAGE, Operands(moderate_points()), random_programs(LANGUAGE, NAMES)
    sums = Sums()
    language = Language(shipped_instruction_set("default"), tuple(sums.inputs.items()), tuple(sums.outputs.items()))
    yield lambda _: "a reduction", language, sums, random_programs(language, [name for name in EXACT if "u32" not in name])


def compare_instructions(ordinal: int, lane: str = COMPILE, num_random: int = 0, cache: DiskCache | None = None) -> str | None:
    """Every instruction that the CPU knows, at edges and other points: exact ones bit by bit, others within their bounds.

    Args:
        cache: of cubins, here and below; with one, all cores compile.
    """
    points = points_of(edge_columns(num_random))
    num_points = len(points["a"])
    task = Operands({name: values[:64] for name, values in points.items()})
    group = max(16, _MOST_VALUES // num_points)  # each has three outputs at all points
    with _both(ordinal, LANGUAGE, task, _LARGE_PACKS, lane, NAMES, cache) as (cpu, gpu):
        for first in range(0, len(NAMES), group):
            names = NAMES[first : first + group]
            outputs = [each.outputs(programs_of(names), points) for each in (cpu, gpu)]
            for row, name in enumerate(names):
                bits = [np.ascontiguousarray(each[output_of(name)][row]).view(np.uint32) for each in outputs]
                agreement = compare(name, points, *bits)
                if agreement.problem or agreement.num_compared <= num_points // 16:
                    return agreement.problem or f"{name} was compared at {agreement.num_compared} points only"
    return None


def compare_programs(
    ordinal: int,
    lane: str = COMPILE,
    num_points: int = _NUM_POINTS,
    count: int = _NUM_PROGRAMS,
    cache: DiskCache | None = None,
) -> str | None:
    """Outputs of random programs of exact instructions, bit by bit."""
    task = Operands(moderate_points(num_points))
    words = random_programs(LANGUAGE, EXACT, count)
    with _both(ordinal, LANGUAGE, task, _SMALL_PACKS, lane, cache=cache) as evaluators:
        cpu, gpu = (each.outputs(words, task.points()) for each in evaluators)
    different = [row for row in range(len(words)) if any(cpu[name][row].tobytes() != gpu[name][row].tobytes() for name in cpu)]
    return f"outputs of {len(different)} of {len(words)} programs of exact instructions differ" if different else None


def compare_sums(
    ordinal: int,
    lane: str = COMPILE,
    num_points: int = _NUM_POINTS,
    count: int = _NUM_PROGRAMS,
    cache: DiskCache | None = None,
) -> str | None:
    """The sums of a reduction over such programs, bit by bit."""
    task = Sums(num_points)
    language = Language(shipped_instruction_set("default"), tuple(task.inputs.items()), tuple(task.outputs.items()))
    batch = Batch.analyze(language.lowering, random_programs(language, [name for name in EXACT if "u32" not in name], count))
    with _both(ordinal, language, task, _SMALL_PACKS, lane, cache=cache) as evaluators:
        return difference(*(each.evaluate(batch) for each in evaluators))


def difference(expected: Evaluation, found: Evaluation) -> str | None:
    """How a GPU's results differ from those that were expected, in one line."""
    if found.failures:
        return f"a program could not be compiled: {found.failures[0].log}"
    fields = [(getattr(expected, name), getattr(found, name)) for name in ("status", "objective", "measures")]
    rows = [row for row in range(len(found.status)) if any(one[row].tobytes() != other[row].tobytes() for one, other in fields)]
    return f"scores of {len(rows)} of {len(found.status)} programs differ" if rows else None


def _test_unloading(ordinal: int) -> str | None:
    task = Operands(moderate_points())
    words = random_programs(LANGUAGE, EXACT)[:16]
    batch = Batch.analyze(LANGUAGE.lowering, words)
    device = Device(ordinal)
    inputs = DeviceInputs(device, *point_arrays(task, task.points(), "points()"))
    plan = StorePlan(task, inputs)
    packing = Packing(sites_per_kernel=4, kernels_per_module=1)
    compiled = list(PackCompiler(LANGUAGE, device.info.target, InLine(), packing=packing).compile(batch))
    modules = [each for each in compiled if isinstance(each, Module)]
    if len(modules) < len(compiled):
        return "a program could not be compiled"
    stays, goes = modules[:2]
    num_bytes = max(plan.result_bytes(len(module.rows)) for module in modules)
    results, host = device.allocate(num_bytes), device.pinned(num_bytes)
    stream, event = device.stream(), device.event()
    loaded = [device.load(module.cubin) for module in (stays, goes)]
    plan.launch(device, loaded[1], goes, int(results), 0, stream)
    device.record(event, stream)
    device.wait(event, lambda: False)
    for _ in range(_NUM_LAUNCHES):
        plan.launch(device, loaded[0], stays, int(results), 0, stream)
    device.unload(loaded[1])
    device.copy_to_host(host, results, stream)
    device.record(event, stream)
    device.wait(event, lambda: False)
    found = plan.outputs(host[: plan.result_bytes(len(stays.rows))], len(stays.rows))
    expected = CpuEvaluator(LANGUAGE, task, 1).outputs(words[[rows[0] for rows in stays.rows]], task.points())
    names = list(task.outputs)
    if any(found[:, i].tobytes() != expected[name].tobytes() for i, name in enumerate(names)):
        return "outputs of a module differ if another is unloaded while it runs"
    return None


@contextmanager
def _both(
    ordinal: int,
    language: Language,
    task: Task,
    packing: Packing,
    lane: str,
    names: Sequence[str] = EXACT,
    cache: DiskCache | None = None,
) -> Iterator[tuple[Evaluator, Evaluator]]:
    """The CPU evaluator and the CUDA evaluator."""
    options = _options(ordinal, packing, lane)
    options = options.model_copy(update={"compile_workers": None}) if cache else options
    gpu = CudaEvaluator(language, task, options, cache, instructions=names)
    try:
        yield CpuEvaluator(language, task, 1), gpu
    finally:
        gpu.close()


def _options(ordinal: int, packing: Packing, lane: str) -> EvaluationOptions:
    # The time limit is that of the whole process, which the parent ends.
    values = {"device": ordinal, "compile_workers": 1, "packing": packing, "launch_seconds": TIME_LIMIT_S, "threads": 1}
    return EvaluationOptions.model_validate({**values, "lane": lane})


def random_programs(
    language: Language,
    names: Sequence[str],
    count: int = _NUM_PROGRAMS,
    lengths: tuple[int, int] = _LENGTHS,
) -> NDArray[np.uint64]:
    """`(count, longest)` programs of these instructions and the inputs, of `lengths[0]` to `lengths[1]` words."""
    index = language.instruction_set.instruction_index
    words = [word(WordType.PTX, payload=index(name)) for name in names]
    inputs = [word(WordType.INPUT, payload=i) for i in range(len(language.inputs))]
    options = SimpleNamespace(
        operator_weights=(1.0,) * len(OPERATORS),
        **{rate.key: rate.default for rate in RATES},
        initial_min_length=lengths[0],
        initial_max_length=lengths[1],
        float_stacks=0,
        unsigned_stacks=0,
        signed_stacks=0,
    )
    variation = Variation(
        np.array(words + inputs, np.uint64),
        np.array([1 / len(words)] * len(words) + [1 / len(inputs)] * len(inputs)),
        np.full(len(words + inputs), Draw.LITERAL, np.uint32),
        np.zeros((len(words + inputs), 2)),
        options,
    )
    return variation.random_programs(1, 0, 0, count, lengths[1])


def moderate_points(count: int = _NUM_POINTS) -> Points:
    """Values far from where rounding and flushing meet."""
    floats = {name: _wave(0.3 + i, 4.0 - i, count) for i, name in enumerate("abc")}
    integers = np.arange(count, dtype=np.uint32) * np.uint32(2654435761)
    unsigned = {name: integers >> np.uint32(8 * i) for i, name in enumerate("uvw")}
    return floats | unsigned | {name: (integers >> np.uint32(4 * i)).view(np.int32) for i, name in enumerate("ijk")}


def _wave(frequency: float, amplitude: float, count: int) -> NDArray[np.float32]:
    values = amplitude * np.sin(frequency * np.arange(count))
    return np.asarray(values, np.float32)


# What a device is tested with: each gives in one line what is wrong, or None.
STEPS: dict[str, Callable[[int], str | None]] = {
    "every instruction": compare_instructions,
    "random programs": compare_programs,
    "a reduction": compare_sums,
    "a module unloaded while another runs": _test_unloading,
}
