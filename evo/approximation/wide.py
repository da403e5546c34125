"""Rows of two instructions in great number, and goals one or two instructions from them.

A sum, difference or xor of two rows is looked up by a hash of the missing row; a row of small numbers may select bits of a
constant. Owns these rows. Knows nothing of searches.
"""

from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.approximation import solvers
from evo.approximation.solvers import Goal, Solution, Words, row
from evo.approximation.word_machine import apply

MOST_FIRST, MOST_ROWS, MOST_SMALL = 700, 80_000, 600
_MOST_PAIRS, _MOST_OF_SOLVER, _MOST_SAME, _MOST_OF_BYTES = 40, 24, 3, 150
_MOST_COST = 6  # issue slots of a row that other rows use
_FEW = 12  # points that filter rows first
_MULTIPLIER = 0x9E3779B97F4A7C15
_BITS = [m * r for r, ms in ((0x01010101, (1, 0x0F, 0x7F, 0x80, 0xFE)), (0x00010001, (1, 0xFF, 0x7FFF, 0x8000))) for m in ms]
_MASKS = (*_BITS, 1, 3, 7, 15, 31, 0xFF, 0xFFFF, 0x11111111, 0x33333333, 0x55555555, 0x77777777, 0x0F0F0F0F, 0x88888888)
LIMITS = (0, 1, 15, 31, 127, 255, 0x7FFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFF80, 0xFFFF8000)
_SHIFTS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 13, 16, 20, 23, 24, 27, 28, 31)
_UNARY: list[tuple[Any, ...]] = [
    *(("mul", factor) for factor in (0x01010101, 0x00010001, 255, 3, 0xFFFFFFFF)),
    ("dp4a_u", 0x01010101, 0),
    ("f32_of_u32",),
    ("f32_of_s32",),
    *((name, k) for name in ("shr", "shl", "sar") for k in _SHIFTS),
    *(("lop3_c0", mask, 0) for mask in _MASKS),
    *(("lop3_3c", mask, 0) for mask in (0xFFFFFFFF, 0x80000000, 0x80808080, 0x80008000, 1)),
    *(("add", constant) for constant in (1, 0xFFFFFFFF, 0x01010101, 0x80000000)),
    *((name, limit) for name in ("min_s", "max_s", "min_u", "max_u") for limit in LIMITS),
    *(("prmt", 0, selector) for selector in (0x4140, 0x4342, 0x5140, 0x4440, 0x4441, 0x4442, 0x4443, 0xBA98, 0x0123, 0x2301)),
]
_BINARY = ("add", "sub", "lop3_3c", "lop3_c0", "lop3_fc", "lop3_30", "min_s", "max_s", "min_u", "max_u")

_NUMBERS = {
    kind: tuple(f"{name}{form}" for name in ("add", "sub", "mul", "min", "max"))  # in this order
    for kind, form in (("f32", "f"), ("f16x2", "2_f16"), ("bf16x2", "2_bf16"))
}


