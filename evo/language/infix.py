"""Formulas as people write them, such as `sin(x0)*2 + 1`, as programs.

Owns how texts are read; `evo.language.operations` owns which instructions operators and functions stand for. Reads what
`evo.language.formula_text.infix` writes: a line `name = formula` for each local variable and output; a task with one output may
have the formula alone. Beside Python's signs it takes `x^2` and signs of print, such as `x²` and `2·x`. Knows nothing of tasks or
searches.
"""

import ast
import math
import operator
import re
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.errors import UserError, did_you_mean, suggestion
from evo.language.formula import Scaling, units_text
from evo.language.functions import DEFINED, LACKING, functions
from evo.language.operations import Absent, Lacking, Number, Operand, Operations, Wrong, finite, not_in_vocabulary, parsed
from evo.language.printer import identifier
from evo.language.program import Language
from evo.language.usual_names import LN_2
from evo.native.stack_ptx import NodeKind

_LARGEST_POWER = 64
IN_PRINT = str.maketrans({"^": "**", "²": "**2", "³": "**3", "·": "*", "\u00d7": "*", "÷": "/", "\u2212": "-", "π": "pi"})
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
_OPPOSITES: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.LtE: ast.Gt, ast.GtE: ast.Lt}
_FOLDED: dict[str, Callable[[Any, Any], Any]] = {
    "a + b": operator.add,
    "a - b": operator.sub,
    "a * b": operator.mul,
    "a / b": operator.truediv,
}


Definitions = Mapping[str, tuple[tuple[str, ...], str]]  # name of a function -> arguments and formula


