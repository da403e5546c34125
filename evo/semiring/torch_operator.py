"""Folds as an operator of PyTorch, `evo::fold`, with gradients of any order.

Owns what knows PyTorch; nothing else imports it. The gradient of a sum is a sum (`Sums.gradient`), so one operator has them all.
torch.compile keeps the operator as it is. Slightly long: each derivative is beside the operator that it belongs to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evo.errors import UserError
from evo.semiring import blocks, folds, norms
from evo.semiring.contraction import BFLOAT16, run, shape_of
from evo.semiring.folds import LETTERS, Axes, Direct, Fold, Sums, sizes_of
from evo.semiring.torch_transforms import batch_first, is_recorded, is_transformed, matrix_product, of_batch, of_outer_levels

if TYPE_CHECKING:
    from evo.semiring.device_fold import Launcher, Operand

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


def as_tensors(names: Sequence[str], arguments: Sequence[Any], as_array: Callable[[str, Any], NDArray[Any]]) -> list[Tensor]:
    """Converts a, b and then hyperparameters to tensors, numbers and whatever `as_array` takes included.

    Raises:
        UserError: one has another type, or a and b are not on one device.
    """
    values = [
        value if isinstance(value, Tensor | Real) else torch.from_numpy(as_array(name, value))
        for name, value in zip(names, arguments, strict=True)
    ]
    is_double = any(isinstance(value, Tensor) and value.dtype == torch.float64 for value in values)
    dtype = torch.float64 if is_double else torch.float32
    tensors = [value if isinstance(value, Tensor) else torch.tensor(value, dtype=dtype) for value in values]
    for name, tensor in zip(names, tensors, strict=True):
        if tensor.dtype not in _ELEMENTS:
            raise UserError(f"{name} is of {tensor.dtype}; expected torch.float32, float16, bfloat16 or float64")
    a, b, *hyper = tensors
    if a.device != b.device:
        raise UserError(f"a is on {a.device} and b on {b.device}; expected one device")
    # A number stays on this side, as a kernel's argument.
    return [a, b, *(tensor if tensor.ndim == 0 and tensor.device.type == "cpu" else tensor.to(a.device) for tensor in hyper)]


def call(semiring: Any, tensors: Sequence[Tensor]) -> Tensor:
    """`Semiring.__call__` on results of `as_tensors`. Autocast changes nothing: float32 is computed and comes out."""
    sizes_of(semiring.whole.arrays, [tuple(tensor.shape) for tensor in tensors])
    a, b, *hyper = tensors
    dtype = torch.float64 if any(tensor.dtype == torch.float64 for tensor in tensors) else torch.float32
    is_differentiated = is_transformed() or (torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors))
    if semiring.is_matrix_product:
        result = matrix_product(a.to(dtype), b.to(dtype))
    else:
        # On the CPU the operator tries it. What decides is in the numbers, which neither a graph nor `vmap` knows.
        is_tried = semiring.is_log_product and (is_differentiated or a.is_cuda)
        is_tried = is_tried and not is_recorded(a) and not is_transformed()
        product = _log_product(a.to(dtype), b.to(dtype)) if is_tried else None
        if product is None and not is_differentiated and not semiring.order:
            return fold([a, b, *hyper], semiring.whole_key)[0]
        result = _apply([a, b, *hyper], semiring.key)[0] if product is None else product
    return result if semiring.end is None else _apply([result, *hyper], semiring.end_key)[0]


def nearest(semiring: Any, tensors: Sequence[Tensor], k: int, num_rows: int, *, is_largest: bool) -> list[Tensor]:
    """`Semiring.nearest` on a device, for `num_rows` rows at once: values and indices."""
    a, *rest = (tensor.detach() for tensor in tensors)
    parts = []
    with torch.no_grad():
        for first in range(0, max(a.shape[-2], 1), num_rows):
            results = call(semiring, [a[..., first : first + num_rows, :], *rest])
            # A sort keeps the order of equal values; topk does not.
            indices = torch.sort(-results if is_largest else results, dim=-1, stable=True).indices[..., :k]
            parts.append((torch.gather(results, -1, indices), indices))
    return [torch.cat(pieces, -2) for pieces in zip(*parts, strict=True)]


def _log_product(a: Tensor, b: Tensor) -> Tensor | None:
    """As `log_product` of semiring.py, with the gradients of its parts."""
    if a.numel() == 0 or b.numel() == 0:
        return None
    largest_a, largest_b = (matrix.detach().amax(-1, keepdim=True) for matrix in (a, b))
    if not (torch.isfinite(largest_a).all() and torch.isfinite(largest_b).all()):
        return None
    sums = matrix_product(torch.exp(a - largest_a), torch.exp(b - largest_b))
    if not sums.detach().min() > folds.SMALLEST_SUM:
        return None
    return sums.log() + largest_a + largest_b.mT


@torch.library.custom_op("evo::fold", mutates_args=())
def fold(operands: list[Tensor], key: str) -> list[Tensor]:
    """Results of the fold that the key names, float64 if an operand is, else float32."""
    content = folds.FOLDS[key]
    if device := _gpu_of(operands):
        return _on_gpu(content, operands, device)
    whole_fold: Fold = content.fold
    arrays = [array_of(variable.name, operand) for variable, operand in zip(whole_fold.arrays, operands, strict=True)]
    if isinstance(content, Direct):
        return [torch.from_numpy(content.on_arrays(*arrays))]
    if getattr(content, "order", ""):
        return [torch.from_numpy(norms.run_norm(whole_fold, content.scaled, content.is_difference, arrays, run))]
    depth = sizes_of(whole_fold.arrays, [array.shape for array in arrays])[1]["K"]
    # Sums over k run in blocks, sums over rows do not, so each runs separately.
    parts = [content.only((index,)).fold for index in range(len(whole_fold.results))] if isinstance(content, Sums) else []
    several = parts if depth > blocks.BLOCK and len(parts) > 1 else [whole_fold]
    return [torch.from_numpy(result) for part in several for result in run(part, arrays)]


def _gpu_of(operands: Sequence[Tensor]) -> torch.device | None:
    return next((operand.device for operand in operands if operand.is_cuda), None)


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
    """Results of an entry of FOLDS, by kernels on the device that holds the tensors.

    Raises:
        UserError: a tensor is of float64, or there are too many for the kernel.
    """
    from evo.semiring.fold_kernel import roles_of

    def launch(part: Fold, tensors: Sequence[Tensor]) -> list[Tensor]:
        batch, sizes = sizes_of(part.arrays, [tuple(tensor.shape) for tensor in tensors])
        roles = roles_of(part).operands
        array_indices = [index for index, operand in enumerate(part.operands) if operand.axes != Axes.INDEX]
        are_f32 = [index in (*roles["pairs"], *roles["numbers"]) for index in array_indices]
        values = [_operand(tensor.float() if is_f32 else tensor) for tensor, is_f32 in zip(tensors, are_f32, strict=True)]
        # A sum over everything is one over pairs of the kernel's.
        outs = [_empty(shape_of(axes or Axes.PAIR, batch, sizes), device) for axes in part.results]
        launcher.run(part, values, [out.data_ptr() for out in outs], batch, sizes, stream, may_wait=may_wait)
        return outs

    def run_part(part: Fold, tensors: Sequence[Tensor]) -> list[Tensor]:
        inner = roles_of(part).inner
        size = sizes_of(part.arrays, [tuple(tensor.shape) for tensor in tensors])[1][inner]
        is_long = part.merge is not None and size > blocks.BLOCK
        return blocks.run_blocks(part, tensors, inner, size, launch) if is_long else launch(part, tensors)

    whole_fold: Fold = content.fold
    for variable, operand in zip(whole_fold.arrays, operands, strict=True):
        if operand.dtype == torch.float64:
            raise UserError(f"{variable.name} is of float64, which semirings compute on the CPU: pass {variable.name}.float()")
    if getattr(content, "order", ""):
        if not may_wait:
            return run_part(content.scaled, operands)
        return [norms.run_norm(whole_fold, content.scaled, content.is_difference, operands, run_part)]
    if not isinstance(content, Sums):
        return run_part(whole_fold, operands)
    batch, sizes = sizes_of(whole_fold.arrays, [tuple(operand.shape) for operand in operands])
    results: list[Tensor] = []
    for part, axes in zip(content.parts, whole_fold.results, strict=True):
        if part is None:
            results.append(torch.zeros(shape_of(axes, batch, sizes), device=device))
        else:
            (out,) = run_part(part, operands)
            results.append(out if axes else out.sum((-2, -1), dtype=torch.float64).float())
    return results


def _operand(tensor: Tensor) -> Operand:
    """Describe a tensor to the launcher."""
    from evo.semiring.device_fold import Operand

    if tensor.ndim == 0 and tensor.device.type == "cpu":
        return Operand(0, (), (), np.dtype(np.float32), float(tensor))
    strides = tuple(stride * tensor.itemsize for stride in tensor.stride())
    return Operand(tensor.data_ptr(), tuple(tensor.shape), strides, _ELEMENTS[tensor.dtype])


def _empty(shape: tuple[int, ...], device: torch.device) -> Tensor:
    return torch.empty(shape, device=device)


@fold.register_fake
def _(operands: list[Tensor], key: str) -> list[Tensor]:
    whole_fold: Fold = folds.FOLDS[key].fold
    batch, sizes = sizes_of(whole_fold.arrays, [tuple(operand.shape) for operand in operands])
    dtype = torch.float64 if any(operand.dtype == torch.float64 for operand in operands) else torch.float32
    return [operands[0].new_empty(shape_of(axes, batch, sizes), dtype=dtype) for axes in whole_fold.results]


def _apply(operands: Sequence[Tensor], key: str) -> Sequence[Tensor]:
    """`fold` with derivatives of every kind. torch.compile takes the operator, which has those of backward passes, and leaves
    calls under a transform to Python.
    """
    is_kept = torch.compiler.is_compiling() and not is_transformed()
    results: Sequence[Tensor] = fold(list(operands), key) if is_kept else _with_derivatives(key, *operands)
    return results


@torch.compiler.disable(reason="semirings under torch.func's transforms and forward-mode derivatives are not compiled")
def _with_derivatives(key: str, *operands: Tensor) -> Sequence[Tensor]:
    results: Sequence[Tensor] = _Fold.apply(key, *operands)
    return results


def _save(ctx: Any, inputs: tuple[list[Tensor], str], output: list[Tensor]) -> None:
    operands, ctx.key = inputs
    ctx.num_operands = len(operands)
    ctx.save_for_backward(*operands, *output)


def _backward(ctx: Any, incoming: list[Tensor | None]) -> tuple[list[Tensor | None], None]:
    return _gradients(ctx, ctx.needs_input_grad[0], incoming), None


def _gradients(ctx: Any, is_wanted: Sequence[bool], incoming: Sequence[Tensor | None]) -> list[Tensor | None]:
    operands, output = list(ctx.saved_tensors[: ctx.num_operands]), ctx.saved_tensors[ctx.num_operands :]
    filled = [
        torch.zeros_like(result) if gradient is None else gradient for gradient, result in zip(incoming, output, strict=True)
    ]
    wanted = tuple(index for index, is_needed in enumerate(is_wanted) if is_needed)
    derivative = _derivative(folds.FOLDS[ctx.key], operands, output)
    gradients: list[Tensor | None] = [None] * len(operands)
    for index, gradient in zip(wanted, derivative.gradients(filled, wanted), strict=True):
        # An operand whose batch was broadcast gets the sum.
        gradients[index] = gradient.sum_to_size(operands[index].shape).to(operands[index])
    return gradients


fold.register_autograd(_backward, setup_context=_save)


class _Fold(torch.autograd.Function):  # type: ignore[misc]
    """`fold` with the derivatives that PyTorch's operators in Python do not have: of forward mode, and under `vmap`."""

    @staticmethod
    def forward(key: str, *operands: Tensor) -> tuple[Tensor, ...]:
        return tuple(fold(list(operands), key))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.key, *operands = inputs
        ctx.num_operands = len(operands)
        ctx.save_for_backward(*operands, *output)
        ctx.save_for_forward(*operands, *output)
        if _is_extremum(folds.FOLDS[ctx.key]):
            ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx: Any, *incoming: Tensor | None) -> tuple[Tensor | None, ...]:
        return None, *of_batch(lambda *gradients: _gradients(ctx, ctx.needs_input_grad[1:], gradients), incoming)

    @staticmethod
    def jvp(ctx: Any, _: None, *rates: Tensor | None) -> tuple[Tensor | None, ...]:
        moved = tuple(index for index, rate in enumerate(rates) if rate is not None)
        with of_outer_levels(ctx.saved_tensors) as saved:
            operands, output = saved[: ctx.num_operands], saved[ctx.num_operands :]
            derivative = _derivative(folds.FOLDS[ctx.key], operands, output)
            tangents = of_batch(lambda *directions: derivative.tangents(directions, moved), [rates[index] for index in moved])
        return *tangents, *(None for _ in output[len(tangents) :])

    @staticmethod
    def vmap(_: Any, in_dims: tuple[int | None, ...], key: str, *operands: Tensor) -> tuple[Any, Any]:
        inners = [len(LETTERS[array.axes]) for array in folds.FOLDS[key].fold.arrays]
        results = _Fold.apply(key, *batch_first(operands, in_dims[1:], inners))
        return results, (0,) * len(results)


