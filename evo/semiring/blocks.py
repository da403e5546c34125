"""Long reductions by blocks of terms, joined as a balanced tree: so rounding errors do not grow with the number of terms.

Owns the order of terms, which is the same on every device. Knows nothing of what arrays are: NumPy's and PyTorch's are cut alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from evo.semiring.folds import LETTERS, Fold, sizes_of

BLOCK = 256  # terms, added one after the other
PRODUCT_BLOCK = 4096  # of a matrix product: terms in the order of its library

_MOST_AT_ONCE = 1 << 20  # values of a state, of blocks that are computed together

_T = TypeVar("_T")


def tree(
    first: int,
    end: int,
    block: int,
    of_part: Callable[[int, int], _T],
    join: Callable[[_T, _T], _T],
    is_known: Callable[[int, int], bool] | None = None,
) -> _T:
    """Joins blocks of the terms from `first` to before `end` in pairs, these in pairs, and so on.

    Args:
        of_part: the value of a block, or of a range that `is_known`, whose blocks it joins in the same order.
    """
    if end - first <= block or (is_known is not None and is_known(first, end)):
        return of_part(first, end)
    middle = first + (block << ((end - first - 1) // block).bit_length() - 1)
    left = tree(first, middle, block, of_part, join, is_known)
    return join(left, tree(middle, end, block, of_part, join, is_known))


def run_blocks(
    fold: Fold, arrays: Sequence[Any], letter: str, size: int, run: Callable[[Fold, Sequence[Any]], list[Any]]
) -> list[Any]:
    """The results of a fold that has a `merge`, whose terms lie along an axis.

    Args:
        run: gives the results of a fold of these arrays without cutting it.
    """
    axes_and_arrays = [*zip((LETTERS[variable.axes] for variable in fold.arrays), arrays, strict=True)]
    numbers = [array for letters, array in axes_and_arrays if not letters]
    batch, sizes = sizes_of(fold.arrays, [tuple(array.shape) for array in arrays])
    num_values = math.prod(batch) * math.prod(sizes.values()) // size
    most = _MOST_AT_ONCE // max(num_values, 1)
    begins_neutral = all(state.initial == neutral for state, neutral in zip(fold.states, fold.neutral, strict=True))

    def join(left: Sequence[Any], right: Sequence[Any]) -> list[Any]:
        return run(fold.merging, [*numbers, *left, *right])

    def is_batch(first: int, end: int) -> bool:
        count = (end - first) // BLOCK
        return count * BLOCK == end - first and count.bit_count() == 1 and count <= most and (first > 0 or begins_neutral)

    def part(first: int, end: int) -> list[Any]:
        count = max((end - first) // BLOCK, 1)
        cut = [_cut(array, letters, letter, first, end, count) for letters, array in axes_and_arrays]
        states = run(fold.blocks[first > 0 or begins_neutral], cut)
        while count > 1:
            outer = states[0].shape[: len(batch)]
            inner = states[0].shape[len(batch) + 1 :]
            sides = [[state[..., side::2, :, :].reshape(*outer, 1, -1) for state in states] for side in (0, 1)]
            count //= 2
            states = [state.reshape(*outer, count, *inner) for state in join(*sides)]
        return [state[..., 0, :, :] if state.ndim > len(batch) + 2 else state for state in states]

    states = tree(0, size, BLOCK, part, join, is_batch)
    return states if fold.finish is None else run(fold.ending, [*numbers, *states])


def _cut(array: Any, letters: str, letter: str, first: int, end: int, count: int) -> Any:
    """A part of an array, with an axis of blocks as the last of its batch if there are several."""
    if letter in letters:
        after = letters.partition(letter)[2]
        array = array[(..., slice(first, end), *(slice(None) for _ in after))]
        if count > 1:
            shape = array.shape[: array.ndim - 1 - len(after)]
            array = array.reshape(*shape, count, BLOCK, *array.shape[array.ndim - len(after) :])
            array = array if after or len(letters) == 1 else array.swapaxes(-3, -2)
    elif count > 1 and array.ndim > 0:
        array = array[(..., None, *(slice(None) for _ in letters))]
    return array


def product(a: Any, b: Any, matmul: Callable[[Any, Any], Any]) -> Any:
    """The matrix product of rows, `(..., M, K)` and `(..., N, K)`."""

    def block(first: int, end: int) -> Any:
        return matmul(a[..., first:end], b[..., first:end].swapaxes(-1, -2))

    return tree(0, a.shape[-1], PRODUCT_BLOCK, block, lambda left, right: left + right)
