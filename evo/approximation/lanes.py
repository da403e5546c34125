"""Operations on each byte or half of a word, by instructions of whole words (SIMD within a register).

Owns how four or two terms, made alike, become one word. A lane is the low bits of its term. Results are compared with the
function later. Knows nothing of single terms but the bits that may be ones.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from evo.approximation.dependence import Bits
from evo.approximation.graph import Term

Word = Any  # a node or a constant
_JOINS = ("bitwise_or", "bitwise_xor", "add")
_LOGIC = {"bitwise_and": "c0", "bitwise_or": "fc", "bitwise_xor": "3c", "invert": "0f"}
_HALVES = {"add": "add2_f16", "subtract": "sub2_f16", "multiply": "mul2_f16", "minimum": "min2_f16", "maximum": "max2_f16"}


class Lanes:
    """Words of terms that are made alike.

    Args:
        bits: of each term, as of `evo.approximation.dependence`.
        word: the node of a single term of 32 bits.
    """

    def __init__(self, bits: Mapping[Term, Bits], word: Callable[[Term], Word]):
        self._bits, self._single = bits, word
        self._known: dict[tuple[Term, ...], Word | None] = {}

    def joined(self, term: Term) -> Word | None:
        """The word of a term that joins bytes or halves, maybe by shifts; None: it is another term."""
        if term.width != 32 or term.op not in ("join", *_JOINS) or term.dtype.kind == "f":
            return None
        terms, first = (term.operands, 0) if term.op == "join" else self._shifted(term)
        word = self.word(terms)
        return ("shl", word, first) if first and word is not None else word

    def _shifted(self, term: Term) -> tuple[tuple[Term, ...], int]:
        """Terms that another one joins by shifts, and the least shift; none: it does not."""
        by_shift: dict[int, Term] = {}
        waiting = [term]
        while waiting:
            part = waiting.pop()
            if part.op in _JOINS:
                waiting += part.operands
                continue
            if part.op == "constant" and not part.bits():
                continue
            is_moved = part.op == "left_shift" and part.operands[1].op == "constant"
            shift, inner = (part.operands[1].bits(), part.operands[0]) if is_moved else (0, part)
            if shift in by_shift:
                return (), 0
            by_shift[shift] = inner
        first, width = min(by_shift, default=0), 32 // max(len(by_shift), 1)
        shifts = [*range(first, 32, width)]
        is_full = sorted(by_shift) == shifts and max(map(self._most, by_shift.values())) << first >> width == 0
        return (tuple(by_shift[k] for k in shifts) if is_full else ()), first

    def _most(self, term: Term) -> int:
        """The largest value of a term as bits."""
        if term.op == "constant":
            return term.bits()
        return sum(1 << k for k, bit in enumerate(self._bits[term]) if bit)

    def word(self, terms: tuple[Term, ...]) -> Word | None:
        """A word of terms; None: it is not known."""
        if terms not in self._known:
            self._known[terms] = self._of(terms)
        return self._known[terms]

    def _of(self, terms: tuple[Term, ...]) -> Word | None:
        if not terms or 32 // len(terms) not in (8, 16):
            return None
        term, width = terms[0], 32 // len(terms)
        full, top, repeated = (1 << width) - 1, _repeated(width, 1 << width - 1), partial(_repeated, width)
        if all(lane.op == "constant" for lane in terms):
            return sum((lane.bits() & full) << width * k for k, lane in enumerate(terms))
        if len({(lane.op, lane.dtype, len(lane.operands)) for lane in terms}) > 1 or term.dtype.kind == "b":
            return None
        operands = [tuple(lane.operands[k] for lane in terms) for k in range(len(term.operands))]
        if term.op == "part" and term.width == width:
            return self._permuted(terms, width)
        if term.dtype.kind == "f" or "f" in {lane.dtype.kind for lane in term.operands}:
            return self._of_floats(term, operands) if width == 16 else None
        counts = [lane.bits() if lane.op == "constant" else -1 for lane in operands[1]] if len(operands) == 2 else [-1]
        count = counts[0] if len({*counts}) == 1 else -1
        match term.op:
            case "view":
                return self.word(operands[0])
            case "cast" if min(term.width, term.operands[0].width) >= width:
                return self.word(operands[0])
            case "right_shift" if counts == [*range(counts[0], 32, width)] and len({*operands[0]}) == 1 and count < 0:
                word = self._single(operands[0][0]) if term.operands[0].width == 32 else None
                return ("sar" if term.dtype.kind == "i" else "shr", word, counts[0]) if word is not None and counts[0] else word
            case "bitwise_and" if (spread := self._spread(operands, width)) is not None:
                return spread
        words = [self.word(lanes) for lanes in operands]
        if term.width < width or not words or None in words:
            return None
        a, b = (*words, 0)[:2]
        most = [max(map(self._most, lanes)) for lanes in operands]
        if isinstance(a, int) and term.op in ("bitwise_and", "add", "multiply"):
            a, b, most = b, a, most[::-1]
        match term.op:
            case "left_shift" | "right_shift" if count == 0:
                return a
            case "bitwise_and" if isinstance(b, int):
                return _and(a, b)
            case op if op in _LOGIC:
                return (f"lop3_{_LOGIC[op]}", a, b, 0)
            case "left_shift" if 0 < count < width:
                moved = ("shl", a, count)
                return moved if most[0] << count <= full else _and(moved, repeated(full << count & full))
            case "right_shift" if 0 < count < width:
                return self._shifted_right(operands[0], a, count, width)
            case "add" if most[0] + most[1] <= full:
                return ("add", a, b)
            case "add":
                low = [x if y <= full >> 1 else _and(x, ~top) for x, y in zip((a, b), most, strict=True)]
                return ("lop3_3c", ("add", *low), ("lop3_60", top, a, b), 0)  # a & (b ^ c)
            case "subtract":
                return _difference(a, b, most, width)
            case "negative":
                return ("mul", a, full) if most[0] <= 1 else _difference(0, a, [0, *most], width)
            case "multiply" if isinstance(b, int) and repeated(b & full) == b and most[0] * (b & full) <= full:
                return ("mul", a, b & full)
            case "minimum" | "maximum":
                is_more = self._is_more(operands, a, b, width)
                return None if is_more is None else ("lop3_ca", is_more, *((b, a) if term.op == "minimum" else (a, b)))
        return None

    def _of_floats(self, term: Term, operands: Sequence[tuple[Term, ...]]) -> Word | None:
        """Halves of f16: of operations, and of small integers, which are the digits of 1024."""
        if term.op == "cast" and term.operands[0].dtype.kind in "iu" and term.width == 16:
            is_small = all(self._most(lane) < 1024 for lane in operands[0])
            word = self.word(operands[0]) if is_small else None
            match word:
                case ("lop3_c0", ("shr", whole, int(count)), int(mask)) | ("lop3_c0", ("shr", whole, int(count)), int(mask), 0):
                    moved = count % 8  # which a product undoes
                    if mask == _repeated(16, mask & 0xFFFF) and moved and (mask & 0xFFFF) << moved < 1024:
                        base = ("shr", whole, count - moved) if count > moved else whole
                        number = ("lop3_ea", base, mask << moved & 0xFFFFFFFF, 0x64006400)  # a & b | c
                        scale = np.array([0.5**moved, -1024 * 0.5**moved], np.float16).view(np.uint16)
                        return ("fma2_f16", number, *(_repeated(16, int(value)) for value in scale))
            return None if word is None else ("add2_f16", ("lop3_fc", word, 0x64006400, 0), 0xE400E400)
        words = [self.word(lanes) for lanes in operands]
        if None in words or term.width != 16:
            return None
        return words[0] if term.op == "view" else (_HALVES[term.op], *words) if term.op in _HALVES else None

    def _permuted(self, terms: Sequence[Term], width: int) -> Word | None:
        wholes = [*dict.fromkeys(term.operands[0] for term in terms)]
        if len(wholes) > 2 or any(whole.width != 32 for whole in wholes):
            return None
        size = width // 8
        codes = [4 * wholes.index(term.operands[0]) + size * term.value + k for term in terms for k in range(size)]
        first, second = (*map(self._single, wholes), 0)[:2]
        return first if codes == [0, 1, 2, 3] else ("prmt", first, second, sum(code << 4 * k for k, code in enumerate(codes)))

    def _spread(self, operands: Sequence[tuple[Term, ...]], width: int) -> Word | None:
        """Fields of a word, as far from each other as from their lanes, under the same mask."""
        shifted, masks = operands if operands[1][0].op == "constant" else operands[::-1]
        if masks[0].op != "constant" or len({lane.bits() for lane in masks}) > 1:
            return None
        mask = masks[0].bits()
        if not mask or mask >> width:
            return None
        sources = [
            (lane.operands[0], lane.operands[1].bits())
            if lane.op == "right_shift" and lane.operands[1].op == "constant"
            else (lane, 0)
            for lane in shifted
        ]
        whole, first = sources[0]
        step = sources[1][1] - first
        if whole.width != 32 or not 0 < step < width or sources != [(whole, first + k * step) for k in range(len(sources))]:
            return None
        size, gap = mask.bit_length(), width - step
        length = step * (len(sources) - 1) + size
        field = self._single(whole)
        field = _and(("shr", field, first) if first else field, (1 << length) - 1)
        if length <= gap:
            factor = sum(1 << gap * k for k in range(len(sources)))
            return _and(("mul", field, factor), _repeated(width, mask))
        if size > min(step, gap) or step + size > 2 * gap:
            return None
        if len(sources) == 4:  # the upper two first
            field = _and(("lop3_fc", field, ("shl", field, 2 * gap), 0), _repeated(2 * width, (1 << step + size) - 1))
        return _and(("lop3_fc", field, ("shl", field, gap), 0), _repeated(width, mask))

    def _is_signed(self, width: int, *operands: Sequence[Term]) -> bool | None:
        """Tell if all values are those of lanes with a sign (True), or without one (False); None: neither."""
        kinds: set[bool | None] = set()
        for terms in operands:
            most, whole = max(map(self._most, terms)), terms[0]
            if not most >> width - 1:  # in both ways
                continue
            while whole.width > width and whole.op == "cast" and whole.dtype.kind == whole.operands[0].dtype.kind == "i":
                whole = whole.operands[0]
            is_lane = whole.dtype.kind == "i" and whole.width == width
            is_below = whole.dtype.kind == "i" and whole.width < width
            kinds.add(True if is_lane else None if most >> width or is_below else False)
        return kinds.pop() if len(kinds) == 1 else None if kinds else False

    def _shifted_right(self, terms: Sequence[Term], a: Word, count: int, width: int) -> Word | None:
        is_signed, full = self._is_signed(width, terms), (1 << width) - 1
        kept = _repeated(width, full >> count)
        if is_signed is None:
            return self._average(terms, width) if count == 1 else None
        moved = ("shr", a, count)
        return ("lop3_ca", kept, moved, _signs(a, width)) if is_signed else _and(moved, kept)

    def _average(self, sums: Sequence[Term], width: int) -> Word | None:
        """Half of a sum, rounded down; or up, of a sum and 1."""
        if sums[0].op != "add":
            return None
        pairs = [lane.operands for lane in sums]
        is_up = all(b.op == "constant" and b.bits() == 1 and a.op == "add" for a, b in pairs)
        pairs = [a.operands for a, _ in pairs] if is_up else pairs
        operands = [tuple(pair[k] for pair in pairs) for k in (0, 1)]
        a, b = map(self.word, operands)
        is_signed = self._is_signed(width, *operands)
        if a is None or b is None or is_signed is None:
            return None
        half = ("shr", ("lop3_60", _repeated(width, (1 << width) - 2), a, b), 1)
        bias = _repeated(width, 1 << width - 1) if is_signed else 0  # under which the order is that without a sign
        if is_up:  # (a ^ c | b ^ c) less half of the difference
            middle: Word = ("sub", ("lop3_7e", a, b, bias) if bias else ("lop3_fc", a, b, 0), half)
        else:
            middle = ("add", ("lop3_42", a, b, bias) if bias else ("lop3_c0", a, b, 0), half)
        return ("lop3_3c", middle, bias, 0) if bias else middle

    def _is_more(self, operands: Sequence[tuple[Term, ...]], a: Word, b: Word, width: int) -> Word | None:
        """Lanes of ones where a > b: the highest bit of the average of a and ~b."""
        is_signed = self._is_signed(width, *operands)
        if is_signed is None:
            return None
        bias = _repeated(width, 1 << width - 1) if is_signed else 0
        half = ("shr", ("lop3_90", _repeated(width, (1 << width) - 2), a, b), 1)  # a & ~(b ^ c)
        return _signs(("add", half, ("lop3_18", a, b, bias) if bias else ("lop3_30", a, b, 0)), width)


def _repeated(width: int, value: int) -> int:
    """A word of the same lanes."""
    return sum(value << k for k in range(0, 32, width))


def _and(a: Word, mask: int) -> Word:
    mask &= 0xFFFFFFFF
    if isinstance(a, int) or mask == 0xFFFFFFFF:
        return a & mask if isinstance(a, int) else a
    return _and(a[1], a[2] & mask) if a[0] == "lop3_c0" and isinstance(a[2], int) else ("lop3_c0", a, mask, 0)


def _signs(a: Word, width: int) -> Word:
    """The highest bits of lanes as whole lanes."""
    return ("prmt", a, 0, 0xBA98 if width == 8 else 0xBB99)


def _difference(a: Word, b: Word, most: Sequence[int], width: int) -> Word:
    """Lanes of a less those of b, without borrowing from other lanes."""
    top, high = 1 << width - 1, _repeated(width, 1 << width - 1)
    if isinstance(b, int):
        lanes = [b >> k & (1 << width) - 1 for k in range(0, 32, width)]
        if max(lanes) <= top and most[0] + top - min(lanes) < 2 * top:
            return ("lop3_3c", ("add", a, high - b), high, 0)
    low = ("sub", ("lop3_fc", a, high, 0), b if most[1] < top else _and(b, ~high))
    return ("lop3_3c", low, high if max(most) < top else ("lop3_90", high, a, b), 0)  # a & ~(b ^ c)
