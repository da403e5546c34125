"""The keys of an instruction set's JSON and what each may hold; the docstring of evo.instructions says what they mean.

Owns these models. Knows nothing of what refers to what.
"""

import math
import re
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

_MAX_COUNT = 65535  # indices and counts of types are 16 bits in stack_ptx.h


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


# Names become identifiers in C and Python and tokens of program text; the rest is written into PTX unchanged.
_Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
_Ptx = Annotated[str, StringConstraints(pattern=r"^[a-z][A-Za-z0-9_.:]*( [A-Za-z0-9_.]+(, [A-Za-z0-9_.]+)*)?$")]
_Prefix = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9]*$")]
_Special = Annotated[str, StringConstraints(pattern=r"^[a-z][A-Za-z0-9_]*(\.[xyzw])?$")]


class ErrorBound(NamedTuple):
    """The error of an approximate instruction against the exact result, where an operand's size is from `least` to `limit`."""

    kind: Literal["ulp", "relative", "absolute", "either"]
    bound: float
    operand: str = "a"
    limit: float = math.inf
    least: float = 0.0


def _error_bound(text: Any) -> ErrorBound:
    match = re.fullmatch(r"(\S+) (ulp|relative|absolute|either)(?: if (?:(\S+) <= )?\|([abcd])\| <= (\S+))?", str(text))
    if not match:
        raise ValueError(f"{text!r} is not an error; write it as 2^-11 relative, or as 2.5 ulp if 2^-126 <= |b| <= 2^126")
    bound, kind, least, operand, limit = match.groups(default="")
    return ErrorBound(kind, _power(bound), operand or "a", _power(limit or "inf"), _power(least or "0"))  # type: ignore[arg-type]


def _power(text: str) -> float:
    base, _, exponent = text.partition("^")
    return math.pow(float(base), float(exponent or 1))


def _by_architecture(slots: Any) -> Any:
    return {OLDEST: slots} if isinstance(slots, int | float) else slots


OLDEST = "sm_75"  # the oldest architecture that programs are compiled for

_Architecture = Annotated[str, StringConstraints(pattern=r"^sm_[1-9][0-9]{1,2}$")]


class Semantics(_Strict):
    """What is known of an instruction: the keys of its row, empty where it does not have them. meaning: in one line of words."""

    meaning: str = Field(default="see the PTX ISA", min_length=1)
    vm: str = ""
    error: Annotated[ErrorBound | None, BeforeValidator(_error_bound)] = None
    derivative: dict[Literal["a", "b", "c", "d"], str] = {}
    code: str = ""
    infix: str = ""
    formula: str = ""
    sympy: str = ""
    function: str = ""
    weight: float = 0.0
    slots: Annotated[dict[_Architecture, Annotated[float, Field(ge=0.0)]], BeforeValidator(_by_architecture)] = {}

    def slots_on(self, target: str) -> float | None:
        """Issue slots of a warp on a target such as `sm_89`; None: unknown."""
        numbers = {int(name.removeprefix("sm_")): slots for name, slots in self.slots.items()}
        older = [number for number in numbers if number <= int(target.removeprefix("sm_"))]
        return numbers[max(older)] if older else None

    @property
    def is_coarse(self) -> bool:
        """Whether the largest error is more than a few steps of f32."""
        return self.error is not None and self.error.bound * (2.0**-23 if self.error.kind == "ulp" else 1.0) > 2.0**-20


class _StackTypeJson(_Strict):
    name: _Name
    literal_prefix: _Prefix
    constant_type: Literal["f32", "u32", "s32", "f64", "u64", "s64", "f16", "bf16"] | None = None
    encoder_type: Literal["f32", "u32", "s32"] | None = None


class _ArgTypeJson(_Strict):
    name: _Name
    stack_type: str
    num_vec_elems: int = Field(default=0, ge=0, le=8)


class _InstructionJson(Semantics):
    ptx: _Ptx
    args: list[str] = Field(max_length=4)
    rets: list[str] = Field(min_length=1, max_length=2)
    aligned: bool = False
    display: str | None = None
    name: _Name | None = None
    num_commutative: int = Field(default=0, ge=0, le=2)
    volatile: bool = False
    registers_only: bool = False

    @property
    def semantics_set(self) -> set[str]:
        """The keys of `Semantics` that are given."""
        return self.model_fields_set & Semantics.model_fields.keys()


class _SpecialRegisterJson(_Strict):
    ptx: _Special
    arg_type: str
    volatile: bool = False


class _HelperJson(_Strict):
    name: _Name
    args: list[str]
    rets: list[str]
    meaning: str
    code: str


class _CountsJson(_Strict):
    stack_types: int
    arg_types: int
    instructions: int


class InstructionSetJson(_Strict):
    """A set. default, wide: how much of it the set of this name has; helpers: what the code of instructions shares."""

    abi_version: int
    default: _CountsJson | None = None
    wide: _CountsJson | None = None
    stack_types: list[_StackTypeJson] = Field(min_length=1, max_length=_MAX_COUNT)
    arg_types: list[_ArgTypeJson] = Field(max_length=_MAX_COUNT)
    instructions: list[_InstructionJson]
    helpers: list[_HelperJson] = []
    special_registers: list[_SpecialRegisterJson] = Field(default=[], max_length=_MAX_COUNT)
