"""Targets: what the assembler knows, and what GPUs that it does not know get."""

import re

import numpy as np
import pytest

from evo.compile.assembler import DEFAULT_OPTIONS
from evo.compile.language import encode_language
from evo.compile.request import CompileRequest, compile_request, pack_programs
from evo.compile.targets import ASSEMBLED, architecture, is_assembled_by_driver, target_for
from evo.instructions import shipped_instruction_set
from evo.language.program import Language, parse_program
from evo.native import nvptxcompiler


def is_known(number: int) -> bool:
    ptx = f".version 9.0\n.target sm_{number}\n.address_size 64\n.visible .entry k() {{ ret; }}\n"
    try:
        return bool(nvptxcompiler.compile(ptx.encode(), (f"--gpu-name=sm_{number}",)))
    except nvptxcompiler.CompileError:
        return False


def test_the_assembler_knows_these_targets_and_no_others():
    assert tuple(number for number in range(50, 150) if is_known(number)) == ASSEMBLED


@pytest.mark.parametrize(
    ("capability", "target"),
    [
        ((7, 5), "sm_75"),
        ((9, 0), "sm_90"),
        ((10, 3), "sm_103"),
        ((10, 7), "sm_103"),
        ((12, 9), "sm_121"),
        ((8, 1), "sm_80"),
        ((13, 0), "compute_121"),
        ((21, 4), "compute_121"),
    ],
)
def test_a_gpu_gets_the_newest_target_of_its_major_version_or_ptx(capability, target):
    assert target_for(capability) == target
    assert is_assembled_by_driver(target) == target.startswith("compute_")
    assert architecture(target) == target.replace("compute", "sm")


def test_ptx_for_the_driver_leaves_it_nothing_to_fuse():
    language = Language(shipped_instruction_set("default"), (("x", "f32"),), (("z", "f32"),))
    text = "%x %x mul_ftz_f32 %x add_ftz_f32 %x sub_ftz_f32 0.5 mul_ftz_f32"
    words = parse_program(language, text, "test", 16)[None]
    batch_hash = language.lowering.analyze(words)[0]
    packed = pack_programs(words, np.asarray(batch_hash))
    request = CompileRequest(*packed, encode_language(language), "compute_121", 64, DEFAULT_OPTIONS)
    ptx = compile_request(request).cubin
    assert ptx.endswith(b"\0") and b".target sm_121" in ptx
    floats = re.findall(rb"\b(?:add|sub|mul)\S*\.f32", ptx)
    assert sorted(floats) == [b"add.rn.ftz.f32", b"mul.rn.ftz.f32", b"mul.rn.ftz.f32", b"sub.rn.ftz.f32"]
    assert nvptxcompiler.compile(ptx.rstrip(b"\0"), ("--gpu-name=sm_121",))
