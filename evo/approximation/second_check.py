"""Checks certificates of approximations with other code: reads the PTX of a header and computes what each certificate claims.

    python -m evo.approximation.second_check HEADER CERTIFICATE...

Imports nothing of evo: this file, NumPy and python-flint are enough. The exit code is 1 after a counterexample, and 2 where something
cannot be read. Slots, steps, wrong signs and the functions `..._x2` are not checked. Inputs are all of f16 and bf16; of f32 the stated
places, zeros, the ends, powers of two and where the function passes one, 8 neighbours of each, and 100,000 at random. Arb encloses the
function, with more digits until its binade is clear; else the smaller ulp counts. A zero is right where all of that is below 2^-126.

Results on any GPU are intervals. Exact instructions round correctly; .ftz flushes operands and results, and what is below 2^-126 but
rounds to it may be either. Products are exact in float64, sums rounded to odd there, so that rounding once more gives the nearest
number. Approximate instructions give all within the bounds of the PTX ISA 9.1, 9.7.3 and 9.7.4, read in the widest way. n ulp are from
the correctly rounded result, n + 1/2 from the exact one (the ISA says so of ex2 alone), and an ulp is 2^-23 of that: at least its own,
and that of a power of two it rounds to. lg2 has both its bounds, and a half's relative bound is at least the least subnormal number.
Of rcp and rsqrt of 0, div by |b| outside [2^-126, 2^126], and sin and cos outside [-2 pi, 2 pi], nothing is known.
"""

import ast
import json
import math
import operator
import re
import sys
from collections import namedtuple
from collections.abc import Callable
from functools import cache, lru_cache, partial, reduce
from pathlib import Path
from typing import Any

import numpy as np
from flint import arb, ctx

_ULP = {"rcp.approx.f32": 1.0, "div.approx.f32": 2.0, "div.full.f32": 2.0, "ex2.approx.f32": 2.0}
_RELATIVE = {"sqrt.approx.f32": -23.0, "rsqrt.approx.f32": -22.9, "tanh.approx.f32": -11.0}
_ABSOLUTE = {"sin.approx.f32": -20.5, "cos.approx.f32": -20.5, "tanh.approx.f16": -10.987, "tanh.approx.bf16": -8.0}
BOUNDS = {name: ((n + 0.5) * 2.0**-23, (n + 0.5) * 2.0**-149) for name, n in _ULP.items()}  # relative, absolute: the larger one
BOUNDS |= {name: (2.0**n, 0.0) for name, n in _RELATIVE.items()} | {name: (0.0, 2.0**n) for name, n in _ABSOLUTE.items()}
BOUNDS |= {
    "lg2.approx.f32": (2.0**-22, 2.0**-22),
    "ex2.approx.f16": (2.0**-9.9, 2.0**-24),
    "ex2.approx.bf16": (2.0**-7, 2.0**-133),
}
LIMITS = {"div.approx.f32": (2.0**-126, 2.0**126)} | dict.fromkeys(["sin.approx.f32", "cos.approx.f32"], (0.0, 2.0 * math.pi))
_TRUE = {"rcp": "1/x", "rsqrt": "1/sqrt(x)", "ex2": "exp(x*ln2)", "lg2": "log(x)/ln2"}
KINDS = ("ulp", "absolute", "relative")
_NUM_RANDOM, _SEED = 100_000, 42
_SAME = 1.0 - 1e-6
_PRECISIONS = (80, 320, 1280, 5120, 20480)  # bits of Arb
_NORMAL, _NEGLIGIBLE = 2.0**-126, 2.0**-300
_ROUNDING = 2.0**-50  # relative: more than a few roundings of float64
_OPERATORS = {"Add": "add", "Sub": "sub", "Mult": "mul", "Div": "truediv", "Pow": "pow", "USub": "neg", "UAdd": "pos"}
_FUNCTIONS = "sqrt exp log log1p expm1 sin cos tan asin acos atan sinh cosh tanh sech erf erfc erfinv"
_CALLS: dict[str, Callable[..., arb]] = {name: getattr(arb, name) for name in _FUNCTIONS.split()}
_CALLS |= {"sinpi": arb.sin_pi, "cospi": arb.cos_pi, "sign": arb.sgn, "fabs": abs, "j0": lambda x: x.bessel_j(arb(0))}
_CALLS |= {"cbrt": lambda x: x if x == 0 else x.root(3)}
_NAMES = {"x": lambda x: x, "pi": lambda _: arb.pi(), "e": lambda _: arb.const_e(), "ln2": lambda _: arb.const_log2()}
_INTEGERS: dict[str, Callable[..., Any]] = {"add": operator.add, "sub": operator.sub, "and": operator.and_, "xor": operator.xor}
_INTEGERS |= {"or": operator.or_, "mul.hi": lambda a, b: (a * b) >> 32, "shl": lambda a, b: a << b, "shr": lambda a, b: a >> b}
# Exponents of the least normal number and of the power of two above all; the type of NumPy that holds it, and how far left.
Format = namedtuple("Format", "digits least top kind shift")
FORMATS = {"f32": Format(24, -126, 128, "f4", 0), "f16": Format(11, -14, 16, "f2", 0), "bf16": Format(8, -126, 128, "f4", 16)}


