from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.native.ptx_vm import VirtualMachine

STATISTICS: tuple[str, ...]

class ProgramFeatures:
    machine: VirtualMachine
    names: tuple[str, ...]
    def __new__(
        cls, machine: VirtualMachine, inputs: Sequence[NDArray[Any] | None], *, num_bigrams: int = 16, is_scaled: bool = False
    ) -> ProgramFeatures: ...
    @property
    def num_features(self) -> int: ...
    def describe(self, words: NDArray[np.uint64]) -> NDArray[np.float32]: ...
