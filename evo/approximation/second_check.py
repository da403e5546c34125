"""Checks certificates of approximations with other code: reads the PTX of a header and computes what each certificate claims.

`python -m evo.approximation.second_check HEADER CERTIFICATE...` imports nothing of evo. It exits with 1 after a counterexample,
with 2 if it cannot read something. Slots, steps, wrong signs and functions `..._x2` are not checked. Inputs are all of f16 and
bf16; of f32 the stated inputs, zeros, ends, powers of two and where the function passes one, 8 neighbours on both sides of each,
100,000 by a hash. Arb encloses the function until its binade is clear; else the smaller ulp counts. 0 is right below 2^-126.
Results on any GPU are intervals. Exact instructions round correctly; .ftz flushes operands and results, and what is below 2^-126
but rounds to it may be either on a GPU; CPUs flush it after rounding it to 24 digits, as x86 does. Products are exact in float64,
sums rounded to odd, so that a second rounding gives the nearest number. Approximate instructions give all within the bounds of
the PTX ISA 9.1, 9.7.3 and 9.7.4, in the widest reading: n ulp are from the correctly rounded result, n + 1/2 from the exact one
(the ISA says so of ex2 alone); an ulp is 2^-23 of that, at least its own and that of a power of two it rounds to. lg2 may use
both its bounds, ex2 of halves their least number. Unknown are rcp and rsqrt of 0, div by |b| outside [2^-126, 2^126], and sin and
cos outside [-2 pi, 2 pi].
"""

import ast
import hashlib
import json
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
BOUNDS |= {"lg2.approx.f32": (2.0**-22, 2.0**-22), "ex2.approx.f16": (2.0**-9.9, 2.0**-24)}
BOUNDS |= {"ex2.approx.bf16": (2.0**-7, 2.0**-133)}
LIMITS = {"div.approx.f32": (2.0**-126, 2.0**126)} | dict.fromkeys(["sin.approx.f32", "cos.approx.f32"], (0.0, 2.0 * np.pi))
_TRUE = {"rcp": "1/x", "rsqrt": "1/sqrt(x)", "ex2": "exp(x*ln2)", "lg2": "log(x)/ln2"}
KINDS, _PRECISIONS = ("ulp", "absolute", "relative"), (80, 320, 1280, 5120, 20480)  # bits of Arb
_NUM_DRAWN, _NORMAL, _NEGLIGIBLE, _SAME, _ROUNDING = 100_000, 2.0**-126, 2.0**-300, 1.0 - 1e-6, 2.0**-50
_OPERATORS = {"Add": "add", "Sub": "sub", "Mult": "mul", "Div": "truediv", "Pow": "pow", "USub": "neg", "UAdd": "pos"}
_FUNCTIONS = "sqrt exp log log1p expm1 sin cos tan asin acos atan sinh cosh tanh sech erf erfc erfinv"
_CALLS: dict[str, Callable[..., arb]] = {name: getattr(arb, name) for name in _FUNCTIONS.split()}
_CALLS |= {"sinpi": arb.sin_pi, "sign": arb.sgn, "fabs": abs, "j0": lambda x: x.bessel_j(arb(0))}
_CALLS["cbrt"] = lambda x: x if x == 0 else x.root(3)
_NAMES = {"x": lambda x: x, "pi": lambda _: arb.pi(), "e": lambda _: arb.const_e(), "ln2": lambda _: arb.const_log2()}
_INTEGERS: dict[str, Callable[..., Any]] = {"add": operator.add, "sub": operator.sub, "and": operator.and_, "xor": operator.xor}
_INTEGERS |= {"or": operator.or_, "mul.hi": lambda a, b: (a * b) >> 32, "shl": lambda a, b: a << b, "shr": lambda a, b: a >> b}
Format = namedtuple("Format", "digits least top kind shift")  # least normal 2^least, all below 2^top, NumPy's type and bits below
FORMATS = {"f32": Format(24, -126, 128, "f4", 0), "f16": Format(11, -14, 16, "f2", 0), "bf16": Format(8, -126, 128, "f4", 16)}


def _rounded(v: Any, form: Format, how: Callable[[Any], Any] = np.rint) -> Any:  # ties to even; with np.floor or np.ceil
    last = np.maximum(np.frexp(v)[1] - 1, form.least) - form.digits + 1
    near = np.ldexp(how(np.ldexp(v, -last)), last)
    return np.where(np.abs(near) >= 2.0**form.top, np.copysign(np.inf, near), near)


def _odd_sum(a: Any, b: Any) -> Any:  # rounded to odd
    total = np.asarray(a + b)
    rest = (a - (total - (part := total - a))) + (b - part)  # the rounding error, exactly
    is_moved = (total.view(np.uint64) % 2 == 0) & np.isfinite(total) & (rest != 0.0)
    return np.where(is_moved, np.nextafter(total, np.copysign(np.inf, rest)), total)


