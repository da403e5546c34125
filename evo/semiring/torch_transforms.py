# ruff: noqa: SLF001 - PyTorch has no public names for the state of its transforms
"""PyTorch's transforms: which are active, what an operator does under them, and a matrix product that autocast leaves alone.

Owns what knows PyTorch's internals. Knows nothing of semirings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from evo.semiring import blocks


def is_transformed() -> bool:
    """Return whether calls are under a transform of torch.func, or within a level of forward-mode derivatives."""
    return bool(torch._C._are_functorch_transforms_active()) or forward_ad._current_level >= 0


def is_recorded(tensor: Tensor) -> bool:
    """Return whether calls become a graph, of torch.compile, make_fx or CUDA."""
    is_traced = torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack() > 0
    return bool(is_traced or (tensor.is_cuda and torch.cuda.is_current_stream_capturing()))


@contextmanager
def of_outer_levels(saved: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """Saved tensors without their own tangents. Within, PyTorch's operators carry the tangents of transforms around this one,
    which it leaves out in a `jvp`.
    """
    with forward_ad._set_fwd_grad_enabled(True):
        yield [forward_ad.unpack_dual(tensor).primal for tensor in saved]


class _Product(torch.autograd.Function):  # type: ignore[misc]
    """The matrix product of rows in the arguments' type, also where derivatives are computed under autocast."""

    @staticmethod
    def forward(a: Tensor, b: Tensor) -> Tensor:
        with torch.autocast(a.device.type, enabled=False):
            return blocks.product(a, b, torch.matmul)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], _: Tensor) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, incoming: Tensor) -> tuple[Tensor | None, ...]:
        a, b = ctx.saved_tensors

        def gradients(gradient: Tensor) -> list[Tensor | None]:
            of_a = matrix_product(gradient, b.mT).sum_to_size(a.shape) if ctx.needs_input_grad[0] else None
            return [of_a, matrix_product(gradient.mT, a.mT).sum_to_size(b.shape) if ctx.needs_input_grad[1] else None]

        return tuple(of_batch(gradients, [incoming]))

    @staticmethod
    def jvp(ctx: Any, *rates: Tensor | None) -> Tensor | None:
        with of_outer_levels(ctx.saved_tensors) as (a, b):

            def tangent(of_a: Tensor | None, of_b: Tensor | None) -> list[Tensor | None]:
                pairs = [(of_a, b) if of_a is not None else None, (a, of_b) if of_b is not None else None]
                first, *rest = (matrix_product(*pair) for pair in pairs if pair is not None)
                return [first + rest[0] if rest else first]

            return of_batch(tangent, rates)[0]

    @staticmethod
    def vmap(_: Any, in_dims: tuple[int | None, ...], *operands: Tensor) -> tuple[Tensor, int]:
        return matrix_product(*batch_first(operands, in_dims, (2, 2))), 0


def batch_first(operands: Sequence[Tensor], in_dims: Sequence[int | None], inners: Sequence[int]) -> list[Tensor]:
    """Operands with the axis of `vmap` before their batch. inners: how many axes each has beside its batch."""
    triples = [*zip(operands, in_dims, inners, strict=True)]
    num_batch = max(operand.ndim - (dim is not None) - inner for operand, dim, inner in triples)

    def first(operand: Tensor, dim: int, inner: int) -> Tensor:
        operand = operand.movedim(dim, 0)
        return operand.reshape(operand.shape[0], *(1,) * (num_batch + 1 + inner - operand.ndim), *operand.shape[1:])

    return [operand if dim is None else first(operand, dim, inner) for operand, dim, inner in triples]


def of_batch(derivative: Callable[..., Sequence[Tensor | None]], incoming: Sequence[Tensor | None]) -> list[Tensor | None]:
    """A derivative, also of tensors of PyTorch's older `vmap`, as `is_grads_batched` gives: they become the newer's."""
    # Python has no name for the key.
    is_batched = [gradient is not None and ", Batched" in str(torch._C._dispatch_keys(gradient)) for gradient in incoming]
    if not any(is_batched):
        return [*derivative(*incoming)]
    level = 1  # it does not nest
    plain = [
        torch._remove_batch_dim(gradient, level, 1, 0) if is_one else gradient
        for gradient, is_one in zip(incoming, is_batched, strict=True)
    ]
    missing: list[bool] = []

    def present(*gradients: Tensor | None) -> list[Tensor]:
        results = derivative(*gradients)
        missing[:] = [result is None for result in results]
        return [result for result in results if result is not None]

    results = iter(torch.func.vmap(present, tuple(0 if is_one else None for is_one in is_batched))(*plain))
    return [None if is_none else torch._add_batch_dim(next(results), 0, level) for is_none in missing]


def matrix_product(a: Tensor, b: Tensor) -> Tensor:
    """The product of rows, `(..., M, K)` and `(..., N, K)`, in their type, also under autocast."""
    product: Tensor = _Product.forward(a, b) if torch.compiler.is_compiling() else _Product.apply(a, b)
    return product
