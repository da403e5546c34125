"""Cheaper programs that compute the same: peephole optimization of nodes, by their words at a sample.

A node is replaced by one instruction of other nodes of the program, or of few that follow from these, with constants that are
solved for. Its operands go unless they are used elsewhere. Owns the windows. Knows nothing of searches.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from evo.approximation import solvers
from evo.approximation.nodes import parts_of
from evo.approximation.solvers import ALL, Goal

_MOST_ROWS, _MOST_OF_SOLVER = 60, 8
_MOST_PARTS, _MANY_PARTS = 100, 30  # of a program: with more, each step takes seconds
_WITH_ADDEND = {"mul": "mad", "mulhi": "madhi", "mad": "mad", "madhi": "madhi", "dp4a_u": "dp4a_u", "dp4a_s": "dp4a_s"}


def shortened_nodes(known: Any, outputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The outputs by nodes that cost less, as long as there are any."""
    if len(parts_of(outputs)) > _MOST_PARTS:
        return outputs
    tried: set[bytes] = set()
    while (better := _step(known, outputs, tried)) is not None:
        outputs = better
    return outputs


def _step(known: Any, outputs: tuple[Any, ...], tried: set[bytes]) -> tuple[Any, ...] | None:
    """The best step; of many nodes, the best of the first one that has any. tried: words of those that had none."""
    cost = known.cost(outputs)
    parts = sorted(parts_of(outputs), key=lambda node: -known.cost([node]))
    best, least = None, cost
    for node in parts:
        if known.cost([node]) <= 2 or known.values(node).tobytes() in tried:
            continue
        if len(parts) > _MANY_PARTS and best:
            break
        for candidate in _equal(known, node, [part for part in parts if node not in known.parts(part)]):
            done = {node: candidate}
            replaced = tuple(_replaced(known, output, done) for output in outputs)
            if (less := known.cost(replaced)) < least and not (known.values(candidate) ^ known.values(node)).any():
                best, least = replaced, less
        if len(parts) > _MANY_PARTS and not best:
            tried.add(known.values(node).tobytes())
    return best


def _replaced(known: Any, where: Any, done: dict[Any, Any]) -> Any:
    if not isinstance(where, tuple):
        return where
    if where not in done:
        operands = tuple(_replaced(known, operand, done) for operand in where)
        is_same = all(a is b for a, b in zip(where, operands, strict=True))
        done[where] = where if is_same else known.shared(operands)
    return done[where]


def _equal(known: Any, node: Any, candidates: Sequence[Any]) -> Iterator[Any]:
    """Nodes with the words of one, by one instruction of others."""
    inputs = [row for row in known.rows if row[0] == "%"]
    nodes = [*inputs, *sorted(candidates, key=lambda candidate: known.cost([candidate]))]
    for candidate in list(nodes):
        match candidate:
            case ("lop3_c0" | "lop3_ca", ("shr", before, int(count)), int(mask), 0):  # masked before it is shifted
                nodes.append(("lop3_c0", before, mask << count & 0xFFFFFFFF, 0))
    nodes = nodes[:_MOST_ROWS]
    rows, goal = np.stack([known.values(row) for row in nodes]), Goal(known.values(node), np.full_like(known.values(node), ALL))
    for candidate in candidates:
        match candidate:  # a shift is a product, too
            case ("shr", x, int(count)) if 0 < count < 32:
                candidate = ("mulhi", x, 1 << 32 - count)  # noqa: PLW2901 - the same words
            case ("shl", x, int(count)) if count < 32:
                candidate = ("mul", x, 1 << count)  # noqa: PLW2901 - the same words
        if candidate[0] in _WITH_ADDEND:
            product = (_WITH_ADDEND[candidate[0]], candidate[1], candidate[2])
            rest = goal.values - known.values((*product, 0))
            yield from ((*product, nodes[i]) for i in np.flatnonzero((rows == rest).all(axis=1)))
            if (rest == rest[0]).all():
                yield (*product, int(rest[0]))
    yield from (nodes[i] for i in solvers.copies(rows, goal))
    for finder in (
        solvers.logic_of_one,
        solvers.bytes_of_two,
        solvers.scaled,
        solvers.sums,
        solvers.products,
        solvers.high_products,
        solvers.logic_of_two,
        solvers.logic_of_three,
    ):
        for solution in islice(finder(rows, goal), _MOST_OF_SOLVER):
            yield from solvers.nodes_of(solution, lambda i: [nodes[i]])
