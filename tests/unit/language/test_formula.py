"""evo.language.formula: programs and scalings as formulas of real numbers, in each language."""

import json
from importlib.util import find_spec

import numpy as np
import pytest
from run_exports import as_c, run_c, run_json, run_python, run_sympy, run_torch, run_triton

from evo.instructions import shipped_instruction_set
from evo.language.dag import dag_of
from evo.language.formula import evaluate, formula_of, has_real_form, scaling_notes
from evo.language.formula_text import infix, plain_constant, rounded
from evo.language.infix import parse_infix
from evo.language.program import Language, parse_program
from evo.language.source import c_source, cuda_source, python_source
from evo.language.tensor_source import torch_source, triton_source
from evo.native.ptx_vm import VirtualMachine
from evo.report.export.formats import graph_of
from evo.report.export.sympy_text import latex_text, sympy_text

SET = shipped_instruction_set("wide")
LANGUAGE = Language(SET, (("x", "f32"), ("y", "f32")), (("f", "f32"),))
X, Y = 1.7e9 + np.arange(5.0) / 7.0, 1e-30 * np.linspace(1.0, 3.0, 5)
UNITS = {"x": (1.7e9, 1.0), "y": (0.0, 1e-30)}
# An instruction of each function of real numbers, with its value for the program's x and y.
ALL = "%y rsqrt_approx_ftz_f32 %x tanh_approx_f32 add_ftz_f32 %x cos_approx_ftz_f32 %y lg2_approx_ftz_f32 sub_ftz_f32 "
ALL += "mul_ftz_f32 %y %x ex2_approx_ftz_f32 %x %y fma_rn_ftz_f32 max_ftz_f32 %x %y setp_lt_ftz_f32 %y %x sin_approx_ftz_f32 "
ALL += "copysign_f32 %y sqrt_approx_ftz_f32 rcp_approx_ftz_f32 abs_ftz_f32 neg_ftz_f32 0.1 %y "
ALL += "min_ftz_f32 selp_f32 div_approx_ftz_f32 "
# exp, log, log10 and pow
ALL += "%x 1.442695 mul_ftz_f32 ex2_approx_ftz_f32 add_ftz_f32 %y lg2_approx_ftz_f32 2.0794415 mul_ftz_f32 sub_ftz_f32 "
ALL += (
    "%y lg2_approx_ftz_f32 0.30103 mul_ftz_f32 add_ftz_f32 %y lg2_approx_ftz_f32 1.7 mul_ftz_f32 ex2_approx_ftz_f32 add_ftz_f32 "
    "%y cvt_rmi_ftz_f32_f32 %y 2.5 add_ftz_f32 cvt_rni_ftz_f32_f32 mul_ftz_f32 add_ftz_f32"
)


def program(text: str):
    return dag_of(LANGUAGE, parse_program(LANGUAGE, text, "text"))


def test_a_formula_takes_the_users_units_and_reads_well():
    formula = formula_of(program("%x 0.1 mul_ftz_f32 %y add_ftz_f32"), UNITS, {"f": (2.5, -1e-20)})
    assert infix(formula) == "f = 2.5 - 1e-20*(0.1*(x - 1.7e9) + y/1e-30)\n"
    np.testing.assert_allclose(evaluate(formula, [X, Y])[0], 2.5 - 1e-20 * (Y / 1e-30 + 0.1 * (X - 1.7e9)), rtol=1e-15)
    assert infix(formula_of(program("%x"), {"x": (-3.0, 1000.0)}, {"f": (0.0, 1.0)})) == "f = (x + 3)/1000\n"
    assert [plain_constant("s32", bits) for bits in (3, 2**32 - 3)] == ["3", "-3"]
    assert plain_constant("u32", 2**32 - 3) == "4294967293"
    for scaling, text in [
        ((7.0, 0.0), "7"),
        ((7.0, -1.0), "7 - x"),
        ((0.0, -1.0), "-x"),
        ((0.0, -2.0), "-2*x"),
        ((-1.0, 1.0), "x - 1"),
    ]:
        assert infix(formula_of(program("%x"), {}, {"f": scaling})) == f"f = {text}\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2*(x - 1.7e9) + y/1e-30", "2*x + y"),
        ("t0 = (x - 1700000000)*0.5\nf = t0*t0", "t0 = x*0.5\nf = t0*t0"),
        ("x - 5", "x*1.0 + 1.7e9 - 5"),
        ("y*y", "(y*1e-30)*(y*1e-30)"),
    ],
)
def test_a_formula_in_the_users_units_can_be_read_again(text, expected):
    names = {instruction.name for instruction in shipped_instruction_set("default").instructions}
    read = parse_infix(LANGUAGE, text, "guess", 40, names, UNITS)
    assert read.tolist() == parse_infix(LANGUAGE, expected, "guess", 40, names).tolist()


