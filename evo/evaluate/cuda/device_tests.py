"""Tests of a GPU before its first use: `run`, the work of a `device_child`.

Owns the steps of the self-test. Knows nothing of records and backends.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.compile.compiler import Module, PackCompiler
from evo.compile.packing import Packing
from evo.compile.request import InLine
from evo.evaluate import Evaluator
from evo.evaluate.cpu import CpuEvaluator
from evo.evaluate.cuda.agreement import (
    EXACT,
    LANGUAGE,
    NAMES,
    Operands,
    Points,
    compare,
    different_rows,
    edge_columns,
    output_of,
    points_of,
    programs_of,
    results_of,
)
from evo.evaluate.cuda.choice import COMPILE, LANES
from evo.evaluate.cuda.device import Device
from evo.evaluate.cuda.device_inputs import DeviceInputs
from evo.evaluate.cuda.evaluator import CudaEvaluator
from evo.evaluate.cuda.plans import StorePlan
from evo.evaluate.cuda.self_test import TIME_LIMIT_S
from evo.evaluate.options import EvaluationOptions
from evo.instructions import shipped_instruction_set
from evo.language.batch import Batch
from evo.language.program import Language, word
from evo.native.stack_ptx_words import WordType
from evo.native.vary import OPERATORS, RATES, Draw, Variation
from evo.storage.disk_cache import DiskCache
from evo.task import Programs, Scores, Task
from evo.tasks.answers import point_arrays
from evo.tasks.sums import Regression

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
    """Tests a device. Returns the problem in one line, or None. Reports each step."""
    for name, step in STEPS.items():
        report(name)
        if problem := step(ordinal):
            return problem
    return None


@dataclass(frozen=True)
class Case:
    """Programs whose results must have the same bits wherever they run.

    names: of their instructions. labels: of the programs, `(num_programs,)`.
    """

    labels: Sequence[str]
    language: Language
    task: Task
    names: Sequence[str]
    words: NDArray[np.uint64]

    def results(self, evaluator: Evaluator) -> list[NDArray[Any]]:
        """Scores if the task has a reduction, else outputs, a row a program."""
        if not self.task.reduction:
            return [*evaluator.outputs(self.words, self.task.points()).values()]
        return results_of(evaluator.evaluate(Batch.analyze(self.language.lowering, self.words)))


def random_case(names: Sequence[str] = EXACT, num_points: int = _NUM_POINTS, count: int = _NUM_PROGRAMS) -> Case:
    """Random programs of these instructions, by their outputs."""
    words = random_programs(LANGUAGE, names, count)
    return Case(["random programs"] * count, LANGUAGE, Operands(moderate_points(num_points)), names, words)


def sums_case(num_points: int = _NUM_POINTS, count: int = _NUM_PROGRAMS) -> Case:
    """Random programs of exact instructions, by the sums of a reduction."""
    task, names = Sums(num_points), [name for name in EXACT if "u32" not in name]
    language = Language(shipped_instruction_set("default"), tuple(task.inputs.items()), tuple(task.outputs.items()))
    return Case(["a reduction"] * count, language, task, names, random_programs(language, names, count))


def compare_instructions(ordinal: int, lane: str = COMPILE, num_random: int = 0, cache: DiskCache | None = None) -> str | None:
    """Every instruction that the CPU knows, at edges and other points: exact ones bit by bit, others within their bounds.

    Args:
        cache: of cubins, here and below; with one, all cores compile.
    """
    points = points_of(edge_columns(num_random))
    num_points = len(points["a"])
    task = Operands({name: values[:64] for name, values in points.items()})
    group = max(16, _MOST_VALUES // num_points)  # each has three outputs at all points
    cpu = CpuEvaluator(LANGUAGE, task, 1)
    with _opened(ordinal, LANGUAGE, task, NAMES, _LARGE_PACKS, lane, cache) as gpu:
        for first in range(0, len(NAMES), group):
            names = NAMES[first : first + group]
            outputs = [evaluator.outputs(programs_of(names), points) for evaluator in (cpu, gpu)]
            for row, name in enumerate(names):
                bits = [np.ascontiguousarray(output[output_of(name)][row]).view(np.uint32) for output in outputs]
                agreement = compare(name, points, *bits)
                if agreement.problem or agreement.num_compared <= num_points // 16:
                    return agreement.problem or f"{name} was compared at {agreement.num_compared} points only"
    return None


def compare_case(case: Case, ordinal: int, lane: str = COMPILE, cache: DiskCache | None = None) -> str | None:
    """Programs of exact instructions in a lane against the CPU."""
    with _opened(ordinal, case.language, case.task, case.names, _SMALL_PACKS, lane, cache) as gpu:
        rows = different_rows(case.results(CpuEvaluator(case.language, case.task, 1)), case.results(gpu))
    return f"{len(rows)} of {len(case.words)} programs of exact instructions differ" if len(rows) else None


def _compare_lanes(ordinal: int) -> str | None:
    """Interpreted programs against compiled ones, which have passed: every instruction, random programs, a reduction."""
    single = Case(NAMES, LANGUAGE, Operands(points_of(edge_columns())), NAMES, programs_of(NAMES))
    for case in (single, random_case(NAMES), sums_case()):
        results = []
        for lane in LANES:
            with _opened(ordinal, case.language, case.task, case.names, _LARGE_PACKS, lane) as gpu:
                results.append(case.results(gpu))
        if len(rows := different_rows(*results)):
            return f"interpreted programs differ from compiled ones: {case.labels[int(rows[0])]}"
    return None


def _test_unloading(ordinal: int) -> str | None:
    task = Operands(moderate_points())
    words = random_programs(LANGUAGE, EXACT)[:16]
    batch = Batch.analyze(LANGUAGE.lowering, words)
    device = Device(ordinal)
    inputs = DeviceInputs(device, *point_arrays(task, task.points(), "points()"))
    plan = StorePlan(task, inputs)
    packing = Packing(sites_per_kernel=4, kernels_per_module=1)
    compiled = list(PackCompiler(LANGUAGE, device.info.target, InLine(), packing=packing).compile(batch))
    modules = [module for module in compiled if isinstance(module, Module)]
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
    outputs = plan.outputs(host[: plan.result_bytes(len(stays.rows))], len(stays.rows))
    expected = CpuEvaluator(LANGUAGE, task, 1).outputs(words[[rows[0] for rows in stays.rows]], task.points())
    if len(different_rows(np.moveaxis(outputs, 1, 0), expected.values())):
        return "outputs of a module differ if another is unloaded while it runs"
    return None


@contextmanager
def _opened(
    ordinal: int,
    language: Language,
    task: Task,
    names: Sequence[str],
    packing: Packing,
    lane: str,
    cache: DiskCache | None = None,
) -> Iterator[Evaluator]:
    # The time limit is that of the whole process, which the parent ends.
    values = {"device": ordinal, "packing": packing, "lane": lane, "launch_seconds": TIME_LIMIT_S, "threads": 1}
    options = EvaluationOptions.model_validate({**values, "compile_workers": None if cache else 1})
    evaluator = CudaEvaluator(language, task, options, cache, instructions=names)
    try:
        yield evaluator
    finally:
        evaluator.close()


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


# Tests of a device: each gives in one line the fault, or None.
STEPS: dict[str, Callable[[int], str | None]] = {
    "every instruction": compare_instructions,
    "random programs": lambda ordinal: compare_case(random_case(), ordinal),
    "a reduction": lambda ordinal: compare_case(sums_case(), ordinal),
    "a module unloaded while another runs": _test_unloading,
    "the interpreter": _compare_lanes,
}
