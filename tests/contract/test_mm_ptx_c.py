"""C written for mm-ptx compiles against the headers unchanged and gives the same stubs.

The programs follow the snippets of mm-ptx's readmes (1.0 and 1.1), with the calls that these leave out. Stack PTX writes operands
in the order in which they are popped; the stub in the readme of 1.1 shows operands that commute in the other order.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from compilers import CSRC, WARNINGS, build, run

# The oldest and the newest standard, as in test_c_headers.py and test_single_headers.py.
C = [("gcc", "c99"), ("clang", "c2x")]
CPP = [("g++", "c++11"), ("clang++", "c++2b")]


def output(program: Path) -> str:
    return subprocess.run([program], capture_output=True, text=True, check=True).stdout


STACK_PTX = """
#define STACK_PTX_IMPLEMENTATION
#include <stack_ptx.h>
#include <stack_ptx_default_info.h>
#include "generated/stack_ptx_descriptions.h"

#include <stdio.h>
#include <stdlib.h>

enum {{ REG_X, REG_Y, REG_Z, REG_COUNT }};

static const StackPtxRegister registers[] = {{
    [REG_X] = {{ .name = "x", .stack_idx = STACK_PTX_STACK_TYPE_F32 }},
    [REG_Y] = {{ .name = "y", .stack_idx = STACK_PTX_STACK_TYPE_F32 }},
    [REG_Z] = {{ .name = "z", .stack_idx = STACK_PTX_STACK_TYPE_F32 }},
}};

static const StackPtxInstruction instructions[] = {{
    {instructions}
    stack_ptx_encode_return
}};

static const size_t requests[] = {{ REG_Z }};

static void stackPtxCheck(StackPtxResult result) {{
    if (result != STACK_PTX_SUCCESS) {{
        fprintf(stderr, "%s\\n", stack_ptx_result_to_string(result));
        exit(1);
    }}
}}

int main(void) {{
    size_t workspace_size = 0, length = 0, written = 0;
    void* workspace;
    char* buffer;
    stackPtxCheck(stack_ptx_compile_workspace_size(&compiler_info, &stack_ptx_stack_info, &workspace_size));
    workspace = malloc(workspace_size);
    stackPtxCheck(stack_ptx_compile(
        &compiler_info, &stack_ptx_stack_info, instructions, registers, REG_COUNT, NULL, 0, requests,
        STACK_PTX_ARRAY_NUM_ELEMS(requests), STACK_PTX_ARRAY_NUM_ELEMS(instructions), workspace, workspace_size, NULL, 0, &length
    ));
    buffer = (char*)malloc(length + 1);
    stackPtxCheck(stack_ptx_compile(
        &compiler_info, &stack_ptx_stack_info, instructions, registers, REG_COUNT, NULL, 0, requests,
        STACK_PTX_ARRAY_NUM_ELEMS(requests), STACK_PTX_ARRAY_NUM_ELEMS(instructions), workspace, workspace_size, buffer,
        length + 1, &written
    ));
    puts(buffer);
    free(buffer);
    free(workspace);
    return written == length ? 0 : 2;
}}
"""
MULTIPLY_ADD = """stack_ptx_encode_input(REG_X),
    stack_ptx_encode_input(REG_Y),
    stack_ptx_encode_ptx_instruction_mul_ftz_f32,
    stack_ptx_encode_constant_f32(1.0f),
    stack_ptx_encode_ptx_instruction_add_ftz_f32,"""
ADD_TWICE = """stack_ptx_encode_input(REG_X),
    stack_ptx_encode_input(REG_Y),
    stack_ptx_encode_ptx_instruction_add_ftz_f32,
    stack_ptx_encode_input(REG_X),
    stack_ptx_encode_ptx_instruction_add_ftz_f32,"""


@pytest.mark.parametrize(("command", "standard"), C)
@pytest.mark.parametrize(
    ("instructions", "lines"),
    [
        (MULTIPLY_ADD, ["mul.ftz.f32 %_s0_0, %y, %x;", "add.ftz.f32 %_s0_1, 0f3F800000, %_s0_0;"]),
        (ADD_TWICE, ["add.ftz.f32 %_s0_0, %y, %x;", "add.ftz.f32 %_s0_1, %x, %_s0_0;"]),
    ],
    ids=["1.1", "1.0"],
)
def test_stack_ptx_of_the_readmes(tmp_path, command, standard, instructions, lines):
    program = build(tmp_path, command, standard, STACK_PTX.format(instructions=instructions))
    assert output(program).splitlines() == ["{", ".reg .f32 %_s0_<2>;", *lines, "mov.f32 %z, %_s0_1;", "}"]


AST_PTX = """
#define AST_PTX_IMPLEMENTATION
#include <ast_ptx.h>
#include <ast_ptx_instructions.h>
#include <ast_ptx_interpreter.h>

