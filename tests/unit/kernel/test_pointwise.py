"""The pointwise kernel as text: its sites, its registers, and that it assembles for every target."""

import numpy as np
import pytest

pytest.importorskip("evo.native.nvptxcompiler", reason="built without the wheel nvidia-nvptxcompiler")

from evo.instructions import shipped_instruction_set
from evo.kernel.pointwise import annotated_ptx, kernel_name, site_lowering, site_variables
from evo.language.program import Language, parse_program
from evo.native.nvptxcompiler import compile as assemble
from evo.native.ptx_inject import AnnotatedPtx, Variable

SET = shipped_instruction_set("default")
MIXED = Language(
    SET, (("x", "f32"), ("n", "u32"), ("state", "philox")), (("y", "f32"), ("state", "philox"), ("z", "f32"), ("k", "s32"))
)


def test_variables_come_in_the_order_mod_out_in():
    kinds = {"m": "mod", "o": "out", "i": "in"}
    variables = site_variables(MIXED)
    assert [(v.name, v.kind, v.register_type) for v in variables] == [
        ("state", "m", "u32"), ("y", "o", "f32"), ("z", "o", "f32"), ("k", "o", "s32"), ("x", "i", "f32"), ("n", "i", "u32")
    ]  # fmt: skip
    info = AnnotatedPtx(annotated_ptx(MIXED, [1], "sm_80")).info("site_0")
    expected = [Variable(v.name, v.register, kinds[v.kind], v.register_type, v.data_type) for v in variables]
    assert list(info.variables) == expected


def test_stubs_are_over_the_registers_of_the_site_and_hash_as_their_language():
    row = parse_program(MIXED, "%x 2.0 mul_ftz_f32 %n cvt_rn_f32_u32 %state 7:philox add_philox", "here")[None]
    (stub,) = site_lowering(MIXED).emit(row)
    registers = {v.name: v.register for v in site_variables(MIXED)}
    assert f"%{registers['x']}" in stub
    assert f"mov.u32 %{registers['state']}" in stub
    assert f"%{registers['z']}" in stub
    assert "%x" not in stub and "%n" not in stub and "%state" not in stub
    np.testing.assert_array_equal(site_lowering(MIXED).analyze(row)[0], MIXED.lowering.analyze(row)[0])


@pytest.mark.parametrize("target", ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_103", "sm_120", "sm_121"])
def test_the_kernel_assembles_for_every_target(target):
    row = parse_program(MIXED, "%x %n cvt_rn_f32_u32 mul_ftz_f32 %x %x", "here")[None]
    (stub,) = site_lowering(MIXED).emit(row)
    cubin = assemble(AnnotatedPtx(annotated_ptx(MIXED, [2, 1], target)).render([stub] * 3), (f"--gpu-name={target}",))
    assert all(f".text.{kernel_name(i)}\0".encode() in cubin for i in range(2))
    assert b".text.pack_2" not in cubin


@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [
        ((), (("y", "f32"),)),
        ((("x", "f32"),), (("x", "f32"),)),
        ((("point", "f32"), ("site", "u32")), (("outputs", "f32"), ("step", "u32"))),
    ],
    ids=["no input", "one register for both", "names of the kernel's own registers"],
)
def test_languages_at_the_edges_assemble(inputs, outputs):
    language = Language(SET, inputs, outputs)
    stubs = site_lowering(language).emit(parse_program(language, "1.5 3:u32", "here")[None].repeat(2, 0))
    assemble(AnnotatedPtx(annotated_ptx(language, [2], "sm_80")).render(stubs), ("--gpu-name=sm_80",))


def test_a_value_that_is_not_four_bytes_is_refused_by_name():
    language = Language(SET, (("x", "f32"),), (("flag", "pred"),))
    with pytest.raises(ValueError, match=r"'flag' is PRED \(\.pred\), but a kernel's inputs and outputs are \.f32"):
        annotated_ptx(language, [1], "sm_80")
