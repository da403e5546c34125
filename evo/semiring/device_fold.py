"""Runs folds on a GPU: from addresses, shapes and strides to launches of `fold_kernel`.

Owns cubins, the choice of a tile and the kernel's arguments. Knows nothing of tensors.
"""

from __future__ import annotations

import hashlib
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
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
            batch, sizes: of `folds.sizes_of`.
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
        num_matrices = math.prod(batch)
        if num_matrices * size[0] * size[1] == 0:
            return
        roles_used = _used(fold)
        kinds = tuple(KINDS[operands[index].dtype] for role in ("rows", "columns") for _, index in roles_used[role])
        layouts = tuple((operand.shape, operand.strides) for operand in operands)
        addresses = np.array(
            [*(operands[index].address for many in roles_used.values() for _, index in many), *results], np.uint64
        )
        numbers = [(slot, operands[index].number) for slot, (_, index) in enumerate(roles_used["numbers"])]
        calls = []
        for pattern, address_indices, num_in_call in _calls(fold, layouts, len(results), batch, tuple(size)):
            words = pattern.copy()
            words[address_indices] += addresses
            call = words.view(CALL)
            for slot, number in numbers:
                if number is not None:
                    call["given"][0, slot] = number
            calls.append((call, num_in_call))

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
        if math.prod(size) < _MIN_MEASURED:
            return guess
        key = (fold, kinds, tuple(extent.bit_length() for extent in size))
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
        shortest = min(self.device.elapsed_s(start, end) for start, end in pairwise(events))
        for event in events:
            self.device.destroy_event(event)
        return shortest


@cache
def launcher_of(ordinal: int) -> Launcher:
    """Launcher of a device of this process, with the user's cache."""
    return Launcher(Device(ordinal), DiskCache(cache_folder()))


_Layout = tuple[tuple[int, ...], tuple[int, ...]]  # shape and strides in bytes


@cache
def _used(fold: Fold) -> dict[str, list[tuple[str, int]]]:
    """For each role the letters of its operands' axes, and their indices among `fold.arrays`."""
    array_indices = [index for index, operand in enumerate(fold.operands) if operand.axes != Axes.INDEX]
    return {
        role: [(LETTERS[fold.operands[index].axes], array_indices.index(index)) for index in indices]
        for role, indices in roles_of(fold).operands.items()
    }


@lru_cache(1024)
def _calls(
    fold: Fold, layouts: tuple[_Layout, ...], num_results: int, batch: tuple[int, ...], size: tuple[int, ...]
) -> list[tuple[NDArray[np.uint64], NDArray[np.intp], int]]:
    """For each launch the kernel's argument, in units of 8 bytes and with offsets in place of addresses; the indices of these,
    first the roles' and then the results'; and its number of matrices. A launch goes through the last two axes of a batch whose
    axes have no stride in common.
    """
    outer, inner, used = (roles := roles_of(fold)).outer, roles.inner, _used(fold)
    seen = {"rows": outer[0] + inner, "columns": outer[1] + inner, "pairs": outer, "numbers": "--"}
    own_strides = [_batch_strides(layouts[index], len(letters), batch) for many in used.values() for letters, index in many]
    shape, strides = _merged(batch, own_strides)
    last = (1, 1, *shape)[-2:]
    call = np.zeros(1, CALL)
    call["num_rows"], call["num_columns"], call["depth"] = size
    call["inner_batch"] = last[1]
    call["initial"][0, : len(fold.states)] = [state.initial for state in fold.states]
    starts = [call[role][0, slot : slot + 1]["values"] for role, many in used.items() for slot in range(len(many))]
    starts += [call["results"][0, slot : slot + 1] for slot in range(num_results)]
    address_indices = np.array([(start.ctypes.data - call.ctypes.data) // 8 for start in starts], np.intp)
    calls = []
    for done, position in enumerate(np.ndindex(shape[:-2])):
        moved = iter(strides)
        for role, many in used.items():
            for slot, (letters, index) in enumerate(many):
                batch_strides, matrix = next(moved), call[role][0, slot]
                matrix["values"] = sum(map(operator.mul, position, batch_strides)) % (1 << 64)
                of_letter = dict(zip(letters, layouts[index][1][len(layouts[index][1]) - len(letters) :], strict=True))
                matrix["strides"] = [*(0, 0, *batch_strides)[-2:], *(of_letter.get(letter, 0) for letter in seen[role])]
        call["results"][0, :num_results] = done * last[0] * last[1] * size[0] * size[1] * 4
        calls.append((call.view(np.uint64).copy(), address_indices, last[0] * last[1]))
    return calls


def _batch_strides(layout: _Layout, num_inner: int, batch: tuple[int, ...]) -> list[int]:
    """Stride of each axis of the batch; 0 where the operand is broadcast."""
    num_batch = len(layout[0]) - num_inner
    strides = [stride if size > 1 else 0 for size, stride in zip(layout[0][:num_batch], layout[1][:num_batch], strict=True)]
    return [0] * (len(batch) - num_batch) + strides


def _merged(batch: tuple[int, ...], strides: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """The shape of a batch and the strides of each operand, with as few axes as visit the same addresses in the same order."""
    shape: list[int] = []
    merged: list[list[int]] = [[] for _ in strides]
    for axis, size in enumerate(batch):
        if size == 1:
            continue
        if shape and all(joined[-1] == original[axis] * size for joined, original in zip(merged, strides, strict=True)):
            shape[-1] *= size
            for joined, original in zip(merged, strides, strict=True):
                joined[-1] = original[axis]
        else:
            shape.append(size)
            for joined, original in zip(merged, strides, strict=True):
                joined.append(original[axis])
    return tuple(shape), [tuple(joined) for joined in merged]
