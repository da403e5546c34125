"""Programs that a search begins with: what people write, and polynomials and quotients within a set of forms.

Owns the forms and which of them are worth it for a function. Knows nothing of programs' words. Coefficients are fitted by least
squares; searches tune them.
"""

import ast
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from types import CodeType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.approximation.formats import FLUSHED, Format

Row = NDArray[np.float64]
LARGEST = 3e38
NUM_PLACES = 200  # at which forms are fitted and compared: among the points, over the interval,
FAR = 32.0  # and up to here
DEGREES = range(1, 13)
QUOTIENTS = ((1, 1), (2, 1), (1, 2), (2, 2), (3, 2), (3, 3), (4, 3))  # degrees of numerator and denominator
ABOUT_ONE, MOST_NOISE = 1.0 + 2.0**-48, 2.0**-10  # what a float64's last digits may change of what a form has to be
NUM_DIVISIONS = 3  # by the last denominator, so that errors of quotients count as they are (Sanathanan and Koerner 1963)
LEAST_BITS = 3.0  # of a form's larger polynomials, or it is not worth more
TRIED = (4, 7)  # degrees, of either parity: large arguments take one sign
LEAST_WEIGHT = 2.0**-20  # of the largest: polynomials stay sane where errors do not count
MOST_OF_SLOTS = 3  # forms
BEHIND = 1.5  # bits by which a form may trail the best that is cheaper: tuning gains as much
SLOTS = dict.fromkeys(("exp2", "log2", "tanh", "sqrt"), 8) | {"sin": 9, "cos": 9, "abs": 1, "fma": 1}
SLOTS |= dict.fromkeys(("max", "min", "copysign", "select"), 2)
SLOTS_OF_DIVISION = 9

