"""A task's own kernel.cu: what it becomes, what is kept of it, and what is said about its errors."""

import re
import sys
import types

import pytest

from evo.errors import UserError
from evo.kernel import cuda_source
from evo.kernel import nvrtc as nvrtc_module
from evo.kernel.cuda_source import interpreting, template_of
from evo.kernel.template import POINTWISE, task_ptx
from evo.language.program import Language
from evo.native.ptx_inject import AnnotatedPtx
from evo.storage.disk_cache import DiskCache

INCLUDE = '#include "evo.cuh"\n'
HEAD = INCLUDE + 'extern "C" __global__ void evaluate(EvoPoints points, const int* num_instructions, double* scores) {\n'
RUN = "float v, w; evo_program(blockIdx.y, points.t(0), points.x(0), points.y(0), points.n(0), v, w);\n"
KERNEL = HEAD + RUN + "scores[blockIdx.y] = v + w;\n}\n"


def ptx_of(task, language, target="sm_90", num_sites=4, cache=None) -> bytes:
    return task_ptx(template_of(task, language, target, num_sites, cache).content)


def test_every_site_is_in_the_ptx_with_its_variables_however_often_it_is_duplicated(own_kernel):
    task, language, _ = own_kernel()
    inject = AnnotatedPtx(ptx_of(task, language, num_sites=5))
    assert {site.name for site in inject.injects} == {f"site_{i}" for i in range(5)}
    assert all(site.num_sites > 1 for site in inject.injects), "the loop is unrolled"
    assert [(v.name, v.register, v.mutability, v.register_type, v.data_type) for v in inject.info("site_3").variables] == [
        ("v", "_x0", "out", "f32", "F32"), ("w", "_x1", "out", "f32", "F32"), ("t", "_x2", "in", "f32", "F32"),
        ("x", "_x3", "in", "f32", "F32"), ("y", "_x4", "in", "f32", "F32"), ("n", "_x5", "in", "u32", "U32"),
    ]  # fmt: skip


@pytest.mark.parametrize("target", ["sm_75", "sm_90", "sm_90a", "sm_120"])
def test_the_ptx_is_for_the_target(own_kernel, target):
    task, language, _ = own_kernel(KERNEL)
    assert f".target {target}\n".encode() in ptx_of(task, language, target)


def test_nothing_is_fused(own_kernel):
    task, language, _ = own_kernel()
    ptx = ptx_of(task, language)
    assert b"mul.rn.f64" in ptx
    assert b"fma" not in ptx


def test_defines_keep_their_type(own_kernel, monkeypatch):
    task, language, _ = own_kernel(
        KERNEL
        + "static_assert(1 - COUNT == 8 && sizeof(COUNT) == 4);\nstatic_assert(2.0 * RATIO == 0.2 && sizeof(RATIO) == 8);\n"
        + "static_assert(FLAG == 1 && sizeof(TYPE) == 2);\n"
    )
    defines = {"COUNT": -7, "RATIO": 0.1, "FLAG": True, "TYPE": "unsigned short"}
    monkeypatch.setattr(type(task), "kernel_defines", lambda self: defines)
    ptx_of(task, language)


@pytest.mark.parametrize(
    ("defines", "message"),
    [
        ({"a b": 1}, r"kernel_defines\(\)\['a b'\]: not a macro name"),
        ({"EVO_NUM_SITES": 1}, r"kernel_defines\(\)\['EVO_NUM_SITES'\]: not a macro name .*not beginning with EVO_"),
        ({"A": float("inf")}, r"kernel_defines\(\)\['A'\] is inf, must be a finite number or one line of text"),
        ({"A": "1\n#include"}, r"kernel_defines\(\)\['A'\] is '1\\n#include', must be"),
        (["A"], r"kernel_defines\(\) must return a dict of name -> number or text, got list"),
    ],
)
def test_wrong_defines_are_one_line(own_kernel, monkeypatch, defines, message):
    task, language, folder = own_kernel(KERNEL)
    monkeypatch.setattr(type(task), "kernel_defines", lambda self: defines)
    with pytest.raises(UserError, match=f"^{re.escape(str(folder))}/kernel.cu: {message}"):
        ptx_of(task, language)


