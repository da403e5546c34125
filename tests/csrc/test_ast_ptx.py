"""AST PTX as a library: its debug switch, its implementations in separate files, and the bits of its interpreter."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from evo.ast_ptx import INSTRUCTIONS, AstPTX

CSRC = Path(__file__).parents[2] / "csrc"
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Werror")
LANGUAGES = [("gcc", "c99"), ("g++", "c++11"), ("clang", "c99"), ("clang++", "c++11")]


def build(folder: Path, command: str, standard: str, *sources: str, flags: tuple[str, ...] = ()) -> Path:
    """The program made of these sources, each a file."""
    if shutil.which(command) is None:
        if os.environ.get("CI"):
            pytest.fail(f"{command} is not installed; in CI nothing is skipped for that")
        pytest.skip(f"{command} is not installed")
    suffix = "cpp" if "+" in standard else "c"
    files = []
    for index, source in enumerate(sources):
        files.append(folder / f"source_{index}.{suffix}")
        files[-1].write_text(source)
    program = folder / "program"
    done = subprocess.run(
        [command, f"-std={standard}", *WARNINGS, "-O2", *flags, "-I", CSRC, *files, "-o", program, "-lm"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return program


WRONG_CALLS = {
    "ast_ptx_check_name": ("ast_ptx", 'ast_ptx_check_name("f1")', "AST_PTX_ERROR_INVALID_VALUE"),
    "ast_ptx__check_word": (
        "ast_ptx_interpreter",
        "ast_ptx_interpret(program, NULL, 0, NULL, 0, &value)",
        "AST_PTX_ERROR_INPUT_IDX_OUT_OF_BOUNDS",
    ),
}


@pytest.mark.parametrize("place", WRONG_CALLS)
def test_debug_switch_turns_an_error_into_an_assert_at_its_place(tmp_path, place):
    header, call, code = WRONG_CALLS[place]
    source = (
        f"#define AST_PTX_DEBUG\n#define {header.upper()}_IMPLEMENTATION\n#include <{header}.h>\n"
        "static const AstPtxInstruction program[] = {ast_ptx_encode_input(0), ast_ptx_encode_return};\n"
        f"int main(void) {{\n    float value = 0.0f;\n    const int result = {call} == {code};\n"
        "    return result + (int)value + (int)program[0].aux;\n}\n"
    )
    done = subprocess.run([build(tmp_path, "gcc", "c99", source)], capture_output=True, text=True, check=False)
    assert done.returncode == -6  # SIGABRT
    assert place in done.stderr
    assert code in done.stderr


MAIN = """
#include <ast_ptx_interpreter.h>
#include <stdio.h>
#include <string.h>

static const AstPtxInstruction square[] = {
    ast_ptx_encode_routine_arg(0), ast_ptx_encode_routine_arg(0),
    ast_ptx_encode_ptx_instruction_mul_ftz_f32, ast_ptx_encode_return
};
static const AstPtxInstruction* const routines[] = {square};
static const AstPtxInstruction program[] = {
    ast_ptx_encode_input(1), ast_ptx_encode_routine(0, 1), ast_ptx_encode_constant(0.5f),
    ast_ptx_encode_ptx_instruction_sub_ftz_f32, ast_ptx_encode_return
};

int main(void) {
    static const char* const names[] = {"x", "y"};
    static const float inputs[] = {0.0f, 3.0f};
    char text[256];
    float value = 0.0f;
    size_t length = 0;
    if (ast_ptx_compile(
            "z", names, 2, ast_ptx_ptx_instruction_names, ast_ptx_ptx_instruction_num_args, AST_PTX_PTX_INSTRUCTION_NUM_ENUMS,
            routines, 1, program, text, sizeof text, &length
        ) != AST_PTX_SUCCESS || ast_ptx_interpret(program, routines, 1, inputs, 2, &value) != AST_PTX_SUCCESS) {
        return 1;
    }
    (void)puts(text);
    return length == strlen(text) && value == 8.5f ? 0 : 2;
}
"""


@pytest.mark.parametrize(("command", "standard"), LANGUAGES)
def test_an_implementation_in_a_file_of_its_own_serves_others(tmp_path, command, standard):
    program = build(
        tmp_path,
        command,
        standard,
        MAIN,
        "#define AST_PTX_IMPLEMENTATION\n#include <ast_ptx.h>\n",
        "#include <ast_ptx_interpreter.h>\n",
    )
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stdout == (
        "{\n.reg .f32 %ast<2>;\nmul.ftz.f32 %ast0, %y, %y;\nsub.ftz.f32 %ast1, %ast0, 0f3f000000;\nmov.f32 %z, %ast1;\n}\n"
    )


# Prints the bits of each instruction at each of the floats that it reads.
EACH_INSTRUCTION = """
#include <ast_ptx_interpreter.h>
#include <stdio.h>

