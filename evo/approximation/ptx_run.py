"""Meaning of PTX over NumPy arrays: one pass through a function's statements.

Plain operations of integers are those of NumPy; other instructions have the semantics of evo's set `bits`. Branches lead forward,
and memory is that of outputs. Instructions without a meaning here are refused, as are those in which GPUs may differ. Slightly
long: reads, writes and statements share the state of a pass.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evo.approximation.ptx_operations import (
    COMPARISONS,
    INTEGERS,
    NOT,
    OF_FLOATS,
    ONES,
    ROUNDED,
    TRUTHS,
    WORDS,
    Values,
    instruction_names,
    limited,
    signed,
)
from evo.approximation.traced import instruction

_REGISTERS = re.compile(r"\.reg ?\.(pred|[bsuf]\d+|f16x2|bf16x2|bf16) (.*)")
_REGISTER = re.compile(r"([\w$%]+?) ?(?:< ?(\d+) ?>)?")
_STATEMENT = re.compile(r"(?:@ ?(!?) ?([^\s!]+) )?([a-z][\w.:]*) ?(.*)")
_NUMBER = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|0[fF][0-9a-fA-F]{8}|0|[1-9]\d*)U?|-?\d+\.\d*(?:[eE][-+]?\d+)?")
OPERAND = re.compile(r"\{[^}]*\}|\[[^\]]*\]|[^,\s]+")
_ADDRESS = re.compile(r"\[ ?([\w$%]+) ?(?:\+ ?(-?\w+))? ?\]")
_INTEGER, _WHOLE = re.compile(r"[su](8|16|32|64)"), re.compile(r"[bsu](16|32|64)|pred")
_BYTE = np.uint16(0xFF)
_WORD, _NAN = np.dtype(np.uint32), 0x7FFFFFFF


class PtxError(Exception):
    """A text is not a function of words; the message says why."""


@dataclass(frozen=True)
class _Pointer:
    """Address of an output, in bytes from a parameter's."""

    parameter: str
    offset: int = 0


# ---- types ---------------------------------------------------------------------------------------------------------------


def _width(kind: str) -> int:
    return 1 if kind == "pred" else 32 if kind.endswith("x2") else int(kind.lstrip("bsuf"))


def _unsigned(width: int) -> np.dtype[Any]:
    """Type of a register."""
    return np.dtype(np.bool_) if width == 1 else np.dtype(f"u{max(width, 16) // 8}")


def _plain(values: Values) -> Values:
    """Values as unsigned words."""
    return values if values.dtype.kind in "bu" else values.view(f"u{values.dtype.itemsize}")


def _immediate(text: str, kind: str) -> Values:
    dtype = _unsigned(_width(kind))
    if not _NUMBER.fullmatch(text) or (text.lstrip("-").isdecimal() if kind == "f32" else "." in text):
        raise PtxError(f"{text} is not a number of type {kind}")
    if text[:2] in ("0f", "0F"):
        return np.uint32(int(text[2:], 16))
    if kind == "f32":
        return np.float32(text).view(np.uint32)
    number, width = int(text.rstrip("U"), 0), _width(kind)
    if not -(1 << width - 1) <= number < 1 << max(width, 32):
        raise PtxError(f"{text} is beyond {kind}")
    return dtype.type(number if dtype == np.bool_ else number & ((1 << 8 * dtype.itemsize) - 1))


