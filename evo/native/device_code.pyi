from collections.abc import Sequence
from enum import IntEnum
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evo.native.stack_ptx import Lowering

_Numbers = TypeVar("_Numbers", int, NDArray[np.int64])

NUM_EXTRA_STEPS: int

class Encoded(IntEnum):
    OK = ...
    NO_ROOM = ...
    NO_CASE = ...
    TOO_MANY_SLOTS = ...

def max_steps(num_instructions: _Numbers, num_requests: int) -> _Numbers: ...

class DeviceEncoder:
    lowering: Lowering
    def __new__(
        cls, lowering: Lowering, cases: ArrayLike, register_vectors: Sequence[int], first_slot: int, num_slots: int
    ) -> DeviceEncoder: ...
    def encode(
        self,
        words: NDArray[np.uint64],
        rows: NDArray[np.int64],
        steps: NDArray[np.uint64],
        starts: NDArray[np.uint32],
        first_output: int,
        num_buffered: int,
    ) -> tuple[NDArray[np.uint8], int]: ...