# What polynomials are of, how G follows from one, and what the result is, with what undoes each: p of G, and G of y. c is the
# sign of x as a number, a its size. Some factors keep powers of two, which are flushed below 2^-126, above the results.
VARIABLES = ("v = x", "v = x*x", "v = abs(x)", "v = exp2(abs(x)*-1.442695)", "v = log2(fma(-x, x, 1.0))")
BOUNDED = "v = min(abs(x), 24.0)"  # so that powers stay finite
KERNELS = {
    "G = p": "G",
    "G = v*p": "G/v",
    "G = x*p": "G/x",
    "G = exp2(p)": "log2(G)",
    "G = exp2(v*p)": "log2(G)/v",
    "G = exp2(x*p)": "log2(G)/x",
    "G = v*exp2(p)": "log2(G/v)",
    "G = exp2(fma(-0.7213475*x, x, 8.0))*p": "G*exp2(0.7213475*x*x - 8)",
    "G = exp2(fma(-1.442695*x, x, 8.0))*p": "G*exp2(1.442695*x*x - 8)",
    "G = exp2(fma(-1.442695, abs(x), 8.0))*p": "G*exp2(1.442695*a - 8)",
    "G = tanh(x*p)": "arctanh(G)/x",
}
OUTERS = {
    "y = G": "y",
    "y = x*G": "y/x",
    "y = copysign(G, x)": "y*c",
    "y = fma(G, 0.0009765625, max(x, 0.0))": "(y - maximum(x, 0))*1024",
    "y = fma(G, -0.0009765625, max(x, 0.0))": "(maximum(x, 0) - y)*1024",
    "y = max(copysign(1.0, x), 0.0) - copysign(1.0, x)*G": "c*((c > 0) - y)",
    "y = fma(copysign(1.0, x), G, max(copysign(1.0, x), 0.0))": "c*(y - (c > 0))",
    "y = fma(copysign(0.0009765625, x), G, max(copysign(2.0, -x), 0.0))": "(y - 2*(c < 0))*c*1024",
    "y = copysign(1.0 - G, x)": "1 - y*c",
    "y = 1.0 - G": "1 - y",
    "y = 1/(G + 1.0)": "1/y - 1",
    "y = x/(G + 1.0)": "x/y - 1",
    "h = x*0.5; y = fma(h, G, h)": "2*y/x - 1",
    "y = fma(G, 0.5, 0.5)": "2*y - 1",
    "y = log2(G + 1.0)*0.6931472": "exp2(y*1.4426950408889634) - 1",
    "y = fma(log2(G + 1.0), 0.6931472, max(x, 0.0))": "exp2((y - maximum(x, 0))*1.4426950408889634) - 1",
    "y = log2(x)*G": "y/log2(x)",
    "y = sqrt(abs(x))*G": "y/sqrt(a)",
}
# Of functions by name: what people write; and PARTS: a range reduction, what follows from a polynomial of z, what undoes that.
FORMS: dict[str, tuple[str, ...]] = dict(  # noqa: C408 - names, which a test tells from those of tasks
    exp=("exp2(x*1.442695)", "t = x*1.442695; e = exp2(t); y = fma(e, fma(x, 1.925963e-8, fma(x, 1.442695, -t))*0.6931472, e)"),
    exp2=("exp2(x)",),
    log=("log2(x)*0.6931472",),
    log2=("log2(x)",),
    log1p=("log2(x + 1)*0.6931472",),
    expm1=("exp2(x*1.442695) - 1",),
    tanh=("tanh(x)", "1 - 2/(exp2(x*2.88539) + 1)"),
    tanh_grad=("t = tanh(x); y = 1 - t*t", "t = exp2(abs(x)*-2.88539); r = 1/(t + 1); y = 4*t*r*r"),
    sigmoid=(
        "tanh(x*0.5)*0.5 + 0.5",
        "1/(exp2(x*-1.442695) + 1)",
        "t = x*-1.442695; e = exp2(t); l = fma(x, -1.925963e-8, fma(x, -1.442695, -t)); y = 1/(fma(e*l, 0.6931472, e) + 1)",
    ),
    sigmoid_grad=("t = tanh(x*0.5); y = 0.25 - 0.25*t*t", "t = exp2(abs(x)*-1.442695); r = 1/(t + 1); y = t*r*r"),
    softplus=("log2(exp2(x*1.442695) + 1)*0.6931472", "fma(log2(exp2(abs(x)*-1.442695) + 1), 0.6931472, max(x, 0.0))"),
    silu=(
        "h = x*0.5; y = h*tanh(h) + h",
        "x/(exp2(x*-1.442695) + 1)",
        "a = abs(x); e = exp2(fma(a, -1.442695, 8.0)); y = fma(a*e*(1/fma(e, 0.00390625, 1.0)), -0.00390625, max(x, 0.0))",
        "t = x*-1.442695; e = exp2(t); l = fma(x, -1.925963e-8, fma(x, -1.442695, -t)); y = x/(fma(e*l, 0.6931472, e) + 1)",
    ),
    silu_grad=(
        "t = tanh(x*0.5)*0.5 + 0.5; y = x*(t - t*t) + t",
        "t = exp2(x*-1.442695); r = 1/(t + 1); y = r*fma(x*t, r, 1)",
        "t = exp2(x*-1.442695); r = 1/(t + 1); y = r*fma(x, 1 - r, 1)",
    ),
    gelu=("h = x*0.5; y = h*tanh(x*(0.0356774*x*x + 0.7978846)) + h", "x/(exp2(x*(-0.1029*x*x - 2.302208)) + 1)"),
    gelu_tanh=("h = x*0.5; y = h*tanh(x*(0.0356774*x*x + 0.7978846)) + h", "x/(exp2(x*(-0.1029432*x*x - 2.302208)) + 1)"),
    gelu_grad=("t = tanh(x*(0.0356774*x*x + 0.7978846))*0.5 + 0.5; y = x*exp2(x*x*-0.7213475)*0.3989423 + t",),
    erf=("tanh(x*(0.1029*x*x + 1.128379))",),
    erf_grad=(
        "exp2(x*x*-1.442695)*1.128379",
        (
            "s = x*x; t = s*-1.442695; u = fma(s, -1.442695, -t); v = fma(fma(x, x, -s), -1.442695, fma(s, -1.925963e-8, u));"
            "e = exp2(t)*1.128379; y = fma(e*v, 0.6931472, e)"
        ),
    ),
    erfc=("1 - tanh(x*(0.1029*x*x + 1.128379))",),
    rsqrt=("1/sqrt(x)", "r = 1/sqrt(x); h = x*-0.5; y = r*fma(h*r, r, 1.5)"),
    cbrt=(
        "copysign(exp2(log2(abs(x))*0.3333333), x)",
        "r = exp2(log2(abs(x))*-0.6666667); c = x*r; y = fma(fma(c*r*-0.3333333, c, 0.3333333), c, c)",
    ),
    sin=("sin(x)",),
    cos=("cos(x)",),
    tan=("sin(x)/cos(x)",),
    sinpi=("sin(x*3.1415927)",),
)
_ROUNDED = "k = fma(x, {}, 12582912.0) - 12582912.0; v = {}; z = {}"
_PARITY = "q = k*0.5; o = fma(q + 12582912.0 - 12582912.0, -2.0, k); d = o*o"
_PI = "fma(k, -1.5099580e-7, fma(k, -3.1415925, x))"
_LN2 = "fma(k, -1.4286068e-6, fma(k, -0.69314575, x))"
_INVERTED = "u = abs(x); v = min(u, 1/u); z = v*v; d = u - 1.0"
_SIN = ("y = fma(-2.0*d, p*v, p*v)", "y/((1 - 2*d)*v)")
PARTS: tuple[tuple[str, str, str, str], ...] = (
    ("exp", _ROUNDED.format("1.442695", _LN2, "v"), "y = exp2(k)*p", "y/exp2(k)"),
    ("exp2", "k = x + 12582912.0 - 12582912.0; v = x - k; z = v", "y = exp2(k)*p", "y/exp2(k)"),
    (
        "expm1",
        _ROUNDED.format("1.442695", _LN2, "v"),
        "e = exp2(k); y = fma(e, v*p, e - 1.0)",
        "(y - (exp2(k) - 1))/(exp2(k)*v)",
    ),
    ("log", "v = x - 1.0; z = v; b = log2(x)*0.6931472", "y = select(abs(v) < 0.25, v*p, b)", "y/v"),
    ("log2", "v = x - 1.0; z = v; b = log2(x)", "y = select(abs(v) < 0.25, v*p, b)", "y/v"),
    ("log1p", "v = x/(x + 2.0); z = v*v", "y = v*p", "y/v"),
    ("sin", f"{_ROUNDED.format('0.31830987', _PI, 'v*v')}; {_PARITY}", *_SIN),
    ("cos", f"{_ROUNDED.format('0.31830987', _PI, 'v*v')}; {_PARITY}", "y = fma(-2.0*d, p, p)", "y/(1 - 2*d)"),
    ("sinpi", f"k = x + 12582912.0 - 12582912.0; v = x - k; z = v*v; {_PARITY}", *_SIN),
    ("tan", _ROUNDED.format("0.31830987", _PI, "v*v"), "y = v*p", "y/v"),
    ("tanh", "z = x*x; b = 1 - 2/(exp2(x*2.88539) + 1)", "y = select(abs(x) < 0.6, x*p, b)", "y/x"),
    (
        "atan",
        _INVERTED,
        "y = copysign(fma(copysign(v, d), p, max(copysign(1.5707964, d), 0.0)), x)",
        "where(u < 1, -y*c, y*c - 1.5707963267948966)/v",
    ),
    (
        "atan",
        _INVERTED,
        "y = copysign(copysign(fma(v, p, 0.7853982), d) + 0.7853982, x)",
        "(where(u < 1, -1, 1)*(y*c - 0.7853981633974483) - 0.7853981633974483)/v",
    ),
)


