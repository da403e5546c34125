"""A function over NumPy arrays as a graph of its elementwise operations.

The function runs once, at objects that stand for arrays, and sees a NumPy whose arrays these objects can index. Owns which
functions of NumPy are known, and what the function sees of its module.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.approximation.graph import Term, cast, ordered
from evo.approximation.traced import (
    FUNCTIONS,
    Points,
    Traced,
    UntraceableError,
    as_kind,
    constants,
    each_term,
    elementwise,
    like,
    refusals,
    refusing,
    sample_of,
)

_LOCK = RLock()  # of modules that are changed for a time
_TAKEN: list[Term] = []  # looked up in tables by the function that is traced


def _implements(function: Any) -> Callable[[Callable[..., Traced]], Callable[..., Traced]]:
    """Note what a function of NumPy does in a trace."""
    return lambda made: FUNCTIONS.setdefault(function, made)


@_implements(np.where)
def _where(condition: Any, *values: Any) -> Traced:
    sample = np.where(sample_of(condition), *map(sample_of, values))
    return elementwise("where", (condition, *values), (np.dtype(np.bool_), sample.dtype, sample.dtype), sample)


@_implements(np.select)
def _select(conditions: Sequence[Any], values: Sequence[Any], default: Any = 0) -> Traced:
    if not all(type(each) is Traced and each.dtype == np.bool_ for each in conditions):
        raise UntraceableError("it selects by other than conditions")
    samples: Any = [[sample_of(each) for each in given] for given in (conditions, values)]
    select: Any = np.select
    kind = select(*samples, sample_of(default)).dtype
    found = as_kind(default, kind)
    for condition, value in reversed([*zip(conditions, values, strict=True)]):
        found = _where(condition, as_kind(value, kind), found)
    return found  # type: ignore[no-any-return]


@_implements(np.take_along_axis)
def _take_along_axis(table: Any, indices: Any, axis: Any = 0) -> Traced:
    if axis not in (0, -1) or indices.ndim != 1:
        raise UntraceableError("it takes from other than a table of one axis")
    return _taken(table, indices)


def _taken(table: Any, indices: Any) -> Traced:
    """Entries of a table of one axis."""
    if not isinstance(table, np.ndarray) or table.ndim != 1 or type(indices) is not Traced or indices.dtype.kind not in "iu":
        raise UntraceableError("it takes from other than a table of one axis")
    plain = np.array(table) != 0 if table.dtype == np.bool_ else np.array(table)  # whose bytes may be other than 0 and 1
    found = elementwise("take", (indices,), (indices.dtype,), np.take(plain, indices.sample), plain)
    _TAKEN.extend(found.terms.ravel().tolist())
    return found


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
    if any(each.mask is not None for each in arrays):
        raise UntraceableError("it combines arrays of different lengths")
    return Traced(terms, sample, arrays[0].mask)


@_implements(np.full_like)
def _full_like(array: Any, value: Any, dtype: Any = None) -> Traced:
    return like(array, np.full_like(np.empty((), array.dtype), value, dtype=dtype))


@_implements(np.zeros_like)
def _zeros_like(array: Any, dtype: Any = None) -> Traced:
    return _full_like(array, 0, dtype)


@_implements(np.ones_like)
def _ones_like(array: Any, dtype: Any = None) -> Traced:
    return _full_like(array, 1, dtype)


@_implements(np.empty_like)
def _empty_like(array: Any, dtype: Any = None) -> Traced:
    found = _full_like(array, 0, dtype)
    found.terms = each_term(_undefined, found.terms)
    return found


def _undefined(term: Term) -> Term:
    return Term("undefined", (), term.dtype)


@_implements(np.copy)
def _copy(array: Any) -> Traced:
    return array.copy()  # type: ignore[no-any-return]


class _Table(np.ndarray):
    """An array that objects of a trace can index."""

    def __getitem__(self, index: Any) -> Any:
        return _taken(self, index) if type(index) is Traced else super().__getitem__(index)

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return array[()] if return_scalar else super().__array_wrap__(array, context, False)

    def take(self, indices: Any, *args: Any, **options: Any) -> Any:
        """As of an array, of one axis."""
        if type(indices) is not Traced:
            return super().take(indices, *args, **options)
        if any(each not in (None, 0, "raise") for each in (*args, *options.values())):
            raise UntraceableError("it takes from a table in another way than by indices alone")
        return _taken(self, indices)


def _as_table(value: Any) -> Any:
    return value.view(_Table) if type(value) is np.ndarray else value


def _type_of(value: Any, *more: Any) -> Any:
    kind = type(value, *more)
    return np.ndarray if kind in (Traced, _Table) else kind


def _is_of_trace(value: Any) -> bool:
    return type(value) in (Traced, Points) or (type(value) in (list, tuple) and any(map(_is_of_trace, value)))


class _TracedNumPy:
    """NumPy as a function sees it that is traced: its arrays are tables, and those as long as the inputs have terms."""

    def __init__(self, first: Traced):
        self._first = first

    def __getattr__(self, name: str) -> Any:
        plain = getattr(np, name)
        if isinstance(plain, type | np.ufunc) or not callable(plain):
            return plain

        def call(*args: Any, **options: Any) -> Any:
            if not any(map(_is_of_trace, (*args, *options.values()))):
                return _as_table(plain(*args, **options))
            with refusing():
                own = getattr(type(self), f"_{name}", None)
                return own(self, *args, **options) if own else plain(*args, **options)

        return call

    def _asarray(self, values: Any, dtype: Any = None) -> Any:
        return values.astype(values.dtype if dtype is None else dtype, copy=False)

    def _array(self, values: Any, dtype: Any = None) -> Any:
        return values.astype(values.dtype if dtype is None else dtype)

    def _full(self, shape: Any, value: Any, dtype: Any = None) -> Any:
        whole = shape if isinstance(shape, tuple) else (shape,)
        if type(whole[0]) is not Points or any(map(_is_of_trace, (value, *whole[1:]))):
            raise UntraceableError("it fills an array with values of points")
        values = np.full(whole[1:], value, dtype)
        sample = np.broadcast_to(values, (len(self._first.sample), *values.shape))
        return Traced(constants(values, sample.ndim), sample.copy())

    def _empty(self, shape: Any, dtype: Any = float) -> Any:
        found = self._full(shape, 0, dtype)
        found.terms = each_term(_undefined, found.terms)
        return found

    def _zeros(self, shape: Any, dtype: Any = float) -> Any:
        return self._full(shape, 0, dtype)

    def _ones(self, shape: Any, dtype: Any = float) -> Any:
        return self._full(shape, 1, dtype)


@contextmanager
def _tables_of(function: Any, numpy: _TracedNumPy) -> Iterator[None]:
    """Have a function's module and closures see arrays as tables, and NumPy as it is traced, for a time."""
    names, cells = getattr(function, "__globals__", {}), [*(getattr(function, "__closure__", None) or ())]
    if str(getattr(function, "__module__", "")).startswith("evo."):  # which has no such functions
        names, cells = {}, []
    made = {id(getattr(np, name)): getattr(numpy, name) for name in ("array", "asarray", "full", "zeros", "ones", "empty")}
    made[id(np)] = numpy
    places: list[tuple[Any, Any, Any]] = [(names, name, value) for name, value in names.items()]
    known = set()
    while cells:
        cell = cells.pop()
        if id(cell) not in known:
            known.add(id(cell))
            with suppress(ValueError):  # it is empty
                places.append((cell, "cell_contents", cell.cell_contents))
                cells += getattr(cell.cell_contents, "__closure__", None) or ()
    changed = [(holder, key, old, made.get(id(old), _as_table(old))) for holder, key, old in places]
    changed = [each for each in changed if each[3] is not each[2]]
    if "type" not in names and names:
        names["type"] = _type_of
    try:
        for holder, key, _, new in changed:
            _put(holder, key, new)
        yield
    finally:
        for holder, key, old, new in changed:
            if _at(holder, key) is new:
                _put(holder, key, old)
        for holder, key in [*((names, name) for name in names), *((holder, key) for holder, key, _ in places)]:
            if type(left := _at(holder, key)) is _Table:  # put there by the function
                _put(holder, key, left.view(np.ndarray))
        if names.get("type") is _type_of:
            del names["type"]