class WideRows:
    """Nodes and their words, `(num_rows, num_points)`, by rising cost; the first ones are those of a synthesis."""

    def __init__(self, known: Any):
        self._known = known
        self._seen: dict[bytes, list[Any]] = {}
        self._nodes: list[Any] = []
        self._words: list[Words] = []
        inputs = [node for node in known.rows if node[0] == "%"]
        first = sorted(known.rows, key=lambda node: known.cost([node]))
        self._take(first, np.stack([known.values(node) for node in first]))
        first = [node for node in first[:MOST_FIRST] if known.cost([node]) <= _MOST_COST]
        words = np.stack([known.values(node) for node in first])
        for input_node in inputs:
            value = np.broadcast_to(known.values(input_node), words.shape)
            of_numbers = _NUMBERS.get(known.function.types[input_node[1]], ())
            for name in (*_BINARY, *of_numbers):
                self._apply(name, first, words, (input_node, value), *([0] if name.startswith("lop3") else []))
            for name in ("sub", *of_numbers[1:2]):
                self._apply(name, [input_node] * len(first), value, (first, words))
        for input_node in inputs:
            self._take_nodes([("lop3_28", input_node, ("shr", input_node, k), (1 << k) - 1) for k in range(1, 17)])
        if len(inputs) == 2:
            self._alike(first, *inputs)
        for name, *constants in _UNARY if len(inputs) < 3 else ():
            self._apply(name, first, words, *constants)
        costs = [known.cost([node]) for node in self._nodes]
        order = np.argsort(costs, kind="stable")
        self.nodes = [self._nodes[i] for i in order]
        self.words = np.stack(self._words)[order]

    def _take(self, nodes: Any, words: Words) -> None:
        for node, row_words in zip(nodes, words, strict=True):
            same = self._seen.setdefault(row_words.tobytes(), [])
            if len(same) < _MOST_SAME:
                same.append(node)
            if len(same) == 1 and len(self._nodes) < MOST_ROWS:
                self._nodes.append(node)
                self._words.append(row_words)

    def _apply(self, name: str, nodes: list[Any], words: Words, *arguments: Any) -> None:
        """Rows of an instruction: nodes, and constants or (node or nodes, words)."""
        if not self._known.has(name):
            return
        operands = [argument[1].ravel() if isinstance(argument, tuple) else np.uint32(argument) for argument in arguments]
        results = apply(name, words.ravel(), *operands).reshape(words.shape)
        keep = np.flatnonzero((results != results[:, :1]).any(axis=1))

        def operand(argument: Any, i: int) -> Any:
            return (argument[0][i] if isinstance(argument[0], list) else argument[0]) if isinstance(argument, tuple) else argument

        self._take([(name, nodes[i], *(operand(argument, i) for argument in arguments)) for i in keep.tolist()], results[keep])

    def _alike(self, first: list[Any], a: Any, b: Any) -> None:
        """Join results of the same instruction for two inputs."""
        pairs = [
            (node, tuple(b if part == a else part for part in node)) for node in first if a in node[1:] and b not in node[1:]
        ]
        left, right = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        words = [np.stack([self._known.values(node) for node in side]) for side in (left, right)]
        for name in (*_BINARY, *_NUMBERS.get(self._known.function.types[a[1]], ())):
            self._apply(name, left, words[0], (right, words[1]), *([0] if name.startswith("lop3") else []))
        masked = [("lop3_28", a, b, mask & 0xFFFFFFFF) for base in _MASKS for mask in (base, ~base)]
        self._take_nodes([*masked, *(("shr", node, k) for node in masked for k in (1, 2, 4, 8, 16))])

    def _take_nodes(self, nodes: list[Any]) -> None:
        self._take(nodes, np.stack([self._known.values(node) for node in nodes]))

    # ---- solutions

    def solutions(self, goal: Goal) -> Iterator[Any]:
        """Nodes that give a goal."""
        for i in solvers.copies(self.words, goal)[:_MOST_OF_SOLVER]:
            yield from self._seen[self.words[i].tobytes()]
        finders = (
            solvers.logic_of_one(self.words, goal),
            self._selected(goal),
            self._pairs(goal),
            self._bytes(goal),
        )
        for finder in finders:
            for solution in islice(finder, _MOST_OF_SOLVER):
                # by each node that gives the words of a row, since one of them may share more with another
                yield from solvers.nodes_of(solution, lambda i: self._seen[self.words[i].tobytes()])

    def _pairs(self, goal: Goal) -> Iterator[Solution]:
        mask = goal.care[0]
        if (goal.care != mask).any():
            return
        values, is_whole = goal.values & mask, mask == solvers.ALL
        words = self.words if is_whole else self.words & mask
        hashes, order = self._hashed if is_whole else _sorted_hashes(words)
        missing, of_values = {"lop3_3c": _hashes(words ^ values)}, _hashes(values[None])
        if is_whole:  # a hash is linear
            missing |= {"add": of_values - hashes, "sub": of_values + hashes}
        row_keys = _keys(hashes)
        keys, is_other = row_keys[order], row_keys != _keys(of_values)  # a row that is the goal needs no other
        for name, wanted in missing.items():
            wanted_keys = _keys(wanted)
            at = np.minimum(np.searchsorted(keys, wanted_keys), len(order) - 1)
            hits = np.flatnonzero((keys[at] == wanted_keys) & is_other & is_other[order[at]])
            for i in hits[np.argsort(hits + order[at[hits]], kind="stable")][:_MOST_PAIRS]:
                partner = order[at[i]]  # the row that is missing beside i
                yield Solution(name, (row(partner), row(i), 0) if name == "lop3_3c" else (row(partner), row(i)))
        if is_whole:
            gaps = values[:_FEW] - words[:, :_FEW]
            for i in np.flatnonzero((gaps == gaps[:, :1]).all(axis=1)):
                if ((rest := values - words[i]) == rest[0]).all():
                    yield Solution("add", (row(i), int(rest[0])))

    @cached_property
    def _hashed(self) -> tuple[Words, NDArray[np.intp]]:
        return _sorted_hashes(self.words)

    def _bytes(self, goal: Goal) -> Iterator[Solution]:
        care, wanted = (_bytes_of(words[:_FEW]) for words in (goal.care, goal.values & goal.care))
        has = np.zeros(len(self.words), np.int64)
        for k in range(4):
            if (wanted[:, k] != wanted[0, k]).any():
                has += ((self._few_bytes & care[:, k, None]) == wanted[:, k, None]).all(axis=1).any(axis=1)
        chosen = np.argsort(-has, kind="stable")[:_MOST_OF_BYTES]
        for solution in solvers.bytes_of_two(self.words[chosen], goal):
            yield Solution(
                solution.name,
                tuple(row(chosen[operand[1]]) if isinstance(operand, tuple) else operand for operand in solution.operands),
            )

    @cached_property
    def _few_bytes(self) -> NDArray[np.uint8]:
        return _bytes_of(self.words[:, :_FEW])

    def _selected(self, goal: Goal) -> Iterator[Solution]:
        """Solve by a table: the row shifts a constant."""
        used = np.bitwise_or.reduce(self.words, axis=1)
        ones, zeros = np.bitwise_or.reduce(goal.values & goal.care), np.bitwise_or.reduce(~goal.values & goal.care)
        count = int(ones & zeros).bit_length()
        if count > 4 or int(ones) >> count:
            return
        for i in np.flatnonzero(used < 32)[:MOST_SMALL]:
            bits, known = 0, 0
            for shift, value in set(zip(self.words[i].tolist(), goal.values.tolist(), strict=True)):
                mask = ((1 << count) - 1) << shift
                if (bits ^ value << shift) & known & mask:
                    break
                bits, known = bits | value << shift, known | mask
            else:
                if bits < 1 << 32:
                    yield Solution("lop3_c0", (("shr", bits, self.nodes[i]), (1 << count) - 1, 0))


def _bytes_of(words: Words) -> NDArray[np.uint8]:
    return np.ascontiguousarray(words, "<u4").view(np.uint8).reshape(*words.shape, 4)


def _hashes(words: Words) -> Words:
    """Two sums of multiples of each row's words, `(num_rows, 2)`."""
    powers = [pow(_MULTIPLIER, k + 1, 1 << 64) for k in range(words.shape[1])]
    factors = np.array([(power >> 32, power & 0xFFFFFFFF) for power in powers], np.uint32)
    hashed: Words = words @ factors
    return hashed


def _keys(hashes: Words) -> NDArray[np.uint64]:
    return np.ascontiguousarray(hashes).view(np.uint64)[:, 0]


def _sorted_hashes(words: Words) -> tuple[Words, NDArray[np.intp]]:
    hashes = _hashes(words)
    return hashes, np.argsort(_keys(hashes), kind="stable")
