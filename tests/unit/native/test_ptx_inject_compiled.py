"""Annotated CUDA through a compiler: its sites are found, and what is rendered assembles.

The sources are tests/csrc/cuda/*.cu, comment.cu after `process_cuda`.
"""

from pathlib import Path

import pytest

from evo.native.ptx_inject import AnnotatedPtx, process_cuda

HERE = Path(__file__).parent
CUDA = HERE.parent.parent / "csrc" / "cuda"
CSRC = HERE.parent.parent.parent / "csrc"

# (name, number of sites, variables as name, mutability, register type, data type)
SITES = {
    "macro": [
        ("twice", 2, [("y", "mod", "f32", "F32"), ("z", "out", "f32", "F32"), ("x", "in", "f32", "F32")]),
        (
            "types",
            1,
            [
                ("seed", "mod", "u32", "PHILOX"),
                ("mask", "mod", "u64", "MASK"),
                ("r", "out", "b16", "F16"),
                ("h", "in", "b16", "F16"),
                *((f"philox_{word}", "in", "u32", "PHILOX") for word in ("key_x", "key_y", "ctr_x", "ctr_y", "ctr_z", "ctr_w")),
                ("index", "in", "s32", "S32"),
            ],
        ),
        ("site_4", 1, [("z", "out", "f32", "F32"), ("x", "in", "f32", "F32")]),
        (
            "many",
            1,
            [
                ("v0", "mod", "f32", "F32"),
                *((f"v{i}", "in", "f32", "F32") for i in range(1, 16)),
                ("v[16]", "in", "f32", "F32"),
            ],
        ),
    ],
    "comment": [
        ("twice", 2, [("v.w", "mod", "f32", "f32"), ("z", "out", "f32", "f32"), ("x", "in", "f32", "f32")]),
        ("types", 1, [("a[0]", "mod", "s32", "s32"), ("n", "out", "u32", "u32"), ("pair", "in", "b32", "f16X2")]),
    ],
}


def nvrtc_ptx(name: str, option: str, nvrtc) -> bytes:
    """The PTX that NVRTC makes of a source."""
    source = (CUDA / f"{name}.cu").read_text()
    headers = {path.relative_to(CSRC).as_posix(): path.read_bytes() for path in (CSRC / "ptx_inject.h", *CSRC.glob("detail/*.h"))}
    return nvrtc.compile((process_cuda(source) if name == "comment" else source).encode(), f"{name}.cu", headers, [option])


@pytest.fixture(params=["compute_75", "compute_120"])
def ptx_of(request, nvrtc):
    """Gives the PTX of a source by its name."""
    return lambda name: nvrtc_ptx(name, f"--gpu-architecture={request.param}", nvrtc)


@pytest.mark.parametrize("name", SITES)
def test_a_compilers_ptx_has_the_sites_of_its_source(ptx_of, name):
    inject = AnnotatedPtx(ptx_of(name))
    assert [(one.name, one.num_sites) for one in inject.injects] == [(site, count) for site, count, _ in SITES[name]]
    for one, (_, _, variables) in zip(inject.injects, SITES[name], strict=True):
        assert [(v.name, v.mutability, v.register_type, v.data_type) for v in one.variables] == variables
        assert [v.register for v in one.variables] == [f"_x{i}" for i in range(len(variables))]


def stub_of(inject) -> str:
    """Reads every variable of a site that can be read and writes every one that can be written."""
    lines = ["{"]
    for i, variable in enumerate(inject.variables):
        kind = variable.register_type
        lines.append(f".reg .{kind} %t{i};")
        if variable.mutability != "out":
            lines.append(f"mov.{kind} %t{i}, %{variable.register};")
        if variable.mutability != "in":
            lines.append(f"mov.{kind} %{variable.register}, {'0f00000000' if kind == 'f32' else '0'};")
    return "\n".join([*lines, "}"])


@pytest.mark.parametrize("name", SITES)
def test_stubs_that_use_every_register_assemble_at_every_site(ptx_of, name):
    nvptxcompiler = pytest.importorskip("evo.native.nvptxcompiler", reason="built without the wheel nvidia-nvptxcompiler")
    ptx = ptx_of(name)
    inject = AnnotatedPtx(ptx)
    target = "sm_120" if b".target sm_120" in ptx else "sm_90"
    assert (
        nvptxcompiler.compile(inject.render([stub_of(one) for one in inject.injects]), (f"--gpu-name={target}",))[:4]
        == b"\x7fELF"
    )


@pytest.mark.parametrize("standard", ["c++11", "c++20"])
def test_macros_in_names_types_and_operands_are_expanded_in_every_standard(standard, nvrtc):
    ptx = nvrtc_ptx("macro", f"--std={standard}", nvrtc)
    assert [one.name for one in AnnotatedPtx(ptx).injects] == [site for site, _, _ in SITES["macro"]]
