"""Device code read as csrc/device_code.h describes it, by another reader than the kernel's."""

from dataclasses import dataclass

import numpy as np

CONSTANT, SLOT = 2, 1  # places of operands, as the header's
END, LOAD_CONSTANT, STORES, REGISTER_CONSTANT = 0, 4, 1, 1
NO_CASE = 0xFFFF


@dataclass(frozen=True)
class Step:
    """A step: its case with the bit STORES, the vectors of operands, of the result, and the second word; None: it has none."""

    case: int
    vectors: tuple[int, int, int]
    result: int
    extra: int | None


@dataclass(frozen=True)
class RegisterStep:
    """A step where vectors are registers: its case, that of the first vector, its vector, the second word; None: it has none."""

    case: int
    first: int
    vector: int
    extra: int | None


def steps_of(words: np.ndarray, start: int, numbers: np.ndarray) -> list[Step]:
    """A program's steps. numbers: cases of each instruction in each form."""
    form_of = {int(number): form for (_, form), number in np.ndenumerate(numbers)}
    found, place, case = [], start + 1, int(words[start]) & 0x3FFF
    while case != END:
        word, extra, place = int(words[place]), None, place + 1
        form = form_of.get(case & ~STORES, 0)
        places = [form // 3**k % 3 for k in range(3)]
        if case & ~STORES == LOAD_CONSTANT or CONSTANT in places or places.count(SLOT) == 3:
            extra, place = int(words[place]), place + 1
        found.append(Step(case, (word >> 26, word >> 20 & 63, (extra or 0) >> 26), word >> 14 & 63, extra))
        case = word & 0x3FFF
    return found


def places_of(numbers: np.ndarray) -> dict[int, tuple[int, list[int]]]:
    """The instruction of each case with registers, and the places of its operands: its vector is the last one from a slot, and
    one before that comes from the operand register. Forms from more slots than that share the case, once these are loaded.
    """
    found: dict[int, tuple[int, list[int]]] = {}
    for (index, form), number in np.ndenumerate(numbers):
        places = [form // 3**k % 3 for k in range(3)]
        if number != NO_CASE and (number not in found or places.count(SLOT) < found[number][1].count(SLOT)):
            found[int(number)] = (index, places)
    return found


def register_steps_of(words: np.ndarray, start: int, numbers: np.ndarray, num_vectors: int) -> list[RegisterStep]:
    """As `steps_of`, where vectors are registers."""
    known = places_of(numbers)
    firsts = [REGISTER_CONSTANT, *(2 + what * num_vectors for what in range(3)), *known]
    found, place, case = [], start + 1, int(words[start])
    while case != END:
        word, extra, place = int(words[place]), None, place + 1
        first = max(number for number in firsts if number <= case)
        if first == REGISTER_CONSTANT or (first in known and CONSTANT in known[first][1]):
            extra, place = int(words[place]), place + 1
        found.append(RegisterStep(case, first, case - first, extra))
        case = word
    return found
