"""A program as expressions: the DAG of its lowered form, and how that DAG becomes lines of text.

Owns names, parentheses and local variables in these lines. Knows nothing of runs, tasks or files; formula_text.py and source.py
have the styles, formula.py makes an expression one of real numbers.
"""

import ast
import keyword
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from evo.c_text import KEYWORDS
from evo.instructions import HALVES
from evo.instructions.description import Semantics
from evo.language.program import Language
from evo.native.stack_ptx import NO_VALUE, NodeKind

REAL = "real"  # type of a number that is computed in float64 and has no PTX type
CAST = "cast"  # name of what makes an f32 a real number, or the other way round
MAX_DEPTH = 6  # of operations within a line; a deeper one becomes a line of its own
_ATOM = 9  # precedence of names, calls and numbers


@dataclass(frozen=True)
class Value:
    """A value of a program. type: a PTX type such as `f32`, or `bf16` although its registers are b16, or REAL.

    kind: of its node. name: of an input or special register, or an instruction. ptx: of an instruction, in full; empty: a
    function of real numbers stands for it. operands: indices of values. bits: of a constant; of a real number, as float64.
    result: which of its node's results it is, of `num_results`. has_vectors: whether the instruction takes or gives vectors.
    semantics: of an instruction.
    """

    kind: NodeKind
    type: str
    name: str = ""
    ptx: str = ""
    operands: tuple[int, ...] = ()
    bits: int = 0
    result: int = 0
    num_results: int = 1
    has_vectors: bool = False
    semantics: Semantics = field(default_factory=Semantics)


@dataclass(frozen=True)
class Expression:
    """What a program computes.

    inputs, outputs: (name, type), as the task declares them, or REAL. values: each after its operands. results: for each output
    the index of its value; None: the program leaves none, and the output is zero.
    """

    inputs: tuple[tuple[str, str], ...]
    outputs: tuple[tuple[str, str], ...]
    values: tuple[Value, ...]
    results: tuple[int | None, ...]

    def instructions(self) -> dict[str, str]:
        """Name -> PTX of the instructions, in order of their first use."""
        return {value.name: value.ptx for value in self.values if value.ptx}

    def num_uses(self) -> list[int]:
        """How often each value is an operand or a result."""
        uses = [0] * len(self.values)
        for value in self.values:
            for operand in value.operands:
                uses[operand] += 1
        for result in self.results:
            if result is not None:
                uses[result] += 1
        return uses


_NO_SEMANTICS = Semantics()  # of what is not an instruction


def expression_of(language: Language, words: NDArray[np.uint64]) -> Expression:
    """The expression of a program of `(max_length,)` words."""
    lowered = language.lowering.lower(words)
    instruction_set = language.instruction_set
    types = [s.constant_type if s.constant_type in HALVES else s.literal_prefix for s in instruction_set.stacks]
    places = dict.fromkeys(range(len(lowered.value_nodes)), 0)
    all_operands, value_stacks = lowered.operands.tolist(), lowered.value_stacks.tolist()
    values: list[Value] = []
    for number, _, num_operands, count, payload, start, first_value in lowered.nodes.tolist():
        kind = NodeKind(number)
        operands = tuple(places[value] for value in all_operands[start : start + num_operands])
        for result in range(count):
            value = first_value + result
            places[value] = len(values)
            type_name = types[value_stacks[value]]
            name, ptx, has_vectors, semantics = "", "", False, _NO_SEMANTICS
            if kind == NodeKind.INPUT:
                name = language.registers[payload][0]
            elif kind == NodeKind.SPECIAL:
                name = instruction_set.special_registers[payload].ptx
            elif kind == NodeKind.PTX:
                instruction = instruction_set.instructions[payload]
                name, ptx, semantics = instruction.name, instruction.ptx, instruction.semantics
                has_vectors = payload in instruction_set.with_vectors
            bits = payload if kind == NodeKind.CONSTANT else 0
            values.append(Value(kind, type_name, name, ptx, operands, bits, result, count, has_vectors, semantics))
    by_type = tuple((name, types[instruction_set.stack_index(kind)]) for name, kind in language.inputs)
    outputs = tuple((name, types[instruction_set.stack_index(kind)]) for name, kind in language.outputs)
    results = tuple(None if value == NO_VALUE else places[int(value)] for value in lowered.request_values)
    return Expression(by_type, outputs, tuple(values), results)


