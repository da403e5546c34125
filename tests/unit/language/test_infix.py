"""evo.language.infix: a formula becomes the program that computes it, or is refused with its line."""

import re

import numpy as np
import pytest

from evo.errors import UserError
from evo.instructions import shipped_instruction_set
from evo.language.dag import dag_of
from evo.language.formula_text import infix
from evo.language.functions import FUNCTIONS
from evo.language.infix import parse_infix
from evo.language.program import Language, parse_program, program_length
from evo.native.ptx_vm import VirtualMachine

SET = shipped_instruction_set("default")
NAMES = [instruction.name for instruction in SET.instructions]
LANGUAGE = Language(SET, (("x", "f32"), ("in", "f32"), ("n", "u32")), (("y", "f32"),))
X = np.linspace(0.3, 2.7, 41).astype(np.float32)
Z = np.linspace(-2.2, 1.9, 41).astype(np.float32)
N = np.arange(41, dtype=np.uint32)


def read(text: str, names=NAMES, language=LANGUAGE, max_length: int = 40) -> np.ndarray:
    return parse_infix(language, text, "guess", max_length, names)


def computed(words: np.ndarray, language=LANGUAGE) -> np.ndarray:
    registers = [X, Z, N, *[None] * (len(language.registers) - 3)]
    return VirtualMachine(language.lowering).store(words[None], registers)[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sin(x)*2 + 1", np.sin(X) * 2 + 1),
        ("x - in_/2 - 3", X - Z / 2 - 3),
        ("-x**2", -(X**2)),
        ("x**7", X.astype(float) ** 7),
        ("x**-3", X.astype(float) ** -3),
        ("x**0.5 + 2**3/4 + 10*pi", np.sqrt(X) + 2 + 10 * np.pi),
        ("exp(x) + log(x) - tan(in_/3)", np.exp(X) + np.log(X) - np.tan(Z / 3)),
        ("x**in_ + pow(x, 1.5) - pow(in_, 2)", X.astype(float) ** Z + X**1.5 - Z**2),
        ("cube(in_) - square(x) + log10(x)", Z**3 - X**2 + np.log10(X)),
        ("sigmoid(in_*3)", 1 / (1 + np.exp(-3 * Z))),
        ("1/x - 1/sqrt(x) + in_*cos(x)", 1 / X - 1 / np.sqrt(X) + Z * np.cos(X)),
        ("exp2(log2(x)) + abs(in_) + min(x, in_) - max(x, 1)", X + abs(Z) + np.minimum(X, Z) - np.maximum(X, 1)),
        ("x if in_ < 0.5 else -in_", np.where(Z < 0.5, X, -Z)),
        ("select(in_ > 0.5, x, 3)", np.where(Z > 0.5, X, 3)),
        ("copysign(x, in_) + fma(x, in_, 2)", np.copysign(X, Z) + X * Z + 2),
        ("cvt_rn_f32_u32(n*n + 3 - 1)", N.astype(float) ** 2 + 2),
        ("select(n == 4, x, 0) + select(n != 4, 5, 0)", np.where(N == 4, X, 5)),
        ("a = x*x\nb = a + 1; y = a*b - a", X**2 * (X**2 + 1) - X**2),
        ("# a comment\ny = 1.5e-3\n", np.full(41, 1.5e-3)),
        ("2*x^2 + e**in_", 2 * X**2 + np.exp(Z)),
        ("\u2212x² + π·x ÷ 2", -(X**2) + np.pi * X / 2),
    ],
)
def test_a_program_computes_its_formula(text, expected):
    np.testing.assert_allclose(computed(read(text)), [expected], rtol=2e-5, atol=2e-6)


def test_phrases_compute_the_functions_that_they_stand_for():
    """As a search draws them: a on top of the stack, and below it b."""
    for form, function in FUNCTIONS.items():
        words = parse_program(LANGUAGE, f"%in %x {function.phrase} return", "test", 40)
        by_name = read(re.sub(r"\bb\b", "in_", re.sub(r"\ba\b", "x", form)))
        np.testing.assert_allclose(computed(words), computed(by_name), rtol=1e-6, err_msg=form)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in VirtualMachine(LANGUAGE.lowering).unsupported])
