"""Headers for C: types and embedded texts, as compilers take them."""

import json

import pytest
from click.testing import CliRunner
from compilers import CSRC, build, run

from evo.errors import UserError
from evo.native.ptx_inject import DEFAULT_TYPES, AnnotatedPtx, DataType
from evo.ptx_inject.__main__ import main
from evo.ptx_inject.header import render_embedded_text, render_types_header

COMPILERS = [("gcc", "c99"), ("g++", "c++11"), ("clang", "c99"), ("clang++", "c++11")]

TYPES = (
    DataType("mask", "u32", "b32", "r"),
    DataType("wide", "s64", "b64", "l", "*(long long*)&"),
    DataType("f16", "b16", "b16", "h", "*(unsigned short*)&"),
    DataType("f16X2", "b32", "b32", "r", "*(unsigned int*)&"),
    DataType("F32", "f32", "b32", "f"),  # another one than that of ptx_inject.h
)


@pytest.fixture(params=COMPILERS, ids=lambda param: param[0])
def run_program(request, tmp_path):
    """Compiles C and C++ without a warning, with what the folder holds, and gives what the program prints."""
    return lambda source: run(build(tmp_path, *request.param, source, "-Wpedantic", "-I", tmp_path)).stdout


def generate(command: str, *arguments) -> tuple[int, str]:
    result = CliRunner().invoke(main, [command, *map(str, arguments)])
    assert result.stdout == ""
    return result.exit_code, result.stderr


@pytest.mark.parametrize("types", [TYPES, DEFAULT_TYPES], ids=["own", "default"])
def test_the_functions_take_the_table_of_types(tmp_path, run_program, types):
    (tmp_path / "my_types.h").write_text(render_types_header(types, "my_types.h"))
    printed = run_program(
        "#include <stdio.h>\n"
        '#include "my_types.h"\n#include "my_types.h"\n'
        '#define PTX_INJECT_IMPLEMENTATION\n#include "ptx_inject.h"\n'
        "int main(void) {\n"
        "    int i;\n"
        "    size_t size = 0;\n"
        "    for (i = 0; i < (int)PTX_INJECT_DATA_TYPE_NUM_ENUMS; ++i) {\n"
        "        const PtxInjectDataTypeInfo* t = &ptx_inject_data_types[i];\n"
        '        printf("%s|%s|%s|", t->name, t->register_type, t->mov_postfix);\n'
        '        printf("%c|%s\\n", t->register_char, t->register_cast_str);\n'
        "    }\n"
        '    printf("%d\\n", (int)PTX_INJECT_DATA_TYPE_F16X2);\n'
        "    return (int)ptx_inject_process_cuda(\n"
        f'        "/* PTX_INJECT s\\nin {types[0].name} x\\n*/",\n'
        "        ptx_inject_data_types, PTX_INJECT_DATA_TYPE_NUM_ENUMS, NULL, 0, &size\n"
        "    );\n"
        "}\n"
    )
    index = [data_type.name for data_type in types].index("f16X2")
    assert printed.splitlines() == [*("|".join(data_type) for data_type in types), str(index)]


def test_macros_of_types_compile_and_assemble(nvrtc):
    source = """#include <my_types.h>
struct half { unsigned short bits; };
struct half2 { unsigned int bits; };
struct wide { long long bits; };
extern "C" __global__ void kernel(unsigned int* out) {
    unsigned int m = out[0];
    wide w = {out[1]};
    half h = {(unsigned short)out[2]};
    half2 p = {out[3]};
    float f = __uint_as_float(out[4]);
    PTX_INJECT("s", PTX_MOD(MASK, m), PTX_MOD(WIDE, w), PTX_MOD(F16, h),
               PTX_MOD(F16X2, p), PTX_MOD(F32, f), PTX_IN(U32, u, out[5]));
    out[0] = m; out[1] = (unsigned int)w.bits; out[2] = h.bits; out[3] = p.bits; out[4] = __float_as_uint(f);
}
"""
    headers = {
        "my_types.h": render_types_header(TYPES, "my_types.h").encode(),
        "ptx_inject.h": (CSRC / "ptx_inject.h").read_bytes(),
    }
    inject = AnnotatedPtx(nvrtc.compile(source.encode(), "kernel.cu", headers, ["--gpu-architecture=compute_90"]))
    variables = inject.info("s").variables
    assert [(v.name, v.register_type, v.data_type) for v in variables] == [
        ("m", "u32", "MASK"),
        ("w", "s64", "WIDE"),
        ("h", "b16", "F16"),
        ("p", "b32", "F16X2"),
        ("f", "f32", "F32"),
        ("u", "u32", "U32"),
    ]
    rendered = inject.render(
        ["".join(f"mov.b{'64' if v.name == 'w' else '16' if v.name == 'h' else '32'} %{v.register}, 0;" for v in variables)]
    )
    assert b"mov.b32 %_x4" in rendered, "F32 moves as its own description says"
    nvptxcompiler = pytest.importorskip("evo.native.nvptxcompiler", reason="built without the wheel nvidia-nvptxcompiler")

    assert nvptxcompiler.compile(rendered, ("--gpu-name=sm_90",))[:4] == b"\x7fELF"


