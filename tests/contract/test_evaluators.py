"""Laws that every evaluator keeps: what a program scores depends on the program alone, bit by bit."""

from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from exact_instructions import EXACT

from evo.compile.packing import Packing
from evo.evaluate import Status, TaskSource
from evo.evaluate.backends import BACKENDS
from evo.evaluate.cpu import CpuEvaluator, without_cpu_meaning
from evo.evaluate.cuda.evaluator import CudaEvaluator
from evo.evaluate.options import EvaluationOptions
from evo.instructions import shipped_instruction_set
from evo.language.batch import Batch
from evo.language.program import Language
from evo.native import ptx_vm
from evo.search.vocabulary import ConstantOptions, VariationOptions, VocabularyOptions, make_variation
from evo.tasks.folder import load_task

TESTS = Path(__file__).parents[1]
TASKS = [TESTS / "data" / "plane", *(path.parent for path in sorted(TESTS.parent.glob("tasks/*/task.py")))]
NUM_PROGRAMS = 60
OPTIONS = {"approximation": {"num_points": 500}}  # of tasks that take seconds to load without
FEW_PROGRAMS = 12  # of tasks with thousands of steps or points
COSTLY = 20_000  # points and steps

# Every way to evaluate a program; the first is what the others are compared with.
CPU_EVALUATORS = {
    "cpu, one thread": {"num_threads": 1},
    "cpu, five threads": {"num_threads": 5},
    **{f"cpu, {level}": {"num_threads": 1, "level": level} for level in ptx_vm.levels()},
}
SLOW = ("reaction_diffusion", "cpu, baseline")
# Processes take a second to start, so each evaluator serves all laws of a task, and each kind of task has one: points that
# are stored, trajectories, grids. Points that are summed have theirs in test_check_points.py.
IN_PROCESSES = ("plane", "pendulum", "morphogenesis")
PROCESSES = "cpu, two processes"
# The CUDA evaluator runs over the stand-in, which is slow: on the task with the fewest points, with exact instructions.
CASES = [
    # A thousand steps of 4,096 cells are slow without wide vectors.
    *((folder, name, False) for folder in TASKS for name in CPU_EVALUATORS if (folder.name, name) != SLOW),
    *((folder, PROCESSES, False) for folder in TASKS if folder.name in IN_PROCESSES),
    (TASKS[0], "cuda", True),
]


class Case:
    """A task with programs for it, and their scores by the first of the evaluators."""

    def __init__(self, folder: Path, only_exact: bool):
        self.task = load_task(folder, OPTIONS.get(folder.name, {}))
        name = "bits" if "b32" in self.task.inputs.values() else "default"
        self.language = Language(shipped_instruction_set(name), tuple(self.task.inputs.items()), tuple(self.task.outputs.items()))
        cpu = CpuEvaluator(self.language, self.task, 1)
        names = [instruction.name for instruction in self.language.instruction_set.instructions]
        unknown = without_cpu_meaning(self.language, names)
        known = EXACT if only_exact else [name for name in names if name not in unknown]
        vocabulary = VocabularyOptions(
            instructions=dict.fromkeys(known, 1.0),
            meta={"dup": 1.0, "swap": 1.0},
            groups={"instructions": 0.5, "inputs": 0.3, "constants": 0.15, "meta": 0.05},
            constants=ConstantOptions(f32_sigma=1.0, u32_max=9, meta_max=2),
        )
        options = VariationOptions(operators={"umad": 1.0})
        steps = self.task.rollout.steps if self.task.rollout else 1
        self.num = FEW_PROGRAMS if steps * max(map(np.size, self.task.points().values())) > COSTLY else NUM_PROGRAMS
        words = make_variation(self.language, vocabulary, options, (1, 60)).random_programs(11, 0, 0, self.num, 64)
        self.batch = Batch.analyze(self.language.lowering, words)
        self.expected = cpu.evaluate(self.batch)


@pytest.fixture(scope="module")
def cases() -> Callable[[Path, bool], Case]:
    return cache(Case)


