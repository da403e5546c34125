"""evo.evaluate.combining: which programs go together, and with which constants. NumPy's own least squares are the reference."""

import numpy as np
import pytest

from evo.evaluate.combining import Combiner
from evo.instructions import shipped_instruction_set
from evo.language.program import Language, program_length
from evo.native.ptx_vm import VirtualMachine
from evo.native.tune import best_fits, sums_of_products
from evo.task import Task

NAMES = ("a", "b", "c", "d")
LANGUAGE = Language(shipped_instruction_set("default"), tuple((name, "f32") for name in NAMES), (("y", "f32"),))
FUNCTIONS = ("add_ftz_f32", "mul_ftz_f32", "div_approx_ftz_f32")
COLUMNS = dict(zip(NAMES, np.random.default_rng(7).uniform(1, 3, (4, 100)).astype(np.float32), strict=True))
A, B, C, D = (column.astype(np.float64) for column in COLUMNS.values())


class Law(Task):
    inputs = dict.fromkeys(NAMES, "f32")
    outputs = {"y": "f32"}
    measures = {"size": (0.0, 8.0)}
    reduction = "regression"

    def __init__(self, target, weights=None):
        self._target, self._weights = np.asarray(target, np.float32), weights

    def points(self):
        return COLUMNS

    def targets(self):
        return {"y": self._target}

    def weights(self):
        return self._weights


def words_of(*texts: str) -> np.ndarray:
    table = np.zeros((len(texts), 8), np.uint64)
    for row, text in zip(table, texts, strict=True):
        words = [LANGUAGE.encode(token) for token in [*text.split(), "return"]]
        row[: len(words)] = words
    return table


def outputs(words: list[int]) -> np.ndarray:
    machine = VirtualMachine(LANGUAGE.lowering)
    row = np.array([*words, LANGUAGE.encode("return")], np.uint64)
    return machine.store(row[None], [*COLUMNS.values(), None])[0, 0].astype(np.float64)


def left(y: np.ndarray, target: np.ndarray, weights: np.ndarray | float = 1.0) -> float:
    """The share of the target's variance that is left by the best linear function of y."""
    roots = np.sqrt(weights) * np.ones(len(y))
    columns = roots[:, None] * np.stack([np.ones(len(y)), y], axis=1)
    errors = [roots * target - x @ np.linalg.lstsq(x, roots * target)[0] for x in (columns, columns[:, :1])]
    return float(errors[0] @ errors[0] / (errors[1] @ errors[1]))


def by_kind(target, programs, partners, *, allowed=FUNCTIONS, weights=None, max_length=48, linear_scale=True):
    combiner = Combiner(LANGUAGE, Law(target, weights), allowed, linear_scale=linear_scale)
    joined = zip(*combiner.combine(words_of(*programs), words_of(*partners), max_length), strict=True)
    pairs = [(row[: program_length(row)].tolist(), partner) if partner >= 0 else None for row, partner in joined]
    return {kind: pairs[row :: len(combiner.kinds)] for row, kind in enumerate(combiner.kinds)}


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        ("sum", 3 * A * B - 5 * D + 2),
        ("product", 7 * A * B * (D - 0.3) + 1),
        ("quotient", (2 * A * B - 1) / (D + 4)),
    ],
)
def test_a_law_of_two_parts_is_found_in_one_step(kind, target):
    partners = ["%a", "%b", "%c", "%d", "%c %d mul_ftz_f32"]
    [pair] = by_kind(target, ["%a %b mul_ftz_f32"], partners)[kind]
    words, partner = pair
    assert partners[partner] == "%d"
    assert left(outputs(words), target) < 1e-11


@pytest.mark.parametrize("allowed", [FUNCTIONS, [*FUNCTIONS, "fma_rn_ftz_f32"]])
@pytest.mark.parametrize(
    ("kind", "target"),
    [("sum", 3 * A * B - 5 * D), ("product", A * B * (2 * D - 0.3)), ("quotient", 2 * A * B / (D + 4))],
)
def test_without_scaling_the_target_itself_is_found(kind, target, allowed):
    partners = ["%a", "%b", "%c", "%d", "%c %d mul_ftz_f32"]
    [(words, partner)] = by_kind(target, ["%a %b mul_ftz_f32"], partners, allowed=allowed, linear_scale=False)[kind]
    assert partners[partner] == "%d"
    np.testing.assert_allclose(outputs(words), target, rtol=2e-5, atol=2e-6)


