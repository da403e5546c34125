"""Programs that a search begins with: minimax polynomials by Remez' exchange, and forms that people write, as formulas.

Owns the exchange and the forms. Knows nothing of programs' words.
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Row = NDArray[np.float64]
NUM_EXCHANGES = 60
SETTLED = 1e-6  # by which the largest error may exceed the levelled one
NEAR = 2.0**-12  # of the interval's largest number, below which points tell polynomials nothing
DEGREES = range(1, 11)

_ATAN = (  # -atan(m)/m of s = m*m
    "fma(s, fma(s, fma(s, fma(s, fma(s, fma(s, fma(s, 0.004054576, -0.02186299), 0.05591237), -0.096422), 0.1390863), "
    "-0.1994657), 0.3332986), -0.9999993)"
)
FORMS: dict[str, tuple[str, ...]] = dict(  # noqa: C408 - names, which a test tells from those of tasks
    exp=("exp2(x*1.442695)", "z = x*1.442695; e = exp2(z); y = fma(e, 0.6931472*fma(x, 1.925963e-8, fma(x, 1.442695, -z)), e)"),
    exp2=("exp2(x)",),
    log=("log2(x)*0.6931472",),
    log2=("log2(x)",),
    log1p=("log2(x + 1)*0.6931472",),
    expm1=(
        "exp2(x*1.442695) - 1",
        (
            "k = fma(x, 1.442695, 12582912.0) - 12582912.0; f = fma(k, 1.904654e-9, fma(k, -0.6931472, x)); s = exp2(k);"
            "p = fma(f, fma(f, fma(f, fma(f, fma(f, 0.0013888873, 0.0083690946), 0.041667137), 0.16666506), 0.49999998), 1.0);"
            "y = fma(s, f*p, s - 1)"
        ),
    ),
    tanh=("tanh(x)", "1 - 2/(exp2(x*2.88539) + 1)"),
    tanh_grad=("t = tanh(x); y = 1 - t*t",),
    sigmoid=("tanh(x*0.5)*0.5 + 0.5", "1/(exp2(x*-1.442695) + 1)"),
    sigmoid_grad=("t = tanh(x*0.5); y = 0.25 - 0.25*t*t",),
    softplus=("log2(exp2(x*1.442695) + 1)*0.6931472", "fma(log2(exp2(abs(x)*-1.442695) + 1), 0.6931472, max(x, 0.0))"),
    silu=(
        "h = x*0.5; y = h*tanh(h) + h",
        "x/(exp2(x*-1.442695) + 1)",
        "a = abs(x); e = exp2(fma(a, -1.442695, 8.0)); y = fma(a*e*(1/fma(e, 0.00390625, 1.0)), -0.00390625, max(x, 0.0))",
    ),
    silu_grad=("t = tanh(x*0.5)*0.5 + 0.5; y = x*(t - t*t) + t",),
    gelu=("h = x*0.5; y = h*tanh(x*(0.0356774*x*x + 0.7978846)) + h", "x/(exp2(x*(-0.1029*x*x - 2.302208)) + 1)"),
    gelu_tanh=("h = x*0.5; y = h*tanh(x*(0.0356774*x*x + 0.7978846)) + h", "x/(exp2(x*(-0.1029432*x*x - 2.302208)) + 1)"),
    gelu_grad=("t = tanh(x*(0.0356774*x*x + 0.7978846))*0.5 + 0.5; y = x*exp2(x*x*-0.7213475)*0.3989423 + t",),
    erf=("tanh(x*(0.1029*x*x + 1.128379))",),
    erf_grad=("exp2(x*x*-1.442695)*1.128379",),
    erfc=("1 - tanh(x*(0.1029*x*x + 1.128379))",),
    rsqrt=("1/sqrt(x)",),
    cbrt=(
        "copysign(exp2(log2(abs(x))*0.3333333), x)",
        "r = exp2(log2(abs(x))*-0.6666667); c = x*r; y = fma(fma(c*r*-0.3333333, c, 0.3333333), c, c)",
    ),
    sin=("sin(x)",),
    cos=("cos(x)",),
    tan=("sin(x)/cos(x)", "s = x*x; y = x*fma(s, fma(s, 1.0, -105.0), 945.0)/fma(s, fma(s, 15.0, -420.0), 945.0)"),
    atan=(
        f"a = abs(x); m = min(a, 1/a); s = m*m; y = copysign(copysign(fma(m, {_ATAN}, 0.7853982), a - 1) + 0.7853982, x)",
        (
            f"a = abs(x); m = min(a, 1/a); s = m*m; c = a - 1; z = max(copysign(1.5707964, c), 0.0);"
            f"y = copysign(fma(copysign(m, c), {_ATAN}, z), x)"
        ),
    ),
    sinpi=("sin(x*3.1415927)",),
)


def minimax(basis: Row, target: Row, weight: Row) -> Row:
    """The coefficients whose combination of basis functions, `(num_points, num_functions)`, has the least largest error times
    weight on sorted points. The functions must be a Chebyshev system there, such as powers.
    """
    num_points, count = basis.shape
    chosen = np.round((1.0 - np.cos(np.pi * np.arange(count + 1) / count)) / 2.0 * (num_points - 1)).astype(np.int64)
    signs = np.where(np.arange(count + 1) % 2, -1.0, 1.0)
    best, least = np.zeros(count), np.inf
    for _ in range(NUM_EXCHANGES):
        system = np.column_stack([basis[chosen], signs / weight[chosen]])
        solved = np.linalg.lstsq(system, target[chosen], rcond=None)[0]
        error = (target - basis @ solved[:count]) * weight
        largest = float(np.abs(error).max())
        if largest < least:
            best, least = solved[:count], largest
        starts = np.concatenate([[0], np.flatnonzero(np.diff(np.signbit(error))) + 1, [num_points]])
        peaks = np.array([a + int(np.argmax(np.abs(error[a:b]))) for a, b in pairwise(starts)])
        while len(peaks) > count + 1:
            peaks = peaks[1:] if abs(error[peaks[0]]) < abs(error[peaks[-1]]) else peaks[:-1]
        if len(peaks) <= count or largest <= abs(solved[count]) * (1.0 + SETTLED):
            break
        chosen = peaks
    return best


def horner(variable: str, coefficients: Row) -> str:
    """A polynomial as a formula; coefficients from the constant on."""
    text = repr(float(np.float32(coefficients[-1])))
    for each in coefficients[-2::-1]:
        text = f"fma({text}, {variable}, {float(np.float32(each))!r})"
    return text


def formulas(name: str, x: Row, y: Row, weight: Row) -> Iterator[str]:
    """Formulas to begin with, for a function with these values at sorted points.

    Args:
        name: of the function, for the forms that people write.
    """
    yield from FORMS.get(name, ())
    scale = float(np.abs(x).max())
    is_far = np.abs(x) > scale * NEAR
    x, y, weight = x[is_far], y[is_far], weight[is_far]
    is_symmetric = bool(np.allclose(x, -x[::-1], rtol=1e-3, atol=1e-3 * scale))
    size = float(np.abs(y).max())
    is_odd, is_even = (is_symmetric and bool(np.allclose(y, s * y[::-1], rtol=1e-3, atol=1e-3 * size)) for s in (-1, 1))
    for degree in DEGREES:
        if is_odd or is_even:
            half = x >= 0.0
            powers = _powers(x[half] ** 2, degree, scale**2) * (x[half, None] if is_odd else 1.0)
            found = minimax(powers, y[half], weight[half]) / scale ** (2.0 * np.arange(degree + 1))
            text = f"s = x*x; p = {horner('s', found)}; y = p"
            yield text + ("*x" if is_odd else "")
        else:
            with np.errstate(over="ignore"):  # an interval may reach to the largest numbers
                found = minimax(_powers(x, degree, scale), y, weight) / scale ** np.arange(degree + 1)
            yield horner("x", found)


def _powers(variable: Row, degree: int, scale: float) -> Row:
    return (variable[:, None] / scale) ** np.arange(degree + 1)
