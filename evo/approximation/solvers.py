"""Solutions of one instruction: constants and operands with which it gives certain words.

A goal is `values`, `(num_points,)` words, of which the bits in `care`, of the same shape, matter. Candidates for operands are
rows of a matrix. Bits of a logical function are independent, so its constants follow from the rows; those of arithmetic follow
from differences and bounds. Owns this arithmetic. Knows nothing of searches.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]
ALL = np.uint32(0xFFFFFFFF)
_FEW = 12  # points that filter pairs first
_CELLS = ((0, 0), (0, 1), (1, 0), (1, 1))
_POWERS = np.uint32(1) << np.arange(1, 32, dtype=np.uint32)
FACTORS = np.unique([_POWERS, _POWERS - 1, ~_POWERS + 1, ~_POWERS + 2])[1:]  # +-2^k and +-(2^k - 1), without 1


class Goal(NamedTuple):
    """Words that a program is to give, and the bits of each that matter."""

    values: Words
    care: Words


class Solution(NamedTuple):
    """An instruction with operands: ("row", index), or constants as integers."""

    name: str
    operands: tuple[Any, ...]


def row(index: Any) -> tuple[str, int]:
    """The operand that is a row."""
    return ("row", int(index))


def nodes_of(solution: Solution, of_row: Callable[[int], Sequence[Any]]) -> Iterator[Any]:
    """A solution, by each node of each row among its operands. Other operands are nodes and constants."""
    operands = [
        [*nodes_of(operand, of_row)]
        if isinstance(operand, Solution)
        else of_row(operand[1])
        if isinstance(operand, tuple) and operand[0] == "row"
        else [operand]
        for operand in solution.operands
    ]
    yield from ((solution.name, *chosen) for chosen in product(*operands))


def copies(rows: Words, goal: Goal) -> list[int]:
    """Rows that are the goal."""
    return np.flatnonzero((((rows ^ goal.values) & goal.care) == 0).all(axis=1)).tolist()


def logic_of_one(rows: Words, goal: Goal) -> Iterator[Solution]:
    """Each bit is constant, or the row's, or its opposite: one constant where the row has ones, another where it has zeros."""
    ones, zeros = goal.values & goal.care, ~goal.values & goal.care
    on, off = np.bitwise_or.reduce(ones & rows, axis=1), np.bitwise_or.reduce(ones & ~rows, axis=1)
    not_on, not_off = np.bitwise_or.reduce(zeros & rows, axis=1), np.bitwise_or.reduce(zeros & ~rows, axis=1)
    for i in np.flatnonzero(((on & not_on) | (off & not_off)) == 0):
        # A bit that was seen with one value of the row alone is constant.
        never_on, never_off = ~(on[i] | not_on[i]), ~(off[i] | not_off[i])
        yield Solution("lop3_ca", (row(i), int(on[i] | (off[i] & never_on)), int(off[i] | (on[i] & never_off))))


def merged(rows: Words, goal: Goal) -> Iterator[Solution]:
    """Solve by merging: each bit is that of one of two rows; or constant, and the rows' others are masked: two instructions."""
    wrong = np.bitwise_or.reduce((rows ^ goal.values) & goal.care, axis=1)
    ones = np.bitwise_or.reduce(goal.values & goal.care)
    zeros = np.bitwise_or.reduce(~goal.values & goal.care)
    varied = ones & zeros
    rest = wrong & varied  # bits that must come from the other row
    useful = np.flatnonzero(rest != varied)
    for n, i in enumerate(useful):
        for j in useful[n + 1 :][(rest[i] & rest[useful[n + 1 :]]) == 0]:
            if not wrong[i] & wrong[j]:
                for taken in (~wrong[i], wrong[j]):  # each is right at the sample
                    yield Solution("lop3_e4", (row(i), row(j), int(taken)))  # c ? a : b
                continue
            always = int(ones & ~varied)
            first = Solution("lop3_ca", (row(i), int(varied & ~rest[i]) | always, always))
            yield Solution("lop3_f8", (first, row(j), int(rest[i])))  # a | b & c


