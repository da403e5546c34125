"""evo.ast_ptx: programs as lists, their stubs, and what is said about wrong ones."""

import re
import struct
from collections.abc import Sequence

import numpy as np
import pytest
from emulated_gpu.ptx_machine import launch
from emulated_gpu.ptx_memory import Memory
from emulated_gpu.ptx_text import Module

from evo.ast_ptx import (
    INSTRUCTIONS,
    MAX_INSTRUCTION_ARGS,
    MAX_INSTRUCTIONS,
    ROUTINE_DEPTH,
    STACK_DEPTH,
    Argument,
    AstPTX,
    Bits,
    I,
    Instruction,
    Register,
    Routine,
)
from evo.native.ast_ptx import AstCompiler, interpret

A, B = Argument(0), Argument(1)
SQUARE = Routine("square", 1, [A, A, I.mul_ftz_f32])
DISTANCE = Routine("distance", 2, [A, SQUARE, B, SQUARE, I.add_ftz_f32, I.sqrt_approx_ftz_f32])
AST = AstPTX(inputs=["x", "y"], output="z", routines=[SQUARE, DISTANCE])
r = AST.registers
LISTING = [r.x, r.y, I.mul_ftz_f32, 1.0, I.add_ftz_f32]
# ---- programs and stubs ----


@pytest.mark.parametrize(
    ("number", "bits"),
    [
        (1, "3f800000"), (-0.0, "80000000"), (0.1, "3dcccccd"), (np.float64(0.1), "3dcccccd"), (np.int8(-2), "c0000000"),
        (float("inf"), "7f800000"), (-np.float32(np.inf), "ff800000"), (1e-45, "00000001"), (float("nan"), "7fc00000"),
        (Bits(0x7F812345), "7f812345"), (np.array(0x7F812345, np.uint32).view(np.float32)[()], "7f812345"),
    ],
)  # fmt: skip
def test_numbers_are_constants_of_the_nearest_f32(number, bits):
    assert AST.compile([number]) == f"{{\nmov.f32 %z, 0f{bits};\n}}"


def test_decode_undoes_encode():
    program = [r.x, -2.5, Bits(0x7FC12345), I.fma_rn_ftz_f32, A, r.y, DISTANCE, I.tanh_approx_f32]
    assert AST.decode(AST.encode(program)) == program


@pytest.mark.parametrize("word", [1 | 2 << 32, 3 | 1 << 16 | 3 << 32, 3 | 18 << 32, 4 | 2 << 16, 0, 7])
def test_decode_refuses_unknown_words(word):
    with pytest.raises(ValueError, match=rf"^word 1: 0x{word:016x} is unknown here$"):
        AST.decode(words_of(1, word, 5))
    with pytest.raises(ValueError, match=r"^word 1: there is no return$"):
        AST.decode(words_of(1))


def test_a_batch_of_any_form_gives_the_stubs_of_its_programs():
    programs = [LISTING, [r.x], [r.x, r.y, DISTANCE, I.neg_ftz_f32], AST.encode([2.0])]
    expected = [AST.compile(program) for program in programs]
    assert AST.compile_batch(programs) == expected
    assert AST.compile_batch(AST.encode_batch(programs[:3])) == expected[:3]
    assert AST.compile_batch([]) == []


def test_custom_instructions_are_compiled_and_known_ones_interpreted():
    exact = Instruction("div.rn.f32", 2)
    ast = AstPTX(["x"], "z", instructions=[exact, I.add_ftz_f32])
    assert "div.rn.f32 %ast0, %x, 0f40000000;" in ast.compile([ast.registers.x, 2.0, exact])
    assert ast.interpret([ast.registers.x, 2.0, I.add_ftz_f32], {"x": 1.0}) == 3.0
    with pytest.raises(ValueError, match=r"^word 2: instruction div\.rn\.f32 has no CPU meaning$"):
        ast.interpret([ast.registers.x, 2.0, exact], {"x": 1.0})


