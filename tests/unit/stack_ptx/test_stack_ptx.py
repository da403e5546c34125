"""evo.stack_ptx: programs as lists. Expected stubs are worked out by hand; test_headers.py compares them with C's text."""

import json
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evo import stack_ptx
from evo.errors import UserError
from evo.instructions import shipped_instruction_set
from evo.native.stack_ptx_words import WordType

WORDS = stack_ptx.Words()
I, SPECIAL, META = WORDS.instructions, WORDS.special, WORDS.meta  # noqa: E741 - its name in the documentation
R = WORDS.registers(x="f32", y="f32", z="f32", u="u32", p="pred", byte="u8")


def compile_one(program, requests=("z",), **options) -> str:
    return stack_ptx.Compiler(R, requests, **options).compile(program)


# ---- programs ----


def test_numbers_are_constants_of_their_type():
    wide = stack_ptx.Words("wide")
    found = wide.encode([1.5, 0, np.float32(1.5), np.float64(1.5), np.uint32(3), np.uint64(3), np.int64(-3)]).tolist()
    c = wide.constants
    assert found == [*map(int, (c.f32(1.5), c.u32(0), c.f32(1.5), c.f64(1.5), c.u32(3), c.u64(3), c.s64(-3))), 10]
    assert c.f64(1.5) == 0x3FC00000 << 32 | 9 << 16 | 2
    assert c.s64(-3) == 0xFFFFFFFD << 32 | 11 << 16 | 2
    assert c.f32(float("inf")) == 0x7F800000 << 32 | 2
    with pytest.raises(ValueError, match=r"0 is out of the range of f32$"):
        c.f32(10**400)


@pytest.mark.parametrize(
    ("element", "message"),
    [
        (True, "True is neither a word nor a number"),
        ("x", "'x' is neither a word nor a number"),
        (None, "None is neither a word nor a number"),
        (-1, "-1: no stack has constants of s32; there are constants of: f32, u32, philox"),
        (2**32, "4294967296: constants of u32 are 32 bits, from 0 to 4294967295"),
        (1e40, "1e+40 is out of the range of f32"),
        (np.float16(1.0), "is neither a word nor a number"),
    ],
)
def test_elements_that_are_not_words_are_refused_with_their_index(element, message):
    with pytest.raises(ValueError, match=r"^element 1 of the program: ") as caught:
        compile_one([R.x, element])
    assert message in str(caught.value)


def test_every_kind_of_word_in_a_program():
    square = [META.dup("f32"), I.mul_ftz_f32]
    program = [
        *(R.x, WORDS.routine(0), R.y, WORDS.meta_constant(1), META.yank_dup("f32"), I.setp_lt_ftz_f32),
        *(R.x, WORDS.store("f32", 4), WORDS.load(4), WORDS.load(4), I.selp_f32, SPECIAL.laneid),
    ]
    assert compile_one(program, ["z", "u"], routines=[square]) == (
        "{\n.reg .f32 %_s0_<2>;\n.reg .u32 %_s1_<1>;\n.reg .pred %_s3_<1>;\nmul.ftz.f32 %_s0_0, %x, %x;\n"
        "setp.lt.ftz.f32 %_s3_0, %_s0_0, %y;\nselp.f32 %_s0_1, %x, %x, %_s3_0;\nmov.u32 %_s1_0, %laneid;\n"
        "mov.f32 %z, %_s0_1;\nmov.u32 %u, %_s1_0;\n}"
    )


# ---- names ----


def test_unknown_names_are_refused_with_the_known_ones():
    with pytest.raises(AttributeError, match=r"no register 'w', one of: x, y, z, u, p, byte$"):
        R.w  # noqa: B018
    with pytest.raises(KeyError, match="no instruction 'add', did you mean add_u32, "):
        I["add"]
    with pytest.raises(AttributeError, match="no meta operation 'pop', one of: dup, "):
        META.pop("f32")
    with pytest.raises(ValueError, match="unknown stack 'f64', one of: f32, u32, "):
        META.dup("f64")
    with pytest.raises(ValueError, match="unknown stack 'f33'"):
        WORDS.registers(x="f33")


