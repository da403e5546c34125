"""Runs folds on a GPU: from addresses, shapes and strides to launches of `fold_kernel`.

Owns cubins, the choice of a tile and the kernel's arguments. Knows nothing of tensors.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.compile.targets import architecture
from evo.evaluate.cuda.device import Device, driver_name
from evo.evaluate.cuda.interpreter_kernels import cubin_of
from evo.native.semiring import MAX_DEPTH
from evo.semiring.fold_kernel import (
    CALL,
    ELEMENTS,
    ENTRY,
    KINDS,
    NUM_THREADS,
    elements_of,
    kernel_ptx,
    roles_of,
    shared_bytes,
    tile_size,
)
from evo.semiring.folds import LETTERS, Axes, Fold
from evo.storage.disk_cache import DiskCache, cache_folder

MAX_SIZE = (1 << 31) - 4096  # of M, N and K
_MAX_GRID_Y = 65535
_MIN_MEASURED = 1 << 27  # terms, below which measuring takes longer than it may gain
_BLOCKS_PER_MULTIPROCESSOR = 2  # that a tile must give, where nothing is measured
_ROUNDS = 3


@dataclass(frozen=True)
class Operand:
    """Values on a device. strides: in bytes; dtype: of `fold_kernel.KINDS`. number: of an operand that is one, on the host."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    number: float | None = None


