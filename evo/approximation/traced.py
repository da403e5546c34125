"""Objects that stand for NumPy arrays, and note what is done to them as a graph of elementwise operations.

NumPy computes each operation at a sample beside it, and so decides all types and shapes. What is not elementwise, or depends on
values, is refused. Owns operators, methods, views and changes in place. `evo.approximation.trace` has NumPy's functions.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, reduce
from itertools import repeat
from typing import Any
from weakref import ref

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from evo.approximation.graph import Term, are_same, cast
from evo.approximation.word_machine import apply

refusals: list[str] = []  # of the function that is traced, which may have caught them; of all its threads
_REDUCTIONS = {"sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum}
_REDUCTIONS |= {"any": np.logical_or, "all": np.logical_and}
_REDUCED = (*_REDUCTIONS.values(), np.bitwise_or, np.bitwise_and, np.bitwise_xor)
_IN_PLACE = "it changes an array in place that others share"


class UntraceableError(Exception):
    """The function does what a graph cannot say."""

    def __init__(self, reason: str):
        super().__init__(reason)
        refusals.append(reason)


@contextmanager
def refusing() -> Iterator[None]:
    """Raise what is raised within as a refusal, which counts if the function catches it, too."""
    try:
        yield
    except UntraceableError:
        raise
    except Exception as error:
        raise UntraceableError(f"{type(error).__name__}: {error}") from error


def _refused(*_: Any) -> Any:
    raise UntraceableError("it depends on values, or on which points there are")


class Points:
    """Stands for the number of points, which no result may depend on."""

    __class__ = property(lambda _: int)
    __getattr__ = _refused


_BINARY = "add sub mul floordiv truediv mod pow and or xor lshift rshift divmod matmul".split()
_OTHER = "eq ne lt le gt ge bool int index float hash str repr format neg pos abs invert round trunc".split()
for _name in (*_BINARY, *(f"r{each}" for each in _BINARY), *_OTHER):
    setattr(Points, f"__{_name}__", _refused)
POINTS = Points()
FUNCTIONS: dict[Any, Callable[..., "Traced"]] = {}  # functions of NumPy other than ufuncs


class Traced(NDArrayOperatorsMixin):
    """Stands for an array whose first axis goes over points.

    terms: an array of Term: along the first axis those of a point's elements in turn, then the further axes. sample: an array
    like it. mask: terms of the condition by which its elements were selected; none: it has all.
    """

    def __init__(self, terms: Any, sample: NDArray[Any], mask: Any = None):
        if {*np.geterr().values()} != {"ignore"}:
            raise UntraceableError("it asks for floating-point errors, which depend on values")
        self.terms, self.sample, self.mask = _terms(terms), sample, mask
        self._arrays: list[Callable[[], Any]] = [ref(self)]  # of the same memory, as long as they live

    @property
    def is_shared(self) -> bool:
        """Tell if another array has the same memory."""
        return sum(each() is not None for each in self._arrays) > 1

    def keep(self) -> None:
        """Let nobody change the array in place, as an input."""
        self._arrays.append(lambda: True)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the array."""
        return self.sample.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.terms.ndim

    @property
    def shape(self) -> tuple[Any, ...]:
        """As of an array, with `POINTS` for the number of points."""
        if self.terms.shape[0] != 1 or self.mask is not None:
            raise UntraceableError("it uses the length of parts of words, or of a selection")
        return (POINTS, *self.sample.shape[1:])

    __class__ = property(lambda _: np.ndarray)  # for isinstance, as of an array

    __bool__ = __len__ = __iter__ = __contains__ = __int__ = __float__ = __index__ = _refused

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise UntraceableError("it is not elementwise, or hands its inputs to a function that is not known here")

    def __getattr__(self, name: str) -> Any:
        if name in _REDUCTIONS:
            return partial(reduced, _REDUCTIONS[name], self)
        raise UntraceableError(f"it uses .{name}")

    @refusing()
    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if method == "reduce":
            return reduced(ufunc, *inputs, **options)
        if ufunc is np.divmod and method == "__call__" and not options:
            return np.floor_divide(*inputs), np.remainder(*inputs)
        [out] = options.pop("out", (None,))
        if method != "__call__" or options or ufunc.nout != 1 or ufunc.signature:
            raise UntraceableError(f"it uses np.{ufunc.__name__} in another way than of whole arrays")
        if getattr(np, ufunc.__name__, None) is not ufunc:
            raise UntraceableError(f"{ufunc.__name__} is a ufunc, but not NumPy's")
        kinds = [type(each) if type(each) in (int, float) else np.asarray(sample_of(each)).dtype for each in inputs]
        loop = ufunc.resolve_dtypes((*kinds, None))
        found = elementwise(ufunc.__name__, inputs, loop[:-1], ufunc(*map(sample_of, inputs)))
        if out is None:
            return found
        if type(out) is not Traced:
            raise UntraceableError("it writes to another array")
        return out.become(found)

    def become(self, other: "Traced") -> "Traced":
        """Change in place to the values of another array, as of this one's type."""
        if self.is_shared:
            raise UntraceableError(_IN_PLACE)
        if self.terms.shape != other.terms.shape or not are_same(self.mask, other.mask):
            raise UntraceableError("it changes an array in place to one of another shape")
        self.sample = other.sample.astype(self.dtype, casting="same_kind")
        self.terms = each_term(cast, other.terms, self.dtype)
        return self

    @refusing()
    def __array_function__(self, function: Any, _: Any, args: Any, options: Any) -> "Traced":
        if function in FUNCTIONS:
            return FUNCTIONS[function](*args, **options)
        if function.__name__ in _REDUCTIONS and getattr(np, function.__name__) is function:
            return reduced(_REDUCTIONS[function.__name__], *args, **options)
        raise UntraceableError(f"it uses np.{function.__name__}")

    @refusing()
    def __getitem__(self, index: Any) -> "Traced":
        """Elements of the further axes, every k-th part of a word, or those at which a condition holds."""
        if type(index) is Traced:
            is_whole = index.mask is None and self.mask is None
            if index.dtype != np.bool_ or not is_whole or index.terms.shape != self.terms.shape:
                raise UntraceableError("it selects by other than a condition of the same points")
            return Traced(self.terms, self.sample[index.sample], index.terms)
        return self._shared(self.terms[self._known(index)], self.sample[index])

    @refusing()
    def __setitem__(self, index: Any, value: Any) -> None:
        if type(index) is Traced:
            part = self[index]
            known: Any = index.sample
        else:
            known = self._known(index)
            part = Traced(self.terms[known], self.sample[known])
        new = like(part, value).astype(self.dtype)
        if new.terms.shape != part.terms.shape or not are_same(new.mask, part.mask):
            raise UntraceableError("it changes elements in place to those of another shape or selection")
        sample = self.sample.copy()
        sample[known] = new.sample
        if type(index) is Traced:
            terms = each_term(_where_term, index.terms, new.terms, self.terms)
        else:
            terms = self.terms.copy()
            terms[known] = new.terms
        self.become(Traced(terms, sample))

    def _known(self, index: Any) -> Any:
        """The index, for terms too, unless it selects points."""
        if self.mask is not None:
            raise UntraceableError("it takes elements of a selection")
        first, *rest = index if isinstance(index, tuple) else (index,)
        if any(type(each) not in (slice, int, type(...), type(None)) for each in (first, *rest)):
            raise UntraceableError("it takes elements by other than constants")
        num_taken = sum(each is not None and each is not ... for each in rest)
        if first is ... and num_taken < self.ndim and ... not in rest:
            return index
        if not isinstance(first, slice) or num_taken >= self.ndim:
            raise UntraceableError("it depends on which points there are")
        start, stop, step = first.start or 0, first.stop, first.step or 1
        if stop is not None or step < 1 or not 0 <= start < step or self.terms.shape[0] % step:
            raise UntraceableError("it depends on which points there are")
        return index

    def _shared(self, terms: Any, sample: NDArray[Any]) -> "Traced":
        """A view of the same memory."""
        found = Traced(terms, sample, self.mask)
        self._arrays.append(ref(found))
        found._arrays = self._arrays
        return found

    @refusing()
    def astype(self, dtype: Any, copy: bool = True) -> "Traced":
        """As of an array."""
        if not copy and self.dtype == np.dtype(dtype):
            return self
        return Traced(each_term(cast, self.terms, known_dtype(dtype)), self.sample.astype(dtype), self.mask)

    @refusing()
    def copy(self) -> "Traced":
        """As of an array."""
        return Traced(self.terms, self.sample.copy(), self.mask)

    @refusing()
    def view(self, dtype: Any) -> "Traced":
        """As of an array: of another size of elements too."""
        dtype, old = known_dtype(dtype), self.dtype.itemsize
        if np.bool_ in (dtype, self.dtype):
            raise UntraceableError("it views truths as numbers")
        *upper, last = self.terms.shape
        if dtype.itemsize == old:
            terms = each_term(partial(_viewed, dtype), self.terms)
        elif dtype.itemsize < old:
            parts = range(old // dtype.itemsize)
            terms = _terms([Term("part", (each,), dtype, k) for each in self.terms.ravel().tolist() for k in parts])
            terms = terms.reshape(*upper, last * len(parts))
        else:
            count = dtype.itemsize // old
            if last % count or self.mask is not None:
                raise UntraceableError("it joins elements of several points")
            groups: Any = self.terms.reshape(-1, count)
            terms = _terms([Term("join", tuple(each), dtype) for each in groups]).reshape(*upper, last // count)
        return self._shared(terms, self.sample.view(dtype))

    @refusing()
    def reshape(self, *shape: Any) -> "Traced":
        """As of an array, to one whose first axis goes over points."""
        first, *rest = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
        is_points = first is POINTS
        if self.mask is not None or not (is_points or first == -1) or not all(type(each) is int and each > 0 for each in rest):
            raise UntraceableError("it moves elements between points")
        if (rest or is_points) and self.terms.size != np.prod(rest):
            raise UntraceableError("it moves elements between points")
        terms = self.terms.reshape(1, *rest) if rest else self.terms.reshape(-1)
        return self._shared(terms, self.sample.reshape(-1, *rest))

    @refusing()
    def ravel(self) -> "Traced":
        """As of an array."""
        return self.reshape(-1)

    @refusing()
    def clip(self, least: Any, most: Any) -> "Traced":
        """As of an array."""
        if self.dtype.kind in "iu":  # a limit beyond the type is none
            ends = np.iinfo(self.dtype)
            least = None if type(least) is int and least <= ends.min else least
            most = None if type(most) is int and most >= ends.max else most
        kind = np.clip(self.sample, *(None if each is None else sample_of(each) for each in (least, most))).dtype
        limits = [None if each is None else as_kind(each, kind) for each in (least, most)]
        if kind.kind == "f" and any(isinstance(each, Traced) or each is None or each.ndim or each != each for each in limits):
            raise UntraceableError("it limits floats by other than two numbers")
        number: Any = self.astype(kind)
        keeps_zeros = kind.kind == "f" and any(each == 0 for each in limits)  # as NumPy leaves -0 at a limit of 0
        for limit, is_beyond, apply_limit in zip(limits, (np.less, np.greater), (np.maximum, np.minimum), strict=True):
            if limit is not None:
                number = np.where(is_beyond(number, limit), limit, number) if keeps_zeros else apply_limit(number, limit)
        return number  # type: ignore[no-any-return]


def _terms(terms: Any) -> NDArray[np.object_]:
    if isinstance(terms, np.ndarray):
        return terms
    found = np.empty(len(terms), object)
    found[:] = terms
    return found


def each_term(make: Callable[..., Term], *arrays: Any) -> NDArray[np.object_]:
    """Terms made of those of arrays of the same shape, or of constants."""
    first = arrays[0]
    others = [each.flat if isinstance(each, np.ndarray) else repeat(each) for each in arrays[1:]]
    return _terms([make(*each) for each in zip(first.flat, *others, strict=False)]).reshape(first.shape)


def as_kind(value: Any, kind: np.dtype[Any]) -> Any:
    """A number or an array in a type."""
    return value.astype(kind) if isinstance(value, Traced) else np.asarray(value).astype(kind)


def sample_of(value: Any) -> Any:
    """An operand as NumPy computes with it at the sample."""
    if isinstance(value, Traced):
        return value.sample
    if not isinstance(value, bool | int | float | np.generic | np.ndarray):
        raise UntraceableError("it combines its inputs with other objects")
    return value


def known_dtype(dtype: Any) -> np.dtype[Any]:
    """A type that terms may have."""
    known: np.dtype[Any] = np.dtype(dtype)
    if known.kind not in "biuf" or known.itemsize > 8 or not known.isnative:
        raise UntraceableError(f"it uses {known}")
    return known


def _viewed(dtype: np.dtype[Any], term: Term) -> Term:
    return Term("view", (term,), dtype)


def _where_term(condition: Term, value: Term, other: Term) -> Term:
    return Term("where", (condition, value, other), value.dtype)


def constants(values: NDArray[Any], ndim: int) -> NDArray[np.object_]:
    """Terms of constants, for an operation whose results have `ndim` axes."""
    known_dtype(values.dtype)
    found = _terms([Term("constant", (), values.dtype, each) for each in values.ravel()])
    return found.reshape((1,) * (ndim - values.ndim) + values.shape)


def elementwise(op: str, inputs: Sequence[Any], loop: Sequence[np.dtype[Any]], sample: Any, value: Any = None) -> Traced:
    """The results of an operation. loop: types in which it computes its operands."""
    arrays = [each for each in inputs if isinstance(each, Traced)]
    mask, ndim = arrays[0].mask, max(each.ndim for each in arrays)
    if len({each.terms.shape[0] for each in arrays}) != 1 or not all(are_same(each.mask, mask) for each in arrays):
        raise UntraceableError("it combines arrays of different lengths")
    for kind in (sample.dtype, *loop):
        known_dtype(kind)
    operands = []
    for given, kind in zip(inputs, loop, strict=True):
        if isinstance(given, Traced):
            if given.ndim < ndim:
                raise UntraceableError("it combines points with elements")
            operands.append(each_term(cast, given.terms, kind))
        else:
            with np.errstate(all="ignore"):
                values = np.asarray(given).astype(kind) if not isinstance(given, int | float) else np.array(given, kind)
            if values.ndim > ndim or (values.ndim and mask is not None) or (values.ndim == ndim and values.shape[0] != 1):
                raise UntraceableError("it combines its inputs with other arrays")
            operands.append(constants(values, ndim))
    whole = np.broadcast_arrays(*operands)
    return Traced(each_term(lambda *each: Term(op, each, sample.dtype, value), *whole), sample, mask)


@refusing()
def reduced(ufunc: np.ufunc, array: Any, axis: Any = None, dtype: Any = None, **options: Any) -> Traced:
    """The results of an operation along a further axis."""
    out = options.pop("out", None)
    if type(array) is not Traced or ufunc not in _REDUCED or options or out not in (None, (None,)) or type(axis) is not int:
        raise UntraceableError(f"it uses np.{ufunc.__name__} or what is like it along other than one further axis")
    if axis % array.ndim == 0 or array.mask is not None or (dtype is not None and ufunc not in (np.add, np.multiply)):
        raise UntraceableError("it joins points, or gives other types")
    sample = ufunc.reduce(array.sample, axis=axis, dtype=dtype)
    if known_dtype(sample.dtype).kind == "f":
        raise UntraceableError("it joins floats in an order of NumPy's")
    kind = np.dtype(np.bool_) if ufunc in (np.logical_or, np.logical_and) else sample.dtype
    of_axis = np.moveaxis(array.terms, axis, 0)
    parts = [each_term(cast, each, kind) for each in of_axis]
    combine = partial(each_term, lambda a, b: Term(ufunc.__name__, (a, b), sample.dtype))
    return Traced(reduce(combine, parts), sample, array.mask)


def instruction(name: str, *words: Any) -> Any:
    """Results of an instruction of the set `bits` at words, or what stands for them in a trace."""
    samples = [sample_of(each) if isinstance(each, Traced) else each for each in words]
    found = apply(name, *samples)
    if not any(isinstance(each, Traced) for each in words):
        return found if any(np.ndim(each) for each in words) else found[0]
    return elementwise("instruction", words, [np.dtype(np.uint32)] * len(words), found, name)


def like(array: Traced, value: Any) -> Traced:
    """A number, or an array, in the shape of another array."""
    if type(value) is Traced:
        return value
    values = np.asarray(value)
    if values.dtype == np.int64 and type(value) is int:  # takes the array's type
        values = np.array(value, array.dtype)
    known_dtype(values.dtype)
    if values.ndim >= array.ndim or (values.ndim and array.mask is not None):
        raise UntraceableError("it combines its inputs with other arrays")
    terms = np.broadcast_to(constants(values, array.ndim), array.terms.shape)
    return Traced(terms, np.broadcast_to(values, array.sample.shape).copy(), array.mask)
