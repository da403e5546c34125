"""Copies of functions in which all that they do not make themselves is read-only.

A copy reads what its function's modules, closures, defaults and caches held when it was made, and fails where the function would
write to it, also through other names and views. `evo.approximation.plain_code` tells whether it could keep a state elsewhere.
"""

import functools
import gc
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.approximation import process, zoo
from evo.approximation.traced import UntraceableError, refusing

_CACHED: Any = type(functools.cache(len))
_KEYS = {bool, int, float, str, type(None)}  # of caches
_FACTS = ("__name__", "__file__")
_GIVEN_UP: dict[int, Any] = {}  # functions


def is_own(names: dict[str, Any], function: Any) -> bool:
    """Tell if a module was written for a function. evo's own is the zoo alone."""
    package = str(names.get("__name__")).partition(".")[0]
    of_function = str(getattr(function, "__module__", "")).partition(".")[0]
    is_of_it = package != "evo" and (package == of_function or process.is_own(names.get("__file__")))
    return is_of_it or names.get("__name__") == zoo.__name__


def codes_of(code: CodeType) -> Iterator[CodeType]:
    """Yield code and all code within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_of(constant)


class ReadOnlyList(list[Any]):
    """A list that a function did not make."""


class ReadOnlyDict(dict[Any, Any]):
    """A dict that a function did not make."""


def _refuse(*_: Any, **__: Any) -> Any:
    raise UntraceableError("it changes a list or dict that it did not make")


for _kind, _names in (
    (ReadOnlyList, "append extend insert remove pop clear sort reverse __iadd__ __imul__ __setitem__ __delitem__"),
    (ReadOnlyDict, "update setdefault pop popitem clear __ior__ __setitem__ __delitem__"),
):
    for _name in _names.split():
        setattr(_kind, _name, _refuse)


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Copy an array, in the order of its memory."""
    copy = array.copy("K")
    copy.flags.writeable = False
    return copy


