"""The grammar of formulas of x: numbers, + - * / **, constants and functions by name, computed with numbers, balls or series.

Owns which names a formula may have, and their meaning in ball arithmetic (Arb) and in mpmath. A formula is read, never run.
"""

import ast
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from math import inf
from operator import add, mul, sub, truediv
from typing import Any, NamedTuple

from flint import arb, arb_series, ctx, fmpq

_OPERATORS: dict[type, str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**"}


class Step(NamedTuple):
    """A step of a formula in postfix order: a name or operator that takes `num_operands` values, or a number."""

    name: str
    num_operands: int = 0
    number: Fraction = Fraction(0)


class Meaning(NamedTuple):
    """A function's meaning. ball: of an `arb`. series: of an `arb_series`; without it a function has no enclosure on intervals.
    trend: 1 if it rises, -1 if it falls, 2 if it is even and rises with the size, -2 if it is even and falls, else 0. counts: of
    values that it may take. mpmath has each under the same name.
    """

    ball: Callable[..., Any] | None = None
    series: Callable[..., Any] | None = None
    trend: int = 0
    counts: tuple[int, ...] = (1,)


def _method(name: str, trend: int = 0) -> Meaning:
    """A function that Arb has for balls and for series."""
    return Meaning(lambda u: getattr(u, name)(), lambda u: getattr(u, name)(), trend)


def _with(name: str, series: Callable[[Any], Any], trend: int = 0) -> Meaning:
    """A function that Arb has for balls; its series follows from others', but for the first coefficient."""

    def exact(u: Any) -> Any:
        return _from(getattr(u[0], name)(), series(u))

    return Meaning(lambda u: getattr(u, name)(), exact, trend)


def _from(value: Any, series: Any = None) -> Any:
    """A series with this first coefficient and the others of `series`."""
    return arb_series([value, *(series.coeffs()[1:] if series is not None else ())], ctx.cap)


def _tanh(u: Any) -> Any:
    if u[0] < 0:
        return -_tanh(-u)
    e = (-2 * u).exp()
    return (1 - e) / (1 + e)


def _sech(u: Any) -> Any:
    e = (u if u[0] < 0 else -u).exp()
    return 2 * e / (1 + e * e)


def _fabs(u: Any) -> Any:
    if isinstance(u, arb):
        return abs(u)
    return u if u[0] > 0 else -u if u[0] < 0 else u * arb.nan()


def _sign(u: Any) -> Any:
    if isinstance(u, arb):
        return u.sgn()
    return _from(1) if u[0] > 0 else _from(-1) if u[0] < 0 else u * arb.nan()


def _cbrt(u: Any) -> Any:
    if isinstance(u, arb):
        return u.root(3)
    return (u.log() / 3).exp()


def _erfinv(u: Any) -> Any:
    """By the inverse of erf's series."""
    y = u[0].erfinv()
    around = arb_series([y, 1], ctx.cap).erf()
    return _from(y, _from(0, around).reversion()(_from(0, u)))


def _bessel(order: int) -> Callable[[Any], Any]:
    """J_n with derivatives as in DLMF 10.6.7: the k-th is 2^-k times the sum of (-1)^i C(k, i) J_(n-k+2i)."""

    def series(u: Any) -> Any:
        row = {n: u[0].bessel_j(order + n) for n in range(-ctx.cap + 1, ctx.cap)}
        terms, factorial = [], 1
        for k in range(ctx.cap):
            factorial *= k or 1
            total = sum((fmpq((-1) ** i * _choose(k, i), factorial << k) * row[2 * i - k] for i in range(k + 1)), arb(0))
            terms.append(total)
        return arb_series(terms, ctx.cap)(_from(0, u))

    return series


@cache
def _choose(n: int, k: int) -> int:
    return 1 if k in (0, n) else _choose(n - 1, k - 1) + _choose(n - 1, k)


def _log(u: Any, base: Any = None) -> Any:
    return u.log() if base is None else u.log() / base.log()


def _power(u: Any, exponent: Any) -> Any:
    """A power; Arb takes integers as such for the sake of negative bases."""
    if not isinstance(u, arb | arb_series) and not isinstance(exponent, arb | arb_series):
        return u**exponent if isinstance(u, _Ends) else _power_of_mpf(u, exponent)
    is_small = isinstance(exponent, arb) and exponent.is_exact() and bool(abs(exponent) < 1 << 20)
    whole = exponent.unique_fmpz() if is_small else None  # a large one may not fit in memory
    return u**exponent if whole is None else u ** int(whole)


def _power_of_mpf(u: Any, exponent: Any) -> Any:
    from mpmath import mp

    if abs(exponent) > 1 << 40:
        raise OverflowError("an exponent takes too much memory")
    return mp.power(u, exponent)


_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {"+": add, "-": sub, "*": mul, "/": truediv, "**": _power}


CONSTANTS: dict[str, Callable[[], Any]] = {  # as balls; mpmath has each under the same name
    "pi": arb.pi,
    "e": arb.const_e,
    "ln2": arb.const_log2,
    "ln10": arb.const_log10,
    "phi": lambda: (1 + arb(5).sqrt()) / 2,
    "euler": arb.const_euler,
    "catalan": arb.const_catalan,
}
FUNCTIONS: dict[str, Meaning] = {
    "exp": _method("exp", 1),
    "log": Meaning(_log, _log, 1, counts=(1, 2)),
    "ln": _method("log", 1),
    "sqrt": _method("sqrt", 1),
    "sin": _method("sin"),
    "cos": _method("cos"),
    "tan": _method("tan"),
    "sinpi": _method("sin_pi"),
    "cospi": _method("cos_pi"),
    "cot": _with("cot", lambda u: u.cos() / u.sin()),
    "sec": _with("sec", lambda u: 1 / u.cos()),
    "csc": _with("csc", lambda u: 1 / u.sin()),
    "asin": _method("asin", 1),
    "acos": _method("acos", -1),
    "atan": _method("atan", 1),
    "erf": _method("erf", 1),
    "erfc": _method("erfc", -1),
    "erfi": _method("erfi", 1),
    "gamma": _method("gamma"),
    "rgamma": _method("rgamma"),
    "loggamma": _method("lgamma"),
    "lambertw": _method("lambertw", 1),
    "ei": _method("ei"),
    "si": _method("si"),
    "ci": _method("ci"),
    "li": _method("li"),
    "airyai": _method("airy_ai"),
    "airybi": _method("airy_bi"),
    "fresnels": _method("fresnel_s"),
    "fresnelc": _method("fresnel_c"),
    "zeta": _method("zeta"),
    "expm1": _with("expm1", lambda u: u.exp(), 1),
    "log1p": _with("log1p", lambda u: (1 + u).log(), 1),
    "log10": Meaning(lambda u: u.log() / arb.const_log10(), lambda u: u.log() / arb.const_log10(), 1),
    "sinh": _with("sinh", lambda u: (u.exp() - (-u).exp()) / 2, 1),
    "cosh": _with("cosh", lambda u: (u.exp() + (-u).exp()) / 2, 2),
    "tanh": _with("tanh", _tanh, 1),
    "sech": _with("sech", _sech, -2),
    "csch": _with("csch", lambda u: 2 / (u.exp() - (-u).exp())),
    "coth": _with("coth", lambda u: 1 / _tanh(u)),
    "asinh": _with("asinh", lambda u: -((u * u + 1).sqrt() - u).log() if u[0] < 0 else ((u * u + 1).sqrt() + u).log(), 1),
    "acosh": _with("acosh", lambda u: ((u * u - 1).sqrt() + u).log(), 1),
    "atanh": _with("atanh", lambda u: ((1 + u).log() - (1 - u).log()) / 2, 1),
    "sinc": _with("sinc", lambda u: u.sin() / u),
    "cbrt": Meaning(_cbrt, _cbrt, 1),
    "fabs": Meaning(_fabs, _fabs, 2),
    "sign": Meaning(_sign, _sign, 1),
    "erfinv": Meaning(lambda u: u.erfinv(), _erfinv, 1),
    "j0": Meaning(lambda u: u.bessel_j(0), _bessel(0)),
    "j1": Meaning(lambda u: u.bessel_j(1), _bessel(1)),
    "floor": Meaning(lambda u: u.floor()),
    "ceil": Meaning(lambda u: u.ceil()),
    "digamma": Meaning(lambda u: u.digamma()),
    "e1": Meaning(lambda u: u.expint(1)),
    "ellipk": Meaning(),
    "ellipe": Meaning(),
    "besselj": Meaning(counts=(2,)),
    "bessely": Meaning(counts=(2,)),
    "besseli": Meaning(counts=(2,)),
    "besselk": Meaning(counts=(2,)),
    "atan2": Meaning(counts=(2,)),
    "hypot": Meaning(counts=(2,)),
}


def parse(text: str) -> tuple[Step, ...]:
    """The steps of a formula of x.

    Raises:
        ValueError: it is not a formula; the message says why.
    """
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, RecursionError, MemoryError, ValueError) as error:
        raise ValueError(getattr(error, "msg", None) or "too deeply nested") from error
    steps: list[Step] = []
    waiting: list[ast.AST] = [tree]
    while waiting:  # from the root, right operands first: the reverse of postfix order
        node = waiting.pop()
        operator = _OPERATORS.get(type(node.op)) if isinstance(node, ast.BinOp) else None
        if isinstance(node, ast.BinOp) and operator:
            steps.append(Step(operator, 2))
            waiting += [node.left, node.right]
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            if isinstance(node.op, ast.USub):
                steps.append(Step("neg", 1))
            waiting.append(node.operand)
        elif isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
            if node.value == inf:
                raise ValueError("a number is too large for float64; write it as 10**400")
            steps.append(Step("number", 0, Fraction(node.value)))
        elif isinstance(node, ast.Name) and (node.id == "x" or node.id in CONSTANTS):
            steps.append(Step(node.id))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            meaning = FUNCTIONS.get(node.func.id)
            if not meaning:
                raise ValueError(f"function {node.func.id!r} is not known")
            if len(node.args) not in meaning.counts:
                raise ValueError(f"{node.func.id} takes {' or '.join(map(str, meaning.counts))}, got {len(node.args)} values")
            steps.append(Step(node.func.id, len(node.args)))
            waiting += node.args
        else:
            raise ValueError(f"name {node.id!r} is not known" if isinstance(node, ast.Name) else "it is not arithmetic of x")
    return tuple(reversed(steps))