def test_defines_that_raise_are_the_tasks_error(own_kernel):
    task, language, folder = own_kernel(KERNEL)
    del task.weight
    with pytest.raises(UserError, match=rf"{re.escape(str(folder))}/task.py:\d+: kernel_defines\(\) raised AttributeError"):
        ptx_of(task, language)


ERRORS = {
    "an unknown name": (KERNEL + "static_assert(nothing);\n", r"kernel.cu:6: identifier \"nothing\" is undefined"),
    "no evo.cuh": ("void f(EvoPoints p);\n", r"kernel.cu:1: identifier \"EvoPoints\" is undefined"),
    "an error in a header": (INCLUDE + '#include "sub/bad.cuh"\n', r"sub/bad.cuh:2: expected either a definition or a tag name"),
    "the wrong number of operands": (HEAD + "float v; evo_program(blockIdx.y, v);\n}\n", r"kernel.cu:3: too few arguments"),
    "another signature": (INCLUDE + 'extern "C" __global__ void evaluate(EvoPoints points) {}\n', r"kernel.cu:2: .*\"evaluate\""),
    "no kernel": (INCLUDE, r"kernel.cu: must define evaluate, which evo.cuh declares"),
    "no program": (HEAD + "scores[0] = 1;\n}\n", r"kernel.cu: evaluate must call evo_program"),
    "outputs unused": (HEAD + RUN + "scores[0] = 1;\n}\n", r"kernel.cu: .* its scores must depend on the outputs"),
    "a NUL": (HEAD + "\0}\n", r"kernel.cu:3: holds a NUL"),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
def test_an_error_is_one_line_with_file_and_line(own_kernel, case):
    kernel, message = ERRORS[case]
    task, language, folder = own_kernel(kernel, files={"sub/bad.cuh": "\nstruct 7 {};\n"})
    with pytest.raises(UserError, match=f"^{re.escape(str(folder))}/{message}") as error:
        ptx_of(task, language)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("include", ["outside.cuh", "../outside.cuh", "stdio.h"])
def test_nothing_is_read_but_the_tasks_folder(own_kernel, tmp_path, monkeypatch, include):
    task, language, _ = own_kernel(f'#include "{include}"\n{KERNEL}')
    (tmp_path / "outside.cuh").write_text("\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"kernel.cu:1: could not open source file"):
        ptx_of(task, language)


def test_a_file_named_like_the_header_does_not_replace_it(own_kernel):
    task, language, _ = own_kernel(KERNEL, files={"evo.cuh": "#error not this one\n"})
    ptx_of(task, language)


def test_files_by_absolute_paths_are_refused(own_kernel, tmp_path):
    (tmp_path / "outside.cuh").write_text("\n")
    for kernel in (f'\n  # include "{tmp_path}/outside.cuh"\n', f"\n#include <{tmp_path}/outside.cuh>\n"):
        task, language, _ = own_kernel(kernel + KERNEL)
        with pytest.raises(
            UserError, match=r"kernel.cu:2: '/.*outside.cuh' is not among evo.cuh and the .cuh files of the folder"
        ):
            ptx_of(task, language)


@pytest.mark.parametrize("error", [None, RuntimeError("Failure finding libnvrtc.so.13")], ids=["no bindings", "no library"])
def test_a_missing_nvrtc_is_one_line(own_kernel, monkeypatch, error):
    task, language, folder = own_kernel(KERNEL)
    import cuda.bindings  # loaded by now, or there would be no own_kernel

    def version():
        raise error

    stand_in = types.SimpleNamespace(nvrtcVersion=version) if error else None
    monkeypatch.setitem(sys.modules, "cuda.bindings.nvrtc", stand_in)
    monkeypatch.delattr(cuda.bindings, "nvrtc", raising=False)  # then `from cuda.bindings import nvrtc` looks in sys.modules
    with pytest.raises(UserError, match=r"kernel.cu: NVRTC is missing: pip install .*nvidia-cuda-nvrtc==13.0.*") as raised:
        ptx_of(task, language)
    assert str(raised.value).startswith(str(folder))
    assert "\n" not in str(raised.value)
    task.needs_kernel = False
    assert template_of(task, language, "sm_90", 4) is POINTWISE


def test_interpreted_programs_need_no_sites_and_the_host_sees_where_their_code_is_named(own_kernel):
    task, language, _ = own_kernel()
    made = interpreting(task, language, "sm_90", 64)
    assert "PTX_INJECT" not in made.ptx and re.search(r"^\.visible \.global .*\bevo_code;$", made.ptx, re.MULTILINE)
    assert made.ptx.count("brx.idx %case") == 1, "one interpreter for all calls"
    few = interpreting(task, language, "sm_90", 64, {"add_ftz_f32"})
    assert few.cases.names == {"add_ftz_f32"} and "mul.ftz.f32" not in few.ptx[: few.ptx.index(".entry")]


def test_an_interpreting_kernel_without_programs_is_refused(own_kernel):
    task, language, _ = own_kernel(HEAD + "scores[blockIdx.y] = 1.0;\n}\n")
    with pytest.raises(UserError, match="evaluate must call evo_program, and its scores must depend on the outputs"):
        interpreting(task, language, "sm_90", 64)


def test_a_compiler_newer_than_the_assembler_is_one_line(own_kernel, monkeypatch):
    task, language, _ = own_kernel(KERNEL)
    monkeypatch.setattr(nvrtc_module, "version", lambda: (13, 99))
    with pytest.raises(UserError, match=r"kernel.cu: NVRTC 13.99 is newer than the assembler, 13.0: pip install"):
        ptx_of(task, language)


@pytest.fixture
def compilations(monkeypatch):
    """A list that grows with every call of NVRTC."""
    calls, compile_cuda = [], nvrtc_module.compile

    def count(*args):
        calls.append(args)
        return compile_cuda(*args)

    monkeypatch.setattr(cuda_source.nvrtc, "compile", count)
    return calls


def test_compiled_kernels_are_cached(own_kernel, compilations, tmp_path):
    task, language, _ = own_kernel()
    cache = DiskCache(tmp_path / "cache")
    templates = [template_of(task, language, "sm_90", 4, cache) for _ in range(2)]
    assert templates[0] == templates[1]
    assert len(compilations) == 1
    (entry,) = (tmp_path / "cache").iterdir()
    entry.write_bytes(entry.read_bytes()[:-1])
    assert template_of(task, language, "sm_90", 4, cache) == templates[0]
    assert len(compilations) == 2


def test_the_cache_key_depends_on_everything_that_decides_the_ptx(own_kernel, compilations, tmp_path, monkeypatch):
    cache = DiskCache(tmp_path / "cache")
    task, language, _ = own_kernel(KERNEL)
    renamed = Language(language.instruction_set, language.inputs, (("v", "f32"), ("other", "f32")), language.limits)
    variants = [
        lambda: ptx_of(task, language, cache=cache),
        lambda: ptx_of(task, language, "sm_80", cache=cache),
        lambda: ptx_of(task, language, num_sites=5, cache=cache),
        lambda: ptx_of(task, renamed, cache=cache),
        lambda: ptx_of(*own_kernel(KERNEL, options={"weight": 0.25})[:2], cache=cache),
        lambda: ptx_of(*own_kernel(KERNEL + "\n")[:2], cache=cache),
        lambda: ptx_of(*own_kernel(KERNEL, files={"sums.cuh": "\n"})[:2], cache=cache),
    ]
    for number, variant in enumerate(variants, 1):
        variant()
        assert len(compilations) == number
    for variant in variants:
        variant()
    assert len(compilations) == len(variants)
    monkeypatch.setattr(nvrtc_module, "version", lambda: (12, 9))
    variants[0]()
    assert len(compilations) == len(variants) + 1
