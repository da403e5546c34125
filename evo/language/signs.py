"""Sums with the signs that people write: `a - 3` for `a + -3`, `a + 2*b` for `a - -2*b`, `a - (b + c)` for `a + (-b - c)`.

Owns these rules. Each keeps all bits of what a program computes, but the last may change the sign of a zero.
"""

from dataclasses import replace

import numpy as np

from evo.language.dag import Builder, Dag, Node, rebuilt
from evo.language.program import Language
from evo.native.stack_ptx import NodeKind

_SIGN = 1 << 31
_ONE = 0x3F800000


def with_plain_signs(language: Language, graph: Dag, allowed: frozenset[str]) -> Dag:
    """The same graph, in which no sum adds or subtracts what begins with a minus.

    Args:
        allowed: names of instructions that may be used.
    """
    return rebuilt(graph, _Signs(language, graph, allowed).plain)


class _Signs:
    """The rule by which sums get plain signs."""

    def __init__(self, language: Language, graph: Dag, allowed: frozenset[str]):
        instructions = language.instruction_set.instructions
        self._names = {index: instruction.semantics.function for index, instruction in enumerate(instructions)}
        self._payloads = {
            instruction.semantics.function: index for index, instruction in enumerate(instructions) if instruction.name in allowed
        }
        self._is_f32 = [stack.constant_type == "f32" for stack in language.instruction_set.stacks]
        self._uses = np.bincount([operand for node in graph.nodes for operand in node.operands], minlength=len(graph.nodes))
        self._nodes: list[Node] = []
        self._shared = set[int]()  # values of the builder that are used more than once

    def plain(self, builder: Builder, node: Node, index: int) -> int:
        """Replacement of a node."""
        self._nodes = builder.nodes
        replacement = builder.node(self._sum(builder, node))
        if self._uses[index] != 1:
            self._shared.add(replacement)
        return replacement

    def _sum(self, builder: Builder, node: Node) -> Node:
        operands = [*node.operands]
        name = self._names.get(node.payload) if node.kind == NodeKind.PTX else None
        if name in ("add", "sub") and {"add", "sub"} <= self._payloads.keys():
            if name == "sub" and self._is_negative(operands[1]):
                name, operands[1] = "add", self._negated(builder, operands[1])
            if name == "add" and self._is_negative(operands[0]) and not self._is_negative(operands[1]):
                operands.reverse()
            if name == "add" and self._is_negative(operands[1]):
                name, operands[1] = "sub", self._negated(builder, operands[1])
            node = replace(node, payload=self._payloads[name])
        return node.with_operands(tuple(operands))

    def _is_negative(self, index: int) -> bool:
        node = self._nodes[index]
        if node.kind == NodeKind.CONSTANT:
            return self._is_f32[node.stack] and bool(node.payload & _SIGN)
        if node.kind != NodeKind.PTX or index in self._shared:
            return False
        return self._names[node.payload] == "neg" or self._negative_factor(node) is not None or self._is_negative_sum(node)

    def _is_negative_sum(self, node: Node) -> bool:
        """Return whether it is -a - b, and addition is at hand."""
        return self._names[node.payload] == "sub" and "add" in self._payloads and self._is_negative(node.operands[0])

    def _negative_factor(self, node: Node) -> int | None:
        """Index of the negative operand of a product or quotient."""
        is_product = self._names[node.payload] in ("mul", "div")
        return next((k for k, operand in enumerate(node.operands) if is_product and self._is_negative(operand)), None)

    def _negated(self, builder: Builder, index: int) -> int:
        """Negative value without its sign."""
        node = self._nodes[index]
        if node.kind == NodeKind.CONSTANT:
            return builder.node(replace(node, payload=node.payload ^ _SIGN))
        if self._is_negative_sum(node):
            operands = [self._negated(builder, node.operands[0]), node.operands[1]]
            return builder.node(replace(node, payload=self._payloads["add"], operands=tuple(operands)))
        factor = self._negative_factor(node)
        if factor is None:  # -a
            return node.operands[0]
        constant = self._nodes[node.operands[factor]]
        is_one = constant.kind == NodeKind.CONSTANT and constant.payload ^ _SIGN == _ONE
        if is_one and (self._names[node.payload] == "mul" or factor == 1):
            return node.operands[1 - factor]
        operands = list(node.operands)
        operands[factor] = self._negated(builder, operands[factor])
        return builder.node(node.with_operands(tuple(operands)))
