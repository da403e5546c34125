"""evo.language.printer and evo.language.source: programs as text."""

import json

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from run_exports import run_c, run_json, run_python, run_sympy, run_triton

from evo.instructions import shipped_instruction_set
from evo.language.dag import dag_of
from evo.language.formula_text import INFIX, SYMPY, infix
from evo.language.printer import Unsupported, lines_of
from evo.language.program import Language, parse_program, word
from evo.language.source import c_source, cuda_source, python_source
from evo.language.tensor_source import triton_source
from evo.native.ptx_vm import VirtualMachine
from evo.native.stack_ptx_words import WordType
from evo.report.export.formats import graph_of
from evo.report.export.sympy_text import latex_text, sympy_outputs, sympy_text

SET = shipped_instruction_set("wide")
LANGUAGE = Language(
    SET, (("x", "f32"), ("y", "f32"), ("u", "u32"), ("v", "s32")), (("f", "f32"), ("g", "f32"), ("n", "u32"), ("m", "s32"))
)


def expression(text: str, language: Language = LANGUAGE):
    return dag_of(language, parse_program(language, text, "text"))


@pytest.mark.parametrize(
    ("program", "first_line"),
    [
        ("%y %x sub_ftz_f32", "f = x - y"),
        ("%x %y %x sub_ftz_f32 sub_ftz_f32", "f = x - y - x"),
        ("%y %x add_ftz_f32 2.0 mul_ftz_f32", "f = 2*(x + y)"),
        ("%y %x mul_ftz_f32 rcp_approx_ftz_f32", "f = 1/(x*y)"),
        ("%x neg_ftz_f32 neg_ftz_f32", "f = -(-x)"),
        ("-1.5 %x sub_ftz_f32", "f = x - (-1.5)"),
        ("%x 0.1 copysign_f32", "f = copysign(x, 0.1)"),
    ],
)
def test_infix_has_the_parentheses_that_it_needs_and_short_constants(program, first_line):
    assert infix(expression(program)).splitlines()[0] == first_line


def test_a_value_used_twice_is_a_local_variable_and_an_empty_stack_gives_zero():
    assert infix(expression("%x sin_approx_ftz_f32 dup.f32 mul_ftz_f32")) == "t0 = sin(x)\nf = t0*t0\ng = 0\nn = 0\nm = 0\n"


def test_names_avoid_words_of_the_languages_and_each_other():
    language = Language(SET, (("lambda", "f32"), ("t0", "f32"), ("np", "f32")), (("wide", "f32"),))
    text = "%lambda %t0 mul_ftz_f32 dup.f32 mul_ftz_f32 %np add_ftz_f32"
    source = python_source(expression(text, language), "c")
    inputs = [np.array([value], np.float32) for value in (2.0, 3.0, 5.0)]
    assert run_python(source, inputs)[0] == 41.0
    assert run_c(c_source(expression(text, language), "c */"), inputs, 1, [np.float32])[0] == 41.0


def test_a_deep_expression_is_split_into_lines():
    lines = lines_of(expression("%x " + "sin_approx_ftz_f32 " * 300), INFIX)
    assert len(lines.locals) > 30
    assert max(text.count("(") for _, _, text in lines.locals) < 10


def test_sympy_refuses_by_name_what_it_has_no_text_for():
    with pytest.raises(Unsupported, match="brev_b32"):
        lines_of(expression("%u brev_b32"), SYMPY)


def test_cuda_passes_predicates_as_integers():
    source = cuda_source(expression("%y %x setp_lt_ftz_f32 2.0 %y selp_f32"), "c")
    assert '{ .reg .pred q; setp.lt.ftz.f32 q, %1, %2; selp.u32 %0, 1, 0, q; }" : "=r"(result) : "f"(a0), "f"(a1)' in source
    assert '{ .reg .pred p3; setp.ne.u32 p3, %3, 0; selp.f32 %0, %1, %2, p3; }"' in source
    assert "*f_out = ptx_selp_f32(y, 2.0f, ptx_setp_lt_ftz_f32(x, y));" in source


