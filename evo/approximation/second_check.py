"""Checks certificates of approximations with other code: reads the PTX of a header and computes what each certificate claims.

    python -m evo.approximation.second_check HEADER CERTIFICATE...

Imports nothing of evo: this file, NumPy and python-flint are enough. The exit code is 1, after a counterexample, if a claim does
not hold, and 2 if something cannot be read. Slots, steps, wrong signs and the functions `..._x2` are not checked.

Inputs: each one of f16 and bf16. Of f32 the stated places, zeros, the ends, powers of two and inputs at which the function passes
one, 8 neighbours on both sides of each, and 100,000 at random. Function: Arb encloses it, with more digits until its binade is
clear; where that stays open, the smaller ulp counts. A zero is right (FTZ) only where the enclosure is below 2^-126 in size.

Results on any GPU: each value is an interval. Exact instructions round correctly; with .ftz they flush operands and results, and
what is below 2^-126 but rounds to it may be either. Products are exact in float64, sums rounded to odd there, so that a second
rounding gives the nearest number. Approximate instructions give any number within the bounds of the PTX ISA 9.1, sections 9.7.3
and 9.7.4, in the widest reading: an error of n ulp is one from the correctly rounded result, so n + 1/2 from the exact one (the
ISA says so of ex2 alone), in ulps of 2^-23 of the exact value, no less than that of its binade or of the power of two to which it
rounds. lg2 may use both of its bounds. A half's relative bound is no less than the least subnormal number. Nothing is known of rcp
and rsqrt of 0, of div by |b| outside [2^-126, 2^126], and of sin and cos outside [-2 pi, 2 pi].
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
_APPROXIMATED = {"rcp": "1/x", "rsqrt": "1/sqrt(x)", "ex2": "exp(x*ln2)", "lg2": "log(x)/ln2"}
KINDS = ("ulp", "absolute", "relative")
_NUM_RANDOM, _SEED, _NEIGHBOURS = 100_000, 42, np.arange(-8, 9)
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
_INTEGERS: dict[str, Callable[..., Any]] = {"add": operator.add, "sub": operator.sub, "and": operator.and_, "or": operator.or_}
_INTEGERS |= {"xor": operator.xor, "not": operator.invert, "mul.lo": operator.mul, "mul.hi": lambda a, b: (a * b) >> 32}
_INTEGERS |= {"shl": lambda a, b: a << np.clip(b, 0, 32), "shr": lambda a, b: a >> np.clip(b, 0, 32)}
# Exponents of the least normal number and of the power of two above all; the type of NumPy that holds it, and how far left.
Format = namedtuple("Format", "digits least top kind shift")
FORMATS = {"f32": Format(24, -126, 128, "f4", 0), "f16": Format(11, -14, 16, "f2", 0), "bf16": Format(8, -126, 128, "f4", 16)}


class Refuted(Exception):
    """A claim does not hold."""


def rounded(v: Any, form: Format, how: Callable[[Any], Any] = np.rint) -> Any:
    """The numbers nearest to float64s, ties to even; with np.floor or np.ceil those below or above."""
    last = np.maximum(np.frexp(v)[1] - 1, form.least) - form.digits + 1
    near = np.ldexp(how(np.ldexp(v, -last)), last)
    return np.where(np.abs(near) >= 2.0**form.top, np.copysign(np.inf, near), near)


def odd_sum(a: Any, b: Any) -> Any:
    """The sums of float64s, rounded to odd."""
    total = np.asarray(a + b)
    part = total - a
    rest = (a - (total - part)) + (b - part)  # what is missing, exactly
    is_moved = (total.view(np.uint64) % 2 == 0) & np.isfinite(total) & (rest != 0.0)
    return np.where(is_moved, np.nextafter(total, np.copysign(np.inf, rest)), total)


def _flushed(v: Any) -> Any:
    return np.where(np.abs(v) < _NORMAL, np.copysign(0.0, v), v)


def _of_bits(bits: Any, form: Format) -> Any:
    return (np.asarray(bits) << form.shift).astype(form.kind.replace("f", "u")).view(form.kind).astype(np.float64)


def _to_bits(v: Any, form: Format) -> Any:
    return np.asarray(v).astype(form.kind).view(form.kind.replace("f", "u")).astype(np.int64) >> form.shift


def _least(p: Any, q: Any) -> Any:  # -0 is below 0; NaN stays
    return np.where((p < q) | ((p == q) & np.signbit(p)) | np.isnan(p), p, q)


def _most(p: Any, q: Any) -> Any:
    return -_least(-p, -q)


@cache
def parsed(formula: str) -> Callable[[arb], arb]:
    """The function that a formula of x tells; nothing of it runs as Python."""
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
        y = parsed(formula)(arb(x))
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
        size = abs(parsed(formula)(arb(x)))
        is_above, is_below = size >= 2.0**exponent, size < 2.0**exponent
        if is_above or is_below:
            break
    return low, high, exponent - (not is_above), exponent - is_below < -126


def _sizes(a: Any, b: Any) -> tuple[Any, Any]:
    return np.where(np.signbit(a) != np.signbit(b), 0.0, _least(np.abs(a), np.abs(b))), _most(np.abs(a), np.abs(b))


def _corners(apply: Callable[[Any, Any], Any], a: Any, b: Any, c: Any, d: Any) -> tuple[Any, Any]:
    found = [apply(p, q) for p in (a, b) for q in (c, d)]
    return reduce(_least, found), reduce(_most, found)


def _signed(a: Any, b: Any, c: Any, d: Any) -> tuple[Any, Any]:
    low, high = _sizes(c, d)
    return np.where(np.signbit(a), -high, low), np.where(np.signbit(b), -low, high)


_EXACT: dict[str, Callable[..., Any]] = {  # of the ends of operands; results are rounded then
    "cvt": lambda a, b: (a, b),
    "neg": lambda a, b: (-b, -a),
    "abs": _sizes,
    "copysign": _signed,
    "add": lambda a, b, c, d: (odd_sum(a, c), odd_sum(b, d)),
    "sub": lambda a, b, c, d: (odd_sum(a, -d), odd_sum(b, -c)),
    "min": lambda a, b, c, d: (_least(a, c), _least(b, d)),
    "max": lambda a, b, c, d: (_most(a, c), _most(b, d)),
    "mul": partial(_corners, operator.mul),
    "fma": lambda *ends: map(odd_sum, _corners(operator.mul, *ends[:4]), ends[4:]),
}


def _approximate(base: str, form: Format, *ends: Any) -> tuple[Any, Any]:
    (a, b), (c, d), operation = ends[:2], ends[-2:], base.split(".")[0]
    (relative, absolute), (smallest, largest) = BOUNDS[base], LIMITS.get(base, (0.0, np.inf))

    def true(v: Any) -> Any:
        points, places = np.unique(np.clip(v, -(2.0**1000), 2.0**1000), return_inverse=True)
        formula = _APPROXIMATED.get(operation, f"{operation}(x)")
        return np.array([float(_ball(formula, x).mid()) for x in points.tolist()])[places]

    reach: Any = 0.0
    if operation in ("sin", "cos"):  # which move by no more than their operand
        middle, reach = true((a + b) / 2.0), (b - a) / 2.0
        low, high = middle - reach, middle + reach
    else:  # which are monotonic
        low, high = _corners(operator.truediv, *ends) if operation == "div" else _corners(lambda p, _: p, true(a), true(b), a, b)
    low = low - np.maximum(relative * np.abs(low), absolute) - _ROUNDING * (np.abs(low) + reach)
    high = high + np.maximum(relative * np.abs(high), absolute) + _ROUNDING * (np.abs(high) + reach)
    least, most = _sizes(c, d)
    unknown = (least < smallest) | (most > largest) | ((operation in ("rcp", "div")) & (c <= 0.0) & (d >= 0.0))
    overflow = 2.0**form.top * (1.0 - 2.0 ** -(form.digits + 1))
    low = np.where(unknown | (low <= -overflow), -np.inf, rounded(low, form, np.ceil))
    return low, np.where(unknown | (high >= overflow), np.inf, rounded(high, form, np.floor))


def _statements(header: str, name: str) -> tuple[str, list[tuple[str, list[str]]]]:  # what stands above a function, and its PTX
    found = re.search(rf"((?:^//[^\n]*\n)*)^__device__ [\w ]+ {name}\([\w ]+ x\) {{\n(.*?)^}}", header, re.MULTILINE | re.DOTALL)
    if not found:
        raise ValueError(f"the header has no function {name}")
    text = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', re.split(r'\n\s*: "=', found[2])[0])).replace("%%", "%")
    lines = [line.split(None, 1) for line in re.split(r"[;{}]|\\n|\\t", text) if line.strip() and ".reg " not in line]
    return found[1], [(word, [each.strip() for each in operands.split(",")]) for word, operands in lines]


def run(steps: list[tuple[str, list[str]]], form: Format, x: Any, *, any_gpu: bool) -> tuple[Any, Any]:
    """Between which numbers results lie: on any GPU, or where only what is rounded is flushed. If it may be NaN, all numbers."""
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
        unknown = [np.isinf(low) & np.isinf(high) & (low != high) for low, high in ends[operation == "copysign" :]]
        if kind not in FORMATS:
            unknown = [low != high for low, high in ends]
            numbers = [(low & 0xFFFFFFFF).astype(np.int32 if kind == "s32" else np.int64).astype(np.int64) for low, _ in ends]
            ends = [(number.astype(np.float64), number.astype(np.float64)) for number in numbers]
        is_unknown = reduce(operator.or_, unknown)
        if kind not in FORMATS and operation != "cvt":
            bits = _INTEGERS[base.rpartition(".")[0]](*numbers) & 0xFFFFFFFF
            rows[target] = None, bits, np.where(is_unknown, ~bits, bits)
            continue
        result = FORMATS[middle[0] if operation == "cvt" else kind]
        flat = [end for both in ends for end in both]
        low, high = _approximate(base, result, *flat) if base in BOUNDS else _EXACT[operation](*flat)
        low, high = (
            near if not is_ftz else pick(_flushed(near), rounded(_flushed(end), result)) if any_gpu else _flushed(near)
            for end, near, pick in ((low, rounded(low, result), _least), (high, rounded(high, result), _most))
        )
        is_unknown = np.isnan(low) | np.isnan(high) | (is_unknown & (operation not in ("min", "max")))
        rows[target] = result, np.where(is_unknown, -np.inf, low), np.where(is_unknown, np.inf, high)
    low, high = read("%0", rows["%0"][0] or form)
    return np.broadcast_to(rounded(low, form), x.shape), np.broadcast_to(rounded(high, form), x.shape)


def errors(form: Format, function: list[Any], low: Any, high: Any, gap: float) -> Any:
    """The largest of each of KINDS, where results lie between low and high, and those that are not zero from gap on: `(3, n)`."""
    f_low, f_high, exponent, is_tiny = function
    size = np.where(f_low * f_high <= 0.0, 0.0, np.minimum(np.abs(f_low), np.abs(f_high)))
    low, high = (
        np.where((low == 0.0) & is_tiny & (high > 0.0), gap, low),
        np.where((high == 0.0) & is_tiny & (low < 0.0), -gap, high),
    )
    worst = np.zeros(len(low))
    for end in (low, high):
        is_over = np.isinf(end) & (end * f_low > 0.0) & (size >= 2.0**form.top * (1.0 - 2.0 ** -(form.digits + 1)))
        error = np.maximum(np.abs(end - f_low), np.abs(end - f_high))
        error = np.where(np.isnan(error), np.inf, error)
        worst = np.maximum(worst, np.where(is_over | ((end == 0.0) & is_tiny), 0.0, error))
    ulps = np.ldexp(worst, form.digits - 1 - np.maximum(exponent, form.least))
    return np.array([ulps, worst, worst / np.maximum(size, 2.0**form.least)])


def _inputs(form: Format, formula: str, first: int, last: int, places: list[float]) -> Any:
    def values(keys: Any) -> Any:
        return np.copysign(_of_bits(np.abs(keys), form), keys)

    def binades(keys: Any) -> Any:
        return np.array([max(enclosure(formula, x)[2], -127) for x in values(keys).tolist()])

    keys = np.arange(first, last + 1)
    if form.kind == "f4" and not form.shift:
        powers = np.concatenate([1 << np.arange(23), np.arange(1, 255) << 23])
        seeds = [powers, -powers, [first, last, 0], [_key(form, x) for x in places]]
        keys = np.random.default_rng(_SEED).integers(first, last + 1, _NUM_RANDOM)
        for _ in range(3):
            keys = np.union1d(keys, np.concatenate(seeds)[:, None] + _NEIGHBOURS)
            keys = keys[(first <= keys) & (keys <= last)]
            found = binades(keys)
            at = np.flatnonzero(np.diff(found))
            low, high, begin = keys[at], keys[at + 1], found[at]
            while (high - low > 1).any():
                middle = (low + high) // 2
                is_same = binades(middle) == begin
                low, high = np.where(is_same, middle, low), np.where(is_same, high, middle)
            seeds = [low]
    x = values(keys)
    return np.append(x, -0.0) if first <= 0 <= last else x


def _key(form: Format, x: float) -> int:
    return int(_to_bits(abs(x), form)) * (-1 if x < 0 else 1)


def check(header: str, certificate: dict[str, Any]) -> str:
    """A line that says what holds. Raises Refuted, or ValueError, KeyError or TypeError: something cannot be read."""
    form, formula, claims = FORMATS[certificate["format"]], certificate["formula"], certificate["any_gpu"]
    is_native = certificate.get("arithmetic", "f32") == "native"
    name = re.sub(r"\W+", "_", certificate["function"]).strip("_") or "f"
    name = f"{'f' if name[0].isdigit() else ''}{name}{'_native' if is_native else ''}_{certificate['format']}_{float(certificate['slots']):g}"
    name = name.replace(".", "_")
    comment, steps = _statements(header, name)
    ends = [float(end) for end in certificate["interval"]]
    first, last = (_key(form, end) for end in ends)
    if certificate["num_inputs"] != last - first + 1 or [*_of_bits(np.abs([first, last]), form)] != [abs(end) for end in ends]:
        raise Refuted(f"{name}: num_inputs or the ends of interval are not those of {certificate['format']}")
    stated = {kind: float(number) for number, kind in re.findall(r"^// error at most (\S+) (\w+)", comment, re.MULTILINE)}
    for kind, claim in (claims or certificate["cpu"]).items():
        if not float(claim["bound"]) <= stated.get(kind, -1.0) <= float(claim["bound"]) * (1.0 + 1e-5):
            raise Refuted(f"{name}: the comment of the header does not give the bound {claim['bound']} {kind}, rounded up")
    if not claims:
        return f"{name}: no bound on any GPU is claimed"
    is_exact = not any(step.replace(".ftz", "") in BOUNDS for step, _ in steps)
    figures = {"any_gpu": claims} | ({"cpu": certificate["cpu"]} if is_exact else {})
    places = [float(claim["at"]) for figure in figures.values() for claim in figure.values()]
    x = _inputs(form, formula, first, last, places)
    function = [np.array(column) for column in zip(*[enclosure(formula, each) for each in x.tolist()], strict=True)]
    *_, gap = [_NORMAL if ".ftz" in step else 0.0 for step, _ in steps if not step.startswith("mov.")]
    gap = max(float(rounded(gap, form)), 2.0 ** (form.least - form.digits + 1))
    notes = ""
    for figure, claim_of in figures.items():
        low, high = run(steps, form, x, any_gpu=figure == "any_gpu")
        num_unknown = int(((low == -np.inf) & (high == np.inf)).sum())
        if form.digits < 24 and certificate["num_nans"] > num_unknown:
            raise Refuted(f"{name}: num_nans is {certificate['num_nans']}, but at most {num_unknown} results are NaN")
        found = errors(form, function, low, high, gap)
        for kind, error in zip(KINDS, found, strict=True):
            worst, bound, place = (float(claim_of[kind][key]) for key in ("worst", "bound", "at"))
            i, there = int(error.argmax()), np.flatnonzero((x == place) & (np.signbit(x) == np.signbit(place)))
            if not max(worst, error[i] * (1.0 - _ROUNDING)) <= bound:
                between = f"results in [{low[i]!s}, {high[i]!s}], the function in [{function[0][i]!s}, {function[1][i]!s}]"
                raise Refuted(f"{name}: {figure}, x = {float(x[i])!r}: {between}: error {error[i]!s} {kind}, claimed {bound!r}")
            if not len(there):
                raise Refuted(f"{name}: {figure}: {place!r} is no input")
            largest = float(error[there[0]])  # where the function is just above a power of two, also in ulps below it
            if kind == "ulp" and abs(function[0][there[0]]) * (1.0 - 2.0 ** -(form.digits + 11)) < 2.0 ** function[2][there[0]]:
                largest *= 2.0
            if largest < _SAME * (error[i] - (bound - worst)):
                raise Refuted(f"{name}: {figure}: the largest error {kind} is not at {place!r} ({largest!r}) but at {float(x[i])!r}")
            if largest < _SAME * worst:
                notes += f"; {figure} claims {worst!r} {kind} at {place!r}, where it is at most {largest!r}"
        if figure == "any_gpu":
            i = int(found[0].argmax())
            held = f"largest any-GPU error {found[0][i]:.6g} ulp at {float(x[i])!r}, bound {claims['ulp']['bound']}"
    for kind in KINDS if not is_exact else ():
        if not float(certificate["cpu"][kind]["worst"]) <= float(claims[kind]["bound"]):
            raise Refuted(f"{name}: cpu has a larger error {kind} than any_gpu")
    return f"{name}: {len(x):,} inputs checked, {held}: holds{notes}"


def main(arguments: list[str]) -> int:
    """Checks the files, a line for each. 0: all hold; 1: one does not; 2: one cannot be read."""
    if len(arguments) < 2:
        print("usage: python -m evo.approximation.second_check HEADER CERTIFICATE...", file=sys.stderr)
        return 2
    worst = 0
    for path in arguments[1:]:
        try:
            with np.errstate(all="ignore"):
                print(check(Path(arguments[0]).read_text(), json.loads(Path(path).read_text())), flush=True)
        except Refuted as error:
            print(f"{path}: REFUTED: {error}", flush=True)
            worst = max(worst, 1)
        except (OSError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            print(f"{path}: cannot be checked: {type(error).__name__}: {error}", file=sys.stderr)
            worst = 2
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
