"""Objects that stand for NumPy arrays, and record operations on them as a graph of elementwise operations.

Each element of such an array is a term. NumPy computes each operation at a sample beside it, and so decides all types and shapes;
NumPy also applies operations that only move elements to the terms. Dependence on values is refused. Owns operators, methods,
views, changes in place and tables; `evo.approximation.traced_numpy` has functions. Slightly long: an array's operations share its
terms.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from operator import index
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from evo.approximation.graph import Term
from evo.approximation.word_machine import apply

known_terms: dict[Any, Any] = {}  # of the function that is traced: each is made once, and so is each value
_REDUCTIONS = {"sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum}
_REDUCTIONS |= {"any": np.logical_or, "all": np.logical_and}
_REDUCED = (*_REDUCTIONS.values(), np.bitwise_or, np.bitwise_and, np.bitwise_xor)
_MOVES = "reshape ravel flatten transpose swapaxes squeeze repeat".split()
_OF_ONE_KIND = (np.power, np.float_power, np.fmin, np.fmax)  # in the way that elements are computed
_UNDONE = (("join", "part"), ("part", "join"), ("view", "view"))  # operations of the same memory, the later one first
FUNCTIONS: dict[Any, Callable[..., Any]] = {}  # functions of NumPy other than ufuncs


class UntraceableError(Exception):
    """The function does something that a graph cannot express."""


@contextmanager
def refusing() -> Iterator[None]:
    """Turn errors within into refusals."""
    try:
        yield
    except UntraceableError:
        raise
    except Exception as error:
        raise UntraceableError(f"{type(error).__name__}: {error}") from error


def _refused(*_: Any) -> Any:
    raise UntraceableError("it depends on values")


class Traced(NDArrayOperatorsMixin):
    """Stands for an array.

    terms: an array of Term, of the array's shape. sample: the array at an input. mask: terms of the condition by which its
    elements were selected, the sample having those alone; none: it has all.
    """

    def __init__(self, terms: Any, sample: Any, mask: Any = None, sources: Sequence["Traced"] = ()):
        _check_errors_are_ignored()
        if not np.ndim(sample):
            raise UntraceableError("it computes with a number of an array, by itself")
        self.terms, self.sample, self.mask = _objects(terms), np.asarray(sample), mask
        # Of the same memory: terms as of one type and as of another one.
        self.views: list[tuple[tuple[Any, np.dtype[Any]], tuple[Any, np.dtype[Any]]]] = []
        known_dtype(self.sample.dtype)
        for source in sources:
            if np.may_share_memory(source.sample, self.sample):
                self.views = source.views

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the array."""
        return self.sample.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """As of an array."""
        if self.mask is not None:
            raise UntraceableError("it uses the length of a selection")
        return self.sample.shape

    @property
    def size(self) -> int:
        """As of an array."""
        return math.prod(self.shape)

    @property
    def T(self) -> "Traced":  # noqa: N802 - the name of NumPy's
        """As of an array."""
        return self.moved(lambda array: array.T)  # type: ignore[no-any-return]

    @property
    def is_constant(self) -> bool:
        """Tell if no element depends on inputs."""
        return self.mask is None and all(term.op == "constant" for term in self.terms.ravel().tolist())

    __class__ = property(lambda _: np.ndarray)  # for isinstance

    def __array__(self, *_: Any, **__: Any) -> Any:
        if not self.is_constant:
            raise UntraceableError("it is not elementwise, or hands its inputs to a function that is not known here")
        return self.sample.copy()

    def _number(self, kind: Callable[[Any], Any]) -> Any:
        return kind(self.sample) if self.is_constant else _refused()

    __bool__, __int__, __float__, __index__ = (lambda self, kind=kind: self._number(kind) for kind in (bool, int, float, index))
    __contains__ = _refused

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator["Traced"]:
        return iter([self[k] for k in range(self.shape[0])])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__array_"):  # NumPy looks for these before `__array__`
            raise AttributeError(name)
        raise UntraceableError(f"it uses .{name}")

    @refusing()
    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if method == "reduce":
            return reduced(ufunc, *inputs, **{"axis": 0, **options} if len(inputs) == 1 else options)
        if ufunc in _OF_ONE_KIND and any(np.asarray(sample_of(value)).dtype.kind in "bf" for value in inputs):
            raise UntraceableError(f"np.{ufunc.__name__} of floats or truths has other results for other shapes")
        if ufunc is np.power and type(inputs[1]) is Traced:
            raise UntraceableError("it has a power that depends on values, and may fail")
        if method == "__call__" and not options and ufunc in (np.divmod, np.matmul):
            return dot(*inputs) if ufunc is np.matmul else (np.floor_divide(*inputs), np.remainder(*inputs))
        [out] = options.pop("out", (None,))
        if method != "__call__" or options or ufunc.nout != 1 or ufunc.signature:
            raise UntraceableError(f"it uses np.{ufunc.__name__} in another way than of whole arrays")
        if getattr(np, ufunc.__name__, None) is not ufunc:
            raise UntraceableError(f"{ufunc.__name__} is a ufunc, but not NumPy's")
        kinds = [type(value) if type(value) in (int, float) else np.asarray(sample_of(value)).dtype for value in inputs]
        loop = ufunc.resolve_dtypes((*kinds, None))
        result = elementwise(ufunc.__name__, inputs, loop[:-1], ufunc(*map(sample_of, inputs)))
        if out is None:
            return result
        if type(out) is not Traced or out.terms.shape != result.terms.shape or not _are_same(out.mask, result.mask):
            raise UntraceableError("it writes to another array, or to one of another shape")
        result.sample = result.sample.astype(out.dtype, casting="same_kind")
        out.write(..., result)
        return out

    @refusing()
    def __array_function__(self, function: Any, _: Any, args: Any, options: Any) -> Any:
        if function in FUNCTIONS:
            return FUNCTIONS[function](*args, **options)
        if function.__name__ in _REDUCTIONS and getattr(np, function.__name__) is function:
            return reduced(_REDUCTIONS[function.__name__], *args, **options)
        raise UntraceableError(f"it uses np.{function.__name__}")

    @refusing()
    def __getitem__(self, index: Any) -> Any:
        """Elements, entries of a constant table, or those elements at which a condition holds."""
        if type(index) is Traced and index.dtype == np.bool_ and not index.is_constant:
            if index.mask is not None or self.mask is not None or index.terms.shape != self.terms.shape:
                raise UntraceableError("it selects by other than a condition of the same points")
            return Traced(self.terms.copy(), self.sample[index.sample], index.terms)
        if has_traced(index := _plain_index(index)):
            return entries(np.asarray(self), index)
        return self.moved(lambda array: array[index])

    @refusing()
    def __setitem__(self, index: Any, value: Any) -> None:
        if self.mask is not None:
            raise UntraceableError("it changes elements of a selection")
        if type(index) is not Traced or index.is_constant:
            self.write(_plain_index(index), value)
            return
        if index.dtype != np.bool_:
            raise UntraceableError("it changes elements at indices that depend on values")
        part = self[index]  # which is refused unless it is a condition
        is_number = type(value) is not Traced and not np.ndim(sample_of(value))
        plain = None if type(value) is Traced else np.atleast_1d(sample_of(value))
        new = value if plain is None else Traced(constants(plain.astype(self.dtype)), plain)
        if not _are_same(part.mask, new.mask) and not is_number:
            raise UntraceableError("it changes elements in place to those of another selection")
        part.sample[...] = new.sample
        changed = self.sample.copy()
        changed[index.sample] = part.sample
        of_type = each_term(cast_term, new.terms, self.dtype)
        self.write(..., Traced(each_term(_where_term, index.terms, of_type, self.terms), changed))

    def write(self, index: Any, value: Any) -> None:
        """Change elements in place, also of views as other types."""
        _check_errors_are_ignored()
        if type(value) is Traced and value.mask is not None and self.mask is None:
            raise UntraceableError("it writes a selection")
        self.sample[index] = sample_of(value)
        new = value.terms if type(value) is Traced else constants(np.asarray(self.sample[index]))
        self.terms[index] = each_term(cast_term, new, self.dtype)[()]
        changed = [self.terms]
        for terms in changed:
            for source, target in [*self.views, *(pair[::-1] for pair in self.views)]:
                if np.may_share_memory(terms, source[0]) and not any(target[0] is array for array in changed):
                    target[0][...] = _viewed(*source, target[1])
                    changed.append(target[0])

    @refusing()
    def moved(self, move: Callable[[Any], Any]) -> Any:
        """Elements in other places, by an operation that NumPy has for elements of any type."""
        if self.mask is not None:
            raise UntraceableError("it takes elements of a selection")
        return moved((self,), move(self.sample), move(self.terms))

    @refusing()
    def astype(self, dtype: Any, *, copy: bool = True, casting: Any = "unsafe", subok: bool = True) -> "Traced":
        """As of an array."""
        if not copy and self.dtype == np.dtype(dtype):
            return self
        sample = self.sample.astype(dtype, casting=casting, subok=subok)
        return Traced(each_term(cast_term, self.terms, known_dtype(sample.dtype)), sample, self.mask)

    @refusing()
    def copy(self) -> "Traced":
        """As of an array."""
        return Traced(self.terms.copy(), self.sample.copy(), self.mask)

    @refusing()
    def view(self, dtype: Any) -> "Traced":
        """As of an array: of another size of elements too."""
        dtype = known_dtype(dtype)
        if np.bool_ in (dtype, self.dtype) or self.mask is not None:
            raise UntraceableError("it views truths as numbers, or a selection")
        sample = self.sample.view(dtype)
        if dtype == self.dtype:
            return Traced(self.terms[...], sample, sources=[self])
        viewed = Traced(_viewed(self.terms, self.dtype, dtype), sample, sources=[self])
        viewed.views.append(((self.terms, self.dtype), (viewed.terms, dtype)))
        return viewed

    @refusing()
    def clip(self, min: Any = None, max: Any = None) -> "Traced":  # noqa: A002 - the names of NumPy's
        """As of an array."""
        least, most = min, max
        if self.dtype.kind in "iu":  # a limit beyond the type is none
            ends = np.iinfo(self.dtype)
            least = None if type(least) is int and least <= ends.min else least
            most = None if type(most) is int and most >= ends.max else most
        kind = np.clip(self.sample, *(None if limit is None else sample_of(limit) for limit in (least, most))).dtype
        limits = [None if limit is None else as_kind(limit, kind) for limit in (least, most)]
        if kind.kind == "f" and any(
            isinstance(limit, Traced) or limit is None or limit.ndim or limit != limit for limit in limits
        ):
            raise UntraceableError("it limits floats by other than two numbers")
        number: Any = self.astype(kind)
        keeps_zeros = kind.kind == "f" and any(limit == 0 for limit in limits)  # as NumPy leaves -0 at a limit of 0
        for limit, is_beyond, apply_limit in zip(limits, (np.less, np.greater), (np.maximum, np.minimum), strict=True):
            if limit is not None:
                number = np.where(is_beyond(number, limit), limit, number) if keeps_zeros else apply_limit(number, limit)
        return number  # type: ignore[no-any-return]


