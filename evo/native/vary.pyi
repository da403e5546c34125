from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

class Draw(IntEnum):
    LITERAL = 0
    GAUSSIAN = 1
    UNIFORM = 2
    INTEGER = 3

class Rate(NamedTuple):
    operator: str
    name: str
    default: float
    lowest: float
    highest: float
    is_lowest_refused: bool
    @property
    def key(self) -> str: ...

MAX_PHRASE: int
OPERATORS: tuple[str, ...]
RATES: tuple[Rate, ...]

class Variation:
    initial_max_length: int
    def __new__(
        cls,
        words: ArrayLike,
        weights: ArrayLike,
        draws: ArrayLike,
        params: ArrayLike,
        options: Any,
        num_words: ArrayLike | None = None,
    ) -> Variation: ...
    def random_programs(
        self, seed: int, generation: int, first_slot: int, num_programs: int, max_length: int
    ) -> NDArray[np.uint64]: ...
    def offspring(
        self,
        seed: int,
        generation: int,
        first_slot: int,
        num_offspring: int,
        pool: NDArray[np.uint64],
        candidates: NDArray[np.uint32] | None = None,
        *,
        trim: bool = False,
    ) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.uint8]]: ...

def program_lengths(words: NDArray[np.uint64]) -> NDArray[np.int64]: ...