def parse_infix(
    language: Language,
    text: str,
    source: str,
    max_length: int,
    instructions: Collection[str],
    units: Scaling = MappingProxyType({}),
    *,
    definitions: Definitions = MappingProxyType({}),
    absent: Absent = not_in_vocabulary,
) -> NDArray[np.uint64]:
    """The words of a formula, `(max_length,)` uint64.

    Args:
        source: the text's name in messages.
        instructions: names of those that may be used.
        units: offset and scale of inputs that programs read as `(input - offset) / scale`; the formula has the inputs themselves.
        definitions: functions beside the known ones.
        absent: gives the message for an instruction that may not be used.

    Raises:
        UserError: the text is not a formula, an operator or function has no instruction, or the program would be longer. The
            message names source and line.
    """
    try:
        body = ast.parse(text.translate(IN_PRINT)).body
    except SyntaxError as error:
        hint = "; products have a sign: 2*x" if error.msg == "invalid decimal literal" else ""
        raise UserError(f"not a formula: {error.msg}{hint}", f"{source}:{error.lineno or 1}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise UserError(f"not a formula: {str(error) or 'nested too deeply'}", source) from None
    reader = _Reader(language, frozenset(instructions), units, {**DEFINED, **definitions}, absent)
    for statement in body:
        try:
            reader.read(statement)
        except (Wrong, Lacking) as error:
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


class _Reader(Operations):
    """Makes nodes of statements."""

    def __init__(
        self, language: Language, instructions: frozenset[str], units: Scaling, definitions: Definitions, absent: Absent
    ):
        super().__init__(language, instructions, absent)
        self._definitions = definitions
        self.results: dict[str, int] = {}
        self._inputs: dict[str, int] = {}  # name -> index among the inputs
        taken: set[str] = set()
        self._read_as: dict[str, str] = {}  # a scaled input as a formula -> the input
        self._in_units: dict[str, str] = {}  # an input -> the input as a formula of its scaled value
        for index, (name, _) in enumerate(language.inputs):
            for spelling in (name, identifier(name, taken)):
                self._inputs[spelling] = index
                if name in units:
                    offset, scale = units[name]
                    self._read_as[_plain(parsed(units_text(spelling, offset, scale)))] = spelling
                    self._in_units[spelling] = f"{spelling}*{scale!r}" + (f" + {offset!r}" if offset else "")
        self._locals: dict[str, Operand] = {}

    def read(self, statement: ast.stmt) -> None:
        """Takes a line. Raises Wrong."""
        outputs = dict(self.language.outputs)
        if isinstance(statement, ast.Expr):
            if len(outputs) != 1:
                raise Wrong(f"which output is this? Write name = formula, for each of {', '.join(outputs)}")
            (name,) = outputs
            formula = statement.value
        elif isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name):
            name, formula = statement.targets[0].id, statement.value
        else:
            raise Wrong(f"'{ast.unparse(statement)}' is not a formula; write name = formula, or a formula alone")
        if name in self._locals or name in self.results:
            raise Wrong(f"'{name}' has a formula already")
        value = self._value(formula)
        if name in outputs:
            stack = self.instruction_set.stack_index(outputs[name])
            self.results[name] = self.of_type(value, stack, f"the output '{name}'")
        elif name in self._inputs:
            raise Wrong(f"'{name}' is an input")
        if name not in self._inputs:  # an output of that name is the input until the end
            self._locals[name] = value

    def _value(self, formula: ast.expr) -> Operand:
        """Raises Wrong."""
        if self._read_as and (name := self._read_as.get(_plain(formula))):
            return self._input(name)
        if isinstance(formula, ast.Constant):
            if isinstance(formula.value, bool) or not isinstance(formula.value, (int, float)):
                raise Wrong(f"{formula.value!r} is not a number")
            return finite(formula.value)
        if isinstance(formula, ast.Name):
            return self._named(formula.id)
        if isinstance(formula, ast.UnaryOp) and isinstance(formula.op, (ast.USub, ast.UAdd)):
            value = self._value(formula.operand)
            if isinstance(formula.op, ast.UAdd):
                return value
            return finite(-value.value) if isinstance(value, Number) else self.apply("-a", [value], formula)
        if isinstance(formula, ast.BinOp) and isinstance(formula.op, ast.Pow):
            return self._power(self._value(formula.left), self._value(formula.right), formula)
        if isinstance(formula, ast.BinOp) and type(formula.op) in _OPERATORS:
            return self._binary(formula)
        if isinstance(formula, ast.Compare) and len(formula.ops) == 1 and type(formula.ops[0]) in _OPERATORS:
            operands = [self._value(formula.left), self._value(formula.comparators[0])]
            return self.apply(_OPERATORS[type(formula.ops[0])], operands, formula)
        if isinstance(formula, ast.IfExp):
            return self._chosen(formula.test, self._value(formula.body), self._value(formula.orelse), formula)
        if _is_condition(formula):
            return self._chosen(formula, Number(1), Number(0), formula)
        if isinstance(formula, ast.Call) and isinstance(formula.func, ast.Name) and not formula.keywords:
            return self._call(formula.func.id, [self._value(argument) for argument in formula.args], formula)
        known = "+ - * / **, < <= > >= == !=, and or not, if else, and functions"
        raise Wrong(f"'{ast.unparse(formula)}' cannot be a program: there are {known}")

    def _chosen(self, test: ast.expr, then: Operand, otherwise: Operand, formula: ast.expr) -> Operand:
        """Chooses between two values by a condition, part by part."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return self._chosen(test.operand, otherwise, then, formula)
        if isinstance(test, ast.Compare) and len(test.ops) > 1:
            operands = [test.left, *test.comparators]
            pairs = zip(operands, test.ops, operands[1:], strict=False)
            test = ast.BoolOp(ast.And(), [ast.Compare(left, [sign], [right]) for left, sign, right in pairs])
        if isinstance(test, ast.BoolOp):
            chosen = then if isinstance(test.op, ast.And) else otherwise
            for part in reversed(test.values):
                pair = (chosen, otherwise) if isinstance(test.op, ast.And) else (then, chosen)
                chosen = self._chosen(part, *pair, formula)
            return chosen
        if isinstance(test, ast.Compare) and (opposite := _OPPOSITES.get(type(test.ops[0]))):
            return self._chosen(ast.Compare(test.left, [opposite()], test.comparators), otherwise, then, formula)
        return self.apply("select(a, b, c)", [self._value(test), then, otherwise], formula)

    def _named(self, name: str) -> Operand:
        if name in self._locals:
            return self._locals[name]
        if name in self._in_units:
            text = self._in_units.pop(name)
            try:
                return self._value(parsed(text))
            finally:
                self._in_units[name] = text
        if name in self._inputs:
            return self._input(name)
        if name in _CONSTANTS:
            return Number(_CONSTANTS[name])
        known = [*(name for name, _ in self.language.inputs), *self._locals]
        raise Wrong(f"unknown name '{name}', {did_you_mean(name, known)}")

    def _input(self, name: str) -> int:
        index = self._inputs[name]
        return self.node(NodeKind.INPUT, index, self.instruction_set.stack_index(self.language.inputs[index][1]))

    def _binary(self, formula: ast.BinOp) -> Operand:
        form = _OPERATORS[type(formula.op)]
        is_reciprocal = form == "a / b" and isinstance(formula.left, ast.Constant) and formula.left.value == 1
        right = formula.right
        if is_reciprocal and isinstance(right, ast.Call) and isinstance(right.func, ast.Name) and right.func.id == "sqrt":
            operands = [self._value(argument) for argument in right.args]
            if len(operands) == 1 and (node := self.first("1 / sqrt(a)", operands)) is not None:
                return node
        first, second = self._value(formula.left), self._value(right)
        if isinstance(first, Number) and isinstance(second, Number):
            return self._folded(form, first.value, second.value, formula)
        return self.apply("1 / a", [second], formula) if is_reciprocal else self.apply(form, [first, second], formula)

    @staticmethod
    def _folded(form: str, first: int | float, second: int | float, formula: ast.expr) -> Number:
        """Fold an operator of two numbers: whole ones stay whole, others are float32, as they would be in a program."""
        is_whole = isinstance(first, int) and isinstance(second, int) and form != "a / b"
        try:
            if is_whole:
                return finite(_FOLDED[form](first, second))
            with np.errstate(divide="raise", over="raise", invalid="raise"):
                return finite(float(_FOLDED[form](np.float32(first), np.float32(second))))
        except ArithmeticError as error:
            raise Wrong(f"'{ast.unparse(formula)}': {error}") from None

    def _power(self, base: Operand, exponent: Operand, formula: ast.expr) -> Operand:
        if isinstance(exponent, Number):
            number = exponent.value
            if isinstance(base, Number):
                try:
                    return finite(float(base.value) ** number)
                except (ArithmeticError, TypeError) as error:
                    raise Wrong(f"'{ast.unparse(formula)}': {error}") from None
            if number == 0.5:
                return self.apply("sqrt(a)", [base], formula)
            if number == int(number) and 1 <= abs(number) <= _LARGEST_POWER:
                value = self._whole_power(base, abs(int(number)), formula)
                return self.apply("1 / a", [value], formula) if number < 0 else value
            if number == int(number):
                raise Wrong(f"'{ast.unparse(formula)}': whole exponents are 1 to {_LARGEST_POWER}, or -1 to -{_LARGEST_POWER}")
        return self.apply("pow(a, b)", [base, exponent], formula)

    def _whole_power(self, base: Operand, exponent: int, formula: ast.expr) -> Operand:
        """By repeated squaring."""
        if exponent == 1:
            return base
        root = self._whole_power(base, exponent // 2, formula)
        value = self.apply("a * b", [root, root], formula)
        return self.apply("a * b", [value, base], formula) if exponent % 2 else value

    def _defined(self, name: str, operands: list[Operand], formula: ast.expr) -> Operand:
        """A function by its definition."""
        arguments, body = self._definitions[name]
        if len(operands) != len(arguments):
            raise Wrong(f"'{ast.unparse(formula)}': {name} takes {len(arguments)} operands, got {len(operands)}")
        outer, self._locals = self._locals, dict(zip(arguments, operands, strict=True))
        try:
            return self._value(parsed(body.translate(IN_PRINT)))
        except Wrong as error:
            raise Wrong(f"'{ast.unparse(formula)}': {str(error).partition(': ')[2] or error}") from None
        finally:
            self._locals = outer

    def _call(self, name: str, operands: list[Operand], formula: ast.expr) -> Operand:
        if name in self._definitions:
            return self._defined(name, operands, formula)
        name = {"ln": "log"}.get(name, name)
        form = functions().get(name)
        if form:
            if len(operands) != form.count(",") + 1:
                raise Wrong(f"'{ast.unparse(formula)}': {name} takes {form.count(',') + 1} operands, got {len(operands)}")
            if name == "pow":
                return self._power(operands[0], operands[1], formula)
            if name == "exp" and (exponent := self.scaled(operands[0], 1.0 / LN_2)) is not None:
                return self.apply("exp2(a)", [exponent], formula)
            result = self.apply(form, operands, formula)
            if name == "log" and not isinstance(result, Number):
                self.base_2[result] = self.nodes[result].operands[0]
            return result
        try:
            return self.instruction(name, operands)
        except Lacking as error:
            if name in self.instructions():
                raise Wrong(f"'{ast.unparse(formula)}': {error}") from None
            known = sorted({*functions(), *self._definitions})
            near = None if name in LACKING else suggestion(name, known) or suggestion(name, self.instructions())
            raise Wrong(f"unknown function '{name}', {near or 'one of: ' + ', '.join(known)}") from None


def _is_condition(formula: ast.expr) -> bool:
    is_not = isinstance(formula, ast.UnaryOp) and isinstance(formula.op, ast.Not)
    is_chain = isinstance(formula, ast.Compare) and all(type(sign) in {*_OPERATORS, *_OPPOSITES} for sign in formula.ops)
    return is_not or is_chain or isinstance(formula, ast.BoolOp)


def _plain(formula: ast.expr) -> str:
    return re.sub(r"\.0\b", "", ast.unparse(formula))
