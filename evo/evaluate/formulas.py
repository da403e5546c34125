"""Programs in real numbers: outputs in float64, and their derivatives by constants.

Owns the arithmetic. It knows an instruction by its infix form, and refuses those that have none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.instructions import Instruction, InstructionSet
from evo.language.dag import Dag, Node
from evo.language.factored import DIVISIONS
from evo.language.formula import compiled, is_real_function
from evo.language.program import Language
from evo.language.simple_numbers import meant_number
from evo.language.usual_names import LN_2
from evo.native.stack_ptx import NodeKind

STEP = 1e-6  # relative, of differences
Step = tuple[int, Any, tuple[int, ...]]  # a node, its function, its operands
_LEAVES = (NodeKind.INPUT, NodeKind.CONSTANT)
CHOICES = ("a < b", "select(c, a, b)")  # by infix form, of f32 and predicates
_WITH_UNITS = frozenset({"exp2", "log2"})
_LINEAR = ("add", "sub", "mul", "div", "neg")


class Formulas:
    """Makes formulas of graphs of a language with one output, at fixed points.

    Args:
        columns: of each input, `(num_points,)` or a number.
        has_choices: comparisons and what they choose between are known too, which nothing here simplifies.

    Attributes:
        num_operations: how many instructions were computed or looked at, each at all points.
    """

    def __init__(self, language: Language, columns: list[NDArray[Any]], *, has_choices: bool = False):
        self.columns = [np.asarray(column, np.float64) for column in columns]
        self.num_points = max((column.size for column in self.columns), default=1)
        self.num_operations = 0
        instruction_set = language.instruction_set
        self._is_known = [
            stack.constant_type == "f32" or (has_choices and stack.literal_prefix == "pred") for stack in instruction_set.stacks
        ]
        self.functions = [_function_of(instruction_set, instruction, has_choices) for instruction in instruction_set.instructions]
        self.is_division = [instruction.semantics.function in DIVISIONS for instruction in instruction_set.instructions]
        self.names = [instruction.semantics.function for instruction in instruction_set.instructions]
        self._is_coarse = [instruction.semantics.is_coarse for instruction in instruction_set.instructions]

    def value_of(self, leaf: Node) -> Any:
        """Values of an input or of a constant."""
        return self.columns[leaf.payload] if leaf.kind is NodeKind.INPUT else _meant(leaf.payload, 1.0)

    def is_known(self, graph: Dag) -> bool:
        """Return whether all of it has a meaning here."""
        return graph.results[0] is not None and all(self._has_meaning(graph.nodes[index]) for index in needed(graph))

    def is_coarse(self, graph: Dag) -> bool:
        """Return whether f32 is far from real numbers in one of its instructions."""
        return any(node.kind == NodeKind.PTX and self._is_coarse[node.payload] for node in graph.nodes)

    def _has_meaning(self, node: Node) -> bool:
        if not self._is_known[node.stack]:
            return False
        return self.functions[node.payload] is not None if node.kind == NodeKind.PTX else node.kind in _LEAVES

    def formula(self, graph: Dag, like: Formula | None = None) -> Formula:
        """The formula of a graph. like: the formula of a similar graph, to take values from."""
        return Formula(self, graph, like)


class Formula:
    """A graph at fixed points.

    Attributes:
        values: node -> value of each constant, as the graph has it.
        units: node -> what people take a constant in multiples of, if not 1: for those of `exp` in an exponent of 2.
        known: node -> what it gives for these constants.
        size: instructions that the output needs, and divisions among them.
    """

    def __init__(self, made_by: Formulas, graph: Dag, like: Formula | None):
        self.graph = graph
        self.values: dict[int, float] = {}
        self.known: dict[int, Any] = {}
        self._by = made_by
        self._steps: list[Step] = []
        order, depends, same = needed(graph), set[int](), set[int]()
        made_by.num_operations += len(order)
        self.units = self._natural_units(order)
        for index in order:
            node = graph.nodes[index]
            if (kind := node.kind) is NodeKind.INPUT:
                self.known[index] = made_by.columns[node.payload]
            elif kind is NodeKind.CONSTANT:
                number = _meant(node.payload, self.units.get(index, 1.0))
                self.values[index], self.known[index] = float(number), number
                depends.add(index)
            else:
                self._steps.append((index, made_by.functions[node.payload], node.operands))
                if not depends.isdisjoint(node.operands):
                    depends.add(index)
            if like and index in like.known and same.issuperset(node.operands) and like.graph.nodes[index] == node:
                self.known[index] = like.known[index]
                same.add(index)
        _compute(self.known, (step for step in self._steps if step[0] not in same))
        self._changing = [step for step in self._steps if step[0] in depends]  # with the constants
        self.size = len(self._steps), sum(made_by.is_division[graph.nodes[step[0]].payload] for step in self._steps)

    def _natural_units(self, order: list[int]) -> dict[int, float]:
        nodes = self.graph.nodes
        names = {index: self._by.names[nodes[index].payload] for index in order if nodes[index].kind == NodeKind.PTX}
        if not _WITH_UNITS.intersection(names.values()):
            return {}
        units: dict[int, float] = {}
        exponents = set[int]()
        for index in reversed(names):
            operands = nodes[index].operands
            if names[index] == "mul" and any(names.get(operand) == "log2" for operand in operands):
                if index not in exponents:  # a power keeps its exponent
                    units.update(dict.fromkeys(operands, LN_2))
            elif names[index] == "exp2" or (index in exponents and names[index] in _LINEAR):
                exponents.update(operands[:1] if names[index] == "div" else operands)
        units |= dict.fromkeys(exponents, 1.0 / LN_2)
        return {index: units[index] for index in order if index in units and nodes[index].kind == NodeKind.CONSTANT}

    def outputs(self, values: Mapping[int, Any] | None = None) -> NDArray[np.float64]:
        """`(num_points,)`. values: of constants, in place of their own; columns `(n, 1)` give rows of outputs, unless the output
        does without them.
        """
        if values is None:
            return self._output(self.known)
        replacements = {index: np.float64(value) for index, value in values.items()}
        return self._output(replacements, self._changing, max((value.size for value in replacements.values()), default=1))

    def outputs_near(self, step: float) -> NDArray[np.float64]:
        """The outputs where inputs are rounded, as to a relative step of this size."""
        nodes, columns = self.graph.nodes, self._by.columns
        inputs = {index: nodes[index].payload for index in self.known if nodes[index].kind == NodeKind.INPUT}
        moved = {index: columns[name] * (1.0 + step * _noise(name, columns[name].size)) for index, name in inputs.items()}
        return self._output(moved, self._steps)

    def outputs_with(self, index: int, substitutes: Sequence[int | Node]) -> NDArray[np.float64]:
        """`(len(substitutes), num_points)`: outputs with each substitute, an earlier node or a leaf, in place of a node."""
        rows = np.empty((len(substitutes), self._by.num_points))
        for row, substitute in zip(rows, substitutes, strict=True):
            row[:] = self.known[substitute] if isinstance(substitute, int) else self._by.value_of(substitute)
        steps, changing = list[Step](), {index}
        for step in self._steps:
            if not changing.isdisjoint(step[2]):
                steps.append(step)
                changing.add(step[0])
        self._by.num_operations += len(substitutes) * (len(self._needs) - len(steps))
        return np.broadcast_to(self._output({index: rows}, steps, len(substitutes)), rows.shape)

    def sizes_with(self, index: int, substitutes: Sequence[int | Node]) -> Iterator[tuple[int, int]]:
        """`size` with each of these in place of a node."""
        kept = {self.graph.results[0]} - {None, index}
        for node in reversed(self._needs):
            if node in kept:
                kept.update(self.graph.nodes[node].operands)
                kept.discard(index)
        bits = sum(1 << node for node in kept if node is not None)
        for substitute in substitutes:
            needs = bits | self._needs[substitute] if isinstance(substitute, int) else bits
            yield (needs & self._instructions).bit_count(), (needs & self._divisions).bit_count()

    @cached_property
    def _needs(self) -> dict[int, int]:
        """Node -> a bit for each node that it is computed from, and its own."""
        needs: dict[int, int] = {}
        for index in needed(self.graph):
            needs[index] = 1 << index
            for operand in self.graph.nodes[index].operands:
                needs[index] |= needs[operand]
        return needs

    @cached_property
    def _instructions(self) -> int:
        return sum(1 << step[0] for step in self._steps)

    @cached_property
    def _divisions(self) -> int:
        return sum(1 << step[0] for step in self._steps if self._by.is_division[self.graph.nodes[step[0]].payload])

    def _output(self, values: dict[int, Any], steps: Sequence[Step] = (), num_rows: int = 1) -> NDArray[np.float64]:
        """The output with other values of some nodes; `steps` compute what depends on them."""
        self._by.num_operations += num_rows * len(steps)
        all_values = {**self.known, **values}
        _compute(all_values, steps)
        result = self.graph.results[0]
        assert result is not None
        output = np.asarray(all_values[result], np.float64)
        shape = (*output.shape[:-1], self._by.num_points)
        return output if output.shape == shape else np.broadcast_to(output, shape)

    def derivatives(self, values: dict[int, float], by: list[int], at: NDArray[np.float64]) -> NDArray[np.float64]:
        """By each of some constants, `(num_points, len(by))`. at: the outputs for these values."""
        steps = np.array([STEP * max(abs(values[index]), 1e-3) for index in by])
        moved = np.array([values[index] for index in by])[:, None] + np.diag(steps)
        outputs = self.outputs({**values, **{index: row[:, None] for index, row in zip(by, moved, strict=True)}})
        return np.asarray(((outputs - at) / steps[:, None]).T)


def _compute(values: dict[int, Any], steps: Iterable[Step]) -> None:
    """Adds the results of steps, in order, to the values so far. Callers silence NumPy."""
    for index, function, operands in steps:
        values[index] = function(*[values[operand] for operand in operands])


def needed(graph: Dag) -> list[int]:
    """The nodes that the output is computed from, and its own."""
    result = graph.results[0]
    return [] if result is None else [*graph.needed_by(result), result]


@lru_cache(maxsize=4096)
def _meant(bits: int, unit: float) -> np.float64:
    return np.float64(meant_number(np.uint32(bits).view(np.float32), unit))


def _function_of(instruction_set: InstructionSet, instruction: Instruction, has_choices: bool) -> Callable[..., Any] | None:
    is_choice = has_choices and instruction.semantics.infix in CHOICES
    return compiled(instruction.semantics.infix) if is_choice or is_real_function(instruction_set, instruction) else None


@cache
def _noise(number: int, count: int) -> NDArray[np.float64]:
    """Evenly spread in [-1, 1], another row for each number."""
    return np.asarray((np.arange(1, count + 1) * np.sqrt(2.0) * (number + np.sqrt(5.0))) % 2.0 - 1.0)
