"""Proofs by a solver: meanings beside the machine and NumPy, proofs beyond 32 bits, and mutants."""

import sys
from types import ModuleType
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("bitwuzla", reason="evo-ptx[smt] is not installed")

from evo.approximation.bit_vectors import INSTRUCTIONS, BitVectors, UnsolvedError, lop3
from evo.approximation.bits import ExactFunction
from evo.approximation.certificate import check_certificate
from evo.approximation.exact import certified_exact, exact_language
from evo.approximation.exact_sweep import TESTED
from evo.approximation.float_vectors import FLOAT_INSTRUCTIONS
from evo.approximation.nodes import program_text
from evo.approximation.smt import SOLVED, solved
from evo.approximation.translation import translated
from evo.errors import UserError
from evo.instructions import shipped_instruction_set
from evo.language.program import parse_program
from evo.native.ptx_vm import VirtualMachine

EDGES = np.array([0, 1, 31, 32, 33, 255, 256, 0x7FFFFFFF, 1 << 31, 0xFFFFFFFF, 0x0000FF80, 0x76543210], np.uint32)
FLOATS = [0x3F800000, 0xBFC00000, 0x00000001, 0x807FFFFF, 0x7F800000, 0xFF800000, 0x7FC01234, 0x4F000000, 0xCF000001, 0x43004300]
FLOATS = np.array([*FLOATS, 0x7C00FC00, 0x3C00BC01, 0x7E008001, 0x80000000, 0, 0x477FF000, 0x7F7FFFFF, 0x40200000], np.uint32)
TABLE = np.random.default_rng(0).integers(0, 1 << 20, 16, dtype=np.uint32)
SIGNED = np.arange(200, dtype=np.uint32)  # of which -57 is entry 143, not 199


def of_bytes(apply):
    return lambda a, b: sum(apply(a >> 8 * k & 255, b >> 8 * k & 255) << 8 * k for k in range(4))


def wide_sum(a, b):
    return a.astype(np.uint64) + b


# Function, program, precondition. Programs are textbook forms (Warren 2012, Hacker's Delight).
RIGHT = {
    "sum": (lambda a, b: a + b, "%b %a add", ""),
    "average": (
        lambda a, b: (wide_sum(a, b) >> 1).astype(np.uint32),
        "1:b32 0:b32 %b %a lop3_3c shr 0:b32 %b %a lop3_c0 add",
        "",
    ),
    "average of bytes": (
        of_bytes(lambda a, b: a + b >> 1),
        "1:b32 0:b32 0xfefefefe:b32 0:b32 %b %a lop3_3c lop3_c0 shr 0:b32 %b %a lop3_c0 add",
        "",
    ),
    "saturated": (
        lambda a, b: np.minimum(wide_sum(a, b), 0xFFFFFFFF).astype(np.uint32),
        "%b 0:b32 0:b32 %b lop3_0f %a min_u add",
        "",
    ),
    "distance": (lambda a, b: np.where(a > b, a - b, b - a), "%b %a min_u %b %a max_u sub", ""),
    "signed maximum": (lambda a, b: np.maximum(a.view(np.int32), b.view(np.int32)).view(np.uint32), "%b %a max_s", ""),
    "rotated": (lambda a, b: a << (b & 31) | a >> (-b & 31), "%b %a %a shf_l", ""),
    "high product": (lambda a, b: (a.astype(np.uint64) * b >> 32).astype(np.uint32), "%b %a mulhi", ""),
    "rest and sum": (lambda a, b: a % 16 ^ b + a, "0:b32 %b %a add 0:b32 15:b32 %a lop3_c0 lop3_3c", ""),
    "carry": (lambda a, b: (a + b < a).astype(np.uint32), "31:b32 0:b32 %b %a add %a lop3_30 shr", "b < 2**31"),
}


def of_floats(call):
    call.types = ("f32", "f32")
    return call


FLOATS_RIGHT = {
    "product": (lambda a, b: a * b, "%b %a mulf", "finite(a) and finite(b) and b < 2**30"),
    "quantised": (
        lambda a, b: np.clip(np.rint(a * b), -128, 127).astype(np.int32),
        "127:b32 0xffffff80:b32 %b %a mulf s32_of_f32 max_s min_s",
        "finite(a) and b < 2**30",
    ),
    "larger": (lambda a, b: np.where(a > b, a, b), "%b %a maxf", "no_nan(a) and no_nan(b) and a != 0 and b != 0"),
    "half": (
        lambda a, b: (a + b).astype(np.float16).view(np.uint16).astype(np.uint32),
        "%b %a addf 0:b32 f16x2_of_f32",
        "finite(a) and finite(b)",
    ),
}


