"""Integer, logic, shift and bit instructions of the virtual machine against Python's integers, at every SIMD level.

References are written from the PTX ISA's pseudocode, bit by bit where it has them; the sections are "Integer Arithmetic",
"Comparison and Selection", "Logic and Shift" and "Data Movement: cvt" of version 9.1.
"""

from types import SimpleNamespace

import numpy as np
import pytest

from evo.instructions import shipped_instruction_set
from evo.language.program import Language, parse_program, word
from evo.native.ptx_vm import VirtualMachine, levels
from evo.native.stack_ptx import Lowering
from evo.native.stack_ptx_words import WordType

SET = shipped_instruction_set("wide")
LIMITS = SimpleNamespace(stack_size=64, max_nodes=256, max_frame_depth=4, store_size=8, execution_limit=1000)
WORD = 0xFFFFFFFF
EDGES = [
    *(0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 30, 31, 32, 33, 63, 64, 127, 128, 255, 256, 257, 0x7FFF, 0x8000, 0xFFFF, 0x10000),
    *(0x55555555, 0xAAAAAAAA, 0x12345678, 0x7FFFFFFE, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xC0000000, 0xFFFFFF00),
    *(0xFFFFFFFE, 0xFFFFFFFF, 0x7F800001, 0xFFC00000),
]
INPUTS = {"U32": (0, 1, 2), "S32": (3, 4, 5), "PRED": (6, 7, 8)}


def signed(x: int) -> int:
    return x - 2**32 if x >> 31 else x


def bit(x: int, i: int) -> int:
    return x >> i & 1


def bfe(a: int, b: int, c: int, is_signed: bool) -> int:
    position, length = b & 255, c & 255
    sign = 0 if not is_signed or length == 0 else bit(a, min(position + length - 1, 31))
    return sum((bit(a, position + i) if i < length and position + i <= 31 else sign) << i for i in range(32))


def bfind(a: int, is_signed: bool, shiftamt: bool) -> int:
    a = ~a & WORD if is_signed and bit(a, 31) else a
    found = next((i for i in range(31, -1, -1) if bit(a, i)), WORD)
    return 31 - found if shiftamt and found != WORD else found


def shf(a: int, b: int, n: int, left: bool) -> int:
    return ((b << 32 | a) << n) >> 32 if left else (b << 32 | a) >> n


REFERENCES = {
    "add_u32": lambda a, b: a + b,
    "sub_u32": lambda a, b: a - b,
    "mul_lo_u32": lambda a, b: a * b,
    "mad_lo_u32": lambda a, b, c: a * b + c,
    "setp_eq_u32": lambda a, b: int(a == b),
    "setp_ne_u32": lambda a, b: int(a != b),
    "add_s32": lambda a, b: a + b,
    "sub_s32": lambda a, b: a - b,
    "mul_lo_s32": lambda a, b: signed(a) * signed(b),
    "mul_hi_s32": lambda a, b: signed(a) * signed(b) >> 32,
    "mad_lo_s32": lambda a, b, c: a * b + c,
    "neg_s32": lambda a: -a,
    "abs_s32": lambda a: abs(signed(a)),
    "min_u32": min,
    "max_u32": max,
    "min_s32": lambda a, b: min(signed(a), signed(b)),
    "max_s32": lambda a, b: max(signed(a), signed(b)),
    "and_b32": lambda a, b: a & b,
    "or_b32": lambda a, b: a | b,
    "xor_b32": lambda a, b: a ^ b,
    "not_b32": lambda a: ~a,
    "cnot_b32": lambda a: int(a == 0),
    "and_pred": lambda a, b: a & b,
    "or_pred": lambda a, b: a | b,
    "xor_pred": lambda a, b: a ^ b,
    "not_pred": lambda a: 1 - a,
    "shl_b32": lambda a, b: a << b if b < 32 else 0,
    "shr_u32": lambda a, b: a >> b if b < 32 else 0,
    "shr_s32": lambda a, b: signed(a) >> min(b, 31),
    "shf_l_wrap_b32": lambda a, b, c: shf(a, b, c & 31, True),
    "shf_l_clamp_b32": lambda a, b, c: shf(a, b, min(c, 32), True),
    "shf_r_wrap_b32": lambda a, b, c: shf(a, b, c & 31, False),
    "shf_r_clamp_b32": lambda a, b, c: shf(a, b, min(c, 32), False),
    "brev_b32": lambda a: int(f"{a:032b}"[::-1], 2),
    "popc_b32": lambda a: a.bit_count(),
    "clz_b32": lambda a: 32 - a.bit_length(),
    "bfind_u32": lambda a: bfind(a, False, False),
    "bfind_s32": lambda a: bfind(a, True, False),
    "bfind_shiftamt_u32": lambda a: bfind(a, False, True),
    "bfind_shiftamt_s32": lambda a: bfind(a, True, True),
    "bfe_u32": lambda a, b, c: bfe(a, b, c, False),
    "bfe_s32": lambda a, b, c: bfe(a, b, c, True),
    "setp_lt_u32": lambda a, b: int(a < b),
    "setp_le_u32": lambda a, b: int(a <= b),
    "setp_gt_u32": lambda a, b: int(a > b),
    "setp_ge_u32": lambda a, b: int(a >= b),
    "setp_eq_s32": lambda a, b: int(a == b),
    "setp_ne_s32": lambda a, b: int(a != b),
    "setp_lt_s32": lambda a, b: int(signed(a) < signed(b)),
    "setp_le_s32": lambda a, b: int(signed(a) <= signed(b)),
    "setp_gt_s32": lambda a, b: int(signed(a) > signed(b)),
    "setp_ge_s32": lambda a, b: int(signed(a) >= signed(b)),
    "selp_u32": lambda a, b, p: a if p else b,
    "selp_s32": lambda a, b, p: a if p else b,
    "s32_to_u32": lambda a: a,
    "u32_to_s32": lambda a: a,
    "u32_to_f32": lambda a: a,
    "cvt_rn_f32_s32": lambda a: int(np.float32(signed(a)).view(np.uint32)),
}


