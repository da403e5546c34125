from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from evo.native.stack_ptx import Lowered, Lowering
from evo.native.tune import Derived

SUMS_DTYPE: np.dtype[np.void]

def levels() -> list[str]: ...
def empty(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]: ...

class Folding:
    def __new__(cls, instruction_set: Any) -> Folding: ...
    def handle(self) -> tuple[int, int]: ...

class VirtualMachine:
    lowering: Lowering
    unsupported: frozenset[str]
    def __new__(cls, lowering: Lowering, level: str | None = None) -> VirtualMachine: ...
    @property
    def level(self) -> str: ...
    def handle(self) -> tuple[int, int]: ...
    def input_table(
        self, inputs: Sequence[NDArray[Any] | None], num_points: int | None
    ) -> tuple[NDArray[np.void], list[NDArray[Any]], int]: ...
    def store(
        self, words: NDArray[np.uint64], inputs: Sequence[NDArray[Any] | None], out: NDArray[Any] | None = None
    ) -> NDArray[np.float32] | NDArray[np.uint32]: ...
    def reduce(
        self, words: NDArray[np.uint64], inputs: Sequence[NDArray[Any] | None], targets: ArrayLike
    ) -> NDArray[np.void]: ...
    def store_lowered(
        self, lowered: Lowered | Derived, inputs: Sequence[NDArray[Any] | None]
    ) -> NDArray[np.float32] | NDArray[np.uint32]: ...