# ---- modes and errors ----


def test_modes_treat_wrong_words_and_missing_requests_as_documented():
    depth = [R.x, WORDS.meta_constant(5), META.yank_dup("f32")]
    unknown = [R.x, stack_ptx.Word(0)]
    only_x, empty = "{\nmov.f32 %z, %x;\n}", "{\n}"
    assert [compile_one(depth, mode=mode) for mode in ("compatible", "lenient")] == [only_x, only_x]
    assert compile_one(unknown, mode="lenient") == only_x
    assert [compile_one([], mode=mode) for mode in ("compatible", "strict")] == [empty, empty]
    assert compile_one([], mode="lenient") == "{\nmov.f32 %z, 0f00000000;\n}"
    with pytest.raises(stack_ptx.ProgramError) as caught:
        compile_one(depth, mode="strict")
    assert (caught.value.result, caught.value.word_idx) == ("STACK_PTX_ERROR_INVALID_VALUE", 2)
    for mode in ("strict", "compatible"):
        with pytest.raises(stack_ptx.ProgramError) as caught:
            compile_one(unknown, mode=mode)
        assert (caught.value.result, caught.value.word_idx, caught.value.routine_idx) == (
            "STACK_PTX_ERROR_BAD_INSTRUCTION_MAYBE_FORGOT_RETURN",
            1,
            None,
        )
    with pytest.raises(ValueError, match="mode: 'loose', must be one of: lenient, strict, compatible"):
        stack_ptx.Compiler(R, [], mode="loose")


@pytest.mark.parametrize("mode", ["strict", "compatible"])
@pytest.mark.parametrize(
    ("code", "wrong", "limits"),
    [
        ("INSUFFICIENT_AST_SIZE", R.y, stack_ptx.Limits(max_nodes=1)),
        ("ROUTINES_IDX_OUT_OF_BOUNDS", WORDS.routine(1), stack_ptx.DEFAULT_LIMITS),
    ],
)
def test_errors_name_the_program_the_word_the_routine_and_the_code(code, wrong, limits, mode):
    compiler = stack_ptx.Compiler(R, ["z"], routines=[[]], limits=limits, mode=mode)
    with pytest.raises(
        stack_ptx.ProgramError, match=rf"^program 1, word 1 \(0x[0-9a-f]{{16}}\): .* \[STACK_PTX_ERROR_{code}\]$"
    ) as caught:
        compiler.compile_batch([[R.x], [R.x, wrong], [wrong]])
    error = caught.value
    assert (error.result, error.program_idx, error.word_idx, error.routine_idx) == (f"STACK_PTX_ERROR_{code}", 1, 1, None)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.result, again.program_idx, again.word_idx) == (str(error), error.result, 1, 1)


def test_an_error_in_a_routine_names_it():
    compiler = stack_ptx.Compiler(R, ["z"], routines=[[R.x], [R.x, WORDS.load(99)]])
    with pytest.raises(stack_ptx.ProgramError, match=r"^word 1 of routine 1 ") as caught:
        compiler.compile([R.x, WORDS.routine(0), WORDS.routine(1)])
    assert (caught.value.routine_idx, caught.value.word_idx) == (1, 1)


# ---- batches ----


def random_programs(seed: int, count: int) -> np.ndarray:
    """Valid words: inputs, constants, instructions, meta operations."""
    rng = np.random.default_rng(seed)
    pool = [*(R[name] for name in R), *(I[name] for name in I), *(META[name]("f32") for name in META), WORDS.meta_constant(1)]
    pool += [WORDS.constants.f32(1.0), WORDS.constants.u32(9)]
    rows = rng.choice(np.array([int(w) for w in pool], np.uint64), (count, 60))
    rows[:, -1] = WordType.RETURN
    return rows


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), mode=st.sampled_from(stack_ptx.MODES[::2]))
def test_a_batch_gives_the_stubs_of_its_programs(seed, mode):
    compiler = stack_ptx.Compiler(R, list(R), mode=mode)
    rows = random_programs(seed, 70)
    stubs = compiler.compile_batch(rows)
    assert stubs == [compiler.compile(row) for row in rows]
    assert stubs == compiler.compile_batch([[stack_ptx.Word(w) for w in row] for row in rows.tolist()])


