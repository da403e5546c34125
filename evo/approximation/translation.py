"""A function's graph as instructions, operation by operation: a program to begin with, however long, and rows on the way to it.

Each value is a word, signs extended and other high bits zero, or two words if it has 64 bits. Owns these instructions. Results
are compared with the function later: an operation without an instruction of its own has one that is near.
"""

from collections.abc import Callable, Sequence
from functools import partial, reduce
from operator import or_
from typing import Any

import numpy as np

from evo.approximation.bits import ExactFunction
from evo.approximation.dependence import Bits, of_terms
from evo.approximation.exact_sweep import traced
from evo.approximation.graph import Term, evaluate, ordered
from evo.approximation.lanes import Lanes
from evo.approximation.nodes import Node, Shared, program_text
from evo.approximation.samples import sample
from evo.approximation.traced import UntraceableError

Word = Node | int
Words = tuple[Word, ...]  # the lower first
_ALL, _SIGN = 0xFFFFFFFF, 0x80000000
_MANY_ENTRIES, _MOST_ENTRIES, _MOST_WORDS = 16, 4096, 64  # of a table
_MOST_BITS = 10  # on which a value depends that is looked up in place of its operations
_NUM_SAMPLED = 4096  # inputs that show how large a dividend may be
_MOST_TERMS, _MOST_DEPTH = 2000, 200  # of a graph; of a node
_ROUNDING, _MOST_DIGITS = 0x4B400000, 21  # 1.5 * 2^23, to which a number is added; bits that the number may have
_DIVISIONS = ("floor_divide", "remainder")
_FLOATS = {"add": "addf", "subtract": "subf", "multiply": "mulf", "minimum": "minf", "maximum": "maxf"}
_HALVES = {"add": "add2_f16", "subtract": "sub2_f16", "multiply": "mul2_f16", "minimum": "min2_f16", "maximum": "max2_f16"}


class _UntranslatableError(Exception):
    pass


def translated(
    function: ExactFunction, more: Sequence[Any] = (), solve: Callable[[Term], Node | None] = lambda _: None
) -> list[Node | int]:
    """A node of each output; empty: the function is not a graph of operations that are known here.

    Args:
        more: inputs at which programs were wrong.
        solve: gives a node of a term whose operation is not known here, or of a large table.
    """
    try:
        outputs = traced(function)[0]
        terms = ordered(outputs)
        if len(terms) > _MOST_TERMS:
            return []
        widths = _widths([term.operands[0] for term in terms if term.op in ("cast", *_DIVISIONS)], function, more)
        known: dict[Term, Words] = {}
        bits = dict(zip(terms, of_terms(terms, function.widths), strict=True))
        lanes = Lanes(bits, lambda term: known[term][0])
        depths: dict[Word, int] = {}
        for term in terms:
            operands, word = [known[operand] for operand in term.operands], None
            if all(operands):  # each has words
                is_large = term.op == "take" and len(term.value) >= _MANY_ENTRIES
                word = (solve(term) if is_large else None) or lanes.joined(term)
            try:
                words = (word,) if word is not None else _of_term(term, operands, widths) if all(operands) else ()
            except _UntranslatableError:
                words = ()
            words = words or _of_few_bits(term, bits[term], function)
            known[term] = tuple(Shared(word) if isinstance(word, tuple) else word for word in words)
            if max((_depth(word, depths) for word in known[term]), default=0) > _MOST_DEPTH:
                return []
        nodes = [known[term][0] for term in outputs]
        program_text(nodes, function)
        return nodes
    except (UntraceableError, IndexError, OverflowError):  # an output of no words
        return []


