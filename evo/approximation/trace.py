"""A function over NumPy arrays as a graph of its elementwise operations.

A copy of the function runs at objects that stand for arrays of one element, and sees a NumPy whose arrays these objects can
index. `evo.approximation.plain_code` tells whether an array would see the same.
"""

from collections.abc import Callable, Sequence
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.approximation.dependence import may_fail
from evo.approximation.graph import Term, evaluate, ordered
from evo.approximation.isolation import Copies, isolated
from evo.approximation.traced import Traced, UntraceableError, known_terms, made, refusing
from evo.approximation.traced_numpy import KINDS, TracedNumPy, as_read_only_table

_LOCK = RLock()  # of terms that are known
_NAMES = [name[1:] for name in vars(TracedNumPy) if name[1:2] != "_" and hasattr(np, name[1:])]


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
                copy = isolated(function)  # of what it reads before it is called
                expected = function(*inputs)
                terms = _traced(copy, inputs)
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
    numpy = TracedNumPy()
    instead = {id(np): numpy, **{id(getattr(np, name)): getattr(numpy, name) for name in (*_NAMES, *KINDS)}}
    outputs = Copies(function, instead, as_read_only_table).of(function)(*arguments)
    results = outputs if isinstance(outputs, tuple | list) else (outputs,)
    if not results or not all(
        type(result) is Traced and result.terms.shape == (1,) and result.mask is None for result in results
    ):
        raise UntraceableError("its results are not arrays of a word for each point, made of the inputs")
    return [result.terms[0] for result in results]