def evaluate(steps: tuple[Step, ...], x: Any) -> Any:
    """The value at an `arb` or `arb_series`, at the precision and length of `flint.ctx`; NaN where there is none."""

    def call(name: str, operands: list[Any]) -> Any:
        is_series = any(isinstance(operand, arb_series) for operand in operands)
        compute = FUNCTIONS[name].series if is_series else FUNCTIONS[name].ball
        assert compute
        return compute(*operands)

    try:
        return _walk(steps, x, _ball, lambda name: CONSTANTS[name](), call)
    except (ZeroDivisionError, ValueError):  # of series
        return arb_series([arb.nan()] * ctx.cap, ctx.cap) if isinstance(x, arb_series) else arb.nan()


def by_mpmath(steps: tuple[Step, ...], x: Any) -> Any:
    """The value at an mpf, at mpmath's precision."""
    from mpmath import mp

    def call(name: str, operands: list[Any]) -> Any:
        return getattr(mp, name)(*operands)

    return _walk(steps, x, lambda number: mp.mpf(number.numerator) / number.denominator, lambda name: +getattr(mp, name), call)


def bounds(steps: tuple[Step, ...], low: float, high: float) -> tuple[Any, Any] | None:
    """Exact balls between which all values on an interval lie, by the ends of monotonic steps; None: unknown. For intervals whose
    ends differ by many powers of two, on which balls are too wide.
    """

    def call(name: str, operands: list[Any]) -> Any:
        meaning = FUNCTIONS[name]
        if not meaning.trend or len(operands) > 1:
            raise _UnknownError
        a, b = operands[0].size() if abs(meaning.trend) == 2 else (operands[0].low, operands[0].high)
        assert meaning.ball
        return _Ends(meaning.ball(a), meaning.ball(b)) if meaning.trend > 0 else _Ends(meaning.ball(b), meaning.ball(a))

    try:
        ends = _walk(steps, _Ends(arb(low), arb(high)), lambda n: _Ends(_ball(n)), lambda name: _Ends(CONSTANTS[name]()), call)
    except _UnknownError:
        return None
    return ends.low, ends.high


