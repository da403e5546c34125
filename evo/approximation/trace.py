"""A function over NumPy arrays as a graph of its elementwise operations.

The function runs at objects that stand for arrays of one element, and sees a NumPy whose arrays these objects can index. Owns the
function's view of its modules. `evo.approximation.plain_code` tells whether an array would see the same.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import RLock
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.approximation import process
from evo.approximation.dependence import may_fail
from evo.approximation.graph import Term, evaluate, ordered
from evo.approximation.traced import Traced, UntraceableError, known_terms, made, refusing
from evo.approximation.traced_numpy import KINDS, Table, TracedNumPy, as_table

CACHED: Any = type(functools.cache(len))
NUMBERS = {bool, int, float, str, type(None), *(getattr(np, name) for name in KINDS)}
_HOLDERS = (FunctionType, ModuleType, tuple, list, dict, frozenset)  # of functions, or of names that they read
_LOCK = RLock()  # of modules that are changed for a time
_FIRST: dict[int, tuple[Any, Any, dict[str, Any]]] = {}  # namespaces, and what they held before any function of theirs ran


def _namespaces(function: Any) -> list[Any]:
    """Dicts of modules and cells of closures from which a function, and the functions that it calls, read names."""
    spaces: dict[int, Any] = {}
    waiting: list[Any] = [function]
    seen: set[int] = set()
    while waiting:
        item = waiting.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        inner: list[Any] = []
        if isinstance(item, tuple | list | dict | frozenset):
            waiting += (*item, *item.values()) if isinstance(item, dict) else item
        elif isinstance(item, ModuleType):
            inner = [vars(item)] if is_own(vars(item), function) else []
        else:
            inner = [*(getattr(item, "__closure__", None) or ())]
            if isinstance(item, FunctionType) and is_own(item.__globals__, function):
                inner.append(item.__globals__)
        for space in inner:
            if id(space) not in spaces:
                spaces[id(space)] = space
                with suppress(ValueError):  # an empty cell
                    values = list(space.values()) if isinstance(space, dict) else [space.cell_contents]
                    waiting += [value for value in values if isinstance(value, _HOLDERS)]
    return [*spaces.values()]


def codes_of(code: CodeType) -> Iterator[CodeType]:
    """Yield code and all code within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_of(constant)


def _read_by(function: Any) -> Iterator[tuple[Any, str, Any]]:
    """Yield dicts of modules and cells, names in these that a function and all that it may call read, and values."""
    waiting, seen = [function], set[int]()
    while waiting:
        item = waiting.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, tuple | list | dict | frozenset):
            waiting += (*item, *item.values()) if isinstance(item, dict) else item
        elif isinstance(item, FunctionType) and is_own(item.__globals__, function):
            names = {name for code in codes_of(item.__code__) for name in code.co_names}
            slots: list[tuple[Any, str]] = [(cell, "cell_contents") for cell in item.__closure__ or ()]
            spaces = [item.__globals__]
            for space in spaces:
                found = [(name, space[name]) for name in names if name in space]
                spaces += [vars(value) for _, value in found if isinstance(value, ModuleType) and is_own(vars(value), function)]
                slots += [(space, name) for name, _ in found]
            for holder, name in slots:
                with suppress(ValueError):  # an empty cell
                    yield holder, name, (value := _at(holder, name))
                    waiting.append(value)


def is_as_at_first(function: Any) -> bool:
    """Tell if all that a function reads is as it was when this was asked first, which must be before any call of it."""
    is_same = True
    for holder, name, value in _read_by(function):
        spec, known = holder.get("__spec__") if isinstance(holder, dict) else None, _FIRST.get(id(holder))
        if known is None or known[1] is not spec:  # a module that was loaded again is another one
            known = _FIRST[id(holder)] = holder, spec, {}
        is_same &= known[2].setdefault(name, now := _frozen(value)) == now
    return is_same


class _Cached:
    """A function with a cache, while a trace runs: its results are constants, of which arrays are tables."""

    def __init__(self, function: Any, tables: dict[int, Any]):
        self._function, self._tables, self._calls = function, tables, list[Any]()

    def __call__(self, *args: Any, **options: Any) -> Any:
        if not all(type(argument) in NUMBERS for argument in (*args, *options.values())):
            raise UntraceableError("it hands other than numbers to a function with a cache")
        before = CACHED.cache_info(self._function).misses
        result = self._function(*args, **options)
        if not _is_data(result):
            raise UntraceableError("it caches other than arrays and numbers")
        if CACHED.cache_info(self._function).misses != before:
            raise UntraceableError("it does not find what it cached")
        table = as_table(result, self._tables)
        self._calls.append((args, options, result, table, _frozen(table)))
        return table

    def is_as_made(self) -> bool:
        """Tell if results are as they are made by NumPy itself."""
        made = self._function.__wrapped__
        return all(_is_alike(result, made(*args, **options)) for args, options, result, *_ in self._calls)

    def is_as_before(self) -> bool:
        """Tell if no result was changed, and it forgets none."""
        _, _, most, count = CACHED.cache_info(self._function)
        is_kept = not self._calls or most is None or count < most
        return is_kept and all(_frozen(table) == before for *_, table, before in self._calls)


