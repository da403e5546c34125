"""The cases of the interpreter kernel whose vectors are registers: an instruction applied to one given vector.

Owns their numbers and PTX. `evo.kernel.interpreter_cases` knows which instructions there are, csrc/device_code.h the steps.

A GPU's instructions name their registers. So a case has one vector at most, and there is one for each vector. Further steps store
a result, and load all operands from vectors but the last: the first into the accumulator, unless that is an operand itself, and
the next into the operand register. A step is one word, the case of the next step, and a second one with a constant.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np

from evo.instructions import InstructionSet
from evo.kernel.interpreter_cases import (
    ACCUMULATOR,
    CONSTANT,
    NO_CASE,
    NUM_FORMS,
    SLOT,
    TABLES_BYTES,
    Cases,
    Threads,
    form_index,
    forms,
    go_on,
    is_interpretable,
)

_OPERAND = 3  # the place of an operand in the operand register
_STEP, _WITH_CONSTANT = "$step", "$step_with_constant"
_ENDS = {_STEP: 4, _WITH_CONSTANT: 8}  # of cases by their label, and what lies between a step's word and the next one's end
# As in csrc/device_code.h: the case that loads a constant, and the first ones of each vector.
_LOAD_CONSTANT, _FIRST = 1, 2
_STORE, _LOAD, _LOAD_OPERAND, _NUM_MOVES = range(4)
# All of the default set has about a thousand, a quarter of a mebibyte of code. Multiprocessors cache 128 KiB (Jia et al. 2018,
# https://arxiv.org/abs/1804.06826), but a program uses a part of it.
MAX_REGISTER_CASES = 1024


@dataclass(frozen=True)
class RegisterCases(Cases):
    """Cases of a kernel with `num_vectors` vectors. numbers: as of `Cases`, the first of consecutive ones for each vector."""

    num_vectors: int

    def text(self, threads: Threads) -> Iterator[str]:
        """As `Cases.text`, with vector v at the thread's point k in the register %v<v>_<k>."""
        cases = self._cases()
        last = max(cases)
        labels = ", ".join(f"$case_{number}" for number in range(_LOAD_CONSTANT, last + 1))
        ends = {label: [*go_on(num_bytes), "brx.idx.uni %case, $cases;"] for label, num_bytes in _ENDS.items()}
        yield f"$cases: .branchtargets $program_end, {labels};"
        yield from ("ld.global.nc.b32 %word, [%at];", "add.u64 %at, %at, 4;")
        for label, end in ends.items():
            yield from (f"{label}:", *end)
        num_own = TABLES_BYTES // (4 * (last + 1)) - len(ends)
        # Of cases with vectors, those with inputs and the first slots are taken most often.
        for number in sorted(cases, key=lambda number: cases[number][-1]):
            yield f"$case_{number}:"
            yield from self._lines(*cases[number], threads.num_points)
            label = _WITH_CONSTANT if CONSTANT in cases[number][1] else _STEP
            yield from ends[label] if num_own > 0 else (f"bra.uni {label};",)
            num_own -= 1

    def _cases(self) -> dict[int, tuple[int | None, tuple[int, ...], int]]:
        """Instruction, sources of operands, and vector or -1 of each case. No instruction: the vector is moved to that source, or
        from the accumulator if there is none.
        """
        vectors = range(self.num_vectors)
        cases: dict[int, tuple[int | None, tuple[int, ...], int]] = {_LOAD_CONSTANT: (None, (CONSTANT,), -1)}
        moves: dict[int, tuple[int, ...]] = {_STORE: (), _LOAD: (ACCUMULATOR,), _LOAD_OPERAND: (_OPERAND,)}
        for what, sources in moves.items():
            cases |= {_FIRST + what * self.num_vectors + vector: (None, sources, vector) for vector in vectors}
        for index, instruction in enumerate(self.instruction_set.instructions):
            for form in forms(instruction) if is_interpretable(self.instruction_set, instruction) else ():
                number, direct = int(self.numbers[index, form_index(form)]), _direct(form)
                if number == NO_CASE:
                    continue
                if SLOT in direct:
                    cases |= {number + vector: (index, direct, vector) for vector in vectors}
                else:
                    cases[number] = (index, direct, -1)
        return cases

    def _lines(self, index: int | None, sources: tuple[int, ...], vector: int, num_points: int) -> Iterator[str]:
        names = {ACCUMULATOR: "%a{}", SLOT: f"%v{vector}_{{}}", CONSTANT: "%extra", _OPERAND: "%x{}"}
        if CONSTANT in sources:
            yield "ld.global.nc.b32 %extra, [%at];"
        if index is not None:
            yield from self.applied(
                self.instruction_set.instructions[index], num_points, lambda i, k: names[sources[i]].format(k)
            )
            return
        to, source = {(): (SLOT, ACCUMULATOR), (CONSTANT,): (ACCUMULATOR, CONSTANT)}.get(sources, (*sources, SLOT))
        yield from (f"mov.b32 {names[to].format(k)}, {names[source].format(k)};" for k in range(num_points))


def register_cases_of(instruction_set: InstructionSet, names: Collection[str] | None, num_vectors: int) -> RegisterCases | None:
    """The cases of instructions as `cases_of` has them; None if there are more than MAX_REGISTER_CASES."""
    numbers = np.full((len(instruction_set.instructions), NUM_FORMS), NO_CASE, np.uint16)
    count = _FIRST + _NUM_MOVES * num_vectors
    for index, instruction in enumerate(instruction_set.instructions):
        if (names is not None and instruction.name not in names) or not is_interpretable(instruction_set, instruction):
            continue
        known: dict[tuple[int, ...], int] = {}
        for form in forms(instruction):
            direct = _direct(form)
            if direct not in known:
                known[direct] = count
                count += num_vectors if SLOT in direct else 1
            if count > MAX_REGISTER_CASES:
                return None
            numbers[index, form_index(form)] = known[direct]
    return RegisterCases(instruction_set, numbers, num_vectors)


def _direct(form: tuple[int, ...]) -> tuple[int, ...]:
    """Sources of the operands once all vectors but the last one are loaded."""
    free = iter([_OPERAND] if ACCUMULATOR in form else [ACCUMULATOR, _OPERAND])
    last = max((i for i, source in enumerate(form) if source == SLOT), default=0)
    return tuple(next(free) if source == SLOT and i != last else source for i, source in enumerate(form))