def covered(rows: Words, goal: Goal, *, most: int = 8) -> Iterator[Solution]:
    """Solve by merging, as `merged`, as many rows as it takes: next is the one that gives the most bits that are missing."""
    right = ~np.bitwise_or.reduce((rows ^ goal.values) & goal.care, axis=1)
    ones, zeros = np.bitwise_or.reduce(goal.values & goal.care), np.bitwise_or.reduce(~goal.values & goal.care)
    missing, always = ones & zeros, int(ones & ~zeros)
    solution: Solution | None = None
    for _ in range(most):
        i = int(np.bitwise_count(right & missing).argmax())
        taken = int(right[i] & missing)
        if solution is None:
            solution = Solution("lop3_ca", (row(i), taken | always, always))
        else:
            solution = Solution("lop3_f8", (solution, row(i), taken))  # a | b & c
        missing &= ~right[i]
        if not taken or not missing:
            break
    if solution is not None and not missing:
        yield solution


def logic_of_three(rows: Words, goal: Goal) -> Iterator[Solution]:
    """Solve by three rows, with the same table for all bits, which ignores none of them."""
    if (goal.care != goal.care[0]).any():
        return
    seconds, thirds = np.triu_indices(len(rows), 1)
    for i in range(len(rows) - 2):
        j, k = seconds[seconds > i], thirds[seconds > i]
        for part in (slice(0, _FEW), slice(None)):
            first, second, third = rows[i, part], rows[j, part], rows[k, part]
            ones, zeros = goal.values[part] & goal.care[part], ~goal.values[part] & goal.care[part]
            tables, is_good = np.zeros(len(j), np.int64), np.ones(len(j), np.bool_)
            for cell, (a, b) in enumerate(_CELLS):
                pair = (first if a else ~first) & (second if b else ~second)
                for c, here in enumerate((pair & ~third, pair & third)):
                    is_one = np.bitwise_or.reduce(here & ones, axis=1) != 0
                    is_good &= ~is_one | (np.bitwise_or.reduce(here & zeros, axis=1) == 0)
                    tables |= is_one.astype(np.int64) << (2 * cell + c)
            j, k, tables = j[is_good], k[is_good], tables[is_good]
        is_of_three = [(tables & mask) != (tables >> step & mask) for mask, step in ((0x0F, 4), (0x33, 2), (0x55, 1))]
        for second, third, table in np.stack([j, k, tables], axis=1)[np.all(is_of_three, axis=0)].tolist():
            yield Solution(f"lop3_{table:02x}", (row(i), row(second), row(third)))


def logic_of_two(rows: Words, goal: Goal) -> Iterator[Solution]:
    """Solve by two rows: each bit is one of two functions of both rows' bits, as a constant chooses."""
    ones, zeros = goal.values & goal.care, ~goal.values & goal.care
    for i, row_words in enumerate(rows[:-1]):
        kept = np.arange(i + 1, len(rows))
        for part in (slice(0, _FEW), slice(None)):
            partners, mine = rows[kept, part], row_words[part]
            seen = np.empty((4, 2, len(kept)), np.uint32)
            for cell, (a, b) in enumerate(_CELLS):
                here = (mine if a else ~mine) & (partners if b else ~partners)
                seen[cell, 1] = np.bitwise_or.reduce(here & ones[part], axis=1)
                seen[cell, 0] = np.bitwise_or.reduce(here & zeros[part], axis=1)
            is_good = np.bitwise_or.reduce(seen[:, 0] & seen[:, 1], axis=0) == 0
            kept, seen = kept[is_good], seen[:, :, is_good]
        for k, j in enumerate(kept):
            if solution := _two_functions(seen[:, :, k]):
                table, constant = solution
                yield Solution(f"lop3_{table:02x}", (row(i), row(j), constant))


