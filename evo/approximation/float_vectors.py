"""Floats as bit vectors of an SMT solver: operations of NumPy, and instructions on floats, by IEEE 754 and the PTX ISA.

A NaN that NumPy computes may have any payload here, and the least of two zeros any sign, since processors differ in both.
"""

from collections.abc import Callable, Sequence
from typing import Any

from evo.approximation.bit_vectors import BitVectors, joined

F16, BF16, F32, F64 = (5, 11), (8, 8), (8, 24), (11, 53)  # bits of the exponent, and of the digits with the leading one
NUMPY = {16: F16, 32: F32, 64: F64}  # by width
NEAREST, ZERO, DOWN, UP = "RNE", "RTZ", "RTN", "RTP"
ROUNDED = {"rint": NEAREST, "trunc": ZERO, "floor": DOWN, "ceil": UP}
ARITHMETIC = {"add": "ADD", "subtract": "SUB", "multiply": "MUL", "divide": "DIV", "sqrt": "SQRT"}
COMPARED = {"equal": "EQUAL", "less": "LT", "less_equal": "LEQ", "greater": "GT", "greater_equal": "GEQ"}
TESTED = {"isnan": "IS_NAN", "isinf": "IS_INF"}
Format = tuple[int, int]


def number(v: BitVectors, a: Any, form: Format) -> Any:
    """The float that bits are."""
    return v.term("FP_TO_FP_FROM_BV", [a], form)


def bits(v: BitVectors, value: Any, form: Format, nan: int | None = None) -> Any:
    """The bits of a float. nan: of a NaN; None: may be any."""
    vector = v.anything(sum(form))
    v.definitions.append(v.same(number(v, vector, form), value))
    if nan is not None:
        v.definitions.append(v.term("IMPLIES", [v.term("FP_IS_NAN", [value]), v.same(vector, v.number(nan, sum(form)))]))
    return vector


def _rounded(v: BitVectors, kind: str, values: Sequence[Any], mode: str = NEAREST, indices: Sequence[int] = ()) -> Any:
    return v.term(f"FP_{kind}", [v.rounding(mode), *values], indices)


def of_numpy(v: BitVectors, op: str, operands: Sequence[Any]) -> Any:
    """Result of a ufunc of floats, a truth of its comparisons; None: it has no meaning here."""
    a, form = operands[0], NUMPY[v.width(operands[0])]
    values = [number(v, operand, form) for operand in operands]
    sign = v.number(1 << sum(form) - 1, sum(form))
    if op in ARITHMETIC:
        return bits(v, _rounded(v, ARITHMETIC[op], values), form)
    if op in ROUNDED:
        return bits(v, _rounded(v, "RTI", values, ROUNDED[op]), form)
    if op in COMPARED or op in TESTED:
        return v.truth(v.term(f"FP_{COMPARED.get(op) or TESTED[op]}", values))
    match op:
        case "not_equal":
            return v.truth(v.is_not(v.term("FP_EQUAL", values)))
        case "isfinite":
            return v.truth(v.is_not(v.term("OR", [v.term(f"FP_{kind}", values) for kind in TESTED.values()])))
        case "signbit":
            return v.cut(a, sum(form) - 1, 1)
        case "negative":
            return v.apply("XOR", a, sign)
        case "absolute":
            return v.apply("AND", a, v.apply("NOT", sign))
        case "copysign":
            return v.apply("OR", v.apply("AND", a, v.apply("NOT", sign)), v.apply("AND", operands[1], sign))
        case "minimum" | "maximum":
            is_any = v.is_true(v.anything(1))
            is_first = v.term("FP_LT", values if op == "minimum" else values[::-1])
            is_first = v.term("OR", [is_first, v.term("AND", [v.term("FP_EQUAL", values), is_any])])
            is_nan = v.term("OR", [v.term("FP_IS_NAN", [value]) for value in values])
            nan = v.anything(sum(form))
            v.definitions.append(v.term("FP_IS_NAN", [number(v, nan, form)]))
            return v.choose(is_nan, nan, v.choose(is_first, a, operands[1]))
    return None


def of_integer(v: BitVectors, a: Any, form: Format, is_signed: bool) -> Any:
    """The float that is nearest to an integer."""
    return bits(v, _rounded(v, f"TO_FP_FROM_{'SBV' if is_signed else 'UBV'}", [a], indices=form), form)


def converted(v: BitVectors, a: Any, old: Format, form: Format, nan: int | None = None) -> Any:
    """The float of another format that is nearest to a float."""
    return bits(v, _rounded(v, "TO_FP_FROM_FP", [number(v, a, old)], indices=form), form, nan)


