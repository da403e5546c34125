"""What preprocessors make of the macros of ptx_inject.h, and what its switches do.

Knows nothing of CUDA: the macros only need the text of a compiler's preprocessor. What CUDA compilers make of the result is
tested in tests/unit/native/test_ptx_inject_compiled.py.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

CSRC = Path(__file__).parent.parent.parent / "csrc"
COMPILERS = [("g++", "c++11"), ("g++", "gnu++17"), ("g++", "c++20"), ("clang++", "c++11"), ("clang++", "c++20")]
DEVICE = ("-D__CUDACC__", "-D__CUDACC_RTC__")


@pytest.fixture(params=COMPILERS, ids="-".join)
def expand(request):
    """Preprocesses lines of device code and returns the asm statements in them as (template, outputs, inputs)."""
    name, standard = request.param
    compiler = shutil.which(name)
    if compiler is None:
        if os.environ.get("CI"):
            pytest.fail(f"{name} is not installed; in CI nothing is skipped for that")
        pytest.skip(f"{name} is not installed")

    def run(*lines: str, before: tuple[str, ...] = ()) -> list[tuple[str, str, str]]:
        source = "\n".join([*before, '#include "ptx_inject.h"', *lines, ""])
        command = [compiler, f"-std={standard}", "-E", "-P", "-x", "c++", *DEVICE, "-I", str(CSRC), "-"]
        done = subprocess.run(command, input=source, capture_output=True, text=True, timeout=300, check=True)
        assert done.stderr == ""
        return [statement(text) for text in re.findall(r"asm(?: volatile)?\s*\((.*?)\)\s*;", done.stdout, re.DOTALL)]

    return run


def statement(text: str) -> tuple[str, str, str]:
    """Template, outputs and inputs of what stands in an asm statement's parentheses; the lists without white space."""
    literal = r'"(?:[^"\\]|\\.)*"'
    template, rest = re.fullmatch(rf"\s*((?:{literal}\s*)+)(.*)", text, re.DOTALL).groups()
    outputs, inputs = re.fullmatch(rf"\s*:((?:{literal}|[^:\"])*):((?:{literal}|[^:\"])*)", rest, re.DOTALL).groups()
    # Neighbouring literals are one to a compiler.
    return ast.literal_eval(f"({template})"), *(re.sub(r"\s", "", part).replace('""', "") for part in (outputs, inputs))


def lines_of(template: str) -> list[str]:
    return [line.strip() for line in template.replace("%%", "%").splitlines()]


def test_operands_are_declared_moved_and_marked_in_the_order_mod_out_in(expand):
    [(template, outputs, inputs)] = expand(
        'PTX_INJECT("func", PTX_IN (F32, x), PTX_MOD(F32, y), PTX_OUT(U32, z), PTX_IN(S32, w));'
    )
    assert lines_of(template) == [
        "{",
        ".reg .f32 %_x0;",
        "mov.f32 %_x0, %0;",
        ".reg .u32 %_x1;",
        ".reg .f32 %_x2;",
        "mov.f32 %_x2, %2;",
        ".reg .s32 %_x3;",
        "mov.s32 %_x3, %3;",
        "// PTX_INJECT_START func",
        "// _x0 m f32 F32 y",
        "// _x1 o u32 U32 z",
        "// _x2 i f32 F32 x",
        "// _x3 i s32 S32 w",
        "// PTX_INJECT_END",
        "mov.f32 %0, %_x0;",
        "mov.u32 %1, %_x1;",
        "}",
    ]
    assert "%_x" not in template.replace("%%_x", ""), "a percent sign of PTX's own is written twice"
    assert (outputs, inputs) == ('"+f"(y),"=r"(z)', '"f"(x),"r"(w)')


