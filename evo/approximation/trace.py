"""A function over NumPy arrays as a graph of its elementwise operations.

The function runs once, at objects that stand for arrays, and sees a NumPy whose arrays these objects can index. Owns which
functions of NumPy are known, and what the function sees of its module.
"""

from collections.abc import Callable, Sequence
from types import CellType, FunctionType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.approximation.graph import Term, cast
from evo.approximation.traced import (
    FUNCTIONS,
    Points,
    Traced,
    UntraceableError,
    constants,
    each_term,
    elementwise,
    like,
    refusals,
    refusing,
    sample_of,
)


def _implements(function: Any) -> Callable[[Callable[..., Traced]], Callable[..., Traced]]:
    """Note what a function of NumPy does in a trace."""
    return lambda made: FUNCTIONS.setdefault(function, made)


@_implements(np.where)
def _where(condition: Any, *values: Any) -> Traced:
    sample = np.where(sample_of(condition), *map(sample_of, values))
    return elementwise("where", (condition, *values), (np.dtype(np.bool_), sample.dtype, sample.dtype), sample)


@_implements(np.select)
def _select(conditions: Sequence[Any], values: Sequence[Any], default: Any = 0) -> Traced:
    found = default
    for condition, value in reversed([*zip(conditions, values, strict=True)]):
        found = _where(condition, value, found)
    return found  # type: ignore[no-any-return]


@_implements(np.take_along_axis)
def _take_along_axis(table: Any, indices: Any, axis: Any = 0) -> Traced:
    if axis not in (0, -1):
        raise UntraceableError("it takes from other than a table of one axis")
    return _taken(table, indices)


def _taken(table: Any, indices: Any) -> Traced:
    """Entries of a table of one axis."""
    if not isinstance(table, np.ndarray) or table.ndim != 1 or type(indices) is not Traced or indices.dtype.kind not in "iu":
        raise UntraceableError("it takes from other than a table of one axis")
    plain = np.array(table)
    return elementwise("take", (indices,), (indices.dtype,), np.take(plain, indices.sample), plain)


@_implements(np.clip)
def _clip(values: Any, least: Any, most: Any) -> Traced:
    return values.clip(least, most)  # type: ignore[no-any-return]


@_implements(np.round)
def _round(values: Any, decimals: int = 0) -> Traced:
    if decimals or values.dtype.kind != "f":
        raise UntraceableError("it rounds to decimals, or integers")
    rounded: Traced = np.rint(values)
    return rounded


@_implements(np.stack)
def _stack(arrays: Sequence[Any], axis: int = 0) -> Traced:
    sample = np.stack([sample_of(each) for each in arrays], axis)
    if not all(type(each) is Traced for each in arrays) or axis % sample.ndim == 0:
        raise UntraceableError("it stacks points")
    terms = np.stack([each_term(cast, each.terms, sample.dtype) for each in arrays], axis)
    if len({id(each.mask) for each in arrays}) != 1:
        raise UntraceableError("it combines arrays of different lengths")
    return Traced(terms, sample, arrays[0].mask)


@_implements(np.full_like)
def _full_like(array: Any, value: Any, dtype: Any = None) -> Traced:
    return like(array, np.asarray(value).astype(dtype or array.dtype))


@_implements(np.zeros_like)
def _zeros_like(array: Any, dtype: Any = None) -> Traced:
    return _full_like(array, 0, dtype)


@_implements(np.ones_like)
def _ones_like(array: Any, dtype: Any = None) -> Traced:
    return _full_like(array, 1, dtype)


@_implements(np.copy)
def _copy(array: Any) -> Traced:
    return array.copy()  # type: ignore[no-any-return]


class _Table(np.ndarray):
    """An array that objects of a trace can index."""

    def __getitem__(self, index: Any) -> Any:
        return _taken(self, index) if type(index) is Traced else super().__getitem__(index)

    def take(self, indices: Any, *args: Any, **options: Any) -> Any:
        """As of an array, of one axis."""
        if type(indices) is not Traced:
            return super().take(indices, *args, **options)
        if any(each not in (None, 0, "raise") for each in (*args, *options.values())):
            raise UntraceableError("it takes from a table in another way than by indices alone")
        return _taken(self, indices)


def _as_table(value: Any) -> Any:
    return value.view(_Table) if type(value) is np.ndarray else value