def _two_functions(seen: Words) -> tuple[int, int] | None:
    """A table and a constant, by the values of each bit in each cell."""
    fits = [
        int(np.bitwise_and.reduce([~seen[cell, 1 - (function >> cell & 1)] for cell in range(4)])) & 0xFFFFFFFF
        for function in range(16)
    ]
    often = sorted(range(16), key=lambda function: -fits[function].bit_count())
    for first in often:  # for bits that the sample does not determine
        for second in [first, *often]:
            if fits[first] | fits[second] == 0xFFFFFFFF:
                table = sum(((second if k & 1 else first) >> (k >> 1) & 1) << k for k in range(8))
                return table, fits[second] & ~fits[first] & 0xFFFFFFFF
    return None


def bytes_of_two(rows: Words, goal: Goal, *, most: int = 64) -> Iterator[Solution]:
    """Solve by bytes: each is one of the rows', or its sign, or a constant's."""
    num_rows = len(rows)
    shifts = np.arange(0, 32, 8, dtype=np.uint32)
    row_bytes = rows[:, None, :] >> shifts[:, None] & np.uint32(255)  # (rows, 4, points)
    row_bytes = np.concatenate([row_bytes, (row_bytes >> np.uint32(7)) * np.uint32(255)], axis=1)
    match = np.zeros((num_rows, 4), np.int64) - 1  # the selector of a byte of the goal
    constant: list[int | None] = []
    for k in range(4):
        value, care = goal.values >> shifts[k] & np.uint32(255), goal.care >> shifts[k] & np.uint32(255)
        hits = (((row_bytes ^ value) & care) == 0).all(axis=2)
        first = hits.argmax(axis=1)
        match[:, k] = np.where(hits.any(axis=1), first + 4 * (first >= 4), -1)
        known, varied = np.bitwise_or.reduce(value & care), np.bitwise_or.reduce(~value & care)
        constant.append(None if known & varied else int(known))
    has = match >= 0
    is_constant = np.array([byte is not None for byte in constant])
    literal = sum((byte or 0) << 8 * k for k, byte in enumerate(constant))
    for i in np.flatnonzero((has | is_constant).all(axis=1))[:most]:
        selector = sum(int(4 + k if is_constant[k] else match[i, k]) << 4 * k for k in range(4))
        yield Solution("prmt", (row(i), literal, selector))
    useful = np.flatnonzero((has & ~is_constant).any(axis=1))
    has_bytes = has[useful] @ (1, 2, 4, 8)
    for i, j in useful[np.argwhere(np.triu(has_bytes[:, None] | has_bytes, 1) == 15)]:
        codes = [match[i, k] if has[i, k] else (match[j, k] | 4) if match[j, k] < 8 else match[j, k] + 4 for k in range(4)]
        yield Solution("prmt", (row(i), row(j), sum(int(c) << 4 * k for k, c in enumerate(codes))))


def _where_it_matters(rows: Words, goal: Goal) -> tuple[Words, Goal, int | None]:
    """Without points at which no bit matters; and how many low bits do not, if all others do at each point."""
    points = np.flatnonzero(goal.care)
    if len(points) not in (0, len(goal.care)):
        rows, goal = np.ascontiguousarray(rows[:, points]), Goal(goal.values[points], goal.care[points])
    care = int(goal.care[0])
    free = (~care & 0xFFFFFFFF).bit_length()
    return rows, goal, free if (goal.care == care).all() and care == 0xFFFFFFFF >> free << free else None


def sums(rows: Words, goal: Goal) -> Iterator[Solution]:
    """A row plus a constant, two rows, or their difference; low bits need not matter."""
    rows, goal, free = _where_it_matters(rows, goal)
    if free is None:
        return
    room = np.uint32((1 << free) - 1)
    base = goal.values & ~room
    gaps = base - rows  # the constant is from here to as far as there is room
    relative = (gaps - gaps[:, :1]).view(np.int32).astype(np.int64)
    for i in np.flatnonzero(relative.max(axis=1) <= relative.min(axis=1) + int(room)):
        yield Solution("add", (row(i), (int(gaps[i, 0]) + int(relative[i].max())) & 0xFFFFFFFF))
    mirrored = rows + base
    if free == 0:
        for i in np.flatnonzero((mirrored == mirrored[:, :1]).all(axis=1)):
            yield Solution("sub", (int(mirrored[i, 0]), row(i)))
    for k, words in enumerate(rows):
        for j in np.flatnonzero((words + rows[k:] - base <= room).all(axis=1)):
            yield Solution("add", (row(k), row(k + j)))
        for j in np.flatnonzero((words - rows - base <= room).all(axis=1)):
            yield Solution("sub", (row(k), row(j)))


