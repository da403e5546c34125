"""Units: what dimensions columns have, and which formulas are consistent with them.

Owns the text of units, the dimensions of formulas, and products of powers of the inputs with a given dimension (Buckingham 1914).
Knows nothing of searches. Only dimensions count: a formula of km and s is one of m and s with another constant.
"""

from __future__ import annotations

import ast
import math
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations, islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from evo.errors import UserError, did_you_mean, located
from evo.language.dag import Dag, dag_of
from evo.language.parsed import closure
from evo.language.program import Language
from evo.native.stack_ptx import NodeKind

if TYPE_CHECKING:
    from evo.search.archives.elites import Elites

Dimension = tuple[Fraction, ...]  # exponents of the base units
Powers = tuple[Fraction, ...]  # exponents of the inputs

BASE_UNITS = ("m", "kg", "s", "A", "K", "mol", "cd")
NONE: Dimension = (Fraction(0),) * len(BASE_UNITS)
# Names of each unit, and its definition. Names count before prefixes: `min` is a minute.
_UNITS = {
    "m meter metre": "m",
    "g gram t tonne": "kg",
    "s second min minute h hour d day a yr year": "s",
    "A ampere": "A",
    "K kelvin degC": "K",
    "mol mole": "mol",
    "cd candela lm lumen": "cd",
    "dimensionless rad radian sr steradian deg degree percent": "1",
    "Hz hertz Bq becquerel": "1/s",
    "N newton": "kg*m/s**2",
    "Pa pascal bar atm": "kg/m/s**2",
    "J joule eV cal": "kg*m**2/s**2",
    "W watt": "kg*m**2/s**3",
    "C coulomb": "A*s",
    "V volt": "kg*m**2/s**3/A",
    "F farad": "A**2*s**4/kg/m**2",
    "ohm Ω": "kg*m**2/s**3/A**2",
    "S siemens": "A**2*s**3/kg/m**2",
    "Wb weber": "kg*m**2/s**2/A",
    "T tesla": "kg/s**2/A",
    "H henry": "kg*m**2/s**2/A**2",
    "lx lux": "cd/m**2",
    "Gy gray Sv sievert": "m**2/s**2",
    "kat katal": "mol/s",
    "L l liter litre": "m**3",
    "M molar": "mol/m**3",
}
_KNOWN = {name: definition for names, definition in _UNITS.items() for name in names.split()}
_PREFIXES = [
    *"da d c m u μ n p f a z y h k M G T P E Z Y".split(),
    *"deca deci centi milli micro nano pico femto atto hecto kilo mega giga tera peta exa".split(),
]
LARGEST_DENOMINATOR = 12  # of an exponent
NEAR = 1e-4  # of two exponents in programs, which are rounded to float32
MAX_BASES = 4000  # sets of inputs that groups are made of


@cache
def dimension_of(unit: str) -> Dimension:
    """The dimension of a unit such as `kg*m/s^2`, `mm s**-1` or `1`.

    Raises:
        UserError: it is not a product of powers of known units.
    """
    text = re.sub(r"(?<=[\w)])\s+(?=[^\W\d]|\()", "*", unit.strip().replace("^", "**").replace("·", "*")) or "1"
    try:
        return _dimension(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError, TypeError):
        raise UserError(f"{unit!r} is not a unit; write products and powers such as 'kg*m/s**2', or '1'") from None


def _dimension(node: ast.expr) -> Dimension:
    if isinstance(node, ast.Name):
        return _named(node.id)
    if isinstance(node, ast.Constant) and _number(node) > 0:
        return NONE
    if not isinstance(node, ast.BinOp):
        raise ValueError
    left = _dimension(node.left)
    if isinstance(node.op, ast.Pow):
        exponent = _number(node.right)
        return tuple(exponent * power for power in left)
    sign = {ast.Mult: 1, ast.Div: -1}[type(node.op)] if isinstance(node.op, ast.Mult | ast.Div) else None
    if sign is None:
        raise ValueError
    return tuple(a + sign * b for a, b in zip(left, _dimension(node.right), strict=True))


def _number(node: ast.expr) -> Fraction:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_number(node.operand)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return _number(node.left) / _number(node.right)
    if not isinstance(node, ast.Constant) or isinstance(node.value, bool):
        raise ValueError
    return Fraction(str(node.value))


def _named(name: str) -> Dimension:
    if name in BASE_UNITS:
        return tuple(Fraction(name == base) for base in BASE_UNITS)
    for prefix in ("", *_PREFIXES):
        text = name.removeprefix(prefix)
        for candidate in (text, text.removesuffix("s")) if name.startswith(prefix) else ():
            if candidate in _KNOWN and (candidate == text or len(candidate) > 2):
                return dimension_of(_KNOWN[candidate])
    raise UserError(f"unknown unit {name!r}, {did_you_mean(name, _KNOWN)}")