def _is_data(value: Any) -> bool:
    if type(value) in (list, tuple, dict):
        return all(map(_is_data, (*value, *value.values()) if type(value) is dict else value))
    return type(value) in NUMBERS or (type(value) is np.ndarray and value.dtype.kind in "biuf")


def _is_alike(a: Any, b: Any) -> bool:
    if type(a) in (list, tuple, dict):
        pairs = zip((*a, *a.values()), (*b, *b.values()), strict=True) if type(a) is dict else zip(a, b, strict=True)
        return type(a) is type(b) and len(a) == len(b) and all(_is_alike(x, y) for x, y in pairs)
    x, y = np.asarray(a), np.asarray(b)
    return type(a) is type(b) and (x.dtype, x.shape, x.tobytes()) == (y.dtype, y.shape, y.tobytes())


def is_own(names: dict[str, Any], function: Any) -> bool:
    """Tell if a module was written for a function. evo's has none of this kind."""
    package = str(names.get("__name__")).partition(".")[0]
    of_function = str(getattr(function, "__module__", "")).partition(".")[0]
    return package != "evo" and (package == of_function or process.is_own(names.get("__file__")))


@contextmanager
def _tables_of(function: Any, numpy: TracedNumPy) -> Iterator[None]:
    """Let a function's modules and closures see arrays as tables, and NumPy as traced, while it runs."""
    traced_names = [name[1:] for name in vars(TracedNumPy) if name[1:2] != "_" and hasattr(np, name[1:])]
    instead = {id(getattr(np, name)): getattr(numpy, name) for name in (*traced_names, *KINDS)}
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
    tables: dict[int, Any] = {}
    caches = {id(value): _Cached(value, tables) for _, _, value in slots if type(value) is CACHED}
    instead |= caches
    changed = [(holder, key, old, instead.get(id(old), as_table(old, tables))) for holder, key, old in slots]
    changed = [change for change in changed if change[3] is not change[2]]
    try:
        for holder, key, _, new in changed:
            _put(holder, key, new)
        held = [_frozen(_at(holder, key)) for holder, key, _ in slots]
        yield
        is_as_before = all(cache.is_as_before() for cache in caches.values())
        if not is_as_before or [_frozen(_at(holder, key)) for holder, key, _ in slots] != held:
            raise UntraceableError("it changes what its module holds")
    finally:
        for holder, key, old, new in changed:
            if _at(holder, key) is new:
                _put(holder, key, old)
        for holder, key in [
            *((names, name) for names in modules for name in names),
            *((holder, key) for holder, key, _ in slots),
        ]:
            if type(left := _at(holder, key)) is Table:  # put there by the function
                _put(holder, key, left.view(np.ndarray))
    if not all(cache.is_as_made() for cache in caches.values()):
        raise UntraceableError("it changes what it caches")


def _frozen(value: Any) -> Any:
    """A value that is another one once a list, dict or array has changed, or an object has been exchanged."""
    held: Any = None
    if type(value) in (list, tuple):
        held = tuple(map(_frozen, value))
    elif type(value) is dict:
        held = tuple((_frozen(key), _frozen(item)) for key, item in value.items())
    elif type(value) in (np.ndarray, Table) and not value.dtype.hasobject:
        held = value.tobytes()
    return id(value), held, value  # which lives on, so that nothing else has its identity


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
        known_terms.clear()
        try:
            with refusing(), np.errstate(all="ignore"):
                is_as_at_first(function)
                expected = function(*inputs)  # first: its caches hold arrays then, not tables
                if not is_as_at_first(function):
                    raise UntraceableError("it changes what its module holds")
                terms = _traced(function, inputs)
            taken = {term for term in known_terms.values() if type(term) is Term and term.op == "take"}
        finally:
            known_terms.clear()
    used = {*ordered(terms)}
    if any(may_fail(term, (32,) * len(inputs)) for term in taken - used):
        raise UntraceableError("it looks up what it does not use, which may lie beyond the table")
    if any(term.op == "undefined" for term in used):
        raise UntraceableError("it leaves elements of an empty array as they are")
    plain = expected if isinstance(expected, tuple | list) else (expected,)
    with np.errstate(all="ignore"), refusing():
        values = [np.broadcast_to(value, len(inputs[0])) for value in evaluate(terms, inputs)]
    if len(terms) != len(plain) or not all(
        a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes() for a, b in zip(values, plain, strict=True)
    ):
        raise UntraceableError("its results at objects that stand for arrays differ from those at arrays")
    return terms


def _traced(function: Callable[..., Any], inputs: Sequence[NDArray[Any]]) -> list[Term]:
    """Terms of the results at one point."""
    arguments = []
    for k, array in enumerate(inputs):
        sample = array[:1].copy()
        sample.flags.writeable = False
        arguments.append(Traced(np.array([made("input", (), array.dtype, k)], object), sample))
    with _tables_of(function, TracedNumPy()):
        outputs = function(*arguments)
    results = outputs if isinstance(outputs, tuple | list) else (outputs,)
    if not results or not all(
        type(result) is Traced and result.terms.shape == (1,) and result.mask is None for result in results
    ):
        raise UntraceableError("its results are not arrays of a word for each point, made of the inputs")
    return [result.terms[0] for result in results]
