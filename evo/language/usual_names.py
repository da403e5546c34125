"""Formulas with the names that people give to functions: `exp(x)` for `exp2(1.442695*x)`, `log(x)` for `log2(x)*0.6931472`.

Owns what stands for what is written so. `evo.language.infix` reads these names as the same program again. Knows nothing of texts.
"""

import math
from dataclasses import replace

import numpy as np

from evo.instructions.description import Semantics
from evo.language.expression import REAL, Expression, Value, number_of
from evo.language.simple_numbers import F32_BITS, F32_STEP, F64_STEP, MOST_BITS, Simple, f32_number, simple_numbers
from evo.native.stack_ptx import NodeKind

LN_2, LOG10_2 = math.log(2.0), math.log10(2.0)
_SYMPY = {"log10(a)": "log(a, 10)", "pow(a, b)": "Pow(a, b)"}


def with_usual_names(expression: Expression) -> Expression:
    """The same expression with exp, log, log10 and pow where it has exp2 or log2 and a number.

    The new numbers give a program's f32 again; in a formula of real numbers they are as exact as float64.
    """
    return _Namer(expression).expression()


class _Namer:
    def __init__(self, expression: Expression):
        self._given = expression
        self._uses = expression.num_uses()
        self._values: list[Value] = []
        self._from: list[int] = []  # the given value that each stands for

    def expression(self) -> Expression:
        places: list[int] = []
        for index, value in enumerate(self._given.values):
            operands = tuple(places[operand] for operand in value.operands)
            places.append(self._named(value if operands == value.operands else replace(value, operands=operands), index))
        results = tuple(None if result is None else places[result] for result in self._given.results)
        return self._needed(results)

    def _needed(self, results: tuple[int | None, ...]) -> Expression:
        """The expression of what results need."""
        needed = {result for result in results if result is not None}
        for place in reversed(range(len(self._values))):
            if place in needed:
                needed.update(self._values[place].operands)
        new = {place: index for index, place in enumerate(sorted(needed))}
        values = (self._values[place] for place in new)
        return replace(
            self._given,
            values=tuple(replace(value, operands=tuple(new[operand] for operand in value.operands)) for value in values),
            results=tuple(None if result is None else new[result] for result in results),
        )

    def _put(self, value: Value, index: int) -> int:
        self._values.append(value)
        self._from.append(index)
        return len(self._values) - 1

    def _apply(self, form: str, index: int, *operands: int) -> int:
        semantics = Semantics(infix=form, sympy=_SYMPY.get(form, ""))
        return self._put(Value(NodeKind.PTX, self._given.values[index].type, operands=operands, semantics=semantics), index)

    def _named(self, value: Value, index: int) -> int:
        form = _form(value)
        if form == "exp2(a)":
            [exponent] = value.operands
            if (power := self._power(exponent)) is not None:
                return self._apply("pow(a, b)", index, *power)
            if (scaled := self._scaled(exponent, LN_2, index)) is not None:
                return self._apply("exp(a)", index, scaled)
        if form == "a*b":
            for logarithm, number in (value.operands, value.operands[::-1]):
                found = self._values[logarithm]
                if _form(found) == "log2(a)" and self._values[number].kind == NodeKind.CONSTANT:
                    if _renamed(self._values[number], 1.0 / LOG10_2) == 1.0:
                        return self._apply("log10(a)", index, found.operands[0])
                    if (scale := _renamed(self._values[number], 1.0 / LN_2)) is not None:
                        return self._times(self._apply("log(a)", index, found.operands[0]), scale, index)
        return self._put(value, index)

    def _power(self, place: int) -> tuple[int, int] | None:
        """Base and exponent, if a value is a logarithm times a number that is not whole: a whole one allows negative bases."""
        value = self._values[place]
        if _form(value) == "a*b" and self._uses[self._from[place]] == 1:
            for logarithm, number in (value.operands, value.operands[::-1]):
                is_number = self._values[number].kind == NodeKind.CONSTANT
                if _form(self._values[logarithm]) == "log2(a)" and is_number and (2.0 * _number(self._values[number])) % 1.0:
                    return self._values[logarithm].operands[0], number
        return None

    def _scaled(self, place: int, factor: float, index: int) -> int | None:
        """A product times a factor, which its number takes; None: it has no number that could."""
        value, form = self._values[place], _form(self._values[place])
        if value.kind == NodeKind.CONSTANT:
            number = _renamed(value, factor)
            return None if number is None else self._put_number(number, index)
        if form not in ("a*b", "a/b", "-a") or self._uses[self._from[place]] != 1:
            return None
        for k, operand in enumerate(value.operands[:1] if form == "a/b" else value.operands):
            scaled = self._scaled(operand, factor, index)
            if scaled is not None and form == "a*b" and self._values[scaled].kind == NodeKind.CONSTANT:
                return self._times(value.operands[1 - k], _number(self._values[scaled]), index)
            if scaled is not None:
                return self._put(replace(value, operands=(*value.operands[:k], scaled, *value.operands[k + 1 :])), index)
        return None

    def _times(self, place: int, number: float, index: int) -> int:
        if abs(number) == 1.0:
            return place if number > 0.0 else self._apply("-a", index, place)
        return self._apply("a*b", index, self._put_number(number, index), place)

    def _put_number(self, number: float, index: int) -> int:
        return self._put(Value(NodeKind.CONSTANT, REAL, bits=int(np.float64(number).view(np.uint64))), index)


def _form(value: Value) -> str:
    return value.semantics.infix if value.kind == NodeKind.PTX and value.type in ("f32", REAL) else ""


def _number(constant: Value) -> float:
    return number_of(constant.bits) if constant.type == REAL else float(np.uint32(constant.bits).view(np.float32))


def _renamed(constant: Value, factor: float) -> float | None:
    """A constant times a factor; None: the constant is the simpler of the two, or no number is near enough."""
    number = _number(constant)
    wanted, is_f32 = number * factor, constant.type != REAL
    if not (math.isfinite(wanted) and wanted):
        return None
    near = list(simple_numbers(wanted, (F32_STEP if is_f32 else F64_STEP) * abs(wanted)))
    if is_f32:
        own, near = f32_number(number), [each for each in near if np.float32(each.value / factor) == np.float32(number)]
    else:
        near.append(Simple(wanted, 2.0 * F32_BITS, ""))
        own = min(simple_numbers(number, F64_STEP * abs(number)), key=lambda each: each.bits, default=near[-1])
    found = min(near, key=lambda each: each.bits, default=None)
    return None if found is None or own.bits < min(found.bits, MOST_BITS) else found.value
