from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.native.ptx_vm import VirtualMachine

MAX_PARAMETERS: int
OUTCOME_DTYPE: np.dtype[np.void]

class Tuner:
    machine: VirtualMachine
    def __new__(
        cls,
        machine: VirtualMachine,
        inputs: Sequence[NDArray[Any] | None],
        target: NDArray[np.float32],
        *,
        iterations: int,
        is_scaled: bool,
    ) -> Tuner: ...
    def tune(self, words: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.void]]: ...
