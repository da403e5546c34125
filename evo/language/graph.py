"""A program as a graph that can be changed and written as words again.

Owns the way back from the lowered form to words. Knows nothing of evaluation or of texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evo.language.program import Language, word
from evo.native.stack_ptx import NO_VALUE, NodeKind
from evo.native.stack_ptx_words import META_OPERATIONS, WordType

_DUP = META_OPERATIONS.index("dup")
_LEAVES = {NodeKind.INPUT: WordType.INPUT, NodeKind.SPECIAL: WordType.SPECIAL}


@dataclass(frozen=True)
class Node:
    """A value. kind, payload: as in the lowered form. stack: the index of its type. operands: indices of nodes."""

    kind: NodeKind
    payload: int
    stack: int
    operands: tuple[int, ...] = ()


@dataclass(frozen=True)
class Graph:
    """What a program computes. nodes: each after its operands. results: node of each output; None: the program leaves none."""

    nodes: tuple[Node, ...]
    results: tuple[int | None, ...]

    def needed_by(self, index: int) -> list[int]:
        """The nodes that a node is computed from, itself excluded, in order."""
        found: set[int] = set()
        waiting = [*self.nodes[index].operands]
        while waiting:
            operand = waiting.pop()
            if operand not in found:
                found.add(operand)
                waiting += self.nodes[operand].operands
        return sorted(found)

    def replaced(self, index: int, by: int | Node) -> Graph:
        """The graph in which an earlier node, or a leaf, stands in place of a node."""
        if isinstance(by, Node):
            return Graph((*self.nodes[:index], by, *self.nodes[index + 1 :]), self.results)
        nodes = tuple(
            replace(node, operands=tuple(by if operand == index else operand for operand in node.operands))
            if index in node.operands
            else node
            for node in self.nodes
        )
        return Graph(nodes, tuple(by if result == index else result for result in self.results))

    def words(self, language: Language, max_length: int) -> NDArray[np.uint64] | None:
        """A program that computes this, `(max_length,)`; None: it would be longer.

        A value that is used more than once is duplicated if all its uses follow each other. Others go through the store, as long
        as there are entries; then they are computed again.
        """
        written: list[int] = []
        entries: dict[int, int] = {}
        uses = self._num_uses()
        todo = [result for result in self.results if result is not None]  # the last goes first: the first output is on top
        while todo and len(written) <= max_length:
            index = todo.pop()
            if index < 0:  # its operands are on the stacks
                index = ~index
                stack, num_next = self.nodes[index].stack, 0
                while num_next < len(todo) and todo[-1 - num_next] == index:
                    num_next += 1
                written.append(word(WordType.PTX, payload=self.nodes[index].payload))
                if uses[index] == 1 + num_next:
                    written += [word(WordType.META, stack, _DUP)] * num_next
                    del todo[len(todo) - num_next :]
                elif len(entries) < language.limits.store_size:
                    entry = entries.setdefault(index, len(entries))
                    written += [word(WordType.STORE, stack, entry), word(WordType.LOAD, payload=entry)]
                continue
            node = self.nodes[index]
            if index in entries:
                written.append(word(WordType.LOAD, payload=entries[index]))
            elif node.kind == NodeKind.CONSTANT:
                written.append(word(WordType.CONSTANT, node.stack, node.payload))
            elif node.kind == NodeKind.PTX:
                todo += [~index, *node.operands]
            else:
                written.append(word(_LEAVES[node.kind], payload=node.payload))
        if len(written) > max_length:
            return None
        row = np.zeros(max_length, np.uint64)
        row[: len(written)] = written
        row[len(written) : len(written) + 1] = word(WordType.RETURN)
        return row

    def _num_uses(self) -> list[int]:
        """How often each node is an operand or a result, of nodes that a result needs."""
        uses = [0] * len(self.nodes)
        for result in self.results:
            if result is not None:
                uses[result] += 1
        for index in reversed(range(len(self.nodes))):
            if uses[index]:
                for operand in self.nodes[index].operands:
                    uses[operand] += 1
        return uses

    def instructions(self) -> Iterator[int]:
        """The nodes that are instructions, in order."""
        return (index for index, node in enumerate(self.nodes) if node.kind == NodeKind.PTX)


def graph_of(language: Language, words: NDArray[np.uint64]) -> Graph | None:
    """The graph of a program of `(max_length,)` words; None if an instruction has several results: nodes have one."""
    lowered = language.lowering.lower(words)
    if any(lowered.nodes["num_values"] != 1):
        return None
    return graph_of_arrays(lowered.nodes, lowered.operands, lowered.value_stacks, lowered.request_values)


def graph_of_arrays(
    lowered_nodes: NDArray[np.void],
    lowered_operands: NDArray[np.uint32],
    value_stacks: NDArray[np.uint16],
    request_values: NDArray[np.uint32],
) -> Graph:
    """The graph of a lowered program's arrays, whose nodes have one result each."""
    # Lists, since NumPy takes many times longer to give one number after the other.
    values, operands, stacks = lowered_nodes["first_value"].tolist(), lowered_operands.tolist(), value_stacks.tolist()
    place = {value: index for index, value in enumerate(values)}
    columns = [lowered_nodes[name].tolist() for name in ("kind", "payload", "first_operand", "num_operands")]
    nodes = []
    for value, kind, payload, first, count in zip(values, *columns, strict=True):
        found = tuple([place[operand] for operand in operands[first : first + count]])
        nodes.append(Node(NodeKind(kind), payload, stacks[value], found))
    results = tuple(None if value == NO_VALUE else place[int(value)] for value in request_values)
    return Graph(tuple(nodes), results)
