from collections.abc import Sequence
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

STACK_DEPTH: int
ROUTINE_DEPTH: int
MAX_INSTRUCTIONS: int
MAX_INSTRUCTION_ARGS: int
INSTRUCTIONS: tuple[tuple[str, int], ...]

class WordType(IntEnum):
    NONE = 0
    INPUT = 1
    CONSTANT = 2
    PTX_INSTRUCTION = 3
    ROUTINE = 4
    RETURN = 5
    ROUTINE_ARG = 6
    REGISTER = 7

class ProgramError(ValueError):
    program_idx: int
    routine_idx: int | None
    word_idx: int
    code: str
    def __init__(self, program_idx: int, routine_idx: int | None, word_idx: int, code: str) -> None: ...

def is_register_name(name: str) -> bool: ...

class AstCompiler:
    def __new__(
        cls,
        output: str,
        inputs: Sequence[str],
        instructions: Sequence[tuple[str, int]],
        routines: Sequence[NDArray[np.uint64]] = (),
    ) -> AstCompiler: ...
    def emit(self, words: NDArray[np.uint64]) -> list[str]: ...

def interpret(
    words: NDArray[np.uint64],
    inputs: Sequence[NDArray[np.float32] | None],
    num_points: int,
    routines: Sequence[NDArray[np.uint64]] = (),
) -> NDArray[np.float32]: ...
