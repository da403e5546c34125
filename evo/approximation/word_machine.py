"""Results of single instructions on words: those of the virtual machine.

Knows nothing of functions.
"""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.instructions import shipped_instruction_set
from evo.language.program import Language, parse_program
from evo.native.ptx_vm import VirtualMachine

INSTRUCTION_SET = "bits"
_MOST_OPERANDS = 3


@cache
def _machine() -> tuple[VirtualMachine, Language]:
    names = tuple((f"x{k}", "b32") for k in range(_MOST_OPERANDS))
    language = Language(shipped_instruction_set(INSTRUCTION_SET), names, (("y", "b32"),))
    return VirtualMachine(language.lowering), language


@cache
def _program(name: str, num_operands: int) -> Any:
    text = " ".join([*(f"%x{k}" for k in reversed(range(num_operands))), name])
    return parse_program(_machine()[1], text, name)[None]


def apply(name: str, *operands: Any) -> NDArray[np.uint32]:
    """An instruction of words, `(num_points,)` or constants."""
    size = max(np.size(operand) for operand in operands)
    columns = [np.full(size, operand, np.uint32) if np.ndim(operand) == 0 else operand for operand in operands]
    unused = [None] * (_MOST_OPERANDS - len(columns) + 1)
    stored: NDArray[np.uint32] = _machine()[0].store(_program(name, len(columns)), [*columns, *unused])[0, 0].view(np.uint32)
    return stored
