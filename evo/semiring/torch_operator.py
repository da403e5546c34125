"""Folds as an operator of PyTorch, `evo::fold`, with gradients of any order.

Owns what knows PyTorch; nothing else imports it. The gradient of a sum is a sum (`Sums.gradient`), so one operator has them all.
torch.compile keeps the operator as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evo.errors import UserError
from evo.semiring import folds
from evo.semiring.contraction import BFLOAT16, run, shape_of, sizes_of
from evo.semiring.folds import Axes, Direct, Fold, Sums

if TYPE_CHECKING:
    from evo.semiring.device_fold import Launcher, Operand
    from evo.semiring.semiring import Semiring

_ELEMENTS: dict[torch.dtype, np.dtype[Any]] = {
    torch.float32: np.dtype(np.float32),
    torch.float16: np.dtype(np.float16),
    torch.bfloat16: BFLOAT16,
    torch.float64: np.dtype(np.float64),
}


def array_of(name: str, tensor: Tensor) -> NDArray[Any]:
    """An array over a tensor's memory; bfloat16 as its bits.

    Raises:
        UserError: the tensor is not on the CPU, or has another type.
    """
    if tensor.device.type != "cpu":
        raise UserError(f"{name} is on {tensor.device}; semirings run on the CPU and on NVIDIA's GPUs: pass {name}.cpu()")
    if tensor.dtype not in _ELEMENTS:
        raise UserError(f"{name} is of {tensor.dtype}; expected torch.float32, float16, bfloat16 or float64")
    tensor = tensor.detach()
    array: NDArray[Any] = tensor.view(torch.int16).numpy().view(BFLOAT16) if tensor.dtype == torch.bfloat16 else tensor.numpy()
    return array


def as_tensors(names: Sequence[str], given: Sequence[Any], as_array: Callable[[str, Any], NDArray[Any]]) -> list[Tensor]:
    """Tensors, of numbers and of what `as_array` makes arrays of too: a and b, and then hyperparameters.

    Raises:
        UserError: one has another type, or a and b are not on one device.
    """
    found = [
        each if isinstance(each, Tensor | Real) else torch.from_numpy(as_array(name, each))
        for name, each in zip(names, given, strict=True)
    ]
    is_double = any(isinstance(each, Tensor) and each.dtype == torch.float64 for each in found)
    dtype = torch.float64 if is_double else torch.float32
    tensors = [each if isinstance(each, Tensor) else torch.tensor(each, dtype=dtype) for each in found]
    for name, each in zip(names, tensors, strict=True):
        if each.dtype not in _ELEMENTS:
            raise UserError(f"{name} is of {each.dtype}; expected torch.float32, float16, bfloat16 or float64")
    a, b, *hyper = tensors
    if a.device != b.device:
        raise UserError(f"a is on {a.device} and b on {b.device}; expected one device")
    # A number stays on this side, as a kernel's argument.
    return [a, b, *(each if each.ndim == 0 and each.device.type == "cpu" else each.to(a.device) for each in hyper)]


def call(semiring: Semiring, given: Sequence[Tensor]) -> Tensor:
    """`Semiring.__call__` on what `as_tensors` gives."""
    sizes_of(semiring.whole.arrays, [tuple(each.shape) for each in given])
    a, b, *hyper = given
    dtype = torch.float64 if any(each.dtype == torch.float64 for each in given) else torch.float32
    needs_gradient = torch.is_grad_enabled() and any(each.requires_grad for each in (a, b, *hyper))
    if semiring.is_matrix_product:
        found = torch.matmul(a.to(dtype), b.to(dtype).mT)
    else:
        # On the CPU the operator tries it. What decides is in the numbers, which a graph does not know.
        is_tried = semiring.is_log_product and (needs_gradient or a.is_cuda) and not _is_recorded(a)
        product = _log_product(a.to(dtype), b.to(dtype)) if is_tried else None
        if product is None and not needs_gradient:
            return fold([a, b, *hyper], semiring.whole_key)[0]
        found = fold([a, b, *hyper], semiring.key)[0] if product is None else product
    return found if semiring.end is None else fold([found, *hyper], semiring.end_key)[0]


def _is_recorded(tensor: Tensor) -> bool:
    """Whether calls become a graph, of torch.compile or of CUDA."""
    return bool(torch.compiler.is_compiling() or (tensor.is_cuda and torch.cuda.is_current_stream_capturing()))


def nearest(semiring: Semiring, given: Sequence[Tensor], k: int, num_rows: int, *, is_largest: bool) -> list[Tensor]:
    """`Semiring.nearest` on a device, for `num_rows` rows at once: values and indices."""
    a, *rest = given
    parts = []
    with torch.no_grad():
        for first in range(0, max(a.shape[-2], 1), num_rows):
            found = call(semiring, [a[..., first : first + num_rows, :], *rest])
            # A sort keeps the order of equal values; topk does not.
            indices = torch.sort(-found if is_largest else found, dim=-1, stable=True).indices[..., :k]
            parts.append((torch.gather(found, -1, indices), indices))
    return [torch.cat(each, -2) for each in zip(*parts, strict=True)]


def _log_product(a: Tensor, b: Tensor) -> Tensor | None:
    """As `log_product` of semiring.py, with the gradients of its parts."""
    if a.numel() == 0 or b.numel() == 0:
        return None
    largest_a, largest_b = (each.detach().amax(-1, keepdim=True) for each in (a, b))
    if not (torch.isfinite(largest_a).all() and torch.isfinite(largest_b).all()):
        return None
    sums = torch.matmul(torch.exp(a - largest_a), torch.exp(b - largest_b).mT)
    if not sums.detach().min() > folds.SMALLEST_SUM:
        return None
    return sums.log() + largest_a + largest_b.mT


@torch.library.custom_op("evo::fold", mutates_args=())
def fold(operands: list[Tensor], key: str) -> list[Tensor]:
    """The results of what the key names, float64 if an operand is, else float32."""
    content = folds.FOLDS[key]
    if device := _gpu_of(operands):
        return _on_gpu(content, operands, device)
    of: Fold = content.fold
    arrays = [array_of(variable.name, each) for variable, each in zip(of.arrays, operands, strict=True)]
    if isinstance(content, Direct):
        return [torch.from_numpy(content.on_arrays(*arrays))]
    return [torch.from_numpy(result) for result in run(of, arrays)]


def _gpu_of(operands: Sequence[Tensor]) -> torch.device | None:
    return next((each.device for each in operands if each.is_cuda), None)


def _on_gpu(content: Any, operands: list[Tensor], device: torch.device) -> list[Tensor]:
    from evo.evaluate.backends import why_no_compiler

    if problem := why_no_compiler():
        raise UserError(problem)
    from evo.semiring.device_fold import launcher_of

    with torch.cuda.device(device):
        launcher = launcher_of(torch.cuda.current_device())
        launcher.device.make_current()
        stream, is_captured = torch.cuda.current_stream().cuda_stream, torch.cuda.is_current_stream_capturing()
        return on_device(content, operands, device, launcher, stream, may_wait=not is_captured)


def on_device(
    content: Any, operands: list[Tensor], device: torch.device, launcher: Launcher, stream: Any, *, may_wait: bool = True
) -> list[Tensor]:
    """The results of what is in FOLDS, by kernels on a device whose memory the tensors are in.

    Raises:
        UserError: a tensor is of float64, or there are too many for the kernel.
    """
    from evo.semiring.fold_kernel import roles_of

    of: Fold = content.fold
    for variable, each in zip(of.arrays, operands, strict=True):
        if each.dtype == torch.float64:
            raise UserError(f"{variable.name} is of float64, which semirings compute on the CPU: pass {variable.name}.float()")
    batch, sizes = sizes_of(of.arrays, [tuple(each.shape) for each in operands])
    parts = zip(content.parts, ((axes,) for axes in of.results), strict=True) if isinstance(content, Sums) else [(of, of.results)]
    found: list[Tensor] = []
    for part, results in parts:
        if part is None:
            found.append(torch.zeros(shape_of(results[0], batch, sizes), device=device))
            continue
        roles = roles_of(part).operands
        places = [index for index, each in enumerate(part.operands) if each.axes != Axes.INDEX]
        are_f32 = [index in (*roles["pairs"], *roles["numbers"]) for index in places]
        values = [each.float() if is_f32 else each for each, is_f32 in zip(operands, are_f32, strict=True)]
        # A sum over everything is one over pairs of the kernel's.
        outs = [_empty(shape_of(axes or Axes.PAIR, batch, sizes), device) for axes in results]
        given = [_operand(each) for each in values]
        launcher.run(part, given, [out.data_ptr() for out in outs], batch, sizes, stream, may_wait=may_wait)
        found += [
            out if axes else out.sum((-2, -1), dtype=torch.float64).float() for out, axes in zip(outs, results, strict=True)
        ]
    return found


def _operand(tensor: Tensor) -> Operand:
    """What the launcher gets to know of a tensor."""
    from evo.semiring.device_fold import Operand

    if tensor.ndim == 0 and tensor.device.type == "cpu":
        return Operand(0, (), (), np.dtype(np.float32), float(tensor))
    strides = tuple(stride * tensor.itemsize for stride in tensor.stride())
    return Operand(tensor.data_ptr(), tuple(tensor.shape), strides, _ELEMENTS[tensor.dtype])


def _empty(shape: tuple[int, ...], device: torch.device) -> Tensor:
    return torch.empty(shape, device=device)


@fold.register_fake
def _(operands: list[Tensor], key: str) -> list[Tensor]:
    of: Fold = folds.FOLDS[key].fold
    batch, sizes = sizes_of(of.arrays, [tuple(each.shape) for each in operands])
    dtype = torch.float64 if any(each.dtype == torch.float64 for each in operands) else torch.float32
    return [operands[0].new_empty(shape_of(axes, batch, sizes), dtype=dtype) for axes in of.results]


def _save(ctx: Any, inputs: tuple[list[Tensor], str], output: list[Tensor]) -> None:
    operands, ctx.key = inputs
    ctx.num_operands = len(operands)
    ctx.save_for_backward(*operands, *output)


def _backward(ctx: Any, incoming: list[Tensor | None]) -> tuple[list[Tensor | None], None]:
    content = folds.FOLDS[ctx.key]
    operands, output = list(ctx.saved_tensors[: ctx.num_operands]), ctx.saved_tensors[ctx.num_operands :]
    given = [torch.zeros_like(result) if each is None else each for each, result in zip(incoming, output, strict=True)]
    wanted = tuple(index for index, is_wanted in enumerate(ctx.needs_input_grad[0]) if is_wanted)
    if isinstance(content, Sums):
        found = fold([*operands, *given], content.gradient_key(wanted))
    else:
        found = _of_semiring(content, operands, output, given[0], wanted)
    gradients: list[Tensor | None] = [None] * len(operands)
    for index, gradient in zip(wanted, found, strict=True):
        # An operand whose batch was broadcast gets the sum.
        gradients[index] = gradient.sum_to_size(operands[index].shape).to(operands[index])
    return gradients, None


fold.register_autograd(_backward, setup_context=_save)


def _of_semiring(
    semiring: Semiring, operands: list[Tensor], output: Sequence[Tensor], incoming: Tensor, wanted: tuple[int, ...]
) -> Any:
    """The gradients of what a semiring accumulates, by the operands with these indices."""
    if semiring.kind == "sum":
        return fold([*operands, incoming], _sums(semiring).gradient_key(wanted))
    if semiring.kind == "log-sum-exp":
        # With the result as it is, the terms are weights whose sum is 1.
        return fold([*operands, output[0], incoming], _weights(semiring).gradient_key(wanted))
    if semiring.kind:
        return _of_extremum(semiring, operands, output[1], incoming, wanted)
    raise UserError("a semiring whose accumulate is a formula has no gradient; it has one with sum, min, max or log-sum-exp")


@cache
def _sums(semiring: Semiring) -> Sums:
    return Sums(semiring.fold.operands, semiring.multiply, (Axes.PAIR,))


@cache
def _weights(semiring: Semiring) -> Sums:
    return folds.exponentials(semiring.multiply, semiring.hyper)


@cache
def _of_pairs(semiring: Semiring) -> Sums:
    return folds.pairs(("a", "b"), semiring.hyper, semiring.multiply)


def _of_extremum(
    semiring: Semiring, operands: list[Tensor], place: Tensor, incoming: Tensor, wanted: tuple[int, ...]
) -> list[Tensor]:
    """Only the term that is the result has a gradient."""
    a, b, *hyper = operands
    if a.shape[-1] == 0:
        return [torch.zeros_like(operands[index]) for index in wanted]
    is_found, k = place >= 0, place.clamp(min=0).long()
    wholes = [each.expand(*k.shape[:-2], *each.shape[-2:]).to(incoming.dtype) for each in (a, b)]
    pairs = [torch.gather(wholes[0], -1, k), torch.gather(wholes[1], -1, k.mT).mT]
    found = list(fold([*pairs, *hyper, incoming * is_found], _of_pairs(semiring).gradient_key(wanted)))
    for number, index in enumerate(wanted):
        if index < 2:
            at, values = (k, found[number] * is_found) if index == 0 else (k.mT, (found[number] * is_found).mT)
            found[number] = torch.zeros_like(wholes[index]).scatter_add(-1, at, values)
    return found
