"""Device code read as csrc/device_code.h describes it, by another reader than the kernel's."""

from dataclasses import dataclass

import numpy as np

CONSTANT, SLOT = 2, 1  # places of operands, as the header's
END, LOAD_CONSTANT, STORES = 0, 4, 1


@dataclass(frozen=True)
class Step:
    """A step: its case with the bit STORES, the vectors of operands, of the result, and the second word; None: it has none."""

    case: int
    vectors: tuple[int, int, int]
    result: int
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
