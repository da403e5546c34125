"""Programs and formulas as one kind of graph: hash-consed nodes of the functions of the table of instructions.

Owns the nodes, how they are built and changed, and the way from the lowered form to a graph and back to words. Knows nothing of
texts or evaluation. A program has values of PTX types; a formula has real numbers, which have no stack.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from evo.instructions import HALVES, InstructionSet, shipped_instruction_set
from evo.instructions.description import Semantics
from evo.language.program import Language, word
from evo.native.stack_ptx import NO_VALUE, NodeKind
from evo.native.stack_ptx_words import META_OPERATIONS, WordType

REAL = "real"  # type of a number that is computed in float64 and has no PTX type
CAST = "cast"  # name of the conversion between f32 and real numbers
_NO_STACK = -1
_DUP = META_OPERATIONS.index("dup")
_LEAVES = {NodeKind.INPUT: WordType.INPUT, NodeKind.SPECIAL: WordType.SPECIAL}


@dataclass(frozen=True, eq=False)
class Row:
    """Operation of a node: a row of the table of instructions, a function of real numbers, or an input.

    type: a PTX type such as `f32`, or `bf16` although its registers are b16, or REAL. name: of an input, special register or
    instruction. ptx: of an instruction, in full; empty: a function of real numbers. result: which of its results the node is, of
    `num_results`. has_vectors: whether the instruction takes or gives vectors. semantics: of an instruction.
    """

    type: str = REAL
    name: str = ""
    ptx: str = ""
    semantics: Semantics = field(default_factory=Semantics)
    num_results: int = 1
    result: int = 0
    has_vectors: bool = False


_UNKNOWN = Row()


@dataclass(frozen=True, slots=True)
class Node:
    """A value. kind, payload: as in the lowered form; the bits of a real number are those of a float64.

    stack: the index of its type; -1: a real number, or a value computed from real numbers. operands: indices of nodes. row: its
    type and instruction, which follow from the others.
    """

    kind: NodeKind
    payload: int
    stack: int = _NO_STACK
    operands: tuple[int, ...] = ()
    row: Row = field(default=_UNKNOWN, compare=False, repr=False)

    def with_operands(self, operands: tuple[int, ...]) -> Node:
        """The node with other operands."""
        return self if operands == self.operands else Node(self.kind, self.payload, self.stack, operands, self.row)

    @property
    def type(self) -> str:
        """See `Row`."""
        return self.row.type

    @property
    def name(self) -> str:
        """See `Row`."""
        return self.row.name

    @property
    def ptx(self) -> str:
        """See `Row`."""
        return self.row.ptx

    @property
    def semantics(self) -> Semantics:
        """See `Row`."""
        return self.row.semantics

    @property
    def form(self) -> str:
        """The infix form of a function of real numbers or of f32, else nothing."""
        return self.row.semantics.infix if self.kind == NodeKind.PTX and self.row.type in ("f32", REAL) else ""

    @property
    def number(self) -> float:
        """The number that a constant is."""
        return number_of(self.payload) if self.row.type == REAL else float(np.uint32(self.payload).view(np.float32))


@dataclass(frozen=True)
class Dag:
    """Graph of a program or formula.

    nodes: each after its operands. results: node of each output; None: the program leaves none, and the output is zero. inputs,
    outputs: (name, type), as the task declares them, or REAL.
    """

    nodes: tuple[Node, ...]
    results: tuple[int | None, ...]
    inputs: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    outputs: tuple[tuple[str, str], ...] = field(default=(), compare=False)

    @property
    def is_writable(self) -> bool:
        """Return whether `words` can write it: each instruction has one result."""
        return all(node.row.num_results == 1 for node in self.nodes)

    def ptx_by_name(self) -> dict[str, str]:
        """Name -> PTX of the instructions, in order of their first use."""
        return {node.name: node.ptx for node in self.nodes if node.ptx}

    def needed_by(self, *indices: int) -> list[int]:
        """The nodes that some nodes are computed from, these excluded unless another needs them, in order."""
        needed: set[int] = set()
        waiting = [operand for index in indices for operand in self.nodes[index].operands]
        while waiting:
            operand = waiting.pop()
            if operand not in needed:
                needed.add(operand)
                waiting += self.nodes[operand].operands
        return sorted(needed)

    def trimmed(self) -> Dag:
        """The graph without nodes that no result needs."""
        ends = {result for result in self.results if result is not None}
        new = {old: index for index, old in enumerate(sorted(ends.union(self.needed_by(*ends))))}
        nodes = (self.nodes[old].with_operands(tuple(new[operand] for operand in self.nodes[old].operands)) for old in new)
        return replace(
            self, nodes=tuple(nodes), results=tuple(None if result is None else new[result] for result in self.results)
        )

    def replaced(self, index: int, by: int | Node) -> Dag:
        """The graph with an earlier node, or a leaf, in place of a node."""
        if isinstance(by, Node):
            return Dag((*self.nodes[:index], by, *self.nodes[index + 1 :]), self.results, self.inputs, self.outputs)
        nodes = tuple(
            node.with_operands(tuple(by if operand == index else operand for operand in node.operands))
            if index in node.operands
            else node
            for node in self.nodes
        )
        return Dag(nodes, tuple(by if result == index else result for result in self.results), self.inputs, self.outputs)

    def words(self, language: Language, max_length: int) -> NDArray[np.uint64] | None:
        """A program that computes this, `(max_length,)`; None: it would be longer.

        A value that is used more than once is duplicated if all its uses follow each other. Others go through the store, as long
        as there are entries; then they are computed again.
        """
        written: list[int] = []
        entries: dict[int, int] = {}
        uses = self.num_uses()
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

    def num_uses(self) -> list[int]:
        """Count the uses of each node as an operand or a result, of nodes that a result needs."""
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


class Builder:
    """Puts graphs together. Equal values are one node, but for real numbers, each of which may be fitted by itself.

    Args:
        instruction_set: of instructions that are called by their names; None: the wide one.
        nodes: to begin with.
    """

    def __init__(self, instruction_set: InstructionSet | None = None, nodes: Sequence[Node] = ()) -> None:
        self.nodes = [*nodes]
        self._indices = {node: index for index, node in enumerate(nodes)}
        self._set = instruction_set or shipped_instruction_set("wide")

    def node(self, node: Node) -> int:
        """The index of a node, which is new if there is no equal one."""
        if node.kind == NodeKind.CONSTANT and node.stack == _NO_STACK:
            return self.put(node)
        index = self._indices.setdefault(node, len(self.nodes))
        return self.put(node) if index == len(self.nodes) else index

    def put(self, node: Node) -> int:
        """The index of a new node, even if there is an equal one."""
        self.nodes.append(node)
        return len(self.nodes) - 1

    def input(self, index: int) -> int:
        """An input of type f32."""
        return self.node(Node(NodeKind.INPUT, index, self._set.stack_index("f32")))

    def constant(self, value: float) -> int:
        """A constant, rounded to float32."""
        return self.node(Node(NodeKind.CONSTANT, f32_bits(value), self._set.stack_index("f32")))

    def call(self, name: str, *operands: int) -> int:
        """An instruction with one result."""
        index = self._set.instruction_index(name)
        (result,) = self._set.instructions[index].rets
        return self.node(Node(NodeKind.PTX, index, self._set.arg_types[result].stack_idx, operands))

    def plus(self, total: int, term: int) -> int:
        """A sum of f32; where the term is a product, rounded once."""
        node = self.nodes[term]
        name = self._set.instructions[node.payload].name if node.kind == NodeKind.PTX else ""
        if name == "mul_ftz_f32":
            return self.call("fma_rn_ftz_f32", *node.operands, total)
        if name == "neg_ftz_f32":
            return self.call("sub_ftz_f32", total, *node.operands)
        return self.call("add_ftz_f32", total, term)

    def real(self, number: float) -> int:
        """A real number."""
        return self.node(Node(NodeKind.CONSTANT, int(np.float64(number).view(np.uint64))))

    def apply(self, form: str, *operands: int, type_name: str = REAL, name: str = "", sympy: str = "") -> int:
        """A function of real numbers, by its infix form."""
        return self.node(function_node(form, operands, type_name, name, sympy))

    def include(self, graph: Dag, inputs: Sequence[int]) -> list[int]:
        """The results of a graph whose inputs are values of this one; zero for a result that it lacks."""
        indices: list[int] = []
        for node in graph.nodes:
            operands = tuple(indices[operand] for operand in node.operands)
            is_input = node.kind == NodeKind.INPUT
            indices.append(inputs[node.payload] if is_input else self.node(node.with_operands(operands)))
        return [self.constant(0.0) if result is None else indices[result] for result in graph.results]

    def graph(self, *results: int | None) -> Dag:
        """The graph with these results."""
        return Dag(tuple(self.nodes), results)


def rebuilt(graph: Dag, rule: Callable[[Builder, Node, int], int]) -> Dag:
    """Rebuilds a graph by a rule, without nodes that no result needs.

    Args:
        rule: takes a builder, a node whose operands are those in the builder, and the node's index in the given graph; puts there
            a replacement of the node.
    """
    builder, indices = Builder(), list[int]()
    for index, node in enumerate(graph.nodes):
        operands = tuple(indices[operand] for operand in node.operands)
        indices.append(rule(builder, node.with_operands(operands), index))
    results = tuple(None if result is None else indices[result] for result in graph.results)
    return replace(graph, nodes=tuple(builder.nodes), results=results).trimmed()


def function_node(form: str, operands: tuple[int, ...], type_name: str = REAL, name: str = "", sympy: str = "") -> Node:
    """The node of a function of real numbers, by its infix form."""
    payload, row = _function(form, type_name, name, sympy)
    return Node(NodeKind.PTX, payload, _NO_STACK, operands, row)


def real_node(node: Node, operands: tuple[int, ...]) -> Node:
    """The same function of real numbers as an instruction of f32, or a comparison of these."""
    return Node(node.kind, node.payload, _NO_STACK, operands, _real_row(node.row))


@cache
def _real_row(row: Row) -> Row:
    return replace(row, type=REAL if row.type == "f32" else row.type, ptx="")


@cache
def _function(form: str, type_name: str, name: str, sympy: str) -> tuple[int, Row]:
    key = hashlib.blake2b(f"{form}|{type_name}|{name}".encode(), digest_size=8).digest()
    return int.from_bytes(key), Row(type_name, name, semantics=Semantics(infix=form, sympy=sympy))


def dag_of(language: Language, words: NDArray[np.uint64], *, folding: bool = True) -> Dag:
    """The graph of a program of `(max_length,)` words. folding: of instructions of constants."""
    lowered = language.lowering.lower(words, folding=folding)
    return dag_of_arrays(language, lowered.nodes, lowered.operands, lowered.value_stacks, lowered.request_values)


def dag_of_arrays(
    language: Language,
    lowered_nodes: NDArray[np.void],
    lowered_operands: NDArray[np.uint32],
    value_stacks: NDArray[np.uint16],
    request_values: NDArray[np.uint32],
) -> Dag:
    """The graph of a lowered program's arrays."""
    # Lists, since NumPy takes many times longer to give one number after the other.
    all_operands, stacks = lowered_operands.tolist(), value_stacks.tolist()
    columns = (lowered_nodes[name].tolist() for name in _COLUMNS)
    rows = _Rows.kept(language)
    indices: dict[int, int] = {}
    nodes: list[Node] = []
    for number, payload, start, num_operands, count, first in zip(*columns, strict=True):
        kind = NodeKind(number)
        operands = tuple([indices[value] for value in all_operands[start : start + num_operands]])
        for value in range(first, first + count):
            indices[value], stack = len(nodes), stacks[value]
            key = (number, stack if kind == NodeKind.CONSTANT else payload, count, value - first)
            nodes.append(Node(kind, payload, stack, operands, rows.get(key) or rows.made(key, stack)))
    results = (None if value == NO_VALUE else indices[value] for value in request_values.tolist())
    return Dag(tuple(nodes), tuple(results), rows.inputs, rows.outputs)