@pytest.mark.parametrize("words", [np.zeros(3, np.int64), np.zeros((2, 3), np.uint64)])
def test_arrays_of_another_form_are_refused(words):
    with pytest.raises(ValueError, match=r"^program: expected a 1-D array of uint64, got "):
        compile_one(words)
    with pytest.raises(ValueError, match=r"^words: expected uint64 of shape \(num_programs, max_length\), got "):
        stack_ptx.Compiler(R, []).compile_batch(np.zeros(3, np.uint64))


# ---- text ----


def test_text_of_a_program_and_back():
    compiler = stack_ptx.Compiler(R, ["z"])
    program = [R.x, 1.5, I.mul_ftz_f32, META.dup("f32"), SPECIAL.tid_x, WORDS.routine(0), 7]
    text = compiler.format(program)
    assert text == "%x 1.5 mul_ftz_f32 dup.f32 special:tid.x routine:0 7:u32\n"
    np.testing.assert_array_equal(compiler.parse(text), WORDS.encode(program))
    np.testing.assert_array_equal(compiler.parse("1.5 return 2.5 return"), WORDS.encode([1.5]))
    with pytest.raises(UserError, match=r"^my.txt:2: 'nothing' is not an instruction"):
        compiler.parse("%x\nnothing", "my.txt")


def test_text_of_f64_constants_are_floats():
    words = stack_ptx.Words("wide")
    compiler = stack_ptx.Compiler(words.registers(a="f64"), ["a"])
    program = [words.constants.f64(1.5), words.constants.u64(7), words.constants.s64(-1)]
    assert compiler.format(program) == "1.5:f64 7:u64 -1:s64\n"
    np.testing.assert_array_equal(compiler.parse(compiler.format(program)), words.encode(program))
    assert compiler.compile(program[:1]) == "{\nmov.f64 %a, 0d3FF8000000000000;\n}"


# ---- instruction sets ----


DESCRIPTION = {
    "stack_types": [{"name": "Complex", "literal_prefix": "f64", "constant_type": "f64"}],
    "arg_types": [{"name": "C", "stack_type": "Complex"}, {"name": "C2", "stack_type": "Complex", "num_vec_elems": 2}],
    "instructions": [
        {"ptx": "turn.f64", "args": ["C2"], "rets": ["C2"]},
        {"ptx": "pick.f64 7", "args": ["C", "C"], "rets": ["C"], "name": "pick"},
    ],
}


def test_a_set_is_described_in_python_or_json_alike(tmp_path):
    path = tmp_path / "set.json"
    path.write_text(json.dumps({"abi_version": 1, **DESCRIPTION}))
    for source in (DESCRIPTION, path, str(path), stack_ptx.load(DESCRIPTION)):
        words = stack_ptx.Words(source)
        r = words.registers(a="complex", b="complex")
        stub = stack_ptx.Compiler(r, ["b"]).compile([r.a, np.float64(0.5), words.instructions.turn_f64, words.instructions.pick])
        assert stub == (
            "{\n.reg .f64 %_s0_<3>;\nturn.f64 {%_s0_0, %_s0_1}, {0d3FE0000000000000, %a};\n"
            "pick.f64 %_s0_2, %_s0_0, %_s0_1, 7;\nmov.f64 %b, %_s0_2;\n}"
        )


def test_sets_load_by_name_and_mistakes_are_named(tmp_path):
    assert stack_ptx.load() is shipped_instruction_set("default")
    assert stack_ptx.load("wide") is shipped_instruction_set("wide")
    with pytest.raises(UserError, match=r"none.json: cannot read the instruction set"):
        stack_ptx.load(tmp_path / "none.json")
    with pytest.raises(UserError, match=r"^description: key 'instructions\.0\.args': unknown type 'C9', one of: C, C2$"):
        stack_ptx.load({**DESCRIPTION, "instructions": [{"ptx": "turn.f64", "args": ["C9"], "rets": ["C"]}]})
