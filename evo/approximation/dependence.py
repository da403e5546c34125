"""Bits of inputs on which each bit of a function's graph, or of a program, depends.

Owns a rule for each operation. A rule may name too many bits, never too few; operations without a rule depend on all.
A bit is 0 or ONE if it is known, and else the mask of the input bits that it may depend on, or UNKNOWN, which is constant.
"""

from collections.abc import Callable, Sequence
from functools import cache, reduce
from itertools import product
from operator import or_

import numpy as np

from evo.approximation.graph import Term, ordered, program_terms
from evo.language.program import Language
from evo.native.stack_ptx import Lowered

ONE = -1
UNKNOWN = 1 << 128
Bits = tuple[int, ...]  # the lowest first
_MAX_TABLE = 1 << 16
_AND, _OR, _XOR, _SELECT = 0xC0, 0xFC, 0x3C, 0xCA


def constant(value: int, width: int) -> Bits:
    """The bits of a number."""
    return tuple(ONE if value >> k & 1 else 0 for k in range(width))


def _union(bits: Bits) -> int:
    return reduce(or_, (bit for bit in bits if bit != ONE), 0)


def _number(bits: Bits) -> int | None:
    """The number; None: not all bits are constant."""
    return sum(1 << k for k, bit in enumerate(bits) if bit) if all(bit in (0, ONE) for bit in bits) else None


@cache
def _looked_up(table: int, a: int, b: int, c: int) -> int:
    """Bit 4a + 2b + c of a table."""
    ranges = [(0,) if bit == 0 else (1,) if bit == ONE else (0, 1) for bit in (a, b, c)]
    values = {at: table >> (4 * at[0] + 2 * at[1] + at[2]) & 1 for at in product(*ranges)}
    if len(set(values.values())) == 1:
        return -next(iter(values.values()))
    depends = 0
    for k, bit in enumerate((a, b, c)):
        if any(value != values.get((*at[:k], 1 - at[k], *at[k + 1 :]), value) for at, value in values.items()):
            depends |= bit
    return depends


def _bitwise(table: int, a: Bits, b: Bits, c: Bits | None = None) -> Bits:
    return tuple(_looked_up(table, *bits) for bits in zip(a, b, c or (0,) * len(a), strict=True))


def _shifted(a: Bits, count: int, fill: int = 0) -> Bits:
    """Moved to higher bits, or by a negative count to lower ones, where `fill` follows."""
    if count < 0:
        return (*a[-count:], *(fill,) * min(-count, len(a)))
    return (*(0,) * min(count, len(a)), *a[: max(len(a) - count, 0)])


def _carried(a: Bits, b: Bits, apply: Callable[[int, int], int], first: int) -> Bits:
    """An operation whose bit k depends on operands' bits up to k, and on those from `first` on only."""
    carried, known = (
        [*a[:first]],
        [sum(1 << k for k, bit in enumerate(operand) if bit == ONE and k >= first) for operand in (a, b)],
    )
    for k in range(first, len(a)):
        depends = _union((*a[first : k + 1], *b[first : k + 1]))
        carried.append(depends or -(apply(*known) >> k & 1))
    return tuple(carried)


def _sum(a: Bits, b: Bits) -> Bits:
    both = [k for k, (x, y) in enumerate(zip(a, b, strict=True)) if x and y]
    if not both:
        return _bitwise(_OR, a, b)
    return (*_bitwise(_OR, a, b)[: both[0]], *_carried(a, b, lambda x, y: x + y, both[0])[both[0] :])


def _difference(a: Bits, b: Bits) -> Bits:
    return _carried(a, b, lambda x, y: x - y, next((k for k, bit in enumerate(b) if bit), len(b)))


def _product(a: Bits, b: Bits) -> Bits:
    if _number(a) is not None:
        a, b = b, a
    factor = _number(b)
    if factor is not None:
        return reduce(_sum, (_shifted(a, k) for k in range(len(a)) if factor >> k & 1), (0,) * len(a))
    lowest = sum(next((k for k, bit in enumerate(operand) if bit), len(a)) for operand in (a, b))
    ones = [sum(1 << k for k, bit in enumerate(operand) if bit == ONE) for operand in (a, b)]
    known = ones[0] * ones[1]  # its bits up to the first that varies
    return tuple(0 if k < lowest else _union((*a[: k + 1], *b[: k + 1])) or -(known >> k & 1) for k in range(len(a)))


def _opaque(operands: Sequence[Bits], width: int) -> Bits:
    return (_union(tuple(bit for operand in operands for bit in operand)) or UNKNOWN,) * width


# ---- graphs of functions -------------------------------------------------------------------------------------------------


def of_terms(terms: Sequence[Term], widths: Sequence[int]) -> list[Bits]:
    """The bits of terms. widths: bits of each input that may be ones."""
    known: dict[Term, Bits] = {}
    for term in ordered(terms):
        known[term] = _of_term(term, [known[operand] for operand in term.operands], widths)
    return [known[term] for term in terms]


