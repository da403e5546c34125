"""A function over NumPy arrays as a graph of its elementwise operations.

The function runs at objects that stand for arrays, and sees a NumPy whose arrays these objects can index. It runs for two numbers
of points, and each point's results must be made in the same way of this point's inputs. Owns which functions of NumPy are known,
and the function's view of its modules. Slightly long: NumPy has many names for few operations.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import RLock
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.approximation.dependence import may_fail
from evo.approximation.graph import Term, evaluate, ordered
from evo.approximation.process import is_own
from evo.approximation.traced import (
    FUNCTIONS,
    NUM_POINTS,
    Length,
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
    known_terms,
    made,
    moved,
    refusals,
    refusing,
    sample_of,
)

_LOCK = RLock()  # of modules that are changed for a time
# Functions that only move elements, also of lists of arrays.
_MOVES = (
    "concatenate stack hstack vstack dstack column_stack block reshape ravel transpose swapaxes moveaxis expand_dims squeeze "
    "atleast_1d atleast_2d broadcast_to broadcast_arrays split array_split hsplit vsplit tile repeat roll flip fliplr flipud "
    "delete append"
)
_KINDS = "uint8 uint16 uint32 uint64 int8 int16 int32 int64 intp float16 float32 float64 bool_".split()


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
    if type(value) in (list, tuple):
        return type(value)(_part(item, sources, dtype) for item in value)
    if type(value) is Traced:
        if value.mask is not None:
            raise UntraceableError("it moves elements of a selection")
        sources.append(value)
        return (
            value.sample if dtype is None else value.terms if dtype == value.dtype else each_term(cast_term, value.terms, dtype)
        )
    if type(value) is Length:
        return int.__int__(value)
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


class _Table(np.ndarray):
    """An array that objects of a trace can index."""

    def __getitem__(self, index: Any) -> Any:
        return entries(self, index) if has_traced(index) else super().__getitem__(index)

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return array[()] if return_scalar else super().__array_wrap__(array, context, False)

    def take(self, indices: Any, axis: Any = None, out: Any = None, mode: Any = "raise") -> Any:
        """As of an array."""
        if type(indices) is not Traced:
            return super().take(indices, axis, out, mode)
        if out is not None or mode != "raise":
            raise UntraceableError("it takes from a table in another way than by indices alone")
        return _take(self, indices, axis)


def _as_table(value: Any) -> Any:
    if type(value) in (list, tuple) and any(type(item) is np.ndarray for item in value):
        return type(value)(map(_as_table, value))
    if type(value) is dict and any(type(item) is np.ndarray for item in value.values()):
        return {key: _as_table(item) for key, item in value.items()}
    return value.view(_Table) if type(value) is np.ndarray else value


def _type_of(value: Any, *more: Any) -> Any:
    kind = type(value, *more)
    return value.__class__ if kind is Traced else np.ndarray if kind is _Table else kind


def _length_of(value: Any) -> Any:
    return value.shape[0] if type(value) is Traced and value.ndim else len(value)


_BUILTINS = {"type": _type_of, "len": _length_of}


def _is_of_trace(value: Any) -> bool:
    return type(value) is Length or has_traced(value)


class _Kind:
    """A type of NumPy's, which takes arrays of a trace, too."""

    def __init__(self, kind: Any):
        self._kind, self.dtype = kind, np.dtype(kind)

    def __call__(self, *values: Any) -> Any:
        if any(type(value) is Length for value in values):
            raise UntraceableError("it depends on how many points there are")
        if values and type(values[0]) is Traced:
            return values[0].astype(self._kind, copy=False)
        return _as_table(self._kind(*values))

    def __instancecheck__(self, value: Any) -> bool:
        return isinstance(value, self._kind)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kind, name)


class _Ufunc:
    """A ufunc of NumPy's, which joins lists of arrays of a trace, too."""

    def __init__(self, ufunc: Any):
        self._ufunc = ufunc

    def __call__(self, *args: Any, **options: Any) -> Any:
        return _as_table(self._ufunc(*args, **options))

    def reduce(self, array: Any, *args: Any, **options: Any) -> Any:
        """As of a ufunc."""
        return self._ufunc.reduce(
            np.stack(array) if type(array) in (list, tuple) and has_traced(array) else array, *args, **options
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ufunc, name)


