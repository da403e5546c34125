"""Measured cost of each instruction on this CPU.

Owns the measurement: the virtual machine runs a program of one instruction over points that fit into the cache. Knows nothing of
tasks, whose programs `evo.evaluate.calibration` measures.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.instructions import Instruction, InstructionSet
from evo.language.program import Language, parse_program
from evo.native.ptx_vm import VirtualMachine

NUM_COPIES = 8  # of the instruction in a program, each with other operands: equal values would be computed once
NUM_POINTS = 4096  # the outputs of all copies fill 128 KiB, of a second-level cache
NUM_FEW = 128  # a block of points: what a call costs beside its points
NUM_PASSES = 8  # over all instructions, so that a busy moment spoils no instruction's whole measurement
NUM_ROUNDS = 12  # of each instruction in a pass; the fastest of all counts: others were interrupted


def instruction_costs(instruction_set: InstructionSet, names: Sequence[str]) -> dict[str, float]:
    """Nanoseconds a point on one core at its widest SIMD level, of the instructions that the CPU can run.

    Operands lie in the cache and the result is written there, as within a longer program. It is the difference between many and
    few points, so that what a call costs does not count.
    """
    unsupported = VirtualMachine(Language(instruction_set, (), ()).lowering).unsupported
    known = [name for name in names if name not in unsupported]
    instructions = (instruction_set.instructions[instruction_set.instruction_index(name)] for name in known)
    runs = [_run_of(instruction_set, instruction) for instruction in instructions]
    fastest_s = np.full((len(runs), 2), np.inf)
    for _ in range(NUM_PASSES):
        for row, run in enumerate(runs):
            for _ in range(NUM_ROUNDS):
                for column, num_points in enumerate((NUM_POINTS, NUM_FEW)):
                    start = time.perf_counter()
                    run(num_points)
                    fastest_s[row, column] = min(fastest_s[row, column], time.perf_counter() - start)
    spent_s = np.maximum(fastest_s[:, 0] - fastest_s[:, 1], 0.0)
    return dict(zip(known, (spent_s / (NUM_POINTS - NUM_FEW) / NUM_COPIES * 1e9).tolist(), strict=True))


_FLOATS = ("f32", "b16")  # PTX types that the machine takes as float32


def _run_of(instruction_set: InstructionSet, instruction: Instruction) -> Callable[[int], object]:
    """Runs a program of `NUM_COPIES` copies of an instruction at `NUM_POINTS` or `NUM_FEW` points."""

    def stacks(indices: tuple[int, ...]) -> list[int]:
        return [instruction_set.arg_types[index].stack_idx for index in indices]

    operands, results = stacks(instruction.args), stacks(instruction.rets)
    types = {stack: instruction_set.stacks[stack].literal_prefix for stack in (*operands, *results)}
    names = {stack: [f"in_{stack}_{number}" for number in range(NUM_COPIES + len(operands))] for stack in operands}
    language = Language(
        instruction_set,
        tuple((name, instruction_set.stacks[stack].name.lower()) for stack, stack_names in names.items() for name in stack_names),
        tuple(
            (f"out_{copy}_{index}", instruction_set.stacks[stack].name.lower())
            for copy in range(NUM_COPIES)
            for index, stack in enumerate(results)
        ),
    )
    tokens = []
    for copy in range(NUM_COPIES):
        tokens += [*(f"%{names[stack][copy + index]}" for index, stack in enumerate(operands)), instruction.name]
    words = parse_program(language, " ".join(tokens), instruction.name)[None]
    values: list[NDArray[Any] | None] = [
        _value(number, types[stack]) for stack, stack_names in names.items() for number in range(len(stack_names))
    ]
    registers = [*values, *[None] * len(language.outputs)]
    dtype = np.float32 if all(types[stack] in _FLOATS for stack in results) else np.uint32
    outs = {num_points: np.zeros((1, len(language.outputs), num_points), dtype) for num_points in (NUM_POINTS, NUM_FEW)}
    machine = VirtualMachine(language.lowering)
    return lambda num_points: machine.store(words, registers, outs[num_points])


def _value(number: int, kind: str) -> NDArray[Any]:
    """An operand of a PTX type, the same at all points: a float from 0.5 on, an integer without pattern, either truth value."""
    if kind in _FLOATS:
        return np.asarray(0.5 + number / 16, np.float32)
    return np.asarray(number % 2 if kind == "pred" else (number + 1) * 2654435761 % 2**32, np.uint32)
