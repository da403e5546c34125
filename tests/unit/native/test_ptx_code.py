"""csrc/detail/ptx_code.h: machine code of programs against the virtual machine, bit for bit.

Random programs over all instructions with a CPU meaning, those without code among them; inputs of any bits, a good part of them
zeros, subnormals, infinities, NaNs and powers of two.
"""

import os
import subprocess
import sys

import numpy as np
import pytest

from evo.instructions import shipped_instruction_set
from evo.language.program import Language, word
from evo.native.ptx_vm import VirtualMachine, levels
from evo.native.stack_ptx_words import WordType

CODE = [level for level in levels() if level.endswith("-code")]
INPUTS = (("x", "f32"), ("y", "f32"), ("z", "f32"), ("u", "u32"), ("v", "u32"), ("p", "pred"))
OUTPUTS = (("f", "f32"), ("g", "u32"), ("q", "pred"), ("h", "f32"))
EDGES = np.array(
    [0, 1, 0x7FFFFF, 0x800000, 0x3F800000, 0x7F800000, 0x7FC00000, 0x7F800001, 0x7FFFFFFF, 0x7F7FFFFF, 0x4B000000, 0x40490FDB],
    np.uint32,
)
MAX_HALVES = 0.1  # share of programs that may have f16 and bf16, for which there is no code
META_DUP, META_SWAP = 0, 2

pytestmark = pytest.mark.skipif(not CODE, reason="this machine runs no code")


def draw_bits(rng: np.random.Generator, size: int) -> np.ndarray:
    kinds = rng.integers(5, size=size)
    sign = rng.integers(2, size=size, dtype=np.uint32) << 31
    near_one = (rng.normal(size=size) * np.exp2(rng.integers(-20, 20, size))).astype(np.float32).view(np.uint32)
    powers = rng.integers(255, size=size, dtype=np.uint32) << 23
    anything = rng.integers(2**32, size=size, dtype=np.uint32)
    return np.choose(kinds, [EDGES[rng.integers(len(EDGES), size=size)] ^ sign, near_one, near_one, powers ^ sign, anything])


def draw_words(rng: np.random.Generator, instructions: list[int], num_programs: int, length: int) -> np.ndarray:
    words = np.zeros((num_programs, length + 1), np.uint64)
    for row in words:
        for i, kind in enumerate(rng.choice(4, size=length, p=(0.3, 0.12, 0.08, 0.5))):
            stack = int(rng.integers(2))
            row[i] = (
                word(WordType.INPUT, payload=int(rng.integers(len(INPUTS)))),
                word(WordType.CONSTANT, stack, int(draw_bits(rng, 1)[0])),
                word(WordType.META, stack, int(rng.choice((META_DUP, META_SWAP)))),
                word(WordType.PTX, payload=int(rng.choice(instructions))),
            )[kind]
        row[length] = word(WordType.RETURN)
    return words


@pytest.mark.parametrize("num_values", [1_000_000, pytest.param(100_000_000, marks=pytest.mark.slow)])
def test_code_gives_the_bits_of_the_virtual_machine(num_values):
    language = Language(shipped_instruction_set("default"), INPUTS, OUTPUTS)
    names = [instruction.name for instruction in language.instruction_set.instructions]
    machines = {level: VirtualMachine(language.lowering, level) for level in (*CODE, levels()[-2])}
    unsupported = machines[CODE[0]].unsupported
    known = [i for i, name in enumerate(names) if name not in unsupported]
    plain = [i for i in known if "f16" not in names[i]]
    rng = np.random.default_rng(44)
    num_compared = 0
    while num_compared < num_values:
        num_points = int(rng.choice((1, 15, 16, 17, 20, 128, 129, 1000, 2500)))
        words = draw_words(rng, known if rng.random() < MAX_HALVES else plain, 12, int(rng.choice((10, 40, 120, 400))))
        values = [draw_bits(rng, num_points) for _ in range(5)]
        values = [*(each.view(np.float32) for each in values[:3]), *values[3:], rng.integers(2, size=num_points, dtype=np.uint32)]
        inputs = [values[0], *(each if rng.random() < 0.8 else each[0] for each in values[1:]), *[None] * len(OUTPUTS)]
        *found, expected = (machine.store(words, inputs).view(np.uint32) for machine in machines.values())
        for level, bits in zip(CODE, found, strict=True):
            np.testing.assert_array_equal(bits, expected, err_msg=level)
            num_compared += bits.size


def test_a_switch_leaves_only_the_virtual_machine():
    command = (sys.executable, "-c", "from evo.native.ptx_vm import levels; print(*levels())")
    result = subprocess.run(command, env={**os.environ, "EVO_NO_CODE": "1"}, capture_output=True, text=True, check=True)
    assert result.stdout.split() == [level for level in levels() if level not in CODE]