class _TracedNumPy:
    """NumPy as a traced function sees it: its arrays are tables, and arrays that it fills have terms."""

    def __init__(self) -> None:
        self._kinds = {kind: _Kind(kind) for kind in (getattr(np, name) for name in _KINDS)}

    def __getattr__(self, name: str) -> Any:
        plain = getattr(np, name)
        if isinstance(plain, np.ufunc):
            return _Ufunc(plain)
        if isinstance(plain, type) or not callable(plain):
            return self._kinds.get(plain, plain) if isinstance(plain, type) else plain
        method: Any = getattr(type(self), f"_{name}", None)

        def call(*args: Any, **options: Any) -> Any:
            if name in ("zeros", "ones", "empty", "full") and not options.keys() - {"dtype", "shape", "fill_value"}:
                return method(self, *args, **options)
            if not any(map(_is_of_trace, (*args, *options.values()))):
                return _as_table(plain(*args, **options))
            with refusing():
                return method(self, *args, **options) if method else plain(*args, **options)

        return call

    def _asarray(self, values: Any, dtype: Any = None) -> Any:
        if type(values) is not Traced:
            values = np.stack([self._asarray(row) if type(row) in (list, tuple) else row for row in values])
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


def _namespaces(function: Any) -> list[Any]:
    """Dicts of modules and cells of closures from which a function, and the functions that it calls, read names."""
    spaces: dict[int, Any] = {}
    waiting: list[Any] = [function]
    while waiting:
        item = waiting.pop()
        if isinstance(item, ModuleType):
            inner = [vars(item)] if _is_own(vars(item), function) else []
        else:
            inner = [*(getattr(item, "__closure__", None) or ())]
            if isinstance(item, FunctionType) and _is_own(item.__globals__, function):
                inner.append(item.__globals__)
        for space in inner:
            if id(space) not in spaces:
                spaces[id(space)] = space
                with suppress(ValueError):  # an empty cell
                    values = list(space.values()) if isinstance(space, dict) else [space.cell_contents]
                    waiting += [item for value in values if isinstance(item := _uncached(value), FunctionType | ModuleType)]
    return [*spaces.values()]


def _uncached(value: Any) -> Any:
    """A function without the cache that it may have, which would keep its results."""
    return value.__wrapped__ if hasattr(type(value), "cache_info") else value


def _is_own(names: dict[str, Any], function: Any) -> bool:
    """Tell if a module was written for a function. evo's has none of this kind."""
    package = str(names.get("__name__")).partition(".")[0]
    of_function = str(getattr(function, "__module__", "")).partition(".")[0]
    return package != "evo" and (package == of_function or is_own(names.get("__file__")))


def words_in(function: Any) -> NDArray[np.uint32]:
    """Words of the numbers in the code of a function, and of what it calls and reads in its modules, and next to these."""
    numbers: set[int] = {0, 1}
    waiting = [function]
    for space in _namespaces(function):
        with suppress(ValueError):  # an empty cell
            waiting += space.values() if isinstance(space, dict) else [space.cell_contents]
    seen: set[int] = set()
    while waiting:
        item = _uncached(waiting.pop())
        if isinstance(item, FunctionType):
            waiting += [item.__code__, *(item.__defaults__ or ()), *(item.__kwdefaults__ or {}).values()]
        elif isinstance(item, CodeType) and id(item) not in seen:
            seen.add(id(item))
            waiting += item.co_consts
        elif isinstance(item, tuple | list | frozenset | set) and id(item) not in seen:
            seen.add(id(item))
            waiting += item
        elif isinstance(item, int | np.integer):
            numbers |= {int(item), int(item) >> 32}
        elif isinstance(item, float | np.floating):
            with np.errstate(all="ignore"):
                numbers |= {int(np.float32(item).view(np.uint32)), int(np.float16(item).view(np.uint16)) * 0x10001}
    near = {number + step for number in numbers for step in (-1, 0, 1)} | {-number for number in numbers}
    return np.array(sorted({number & 0xFFFFFFFF for number in near}), np.uint32)


