"""The interpreter kernel as machine code: that it assembles for every target, what it leaves of a multiprocessor, and how many
instructions a step costs."""

import re
import struct

import numpy as np
import pytest

from evo.kernel.interpreter_cases import MAX_CASES, cases_of

pytest.importorskip("evo.native.nvptxcompiler", reason="built without the wheel nvidia-nvptxcompiler")

from sass import Sass, case_numbers

from evo.evaluate.cuda.device_tests import random_programs
from evo.instructions import shipped_instruction_set
from evo.kernel.interpreter import interpreter
from evo.kernel.interpreter_cases import NO_CASE
from evo.kernel.interpreter_layout import Layout, layout_of
from evo.language.program import Language
from evo.native.nvptxcompiler import CompileError
from evo.native.nvptxcompiler import compile as assemble

DEFAULT = shipped_instruction_set("default")
LANGUAGE = Language(DEFAULT, (("x", "f32"), ("y", "f32"), ("t", "f32")), (("z", "f32"),))
TARGETS = ["sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_103", "sm_120", "sm_121"]

# CUDA C++ Programming Guide 13.0, 5.1 "Compute Capabilities" and 8.2 "Occupancy": threads, blocks and KiB of shared memory of a
# multiprocessor. Each has 65,536 registers, which warps get in units of 256; a block's shared memory costs 1 KiB more.
MULTIPROCESSORS = {"sm_80": (2048, 32, 164), "sm_90": (2048, 32, 228), "sm_120": (1536, 24, 100)}


def options(target: str) -> tuple[str, ...]:
    return (f"--gpu-name={target}", "--fmad=false", "--opt-level=3")


def num_registers(cubin: bytes) -> int:
    """Of the only kernel: the attribute EIATTR_REGCOUNT in .nv.info, which is there twice for some targets."""
    found = re.findall(rb"\x04\x2f\x08\x00....(....)", cubin, re.DOTALL)
    return max(struct.unpack("<I", each)[0] for each in found)


def spills(lines: list[str]) -> list[str]:
    return [line for line in lines if re.search(r"\b(LDL|STL)\b", line)]