def _add_method(name: str, call: Callable[..., Any]) -> None:
    def method(self: Traced, *args: Any, **options: Any) -> Any:
        return call(self, *args, **options)

    method.__name__ = name
    setattr(Traced, name, method)


def _moving(name: str) -> Callable[..., Any]:
    def call(array: Traced, *args: Any, **options: Any) -> Any:
        if any(isinstance(value, str) for value in (*args, *options.values())):
            raise UntraceableError("it asks for an order in memory")
        return array.moved(lambda elements: getattr(elements, name)(*args, **options))

    return call


def _check_errors_are_ignored() -> None:
    if {*np.geterr().values()} != {"ignore"}:
        raise UntraceableError("it asks for floating-point errors, which depend on values")


def made(op: str, operands: tuple[Term, ...], dtype: np.dtype[Any], value: Any = None, key: Any = None) -> Term:
    """A term of the function that is traced. key: of a value that is an array or a number of NumPy's."""
    key = value if key is None else key
    first = operands[0] if operands else None
    if first is not None and (op, first.op) in _UNDONE and first.operands[0].dtype == dtype:
        parts = [(operand.op, operand.operands[0], operand.value) for operand in operands]
        if op != "join" or parts == [("part", first.operands[0], k) for k in range(len(operands))]:
            return first.operands[value or 0]
    if op == "view" and first is not None and first.op == "part":
        return made("part", first.operands, dtype, first.value)
    value = known_terms.setdefault((op, dtype, key), value)
    term: Term = known_terms.setdefault((op, operands, dtype, key), Term(op, operands, dtype, value))
    return term