def unit_text(dimension: Dimension) -> str:
    """A dimension as a product of base units."""
    powers = [(name, power) for name, power in zip(BASE_UNITS, dimension, strict=True) if power]
    return "*".join(name if power == 1 else f"{name}**({power})" for name, power in powers) or "1"


class _InconsistentError(Exception):
    """A formula adds or compares different dimensions, or applies a function to a quantity with a dimension."""


@dataclass(frozen=True)
class _Quantity:
    """Known dimensions of a value.

    powers: its dimension; None: any, since a constant of any unit is a factor of it. is_log: it is the binary logarithm of a
    value of this dimension. number: its value, if it is a constant.
    """

    powers: NDArray[np.float64] | None
    is_log: bool = False
    number: float | None = None

    @property
    def has_none(self) -> bool:
        return self.powers is None or bool((np.abs(self.powers) < NEAR).all())

    def plain(self) -> _Quantity:
        """Raises _InconsistentError if it is the logarithm of a quantity with a dimension."""
        return _none(self) if self.is_log else self

    def _sum(self, addend: _Quantity, sign: float) -> _Quantity:
        if self.is_log or addend.is_log:
            left, right = (
                quantity.powers if quantity.is_log or quantity.powers is None else _none(quantity).powers
                for quantity in (self, addend)
            )
            # log(a) + c is log(a*exp(c)), with c of any unit
            return _Quantity(None if left is None or right is None else left + sign * right, is_log=True)
        if self.powers is None or addend.powers is None:
            return _Quantity(addend.powers if self.powers is None else self.powers)
        if (np.abs(self.powers - addend.powers) >= NEAR).any():
            raise _InconsistentError
        return _Quantity(self.powers)

    def __add__(self, other: _Quantity) -> _Quantity:
        return self._sum(other, 1.0)

    def __sub__(self, other: _Quantity) -> _Quantity:
        return self._sum(other, -1.0)

    def __neg__(self) -> _Quantity:
        return _Quantity(-self.powers if self.is_log and self.powers is not None else self.powers, self.is_log)

    def __mul__(self, other: _Quantity) -> _Quantity:
        for first, number in ((self, other.number), (other, self.number)):
            if first.is_log and number is not None:
                return _Quantity(None if first.powers is None else number * first.powers, is_log=True)
        first, second = self.plain(), other.plain()
        return _Quantity(None if first.powers is None or second.powers is None else first.powers + second.powers)

    def __pow__(self, exponent: float) -> _Quantity:
        base = self.plain()
        return _Quantity(None if base.powers is None else exponent * base.powers)

    def __truediv__(self, other: _Quantity) -> _Quantity:
        if self.is_log and other.number:
            return self * _Quantity(None, number=1.0 / other.number)
        return self * other**-1.0

    def __rtruediv__(self, numerator: float) -> _Quantity:
        return self**-1.0

    def __lt__(self, other: _Quantity) -> _Quantity:
        return _none(_same(self, other) / other)


def _none(*values: _Quantity) -> _Quantity:
    """The result of a function from and to numbers without a dimension."""
    if not all(value.has_none for value in values):
        raise _InconsistentError
    return _Quantity(np.zeros(len(BASE_UNITS)))


def _same(first: _Quantity, second: _Quantity) -> _Quantity:
    return first.plain() + second.plain()


_FUNCTIONS: dict[str, Callable[..., _Quantity]] = {
    "abs": lambda a: a,
    "copysign": lambda a, _: a,
    "cos": _none,
    "exp2": lambda a: _Quantity(a.powers) if a.is_log else _none(a),
    "floor": _none,
    "fma": lambda a, b, c: a * b + c,
    "log2": lambda a: _Quantity(a.plain().powers, is_log=True),
    "max": _same,
    "min": _same,
    "round": _none,
    "select": lambda _, a, b: _same(a, b),
    "sin": _none,
    "sqrt": lambda a: a**0.5,
    "tanh": _none,
}


@cache
def _compiled(infix: str) -> Callable[..., _Quantity]:
    function = closure(infix, _FUNCTIONS)
    return lambda *operands: function(dict(zip("abc", operands, strict=False)))