@pytest.mark.parametrize("num_operands", [0, 1, 7, 8, 9, 15, 16, 17, 23, 24, 25, 31, 32])
def test_up_to_32_operands_are_numbered_without_a_gap(expand, num_operands):
    kinds = ["OUT", "IN", "MOD", "IN", "OUT"]
    operands = [(kinds[i % 5], f"v{i}") for i in range(num_operands)]
    call = ", ".join(['PTX_INJECT("s"', *(f"PTX_{kind}(F32, {name})" for kind, name in operands)]) + ");"
    [(template, outputs, inputs)] = expand(call)
    order = [(kind, name) for wanted in ("MOD", "OUT", "IN") for kind, name in operands if kind == wanted]
    lines = lines_of(template)
    marks = lines[lines.index("// PTX_INJECT_START s") + 1 : lines.index("// PTX_INJECT_END")]
    assert marks == [f"// _x{i} {kind[0].lower()} f32 F32 {name}" for i, (kind, name) in enumerate(order)]
    assert [line for line in lines if line.startswith(".reg")] == [f".reg .f32 %_x{i};" for i in range(num_operands)]
    assert [line for line in lines if line.startswith("mov")] == [
        *(f"mov.f32 %_x{i}, %{i};" for i, (kind, _) in enumerate(order) if kind != "OUT"),
        *(f"mov.f32 %{i}, %_x{i};" for i, (kind, _) in enumerate(order) if kind != "IN"),
    ]
    sign = {"MOD": '"+f"', "OUT": '"=f"', "IN": '"f"'}
    assert outputs == ",".join(f"{sign[kind]}({name})" for kind, name in order if kind != "IN")
    assert inputs == ",".join(f"{sign[kind]}({name})" for kind, name in order if kind == "IN")


def test_types_have_the_contracts_registers_constraints_and_binding(expand):
    names = ["F16", "F16X2", "S32", "U32", "F32", "B32"]
    operands = ", ".join(f"PTX_IN({name}, v{i})" for i, name in enumerate(names))
    [(template, outputs, inputs)] = expand(f'PTX_INJECT("s", {operands}, PTX_PHILOX(state), PTX_OUT(F16, h));')
    lines = lines_of(template)
    assert lines[lines.index("// PTX_INJECT_START s") + 1 : lines.index("// PTX_INJECT_END")] == [
        "// _x0 m u32 PHILOX state",
        "// _x1 o b16 F16 h",
        "// _x2 i b16 F16 v0",
        "// _x3 i b32 F16X2 v1",
        "// _x4 i s32 S32 v2",
        "// _x5 i u32 U32 v3",
        "// _x6 i f32 F32 v4",
        "// _x7 i b32 B32 v5",
    ]
    assert outputs == '"+r"(state),"=h"(*(unsignedshort*)&(h))'
    assert inputs == '"h"(*(unsignedshort*)&(v0)),"r"(*(unsignedint*)&(v1)),"r"(v2),"r"(v3),"f"(v4),"r"(v5)'


def test_a_name_may_stand_for_another_expression(expand):
    [(template, outputs, inputs)] = expand(
        "PTX_INJECT_TOK(tok, PTX_OUT(F32, z, out[i]), PTX_IN(F32, sum, (a + f<1, 2>(b))), PTX_IN(F32, v.w));"
    )
    lines = lines_of(template)
    assert "// PTX_INJECT_START tok" in lines
    assert "// _x0 o f32 F32 z" in lines
    assert "// _x1 i f32 F32 sum" in lines
    assert "// _x2 i f32 F32 v.w" in lines
    assert (outputs, inputs) == ('"=f"(out[i])', '"f"((a+f<1,2>(b))),"f"(v.w)')


def test_user_macros_do_not_get_into_the_markers(expand):
    words = ["f", "r", "h", "f32", "F32", "b16", "ID", "U16", "in", "i", "n", "kind", "x", "a"]
    [(template, outputs, inputs)] = expand(
        *(f"#define {word} wrong_{word}" for word in words),
        "#define y data[1]",
        'PTX_INJECT("s", PTX_IN(F32, x), PTX_OUT(F16, y));',
    )
    assert "wrong" not in template
    assert {"// _x0 o b16 F16 y", "// _x1 i f32 F32 x"} <= set(lines_of(template))
    assert (outputs, inputs) == ('"=h"(*(unsignedshort*)&(data[1]))', '"f"(wrong_x)'), "an expression is the user's own"