@dataclass(frozen=True)
class _OfSums:
    """The derivatives of sums of the operands, times a factor."""

    sums: Sums
    operands: Sequence[Tensor]
    factor: Tensor | None = None

    def gradients(self, incoming: Sequence[Tensor], wanted: tuple[int, ...]) -> Sequence[Tensor]:
        """By the operands with these indices."""
        scaled = incoming if self.factor is None else [incoming[0] * self.factor]
        return _apply([*self.operands, *scaled], self.sums.key("gradient", wanted))

    def tangents(self, rates: Sequence[Tensor], moved: tuple[int, ...]) -> Sequence[Tensor]:
        """Tangents of the results."""
        tangents = _apply([*self.operands, *rates], self.sums.key("tangent", moved))
        return tangents if self.factor is None else [tangents[0] * self.factor]


def _derivative(content: Any, operands: Sequence[Tensor], output: Sequence[Tensor]) -> _OfSums | _OfExtremum:
    """Chooses the derivative of an operator by what it accumulates."""
    if isinstance(content, Sums):
        return _OfSums(content, operands)
    if content.kind == "sum":
        return _OfSums(_sums(content), operands)
    if content.kind == "log-sum-exp":
        # With the result as it is, the terms are weights whose sum is 1.
        return _OfSums(_weights(content), [*operands, output[0]])
    if content.order:
        (out,) = output
        scale = torch.where(out > 1, 0.25, 4.0).to(out.dtype)
        is_zero = out.detach() < torch.finfo(out.dtype).tiny
        inverse = torch.where(is_zero, 0.0, 1 / (torch.where(is_zero, 1.0, out) * scale))
        if content.order == "2":
            return _OfSums(_slopes(content), [*operands, inverse], scale)
        p = operands[2 + content.hyper.index("p")].detach()
        is_norm = (p > 0).to(out.dtype)  # and no count, which has no gradient
        return _OfSums(_slopes(content), [*operands, inverse, scale], is_norm[..., None, None] if p.ndim else is_norm)
    if content.kind:
        return _OfExtremum(content, operands, output[1])
    raise UserError("a semiring whose accumulate is a formula has no gradient; it has one with sum, min, max or log-sum-exp")


