"""evo.semiring on PyTorch's tensors: gradients against finite differences, and what a tensor may be."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from evo.errors import UserError  # noqa: E402 - PyTorch need not be there
from evo.semiring import Semiring, torch_operator, zoo  # noqa: E402

HYPER = {"lp": "p", "gaussian": "gamma", "laplace": "gamma", "matern_12": "length", "matern_32": "length", "matern_52": "length"}
SUMS = ["plus_times", "l1", "squared_l2", "l2", "lp", "gaussian", "laplace", "matern_12", "matern_32", "matern_52"]
ZOO = [*SUMS, "min_plus", "max_plus", "max_times", "log_sum_exp", "chebyshev"]


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(5)


def random(*shape, dtype=torch.float64):
    return torch.randn(shape, dtype=dtype, requires_grad=True)


def of_zoo(name):
    """A function of tensors, and its arguments in float64."""
    semiring, arguments = getattr(zoo, name), [random(2, 4, 3), random(5, 3)]
    if name not in HYPER:
        return semiring, arguments
    hyper = torch.tensor([1.7, 2.3], dtype=torch.float64, requires_grad=True)
    return (lambda a, b, h: semiring(a, b, **{HYPER[name]: h})), [*arguments, hyper]


@pytest.mark.parametrize("name", ZOO)
def test_gradients_are_those_of_finite_differences(name):
    function, arguments = of_zoo(name)
    assert torch.autograd.gradcheck(function, arguments)


@pytest.mark.parametrize("name", [*SUMS, "log_sum_exp", "min_plus"])
def test_second_derivatives_are_those_of_finite_differences(name):
    function, arguments = of_zoo(name)
    assert torch.autograd.gradgradcheck(function, arguments)


@pytest.mark.parametrize("shape", [(70, 300, 40), (300, 70, 17), (9, 1100, 3)])
def test_gradients_of_large_sums_reach_every_row_and_column(shape):
    m, n, k = shape
    a, b = random(m, k, dtype=torch.float32), random(n, k, dtype=torch.float32)
    weights = torch.randn(m, n)
    zoo.squared_l2(a, b).backward(weights)
    of_a, of_b = (each.detach().double().requires_grad_() for each in (a, b))
    torch.cdist(of_a, of_b).square().backward(weights.double())
    torch.testing.assert_close(a.grad.double(), of_a.grad, rtol=1e-4, atol=1e-3)
    torch.testing.assert_close(b.grad.double(), of_b.grad, rtol=1e-4, atol=1e-3)


def test_a_log_sum_exp_has_the_same_gradients_where_exponentials_underflow():
    near = torch.randn(4, 3), torch.randn(5, 3)
    far = torch.eye(3)[:2] * 300, torch.eye(3) * -300  # the largest of both meet nowhere
    for values in (near, far):
        for semiring in (zoo.log_sum_exp, Semiring("b + a*1", "log-sum-exp")):  # only the first may be a matrix product
            a, b = (each.clone().requires_grad_() for each in values)
            found = semiring(a, b)
            found.sum().backward()
            x, y = (each.clone().double().requires_grad_() for each in values)
            wanted = torch.logsumexp(x[:, None] + y, -1)
            wanted.sum().backward()
            for one, other in ((found, wanted), (a.grad, x.grad), (b.grad, y.grad)):
                torch.testing.assert_close(one.double(), other, rtol=1e-4, atol=1e-4)


def test_equal_rows_have_no_nan_in_gradients():
    for name in ZOO:
        function, arguments = of_zoo(name)
        rows = torch.ones(2, 3, 3, dtype=torch.float32, requires_grad=True)
        function(rows, rows, *(each.float() for each in arguments[2:])).sum().backward()
        assert torch.isfinite(rows.grad).all(), name
    zeros = torch.zeros(2, 3, requires_grad=True)
    zoo.cosine(zeros, torch.ones(4, 3)).sum().backward()
    assert torch.isfinite(zeros.grad).all()


def test_of_equal_terms_the_first_has_the_gradient():
    a, b = torch.zeros(1, 3, requires_grad=True), torch.tensor([[2.0, 1.0, 1.0]], requires_grad=True)
    zoo.min_plus(a, b).backward(torch.tensor([[7.0]]))
    assert a.grad.tolist() == b.grad.tolist() == [[0, 7, 0]]
    a = torch.zeros(1, 2, requires_grad=True)
    Semiring("a + b", "min", -1.0)(a, torch.zeros(1, 2)).sum().backward()  # nothing is below the identity
    assert a.grad.tolist() == [[0, 0]]


def test_bfloat16_and_float16_are_summed_in_float32():
    for dtype in (torch.bfloat16, torch.float16):
        a, b = torch.randn(20, 9).to(dtype).requires_grad_(), torch.randn(30, 9).to(dtype)
        found = zoo.l1(a, b)
        assert found.dtype == torch.float32
        torch.testing.assert_close(found, zoo.l1(a.float(), b.float()), rtol=0, atol=0)
        found.sum().backward()
        assert a.grad.dtype == dtype
        whole = a.detach().float().requires_grad_()
        zoo.l1(whole, b.float()).sum().backward()
        torch.testing.assert_close(a.grad, whole.grad.to(dtype), rtol=0, atol=0)


def test_a_tensor_beside_an_array_gives_a_tensor():
    found = zoo.l1(torch.ones(2, 3), np.zeros((4, 3), np.float32))
    assert isinstance(found, torch.Tensor) and found.tolist() == [[3.0] * 4] * 2
    nearest = zoo.l1.nearest(torch.tensor([[0.0]]), torch.tensor([[3.0], [-1.0], [2.0]]), 2)
    assert isinstance(zoo.l1.nearest(np.zeros((1, 1), np.float32), torch.ones(1, 1), 1).values, torch.Tensor)
    assert nearest.indices.tolist() == [[1, 2]] and nearest.values.tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize("name", ["l1", "gaussian", "min_plus", "log_sum_exp"])
def test_compile_keeps_the_operator_in_one_graph(name):
    function, arguments = of_zoo(name)
    arguments = [each.detach().float().requires_grad_() for each in arguments]
    graphs = []

    def backend(graph, _):
        graphs.append([node.target for node in graph.graph.nodes if node.op == "call_function"])
        return graph

    found = torch.compile(lambda *given: function(*given).sum(), backend=backend, fullgraph=True)(*arguments)
    torch.testing.assert_close(found, function(*arguments).sum())
    assert len(graphs) == 1 and torch.ops.evo.fold.default in graphs[0]
    with_number = torch.compile(lambda a, b: zoo.gaussian(a, b, gamma=0.5), backend="eager", fullgraph=True)
    torch.testing.assert_close(with_number(*arguments[:2]), zoo.gaussian(*arguments[:2], gamma=0.5))


def test_the_operator_passes_pytorchs_own_checks():
    operands = [random(3, 4, dtype=torch.float32), random(5, 4, dtype=torch.float32)]
    for semiring in (zoo.l1, zoo.min_plus, zoo.log_sum_exp):
        assert set(torch.library.opcheck(torch.ops.evo.fold.default, (operands, semiring.key)).values()) == {"SUCCESS"}


def test_what_has_no_gradient_says_so():
    with pytest.raises(UserError, match="has no gradient; it has one with sum, min, max or log-sum-exp"):
        Semiring("a + b", "acc*x", 1.0)(random(2, 3), random(2, 3)).sum().backward()
    with pytest.raises(UserError, match=r"a is of torch.int64; expected torch.float32"):
        zoo.l1(torch.ones(2, 3, dtype=torch.int64), torch.ones(2, 3))


@pytest.mark.parametrize("name", ["l1", "lp", "min_plus"])
def test_only_gradients_that_are_wanted_are_computed(name, monkeypatch):
    function, arguments = of_zoo(name)
    function(*arguments).sum().backward()
    run, num_results = torch_operator.run, []

    def counted(*given):
        found = run(*given)
        num_results.append(len(found))
        return found

    monkeypatch.setattr(torch_operator, "run", counted)
    for index, wanted in enumerate(arguments):
        alone = [each.detach() for each in arguments]
        function(*alone[:index], alone[index].requires_grad_(), *alone[index + 1 :]).sum().backward()
        torch.testing.assert_close(alone[index].grad, wanted.grad)
        assert num_results[-1] == 1
