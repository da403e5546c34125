"""What is approximated: functions by name or formula, which mpmath evaluates to any number of digits.

Owns the formulas and exact values, which it keeps in the user's cache. Knows nothing of programs or of formats of numbers.
"""

import ast
import hashlib
import math
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.errors import UserError, did_you_mean
from evo.storage.disk_cache import DiskCache, cache_folder

# In forms that keep their digits where there are such; where there are none, precision rises until digits are right.
FORMULAS = dict(  # noqa: C408 - names, which a test tells from those of tasks
    exp="exp(x)",
    exp2="exp(x*ln2)",
    log="log(x)",
    log2="log(x)/ln2",
    log1p="log1p(x)",
    expm1="expm1(x)",
    sin="sin(x)",
    cos="cos(x)",
    sinpi="sinpi(x)",
    tan="tan(x)",
    atan="atan(x)",
    tanh="tanh(x)",
    tanh_grad="sech(x)**2",
    sigmoid="1/(1 + exp(-x))",
    sigmoid_grad="1/(2 + exp(x) + exp(-x))",
    softplus="log1p(exp(x))",
    silu="x/(1 + exp(-x))",
    silu_grad="(1 + x/(1 + exp(x)))/(1 + exp(-x))",
    gelu="x*erfc(-x/sqrt(2))/2",
    gelu_grad="erfc(-x/sqrt(2))/2 + x*exp(-x*x/2)/sqrt(2*pi)",
    gelu_tanh="x/(1 + exp(-sqrt(8/pi)*(x + 44715*x**3/10**6)))",
    erf="erf(x)",
    erf_grad="2*exp(-x*x)/sqrt(pi)",
    erfc="erfc(x)",
    erfinv="erfinv(x)",
    rsqrt="1/sqrt(x)",
    cbrt="sign(x)*cbrt(fabs(x))",
    j0="j0(x)",
)
_CACHE_BYTES = 256 << 20
_VERSION = "2"  # of what the cache holds
_BITS = 100  # of the first precision; more are added for each binade between x and 1: terms that cancel there lose these
_BITS_OF_BINADE = 4
_NUM_PRECISIONS = 6  # each twice the one before; two that follow each other must agree
_AGREEMENT = -90  # log2 of their relative difference
_PARTS = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.Name, ast.expr_context, ast.operator, ast.unaryop)
LEAST, LARGEST = 2.0**-300, 2.0**200  # beyond, values count as 0 and as this: no format tells more