@pytest.fixture(scope="module")
def process_evaluator(cases):
    """The evaluator of a task with two processes."""
    with ExitStack() as opened:

        @cache
        def make(folder: Path) -> CpuEvaluator:
            case = cases(folder, False)
            evaluator = CpuEvaluator(case.language, case.task, 2, executor="processes", source=TaskSource(folder, {}))
            opened.callback(evaluator.close)
            return evaluator

        yield make


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0].name}-{case[1]}")
def both(request, cases, process_evaluator):
    """A case and an evaluator for it."""
    folder, name, only_exact = request.param
    case = cases(folder, only_exact)
    if name == PROCESSES:
        yield case, process_evaluator(folder)
        return
    if name == "cuda":
        request.getfixturevalue("emulated_gpu")
        evaluator = CudaEvaluator(
            case.language,
            case.task,
            EvaluationOptions(compile_workers=1, packing=Packing(sites_per_kernel=16, kernels_per_module=2), lane="compile"),
        )
    else:
        evaluator = CpuEvaluator(case.language, case.task, **CPU_EVALUATORS[name])
    yield case, evaluator
    evaluator.close()


def test_every_backend_is_held_to_these_laws():
    assert {name.split(",")[0] for _, name, _ in CASES} == set(BACKENDS)


def assert_same(one, two, rows=slice(None)) -> None:
    for name in ("status", "objective", "measures"):
        first, second = getattr(one, name), getattr(two, name)[rows]
        assert first.dtype == second.dtype and first.shape == second.shape
        assert first.tobytes() == second.tobytes(), name


def test_a_score_depends_on_the_program_alone(both):
    """Not on evaluator, batch, order or history, nor on words that do nothing: the result for a hash is that for a program."""
    case, evaluator = both
    assert_same(evaluator.evaluate(case.batch), case.expected)
    order = np.random.default_rng(1).permutation(case.num)
    assert_same(evaluator.evaluate(case.batch[order]), case.expected, order)
    few = order[: case.num // 4]
    assert_same(evaluator.evaluate(case.batch[few]), case.expected, few)
    assert_same(evaluator.evaluate(case.batch[[7]]), case.expected, [7])
    padded = np.zeros((case.num, 70), np.uint64)
    padded[:, 6:] = case.batch.words
    padded[:, :6] = [5 | 5 << 32, 5 | 6 << 32, 12, 5 | 7 << 32, 1 | 5 << 32, 4 | 999 << 32]  # on empty stacks, all no-ops
    batch = Batch.analyze(case.language.lowering, padded)
    np.testing.assert_array_equal(batch.hashes, case.batch.hashes)
    assert_same(evaluator.evaluate(batch), case.expected)
    nothing = evaluator.evaluate(case.batch[:0])
    assert nothing.status.shape == nothing.objective.shape == (0,)
    assert nothing.measures.shape == (0, len(case.task.measures))


@pytest.mark.parametrize("folder", TASKS, ids=lambda folder: folder.name)
def test_what_is_not_ok_has_no_scores_and_what_is_has_finite_ones(cases, folder):
    found = cases(folder, False).expected
    ok = found.status == Status.OK
    assert ok.any()
    assert np.isfinite(found.objective[ok]).all() and np.isfinite(found.measures[ok]).all()
    assert np.isnan(found.objective[~ok]).all() and np.isnan(found.measures[~ok]).all()


def test_outputs_at_the_tasks_own_points_do_not_depend_on_the_batch(both):
    case, evaluator = both
    assert evaluator.device == evaluator.environment().get("device", "CPU") != ""
    words, points = case.batch.words, case.task.points()
    together = evaluator.outputs(words, points)
    assert list(together) == list(case.task.rollout.state if case.task.rollout else case.task.outputs)
    for row in (0, case.num - 1):
        alone = evaluator.outputs(words[[row]], points)
        for name in together:
            assert alone[name].tobytes() == together[name][[row]].tobytes()