def scaled(rows: Words, goal: Goal) -> Iterator[Solution]:
    """A row, and another one times a small factor or shifted."""
    rows, goal, free = _where_it_matters(rows, goal)
    if free != 0:
        return
    indices = {words.tobytes(): k for k, words in reversed([*enumerate(rows)])}
    for j, words in enumerate(rows):
        rests = goal.values - words * FACTORS[:, None]
        for factor, rest in zip(FACTORS, rests, strict=True):
            if (i := indices.get(rest.tobytes())) is not None:
                yield Solution("mad", (row(j), int(factor), row(i)))
        for k, rest in enumerate(goal.values - (words >> np.arange(1, 32, dtype=np.uint32)[:, None]), 1):
            if (i := indices.get(rest.tobytes())) is not None:
                yield Solution("madhi", (row(j), 1 << (32 - k), row(i)))


def dots(rows: Words, goal: Goal) -> Iterator[Solution]:
    """A sum of the bytes of a row, each times a constant, plus a constant; low bits need not matter."""
    rows, goal, free = _where_it_matters(rows, goal)
    if free is None:
        return
    shifts = np.arange(0, 32, 8, dtype=np.uint32)
    least = (goal.values >> np.uint32(free) << np.uint32(free)).astype(np.float64)
    for i, words in enumerate(rows):
        for kind, dtype in (("u", np.uint8), ("s", np.int8)):
            matrix = (words[:, None] >> shifts).astype(dtype).astype(np.float64)
            factors = np.rint(np.linalg.lstsq(np.c_[matrix, np.ones(len(words))], least, rcond=None)[0][:4])
            rest = least - matrix @ factors
            addend = rest.min() + (1 << free) - 1
            if np.abs(factors).max() < 256 and factors.any() and rest.max() <= addend:
                word = sum(int(factor) % 256 << 8 * k for k, factor in enumerate(factors))
                yield Solution(f"dp4a_{kind}", (row(i), word, 0 if rest.max() <= 0 <= addend else int(addend) & 0xFFFFFFFF))


def products(rows: Words, goal: Goal) -> Iterator[Solution]:
    """A row times a constant plus a constant, by an odd difference of two points."""
    rows, goal, free = _where_it_matters(rows, goal)
    if free != 0:
        return
    for i, words in enumerate(rows):
        steps = words - words[0]
        odd = np.flatnonzero(steps & np.uint32(1))
        if not len(odd):
            continue
        k = odd[0]
        factor = (int(goal.values[k]) - int(goal.values[0])) * pow(int(steps[k]), -1, 1 << 32) & 0xFFFFFFFF
        rest = goal.values - words * np.uint32(factor)
        if (rest == rest[0]).all():
            yield Solution("mad", (row(i), factor, int(rest[0]))) if rest[0] else Solution("mul", (row(i), factor))


def high_products(rows: Words, goal: Goal) -> Iterator[Solution]:
    """The high word of a row times a constant, whose bounds follow from each point."""
    rows, goal, free = _where_it_matters(rows, goal)
    if free is None:
        return
    for name, dtype, largest in (("mulhi", np.uint32, 0xFFFFFFFF), ("mulhi_s", np.int32, 0x7FFFFFFF)):
        values = [int(value) >> free << free for value in goal.values.view(dtype)]
        for i, words in enumerate(rows.view(dtype)):
            least, most = 0, largest
            for x, value in zip(words.tolist(), values, strict=True):
                low, high = value << 32, ((value + (1 << free)) << 32) - 1  # of the product
                if x == 0:
                    most = most if value == 0 else -1
                else:
                    ends = (low, high) if x > 0 else (high, low)
                    least, most = max(least, -(-ends[0] // x)), min(most, ends[1] // x)
                if least > most:
                    break
            if least <= most:
                yield Solution(name, (row(i), least))