_COLUMNS = ("kind", "payload", "first_operand", "num_operands", "num_values", "first_value")


class _Rows(dict[tuple[int, int, int, int], Row]):
    """Rows of a language by kind, payload (of a constant: stack), number of results, and which of these."""

    def __init__(self, language: Language):
        self._language, known = language, language.instruction_set
        self._types = [stack.constant_type if stack.constant_type in HALVES else stack.literal_prefix for stack in known.stacks]
        self.inputs, self.outputs = (
            tuple((name, self._types[known.stack_index(kind)]) for name, kind in pairs)
            for pairs in (language.inputs, language.outputs)
        )

    @staticmethod
    def kept(language: Language) -> _Rows:
        """The rows of a language, made once and kept with it."""
        kept: _Rows | None = vars(language).get("_rows")
        return vars(language).setdefault("_rows", _Rows(language)) if kept is None else kept

    def made(self, key: tuple[int, int, int, int], stack: int) -> Row:
        """Makes a row that is not there yet."""
        kind, payload, num_results, result = key
        known, row = self._language.instruction_set, Row(self._types[stack])
        if kind == NodeKind.INPUT and payload < len(self._language.registers):
            row = Row(row.type, self._language.registers[payload][0])
        elif kind == NodeKind.SPECIAL:
            row = Row(row.type, known.special_registers[payload].ptx)
        elif kind == NodeKind.PTX:
            instruction = known.instructions[payload]
            has_vectors = payload in known.with_vectors
            row = Row(row.type, instruction.name, instruction.ptx, instruction.semantics, num_results, result, has_vectors)
        self[key] = row
        return row


def number_of(bits: int) -> float:
    """The real number with these bits."""
    return float(np.uint64(bits).view(np.float64))


def f32_bits(value: float | np.float32) -> int:
    """The bits of a number, rounded to float32."""
    with np.errstate(over="ignore"):
        return int(np.float32(value).view(np.uint32))
