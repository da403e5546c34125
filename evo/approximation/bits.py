"""Exact functions: words to words, by name or in Python over NumPy arrays.

Owns the zoo, preconditions and bits that do not matter. Knows nothing of programs. Slightly long: all that a function may be
asked for is checked when it is named.
"""

import ast
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from importlib import import_module
from operator import lshift, mul, rshift
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.approximation import zoo
from evo.approximation.functions import is_code, shortened
from evo.approximation.isolation import give_up
from evo.approximation.plain_code import plain
from evo.approximation.ptx_function import PtxFunction, is_file, path_and_name
from evo.approximation.ptx_run import PtxError
from evo.approximation.traced import UntraceableError
from evo.errors import UserError, did_you_mean

Words = NDArray[np.uint32]
ALL = 0xFFFFFFFF
MAX_INPUTS, MAX_OUTPUTS = 4, 8
TYPES = ("u32", "f32", "f16x2", "bf16x2")
# Words at which a function is tried: 0, 1, ones, signs, and of f32, f16 and bf16 subnormal, infinite and no numbers.
_EDGES = [0, 1, ALL, 1 << 31, ALL >> 1, 0x80000001, 0x7FFFFF, 0x800000, 0x807FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000]
_EDGES += [0x7F800001, 0xFFC00001, 0xFF800002, 0x7C007C00, 0x7E00FC01, 0x03FF8001, 0x7F807FC0, 0xFF81007F]
_HASHES = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F)  # of each input
_NUM_TRIED, _NUM_IN_THREES = 1 << 16, 384
_OPERATORS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.BitAnd: np.bitwise_and,
    ast.BitOr: np.bitwise_or,
    ast.BitXor: np.bitwise_xor,
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Mod: np.remainder,
    ast.RShift: np.right_shift,
    ast.LShift: np.left_shift,
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
    ast.And: np.logical_and,
    ast.Or: np.logical_or,
}


_WRONG = (SyntaxError, ValueError, TypeError, KeyError, RecursionError, MemoryError, OverflowError)
_PLAIN = re.compile(r"[^#\s]*(?: [^#\s]*)*")