@pytest.fixture
def module(monkeypatch):
    """A module whose functions tests name."""
    found = ModuleType("solved_functions")
    monkeypatch.setitem(sys.modules, found.__name__, found)
    return found


def function_of(module, call, precondition=""):
    module.f = call
    return ExactFunction("solved_functions:f", precondition)


@pytest.mark.parametrize("name", [*RIGHT, *FLOATS_RIGHT])
def test_programs_of_two_words_are_proven(module, tmp_path, name):
    call, text, precondition = (RIGHT | FLOATS_RIGHT)[name]
    function = function_of(module, of_floats(call) if name in FLOATS_RIGHT else call, precondition)
    language = exact_language(function)
    found = certified_exact(language, parse_program(language, text, "test"), function, target="sm_90")
    assert (found.method, found.num_inputs) == (SOLVED, 1 << sum(function.widths))
    assert found.num_valid == (None if precondition else 1 << 64)
    path = tmp_path / "a.json"
    path.write_text(found.text())
    code = "solved_functions:f"
    assert check_certificate(path, lambda _, __: None, code=code, precondition=precondition) == found


WRONG = {  # at few inputs
    "average": ("1:b32 %b %a add shr", ""),
    "saturated": ("%b 0:b32 0:b32 %b lop3_0f %a min_s add", ""),
    "distance": ("%b %a max_s %b %a min_s sub", ""),
    "signed maximum": ("%b %a max_u", ""),
    "high product": ("%b %a mulhi_s", ""),
    "rest and sum": ("0:b32 %b %a add 0:b32 31:b32 %a lop3_c0 lop3_3c", ""),
    "carry": (RIGHT["carry"][1], ""),
}


@pytest.mark.parametrize("name", WRONG)
def test_of_a_wrong_program_the_solver_names_an_input(module, name):
    text, precondition = WRONG[name]
    function = function_of(module, RIGHT[name][0], precondition)
    language = exact_language(function)
    words = parse_program(language, text, "test")
    inputs = solved(language, words, function)
    given = [np.array([word], np.uint32) for word in inputs]
    unused = [None] * (len(language.registers) - 2)
    assert VirtualMachine(language.lowering).store(words[None], [*given, *unused])[0, 0, 0] != RIGHT[name][0](*given)[0]


def test_a_float_beyond_the_integers_is_not_converted(module):
    function = function_of(module, of_floats(lambda a, b: np.rint(a * b).astype(np.int32)), "finite(a) and finite(b)")
    language = exact_language(function)
    with pytest.raises(UnsolvedError, match="a float may be outside of int32"):
        solved(language, parse_program(language, "%b %a mulf s32_of_f32", "test"), function)


WAYS = [
    "{0} + {1}",
    "{0} - {1}",
    "{0} * {1}",
    "{0} & {1} | {0} >> 3",
    "{0} ^ ~{1}",
    "{0} << ({1} & 31)",
    "({0}).view(np.int32) >> 9",
    "np.minimum({0}, {1})",
    "np.maximum(({0}).view(np.int32), ({1}).view(np.int32))",
    "np.where({0} < {1}, {0}, {1})",
    "({0}).astype(np.uint64) * ({1}).astype(np.uint64) >> 7",
    "({0}).astype(np.uint8) + ({1}).astype(np.uint8)",
    "({0}) // 10",
]


def drawn(draw, depth):
    if not depth:
        return draw(st.sampled_from(["a", "b", "np.uint32(5)", "np.uint32(0x8000007F)"]))
    return f"({draw(st.sampled_from(WAYS)).format(drawn(draw, depth - 1), drawn(draw, depth - 1))}).astype(np.uint32)"


@st.composite
def pairs(draw):
    """A function and one that differs from it in an operator, or not at all."""
    text = f"{drawn(draw, 2)} ^ a ^ b"
    return text, draw(
        st.sampled_from([text, text.replace(" + ", " | "), text.replace("minimum", "maximum"), text.replace("5", "4")])
    )


