"""Formulas with the names that people give to functions: `exp(x)` for `exp2(1.442695*x)`, `log(x)` for `log2(x)*0.6931472`.

Owns what stands for what is written so. `evo.language.infix` reads these names as the same program again. Knows nothing of texts.
"""

import math

import numpy as np

from evo.language.dag import REAL, Builder, Dag, Node, rebuilt
from evo.language.simple_numbers import F32_BITS, F32_STEP, F64_STEP, MOST_BITS, Simple, f32_number, simple_numbers
from evo.native.stack_ptx import NodeKind

LN_2, LOG10_2 = math.log(2.0), math.log10(2.0)
SYMPY = {"log10(a)": "log(a, 10)", "pow(a, b)": "Pow(a, b)"}


def with_usual_names(expression: Dag) -> Dag:
    """The same expression with exp, log, log10 and pow where it has exp2 or log2 and a number.

    The new numbers give a program's f32 again; in a formula of real numbers they are as exact as float64.
    """
    return rebuilt(expression, _Namer(expression).named)


class _Namer:
    """The rule by which values get their usual names."""

    def __init__(self, expression: Dag):
        uses = expression.num_uses()
        self._is_shared = [count != 1 for count in uses]
        self._shared = set[int]()  # values of the builder that are used more than once

    def named(self, builder: Builder, node: Node, index: int) -> int:
        """Replacement of a node."""
        renamed = self._named(builder, node)
        renamed = builder.node(node) if renamed is None else renamed
        if self._is_shared[index]:
            self._shared.add(renamed)
        return renamed

    def _named(self, builder: Builder, node: Node) -> int | None:
        if node.form == "exp2(a)":
            [exponent] = node.operands
            if (power := self._power(builder, exponent)) is not None:
                return _apply(builder, "pow(a, b)", node, *power)
            if (scaled := self._scaled(builder, exponent, LN_2)) is not None:
                return _apply(builder, "exp(a)", node, scaled)
        if node.form == "a*b":
            for logarithm, number in (node.operands, node.operands[::-1]):
                log_node, constant = builder.nodes[logarithm], builder.nodes[number]
                if log_node.form == "log2(a)" and constant.kind == NodeKind.CONSTANT:
                    if _renamed(constant, 1.0 / LOG10_2) == 1.0:
                        return _apply(builder, "log10(a)", node, log_node.operands[0])
                    if (scale := _renamed(constant, 1.0 / LN_2)) is not None:
                        return _times(builder, _apply(builder, "log(a)", node, log_node.operands[0]), scale)
        return None

    def _power(self, builder: Builder, index: int) -> tuple[int, int] | None:
        """Base and exponent, if a value is a logarithm times a number that is not whole: a whole one allows negative bases."""
        node = builder.nodes[index]
        if node.form == "a*b" and index not in self._shared:
            for logarithm, number in (node.operands, node.operands[::-1]):
                constant = builder.nodes[number]
                is_power = builder.nodes[logarithm].form == "log2(a)" and constant.kind == NodeKind.CONSTANT
                if is_power and (2.0 * constant.number) % 1.0:
                    return builder.nodes[logarithm].operands[0], number
        return None

    def _scaled(self, builder: Builder, index: int, factor: float) -> int | None:
        """A product times a factor, which its number takes; None: it has no number that could."""
        node = builder.nodes[index]
        if node.kind == NodeKind.CONSTANT:
            number = _renamed(node, factor)
            return None if number is None else builder.real(number)
        if node.form not in ("a*b", "a/b", "-a") or index in self._shared:
            return None
        for k, operand in enumerate(node.operands[:1] if node.form == "a/b" else node.operands):
            scaled = self._scaled(builder, operand, factor)
            if scaled is not None and node.form == "a*b" and builder.nodes[scaled].kind == NodeKind.CONSTANT:
                return _times(builder, node.operands[1 - k], builder.nodes[scaled].number)
            if scaled is not None:
                return builder.node(node.with_operands((*node.operands[:k], scaled, *node.operands[k + 1 :])))
        return None


def _apply(builder: Builder, form: str, like: Node, *operands: int) -> int:
    return builder.apply(form, *operands, type_name=like.type, sympy=SYMPY.get(form, ""))


def _times(builder: Builder, index: int, number: float) -> int:
    kind = builder.nodes[index].type
    if abs(number) == 1.0:
        return index if number > 0.0 else builder.apply("-a", index, type_name=kind)
    return builder.apply("a*b", builder.real(number), index, type_name=kind)


def _renamed(constant: Node, factor: float) -> float | None:
    """A constant times a factor; None: the constant is the simpler of the two, or no number is near enough."""
    number = constant.number
    wanted, is_f32 = number * factor, constant.type != REAL
    if not (math.isfinite(wanted) and wanted):
        return None
    near = list(simple_numbers(wanted, (F32_STEP if is_f32 else F64_STEP) * abs(wanted)))
    if is_f32:
        current, near = (
            f32_number(number),
            [candidate for candidate in near if np.float32(candidate.value / factor) == np.float32(number)],
        )
    else:
        near.append(Simple(wanted, 2.0 * F32_BITS, ""))
        current = min(simple_numbers(number, F64_STEP * abs(number)), key=lambda candidate: candidate.bits, default=near[-1])
    best = min(near, key=lambda candidate: candidate.bits, default=None)
    return None if best is None or current.bits < min(best.bits, MOST_BITS) else best.value
