"""A function over NumPy arrays as a graph of its elementwise operations.

The function runs at objects that stand for arrays, and sees a NumPy whose arrays these objects can index. It runs for two numbers
of points, and each point's results must be made in the same way of this point's inputs. Owns the function's view of its
modules, and the numbers in its code.
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
from evo.approximation.traced import NUM_POINTS, Traced, UntraceableError, known_terms, made, refusals, refusing
from evo.approximation.traced_numpy import BUILTINS, KINDS, Table, TracedNumPy, as_table

_LOCK = RLock()  # of modules that are changed for a time


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
    changed = [(holder, key, old, instead.get(id(old), as_table(_uncached(old)))) for holder, key, old in slots]
    changed = [change for change in changed if change[3] is not change[2]]
    added = [(names, name, new) for names in modules for name, new in BUILTINS.items() if name not in names]
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
            if type(left := _at(holder, key)) is Table:  # put there by the function
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
    with _tables_of(function, TracedNumPy()):
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
