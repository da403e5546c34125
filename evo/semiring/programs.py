"""Programs over the variables of a semiring: from text, put together, derived, and computed in float64.

Owns graphs of f32 values and what is done with them. Knows nothing of arrays' layouts, reductions or tensors.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.errors import UserError
from evo.instructions import shipped_instruction_set
from evo.language import derivative
from evo.language.derivative import MAX_WORDS
from evo.language.formula import compiled, is_real_function
from evo.language.graph import Graph, Node, graph_of
from evo.language.infix import parse_infix
from evo.language.program import Language, Limits, parse_program
from evo.native.stack_ptx import NodeKind

RESULT = "y"
_LIMITS = Limits(stack_size=1024, max_nodes=65536, store_size=1024, execution_limit=1 << 16)
_CONSTANTS = ("pi", "e")  # names that formulas have
_STACK_PTX = re.compile(r"%(\w+)")


@cache
def language(inputs: tuple[str, ...], outputs: tuple[str, ...]) -> Language:
    """The language of programs with these inputs and outputs, all f32, of the default instruction set."""
    instruction_set = shipped_instruction_set("default")
    return Language(instruction_set, tuple((name, "f32") for name in inputs), tuple((name, "f32") for name in outputs), _LIMITS)


@cache
def _instruction_names() -> tuple[str, ...]:
    return tuple(instruction.name for instruction in shipped_instruction_set("default").instructions)


def names_in(program: str) -> list[str]:
    """The variables of a formula, or of Stack PTX, which writes them %name, in the order in which they come."""
    if found := _STACK_PTX.findall(program):
        return list(dict.fromkeys(found))
    try:
        nodes = [*ast.walk(ast.parse(program.replace("^", "**")))]
    except SyntaxError:
        return []  # parse_infix says what is wrong
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    names = [node for node in nodes if isinstance(node, ast.Name) and id(node) not in called]
    assigned = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    names.sort(key=lambda node: (node.lineno, node.col_offset))
    return list(dict.fromkeys(node.id for node in names if node.id not in assigned and node.id not in _CONSTANTS))


def read(program: str | NDArray[np.uint64], variables: tuple[str, ...], source: str) -> Graph:
    """The graph of a formula, of Stack PTX as text, or of its words, with one result.

    Raises:
        UserError: it is not a program of these variables, or it has an instruction that is not a function of real numbers.
    """
    spoken = language(variables, (RESULT,))
    if isinstance(program, np.ndarray) and program.dtype == np.uint64 and program.ndim == 1:
        words = program
    elif not isinstance(program, str):
        raise UserError(
            f"{source} is of {type(program).__name__}; expected a formula, Stack PTX as text, or its words, (length,) uint64"
        )
    elif _STACK_PTX.search(program):
        words = parse_program(spoken, program, source)
    else:
        words = parse_infix(spoken, program, source, MAX_WORDS, _instruction_names())
    graph = graph_of(spoken, words)
    if graph is None or graph.results[0] is None:
        raise UserError(f"{source}: leaves no f32 value")
    for index in (*graph.needed_by(graph.results[0]), graph.results[0]):
        node = graph.nodes[index]
        if node.kind == NodeKind.SPECIAL or (node.kind == NodeKind.PTX and _function(node.payload) is None):
            name = _instruction_names()[node.payload] if node.kind == NodeKind.PTX else "a special register"
            raise UserError(f"{source}: {name} is not a function of real numbers")
    return graph


class Builder:
    """Puts graphs together. Equal values are one node."""

    def __init__(self) -> None:
        self._indices: dict[Node, int] = {}
        self._set = shipped_instruction_set("default")
        self._stack = self._set.stack_index("f32")

    def node(self, node: Node) -> int:
        """The index of a node, which is new if there is no equal one."""
        return self._indices.setdefault(node, len(self._indices))

    def input(self, index: int) -> int:
        """An input."""
        return self.node(Node(NodeKind.INPUT, index, self._stack))

    def constant(self, value: float) -> int:
        """A constant, rounded to float32."""
        return self.node(Node(NodeKind.CONSTANT, int(np.float32(value).view(np.uint32)), self._stack))

    def call(self, name: str, *operands: int) -> int:
        """An instruction with an f32 result, or one that gives a predicate."""
        index = self._set.instruction_index(name)
        (result,) = self._set.instructions[index].rets
        return self.node(Node(NodeKind.PTX, index, self._set.arg_types[result].stack_idx, operands))

    def include(self, graph: Graph, inputs: Sequence[int]) -> list[int]:
        """The results of a graph whose inputs are values of this one; zero for a result that it lacks."""
        places: list[int] = []
        for node in graph.nodes:
            if node.kind == NodeKind.INPUT:
                places.append(inputs[node.payload])
            else:
                operands = tuple(places[operand] for operand in node.operands)
                places.append(self.node(Node(node.kind, node.payload, node.stack, operands)))
        return [self.constant(0.0) if result is None else places[result] for result in graph.results]

    def plus(self, total: int, term: int) -> int:
        """A sum; where the term is a product, rounded once."""
        node = list(self._indices)[term]
        name = self._set.instructions[node.payload].name if node.kind == NodeKind.PTX else ""
        if name == "mul_ftz_f32":
            return self.call("fma_rn_ftz_f32", *node.operands, total)
        if name == "neg_ftz_f32":
            return self.call("sub_ftz_f32", total, *node.operands)
        return self.call("add_ftz_f32", total, term)

    def graph(self, *results: int) -> Graph:
        """The graph with these results."""
        return Graph(tuple(self._indices), results)


def formula(text: str, *variables: str) -> Graph:
    """The graph of a formula of ours."""
    return read(text, variables, text)


def words_of(graph: Graph, inputs: tuple[str, ...], outputs: tuple[str, ...]) -> NDArray[np.uint64]:
    """The program that computes a graph.

    Raises:
        UserError: it would have more than MAX_WORDS words.
    """
    words = graph.words(language(inputs, outputs), MAX_WORDS)
    if words is None:
        raise UserError(f"a semiring's program has more than {MAX_WORDS} words")
    return words


def derived(graph: Graph, num_inputs: int) -> Graph:
    """The derivatives of a graph's one result by each of its inputs, as `evo.language.derivative` has them."""
    return derivative.derived(graph, num_inputs, language((), (RESULT,)))