def _of_term(term: Term, operands: list[Bits], widths: Sequence[int]) -> Bits:
    width, (a, b, *_) = term.width, (*operands, (), ())
    is_integer, count = term.dtype.kind in "biu", _number(b)
    match term.op:
        case "input":
            return tuple(1 << (32 * term.value + k) if k < widths[term.value] else 0 for k in range(32))
        case "constant":
            return constant(term.bits(), width)
        case "view":
            return a
        case "part":
            return a[term.value * width : (term.value + 1) * width]
        case "join":
            return tuple(bit for operand in operands for bit in operand)
        case "cast" if is_integer and term.operands[0].dtype.kind in "biu" and width > 1:
            is_signed = term.operands[0].dtype.kind == "i"
            return (*a, *(a[-1] if is_signed else 0,) * (width - len(a)))[:width]
        case "bitwise_and" | "logical_and" if len(a) == width:
            return _bitwise(_AND, a, b)
        case "bitwise_or" | "logical_or" if len(a) == width:
            return _bitwise(_OR, a, b)
        case "bitwise_xor":
            return _bitwise(_XOR, a, b)
        case "invert":
            return _bitwise(_XOR, a, constant(-1, width))
        case "left_shift" if count is not None:
            return _shifted(a, min(count, width))
        case "right_shift" if count is not None:
            return _shifted(a, -min(count, width) or 0, a[-1] if term.dtype.kind == "i" else 0)
        case "add" if is_integer and width > 1:
            return _sum(a, b)
        case "subtract" if is_integer:
            return _difference(a, b)
        case "multiply" if is_integer and width > 1:
            return _product(a, b)
        case "where":
            return _bitwise(_SELECT, a * width, b, operands[2])
        case "instruction":
            return _of_instruction(term.value, operands)
        case "special":
            return (UNKNOWN - 1,) * width
        case "take" if not _may_leave(term, a):
            return _of_table(term.value, a, width)
    return _opaque(operands, width)


def may_fail(term: Term, widths: Sequence[int]) -> bool:
    """Tell if an index may lie beyond the ends of the table that a term takes from."""
    return _may_leave(term, of_terms(term.operands, widths)[0])


def _may_leave(term: Term, index: Bits) -> bool:
    is_from_end = bool(term.operands[0].dtype.kind == "i" and index[-1])
    return is_from_end or sum(1 << k for k, bit in enumerate(index) if bit) >= len(term.value)


def _of_table(table: np.ndarray, index: Bits, width: int) -> Bits:
    varied = [k for k, bit in enumerate(index) if bit not in (0, ONE)]
    fixed, mask = sum(1 << k for k, bit in enumerate(index) if bit == ONE), sum(1 << k for k in varied)
    if len(table) > _MAX_TABLE:
        return _opaque([index], width)
    words = table.view(f"u{table.dtype.itemsize}")
    numbers = np.arange(len(table))
    numbers = numbers[(numbers & ~mask) == fixed]
    result = [*constant(int(words[numbers[0]]), width)]
    for k in varied:
        without = numbers[(numbers >> k & 1) == 0]
        changes = int(np.bitwise_or.reduce(words[without] ^ words[without | 1 << k]))
        for bit in range(width):
            if changes >> bit & 1:
                result[bit] = max(result[bit], 0) | index[k]
    return tuple(result)


# ---- programs ------------------------------------------------------------------------------------------------------------


def of_program(language: Language, lowered: Lowered, widths: Sequence[int]) -> list[Bits]:
    """The bits of a program's outputs."""
    return of_terms(program_terms(language, lowered), widths)


def _of_instruction(name: str, operands: list[Bits]) -> Bits:
    a, b, c, *_ = (*operands, (), (), ())
    count = _number(b)
    match name:
        case _ if name.startswith("lop3_"):
            return _bitwise(int(name[5:], 16), a, b, c)
        case "shl" if count is not None:
            return _shifted(a, min(count, 32))
        case "shr" | "sar" if count is not None:
            return _shifted(a, -min(count, 32) or 0, a[-1] if name == "sar" else 0)
        case "prmt" if (selector := _number(c)) is not None:
            return tuple(bit for k in range(4) for bit in _byte(a + b, selector >> 4 * k & 15))
        case "add":
            return _sum(a, b)
        case "sub":
            return _difference(a, b)
        case "mul":
            return _product(a, b)
        case "mad":
            return _sum(_product(a, b), c)
        case "pack_s8" | "pack_u8":
            return (*_opaque([b], 8), *_opaque([a], 8), *c[:16])
        case "f16x2_of_f32" | "bf16x2_of_f32":
            return (*_opaque([b], 16), *_opaque([a], 16))
        case "e4m3x2_of_f32" | "e5m2x2_of_f32":
            return (*_opaque([b], 8), *_opaque([a], 8), *(0,) * 16)
        case "e4m3x2_of_f16x2" | "e5m2x2_of_f16x2":
            return (*_opaque([a[:16]], 8), *_opaque([a[16:]], 8), *(0,) * 16)
        case "f16x2_of_e4m3x2" | "f16x2_of_e5m2x2":
            return (*_opaque([a[:8]], 16), *_opaque([a[8:16]], 16))
        case _ if name.endswith(("2_f16", "2_bf16")):
            return tuple(bit for k in (0, 16) for bit in _opaque([operand[k : k + 16] for operand in operands], 16))
    return _opaque(operands, 32)


def _byte(eight: Bits, selector: int) -> Bits:
    byte = eight[8 * (selector & 7) : 8 * (selector & 7) + 8]
    return (byte[7],) * 8 if selector & 8 else byte
