from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evo.native.ptx_vm import VirtualMachine
from evo.native.stack_ptx import Lowered, Lowering

MAX_PARAMETERS: int
OUTCOME_DTYPE: np.dtype[np.void]

class Derived(NamedTuple):
    nodes: NDArray[np.void]
    operands: NDArray[np.uint32]
    value_nodes: NDArray[np.uint32]
    value_stacks: NDArray[np.uint16]
    request_values: NDArray[np.uint32]
    num_instructions: int

class Derivation:
    lowering: Lowering
    differentiable: frozenset[str]
    def __new__(cls, lowering: Lowering) -> Derivation: ...
    def constants(self, lowered: Lowered, request: int = 0) -> NDArray[np.uint32]: ...
    def derive(
        self, lowered: Lowered, parameters: ArrayLike, request: int = 0, *, first_register: int | None = None
    ) -> Derived: ...

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