class Run:
    """One pass through statements, which come as `statement` takes them.

    Args:
        word: (name, index) of a word of a parameter, or of its target -> values.
        sizes: bytes of parameters other than addresses, and of the result.
        pointers: parameters that are addresses, of memory that does not overlap.
        result: parameter of the result; empty: none.

    Attributes:
        outputs: words by (pointer, or empty for the result; index).
        written: bytes of these by (pointer; index) -> where they are written; None: everywhere.
    """

    def __init__(self, word: Callable[[str, int], Values], sizes: Mapping[str, int], pointers: Sequence[str], result: str):
        self._word, self._sizes, self._pointers, self._result = word, sizes, pointers, result
        self._registers: dict[str, Any] = {}
        self._scopes: list[dict[str, tuple[int, int, int | None]]] = [{}]  # name -> its scope and width, and how many
        self._num_scopes = 0
        self._active: Values = None  # where statements have an effect; None: everywhere; False: nowhere, up to a label
        self._waiting: dict[str, Values] = {}  # labels ahead -> where they are reached from
        self._seen: set[str] = set()
        self._has_ended = False  # somewhere
        self.outputs: dict[tuple[str, int], Values] = {}
        self.written: dict[tuple[str, int], Values] = {}

    def statement(self, text: str) -> None:
        """Follow a statement, with single blanks and without its semicolon, or a label with a colon, or a brace.

        Raises:
            PtxError: it has no meaning here.
        """
        if text == "{":
            self._num_scopes += 1
            self._scopes.append({})
        elif text == "}":
            self._scopes.pop()
        elif text.endswith(":"):
            if text[:-1] in self._seen:
                raise PtxError(f"label {text[:-1]} stands in it twice")
            self._seen.add(text[:-1])
            self._active = _either(self._active, self._waiting.pop(text[:-1], False))
            if not self._waiting and not self._has_ended:
                self._active = None  # all ways meet here
        elif declared := _REGISTERS.fullmatch(text):
            for part in declared[2].split(","):
                if not (register := _REGISTER.fullmatch(part.strip())):
                    raise PtxError(f"{text!r} is not known here")
                count = register[2] and int(register[2])
                self._scopes[-1][register[1] + "<" * bool(count)] = self._num_scopes, _width(declared[1]), count or None
        elif text.startswith(".param"):
            raise PtxError("it calls a function that the compiler did not inline")
        elif text.startswith("."):
            raise PtxError(f"{text!r} is not known here")
        elif self._active is not False:
            if not (matched := _STATEMENT.fullmatch(text)):
                raise PtxError(f"{text!r} is not known here")
            try:
                self._execute(*matched.groups())
            except (TypeError, KeyError, ValueError, IndexError, AttributeError, OverflowError) as error:
                raise PtxError(f"{text!r} is not known here") from error

    def end(self) -> None:
        """Check that no label is left that a branch leads to."""
        if self._waiting:
            raise PtxError(f"label {next(iter(self._waiting))} is missing")

    def _execute(self, negation: str, guard: str, name: str, rest: str) -> None:
        where, operands, words = self._active, OPERAND.findall(rest), name.split(".")
        truth = self._truth(negation + guard) if guard else None
        if guard:
            where = self._narrowed(truth)
        match words[0]:
            case "bra" | "ret":
                if words[0] == "bra":
                    if operands[0] in self._seen:
                        raise PtxError("it has a loop that the compiler did not unroll")
                    self._waiting[operands[0]] = _either(self._waiting.get(operands[0], False), where)
                else:
                    self._has_ended = True
                self._active = False if truth is None else self._narrowed(NOT(truth))
            case "ld" | "st":
                self._move(words, operands, where)
            case "mov" | "cvta":
                target, source = operands
                self._write_parts(target, self._moved(words[-1], source), where)
            case "setp":
                self._compare(words, operands, where)
            case _:
                result, is_signed = self._result_of(name, words, operands[1:])
                self._write(operands[0], result, where, is_signed)

    def _narrowed(self, truth: Values) -> Values:
        return truth if self._active is None else np.logical_and(self._active, truth)

    # ---- operands ----

    def _register(self, name: str) -> tuple[str, int]:
        """Key of a register, and its width."""
        plain = name.rstrip("0123456789")
        for scope in reversed(self._scopes):
            number, width, count = scope.get(name) or scope.get(f"{plain}<") or (0, 0, 0)
            if width and (count is None or (plain != name and int(name[len(plain) :]) < count)):
                return f"{number} {name}", width
        raise PtxError(f"it uses {name}, which is neither a register of its own nor a number")

    def _held(self, text: str) -> Any:
        """Words of a register, or a pointer."""
        register, _ = self._register(text)
        if register not in self._registers:
            raise PtxError(f"it reads {text} before it is written")
        return self._registers[register]

    def _is_pointer(self, text: str) -> bool:
        return not _NUMBER.fullmatch(text) and not text.startswith("{") and isinstance(self._held(text), _Pointer)

    def _read(self, text: str, kind: str, *, may_be_wider: bool = False) -> Values:
        """Values of an operand as those of a type; of a wider register the low bits."""
        dtype = _unsigned(_width(kind))
        if re.match(r"-?[\d.]", text):
            values = _immediate(text, kind)
        else:
            values, width = self._held(text), self._register(text)[1]
            if isinstance(values, _Pointer):
                raise PtxError("it computes with an address, or has an integer of 64 bits beside addresses")
            if width != _width(kind) and not (may_be_wider and 1 < _width(kind) < width):
                raise PtxError(f"{text} does not have type {kind}")
            values = values if values.dtype == dtype else values.astype(dtype)
        if _width(kind) == 8:
            values = values & _BYTE
            return (values << np.uint16(8)).view(np.int16) >> np.int16(8) if kind == "s8" else values
        return values.view(f"{'i' if kind[0] == 's' else 'f'}{dtype.itemsize}") if kind[0] == "s" or kind == "f32" else values

    def _truth(self, text: str) -> Values:
        truth = self._read(text.lstrip("!"), "pred")
        return NOT(truth) if text[0] == "!" else truth

    def _write(self, text: str, values: Any, where: Values, is_signed: bool = False) -> None:
        if text == "_":
            return
        register, width = self._register(text)
        if isinstance(values, _Pointer):
            if where is not None:
                raise PtxError("an address depends on a condition")
        else:
            dtype, values = _unsigned(width), _plain(values)
            if (values.dtype == np.bool_) != (dtype == np.bool_):
                raise PtxError(f"{text} cannot hold the result")
            if is_signed and values.dtype.itemsize < dtype.itemsize:
                values = _plain(values.view(f"i{values.dtype.itemsize}").astype(f"i{dtype.itemsize}"))
            values = _chosen(where, values if values.dtype == dtype else values.astype(dtype), self._registers.get(register))
        self._registers[register] = values

    # ---- statements ----

    def _moved(self, kind: str, text: str) -> Any:
        if not text.startswith("{"):
            return self._held(text) if self._is_pointer(text) else self._read(text, kind)
        parts, dtype = OPERAND.findall(text[1:-1]), _unsigned(_width(kind))
        width = _width(kind) // len(parts)
        values = [self._read(part, f"b{width}").astype(dtype) << dtype.type(width * k) for k, part in enumerate(parts)]
        return sum(values[1:], values[0])

    def _write_parts(self, target: str, values: Any, where: Values) -> None:
        if target.startswith("{"):
            parts = OPERAND.findall(target[1:-1])
            width = 8 * values.dtype.itemsize // len(parts)
            for k, part in enumerate(parts):
                self._write(part, (values >> values.dtype.type(width * k)).astype(_unsigned(width)), where)
        else:
            self._write(target, values, where)

    def _compare(self, words: list[str], operands: list[str], where: Values) -> None:
        targets, *sources = operands
        a, b = (self._read(source, words[-1]) for source in sources[:2])
        result = _compared(words, words[-1], a, b)
        values = [result, NOT(result)]
        if len(words) - len(sources) != 1:
            raise ValueError("another count of operands")
        if len(sources) == 3:
            truth = self._truth(sources[2])
            values = [TRUTHS[words[2]](value, truth) for value in values]
        for target, value in zip(targets.split("|"), values, strict=False):
            self._write(target, value, where)

    def _set(self, words: list[str], operands: list[str]) -> Values:
        """Result of a comparison as a number or mask, of both halves if these are compared."""
        target, kind = words[-2:]
        a, b = (self._read(operand, kind) for operand in operands)
        if not kind.endswith("x2"):
            return np.where(_compared(words, kind, a, b), ONES[target], ONES[target].dtype.type(0))
        ones = _WORD.type(ONES[target.removesuffix("x2")] if target.endswith("x2") else 0xFFFF)
        half = kind.removesuffix("x2")
        return _of_halves(lambda x, y: np.where(_compared(words, half, x, y), ones, _WORD.type(0)), a, b)

    def _result_of(self, name: str, words: list[str], operands: list[str]) -> tuple[Any, bool]:
        """Result of an operation, and whether a wider register extends its sign."""
        base, kind, names = ".".join(words[:-1]), words[-1], instruction_names()
        count = len(operands)
        if words[0] == "lop3":
            *inputs, table = operands
            return instruction(f"lop3_{int(table, 0):02x}", *(self._read(operand, "b32") for operand in inputs)), False
        if words[0] == "set" and count == 2:
            return self._set(words, operands), False
        if words[0] == "selp":
            a, b, truth = operands
            return np.where(self._truth(truth), *(_plain(self._read(operand, kind)) for operand in (a, b))), False
        if name in WORDS or names.get(name, ("", 0))[1] == count:
            is_small = name in ("cvt.f32.f16", "cvt.f32.bf16") or name.endswith(("e4m3x2", "e5m2x2"))
            read_type = "b16" if is_small else "f32" if kind == "f32" else "b32"
            inputs = [_plain(self._read(operand, read_type)).astype(_WORD) for operand in operands]
            return WORDS[name](*inputs) if name in WORDS else instruction(names[name][0], *inputs), False
        if names.get(f"{name}x2", ("", 0))[1] == count:
            return instruction(names[f"{name}x2"][0], *(self._read(operand, "b16").astype(_WORD) for operand in operands)), False
        if base in ("neg", "abs") and kind in ("f32", "f16", "bf16", "f16x2", "bf16x2"):
            [operand] = operands
            return signed(base, self._read(operand, f"b{_width(kind)}").astype(_WORD), kind), False
        if base in ("add", "min", "max") and kind in ("u16x2", "s16x2"):
            a, b = (self._read(operand, "b32") for operand in operands)
            form = np.int16 if kind[0] == "s" else np.uint16
            return _of_halves(lambda x, y: _plain(INTEGERS[base](x.view(form), y.view(form))), a, b), False
        if words[0] == "cvt" and count == 1:
            return self._converted(words, operands[0]), words[-2][0] == "s"
        if base == "add" and any(map(self._is_pointer, operands)):
            return self._moved_pointer(operands), False
        if not _WHOLE.fullmatch(kind):
            raise PtxError(f"{name} is not known here")
        values = [self._read(operand, "u32" if k and base in ("shl", "shr") else kind) for k, operand in enumerate(operands[:2])]
        if base in ("mul.wide", "mad.wide") or name in ("mul.hi.u16", "mul.hi.s16"):
            wide = values[0].dtype.kind + str(2 * values[0].dtype.itemsize)
            product, rest = values[0].astype(wide) * values[1].astype(wide), operands[2:]
            if base == "mad.wide":
                product = product + self._read(rest.pop(), f"{kind[0]}{2 * _width(kind)}")
            if rest:
                raise ValueError("too many operands")
            return _plain(product >> product.dtype.type(16)).astype(np.uint16) if base == "mul.hi" else product, False
        if base in ("shl", "shr"):
            values[1] = np.minimum(values[1], np.uint32(255)).astype(values[0].dtype)
        apply, values = INTEGERS[base], [*values, *(self._read(operand, kind) for operand in operands[2:])]
        if count != (apply.nin if isinstance(apply, np.ufunc) else 3):
            raise ValueError("another count of operands")
        return apply(*values), kind[0] == "s"

    def _moved_pointer(self, operands: list[str]) -> _Pointer:
        pointer, offset = operands if self._is_pointer(operands[0]) else operands[::-1]
        number = self._read(offset, "s64")
        if not isinstance(number, np.generic):
            raise PtxError("an address depends on inputs")
        held = self._held(pointer)
        return _Pointer(held.parameter, held.offset + int(number))

    def _converted(self, words: list[str], operand: str) -> Values:
        """Result of a conversion among integers, or between these and f32."""
        target, source = words[-2:]
        values, modifiers = self._read(operand, source, may_be_wider=True), {*words[1:-2]}
        if target in ("f16", "f32") and _INTEGER.fullmatch(source) and modifiers == {"rn"}:
            number = values.astype(np.float32)  # numbers that round here are infinite as f16
            return number if target == "f32" else instruction("f16x2_of_f32", np.uint32(0), number.view(_WORD))
        if source == "f16":
            values, source = instruction("f32_of_f16", values.astype(_WORD)).view(np.float32), "f32"
        if target == source == "f32" and len(modifiers) == 1 and modifiers <= {*ROUNDED}:
            return np.where(np.isnan(values), np.uint32(_NAN), ROUNDED[words[1]](values).view(np.uint32))
        if not _INTEGER.fullmatch(target):
            raise PtxError(f"{'.'.join(words)} is not known here")
        dtype = np.dtype(f"{'i' if target[0] == 's' else 'u'}{_width(target) // 8}")
        if source == "f32" and _width(target) <= 32 and modifiers <= {*ROUNDED, "sat"}:
            whole = ROUNDED[words[1]](values.astype(np.float64))
            values = limited(np.where(np.isnan(whole), 0.0, whole), dtype)
        elif _INTEGER.fullmatch(source) and modifiers <= {"sat"} and not (modifiers and source == "u64"):
            values = limited(values.astype(np.int64), dtype) if modifiers else values.astype(dtype)
        else:
            raise PtxError(f"{'.'.join(words)} is not known here")
        return values.astype(f"{dtype.kind}{max(dtype.itemsize, 2)}")

    # ---- memory ----

    def _move(self, words: list[str], operands: list[str], where: Values) -> None:
        kind, is_load = words[-1], words[0] == "ld"
        listed, address = operands if is_load else operands[::-1]
        matched = _ADDRESS.fullmatch(address)
        parts = OPERAND.findall(listed[1:-1]) if listed.startswith("{") else [listed]
        if matched is None:
            raise PtxError(f"{address} is not an address here")
        name, offset, size = matched[1], int(matched[2] or "0", 0), _width(kind) // 8
        if is_load and words[1] == "param" and name in self._pointers:
            self._write(listed, _Pointer(name, offset), where)
            return
        is_given = words[1] == "param" and name in self._sizes and is_load != (name == self._result)
        pointer = _Pointer(name if is_load else "") if is_given else self._held(name)
        if not isinstance(pointer, _Pointer):
            raise PtxError("it uses memory other than that of its parameters")
        if is_given and offset + len(parts) * size > self._sizes[name]:
            raise PtxError(f"{address} is beyond the parameter")
        for k, part in enumerate(parts):
            at = pointer.offset + offset + k * size
            if at % size or at < 0:
                raise PtxError("an address is not aligned, or before what a parameter points to")
            if is_load:
                self._write(part, self._loaded(pointer.parameter, at, size), where, kind[0] == "s")
            else:
                self._store(pointer.parameter, at, _plain(self._read(part, kind, may_be_wider=True)), size, where)

    def _loaded(self, name: str, offset: int, size: int) -> Values:
        if size == 8:
            low, high = (self._loaded(name, offset + k, 4).astype(np.uint64) for k in (0, 4))
            return low | high << np.uint64(32)
        known = [self.written.get((name, offset + k), False) for k in range(size)]
        if any(where is not known[0] for where in known) or known[0] not in (None, False):
            raise PtxError("it reads an output that it may not have written")
        key = name, offset // 4
        word = self._word(*key) if known[0] is False else self.outputs[key]
        return word if size == 4 else (word >> np.uint32(8 * (offset % 4))).astype(f"u{size}")

    def _store(self, parameter: str, offset: int, values: Values, size: int, where: Values) -> None:
        if size == 8:
            for k in (0, 4):
                self._store(parameter, offset + k, (values >> np.uint64(8 * k)).astype(np.uint32), 4, where)
            return
        key, shift = (parameter, offset // 4), np.uint32(8 * (offset % 4))
        old, mask = self.outputs.get(key, np.uint32(0)), np.uint32((1 << 8 * size) - 1) << shift
        new = values if size == 4 else (values.astype(np.uint32) << shift & mask) | (old & ~mask)
        self.outputs[key] = _chosen(where, new, old)
        for k in range(offset, offset + size):
            self.written[parameter, k] = _either(self.written.get((parameter, k), False), where)


def _of_halves(apply: Callable[..., Values], a: Values, b: Values) -> Values:
    """An operation of 16 bits on both halves of words."""
    low, high = (apply(*((word >> np.uint32(k)).astype(np.uint16) for word in (a, b))).astype(_WORD) for k in (0, 16))
    return low | high << np.uint32(16)


def _compared(words: list[str], kind: str, a: Values, b: Values) -> Values:
    """Truths of a comparison. kind: of both operands."""
    if "ftz" in words or kind in ("f64", "f16x2", "bf16x2"):
        raise PtxError(f"{'.'.join(words)} is not known here")
    if kind == "f16":
        a, b = (instruction("f32_of_f16", value.astype(_WORD)).view(np.float32) for value in (a, b))
    elif kind == "bf16":
        a, b = ((value.astype(_WORD) << np.uint32(16)).view(np.float32) for value in (a, b))
    return (OF_FLOATS if "f" in kind else COMPARISONS)[words[1]](a, b)


def _either(a: Values, b: Values) -> Values:
    if a is None or b is None:
        return None
    return a if b is False else b if a is False else np.logical_or(a, b)


def _chosen(where: Values, new: Values, old: Values | None) -> Values:
    return new if where is None or old is None else np.where(where, new, old)
