"""Distances of far, tiny and odd rows, and long sums: against definitions in float64 and exact sums."""

import math

import numpy as np
import pytest

from evo.errors import UserError
from evo.semiring import Semiring, zoo
from evo.semiring.blocks import BLOCK, PRODUCT_BLOCK, tree
from evo.semiring.contraction import run

ORDERS = [0, 0.1, 0.5, 1, 2, 3, 20, np.inf]
INF, NAN = np.inf, np.nan


def norm(differences, p):
    """In float64, relative to the largest."""
    d = np.abs(differences)
    if p == 0:
        return (d != 0).sum(-1) + 0 * d.sum(-1, where=np.isnan(d))
    largest = d.max(-1)
    by = np.where((largest > 0) & (largest < INF), largest, 1)
    return largest if p == INF else ((d / by[..., None]) ** p).sum(-1) ** (1 / p) * by


def rows(seed, scale, count):
    return (np.random.default_rng(seed).uniform(-1, 1, (count, 5)) * scale).astype(np.float32)


# exp2 and log2 are within 2 ulp: of a power, that is of p times the logarithm, and a root takes 1/p of it.
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("scale", [1, 1e-2, 1e-19, 1e-30, 1e19, 1e30, 1e38])
@pytest.mark.parametrize("p", ORDERS)
def test_norms_of_any_order_and_size_are_those_of_float64(p, scale):
    a, b = rows(1, scale, 6), rows(2, scale, 7)
    b[0], b[1, :2] = a[0], a[1, :2]  # equal rows, equal coordinates
    a[2, 0] = scale * 1e-6
    wanted = norm(a[:, None].astype(np.float64) - b, p)
    for found in (zoo.lp(a, b, p=float(p)), *([zoo.l2(a, b)] if p == 2 else [])):
        np.testing.assert_allclose(found, wanted.astype(np.float32), rtol=2e-5 if p < 1 else 5e-6)
    exact = zoo.lp(a.astype(np.float64), b, p=float(p))
    np.testing.assert_allclose(exact, wanted, rtol=1e-13)


@pytest.mark.parametrize("p", [-1.0, NAN, np.float32([1, -2])])
def test_a_negative_order_is_refused(p):
    with pytest.raises(UserError, match=r"p is .*; expected 0 or more"):
        zoo.lp(np.zeros((2, 2, 3), np.float32), np.ones((2, 3), np.float32), p=p)


def test_cosines_are_those_of_directions_whatever_the_length():
    a = np.float32([[1, 2, 3]])
    for scale in (1e-30, 1e-10, 1e15, 1e30, 1e38):
        np.testing.assert_allclose(zoo.cosine(a * np.float32(scale), np.float32([[3, 2, 1]])), 10 / 14, rtol=1e-6)


def test_p_norms_of_programs_have_hyperparameters_of_their_own():
    a, b = rows(3, 1, 4), rows(4, 1, 5)
    found = Semiring("(a - b)*scale", "p-norm")(a, b, scale=2.0, p=3.0)
    np.testing.assert_allclose(found, 2 * norm(a[:, None].astype(np.float64) - b, 3), rtol=2e-6)
    with pytest.raises(UserError, match="a p-norm begins at 0"):
        Semiring("a", "p-norm", 1.0)


@pytest.mark.parametrize("p", ORDERS)
@pytest.mark.parametrize("scale", [1.0, 1e30, 1e-30])
def test_gradients_of_norms_are_those_of_cdist(p, scale):
    torch = pytest.importorskip("torch")
    if p == 20 and scale != 1.0:
        pytest.skip("powers beyond float64, where torch.cdist gives inf and 0")
    a, b = torch.tensor(rows(1, scale, 6)), torch.tensor(rows(2, scale, 7))
    b[0], b[1, :2] = a[0], a[1, :2]
    weights = torch.rand(6, 7) + 0.5
    found, wanted = [[each.to(dtype).clone().requires_grad_() for each in (a, b)] for dtype in (torch.float32, torch.float64)]
    (zoo.lp(*found, p=float(p)) * weights).sum().backward()
    (torch.cdist(*wanted, p=float(p), compute_mode="donot_use_mm_for_euclid_dist") * weights).sum().backward()
    for one, other in zip(found, wanted, strict=True):
        size = max(float(other.grad.abs().max()), 1e-30)
        torch.testing.assert_close(one.grad.double() / size, other.grad / size, rtol=1e-4, atol=1e-5 if p < 1 else 1e-6)
    if p == 2:
        again = [each.detach().requires_grad_() for each in found]
        (zoo.l2(*again) * weights).sum().backward()
        torch.testing.assert_close(again[0].grad.double(), wanted[0].grad, rtol=1e-5, atol=1e-6)