def _bounds(operator: ast.operator, a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    """The bounds of an operation's results, by those of its operands."""
    match operator:
        case ast.Mod():
            if b[0] <= 0 <= b[1]:
                raise ValueError("a divisor may be 0")
            return min(b[0] + 1, 0), max(b[1] - 1, 0)
        case ast.BitAnd() | ast.BitOr() | ast.BitXor():
            if isinstance(operator, ast.BitAnd) and (ends := [high for low, high in (a, b) if low >= 0]):
                return 0, min(ends)
            largest = (1 << max(end.bit_length() for end in (*a, *b))) - 1
            return -largest - 1 if min(a[0], b[0]) < 0 else 0, largest
        case ast.Sub():
            return a[0] - b[1], a[1] - b[0]
        case ast.Add():
            return a[0] + b[0], a[1] + b[1]
    if not isinstance(operator, ast.Mult) and not 0 <= b[0] <= b[1] < 64:
        raise ValueError("a shift may be none of 0 to 63")
    apply = {ast.Mult: mul, ast.LShift: lshift, ast.RShift: rshift}[type(operator)]
    corners = [apply(x, y) for x in a for y in b]
    return min(corners), max(corners)


def _all(truths: Iterable[Any]) -> Any:
    return reduce(np.logical_and, truths)


def _of_halves(largest: int, test: Callable[[Any, int], Any]) -> Callable[[Any], Any]:
    return lambda x: test(x & 0x7FFF, largest) & test(x >> 16 & 0x7FFF, largest)


# Predicates of a precondition on a word.
_PREDICATES: dict[str, Callable[[Any], Any]] = {
    "finite": lambda x: (x & 0x7FFFFFFF) < 0x7F800000,
    "no_nan": lambda x: (x & 0x7FFFFFFF) <= 0x7F800000,
    "normal": lambda x: ((x & 0x7F800000) != 0) & ((x & 0x7FFFFFFF) < 0x7F800000),
    "finite_f16x2": _of_halves(0x7C00, np.less),
    "no_nan_f16x2": _of_halves(0x7C00, np.less_equal),
    "finite_bf16x2": _of_halves(0x7F80, np.less),
    "no_nan_bf16x2": _of_halves(0x7F80, np.less_equal),
    "no_nan_e4m3x4": lambda x: _all(((x >> k) & 0x7F) != 0x7F for k in (0, 8, 16, 24)),
}


@dataclass(frozen=True)
class Precondition:
    """A condition on words as text, such as `q < 2**24` or `no_nan(x)`.

    Raises:
        UserError: it has other parts than these names, integers, operators and predicates.
    """

    text: str
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        try:
            if self.text:
                self.bounds(ast.parse(self.text, mode="eval").body)
        except _WRONG as error:
            raise self._refused(error) from error
        self(*(np.zeros(1, np.uint32) for _ in self.names))

    def __call__(self, *words: Words) -> NDArray[np.bool_]:
        """Mask of the words at which it holds."""
        if not self.text:
            return np.ones(len(words[0]), np.bool_)
        values = dict(zip(self.names, words, strict=True))
        try:
            result = self.value(values)
            if np.asarray(result).dtype != np.bool_:
                raise ValueError("it gives numbers")
        except _WRONG as error:
            raise self._refused(error) from error
        return np.broadcast_to(np.asarray(result, np.bool_), len(words[0]))

    def value(self, values: Mapping[str, Any]) -> Any:
        """Its value at arrays, or traced ones, by name; undefined for the empty condition."""
        return self._value(ast.parse(self.text, mode="eval").body, values)

    def _refused(self, error: BaseException) -> UserError:
        return UserError(
            f"task_options.precondition: {shortened(self.text)!r} must be a condition on {', '.join(self.names)}, such as "
            f"'{self.names[0]} < 2**24': {shortened(str(error))}; functions: {', '.join(_PREDICATES)}"
        )

    def bounds(self, node: ast.expr) -> tuple[int, int]:
        """The least and largest value that a part of it may have.

        Raises:
            ValueError: one may leave 64 bits, or a shift be none of 0 to 63, or a divisor 0.
        """
        match node:
            case ast.Name(name) if name in self.names:
                return 0, ALL
            case ast.Compare() | ast.BoolOp() | ast.UnaryOp():
                for part in ast.iter_child_nodes(node):
                    if isinstance(part, ast.expr):
                        self.bounds(part)
                return 0, 1
            case ast.Call():
                return 0, 1
            case ast.BinOp(left, operator, right) if type(operator) in _OPERATORS:
                a, b = self.bounds(left), self.bounds(right)
                result = _bounds(operator, a, b)
                if result[0] >= -(1 << 63) and result[1] < 1 << 63:
                    return result
                raise ValueError(f"{ast.unparse(node)} may leave 64 bits")
        number = int(self._value(node, {}))
        return number, number

    def _value(self, node: ast.expr, values: Mapping[str, Any]) -> Any:
        match node:
            case ast.Name(name) if name in values:
                return values[name].astype(np.int64)
            case ast.Constant(int(number)) if 0 <= number <= ALL:
                return number
            case ast.BinOp(ast.Constant(2), ast.Pow(), ast.Constant(int(number))) if 0 <= number <= 32:
                return 1 << number
            case ast.BinOp(left, operator, right) if type(operator) in _OPERATORS:
                a, b = self._value(left, values), self._value(right, values)
                if not isinstance(operator, ast.BitAnd | ast.BitOr | ast.BitXor):  # a sum of truths is a number
                    a, b = (np.int64(side) if isinstance(side, int) else side.astype(np.int64) for side in (a, b))
                return _OPERATORS[type(operator)](a, b)
            case ast.Compare(left, operators, rights):
                chain = [self._value(part, values) for part in (left, *rights)]
                pairs = zip(operators, chain, chain[1:], strict=False)
                return _all(_OPERATORS[type(op)](a, b) for op, a, b in pairs)
            case ast.BoolOp(operator, parts):
                combined, *rest = [self._value(part, values) for part in parts]
                for value in rest:
                    combined = _OPERATORS[type(operator)](combined, value)
                return combined
            case ast.UnaryOp(ast.Not(), operand):
                return np.logical_not(self._value(operand, values))
            case ast.Call(ast.Name(name), [ast.Name(word)], []) if name in _PREDICATES and word in values:
                return _PREDICATES[name](values[word])
        raise ValueError(f"{shortened(ast.unparse(node))} has no value")


@dataclass(frozen=True)
class ExactFunction:
    """A function of words. text: its name in `evo.approximation.zoo`, `module:function`, or a file as of `PtxFunction`.

    The function takes an array for each input, by its parameters' names, and gives one or several of the outputs. Its attributes,
    each of which may be missing: `types`, of inputs, among TYPES (f32 ones come as float32); `precondition`, as of
    `Precondition`; `care`, a mask for each output of the bits that matter.

    Args:
        precondition: a further one.

    Raises:
        UserError: it is none of these, or does not give words.
    """

    text: str
    precondition: str = ""

    def __post_init__(self) -> None:
        try:
            self._check_isolated()
        except UserError:
            raise
        except PtxError as error:
            raise UserError(f"task_options.function: {shortened(self.text)}: {error}") from error
        except (Exception, SystemExit) as error:
            if is_file(self.text):
                raise UserError(f"task_options.function: {shortened(self.text)}: {error}") from error
            known = "" if is_code(self.text) else f"; {did_you_mean(self.text, zoo.NAMES)}"
            if isinstance(error, ModuleNotFoundError) and error.name == self.text.partition(":")[0]:
                known = "; it must lie in the task's folder (`evo init NAME --template exact`), or on PYTHONPATH"
            raise UserError(
                f"task_options.function: {shortened(self.text)!r} is not a name or module:function of words: {error}{known}"
            ) from error

    def _check_isolated(self) -> None:
        """Check a copy of the function, or the function itself if it writes to what it did not make."""
        try:
            self._check()
        except UserError as error:
            why = error.__cause__
            if self.numbers is None or not (isinstance(why, UntraceableError) or "read-only" in str(why)):
                raise
            give_up(self._itself)
            for name in [*vars(self)]:
                if name not in ("text", "precondition"):
                    del vars(self)[name]
            self._check()

    def _check(self) -> None:
        if not 1 <= len(self.inputs) <= MAX_INPUTS:
            raise ValueError(f"it has {len(self.inputs)} parameters, 1 to {MAX_INPUTS} are possible")
        if wrong := [name for name in (*self.inputs, self.text) if not name.isascii()]:
            raise ValueError(f"{wrong[0]!r} has letters beyond ASCII")
        if isinstance(types := getattr(self.call, "types", ()), str):
            raise ValueError(f"'types' must be a tuple of a type for each input, such as ({types!r},)")
        if wrong := [kind for kind in self.types if kind not in TYPES]:
            raise ValueError(f"type {wrong[0]!r} is not one of {', '.join(TYPES)}")
        if len(self.types) != len(self.inputs):
            raise ValueError(f"'types' must be a type for each of {len(self.inputs)} inputs, got {self.types!r}")
        tried = self._tried()
        num_outputs = len(self(*tried))
        if not 1 <= num_outputs <= MAX_OUTPUTS:
            raise ValueError(f"it gives {num_outputs} outputs, 1 to {MAX_OUTPUTS} are possible")
        if len(self.care) != num_outputs or not all(isinstance(mask, int) and 0 < mask <= ALL for mask in self.care):
            raise ValueError(f"'care' must be a mask for each of {num_outputs} outputs, got {self.care!r}")
        self._check_elementwise(tried, self.condition(*tried))

    def _tried(self) -> list[Words]:
        numbers, edges, words = np.arange(_NUM_TRIED, dtype=np.uint32), np.array(_EDGES, np.uint32), []
        for k, (factor, width) in enumerate(zip(_HASHES, self.widths, strict=False)):
            hashed = numbers * np.uint32(factor)
            hashed ^= hashed >> 15
            words.append(np.where(numbers >> k & 1, hashed, edges[hashed % len(edges)]) & np.uint32((1 << width) - 1))
        return words

    def _check_elementwise(self, words: Sequence[Words], is_valid: NDArray[np.bool_]) -> None:
        whole = self(*words)  # is written over if the function gives the same array each time
        threes = (slice(k, k + 3) for k in range(0, _NUM_IN_THREES, 3))  # too few for SIMD
        for part in (slice(None, None, -1), slice(None), slice(1, 1000), *threes):
            for a, b, mask in zip(whole, self(*(array[part] for array in words)), self.care, strict=True):
                if ((a[part] ^ b)[is_valid[part]] & np.uint32(mask)).any():
                    raise ValueError("it gives other results for the same words in another array, must be elementwise")

    @cached_property
    def _itself(self) -> Callable[..., Any]:
        if is_file(self.text):
            return PtxFunction(self.text)
        if is_code(self.text):
            module, _, name = self.text.partition(":")
            return getattr(import_module(module), name)  # type: ignore[no-any-return]
        if self.text not in zoo.NAMES:
            raise ValueError("unknown")
        return getattr(zoo, self.text)  # type: ignore[no-any-return]

    @cached_property
    def _plain(self) -> tuple[Callable[..., Any], Words | None]:
        try:
            return plain(self._itself)
        except UntraceableError:
            return self._itself, None

    @property
    def call(self) -> Callable[..., Any]:
        """The function over arrays: a copy, for which all that it does not make is read-only, if its code is plain."""
        return self._plain[0]

    @property
    def numbers(self) -> Words | None:
        """Words of the numbers in its code; None: it is not plain."""
        return self._plain[1]

    @property
    def name(self) -> str:
        """The function without the folder of its file."""
        return f"{path_and_name(self.text)[0].name}:{self.call.__name__}" if is_file(self.text) else self.text

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs: the parameters without a default."""
        parameters = inspect.signature(self.call).parameters.values()
        return tuple(parameter.name for parameter in parameters if parameter.default is inspect.Parameter.empty)

    @cached_property
    def types(self) -> tuple[str, ...]:
        """Types of the inputs."""
        return tuple(getattr(self.call, "types", ("u32",) * len(self.inputs)))

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """Names of the outputs: y, or y0, y1 and so on; with another letter if inputs have these names."""
        count = len(self(*np.zeros((len(self.inputs), 1), np.uint32)))
        for letter in ("y", "z", "result"):
            names = (letter,) if count == 1 else tuple(f"{letter}{k}" for k in range(count))
            if not set(names) & set(self.inputs):
                break
        return names

    @cached_property
    def care(self) -> tuple[int, ...]:
        """Bits of each output that matter."""
        return tuple(getattr(self.call, "care", (ALL,) * len(self.outputs)))

    @cached_property
    def condition(self) -> Precondition:
        """The function's own precondition and the further one."""
        both = [_plain(text) for text in (getattr(self.call, "precondition", ""), self.precondition) if text]
        return Precondition(" and ".join(f"({text})" for text in both) if len(both) > 1 else "".join(both), self.inputs)

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Bits of each input that may be ones under the precondition, by bounds such as `q < 2**24` or `q < 243`."""
        widths = dict.fromkeys(self.inputs, 32)
        tree = ast.parse(self.condition.text or "True", mode="eval").body
        parts, i = [tree], 0
        while i < len(parts):
            if isinstance(parts[i], ast.BoolOp) and isinstance(parts[i].op, ast.And):  # type: ignore[attr-defined]
                parts += parts[i].values  # type: ignore[attr-defined]
            match parts[i]:
                case ast.Compare(ast.Name(name), [ast.Lt() | ast.LtE() as sign], [bound]) if name in widths:
                    limit = self.condition.bounds(bound)[1] - isinstance(sign, ast.Lt)
                    widths[name] = min(widths[name], max(limit, 0).bit_length())
            i += 1
        return tuple(widths.values())

    def arguments(self, words: Sequence[Words]) -> list[NDArray[Any]]:
        """Arrays for `call`: read-only copies, since a function can make its arguments writable again."""
        kinds = (np.float32 if kind == "f32" else np.uint32 for kind in self.types)
        copies: list[NDArray[Any]] = [column.copy().view(kind) for column, kind in zip(words, kinds, strict=True)]
        for array in copies:
            array.flags.writeable = False
        return copies

    def __call__(self, *words: Words) -> list[Words]:
        """The outputs at words."""
        try:
            with np.errstate(all="ignore"):
                outputs = self.call(*self.arguments(words))
            results = [np.asarray(output) for output in (outputs if isinstance(outputs, Sequence | tuple) else (outputs,))]
            for result in results:
                if (is_wide := _is_wide(result)).any() and (is_wide & self.condition(*words)).any():
                    raise ValueError(
                        f"it gives {result.dtype} above 32 bits; cut it by astype(np.uint32), or give its halves as two outputs"
                    )
            return [_bits(result, words[0]) for result in results]
        except PtxError as error:
            raise UserError(f"task_options.function: {shortened(self.text)}: {error}") from error
        except (Exception, SystemExit) as error:
            why = f"{type(error).__name__}: {error}"
            raise UserError(f"task_options.function: {shortened(self.text)!r} fails on arrays of words: {why}") from error


def _plain(text: str) -> str:
    """A condition without comments, tabs and ends of lines."""
    try:
        return text if _PLAIN.fullmatch(text) else ast.unparse(ast.parse(text.strip(), mode="eval"))
    except _WRONG:
        return text  # which `Precondition` refuses


def _is_wide(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether integers are neither words nor negative numbers of 32 bits."""
    if values.dtype.kind not in "iu" or values.dtype.itemsize <= 4:
        return np.zeros(1, np.bool_)
    return ~np.isin(values.astype(np.int64) >> 32, (0, -1))


def _bits(values: NDArray[Any], like: Words) -> Words:
    if values.dtype == np.float32:
        values = values.view(np.uint32)
    if values.dtype.kind not in "iub" or values.shape != like.shape:
        raise TypeError(f"it gives {values.dtype} of {values.shape}, expected integers or float32 of {like.shape}")
    return np.ascontiguousarray(values.astype(np.uint32, copy=False))
