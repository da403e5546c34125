"""What the interpreter kernel's machine code costs: instructions that a warp issues and branches that it takes, by disassembly.

Owns the reading of SASS. An issue slot is one instruction of one warp.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from evo.native.device_code import NUM_EXTRA_STEPS, DeviceEncoder, max_steps

_TARGET = re.compile(r"BRA(?:\.\w+)* .*?(\.L_x_\d+)")
_TABLE = re.compile(r"BRX.*BRANCH_TARGETS ([.\w,]+)")
FP64 = ("DADD", "DMUL", "DFMA", "DSETP", "F2F.F64", "I2F.F64")


@dataclass(frozen=True)
class Counts:
    """Of one way through the code."""

    issued: int
    taken: int
    fp64: int


class Sass:
    """The code of a kernel as `disassemble` gives it."""

    def __init__(self, lines: list[str]):
        self.lines = lines
        self.labels = {line: place for place, line in enumerate(lines) if line.startswith(".L_x_")}
        tables = [match[1].split(",") for line in lines if (match := _TABLE.search(line))]
        assert all(table == tables[0] for table in tables)
        self.cases = tables[0]

    def walk(self, place: int, taken: Iterable[str] = ()) -> tuple[list[str], int]:
        """The instructions from a place to the next branch by number or end, and the branches that were taken. Conditional
        branches are taken if their label is in `taken`.
        """
        found, branches = [], 0
        while True:
            line = self.lines[place]
            place += 1
            if line.startswith(".L_x_"):
                continue
            found.append(line)
            words = line.split()
            opcode = words[1 if words[0].startswith("@") else 0]
            if opcode.startswith("BRX"):
                return found, branches + 1
            if opcode == "EXIT" and not words[0].startswith("@"):
                return found, branches
            if opcode == "BRA":
                label = _TARGET.search(line)[1]
                if not words[0].startswith("@") or label in taken:
                    place, branches = self.labels[label], branches + 1

    def case(self, number: int) -> Counts:
        """Of one step."""
        found, branches = self.walk(self.labels[self.cases[number]])
        return Counts(len(found), branches, fp64(found))


def fp64(lines: list[str]) -> int:
    return sum(any(name in line for name in FP64) for line in lines)


def case_numbers(language, made, words: np.ndarray) -> list[list[int]]:
    """The cases that each program goes through; [] for one that the kernel cannot run."""
    layout = made.layout
    names = [name for name, _ in language.inputs]
    vectors = [names.index(name) if name in names else layout.first_output for name, _ in language.registers]
    encoder = DeviceEncoder(language.lowering, made.cases.numbers, vectors, layout.num_inputs, layout.num_slots)
    found = []
    for row in words:
        _, [count] = language.lowering.analyze(row[None])
        steps = np.zeros((int(max_steps(int(count), len(language.outputs))) + NUM_EXTRA_STEPS, 4), np.uint32)
        encoder.encode(row[None], np.zeros(1, np.int64), steps, np.zeros(1, np.uint32), layout.first_output, 1)
        cases = steps[:, 0].tolist()
        found.append(cases[: cases.index(0)])
    return found
