"""The keys of an instruction set's JSON and what each may hold; the docstring of evo.instructions says what they mean.

Owns these models. Knows nothing of what refers to what.
"""

import ast
import math
import re
from contextlib import suppress
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator

_MAX_COUNT = 65535  # indices and counts of types are 16 bits in stack_ptx.h


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


# Formulas, whose text is copied into exports, have no comments, quotes, lines, powers or attributes.
_FORM_TEXT = re.compile(r"(?!.*\w\s+\()[A-Za-z0-9_ .,()<>=!*/+-]{1,200}")
SYMPY_CALLS = "Abs Add Lt Max Min Mul Piecewise Pow cos exp floor log sin sqrt tan tanh".split()
_LARGEST_NUMBER = 64  # SymPy computes powers of numbers exactly


def _check_form(key: str, text: str, operands: str) -> None:
    """Raises ValueError unless a text is a formula of operators, calls, small numbers and these operands."""

    def are_forms(*nodes: ast.expr) -> bool:
        return all(map(is_form, nodes))

    def is_form(node: ast.expr) -> bool:
        match node:
            case ast.Name(name):
                return name in tuple(operands)
            case ast.Constant(bool()):
                return key == "sympy"
            case ast.Constant(int() | float() as number):
                return abs(number) <= _LARGEST_NUMBER
            case ast.UnaryOp(ast.USub(), operand):
                return is_form(operand)
            case ast.BinOp(left, ast.Add() | ast.Sub() | ast.Mult() | ast.Div(), right) | ast.Compare(left, [ast.Lt()], [right]):
                return are_forms(left, right)
            case ast.Compare(left, [ast.Gt() | ast.Eq() | ast.NotEq()], [right]):
                return key == "formula" and are_forms(left, right)
            case ast.Call(ast.Name(name), parts, named) if key == "sympy":
                is_plain = name != "Pow" or all(isinstance(part, ast.Name | ast.Constant) for part in parts)
                return name in SYMPY_CALLS and is_plain and are_forms(*parts, *(keyword.value for keyword in named))
            case ast.Call(ast.Name(name), parts, []):
                return bool(re.fullmatch(r"[a-z]\w+", name)) and are_forms(*parts)
            case ast.Tuple(parts):
                return key == "sympy" and are_forms(*parts)
        return False

    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        if _FORM_TEXT.fullmatch(text) and is_form(ast.parse(text, mode="eval").body):
            return
    raise ValueError(f"{key} is {text[:80]!r}, must be a formula of {', '.join(operands)} with + - * / < and functions")


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
    kind, operand, bound = match[2], match[4] or "a", _power(match[1])
    least, limit = _power(match[3] or "0"), _power(match[5] or "inf")
    if not (0.0 <= bound < math.inf and 0.0 <= least < limit):
        raise ValueError(f"{text!r} is not an error: its numbers must be positive, and finite")
    return ErrorBound(kind, bound, operand, limit, least)  # type: ignore[arg-type]


def _power(text: str) -> float:
    base, _, exponent = text.partition("^")
    try:
        return math.pow(float(base), float(exponent or 1))
    except OverflowError:
        return math.inf


def _by_architecture(slots: Any) -> Any:
    return {OLDEST: slots} if isinstance(slots, int | float) else slots


OLDEST = "sm_75"  # the oldest architecture that programs are compiled for

_Architecture = Annotated[str, StringConstraints(pattern=r"^sm_[1-9][0-9]{1,2}$")]


class Semantics(_Strict):
    """Meaning of an instruction: the keys of its row, empty where it does not have them. meaning: in one line of words."""

    meaning: str = Field(default="see the PTX ISA", pattern=r"^[ -~]{1,200}$")
    vm: str = ""
    error: Annotated[ErrorBound | None, BeforeValidator(_error_bound)] = None
    derivative: dict[Literal["a", "b", "c", "d"], str] = {}
    code: str = ""
    infix: str = ""
    formula: str = ""
    sympy: str = ""
    function: str = ""
    weight: float = Field(default=0.0, ge=0.0, allow_inf_nan=False)
    slots: Annotated[
        dict[_Architecture, Annotated[float, Field(ge=0.0, allow_inf_nan=False)]], BeforeValidator(_by_architecture)
    ] = {}

    def slots_on(self, target: str) -> float | None:
        """Issue slots of a warp on a target such as `sm_89`; None: unknown."""
        numbers = {int(name.removeprefix("sm_")): slots for name, slots in self.slots.items()}
        older = [number for number in numbers if number <= int(target.removeprefix("sm_"))]
        return numbers[max(older)] if older else None

    @property
    def is_coarse(self) -> bool:
        """Return whether the largest error is more than a few steps of f32."""
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

    @model_validator(mode="after")
    def _has_forms(self) -> Self:
        for key in ("infix", "formula", "sympy"):
            if text := getattr(self, key):
                _check_form(key, text, "abcd"[: len(self.args)])
        return self

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
    """A set. default, wide, halves: how much of it the set of this name has; helpers: what the code of instructions shares."""

    abi_version: int
    default: _CountsJson | None = None
    wide: _CountsJson | None = None
    halves: _CountsJson | None = None
    stack_types: list[_StackTypeJson] = Field(min_length=1, max_length=_MAX_COUNT)
    arg_types: list[_ArgTypeJson] = Field(max_length=_MAX_COUNT)
    instructions: list[_InstructionJson]
    helpers: list[_HelperJson] = []
    special_registers: list[_SpecialRegisterJson] = Field(default=[], max_length=_MAX_COUNT)