@given(pairs())
@settings(max_examples=40)
def test_verdicts_are_those_of_all_inputs(texts):
    module = ModuleType("solved_functions")
    with patch.dict(sys.modules, {module.__name__: module}):
        call, other = (eval(f"lambda a, b: {text}", {"np": np}) for text in texts)
        program = program_text(
            translated(function_of(module, other, "a < 2**6 and b < 2**6")), ExactFunction("solved_functions:f")
        )
        function = function_of(module, call, "a < 2**6 and b < 2**6")
        language = exact_language(function)
        a, b = (np.repeat(np.arange(64, dtype=np.uint32), 64), np.tile(np.arange(64, dtype=np.uint32), 64))
        is_wrong = bool((call(a, b) ^ other(a, b)).any())
        assert (solved(language, parse_program(language, program, "test"), function) is not None) == is_wrong


def test_one_wrong_input_of_2_to_the_64_is_found(module):
    call = lambda a, b: (a + b) ^ ((a == 0x12345678) & (b == 0x9ABCDEF0))  # noqa: E731
    function = function_of(module, call)
    language = exact_language(function)
    words = parse_program(language, "%b %a add", "test")
    assert solved(language, words, function) == (0x12345678, 0x9ABCDEF0)
    with pytest.raises(UserError, match="wrong at a = 0x12345678, b = 0x9abcdef0"):
        certified_exact(language, words, function, target="sm_90")


MEANINGS = INSTRUCTIONS | FLOAT_INSTRUCTIONS
SHIPPED = [row.name for row in shipped_instruction_set("bits").instructions]


@pytest.mark.parametrize("name", [*MEANINGS, "lop3_e2", "lop3_35", "lop3_00", "lop3_ff"])
def test_instructions_mean_what_the_machine_computes(module, name):
    function = function_of(module, lambda a, b, c: a + b + c)
    language = exact_language(function)
    rng = np.random.default_rng(SHIPPED.index(name))
    words = [
        np.concatenate([rng.permutation(EDGES), rng.choice(EDGES, 12), rng.integers(0, 1 << 32, 12, np.uint32)]) for _ in range(3)
    ]
    program = parse_program(language, f"%c %b %a {name}", "test")
    expected = VirtualMachine(language.lowering).store(program[None], [*words, *[None] * (len(language.registers) - 3)])[0, 0]
    v = BitVectors()
    inputs = [v.anything(32) for _ in range(3)]
    operands = inputs[: len(shipped_instruction_set("bits").instructions[SHIPPED.index(name)].args)]
    term = lop3(v, int(name[5:], 16), *operands) if name[:4] == "lop3" else MEANINGS[name](v, *operands)
    asked = v.question([])
    for k, result in enumerate(expected.view(np.uint32).tolist()):
        given = [v.same(a, v.number(int(row[k]), 32)) for a, row in zip(inputs, words, strict=True)]
        assert asked([*given, v.same(term, v.number(result, 32))], []) is not None
        assert asked([*given, v.differ(term, v.number(result, 32))], []) is None


def f(words):
    return words.view(np.float32)


