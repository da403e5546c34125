"""AST PTX as a library: its debug switch, its implementations in separate files, and the bits of its interpreter."""

import platform
import subprocess
from pathlib import Path

import numpy as np
import pytest
from compilers import CSRC, build, compiler

from evo.ast_ptx import INSTRUCTIONS, AstPTX

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
    program = build(tmp_path, command, standard, EACH_INSTRUCTION, "-O2", *flags)
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
    source = tmp_path / "main.c"
    source.write_text("#define AST_PTX_IMPLEMENTATION\n#include <ast_ptx.h>\n")
    command = [compiler("gcc"), f"-D{option}", "-I", CSRC, "-c", source, "-o", tmp_path / "main.o"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert reason in done.stderr
