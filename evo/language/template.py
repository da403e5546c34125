"""Templates: how the functions of a program make one formula, such as `f(x0, x1) + g(x2)*h(x0)`.

Owns the way from a template's text to the words that `csrc/stack_ptx.h` puts programs into, and which of its functions can take
up an offset and a scale. Knows nothing of tasks or searches.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.errors import UserError, did_you_mean
from evo.instructions import InstructionSet
from evo.language.functions import DEFINED, LACKING
from evo.language.functions import functions as known_functions
from evo.language.infix import IN_PRINT, parse_infix
from evo.language.program import Language, Limits, word
from evo.native.stack_ptx_words import META_OPERATIONS, TEMPLATE_DERIVATIVE, WordType

FREE_ENTRIES = 3  # of the store, which a program's own words use
MAX_WORDS = 1024
MAX_CATEGORIES = 12  # of a column, which has a number to find for each
DERIVATIVE = -1  # in place of a function
_DERIVATIVE_NAME = "d"
_CLEAR = META_OPERATIONS.index("clear")


@dataclass(frozen=True)
class Function:
    """An unknown function. arguments: their names, those of the inputs if it always gets these.

    scale: whether the template's scale is the function's. offset: times which the template's offset is added to it.
    """

    name: str
    arguments: tuple[str, ...]
    scale: bool = False
    offset: float = 0.0

    def __str__(self) -> str:
        return f"{self.name}({', '.join(self.arguments)})"


@dataclass(frozen=True)
class Template:
    """Structure that makes a formula of functions.

    calls: index of a function and the formulas of its arguments, each of the inputs and the `names` of earlier calls; or
    DERIVATIVE, a formula, and the input by which it is derived. formula: of inputs and `names`. has_scale, has_offset: the
    template times a number, or plus a number, is another of the template.
    """

    text: str
    inputs: tuple[str, ...]
    functions: tuple[Function, ...]
    calls: tuple[tuple[int, tuple[str, ...]], ...]
    names: tuple[str, ...]
    formula: str

    @property
    def has_scale(self) -> bool:
        """See above."""
        return any(function.scale for function in self.functions)

    @property
    def has_offset(self) -> bool:
        """See above."""
        return any(function.offset for function in self.functions)

    def alone(self, index: int) -> Template:
        """The template of one of the functions by itself, whose arguments are the inputs."""
        arguments = self.functions[index].arguments
        return replace(self, inputs=arguments, calls=((index, arguments),), names=("y_",), formula="y_")

    def words(self, instruction_set: InstructionSet, limits: Limits) -> tuple[int, ...]:
        """The words, as stack_ptx.h has them.

        Raises:
            UserError: there are more calls or arguments than the store has entries, or the instruction set lacks something.
        """
        first, last = FREE_ENTRIES, limits.store_size - 1
        most = max((len(arguments) for _, arguments in self.calls), default=0)
        room = limits.store_size - first
        if len(self.calls) + most > room:
            raise UserError(f"template: {len(self.calls)} calls of up to {most} arguments, at most {room} in all are possible")
        names = [instruction.name for instruction in instruction_set.instructions]
        f32 = instruction_set.stack_index("f32")
        inputs = tuple((name, "f32") for name in (*self.inputs, *self.names))
        language = Language(instruction_set, inputs, (("y__", "f32"),), Limits(store_size=0))

        def store(entry: int) -> int:
            return word(WordType.STORE, f32, entry)

        def of_formula(text: str) -> list[int]:
            all_words = parse_infix(language, text, "template", MAX_WORDS, names).tolist()
            words = all_words[: all_words.index(word(WordType.RETURN))]
            shift = first - len(self.inputs)
            is_call = [value & 0xFFFF == WordType.INPUT and value >> 32 >= len(self.inputs) for value in words]
            return [
                word(WordType.LOAD, payload=(value >> 32) + shift) if call else value
                for value, call in zip(words, is_call, strict=True)
            ]

        zero, clear = word(WordType.CONSTANT, f32), [word(WordType.META, k, _CLEAR) for k in range(len(instruction_set.stacks))]
        words: list[int] = []
        for index, (function, arguments) in enumerate(self.calls):
            for entry in (*range(first), first + index):  # so that each function begins with the same, and lacks no value
                words += [zero, store(entry)]
            if function == DERIVATIVE:
                y, x = arguments
                words += [*of_formula(y), store(first + index), *of_formula(x), store(last)]
                words += [word(TEMPLATE_DERIVATIVE, first + index, last), *clear]
                continue
            for number, argument in enumerate(arguments):
                words += [*of_formula(argument), store(last - number)]
            words += [word(WordType.ROUTINE, len(arguments), function), store(first + index), *clear]
        return (*words, *of_formula(self.formula))


def read_template(text: str, inputs: Sequence[str]) -> Template:
    """The template of a text such as `f(x0, x1) + 2*g(x2)`, whose calls of functions that are not known are of functions to find.

    Raises:
        UserError: it is not such a formula; the message says where.
    """
    if not isinstance(text, str):
        raise UserError(f"template is {text!r}, must be a formula of inputs and functions to find, such as 'f(x0) + g(x1)'")
    try:
        tree = ast.parse(text.strip().translate(IN_PRINT), mode="eval").body
    except SyntaxError as error:
        raise UserError(f"template: column {error.offset or 1}: not a formula: {error.msg}") from None
    tree = _Completer(tree).visit(tree)
    reader = _Reader(tuple(inputs))
    formula = ast.unparse(reader.read(tree))
    if not reader.calls:
        raise UserError(f"template: {text!r} has no function to find; write one such as f({', '.join(inputs[:2])})")
    scaled, offset = reader.scaled(tree), reader.offset(tree)
    if scaled is not None and any(len(reader.arguments[name]) != scaled.count(name) for name in scaled):
        scaled = None
    functions = []
    for name, calls in reader.arguments.items():
        same = calls[0] if len(set(calls)) == 1 and len(set(calls[0])) == len(calls[0]) and set(calls[0]) <= set(inputs) else None
        arguments = same or tuple(f"{name}_{number}" for number in range(len(calls[0])))
        takes_offset = scaled is not None and offset is not None and offset[0] == name
        functions.append(Function(name, arguments, name in (scaled or ()), offset[1] if takes_offset and offset else 0.0))
    return Template(text, tuple(inputs), tuple(functions), tuple(reader.calls), tuple(reader.names), formula)


def by_category(text: str, columns: Mapping[str, NDArray[np.float64]]) -> str:
    """A template's text in which each `c[x]` has become a choice between numbers to find, one for each value of the column x.

    `c[x]` becomes `c_1() if x < 1.5 else c_2()` where x is 1 or 2, so that a value that is not among the data takes the nearest
    one's number. Other texts stay as they are.

    Raises:
        UserError: the brackets hold anything but a column, or the column has more than MAX_CATEGORIES values.
    """
    try:
        tree = ast.parse(text.strip().translate(IN_PRINT), mode="eval")
    except (AttributeError, SyntaxError):
        return text  # which read_template refuses
    chooser = _Chooser(columns)
    changed = chooser.visit(tree)
    return ast.unparse(changed) if chooser.is_used else text


class _Chooser(ast.NodeTransformer):
    """Replaces subscripts by choices."""

    def __init__(self, columns: Mapping[str, NDArray[np.float64]]):
        self._columns = columns
        self.is_used = False

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """Implement ast.NodeTransformer."""
        name, column = ast.unparse(node.value), ast.unparse(node.slice)
        if not isinstance(node.value, ast.Name) or column not in self._columns:
            raise _wrong(node, f"'{ast.unparse(node)}' is not a name and an input, as in c[{next(iter(self._columns))}]")
        values = np.unique(self._columns[column])
        if len(values) > MAX_CATEGORIES:
            raise _wrong(node, f"{column} has {len(values)} values; {name}[{column}] needs a column of at most {MAX_CATEGORIES}")
        self.is_used = True
        numbers = [f"{name}_{re.sub(r'[^0-9]', '_', f'{value:g}')}()" for value in values]
        expression = numbers[-1]
        for number, low, high in reversed([*zip(numbers, values, values[1:], strict=False)]):
            expression = f"{number} if {column} < {(low + high) / 2!s} else ({expression})"
        return ast.parse(expression, mode="eval").body


class _Completer(ast.NodeTransformer):
    """Replaces a function's name under a derivative by its call, where all its calls are the same."""

    def __init__(self, tree: ast.expr):
        self._calls: dict[str, set[str]] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                self._calls.setdefault(node.func.id, set()).add(ast.unparse(node))

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Implement ast.NodeTransformer."""
        self.generic_visit(node)
        is_short = ast.unparse(node.func) == _DERIVATIVE_NAME and node.args and isinstance(node.args[0], ast.Name)
        calls = self._calls.get(ast.unparse(node.args[0]), set()) if is_short else set()
        if len(calls) == 1:
            node.args[0] = ast.copy_location(ast.parse(next(iter(calls)), mode="eval").body, node.args[0])
        return node


class _Reader:
    """Takes calls out of a formula."""

    def __init__(self, inputs: tuple[str, ...]):
        self._inputs = inputs
        self.calls: list[tuple[int, tuple[str, ...]]] = []
        self.names: list[str] = []
        self.arguments: dict[str, list[tuple[str, ...]]] = {}  # of each call of a function

    def read(self, node: Any) -> Any:
        """A formula with names instead of calls."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            name = node.func.id
            if name in self._inputs:
                raise _wrong(node, f"'{name}' is an input; give the function another name")
            if name == _DERIVATIVE_NAME:
                return self._named(DERIVATIVE, self._derived(node))
            known = sorted({*known_functions(), *DEFINED, "ln"})
            if name in LACKING:
                raise _wrong(node, f"unknown function '{name}', one of: {', '.join(known)}")
            before = [] if name in known else self.arguments.setdefault(name, [])
            arguments = [self.read(argument) for argument in node.args]
            if name in known:
                return ast.Call(node.func, arguments, [])
            texts = tuple(ast.unparse(argument) for argument in arguments)
            if before and len(before[0]) != len(texts):
                raise _wrong(node, f"{name} takes {len(before[0])} arguments before, here {len(texts)}")
            if len(texts) > len(self._inputs):
                raise _wrong(
                    node, f"{name} takes {len(texts)} arguments, at most as many as there are inputs, {len(self._inputs)}"
                )
            before.append(texts)
            return self._named(list(self.arguments).index(name), texts)
        if isinstance(node, ast.Name):
            if node.id not in (*self._inputs, "pi", "e"):
                hint = did_you_mean(node.id, self._inputs)
                raise _wrong(node, f"unknown input '{node.id}', {hint}; a function to find has arguments, as in {node.id}(x)")
            return node
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)):
            return ast.BinOp(self.read(node.left), node.op, self.read(node.right))
        if isinstance(node, ast.UnaryOp):
            return ast.UnaryOp(node.op, self.read(node.operand))
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            return node
        if isinstance(node, ast.IfExp):
            return ast.IfExp(self.read(node.test), self.read(node.body), self.read(node.orelse))
        if isinstance(node, ast.Compare):
            return ast.Compare(self.read(node.left), node.ops, [*map(self.read, node.comparators)])
        if isinstance(node, ast.BoolOp):
            return ast.BoolOp(node.op, [*map(self.read, node.values)])
        allowed = "+ - * / **, < <= > >=, and or not, a if b < c else d, numbers, inputs and functions"
        raise _wrong(node, f"'{ast.unparse(node)}' cannot be in a template: there are {allowed}")

    def _named(self, function: int, arguments: tuple[str, ...]) -> ast.Name:
        """The name of a call's value."""
        call = (function, arguments)
        if call not in self.calls:
            self.calls.append(call)
            name = _DERIVATIVE_NAME if function == DERIVATIVE else list(self.arguments)[function]
            self.names.append(f"{name}__{len(self.calls)}")
        return ast.Name(self.names[self.calls.index(call)])

    def _derived(self, node: Any) -> tuple[str, str]:
        """The formula and the input of a derivative."""
        by = ast.unparse(node.args[1]) if len(node.args) == 2 else None
        if by not in self._inputs:
            example = f"d(f({', '.join(self._inputs[:2])}), {self._inputs[0]})"
            raise _wrong(node, f"'{ast.unparse(node)}' is not the derivative of a formula by an input, such as {example}")
        return ast.unparse(self.read(node.args[0])), by

    def scaled(self, node: Any) -> list[str] | None:
        """The calls whose functions take up a factor of a formula; None: none can."""
        if isinstance(node, ast.Call) and (name := ast.unparse(node.func)) in self.arguments:
            return [name]
        if isinstance(node, ast.UnaryOp):
            return self.scaled(node.operand)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == _DERIVATIVE_NAME:
            return self.scaled(node.args[0])
        if not isinstance(node, (ast.BinOp, ast.IfExp)):
            return None
        both = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.body, node.orelse)
        sides = self.scaled(both[0]), self.scaled(both[1])
        if isinstance(node, ast.IfExp) or isinstance(node.op, (ast.Add, ast.Sub)):
            return None if None in sides else reduce(list.__add__, [side for side in sides if side])
        if isinstance(node.op, ast.Mult):
            return sides[0] or sides[1]
        return sides[0] if isinstance(node.op, ast.Div) else None

    def offset(self, node: Any, sign: float = 1.0) -> tuple[str, float] | None:
        """The function that takes up a number that is added to a formula, and its sign; None: none can."""
        if isinstance(node, ast.Call) and len(self.arguments.get(name := ast.unparse(node.func), ())) == 1:
            return name, sign
        if isinstance(node, ast.UnaryOp):
            return self.offset(node.operand, -sign if isinstance(node.op, ast.USub) else sign)
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            right_sign = -sign if isinstance(node.op, ast.Sub) else sign
            return self.offset(node.left, sign) or self.offset(node.right, right_sign)
        return None


def _wrong(node: Any, what: str) -> UserError:
    return UserError(f"template: column {node.col_offset + 1}: {what}")
