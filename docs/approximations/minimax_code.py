"""Minimax programs as yardsticks: the usual range reduction, then a polynomial by Sollya's fpminimax, or a rational function.

Owns the reductions, as CUDA, and the fits. Needs Sollya (Debian's package). A reduction has one polynomial, {P:t}, of a variable
t; or the two of a quotient, {P:t} and {Q:t}.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass

import numpy as np
from scipy import special

NUM_POINTS = 4000
ROUNDS = 60  # of a rational fit


@dataclass(frozen=True)
class Reduction:
    """body: CUDA that sets y. core: what the polynomial is of, in Sollya's words, on `low` to `high`; first, step: its powers.
    mode: of the error. terms: how many are tried.
    """

    body: str
    core: str
    low: float
    high: float
    first: int = 0
    step: int = 1
    mode: str = "relative"
    terms: range = range(2, 9)


@dataclass(frozen=True)
class Quotient:
    """Reduction with a quotient of polynomials of s = x^2 for `core` of x, 0 to `high`; weight: of errors."""

    body: str
    core: object
    weight: object
    high: float
    terms: tuple[tuple[int, int], ...] = ((2, 2), (2, 3), (3, 3), (3, 4), (4, 4), (5, 4), (5, 5), (6, 5), (6, 6), (7, 6), (7, 7))


_EXPONENT = "float n = fmaf(x, 1.44269502f, 12582912.0f), k = n - 12582912.0f;"
_TWO_STEPS = f"{_EXPONENT} float r = fmaf(k, 1.90465421e-9f, fmaf(k, -0.693147182f, x));"
_SCALED = "y = __int_as_float(__float_as_int({P:r}) + (__float_as_int(n) << 23));"
_MANTISSA = "int i = __float_as_int(x), e = (i - 0x3f3504f3) & 0xff800000; float f = __int_as_float(i - e) - 1.0f;"
_LOG1P = (
    "int e = (__float_as_int(1.0f + x) - 0x3f400000) & 0xff800000; float f = __int_as_float(__float_as_int(x) - e) "
    "+ fmaf(0.25f, __int_as_float(0x40800000 - e), -1.0f); y = fmaf((float)e, 8.26295832e-8f, fmaf(f * f, {P:f}, f));"
)
_HALF_LN2 = 0.3467
_PI = 3.1415927
_CLAMPED = "x = fminf(fmaxf(x, -{0}f), {0}f);"

REDUCTIONS: dict[str, tuple[Reduction | Quotient, ...]] = {
    "exp": (
        Reduction(f"{_EXPONENT} float r = fmaf(x, 1.44269502f, -k); {_SCALED}", "2^x", -0.5, 0.5),
        Reduction(f"{_TWO_STEPS} {_SCALED}", "exp(x)", -_HALF_LN2, _HALF_LN2),
    ),
    "exp2": (Reduction(f"float n = x + 12582912.0f, r = x - (n - 12582912.0f); {_SCALED}", "2^x", -0.5, 0.5),),
    "log": (
        Reduction(
            f"{_MANTISSA} y = fmaf((float)e, 8.26295832e-8f, f * {{P:f}});", "log(1+x)/x", -0.2929, 0.4143, terms=range(2, 11)
        ),
    ),
    "log1p": (Reduction(_LOG1P, "(log(1+x)-x)/x^2", -0.2501, 0.5001, terms=range(3, 11)),),
    "expm1": (
        Reduction(
            f"{_TWO_STEPS} float s = __int_as_float((__float_as_int(n) << 23) + 0x3f800000); y = fmaf(s, r * {{P:r}}, s - 1.0f);",
            "(exp(x)-1)/x",
            -_HALF_LN2,
            _HALF_LN2,
        ),
    ),
    "sin": (Reduction("float s = x * x; y = x * {P:s};", "sin(x)", 1e-6, _PI, 1, 2, "absolute"),),
    "cos": (Reduction("float s = x * x; y = {P:s};", "cos(x)", 1e-6, _PI, 0, 2, "absolute"),),
    "tan": (
        Reduction(
            "float n = fmaf(x, 0.636619772f, 12582912.0f), k = n - 12582912.0f;"
            "float r = fmaf(k, 4.37113883e-8f, fmaf(k, -1.57079637f, x)), s = r * r, t = fmaf(r * s, {P:s}, r);"
            "y = (__float_as_int(n) & 1) == 0 ? t : -1.0f / t;",
            "(tan(x)-x)/x^3",
            1e-3,
            0.7854,
            0,
            2,
        ),
        Quotient("float s = x * x; y = x * {P:s} / {Q:s};", lambda x: np.tan(x) / x, lambda x: x / np.tan(x), 1.5),
    ),
    "tanh": (
        Reduction(f"{_CLAMPED.format('4.0')} float s = x * x; y = x * {{P:s}};", "tanh(x)", 1e-6, 4.0, 1, 2, "absolute"),
        Quotient(
            f"{_CLAMPED.format('9.0')} float s = x * x; y = x * {{P:s}} / {{Q:s}};", lambda x: np.tanh(x) / x, lambda x: x, 9.0
        ),
    ),
    "sigmoid": (
        Reduction(
            f"{_CLAMPED.format('8.0')} float s = x * x; y = fmaf(x, {{P:s}}, 0.5f);", "tanh(x/2)/2", 1e-6, 8.0, 1, 2, "absolute"
        ),
        Quotient(
            f"{_CLAMPED.format('16.0')} float s = x * x; y = x * {{P:s}} / {{Q:s}} + 0.5f;",
            lambda x: (special.expit(x) - 0.5) / x,
            lambda x: x,
            16.0,
        ),
    ),
    "softplus": (
        Reduction("float s = x * x; y = fmaf(x, 0.5f, {P:s});", "log(2*cosh(x/2))", 1e-6, 8.0, 0, 2, "absolute", range(2, 12)),
        Quotient("float s = x * x; y = fmaf(x, 0.5f, {P:s} / {Q:s});", lambda x: np.log(2 * np.cosh(x / 2)), lambda x: x**0, 8.0),
    ),
    "gelu": (
        Reduction(
            "float a = fminf(fabsf(x), 4.0f), s = a * a; y = x * fmaf(copysignf(a, x), {P:s}, 0.5f);",
            "erf(x/sqrt(2))/2",
            1e-6,
            4.0,
            1,
            2,
            "absolute",
            range(2, 12),
        ),
        Quotient(
            "float c = fminf(fmaxf(x, -5.5f), 5.5f), s = c * c; y = x * (c * {P:s} / {Q:s} + 0.5f);",
            lambda x: special.erf(x / np.sqrt(2)) / 2 / x,
            lambda x: x * x,
            5.5,
        ),
    ),
    "silu": (
        Reduction("float s = x * x; y = x * fmaf(x, {P:s}, 0.5f);", "tanh(x/2)/2", 1e-6, 8.0, 1, 2, "absolute", range(2, 12)),
        Quotient(
            "float s = x * x; y = x * (x * {P:s} / {Q:s} + 0.5f);",
            lambda x: np.tanh(x / 2) / 2 / x,
            lambda x: x * x,
            8.0,
        ),
    ),
    "erf": (
        Reduction(
            f"{_CLAMPED.format('4.0')} float s = x * x; y = x * {{P:s}};", "erf(x)", 1e-6, 4.0, 1, 2, "absolute", range(2, 14)
        ),
        Quotient(
            f"{_CLAMPED.format('4.0')} float s = x * x; y = x * {{P:s}} / {{Q:s}};",
            lambda x: special.erf(x) / x,
            lambda x: x,
            4.0,
        ),
    ),
    "cbrt": (
        Reduction(
            "float z = __int_as_float(0x54a2fa8c - (int)__umulhi(__float_as_int(x), 0x55555556u));"
            "float b = x * (z * z), c = b * z - 1.0f; y = b * {P:c};",
            "(1+x)^(-2/3)",
            -0.11,
            0.11,
        ),
    ),
    "atan": (
        Reduction(
            "float a = fabsf(x); bool far = a > 1.0f; float m = far ? 1.0f / a : a, s = m * m, p = m * {P:s};"
            "y = copysignf(far ? 1.57079637f - p : p, x);",
            "atan(x)",
            1e-6,
            1.0,
            1,
            2,
            "absolute",
            range(2, 11),
        ),
    ),
}


def horner(variable: str, coefficients: np.ndarray) -> str:
    """A polynomial as CUDA, coefficients from the constant on."""
    text = _number(coefficients[-1])
    for each in coefficients[-2::-1]:
        text = f"fmaf({text}, {variable}, {_number(each)})"
    return f"({text})"


def _number(value: float) -> str:
    return f"{np.float32(value):.9e}f"


def by_sollya(reduction: Reduction, terms: int) -> np.ndarray:
    """The coefficients of fpminimax, floats of 24 digits. Raises ValueError if it finds none."""
    powers = [reduction.first + i * reduction.step for i in range(terms)]
    text = (
        f"prec = 200; display = decimal; f = {reduction.core};\n"
        f"p = fpminimax(f, {_list(powers)}, [|SG...|], [{reduction.low}; {reduction.high}], {reduction.mode});\n"
        + "".join(f"print(coeff(p, {power}));\n" for power in powers)
        + "quit;\n"
    )
    try:
        told = subprocess.run(
            ["sollya", "--warnonstderr"], input=text, capture_output=True, text=True, timeout=60, check=True
        ).stdout
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        raise ValueError(str(error)) from error
    numbers = re.findall(r"^-?[0-9][0-9.]*(?:e[-+]?[0-9]+)?$", told.replace(" ", ""), re.MULTILINE)
    if len(numbers) != terms:
        raise ValueError(told)
    return np.array([float(number) for number in numbers])


def _list(powers: list[int]) -> str:
    return f"[|{', '.join(map(str, powers))}|]"


def by_quotient(quotient: Quotient, above: int, below: int) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients of both polynomials; the denominator's first is 1. Least squares, again and again: each time by the last
    denominator, with more weight where the error was large (Lawson's).
    """
    x = quotient.high * (1.0 - np.cos(np.pi * (np.arange(NUM_POINTS) + 0.5) / NUM_POINTS)) / 2.0
    s, y, weight = (x / quotient.high) ** 2, quotient.core(x), quotient.weight(x)
    last, lawson, best, least = np.ones_like(x), np.ones_like(x), None, np.inf
    for _ in range(ROUNDS):
        scale = np.sqrt(lawson) * weight / last
        rows = np.column_stack([s[:, None] ** np.arange(above), -y[:, None] * s[:, None] ** np.arange(1, below)])
        found = np.linalg.lstsq(rows * scale[:, None], y * scale, rcond=None)[0]
        p, q = found[:above], np.append(1.0, found[above:])
        last = np.abs(np.polynomial.polynomial.polyval(s, q)) + 1e-12
        error = np.abs(np.polynomial.polynomial.polyval(s, p) / np.polynomial.polynomial.polyval(s, q) - y) * weight
        if error.max() < least:
            least, best = error.max(), (p, q)
        lawson = lawson * (error / error.max() + 1e-3)
        lawson /= lawson.max()
    assert best is not None
    scales = quotient.high ** (2.0 * np.arange(max(above, below)))
    return best[0] / scales[:above], best[1] / scales[:below]


def bodies(function: str) -> list[tuple[str, str]]:
    """Programs for a function: what each is, and its CUDA."""
    found = []
    for reduction in REDUCTIONS[function]:
        if isinstance(reduction, Quotient):
            for above, below in reduction.terms:
                p, q = by_quotient(reduction, above, below)
                found.append((f"quotient of {above} and {below} terms", _filled(reduction.body, P=p, Q=q)))
        else:
            for terms in reduction.terms:
                try:
                    found.append((f"polynomial of {terms} terms", _filled(reduction.body, P=by_sollya(reduction, terms))))
                except ValueError:
                    continue
    return found


def _filled(body: str, **polynomials: np.ndarray) -> str:
    return re.sub(r"\{([PQ]):(\w+)\}", lambda match: horner(match[2], polynomials[match[1]]), body)
