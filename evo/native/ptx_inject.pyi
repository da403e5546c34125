from collections.abc import Sequence
from typing import NamedTuple, overload

class AnnotationError(ValueError):
    language: str
    line: int
    column: int
    reason: str
    def __init__(self, language: str, line: int, column: int, reason: str) -> None: ...

class DataType(NamedTuple):
    name: str
    register_type: str
    mov_postfix: str
    register_char: str
    register_cast_str: str = ""

class Variable(NamedTuple):
    name: str
    register: str
    mutability: str
    register_type: str
    data_type: str

class Inject(NamedTuple):
    name: str
    index: int  # type: ignore[assignment]  # hides tuple.index
    num_sites: int
    variables: tuple[Variable, ...]

DEFAULT_TYPES: tuple[DataType, ...]

@overload
def process_cuda(cuda: str, types: Sequence[DataType] | None = None) -> str: ...
@overload
def process_cuda(cuda: bytes, types: Sequence[DataType] | None = None) -> bytes: ...

class AnnotatedPtx:
    def __new__(cls, ptx: str | bytes, types: Sequence[DataType] | None = None) -> AnnotatedPtx: ...
    @property
    def injects(self) -> tuple[Inject, ...]: ...
    @property
    def num_injects(self) -> int: ...
    def names(self) -> list[str]: ...
    def info(self, name: object) -> Inject: ...
    def render(self, stubs: Sequence[str | bytes]) -> bytes: ...
