"""Expansions of the macros of ptx_inject.h by preprocessors, and effects of its switches.

Knows nothing of CUDA: the macros only need the text of a compiler's preprocessor. What CUDA compilers make of the result is
tested in tests/unit/native/test_ptx_inject_compiled.py.
"""

import ast
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from evo.ptx_inject import PTXInject, Variable

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


def test_up_to_64_operands_are_numbered_without_a_gap(expand):
    kinds = ["OUT", "IN", "MOD", "IN", "OUT"]
    counts = [*range(13), 19, 20, 21, 29, 30, 31, 40, 41, 50, 51, 60, 61, 63, 64]
    sites = [[(kinds[i % 5], f"v{i}") for i in range(count)] for count in counts]
    calls = [", ".join(['PTX_INJECT("s"', *(f"PTX_{kind}(F32, {name})" for kind, name in site)]) + ");" for site in sites]
    for operands, (template, outputs, inputs) in zip(sites, expand(*calls), strict=True):
        order = [(kind, name) for wanted in ("MOD", "OUT", "IN") for kind, name in operands if kind == wanted]
        lines = lines_of(template)
        marks = lines[lines.index("// PTX_INJECT_START s") + 1 : lines.index("// PTX_INJECT_END")]
        assert marks == [f"// _x{i} {kind[0].lower()} f32 F32 {name}" for i, (kind, name) in enumerate(order)]
        assert [line for line in lines if line.startswith(".reg")] == [f".reg .f32 %_x{i};" for i in range(len(operands))]
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
    [(template, outputs, inputs)] = expand(f'PTX_INJECT("s", {operands}, PTX_MOD(PHILOX, seed), PTX_OUT(F16, h));')
    lines = lines_of(template)
    assert lines[lines.index("// PTX_INJECT_START s") + 1 : lines.index("// PTX_INJECT_END")] == [
        "// _x0 m u32 PHILOX seed",
        "// _x1 o b16 F16 h",
        "// _x2 i b16 F16 v0",
        "// _x3 i b32 F16X2 v1",
        "// _x4 i s32 S32 v2",
        "// _x5 i u32 U32 v3",
        "// _x6 i f32 F32 v4",
        "// _x7 i b32 B32 v5",
    ]
    assert outputs == '"+r"(seed),"=h"(*(unsignedshort*)&(h))'
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


def test_a_philox_state_is_six_operands_to_be_read(expand):
    [(template, outputs, inputs)] = expand('PTX_INJECT("s", PTX_OUT(U32, bits), PTX_PHILOX(rng));')
    names = ["philox_key_x", "philox_key_y", "philox_ctr_x", "philox_ctr_y", "philox_ctr_z", "philox_ctr_w"]
    lines = lines_of(template)
    assert lines[lines.index("// PTX_INJECT_START s") + 2 : lines.index("// PTX_INJECT_END")] == [
        f"// _x{i} i u32 PHILOX {name}" for i, name in enumerate(names, start=1)
    ]
    assert outputs == '"=r"(bits)'
    members = ["key.x", "key.y", "ctr.x", "ctr.y", "ctr.z", "ctr.w"]
    assert inputs == ",".join(f'"r"((rng).{member})' for member in members)


def test_what_the_macro_writes_is_read_back(expand):
    """The text of the statements, as a compiler passes it on, has the sites that were written."""
    sites = expand(
        "#define SITE(i) site_##i",
        "#define VAR a[1]",
        "PTX_INJECT_TOK(SITE(0), PTX_IN(F32, VAR), PTX_OUT(F32, p->q));",
        'PTX_INJECT("many", ' + ", ".join(f"PTX_MOD(U32, v{i})" for i in range(64)) + ");",
    )
    ptx = "".join(template.replace("%%", "%") + "\n" for template, _, _ in sites)
    inject = PTXInject(ptx)
    assert {name: list(inject[name]) for name in inject} == {"site_0": ["p->q", "a[1]"], "many": [f"v{i}" for i in range(64)]}
    assert inject["many"]["v63"] == Variable("v63", "_x63", "mod", "u32", "U32")


def test_user_macros_do_not_get_into_the_types(expand):
    words = ["f", "r", "h", "f32", "b16", "ID", "U16", "IN", "OUT", "MOD", "in", "i", "n", "t", "z", "kind", "name", "a", "count"]
    [(template, outputs, inputs)] = expand(
        *(f"#define {word} wrong_{word}" for word in words), 'PTX_INJECT("s", PTX_IN(F32, x), PTX_OUT(F16, y, n));'
    )
    assert "wrong" not in template
    assert {"// _x0 o b16 F16 y", "// _x1 i f32 F32 x"} <= set(lines_of(template))
    assert (outputs, inputs) == ('"=h"(*(unsignedshort*)&(wrong_n))', '"f"(x)'), "an expression is the user's own"