@dataclass(frozen=True)
class Goal:
    """What is approximated, at sorted points. scale: what makes errors of y errors that count."""

    x: Row
    y: Row
    scale: Row
    form: Format

    @cached_property
    def least_bits(self) -> float:
        """Of forms that tell something: more than 0 has."""
        return self.bits(np.zeros(len(self.x), np.float32)) + LEAST_BITS

    def bits(self, results: NDArray[np.float32]) -> float:
        """-log2 of the largest error."""
        rounded = self.form.round(results)
        errors = np.abs(rounded - self.y) * self.scale
        errors[(rounded == 0.0) & (np.abs(self.y) < FLUSHED)] = 0.0
        worst = errors.max()
        return -math.log2(max(worst, 2.0**-60)) if math.isfinite(worst) else -math.inf


def formulas(name: str, goal: Goal) -> list[str]:
    """Formulas to begin with: those of a function of this name, and the forms that are best for their cost.

    The last are at most MOST_OF_SLOTS of a cost, none far behind a cheaper one.
    """
    ends = np.clip(goal.x[[0, -1]], -FAR, FAR)
    spread = [goal.x[[0, -1]], ends] if ends[0] < ends[1] else [goal.x[[0, -1]]]
    over_interval = [np.searchsorted(goal.x, np.linspace(low, high, NUM_PLACES)[1:-1]) for low, high in spread]
    places = np.unique(np.concatenate([np.linspace(0, len(goal.x) - 1, NUM_PLACES).astype(np.int64), *over_interval]))
    few = Goal(goal.x[places], goal.y[places], goal.scale[places], goal.form)
    found: dict[int, list[tuple[float, str]]] = {}
    with np.errstate(all="ignore"):
        for slots, bits, text in _fitted(name, few):
            found.setdefault(slots, []).append((bits, text))
    chosen, best = [], -math.inf
    for _, some in sorted(found.items()):
        first = sorted(some, reverse=True)[:MOST_OF_SLOTS]
        chosen += [text for bits, text in first if bits > best - BEHIND]
        best = max(best, first[0][0])
    return [*FORMS.get(name, ()), *chosen]