class Refuted(Exception):
    """A claim does not hold."""


def _rounded(v: Any, form: Format, how: Callable[[Any], Any] = np.rint) -> Any:  # ties to even; with np.floor or np.ceil
    last = np.maximum(np.frexp(v)[1] - 1, form.least) - form.digits + 1
    near = np.ldexp(how(np.ldexp(v, -last)), last)
    return np.where(np.abs(near) >= 2.0**form.top, np.copysign(np.inf, near), near)


def _odd_sum(a: Any, b: Any) -> Any:  # rounded to odd
    total = np.asarray(a + b)
    rest = (a - (total - (part := total - a))) + (b - part)  # what is missing, exactly
    is_moved = (total.view(np.uint64) % 2 == 0) & np.isfinite(total) & (rest != 0.0)
    return np.where(is_moved, np.nextafter(total, np.copysign(np.inf, rest)), total)


def _flushed(v: Any) -> Any:
    return np.where(np.abs(v) < _NORMAL, np.copysign(0.0, v), v)


def _overflow(form: Format) -> float:
    return 2.0**form.top * (1.0 - 2.0 ** -(form.digits + 1))  # type: ignore[no-any-return]


def _of_bits(bits: Any, form: Format) -> Any:
    return (np.asarray(bits) << form.shift).astype(form.kind.replace("f", "u")).view(form.kind).astype(np.float64)


def _to_bits(v: Any, form: Format) -> Any:
    return np.asarray(v).astype(form.kind).view(form.kind.replace("f", "u")).astype(np.int64) >> form.shift


def _least(p: Any, q: Any) -> Any:  # -0 is below 0; NaN stays
    return np.where((p < q) | ((p == q) & np.signbit(p)) | np.isnan(p), p, q)


def _most(p: Any, q: Any) -> Any:
    return -_least(-p, -q)


@cache
def _parsed(formula: str) -> Callable[[arb], arb]:  # nothing of it runs as Python
    try:
        return _CALLS[formula] if formula in _CALLS else _built(ast.parse(formula, mode="eval").body)
    except (AttributeError, KeyError, RecursionError, SyntaxError) as error:
        raise ValueError(f"formula {formula[:60]!r}: not known: {error}") from error


def _built(tree: Any) -> Callable[[arb], arb]:
    if isinstance(tree, ast.Name):
        return _NAMES[tree.id]
    if isinstance(tree, ast.Constant):
        number = arb({int: tree.value, float: tree.value}[type(tree.value)])
        return lambda _: number
    is_call = isinstance(tree, ast.Call) and not tree.keywords
    call = _CALLS[tree.func.id] if is_call else getattr(operator, _OPERATORS[type(tree.op).__name__])
    parts = [_built(part) for part in [part for part in ast.iter_child_nodes(tree) if isinstance(part, ast.expr)][is_call:]]
    return lambda x: call(*[part(x) for part in parts])


