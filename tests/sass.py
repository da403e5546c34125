"""Machine code of kernels, and what that of the interpreter costs: instructions that a warp issues, and branches that it takes.

Owns the reading of SASS.
"""

import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from device_steps import register_steps_of, steps_of

from evo.native.device_code import NUM_EXTRA_WORDS, DeviceEncoder, max_words

_TARGET = re.compile(r"(\.L_x_\d+)")
_TABLE = re.compile(r"BRX.*BRANCH_TARGETS ([.\w,]+)")
FP64 = ("DADD", "DMUL", "DFMA", "DSETP", "F2F.F64", "I2F.F64")


def disassembler() -> Path | None:
    """That of the wheel nvidia-cuda-nvdisasm."""
    package = find_spec("nvidia.cu13") if find_spec("nvidia") else None
    found = [Path(folder) / "bin" / "nvdisasm" for folder in (package.submodule_search_locations if package else [])]
    return next((path for path in found if path.is_file()), None)


def disassembled(tool: Path, cubin: Path) -> dict[str, list[str]]:
    """The SASS of each kernel, by its name: instructions without addresses, and labels."""
    text = subprocess.run([tool, "-c", cubin], capture_output=True, text=True, check=True).stdout
    sections = re.split(r"^\s*\.section\s+\.text\.(\w+),.*$", text, flags=re.MULTILINE)
    line = re.compile(r"^(\.L_x_\d+):|/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;", re.MULTILINE)
    return {
        name: [label or instruction for label, instruction in line.findall(body)]
        for name, body in zip(sections[1::2], sections[2::2], strict=True)
    }


@dataclass(frozen=True)
class Counts:
    """Of one way through the code."""

    issued: int
    taken: int
    fp64: int


class Sass:
    """The code of the interpreter kernel as `disassembled` gives it."""

    def __init__(self, lines: list[str]):
        self.lines = lines
        self.labels = {line: place for place, line in enumerate(lines) if line.startswith(".L_x_")}
        tables = [match[1].split(",") for line in lines if (match := _TABLE.search(line))]
        assert all(table == tables[0] for table in tables)
        self.cases = tables[0]

    def walk(self, place: int, decisions: Iterable[bool] = ()) -> Counts:
        """From a place to the next branch by number, or to the first conditional branch for which `decisions` have no value. The
        others are taken or not as these say.
        """
        left, issued, taken, fp64 = iter(decisions), 0, 0, 0
        while True:
            words = self.lines[place].split()
            place += 1
            if words[0].startswith(".L_x_"):
                continue
            is_conditional = words[0].startswith("@")
            opcode = words[is_conditional].rstrip(";")
            issued += 1
            assert issued < 100_000, "this way through the code does not end"
            fp64 += opcode.startswith(FP64)
            if opcode == "BRX":
                return Counts(issued, taken + 1, fp64)
            if opcode in ("BRA", "BRA.U"):  # the latter by a uniform predicate
                is_taken = next(left, None) if is_conditional or opcode == "BRA.U" else True
                if is_taken is None:
                    return Counts(issued, taken, fp64)
                if is_taken:
                    place, taken = self.labels[_TARGET.search(self.lines[place - 1])[1]], taken + 1

    def case(self, number: int) -> Counts:
        """Of one step."""
        return self.walk(self.labels[self.cases[number]])

    def sums(self, num_trips: int) -> tuple[Counts, Counts, Counts]:
        """From a program's end to the first step of the next one: in a warp whose programs wait, in one that waits for the sums,
        and in the one that sums.

        Args:
            num_trips: of the summing warp through its loop over points.
        """
        end = self.labels[self.cases[0]]
        loop = [*[True] * (num_trips - 1), False]
        ways = [True], [False, True], [False, False, False, *loop, True]
        waiting, idle, summing = (self.walk(end, [*way, True]) for way in ways)
        return waiting, idle, summing


def case_numbers(language, made, words: np.ndarray) -> list[list[int]]:
    """The cases that each program goes through; [] for one that the kernel cannot run."""
    layout = made.layout
    names = [name for name, _ in language.inputs]
    vectors = [names.index(name) if name in names else layout.first_output for name, _ in language.registers]
    where = (layout.num_inputs, layout.num_slots, layout.num_registers)
    encoder = DeviceEncoder(language.lowering, made.cases.numbers, vectors, *where)
    found = []
    for row in words:
        _, [count] = language.lowering.analyze(row[None])
        words = np.zeros(int(max_words(int(count), len(language.outputs), layout.in_registers)) + NUM_EXTRA_WORDS, np.uint32)
        places = np.array([0, len(words)])
        encoder.encode(row[None], np.zeros(1, np.int64), places, words, np.zeros(1, np.uint32), layout.first_output)
        numbers, registers = made.cases.numbers, layout.num_registers
        steps = register_steps_of(words, 0, numbers, registers) if registers else steps_of(words, 0, numbers)
        found.append([step.case for step in steps])
    return found
