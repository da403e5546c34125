"""Programs that a search begins with: polynomials and quotients within a set of forms (`evo.approximation.forms`).

Owns which forms are worth it for a function. Knows nothing of programs' words. Coefficients are fitted by least squares;
searches tune them.
"""

import ast
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.approximation.formats import FLUSHED, Format
from evo.approximation.forms import BOUNDED, FORMS, KERNELS, OUTERS, PARTS, VARIABLES
from evo.language.parsed import closure, statements

Row = NDArray[np.float64]
LARGEST = 3e38
NUM_PLACES = 200  # at which forms are fitted and compared: among the points, over the interval,
FAR = 32.0  # and up to here
DEGREES = range(1, 13)
QUOTIENTS = ((1, 1), (2, 1), (1, 2), (2, 2), (3, 2), (3, 3), (4, 3), (4, 4))  # degrees of numerator and denominator
ABOUT_ONE, MOST_NOISE = 1.0 + 2.0**-48, 2.0**-10  # change of y's last digits; largest change of p that it may cause
NUM_DIVISIONS = 3  # by the last denominator, so that errors of quotients count as they are (Sanathanan and Koerner 1963)
LEAST_BITS = 3.0  # of a form's larger polynomials, or it is not worth more
TRIED = (4, 7)  # degrees, of either parity: large arguments take one sign
LEAST_WEIGHT = 2.0**-20  # of the largest: polynomials stay sane where errors do not count
MOST_OF_SLOTS = 3  # forms
BEHIND = 1.5  # bits by which a form may trail the best that is cheaper: tuning gains as much
SLOTS = dict.fromkeys(("exp2", "log2", "tanh", "sqrt"), 8) | {"sin": 9, "cos": 9, "abs": 1, "fma": 1}
SLOTS |= dict.fromkeys(("max", "min", "copysign", "select", "shl_b32", "and_b32", "sub_u32", "mul_hi_u32", "cvt_rn_f32_s32"), 2)
SLOTS |= dict.fromkeys(("f32_to_u32", "u32_to_f32", "u32_to_s32"), 0)
SLOTS_OF_DIVISION = 9
_statements = cache(statements)


@dataclass(frozen=True)
class Goal:
    """Goal of an approximation, at sorted points. scale: factor from errors of y to errors that count."""

    x: Row
    y: Row
    scale: Row
    form: Format

    @cached_property
    def least_bits(self) -> float:
        """Bits of forms that are worth keeping: 0 has fewer."""
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
    indices = np.unique(np.concatenate([np.linspace(0, len(goal.x) - 1, NUM_PLACES).astype(np.int64), *over_interval]))
    few = Goal(goal.x[indices], goal.y[indices], goal.scale[indices], goal.form)
    by_slots: dict[int, list[tuple[float, str]]] = {}
    with np.errstate(all="ignore"):
        for slots, bits, text in _fitted(name, few):
            by_slots.setdefault(slots, []).append((bits, text))
    chosen, best = [], -math.inf
    for _, candidates in sorted(by_slots.items()):
        first = sorted(candidates, reverse=True)[:MOST_OF_SLOTS]
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
    _statements(variable)(singles)  # where numbers are rounded to integers by their last bits
    arrays = {name: np.float64(value) for name, value in singles.items() if isinstance(value, np.ndarray)}
    names = {**_names(np.float64), **arrays, "a": np.abs(x), "c": np.copysign(1.0, x)}
    inverse = closure(undo)
    target, moved = (inverse(names | {"y": y}) * np.ones_like(x) for y in (goal.y, goal.y * ABOUT_ONE))
    step = 1e-6 * (1.0 + np.abs(target))
    sides = []
    for side in (-1.0, 1.0):
        values = {**names, "p": target + side * step}
        _statements(end)(values)
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
        _statements(end)(values)
        bits = goal.bits(np.asarray(values["y"], np.float32) * np.ones_like(singles["x"]))
        return slots, bits, f"{variable}; p = {p}; {end}"

    def polynomial(degree: int) -> tuple[int, float, str]:
        coefficients = _solved(powers[:, : degree + 1] * weight[:, None], target * weight)
        return formula(coefficients / size ** np.arange(degree + 1))

    if max(polynomial(degree)[1] for degree in TRIED) < goal.least_bits:
        return
    for degree in DEGREES:
        yield polynomial(degree)
    for above, below in QUOTIENTS:
        divisor = np.ones_like(target)
        for _ in range(NUM_DIVISIONS):
            columns = np.column_stack([powers[:, : above + 1], -target[:, None] * powers[:, 1 : below + 1]])
            coefficients = _solved(columns * (weight / divisor)[:, None], target * weight / divisor)
            divisor = 1.0 + powers[:, 1 : below + 1] @ coefficients[above + 1 :]
        over = coefficients[: above + 1] / size ** np.arange(above + 1)
        under = np.append(1.0, coefficients[above + 1 :] / size ** np.arange(1, below + 1))
        if np.isfinite(over).all() and np.isfinite(under).all():
            yield formula(over, under)


