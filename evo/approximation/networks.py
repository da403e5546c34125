"""Networks of shifts and masks, for functions that only move bits.

Bits that move by the same distance share a shift. A step moves them by one power of two, and each pair of bits that is better
exchanged is: a shift each way, and two lop3. A permutation of bytes comes first where it helps. Owns these steps.
"""

from collections.abc import Iterator
from itertools import product
from math import gcd
from typing import Any

import numpy as np

from evo.approximation.solvers import Goal, Words

Sources = list[tuple[int, int] | None]  # of each bit of a word, its input and bit of that; None: any, or 0
_STEPS = (16, 8, 4, 2, 1)


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