def _fitted(name: str, goal: Goal) -> Iterator[tuple[int, float, str]]:
    """Slots, bits and formulas."""
    for _, variable, end, undo in (part for part in PARTS if part[0] == name):
        yield from _of_form(variable, "z", end, undo, goal)
    variables = [*VARIABLES, BOUNDED] if np.abs(goal.x).max() > FAR else VARIABLES
    for variable, (kernel, undo_kernel), (outer, undo_outer) in product(variables, KERNELS.items(), OUTERS.items()):
        undo = undo_kernel.replace("G", f"({undo_outer})")
        yield from _of_form(variable, "v", f"{kernel}; {outer}", undo, goal)


def _of_form(variable: str, argument: str, end: str, undo: str, goal: Goal) -> Iterator[tuple[int, float, str]]:
    x = goal.x
    singles = {**_names(np.float32), "x": x.astype(np.float32)}
    exec(_code(variable), singles)  # where numbers are rounded to integers by their last bits
    arrays = {name: np.float64(value) for name, value in singles.items() if isinstance(value, np.ndarray)}
    names = {**_names(np.float64), **arrays, "a": np.abs(x), "c": np.copysign(1.0, x)}
    target, moved = (eval(_code(undo, "eval"), names | {"y": y}) * np.ones_like(x) for y in (goal.y, goal.y * ABOUT_ONE))
    step = 1e-6 * (1.0 + np.abs(target))
    sides = []
    for side in (-1.0, 1.0):
        values = {**names, "p": target + side * step}
        exec(_code(end), values)
        sides.append(values["y"])
    weight = np.abs(sides[1] - sides[0]) / (2.0 * step) * goal.scale
    v = np.asarray(names[argument], np.float64)
    is_used = (
        np.isfinite(v)
        & np.isfinite(target)
        & np.isfinite(weight)
        & (np.abs(moved - target) < MOST_NOISE * (1.0 + np.abs(target)))
    )
    if is_used.sum() < 2 * DEGREES[-1] or not weight[is_used].any():
        return
    weight = np.maximum(weight, LEAST_WEIGHT * weight[is_used].max())
    size = float(np.abs(v[is_used]).max())
    powers = (v[is_used, None] / size) ** np.arange(DEGREES[-1] + 1)
    target, weight = target[is_used], weight[is_used]

    slots_but_p = slots_of(f"{variable}; {end}")

    def formula(over: Row, under: Row | None = None) -> tuple[int, float, str]:
        p, value = horner(argument, over, singles)
        slots = slots_but_p + len(over) - 1
        if under is not None:
            divisor, by = horner(argument, under, singles)
            p, value, slots = f"({p})/({divisor})", value / by, slots + SLOTS_OF_DIVISION + len(under) - 1
        values = {**singles, "p": value}
        exec(_code(end), values)
        bits = goal.bits(np.asarray(values["y"], np.float32) * np.ones_like(singles["x"]))
        return slots, bits, f"{variable}; p = {p}; {end}"

    def polynomial(degree: int) -> tuple[int, float, str]:
        found = _solved(powers[:, : degree + 1] * weight[:, None], target * weight)
        return formula(found / size ** np.arange(degree + 1))

    if max(polynomial(degree)[1] for degree in TRIED) < goal.least_bits:
        return
    for degree in DEGREES:
        yield polynomial(degree)
    for above, below in QUOTIENTS:
        divisor = np.ones_like(target)
        for _ in range(NUM_DIVISIONS):
            columns = np.column_stack([powers[:, : above + 1], -target[:, None] * powers[:, 1 : below + 1]])
            found = _solved(columns * (weight / divisor)[:, None], target * weight / divisor)
            divisor = 1.0 + powers[:, 1 : below + 1] @ found[above + 1 :]
        over = found[: above + 1] / size ** np.arange(above + 1)
        under = np.append(1.0, found[above + 1 :] / size ** np.arange(1, below + 1))
        if np.isfinite(over).all() and np.isfinite(under).all():
            yield formula(over, under)