def test_the_partner_and_the_constant_are_those_of_least_squares():
    noise = np.random.default_rng(1).normal(size=100)
    target = A + 0.5 * C * C + 0.1 * noise
    partners = {"%b": B, "%c": C, "%d": D, "%c %c mul_ftz_f32": C * C}
    errors = [
        np.linalg.lstsq(np.stack([np.ones(100), A, column], axis=1), np.float32(target))[1][0] for column in partners.values()
    ]
    [(words, partner)] = by_kind(target, ["%a"], list(partners))["sum"]
    assert partner == np.argmin(errors) == 3
    variance = ((target - target.mean()) ** 2).sum()
    assert left(outputs(words), target) * variance == pytest.approx(min(errors), rel=1e-6)


def test_only_allowed_functions_are_used_and_programs_fit():
    target = (A + 1) * (D + 2)
    assert by_kind(target, ["%a"], ["%d"], allowed=["add_ftz_f32", "mul_ftz_f32"]).keys() == {"sum", "product"}
    assert by_kind(target, ["%a"], ["%d"], allowed=["add_ftz_f32", "div_approx_ftz_f32"]).keys() == {"quotient"}
    assert by_kind(target, ["%a"], ["%d"], allowed=["mul_ftz_f32"]) == {}
    [(words, _)] = by_kind(target, ["%a"], ["%d"], max_length=6)["product"]
    assert len(words) == 5
    assert program_length(np.array(words, np.uint64)) == 5
    assert by_kind(target, ["%a"], ["%d"], max_length=5)["product"] == [None]


@pytest.mark.filterwarnings("error")
def test_what_explains_nothing_is_no_partner():
    """Constants, the program itself, what is not finite, and programs without an output."""
    nothing = ["2.0", "%a", "0.0 rcp_approx_ftz_f32", "swap.f32"]
    pairs = by_kind(A + B, ["%a", "0.0 rcp_approx_ftz_f32", "1.5"], nothing)
    assert pairs["sum"][:2] == [None, None]
    assert [each[1] for each in pairs["sum"][2:] if each] in ([], [1])  # a constant and a: a
    for pair in [*pairs["product"], *pairs["quotient"]]:
        assert pair is None or left(outputs(pair[0]), A + B) < left(A, A + B)


def test_sums_of_products_are_added_point_by_point():
    random = np.random.default_rng(3)
    x, y = random.normal(size=(3, 50)) * 1e8, random.normal(size=(4, 50))
    expected = np.zeros((3, 4))
    for point in range(50):
        expected += np.outer(x[:, point], y[:, point])
    np.testing.assert_array_equal(sums_of_products(x, y), expected)
    np.testing.assert_allclose(expected, x @ y.T, rtol=1e-9, atol=1e-3)


@pytest.mark.parametrize("num_best", [1, 4, 9])
def test_the_best_fits_are_those_of_least_squares_and_of_equals_the_first(num_best):
    random = np.random.default_rng(5)
    t, p, q = random.normal(size=50), random.normal(size=(3, 50)), random.normal(size=(9, 50))
    q[6], q[4] = q[2], 1.0  # two equals, and one that says nothing
    centred = p - p.mean(axis=1, keepdims=True)
    moments = (50.0, t.mean(), p.mean(axis=1), (centred**2).sum(axis=1), centred @ t)
    columns = (q.sum(axis=1)[None], (q @ t)[None], p @ q.T, (q**2).sum(axis=1)[None])
    places, fits = best_fits(*moments, columns, 1e-9, num_best)
    ones = np.ones(50)
    for row, program in enumerate(p):
        found = [np.linalg.lstsq(np.stack([ones, program, column], axis=1), t)[:2] for column in q]
        alone = np.linalg.lstsq(np.stack([ones, program], axis=1), t)[1]
        gains = np.array([(alone - left)[0] if len(left) else -np.inf for _, left in found]).round(9)
        np.testing.assert_array_equal(places[row], np.argsort(-gains, kind="stable")[:num_best])
        for place, (gain, *numbers) in zip(places[row], fits[:, row].T, strict=True):
            if np.isfinite(gain):
                np.testing.assert_allclose([gain, *numbers], [gains[place], *found[place][0]], rtol=1e-6, atol=1e-8)
