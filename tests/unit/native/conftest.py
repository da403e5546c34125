"""Shared by tests of the virtual machine: runs single instructions and whole programs on bits at every SIMD level."""

from types import SimpleNamespace

import numpy as np
import pytest

from evo.instructions import shipped_instruction_set
from evo.language.program import word
from evo.native.ptx_vm import VirtualMachine, levels
from evo.native.stack_ptx import Lowering
from evo.native.stack_ptx_words import WordType

LIMITS = SimpleNamespace(stack_size=64, max_nodes=4096, max_frame_depth=4, store_size=8, execution_limit=10_000)


class Machines:
    """Runs words at all SIMD levels at once.

    Registers 0 to 2 are inputs of F32, 3 to 5 of U32, 6 of PRED; then one output of each of `requests`, names of stacks.
    """

    def __init__(self, requests: tuple[str, ...]):
        self.instruction_set = shipped_instruction_set("wide")
        stacks = ["F32"] * 3 + ["U32"] * 3 + ["PRED", *requests]
        registers = [(f"reg_{i}", self.instruction_set.stack_index(stack)) for i, stack in enumerate(stacks)]
        self.lowering = Lowering(self.instruction_set, registers, range(7, len(stacks)), LIMITS)
        self.machines = {level: VirtualMachine(self.lowering, level) for level in levels()}

    def inputs(self, values: dict[int, np.ndarray]) -> list:
        """One entry for each register, by its index."""
        return [values.get(i) for i in range(len(self.lowering.registers))]

    def store(self, words: np.ndarray, values: dict[int, np.ndarray]) -> np.ndarray:
        """`(num_programs, num_requests, num_points)` bits, checked to be equal at every level."""
        results = [machine.store(words, self.inputs(values)).view(np.uint32) for machine in self.machines.values()]
        for level, result in zip(self.machines, results, strict=True):
            np.testing.assert_array_equal(result, results[0], err_msg=f"{level} differs from {next(iter(self.machines))}")
        return results[0]


def instruction_words(instruction_set, name: str) -> np.ndarray:
    """`(1, length)`: the instruction applied to registers, operand k of a type to that type's register k."""
    instruction = instruction_set.instructions[instruction_set.instruction_index(name)]
    first = {"f32": 0, "u32": 3, "pred": 6}
    stacks = [instruction_set.stacks[instruction_set.arg_types[arg].stack_idx] for arg in instruction.args]
    inputs, count = [], {}
    for stack in stacks:
        count[stack.name] = count.get(stack.name, 0) + 1
        inputs.append(word(WordType.INPUT, payload=first[stack.literal_prefix] + count[stack.name] - 1))
    # The last pushed is popped first, and the first popped is the first operand.
    ptx = word(WordType.PTX, payload=instruction_set.instruction_index(name))
    return np.array([[*reversed(inputs), ptx, word(WordType.RETURN)]], np.uint64)


@pytest.fixture(scope="session")
def run_instruction():
    """Runs the instruction `name` on bits, at every level: operands in PTX order, result `(num_points,)` bits."""
    by_stack: dict[str, Machines] = {}

    def run(name: str, *operands: np.ndarray) -> np.ndarray:
        instruction_set = shipped_instruction_set("wide")
        instruction = instruction_set.instructions[instruction_set.instruction_index(name)]
        stack_of = [instruction_set.stacks[instruction_set.arg_types[arg].stack_idx] for arg in instruction.args]
        result_stack = instruction_set.stacks[instruction_set.arg_types[instruction.rets[0]].stack_idx].name
        machines = by_stack.setdefault(result_stack, Machines((result_stack,)))
        first = {"f32": 0, "u32": 3, "pred": 6}
        values, count = {}, {}
        for stack, operand in zip(stack_of, operands, strict=True):
            count[stack.name] = count.get(stack.name, 0) + 1
            values[first[stack.literal_prefix] + count[stack.name] - 1] = np.asarray(operand, np.uint32)
        return machines.store(instruction_words(instruction_set, name), values)[0, 0]

    return run


@pytest.fixture(scope="session")
def make_machines():
    """Makes `Machines` with these requests."""
    return Machines
