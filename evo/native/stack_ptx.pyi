from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

class NodeKind(IntEnum):
    INPUT = 0
    CONSTANT = 1
    SPECIAL = 2
    PTX = 3

MODES: tuple[str, ...]
HASH_VERSION: int
NO_VALUE: int
NODE_DTYPE: np.dtype[np.void]

class Lowered(NamedTuple):
    nodes: NDArray[np.void]
    operands: NDArray[np.uint32]
    value_nodes: NDArray[np.uint32]
    value_stacks: NDArray[np.uint16]
    request_values: NDArray[np.uint32]
    num_instructions: int
    stub: str
    hash: NDArray[np.uint64]

def check_name(name: str) -> None: ...

class _Limits(Protocol):
    @property
    def stack_size(self) -> int: ...
    @property
    def max_nodes(self) -> int: ...
    @property
    def max_frame_depth(self) -> int: ...
    @property
    def store_size(self) -> int: ...
    @property
    def execution_limit(self) -> int: ...

class _Folding(Protocol):
    def handle(self) -> tuple[int, int]: ...

class Lowering:
    instruction_set: Any
    registers: tuple[tuple[str, int], ...]
    requests: tuple[int, ...]
    limits: _Limits
    routines: tuple[NDArray[np.uint64], ...]
    folding: _Folding | None
    workspace_bytes: int
    def __new__(
        cls,
        instruction_set: Any,
        registers: Iterable[tuple[str, int]],
        requests: Iterable[int],
        limits: _Limits,
        routines: Sequence[NDArray[np.uint64]] = (),
        folding: _Folding | None = None,
    ) -> Lowering: ...
    def analyze(self, words: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.int32]]: ...
    def emit(self, words: NDArray[np.uint64], *, mode: str = "lenient", value_numbering: bool = True) -> list[str]: ...
    def lower(
        self, words: NDArray[np.uint64], *, mode: str = "lenient", value_numbering: bool = True, folding: bool = True
    ) -> Lowered: ...