@cache
def _function(instruction: int) -> Any:
    """What an instruction is on real numbers, as a NumPy function; None if it is none."""
    instruction_set = shipped_instruction_set("default")
    row = instruction_set.instructions[instruction]
    return compiled(row.semantics.infix) if is_real_function(instruction_set, row) else None


_SINGLE: Any = np.finfo(np.float32)
_DOUBLE: Any = np.finfo(np.float64)
_MEANT = {
    sign * np.float32(number): sign * float(meant)
    for number, meant in (
        *((number, number) for number in (1 / math.log(2), math.log(2), math.log10(2), math.pi, math.e)),
        (_SINGLE.max, _DOUBLE.max),
        (_SINGLE.tiny, _DOUBLE.tiny),
    )
    for sign in (1.0, -1.0)
}


def _meant(value: np.float32) -> np.float64:
    """The number that float32 rounded: one that exponentials and logarithms are made with, a limit of its type, or else the
    shortest decimal.
    """
    return np.float64(_MEANT.get(value, float(str(value))))


def evaluate(graph: Graph, inputs: Sequence[Any]) -> list[Any]:
    """Each result in float64, for arrays that broadcast. Functions are exact, and subnormals are kept."""
    values: list[Any] = []
    with np.errstate(all="ignore"):
        for node in graph.nodes:
            if node.kind == NodeKind.INPUT:
                values.append(inputs[node.payload])
            elif node.kind == NodeKind.CONSTANT:
                values.append(_meant(np.uint32(node.payload).view(np.float32)))
            else:
                values.append(_function(node.payload)(*(values[operand] for operand in node.operands)))
    return [np.float64(0.0) if result is None else values[result] for result in graph.results]
