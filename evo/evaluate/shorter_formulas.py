"""Shorter formulas that are near others once their constants are fitted.

Owns which they are: those without a constant, with a cosine for a shifted sine, and limits. Knows nothing of targets.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace

from evo.evaluate.formulas import Formula
from evo.language.dag import Dag, f32_bits
from evo.language.factored import rewritten
from evo.language.program import Language
from evo.native.stack_ptx import NodeKind


class Shortening:
    """Makes shorter formulas.

    Args:
        allowed: names of the instructions that may be used.
        is_scaled: formulas have an offset and a scale.
    """

    def __init__(self, language: Language, allowed: Collection[str], *, is_scaled: bool):
        instructions = language.instruction_set.instructions
        named = {
            instruction.semantics.function: index for index, instruction in enumerate(instructions) if instruction.name in allowed
        }
        self._waves = {named["sin"]: named["cos"], named["cos"]: named["sin"]} if {"sin", "cos"} <= named.keys() else {}
        self._add, self._sub, self._mul = (named.get(name) for name in ("add", "sub", "mul"))
        self._sums = {self._add, self._sub} - {None}
        self._language = language
        self._allowed = frozenset(allowed)
        self._is_scaled = is_scaled

    def without_constant(self, formula: Formula) -> Iterator[tuple[Dag, float, bool]]:
        """Graphs with the other operand in place of an instruction on a constant, or a cosine in place of a shifted sine; the
        constant; whether it was added. Where algebra or a limit makes the graph shorter, the constant is a factor of 1.
        """
        graph = formula.graph
        shorter = rewritten(self._language, graph, formula.values, self._allowed)
        yield from ((changed, 1.0, False) for changed in (*shorter, *self._limits(formula)))
        for index in graph.instructions():
            operands = graph.nodes[index].operands
            for constant in formula.values.keys() & set(operands):
                value, is_sum = formula.values[constant], graph.nodes[index].payload in self._sums
                for operand in operands:
                    if operand not in formula.values:
                        yield graph.replaced(index, operand), value, is_sum
            if wave := self._waves.get(graph.nodes[index].payload):
                [angle] = operands
                shifted = graph.nodes[angle].operands
                angles = shifted if any(operand in formula.values for operand in shifted) else operands
                for operand in angles:
                    yield graph.replaced(index, replace(graph.nodes[index], payload=wave, operands=(operand,))), 0.0, True

    def _limits(self, formula: Formula) -> Iterator[Dag]:
        """Graphs with the result b + d/c a in place of (a + c) (b + d), which tends to it, scaled, as c and d grow."""
        graph = formula.graph
        [result] = graph.results
        if result is None or self._add is None or self._mul is None or not self._is_scaled:
            return
        node = graph.nodes[result]
        if node.kind != NodeKind.PTX or node.payload != self._mul:
            return
        for first, second in (node.operands, node.operands[::-1]):
            for constant, c, _ in self._shifts(formula, first):
                for _, d, operand in self._shifts(formula, second):
                    factor = replace(graph.nodes[constant], payload=f32_bits(d / c))
                    term = replace(graph.nodes[first], payload=node.payload)
                    total = replace(node, payload=self._add, operands=(operand, first))
                    yield graph.replaced(constant, factor).replaced(first, term).replaced(result, total)

    def _shifts(self, formula: Formula, index: int) -> Iterator[tuple[int, float, int]]:
        """For an instruction that shifts a value by a constant: the constant's node, the shift up to a sign of both, and the
        value's node.
        """
        node, values = formula.graph.nodes[index], formula.values
        if node.payload in self._sums and node.kind == NodeKind.PTX:
            for constant, operand in (node.operands, node.operands[::-1]):
                if constant in values and operand not in values and values[constant]:
                    yield constant, values[constant] * (-1.0 if node.payload == self._sub else 1.0), operand
