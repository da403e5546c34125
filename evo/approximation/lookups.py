"""Words of bytes that are looked up in tables of up to 16 entries, by permutations of bytes.

A prmt whose third operand is a word of nibbles looks up a byte for each of four among the eight of its first two operands, and
three of them look up among sixteen. A sign that is a bit of a code is joined to a table of sizes. Owns which nibbles and tables
there are. Knows nothing of searches.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from evo.approximation.solvers import Goal, Words

_NIBBLES = 0x1111


class _Table(NamedTuple):
    """Bits of 16 bytes, and those of them that matter."""

    ones: tuple[int, ...]
    care: tuple[int, ...]

    def joined(self, table: "_Table") -> "_Table | None":
        """Both in one; None: they differ."""
        if any((a ^ b) & x & y for a, b, x, y in zip(self.ones, table.ones, self.care, table.care, strict=True)):
            return None
        ones = tuple(a | b for a, b in zip(self.ones, table.ones, strict=True))
        return _Table(ones, tuple(x | y for x, y in zip(self.care, table.care, strict=True)))

    def without(self, bit: int) -> "_Table | None":
        """One that gives the same whatever a bit of the index is; None: there is none."""
        return self.joined(_Table(*(tuple(column[v ^ bit] for v in range(16)) for column in self)))


_SIGNS = _Table((0,) * 8 + (0x80,) * 8, (0x80,) * 16)


def looked_up(known: Any, goals: Sequence[Goal]) -> Iterator[Any]:
    """Words of four bytes, some of which goals have, that are each a function of a nibble."""
    tables_by_code: dict[Any, list[_Table]] = {}
    for code in _codes(known):
        tables = tables_by_code.setdefault(code, [])
        words = known.values(code)
        for goal in goals:
            for k in range(0, 32, 8):
                values, care = (column >> np.uint32(k) & np.uint32(255) for column in goal)
                for shift in range(0, 16, 4):
                    table = _table(words >> np.uint32(shift) & np.uint32(15), values, care)
                    if table:
                        _join(tables, table)
        if tables and code[0] == "lop3_a8" and code[-1] == _NIBBLES:  # truths, as bytes too
            yield ("lop3_c0", ("mul", code[1][1], 0x00204081), 0x01010101, 0)
    for code, tables in tables_by_code.items():
        x = code[1] if code[0] == "shr" else code
        is_shared = bool(tables_by_code.get(x) and tables_by_code.get(("shr", x, 16))) and code in (x, ("shr", x, 16))
        yield from (_words_of(code, known.values(code), table, is_shared) for table in tables)


def _join(tables: list[_Table], table: _Table) -> None:
    for i, candidate in enumerate(tables):
        if joined := candidate.joined(table):
            tables[i] = joined
            return
    tables.append(table)


def _table(nibbles: Words, values: Words, care: Words) -> _Table | None:
    """The bytes by nibbles; None: nibbles do not decide them, or all are equal."""
    ones, zeros = np.zeros(16, np.uint32), np.zeros(16, np.uint32)
    np.bitwise_or.at(ones, nibbles, values & care)
    np.bitwise_or.at(zeros, nibbles, ~values & care)
    if (ones & zeros).any() or not np.bitwise_or.reduce(ones) & np.bitwise_or.reduce(zeros):
        return None
    return _Table(tuple(ones.tolist()), tuple((ones | zeros).tolist()))


def _codes(known: Any) -> Iterator[Any]:
    """Words whose lower half has four fields of the inputs as nibbles."""
    for k in range(known.num_inputs):
        x, width = ("%", k), known.function.widths[k]
        for bits in (4, 3, 2, 1):
            for first in range(0, width, 4 * bits):
                code: Any = ("shr", x, first) if first else x
                if bits == 3:  # bits above a field do not matter
                    for step, lower in ((2, 0x003F), (1, 0x0707)):
                        code = ("lop3_ca", lower, code, ("shl", code, step))  # a ? b : c
                elif bits < 4:
                    if bits == 2 and first:
                        code = ("prmt", x, 0, 0x4440 | first // 8)
                    elif first + 4 * bits < width:
                        code = ("lop3_c0", code, (1 << 4 * bits) - 1, 0)
                    code = ("lop3_a8", code, ("shl", code, 8 - 2 * bits), ((1 << 2 * bits) - 1) * 0x101)  # (a | b) & c
                    code = ("lop3_a8", code, ("shl", code, 4 - bits), ((1 << bits) - 1) * _NIBBLES)
                yield code


def _words_of(code: Any, words: Words, table: _Table, is_shared: bool) -> Any:
    """The lookup of a word's four lower nibbles in a table. is_shared: the upper half of the word before a shift by 16, too."""
    sizes, signs = (_Table(*(tuple(each & mask for each in column) for column in table)) for mask in (0x7F, 0x80))
    if sizes.without(8) and signs.joined(_SIGNS) and not table.without(8) and not is_shared:
        moved = ("prmt", code, ("shl", code, 4), 0x1504)  # the highest bit of each nibble to that of its byte
        return ("lop3_d8", _words_of(code, words, sizes, is_shared), moved, 0x80808080)  # c ? b : a
    used = 15
    for bit in (8, 4):  # which the table may ignore
        if joined := table.without(bit):
            table, used = joined, used & ~bit
    ones = table.ones
    a, b, c, d = (sum(ones[k + i] << 8 * i for i in range(4)) for k in (0, 4, 8, 12))
    whole = code[1] if is_shared and code[0] == "shr" else code
    twice = 0x10001 if is_shared else 1

    def half(node: Any) -> Any:
        return node if whole is code else ("shr", node, 16)

    mask = (used & 7) * _NIBBLES
    is_clean = not (words & np.uint32(0xFFFF & ~mask)).any()
    lowest = code if is_clean else half(("lop3_c0", whole, mask * twice, 0))
    first = ("prmt", a, b, lowest)
    if not used & 8:
        return first
    choice = half(("lop3_ea", ("shr", whole, 1), 0x4444 * twice, 0x3210 * twice))  # a & b | c
    return ("prmt", first, ("prmt", c, d, lowest), choice)
