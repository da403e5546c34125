"""Operators, and functions by their usual names.

Owns what stands for them: calls of instructions, for formulas, and a phrase, for searches. The table of instructions has
the names of those that are one instruction.
"""

import ast
import math
import re
from dataclasses import dataclass
from functools import cache

from evo.instructions import HALVES, shipped_instruction_set

_LOG2_E, _LN_2, _LOG10_2 = repr(1 / math.log(2)), repr(math.log(2)), repr(math.log10(2))


@dataclass(frozen=True)
class Function:
    """Words for a function of a, and b.

    forms: calls of functions of the table of instructions, in the order of preference. phrase: words that compute it of the
    topmost values, a on top.
    """

    forms: tuple[str, ...]
    phrase: str


FUNCTIONS = {
    "exp(a)": Function((f"exp2(mul(a, {_LOG2_E}))",), f"{_LOG2_E} mul_ftz_f32 ex2_approx_ftz_f32"),
    "log(a)": Function((f"mul(log2(a), {_LN_2})",), f"lg2_approx_ftz_f32 {_LN_2} mul_ftz_f32"),
    "log10(a)": Function((f"mul(log2(a), {_LOG10_2})",), f"lg2_approx_ftz_f32 {_LOG10_2} mul_ftz_f32"),
    "pow(a, b)": Function(("exp2(mul(log2(a), b))",), "lg2_approx_ftz_f32 mul_ftz_f32 ex2_approx_ftz_f32"),
    "square(a)": Function(("mul(a, a)",), "dup.f32 mul_ftz_f32"),
    "cube(a)": Function(("mul(mul(a, a), a)",), "dup.f32 dup.f32 mul_ftz_f32 mul_ftz_f32"),
    "tan(a)": Function(
        ("div(sin(a), cos(a))", "mul(sin(a), rcp(cos(a)))"),
        "dup.f32 cos_approx_ftz_f32 swap.f32 sin_approx_ftz_f32 div_approx_ftz_f32",
    ),
    "sigmoid(a)": Function(
        (f"rcp(add(exp2(mul(a, -{_LOG2_E})), 1))", f"div(1, add(exp2(mul(a, -{_LOG2_E})), 1))"),
        f"-{_LOG2_E} mul_ftz_f32 ex2_approx_ftz_f32 1.0 add_ftz_f32 rcp_approx_ftz_f32",
    ),
}
# Functions of other systems, by those above and conditions: arguments and formula.
DEFINED = {
    "ceil": (("x",), "-floor(-x)"),
    "mod": (("x", "y"), "x - y*floor(x/y)"),
    "sign": (("x",), "copysign(1, x)"),
    "cbrt": (("x",), "copysign(exp2(log2(abs(x))/3), x)"),
    "sinh": (("x",), "0.5*(exp(x) - exp(-x))"),
    "cosh": (("x",), "0.5*(exp(x) + exp(-x))"),
    "greater": (("x", "y"), "1 if y < x else 0"),
    "less": (("x", "y"), "1 if x < y else 0"),
    "cond": (("x", "y"), "y if 0 < x else 0"),
    "where": (("x", "y", "z"), "y if 0 < x else z"),
}
# Functions that neither instructions nor definitions compute.
LACKING = frozenset("asin acos atan atan2 arcsin arccos arctan asinh acosh atanh erf erfc gamma".split())
PHRASE_WEIGHT = 0.5  # as of the instructions exp2, sin and tanh


def named_functions() -> dict[str, tuple[str, float]]:
    """Name of a function of numbers -> its instruction or phrase, and how often it is drawn."""
    of_table = {
        instruction.semantics.function: (instruction.name, instruction.semantics.weight)
        for instruction in shipped_instruction_set("wide").instructions
        if instruction.semantics.function
    }
    return of_table | {form.partition("(")[0]: (function.phrase, PHRASE_WEIGHT) for form, function in FUNCTIONS.items()}


_OPERAND = r"\b[abc]\b"
# Substitutes for an operator or function whose instruction is not at hand: calls of functions of the table.
_OTHERWISE: dict[str, tuple[str, ...]] = {
    "a - b": ("add(a, neg(b))",),
    "a / b": ("mul(a, rcp(b))",),
    "1 / a": ("div(1, a)",),
    "-a": ("sub(0, a)", "mul(a, -1)", "sub_u32(0, a)"),
    "abs(a)": ("max(a, neg(a))",),
    "fma(a, b, c)": ("add(mul(a, b), c)",),
    **{form: function.forms for form, function in FUNCTIONS.items()},
}


@cache
def forms(*, with_halves: bool = False) -> dict[str, list[str]]:
    """Words for each operator and function, in the order of preference: calls of instructions, by their names in programs.
    The first whose instructions are at hand, and whose operands have the right types, is taken.

    Args:
        with_halves: instructions of f16 and bf16 too.
    """
    full = shipped_instruction_set("halves")
    instructions = [
        i for i in full.instructions if with_halves or not any(full.constant_types[index] in HALVES for index in i.rets)
    ]
    written = [(i.name, i.semantics.infix) for i in instructions] + [(i.name, i.semantics.formula) for i in instructions]
    words: dict[str, list[str]] = {}
    for name, text in written:
        letters = re.findall(_OPERAND, text)  # of the instruction's operands, in the order of the text
        form = re.sub(_OPERAND, lambda letter, letters=letters: "abc"[letters.index(letter[0])], text)  # type: ignore[misc]
        operands = ["abc"[letters.index(letter)] for letter in sorted(letters)]
        words.setdefault(ast.unparse(ast.parse(form)), []).append(f"{name}({', '.join(operands)})")
    names = {i.semantics.function: i.name for i in instructions}
    for form, alternatives in _OTHERWISE.items():
        words.setdefault(form, []).extend(
            re.sub(r"\w+(?=\()", lambda name: names.get(name[0], name[0]), alternative) for alternative in alternatives
        )
    return words


@cache
def functions() -> dict[str, str]:
    """Name of a function -> its form."""
    return {form.partition("(")[0]: form for form in forms() if re.match(r"[a-z]\w+\(", form)}