@pytest.mark.parametrize("num_operands", [65, 66, 74, 75, 129, 200])
def test_more_than_64_operands_are_an_error_that_says_so(num_operands):
    operands = "".join(f", PTX_{('IN', 'OUT', 'MOD')[i % 3]}(F32, v{i})" for i in range(num_operands))
    text = preprocess(*DEVICE, "-x", "c++", source=f'#include "ptx_inject.h"\nPTX_INJECT("s"{operands});\n')
    assert text.split("\n")[-2] == 'static_assert(false, "PTX_INJECT: a site has at most 64 operands");'


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


# NVIDIA's types as their headers have them, and a user's own functions beside the helper, as mm-ptx's own tests have them.
CHECKS = """#include <ptx_inject.h>
typedef enum { CUDA_SUCCESS, CUDA_ERROR_UNKNOWN = 999 } CUresult;
typedef enum { NVRTC_SUCCESS, NVRTC_ERROR_COMPILATION = 6 } nvrtcResult;
typedef enum { NVPTXCOMPILE_SUCCESS, NVPTXCOMPILE_ERROR_INTERNAL = 3 } nvPTXCompileResult;
typedef enum { NVJITLINK_SUCCESS, NVJITLINK_ERROR_INTERNAL = 6 } nvJitLinkResult;
typedef enum { STACK_PTX_INJECT_SERIALIZE_SUCCESS, STACK_PTX_INJECT_SERIALIZE_ERROR_INTERNAL = 3 } StackPtxInjectSerializeResult;
static const char* stack_ptx_inject_serialize_result_to_string(StackPtxInjectSerializeResult bad) { return bad ? "bad" : ""; }
static const char* nvrtcGetErrorString(nvrtcResult result) { return result == NVRTC_SUCCESS ? "" : "NVRTC_ERROR_COMPILATION"; }
#define PTX_INJECT_IMPLEMENTATION
#include <ptx_inject.h>
#include <check_result_helper.h>
static int astPtxCheck(int result) { return 3 + result; }
static int users_own(int check_result) {
    assert(check_result == 0);
    cuCheck((CUresult)check_result);
    return astPtxCheck(check_result);
}
int main(int argc, char** argv) {
    PtxInjectHandle handle;
    (void)argv;
    ptxInjectCheck(ptx_inject_create(&handle, argc == 2 ? NULL : ""));
    ptxInjectCheck(ptx_inject_destroy(handle));
    cuCheck(argc == 3 ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS);
    nvrtcCheck(argc == 4 ? NVRTC_ERROR_COMPILATION : NVRTC_SUCCESS);
    nvptxCheck(argc == 5 ? NVPTXCOMPILE_ERROR_INTERNAL : NVPTXCOMPILE_SUCCESS);
    nvJitLinkCheck(argc == 6 ? NVJITLINK_ERROR_INTERNAL : NVJITLINK_SUCCESS);
    stackPtxInjectSerializeCheck(argc == 7 ? STACK_PTX_INJECT_SERIALIZE_ERROR_INTERNAL : STACK_PTX_INJECT_SERIALIZE_SUCCESS);
    ASSERT(argc != 8);
    return users_own(0);
}
"""


def test_the_helper_takes_no_name_that_mm_ptx_does_not_take():
    own = set(re.findall(r"#define (\w+)", (CSRC / "check_result_helper.h").read_text())) - {"CHECK_RESULT_HELPER_H"}
    checks = {
        f"{library}Check" for library in ("cu", "nvptx", "nvrtc", "nvJitLink", "stackPtx", "ptxInject", "stackPtxInjectSerialize")
    }
    assert {name for name in own if not name.startswith("CHECK_RESULT__")} == {"ASSERT", *checks}


@pytest.mark.parametrize(("compiler", "standard", "suffix"), [("gcc", "c99", "c"), ("g++", "c++11", "cpp")])
def test_check_macros_pass_success_and_end_the_program_at_an_error_with_its_place(tmp_path, compiler, standard, suffix):
    source = tmp_path / f"main.{suffix}"
    source.write_text(CHECKS)
    warnings = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror")
    command = [compiler, f"-std={standard}", *warnings, "-I", CSRC, source, "-o", tmp_path / "main"]
    subprocess.run(command, timeout=300, check=True)
    for num_arguments, expected in enumerate(
        [
            "",
            f"{source}:21: PTX_INJECT_ERROR_INVALID_INPUT\n",
            f"{source}:23: CUresult 999\n",
            f"{source}:24: NVRTC_ERROR_COMPILATION\n",
            f"{source}:25: nvPTXCompileResult 3\n",
            f"{source}:26: nvJitLinkResult 6\n",
            f"{source}:27: bad\n",
            f"{source}:28: failed: argc != 8\n",
        ]
    ):
        done = subprocess.run([tmp_path / "main", *"x" * num_arguments], capture_output=True, text=True, timeout=300, check=False)
        assert (done.returncode, done.stderr) == (1 if expected else 3, expected)