def test_instructions_and_registers_are_found_by_name():
    assert tuple(I) == INSTRUCTIONS
    assert [instruction.name for instruction in I][3:5] == ["mul_ftz_f32", "fma_rn_ftz_f32"]
    assert list(r) == [Register("x"), Register("y")]
    assert r["x"] is r.x
    assert "tanh_approx_f32" in dir(I)
    with pytest.raises(AttributeError, match=r"no instruction 'mul', did you mean mul_ftz_f32"):
        _ = I.mul
    with pytest.raises(AttributeError, match=r"no input register 'q', one of: x, y"):
        _ = r.q


# ---- values ----


def test_values_have_the_shape_that_the_inputs_broadcast_to():
    x, y = np.arange(6.0).reshape(2, 3), np.array([1.0, 10.0, 100.0])
    values = AST.interpret(LISTING, {"x": x, "y": y})
    assert values.dtype == np.float32
    np.testing.assert_array_equal(values, (x * y + 1).astype(np.float32))
    assert AST.interpret([2.0], {}).shape == ()
    assert AST.interpret([2.0], {"x": np.zeros((0, 4))}).shape == (0, 4)
    assert AST.interpret_batch([LISTING, [r.y]], {"x": x, "y": y}).shape == (2, 2, 3)


def test_an_input_that_is_not_read_may_be_missing():
    assert AST.interpret([r.y, SQUARE], {"y": 3}) == 9.0
    with pytest.raises(ValueError, match=r"^word 1: reads input 'x', which has no values$"):
        AST.interpret([r.y, r.x, I.add_ftz_f32], {"y": 3})


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"x": 1.0, "q": 2.0}, r"^input 'q': unknown, one of: x, y$"),
        ({"x": "one", "y": 2.0}, r"^input 'x': expected numbers, got <U3$"),
        ({"x": np.zeros(2), "y": np.zeros(3)}, r"^inputs: shapes that do not broadcast to one: x \(2,\), y \(3,\)$"),
    ],
)
def test_wrong_inputs_are_refused_by_name(inputs, message):
    with pytest.raises(ValueError, match=message):
        AST.interpret(LISTING, inputs)


# ---- errors ----


def words_of(*words: int) -> np.ndarray:
    return np.array(words, np.uint64)


DEEP = [Routine("r0", 0, [1.0])]
for _depth in range(1, ROUTINE_DEPTH + 1):
    DEEP.append(Routine(f"r{_depth}", 0, [DEEP[-1]]))


