"""A function over NumPy arrays as a graph of its elementwise operations.

Owns how the graph is recorded: the function runs once, at objects that note what is done to them. NumPy computes each operation
at a sample beside it, and so decides all types. What is not elementwise, or depends on values, is refused.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from evo.approximation.word_machine import apply

_refusals: ContextVar[list[str]] = ContextVar("refusals")  # of the function that is traced, which may have caught them


class UntraceableError(Exception):
    """The function does what a graph cannot say."""

    def __init__(self, reason: str):
        super().__init__(reason)
        _refusals.get([]).append(reason)


@contextmanager
def _refusing() -> Iterator[None]:
    """Raise what is raised within as a refusal, which counts if the function catches it, too."""
    try:
        yield
    except UntraceableError:
        raise
    except Exception as error:
        raise UntraceableError(f"{type(error).__name__}: {error}") from error


@dataclass(frozen=True, eq=False)
class Term:
    """A value at each point.

    op: a ufunc's name, whose operands have the types of its loop; or `input` (value: which), `constant` (value), `cast`, `view`,
    `part` (of a word; value: which), `join` (of parts, the lowest first), `where`, `take` (value: the table), `instruction` (of
    words; value: its name).
    """

    op: str
    operands: tuple["Term", ...]
    dtype: np.dtype[Any]
    value: Any = None

    @property
    def width(self) -> int:
        """Bits of the type."""
        return 1 if self.dtype == np.bool_ else 8 * self.dtype.itemsize

    def bits(self) -> int:
        """Bits of a constant."""
        return int.from_bytes(np.asarray(self.value, self.dtype).tobytes(), "little")


_FUNCTIONS: dict[Any, Callable[..., "Traced"]] = {}  # functions of NumPy other than ufuncs


class Traced(NDArrayOperatorsMixin):
    """Stands for an array. terms: of each element of a point, in turn. sample: an array like it."""

    def __init__(self, terms: Sequence[Term], sample: NDArray[Any]):
        self.terms, self.sample = tuple(terms), sample

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the array."""
        return self.sample.dtype

    __class__ = property(lambda _: np.ndarray)  # for isinstance, as of an array

    def _refused(self, *_: Any) -> Any:
        raise UntraceableError("it depends on values, or on which points there are")

    __bool__ = __len__ = __iter__ = __getitem__ = __setitem__ = __contains__ = __int__ = __float__ = __index__ = _refused

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise UntraceableError("it is not elementwise; for tables: np.take_along_axis(table, indices, 0)")

    def __getattr__(self, name: str) -> Any:
        raise UntraceableError(f"it uses .{name}")

    @_refusing()
    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> "Traced":
        if method != "__call__" or options or ufunc.nout != 1 or ufunc.signature:
            raise UntraceableError(f"it uses np.{ufunc.__name__} in another way than of whole arrays")
        if getattr(np, ufunc.__name__, None) is not ufunc:
            raise UntraceableError(f"{ufunc.__name__} is a ufunc, but not NumPy's")
        if {*np.geterr().values()} != {"ignore"}:
            raise UntraceableError("it asks for floating-point errors, which depend on values")
        kinds = [type(each) if type(each) in (int, float) else np.asarray(_sample(each)).dtype for each in inputs]
        loop = ufunc.resolve_dtypes((*kinds, None))
        return _elementwise(ufunc.__name__, inputs, loop[:-1], ufunc(*map(_sample, inputs)))

    @_refusing()
    def __array_function__(self, function: Any, _: Any, args: Any, options: Any) -> "Traced":
        if function not in _FUNCTIONS or options:
            raise UntraceableError(f"it uses np.{function.__name__}")
        return _FUNCTIONS[function](*args)

    @_refusing()
    def astype(self, dtype: Any, copy: bool = True) -> "Traced":
        """As of an array."""
        return Traced([_cast(each, _known(dtype)) for each in self.terms], self.sample.astype(dtype))

    @_refusing()
    def view(self, dtype: Any) -> "Traced":
        """As of an array: of another size of elements too."""
        dtype, old = _known(dtype), self.dtype.itemsize
        if np.bool_ in (dtype, self.dtype):
            raise UntraceableError("it views truths as numbers")
        if dtype.itemsize == old:
            terms = [Term("view", (each,), dtype) for each in self.terms]
        elif dtype.itemsize < old:
            terms = [Term("part", (each,), dtype, k) for each in self.terms for k in range(old // dtype.itemsize)]
        else:
            count = dtype.itemsize // old
            if len(self.terms) % count:
                raise UntraceableError("it joins elements of several points")
            terms = [Term("join", self.terms[k : k + count], dtype) for k in range(0, len(self.terms), count)]
        return Traced(terms, self.sample.view(dtype))

    @_refusing()
    def clip(self, least: Any, most: Any) -> "Traced":
        """As of an array."""
        return _clip(self, least, most)


def _sample(value: Any) -> Any:
    if isinstance(value, Traced):
        return value.sample
    if not isinstance(value, bool | int | float | np.generic) and not (isinstance(value, np.ndarray) and value.ndim == 0):
        raise UntraceableError("it combines its inputs with other arrays")
    return value


def _known(dtype: Any) -> np.dtype[Any]:
    known: np.dtype[Any] = np.dtype(dtype)
    if known.kind not in "biuf" or known.itemsize > 8 or not known.isnative:
        raise UntraceableError(f"it uses {known}")
    return known


def _cast(term: Term, dtype: np.dtype[Any]) -> Term:
    return term if term.dtype == dtype else Term("cast", (term,), dtype)


def _elementwise(op: str, inputs: Sequence[Any], loop: Sequence[np.dtype[Any]], sample: Any, value: Any = None) -> Traced:
    counts = {len(each.terms) for each in inputs if isinstance(each, Traced)}
    if len(counts) != 1:
        raise UntraceableError("it combines arrays of different lengths")
    [count] = counts
    for kind in (sample.dtype, *loop):
        _known(kind)
    operands = []
    for given, kind in zip(inputs, loop, strict=True):
        if isinstance(given, Traced):
            operands.append([_cast(each, kind) for each in given.terms])
        else:
            with np.errstate(all="ignore"):
                constant = np.asarray(given).astype(kind) if not isinstance(given, int | float) else np.array(given, kind)
            operands.append([Term("constant", (), kind, constant[()])] * count)
    return Traced([Term(op, each, sample.dtype, value) for each in zip(*operands, strict=True)], sample)


def instruction(name: str, *words: Any) -> Any:
    """Results of an instruction of the set `bits` at words, or what stands for them in a trace."""
    samples = [_sample(each) if isinstance(each, Traced) else each for each in words]
    found = apply(name, *samples)
    if not any(isinstance(each, Traced) for each in words):
        return found if any(np.ndim(each) for each in words) else found[0]
    return _elementwise("instruction", words, [np.dtype(np.uint32)] * len(words), found, name)


def _implements(function: Any) -> Callable[[Callable[..., Traced]], Callable[..., Traced]]:
    return lambda made: _FUNCTIONS.setdefault(function, made)


@_implements(np.where)
def _where(condition: Any, *values: Any) -> Traced:
    sample = np.where(_sample(condition), *map(_sample, values))
    return _elementwise("where", (condition, *values), (np.dtype(np.bool_), sample.dtype, sample.dtype), sample)


@_implements(np.take_along_axis)
def _take(table: Any, indices: Any, axis: Any = 0) -> Traced:
    if not isinstance(table, np.ndarray) or table.ndim != 1 or not isinstance(indices, Traced) or axis not in (0, -1):
        raise UntraceableError("it takes from other than a table of one axis")
    return _elementwise("take", (indices,), (indices.dtype,), np.take(table, indices.sample), table.copy())


@_implements(np.clip)
def _clip(values: Any, least: Any, most: Any) -> Traced:
    limited: Traced = np.minimum(np.maximum(values, least), most)
    return limited


def trace(function: Callable[..., Any], inputs: Sequence[NDArray[Any]]) -> list[Term]:
    """The results of a function as graphs.

    Args:
        inputs: samples of them, which decide their types.

    Raises:
        UntraceableError: it is not a graph of elementwise operations, or gives other results at the sample.
    """
    given = [Traced([Term("input", (), each.dtype, k)], each) for k, each in enumerate(inputs)]
    refusals: list[str] = []
    token = _refusals.set(refusals)
    try:
        with _refusing(), np.errstate(all="ignore"):
            found, expected = function(*given), function(*inputs)
            results, plain = (each if isinstance(each, tuple | list) else (each,) for each in (found, expected))
            same = len(results) == len(plain) and all(
                isinstance(a, Traced) and len(a.terms) == 1 and a.sample.dtype == b.dtype and a.sample.tobytes() == b.tobytes()
                for a, b in zip(results, plain, strict=True)
            )
    finally:
        _refusals.reset(token)
    if refusals:
        raise UntraceableError(refusals[0])
    if not same:
        raise UntraceableError("its results at objects that stand for arrays differ from those at arrays")
    return [each.terms[0] for each in results]


def as_word(term: Term) -> Term:
    """A result as a word: of floats the bits, of integers those of u32."""
    word = np.dtype(np.uint32)
    return Term("view", (term,), word) if term.dtype == np.float32 else _cast(term, word)


def conjuncts(term: Term) -> list[Term]:
    """Terms all of which hold where a term holds."""
    if term.op in ("logical_and", "bitwise_and") and all(each.dtype == np.bool_ for each in term.operands):
        return [part for each in term.operands for part in conjuncts(each)]
    return [term]


def evaluate(terms: Sequence[Term], inputs: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """Values of terms."""
    known: dict[Term, Any] = {}
    for term in ordered(terms):
        values = [known[each] for each in term.operands]
        match term.op:
            case "input":
                known[term] = inputs[term.value]
            case "constant":
                known[term] = term.value
            case "cast":
                known[term] = values[0].astype(term.dtype)
            case "view":
                known[term] = values[0].view(term.dtype)
            case "part":
                parts = np.ascontiguousarray(values[0])[..., None].view(term.dtype)
                known[term] = parts[..., term.value]
            case "join":
                known[term] = np.stack(values, axis=-1).view(term.dtype)[..., 0]
            case "take":
                known[term] = np.take(term.value, values[0])
            case "where":
                known[term] = np.where(*values)
            case "instruction":
                known[term] = apply(term.value, *values)
            case _:
                known[term] = getattr(np, term.op)(*values)
    return [known[term] for term in terms]


def ordered(terms: Sequence[Term]) -> list[Term]:
    """Terms and all that they are made of, operands first."""
    found: dict[Term, None] = {}
    waiting = [(term, False) for term in reversed(terms)]
    while waiting:
        term, is_ready = waiting.pop()
        if is_ready:
            found[term] = None
        elif term not in found:
            waiting.append((term, True))
            waiting.extend((each, False) for each in term.operands)
    return list(found)