OPERATIONS = {
    "bits": lambda a, b: (a & b | ~a) ^ (b | 0xF0),
    "shifts": lambda a, b: (a << (b & 63)) + (b >> (a & 63)) + (a.view(np.int32) >> (b & 63).view(np.int32)).view(np.uint32),
    "sums": lambda a, b: a * 3 - b + (-a).astype(np.uint32),
    "quotients": lambda a, b: a // (b & 7) + a % (b & 15),
    "signed quotients": lambda a, b: (a.view(np.int32) // b.view(np.int32) ^ a.view(np.int32) % b.view(np.int32)).view(np.uint32),
    "small": lambda a, b: (a.astype(np.uint8) + b.astype(np.int8)).astype(np.uint32),
    "wide": lambda a, b: (a.view(np.int32).astype(np.int64) * b.view(np.int32) >> 32).astype(np.uint32),
    "bytes": lambda a, b: np.maximum(a.view(np.uint8), b.view(np.uint8)).view(np.uint32),
    "signed": lambda a, b: np.abs(np.clip(a.view(np.int32), -128, 127)).astype(np.uint32) + np.minimum(a, b),
    "compared": lambda a, b: (
        ((a < b) + (a.view(np.int32) < b.view(np.int32)) * 2).astype(np.uint32)
        + (a >= b) * np.uint32(4)
        + (a != b) * np.uint32(8)
    ),
    "compared more": lambda a, b: np.where((a > b) & ~(a == 7), a, b) + (a <= b),
    "truths": lambda a, b: np.logical_or(a, b) & np.logical_not(b) ^ np.logical_and(a, b) ^ a.astype(bool),
    "table": lambda a, b: np.take_along_axis(TABLE, (a + b) & 15, 0),
    "float sums": lambda a, b: (a & 0x3FF).astype(np.float32) / np.float32(3) - (b & 0xFF).astype(np.float32),
    "roots": lambda a, b: np.sqrt((a & 0x3F).astype(np.float16)).view(np.uint16) + b,
    "halves": lambda a, b: (
        ((a & 0x3BFF).astype(np.uint16).view(np.float16) * np.float16(3)).view(np.uint16).astype(np.uint32) + b
    ),
    "rounded": lambda a, b: (np.floor(f(a & 0x42FF0000)) + np.ceil(f(b & 0x42FF0000)) + np.trunc(f(a & 0x40F00000))).astype(
        np.int32
    ),
    "compared floats": lambda a, b: (
        np.where(np.isnan(f(a)) | np.isinf(f(b)), 1, 2) + (f(a) < f(b)) * 4 + (f(a) >= f(b)) * 8
    ).astype(np.uint32),
    "more of floats": lambda a, b: (
        np.signbit(f(a)) + np.isfinite(f(b)) * 2 + (f(a) != f(b)) * 4 + (np.abs(f(a)) == -f(b)) * 8
    ).astype(np.uint32),
    "extremes": lambda a, b: np.minimum(f(a & 0x7FFFFFF), f(b & 0x7FFFFFF)) + np.copysign(np.float32(1), f(a)),
    "counted": lambda a, b: np.bitwise_count(a ^ b) + np.bitwise_count((a + b).view(np.int32)),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_mean_what_numpy_computes(module, name):
    """A meaning that differs from NumPy at a sample is refused."""
    function = function_of(module, OPERATIONS[name])
    language = exact_language(function)
    solved(language, parse_program(language, "%b %a mul", "test"), function)


def test_another_meaning_than_the_machines_is_refused(module, monkeypatch):
    function = function_of(module, lambda a, b: a + b)
    language = exact_language(function)
    words = parse_program(language, "%b %a add", "test")
    monkeypatch.setitem(INSTRUCTIONS, "add", lambda v, a, b: v.apply("OR", a, b))
    with pytest.raises(UnsolvedError, match="means something else"):
        solved(language, words, function)
    notes = []
    assert certified_exact(language, words, function, target="sm_90", note=notes.append).method == TESTED
    assert notes == ["not proven: an operation means something else to the solver"]


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda a, b: np.sort(np.stack([a, b]), axis=0)[0], "it uses np.sort"),
        (lambda a, b: np.exp2(a.astype(np.float32)) + b.astype(np.float32), "np.exp2 of float32 has no meaning"),
        (lambda a, b: np.take_along_axis(np.arange(1 << 10, dtype=np.uint32), (a ^ b) & 1023, 0), "more than 256 entries"),
        (lambda a, b: SIGNED[np.where(b == 0x12345678, np.int8(-57), (a & 127).astype(np.int8))] ^ b, "beyond its ends"),
    ],
)
def test_a_solver_is_not_asked_about_other_functions(module, call, reason):
    function = function_of(module, call)
    language = exact_language(function)
    with pytest.raises(UnsolvedError, match=reason):
        solved(language, parse_program(language, "%b %a add", "test"), function)


def test_without_a_solver_a_program_is_tested_and_its_proof_not_checked(module, tmp_path, monkeypatch):
    function = function_of(module, RIGHT["distance"][0])
    language = exact_language(function)
    words = parse_program(language, RIGHT["distance"][1], "test")
    path = tmp_path / "a.json"
    path.write_text(certified_exact(language, words, function, target="sm_90").text())
    monkeypatch.setattr("evo.approximation.smt.find_spec", lambda _: None)
    notes = []
    found = certified_exact(language, words, function, target="sm_90", note=notes.append)
    assert (found.method, notes) == (TESTED, ["not proven: pip install 'evo-ptx[smt]' for a solver"])
    with pytest.raises(UserError, match="not proven here: pip install"):
        check_certificate(path, lambda _, __: None, code="solved_functions:f")
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, module.__name__, module)
    path.write_text(found.text())
    assert check_certificate(path, lambda _, __: None, code="solved_functions:f").method == TESTED