class Units:
    """The dimensions of a table's columns.

    Args:
        inputs: unit of each input, by name.
        target: unit of the target; None: any.
        only_dimensionless: constants of formulas have no unit, as numbers in physics; else each has whichever makes a formula
            consistent.

    Raises:
        UserError: a unit is unknown, or no formula of the inputs has that of the target.
    """

    def __init__(self, inputs: Mapping[str, str], target: Any = None, *, only_dimensionless: bool = False):
        self.inputs = {name: _read("units", name, unit) for name, unit in inputs.items()}
        self.target = None if target is None else _read("y_units", "y", target)
        self.only_dimensionless = only_dimensionless
        self._matrix = np.array([[float(power) for power in row] for row in self.inputs.values()]).reshape(-1, len(BASE_UNITS)).T
        self._rank = int(np.linalg.matrix_rank(self._matrix)) if self.inputs else 0
        if only_dimensionless and self.target and not self.products():
            raise UserError(
                f"y_units: no product of powers of the inputs has the unit {unit_text(self.target)}; add the column of a "
                "constant that is missing, or set dimensionless_constants_only=False"
            )

    @property
    def forbids_offset(self) -> bool:
        """Return whether no constant may be added to the target."""
        return self.only_dimensionless and self.target not in (None, NONE)

    def is_consistent(self, program: Dag) -> bool:
        """Return whether offset + scale * program can have the dimension of the target, and adds nothing to what has another."""
        constant = None if not self.only_dimensionless else np.zeros(len(BASE_UNITS))
        values: list[_Quantity] = []
        try:
            for value in program.nodes:
                if value.kind == NodeKind.INPUT:
                    values.append(_Quantity(np.array(self.inputs[value.name], np.float64)))
                elif value.kind == NodeKind.CONSTANT:
                    values.append(_Quantity(constant, number=float(np.uint32(value.payload).view(np.float32))))
                else:
                    values.append(_compiled(value.semantics.infix)(*(values[operand] for operand in value.operands)))
            [result] = program.results
            if result is not None and self.only_dimensionless:
                whole = values[result].plain()
                _ = whole if self.target is None else whole + _Quantity(np.array(self.target, np.float64))
        except _InconsistentError:
            return False
        return True

    def kept(self, elites: Elites, language: Language) -> Elites:
        """Elites with right units, or all with a warning if there are none."""
        rows = np.array([self.is_consistent(dag_of(language, words)) for words in elites.solution], np.bool_)
        if len(rows) and not rows.any():
            warnings.warn("no formula that was found is consistent with the units", ConvergenceWarning, stacklevel=3)
        return elites.only(rows) if rows.any() else elites

    def products(self) -> list[Powers]:
        """Products of powers of the inputs that have the target's dimension, those of the fewest and smallest powers first."""
        wanted = np.array(self.target or NONE, np.float64)
        if not wanted.any():
            return [(Fraction(0),) * len(self.inputs)]
        return self._sorted({powers for basis in self._bases() if (powers := self._powers(basis, wanted))})

    def groups(self) -> list[Powers]:
        """Products of powers of the inputs without a dimension, of which all others are products of powers, simple ones first."""
        groups: set[Powers] = set()
        for basis in self._bases():
            for index in set(range(len(self.inputs))) - set(basis):
                powers = self._powers(basis, -self._matrix[:, index])
                if powers:
                    whole = [Fraction(i == index) + power for i, power in enumerate(powers)]
                    factor = math.lcm(*(power.denominator for power in whole))
                    scaled = [power * factor for power in whole]
                    divisor = math.gcd(*(int(power) for power in scaled))
                    sign = 1 if sum(power > 0 for power in scaled) * 2 >= sum(power != 0 for power in scaled) else -1
                    groups.add(tuple(sign * power / divisor for power in scaled))
        chosen: list[Powers] = []
        for powers in self._sorted(groups):
            if np.linalg.matrix_rank(np.array([*chosen, powers], np.float64)) > len(chosen):
                chosen.append(powers)
        return chosen

    def _bases(self) -> Any:
        """Sets of as many inputs as there are independent dimensions, whose dimensions are."""
        sets = islice(combinations(range(len(self.inputs)), self._rank), MAX_BASES)
        return (basis for basis in map(list, sets) if np.linalg.matrix_rank(self._matrix[:, basis]) == self._rank)

    def _powers(self, basis: list[int], wanted: NDArray[np.float64]) -> Powers | None:
        """Powers of the inputs of a basis with a dimension; None: there are none."""
        solved = np.linalg.lstsq(self._matrix[:, basis], wanted, rcond=None)[0]
        powers = [Fraction(0)] * len(self.inputs)
        for index, power in zip(basis, solved.tolist(), strict=True):
            powers[index] = Fraction(power).limit_denominator(LARGEST_DENOMINATOR)
        left = self._matrix @ np.array(powers, np.float64) - wanted
        return tuple(powers) if np.abs(left).max() < NEAR else None

    @staticmethod
    def _sorted(products: set[Powers]) -> list[Powers]:
        def size(powers: Powers) -> tuple[Any, ...]:
            return sum(abs(power) + (power != 0) + 2 * (power.denominator > 1) for power in powers), [-power for power in powers]

        return sorted(products, key=size)


def _read(parameter: str, name: str, unit: Any) -> Dimension:
    if not isinstance(unit, str):
        raise UserError(f"{name} has {unit!r}, must be a text such as 'm/s'", parameter)
    with located(parameter, name):
        return dimension_of(unit)