def _is_extremum(content: Any) -> bool:
    return getattr(content, "kind", "") in ("min", "max")


@cache
def _sums(semiring: Any) -> Sums:
    return Sums(semiring.fold.operands, semiring.multiply, (Axes.PAIR,))


@cache
def _weights(semiring: Any) -> Sums:
    return folds.exponentials(semiring.multiply, semiring.hyper)


@cache
def _slopes(semiring: Any) -> Sums:
    return norms.slopes(semiring.multiply, semiring.hyper, semiring.order)


@cache
def _of_pairs(semiring: Any) -> Sums:
    return folds.pairs(("a", "b"), semiring.hyper, semiring.multiply)


class _OfExtremum:
    """The derivatives of a minimum or maximum, which are those of the winning term."""

    def __init__(self, semiring: Any, operands: Sequence[Tensor], best_k: Tensor):
        self._is_found, self._k = best_k >= 0, best_k.clamp(min=0).long()
        self._sums, self._is_empty = _of_pairs(semiring), operands[0].shape[-1] == 0
        self._wholes = [self._whole(operand) if index < 2 else operand for index, operand in enumerate(operands)]
        self._operands = [self._pairs(whole, index) for index, whole in enumerate(self._wholes)]

    def _whole(self, rows: Tensor) -> Tensor:
        return rows.expand(*self._k.shape[:-2], *rows.shape[-2:])

    def _pairs(self, whole: Tensor, index: int) -> Tensor:
        """The values of rows of a or b that the results are made of."""
        if index > 1 or self._is_empty:
            return whole
        return torch.gather(whole, -1, self._k) if index == 0 else torch.gather(whole, -1, self._k.mT).mT

    def gradients(self, incoming: Sequence[Tensor], wanted: tuple[int, ...]) -> list[Tensor]:
        """By the operands with these indices."""
        if self._is_empty:
            return [torch.zeros_like(self._wholes[index]) for index in wanted]
        gradient = torch.where(self._is_found, incoming[0], 0.0)
        gradients = list(_apply([*self._operands, gradient], self._sums.key("gradient", wanted)))
        for number, index in enumerate(wanted):
            if index < 2:
                at, values = self._k, torch.where(self._is_found, gradients[number], 0.0)
                at, values = (at, values) if index == 0 else (at.mT, values.mT)
                gradients[number] = torch.zeros_like(self._wholes[index], dtype=values.dtype).scatter_add(-1, at, values)
        return gradients

    def tangents(self, rates: Sequence[Tensor], moved: tuple[int, ...]) -> list[Tensor]:
        """Tangent of the result."""
        if self._is_empty:
            return [torch.zeros_like(self._k, dtype=torch.promote_types(rates[0].dtype, torch.float32))]
        tangents = [
            self._pairs(self._whole(rate) if index < 2 else rate, index) for rate, index in zip(rates, moved, strict=True)
        ]
        (tangent,) = _apply([*self._operands, *tangents], self._sums.key("tangent", moved))
        return [torch.where(self._is_found, tangent, 0.0)]