@contextmanager
def _tables_of(function: Any, numpy: _TracedNumPy) -> Iterator[None]:
    """Let a function's modules and closures see arrays as tables, and NumPy as traced, while it runs."""
    traced_names = [name[1:] for name in vars(_TracedNumPy) if name[1:2] != "_" and hasattr(np, name[1:])]
    instead = {id(getattr(np, name)): getattr(numpy, name) for name in (*traced_names, *_KINDS)}
    instead[id(np)] = numpy
    slots: list[tuple[Any, Any, Any]] = []
    spaces = _namespaces(function)
    modules = [space for space in spaces if isinstance(space, dict)]
    for space in spaces:
        if isinstance(space, dict):
            slots += [(space, name, value) for name, value in space.items() if name != "__builtins__"]
        else:
            with suppress(ValueError):  # it is empty
                slots.append((space, "cell_contents", space.cell_contents))
    changed = [(holder, key, old, instead.get(id(old), _as_table(_uncached(old)))) for holder, key, old in slots]
    changed = [change for change in changed if change[3] is not change[2]]
    added = [(names, name, new) for names in modules for name, new in _BUILTINS.items() if name not in names]
    try:
        for holder, key, new in (*((holder, key, new) for holder, key, _, new in changed), *added):
            _put(holder, key, new)
        yield
    finally:
        for holder, key, old, new in changed:
            if _at(holder, key) is new:
                _put(holder, key, old)
        for holder, key in [
            *((names, name) for names in modules for name in names),
            *((holder, key) for holder, key, _ in slots),
        ]:
            if type(left := _at(holder, key)) is _Table:  # put there by the function
                _put(holder, key, left.view(np.ndarray))
        for names, name, new in added:
            if names.get(name) is new:
                del names[name]


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
        known_terms.clear()
        try:
            with refusing(), np.errstate(all="ignore"):
                traces = [_traced(function, inputs, count) for count in NUM_POINTS]
                expected = function(*inputs)
            noted = [*refusals]
            taken = {term for term in known_terms.values() if type(term) is Term and term.op == "take"}
        finally:
            known_terms.clear()
    if noted:
        raise UntraceableError(noted[0])
    terms = [result[0] for result in traces[0]]
    used = {*ordered([term for results in traces for result in results for term in result])}
    widths = (32,) * (len(inputs) * max(NUM_POINTS))
    if any(may_fail(term, widths) for term in taken - used):
        raise UntraceableError("it looks up what it does not use, which may lie beyond the table")
    if any(term.op == "undefined" for term in used):
        raise UntraceableError("it leaves elements of an empty array as they are")
    is_of_first = all(term.value < len(inputs) for term in ordered(terms) if term.op == "input")
    further = [([result[k] for result in results], k * len(inputs)) for results in traces for k in range(len(results[0]))]
    if not is_of_first or not all(_is_like(terms, *point) for point in further):
        raise UntraceableError("it depends on which points there are")
    plain = expected if isinstance(expected, tuple | list) else (expected,)
    with np.errstate(all="ignore"), refusing():
        values = [np.broadcast_to(value, len(inputs[0])) for value in evaluate(terms, inputs)]
    if len(terms) != len(plain) or not all(
        a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes() for a, b in zip(values, plain, strict=True)
    ):
        raise UntraceableError("its results at objects that stand for arrays differ from those at arrays")
    return terms


def _traced(function: Callable[..., Any], inputs: Sequence[NDArray[Any]], count: int) -> list[Any]:
    """Terms of the results at some points."""
    arguments = []
    for k, array in enumerate(inputs):
        sample = np.resize(array, count)
        sample.flags.writeable = False
        arguments.append(
            Traced(np.array([made("input", (), array.dtype, k + len(inputs) * point) for point in range(count)], object), sample)
        )
    with _tables_of(function, _TracedNumPy()):
        outputs = function(*arguments)
    results = outputs if isinstance(outputs, tuple | list) else (outputs,)
    if (
        not all(type(result) is Traced and result.terms.shape == (count,) and result.mask is None for result in results)
        or not results
    ):
        raise UntraceableError("its results are not arrays of a word for each point, made of the inputs")
    return [result.terms for result in results]


def _is_like(terms: list[Term], later: list[Term], first: int) -> bool:
    """Tell if the terms of a later point, with inputs from `first` on, equal those of the first point, and each uses the inputs
    of one point.
    """
    graphs, inputs = [], []
    for ends in (terms, later):
        indices = {term: k for k, term in enumerate(ordered(ends))}
        inputs.append([term.value for term in indices if term.op == "input"])
        values = [None if term.op == "input" else id(term.value) for term in indices]
        operands = [[indices[operand] for operand in term.operands] for term in indices]
        graphs.append(([indices[term] for term in ends], [(term.op, term.dtype) for term in indices], values, operands))
    return graphs[0] == graphs[1] and [index + first for index in inputs[0]] == inputs[1]