def operands_of(instruction) -> list[str]:
    return [SET.stacks[SET.arg_types[arg].stack_idx].name for arg in instruction.args]


def points() -> list[np.ndarray]:
    """All pairs of edges with a third edge in turn, then random words."""
    rng = np.random.default_rng(5)
    first, second = (grid.ravel() for grid in np.meshgrid(EDGES, EDGES))
    third = np.resize(EDGES, len(first) + 1)[1:]
    columns = [first, second, third]
    return [np.concatenate([np.asarray(c, np.uint32), rng.integers(0, 2**32, 400, np.uint32)]) for c in columns]


def run(words: list[int], request: str, values: dict[int, np.ndarray], level: str) -> np.ndarray:
    """The request's bits."""
    registers = [(f"reg_{i}", SET.stack_index(name)) for name, indices in INPUTS.items() for i in indices]
    registers.append(("result", SET.stack_index(request)))
    machine = VirtualMachine(Lowering(SET, registers, [len(registers) - 1], LIMITS), level)
    inputs = [values.get(i) for i in range(len(registers))]
    return machine.store(np.array([words], np.uint64), inputs).view(np.uint32)[0, 0]


# How complements are computed.
COMPLEMENT = {"U32": ["not_b32"], "S32": ["s32_to_u32", "not_b32", "u32_to_s32"], "PRED": ["not_pred"]}


@pytest.mark.parametrize("name", REFERENCES)
def test_an_instruction_computes_what_the_isa_says(name):
    """Each place of a kernel's operands: all in memory, or one of them just computed."""
    instruction = SET.instructions[SET.instruction_index(name)]
    stacks = operands_of(instruction)
    request = SET.stacks[SET.arg_types[instruction.rets[0]].stack_idx].name
    registers = [INPUTS[stack][k] for k, stack in enumerate(stacks)]
    values = [value & np.uint32(1) if stack == "PRED" else value for value, stack in zip(points(), stacks, strict=False)]
    for computed in (None, *range(len(stacks))):
        words, taken = [], list(values)
        for k in reversed(range(len(stacks))):  # the last one pushed is the first operand
            words.append(word(WordType.INPUT, payload=registers[k]))
            if k == computed:
                words += [word(WordType.PTX, payload=SET.instruction_index(step)) for step in COMPLEMENT[stacks[k]]]
                taken[k] = 1 - taken[k] if stacks[k] == "PRED" else ~taken[k]
        words += [word(WordType.PTX, payload=SET.instruction_index(name)), word(WordType.RETURN)]
        expected = np.array([REFERENCES[name](*map(int, row)) & WORD for row in zip(*taken, strict=True)], np.uint32)
        for level in levels():
            found = run(words, request, dict(zip(registers, values, strict=True)), level)
            np.testing.assert_array_equal(found, expected, err_msg=f"operand {computed}, {level}")


@pytest.mark.parametrize("level", levels())
def test_floats_are_moved_bit_by_bit_but_a_nan_that_was_computed(level):
    """That has PTX's bits. Integers that are no number, or subnormal, are a float's operands as any other float is."""
    bits = np.array([*EDGES, 0x7F800000, 0xFF800000, 0x7FC01234, 0x00000001, 0x80000001, 0x3F800000], np.uint32)
    language = Language(SET, (("x", "f32"), ("i", "u32")), (("y", "u32"),))
    machine = VirtualMachine(language.lowering, level)

    def results(text: str) -> np.ndarray:
        program = parse_program(language, text, "test", 16)
        return machine.store(program[None], [bits.view(np.float32), bits, None])[0, 0].view(np.uint32)

    is_nan = (bits & 0x7FFFFFFF) > 0x7F800000
    is_zero = (bits & 0x7F800000) == 0
    quiet = np.where(is_nan, 0x7FFFFFFF, np.where(is_zero, bits & 0x80000000, bits))
    np.testing.assert_array_equal(results("%x f32_to_u32"), bits)
    np.testing.assert_array_equal(results("%i u32_to_f32 f32_to_u32"), bits)
    np.testing.assert_array_equal(results("%x 1.0 mul_ftz_f32 f32_to_u32"), quiet)
    np.testing.assert_array_equal(results("%i u32_to_f32 -1.0 -1.0 mul_ftz_f32 mul_ftz_f32 f32_to_u32"), quiet)
    np.testing.assert_array_equal(results("%i u32_to_f32 dup.f32 min_ftz_f32 f32_to_u32"), quiet)