#include <stdio.h>
#include <stdlib.h>

enum { INPUT_X, INPUT_Y, INPUT_COUNT };

// Bare names: AST PTX emits the leading percent sign in generated PTX.
const char output_register_name[] = "z";
const char* const input_register_names[INPUT_COUNT] = {
    [INPUT_X] = "x",
    [INPUT_Y] = "y",
};

static const AstPtxInstruction program[] = {
    ast_ptx_encode_input(INPUT_X),
    ast_ptx_encode_input(INPUT_Y),
    ast_ptx_encode_ptx_instruction_mul_ftz_f32,
    ast_ptx_encode_constant(1.0f),
    ast_ptx_encode_ptx_instruction_add_ftz_f32,
    ast_ptx_encode_return
};

static void astPtxCheck(AstPtxResult result) {
    if (result != AST_PTX_SUCCESS) {
        fprintf(stderr, "%s\\n", ast_ptx_result_to_string(result));
        exit(1);
    }
}

int main(void) {
    static const float inputs[INPUT_COUNT] = {3.0f, 4.0f};
    size_t length = 0, written = 0;
    float value = 0.0f;
    char* buffer;
    astPtxCheck(ast_ptx_compile(
        output_register_name, input_register_names, INPUT_COUNT, ast_ptx_ptx_instruction_names, ast_ptx_ptx_instruction_num_args,
        AST_PTX_PTX_INSTRUCTION_NUM_ENUMS, NULL, 0, program, NULL, 0, &length
    ));
    buffer = (char*)malloc(length + 1);
    astPtxCheck(ast_ptx_compile(
        output_register_name, input_register_names, INPUT_COUNT, ast_ptx_ptx_instruction_names, ast_ptx_ptx_instruction_num_args,
        AST_PTX_PTX_INSTRUCTION_NUM_ENUMS, NULL, 0, program, buffer, length + 1, &written
    ));
    puts(buffer);
    free(buffer);
    astPtxCheck(ast_ptx_interpret(program, NULL, 0, inputs, INPUT_COUNT, &value));
    printf("%g\\n", (double)value);
    return written == length ? 0 : 2;
}
"""


@pytest.mark.parametrize(("command", "standard"), C)
def test_ast_ptx_of_the_readme(tmp_path, command, standard):
    assert output(build(tmp_path, command, standard, AST_PTX)).splitlines() == [
        "{",
        ".reg .f32 %ast<2>;",
        "mul.ftz.f32 %ast0, %x, %y;",
        "add.ftz.f32 %ast1, %ast0, 0f3f800000;",
        "mov.f32 %z, %ast1;",
        "}",
        "13",
    ]


# Features of both languages: words that initialise, static objects too, and that are assigned; names, tables and constants; and
# functions with the names of the check macros.
COMMON = """
#include <stack_ptx.h>
#include <stack_ptx_default_info.h>
#include "generated/stack_ptx_descriptions.h"
#include <ast_ptx.h>
#include <ast_ptx_instructions.h>
#include <ast_ptx_interpreter.h>

#include <stdio.h>
#include <string.h>

typedef struct { StackPtxInstruction word; int count; } Row;

static StackPtxInstruction one = stack_ptx_encode_input(2);
static const Row rows[] = {{stack_ptx_encode_constant_f32(1.5f), 1}, {stack_ptx_encode_meta_rotate(STACK_PTX_STACK_TYPE_U32), 2}};
static const AstPtxInstruction ast[] = {ast_ptx_encode_constant(2.0f), ast_ptx_encode_routine(3, 2), ast_ptx_encode_return};

static int stackPtxCheck(StackPtxResult result) { return result == STACK_PTX_SUCCESS; }
static int astPtxCheck(AstPtxResult result) { return result == AST_PTX_SUCCESS; }

static void print(StackPtxInstruction word) {
    unsigned long long bits = 0;
    memcpy(&bits, &word, sizeof bits);
    printf("%016llx\\n", bits);
}