def _at(holder: Any, key: str) -> Any:
    return holder.get(key) if isinstance(holder, dict) else getattr(holder, key, None)


def _put(holder: Any, key: str, value: Any) -> None:
    if isinstance(holder, dict):
        holder[key] = value
    else:
        setattr(holder, key, value)


def trace(function: Callable[..., Any], inputs: Sequence[NDArray[Any]]) -> list[Term]:
    """The results of a function as graphs.

    Args:
        inputs: samples of them, which decide their types.

    Raises:
        UntraceableError: it is not a graph of elementwise operations, or gives other results at the sample.
    """
    with _LOCK:
        refusals.clear()
        _TAKEN.clear()
        with refusing(), np.errstate(all="ignore"):
            given = [Traced([Term("input", (), each.dtype, k)], each) for k, each in enumerate(inputs)]
            for each in given:
                each.keep()
            with _tables_of(function, _TracedNumPy(given[0])):
                found = function(*given)
            expected = function(*inputs)
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
        noted, taken = [*refusals], {*_TAKEN}
    if noted:
        raise UntraceableError(noted[0])
    if not same:
        raise UntraceableError("its results at objects that stand for arrays differ from those at arrays")
    terms = [each.terms[0] for each in results]
    used = {*ordered(terms)}
    if taken - used:
        raise UntraceableError("it looks up what it does not use, which may lie beyond the table")
    if any(term.op == "undefined" for term in used):
        raise UntraceableError("it leaves elements of an empty array as they are")
    return terms
