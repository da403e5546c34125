"""Each instruction of AST PTX on the CPU gives the bits of the virtual machine, which has its own tests against the PTX ISA."""

from types import SimpleNamespace

import numpy as np
import pytest
from float_edges import EDGES, random_bits

from evo.ast_ptx import INSTRUCTIONS, AstPTX, I
from evo.instructions import shipped_instruction_set
from evo.language.program import word
from evo.native.ptx_vm import VirtualMachine
from evo.native.stack_ptx import Lowering
from evo.native.stack_ptx_words import WordType

NAMES = ("a", "b", "c")
AST = AstPTX(NAMES, "d")
SET = shipped_instruction_set("default")
LIMITS = SimpleNamespace(stack_size=8, max_nodes=16, max_frame_depth=1, store_size=0, execution_limit=16)
MACHINE = VirtualMachine(Lowering(SET, [(name, SET.stack_index("F32")) for name in (*NAMES, "d")], [3], LIMITS))


def near_the_smallest_normal(seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Factors whose product lies within 2^-20 of 2^-126, where it matters what a result is before and after rounding."""
    rng = np.random.default_rng(seed)
    a = (1.0 + rng.integers(0, 1 << 23, count) * 2.0**-23).astype(np.float32)
    b = (1.0 / a.astype(np.float64) * (1.0 + rng.integers(-8, 8, count) * 2.0**-24) * 2.0**-126).astype(np.float64)
    scale = 2.0 ** rng.integers(-60, 61, count)
    return (a * scale.astype(np.float32)).view(np.uint32), (b / scale).astype(np.float32).view(np.uint32)


def operands(num_args: int) -> list[np.ndarray]:
    """Bits: all edges with each other, random ones, and products near 2^-126."""
    edges = EDGES if num_args < 3 else EDGES[::2]
    grids = np.meshgrid(*[edges] * num_args)
    a, b = near_the_smallest_normal(1, 1 << 12)
    tiny = [a, b, np.where(np.arange(len(a)) % 2 == 0, np.uint32(0), a >> np.uint32(5) << np.uint32(31))]
    return [
        np.concatenate([grid.ravel(), random_bits(seed, 1 << 15), tiny[seed]]).astype(np.uint32)
        for seed, grid in enumerate(grids)
    ]


def interpreted(name: str, *bits: np.ndarray) -> np.ndarray:
    """Result bits of one instruction."""
    program = [*list(AST.registers)[: len(bits)], getattr(I, name)]
    inputs = {name: array.view(np.float32) for name, array in zip(NAMES, bits, strict=False)}
    return AST.interpret(program, inputs).view(np.uint32)


def machine(name: str, *bits: np.ndarray) -> np.ndarray:
    """The same by the virtual machine, whose programs have their first operand on top."""
    inputs = [word(WordType.INPUT, payload=index) for index in reversed(range(len(bits)))]
    words = np.array([[*inputs, word(WordType.PTX, payload=SET.instruction_index(name)), word(WordType.RETURN)]], np.uint64)
    values = [array.view(np.float32) for array in bits] + [None] * (4 - len(bits))
    return MACHINE.store(words, values)[0, 0].view(np.uint32)


@pytest.mark.parametrize("instruction", INSTRUCTIONS, ids=lambda instruction: instruction.name)
def test_instruction_equals_the_virtual_machine_bit_by_bit(instruction):
    bits = operands(instruction.num_args)
    np.testing.assert_array_equal(interpreted(instruction.name, *bits), machine(instruction.name, *bits))


@pytest.mark.parametrize("num_points", [1, 3, 4, 33])
def test_a_value_does_not_depend_on_how_many_points_go_with_it(num_points):
    bits = operands(1)[0][:num_points]
    np.testing.assert_array_equal(interpreted("sin_approx_ftz_f32", bits), machine("sin_approx_ftz_f32", bits))