def with_names(expression: Expression, names: Mapping[str, str]) -> Expression:
    """An expression whose inputs texts call by the user's names, in backticks unless they are plain."""
    names = {name: own if own.isidentifier() else f"`{own}`" for name, own in names.items()}
    values = (
        replace(value, name=names.get(value.name, value.name)) if value.kind == NodeKind.INPUT else value
        for value in expression.values
    )
    inputs = tuple((names.get(name, name), kind) for name, kind in expression.inputs)
    return replace(expression, inputs=inputs, values=tuple(values))


# ---- texts ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Style:
    """How values are written.

    form: of an instruction, a formula of its operands a, b and c; empty: it is written as a call. call: what stands for an
    instruction without a form; None: it is refused. constant: of a type and its bits.
    """

    form: Callable[[Value], str]
    call: Callable[[Value], str] | None
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


def lines_of(expression: Expression, style: Style) -> Lines:
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
    for index, (value, num_uses) in enumerate(zip(expression.values, uses, strict=True)):
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


def _text(value: Value, texts: list[tuple[str, int, int]], names: dict[str, str], style: Style) -> tuple[str, int, int]:
    if value.kind == NodeKind.INPUT:
        return names[value.name], _ATOM, 0
    if value.kind == NodeKind.CONSTANT:
        text = style.constant(value.type, value.bits)
        return text, _ATOM if not text.startswith("-") else _NEGATIVE, 0
    depth = 1 + max((texts[operand][2] for operand in value.operands), default=0)
    form = style.form(value)
    if form == "a":
        return texts[value.operands[0]]
    if form:
        template, precedence, places = _template(form)
        parts = [_operand(texts[operand], *places.get(index, (0, False))) for index, operand in enumerate(value.operands)]
        return template.format(*parts), precedence, depth
    if style.call is None:
        raise Unsupported(value.name)
    return f"{style.call(value)}({', '.join(texts[operand][0] for operand in value.operands)})", _ATOM, depth


@cache
def _template(form: str) -> tuple[str, int, dict[int, tuple[int, bool]]]:
    """A formula with `{0}` for its first operand and so on, its precedence, and for each operand the precedence of what it is in
    and whether it is on the right there.
    """
    tree = ast.parse(form, mode="eval").body
    places: dict[int, tuple[int, bool]] = {}
    for node in ast.walk(tree):
        for number, child in enumerate(ast.iter_child_nodes(node)):
            if isinstance(child, ast.Name) and child.id in "abc":
                index = "abc".index(child.id)
                places[index] = max(places.get(index, (0, False)), (_precedence(node), number > 0))
    return re.sub(r"\b[abc]\b", lambda letter: f"{{{'abc'.index(letter[0])}}}", form), _precedence(tree), places


def _precedence(node: ast.AST) -> int:
    return _PRECEDENCES.get(type(node.op if isinstance(node, ast.BinOp | ast.UnaryOp) else node), _ATOM)


def _operand(operand: tuple[str, int, int], precedence: int, is_right: bool) -> str:
    """An operand's text, in parentheses where its place needs them: none within a call."""
    text, own, _ = operand
    needs = own < precedence or (is_right and own == precedence) or (is_right and own == _NEGATIVE)
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


def number_of(bits: int) -> float:
    """The real number with these bits."""
    return float(np.uint64(bits).view(np.float64))


def short_number(number: float) -> str:
    """The shortest decimal of a float64, such as 1.7e9; 123000 stays as it is."""
    plain = repr(number).removesuffix(".0")
    if not np.isfinite(number):
        return plain
    mantissa, _, exponent = np.format_float_scientific(number, trim="-").partition("e")
    scientific = f"{mantissa}e{int(exponent)}"
    return scientific if "e" in plain or len(scientific) < len(plain) - 3 else plain