int main(void) {
    static const StackPtxInstruction local[] = {stack_ptx_encode_load(7), stack_ptx_encode_special_register_tid_x};
    StackPtxStackIdx stack = STACK_PTX_STACK_TYPE_PHILOX;
    StackPtxArgIdx arg = STACK_PTX_ARG_TYPE_V2_F16;
    StackPtxIdx idx = 4000000000u;
    AstPtxIdx ast_idx = 3;
    StackPtxInstruction words[8];
    AstPtxInstruction word;
    float value = 0.0f;
    size_t i;
    words[0] = stack_ptx_encode_input(idx);
    words[1] = stack_ptx_encode_constant_u32(9);
    words[2] = stack_ptx_encode_store(stack, 5);
    words[3] = stack_ptx_encode_meta_constant(6);
    words[4] = stack_ptx_encode_routine(1);
    words[5] = stack_ptx_encode_ptx_instruction_sub_ftz_f32;
    words[6] = stack_ptx_encode_return;
    words[7] = stack_ptx_ptx_instructions[STACK_PTX_PTX_INSTRUCTION_MUL_HI_PHILOX];
    for (i = 0; i < STACK_PTX_ARRAY_NUM_ELEMS(words); ++i) {
        print(words[i]);
    }
    print(one);
    print(rows[0].word);
    print(rows[1].word);
    print(local[0]);
    print(local[1]);
    word = ast_ptx_encode_input(ast_idx);
    printf("%d %d %u\\n", word.instruction_type, word.aux, (unsigned)word.payload.idx);
    word = ast_ptx_encode_ptx_instruction_sub_ftz_f32;
    printf("%d %d %u\\n", word.instruction_type, word.aux, (unsigned)word.payload.idx);
    printf("%d %d %g\\n", ast[1].instruction_type, ast[1].aux, (double)ast[0].payload.f);
    printf("%d %d\\n", STACK_PTX_RESULT_NUM_ELEMS, AST_PTX_RESULT_NUM_ELEMS);
    printf("%d %s\\n", STACK_PTX_VERSION == 10100 && AST_PTX_VERSION == 10100, STACK_PTX_VERSION_STRING AST_PTX_VERSION_STRING);
    printf("%u\\n", (unsigned)stack_ptx_arg_type_info[arg].num_vec_elems);
    printf("%s\\n", stack_ptx_ptx_instruction_display_names[STACK_PTX_PTX_INSTRUCTION_ADD_PHILOX]);
    printf("%s\\n", stack_ptx_special_register_display_names[STACK_PTX_SPECIAL_REGISTER_TID_X]);
    printf("%u\\n", (unsigned)compiler_info.stack_size);
    printf("%d\\n", stackPtxCheck(STACK_PTX_SUCCESS) + astPtxCheck(ast_ptx_interpret(ast, NULL, 0, NULL, 0, &value)));
    return 0;
}
"""
COMMON_OUTPUT = """\
ee6b280000000003
0000000900010002
000000050008000b
0000000600000006
0000000100000007
0000000600000001
000000000000000a
0000002500000001
0000000200000003
3fc0000000000002
0000000700010005
000000070000000c
0000000100000004
1 0 3
3 2 2
4 2 2
19 14
1 1.1.01.1.0
2
add.u32
tid.x
128
1
"""


@pytest.mark.parametrize(("command", "standard"), C + CPP)
def test_words_names_and_tables_are_there_in_both_languages(tmp_path, command, standard):
    assert output(build(tmp_path, command, standard, COMMON)) == COMMON_OUTPUT


@pytest.mark.parametrize("command", ["gcc", "g++"])
def test_headers_have_no_warning_for_32_bits(tmp_path, command):
    """glibc's 64-bit headers serve C for 32 bits, but for one file, which is made here: nothing is linked."""
    standard, suffix = ("c99", "c") if command == "gcc" else ("c++11", "cpp")
    (tmp_path / "gnu").mkdir()
    (tmp_path / "gnu" / "stubs-32.h").write_text("")
    file = tmp_path / f"main.{suffix}"
    libraries = ("STACK_PTX", "AST_PTX", "PTX_INJECT")
    headers = ("stack_ptx", "ast_ptx", "ast_ptx_interpreter", "generated/stack_ptx_descriptions", "ptx_inject")
    run(sys.executable, CSRC / "single_headers.py", tmp_path / "single")
    includes = {name for each in headers for name in re.findall("#include (<.*>)", (tmp_path / f"single/{each}.h").read_text())}
    file.write_text("".join(f"#if __has_include({name})\n#include {name}\n#endif\n" for name in sorted(includes)))
    # The interpreter flushes subnormals, which takes SSE2; compilers use it for 64 bits without being asked.
    options = ["-m32", "-msse2", "-mfpmath=sse", "-fsyntax-only", f"-std={standard}", *WARNINGS, "-Wpedantic"]
    compile_32 = [command, *options, "-I", CSRC, "-isystem", tmp_path, "-isystem", "/usr/include/x86_64-linux-gnu", file]
    if shutil.which(command) is None or subprocess.run(compile_32, capture_output=True, check=False).returncode != 0:
        assert not os.environ.get("CI"), "CI has gcc-multilib and g++-multilib"
        pytest.skip(f"{command} -m32 finds no C library: install gcc-multilib and g++-multilib")
    file.write_text(
        "".join(f"#define {library}_IMPLEMENTATION\n" for library in libraries)
        + "".join(f"#include <{header}.h>\n" for header in headers)
        + "typedef char narrow[sizeof(size_t) == 4 ? 1 : -1];\n"
    )
    done = subprocess.run(compile_32, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