int main(void) {
    float a, b, c;
    while (fread(&a, 4, 1, stdin) == 1 && fread(&b, 4, 1, stdin) == 1 && fread(&c, 4, 1, stdin) == 1) {
        const float inputs[3] = {a, b, c};
        uint32_t i, k;
        for (i = 0; i < AST_PTX_PTX_INSTRUCTION_NUM_ENUMS; ++i) {
            const uint16_t num_args = ast_ptx_ptx_instruction_num_args[i];
            AstPtxInstruction program[5];
            float value = 0.0f;
            for (k = 0; k < num_args; ++k) {
                program[k] = ast_ptx_encode_input(k);
            }
            program[num_args] = ast_ptx_encode_ptx_instruction(i, num_args);
            program[num_args + 1] = ast_ptx_encode_return;
            if (ast_ptx_interpret(program, NULL, 0, inputs, 3, &value) != AST_PTX_SUCCESS || fwrite(&value, 4, 1, stdout) != 1) {
                return 1;
            }
        }
    }
    return 0;
}
"""
AVX512 = ("-mavx512f", "-mavx512dq", "-mavx512bw", "-mavx512vl")


@pytest.mark.parametrize(
    ("command", "standard", "flags"),
    [
        ("gcc", "c99", ()),
        ("g++", "c++11", ("-mfma", "-mavx2", "-ffp-contract=fast")),
        ("clang", "c99", ("-mfma", *AVX512)),
        ("gcc", "c99", ("-DPTX_VM_PORTABLE", "-O0")),
    ],
    ids=["baseline", "avx2", "avx512", "portable"],
)
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the flags are those of x86-64")
def test_interpreter_gives_the_same_bits_at_each_level_of_the_compilers_flags(tmp_path, command, standard, flags):
    needed = {"fma", "avx2", "avx512f"} & {flag.removeprefix("-m") for flag in flags}
    if not needed <= set(Path("/proc/cpuinfo").read_text().split()):
        pytest.skip("this CPU lacks them")
    rng = np.random.default_rng(1)
    normal = (rng.normal(size=3000) * 10.0 ** rng.uniform(-3, 3, 3000)).astype(np.float32)
    floats = np.concatenate([rng.integers(0, 1 << 32, 3000, np.uint32).view(np.float32), normal])
    program = build(tmp_path, command, standard, EACH_INSTRUCTION, flags=flags)
    done = subprocess.run([program], input=floats.tobytes(), capture_output=True, check=True)
    inputs = dict(zip("abc", floats.reshape(-1, 3).T, strict=True))
    ast = AstPTX(inputs, "z")
    programs = [[*list(ast.registers)[: instruction.num_args], instruction] for instruction in INSTRUCTIONS]
    expected = ast.interpret_batch(programs, inputs).T.ravel().view(np.uint32)
    np.testing.assert_array_equal(np.frombuffer(done.stdout, np.uint32), expected)


@pytest.mark.parametrize(
    ("option", "reason"),
    [("AST_PTX_STACK_DEPTH=0", "are at least 1"), ("AST_PTX_MAX_INSTRUCTIONS=-1", "not negative")],
)
def test_limits_that_make_no_sense_do_not_compile(tmp_path, option, reason):
    if shutil.which("gcc") is None and not os.environ.get("CI"):
        pytest.skip("gcc is not installed")
    source = tmp_path / "main.c"
    source.write_text("#define AST_PTX_IMPLEMENTATION\n#include <ast_ptx.h>\n")
    done = subprocess.run(
        ["gcc", f"-D{option}", "-I", CSRC, "-c", source, "-o", tmp_path / "main.o"], capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert reason in done.stderr