def _ball(number: Fraction) -> Any:
    return arb(fmpq(number.numerator, number.denominator))


class _UnknownError(Exception):
    """Nothing is known of a step on an interval."""


class _Ends:
    """An interval by its ends, balls that are moved outwards to exact numbers."""

    def __init__(self, low: Any, high: Any = None):
        self.low, self.high = low.lower(), (low if high is None else high).upper()
        if not (self.low.is_finite() and self.high.is_finite()):
            raise _UnknownError

    def size(self) -> tuple[Any, Any]:
        """The least and the largest size of its numbers."""
        least, most = sorted((abs(self.low), abs(self.high)))
        return (least if self.low > 0 or self.high < 0 else arb(0)), most

    def __neg__(self) -> "_Ends":
        return _Ends(-self.high, -self.low)

    def __add__(self, other: "_Ends") -> "_Ends":
        return _Ends(self.low + other.low, self.high + other.high)

    def __sub__(self, other: "_Ends") -> "_Ends":
        return self + -other

    def __mul__(self, other: "_Ends") -> "_Ends":
        products = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        return _Ends(min(product.lower() for product in products), max(product.upper() for product in products))

    def __truediv__(self, other: "_Ends") -> "_Ends":
        if other.low <= 0 <= other.high:
            raise _UnknownError
        return self * _Ends(1 / other.high, 1 / other.low)

    def __pow__(self, other: "_Ends") -> "_Ends":
        whole = other.low.unique_fmpz() if other.low == other.high and 0 < other.low < 1 << 10 else None
        if whole is None:
            raise _UnknownError
        low, high = self.size() if whole % 2 == 0 else (self.low, self.high)
        return _Ends(low ** int(whole), high ** int(whole))


def _walk(
    steps: tuple[Step, ...],
    x: Any,
    number_of: Callable[[Fraction], Any],
    constant_of: Callable[[str], Any],
    call: Callable[[str, list[Any]], Any],
) -> Any:
    stack: list[Any] = []
    for name, count, number in steps:
        operands = stack[len(stack) - count :]
        del stack[len(stack) - count :]
        if name == "x":
            stack.append(x)
        elif name == "number":
            stack.append(number_of(number))
        elif name in CONSTANTS:
            stack.append(constant_of(name))
        elif name == "neg":
            stack.append(-operands[0])
        elif name in _ARITHMETIC:
            stack.append(_ARITHMETIC[name](*operands))
        else:
            stack.append(call(name, operands))
    return stack[0]


def without_enclosure(steps: tuple[Step, ...]) -> tuple[str, ...]:
    """The names that Arb has no series for, in alphabetical order."""
    return tuple(sorted({step.name for step in steps if step.name in FUNCTIONS and not FUNCTIONS[step.name].series}))