class _TracedNumPy:
    """NumPy as a function sees it that is traced: its arrays are tables, and those as long as the inputs have terms."""

    def __init__(self, first: Traced):
        self._first = first

    def __getattr__(self, name: str) -> Any:
        value = getattr(np, name)
        if isinstance(value, type | np.ufunc) or not callable(value):
            return value
        return refusing()(lambda *args, **options: _as_table(value(*args, **options)))

    @refusing()
    def asarray(self, values: Any, dtype: Any = None) -> Any:
        """As NumPy's."""
        if type(values) is Traced:
            return values.astype(values.dtype if dtype is None else dtype, copy=False)
        return _as_table(np.asarray(values, dtype))

    @refusing()
    def array(self, values: Any, dtype: Any = None) -> Any:
        """As NumPy's."""
        if type(values) is Traced:
            return values.astype(values.dtype if dtype is None else dtype)
        return _as_table(np.array(values, dtype))

    @refusing()
    def full(self, shape: Any, value: Any, dtype: Any = None) -> Any:
        """As NumPy's."""
        whole = shape if isinstance(shape, tuple) else (shape,)
        if not isinstance(whole[0], Points):
            return _as_table(np.full(shape, value, dtype))
        if type(value) is Traced:
            raise UntraceableError("it fills an array with values of points")
        values = np.full(whole[1:], value, dtype)
        sample = np.broadcast_to(values, (len(self._first.sample), *values.shape))
        return Traced(constants(values, sample.ndim), sample.copy())

    @refusing()
    def zeros(self, shape: Any, dtype: Any = float) -> Any:
        """As NumPy's."""
        return self.full(shape, 0, dtype)

    @refusing()
    def ones(self, shape: Any, dtype: Any = float) -> Any:
        """As NumPy's."""
        return self.full(shape, 1, dtype)


def _of_trace(value: Any, module: dict[str, Any], seen: dict[int, Any], numpy: _TracedNumPy) -> Any:
    """A value of a function's module as the function sees it that is traced. module: its names, as the function knows them."""
    if value is np:
        return numpy
    if isinstance(value, list | tuple):
        return type(value)(map(_as_table, value)) if type(value) in (list, tuple) else value
    if type(value) is not FunctionType or not (value.__globals__ is module or value.__closure__):
        return _as_table(value)
    if id(value) not in seen:
        is_new = id(value.__globals__) not in seen
        names = seen.setdefault(id(value.__globals__), {})
        cells = tuple(CellType() for _ in value.__closure__ or ())
        made = seen[id(value)] = FunctionType(value.__code__, names, value.__name__, value.__defaults__, cells or None)
        made.__kwdefaults__ = value.__kwdefaults__
        for cell, old in zip(cells, value.__closure__ or (), strict=True):
            cell.cell_contents = _of_trace(old.cell_contents, module, seen, numpy)
        if is_new:
            names.update((name, _of_trace(each, module, seen, numpy)) for name, each in value.__globals__.items())
    return seen[id(value)]


def trace(function: Callable[..., Any], inputs: Sequence[NDArray[Any]]) -> list[Term]:
    """The results of a function as graphs.

    Args:
        inputs: samples of them, which decide their types.

    Raises:
        UntraceableError: it is not a graph of elementwise operations, or gives other results at the sample.
    """
    given = [Traced([Term("input", (), each.dtype, k)], each) for k, each in enumerate(inputs)]
    for each in given:
        each.is_shared = True
    seen = _of_trace(function, getattr(function, "__globals__", {}), {}, _TracedNumPy(given[0]))
    noted: list[str] = []
    token = refusals.set(noted)
    try:
        with refusing(), np.errstate(all="ignore"):
            found, expected = seen(*given), function(*inputs)
            results, plain = (each if isinstance(each, tuple | list) else (each,) for each in (found, expected))
            same = len(results) == len(plain) and all(
                isinstance(a, Traced)
                and a.terms.shape == (1,)
                and a.mask is None
                and a.sample.dtype == b.dtype
                and a.sample.shape == b.shape
                and a.sample.tobytes() == b.tobytes()
                for a, b in zip(results, plain, strict=True)
            )
    finally:
        refusals.reset(token)
    if noted:
        raise UntraceableError(noted[0])
    if not same:
        raise UntraceableError("its results at objects that stand for arrays differ from those at arrays")
    return [each.terms[0] for each in results]