class Launcher:
    """Folds on one device, whose context is current on the calling thread.

    Args:
        cache: of cubins and chosen tiles; None: nothing is kept.
    """

    def __init__(self, device: Device, cache: DiskCache | None = None):
        self.device = device
        self._cache = cache
        self._functions: dict[tuple[Fold, tuple[int, ...], int], Any] = {}
        self._elements: dict[tuple[Fold, tuple[int, ...], tuple[int, ...]], int] = {}

    def run(
        self,
        fold: Fold,
        operands: Sequence[Operand],
        results: Sequence[int],
        batch: tuple[int, ...],
        sizes: dict[str, int],
        stream: Any,
        *,
        may_wait: bool = True,
        elements: int | None = None,
    ) -> None:
        """Queues a fold whose states have one kind of axes; sums over everything are left as pairs.

        Args:
            operands: of `fold.arrays`, `(*batch, ...)`, where batches broadcast. Pairs and numbers (`roles_of`) are float32.
            results: addresses of float32, contiguous, one for each of `fold.results`.
            batch, sizes: of `contraction.sizes_of`.
            may_wait: whether this may wait for the device, to find the fastest tile.
            elements: of `elements_of`; None: the best.

        Raises:
            ValueError: a size is too large.
        """
        for letter, most in (("M", MAX_SIZE), ("N", MAX_SIZE), ("K", MAX_DEPTH)):
            if sizes[letter] > most:
                raise ValueError(f"{letter} is {sizes[letter]:,}, at most {most:,}")
        roles = roles_of(fold)
        size = [sizes[letter] for letter in (*roles.outer, roles.inner)]
        num_matrices = int(np.prod(batch, dtype=np.int64))
        if num_matrices * size[0] * size[1] == 0:
            return
        used = _used(fold, operands)
        calls = [*_calls(fold, used, results, batch, size)]
        kinds = tuple(KINDS[each.dtype] for role in ("rows", "columns") for _, each in used[role])

        def launch(elements: int) -> None:
            for call, num_in_call in calls:
                self._launch(fold, kinds, elements, call, num_in_call, stream)

        launch(elements or self._best(fold, kinds, [num_matrices, *size], launch, stream, may_wait))

    def close(self) -> None:
        """Unloads the kernels. None may be running."""
        for module, _ in self._functions.values():
            self.device.unload(module)
        self._functions.clear()

    def _launch(
        self, fold: Fold, kinds: tuple[int, ...], elements: int, call: NDArray[Any], num_matrices: int, stream: Any
    ) -> None:
        function, size = self._function(fold, kinds, elements), tile_size(elements)
        tiles = -(-int(call["num_rows"][0]) // size) * -(-int(call["num_columns"][0]) // size)
        for first in range(0, num_matrices, _MAX_GRID_Y):
            call["first_matrix"] = first
            grid = (tiles, min(num_matrices - first, _MAX_GRID_Y))
            self.device.launch(function, grid, NUM_THREADS, [call], stream, shared_bytes(fold, elements))

    def _function(self, fold: Fold, kinds: tuple[int, ...], elements: int) -> Any:
        key = (fold, kinds, elements)
        if key not in self._functions:
            target = self.device.info.target
            ptx = kernel_ptx(fold, kinds, elements, architecture(target))
            module = self.device.load(cubin_of(ptx, target, self._cache))
            function = self.device.function(module, ENTRY)
            self.device.allow_shared_bytes(function, shared_bytes(fold, elements))
            self._functions[key] = module, function
        return self._functions[key][1]

    def _best(self, fold: Fold, kinds: tuple[int, ...], size: list[int], launch: Any, stream: Any, may_wait: bool) -> int:
        """Elements of a thread: in large calls the fastest, tried once for each class of shapes; else those that keep it busy."""
        matrices, rows, columns, _ = size
        wanted = self.device.num_multiprocessors * _BLOCKS_PER_MULTIPROCESSOR
        enough = [
            elements
            for elements in elements_of(fold)
            if matrices * -(-rows // tile_size(elements)) * -(-columns // tile_size(elements)) >= wanted
        ]
        guess = enough[0] if enough else ELEMENTS[-1]
        if float(np.prod(size, dtype=np.float64)) < _MIN_MEASURED:
            return guess
        key = (fold, kinds, tuple(each.bit_length() for each in size))
        if key not in self._elements:
            ptx = kernel_ptx(fold, kinds, ELEMENTS[-1], architecture(self.device.info.target))
            text = repr(("tile", ptx, key[2], self.device.info, driver_name()))
            name = hashlib.sha256(text.encode()).hexdigest()
            kept = self._cache.get(name) if self._cache else None
            if kept is None and not may_wait:
                return guess
            self._elements[key] = (
                int(kept) if kept else min(elements_of(fold), key=lambda elements: self._seconds(launch, elements, stream))
            )
            if self._cache and kept is None:
                self._cache.put(name, str(self._elements[key]).encode())
        return self._elements[key]

    def _seconds(self, launch: Any, elements: int, stream: Any) -> float:
        """The shortest time of a call, after one that loads the kernel."""
        events = [self.device.event() for _ in range(_ROUNDS + 2)]
        for event in events:
            launch(elements)
            self.device.record(event, stream)
        self.device.wait(events[-1], lambda: False)
        found = min(self.device.elapsed_s(start, end) for start, end in pairwise(events))
        for event in events:
            self.device.destroy_event(event)
        return found


@cache
def launcher_of(ordinal: int) -> Launcher:
    """That of a device of this process, with the user's cache."""
    return Launcher(Device(ordinal), DiskCache(cache_folder()))


_Used = dict[str, list[tuple[str, Operand]]]


def _used(fold: Fold, operands: Sequence[Operand]) -> _Used:
    """The operands of each role, and the letters of their axes."""
    given = iter(operands)
    by_index = {index: next(given) for index, each in enumerate(fold.operands) if each.axes != Axes.INDEX}
    roles = roles_of(fold).operands
    return {role: [(LETTERS[fold.operands[index].axes], by_index[index]) for index in indices] for role, indices in roles.items()}


def _calls(
    fold: Fold, used: _Used, results: Sequence[int], batch: tuple[int, ...], size: list[int]
) -> Iterator[tuple[NDArray[Any], int]]:
    """The kernel's argument, and how many matrices it is for. A launch goes through the last two axes of a batch whose axes have
    no stride in common.
    """
    outer, inner = (roles := roles_of(fold)).outer, roles.inner
    seen = {"rows": outer[0] + inner, "columns": outer[1] + inner, "pairs": outer, "numbers": "--"}
    own_strides = [_batch_strides(operand, len(letters), batch) for many in used.values() for letters, operand in many]
    shape, strides = _merged(batch, own_strides)
    last = (1, 1, *shape)[-2:]
    call = np.zeros(1, CALL)
    call["num_rows"], call["num_columns"], call["depth"] = size
    call["inner_batch"] = last[1]
    call["initial"][0, : len(fold.states)] = [state.initial for state in fold.states]
    for done, position in enumerate(np.ndindex(shape[:-2])):
        moved = iter(strides)
        for role, many in used.items():
            for place, (letters, operand) in enumerate(many):
                own, matrix = next(moved), call[role][0, place]
                matrix["values"] = operand.address + sum(map(operator.mul, position, own))
                of_letter = dict(zip(letters, operand.strides[len(operand.strides) - len(letters) :], strict=True))
                matrix["strides"] = [*(0, 0, *own)[-2:], *(of_letter.get(letter, 0) for letter in seen[role])]
                if operand.number is not None:
                    call["given"][0, place] = operand.number
        num_bytes = last[0] * last[1] * size[0] * size[1] * 4
        call["results"][0, : len(results)] = [address + done * num_bytes for address in results]
        yield call.copy(), last[0] * last[1]


def _batch_strides(operand: Operand, num_inner: int, batch: tuple[int, ...]) -> list[int]:
    """Stride of each axis of the batch; 0 where the operand has one value for all."""
    own = len(operand.shape) - num_inner
    strides = [stride if size > 1 else 0 for size, stride in zip(operand.shape[:own], operand.strides[:own], strict=True)]
    return [0] * (len(batch) - own) + strides


def _merged(batch: tuple[int, ...], strides: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """The shape of a batch and the strides of each operand, with as few axes as go through the same places in the same order."""
    shape: list[int] = []
    merged: list[list[int]] = [[] for _ in strides]
    for axis, size in enumerate(batch):
        if size == 1:
            continue
        if shape and all(own[-1] == given[axis] * size for own, given in zip(merged, strides, strict=True)):
            shape[-1] *= size
            for own, given in zip(merged, strides, strict=True):
                own[-1] = given[axis]
        else:
            shape.append(size)
            for own, given in zip(merged, strides, strict=True):
                own.append(given[axis])
    return tuple(shape), [tuple(own) for own in merged]
