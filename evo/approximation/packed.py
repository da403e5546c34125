"""Arithmetic of fields: sums, differences, overflows and comparisons of the bytes or halves of a word, or of the word.

The sum of all but the highest bits of fields stays within each field, and the highest bits join by xor. A table of three words
gives the carry, and a permutation or a shift spreads it over its field. Owns these nodes. Knows nothing of goals.
"""

from collections.abc import Iterator
from itertools import permutations
from typing import Any

ALL = 0xFFFFFFFF
_FIELDS = ((0x80808080, 0xBA98), (0x80008000, 0xBB99), (0x80000000, None))  # highest bits, selector of their signs


def field_nodes(inputs: list[Any]) -> Iterator[Any]:
    """Nodes of one word and of two."""
    for high, signs in _FIELDS:
        low = ~high & ALL

        def masked(word: Any, signs: Any = signs) -> Any:
            return ("sar", word, 31) if signs is None else ("prmt", word, 0, signs)

        for x in inputs:
            yield masked(x)
            yield ("lop3_3c", masked(x), low, 0)  # the limit on the side of the sign
            yield ("lop3_c6", x, ("sub", high, ("lop3_c0", x, low, 0)), high)  # 0 - x
            yield from _zeros(x, low, masked)
        total: Any
        less: Any
        for x, y in permutations(inputs, 2):
            if signs is None:
                total, less = ("add", x, y), ("sub", x, y)
                carry, borrow, below = ("lop3_d4", x, y, total), ("lop3_8e", x, y, less), ("lop3_b2", x, y, less)
            else:
                part = ("add", ("lop3_c0", x, low, 0), ("lop3_c0", y, low, 0))
                rest = ("sub", ("lop3_fc", x, high, 0), ("lop3_c0", y, low, 0))
                total = ("lop3_3c", part, ("lop3_28", x, y, high), 0)
                less = ("lop3_3c", rest, ("lop3_82", x, y, high), 0)
                carry, borrow, below = ("lop3_e8", x, y, part), ("lop3_4d", x, y, rest), ("lop3_71", x, y, rest)
                yield masked(rest)  # a comparison of all but the highest bits
            yield from (less, borrow, below, masked(borrow), masked(below), masked(("lop3_18", x, y, less)))
            if x < y:
                yield from (total, carry, masked(carry), masked(("lop3_42", x, y, total)))
                yield from _zeros(("lop3_3c", x, y, 0), low, masked)


def _zeros(word: Any, low: int, masked: Any) -> Iterator[Any]:
    """Fields that are zero, and those that are not: in their highest bits, and as masks."""
    for table in ("lop3_03", "lop3_fc"):
        tested = (table, ("add", ("lop3_c0", word, low, 0), low), word, 0)
        yield from (tested, masked(tested))
