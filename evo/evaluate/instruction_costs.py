"""What each instruction costs on this CPU, measured.

Owns the measurement: the virtual machine runs a program of one instruction over points that fit into the cache. Knows nothing of
tasks, whose programs `evo.evaluate.calibration` measures.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from evo.instructions import Instruction, InstructionSet
from evo.language.program import Language, parse_program
from evo.native.ptx_vm import VirtualMachine

NUM_COPIES = 8  # of the instruction in a program, each with other operands: equal values would be computed once
NUM_POINTS = 4096  # the outputs of all copies fill 128 KiB, of a second-level cache
NUM_FEW = 128  # a block of points: what a call costs beside its points
NUM_ROUNDS = 100  # the fastest counts: others were interrupted


def instruction_costs(instruction_set: InstructionSet, names: Sequence[str]) -> dict[str, float]:
    """Nanoseconds a point on one core at its widest SIMD level, of the instructions that the CPU can run.

    Operands lie in the cache and the result is written there, as within a longer program.
    """
    machine = VirtualMachine(Language(instruction_set, (), ()).lowering)
    instructions = [instruction_set.instructions[instruction_set.instruction_index(name)] for name in names]
    return {each.name: _cost_ns(instruction_set, each) for each in instructions if each.name not in machine.unsupported}


def _cost_ns(instruction_set: InstructionSet, instruction: Instruction) -> float:
    """The difference between many and few points, divided by the points and copies between them."""

    def types(indices: tuple[int, ...]) -> list[str]:
        return [instruction_set.stacks[instruction_set.arg_types[index].stack_idx].name.lower() for index in indices]

    operands, results = types(instruction.args), types(instruction.rets)
    names = {kind: [f"{kind}_{place}" for place in range(NUM_COPIES + len(operands))] for kind in operands}
    inputs = tuple((name, kind) for kind, each in names.items() for name in each)
    outputs = tuple((f"out_{copy}_{place}", kind) for copy in range(NUM_COPIES) for place, kind in enumerate(results))
    language = Language(instruction_set, (("points", "f32"), *inputs), outputs)
    tokens = [
        token
        for copy in range(NUM_COPIES)
        for token in (*(f"%{names[kind][copy + place]}" for place, kind in enumerate(operands)), instruction.name)
    ]
    words = parse_program(language, " ".join(tokens), instruction.name, len(tokens) + 1)[None]
    values = [_value(number, kind) for kind, each in names.items() for number in range(len(each))]
    machine = VirtualMachine(language.lowering)

    def seconds(num_points: int) -> float:
        registers = [np.zeros(num_points, np.float32), *values, *[None] * len(outputs)]
        out = machine.store(words, registers)
        times = []
        for _ in range(NUM_ROUNDS):
            start = time.perf_counter()
            machine.store(words, registers, out)
            times.append(time.perf_counter() - start)
        return min(times)

    return max(0.0, seconds(NUM_POINTS) - seconds(NUM_FEW)) / (NUM_POINTS - NUM_FEW) / NUM_COPIES * 1e9


def _value(number: int, kind: str) -> np.ndarray:
    """An operand of a type: a float from 0.5 on, an integer without pattern, or both truth values in turn."""
    if kind == "f32":
        return np.asarray(0.5 + number / 16, np.float32)
    return np.asarray(number % 2 if kind == "pred" else (number + 1) * 2654435761 % 2**32, np.uint32)
