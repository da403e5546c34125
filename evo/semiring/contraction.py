"""Runs folds on the CPU: float32, float16 and bfloat16 by the virtual machine's kernels in threads, float64 by NumPy.

Owns layouts, parts and threads. Parts follow from the shapes alone, so that the number of threads decides no bit of a result.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.language.real_programs import evaluate, language, words_of
from evo.native.ptx_vm import VirtualMachine
from evo.native.semiring import CHUNK, MAX_DEPTH, OPERAND_DTYPE, STATE_DTYPE, Contraction
from evo.semiring import blocks
from evo.semiring.folds import LETTERS, Axes, Fold, Variable, sizes_of

BFLOAT16 = np.dtype(np.int16)  # how arrays of bfloat16 come here, as their bits
_ELEMENTS = {np.dtype(np.float32): 0, np.dtype(np.float16): 1, BFLOAT16: 2}
_MIRRORED = {Axes.ROW: Axes.COLUMN, Axes.COLUMN: Axes.ROW}
_LANES = 128  # to which columns are filled up
_MIN_ROWS, _MAX_ROWS, _NUM_ROW_PARTS = 32, 256, 16  # of a part
_NUM_COLUMN_PARTS = 8  # that add to rows of their own, which take
_PARTIAL_BYTES = 16 << 20  # at most


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(len(os.sched_getaffinity(0)), "contraction")


os.register_at_fork(after_in_child=_threads.cache_clear)


@cache
def prepared(fold: Fold, level: str | None = None) -> Contraction:
    """The native form of a fold, at a SIMD level or the fastest."""
    states = tuple(state.name for state in fold.states)
    spoken = language(fold.names, states)
    step = words_of(fold.step, fold.names, states)
    if fold.finish is None:
        return Contraction(VirtualMachine(spoken.lowering, level), step)
    outputs = tuple(f"_result_{index}" for index in range(len(fold.finish.results)))
    finish = words_of(fold.finish, fold.names, outputs)
    return Contraction(
        VirtualMachine(spoken.lowering, level), step, VirtualMachine(language(fold.names, outputs).lowering, level), finish
    )


def shape_of(axes: Axes, batch: tuple[int, ...], sizes: dict[str, int]) -> tuple[int, ...]:
    """Shape of a result."""
    return (*batch, *(sizes[letter] for letter in LETTERS[axes]))


def run(fold: Fold, arrays: Sequence[NDArray[Any]], level: str | None = None) -> list[NDArray[Any]]:
    """The results of a fold.

    Args:
        arrays: of `fold.arrays`, `(*batch, ...)` as `Axes` has them, where batches broadcast; float64 if one is, otherwise of
            float32, float16 or BFLOAT16, with any strides. None is copied.

    Returns:
        float64 or float32, contiguous.

    Raises:
        ValueError: shapes do not fit, or K is above MAX_DEPTH.
    """
    batch, sizes = sizes_of(fold.arrays, [array.shape for array in arrays])
    if sizes["K"] > MAX_DEPTH:
        raise ValueError(f"K is {sizes['K']:,}, at most {MAX_DEPTH:,}")
    if fold.merge is not None and sizes["K"] > blocks.BLOCK and set(fold.results) == {Axes.PAIR}:
        return blocks.run_blocks(fold, arrays, "K", sizes["K"], partial(run, level=level))
    if any(array.dtype == np.float64 for array in arrays):
        return _run_float64(fold, arrays, batch, sizes)
    # Sums over everything are doubles, added part by part.
    results = [np.zeros(shape_of(axes, batch, sizes), np.float32 if axes else np.float64) for axes in fold.results]
    if results[0].size or any(not axes for axes in fold.results):
        _Run(fold, arrays, batch, sizes, results, level).execute()
    return [result if result.dtype == np.float32 else result.astype(np.float32) for result in results]


class _Run:
    """One call: tables of addresses for each matrix of the batch, and its parts."""

    def __init__(
        self,
        fold: Fold,
        arrays: Sequence[NDArray[Any]],
        batch: tuple[int, ...],
        sizes: dict[str, int],
        results: list[NDArray[Any]],
        level: str | None,
    ):
        self._native = prepared(fold, level)
        rows, columns = sizes["M"], sizes["N"]
        # Rows and columns change places where that leaves fewer lanes without work.
        self._is_mirrored = rows * -(-columns // _LANES) > columns * -(-rows // _LANES)
        self._rows, self._columns = (columns, rows) if self._is_mirrored else (rows, columns)
        self._depth = sizes["K"]
        self._num_matrices = int(np.prod(batch, dtype=np.int64))
        self._kinds = [self._seen(axes) for axes in fold.results]
        self._results = results
        self._owned = [np.require(array, requirements="A") for array in arrays]
        self._operands = np.zeros((self._num_matrices, len(fold.operands)), OPERAND_DTYPE)
        owned = iter(self._owned)
        for index, variable in enumerate(fold.operands):
            self._operands["axes"][:, index] = self._seen(variable.axes)
            if variable.axes != Axes.INDEX:
                array = next(owned)
                self._fill(self._operands[:, index], array, variable.axes, batch)
                self._operands["element"][:, index] = _ELEMENTS[array.dtype]
        self._states = np.zeros((self._num_matrices, len(fold.states)), STATE_DTYPE)
        self._states["axes"] = [self._seen(state.axes) for state in fold.states]
        self._states["initial"] = [state.initial for state in fold.states]
        self._outputs = np.zeros((self._num_matrices, len(results)), STATE_DTYPE) if fold.finish is not None else self._states
        for index, (axes, array) in enumerate(zip(fold.results, results, strict=True)):
            self._outputs["axes"][:, index] = self._seen(axes)
            self._fill(self._outputs[:, index], array, axes, batch)

    def _seen(self, axes: Axes) -> Axes:
        return _MIRRORED.get(axes, axes) if self._is_mirrored else axes

    def _fill(self, rows: NDArray[np.void], array: NDArray[Any], axes: Axes, batch: tuple[int, ...]) -> None:
        """Addresses and strides of a variable, for each matrix."""
        inner = len(LETTERS[axes])
        outer = np.broadcast_to(array, (*batch, *array.shape[array.ndim - inner :]))
        offsets = np.zeros(batch, np.intp)
        for axis, (size, stride) in enumerate(zip(batch, outer.strides, strict=False)):
            offsets += np.arange(size).reshape(-1, *(1,) * (len(batch) - axis - 1)) * stride
        rows["values"] = (array.__array_interface__["data"][0] + offsets.ravel()).astype(np.uintp)
        strides = [stride // array.itemsize for stride in outer.strides[len(batch) :]]
        if strides:
            rows["strides"] = strides[::-1] if self._is_mirrored and axes == Axes.PAIR else strides

    def execute(self) -> None:
        """Runs all parts. Rows are cut where each part has its rows alone; parts of columns add to rows of their own."""
        if Axes.COLUMN in self._kinds:
            self._execute_columns()
            return
        size = min(max(-(-self._rows // _NUM_ROW_PARTS), _MIN_ROWS), _MAX_ROWS)
        cuts = [(first, min(first + size, self._rows)) for first in range(0, self._rows, size)]
        totals = [np.zeros((self._num_matrices, len(cuts))) if not axes else None for axes in self._kinds]
        calls = []
        for matrix in range(self._num_matrices):
            for part, cut in enumerate(cuts):
                states, outputs = self._tables(matrix)
                for index, total in enumerate(totals):
                    if total is not None:
                        states["values"][index] = total[matrix, part : part + 1].ctypes.data
                calls.append(partial(self._call, matrix, states, outputs, cut, (0, self._columns)))
        _together(calls)
        self._add_totals(totals)

    def _execute_columns(self) -> None:
        num_chunks = max(-(-self._columns // CHUNK), 1)
        num_parts = min(num_chunks, _NUM_COLUMN_PARTS)
        edges = [num_chunks * part // num_parts * CHUNK for part in range(num_parts)] + [self._columns]
        totals = [np.zeros((self._num_matrices, num_parts)) if not axes else None for axes in self._kinds]
        row_results = [index for index, axes in enumerate(self._kinds) if axes == Axes.ROW]
        row_bytes = num_parts * max(self._depth, 1) * 4 * max(len(row_results), 1)
        height = min(max(_PARTIAL_BYTES // row_bytes, 1), max(self._rows, 1))
        group = max(_PARTIAL_BYTES // (row_bytes * height), 1)  # matrices at once
        for start in range(0, self._num_matrices, group):
            matrices = range(start, min(start + group, self._num_matrices))
            for first in range(0, self._rows, height):
                rows = (first, min(first + height, self._rows))
                shape = (len(matrices), num_parts, rows[1] - rows[0], self._depth)
                partials = {index: np.zeros(shape, np.float32) for index in row_results}
                calls = []
                for matrix_index, matrix in enumerate(matrices):
                    for part in range(num_parts):
                        states, outputs = self._tables(matrix)
                        for index, total in enumerate(totals):
                            if total is not None:
                                states["values"][index] = total[matrix, part : part + 1].ctypes.data
                        for index, sums in partials.items():
                            # Addressed as from row 0 on, as the results are.
                            states["values"][index] = sums[matrix_index, part].ctypes.data - first * self._depth * 4
                            states["strides"][index] = (self._depth, 1)
                        calls.append(partial(self._call, matrix, states, outputs, rows, (edges[part], edges[part + 1])))
                _together(calls)
                for index, sums in partials.items():
                    result = self._results[index].reshape(self._num_matrices, self._rows, self._depth)
                    result[matrices.start : matrices.stop, rows[0] : rows[1]] = sums.sum(axis=1)
        self._add_totals(totals)

    def _tables(self, matrix: int) -> tuple[NDArray[np.void], NDArray[np.void]]:
        """Tables of the states and of the results, which are the same without a finish."""
        states = self._states[matrix].copy()
        return states, (states if self._outputs is self._states else self._outputs[matrix])

    def _call(
        self, matrix: int, states: NDArray[np.void], outputs: NDArray[np.void], rows: tuple[int, int], columns: tuple[int, int]
    ) -> None:
        self._native.run(self._operands[matrix], states, outputs, self._depth, rows, columns)

    def _add_totals(self, totals: Sequence[NDArray[np.float64] | None]) -> None:
        for result, total in zip(self._results, totals, strict=True):
            if total is not None:
                result[...] = total.sum(axis=1).reshape(result.shape)


def _together(calls: Sequence[Callable[[], None]]) -> None:
    """Runs calls, the first in this thread if it is the only one."""
    if len(calls) == 1:
        calls[0]()
        return
    for done in [_threads().submit(call) for call in calls]:
        done.result()


def _run_float64(
    fold: Fold, arrays: Sequence[NDArray[Any]], batch: tuple[int, ...], sizes: dict[str, int]
) -> list[NDArray[np.float64]]:
    """The same in float64, all pairs at once for one k after the other."""
    shape, depth = (*batch, sizes["M"], sizes["N"]), sizes["K"]
    by_name = dict(
        zip((variable.name for variable in fold.arrays), (np.asarray(array, np.float64) for array in arrays), strict=True)
    )

    def operand(variable: Variable, k: int) -> Any:
        if variable.axes == Axes.INDEX:
            return np.float64(k)
        array = by_name[variable.name]
        if variable.axes == Axes.PAIR:
            return array
        if variable.axes == Axes.NONE:
            return array[..., None, None]
        return array[..., :, None, k] if variable.axes == Axes.ROW else array[..., None, :, k]

    pairs: list[Any] = [np.full(shape, state.initial) if state.axes == Axes.PAIR else np.float64(0) for state in fold.states]
    sums = [None if state.axes == Axes.PAIR else np.zeros(shape_of(state.axes, batch, sizes)) for state in fold.states]
    for k in range(depth):
        results = evaluate(fold.step, [*(operand(variable, k) for variable in fold.operands), *pairs])
        for index, (state, total) in enumerate(zip(fold.states, sums, strict=True)):
            value = np.broadcast_to(results[index], shape)
            if total is None:
                pairs[index] = value
            elif state.axes == Axes.NONE:
                total[...] += value.sum(axis=(-2, -1))
            else:
                total[..., k] += value.sum(axis=-1 if state.axes == Axes.ROW else -2)
    if fold.finish is not None:
        inputs = [operand(variable, 0) if variable.axes in (Axes.NONE, Axes.PAIR) else None for variable in fold.operands]
        return [np.broadcast_to(value, shape).copy() for value in evaluate(fold.finish, [*inputs, *pairs])]
    return [np.array(pair if total is None else total) for pair, total in zip(pairs, sums, strict=True)]
