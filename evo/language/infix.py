"""Formulas as people write them, such as `sin(x0)*2 + 1`, as programs.

Owns which instructions a formula's operators and functions stand for. Reads what `evo.language.formula_text.infix` writes: a line
`name = formula` for each local variable and output; a task with one output may have the formula alone. Beside Python's signs it
takes `x^2` and signs of print, such as `x²` and `2·x`. Knows nothing of tasks or searches.
Slightly long: one reader takes a formula.
"""

import ast
import math
import operator
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.errors import UserError, did_you_mean, suggestion
from evo.instructions import FLOATS, HALVES
from evo.language.dag import Builder, Node
from evo.language.formula import Scaling, units_text
from evo.language.functions import forms, functions
from evo.language.printer import identifier
from evo.language.program import Language
from evo.language.usual_names import LN_2
from evo.native.stack_ptx import NodeKind

_LARGEST_POWER = 64
_IN_PRINT = str.maketrans({"^": "**", "²": "**2", "³": "**3", "·": "*", "\u00d7": "*", "÷": "/", "\u2212": "-", "π": "pi"})
_CONSTANTS = {"pi": math.pi, "e": math.e}

_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "a + b",
    ast.Sub: "a - b",
    ast.Mult: "a * b",
    ast.Div: "a / b",
    ast.Lt: "a < b",
    ast.Gt: "a > b",
    ast.Eq: "a == b",
    ast.NotEq: "a != b",
}
_FOLDED: dict[str, Callable[[Any, Any], Any]] = {
    "a + b": operator.add,
    "a - b": operator.sub,
    "a * b": operator.mul,
    "a / b": operator.truediv,
}


@dataclass(frozen=True)
class _Number:
    """A number whose type its use decides."""

    value: int | float


_Operand = int | _Number  # the index of a node, or a number


class _Wrong(Exception):
    """A formula cannot be a program; the message says why."""


class _Lacking(Exception):
    """A form does not fit: its instructions are not at hand, or its operands have other types. The message says which."""