def test_terms_of_minus_infinity_have_no_gradient():
    torch = pytest.importorskip("torch")
    a = torch.tensor([[-INF, -INF, -INF], [0.5, -INF, 1.0]], requires_grad=True)
    b = torch.randn(4, 3, generator=torch.Generator().manual_seed(1))
    b[0] = -INF
    b.requires_grad_()
    found = zoo.log_sum_exp(a, b)
    found[found > -INF].sum().backward(retain_graph=True)
    shifted = a.detach()[1] + b.detach()[1:]
    weights = torch.softmax(shifted.double(), -1)
    torch.testing.assert_close(a.grad.double(), torch.stack([torch.zeros(3).double(), weights.sum(0)]), rtol=1e-6, atol=0)
    torch.testing.assert_close(b.grad[1:].double(), weights, rtol=1e-6, atol=0)
    a.grad = None
    found.sum().backward()
    assert torch.isfinite(a.grad).all() and not a.grad[0].any()


def terms_of(kind, count):
    random = np.random.default_rng(count)
    return {
        "same": lambda: np.full(count, 0.1),
        "positive": lambda: random.uniform(0, 1, count),
        "both signs": lambda: random.uniform(0, 1, count) * np.where(np.arange(count) % 2, 1, -1),
        "large first": lambda: np.r_[2.0**23, random.uniform(0, 1, count - 1)],
        "cancelling": lambda: np.r_[np.full(count // 2, 0.1), np.full(count - count // 2, -0.1)],
    }[kind]().astype(np.float32)


@pytest.mark.parametrize("count", [BLOCK, BLOCK + 1, 1000, 1 << 16])  # a million tenths are below
@pytest.mark.parametrize("kind", ["same", "positive", "both signs", "large first", "cancelling"])
def test_sums_keep_the_bound_of_the_guide(kind, count):
    terms, unit = terms_of(kind, count), 2.0**-24
    a, zeros, ones = terms[None], np.zeros((1, count), np.float32), np.ones((1, count), np.float32)
    magnitude = math.fsum(map(abs, terms.tolist()))
    squares = math.fsum(each * each for each in terms.tolist())
    levels = max(math.ceil(math.log2(count / BLOCK)), 0)
    bound = (min(count, BLOCK) + levels) * unit
    products = (min(count, PRODUCT_BLOCK) + levels) * unit
    plain = Semiring("a*b + 0*b")  # which no BLAS computes
    assert abs(float(plain(a, ones)[0, 0]) - math.fsum(terms.tolist())) <= bound * magnitude
    assert abs(float(zoo.plus_times(a, ones)[0, 0]) - math.fsum(terms.tolist())) <= products * magnitude
    assert abs(float(zoo.l1(a, zeros)[0, 0]) - magnitude) <= bound * magnitude
    assert abs(float(zoo.squared_l2(a, zeros)[0, 0]) - squares) <= (bound + 2 * unit) * squares
    assert abs(float(zoo.l2(a, zeros)[0, 0]) - squares**0.5) <= (bound / 2 + 4 * unit) * squares**0.5
    largest = float(terms.max())
    log = largest + math.log(math.fsum(math.exp(each - largest) for each in terms.tolist()))
    rest = (6 * (largest - float(terms.min())) + 8) * unit + 2 * unit * abs(log)
    online = float(Semiring("b + a*1", "log-sum-exp")(a, zeros)[0, 0])
    assert abs(online - log) <= 6 * bound + rest
    assert abs(float(zoo.log_sum_exp(a, zeros)[0, 0]) - log) <= 6 * products + rest


def test_blocks_are_joined_as_a_balanced_tree():
    assert tree(0, 11, 2, lambda first, end: [first, end], lambda one, other: [one, other]) == [
        [[[0, 2], [2, 4]], [[4, 6], [6, 8]]],
        [[8, 10], [10, 11]],
    ]
    assert tree(0, 0, 2, lambda first, end: [first, end], None) == [0, 0]


def test_results_and_gradients_of_long_rows_come_together():
    torch = pytest.importorskip("torch")
    a, b = (torch.randn(3, 700, generator=torch.Generator().manual_seed(2)) for _ in range(2))
    a, b = a.requires_grad_(), (b + 1).requires_grad_()
    weights = torch.rand(3, 3, requires_grad=True)
    (first,) = torch.autograd.grad((zoo.squared_l2(a, b) * weights).sum(), a, create_graph=True)
    found = torch.autograd.grad((first.square()).sum(), (a, b, weights))
    x, y, w = (each.detach().double().requires_grad_() for each in (a, b, weights))
    (of_x,) = torch.autograd.grad(((x[:, None] - y).square().sum(-1) * w).sum(), x, create_graph=True)
    for one, other in zip(found, torch.autograd.grad(of_x.square().sum(), (x, y, w)), strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-5, atol=1e-4)
    [total] = run(zoo.l1.fold, [a.detach().numpy(), b.detach().numpy()])
    np.testing.assert_allclose(total, (a[:, None] - b).detach().double().abs().sum(-1), rtol=1e-5)