def _flushed(v: Any) -> Any:
    return np.where(np.abs(v) < _NORMAL, np.copysign(0.0, v), v)


def _of_bits(bits: Any, form: Format) -> Any:
    return (np.asarray(bits) << form.shift).astype(form.kind.replace("f", "u")).view(form.kind).astype(np.float64)


def _to_bits(v: Any, form: Any) -> Any:
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


def _built(tree: Any) -> Callable[..., arb]:
    if isinstance(tree, ast.Name):
        return _NAMES[tree.id]
    if hasattr(tree, "value"):
        return partial(lambda number, _: number, arb({int: tree.value, float: tree.value}[type(tree.value)]))
    is_call = isinstance(tree, ast.Call) and not tree.keywords
    call = _CALLS[tree.func.id] if is_call else getattr(operator, _OPERATORS[type(tree.op).__name__])
    parts = [_built(part) for part in [part for part in ast.iter_child_nodes(tree) if isinstance(part, ast.expr)][is_call:]]
    return lambda x: call(*[part(x) for part in parts])


@lru_cache(1 << 18)
def enclosure(formula: str, x: float) -> tuple[float, float, int, bool]:
    """Between which float64s a function lies at x, the exponent of its size, and whether that is below 2^-126. NaN: nowhere."""
    exponent, is_clear = None, False
    for ctx.prec in _PRECISIONS:
        y = _parsed(formula)(arb(x))
        if abs(y) < _NEGLIGIBLE:
            return *((0.0, 0.0) if y == 0 else (-_NEGLIGIBLE, _NEGLIGIBLE)), -300, True
        if y.is_finite() and y.rel_accuracy_bits() > 56:
            mantissa, power = abs(y).upper().man_exp()
            exponent = int(mantissa.bit_length() + power) - 1
            if is_clear := bool(abs(y) >= arb(2) ** exponent):
                break
    if exponent is None:
        return np.nan, np.nan, 0, False
    low = high = float(y.mid())
    if not (y.is_exact() and arb(low) == y):
        low, high = np.nextafter(float(y.lower()), -np.inf), np.nextafter(float(y.upper()), np.inf)
    return low, high, min(exponent - (not is_clear), 1100), is_clear and exponent < -126


def _sizes(a: Any, b: Any) -> tuple[Any, Any]:
    return np.where(np.signbit(a) != np.signbit(b), 0.0, _least(np.abs(a), np.abs(b))), _most(np.abs(a), np.abs(b))


def _corners(apply: Callable[[Any, Any], Any], a: Any, b: Any, c: Any, d: Any) -> tuple[Any, Any]:
    corners = [apply(p, q) for p in (a, b) for q in (c, d)]
    return reduce(_least, corners), reduce(_most, corners)


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
    (a, b), (c, d), operation, reach = ends[:2], ends[-2:], base.partition(".")[0], 0.0
    (relative, absolute), (smallest, largest) = BOUNDS[base], LIMITS.get(base, (0.0, np.inf))
    if operation == "div":
        low, high = _corners(operator.truediv, *ends)
    else:  # monotonic, but for sin and cos, which move by no more than their operand: from its middle
        v = np.clip(np.stack(np.broadcast_arrays(a, b)), -1e300, np.inf if operation == "lg2" else 1e300)
        reach = (v[1] - v[0]) * (0.5001 if operation in ("sin", "cos") else 0.0)
        points, inverse = np.unique(v + np.stack([reach, -reach]), return_inverse=True)
        v = np.array([enclosure(_TRUE.get(operation, f"{operation}(x)"), x)[0] for x in points.tolist()])[
            inverse.reshape(v.shape)
        ]
        low, high = _least(*v) - reach, _most(*v) + reach
    width = [np.maximum(relative * np.abs(v), absolute) + _ROUNDING * (np.abs(v) + reach) for v in (low, high)]
    low, high, (least, most) = low - width[0], high + width[1], _sizes(c, d)
    unknown = (least < smallest) | (most > largest) | ((operation in ("rcp", "div")) & (c <= 0.0) & (d >= 0.0))
    low = np.where(unknown | (_rounded(low, form) == -np.inf), -np.inf, _rounded(low, form, np.ceil))
    return low, np.where(unknown | (_rounded(high, form) == np.inf), np.inf, _rounded(high, form, np.floor))


