"""evo.semiring on arrays: results against NumPy's broadcasting in float64, at edges of every kind."""

import numpy as np
import pytest

import evo
import evo.semiring.contraction as contraction
from evo.errors import UserError
from evo.native.ptx_vm import levels
from evo.semiring import Semiring, zoo
from evo.semiring.contraction import run
from evo.semiring.semiring import log_product

RANDOM = np.random.default_rng(20)


def rows(*shape, dtype=np.float32):
    return RANDOM.normal(size=shape).astype(dtype)


def log_sum_exp(x, axis):
    largest = x.max(axis, keepdims=True)
    return np.log(np.exp(x - largest).sum(axis)) + largest.squeeze(axis)


def broadcast(a, b):
    return a.astype(np.float64)[..., :, None, :], b.astype(np.float64)[..., None, :, :]


REFERENCE = {
    "plus_times": ({}, lambda a, b: (a * b).sum(-1)),
    "min_plus": ({}, lambda a, b: (a + b).min(-1)),
    "max_plus": ({}, lambda a, b: (a + b).max(-1)),
    "max_times": ({}, lambda a, b: (a * b).max(-1)),
    "log_sum_exp": ({}, lambda a, b: log_sum_exp(a + b, -1)),
    "l1": ({}, lambda a, b: np.abs(a - b).sum(-1)),
    "squared_l2": ({}, lambda a, b: ((a - b) ** 2).sum(-1)),
    "l2": ({}, lambda a, b: np.sqrt(((a - b) ** 2).sum(-1))),
    "lp": ({"p": 3.0}, lambda a, b: (np.abs(a - b) ** 3).sum(-1) ** (1 / 3)),
    "chebyshev": ({}, lambda a, b: np.abs(a - b).max(-1)),
    "hamming": ({}, lambda a, b: (a != b).sum(-1)),
    "gaussian": ({"gamma": 2.0**-9}, lambda a, b: np.exp(-(2.0**-9) * ((a - b) ** 2).sum(-1))),
    "laplace": ({"gamma": 2.0**-9}, lambda a, b: np.exp(-(2.0**-9) * np.abs(a - b).sum(-1))),
    "matern_12": ({"length": 9.0}, lambda a, b: matern(a, b, 1, np.ones_like)),
    "matern_32": ({"length": 9.0}, lambda a, b: matern(a, b, 3, lambda r: 1 + r)),
    "matern_52": ({"length": 9.0}, lambda a, b: matern(a, b, 5, lambda r: 1 + r + r * r / 3)),
}


def matern(a, b, twice_nu, polynomial):
    r = np.sqrt(twice_nu) * np.sqrt(((a - b) ** 2).sum(-1)) / 9.0
    return polynomial(r) * np.exp(-r)


@pytest.mark.parametrize("name", REFERENCE)
def test_the_zoo_agrees_with_float64_within_4_ulp_times_the_root_of_k(name):
    hyper, reference = REFERENCE[name]
    a, b = rows(70, 200), rows(150, 200)
    found, wanted = getattr(zoo, name)(a, b, **hyper), reference(*broadcast(a, b))
    assert found.dtype == np.float32 and found.shape == (70, 150)
    # Of what is summed: products of both signs cancel.
    scale = np.maximum(np.abs(wanted), REFERENCE["plus_times"][1](*broadcast(abs(a), abs(b))) if name == "plus_times" else 1e-6)
    assert (np.abs(found - wanted) <= 4 * np.finfo(np.float32).eps * np.sqrt(200) * scale).all()
    exact = getattr(zoo, name)(a.astype(np.float64), b, **hyper)
    assert exact.dtype == np.float64
    np.testing.assert_allclose(exact, wanted, rtol=2e-7)  # constants are those of float32


SHAPES = [(1, 1, 1), (3, 127, 5), (2, 128, 16), (5, 129, 17), (33, 513, 40), (600, 3, 33), (300, 1100, 2)]


@pytest.mark.parametrize("level", levels())
@pytest.mark.parametrize("shape", SHAPES)
def test_every_size_and_level_gives_each_pair_its_own_result(shape, level):
    m, n, k = shape
    a, b = rows(m, k), rows(n, k)
    terms = a[:, None] + b[None]  # in float32, as they are computed: a minimum adds no rounding
    found, place = run(zoo.min_plus.fold, [a, b], level)
    np.testing.assert_array_equal(found, terms.min(-1))
    np.testing.assert_array_equal(place, terms.argmin(-1))
    [total] = run(zoo.l1.fold, [a, b], level)
    np.testing.assert_allclose(total, np.abs(a[:, None] - b[None]).sum(-1, dtype=np.float64), rtol=1e-5, atol=1e-6)


def test_all_levels_and_numbers_of_threads_give_the_same_bits(monkeypatch):
    a, b = rows(300, 50), rows(700, 50)
    with contraction.ThreadPoolExecutor(1) as one_thread, contraction.ThreadPoolExecutor(3) as three:
        for fold in (zoo.log_sum_exp.fold, zoo.lp.fold, zoo.gaussian.whole):
            arrays = [a, b, np.asarray(1.5, np.float32)][: len(fold.arrays)]
            monkeypatch.setattr(contraction, "_threads", lambda: one_thread)
            one = run(fold, arrays, levels()[0])
            monkeypatch.setattr(contraction, "_threads", lambda: three)
            for level in levels():
                np.testing.assert_array_equal(run(fold, arrays, level), one)