# The texts of evo.native.ast_ptx; C's codes, one by one, are in tests/csrc/test_ast_ptx.c.
@pytest.mark.parametrize(
    ("program", "message"),
    [
        ([r.x, I.add_ftz_f32], "word 1: add.ftz.f32 takes 2 values and finds fewer on the stack"),
        ([], "word 0: the return finds none on the stack"),
        ([r.x, r.y], "word 2: more than one value is left at the return"),
        ([r.x] * (STACK_DEPTH + 1), f"word {STACK_DEPTH}: more than {STACK_DEPTH} values on the stack"),
        ([r.x, *[I.abs_ftz_f32] * MAX_INSTRUCTIONS], f"word {MAX_INSTRUCTIONS}: more than {MAX_INSTRUCTIONS} words run"),
        ([A], "word 0: argument 0 is not an argument of this call"),
        (words_of(0xFFFF, 5), "word 0: 0x000000000000ffff is not a word; is a return missing before it?"),
        (words_of(1 | 2 << 32, 5), "word 0: input 2, but there are 2"),
        (words_of(4 | 2 << 32, 5), "word 0: routine 2, but there are 2"),
        (words_of(1, 3 | 1 << 16 | 3 << 32, 5), "word 1: mul.ftz.f32 with 1 operands in its word, expected 2"),
        (words_of(1, 3 | 9 << 16 | 3 << 32, 5), f"word 1: 9 operands, expected at most {MAX_INSTRUCTION_ARGS}"),
        (words_of(), "word 0: there is no return"),
    ],
)
def test_a_wrong_program_is_refused_with_its_word(program, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        AST.compile(program)
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        AST.interpret(program, {"x": 1.0, "y": 1.0})


def test_errors_name_the_program_of_a_batch_and_the_instruction_that_only_ptx_has():
    unknown = words_of(1, 3 | 1 << 16 | 18 << 32, 5)
    with pytest.raises(ValueError, match=r"^program 1, word 1: instruction 18, but there are 18$"):
        AST.compile_batch([LISTING, unknown])
    with pytest.raises(ValueError, match=r"^word 1: instruction 18 has no CPU meaning$"):
        AST.interpret(unknown, {"x": 1.0})
    with pytest.raises(ValueError, match=rf"^routine 'r1', word 0: routine 'r0' is called {ROUTINE_DEPTH + 1} deep, expected at"):
        AstPTX([], "z", routines=DEEP).compile([DEEP[ROUTINE_DEPTH]])


def test_a_wrong_word_of_a_routine_is_refused_with_the_routine():
    wrong = Routine("wrong", 1, [A, B, I.add_ftz_f32])
    ast = AstPTX(["x"], "z", routines=[wrong])
    with pytest.raises(ValueError, match=r"^routine 'wrong', word 1: argument 1 is not an argument of this call$"):
        ast.compile([Register("x"), wrong])
    assert "%x" in ast.compile([Register("x")])


@pytest.mark.parametrize(
    ("element", "error", "message"),
    [
        (Register("q"), ValueError, "word 1: register 'q' is not an input, one of: x, y"),
        (Routine("cube", 1, [A]), ValueError, "word 1: routine 'cube' is unknown, one of: square, distance"),
        (Instruction("add.f32", 2), ValueError, "word 1: add.f32 with 2 operands is not among the instructions"),
        (1e39, ValueError, "word 1: 1e+39 is out of the range of f32"),
        (Argument(-1), ValueError, "word 1: -1 does not fit into 32 bits"),
        (Bits(1 << 32), ValueError, "word 1: 4294967296 does not fit into 32 bits"),
        (True, TypeError, "word 1: True is a bool, expected a register, number, instruction, routine, Argument or Bits"),
        ("x", TypeError, "word 1: 'x' is a str, expected a register"),
    ],
)
def test_an_unknown_element_is_refused_with_its_index(element, error, message):
    with pytest.raises(error, match=re.escape(message)):
        AST.compile([r.x, element])


@pytest.mark.parametrize("name", ["f1", "ast0", "x y", "", "x\0", "é"])
def test_colliding_or_impossible_register_names_are_refused(name):
    for inputs, output in (([name], "z"), (["x"], name)):
        with pytest.raises(ValueError, match=rf"^register {re.escape(repr(name))}: not a name"):
            AstPTX(inputs, output)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AstPTX(["x", "x"], "z"), "input 'x': the name is used twice"),
        (lambda: AstPTX(["x"], "z", routines=[SQUARE, Routine("square", 0, [1.0])]), "routine 'square': the name is used twice"),
        (lambda: AstPTX(["x"], "z", routines=[DISTANCE]), "routine 'distance', word 1: routine 'square' is unknown"),
        (lambda: AstPTX(["x"], "z", [Instruction("five.f32", 5)]), "instruction five.f32: 5 operands, expected 0 to 4"),
        (lambda: AstPTX(["x"], "z", [Instruction("a; b", 1)]), "instruction 'a; b': expected a name such as add.ftz.f32"),
        (lambda: Routine("r", STACK_DEPTH + 1, []), f"routine 'r': {STACK_DEPTH + 1} arguments, expected 0 to {STACK_DEPTH}"),
    ],
)
def test_a_wrong_language_is_refused(make, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        make()


def test_arrays_of_another_type_or_shape_are_refused():
    compiler = AstCompiler("z", ["x"], [("add.f32", 2)])
    with pytest.raises(
        ValueError, match=r"^words: expected uint64 of shape \(num_programs, max_length\), got int64 of \(1, 2\)$"
    ):
        compiler.emit(np.zeros((1, 2), np.int64))
    for words in (np.zeros(3), np.zeros((1, 1), np.uint64), np.zeros(3, np.int64)):
        with pytest.raises(ValueError, match=r"^words: expected uint64 of shape \(length,\), got "):
            AST.compile(words)
    with pytest.raises(ValueError, match=r"^routine: expected uint64 of shape \(length,\)"):
        AstCompiler("z", ["x"], [], [np.zeros((1, 2), np.uint64)])
    with pytest.raises(ValueError, match=r"^input 1: expected float32 of shape \(3,\), got float32 of \(2,\)$"):
        interpret(words_of(1, 5)[None], [None, np.zeros(2, np.float32)], 3)
    with pytest.raises(ValueError, match=r"^instruction .* use printable ASCII characters$"):
        AstCompiler("z", ["x"], [("add\0", 2)])


# ---- what assemblers take ----


EXACT = [
    I.copysign_f32, I.add_ftz_f32, I.sub_ftz_f32, I.mul_ftz_f32, I.fma_rn_ftz_f32, I.abs_ftz_f32, I.neg_ftz_f32, I.min_ftz_f32,
    I.max_ftz_f32, SQUARE,
]  # fmt: skip


def random_program(rng: np.random.Generator, size: int, usable: Sequence = (*INSTRUCTIONS, SQUARE, DISTANCE)) -> list:
    """A valid program of about this many elements over every instruction, both routines, inputs and constants of any bits."""
    program, height = [], 0
    while len(program) < size or height != 1:
        callables = usable if len(program) < size else [I.add_ftz_f32, I.fma_rn_ftz_f32]
        element = callables[rng.integers(len(callables))]
        if height >= element.num_args and (rng.random() < 0.6 or len(program) >= size):
            program.append(element)
            height -= element.num_args - 1
        elif len(program) < size or height == 0:
            leaves = [r.x, r.y, Bits(int(rng.integers(1 << 32))), float(np.float32(rng.normal()))]
            program.append(leaves[rng.integers(len(leaves))])
            height += 1
    return program


def assemble(stubs: list[str], opt_level: int = 0) -> bytes:
    """A cubin of a kernel that runs the stubs one after the other, between loads of x and y and a store of z."""
    nvptxcompiler = pytest.importorskip("evo.native.nvptxcompiler", reason="built without the wheel nvidia-nvptxcompiler")
    lines = [
        ".version 8.1\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p)\n{",
        ".reg .u64 %pointer;\n.reg .f32 %x, %y, %z;\nld.param.u64 %pointer, [p];",
    ]
    for stub in stubs:
        lines += ["ld.global.f32 %x, [%pointer];\nld.global.f32 %y, [%pointer + 4];", stub, "st.global.f32 [%pointer + 8], %z;"]
    return nvptxcompiler.compile("\n".join([*lines, "ret;\n}\n"]), ("--gpu-name=sm_90", f"--opt-level={opt_level}"))


def test_random_programs_assemble():
    rng = np.random.default_rng(0)
    assert assemble(AST.compile_batch([random_program(rng, int(rng.integers(1, 60))) for _ in range(100)]))


def test_a_stub_that_an_emulator_runs_gives_the_bits_of_the_interpreter():
    rng = np.random.default_rng(6)
    programs = [random_program(rng, 25, EXACT) for _ in range(30)]
    x, y = np.concatenate(
        [rng.integers(0, 1 << 32, (2, 64), np.uint32), rng.normal(size=(2, 64)).astype(np.float32).view(np.uint32)], 1
    )
    x, y, z = x.view(np.float32), y.view(np.float32), np.zeros((len(programs), x.size), np.float32)
    lines = [
        ".version 8.1\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 xs, .param .u64 ys, .param .u64 zs)\n{",
        ".reg .u64 %xs, %ys, %zs, %offset;\n.reg .u32 %index;\n.reg .f32 %x, %y, %z;",
        "ld.param.u64 %xs, [xs];\nld.param.u64 %ys, [ys];\nld.param.u64 %zs, [zs];",
        "mov.u32 %index, %tid.x;\nmul.wide.u32 %offset, %index, 4;",
        "\n".join(f"add.u64 %{name}s, %{name}s, %offset;" for name in "xyz"),
        "ld.global.f32 %x, [%xs];\nld.global.f32 %y, [%ys];",
    ]
    for row, stub in enumerate(AST.compile_batch(programs)):
        lines += [stub, f"st.global.f32 [%zs + {row * x.nbytes}], %z;"]
    parameters = struct.pack("=3Q", *(array.ctypes.data for array in (x, y, z)))
    launch(Module("\n".join([*lines, "ret;\n}\n"])), "k", (1,), (x.size,), parameters, Memory.of_arrays(x, y, z))
    np.testing.assert_array_equal(z.view(np.uint32), AST.interpret_batch(programs, {"x": x, "y": y}).view(np.uint32))


# ---- imports ----
