"""Functions by their usual names that no PTX instruction computes.

Owns what stands for them: calls of instructions, for formulas, and a phrase, for searches. The table of instructions has
the names of those that are one instruction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from evo.instructions import shipped_instruction_set

_LOG2_E, _LN_2, _LOG10_2 = repr(1 / math.log(2)), repr(math.log(2)), repr(math.log10(2))


@dataclass(frozen=True)
class Function:
    """What stands for a function of a, and b.

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
PHRASE_WEIGHT = 0.5  # as of the instructions exp2, sin and tanh


def named_functions() -> dict[str, tuple[str, float]]:
    """Name of a function of numbers -> its instruction or phrase, and how often it is drawn."""
    of_table = {
        instruction.semantics.function: (instruction.name, instruction.semantics.weight)
        for instruction in shipped_instruction_set("default").instructions
        if instruction.semantics.function
    }
    return of_table | {form.partition("(")[0]: (function.phrase, PHRASE_WEIGHT) for form, function in FUNCTIONS.items()}
