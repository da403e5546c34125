"""Graphs as lines of text: names, parentheses and local variables.

Owns these, for every style of text; a style is what a target writes for a node. Knows nothing of runs, tasks or files.
"""

import ast
import keyword
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from evo.c_text import KEYWORDS
from evo.language.dag import Dag, Node
from evo.native.stack_ptx import NodeKind

MAX_DEPTH = 6  # of operations within a line; a deeper one becomes a line of its own
_ATOM = 9  # precedence of names, calls and numbers


@dataclass(frozen=True)
class Style:
    """Style of written values.

    form: of an instruction, a formula of its operands a, b and c; empty: it is written as a call. call: what stands for an
    instruction without a form; None: it is refused. constant: of a type and its bits.
    """

    form: Callable[[Node], str]
    call: Callable[[Node], str] | None
    constant: Callable[[str, int], str]
    reserved: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Lines:
    """A program as assignments.

    inputs: name of each input. locals: (name, PTX type, text) in order. outputs: text of each output.
    """

    inputs: tuple[str, ...]
    locals: tuple[tuple[str, str, str], ...]
    outputs: tuple[str, ...]


class Unsupported(Exception):
    """A program has no text in a style; the message names the instruction, special register or type at fault."""


def with_names(formula: Dag, names: Mapping[str, str]) -> Dag:
    """A graph whose inputs have the user's names in texts, in backticks unless they are plain."""
    names = {
        name: user_name if user_name == identifier(user_name, set()) else f"`{user_name}`" for name, user_name in names.items()
    }

    def named(node: Node) -> Node:
        is_named = node.kind == NodeKind.INPUT and node.name in names
        return replace(node, row=replace(node.row, name=names[node.name])) if is_named else node

    inputs = tuple((names.get(name, name), kind) for name, kind in formula.inputs)
    return replace(formula, inputs=inputs, nodes=tuple(map(named, formula.nodes)))


def lines_of(expression: Dag, style: Style) -> Lines:
    """A program's assignments. A value that is used more than once becomes a local variable.

    Raises:
        Unsupported: the style has no text for an instruction or a special register.
    """
    taken = set(style.reserved)
    names = {name: name if name.startswith("`") else identifier(name, taken) for name, _ in expression.inputs}
    taken |= {identifier(name, set()) for name, _ in expression.outputs}
    uses = expression.num_uses()
    texts: list[tuple[str, int, int]] = []  # text, precedence, depth
    written: list[tuple[str, str, str]] = []
    for index, (value, num_uses) in enumerate(zip(expression.nodes, uses, strict=True)):
        text, precedence, depth = _text(value, texts, names, style)
        is_deep = depth > MAX_DEPTH and index not in expression.results
        if value.kind == NodeKind.PTX and (num_uses > 1 or is_deep):
            name = identifier(f"t{len(written)}", taken)
            written.append((name, value.type, text))
            text, precedence, depth = name, _ATOM, 0
        texts.append((text, precedence, depth))
    outputs = []
    for (_, type_name), result in zip(expression.outputs, expression.results, strict=True):
        outputs.append(style.constant(type_name, 0) if result is None else texts[result][0])
    return Lines(tuple(names.values()), tuple(written), tuple(outputs))


def _text(value: Node, texts: list[tuple[str, int, int]], names: dict[str, str], style: Style) -> tuple[str, int, int]:
    if value.kind == NodeKind.INPUT:
        return names[value.name], _ATOM, 0
    if value.kind == NodeKind.CONSTANT:
        text = style.constant(value.type, value.payload)
        return text, _ATOM if not text.startswith("-") else _NEGATIVE, 0
    depth = 1 + max((texts[operand][2] for operand in value.operands), default=0)
    form = style.form(value)
    if form == "a":
        return texts[value.operands[0]]
    if form:
        template, precedence, contexts = _template(form)
        parts = [_operand(texts[operand], *contexts.get(index, (0, False))) for index, operand in enumerate(value.operands)]
        return template.format(*parts), precedence, depth
    if style.call is None:
        raise Unsupported(value.name)
    return f"{style.call(value)}({', '.join(texts[operand][0] for operand in value.operands)})", _ATOM, depth


@cache
def _template(form: str) -> tuple[str, int, dict[int, tuple[int, bool]]]:
    """A formula with `{0}` for its first operand and so on, its precedence, and for each operand that of its context and
    whether it is on the right there.
    """
    tree = ast.parse(form, mode="eval").body
    contexts: dict[int, tuple[int, bool]] = {}
    for node in ast.walk(tree):
        for number, child in enumerate(ast.iter_child_nodes(node)):
            if isinstance(child, ast.Name) and child.id in "abc":
                index = "abc".index(child.id)
                is_last = number > 0
                if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):  # a**b**c is a**(b**c)
                    is_last = not is_last
                contexts[index] = max(contexts.get(index, (0, False)), (_precedence(node), is_last))
    return re.sub(r"\b[abc]\b", lambda letter: f"{{{'abc'.index(letter[0])}}}", form), _precedence(tree), contexts


def _precedence(node: ast.AST) -> int:
    return _PRECEDENCES.get(type(node.op if isinstance(node, ast.BinOp | ast.UnaryOp) else node), _ATOM)


def _operand(operand: tuple[str, int, int], precedence: int, is_right: bool) -> str:
    """An operand's text, in parentheses where its context needs them: none within a call."""
    text, inner, _ = operand
    needs = inner < precedence or (is_right and inner == precedence) or (is_right and inner == _NEGATIVE)
    return f"({text})" if needs and precedence < _ATOM else text


_PRODUCT = 4
_NEGATIVE = 5  # a minus sign binds tighter than a product, and less than a power
_PRECEDENCES: dict[type[ast.AST], int] = {
    ast.Name: 0,
    ast.Compare: 2,
    ast.Add: 3,
    ast.Sub: 3,
    ast.Mult: _PRODUCT,
    ast.Div: _PRODUCT,
    ast.USub: _NEGATIVE,
    ast.Pow: 6,
}


def identifier(name: str, taken: set[str]) -> str:
    """A name that Python and C accept and that is not taken; takes it."""
    name = re.sub(r"\W", "_", name)
    if name[0].isdigit():
        name = f"_{name}"
    while name in taken or keyword.iskeyword(name) or name in KEYWORDS or name in _OWN_NAMES:
        name += "_"
    taken.add(name)
    return name


_OWN_NAMES = "main program size_t int32_t uint32_t int64_t uint64_t INFINITY NAN np numpy".split()  # of the code around it


def short_number(number: float) -> str:
    """The shortest decimal of a float64, such as 1.7e9; 123000 stays as it is."""
    plain = repr(number).removesuffix(".0")
    if not np.isfinite(number):
        return plain
    mantissa, _, exponent = np.format_float_scientific(number, trim="-").partition("e")
    scientific = f"{mantissa}e{int(exponent)}"
    return scientific if "e" in plain or len(scientific) < len(plain) - 3 else plain
