"""Programs over real variables, such as those of a semiring or a loss: from text, put together, derived, and computed in float64.

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
from evo.language.dag import Dag, dag_of
from evo.language.derivative import MAX_WORDS
from evo.language.formula import compiled, is_real_function
from evo.language.infix import parse_infix
from evo.language.program import Language, Limits, parse_program
from evo.native.stack_ptx import NodeKind

RESULT = "y"
_LIMITS = Limits(stack_size=1024, max_nodes=65536, store_size=1024, execution_limit=1 << 16)
_CONSTANTS = ("pi", "e")  # names that formulas have
_STACK_PTX = re.compile(r"%(\w+)")


@cache
def language(inputs: tuple[str, ...], outputs: tuple[str, ...]) -> Language:
    """The language of programs with these inputs and outputs, all f32, of the wide instruction set."""
    instruction_set = shipped_instruction_set("wide")
    return Language(instruction_set, tuple((name, "f32") for name in inputs), tuple((name, "f32") for name in outputs), _LIMITS)


@cache
def _instruction_names() -> tuple[str, ...]:
    return tuple(instruction.name for instruction in shipped_instruction_set("wide").instructions)


def names_in(program: str) -> list[str]:
    """Variables of a formula, or of Stack PTX, which writes them %name, in order of appearance."""
    if variables := _STACK_PTX.findall(program):
        return list(dict.fromkeys(variables))
    try:
        nodes = [*ast.walk(ast.parse(program.replace("^", "**")))]
    except SyntaxError:
        return []  # parse_infix says what is wrong
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    names = [node for node in nodes if isinstance(node, ast.Name) and id(node) not in called]
    assigned = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    names.sort(key=lambda node: (node.lineno, node.col_offset))
    return list(dict.fromkeys(node.id for node in names if node.id not in assigned and node.id not in _CONSTANTS))


def read(program: str | NDArray[np.uint64], variables: tuple[str, ...], source: str) -> Dag:
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
    graph = dag_of(spoken, words)
    if graph.results[0] is None:
        raise UserError("leaves no f32 value", source)
    for index in (*graph.needed_by(graph.results[0]), graph.results[0]):
        node = graph.nodes[index]
        if node.kind == NodeKind.SPECIAL or (node.kind == NodeKind.PTX and _function(node.payload) is None):
            name = _instruction_names()[node.payload] if node.kind == NodeKind.PTX else "a special register"
            raise UserError(f"{name} is not a function of real numbers", source)
    return graph


def formula(text: str, *variables: str) -> Dag:
    """The graph of a formula in evo's own code."""
    return read(text, variables, text)


def words_of(graph: Dag, inputs: tuple[str, ...], outputs: tuple[str, ...]) -> NDArray[np.uint64]:
    """The program that computes a graph.

    Raises:
        UserError: it would have more than MAX_WORDS words.
    """
    words = graph.words(language(inputs, outputs), MAX_WORDS)
    if words is None:
        raise UserError(f"a program has more than {MAX_WORDS} words")
    return words


def derived(graph: Dag, num_inputs: int) -> Dag:
    """The derivatives of a graph's one result by each of its inputs, as `evo.language.derivative` has them."""
    return derivative.derived(graph, num_inputs, language((), (RESULT,)))


@cache
def _function(instruction: int) -> Any:
    """NumPy function of an instruction on real numbers; None if it is none."""
    instruction_set = shipped_instruction_set("wide")
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


def evaluate(graph: Dag, inputs: Sequence[Any]) -> list[Any]:
    """Evaluate each result in float64, for arrays that broadcast. Functions are exact, and subnormals are kept."""
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
