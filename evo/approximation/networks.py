"""Networks of shifts and masks, for functions that only move bits, or join them by xor.

Bits that move by the same distance share a shift. A step moves them by one power of two, and each pair of bits that is better
exchanged is: a shift each way, and two lop3. A permutation of bytes comes first where it helps. A bit that is the xor of
many is undone by steps that join a word and its shift within fields, each of which leaves fewer to join. Owns these steps.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations, islice, product
from math import gcd
from typing import Any

import numpy as np

from evo.approximation.solvers import Goal, Words

Sources = list[tuple[int, int] | None]  # of each bit of a word, its input and bit of that; None: any, or 0
_STEPS = (16, 8, 4, 2, 1)
_SIGNS, _MOST_MOVED, _MOST_SPLIT = (0x80808080, 0x80008000, 0x80000000), 64, 2  # bits; solutions of those that only move
_STEP_COST, _LEAST_REDUNDANT = 4.0, 16  # issue slots of a shift and a lop3; points beyond the unknowns of a system


def permutations(known: Any, goal: Goal) -> Iterator[Any]:
    """Nodes that move bits to where a goal has them."""
    inputs = [(node, known.values(node)) for node in known.rows if node[0] == "%"]
    wanted = _wanted(inputs, goal)
    if wanted is None:
        return
    for start, sources in _starts(known, inputs):
        for steps in (_STEPS, _STEPS[::-1], *(_STEPS[k:] for k in range(1, 4))):
            if node := _exchanged(start, list(sources), wanted, steps):
                yield node
    if len(inputs) == 1:
        yield from _spread(inputs[0][0], wanted)


def _wanted(inputs: list[tuple[Any, Words]], goal: Goal) -> Sources | None:
    """Source of each bit; None: not all of them are bits of inputs, or there is but one distance."""
    shifts = np.arange(32, dtype=np.uint32)[:, None]
    bits, care = goal.values >> shifts & np.uint32(1), goal.care >> shifts & np.uint32(1)
    sources = np.concatenate([words >> shifts & np.uint32(1) for _, words in inputs])
    origins: Sources = []
    for k in range(32):
        if not (bits[k] & care[k]).any():
            origins.append(None)
            continue
        same = np.flatnonzero(~((sources ^ bits[k]) & care[k]).any(axis=1)).tolist()
        if not same:
            return None
        origins.append(min((divmod(i, 32) for i in same), key=lambda source: abs(source[1] - k)))
    return origins if len({k - source[1] for k, source in enumerate(origins) if source}) > 3 else None


def shared_bytes(known: Any, goals: Sequence[Goal]) -> Iterator[Any]:
    """Words of the bytes of two inputs that two goals have, so that these share a step."""
    inputs = [("%", k) for k in range(known.num_inputs)]
    shifts = np.arange(0, 32, 8, dtype=np.uint32)[:, None]
    sources = np.concatenate([known.values(node) >> shifts & np.uint32(255) for node in inputs])
    needed: list[set[int]] = []
    for goal in goals:
        values, care = (words >> shifts & np.uint32(255) for words in goal)
        varied = np.bitwise_or.reduce(values & care, axis=1) & np.bitwise_or.reduce(~values & care, axis=1)
        same = (((sources[:, None] ^ values) & care) == 0).all(axis=2) & (varied != 0)
        needed.append({int(column.argmax()) for column in same.T if column.any()})
    for (first, second), (i, j) in product(combinations(needed, 2), combinations(range(len(inputs)), 2)):
        chosen = [sorted(byte for byte in first | second if byte // 4 == k) for k in (i, j)]
        if all(chosen) and sum(map(len, chosen)) <= 4:
            codes = [*(byte % 4 for byte in chosen[0]), *(4 + byte % 4 for byte in chosen[1])]
            yield ("prmt", inputs[i], inputs[j], sum(code << 4 * position for position, code in enumerate(codes)))


def split_goals(known: Any, goal: Goal) -> Iterator[tuple[Callable[[Any], Any], Goal, float]]:
    """As `Synthesis.goals`: without the signs of fields that are bits of inputs, which are joined at the end."""
    shifts = np.arange(32, dtype=np.uint32)[:, None]
    sources = np.concatenate([known.values(node) >> shifts & np.uint32(1) for node in known.rows if node[0] == "%"])
    varied = np.bitwise_or.reduce(goal.values & goal.care) & np.bitwise_or.reduce(~goal.values & goal.care)
    bits, care = goal.values >> shifts & np.uint32(1), goal.care >> shifts & np.uint32(1)
    moved = sum(1 << k for k in range(32) if varied >> k & 1 and (((sources ^ bits[k]) & care[k]) == 0).all(axis=1).any())
    for mask in dict.fromkeys(moved & signs for signs in _SIGNS):
        if mask and varied & ~np.uint32(mask):
            part = Goal(goal.values, goal.care & np.uint32(mask))
            solutions = filter(known.runs, islice(known.solutions(part), _MOST_MOVED))
            for node in sorted(solutions, key=lambda solution: known.cost([solution]))[:_MOST_SPLIT]:
                cost = known.cost([node]) + known.slots["lop3_d8"]
                yield partial(with_signs, mask, node), Goal(goal.values, goal.care & ~np.uint32(mask)), cost


def with_signs(mask: int, node: Any, base: Any) -> Any:
    """A node with some bits of another one."""
    return ("lop3_d8", base, node, mask)  # c ? b : a


def _starts(known: Any, inputs: list[tuple[Any, Words]]) -> Iterator[tuple[Any, Sources]]:
    """Words to begin with: inputs, and bytes of two of them."""
    for i, (node, _) in enumerate(inputs):
        yield node, [(i, j) for j in range(32)]
    if not known.has("prmt"):
        return
    for (i, (a, _)), (j, (b, _)) in product(enumerate(inputs), repeat=2):
        for selector in (0x5410, 0x5140, 0x1504, 0x6420) if i != j else (0x3120, 0x2301):
            bytes_of = [(i, 8 * k) for k in range(4)] + [(j, 8 * k) for k in range(4)]
            chosen = [bytes_of[selector >> 4 * k & 7] for k in range(4)]
            yield ("prmt", a, b, selector), [(source, first + k) for source, first in chosen for k in range(8)]


def _exchanged(node: Any, sources: Sources, wanted: Sources, steps: tuple[int, ...]) -> Any:
    """The wanted word by exchanges of bits; None: these steps do not lead there."""
    goals: dict[tuple[int, int], int] = {source: k for k, source in enumerate(wanted) if source}
    for step in steps:
        mask = 0
        for k in range(32 - step):
            if k >= step and mask >> (k - step) & 1:  # has just been exchanged
                continue
            low, high = (goals.get(sources[position] or (-1, -1)) for position in (k, k + step))  # where they must go
            # a bit that does not matter may be anywhere
            before = abs((low if low is not None else k) - k) + abs((high if high is not None else k + step) - k - step)
            after = abs((low if low is not None else k + step) - k - step) + abs((high if high is not None else k) - k)
            if after < before:
                mask |= 1 << k
                sources[k], sources[k + step] = sources[k + step], sources[k]
        if mask:
            moved = ("lop3_28", node, ("shr", node, step), mask)  # (a ^ b) & c
            node = ("lop3_96", node, moved, ("shl", moved, step))
    used = [k for k, source in enumerate(wanted) if source]
    if any(sources[k] != wanted[k] for k in used):
        return None
    zero = sum(1 << k for k in range(32) if k in used)
    return node if zero == 0xFFFFFFFF else ("lop3_c0", node, zero, 0)


def _spread(node: Any, wanted: Sources) -> Iterator[Any]:
    """Bits in their order, with gaps or without: each step moves a masked copy of the bits that have so far to go.

    Where bits would meet, a product moves them: it adds them at the new position and subtracts them at the old one.
    """
    moves = {source[1]: k - source[1] for k, source in enumerate(wanted) if source}
    if len(moves) < sum(source is not None for source in wanted):  # a bit goes to two
        return
    least, most = min(moves.values()), max(moves.values())
    if least < 0 < most:  # all of them move one way after a shift
        for name, first in (("shr", least), ("shl", most)):
            if all(0 <= bit + first < 32 for bit in moves):
                rest = {bit + first: distance - first for bit, distance in moves.items()}
                yield from _spread_one_way((name, node, abs(first)), rest)
    else:
        yield from _spread_one_way(node, moves)


def _spread_one_way(node: Any, moves: dict[int, int]) -> Iterator[Any]:
    """As `_spread`, of bits by how far each is to move, no two of them in opposite directions."""
    unit = gcd(*moves.values())
    if not unit:
        return
    if min(moves.values()) < 0:
        unit = -unit
    used = ("lop3_c0", node, sum(1 << bit for bit in moves), 0)
    for start, is_product in ((node, False), (used, False), (node, True), (used, True)):
        made, at = start, {bit: bit for bit in moves}
        for step in _STEPS if unit > 0 else _STEPS[::-1]:
            moving = sum(1 << position for bit, position in at.items() if moves[bit] // unit & step)
            if not moving:
                continue
            distance = step * unit
            at = {bit: position + (moves[bit] // unit & step) * unit for bit, position in at.items()}
            if is_product:
                made = ("mad", ("lop3_c0", made, moving, 0), (1 << distance) - 1, made) if unit > 0 else None
            else:
                moved = ("shl", made, distance) if unit > 0 else ("shr", made, -distance)
                made = ("lop3_a8", made, moved, sum(1 << position for position in at.values()))  # (a | b) & c
        if made:
            yield made


class LinearFunctions:
    """Functions each bit of which is an xor of bits of the inputs, at points."""

    def __init__(self, points: Sequence[Words]):
        shifts = np.arange(32, dtype=np.uint32)[:, None]
        self._bits = np.concatenate([np.ones((1, len(points[0])), np.bool_), *((words >> shifts & 1) == 1 for words in points)])
        count, num_points = self._bits.shape
        rows = [sum(1 << j for j in np.flatnonzero(bits).tolist()) | 1 << (count + p) for p, bits in enumerate(self._bits.T)]
        self._sums = np.zeros_like(self._bits)  # of each input bit, the points whose xor of results is that bit's share
        for j in range(count):
            pivot = next((row for row in rows if row >> j & 1 and not row & ((1 << j) - 1)), 0)
            rows = [row ^ pivot if row >> j & 1 and row != pivot else row for row in rows]
        for row in rows:
            if low := row & ((1 << count) - 1):
                self._sums[(low & -low).bit_length() - 1] = [row >> (count + p) & 1 for p in range(num_points)]
        self._is_determined = count + _LEAST_REDUNDANT <= num_points

    def _num_joined(self, values: Words) -> int | None:
        """Count of bits of inputs in all bits of results; None: there are other functions."""
        shares = np.bitwise_xor.reduce(np.where(self._sums, values, np.uint32(0)), axis=1)
        results = np.bitwise_xor.reduce(np.where(self._bits, shares[:, None], np.uint32(0)), axis=0)
        return int(np.bitwise_count(shares[1:]).sum()) if (results == values).all() else None

    def goals(self, goal: Goal) -> Iterator[tuple[Callable[[Any], Any], Goal, float]]:
        """As `Synthesis.goals`: before one step and more, as long as each leaves fewer bits to join."""
        values: Words = goal.values
        chain: tuple[Any, ...] = ()
        least = self._num_joined(values) if self._is_determined and (goal.care == 0xFFFFFFFF).all() else None
        while least is not None and least > 32:
            tried: list[Any] = []
            for width, k, name in product((32, 16, 8), (1, 2, 4, 8, 16), ("shr", "shl")):
                if k < width:
                    kept = ((1 << width - k) - 1 << (k if name == "shl" else 0)) * ((1 << 32) - 1) // ((1 << width) - 1)
                    before = _before(values, name, k, kept)
                    tried.append((self._num_joined(before) or 0, len(tried), (name, k, kept), before))
            count, _, step, values = min(tried, key=lambda entry: entry[:2])
            if count >= least:
                return
            least, chain = count, (step, *chain)
            yield partial(_with_steps, chain), Goal(values, goal.care), _STEP_COST * len(chain)


def _before(values: Words, name: str, k: int, kept: int) -> Words:
    """The words whose xor with their own masked shift gives values."""
    before = values
    for _ in range(32 // k):
        before = values ^ (before >> np.uint32(k) if name == "shr" else before << np.uint32(k)) & np.uint32(kept)
    return before


def _with_steps(chain: Any, node: Any) -> Any:
    for name, k, kept in chain:
        node = ("lop3_78", node, (name, node, k), kept)  # a ^ b & c
    return node