def test_what_is_printed_of_an_instruction_can_be_read_back(name):
    instruction = SET.instructions[SET.instruction_index(name)]
    stacks = [SET.stacks[SET.arg_types[arg].stack_idx].name.lower() for arg in (*instruction.args, *instruction.rets)]
    if not set(stacks) <= {"f32", "u32", "pred", "philox"}:
        return
    inputs = tuple((f"{stack}_{i}", stack) for i, stack in enumerate(stacks[:-1]))
    language = Language(SET, inputs, (("y", stacks[-1]),))
    tokens = " ".join(f"%{each}" for each, _ in reversed(inputs))
    words = parse_program(language, f"{tokens} {name}", "test", 8)
    text = infix(dag_of(language, words))
    hashes = language.lowering.analyze(np.stack([words, read(text, language=language, max_length=8)]))[0]
    assert hashes[0].tolist() == hashes[1].tolist(), text


def test_what_is_printed_of_random_programs_can_be_read_back():
    names = [name for name in NAMES if name.endswith("ftz_f32") and name != "div_approx_ftz_f32"]  # 1/x is a reciprocal
    rng = np.random.default_rng(3)
    num_long = 0
    for _ in range(300):
        tokens = [
            rng.choice(names) if rng.random() < 0.6 else rng.choice(["%x", "%in", f"{rng.normal():.3g}"])
            for _ in range(rng.integers(5, 30))
        ]
        words = parse_program(LANGUAGE, " ".join(tokens), "test", 40)
        text = infix(dag_of(LANGUAGE, words))
        if re.search(r"\b(nan|inf)\b", text):  # what instructions of constants may give; a formula has no such constants
            continue
        again = read(text, max_length=200)
        rows = np.zeros((2, 200), np.uint64)
        rows[0, :40], rows[1] = words, again
        np.testing.assert_array_equal(computed(rows[0]).view(np.uint32), computed(rows[1]).view(np.uint32), err_msg=text)
        num_long += program_length(again) > 8
    assert num_long >= 20


def test_other_instructions_take_the_place_of_those_that_are_not_in_the_vocabulary():
    names = ["add_ftz_f32", "mul_ftz_f32", "rcp_approx_ftz_f32", "neg_ftz_f32"]
    np.testing.assert_allclose(computed(read("x/in_ - 1/x", names)), [X / Z - 1 / X], rtol=1e-5)
    for name in ("sub_ftz_f32", "mul_ftz_f32"):
        np.testing.assert_array_equal(computed(read("-x", [name])), [-X])
    words = read("fma(x, in_, -in_)", names)
    np.testing.assert_allclose(computed(words), [X * Z - Z], rtol=1e-5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("y = x +\n", "guess:1: not a formula: invalid syntax"),
        ("a = x\ny = sin(q)", "guess:2: unknown name 'q', one of: x, in, n, a"),
        ("y = x\ny = in_", "guess:2: 'y' has a formula already"),
        ("a = x\na = in_\ny = a", "guess:2: 'a' has a formula already"),
        ("x = 3", "guess:1: 'x' is an input"),
        ("", "guess: no formula for the output 'y'; write a line such as: y = x"),
        ("sine(x)", "guess:1: unknown function 'sine', did you mean sin"),
        ("zeta(x)", "guess:1: unknown function 'zeta', one of: abs, cbrt, ceil, cond, copysign, cos, cosh, cube, exp, exp2, "),
        ("atan(x)", "guess:1: unknown function 'atan', one of: abs, cbrt, "),
        ("sign(x, x)", "guess:1: 'sign(x, x)': sign takes 1 operands, got 2"),
        ("2x", "guess:1: not a formula: invalid decimal literal; products have a sign: 2*x"),
        ("sin(x, x)", "guess:1: 'sin(x, x)': sin takes 1 operands, got 2"),
        ("x % 2", "guess:1: 'x % 2' cannot be a program"),
        ("import os", "guess:1: 'import os' is not a formula"),
        ("__import__('os')", "guess:1: 'os' is not a number"),
        ("x + n", "guess:1: 'x + n': add_ftz_f32 takes f32, got u32; or add_u32 takes u32, got f32"),
        ("n", "guess:1: the output 'y' takes f32, got u32"),
        ("x + 1e39", "guess:1: '1e+39' is out of the range of f32"),
        ("1e400", "guess:1: inf is not a finite number"),
        ("1/0 + x", "guess:1: '1 / 0': divide by zero"),
        ("x**65", "guess:1: 'x ** 65': whole exponents are 1 to 64, or -1 to -64"),
        ("(-8)**0.5", "guess:1: "),
        ("cvt_rn_f32_u32(n + 1.5)", "guess:1: '1.5' is not an integer constant"),
        ("+".join(["x*in_"] * 30), "guess: takes more than 40 words, which is program.max_length"),
        ("(" * 300 + "x" + ")" * 300, "guess:1: not a formula: too many nested parentheses"),
    ],
)
def test_what_is_wrong_with_a_formula_is_said_with_its_line(text, message):
    with pytest.raises(UserError) as caught:
        read(text)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x*(x > 0)", lambda x: x * (x > 0)),
        ("(x <= 1) + 2*(x >= 1)", lambda x: (x <= 1) + 2 * (x >= 1)),
        ("3 if -1 < x < 1 else x", lambda x: np.where((x > -1) & (x < 1), 3, x)),
        ("3 if x < -1 or x > 1 and not x > 2 else x", lambda x: np.where((x < -1) | ((x > 1) & (x <= 2)), 3, x)),
        ("sign(x) + cbrt(x)", lambda x: np.where(x < 0, -1, 1) + np.cbrt(x)),
        ("greater(x, 1) + 2*less(x, 1) + cond(x, 7) + where(x, 0, 9)", lambda x: (x > 1) + 2 * (x < 1) + np.where(x > 0, 7, 9)),
        ("sinh(x) - 2*cosh(x) + ln(3 + x)", lambda x: np.sinh(x) - 2 * np.cosh(x) + np.log(3 + x)),
    ],
)
def test_conditions_and_functions_of_other_systems_compute_what_they_say(text, expected):
    x = np.array([-2.5, -1.0, -0.5, 0.25, 1.0, 1.5, 2.5], np.float32)
    language = Language(SET, (("x", "f32"),), (("y", "f32"),))
    words = parse_infix(language, text, "text", 64, [each.name for each in SET.instructions])
    found = VirtualMachine(language.lowering).store(words[None], [x, None])[0, 0]
    np.testing.assert_allclose(found, expected(x.astype(np.float64)), rtol=1e-5, atol=1e-6)