# Every byte but NUL, more text than any literal may have, and nothing at all.
TEXTS = {"all": bytes(range(1, 256)), "long": b'// "line"\\n \xc3\xa9 ??/ \n' * 5000, "one": b"x", "empty": b""}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_an_embedded_text_is_there_byte_by_byte_with_its_size_and_a_nul(tmp_path, run_program, text):
    (tmp_path / "kernel.ptx").write_bytes(text)
    header = tmp_path / "kernel_ptx.h"
    assert generate("embed", "--input", tmp_path / "kernel.ptx", "--output", header, "--name", "kernel_ptx") == (0, "")
    assert header.read_text().isascii()
    printed = run_program(
        '#include <stdio.h>\n#include <string.h>\n#include "kernel_ptx.h"\n#include "kernel_ptx.h"\n'
        "int main(void) {\n"
        "    unsigned long sum = 0;\n    size_t i;\n"
        "    for (i = 0; i < kernel_ptx_size; ++i) {\n"
        "        sum = (sum * 31 + (unsigned char)kernel_ptx[i]) & 0xffffffffu;\n"
        "    }\n"
        '    printf("%lu %lu %lu %lu\\n", (unsigned long)kernel_ptx_size, (unsigned long)sizeof kernel_ptx,\n'
        "        (unsigned long)strlen(kernel_ptx), sum);\n    return 0;\n}\n"
    )
    total = 0
    for byte in text:
        total = (total * 31 + byte) & 0xFFFFFFFF
    assert printed.split() == [str(len(text)), str(len(text) + 1), str(len(text)), str(total)]


@pytest.mark.parametrize("name", ["", "1a", "a-b", "é", "int", "class", "a__b", "_a", "a\n"])
def test_names_that_c_and_cpp_do_not_take_are_refused(name):
    with pytest.raises(UserError, match="cannot name an array"):
        render_embedded_text(b"", name, "x.h", "x.ptx")


def test_commands_write_headers_or_say_in_one_line_why_not(tmp_path):
    types = tmp_path / "types.json"
    types.write_text(json.dumps({"abi_version": 1, "data_type_infos": [TYPES[0]._asdict()]}))
    header = tmp_path / "types.h"
    assert generate("generate", "--input", types, "--output", header) == (0, "")
    assert header.read_text() == render_types_header(TYPES[:1], "types.h")
    (tmp_path / "nul.ptx").write_bytes(b"a\nb\0")
    for command, expected in [
        (["generate", "--input", types, "--output", types], "types.json: would overwrite the input"),
        (["generate", "--input", tmp_path / "nul.ptx", "--output", header], "nul.ptx:1:1: not JSON"),
        (["embed", "--input", tmp_path / "none", "--output", header, "--name", "a"], "none: cannot read it: No such file"),
        (["embed", "--input", tmp_path / "nul.ptx", "--output", header, "--name", "a"], "nul.ptx:2: a NUL byte"),
        (["embed", "--input", types, "--output", header, "--name", "for"], "--name 'for' cannot name an array"),
    ]:
        code, message = generate(*command)
        assert (code, len(message.splitlines())) == (2, 1)
        assert expected in message
    assert header.read_text() == render_types_header(TYPES[:1], "types.h"), "untouched by what failed"
