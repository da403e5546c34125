"""NumPy as a traced function sees it.

Owns the meaning of NumPy's functions, types and tables at the arrays of `evo.approximation.traced`.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.approximation.isolation import read_only
from evo.approximation.traced import (
    FUNCTIONS,
    Traced,
    UntraceableError,
    as_kind,
    cast_term,
    constants,
    dot,
    each_term,
    elementwise,
    entries,
    has_traced,
    made,
    moved,
    refusing,
    sample_of,
)

# Functions that only move elements, also of lists of arrays.
_MOVES = (
    "concatenate stack hstack vstack dstack column_stack block reshape ravel transpose swapaxes moveaxis expand_dims squeeze "
    "broadcast_to split array_split hsplit vsplit tile repeat roll flip fliplr flipud "
    "delete append"
)
KINDS = "uint8 uint16 uint32 uint64 int8 int16 int32 int64 intp float16 float32 float64 bool_".split()


def _implements(function: Any) -> Callable[[Callable[..., Traced]], Callable[..., Traced]]:
    """Register the meaning of a function of NumPy in a trace."""
    return lambda made: FUNCTIONS.setdefault(function, made)


@_implements(np.where)
def _where(condition: Any, *values: Any) -> Traced:
    sample = np.where(sample_of(condition), *map(sample_of, values))
    return elementwise("where", (condition, *values), (np.dtype(np.bool_), sample.dtype, sample.dtype), sample)


@_implements(np.select)
def _select(conditions: Sequence[Any], values: Sequence[Any], default: Any = 0) -> Traced:
    if not all(type(condition) is Traced and condition.dtype == np.bool_ for condition in conditions):
        raise UntraceableError("it selects by other than conditions")
    samples: Any = [[sample_of(argument) for argument in arguments] for arguments in (conditions, values)]
    select: Any = np.select
    kind = select(*samples, sample_of(default)).dtype
    result = as_kind(default, kind)
    for operand in (*conditions, *values):
        if type(operand) is Traced:
            _in_order(operand)
    for condition, value in reversed([*zip(conditions, values, strict=True)]):
        result = _where(condition, as_kind(value, kind), result)
    return result  # type: ignore[no-any-return]


@_implements(np.take)
def _take(table: Any, indices: Any, axis: Any = None) -> Traced:
    if axis != 0 and (axis not in (-1, None) or np.ndim(table) != 1):
        raise UntraceableError("it takes from a table by other than indices of its first axis")
    return entries(np.asarray(table), indices)


@_implements(np.take_along_axis)
def _take_along_axis(table: Any, indices: Any, axis: Any = 0) -> Traced:
    if np.ndim(table) != 1:
        raise UntraceableError("it takes along an axis from other than a table of one axis")
    return _take(table, indices, axis)


@_implements(np.clip)
def _clip(values: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Traced:  # noqa: A002
    return values.clip(a_min if min is None else min, a_max if max is None else max)  # type: ignore[no-any-return]


@_implements(np.round)
def _round(values: Any, decimals: int = 0) -> Traced:
    if decimals or values.dtype.kind != "f":
        raise UntraceableError("it rounds to decimals, or integers")
    rounded: Traced = np.rint(values)
    return rounded


def _moving(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of NumPy that only moves elements, of arrays in a trace."""

    def call(*args: Any, **options: Any) -> Any:
        sources: list[Traced] = []
        sample = function(*(_part(argument, sources) for argument in args), **options)
        dtype = np.asarray(sample if isinstance(sample, np.ndarray) else sample[0]).dtype
        options.pop("dtype", None)
        return moved(sources, sample, function(*(_part(argument, sources, dtype) for argument in args), **options))

    return call


def _part(value: Any, sources: list[Traced], dtype: Any = None) -> Any:
    """An argument with samples in place of arrays of the trace, or with their terms as of a type."""
    if isinstance(value, list | tuple):
        return type(value)(_part(item, sources, dtype) for item in value)
    if type(value) is Traced:
        if value.mask is not None:
            raise UntraceableError("it moves elements of a selection")
        sources.append(value)
        return (
            value.sample if dtype is None else value.terms if dtype == value.dtype else each_term(cast_term, value.terms, dtype)
        )
    return constants(value.astype(dtype)) if isinstance(value, np.ndarray) and dtype is not None else value


for _name in _MOVES.split():
    FUNCTIONS[getattr(np, _name)] = _moving(getattr(np, _name))
FUNCTIONS[np.dot] = dot


@_implements(np.full_like)
def _full_like(array: Any, fill_value: Any, dtype: Any = None) -> Traced:
    return _filled(_in_order(array).shape, fill_value, array.dtype if dtype is None else dtype)


@_implements(np.zeros_like)
def _zeros_like(array: Any, dtype: Any = None) -> Traced:
    return _full_like(array, 0, dtype)


@_implements(np.ones_like)
def _ones_like(array: Any, dtype: Any = None) -> Traced:
    return _full_like(array, 1, dtype)


@_implements(np.empty_like)
def _empty_like(array: Any, dtype: Any = None) -> Traced:
    return _undefined(_full_like(array, 0, dtype))


def _filled(shape: Any, value: Any, dtype: Any) -> Traced:
    values = np.zeros(shape, np.asarray(sample_of(value)).dtype if dtype is None else dtype)
    filled = Traced(constants(values), values)
    filled[...] = value
    return filled


def _undefined(array: Traced) -> Traced:
    array.terms = each_term(lambda term: made("undefined", (), term.dtype), array.terms)
    return array


@_implements(np.copy)
def _copy(array: Any) -> Traced:
    return Traced(np.copy(array.terms), np.copy(array.sample), array.mask)  # in the order of its memory, other than the method