def _solved(columns: Row, right: Row) -> Row:
    """By least squares, of columns of any size."""
    sizes = np.abs(columns).max(axis=0)
    sizes[sizes == 0.0] = 1.0
    if not (np.isfinite(sizes).all() and np.isfinite(right).all()):
        return np.full(columns.shape[1], np.nan)
    solution: Row = np.linalg.lstsq(columns / sizes, right, rcond=None)[0] / sizes
    return solution


def horner(variable: str, coefficients: Row, names: dict[str, Any]) -> tuple[str, Any]:
    """A polynomial as a formula, and its values; coefficients from the constant on."""
    first, *rest = np.nan_to_num(np.clip(coefficients, -LARGEST, LARGEST)).astype(np.float32)[::-1].tolist()
    text, value = repr(first), np.float32(first)
    for coefficient in rest:
        text, value = f"fma({text}, {variable}, {coefficient!r})", names["fma"](value, names[variable], coefficient)
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


def _names(dtype: type) -> dict[str, Any]:
    def fma(a: Any, b: Any, c: Any) -> Any:
        return (np.asarray(a, np.float64) * b + c).astype(dtype)

    def exp2(a: Any) -> Any:
        power = np.exp2(a)
        return np.where(power < FLUSHED, 0.0, power).astype(dtype)

    def tanh(a: Any) -> Any:  # instructions give 11 digits of it
        exact = np.tanh(a)
        step = 2.0 ** (np.frexp(exact)[1] - 11.0)
        return (np.rint(exact / step) * step).astype(dtype) if dtype is np.float32 else exact

    def bits(a: Any) -> Any:
        return np.asarray(a, np.float32).view(np.uint32)

    def number(a: Any) -> Any:
        return np.asarray(a, np.uint32).view(np.float32)

    def signed(a: Any) -> Any:
        return np.asarray(a, np.uint32).view(np.int32)

    def select(condition: Any, a: Any, b: Any) -> Any:
        return np.where(condition, a, b).astype(dtype)

    names = ("log2", "arctanh", "sqrt", "sin", "cos", "abs", "copysign", "maximum", "where")
    defined = {"min": np.minimum, "max": np.maximum, "fma": fma, "exp2": exp2, "select": select, "tanh": tanh}
    defined |= {"f32_to_u32": bits, "u32_to_f32": number, "u32_to_s32": signed, "cvt_rn_f32_s32": dtype}
    defined |= {"shl_b32": lambda a, b: a << np.uint32(b), "and_b32": lambda a, b: a & np.uint32(b)}
    defined |= {"sub_u32": lambda a, b: np.asarray(a, np.uint32) - np.asarray(b, np.uint32)}
    defined |= {"mul_hi_u32": lambda a, b: (np.asarray(a, np.uint64) * np.uint64(b) >> np.uint64(32)).astype(np.uint32)}
    return {name: getattr(np, name) for name in names} | defined
