from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

STATE_VERSION: int
MAX_PCA_FEATURES: int
KINDS: tuple[str, ...]

def levels() -> list[str]: ...

class Model:
    kind: str
    level: str
    def __new__(
        cls,
        kind: str,
        num_features: int,
        num_targets: int = 1,
        *,
        level: str | None = None,
        window: int = ...,
        num_units: int = ...,
        length_scale: float = ...,
        noise: float = ...,
        seed: int = ...,
    ) -> Model: ...
    @staticmethod
    def from_state(state: bytes | NDArray[np.uint8], level: str | None = None) -> Model: ...
    @property
    def options(self) -> dict[str, Any]: ...
    @property
    def num_rows(self) -> int: ...
    def reset(self) -> None: ...
    def update(self, rows: ArrayLike, targets: ArrayLike | None = None) -> None: ...
    @overload
    def predict(self, rows: ArrayLike, return_std: Literal[False] = False) -> NDArray[np.float32]: ...
    @overload
    def predict(self, rows: ArrayLike, return_std: Literal[True]) -> tuple[NDArray[np.float32], NDArray[np.float32]]: ...
    def save(self) -> NDArray[np.uint8]: ...
    def load(self, state: bytes | NDArray[np.uint8]) -> None: ...