def _run(steps: list[tuple[str, list[str]]], form: Format, x: Any, figure: str) -> tuple[Any, Any]:
    rows: dict[str, tuple[Any, Any, Any]] = {"%1": (form if steps[0][0] == "mov.b16" else FORMATS["f32"], x, x)}

    def read(operand: str, kind: Any, *, is_ftz: bool = False) -> tuple[Any, Any]:
        had, low, high = rows.get(operand) or (None, *[np.array([int(operand.replace("0f", "0x").rstrip("U"), 0)])] * 2)
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
        lost = [(low == -np.inf) & (high == np.inf) for low, high in ends[operation == "copysign" :]]
        if kind not in FORMATS:
            lost = [low != high for low, high in ends]
            numbers = [(low & 0xFFFFFFFF).astype("i4" if kind == "s32" else "i8").astype(np.int64) for low, _ in ends]
            ends = [(number.astype(np.float64),) * 2 for number in numbers]
        if kind not in FORMATS and operation != "cvt":
            bits = _INTEGERS[base.rpartition(".")[0]](*numbers) & 0xFFFFFFFF
            rows[target] = None, bits, np.where(sum(lost) > 0, ~bits, bits)
            continue
        result, flat = FORMATS[middle[0] if operation == "cvt" else kind], [end for both in ends for end in both]
        low, high = _approximate(base, result, *flat) if base in BOUNDS else _EXACT[operation](*flat)
        kept = result._replace(least=-1100) if is_ftz and figure == "cpu" else result
        late = [_flushed(near) if is_ftz else near for near in (_rounded(low, kept), _rounded(high, kept))]
        early = [_rounded(_flushed(end), result) for end in (low, high)] if is_ftz and figure == "any_gpu" else late
        low, high = _least(early[0], late[0]), _most(early[1], late[1])
        unknown = np.isnan(low) | np.isnan(high) | ((sum(lost) > 0) & (operation not in ("min", "max")))
        rows[target] = result, np.where(unknown, -np.inf, low), np.where(unknown, np.inf, high)
    low, high = read("%0", rows["%0"][0] or rows["%1"][0])
    return np.broadcast_to(_rounded(low, form), x.shape), np.broadcast_to(_rounded(high, form), x.shape)