def _is_within(v: BitVectors, value: Any, form: Format, least: int, above: int) -> Any:
    low, high = (_rounded(v, "TO_FP_FROM_SBV", [v.number(end, 128)], indices=form) for end in (least, above))
    return v.term("AND", [v.term("FP_GEQ", [value, low]), v.term("FP_LT", [value, high])])


def to_integer(v: BitVectors, a: Any, width: int, is_signed: bool) -> tuple[Any, Any]:
    """A float rounded toward 0 to an integer, and the truth that it fits this width."""
    form = NUMPY[v.width(a)]
    value = number(v, a, form)
    least, above = (-(1 << width - 1), 1 << width - 1) if is_signed else (0, 1 << width)
    integer = _rounded(v, f"TO_{'S' if is_signed else 'U'}BV", [value], ZERO, [width])
    return integer, _is_within(v, value, form, least, above)


# ---- instructions ----


def _arithmetic(kind: str, form: Format, nan: int) -> Callable[..., Any]:
    def apply(v: BitVectors, *operands: Any) -> Any:
        return bits(v, _rounded(v, kind, [number(v, operand, form) for operand in operands]), form, nan)

    return apply


def _extreme(is_least: bool, form: Format, nan: int) -> Callable[..., Any]:
    """The least or largest of two: a number before a NaN, and zeros in the order of their signs."""

    def apply(v: BitVectors, a: Any, b: Any) -> Any:
        x, y = (number(v, operand, form) for operand in (a, b))
        zeros = v.apply("OR" if is_least else "AND", a, b)  # of equal floats, too
        chosen = v.choose(v.term("FP_LT", [x, y] if is_least else [y, x]), a, v.choose(v.term("FP_EQUAL", [x, y]), zeros, b))
        is_nan = [v.term("FP_IS_NAN", [value]) for value in (x, y)]
        chosen = v.choose(is_nan[1], a, v.choose(is_nan[0], b, chosen))
        return v.choose(v.term("AND", is_nan), v.number(nan, sum(form)), chosen)

    return apply


def _halves(apply: Callable[..., Any]) -> Callable[..., Any]:
    return lambda v, *operands: joined(v, [apply(v, *(v.cut(operand, k, 16) for operand in operands)) for k in (0, 16)])


def _packed(form: Format) -> Callable[..., Any]:
    return lambda v, a, b: joined(v, [converted(v, operand, F32, form, 0x7FFF) for operand in (b, a)])


def _s32_of_f32(v: BitVectors, a: Any) -> Any:
    value, least, above = number(v, a, F32), -(1 << 31), 1 << 31
    whole = _rounded(v, "TO_SBV", [value], NEAREST, [32])
    outside = v.choose(v.term("FP_IS_NEG", [value]), v.number(least, 32), v.number(above - 1, 32))
    clamped = v.choose(_is_within(v, value, F32, least, above), whole, outside)
    return v.choose(v.term("FP_IS_NAN", [value]), v.number(0, 32), clamped)


_NAN = 0x7FFFFFFF
FLOAT_INSTRUCTIONS: dict[str, Callable[..., Any]] = {
    "minf": _extreme(True, F32, _NAN),
    "maxf": _extreme(False, F32, _NAN),
    "s32_of_f32": _s32_of_f32,
    "f32_of_u32": lambda v, a: of_integer(v, a, F32, False),
    "f32_of_s32": lambda v, a: of_integer(v, a, F32, True),
    "f32_of_f16": lambda v, a: converted(v, v.cut(a, 0, 16), F16, F32, _NAN),
    "f16x2_of_f32": _packed(F16),
    "bf16x2_of_f32": _packed(BF16),
}
for _name, _kind in (("add", "ADD"), ("sub", "SUB"), ("mul", "MUL"), ("fma", "FMA")):
    FLOAT_INSTRUCTIONS[f"{_name}f"] = _arithmetic(_kind, F32, _NAN)
    for _text, _form in (("f16", F16), ("bf16", BF16)):
        FLOAT_INSTRUCTIONS[f"{_name}2_{_text}"] = _halves(_arithmetic(_kind, _form, 0x7FFF))
for _text, _form in (("f16", F16), ("bf16", BF16)):
    FLOAT_INSTRUCTIONS[f"min2_{_text}"] = _halves(_extreme(True, _form, 0x7FFF))
    FLOAT_INSTRUCTIONS[f"max2_{_text}"] = _halves(_extreme(False, _form, 0x7FFF))
