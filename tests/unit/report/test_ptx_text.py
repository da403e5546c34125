"""evo.report.ptx_text: constants of PTX with their values, and nothing else changed."""

import re

import numpy as np

from evo.language.program import parse_program
from evo.report.ptx_text import with_token_values, with_values


def test_each_line_with_constants_says_their_values():
    ptx = (
        "{\n.reg .f32 %_s0_<2>;\nadd.ftz.f32 %_s0_0, %x, 0f3F800000;\nfma.rn.ftz.f32 %f, 0fC0370BED, 0f7f800000, 0f00000001;\n"
        "add.f64 %d, %d, 0d3FF8000000000000;\nmov.u32 %u, 1065353216;\nmov.f32 %g, 0f40000000; // two\n}\n"
    )
    assert with_values(ptx) == ptx.replace("0f3F800000;", "0f3F800000;  // 1.0").replace(
        "0f00000001;", "0f00000001;  // -2.860103, inf, 1e-45"
    ).replace("0d3FF8000000000000;", "0d3FF8000000000000;  // 1.5")


def test_values_of_a_stub_are_those_of_its_program(language):
    constants = np.random.default_rng(2).normal(size=9).astype(np.float32)
    text = " ".join(f"{each} %x mul_ftz_f32" for each in constants) + " add_ftz_f32" * 8
    stub = language.lowering.emit(parse_program(language, text, "test", 64)[None])[0]
    told = re.findall(r"  // (\S+)$", with_values(stub), re.MULTILINE)
    assert sorted(map(np.float32, told)) == sorted([*constants.tolist(), 0.0])  # the other output is zero
    assert re.sub(r"  // \S+$", "", with_values(stub), flags=re.MULTILINE) == stub


def test_constants_that_a_program_has_as_bits_get_a_comment_and_it_can_be_read_back(language):
    text = "%x 0x7f800000:f32 1.5 0x7fc00001:f32 0x7f800000:f32 7:u32 add_ftz_f32\n"
    told = with_token_values(text)
    assert told == text + "# 0x7f800000:f32 is inf\n# 0x7fc00001:f32 is nan\n"
    np.testing.assert_array_equal(parse_program(language, told, "test"), parse_program(language, text, "test"))
    assert with_token_values("%x 1.5\n") == "%x 1.5\n"