def parse_infix(
    language: Language,
    text: str,
    source: str,
    max_length: int,
    instructions: Collection[str],
    units: Scaling = MappingProxyType({}),
) -> NDArray[np.uint64]:
    """The words of a formula, `(max_length,)` uint64.

    Args:
        source: what messages call the text.
        instructions: names of those that may be used.
        units: offset and scale of inputs that programs read as `(input - offset) / scale`; the formula has the inputs themselves.

    Raises:
        UserError: the text is not a formula, an operator or function has no instruction, or the program would be longer. The
            message names source and line.
    """
    try:
        body = ast.parse(text.translate(_IN_PRINT)).body
    except SyntaxError as error:
        hint = "; products have a sign: 2*x" if error.msg == "invalid decimal literal" else ""
        raise UserError(f"not a formula: {error.msg}{hint}", f"{source}:{error.lineno or 1}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise UserError(f"not a formula: {str(error) or 'nested too deeply'}", source) from None
    reader = _Reader(language, frozenset(instructions), units)
    for statement in body:
        try:
            reader.read(statement)
        except (_Wrong, _Lacking) as error:
            raise UserError(error, f"{source}:{statement.lineno}") from None
        except RecursionError:
            raise UserError("nested too deeply", f"{source}:{statement.lineno}") from None
    lacking = [name for name, _ in language.outputs if name not in reader.results]
    if lacking:
        example = f"{lacking[0]} = {language.inputs[0][0] if language.inputs else 1}"
        raise UserError(f"no formula for the output '{lacking[0]}'; write a line such as: {example}", source)
    graph = reader.builder.graph(*(reader.results[name] for name, _ in language.outputs))
    words = graph.words(language, max_length)
    if words is None:
        raise UserError(f"takes more than {max_length} words, which is program.max_length", source)
    return words


_text = ast.unparse


class _Reader:
    """Makes nodes of statements."""

    def __init__(self, language: Language, instructions: frozenset[str], units: Scaling):
        self._language = language
        self._set = language.instruction_set
        self._allowed = instructions
        self.builder = Builder(language.instruction_set)
        self._nodes = self.builder.nodes
        self.results: dict[str, int] = {}
        self._inputs: dict[str, int] = {}  # name -> index among the inputs
        taken: set[str] = set()
        self._read_as: dict[str, str] = {}  # what a program reads, as formulas have it -> the input
        self._in_units: dict[str, str] = {}  # an input -> the same, of what a program reads
        for index, (name, _) in enumerate(language.inputs):
            for each in (name, identifier(name, taken)):
                self._inputs[each] = index
                if name in units:
                    offset, scale = units[name]
                    self._read_as[_plain(_parsed(units_text(each, offset, scale)))] = each
                    self._in_units[each] = f"{each}*{scale!r}" + (f" + {offset!r}" if offset else "")
        self._locals: dict[str, _Operand] = {}
        self._numbers: dict[int, float] = {}  # node of a constant -> the number that was written
        self._base_2: dict[int, int] = {}  # node of a natural logarithm -> that of the logarithm to base 2
        self._forms = forms(with_halves=any(stack.constant_type in HALVES for stack in self._set.stacks))
        self._may_convert = True  # operands, by instructions that keep their value or round it

    def read(self, statement: ast.stmt) -> None:
        """Takes a line. Raises _Wrong."""
        outputs = dict(self._language.outputs)
        if isinstance(statement, ast.Expr):
            if len(outputs) != 1:
                raise _Wrong(f"which output is this? Write name = formula, for each of {', '.join(outputs)}")
            (name,) = outputs
            formula = statement.value
        elif isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name):
            name, formula = statement.targets[0].id, statement.value
        else:
            raise _Wrong(f"'{_text(statement)}' is not a formula; write name = formula, or a formula alone")
        if name in self._locals or name in self.results:
            raise _Wrong(f"'{name}' has a formula already")
        value = self._value(formula)
        if name in outputs:
            stack = self._set.stack_index(outputs[name])
            self.results[name] = self._of_type(value, stack, f"the output '{name}'")
        elif name in self._inputs:
            raise _Wrong(f"'{name}' is an input")
        if name not in self._inputs:  # an output of that name is the input until the end
            self._locals[name] = value

    def _value(self, formula: ast.expr) -> _Operand:
        """Raises _Wrong."""
        if self._read_as and (name := self._read_as.get(_plain(formula))):
            return self._input(name)
        if isinstance(formula, ast.Constant):
            if isinstance(formula.value, bool) or not isinstance(formula.value, (int, float)):
                raise _Wrong(f"{formula.value!r} is not a number")
            return _number(formula.value)
        if isinstance(formula, ast.Name):
            return self._named(formula.id)
        if isinstance(formula, ast.UnaryOp) and isinstance(formula.op, (ast.USub, ast.UAdd)):
            value = self._value(formula.operand)
            if isinstance(formula.op, ast.UAdd):
                return value
            return _number(-value.value) if isinstance(value, _Number) else self._apply("-a", [value], formula)
        if isinstance(formula, ast.BinOp) and isinstance(formula.op, ast.Pow):
            return self._power(self._value(formula.left), self._value(formula.right), formula)
        if isinstance(formula, ast.BinOp) and type(formula.op) in _OPERATORS:
            return self._binary(formula)
        if isinstance(formula, ast.Compare) and len(formula.ops) == 1 and type(formula.ops[0]) in _OPERATORS:
            operands = [self._value(formula.left), self._value(formula.comparators[0])]
            return self._apply(_OPERATORS[type(formula.ops[0])], operands, formula)
        if isinstance(formula, ast.IfExp):
            operands = [self._value(each) for each in (formula.test, formula.body, formula.orelse)]
            return self._apply("select(a, b, c)", operands, formula)
        if isinstance(formula, ast.Call) and isinstance(formula.func, ast.Name) and not formula.keywords:
            return self._call(formula.func.id, [self._value(argument) for argument in formula.args], formula)
        raise _Wrong(f"'{_text(formula)}' cannot be a program: there are + - * / **, < > == !=, if else, and functions")

    def _named(self, name: str) -> _Operand:
        if name in self._locals:
            return self._locals[name]
        if name in self._in_units:
            text = self._in_units.pop(name)
            try:
                return self._value(_parsed(text))
            finally:
                self._in_units[name] = text
        if name in self._inputs:
            return self._input(name)
        if name in _CONSTANTS:
            return _Number(_CONSTANTS[name])
        known = [*(name for name, _ in self._language.inputs), *self._locals]
        raise _Wrong(f"unknown name '{name}', {did_you_mean(name, known)}")

    def _input(self, name: str) -> int:
        index = self._inputs[name]
        return self._node(NodeKind.INPUT, index, self._set.stack_index(self._language.inputs[index][1]))

    def _binary(self, formula: ast.BinOp) -> _Operand:
        form = _OPERATORS[type(formula.op)]
        is_reciprocal = form == "a / b" and isinstance(formula.left, ast.Constant) and formula.left.value == 1
        right = formula.right
        if is_reciprocal and isinstance(right, ast.Call) and isinstance(right.func, ast.Name) and right.func.id == "sqrt":
            operands = [self._value(argument) for argument in right.args]
            if len(operands) == 1 and (found := self._first("1 / sqrt(a)", operands)) is not None:
                return found
        first, second = self._value(formula.left), self._value(right)
        if isinstance(first, _Number) and isinstance(second, _Number):
            return self._folded(form, first.value, second.value, formula)
        return self._apply("1 / a", [second], formula) if is_reciprocal else self._apply(form, [first, second], formula)

    @staticmethod
    def _folded(form: str, first: int | float, second: int | float, formula: ast.expr) -> _Number:
        """Fold an operator of two numbers: whole ones stay whole, others are float32, as they would be in a program."""
        is_whole = isinstance(first, int) and isinstance(second, int) and form != "a / b"
        try:
            if is_whole:
                return _number(_FOLDED[form](first, second))
            with np.errstate(divide="raise", over="raise", invalid="raise"):
                return _number(float(_FOLDED[form](np.float32(first), np.float32(second))))
        except ArithmeticError as error:
            raise _Wrong(f"'{_text(formula)}': {error}") from None

    def _power(self, base: _Operand, exponent: _Operand, formula: ast.expr) -> _Operand:
        if isinstance(exponent, _Number):
            number = exponent.value
            if isinstance(base, _Number):
                try:
                    return _number(float(base.value) ** number)
                except (ArithmeticError, TypeError) as error:
                    raise _Wrong(f"'{_text(formula)}': {error}") from None
            if number == 0.5:
                return self._apply("sqrt(a)", [base], formula)
            if number == int(number) and 1 <= abs(number) <= _LARGEST_POWER:
                value = self._whole_power(base, abs(int(number)), formula)
                return self._apply("1 / a", [value], formula) if number < 0 else value
            if number == int(number):
                raise _Wrong(f"'{_text(formula)}': whole exponents are 1 to {_LARGEST_POWER}, or -1 to -{_LARGEST_POWER}")
        return self._apply("pow(a, b)", [base, exponent], formula)

    def _whole_power(self, base: _Operand, exponent: int, formula: ast.expr) -> _Operand:
        """By repeated squaring."""
        if exponent == 1:
            return base
        root = self._whole_power(base, exponent // 2, formula)
        value = self._apply("a * b", [root, root], formula)
        return self._apply("a * b", [value, base], formula) if exponent % 2 else value

    def _call(self, name: str, operands: list[_Operand], formula: ast.expr) -> _Operand:
        form = functions().get(name)
        if form:
            if len(operands) != form.count(",") + 1:
                raise _Wrong(f"'{_text(formula)}': {name} takes {form.count(',') + 1} operands, got {len(operands)}")
            if name == "pow":
                return self._power(operands[0], operands[1], formula)
            if name == "exp" and (exponent := self._scaled(operands[0], 1.0 / LN_2)) is not None:
                return self._apply("exp2(a)", [exponent], formula)
            found = self._apply(form, operands, formula)
            if name == "log" and not isinstance(found, _Number):
                self._base_2[found] = self._nodes[found].operands[0]
            return found
        try:
            return self._instruction(name, operands)
        except _Lacking as error:
            if name in self._instructions():
                raise _Wrong(f"'{_text(formula)}': {error}") from None
            near = suggestion(name, [*functions(), *self._instructions()])
            raise _Wrong(f"unknown function '{name}', {near or 'one of: ' + ', '.join(sorted(functions()))}") from None

    def _scaled(self, value: _Operand, factor: float) -> _Operand | None:
        """A product times a factor, which its number takes; None: it has no number."""
        if isinstance(value, _Number) or self._nodes[value].kind == NodeKind.CONSTANT:
            number = value.value if isinstance(value, _Number) else self._numbers[value]
            return _Number(number * factor)
        node = self._nodes[value]
        instruction = self._set.instructions[node.payload] if node.kind == NodeKind.PTX else None
        if instruction and instruction.semantics.function in ("mul", "div", "neg"):
            for k, operand in enumerate(node.operands[:1] if instruction.semantics.function == "div" else node.operands):
                if (scaled := self._scaled(operand, factor)) is not None:
                    return self._instruction(instruction.name, [*node.operands[:k], scaled, *node.operands[k + 1 :]])
            if instruction.semantics.function == "neg":
                return self._first("a * b", [node.operands[0], _Number(-factor)])
        return None

    def _apply(self, form: str, operands: list[_Operand], formula: ast.expr) -> _Operand:
        pair = operands if form == "a * b" else [_Number(-1), *operands] if form == "-a" else []
        for number, logarithm in (pair, pair[::-1]) if pair else ():
            if isinstance(number, _Number) and not isinstance(logarithm, _Number) and logarithm in self._base_2:
                form, operands = "a * b", [self._base_2[logarithm], _Number(number.value * LN_2)]
        reasons: list[str] = []
        for may_convert in (False, True):
            for each in self._forms[form]:
                self._may_convert = may_convert
                try:
                    return self._built(_parsed(each), dict(zip("abc", operands, strict=False)))
                except _Lacking as error:
                    reasons.append(str(error))
                finally:
                    self._may_convert = True
        raise _Wrong(f"'{_text(formula)}': {'; or '.join(dict.fromkeys(reasons))}")

    def _first(self, form: str, operands: list[_Operand]) -> _Operand | None:
        """By the first way in which a form can be written; None: there is none."""
        for each in self._forms[form]:
            try:
                return self._built(_parsed(each), dict(zip("abc", operands, strict=False)))
            except _Lacking:
                continue
        return None

    def _built(self, form: ast.expr, operands: Mapping[str, _Operand]) -> _Operand:
        if isinstance(form, ast.Name):
            return operands[form.id]
        if isinstance(form, ast.Call) and isinstance(form.func, ast.Name):
            return self._instruction(form.func.id, [self._built(argument, operands) for argument in form.args])
        return _Number(ast.literal_eval(form))

    def _instruction(self, name: str, operands: list[_Operand]) -> int:
        """Raises _Lacking."""
        if name not in self._instructions():
            raise _Lacking(f"the instruction set has no {name}")
        index = self._set.instruction_index(name)
        instruction = self._set.instructions[index]
        if name not in self._allowed:
            raise _Lacking(f"{name} is not in program.vocabulary.instructions")
        types = [self._set.arg_types[arg] for arg in (*instruction.args, *instruction.rets)]
        if any(kind.num_vec_elems for kind in types) or len(instruction.rets) != 1:
            raise _Lacking(f"{name} has vectors or several results")
        if len(operands) != len(instruction.args):
            raise _Lacking(f"{name} takes {len(instruction.args)} operands, got {len(operands)}")
        stacks = [kind.stack_idx for kind in types]
        nodes = [self._of_type(value, stack, name) for value, stack in zip(operands, stacks[:-1], strict=True)]
        return self._node(NodeKind.PTX, index, stacks[-1], tuple(nodes))

    def _of_type(self, value: _Operand, stack: int, place: str) -> int:
        """The node of an operand of this stack. Raises _Lacking for another type, and _Wrong for a number without one."""
        stacks = self._set.stacks
        if isinstance(value, _Number):
            type_name = stacks[stack].constant_type
            if type_name is None:
                raise _Lacking(f"{place} takes {stacks[stack].name.lower()}, which has no constants")
            number = value.value
            literal = repr(float(number)) if type_name in FLOATS else repr(int(number) if number == int(number) else number)
            try:
                word = self._language.encode(f"{literal}:{stacks[stack].name.lower()}")
            except ValueError as error:
                raise _Wrong(str(error)) from None
            node = self._node(NodeKind.CONSTANT, word >> 32, stack)
            self._numbers.setdefault(node, float(number))
            return node
        if self._nodes[value].stack != stack:
            if self._may_convert and (name := self._conversion(self._nodes[value].stack, stack)):
                return self._instruction(name, [value])
            given, wanted = (stacks[each].name.lower() for each in (self._nodes[value].stack, stack))
            raise _Lacking(f"{place} takes {wanted}, got {given}")
        return value

    def _conversion(self, given: int, wanted: int) -> str | None:
        """The instruction at hand that makes a value of one stack one of another, whose derivative is 1; None: there is none."""
        for instruction in self._set.instructions:
            stacks = [self._set.arg_types[arg].stack_idx for arg in (*instruction.args, *instruction.rets)]
            if stacks == [given, wanted] and instruction.semantics.derivative == {"a": "w"} and instruction.name in self._allowed:
                return instruction.name
        return None

    def _node(self, kind: NodeKind, payload: int, stack: int, operands: tuple[int, ...] = ()) -> int:
        return self.builder.node(Node(kind, payload, stack, operands))

    def _instructions(self) -> list[str]:
        return [instruction.name for instruction in self._set.instructions]


def _plain(formula: ast.expr) -> str:
    return re.sub(r"\.0\b", "", ast.unparse(formula))


@cache
def _parsed(form: str) -> ast.expr:
    return ast.parse(form, mode="eval").body


def _number(value: Any) -> _Number:
    try:
        if not isinstance(value, complex) and math.isfinite(value):
            return _Number(value)
    except OverflowError:
        raise _Wrong(f"a number of {len(str(value))} digits is out of range") from None
    raise _Wrong(f"{value} is not a finite number")
