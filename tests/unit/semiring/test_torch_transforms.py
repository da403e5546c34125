"""Derivatives of every mode and torch.func's transforms of semirings, against compositions of PyTorch's own operators in float64;
and that autocast changes no bit of a semiring.
"""

from itertools import compress, product

import pytest

torch = pytest.importorskip("torch")

import torch.autograd.forward_ad as forward_ad  # noqa: E402 - PyTorch need not be there
from torch import func  # noqa: E402

from evo.errors import UserError  # noqa: E402
from evo.semiring import Semiring, zoo  # noqa: E402


def difference(a, b):
    return a[..., :, None, :] - b[..., None, :, :]


def distance(a, b):
    return difference(a, b).square().sum(-1).sqrt()


def plus(a, b):
    return a[..., :, None, :] + b[..., None, :, :]


def log_sum_exp(a, b):
    largest = plus(a, b).detach().amax(-1)
    return (plus(a, b) - largest[..., None]).exp().sum(-1).log() + largest


def unit(rows):
    return rows / rows.norm(dim=-1, keepdim=True)


def matern(twice_nu, polynomial):
    def kernel(a, b, length):
        r = twice_nu**0.5 * distance(a, b) / length[..., None, None]
        return polynomial(r) * (-r).exp()

    return kernel


REFERENCE = {
    "plus_times": lambda a, b: a @ b.mT,
    "min_plus": lambda a, b: plus(a, b).amin(-1),
    "max_plus": lambda a, b: plus(a, b).amax(-1),
    "max_times": lambda a, b: (a[..., :, None, :] * b[..., None, :, :]).amax(-1),
    "log_sum_exp": log_sum_exp,
    "l1": lambda a, b: difference(a, b).abs().sum(-1),
    "squared_l2": lambda a, b: difference(a, b).square().sum(-1),
    "l2": distance,
    "lp": lambda a, b, p: difference(a, b).abs().pow(p[..., None, None, None]).sum(-1).pow(1 / p[..., None, None]),
    "chebyshev": lambda a, b: difference(a, b).abs().amax(-1),
    "hamming": lambda a, b: (difference(a, b) != 0).double().sum(-1) + 0 * difference(a, b).sum(-1),
    "cosine": lambda a, b: unit(a) @ unit(b).mT,
    "gaussian": lambda a, b, gamma: (-gamma[..., None, None] * difference(a, b).square().sum(-1)).exp(),
    "laplace": lambda a, b, gamma: (-gamma[..., None, None] * difference(a, b).abs().sum(-1)).exp(),
    "matern_12": matern(1, torch.ones_like),
    "matern_32": matern(3, lambda r: 1 + r),
    "matern_52": matern(5, lambda r: 1 + r + r * r / 3),
}


def of_zoo(name):
    semiring = getattr(zoo, name)
    return lambda a, b, *hyper: semiring(a, b, **dict(zip(semiring.hyper, hyper, strict=True)))


def arguments(name):
    torch.manual_seed(7)
    hyper = [torch.tensor([1.7, 2.3]).double()] if getattr(zoo, name).hyper else []
    return [torch.randn(2, 4, 3).double(), torch.randn(5, 3).double(), *hyper]


def same(transform, name, *given, tolerance=3e-6):
    """A transform of the semiring gives what it gives of the reference: constants of formulas are those of float32."""
    found, wanted = transform(of_zoo(name), *given), transform(REFERENCE[name], *given)
    torch.testing.assert_close(found, wanted, rtol=tolerance, atol=tolerance)


def on_duals(function, primals, rates):
    with forward_ad.dual_level():
        given = [each if rate is None else forward_ad.make_dual(each, rate) for each, rate in zip(primals, rates, strict=True)]
        return tuple(forward_ad.unpack_dual(function(*given)))


def of_some(function, whole, mask):
    """The function of the arguments in a mask."""

    def part(*given):
        left = iter(given)
        return function(*(next(left) if is_one else each for each, is_one in zip(whole, mask, strict=True)))

    return part


# Each subset of arguments for one semiring without and one with a hyperparameter, all arguments for the others.
MASKS = [
    (name, mask)
    for name in REFERENCE
    for mask in product([0, 1], repeat=2 + len(getattr(zoo, name).hyper))
    if all(mask) or (any(mask) and name in ("l2", "gaussian"))
]