def test_the_accumulator_begins_at_the_identity_which_an_empty_k_gives():
    a, b = np.zeros((2, 0), np.float32), np.zeros((3, 0), np.float32)
    for semiring, identity in ((zoo.plus_times, 0), (zoo.l1, 0), (zoo.min_plus, np.inf), (zoo.max_plus, -np.inf)):
        np.testing.assert_array_equal(semiring(a, b), np.full((2, 3), identity))
    np.testing.assert_array_equal(zoo.log_sum_exp(a, b), np.full((2, 3), -np.inf))
    np.testing.assert_array_equal(zoo.gaussian(a, b, gamma=1), np.ones((2, 3)))
    np.testing.assert_array_equal(Semiring("a*b", "min", 2.0)(np.float32([[3]]), np.float32([[1], [0.5]])), [[2, 1.5]])
    assert zoo.l1(a[:0], b).shape == (0, 3) and zoo.l1(a, b[:0]).shape == (2, 0)


def test_minimum_prefers_numbers_to_nan_and_sums_keep_it():
    a, b = np.float32([[np.nan, 1.0]]), np.float32([[0.0, 2.0]])
    assert zoo.min_plus(a, b) == 3.0 and zoo.max_plus(a, b) == 3.0
    assert np.isnan(zoo.l1(a, b)) and np.isnan(zoo.log_sum_exp(a, b))
    [found, place] = run(zoo.min_plus.fold, [np.float32([[np.nan]]), np.float32([[0]])])
    assert found == np.inf and place == -1


def test_log_sum_exp_is_stable_and_keeps_infinities():
    inf = np.float32(np.inf)
    general = Semiring("b + a*1", "log-sum-exp")  # which is no matrix product
    assert not general.is_log_product and zoo.log_sum_exp.is_log_product
    for row in ([1e4, 1e4], [-1e4, -1e4], [-inf, 0], [-inf, -inf], [inf, 0], [inf, inf], [3e38, 3e38], [0, 100], [0, -200]):
        a = np.float32([row])
        wanted = a.max() if np.isinf(a.max()) else log_sum_exp(a.astype(np.float64), -1)[0]
        for semiring in (general, zoo.log_sum_exp):
            np.testing.assert_allclose(semiring(a, np.zeros((1, 2), np.float32))[0, 0], wanted, rtol=2e-7)
        np.testing.assert_allclose(general(a.astype(np.float64), np.zeros((1, 2)))[0, 0], wanted, rtol=1e-7)


def test_exponentials_that_underflow_are_summed_online():
    a, b = np.float32([[200, 0, 0]]), np.float32([[-200, 0, -200]])
    assert log_product(a, b) is None  # the largest of each meet nowhere
    np.testing.assert_allclose(zoo.log_sum_exp(a, b), [[np.log(2)]], rtol=1e-6)
    a, b = rows(40, 30), rows(50, 30)
    np.testing.assert_allclose(log_product(a, b), run(zoo.log_sum_exp.whole, [a, b])[0], rtol=1e-6)


def test_views_strides_batches_and_hyperparameters_of_a_batch():
    a, b = rows(2, 1, 9, 40)[..., ::-3], rows(3, 14, 60).swapaxes(-1, -2)[:, ::2, :]
    p = np.array([1.5, 2.0, 3.0], np.float32)
    found = zoo.lp(a, b, p=p)
    assert found.shape == (2, 3, 9, 30)
    left, right = broadcast(a, b)
    wanted = (np.abs(left - right) ** p[:, None, None, None]).sum(-1) ** (1 / p[:, None, None])
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_a_program_may_be_stack_ptx_or_words():
    a, b = rows(5, 6), rows(7, 6)
    wanted = zoo.l1(a, b)
    np.testing.assert_array_equal(Semiring("%b %a sub_ftz_f32 abs_ftz_f32")(a, b), wanted)
    from evo.language.program import parse_program
    from evo.language.real_programs import language

    words = parse_program(language(("a", "b", "s"), ("y",)), "%s %b %a sub_ftz_f32 abs_ftz_f32 mul_ftz_f32", "test")
    np.testing.assert_allclose(Semiring(words, hyper=("s",))(a, b, s=2.0), 2 * wanted, rtol=1e-6)


def test_a_program_may_be_an_elite():
    class Distance(evo.Task):
        inputs, outputs = {"b": "f32", "a": "f32"}, {"y": "f32"}
        measures = {"num_instructions": (0.0, 8.0)}

        def points(self):
            return {"b": np.float32([1, 2, 3]), "a": np.float32([3, -1, 4])}

        def programs(self):
            return ["y = abs(a - b)"]

        def score(self, outputs, programs):
            return evo.Scores(-np.abs(outputs["y"] - [2, 3, 1]).mean(axis=1), programs.num_instructions[:, None])

    a, b = rows(5, 6), rows(7, 6)
    elite = evo.evolve(Distance, archive=[8], generations=1, seed=1, evaluation={"threads": 1}).program()
    np.testing.assert_array_equal(Semiring(elite, "max")(a, b), zoo.chebyshev(a, b))