def _ball(formula: str, x: float) -> arb:  # of 56 digits, or negligible; NaN: there is no value
    for ctx.prec in _PRECISIONS:
        y = _parsed(formula)(arb(x))
        if y.is_finite() and (y.rel_accuracy_bits() > 56 or abs(y) < _NEGLIGIBLE):
            return y
    return arb("nan")


@lru_cache(1 << 18)
def enclosure(formula: str, x: float) -> tuple[float, float, int, bool]:
    """Between which float64s a function lies at x, the exponent of its size, and whether that is below 2^-126."""
    y = _ball(formula, x)
    if y.is_nan():
        raise Refuted(f"at x = {x!r} the function has no value, or none that can be enclosed")
    low = high = float(y.mid())
    if abs(y) < _NEGLIGIBLE:
        return *((0.0, 0.0) if y == 0 else (-_NEGLIGIBLE, _NEGLIGIBLE)), -300, True
    if not arb(low) == y:  # != asks whether they are apart
        low, high = math.nextafter(float(y.lower()), -math.inf), math.nextafter(float(y.upper()), math.inf)
    least, most = sorted((abs(low), abs(high)))
    exponent = math.frexp(min(most, 2.0**1023))[1] - 1
    is_above, is_below = least >= 2.0**exponent, False
    for ctx.prec in () if is_above else _PRECISIONS:
        size = abs(_parsed(formula)(arb(x)))
        is_above, is_below = size >= 2.0**exponent, size < 2.0**exponent
        if is_above or is_below:
            break
    return low, high, exponent - (not is_above), exponent - is_below < -126


def _sizes(a: Any, b: Any) -> tuple[Any, Any]:
    return np.where(np.signbit(a) != np.signbit(b), 0.0, _least(np.abs(a), np.abs(b))), _most(np.abs(a), np.abs(b))


def _corners(apply: Callable[[Any, Any], Any], a: Any, b: Any, c: Any, d: Any) -> tuple[Any, Any]:
    found = [apply(p, q) for p in (a, b) for q in (c, d)]
    return reduce(_least, found), reduce(_most, found)


_EXACT: dict[str, Callable[..., Any]] = {  # of the ends of operands; results are rounded then
    "cvt": lambda a, b: (a, b),
    "neg": lambda a, b: (-b, -a),
    "abs": _sizes,
    "copysign": lambda a, b, c, d: (np.where(np.signbit(a), -(p := _sizes(c, d))[1], p[0]), np.where(np.signbit(b), -p[0], p[1])),
    "add": lambda a, b, c, d: (_odd_sum(a, c), _odd_sum(b, d)),
    "sub": lambda a, b, c, d: (_odd_sum(a, -d), _odd_sum(b, -c)),
    "min": lambda a, b, c, d: (_least(a, c), _least(b, d)),
    "max": lambda a, b, c, d: (_most(a, c), _most(b, d)),
    "mul": partial(_corners, operator.mul),
    "fma": lambda *ends: map(_odd_sum, _corners(operator.mul, *ends[:4]), ends[4:]),
}


