"""Laws of motion as sums of terms.

Owns their form, how formulas become sums, and how sums are written and computed. Knows nothing of data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement, count, permutations
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evo.language.dag import Dag
from evo.language.simple_numbers import MAX_DENOMINATOR
from evo.native.stack_ptx import NodeKind

# A factor: the number of a column, or a function and the sum that it is of; `sum` is the sum itself, whose first number is 1.
Factor: TypeAlias = Any
Term: TypeAlias = tuple[tuple[Factor, float], ...]  # factors and their powers, sorted
Law: TypeAlias = tuple[tuple[float, Term], ...]  # numbers and the terms that they multiply

MAX_TERMS = 24  # of a formula that is multiplied out
NEAR_POWER = 0.05
FUNCTIONS = ("sin", "cos", "tan", "exp", "exp2", "log", "log2", "tanh", "abs")


class NoLaw(Exception):
    """A formula is not a sum of terms that this module knows."""


def polynomial_terms(num_columns: int, degree: int) -> list[Term]:
    """All products of up to `degree` columns, the constant first."""
    return [
        tuple((column, float(columns.count(column))) for column in sorted(set(columns)))
        for count in range(degree + 1)
        for columns in combinations_with_replacement(range(num_columns), count)
    ]


def law_of(formula: Dag, names: Sequence[str]) -> Law:
    """The sum that a formula of real numbers is. names: of the columns.

    Raises:
        NoLaw: it has functions of two arguments, choices, or too many terms.
    """
    laws: list[Law] = []
    for node in formula.nodes:
        if node.kind == NodeKind.INPUT:
            laws.append(((1.0, ((names.index(node.name), 1.0),)),))
        elif node.kind == NodeKind.CONSTANT:
            laws.append(((node.number, ()),))
        elif node.form in _RULES:
            laws.append(_RULES[node.form](*(laws[operand] for operand in node.operands)))
        elif node.form == "exp(a)":
            laws.append(_exp(laws[node.operands[0]]))
        elif node.form.endswith("(a)") and (name := node.form.removesuffix("(a)")) in FUNCTIONS:
            laws.append(((1.0, (((name, laws[node.operands[0]]), 1.0),)),))
        else:
            raise NoLaw(node.form)
    [result] = formula.results
    return () if result is None else laws[result]


def _plus(*laws: Law) -> Law:
    total: dict[Term, float] = {}
    for law in laws:
        for number, term in law:
            total[term] = total.get(term, 0.0) + number
    if len(total) > MAX_TERMS:
        raise NoLaw("too many terms")
    return tuple(sorted(((number, term) for term, number in total.items() if number), key=_order))


def _order(part: tuple[float, Term]) -> tuple[float, str]:
    return sum(abs(power) for _, power in part[1]), repr(part[1])


def _times(left: Law, right: Law) -> Law:
    return _plus(*(((a * b, product_of(s, t)),) for a, s in left for b, t in right))


def divided_by(law: Law) -> Term:
    """1/(1 + law)."""
    return ((("sum", ((1.0, ()), *law)), -1.0),)


def saturating(law: Law) -> Iterator[Law]:
    """Yield shorter laws that have y/(1 + a*x) in place of y and y*x/(1 + a*x), whose numbers may be redundant."""
    for (number, term), (longer_number, longer) in permutations(law, 2):
        rest = dict(product_of(longer, tuple((factor, -power) for factor, power in term)))
        divisor = next((factor for factor, power in rest.items() if isinstance(factor, tuple) and power == -1.0), None)
        if divisor is None or divisor[0] != "sum" or len(divisor[1]) != 2:
            continue
        if product_of(tuple(rest.items())) == product_of(((divisor, -1.0),), divisor[1][1][1]):
            kept = [part for part in law if part not in ((number, term), (longer_number, longer))]
            yield (*kept, (number, product_of(term, ((divisor, -1.0),))))


def with_simple_powers(law: Law) -> Law:
    """The law with multiples of a half, 0 too, in place of powers that are near."""

    def simple(factor: Factor, power: float) -> Term:
        near = round(2.0 * power) / 2.0
        inner = (factor[0], with_simple_powers(factor[1])) if isinstance(factor, tuple) else factor
        return ((inner, near if abs(power - near) < NEAR_POWER else power),)

    return tuple((number, product_of(*(simple(*pair) for pair in term))) for number, term in law)


def product_of(*terms: Term) -> Term:
    """The term that they are together."""
    powers: dict[Factor, float] = {}
    for term in terms:
        for factor, power in term:
            powers[factor] = powers.get(factor, 0.0) + power
    return tuple(sorted(((factor, power) for factor, power in powers.items() if power), key=repr))


def _power(law: Law, power: float) -> Law:
    if len(law) == 1:
        [(number, term)] = law
        if power != int(power) and any(exponent % 2 == 0 and exponent * power % 2 for _, exponent in term):
            raise NoLaw("an absolute value")
        value = float(np.float64(number) ** power) if number > 0 or power == int(power) else np.nan
        if not np.isfinite(value):
            raise NoLaw("no real number")
        return ((value, tuple((factor, exponent * power) for factor, exponent in term)),)
    if power == int(power) and 1 <= power <= 3:
        return law if power == 1 else _times(law, _power(law, power - 1))
    if not law:
        raise NoLaw("a power of 0")
    first = law[0][0]
    if first < 0 and power != int(power):
        raise NoLaw("no real number")
    normalised = tuple((number / first, term) for number, term in law)
    return (
        (float(np.float64(abs(first)) ** power) * (-1.0 if first < 0 and power % 2 else 1.0), ((("sum", normalised), power),)),
    )


def _exp(law: Law) -> Law:
    """A law with powers in place of multiples of logarithms."""
    result, rest = _ONE, []
    for number, term in law:
        match term:
            case ((("log", inner), 1.0),):
                result = _times(result, _power(inner, number))
            case _:
                rest.append((number, term))
    return _times(result, ((1.0, ((("exp", tuple(rest)), 1.0),)),)) if rest else result


def _raised(law: Law, power: Law) -> Law:
    if len(power) != 1 or power[0][1]:
        raise NoLaw("an exponent that is not a number")
    return _power(law, power[0][0])


_RULES: dict[str, Callable[..., Law]] = {
    "a + b": _plus,
    "a - b": lambda a, b: _plus(a, _times(_MINUS, b)),
    "-a": lambda a: _times(_MINUS, a),
    "a*b": _times,
    "a/b": lambda a, b: _times(a, _power(b, -1.0)),
    "1/a": lambda a: _times(_ONE, _power(a, -1.0)),
    "sqrt(a)": lambda a: _power(a, 0.5),
    "1/sqrt(a)": lambda a: _times(_ONE, _power(_power(a, 0.5), -1.0)),
    "pow(a, b)": _raised,
}
_ONE: Law = ((1.0, ()),)
_MINUS: Law = ((-1.0, ()),)


def numbers_of(law: Law) -> list[float]:
    """The numbers of a law that data decide, in the order in which it is written."""
    return [value for number, term in law for value in (number, *inner_numbers(term))]


def inner_numbers(term: Term) -> list[float]:
    """Numbers within functions and powers of a term."""
    numbers = []
    for factor, _ in term:
        if isinstance(factor, tuple):
            numbers += numbers_of(factor[1])[factor[0] == "sum" :]
    return numbers


def with_numbers(law: Law, numbers: Sequence[float]) -> Law:
    """The law with other numbers."""
    left = iter(numbers)

    def term_of(term: Term) -> Term:
        return tuple((factor_of(factor), power) for factor, power in term)

    def factor_of(factor: Factor) -> Factor:
        return (factor[0], law_with(factor[1], factor[0] == "sum")) if isinstance(factor, tuple) else factor

    def law_with(law: Law, is_first_fixed: bool = False) -> Law:
        parts = []
        for index, (number, term) in enumerate(law):
            value = number if is_first_fixed and index == 0 else float(next(left))
            parts.append((value, term_of(term)))
        return tuple(parts)

    return law_with(law)


def laws_with_numbers(laws: Sequence[Law], numbers: Sequence[float]) -> tuple[Law, ...]:
    """The same of several laws, one after the other."""
    ends = np.cumsum([0, *(len(numbers_of(law)) for law in laws)]).tolist()
    return tuple(with_numbers(law, numbers[first:end]) for law, first, end in zip(laws, ends[:-1], ends[1:], strict=True))


def written(law: Law, names: Sequence[str], number: Callable[[float], str], function: Callable[[str], str] = str) -> str:
    """The law as text that Python reads.

    Args:
        number: writes a number, in the order of `numbers_of`.
        function: writes the name of a function.
    """
    parts = []
    for value, term in law:
        text = number(value)
        factors = [(power, _factor_text(factor, abs(power), names, number, function)) for factor, power in term]
        above, below = ([text for power, text in factors if (power > 0) == is_above] for is_above in (True, False))
        text = text[:-1] + "*".join(above) if above and text in ("1", "-1") else "*".join([text, *above])
        parts.append("/".join([text, *below]))
    return " + ".join(parts).replace("+ -", "- ") or "0"


def _factor_text(
    factor: Factor, power: float, names: Sequence[str], number: Callable[[float], str], function: Callable[[str], str]
) -> str:
    if not isinstance(factor, tuple):
        text = names[factor]
    elif factor[0] == "sum":
        fixed = [True]

        def rest(value: float) -> str:
            return "1" if fixed and fixed.pop() else number(value)

        text = f"({written(factor[1], names, rest, function)})"
    else:
        text = f"{function(factor[0])}({written(factor[1], names, number, function)})"
    return text if power == 1 else f"{text}**{repr(float(power)).removesuffix('.0')}"


def sympy_of(law: Law, symbols: Sequence[Any], precision: int | None) -> Any:
    """The law as an expression of SymPy. precision: significant digits of numbers that are not simple; None: all."""
    import sympy

    functions = {"exp2": lambda x: 2**x, "log2": lambda x: sympy.log(x, 2), "abs": sympy.Abs}

    def number(value: float) -> Any:
        fraction = Fraction(value).limit_denominator(MAX_DENOMINATOR)
        return sympy.Rational(fraction) if float(fraction) == value else sympy.Float(value, precision)

    def base(factor: Factor) -> Any:
        if not isinstance(factor, tuple):
            return symbols[factor]
        inner, name = sympy_of(factor[1], symbols, precision), factor[0]
        return inner if name == "sum" else (functions[name] if name in functions else getattr(sympy, name))(inner)

    terms = [(value, [base(factor) ** number(power) for factor, power in term]) for value, term in law]
    return sympy.Add(*(sympy.Mul(number(value), *factors) for value, factors in terms))


@lru_cache(maxsize=4096)
def compiled(law: Law) -> Callable[..., Any]:
    """A function of columns and numbers: `(num_columns, ...)` and `(num_numbers, ...)` arrays that go together."""
    return _compiled(law, count(), is_first_fixed=False)


def _compiled(law: Law, indices: Iterator[int], *, is_first_fixed: bool) -> Callable[..., Any]:
    """places: of numbers, in the order of `numbers_of`."""
    parts = []
    for index, (_, term) in enumerate(law):
        first = None if is_first_fixed and index == 0 else next(indices)
        factors = [(power > 0.0, _compiled_factor(factor, abs(power), indices)) for factor, power in term]
        parts.append((first, sorted(factors, key=lambda factor: not factor[0])))

    def run(x: Any, p: Any) -> Any:
        total: Any = None
        for first, factors in parts:
            value = 1.0 if first is None else p[first]
            for is_above, factor in factors:
                value = value * factor(x, p) if is_above else value / factor(x, p)
            total = value if total is None else total + value
        return 0.0 if total is None else total

    return run


def _compiled_factor(factor: Factor, power: float, indices: Iterator[int]) -> Callable[..., Any]:
    exponent = int(power) if power.is_integer() else power
    inner = _compiled(factor[1], indices, is_first_fixed=factor[0] == "sum") if isinstance(factor, tuple) else None
    function = getattr(np, factor[0]) if inner and factor[0] != "sum" else None

    def run(x: Any, p: Any) -> Any:
        base = inner(x, p) if inner else x[factor]
        base = function(base) if function else base
        return base if exponent == 1 else base**exponent

    return run


def evaluate(law: Law, columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """The law's values, of `(num_columns, num_points)` columns; not finite where it is undefined."""
    with np.errstate(all="ignore"):
        values = compiled(law)(columns, numbers_of(law))
    return np.broadcast_to(np.asarray(values, np.float64), columns.shape[1:])