def cast_term(term: Term, dtype: np.dtype[Any]) -> Term:
    """A term as one of a type."""
    return term if term.dtype == dtype else made("cast", (term,), dtype)


def _where_term(condition: Term, value: Term, alternative: Term) -> Term:
    return made("where", (condition, value, alternative), value.dtype)


def _objects(terms: Any) -> NDArray[np.object_]:
    if isinstance(terms, np.ndarray):
        return terms
    objects = np.empty((), object)
    objects[()] = terms
    return objects


def each_term(make: Callable[..., Term], *arrays: Any) -> NDArray[np.object_]:
    """Terms made of those of arrays, and of types, which are the same for all."""
    types = [argument for argument in arrays if isinstance(argument, np.dtype)]
    of_terms = [argument for argument in arrays if not isinstance(argument, np.dtype)]
    return _objects(np.frompyfunc(lambda *terms: make(*terms, *types), len(of_terms), 1)(*of_terms))


def _viewed(terms: Any, old: np.dtype[Any], new: np.dtype[Any]) -> NDArray[np.object_]:
    """Terms as of another type in the same memory."""
    if new.itemsize == old.itemsize:
        return each_term(lambda term: made("view", (term,), new), terms)
    if new.itemsize < old.itemsize:
        indices = range(old.itemsize // new.itemsize)
        parts = np.stack([each_term(lambda term, k=k: made("part", (term,), new, k), terms) for k in indices], axis=-1)
        return parts.reshape(*terms.shape[:-1], -1)
    groups = terms.reshape(*terms.shape[:-1], -1, new.itemsize // old.itemsize)
    return each_term(lambda *group: made("join", group, new), *np.moveaxis(groups, -1, 0))


def _are_same(first: Any, second: Any) -> bool:
    """Tell if two arrays of terms, or None, are the same condition."""
    if first is None or second is None or first.shape != second.shape:
        return first is second
    return all(a is b for a, b in zip(first.flat, second.flat, strict=True))


def as_kind(value: Any, kind: np.dtype[Any]) -> Any:
    """A number or an array in a type."""
    return value.astype(kind) if isinstance(value, Traced) else np.asarray(value).astype(kind)


def sample_of(value: Any) -> Any:
    """An operand as NumPy computes with it at the sample."""
    if type(value) is Traced:
        return value.sample
    if not isinstance(value, bool | int | float | np.generic | np.ndarray):
        raise UntraceableError("it combines its inputs with other objects")
    return value


def has_traced(value: Any) -> bool:
    """Tell if there is an array of the trace in an argument."""
    return type(value) is Traced or (type(value) in (list, tuple) and any(map(has_traced, value)))


def _plain_index(index: Any) -> Any:
    if isinstance(index, tuple):
        return tuple(map(_plain_index, index))
    return index.sample if type(index) is Traced and index.is_constant else index


def known_dtype(dtype: Any) -> np.dtype[Any]:
    """A type that terms may have."""
    known: np.dtype[Any] = np.dtype(dtype)
    if known.kind not in "biuf" or known.itemsize > 8 or not known.isnative:
        raise UntraceableError(f"it uses {known}")
    return known


def constants(values: NDArray[Any]) -> NDArray[np.object_]:
    """Terms of constants."""
    known_dtype(values.dtype)
    made_of = [made("constant", (), values.dtype, value, value.tobytes()) for value in values.ravel()]
    terms = np.empty_like(values, object)  # in the same order in memory
    terms[...] = _objects_of(made_of).reshape(values.shape)
    return terms


def _objects_of(items: list[Any]) -> NDArray[np.object_]:
    objects = np.empty(len(items), object)
    objects[:] = items
    return objects


def moved(sources: Sequence[Traced], sample: Any, terms: Any) -> Any:
    """Results of an operation that moves elements. sources: arrays that may share its memory."""
    if isinstance(sample, list | tuple):
        return type(sample)(moved(sources, *pair) for pair in zip(sample, terms, strict=True))
    result = Traced(terms, sample, sources=sources)
    if result.terms.shape != result.sample.shape or not all(isinstance(term, Term) for term in result.terms.ravel().tolist()):
        raise UntraceableError("it adds elements, or depends on values")
    if any(np.may_share_memory(a.sample, result.sample) != np.may_share_memory(a.terms, result.terms) for a in sources):
        raise UntraceableError("it has elements in an order in which they may be a copy or not")
    return result


def elementwise(
    op: str, inputs: Sequence[Any], loop: Sequence[np.dtype[Any]], sample: Any, value: Any = None, key: Any = None
) -> Traced:
    """The results of an operation. loop: types in which it computes its operands."""
    arrays = [argument for argument in inputs if type(argument) is Traced]
    mask = arrays[0].mask
    if all(array.is_constant for array in arrays):
        return Traced(constants(sample), sample)
    if not all(_are_same(array.mask, mask) for array in arrays):
        raise UntraceableError("it combines selections of different elements")
    operands = []
    for argument, kind in zip(inputs, map(known_dtype, loop), strict=True):
        if type(argument) is Traced:
            operands.append(each_term(cast_term, argument.terms, kind))
        else:
            values = np.asarray(argument).astype(kind) if not isinstance(argument, int | float) else np.array(argument, kind)
            if values.ndim and mask is not None:
                raise UntraceableError("it combines a selection with other arrays")
            operands.append(constants(values))
    known_dtype(sample.dtype)
    return Traced(each_term(lambda *terms: made(op, terms, sample.dtype, value, key), *operands), sample, mask)


@refusing()
def reduced(ufunc: np.ufunc, array: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Traced:
    """The results of an operation along an axis."""
    if type(array) is not Traced or ufunc not in _REDUCED or out not in (None, (None,)):
        raise UntraceableError(f"it uses np.{ufunc.__name__} or what is like it in another way than along an axis")
    if array.mask is not None or (dtype is not None and ufunc not in (np.add, np.multiply)):
        raise UntraceableError("it joins selected elements, or gives other types")
    options: Any = {"axis": axis, "keepdims": keepdims}
    sample = ufunc.reduce(array.sample, dtype=dtype, **options)
    if known_dtype(sample.dtype).kind == "f":
        raise UntraceableError("it joins floats in an order of NumPy's")
    kind = np.dtype(np.bool_) if ufunc in (np.logical_or, np.logical_and) else sample.dtype
    combine = np.frompyfunc(lambda a, b: made(ufunc.__name__, (a, b), sample.dtype), 2, 1)
    return Traced(combine.reduce(each_term(cast_term, array.terms, kind), **options), sample)


def dot(a: Any, b: Any) -> Traced:
    """Sums of products of integers along the last axis of one array and the only one of another."""
    if np.ndim(sample_of(b)) != 1 or not np.ndim(sample_of(a)):
        raise UntraceableError("it multiplies other than by a vector")
    products = np.multiply(a, b)
    return reduced(np.add, products, axis=-1, dtype=products.dtype)


def entries(table: NDArray[Any], index: Any) -> Traced:
    """Entries of a table at indices of its first axes."""
    indices = index if isinstance(index, tuple) else (index,)
    while indices and (indices[-1] is ... or (type(indices[-1]) is slice and indices[-1] == slice(None))):
        indices = indices[:-1]
    if not 0 < len(indices) <= table.ndim or not all(isinstance(i, Traced | int | np.integer) for i in indices):
        raise UntraceableError("it takes from a table by other than indices of its first axes")
    if any(type(i) is Traced and i.dtype.kind not in "iu" for i in indices):
        raise UntraceableError("it takes from a table by other than indices of its first axes")
    if (len(indices) > 1 or table.ndim > 1) and any(type(i) is Traced and i.mask is not None for i in indices):
        raise UntraceableError("it takes from a table of several axes at a selection")
    plain = np.array(table) != 0 if table.dtype == np.bool_ else np.array(table)  # whose bytes may be other than 0 and 1
    lengths, offsets = plain.shape[: len(indices)], list[Any]()
    for k, (i, length) in enumerate(zip(indices, lengths, strict=True)):
        steps = np.arange(length) * int(np.prod(lengths[k + 1 :]))
        offsets.append(i if len(indices) == 1 else _taken(steps, i) if type(i) is Traced else int(steps[i]))
    offset, rows = sum(offsets[1:], offsets[0]), plain.reshape(-1, *plain.shape[len(indices) :])
    if rows.ndim == 1:
        return _taken(rows, offset)
    columns = [_taken(rows[(slice(None), *at)], offset) for at in np.ndindex(rows.shape[1:])]
    shape = (*columns[0].sample.shape, *rows.shape[1:])
    terms, sample = (np.stack(arrays, -1).reshape(shape) for arrays in zip(*((a.terms, a.sample) for a in columns), strict=True))
    return Traced(terms, sample)


def _taken(table: NDArray[Any], indices: Traced) -> Traced:
    """Entries of a table of one axis."""
    return elementwise("take", (indices,), (indices.dtype,), np.take(table, indices.sample), table, table.tobytes())


def instruction(name: str, *words: Any) -> Any:
    """Results of an instruction of the set `bits` at words, or traced words."""
    samples = [sample_of(word) if isinstance(word, Traced) else word for word in words]
    result = apply(name, *samples)
    if not any(isinstance(word, Traced) for word in words):
        return result if any(np.ndim(word) for word in words) else result[0]
    return elementwise("instruction", words, [np.dtype(np.uint32)] * len(words), result, name)


for _name in _MOVES:
    _add_method(_name, _moving(_name))
for _name, _ufunc in _REDUCTIONS.items():
    _add_method(_name, lambda array, *args, ufunc=_ufunc, **options: reduced(ufunc, array, *args, **options))