def test_what_is_a_matrix_product_is_found_by_the_program():
    assert Semiring("%a %b mul_ftz_f32", "acc + x").is_matrix_product
    assert Semiring("p = b*a\np", "x + acc").is_matrix_product
    assert not Semiring("a*b", identity=1.0).is_matrix_product and not Semiring("a*b + b").is_matrix_product


def test_an_accumulate_may_be_any_formula():
    a, b = rows(3, 4), rows(5, 4)
    product = Semiring("a + b", "acc*x", 1.0)(a, b)
    np.testing.assert_allclose(product, (a[:, None] + b).prod(-1), rtol=1e-5)


def test_the_nearest_come_in_order_and_ties_to_the_lowest_index(monkeypatch):
    monkeypatch.setattr("evo.semiring.semiring._ROWS_AT_ONCE_BYTES", 4 * 90 * 7)  # rows in several parts
    a, b = RANDOM.integers(0, 4, (2, 31, 3)).astype(np.float32), RANDOM.integers(0, 4, (90, 3)).astype(np.float32)
    whole = zoo.l1(a, b)
    for largest in (False, True):
        order = np.argsort(-whole if largest else whole, -1, kind="stable")[..., :11]
        found = zoo.l1.nearest(a, b, 11, largest=largest)
        np.testing.assert_array_equal(found.indices, order)
        np.testing.assert_array_equal(found.values, np.take_along_axis(whole, order, -1))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Semiring("a - _c"), "a semiring's hyperparameter cannot be called '_c'"),
        (lambda: Semiring("a - p1"), "a semiring's hyperparameter cannot be called 'p1'"),  # a register of compilers
        (lambda: Semiring("a - c")(rows(2, 3), rows(2, 3)), "hyperparameter 'c' is missing: write c=number"),
        (lambda: zoo.lp(rows(2, 3), rows(2, 3), q=2), "unknown hyperparameter 'q'"),
        (lambda: Semiring("a -"), "multiply:1: not a formula"),
        (
            lambda: Semiring("a - b", "mim"),
            "unknown accumulate 'mim', one of: sum, min, max, log-sum-exp; or a formula of acc and x",
        ),
        (lambda: Semiring("a - b", "acc*x"), "accumulate 'acc*x': give its identity"),
        (lambda: zoo.l1(rows(2, 3).astype(int), rows(2, 3)), "a is of int64; expected float32"),
        (lambda: zoo.l1.nearest(rows(2, 3), rows(2, 3), 3), "k is 3; expected 1 to 2"),
        (lambda: zoo.l1.nearest(rows(2, 3), rows(2, 3), 1.5), "k is 1.5; expected 1 to 2"),
        (lambda: Semiring("a*b", identity="x"), "identity is 'x'; expected a number"),
        (lambda: Semiring("a*b", 0.0), "unknown accumulate '0.0', one of: sum"),
        (lambda: Semiring(np.multiply), "multiply is of ufunc; expected a formula, Stack PTX as text, or its words"),
        (lambda: Semiring("a*largest"), "a semiring's hyperparameter cannot be called 'largest'"),
        (lambda: zoo.lp(rows(2, 3), rows(2, 3), p="3"), "p is of <U1; expected float32"),
    ],
)
def test_mistakes_are_named(call, message):
    with pytest.raises(UserError) as raised:
        call()
    assert message in str(raised.value)


@pytest.mark.parametrize("semiring", [zoo.l1, zoo.plus_times, zoo.log_sum_exp])  # the last two by matrix products
def test_shapes_that_do_not_fit_are_named(semiring):
    with pytest.raises(ValueError, match=r"b: K is 4, but 3 in an array before it; shape \(5, 4\)"):
        semiring(rows(2, 3), rows(5, 4))
    with pytest.raises(ValueError, match="batches do not broadcast"):
        semiring(rows(2, 2, 3), rows(3, 5, 3))
    for call in (semiring, lambda a, b: semiring.nearest(a, b, 1)):
        with pytest.raises(ValueError, match=r"a: expected shape \(..., M, K\), got \(3,\)"):
            call(rows(3), rows(5, 3))


def test_cosine_of_rows():
    a, b = rows(3, 8), rows(4, 8)
    b[0] = 0
    wanted = (a @ b.T) / (np.linalg.norm(a, axis=1)[:, None] * np.linalg.norm(b, axis=1).clip(1e-9))
    np.testing.assert_allclose(zoo.cosine(a, b), wanted, atol=1e-6)
    np.testing.assert_array_equal(zoo.cosine.nearest(a, b, 2, largest=True).indices, np.argsort(-wanted)[:, :2])
    half = np.full((1, 4), 300, np.float16)  # whose squares float16 does not have
    np.testing.assert_allclose(zoo.cosine(half, half), 1)
