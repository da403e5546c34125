"""The user's own functions, such as `sq(x)` for `x*x`: phrases for searches, and names in formulas.

Owns the way from a definition to words, and where a formula is written by its name. Knows nothing of searches.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from evo.errors import UserError, renamed
from evo.instructions import Instruction
from evo.language.dag import REAL, Dag, Node, dag_of, function_node
from evo.language.formula import FUNCTIONS, Scaling, formula_of
from evo.language.functions import functions as known_functions
from evo.language.infix import parse_infix
from evo.language.program import Language, format_program
from evo.language.real_programs import RESULT, language, read, words_of
from evo.native.stack_ptx import NodeKind

MAX_WORDS = 16  # of a phrase
SAME = 1e-6  # of two numbers, relative: as near as float32 holds them
_WITH = {"a < b": "greater", "select(c, a, b)": "where", "copysign(b, a)": "sign", "fma(a, b, c)": "fma"}  # what has an operation
_COMMUTATIVE = ("a + b", "a * b", "a+b", "a*b", "max(a, b)", "min(a, b)")


@dataclass(frozen=True)
class OwnFunction:
    """A function that a user has defined.

    arguments, body: its definition. phrase: words that compute it of the topmost values, the first argument on top.
    instructions: names of those in it. pattern: its formula, whose inputs are the arguments.
    """

    name: str
    arguments: tuple[str, ...]
    body: str
    phrase: str
    instructions: tuple[str, ...]
    pattern: Dag


def own_function(head: str, body: str) -> OwnFunction:
    """The function of a definition such as `sq(x)`, `x*x`.

    Raises:
        UserError: it cannot be read, an argument is not used, or it would take too many words.
    """
    source = f"functions: {head!r}"
    match = re.fullmatch(r"([A-Za-z_]\w*)\(\s*(\w+(?:\s*,\s*\w+){0,2})\s*\)", head.strip())
    if not match:
        raise UserError("a definition begins like 'name(x)' or 'name(x, y)', with up to three arguments", source)
    name, arguments = match[1], tuple(argument.strip() for argument in match[2].split(","))
    if name in known_functions() or name in FUNCTIONS:
        raise UserError(f"there is a function {name} already; choose another name", source)
    try:
        graph = read(body, arguments, source)
    except ValueError as error:
        raise UserError(error, source) from None
    root = graph.results[0] or 0
    needed = [*graph.needed_by(root), root]
    used = {graph.nodes[index].payload for index in needed if graph.nodes[index].kind == NodeKind.INPUT}
    if lacking := [argument for i, argument in enumerate(arguments) if i not in used]:
        raise UserError(f"{body!r} does not use {lacking[0]}", source)
    spoken = language(arguments, (RESULT,))
    instructions = spoken.instruction_set.instructions
    names = {instructions[graph.nodes[index].payload].name for index in needed if graph.nodes[index].kind == NodeKind.PTX}
    phrase = _of_top(graph, root) if len(arguments) == 1 else _of_store(graph, root, len(arguments))
    if not 1 <= len(phrase) <= MAX_WORDS:
        what = f"{len(phrase)} words, {MAX_WORDS} are the most" if phrase else "its argument"
        raise UserError(f"{body!r} is {what}", source)
    pattern = formula_of(dag_of(spoken, words_of(graph, arguments, (RESULT,))), {}, {})
    return OwnFunction(name, arguments, body, " ".join(phrase), tuple(sorted(names)), pattern)


def programs_of(
    texts: Sequence[str],
    spoken: Language,
    functions: Mapping[str, OwnFunction],
    instructions: Collection[str],
    length: int,
    units: Scaling,
) -> list[str]:
    """The programs of guesses, in text form.

    Args:
        instructions: names of those that the search has.
        length: words of a program at most.
        units: offset and scale of inputs.

    Raises:
        UserError: a text is not a formula, or has a function that the search lacks.
    """
    definitions = {name: (function.arguments, function.body) for name, function in functions.items()}
    programs = []
    for number, text in enumerate(texts):
        with renamed({f"guesses[{number}]:1": f"guesses[{number}]"}):
            source = f"guesses[{number}]"
            words = parse_infix(spoken, text, source, length, instructions, units, definitions=definitions, absent=_not_drawn)
        programs.append(format_program(spoken, words))
    return programs


def _not_drawn(instruction: Instruction) -> str:
    form = instruction.semantics.infix or instruction.semantics.formula
    return f"`functions` has no {instruction.semantics.function or _WITH.get(form, form)}"


def _of_top(graph: Dag, index: int) -> list[str]:
    """Words that compute a node of the value on top, which they take."""
    node = graph.nodes[index]
    if node.kind != NodeKind.PTX:
        return [] if node.kind == NodeKind.INPUT else [_text(graph, index)]
    last = next((operand for operand in node.operands if _has_input(graph, operand)), None)  # the first operand goes last
    words: list[str] = []
    is_taken = last is None
    for position, operand in reversed(list(enumerate(node.operands))):
        part = _of_top(graph, operand)
        is_above = bool(part) and graph.nodes[operand].stack == node.stack  # a predicate has a stack of its own
        swap = ["swap.f32"] if is_above else []
        if is_taken or (operand == last and position == node.operands.index(operand)):
            words += part
            is_taken = True
        else:
            words += [*(["dup.f32"] if _has_input(graph, operand) else []), *part, *swap]
    return [*words, _text(graph, index)]


def _of_store(graph: Dag, index: int, num_arguments: int) -> list[str]:
    """Words that store the topmost values, and compute a node of them."""

    def words(index: int) -> list[str]:
        node = graph.nodes[index]
        if node.kind == NodeKind.INPUT:
            return [f"load:{node.payload}"]
        return [*(word for operand in reversed(node.operands) for word in words(operand)), _text(graph, index)]

    return [*(f"store.f32:{i}" for i in range(num_arguments)), *words(index)]


def _has_input(graph: Dag, index: int) -> bool:
    return any(graph.nodes[i].kind == NodeKind.INPUT for i in (*graph.needed_by(index), index))


def _text(graph: Dag, index: int) -> str:
    node = graph.nodes[index]
    if node.kind == NodeKind.CONSTANT:
        return repr(float(np.uint32(node.payload).view(np.float32)))
    return language((), (RESULT,)).instruction_set.instructions[node.payload].name


def named(formula: Dag, functions: Mapping[str, OwnFunction]) -> Dag:
    """The formula with calls of functions in place of their definitions."""
    nodes = list(formula.nodes)
    for function in functions.values():
        pattern = function.pattern
        root = pattern.results[0] or 0
        letters = [name for name, _ in pattern.inputs]
        form = f"{function.name}({', '.join('abc'[: len(letters)])})"
        for number, node in enumerate(nodes):
            bound: dict[str, int] = {}
            if node.kind == NodeKind.PTX and _matches(pattern, root, nodes, number, bound):
                nodes[number] = function_node(form, tuple(bound[letter] for letter in letters))
    return replace(formula, nodes=tuple(nodes)).trimmed()


def _matches(pattern: Dag, index: int, nodes: list[Node], number: int, bound: dict[str, int]) -> bool:
    """Return whether a node matches a pattern's node; adds the arguments to `bound`."""
    wanted, node = pattern.nodes[index], nodes[number]
    if wanted.kind == NodeKind.INPUT:
        return bound.setdefault(wanted.name, number) == number
    if wanted.kind != node.kind or wanted.type != node.type:
        return False
    if wanted.kind == NodeKind.CONSTANT:
        return math.isclose(wanted.number, node.number, rel_tol=SAME) if node.type == REAL else False
    if wanted.semantics.infix != node.semantics.infix or len(wanted.operands) != len(node.operands):
        return False
    for operands in [node.operands, node.operands[::-1]] if wanted.semantics.infix in _COMMUTATIVE else [node.operands]:
        tried = dict(bound)
        if all(_matches(pattern, inner, nodes, operand, tried) for inner, operand in zip(wanted.operands, operands, strict=True)):
            bound.update(tried)
            return True
    return False