@dataclass(frozen=True)
class Function:
    """A function of x. text: its name in FORMULAS or mpmath, a formula of x with mpmath's functions, or `module:function` of
    an mpf.

    Raises:
        UserError: mpmath is missing, or the text is none of these.
    """

    text: str
    _values: dict[float, Any] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not find_spec("mpmath"):
            raise UserError("task_options.function: mpmath is missing: pip install 'evo-ptx[approximation]'")
        try:
            self._evaluate(1.0)
        except (NameError, SyntaxError, TypeError, AttributeError, ImportError, ValueError, RecursionError, SystemExit) as error:
            hint = did_you_mean(self.text, FORMULAS)
            raise UserError(
                f"task_options.function: {self.text!r} is not a name, formula of x, or module:function: {error}; {hint}"
            ) from error

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return Function, (self.text,)  # what mpmath has cannot be pickled

    @property
    def formula(self) -> str:
        """What is evaluated."""
        return FORMULAS.get(self.text, self.text)

    @cached_property
    def _call(self) -> Callable[[Any], Any]:
        import mpmath

        found: Callable[[Any], Any]
        if re.fullmatch(r"[A-Za-z_][\w.]*:\w+", self.formula):
            module, _, name = self.formula.partition(":")
            found = getattr(import_module(module), name)
            return found
        names = {name: getattr(mpmath.mp, name) for name in dir(mpmath.mp) if not name.startswith("_")}
        if callable(names.get(self.formula)) and not hasattr(names[self.formula], "_mpf_"):  # pi can be called too
            found = names[self.formula]
            return found
        tree = ast.parse(self.formula, "task_options.function", "eval")
        _check_formula(tree, {*names, "x"})
        code = compile(ast.fix_missing_locations(_Exact().visit(tree)), "task_options.function", "eval")
        return lambda x: eval(code, {"__builtins__": {}}, {**names, "x": x})

    def _evaluate(self, x: float) -> Any:
        """An mpf that is right to 90 bits, or NaN where there is no real value."""
        import mpmath

        call, before = self._call, None
        start = _BITS + _BITS_OF_BINADE * abs(math.frexp(x)[1])
        for number in range(_NUM_PRECISIONS):
            with mpmath.workprec(start << number):
                try:
                    now = mpmath.mpmathify(call(mpmath.mpf(x)))
                except (ZeroDivisionError, ValueError, OverflowError):
                    return mpmath.nan
                if isinstance(now, mpmath.mpc) or mpmath.isnan(now):
                    return mpmath.nan
                if mpmath.isinf(now) or abs(now) > 2 * LARGEST:
                    return now
                if before is not None and (
                    abs(now - before) <= mpmath.ldexp(abs(now), _AGREEMENT) or max(abs(now), abs(before)) < LEAST
                ):
                    return now
            before = now
        raise UserError(f"task_options.function: {self.text}: no digits to be had at x = {x!r}; it is not a function of x there")

    def exact(self, x: float) -> Any:
        """The value at x, an mpf; NaN where there is none."""
        if x not in self._values:
            self._values[x] = self._evaluate(x)
        return self._values[x]

    def values(self, x: NDArray[Any]) -> NDArray[np.float64]:
        """The float64 nearest to each value, of odd last bit if it is not exact: so rounding it again gives the nearest float of
        any shorter format. Values below LEAST are 0 and those above LARGEST are that.
        """
        xs = np.asarray(x, np.float64)
        key = None
        if ":" not in self.formula:  # whose code may change
            key = hashlib.sha256(f"approximation {_VERSION} {self.formula} ".encode() + xs.tobytes()).hexdigest()
            if (kept := _cache().get(key)) and len(kept) == xs.nbytes:
                return np.frombuffer(kept, np.float64)
        found = np.array([to_odd(self.exact(value)) for value in xs.tolist()])
        if key:
            _cache().put(key, found.tobytes())
        return found


def to_odd(value: Any) -> float:
    """An mpf as float64, rounded to odd."""
    import mpmath

    nearest = float(value)
    if not math.isfinite(nearest) or abs(nearest) > LARGEST:
        return nearest if math.isnan(nearest) else math.copysign(LARGEST, nearest)
    if abs(nearest) < LEAST:
        return 0.0
    with mpmath.workprec(_BITS << _NUM_PRECISIONS):
        rest = value - mpmath.mpf(nearest)
    if rest == 0 or np.float64(nearest).view(np.uint64) & np.uint64(1):
        return nearest
    return math.nextafter(nearest, math.inf if rest > 0 else -math.inf)


class _Exact(ast.NodeTransformer):
    """Numbers as mpf: Python's 1/3 has 53 bits, and its 10**10**10 would take all memory."""

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.Call(ast.Name("mpf", ast.Load()), [node], [])


def _check_formula(tree: ast.AST, names: Collection[str]) -> None:
    """Raises NameError unless a formula consists of numbers, x, and what mpmath has: it may come from another's file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id not in names:
            raise NameError(f"name '{node.id}' is not known")
        is_number = isinstance(node, ast.Constant) and type(node.value) in (int, float)
        is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords
        if not (is_number or is_call or isinstance(node, _PARTS)):
            raise SyntaxError(f"'{ast.unparse(node)}' is not arithmetic" if isinstance(node, ast.expr) else "not arithmetic")


def _cache() -> DiskCache:
    return DiskCache(cache_folder(), _CACHE_BYTES)
