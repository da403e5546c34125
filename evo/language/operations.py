"""Operators and functions of operands as nodes of a program's graph.

Owns which instructions stand for an operator or function, and how operands get the types that these take. Knows nothing of texts.
"""

import ast
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from evo.instructions import FLOATS, HALVES, Instruction, shipped_instruction_set
from evo.language.dag import Builder, Node
from evo.language.functions import forms
from evo.language.program import Language
from evo.language.usual_names import LN_2
from evo.native.stack_ptx import NodeKind


@dataclass(frozen=True)
class Number:
    """A number whose type its use decides."""

    value: int | float


Absent = Callable[[Instruction], str]
Operand = int | Number  # the index of a node, or a number


def not_in_vocabulary(instruction: Instruction) -> str:
    """Say of an instruction that a config lacks it."""
    return f"{instruction.name} is not in program.vocabulary.instructions"


class Wrong(Exception):
    """A formula cannot be a program; the message says why."""


class Lacking(Exception):
    """A form does not fit: its instructions are not at hand, or its operands have other types. The message says which."""


class Operations:
    """Makes nodes of operators and functions of operands.

    Args:
        instructions: names of those that may be used.
        absent: gives the message for an instruction that may not be used.
    """

    def __init__(self, language: Language, instructions: frozenset[str], absent: Absent):
        self.language, self.instruction_set = language, language.instruction_set
        self.builder = Builder(language.instruction_set)
        self.nodes = self.builder.nodes
        self.base_2: dict[int, int] = {}  # node of a natural logarithm -> that of the logarithm to base 2
        self._allowed, self._absent = instructions, absent
        self._numbers: dict[int, float] = {}  # node of a constant -> the number that was written
        self._forms = forms(with_halves=any(stack.constant_type in HALVES for stack in self.instruction_set.stacks))
        self._may_convert = True  # operands, by instructions that keep their value or round it

    def scaled(self, value: Operand, factor: float) -> Operand | None:
        """A product times a factor, which its number takes; None: it has no number."""
        if isinstance(value, Number) or self.nodes[value].kind == NodeKind.CONSTANT:
            number = value.value if isinstance(value, Number) else self._numbers[value]
            return Number(number * factor)
        node = self.nodes[value]
        instruction = self.instruction_set.instructions[node.payload] if node.kind == NodeKind.PTX else None
        if instruction and instruction.semantics.function in ("mul", "div", "neg"):
            for k, operand in enumerate(node.operands[:1] if instruction.semantics.function == "div" else node.operands):
                if (scaled := self.scaled(operand, factor)) is not None:
                    return self.instruction(instruction.name, [*node.operands[:k], scaled, *node.operands[k + 1 :]])
            if instruction.semantics.function == "neg":
                return self.first("a * b", [node.operands[0], Number(-factor)])
        return None

    def apply(self, form: str, operands: list[Operand], formula: ast.expr) -> Operand:
        """Applies a form in the first way that the instructions allow. Raises Wrong: there is none for the formula."""
        pair = operands if form == "a * b" else [Number(-1), *operands] if form == "-a" else []
        for number, logarithm in (pair, pair[::-1]) if pair else ():
            if isinstance(number, Number) and not isinstance(logarithm, Number) and logarithm in self.base_2:
                form, operands = "a * b", [self.base_2[logarithm], Number(number.value * LN_2)]
        reasons: list[str] = []
        for may_convert in (False, True):
            for way in self._forms[form]:
                self._may_convert = may_convert
                try:
                    return self._built(parsed(way), dict(zip("abc", operands, strict=False)))
                except Lacking as error:
                    reasons.append(str(error))
                finally:
                    self._may_convert = True
        raise Wrong(f"'{ast.unparse(formula)}': {'; or '.join(dict.fromkeys(reasons))}")

    def first(self, form: str, operands: list[Operand]) -> Operand | None:
        """Applies a form in the first way that the instructions allow; None: there is none."""
        for way in self._forms[form]:
            try:
                return self._built(parsed(way), dict(zip("abc", operands, strict=False)))
            except Lacking:
                continue
        return None

    def _built(self, form: ast.expr, operands: Mapping[str, Operand]) -> Operand:
        if isinstance(form, ast.Name):
            return operands[form.id]
        if isinstance(form, ast.Call) and isinstance(form.func, ast.Name):
            return self.instruction(form.func.id, [self._built(argument, operands) for argument in form.args])
        return Number(ast.literal_eval(form))

    def instruction(self, name: str, operands: list[Operand]) -> int:
        """Raises Lacking."""
        try:
            index = self.instruction_set.instruction_index(name)
        except KeyError:
            wide = [i for i in shipped_instruction_set("wide").instructions if i.name == name]
            raise Lacking(self._absent(wide[0]) if wide else f"the instruction set has no {name}") from None
        instruction = self.instruction_set.instructions[index]
        if name not in self._allowed:
            raise Lacking(self._absent(instruction))
        types = [self.instruction_set.arg_types[arg] for arg in (*instruction.args, *instruction.rets)]
        if any(kind.num_vec_elems for kind in types) or len(instruction.rets) != 1:
            raise Lacking(f"{name} has vectors or several results")
        if len(operands) != len(instruction.args):
            raise Lacking(f"{name} takes {len(instruction.args)} operands, got {len(operands)}")
        stacks = [kind.stack_idx for kind in types]
        nodes = [self.of_type(value, stack, name) for value, stack in zip(operands, stacks[:-1], strict=True)]
        return self.node(NodeKind.PTX, index, stacks[-1], tuple(nodes))

    def of_type(self, value: Operand, stack: int, consumer: str) -> int:
        """The node of an operand of this stack. Raises Lacking for another type, and Wrong for a number without one."""
        stacks = self.instruction_set.stacks
        if isinstance(value, Number):
            type_name = stacks[stack].constant_type
            if type_name is None:
                raise Lacking(f"{consumer} takes {stacks[stack].name.lower()}, which has no constants")
            number = value.value
            literal = repr(float(number)) if type_name in FLOATS else repr(int(number) if number == int(number) else number)
            try:
                word = self.language.encode(f"{literal}:{stacks[stack].name.lower()}")
            except ValueError as error:
                raise Wrong(str(error)) from None
            node = self.node(NodeKind.CONSTANT, word >> 32, stack)
            self._numbers.setdefault(node, float(number))
            return node
        if self.nodes[value].stack != stack:
            is_truth = self._may_convert and stacks[self.nodes[value].stack].literal_prefix == "pred"
            if is_truth and (chosen := self.first("select(a, b, c)", [value, Number(1), Number(0)])) is not None:
                return self.of_type(chosen, stack, consumer)
            if self._may_convert and (name := self._conversion(self.nodes[value].stack, stack)):
                return self.instruction(name, [value])
            actual, wanted = (stacks[index].name.lower() for index in (self.nodes[value].stack, stack))
            raise Lacking(f"{consumer} takes {wanted}, got {actual}")
        return value

    def _conversion(self, source: int, wanted: int) -> str | None:
        """An allowed instruction with derivative 1 that converts from one stack to another; None: there is none."""
        for instruction in self.instruction_set.instructions:
            stacks = [self.instruction_set.arg_types[arg].stack_idx for arg in (*instruction.args, *instruction.rets)]
            if (
                stacks == [source, wanted]
                and instruction.semantics.derivative == {"a": "w"}
                and instruction.name in self._allowed
            ):
                return instruction.name
        return None

    def node(self, kind: NodeKind, payload: int, stack: int, operands: tuple[int, ...] = ()) -> int:
        """The index of a node, which is there once."""
        return self.builder.node(Node(kind, payload, stack, operands))

    def instructions(self) -> list[str]:
        """Names of all instructions of the set."""
        return [instruction.name for instruction in self.instruction_set.instructions]


@cache
def parsed(form: str) -> ast.expr:
    """The tree of a form."""
    return ast.parse(form, mode="eval").body


def finite(value: Any) -> Number:
    """A number in a formula. Raises Wrong: it is none, or infinite."""
    try:
        if not isinstance(value, complex) and math.isfinite(value):
            return Number(value)
    except OverflowError:
        raise Wrong(f"a number of {len(str(value))} digits is out of range") from None
    raise Wrong(f"{value} is not a finite number")