def _inputs(form: Format, formula: str, first: int, last: int, stated_keys: list[int]) -> Any:
    def binades(keys: Any) -> Any:  # of integers in the order of numbers, 1 apart for neighbours
        return np.array([max(enclosure(formula, x)[2], -127) for x in np.copysign(_of_bits(np.abs(keys), form), keys).tolist()])

    drawn = np.frombuffer(hashlib.shake_128(b"inputs").digest(8 * _NUM_DRAWN), "<u8") % np.uint64(last - first + 1)
    keys = np.arange(first, last + 1) if form.digits < 24 else first + drawn.astype(np.int64)
    near = np.r_[(powers := np.r_[1 << np.arange(23), np.arange(1, 255) << 23]), -powers, first, last, 0, stated_keys]
    for _ in range(3 if form.digits == 24 else 0):
        keys = np.union1d(keys, near.astype(np.int64)[:, None] + np.arange(-8, 10))
        keys = keys[(first <= keys) & (keys <= last)]
        exponents = binades(keys)
        at = np.flatnonzero(np.diff(exponents))
        near, high = keys[at], keys[at + 1]
        while (high - near > 1).any():
            is_same = binades(middle := (near + high) // 2) == exponents[at]
            near, high = np.where(is_same, middle, near), np.where(is_same, high, middle)
    return np.append(np.copysign(_of_bits(np.abs(keys), form), keys), [-0.0] * (first <= 0 <= last))


def check(header: str, certificate: dict[str, Any]) -> tuple[bool, str]:
    """Check a certificate's claim: whether it holds, and a line on it. Raises ValueError, LookupError, TypeError: unreadable."""
    form, formula, claims = FORMATS[certificate["format"]], certificate["formula"], certificate["any_gpu"]
    name = re.sub(r"\W+", "_", certificate["function"]).strip("_") or "f"
    kind = "native_" * (certificate.get("arithmetic") == "native") + certificate["format"]
    name = f"{'f' * name[0].isdigit()}{name}_{kind}_{float(certificate['slots']):g}".replace(".", "_")
    match = re.search(rf"((?:^//[^\n]*\n)*)^__device__ [\w ]+ {name}\([\w ]+ x\) {{\n(.*?)^}}", header, re.MULTILINE | re.DOTALL)
    if not match:
        raise ValueError(f"the header has no function {name}")
    text = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', re.split(r'\n\s*: "=', match[2])[0])).replace("%%", "%")
    lines = [line.split(None, 1) for line in re.split(r"[;{}]|\\n|\\t", text) if line.strip() and ".reg " not in line]
    steps = [(word, operands.replace(" ", "").split(",")) for word, operands in lines]
    stated = {kind: float(number) for number, kind in re.findall(r"^// error at most (\S+) (\w+)", match[1], re.MULTILINE)}
    for kind, claim in (claims or certificate["cpu"]).items():
        if not float(claim["bound"]) <= stated.get(kind, -1.0) <= float(claim["bound"]) * (1.0 + 1e-5):
            return False, f"{name}: the comment in the header does not give the bound {claim['bound']} {kind}, rounded up"
    if not claims:
        return True, f"{name}: no bound on any GPU is claimed"
    figures = ["any_gpu"] if any(step.replace(".ftz", "") in BOUNDS for step, _ in steps) else ["any_gpu", "cpu"]
    stated_at = [claim["at"] for figure in figures for claim in certificate[figure].values()]
    points = np.array([*certificate["interval"], *stated_at], float)
    first, last, *stated_keys = (_to_bits(np.abs(points), form) * np.where(points < 0.0, -1, 1)).tolist()
    if certificate["num_inputs"] != last - first + 1 or (_of_bits(np.abs([first, last]), form) != np.abs(points[:2])).any():
        return False, f"{name}: num_inputs or the ends of interval are not those of {certificate['format']}"
    x, held = _inputs(form, formula, first, last, stated_keys), ""
    f_low, f_high, exponent, is_tiny = (
        np.array(column) for column in zip(*[enclosure(formula, v) for v in x.tolist()], strict=True)
    )
    if np.isnan(f_low).any():
        return False, f"{name}: at x = {float(x[np.isnan(f_low)][0])!r} the function has no value that can be enclosed"
    size = np.where(f_low * f_high <= 0.0, 0.0, np.minimum(np.abs(f_low), np.abs(f_high)))
    is_near = size * (1.0 - 2.0 ** -(form.digits + 11)) < 2.0**exponent  # just above a power of two
    is_ftz = [".ftz" in step for step, _ in steps if not step.startswith("mov.")][-1:] == [True]
    for figure in figures:
        low, high = np.concatenate([_run(steps, form, part, figure) for part in np.array_split(x, len(x) // 4096 + 1)], axis=1)
        if form.digits < 24 and certificate["num_nans"] > (num_unknown := int(((low == -np.inf) & (high == np.inf)).sum())):
            return False, f"{name}: num_nans is {certificate['num_nans']}, but at most {num_unknown} results are NaN"
        apart = np.zeros(len(x))
        for end in (low, high):  # without .ftz, subnormal results may be there beside a zero
            is_right = (end == 0.0) & is_tiny & (is_ftz | (low == high))
            is_right |= np.isinf(end) & (end * f_low > 0.0) & np.isinf(_rounded(size, form))
            apart = np.maximum(apart, np.where(is_right, 0.0, np.fmax(np.abs(end - f_low), np.abs(end - f_high))))
        ulps = np.ldexp(apart, form.digits - 1 - np.maximum(exponent, form.least))
        for kind, error in zip(KINDS, (ulps, apart, apart / np.maximum(size, 2.0**form.least)), strict=True):
            worst, bound, stated_x = (float(certificate[figure][kind][key]) for key in ("worst", "bound", "at"))
            most, at = error[i := int(error.argmax())], f"at x = {float(x[i])!r}"
            if not max(worst, most * (1.0 - _ROUNDING), float(certificate["cpu"][kind]["worst"])) <= bound:
                between = f"results in [{low[i]!s}, {high[i]!s}], the function in [{f_low[i]!s}, {f_high[i]!s}]"
                return False, f"{name}: {figure} {at}: {between}: error {most!s} {kind}, claimed {bound!r}"
            held = held or f"largest any-GPU error {most:.6g} ulp {at}, bound {bound!r}: holds"
            is_there = (x == stated_x) & (np.signbit(x) == np.signbit(stated_x))
            there = (error * np.where(is_near & (kind == "ulp"), 2.0, 1.0))[is_there].max(initial=0.0)
            if there < (least := _SAME * (2.0 * worst - bound)):
                held += f"; {figure} claims {worst!r} {kind} at x = {stated_x!r}, where it is {there!s} at most"
                if most >= least:
                    return False, f"{name}: {held}, and {most!s} {at}"
    return True, f"{name}: {len(x):,} inputs checked, {held}"


def main(arguments: list[str]) -> int:
    """Checks files, a line for each. 0: all hold; 1: one does not; 2: one cannot be read."""
    if (code := 2 * (len(arguments) < 2)) == 2:
        print("usage: python -m evo.approximation.second_check HEADER CERTIFICATE...", file=sys.stderr)
    for path in arguments[1:]:
        try:
            with np.errstate(all="ignore"):
                holds, line = check(Path(arguments[0]).read_text(), json.loads(Path(path).read_text()))
            print(line if holds else f"{path}: REFUTED: {line}", flush=True)
            code = max(code, 0 if holds else 1)
        except (OSError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
            print(f"{path}: cannot be checked: {type(error).__name__}: {error}", file=sys.stderr)
            code = 2
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
