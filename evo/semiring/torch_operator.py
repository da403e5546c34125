"""Folds as an operator of PyTorch, `evo::fold`, with gradients of any order.

Owns what knows PyTorch; nothing else imports it. The gradient of a sum is a sum (`Sums.gradient`), so one operator has them all.
torch.compile keeps the operator as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from evo.errors import UserError
from evo.semiring import folds
from evo.semiring.contraction import BFLOAT16, run, shape_of, sizes_of
from evo.semiring.folds import Axes, Direct, Fold, Sums

if TYPE_CHECKING:
    from evo.semiring.semiring import Semiring

_TYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64)


def as_array(name: str, tensor: Tensor) -> NDArray[Any]:
    """An array over a tensor's memory; bfloat16 as its bits.

    Raises:
        UserError: the tensor is not on the CPU, or has another type.
    """
    if tensor.device.type != "cpu":
        raise UserError(f"{name} is on {tensor.device}; semirings run on the CPU so far: pass {name}.cpu()")
    if tensor.dtype not in _TYPES:
        raise UserError(f"{name} is of {tensor.dtype}; expected torch.float32, float16, bfloat16 or float64")
    tensor = tensor.detach()
    array: NDArray[Any] = tensor.view(torch.int16).numpy().view(BFLOAT16) if tensor.dtype == torch.bfloat16 else tensor.numpy()
    return array


def call(semiring: Semiring, a: Any, b: Any, hyper: Sequence[Any]) -> Tensor:
    """`Semiring.__call__` on tensors."""
    dtype = torch.float64 if any(getattr(each, "dtype", None) == torch.float64 for each in (a, b, *hyper)) else torch.float32
    a, b, *hyper = (each if isinstance(each, Tensor) else torch.as_tensor(each, dtype=dtype) for each in (a, b, *hyper))
    for name, each in zip(("a", "b", *semiring.hyper), (a, b, *hyper), strict=True):
        if each.dtype not in _TYPES:
            raise UserError(f"{name} is of {each.dtype}; expected torch.float32, float16, bfloat16 or float64")
    needs_gradient = torch.is_grad_enabled() and any(each.requires_grad for each in (a, b, *hyper))
    if semiring.is_matrix_product:
        found = torch.matmul(a.to(dtype), b.to(dtype).mT)
    elif not needs_gradient:
        return fold([a, b, *hyper], semiring.whole_key)[0]
    else:
        # What decides is in the numbers, which a graph does not know.
        is_tried = semiring.is_log_product and not torch.compiler.is_compiling()
        found = _log_product(a.to(dtype), b.to(dtype)) if is_tried else None
        if found is None:
            found = fold([a, b, *hyper], semiring.key)[0]
    return found if semiring.end is None else fold([found, *hyper], semiring.end_key)[0]


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
    of: Fold = content.fold
    arrays = [as_array(variable.name, each) for variable, each in zip(of.arrays, operands, strict=True)]
    if isinstance(content, Direct):
        return [torch.from_numpy(content.on_arrays(*arrays))]
    return [torch.from_numpy(result) for result in run(of, arrays)]


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
    if isinstance(content, Sums):
        found = fold([*operands, *given], content.gradient_key)
    else:
        found = _of_semiring(content, operands, output, given[0])
    # An operand whose batch was broadcast gets the sum.
    return [_like(gradient, operand) for gradient, operand in zip(found, operands, strict=True)], None


fold.register_autograd(_backward, setup_context=_save)


def _of_semiring(semiring: Semiring, operands: list[Tensor], output: Sequence[Tensor], incoming: Tensor) -> Any:
    """The gradients of what a semiring accumulates, by the operands."""
    if semiring.kind == "sum":
        return fold([*operands, incoming], _sums(semiring).gradient_key)
    if semiring.kind == "log-sum-exp":
        # With the result as it is, the terms are weights whose sum is 1.
        return fold([*operands, output[0], incoming], _weights(semiring).gradient_key)[: len(operands)]
    if semiring.kind:
        return _of_extremum(semiring, operands, output[1], incoming)
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


def _of_extremum(semiring: Semiring, operands: list[Tensor], place: Tensor, incoming: Tensor) -> list[Tensor]:
    """Only the term that is the result has a gradient."""
    a, b, *hyper = operands
    is_found = place >= 0
    k = place.clamp(min=0).long()
    batch = k.shape[:-2]
    if a.shape[-1] == 0:
        return [torch.zeros_like(each) for each in operands]
    whole_a, whole_b = (each.expand(*batch, *each.shape[-2:]).to(incoming.dtype) for each in (a, b))
    pair_a, pair_b = torch.gather(whole_a, -1, k), torch.gather(whole_b, -1, k.mT).mT
    of_a, of_b, *of_hyper = fold([pair_a, pair_b, *hyper, incoming * is_found], _of_pairs(semiring).gradient_key)
    return [
        torch.zeros_like(whole_a).scatter_add(-1, k, of_a * is_found),
        torch.zeros_like(whole_b).scatter_add(-1, k.mT, (of_b * is_found).mT),
        *of_hyper,
    ]


def _like(gradient: Tensor, operand: Tensor) -> Tensor:
    return gradient.sum_to_size(operand.shape).to(operand.dtype)
