"""Sums as equal products: squares, products of two sums, and quadratics by their roots or with a square.

Owns how these are found among the terms of a form of `evo.language.algebra`. Knows nothing of texts.
"""

import itertools
import math
from collections.abc import Iterator, Mapping

from evo.language.algebra import Algebra, Factors, Form, scaled

Sums = list[list[Form]]  # whose product a sum may be


def products_of(algebra: Algebra, total: Mapping[Factors, float], near: float) -> Iterator[Form]:
    """Yield products and squares that equal a sum.

    Args:
        total: number of each term.
        near: relative errors of these.
    """
    terms = sorted(((number, factors) for factors, number in total.items()), key=algebra.size)
    for sums in itertools.chain(_squares(algebra, terms), _of_two(algebra, terms), _with_roots(algebra, terms)):
        product = algebra.expanded(algebra.product(terms_of_sum) for terms_of_sum in itertools.product(*sums))
        if product.keys() == total.keys() and all(
            abs(product[factors] - number) <= near * abs(number) for factors, number in total.items()
        ):
            yield algebra.product(map(algebra.sum, sums))
    for low, value, c, b, a in _quadratics(algebra, terms):
        square = algebra.power(algebra.sum([value, (0.5 * b / a, ())]), 2.0)
        yield algebra.product([(1.0, low), algebra.sum([scaled(square, a), (c - 0.25 * b * b / a, ())])])


def _squares(algebra: Algebra, terms: list[Form]) -> Iterator[Sums]:
    """(a + b)**2, (a + b + c)**2"""
    count = {3: 2, 6: 3}.get(len(terms), len(terms) + 1)
    roots = [
        (math.sqrt(number), root) for number, factors in terms if number > 0.0 and (root := _root(algebra, factors)) is not None
    ]
    numbers = {factors: number for number, factors in terms}
    for chosen in itertools.combinations(roots, count):
        signs = (math.copysign(1.0, numbers.get(algebra.product([chosen[0], pair])[1], 1.0)) for pair in chosen)
        yield [[*map(scaled, chosen, signs)]] * 2


def _root(algebra: Algebra, factors: Factors) -> Factors | None:
    """The product whose square this is, whatever its sign."""
    if any(power % 2.0 and algebra.atoms[atom][0] != "exp" for atom, power in factors):
        return None
    is_exp = [algebra.atoms[atom][0] == "exp" for atom, _ in factors]
    halves = (
        (1.0, ((atom, power / 2.0),)) for (atom, power), is_exponential in zip(factors, is_exp, strict=True) if not is_exponential
    )
    exponents = (
        algebra.power((1.0, (pair,)), 0.5) for pair, is_exponential in zip(factors, is_exp, strict=True) if is_exponential
    )
    return algebra.product([*halves, *exponents])[1]


def _of_two(algebra: Algebra, terms: list[Form]) -> Iterator[Sums]:
    """(a + b)*(1 + c/a), of four terms"""
    if len(terms) == 4:
        first, *rest = terms
        for last in rest:
            second, third = (term for term in rest if term is not last)
            yield [[first, second], [(1.0, ()), algebra.product([third, algebra.power(first, -1.0)])]]


def _with_roots(algebra: Algebra, terms: list[Form]) -> Iterator[Sums]:
    """a*(x - 2)*(x - 5), of three terms"""
    for low, value, c, b, a in _quadratics(algebra, terms):
        if b * b > 4.0 * a * c:
            root = -0.5 * (b + math.copysign(math.sqrt(b * b - 4.0 * a * c), b))
            less, more = sorted([root / a, c / root])
            yield [[(abs(a), low)], [value, (-less, ())], [(math.copysign(1.0, a), value[1]), (math.copysign(more, -a), ())]]


def _quadratics(algebra: Algebra, terms: list[Form]) -> Iterator[tuple[Factors, Form, float, float, float]]:
    """Yield f, x, c, b and a of f*(c + b*x + a*x**2)."""
    for (c, low), (b, middle), (a, high) in itertools.permutations(terms) if len(terms) == 3 else ():
        value, over = (algebra.product([(1.0, factors), algebra.power((1.0, low), -1.0)]) for factors in (middle, high))
        if over == algebra.power(value, 2.0) and algebra.size(value) < algebra.size(over):
            yield low, value, c, b, a