def _approximate(base: str, form: Format, *ends: Any) -> tuple[Any, Any]:
    (a, b), (c, d), operation, reach = ends[:2], ends[-2:], base.split(".")[0], 0.0
    (relative, absolute), (smallest, largest) = BOUNDS[base], LIMITS.get(base, (0.0, np.inf))

    def true(v: Any) -> Any:
        points, places = np.unique(np.clip(v, -(2.0**1000), 2.0**1000), return_inverse=True)
        return np.array([float(_ball(_TRUE.get(operation, f"{operation}(x)"), x).mid()) for x in points.tolist()])[places]

    if operation in ("sin", "cos"):  # they move by no more than their operand
        low, high, reach = (middle := true((a + b) / 2.0)) - (b - a) / 2.0, middle + (b - a) / 2.0, (b - a) / 2.0
    else:  # monotonic
        low, high = _corners(operator.truediv, *ends) if operation == "div" else _corners(lambda p, _: p, true(a), true(b), a, b)
    low, high = (
        v + side * (np.maximum(relative * np.abs(v), absolute) + _ROUNDING * (np.abs(v) + reach))
        for side, v in ((-1.0, low), (1.0, high))
    )
    unknown = (
        (_sizes(c, d)[0] < smallest) | (_sizes(c, d)[1] > largest) | ((operation in ("rcp", "div")) & (c <= 0.0) & (d >= 0.0))
    )
    low = np.where(unknown | (low <= -_overflow(form)), -np.inf, _rounded(low, form, np.ceil))
    return low, np.where(unknown | (high >= _overflow(form)), np.inf, _rounded(high, form, np.floor))


def _run(steps: list[tuple[str, list[str]]], form: Format, x: Any, *, any_gpu: bool) -> tuple[Any, Any]:
    rows: dict[str, tuple[Any, Any, Any]] = {"%1": (form if steps[0][0] == "mov.b16" else FORMATS["f32"], x, x)}

    def read(operand: str, kind: Any, *, is_ftz: bool = False) -> tuple[Any, Any]:
        literal = re.fullmatch(r"0[fx]([0-9A-F]{1,8})U?", operand)
        had, low, high = (None, *[np.array([int(literal[1], 16)])] * 2) if literal else rows[operand]
        if kind is None:  # bits; they are unknown where the ends differ
            return (low, high) if had is None else (_to_bits(low, had), _to_bits(high, had))
        if had is None:
            low, high = (np.where(low == high, _of_bits(low, kind), end) for end in (-np.inf, np.inf))
        elif had is not kind:
            raise ValueError(f"{operand} has another type than its instruction")
        return (_flushed(low), _flushed(high)) if is_ftz else (low, high)

    for name, (target, *operands) in steps:
        base, is_ftz = re.sub(r"\.(ftz|rn)\b", "", name), ".ftz" in name
        operation, *middle, kind = base.split(".")
        if operation == "mov":
            rows[target] = rows.get(operands[0]) or (None, *read(operands[0], None))
            continue
        ends = [read(operand, FORMATS.get(kind), is_ftz=is_ftz) for operand in operands]
        unknown = reduce(
            operator.or_,
            [~np.isfinite(low) & ~np.isfinite(high) & (low != high) for low, high in ends[operation == "copysign" :]],
        )
        if kind not in FORMATS:
            unknown = reduce(operator.or_, [low != high for low, high in ends])
            numbers = [(low & 0xFFFFFFFF).astype("i4" if kind == "s32" else "i8").astype(np.int64) for low, _ in ends]
            ends = [(number.astype(np.float64),) * 2 for number in numbers]
            if operation != "cvt":
                bits = _INTEGERS[base.rpartition(".")[0]](*numbers) & 0xFFFFFFFF
                rows[target] = None, bits, np.where(unknown, ~bits, bits)
                continue
        result, flat = FORMATS[middle[0] if operation == "cvt" else kind], [end for both in ends for end in both]
        low, high = _approximate(base, result, *flat) if base in BOUNDS else _EXACT[operation](*flat)
        low, high = (
            near if not is_ftz else pick(_flushed(near), _rounded(_flushed(end), result)) if any_gpu else _flushed(near)
            for end, near, pick in ((low, _rounded(low, result), _least), (high, _rounded(high, result), _most))
        )
        unknown = np.isnan(low) | np.isnan(high) | (unknown & (operation not in ("min", "max")))
        rows[target] = result, np.where(unknown, -np.inf, low), np.where(unknown, np.inf, high)
    return tuple(np.broadcast_to(_rounded(end, form), x.shape) for end in read("%0", rows["%0"][0] or form))