@pytest.mark.parametrize(("name", "mask"), MASKS)
def test_every_argument_has_derivatives_of_both_modes_and_their_mixtures(name, mask):
    whole = arguments(name)
    weights = torch.randn(2, 4, 5).double()
    some = tuple(compress(whole, mask))
    rates, others = (tuple(torch.randn_like(each) for each in some) for _ in range(2))
    by_all = tuple(range(len(some)))
    by_place = dict(zip(compress(range(len(whole)), mask), rates, strict=True))

    def total(function):
        return lambda *given: (of_some(function, whole, mask)(*given) * weights).sum()

    for transform in (
        lambda f: func.jvp(of_some(f, whole, mask), some, rates),
        lambda f: on_duals(f, whole, [by_place.get(index) for index in range(len(whole))]),
        lambda f: func.linearize(of_some(f, whole, mask), *some)[1](*rates),
        lambda f: func.vjp(of_some(f, whole, mask), *some)[1](weights),
        lambda f: func.grad(total(f), by_all)(*some),
        lambda f: func.jvp(func.grad(total(f), by_all), some, rates),
        lambda f: func.grad(lambda *given: func.jvp(total(f), given, rates)[1], by_all)(*some),
        lambda f: func.jvp(lambda *given: func.jvp(of_some(f, whole, mask), given, rates)[1], some, others),
    ):
        same(transform, name)


@pytest.mark.parametrize("name", REFERENCE)
def test_jacobians_and_hessians_batch_derivatives(name):
    given = arguments(name)
    by_all = tuple(range(len(given)))
    weights = torch.randn(3, 2, 4, 5).double()

    def of_batch(function):
        tensors = [each.clone().requires_grad_() for each in given]
        return torch.autograd.grad(function(*tensors), tensors, weights, is_grads_batched=True)

    def older(function, **options):
        return torch.autograd.functional.jacobian(function, tuple(given), vectorize=True, **options)

    for transform in (
        lambda f: func.jacfwd(f, by_all)(*given),
        lambda f: func.jacrev(f, by_all)(*given),
        lambda f: func.hessian(lambda *each: (f(*each) * weights[0]).sum(), by_all)(*given),
        of_batch,
        older,
        lambda f: older(f, strategy="forward-mode"),
    ):
        same(transform, name)


@pytest.mark.parametrize("name", REFERENCE)
def test_vmap_goes_along_any_axis_of_any_argument(name):
    torch.manual_seed(8)
    a, b, hyper = torch.randn(6, 2, 4, 3).double(), torch.randn(5, 6, 3).double(), arguments(name)[2:]
    rest = (None,) * len(hyper)
    same(lambda f: func.vmap(f, (0, 1, *rest))(a, b, *hyper), name)
    same(lambda f: func.vmap(f, (None, 1, *rest))(a[0], b, *hyper), name)
    same(lambda f: func.vmap(func.vmap(f, (0, None, *rest)), (None, 1, *rest))(a, b, *hyper), name)
    same(lambda f: func.vmap(func.grad(lambda *each: f(*each).sum()), (0, 1, *rest))(a, b, *hyper), name)
    if hyper:
        numbers = torch.rand(6).double() + 1.5
        same(lambda f: func.vmap(f, (0, None, 0))(a, b[:, 0], numbers), name)


def test_transforms_of_what_has_no_gradient_say_so():
    a, semiring = torch.randn(2, 3), Semiring("a + b", "acc*x", 1.0)
    assert func.vmap(lambda each: semiring(each, a))(torch.stack([a, a])).shape == (2, 2, 2)
    with pytest.raises(UserError, match="has no gradient"):
        func.jvp(lambda each: semiring(each, a), (a,), (a,))


@pytest.mark.parametrize("name", ["plus_times", "cosine", "log_sum_exp", "l2", "gaussian"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_autocast_changes_no_bit_of_results_and_derivatives(name, dtype):
    torch.manual_seed(9)
    rows = [torch.randn(20, 64).to(dtype), torch.randn(30, 64).to(dtype)]
    hyper = dict.fromkeys(getattr(zoo, name).hyper, 0.01)
    weights = torch.randn(20, 30)

    def derivatives(inside, outside):
        a, b = (each.clone().requires_grad_() for each in rows)
        with torch.autocast("cpu", torch.bfloat16, enabled=inside):
            found = getattr(zoo, name)(a, b, **hyper)
            tangent = func.jvp(lambda each: getattr(zoo, name)(each, b, **hyper), (a,), (a,))[1]
        with torch.autocast("cpu", torch.bfloat16, enabled=outside):
            first = torch.autograd.grad(found, (a, b), weights.to(found.dtype), create_graph=True)
            second = torch.autograd.grad(sum(each.double().square().sum() for each in first), (a, b))
        return [found, tangent, *first, *second]

    wanted = derivatives(False, False)
    assert wanted[0].dtype == torch.promote_types(dtype, torch.float32)
    for outside in (False, True):
        for found, each in zip(derivatives(True, outside), wanted, strict=True):
            torch.testing.assert_close(found, each, rtol=0, atol=0)
