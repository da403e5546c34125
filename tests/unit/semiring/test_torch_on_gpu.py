"""PyTorch's operator over the stand-in GPU: results and gradients are those of the CPU. Tensors stay where they are, as there is
no CUDA; what the launcher is told of them lies in the stand-in's memory.
"""

import ctypes

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from evo.errors import UserError  # noqa: E402 - PyTorch need not be there
from evo.evaluate.cuda.device import Device  # noqa: E402
from evo.semiring import Semiring, torch_operator, zoo  # noqa: E402
from evo.semiring.device_fold import Launcher, Operand  # noqa: E402

WITH_HYPER = ("lp", "gaussian")
ZOO = ["l1", "lp", "gaussian", "chebyshev", "log_sum_exp"]


@pytest.fixture
def on_gpu(emulated_gpu, monkeypatch):
    """Folds run on the stand-in from now on. Gives what has run."""
    device = Device(0)
    launcher, ran = Launcher(device), []

    def memory(num_bytes):
        address = int(device.allocate(num_bytes))
        return address, np.frombuffer((ctypes.c_uint8 * num_bytes).from_address(address), np.uint8)

    def operand(tensor):
        if tensor.ndim == 0:
            return given(tensor)
        array = np.ascontiguousarray(torch_operator.array_of("", tensor))
        address, to = memory(array.nbytes)
        to[...] = array.reshape(-1).view(np.uint8)
        return Operand(address, array.shape, array.strides, array.dtype)

    def run(content, operands, place):
        ran.append(content)
        return torch_operator.on_device(content, operands, place, launcher, 0)

    def empty(shape, _):
        return torch.from_numpy(memory(int(np.prod(shape)) * 4)[1].view(np.float32)).reshape(shape)

    given = torch_operator._operand
    for name, by in (("_operand", operand), ("_empty", empty), ("_on_gpu", run), ("_gpu_of", lambda each: each[0].device)):
        monkeypatch.setattr(torch_operator, name, by)
    yield ran
    assert ran and not emulated_gpu.messages


def arguments_of(name, dtype=torch.float32):
    torch.manual_seed(3)
    semiring, tensors = getattr(zoo, name), [torch.randn(2, 4, 3), torch.randn(5, 3)]
    if name in WITH_HYPER:
        tensors.append(torch.tensor([1.7, 2.3]))
    tensors = [each.to(dtype).requires_grad_() for each in tensors]
    return (lambda a, b, *hyper: semiring(a, b, **dict(zip(semiring.hyper, hyper, strict=True)))), tensors


def derivatives(name, dtype=torch.float32):
    """Result, gradients, and the gradients of a sum of these."""
    function, tensors = arguments_of(name, dtype)
    weights = torch.randn(2, 4, 5)
    found = function(*tensors)
    first = torch.autograd.grad(found, tensors, weights, create_graph=True)
    total = sum((each.float() * torch.randn(each.shape)).sum() for each in first)
    second = torch.autograd.grad(total, tensors, allow_unused=True)
    return [found, *first, *(torch.zeros(()) if each is None else each for each in second)]


@pytest.mark.parametrize("name", ZOO)
def test_results_and_two_derivatives_are_those_of_the_cpu(name, request, monkeypatch):
    monkeypatch.setattr(torch_operator, "_log_product", lambda *_: None)  # online
    wanted = derivatives(name)
    request.getfixturevalue("on_gpu")
    for found, each in zip(derivatives(name), wanted, strict=True):
        torch.testing.assert_close(found, each, rtol=2e-5, atol=2e-5)


def test_forward_mode_is_that_of_the_cpu(request):
    a, b = torch.randn(3, 4), torch.randn(5, 4)
    rates = torch.randn_like(a)

    def tangents():
        return [torch.func.jvp(lambda each, of=of: of(each, b), (a,), (rates,))[1] for of in (zoo.l1, zoo.l2, zoo.min_plus)]

    wanted = tangents()
    request.getfixturevalue("on_gpu")
    for found, each in zip(tangents(), wanted, strict=True):
        torch.testing.assert_close(found, each, rtol=1e-5, atol=1e-5)


def test_numbers_become_arguments_of_the_kernel_and_have_gradients(request):
    a, b = torch.randn(3, 4), torch.randn(5, 4)
    results = []
    for _ in range(2):
        scale = torch.tensor(1.5, requires_grad=True)
        found = Semiring("abs(a - b)*scale")(a, b, scale=scale)
        found.sum().backward()
        results.append((found.detach(), scale.grad))
        if len(results) == 1:
            request.getfixturevalue("on_gpu")
    for found, wanted in zip(*results, strict=True):
        torch.testing.assert_close(found, wanted)


def test_float64_is_refused(on_gpu):
    with pytest.raises(UserError, match=r"b is of float64, which semirings compute on the CPU: pass b.float\(\)"):
        zoo.l1(torch.ones(2, 3), torch.ones(2, 3, dtype=torch.float64))
    zoo.l1(torch.ones(2, 3), torch.ones(2, 3))


def test_tensors_of_two_devices_are_refused():
    with pytest.raises(UserError, match="a is on cpu and b on meta; expected one device"):
        zoo.l1(torch.ones(2, 3), torch.ones(2, 3, device="meta"))


class Foreign:
    """An array of another library, on a device that is not the CPU: pinned memory, which PyTorch reads without CUDA."""

    def __init__(self, values):
        self.values = torch.tensor(values)

    def __dlpack_device__(self):
        return 3, 0

    def __dlpack__(self, **_):
        return self.values.__dlpack__()

    def __array_namespace__(self):
        return Foreign

    @staticmethod
    def from_dlpack(tensor):
        return "foreign", tensor.tolist()


def test_arrays_on_a_device_come_back_as_their_library_has_them():
    a, b = Foreign([[0.0, 1.0]]), Foreign([[3.0, 1.0], [0.0, 2.0]])
    assert zoo.l1(a, b) == ("foreign", [[3.0, 1.0]])
    assert zoo.lp(a, b, p=1.0)[0] == "foreign"
    nearest = zoo.l1.nearest(a, b, 1)
    assert nearest.values == ("foreign", [[1.0]]) and nearest.indices == ("foreign", [[1]])