def _errors(form: Format, function: list[Any], low: Any, high: Any, *, is_ftz: bool) -> Any:  # the largest of KINDS, `(3, n)`
    f_low, f_high, exponent, is_tiny = function
    size = np.where(f_low * f_high <= 0.0, 0.0, np.minimum(np.abs(f_low), np.abs(f_high)))
    is_tiny = is_tiny & (is_ftz | (low == high))  # else subnormal results may be there beside zero
    worst = np.zeros(len(low))
    for end in (low, high):
        is_over = np.isinf(end) & (end * f_low > 0.0) & (size >= _overflow(form))
        error = np.fmax(np.abs(end - f_low), np.abs(end - f_high))
        worst = np.maximum(worst, np.where(is_over | ((end == 0.0) & is_tiny), 0.0, error))
    ulps = np.ldexp(worst, form.digits - 1 - np.maximum(exponent, form.least))
    return np.array([ulps, worst, worst / np.maximum(size, 2.0**form.least)])


def _inputs(form: Format, formula: str, first: int, last: int, places: list[int]) -> Any:
    def values(keys: Any) -> Any:  # integers in the order of numbers, 1 apart for neighbours
        return np.copysign(_of_bits(np.abs(keys), form), keys)

    def binades(keys: Any) -> Any:
        return np.array([max(enclosure(formula, x)[2], -127) for x in values(keys).tolist()])

    keys = np.arange(first, last + 1) if form.digits < 24 else np.random.default_rng(_SEED).integers(first, last + 1, _NUM_RANDOM)
    powers = np.concatenate([1 << np.arange(23), np.arange(1, 255) << 23])
    near = np.concatenate([powers, -powers, [first, last, 0, *places]])
    for _ in range(3 if form.digits == 24 else 0):
        keys = np.union1d(keys, near[:, None] + np.arange(-8, 9))
        keys = keys[(first <= keys) & (keys <= last)]
        found = binades(keys)
        at = np.flatnonzero(np.diff(found))
        near, high = keys[at], keys[at + 1]
        while (high - near > 1).any():
            is_same = binades(middle := (near + high) // 2) == found[at]
            near, high = np.where(is_same, middle, near), np.where(is_same, high, middle)
    return np.append(values(keys), [-0.0] * (first <= 0 <= last))


def check(header: str, certificate: dict[str, Any]) -> str:
    """A line that says what holds. Raises Refuted; or ValueError, LookupError or TypeError: something is not understood."""
    form, formula, claims = FORMATS[certificate["format"]], certificate["formula"], certificate["any_gpu"]
    name = re.sub(r"\W+", "_", certificate["function"]).strip("_") or "f"
    kind = ("native_" if certificate.get("arithmetic") == "native" else "") + certificate["format"]
    name = f"{'f' * name[0].isdigit()}{name}_{kind}_{float(certificate['slots']):g}".replace(".", "_")
    found = re.search(rf"((?:^//[^\n]*\n)*)^__device__ [\w ]+ {name}\([\w ]+ x\) {{\n(.*?)^}}", header, re.MULTILINE | re.DOTALL)
    if not found:
        raise ValueError(f"the header has no function {name}")
    text = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', re.split(r'\n\s*: "=', found[2])[0])).replace("%%", "%")
    lines = [line.split(None, 1) for line in re.split(r"[;{}]|\\n|\\t", text) if line.strip() and ".reg " not in line]
    steps = [(word, operands.replace(" ", "").split(",")) for word, operands in lines]
    stated = {kind: float(number) for number, kind in re.findall(r"^// error at most (\S+) (\w+)", found[1], re.MULTILINE)}
    for kind, claim in (claims or certificate["cpu"]).items():
        if not float(claim["bound"]) <= stated.get(kind, -1.0) <= float(claim["bound"]) * (1.0 + 1e-5):
            raise Refuted(f"{name}: the comment of the header does not give the bound {claim['bound']} {kind}, rounded up")
    if not claims:
        return f"{name}: no bound on any GPU is claimed"
    is_exact = not any(step.replace(".ftz", "") in BOUNDS for step, _ in steps)
    figures = {"any_gpu": claims} | ({"cpu": certificate["cpu"]} if is_exact else {})
    points = np.array(
        [*certificate["interval"], *[claim["at"] for figure in figures.values() for claim in figure.values()]], float
    )
    first, last, *places = (_to_bits(np.abs(points), form) * np.where(points < 0.0, -1, 1)).tolist()
    if certificate["num_inputs"] != last - first + 1 or (_of_bits(np.abs([first, last]), form) != np.abs(points[:2])).any():
        raise Refuted(f"{name}: num_inputs or the ends of interval are not those of {certificate['format']}")
    x = _inputs(form, formula, first, last, places)
    function = [np.array(column) for column in zip(*[enclosure(formula, each) for each in x.tolist()], strict=True)]
    is_ftz = [".ftz" in step for step, _ in steps if not step.startswith("mov.")][-1:] == [True]
    is_near = np.abs(function[0]) * (1.0 - 2.0 ** -(form.digits + 11)) < 2.0 ** function[2]  # just above a power of two
    held = ""
    for figure, claims_of in figures.items():
        parts = [_run(steps, form, part, any_gpu=figure == "any_gpu") for part in np.array_split(x, len(x) // 4096 + 1)]
        low, high = (np.concatenate(ends) for ends in zip(*parts, strict=True))
        if form.digits < 24 and certificate["num_nans"] > (num_unknown := int(((low == -np.inf) & (high == np.inf)).sum())):
            raise Refuted(f"{name}: num_nans is {certificate['num_nans']}, but at most {num_unknown} results are NaN")
        for kind, error in zip(KINDS, _errors(form, function, low, high, is_ftz=is_ftz), strict=True):
            worst, bound, place = (float(claims_of[kind][key]) for key in ("worst", "bound", "at"))
            most, at = error[i := int(error.argmax())], f"at x = {float(x[i])!r}"
            if not max(worst, most * (1.0 - _ROUNDING), 0.0 if is_exact else float(certificate["cpu"][kind]["worst"])) <= bound:
                between = f"results in [{low[i]!s}, {high[i]!s}], the function in [{function[0][i]!s}, {function[1][i]!s}]"
                raise Refuted(f"{name}: {figure} {at}: {between}: error {most!s} {kind}, claimed {bound!r}")
            held = held or f"largest any-GPU error {most:.6g} ulp {at}, bound {bound!r}: holds"
            is_there = (x == place) & (np.signbit(x) == np.signbit(place))
            there = (error * np.where(is_near & (kind == "ulp"), 2.0, 1.0))[is_there].max(initial=0.0)
            if there < _SAME * worst:
                note = f"{figure} claims {worst!r} {kind} at x = {place!r}, where it is {there!s} at most"
                if there < _SAME * (most - (bound - worst)):
                    raise Refuted(f"{name}: {note}, and {most!s} {at}")
                held += f"; {note}"
    return f"{name}: {len(x):,} inputs checked, {held}"


def main(arguments: list[str]) -> int:
    """Checks files, a line for each. 0: all hold; 1: one does not; 2: one cannot be read."""
    worst = 0
    for path in arguments[1:]:
        try:
            with np.errstate(all="ignore"):
                print(check(Path(arguments[0]).read_text(), json.loads(Path(path).read_text())), flush=True)
        except Refuted as error:
            print(f"{path}: REFUTED: {error}", flush=True)
            worst = max(worst, 1)
        except (OSError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as error:
            print(f"{path}: cannot be checked: {type(error).__name__}: {error}", file=sys.stderr)
            worst = 2
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) if len(sys.argv) > 2 else print((__doc__ or "").split("\n")[2].strip(), file=sys.stderr) or 2)
