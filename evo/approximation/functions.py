"""Functions to approximate, by name or formula, with values that are enclosed in balls.

Owns the names and exact values. Knows nothing of programs.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evo.approximation.formats import FLUSHED
from evo.errors import UserError, did_you_mean

if TYPE_CHECKING:
    from evo.approximation.formulas import Step

MAX_CHARACTERS = 20_000
CHARACTERS = r"[A-Za-z0-9_ .,+*/():-]"  # of formulas, and of `module:function`
# In forms that keep their digits, if there are any; else precision rises until the digits are right.
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
    softplus="log1p(exp(-fabs(x))) + (x + fabs(x))/2",
    silu="x/(1 + exp(-x))",
    silu_grad="1/(1 + exp(-x)) + x*sech(x/2)**2/4",
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
RIGOROUS = "rigorous"
_OF_MODULE = re.compile(r"[A-Za-z_][\w.]*:\w+")
_SHOWN = 60  # characters of a formula in a message
_BITS = 100  # of the first precision; more are added for each binade between x and 1: terms that cancel there lose these
_BITS_OF_BINADE = 4
_NUM_PRECISIONS = 6  # each twice the one before
_AGREEMENT = -90  # log2 of a ball's radius over its value, or of the difference of two of mpmath's values
LEAST, LARGEST = 2.0**-300, 2.0**200  # beyond, values count as 0 and as this: no format tells more


@dataclass(frozen=True)
class Function:
    """A function of x. text: its name in FORMULAS, a formula of x as `evo.approximation.formulas` reads it, one of its functions'
    names, or `module:function` of an mpf.

    Raises:
        UserError: mpmath or python-flint is missing, or the text is none of these.
    """

    text: str
    _values: dict[float, Any] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        for package, name in (("mpmath", "mpmath"), ("flint", "python-flint")):
            if not find_spec(package):
                raise UserError(f"{name} is missing: pip install 'evo-ptx[approximation]'", "task_options.function")
        try:
            if is_code(self.formula):
                self._call(1.0)
            else:
                _ = self.steps
        except (AttributeError, ImportError, TypeError, ValueError, SystemExit) as error:
            hint = did_you_mean(self.text, FORMULAS) if len(self.text) <= _SHOWN else "see docs/approximations.md"
            raise UserError(
                f"{self.shown!r} is not a name, formula of x, or module:function: {error}; {hint}", "task_options.function"
            ) from error

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return Function, (self.text,)  # balls cannot be pickled

    @property
    def formula(self) -> str:
        """The formula that is evaluated, or the `module:function`."""
        return FORMULAS.get(self.text, self.text)

    @property
    def shown(self) -> str:
        """The text for messages."""
        return shortened(self.text)

    @cached_property
    def steps(self) -> "tuple[Step, ...]":
        """The formula's steps. Raises ValueError: it is not a formula."""
        from evo.approximation.formulas import FUNCTIONS, parse

        if len(self.formula) > MAX_CHARACTERS:
            raise ValueError(f"a formula has at most {MAX_CHARACTERS:,} characters, this has {len(self.formula):,}")
        return parse(f"{self.formula}(x)" if self.formula in FUNCTIONS else self.formula)

    @cached_property
    def enclosure(self) -> str:
        """`rigorous` if balls enclose the function on intervals; else `validated: ` and the names that Arb has no series for."""
        from evo.approximation.formulas import without_enclosure

        names = [self.formula] if is_code(self.formula) else without_enclosure(self.steps)
        return f"validated: {' '.join(names)}" if names else RIGOROUS

    @cached_property
    def _call(self) -> Callable[[Any], Any]:
        """By mpmath."""
        if is_code(self.formula):
            module, _, name = self.formula.partition(":")
            function: Callable[[Any], Any] = getattr(import_module(module), name)
            return function
        from evo.approximation.formulas import by_mpmath

        return lambda x: by_mpmath(self.steps, x)

    def _precisions(self, x: float) -> list[int]:
        start = _BITS + _BITS_OF_BINADE * abs(math.frexp(x)[1])
        return [start << number for number in range(_NUM_PRECISIONS)]

    def _ball(self, x: float, is_enough: Callable[[Any], bool]) -> Any:
        """An enclosure of the value that is narrow enough, or that of the highest precision."""
        from flint import arb, ctx

        from evo.approximation.formulas import evaluate

        for bits in self._precisions(x):
            with ctx.workprec(bits):
                ball = evaluate(self.steps, arb(x))
                if ball.is_finite() and is_enough(ball):
                    break
        return ball

    def _by_mpmath(self, x: float) -> Any:
        """An mpf on which two precisions agree to 90 bits, or NaN where there is no real value."""
        import mpmath

        before = None
        for bits in self._precisions(x):
            with mpmath.workprec(bits):
                try:
                    now = mpmath.mpmathify(self._call(mpmath.mpf(x)))
                except (ArithmeticError, ValueError, mpmath.libmp.NoConvergence):
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
        raise self._no_digits(x)

    def _no_digits(self, x: float) -> UserError:
        return UserError(
            f"no digits to be had at x = {x!r}; it is not a function of x there", "task_options.function", self.shown
        )

    def exact(self, x: float) -> Any:
        """The value at x to 90 bits: a ball of Arb, or an mpf if the function is not rigorous; NaN where there is none."""
        if x not in self._values:
            if self.enclosure == RIGOROUS:
                self._values[x] = ball = self._ball(x, _is_accurate)
                if ball.is_finite() and not _is_accurate(ball):
                    raise self._no_digits(x)
            else:
                self._values[x] = self._by_mpmath(x)
        return self._values[x]

    def values(self, x: NDArray[Any]) -> NDArray[np.float64]:
        """The float64 nearest to each value, of odd last bit if it is not exact: so rounding it again gives the nearest float of
        any shorter format, and it is on the value's side of every shorter number. Values below LEAST are 0 and those above
        LARGEST are that. A value that no precision tells from a shorter number is just below it in size, where the ulp is smaller
        and infinity wrong, but 2^-126 itself, where a zero is wrong.

        Raises:
            UserError: the value has no digits somewhere.
        """
        odd = self._odd if self.enclosure == RIGOROUS else lambda number: _odd_mpf(self.exact(number))
        return np.array([odd(number) for number in np.asarray(x, np.float64).tolist()])

    def _odd(self, x: float) -> float:
        from flint import arb

        nearest = math.nan

        def is_decided(ball: Any) -> bool:
            nonlocal nearest
            if abs(ball) < LEAST:
                nearest = 0.0
                return True
            if abs(ball) > LARGEST:
                nearest = math.copysign(LARGEST, float(ball))
                return True
            nearest = float(ball)
            rest = ball - arb(nearest)
            if rest == 0:
                return True
            if not (rest > 0 or rest < 0):
                return False
            neighbour = math.nextafter(nearest, math.inf if rest > 0 else -math.inf)
            is_between = bool(ball < neighbour if rest > 0 else ball > neighbour)
            if not is_between or not np.float64(nearest).view(np.uint64) & np.uint64(1):
                nearest = neighbour
            return is_between

        ball = self._ball(x, is_decided)
        if not ball.is_finite():
            return math.nan
        if not (is_decided(ball) or _is_accurate(ball)):
            raise self._no_digits(x)
        if not is_decided(ball) and abs(nearest) != FLUSHED and not np.float64(nearest).view(np.uint64) & np.uint64(1):
            nearest = math.nextafter(nearest, 0.0)
        return nearest


def _is_accurate(ball: Any) -> bool:
    return bool(ball.rel_accuracy_bits() >= -_AGREEMENT or abs(ball) < LEAST)


def shortened(text: str) -> str:
    """The first characters of a text, for messages."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def is_code(text: str) -> bool:
    """Return whether a function's text is a `module:function`, which is imported and called."""
    return _OF_MODULE.fullmatch(text) is not None


def _odd_mpf(value: Any) -> float:
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