UNSUPPORTED = VirtualMachine(LANGUAGE.lowering).unsupported
USABLE = [i for i, instruction in enumerate(SET.instructions) if instruction.name not in UNSUPPORTED]
EDGES = [0, 0x80000000, 1, 0x80000001, 0x7F800000, 0xFF800000, 0x7F800001, 0xFFC01234, 0x3F800000, 0x7F7FFFFF, 0x40490FDB, 31, 33]
WORDS = st.one_of(
    st.sampled_from(USABLE).map(lambda i: word(WordType.PTX, payload=i)),
    st.integers(0, 3).map(lambda i: word(WordType.INPUT, payload=i)),
    st.builds(
        lambda stack, value: word(WordType.CONSTANT, SET.stack_index(stack), value),
        st.sampled_from(["f32", "u32", "s32"]),
        st.one_of(st.sampled_from(EDGES), st.integers(0, 2**32 - 1)),
    ),
)


def inputs_and_machine(words: list[int]):
    rng = np.random.default_rng(5)
    patterns = [
        np.concatenate([rng.permutation(np.array(EDGES, np.uint32)), rng.integers(0, 1 << 32, 50, np.uint32)]) for _ in range(4)
    ]
    small = rng.normal(size=40).astype(np.float32).view(np.uint32)
    arrays = [np.concatenate([bits, rng.permutation(small)]) for bits in patterns]
    inputs = [arrays[0].view(np.float32), arrays[1].view(np.float32), arrays[2], arrays[3].view(np.int32)]
    rows = np.array([[*words, word(WordType.RETURN)]], np.uint64)
    expected = VirtualMachine(LANGUAGE.lowering).store(rows, [*inputs, *[None] * 4])[0].view(np.uint32)
    return inputs, rows[0], expected


def assert_bits(outputs, expected) -> None:
    for output, row in zip(outputs, expected, strict=True):
        np.testing.assert_array_equal(np.broadcast_to(np.asarray(output).view(np.uint32), len(row)), row)


EXACT = {
    "python": lambda program, inputs: run_python(python_source(program, "c"), inputs),
    "triton": lambda program, inputs: run_triton(triton_source(program, "c"), inputs),
    "json": lambda program, inputs: run_json(json.dumps(graph_of(program)), inputs),
}


@pytest.mark.parametrize("language", EXACT)
@given(words=st.lists(WORDS, min_size=5, max_size=80))
def test_an_export_gives_the_bits_of_the_virtual_machine(language, words):
    inputs, row, expected = inputs_and_machine(words)
    program = dag_of(LANGUAGE, row)
    constants = np.array([value.payload for value in program.nodes if value.type == "f32"], np.uint32).view(np.float32)
    if language == "triton":  # whose constants know one NaN, and whose inline assembly no b16
        assume(not np.isnan(constants).any() and all(value.type != "b16" for value in program.nodes))
    assert_bits(EXACT[language](program, inputs), expected)


@pytest.mark.parametrize("seed", range(2))
def test_exported_c_gives_the_bits_of_the_virtual_machine(seed):
    rng = np.random.default_rng(seed)
    words = [
        word(WordType.PTX, payload=int(rng.choice(USABLE)))
        if rng.random() < 0.6
        else word(WordType.INPUT, payload=int(rng.integers(4)))
        for _ in range(120)
    ]
    inputs, row, expected = inputs_and_machine(words)
    assert_bits(run_c(c_source(dag_of(LANGUAGE, row), "c"), inputs, len(inputs[0]), [np.float32] * 4), expected)