def _of_few_bits(term: Term, bits: Bits, function: ExactFunction) -> Words:
    """A value that depends on few bits of an input next to each other, by its table; none: it does not, or the table is large."""
    mask = reduce(or_, (bit for bit in bits if bit > 0), 0)
    first = (mask & -mask).bit_length() - 1
    count = mask.bit_length() - first
    if not mask or count > _MOST_BITS or first % 32 + count > 32:
        return ()
    words = [np.zeros(1 << count, np.uint32) for _ in function.inputs]
    words[first // 32] = np.arange(1 << count, dtype=np.uint32) << np.uint32(first % 32)
    try:
        with np.errstate(all="ignore"):
            [table] = evaluate([term], function.arguments(words))
        return _looked_up(table, _and(("shr", ("%", first // 32), first % 32), (1 << count) - 1))
    except (_UntranslatableError, IndexError):  # beyond the ends of a table
        return ()


def _widths(terms: list[Term], function: ExactFunction, more: Sequence[Any]) -> dict[Term, int]:
    """Bits of numbers at a sample and more inputs; less than 0: of integers some of which are negative."""
    numbers = [term for term in terms if term.dtype.kind in "iu" or term.dtype == np.float32]
    with np.errstate(all="ignore"):
        samples = evaluate(numbers, function.arguments(sample(function, _NUM_SAMPLED, 0, more)))
        samples = [np.nan_to_num(np.abs(x), nan=1e30, posinf=1e30) if x.dtype.kind == "f" else x for x in samples]
    ends = [(int(np.min(values)), int(np.max(values))) for values in samples]
    return {
        term: most.bit_length() if least >= 0 else -max(most, ~least).bit_length() - 1
        for term, (least, most) in zip(numbers, ends, strict=True)
    }


def _depth(word: Word, known: dict[Word, int]) -> int:
    if not isinstance(word, tuple):
        return 0
    if word not in known:
        known[word] = 1 + max(_depth(operand, known) for operand in word[1:])
    return known[word]


def _and(a: Word, b: Word) -> Word:
    return a if b == _ALL else ("lop3_c0", a, b, 0)


def _or(a: Word, b: Word) -> Word:
    return ("lop3_fc", a, b, 0)


def _xor(a: Word, b: Word) -> Word:
    return ("lop3_3c", a, b, 0)


def _choose(mask: Word, a: Word, b: Word) -> Word:
    return ("lop3_ca", mask, a, b)


def _fitted(a: Word, dtype: np.dtype[Any]) -> Word:
    """A word whose high bits are those of a type."""
    width = 1 if dtype == np.bool_ else 8 * dtype.itemsize
    if width >= 32:
        return a
    return ("sar", ("shl", a, 32 - width), 32 - width) if dtype.kind == "i" else _and(a, (1 << width) - 1)


def _differs(a: Word, b: Word) -> Word:
    return ("min_u", a if b == 0 else _xor(a, b), 1)


def _is_less(a: Words, b: Words, sign: str) -> Word:
    """1 where a < b. sign: of the highest words, `u` or `s`."""
    above = ("min_u", ("sub", (f"max_{sign}", a[-1], b[-1]), a[-1]), 1)
    if len(a) == 1:
        return above
    return _or(above, _and(_xor(_differs(a[1], b[1]), 1), _is_less(a[:1], b[:1], "u")))


def _of_term(term: Term, operands: list[Words], widths: dict[Term, int]) -> Words:
    kind = term.operands[0].dtype if term.operands else term.dtype
    a, b = (*operands, (0,), (0,))[:2]
    match term.op:
        case "input":
            return (("%", term.value),)
        case "constant":
            return _constant(term)
        case "cast" if term.dtype.kind in "iu" and kind == np.float32 and widths[term.operands[0]] <= _MOST_DIGITS:
            word = ("add", ("addf", a[0], _ROUNDING), -_ROUNDING & _ALL)
            return (word, ("sar", word, 31)) if term.width == 64 else (_fitted(word, term.dtype),)
        case "cast":
            return _cast(a, kind, term.dtype)
        case "view":
            return a if len(a) == 2 else (_fitted(a[0], term.dtype),)
        case "part" if term.width == 32:
            return (a[term.value],)
        case "part":
            word, first = divmod(term.value * term.width, 32)
            return (_fitted(("shr", a[word], first), term.dtype),)
        case "join" if len(operands) == 2 and term.width == 64:
            return a[0], b[0]
        case "join" if term.width == 32:
            words = [operand[0] for operand in operands]
            pairs = words if len(words) == 2 else [("prmt", words[k], words[k + 1], 0x0040) for k in (0, 2)]
            return (("prmt", *pairs, 0x5410),)
        case "where":
            mask = ("sub", 0, a[0])
            return tuple(_choose(mask, x, y) for x, y in zip(b, operands[2], strict=True))
        case "instruction":
            return ((term.value, *(operand[0] for operand in operands)),)
        case "take":
            return (*_looked_up(term.value, a[0]), 0)[: 2 if term.width == 64 else 1]
        case "bitwise_count" if len(a) == 1:
            return (("popc", ("max_s", a[0], ("sub", 0, a[0])) if kind.kind == "i" else a[0]),)
    if kind.kind == "f":
        return (_of_floats(term.op, a[0], b[0], kind),)
    if term.op in _DIVISIONS and isinstance(b[0], int) and 0 < b[0] <= _ALL >> (kind.kind == "i") and b[1:] in ((), (0,)):
        return (*_divided(term.op, a[0], b[0], widths[term.operands[0]]), *(0,) * (len(a) - 1))[: len(a)]
    return _of_integers(term, a, b, kind)


def _constant(term: Term) -> Words:
    if term.dtype.kind == "f":
        number = np.float32(term.value)
        return (int(np.float16(number).view(np.uint16) if term.width == 16 else number.view(np.uint32)),)
    value = int(term.value)
    return (value & _ALL, value >> 32 & _ALL) if term.width == 64 else (value & _ALL,)


def _cast(a: Words, old: np.dtype[Any], new: np.dtype[Any]) -> Words:
    if old.kind == new.kind == "f":
        if old.itemsize == 2:
            return (("f32_of_f16", a[0]),)
        return (("f16x2_of_f32", 0, a[0]),) if new.itemsize == 2 else a
    if old.kind == "f":
        word: Word = ("s32_of_f32", ("f32_of_f16", a[0]) if old.itemsize == 2 else a[0])
        return (word, ("sar", word, 31)) if new.itemsize == 8 else (_fitted(word, new),)
    if new.kind == "f":
        word = ("f32_of_s32" if old.kind == "i" else "f32_of_u32", a[0])
        return (("f16x2_of_f32", 0, word),) if new.itemsize == 2 else (word,)
    if new == np.bool_:
        return (_differs(reduce(_or, a), 0),)
    if new.itemsize == 8:
        return a if len(a) == 2 else (a[0], ("sar", a[0], 31) if old.kind == "i" else 0)
    return (_fitted(a[0], new),) if len(a) == 2 or new.itemsize < old.itemsize or new.kind != old.kind else a


def _looked_up(table: Any, index: Word) -> Words:
    is_wide = table.dtype.itemsize == 8 and (table.dtype.kind == "f" or table.min() < 0 or table.max() > _ALL)
    if len(table) > _MOST_ENTRIES or is_wide:
        raise _UntranslatableError
    if table.dtype.kind == "f":
        table = table.view(f"u{table.dtype.itemsize}")
    entries = [int(entry) & _ALL for entry in table.astype(np.int64)]
    if len(entries) > 1 and entries == [k * entries[1] for k in range(len(entries))]:  # as for the first axis of several
        return (index if entries[1] == 1 else ("mul", index, entries[1]),)
    step, width = 0, max(1, max(entries).bit_length())
    while width << step + 1 <= 32 and 1 << step < len(entries):  # 2^step entries in a word
        step += 1
    words: list[Word] = [
        sum(entry << width * k for k, entry in enumerate(entries[i : i + (1 << step)])) for i in range(0, len(entries), 1 << step)
    ]
    words += [0] * ((1 << (len(words) - 1).bit_length()) - len(words))
    if len(words) > _MOST_WORDS:
        raise _UntranslatableError
    for k in range(step, step + len(words).bit_length() - 1):
        mask = ("sub", 0, _and(("shr", index, k) if k else index, 1))
        words = [x if x == y else _choose(mask, y, x) for x, y in zip(words[::2], words[1::2], strict=True)]
    if not step:
        return (words[0],)
    return (_and(("shr", words[0], ("mul", _and(index, (1 << step) - 1), width)), (1 << width) - 1),)


def _of_floats(op: str, a: Word, b: Word, kind: np.dtype[Any]) -> Word:
    """Operations of floats, f64 as f32. `rint` does nothing, since a conversion to integers rounds."""
    sign = 0x8000 if kind.itemsize == 2 else _SIGN
    least_inf = 0x7C00 if kind.itemsize == 2 else 0x7F800000
    size = _and(a, sign - 1)
    names = _HALVES if kind.itemsize == 2 else _FLOATS
    if op in names:
        return (names[op], a, b)
    match op:
        case "rint":
            return a
        case "negative":
            return _xor(a, sign)
        case "absolute":
            return size
        case "copysign":
            return _or(size, _and(b, sign))
        case "signbit":
            return _differs(_and(a, sign), 0)
        case "isnan":
            return _is_less((least_inf,), (size,), "u")
        case "isinf":
            return _xor(_differs(size, least_inf), 1)
        case "isfinite":
            return _is_less((size,), (least_inf,), "u")
        case "less" | "greater" | "less_equal" | "greater_equal":
            first, second = (a, b) if op in ("less", "greater_equal") else (b, a)
            is_less = _differs((names["maximum"], first, second), first)
            return is_less if op in ("less", "greater") else _xor(is_less, 1)
        case "equal" | "not_equal":
            return _differs(a, b) if op == "not_equal" else _xor(_differs(a, b), 1)
    raise _UntranslatableError


def _of_integers(term: Term, a: Words, b: Words, kind: np.dtype[Any]) -> Words:
    sign, fitted = "s" if kind.kind == "i" else "u", partial(_fitted, dtype=term.dtype)
    match term.op:
        case "logical_and" | "logical_or" | "logical_xor" | "logical_not" if kind != np.bool_:
            truth = np.dtype(np.bool_)
            return _of_integers(term, _cast(a, kind, truth), _cast(b, kind, truth), truth)
        case "bitwise_and" | "logical_and":
            return tuple(map(_and, a, b))
        case "bitwise_or" | "logical_or":
            return tuple(map(_or, a, b))
        case "bitwise_xor" | "logical_xor":
            return tuple(map(_xor, a, b))
        case "invert" | "logical_not":
            return (_xor(a[0], 1),) if term.dtype == np.bool_ else tuple(fitted(("lop3_0f", word, 0, 0)) for word in a)
        case "equal" | "not_equal":
            differs = _differs(reduce(_or, map(_xor, a, b)), 0)
            return (differs if term.op == "not_equal" else _xor(differs, 1),)
        case "less" | "greater_equal" | "greater" | "less_equal":
            is_less = _is_less(*((a, b) if term.op in ("less", "greater_equal") else (b, a)), sign)
            return (is_less if term.op in ("less", "greater") else _xor(is_less, 1),)
        case "minimum" | "maximum" if len(a) == 1:
            return ((f"{term.op[:3]}_{sign}", a[0], b[0]),)
        case "minimum" | "maximum":
            mask = ("sub", 0, _is_less(*((a, b) if term.op == "minimum" else (b, a)), sign))
            return tuple(_choose(mask, x, y) for x, y in zip(a, b, strict=True))
        case "left_shift" | "right_shift" if len(a) == 1:
            return (fitted(("shl" if term.op == "left_shift" else "sar" if sign == "s" else "shr", a[0], b[0])),)
        case "left_shift" | "right_shift" if isinstance(b[0], int) and b[0] < 64:
            return _shifted(a, b[0], term.op == "left_shift", "sar" if sign == "s" else "shr")
        case "negative":
            return _arithmetic("subtract", (0,) * len(a), a, fitted)
        case "absolute" if len(a) == 1:
            return (("max_s", a[0], ("sub", 0, a[0])),) if sign == "s" else a
        case "absolute":
            negative = ("sar", a[1], 31) if sign == "s" else 0
            return _arithmetic("subtract", tuple(_xor(word, negative) for word in a), (negative, negative), fitted)
        case "add" | "subtract" | "multiply" if kind != np.bool_:
            return _arithmetic(term.op, a, b, fitted)
    raise _UntranslatableError(term.op)


def _arithmetic(op: str, a: Words, b: Words, fitted: Any) -> Words:
    name = {"add": "add", "subtract": "sub", "multiply": "mul"}[op]
    low: Word = (name, a[0], b[0])
    if len(a) == 1:
        return (fitted(low),)
    if op == "multiply":
        return low, _product_above(a, b)
    return low, (name, (name, a[1], b[1]), _is_less(*(((low,), a[:1]) if op == "add" else (a[:1], b[:1])), "u"))


def _product_above(a: Words, b: Words) -> Word:
    high: Word = ("mulhi", a[0], b[0])
    for x, y in ((a[0], b[1]), (a[1], b[0])):
        high = high if 0 in (x, y) else ("mad", x, y, high)
    return high


def _shifted(a: Words, count: int, is_left: bool, right: str) -> Words:
    low, high = a
    if is_left:
        return (0, ("shl", low, count - 32)) if count >= 32 else (("shl", low, count), ("shf_l", low, high, count))
    if count >= 32:
        return (right, high, count - 32), ("sar", high, 31) if right == "sar" else 0
    return ("shf_r", low, high, count), (right, high, count)


def _divided(op: str, a: Word, divisor: int, width: int) -> Words:
    """A quotient or remainder, rounded down, of a number of 32 bits; width: as of `_widths`."""
    if not -32 <= width <= 32:
        raise _UntranslatableError(op)
    if op == "remainder" and divisor & divisor - 1 == 0:
        return (_and(a, divisor - 1),)
    sign: Word = ("sar", a, 31) if width < 0 else 0
    quotient = _quotient(_xor(a, sign), divisor, -width - 1) if width < 0 else _quotient(a, divisor, width)
    quotient = _xor(quotient, sign) if width < 0 else quotient
    if op == "remainder":
        return (("mad", quotient, -divisor & _ALL, a),)
    return quotient, ("sar", quotient, 31) if width < 0 else 0


def _quotient(a: Word, divisor: int, width: int) -> Word:
    """Quotient by a constant of a number of some bits, rounded down (Granlund & Montgomery 1994)."""
    bits = (divisor - 1).bit_length()
    if divisor == 1 << bits:
        return ("shr", a, bits) if bits else a
    for shift in range(bits + 1):
        factor = -(-(1 << 32 + shift) // divisor)
        if factor <= _ALL and (factor * divisor - (1 << 32 + shift)) << width <= 1 << 32 + shift:
            return ("shr", ("mulhi", a, factor), shift) if shift else ("mulhi", a, factor)
    high = ("mulhi", a, -(-(1 << 32 + bits) // divisor) & _ALL)
    return ("shr", ("add", ("shr", ("sub", a, high), 1), high), bits - 1)
