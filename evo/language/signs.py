"""Sums with the signs that people write: `a - 3` for `a + -3`, `a + 2*b` for `a - -2*b`, `a - (b + c)` for `a + (-b - c)`.

Owns these rules. Each keeps all bits of what a program computes, but the last may change the sign of a zero.
"""

from dataclasses import replace

import numpy as np

from evo.language.graph import Graph, Node
from evo.language.program import Language
from evo.native.stack_ptx import NodeKind

_SIGN = 1 << 31
_ONE = 0x3F800000


def with_plain_signs(language: Language, graph: Graph, allowed: frozenset[str]) -> Graph:
    """The same graph, in which no sum adds or subtracts what begins with a minus.

    Args:
        allowed: names of instructions that may be used.
    """
    return _Rewriter(language, graph, allowed).graph()


class _Rewriter:
    def __init__(self, language: Language, graph: Graph, allowed: frozenset[str]):
        self._given = graph
        instructions = language.instruction_set.instructions
        self._names = {index: each.semantics.function for index, each in enumerate(instructions)}
        self._payloads = {each.semantics.function: index for index, each in enumerate(instructions) if each.name in allowed}
        self._is_f32 = [stack.constant_type == "f32" for stack in language.instruction_set.stacks]
        self._uses = np.bincount([operand for node in graph.nodes for operand in node.operands], minlength=len(graph.nodes))
        self._nodes: list[Node] = []
        self._from: list[int] = []  # the given node that each stands for

    def graph(self) -> Graph:
        places: list[int] = []
        for index, node in enumerate(self._given.nodes):
            operands = [places[operand] for operand in node.operands]
            places.append(self._put(self._sum(node, operands), index))
        return Graph(tuple(self._nodes), tuple(None if result is None else places[result] for result in self._given.results))

    def _put(self, node: Node, index: int) -> int:
        self._nodes.append(node)
        self._from.append(index)
        return len(self._nodes) - 1

    def _sum(self, node: Node, operands: list[int]) -> Node:
        name = self._names.get(node.payload) if node.kind == NodeKind.PTX else None
        if name in ("add", "sub") and {"add", "sub"} <= self._payloads.keys():
            if name == "sub" and self._is_negative(operands[1]):
                name, operands[1] = "add", self._negated(operands[1])
            if name == "add" and self._is_negative(operands[0]) and not self._is_negative(operands[1]):
                operands.reverse()
            if name == "add" and self._is_negative(operands[1]):
                name, operands[1] = "sub", self._negated(operands[1])
            node = replace(node, payload=self._payloads[name])
        return replace(node, operands=tuple(operands))

    def _is_negative(self, place: int) -> bool:
        node = self._nodes[place]
        if node.kind == NodeKind.CONSTANT:
            return self._is_f32[node.stack] and bool(node.payload & _SIGN)
        if node.kind != NodeKind.PTX or self._uses[self._from[place]] != 1:
            return False
        return self._names[node.payload] == "neg" or self._negative_factor(node) is not None or self._is_negative_sum(node)

    def _is_negative_sum(self, node: Node) -> bool:
        """Whether it is -a - b, and addition is at hand."""
        return self._names[node.payload] == "sub" and "add" in self._payloads and self._is_negative(node.operands[0])

    def _negative_factor(self, node: Node) -> int | None:
        """Which operand of a product or quotient is negative."""
        is_product = self._names[node.payload] in ("mul", "div")
        return next((k for k, operand in enumerate(node.operands) if is_product and self._is_negative(operand)), None)

    def _negated(self, place: int) -> int:
        """What is negative, without its sign."""
        node, index = self._nodes[place], self._from[place]
        if node.kind == NodeKind.CONSTANT:
            return self._put(replace(node, payload=node.payload ^ _SIGN), index)
        if self._is_negative_sum(node):
            operands = [self._negated(node.operands[0]), node.operands[1]]
            return self._put(replace(node, payload=self._payloads["add"], operands=tuple(operands)), index)
        factor = self._negative_factor(node)
        if factor is None:  # -a
            return node.operands[0]
        constant = self._nodes[node.operands[factor]]
        is_one = constant.kind == NodeKind.CONSTANT and constant.payload ^ _SIGN == _ONE
        if is_one and (self._names[node.payload] == "mul" or factor == 1):
            return node.operands[1 - factor]
        operands = list(node.operands)
        operands[factor] = self._negated(operands[factor])
        return self._put(replace(node, operands=tuple(operands)), index)