def test_each_language_computes_every_function_of_real_numbers():
    x, y = np.linspace(-2.0, 2.0, 9), np.linspace(0.3, 3.0, 9)
    formula = formula_of(program(ALL), {}, {"f": (1.0, 2.0)})
    assert {"exp(a)", "log(a)", "log10(a)", "pow(a, b)"} < {value.semantics.infix for value in formula.nodes}
    (expected,) = evaluate(formula, [x, y])
    words, singles = parse_program(LANGUAGE, ALL, "text")[None], [x.astype(np.float32), y.astype(np.float32)]
    ran = VirtualMachine(LANGUAGE.lowering).store(words, [*singles, None])[0, 0]
    np.testing.assert_allclose(expected, 1.0 + 2.0 * ran, rtol=2e-3)
    np.testing.assert_allclose(run_python(python_source(formula, "c"), [x, y])[0], expected, rtol=1e-13)
    np.testing.assert_allclose(run_c(c_source(formula, "c"), [x, y], 9, [np.float64])[0], expected, rtol=1e-13)
    np.testing.assert_allclose(run_sympy(sympy_text(formula, "c"), [x, y], 9)[0], expected, rtol=1e-12)
    np.testing.assert_allclose(run_c(as_c(cuda_source(formula, "c")), [x, y], 9, [np.float64])[0], expected, rtol=1e-13)
    np.testing.assert_allclose(run_triton(triton_source(formula, "c"), [x, y])[0], expected, rtol=1e-13)
    np.testing.assert_allclose(run_json(json.dumps(graph_of(formula)), [x, y])[0], expected, rtol=1e-13)
    if find_spec("torch"):
        np.testing.assert_allclose(run_torch(torch_source(formula, "c"), [x, y])[0], expected, rtol=1e-13)
    assert "asm" not in cuda_source(formula, "c") and "f &=" in latex_text(formula)


def test_a_program_without_a_real_form_is_cast_between_its_scalings():
    mixed = Language(SET, (("x", "f32"), ("u", "u32")), (("f", "f32"),))
    text = "%u cvt_rn_f32_u32 %x add_ftz_f32"
    single = dag_of(mixed, parse_program(mixed, text, "text"))
    assert has_real_form(program(ALL)) and not has_real_form(single)
    formula = formula_of(single, {"x": (1.7e9, 1.0)}, {"f": (0.5, 2.0)})
    inputs = [X, np.arange(5, dtype=np.uint32)]
    expected = 0.5 + 2.0 * ((X - 1.7e9).astype(np.float32) + inputs[1].astype(np.float32)).astype(np.float64)
    np.testing.assert_array_equal(run_python(python_source(formula, "c"), inputs)[0], expected)
    np.testing.assert_array_equal(run_c(c_source(formula, "c"), inputs, 5, [np.float64])[0], expected)
    assert "(float)(x - 1700000000.0)" in cuda_source(formula, "c")


@pytest.mark.parametrize(("digits", "text"), [(2, "f = 2.3 + (x - 1700000001)/3\n"), (1, "f = 2 + (x - 1700000001)/3\n")])
def test_rounding_keeps_what_inputs_are_moved_by(digits, text):
    formula = formula_of(program("%x"), {"x": (1.700000001e9, 1.0)}, {"f": (2.345678, 1.0 / 3.0)})
    assert infix(rounded(formula, digits)) == text
    assert infix(rounded(formula, None)) == "f = 2.345678 + (x - 1700000001)/3\n"


def test_a_note_names_the_input_and_what_programs_read():
    assert [line.partition(";")[0] for line in scaling_notes(UNITS)] == [
        "x: float32 cannot hold its values, so programs read (x - 1.7e9)",
        "y: float32 cannot hold its values, so programs read y/1e-30",
    ]
