"""Laws that every evaluator keeps: what a program scores depends on the program alone, bit by bit."""

from pathlib import Path

import numpy as np
import pytest

from evo.evaluate import Status
from evo.evaluate.cpu import CpuEvaluator
from evo.instructions import default_instruction_set
from evo.language.program import Language
from evo.native import ptx_vm
from evo.search.vocabulary import VariationOptions, VocabularyOptions, make_variation
from evo.task import load_task

TESTS = Path(__file__).parents[1]
TASKS = [TESTS / "data" / "plane", *(path.parent for path in sorted(TESTS.parent.glob("tasks/*/task.py")))]
NUM_PROGRAMS = 150

# Every way in which a program can be evaluated; the first is what the others are compared with.
EVALUATORS = {
    "cpu, one thread": {"num_threads": 1},
    "cpu, two threads": {"num_threads": 2},
    "cpu, five threads": {"num_threads": 5},
    **{f"cpu, {level}": {"num_threads": 1, "level": level} for level in ptx_vm.levels()},
}


class Case:
    """A task with programs for it, and their scores by the first of the evaluators."""

    def __init__(self, folder: Path):
        self.task = load_task(folder, {})
        self.language = Language(default_instruction_set(), tuple(self.task.inputs.items()), tuple(self.task.outputs.items()))
        cpu = CpuEvaluator(self.language, self.task, 1)
        known = [i.name for i in self.language.instruction_set.instructions if i.name not in cpu._machine.unsupported]
        vocabulary = VocabularyOptions(
            instructions=dict.fromkeys(known, 1.0),
            meta={"dup": 1.0, "swap": 1.0},
            groups={"instructions": 0.5, "inputs": 0.3, "constants": 0.15, "meta": 0.05},
            f32_sigma=1.0,
            u32_max=9,
            meta_max=2,
        )
        options = VariationOptions({"umad": 1.0}, 0.1, 0.1, 0.1, 1.0, 0.1, 0.1, 0.1, 0.1, 1, 60)
        self.words = make_variation(self.language, vocabulary, options).random_programs(11, 0, 0, NUM_PROGRAMS, 64)
        self.counts = self.language.lowering.analyze(self.words)[1]
        self.expected = cpu.evaluate(self.words, self.counts)


@pytest.fixture(scope="module", params=TASKS, ids=lambda folder: folder.name)
def case(request) -> Case:
    return Case(request.param)


@pytest.fixture(params=EVALUATORS)
def evaluator(request, case):
    made = CpuEvaluator(case.language, case.task, **EVALUATORS[request.param])
    yield made
    made.close()


def assert_same(one, two, rows=slice(None)) -> None:
    for name in ("status", "objective", "measures"):
        first, second = getattr(one, name), getattr(two, name)[rows]
        assert first.dtype == second.dtype and first.shape == second.shape
        assert first.tobytes() == second.tobytes(), name


def test_every_evaluator_gives_the_same_scores(case, evaluator):
    assert_same(evaluator.evaluate(case.words, case.counts), case.expected)


def test_a_score_does_not_depend_on_the_batch_in_which_it_is_taken(case, evaluator):
    rng = np.random.default_rng(1)
    order = rng.permutation(NUM_PROGRAMS)
    assert_same(evaluator.evaluate(case.words[order], case.counts[order]), case.expected, order)
    for row in (0, 7, NUM_PROGRAMS - 1):
        assert_same(evaluator.evaluate(case.words[[row]], case.counts[[row]]), case.expected, [row])
    few = order[:37]
    assert_same(evaluator.evaluate(case.words[few], case.counts[few]), case.expected, few)


def test_a_score_does_not_depend_on_what_was_evaluated_before(case, evaluator):
    evaluator.evaluate(case.words[::-1].copy(), case.counts[::-1].copy())
    assert_same(evaluator.evaluate(case.words, case.counts), case.expected)


def test_programs_of_one_hash_score_the_same(case, evaluator):
    """Words that do nothing are added: the result for the hash is the result for the program."""
    padded = np.zeros((NUM_PROGRAMS, 70), np.uint64)
    padded[:, 6:] = case.words
    padded[:, :6] = [5 | 5 << 32, 5 | 6 << 32, 12, 5 | 7 << 32, 1 | 5 << 32, 4 | 999 << 32]  # on empty stacks, all no-ops
    hashes, counts = case.language.lowering.analyze(padded)
    np.testing.assert_array_equal(hashes, case.language.lowering.analyze(case.words)[0])
    assert_same(evaluator.evaluate(padded, counts), case.expected)


def test_an_empty_batch_has_empty_results(case, evaluator):
    evaluation = evaluator.evaluate(case.words[:0], case.counts[:0])
    assert evaluation.status.shape == evaluation.objective.shape == (0,)
    assert evaluation.measures.shape == (0, len(case.task.measures))


def test_what_is_not_ok_has_no_scores_and_what_is_has_finite_ones(case):
    found = case.expected
    ok = found.status == Status.OK
    assert ok.sum() > 0
    assert np.isfinite(found.objective[ok]).all() and np.isfinite(found.measures[ok]).all()
    assert np.isnan(found.objective[~ok]).all() and np.isnan(found.measures[~ok]).all()


def test_outputs_at_the_tasks_own_points_do_not_depend_on_the_batch(case, evaluator):
    points = case.task.points()
    together = evaluator.outputs(case.words, points)
    assert list(together) == list(case.task.outputs)
    for row in (0, 50, NUM_PROGRAMS - 1):
        alone = evaluator.outputs(case.words[[row]], points)
        for name in together:
            assert alone[name].tobytes() == together[name][[row]].tobytes()