def test_exported_cuda_compiles(nvrtc):
    """Instructions of all types whose values are no vectors, also those that no CPU runs."""
    nvptxcompiler = pytest.importorskip("evo.native.nvptxcompiler")
    rng = np.random.default_rng(0)
    plain = [i for i, instruction in enumerate(SET.instructions) if is_plain(instruction)]
    programs = []
    for _ in range(20):
        ptx = [word(WordType.PTX, payload=int(i)) for i in rng.choice(plain, 200)]
        words = [word(WordType.INPUT, payload=int(rng.integers(4))) if rng.random() < 0.3 else each for each in ptx]
        programs.append(dag_of(LANGUAGE, np.array([*words, word(WordType.RETURN)], np.uint64)))
    program = max(programs, key=lambda each: len(each.ptx_by_name()))
    assert len(program.ptx_by_name()) > 10
    types = ["float", "float", "unsigned int", "unsigned int"]
    arguments = [f"*({name} *)a[{i}]" for i, name in enumerate(types)] + [f"({name} *)a[{i + 4}]" for i, name in enumerate(types)]
    kernel = f'extern "C" __global__ void use(void **a) {{ program({", ".join(arguments)}); }}'
    ptx = nvrtc.compile(f"{cuda_source(program, 'c')}\n{kernel}".encode(), "export.cu", {}, ["--gpu-architecture=compute_90"])
    assert nvptxcompiler.compile(ptx, ["--gpu-name=sm_90"])


def is_plain(instruction) -> bool:
    arg_types = [SET.arg_types[arg] for arg in (*instruction.args, *instruction.rets)]
    known = ("f32", "f64", "u32", "s32", "b32", "u64", "s64", "b64", "pred")
    return all(not arg.num_vec_elems and SET.stacks[arg.stack_idx].literal_prefix in known for arg in arg_types)


def test_sympy_computes_the_formula_in_real_numbers():
    x, y = np.array([-2.0, 0.5, 3.0]), np.array([1.0, -0.25, 3.0])
    text = "%y %x max_ftz_f32 0.5 max_ftz_f32 ex2_approx_ftz_f32 %y %x setp_lt_ftz_f32 3.0 %y selp_f32 add_ftz_f32"
    language = Language(SET, (("x", "f32"), ("y", "f32")), (("f", "f32"),))
    expected = np.where(x < y, y, 3.0) + 2.0 ** np.maximum(np.maximum(x, y), 0.5)
    (found,) = run_sympy(sympy_text(expression(text, language), "c"), [x, y], 3)
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    namespace: dict = {}
    exec(sympy_text(expression(text, language), "c"), namespace)
    values = [float(namespace["outputs"]["f"].subs({namespace["x"]: a, namespace["y"]: b})) for a, b in zip(x, y, strict=True)]
    np.testing.assert_allclose(values, expected, rtol=1e-14)


def test_sympy_holds_sums_whose_signs_it_moves():
    """(sin(-1.5 - x) - 3)**2: with numbers that are not written out, SymPy asks itself for its sign without end."""
    language = Language(SET, (("x", "f32"),), (("f", "f32"),))
    text = "3.0 %x -1.5 sub_ftz_f32 sin_approx_ftz_f32 sub_ftz_f32 dup.f32 mul_ftz_f32"
    x = np.array([-2.0, 0.5, 3.0])
    (found,) = run_sympy(sympy_text(expression(text, language), "c"), [x], 3)
    np.testing.assert_allclose(found, (np.sin(-1.5 - x) - 3.0) ** 2, rtol=1e-14)
    assert len(sympy_outputs(expression(text, language))[0].free_symbols) == 1


def test_conditions_on_constants_and_on_points_can_be_combined():
    language = Language(SET, (("x", "f32"),), (("f", "f32"),))
    text = "2.0 0.5 rcp_approx_ftz_f32 max_ftz_f32 %x sin_approx_ftz_f32 copysign_f32 %x copysign_f32 %x copysign_f32"
    x = np.linspace(-2, 2, 9, dtype=np.float32)
    (found,) = run_sympy(sympy_text(expression(text, language), "c"), [x], 9)
    (exact,) = run_python(python_source(expression(text, language), "c"), [x])
    np.testing.assert_allclose(found, exact, rtol=1e-6)


def test_latex_has_a_line_for_each_local_variable_and_output():
    language = Language(SET, (("x", "f32"),), (("f", "f32"),))
    program = expression("%x sin_approx_ftz_f32 dup.f32 0.1 mul_ftz_f32 div_approx_ftz_f32", language)
    lines = latex_text(program).splitlines()
    assert lines[0] == r"\begin{aligned}" and lines[-1] == r"\end{aligned}"
    assert lines[1] == r"t_{0} &= \sin{\left(x \right)} \\"
    assert lines[2].startswith("f &= ")
