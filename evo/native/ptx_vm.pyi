from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evo.native.stack_ptx import Lowered, Lowering

SUMS_DTYPE: np.dtype[np.void]

def levels() -> list[str]: ...

class VirtualMachine:
    lowering: Lowering
    unsupported: frozenset[str]
    def __new__(cls, lowering: Lowering, level: str | None = None) -> VirtualMachine: ...
    @property
    def level(self) -> str: ...
    def store(
        self, words: NDArray[np.uint64], inputs: Sequence[NDArray[Any] | None], out: NDArray[Any] | None = None
    ) -> NDArray[np.float32] | NDArray[np.uint32]: ...
    def reduce(
        self, words: NDArray[np.uint64], inputs: Sequence[NDArray[Any] | None], targets: ArrayLike
    ) -> NDArray[np.void]: ...
    def store_lowered(
        self, lowered: Lowered, inputs: Sequence[NDArray[Any] | None]
    ) -> NDArray[np.float32] | NDArray[np.uint32]: ...