class Cached:
    """A function with a cache, for a copy: its results are read-only.

    Args:
        function: gives what it caches.
        original: the function itself, which may hold other results than it makes; None: not asked.
    """

    def __init__(self, function: Callable[..., Any], copies: "Copies", original: Any = None):
        self.function, self._copies, self._original = function, copies, original
        self._results: dict[Any, tuple[str, Any]] = {}

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Return a result of the cache, or make it."""
        key, text = (args, (*options.items(),)), repr((args, options))
        if not all(type(value) in _KEYS and value == value for value in (*args, *options.values())):
            raise UntraceableError("it hands other than numbers to a function with a cache")
        if key not in self._results:
            result = self.function(*args, **options)
            if self._original is not None:
                most = self._original.cache_parameters()["maxsize"]
                if most is not None and len(self._results) >= most:
                    raise UntraceableError("it forgets what it cached")
                if not _is_alike(result, self._original(*args, **options)):
                    raise UntraceableError("it changes what it caches, or caches other than arrays and numbers")
            self._results.setdefault(key, (text, self._copies.of(result)))
        first, result = self._results[key]
        if first != text:
            raise UntraceableError("it caches one result for numbers of two types")
        return result


def _is_alike(a: Any, b: Any) -> bool:
    """Tell if two values are the same arrays and numbers."""
    if isinstance(a, list | tuple | dict):
        pairs = zip((*a, *a.values()), (*b, *b.values()), strict=True) if isinstance(a, dict) else zip(a, b, strict=True)
        return type(b) in type(a).__mro__ and len(a) == len(b) and all(_is_alike(x, y) for x, y in pairs)
    x, y = np.asarray(a), np.asarray(b)
    return type(a) is type(b) and x.dtype.kind in "biufU" and (x.dtype, x.shape, x.tobytes()) == (y.dtype, y.shape, y.tobytes())


class Copies:
    """Copies of a function, and of all that it reads.

    Args:
        root: the function; modules that were not written for it are left as they are.
        instead: by identity, objects and what takes their places.
        copy_array: of an array.
    """

    def __init__(self, root: Any, instead: dict[int, Any] | None = None, copy_array: Callable[[NDArray[Any]], Any] = read_only):
        self._root, self._copy_array, self._known = root, copy_array, dict(instead or {})
        self._names: dict[int, dict[str, Any]] = {}  # of modules
        self._read = set[tuple[int, frozenset[str]]]()  # modules, and names that were copied
        self.originals: list[Any] = []  # which live on, so that nothing else has their identities

    def of(self, value: Any) -> Any:
        """Copy a function, module, container or array; give anything else as it is."""
        if id(value) in self._known:
            return self._known[id(value)]
        self.originals.append(value)
        copy: Any = value
        if type(value) is FunctionType and self._is_copied(value):
            copy = self._of_function(value)
        elif type(value) is ModuleType and is_own(vars(value), self._root):
            copy = ModuleType(value.__name__)
        elif type(value) in (list, ReadOnlyList):
            copy = self._known[id(value)] = ReadOnlyList()
            list.extend(copy, map(self.of, value))
        elif type(value) in (dict, ReadOnlyDict):
            copy = self._known[id(value)] = ReadOnlyDict()
            dict.update(copy, {key: self.of(item) for key, item in value.items()})
        elif type(value) in (tuple, set):
            copy = tuple(map(self.of, value)) if type(value) is tuple else frozenset(value)
        elif type(value) is np.ndarray and not value.dtype.hasobject:
            copy = self._copy_array(value)
        elif type(value) is Cached:
            copy = Cached(value, self)
        elif type(value) is _CACHED:  # whose __wrapped__ may be another one
            functions = [part for part in gc.get_referents(value) if type(part) is FunctionType]
            copy = Cached(self.of(functions[0]), self, value) if len(functions) == 1 else value
        return self._known.setdefault(id(value), copy)

    def _is_copied(self, function: FunctionType) -> bool:
        builtins = getattr(function, "__builtins__", None)
        has_same = self._names.get(id(function.__globals__), {}).get("__builtins__", builtins) is builtins
        return has_same and type(function.__globals__) is dict and is_own(function.__globals__, self._root)

    def _of_function(self, function: FunctionType) -> FunctionType:
        space, cells = function.__globals__, function.__closure__ or ()
        names = self._names.setdefault(id(space), {name: space[name] for name in _FACTS if name in space})
        names["__builtins__"] = getattr(function, "__builtins__", None)
        copied = tuple(self._known.setdefault(id(cell), CellType()) for cell in cells)
        copy = FunctionType(function.__code__, names, function.__name__, closure=copied)
        copy.__module__, copy.__qualname__ = function.__module__, function.__qualname__
        self._known[id(function)] = copy
        self.originals += [space, *cells]
        for old, new in zip(cells, copied, strict=True):
            with suppress(ValueError):  # it is empty
                new.cell_contents = self.of(old.cell_contents)
        self._copy_names(space, names, frozenset(name for code in codes_of(function.__code__) for name in code.co_names))
        copy.__defaults__ = self.of(function.__defaults__)
        copy.__kwdefaults__ = {key: self.of(value) for key, value in (function.__kwdefaults__ or {}).items()}
        vars(copy).update(vars(function))
        return copy

    def _copy_names(self, space: dict[str, Any], copies: dict[str, Any], read: frozenset[str]) -> None:
        if (id(space), read) in self._read:
            return
        self._read.add((id(space), read))
        for name in read & {*space}:
            value, copies[name] = space[name], self.of(space[name])
            if type(value) is ModuleType and copies[name] is not value and type(copies[name]) is ModuleType:
                vars(copies[name]).update({fact: vars(value)[fact] for fact in _FACTS if fact in vars(value)})
                self._copy_names(vars(value), vars(copies[name]), read)


def isolated(function: Any) -> Any:
    """Copy a function.

    Raises:
        UntraceableError: a copy of it, or of one that it calls, was given up.
    """
    with refusing():
        copies = Copies(function)
        copy = copies.of(function)
    if any(id(original) in _GIVEN_UP for original in copies.originals):
        raise UntraceableError("it has changed what its module holds")
    return copy


def give_up(function: Any) -> None:
    """Make no further copies of a function whose copy fails: once itself is called, what it reads may be other than at first."""
    copies = Copies(function)
    copies.of(function)
    _GIVEN_UP.update({id(value): value for value in copies.originals if type(value) is FunctionType})
