"""Programs of several outputs that share parts.

Owns words that hold the bytes of several outputs, and which solutions go together.
Knows nothing of how an output is solved.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from evo.approximation.nodes import Node
from evo.approximation.numbers import number_goals
from evo.approximation.solvers import Goal

_Wrap = Callable[[Any], Any]  # makes a node of one that gives an earlier goal
_MOST_OF_ONE_WORD, _MOST_JOINED = 40, 48  # ways to join bytes, and choices, that are tried


def of_one_word(known: Any, goals: Sequence[Goal]) -> Iterator[tuple[Node, ...]]:
    """All outputs by words whose bytes are those of several of them, before the same instruction or none."""
    befores: dict[Node, list[tuple[_Wrap, Goal]]] = {}
    for goal in goals:
        for wrap, before, _ in ((_itself, goal, 0.0), *number_goals(known, goal)):
            befores.setdefault(wrap(("%", known.num_inputs)), []).append((wrap, before))
    num_tried = 0
    for pairs in befores.values():
        varying = [_varying_bytes(before) for _, before in pairs]
        count = next((k for k in range(4, 1, -1) if len(goals) % k == 0 and max(map(len, varying)) * k <= 4), 0)
        if len(pairs) != len(goals) or not count or not all(varying) or num_tried == _MOST_OF_ONE_WORD:
            continue
        num_tried += 1
        outputs: list[Node] = []
        for first in range(0, len(goals), count):
            group = range(first, first + count)
            sources = [(pairs[i][1], k) for i in group for k in varying[i]]
            joined = np.zeros((2, len(goals[0].values)), np.uint32)
            for at, (before, k) in enumerate(sources):
                joined |= (np.stack(before) >> np.uint32(8 * k) & np.uint32(255)) << np.uint32(8 * at)
            node = min(filter(known.runs, known.solutions(Goal(*joined))), key=lambda node: known.cost([node]), default=None)
            if node is None:
                break
            at = 0
            for i in group:
                wrap, before = pairs[i]
                ones = int(np.bitwise_or.reduce(before.values & before.care))
                codes = [varying[i].index(k) + at if k in varying[i] else 4 + k for k in range(4)]
                at += len(varying[i])
                constant = sum(ones & 255 << 8 * k for k in range(4) if k not in varying[i])
                outputs.append(wrap(("prmt", node, constant, sum(code << 4 * k for k, code in enumerate(codes)))))
        if len(outputs) == len(goals) and all(map(known.runs, outputs)):
            yield tuple(outputs)


def together(known: Any, solutions: Sequence[Sequence[Node | int]]) -> list[tuple[Node | int, ...]]:
    """The cheapest choices of a solution for each output, of MOST_JOINED."""
    chosen: list[tuple[Node | int, ...]] = [()]
    for nodes in solutions:
        options = [(*before, node) for before in chosen for node in nodes]
        chosen = sorted(options, key=known.cost)[:_MOST_JOINED]
    return chosen


def _itself(node: Node) -> Node:
    return node


def _varying_bytes(goal: Goal) -> list[int]:
    ones, zeros = np.bitwise_or.reduce(goal.values & goal.care), np.bitwise_or.reduce(~goal.values & goal.care)
    return [k for k in range(4) if int(ones & zeros) >> 8 * k & 255]
