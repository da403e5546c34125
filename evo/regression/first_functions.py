"""First functions for a template: products of powers, exponentials, waves, roots and complements of these, and sums.

Owns which of them go together in a program. Knows nothing of data.
"""

import itertools

from evo.language.template import Template
from evo.regression.defaults import FUNCTIONS

NUM_PROGRAMS = 1024
PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41)  # one for each function that a template may have
# Functions of a product.
WRAPPERS = (
    *("", "", " -0.7 mul_ftz_f32 ex2_approx_ftz_f32", " sin_approx_ftz_f32", " cos_approx_ftz_f32", " sqrt_approx_ftz_f32"),
    *(" 1.0 add_ftz_f32", " -1.0 mul_ftz_f32 1.0 add_ftz_f32"),
)
ADD, SUB, MUL, DIV = (FUNCTIONS[name][0] for name in ("add", "sub", "mul", "div"))


def first_functions(template: Template) -> list[str]:
    """Programs in text form."""
    kinds = [_products([f"%{name}" for name in template.inputs[: len(function.arguments)]]) for function in template.functions]
    programs: dict[str, None] = {}
    for number in range(NUM_PROGRAMS):
        parts = []
        for index, products in enumerate(kinds):
            turn = number * PRIMES[index] ** 0.5 % 1.0 * len(products)  # in independent steps, so that all meet
            parts.append(products[int(turn)] + WRAPPERS[int(turn % 1.0 * len(WRAPPERS))])
        programs[" clear.f32 ".join(parts)] = None
    return [*programs]


def _products(inputs: list[str]) -> list[str]:
    """Yield products of powers from -1 to 2, or to 1 of more than three inputs; and sum and difference of all inputs."""
    programs = [" ".join([*inputs, *[operation] * (len(inputs) - 1)]) for operation in (ADD, SUB) if len(inputs) > 1]
    for powers in itertools.product((0, 1, -1, 2)[: 4 if len(inputs) <= 3 else 3], repeat=len(inputs)):
        above = [name for name, power in zip(inputs, powers, strict=True) for _ in range(power)]
        below = [name for name, power in zip(inputs, powers, strict=True) if power < 0]
        above_text, below_text = (" ".join([*names, *[MUL] * (len(names) - 1)]) for names in (above, below))
        programs.append(f"{below_text} {above_text or '1.0'} {DIV}" if below else above_text or "1.0")
    return programs