def _in_order(array: Any) -> Any:
    """An array whose elements lie in memory in the order of its axes, as in an array like it."""
    if not array.sample.flags.c_contiguous:
        raise UntraceableError("it makes an array like one whose elements have another order in memory")
    return array


class Table(np.ndarray):
    """An array that objects of a trace can index."""

    def __getitem__(self, index: Any) -> Any:
        return entries(self, index) if has_traced(index) else super().__getitem__(index)

    def __eq__(self, other: Any) -> Any:  # also of items of lists, which need not be equal to be the same
        if self is not other and np.may_share_memory(self, other) and self.dtype.kind == "f" and np.isnan(self).any():
            raise UntraceableError("it compares NaNs that may be one object")
        return super().__eq__(other)

    __hash__ = None

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return array[()] if return_scalar else super().__array_wrap__(array, context, False)

    def take(self, indices: Any, axis: Any = None, out: Any = None, mode: Any = "raise") -> Any:
        """As of an array."""
        if type(indices) is not Traced:
            return super().take(indices, axis, out, mode)
        if out is not None or mode != "raise":
            raise UntraceableError("it takes from a table in another way than by indices alone")
        return _take(self, indices, axis)


def as_table(value: Any) -> Any:
    """An array, or those in a list or tuple, as tables; anything else as it is."""
    if type(value) in (list, tuple):
        return type(value)(map(as_table, value))
    return value.view(Table) if type(value) is np.ndarray else value


def as_read_only_table(array: NDArray[Any]) -> Table:
    """Copy an array as a table."""
    return read_only(array).view(Table)


class _Instead:
    """Takes the place of an object of NumPy's, to which it is equal."""

    def __init__(self, plain: Any):
        self.plain = plain

    def __eq__(self, other: Any) -> Any:
        return self.plain == (other.plain if isinstance(other, _Instead) else other)

    def __hash__(self) -> int:
        return hash(self.plain)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plain, name)


class _Kind(_Instead):
    """A type of NumPy's, which takes arrays of a trace, too."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Its type as NumPy asks for it."""
        dtype: np.dtype[Any] = np.dtype(self.plain)
        return dtype

    def __call__(self, *values: Any) -> Any:
        if values and type(values[0]) is Traced:
            return values[0].astype(self.plain, copy=False)
        return as_table(self.plain(*values))

    def __instancecheck__(self, value: Any) -> bool:
        return isinstance(value, self.plain)


class _Ufunc(_Instead):
    """A ufunc of NumPy's, which joins lists of arrays of a trace, too."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        return as_table(self.plain(*args, **options))

    def reduce(self, array: Any, *args: Any, **options: Any) -> Any:
        """As of a ufunc."""
        return self.plain.reduce(
            np.stack(array) if type(array) in (list, tuple) and has_traced(array) else array, *args, **options
        )


class _Function(_Instead):
    """A function of NumPy's, which takes arrays of a trace, too.

    method: its meaning for these; None: NumPy's own.
    """

    def __init__(self, plain: Any, method: Callable[..., Any] | None):
        super().__init__(plain)
        self._method = method

    def __call__(self, *args: Any, **options: Any) -> Any:
        if self._method and self.plain in _FILLED and not options.keys() - {"dtype", "shape", "fill_value"}:
            return self._method(*args, **options)
        if not any(map(has_traced, (*args, *options.values()))):
            return as_table(self.plain(*args, **options))
        with refusing():
            return (self._method or self.plain)(*args, **options)


_FILLED = (np.zeros, np.ones, np.empty, np.full)


class TracedNumPy:
    """NumPy as a traced function sees it: its arrays are tables, and arrays that it fills have terms."""

    def __init__(self) -> None:
        self._kinds = {kind: _Kind(kind) for kind in (getattr(np, name) for name in KINDS)}
        self._ufuncs = {name: _Ufunc(plain) for name, plain in vars(np).items() if isinstance(plain, np.ufunc)}

    def __getattr__(self, name: str) -> Any:
        plain = getattr(np, name)
        if isinstance(plain, np.ufunc):
            return self._ufuncs[name]
        if isinstance(plain, type) or not callable(plain):
            return self._kinds.get(plain, plain) if isinstance(plain, type) else plain
        method: Any = getattr(type(self), f"_{name}", None)
        return _Function(plain, partial(method, self) if method else None)

    def _asarray(self, values: Any, dtype: Any = None) -> Any:
        if type(values) is not Traced:
            rows = [self._asarray(row, dtype) if type(row) in (list, tuple) or has_traced(row) else row for row in values]
            values = np.stack(rows if dtype is None else [as_kind(row, np.dtype(dtype)) for row in rows])
        return values.astype(values.dtype if dtype is None else dtype, copy=False)

    _asanyarray = _asarray

    def _ascontiguousarray(self, values: Any, dtype: Any = None) -> Any:
        array = self._asarray(values, dtype)
        return array if array.sample.flags.c_contiguous else array.copy()

    def _array(self, values: Any, dtype: Any = None, copy: bool = True) -> Any:
        array = self._asarray(values, dtype)
        return _copy(array) if copy and array is values else array

    def _full(self, shape: Any, fill_value: Any, dtype: Any = None) -> Any:
        return _filled(shape, fill_value, dtype)

    def _empty(self, shape: Any, dtype: Any = float) -> Any:
        return _undefined(_filled(shape, 0, dtype))

    def _zeros(self, shape: Any, dtype: Any = float) -> Any:
        return _filled(shape, 0, dtype)

    def _ones(self, shape: Any, dtype: Any = float) -> Any:
        return _filled(shape, 1, dtype)
