"""What the documents of mm-ptx show of PTX Inject, as it stands there: it compiles and gives what they say.

The listings of annotations and of rendered PTX are in test_ptx_inject.c. In CI a missing tool is a failure, elsewhere a skip.
"""

from __future__ import annotations

import importlib
import os
import re
import subprocess

import pytest
from csrc.test_ptx_inject_builds import CSRC, compile_ptx

from evo.ptx_inject import PTXInject, process_cuda
from evo.ptx_inject.header import render_embedded_text

THREE_ARGUMENTS = """
#include <ptx_inject.h>

extern "C"
__global__
void kernel(float* out) {
    float x = 5.0f;
    float y = 3.0f;
    float z = 0.0f;
    PTX_INJECT("func",
        PTX_IN (F32, x, x),
        PTX_MOD(F32, y, y),
        PTX_OUT(F32, z, z)
    );
    out[0] = z;
}
"""

TWO_ARGUMENTS = """
#include <ptx_inject.h>
extern "C"
__global__
void kernel(float* out) {
float x = 5.0f;
float y = 3.0f;
float z = 0.0f;
PTX_INJECT("func",
PTX_IN (F32, x),
PTX_IN (F32, y),
PTX_OUT(F32, z)
);
out[0] = z;
}
"""

# The host code of the readme; `annotated_ptx` and the line that prints come from the test.
HOST = """
PtxInjectHandle inject;
ptx_inject_create(&inject, annotated_ptx);

size_t inject_idx = 0;
ptx_inject_inject_info_by_name(inject, "func", &inject_idx, NULL, NULL);

const char* reg_x = NULL;
const char* reg_y = NULL;
const char* reg_z = NULL;
ptx_inject_variable_info_by_name(inject, inject_idx, "x", NULL, &reg_x, NULL, NULL, NULL);
ptx_inject_variable_info_by_name(inject, inject_idx, "y", NULL, &reg_y, NULL, NULL, NULL);
ptx_inject_variable_info_by_name(inject, inject_idx, "z", NULL, &reg_z, NULL, NULL, NULL);

char stub[256];
snprintf(
    stub,
    sizeof(stub),
    "\\tadd.ftz.f32 %%%2$s, %%%1$s, %%%2$s;\\n"
    "\\tadd.ftz.f32 %%%3$s, %%%1$s, %%%2$s;",
    reg_x, reg_y, reg_z
);

size_t num_injects = 0;
ptx_inject_num_injects(inject, &num_injects);

const char** stubs = (const char**)calloc(num_injects, sizeof(char*));
stubs[inject_idx] = stub;

size_t out_size = 0;
ptx_inject_render_ptx(inject, stubs, num_injects, NULL, 0, &out_size);

char* out_buffer = (char*)malloc(out_size + 1);
size_t bytes_written = 0;
ptx_inject_render_ptx(inject, stubs, num_injects, out_buffer, out_size + 1, &bytes_written);

PRINT
free(out_buffer);
free(stubs);
ptx_inject_destroy(inject);
"""

ONE_SITE = """
__global__ void kernel() {
    float x = 5;
    float y = 3;
    float z;
    /* PTX_INJECT func
        in  f32 x
        mod f32 y
        out f32 z
    */
    printf("in: %f, mod: %f, out: %f", x, y, z);
}
"""

UNROLLED = """
__global__ void kernel() {
    float x = 5;
    float y = 3;
    float z;
    #pragma unroll
    for (int i = 0; i < 2; i++) {
        /* PTX_INJECT func
            in  f32 x
            mod f32 y
            out f32 z
        */
    }
    printf("in: %f, mod: %f, out: %f", x, y, z);
}
"""

# mm-ptx-py's readme prints no z, so that the compiler drops the site; here it does.
TRAILING_BLANKS = """
extern "C"
__global__
void kernel() {
    // PTX Inject will give you the PTX Register name/s for these
    float x = 3.0f;\x20
    float y = 4.0f;
    float z;
    /* PTX_INJECT func \x20
        in f32 x
        in f32 y\x20
        out f32 z
    */
    printf("z: %f\\n", z);
}
"""


def nvrtc_ptx(cuda: str) -> str:
    """The PTX that NVRTC makes of CUDA."""
    if not os.environ.get("CI"):
        pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    return compile_ptx(importlib.import_module("cuda.bindings.nvrtc"), cuda.encode()).decode()


def variables(ptx: str) -> list[tuple[str, str, str]]:
    """Name, mutability and register of the variables of `func`."""
    return [(v.name, v.mutability, v.register) for v in PTXInject(ptx)["func"].values()]


@pytest.mark.parametrize(
    ("cuda", "expected"),
    [
        (THREE_ARGUMENTS, [("y", "mod", "_x0"), ("z", "out", "_x1"), ("x", "in", "_x2")]),
        (TWO_ARGUMENTS, [("z", "out", "_x0"), ("x", "in", "_x1"), ("y", "in", "_x2")]),
    ],
)
def test_the_readmes_kernels_have_their_site(cuda, expected):
    assert variables(nvrtc_ptx(cuda)) == expected


def test_the_readmes_host_code_renders_the_readmes_stub(tmp_path):
    annotated = nvrtc_ptx(THREE_ARGUMENTS)
    (tmp_path / "annotated.h").write_text(render_embedded_text(annotated.encode(), "annotated_ptx", "annotated.h", "kernel.cu"))
    body = HOST.replace("PRINT", "fwrite(out_buffer, 1, bytes_written, stdout);")
    source = tmp_path / "main.c"
    source.write_text(
        "#define PTX_INJECT_IMPLEMENTATION\n#include <ptx_inject.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
        f'#include "annotated.h"\nint main(void) {{\n{body}\nreturn 0;\n}}\n'
    )
    subprocess.run(["gcc", "-std=gnu99", "-I", CSRC, source, "-o", tmp_path / "main"], timeout=300, check=True)
    rendered = subprocess.check_output([tmp_path / "main"], text=True, timeout=300)
    stub = "\tadd.ftz.f32 %_x0, %_x2, %_x0;\n\tadd.ftz.f32 %_x1, %_x2, %_x0;"
    assert rendered == re.sub(r"// PTX_INJECT_START.*// PTX_INJECT_END", stub, annotated, flags=re.DOTALL)
    assert rendered.count(stub) == 1
    if not os.environ.get("CI"):  # in CI a build without the wheel is a failure
        pytest.importorskip("evo.native.nvptxcompiler", reason="built without the wheel nvidia-nvptxcompiler")
    from evo.native import nvptxcompiler

    assert nvptxcompiler.compile(rendered.encode(), ("--gpu-name=sm_80",))[:4] == b"\x7fELF"


@pytest.mark.parametrize(
    ("cuda", "num_sites", "expected"),
    [
        (ONE_SITE, 1, [("y", "mod", "_x0"), ("z", "out", "_x1"), ("x", "in", "_x2")]),
        (UNROLLED, 2, [("y", "mod", "_x0"), ("z", "out", "_x1"), ("x", "in", "_x2")]),
        (TRAILING_BLANKS, 1, [("z", "out", "_x0"), ("x", "in", "_x1"), ("y", "in", "_x2")]),
    ],
)
def test_the_guides_annotations_become_sites(cuda, num_sites, expected):
    ptx = nvrtc_ptx(process_cuda(cuda))
    assert variables(ptx) == expected
    assert PTXInject(ptx)["func"].num_sites == num_sites