def test_what_the_vocabulary_lacks_is_named():
    with pytest.raises(UserError, match=r"^guess:1: 'sin\(x\)': sin_approx_ftz_f32 is not in program.vocabulary.instructions$"):
        read("1 + sin(x)", ["add_ftz_f32"])


NAMED = [
    ("%x 1.442695 mul_ftz_f32 ex2_approx_ftz_f32", "y = exp(x)"),
    ("%x %x mul_ftz_f32 -1.442695 mul_ftz_f32 ex2_approx_ftz_f32", "y = exp(-(x*x))"),
    ("%x %x -0.7213475 mul_ftz_f32 mul_ftz_f32 ex2_approx_ftz_f32", "y = exp(-0.5*x*x)"),
    ("%in -2.885390 %x mul_ftz_f32 div_approx_ftz_f32 ex2_approx_ftz_f32", "y = exp(-2*x/in_)"),
    ("%x 0.23456789 mul_ftz_f32 ex2_approx_ftz_f32", "y = exp(0.16259008*x)"),
    ("%x 0.25 mul_ftz_f32 ex2_approx_ftz_f32", "y = exp2(0.25*x)"),
    ("%x lg2_approx_ftz_f32 0.6931472 mul_ftz_f32", "y = log(x)"),
    ("%x lg2_approx_ftz_f32 -0.6931472 mul_ftz_f32", "y = -log(x)"),
    ("%x lg2_approx_ftz_f32 2.0794415 mul_ftz_f32", "y = 3*log(x)"),
    ("%x lg2_approx_ftz_f32 0.30103 mul_ftz_f32", "y = log10(x)"),
    ("%x lg2_approx_ftz_f32 0.5 mul_ftz_f32", "y = 0.5*log2(x)"),
    ("%x lg2_approx_ftz_f32 1.7 mul_ftz_f32 ex2_approx_ftz_f32", "y = x**1.7"),
    ("%x lg2_approx_ftz_f32 2.0 mul_ftz_f32 ex2_approx_ftz_f32", "y = exp2(2*log2(x))"),
    ("%x 1.442695 mul_ftz_f32 dup.f32 ex2_approx_ftz_f32 add_ftz_f32", "t0 = 1.442695*x\ny = exp2(t0) + t0"),
]


@pytest.mark.parametrize(("program", "text"), NAMED)
def test_functions_have_their_usual_names_and_are_read_as_the_same_program(program, text):
    words = parse_program(LANGUAGE, program, "test", 40)
    assert infix(dag_of(LANGUAGE, words)).strip() == text
    hashes = LANGUAGE.lowering.analyze(np.stack([words, read(text)]))[0]
    assert hashes[0].tolist() == hashes[1].tolist()