def _solved(columns: Row, right: Row) -> Row:
    """By least squares, of columns of any size."""
    sizes = np.abs(columns).max(axis=0)
    sizes[sizes == 0.0] = 1.0
    if not (np.isfinite(sizes).all() and np.isfinite(right).all()):
        return np.full(columns.shape[1], np.nan)
    found: Row = np.linalg.lstsq(columns / sizes, right, rcond=None)[0] / sizes
    return found


def horner(variable: str, coefficients: Row, names: dict[str, Any]) -> tuple[str, Any]:
    """A polynomial as a formula, and its values; coefficients from the constant on."""
    first, *others = np.nan_to_num(np.clip(coefficients, -LARGEST, LARGEST)).astype(np.float32)[::-1].tolist()
    text, value = repr(first), np.float32(first)
    for each in others:
        text, value = f"fma({text}, {variable}, {each!r})", names["fma"](value, names[variable], each)
    return text, value


@cache
def slots_of(text: str) -> int:
    """About the issue slots that a formula takes of a recent GPU, without constants."""
    total = 0
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            total += SLOTS[node.func.id]
        elif isinstance(node, ast.Compare):
            total += SLOTS["select"]
        elif isinstance(node, ast.BinOp):
            total += SLOTS_OF_DIVISION if isinstance(node.op, ast.Div) else 1
    return total


@cache
def _code(text: str, mode: str = "exec") -> CodeType:
    return compile(text, "form", mode)


def _names(dtype: type) -> dict[str, Any]:
    def fma(a: Any, b: Any, c: Any) -> Any:
        return (np.asarray(a, np.float64) * b + c).astype(dtype)

    def exp2(a: Any) -> Any:
        found = np.exp2(a)
        return np.where(found < FLUSHED, 0.0, found).astype(dtype)

    def select(condition: Any, a: Any, b: Any) -> Any:
        return np.where(condition, a, b).astype(dtype)

    names = ("log2", "tanh", "arctanh", "sqrt", "sin", "cos", "abs", "copysign", "maximum", "where")
    own = {"min": np.minimum, "max": np.maximum, "fma": fma, "exp2": exp2, "select": select}
    return {name: getattr(np, name) for name in names} | own