def test_user_types_add_to_the_default_ones_or_replace_them(expand):
    own = "#define PTX_TYPE_INFO_MASK PTX_TYPES_DESC(u64, b64, l, ID)"
    [(template, outputs, _)] = expand(own, 'PTX_INJECT("s", PTX_MOD(MASK, m), PTX_MOD(U32, u));')
    assert {".reg .u64 %_x0;", "mov.b64 %_x0, %0;", "// _x0 m u64 MASK m", "mov.b64 %0, %_x0;"} <= set(lines_of(template))
    assert outputs == '"+l"(m),"+r"(u)'
    [(template, _, _)] = expand(
        "#ifdef PTX_TYPE_INFO_F32",
        'PTX_INJECT("default");',
        "#endif",
        own,
        'PTX_INJECT("s", PTX_MOD(MASK, m));',
        before=("#define PTX_INJECT_NO_DEFAULT_TYPES",),
    )
    assert "// PTX_INJECT_START s" in lines_of(template)


def preprocess(*options: str, source: str = '#include "ptx_inject.h"\n') -> str:
    command = ["gcc", "-E", "-P", *options, "-I", str(CSRC), "-"]
    return subprocess.run(command, input=source, capture_output=True, text=True, timeout=300, check=True).stdout


@pytest.mark.parametrize("volatile", [False, True])
def test_the_statement_is_volatile_only_if_the_user_says_so(volatile):
    options = ["-DPTX_INJECT_ASM=asm volatile"] if volatile else []
    text = preprocess(*DEVICE, *options, source='#include "ptx_inject.h"\nPTX_INJECT("s");\n')
    assert ("volatile" in text) is volatile
    assert re.search(r"asm( volatile)?\(", text)


def test_device_code_sees_the_macros_and_host_code_the_functions():
    source = '#include "ptx_inject.h"\n#ifdef PTX_INJECT\nMACRO\n#endif\n'
    assert "MACRO" not in (host := preprocess(source=source)) and "ptx_inject_create" in host
    assert "MACRO" in (nvcc := preprocess("-D__CUDACC__", source=source)) and "ptx_inject_create" in nvcc
    assert preprocess(*DEVICE, source=source).split() == ["MACRO"]
    assert preprocess(*DEVICE, "-DPTX_INJECT_IMPLEMENTATION", source=source).split() == ["MACRO"]


def test_debug_switch_turns_an_error_into_an_assert_at_its_place(tmp_path):
    source = tmp_path / "main.c"
    source.write_text(
        "#define PTX_INJECT_DEBUG\n#define PTX_INJECT_IMPLEMENTATION\n#include <ptx_inject.h>\n"
        "int main(void) { return ptx_inject_num_injects(NULL, NULL) == PTX_INJECT_ERROR_INVALID_INPUT ? 3 : 4; }\n"
    )
    subprocess.run(["gcc", "-std=c99", "-I", CSRC, source, "-o", tmp_path / "main"], timeout=300, check=True)
    done = subprocess.run([tmp_path / "main"], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == -6  # SIGABRT
    assert "ptx_inject_num_injects" in done.stderr
    assert "PTX_INJECT_ERROR_INVALID_INPUT" in done.stderr


@pytest.mark.parametrize(("compiler", "standard", "suffix"), [("gcc", "c99", "c"), ("g++", "c++11", "cpp")])
def test_check_macro_passes_success_and_ends_the_program_at_an_error_with_its_place(tmp_path, compiler, standard, suffix):
    source = tmp_path / f"main.{suffix}"
    source.write_text(
        "#include <stdio.h>\n#include <stdlib.h>\n#define PTX_INJECT_IMPLEMENTATION\n#include <ptx_inject.h>\n"
        "int main(int argc, char** argv) {\n    PtxInjectHandle handle;\n    (void)argv;\n"
        "    if (argc > 1)\n        ptxInjectCheck(ptx_inject_create(&handle, NULL));\n"
        '    else\n        ptxInjectCheck(ptx_inject_create(&handle, ""));\n'
        "    ptxInjectCheck(ptx_inject_destroy(handle));\n    return 3;\n}\n"
    )
    warnings = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror")
    command = [compiler, f"-std={standard}", *warnings, "-I", CSRC, source, "-o", tmp_path / "main"]
    subprocess.run(command, timeout=300, check=True)
    passes = subprocess.run([tmp_path / "main"], capture_output=True, text=True, timeout=300, check=False)
    assert (passes.returncode, passes.stderr) == (3, "")
    fails = subprocess.run([tmp_path / "main", "x"], capture_output=True, text=True, timeout=300, check=False)
    assert (fails.returncode, fails.stderr) == (1, f"{source}:9: PTX_INJECT_ERROR_INVALID_INPUT\n")