def resident_warps(target: str, registers: int, layout: Layout) -> int:
    threads, blocks, shared_kib = MULTIPROCESSORS[target]
    warps = layout.block_size // 32
    by_registers = 65536 // (-(-registers * 32 // 256) * 256 * warps)
    by_shared = shared_kib * 1024 // (layout.shared_bytes + 1024)
    return warps * min(threads // layout.block_size, blocks, by_registers, by_shared)


@pytest.mark.parametrize("sums", [pytest.param(False, marks=pytest.mark.slow), True])
@pytest.mark.parametrize(
    "target", [each if each in MULTIPROCESSORS else pytest.param(each, marks=pytest.mark.slow) for each in TARGETS]
)
def test_the_kernel_assembles_and_sixteen_warps_fit_a_multiprocessor(target, sums):
    made = interpreter(LANGUAGE, target, sums)
    cubin = assemble(made.ptx, options(target))
    if target in MULTIPROCESSORS:
        warps = resident_warps(target, num_registers(cubin), made.layout)
        assert warps == {"sm_80": 24, "sm_90": 32, "sm_120": 16}[target]


MIX = tuple(f"{name}_ftz_f32" for name in ("add", "sub", "mul", "fma_rn", "min", "max", "neg", "abs"))


# Eight warps take a step of 1,024 points and hold outputs. One sums those of four programs, four points of each thread a trip.
# For sm_120 the assembler puts four NOP behind each instruction of FP64.
@pytest.mark.parametrize(
    ("target", "issued", "sums"), [("sm_80", 16.5, 1250), ("sm_90", 17.5, 1250), ("sm_100", 17.5, 1250), ("sm_120", 15.5, 2800)]
)
def test_a_step_takes_one_branch_and_few_instructions_as_do_sums(disassemble, target, issued, sums):
    made = interpreter(LANGUAGE, target, True, MIX)
    sass = Sass(disassemble(assemble(made.ptx, options(target)))["interpret"])
    steps = [
        sass.case(number) for cases in case_numbers(LANGUAGE, made, random_programs(LANGUAGE, MIX, 1000)) for number in cases
    ]
    assert len(steps) > 500 and {step.taken for step in steps} == {1} and not any(step.fp64 for step in steps)
    assert np.mean([step.issued for step in steps]) < issued
    waiting, idle, summing = sass.sums(32)
    assert (3 * 8 * waiting.issued + 7 * idle.issued + summing.issued) / 4 < sums
    assert (waiting.fp64, idle.fp64) == (0, 0) and 128 * 13 <= summing.fp64 < 128 * 13 + 64


# Four warps take a step of 1,024 points. slots: bound for each operation and point, of steps alone. sums: as above.
@pytest.mark.parametrize(("target", "slots", "sums"), [("sm_80", 3.4, 1100), ("sm_90", 3.4, 1100), ("sm_120", 3.2, 2700)])
def test_values_in_registers_take_fewer_slots_and_leave_sixteen_warps(disassemble, target, slots, sums):
    made = interpreter(LANGUAGE, target, True, MIX, in_registers=True)
    cubin = assemble(made.ptx, options(target))
    lines = disassemble(cubin)["interpret"]
    sass = Sass(lines)
    assert not spills(lines)
    assert resident_warps(target, num_registers(cubin), made.layout) == 16
    words = random_programs(LANGUAGE, MIX, 1000, (60, 100))
    _, num_instructions = LANGUAGE.lowering.analyze(words)
    words, num_instructions = words[num_instructions >= 16], num_instructions[num_instructions >= 16]
    steps = [sass.case(number) for cases in case_numbers(LANGUAGE, made, words) for number in cases]
    assert {step.taken for step in steps} == {1, 2} and not any(step.fp64 for step in steps)
    assert num_instructions.sum() > 1000 and sum(step.issued for step in steps) / (8 * num_instructions.sum()) < slots
    waiting, idle, summing = sass.sums(32)
    assert (3 * 4 * waiting.issued + 3 * idle.issued + summing.issued) / 4 < sums


@pytest.mark.slow  # each takes the assembler 10 s
@pytest.mark.parametrize(("target", "sums"), [*((target, False) for target in MULTIPROCESSORS), ("sm_90", True)])
def test_no_register_of_all_instructions_is_spilled(disassemble, target, sums):
    made = interpreter(LANGUAGE, target, sums, in_registers=True)
    lines = disassemble(assemble(made.ptx, options(target)))["interpret"]
    assert len(lines) > 10_000 and not spills(lines)


def test_too_many_vectors_or_instructions_have_no_kernel_in_registers():
    inputs = tuple((f"x{i}", "f32") for i in range(5))
    for count, expected in ((4, True), (5, False)):
        made = interpreter(Language(DEFAULT, inputs[:count], (("z", "f32"),)), "sm_90", False, in_registers=True)
        assert (made is not None) == expected
    wide = Language(shipped_instruction_set("wide"), inputs[:1], (("z", "f32"),))
    assert interpreter(wide, "sm_90", False, in_registers=True) is None
    assert interpreter(wide, "sm_90", False, MIX, in_registers=True) is not None


def test_an_instruction_that_a_target_lacks_is_found_by_its_line():
    made = interpreter(LANGUAGE, "sm_75", False)
    with pytest.raises(CompileError) as caught:
        assemble(made.ptx, options("sm_75"))
    lines = [int(line) for line in re.findall(r"line (\d+)", caught.value.log)]
    assert made.instructions_at(lines) == {"cvt_rna_tf32_f32"}
    in_registers = interpreter(LANGUAGE, "sm_75", False, in_registers=True)
    lines = [i for i, line in enumerate(in_registers.ptx.splitlines(), 1) if line.startswith("cvt.rna.tf32")]
    assert len(lines) > 8 and in_registers.instructions_at(lines) == {"cvt_rna_tf32_f32"}
    assemble(interpreter(LANGUAGE, "sm_75", False, made.cases.names - {"cvt_rna_tf32_f32"}).ptx, options("sm_75"))


def test_a_kernel_has_cases_of_the_named_instructions_alone():
    made = interpreter(
        LANGUAGE, "sm_90", False, ["add_ftz_f32", "selp_f32", "mma_sync_aligned_m16n8k4_row_col_f32_tf32_tf32_f32"]
    )
    has_cases = (made.cases.numbers != NO_CASE).any(axis=1)
    assert [DEFAULT.instructions[i].name for i in np.flatnonzero(has_cases)] == ["add_ftz_f32", "selp_f32"]
    numbers = made.cases.numbers[made.cases.numbers != NO_CASE]
    assert sorted(numbers) == list(range(6, 6 + 2 * len(numbers), 2))


def test_a_large_set_leaves_its_last_instructions_out():
    wide = shipped_instruction_set("wide")
    cases = cases_of(wide)
    count = cases.numbers[cases.numbers != NO_CASE].max() + 2
    assert MAX_CASES - 40 < count <= MAX_CASES
    assert {instruction.name for instruction in DEFAULT.instructions[:27]} < cases.names
    assert len(cases_of(wide, ["selp_s32"]).names) == 1


@pytest.mark.parametrize(
    ("num_inputs", "num_outputs", "sums", "expected"),
    [(2, 1, False, (9, 1)), (2, 1, True, (9, 4)), (1, 2, True, (9, 2)), (2, 3, True, (7, 1)), (9, 3, False, (7, 1))],
)
def test_vectors_are_slots_beside_inputs_and_outputs(num_inputs, num_outputs, sums, expected):
    names = "abcdefghijkl"
    inputs, outputs = names[:num_inputs], names[num_inputs : num_inputs + num_outputs]
    layout = layout_of(Language(DEFAULT, tuple((n, "f32") for n in inputs), tuple((n, "f32") for n in outputs)), sums)
    assert (layout.num_slots, layout.num_buffered) == expected
    assert layout.shared_bytes == max(12, num_inputs + 7 + num_outputs) * 4096


def test_too_many_inputs_have_no_kernel():
    inputs = tuple((f"x{i}", "f32") for i in range(17))
    assert interpreter(Language(DEFAULT, inputs, (("z", "f32"),)), "sm_90", False) is None
    assert interpreter(Language(DEFAULT, inputs[:16], (("z", "f32"),)), "sm_90", False) is not None
    assert interpreter(Language(DEFAULT, inputs[:9], (("z", "f32"),)), "sm_75", False) is None
    assert interpreter(Language(DEFAULT, inputs[:8], (("z", "f32"),)), "sm_75", False) is not None
