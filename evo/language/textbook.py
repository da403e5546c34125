"""Formulas of real numbers as textbooks write them: `sqrt(x0/(x1*x2))` for `exp2(-0.5*log2(x1*x2/x0))`.

Owns how forms of `evo.language.algebra` are written: signs, order, bases of powers and logarithms, quotients and roots.
"""

import math
from collections.abc import Iterable, Iterator
from functools import cache, partial, reduce
from types import MappingProxyType
from typing import Any, cast

from evo.instructions import shipped_instruction_set
from evo.language.algebra import LN_2, LN_10, NEAR, Algebra, Factors, Form, Ranges, cost, plain, scaled
from evo.language.dag import REAL, Builder, Dag, function_node
from evo.language.polynomials import products_of
from evo.language.usual_names import SYMPY, with_usual_names

MAX_NODES = 150  # of a formula; a longer one gets usual names alone
SMALL = 3  # leaves of a value that is written again where it is used again
LARGEST_EXPONENT = 300.0  # of e, in a factor
DIVISORS = (3.0, 6.0, 7.0, 9.0, 11.0, 12.0)
ROUNDING = 8 * 2.0**-52  # of a product of a few rounded numbers
MOST_DIGITS = 6  # of a number that is not written in another way
BOOK = "textbook"  # name of this notation


def textbook(formula: Dag) -> Dag:
    """The formula as textbooks write it; one that is not of real numbers alone, or long, has usual names."""
    return formula if any(node.name == BOOK for node in formula.nodes) else written(formula)


def written(formula: Dag, ranges: Ranges = MappingProxyType({}), near: float = NEAR) -> Dag:
    """The formula written anew.

    Args:
        ranges: of inputs, as `Algebra` takes them.
        near: relative errors of numbers, beyond rounding.
    """
    if len(formula.nodes) > MAX_NODES or any(node.type != REAL and node.type != "pred" for node in formula.nodes):
        return with_usual_names(formula)
    algebra = Algebra(formula, ranges)
    try:
        forms = algebra.forms()
        writer = _Writer(algebra, near)
        results = tuple(None if result is None else writer.form(forms[result]) for result in formula.results)
    except (OverflowError, ZeroDivisionError):  # a number that no float64 holds
        return with_usual_names(formula)
    return Dag(tuple(writer.builder.nodes), results, formula.inputs, formula.outputs).trimmed()


class _Writer:
    """Nodes of forms. A large atom is written once; a small one where it is used."""

    def __init__(self, algebra: Algebra, near: float):
        self.builder = Builder()
        self._plain, self._cost = partial(plain, near=near), partial(cost, near=near)
        self._rounding = max(near, ROUNDING)
        self._algebra, self._atoms = algebra, algebra.atoms
        self._written: dict[int, int] = {}

    def form(self, form: Form) -> int:
        """The node of a form."""
        terms = self._algebra.terms(form)
        if len(terms) > 1 and abs(form[0]) == 1.0:
            return self._atom(form[1][0][0]) if form[0] > 0.0 else self._sum(terms)
        return self._product(form)

    def _apply(self, name: str, *operands: int) -> int:
        return self.builder.put(function_node(name, operands, name=BOOK, sympy=_sympy_of(name)))

    def _number(self, number: float) -> int:
        return self.builder.real(self._plain(number))

    def _sum(self, terms: Iterable[Form], *, is_angle: bool = False) -> int:
        """Positive terms first; a number is the first of these, except in an angle. Large common factors come before the sum."""
        terms = tuple(inner for term in terms for inner in self._spread(term))
        shared = set(terms[0][1]).intersection(*(factors for _, factors in terms[1:]))
        shared = {(a, p) for a, p in shared if p < 0.0 or self._algebra.size((1.0, ((a, p),))) > 1}
        if shared:
            rest = ((n, tuple(pair for pair in factors if pair not in shared)) for n, factors in terms)
            return self._product(self._algebra.product([(1.0, tuple(sorted(shared))), self._algebra.sum(rest)]))
        if not is_angle and (product := self._factored(terms)):
            return self._product(product)
        terms = self._gathered(terms)
        first, *more = sorted(terms, key=partial(self._term_rank, is_angle=is_angle))
        index = self._product(first)
        for number, factors in more:
            index = self._apply("a - b" if number < 0.0 else "a + b", index, self._product((abs(number), factors)))
        return index

    def _factored(self, terms: tuple[Form, ...]) -> Form | None:
        """A product that a sum is, if its numbers are shorter: (1 + 0.7*a)**2, (1 + a/2)*(3 + b), n*(120 - n)*(n - 15)/4500."""
        total = self._algebra.expanded(terms)
        for product in products_of(self._algebra, total, self._rounding):
            number, *inside = self._numbers(product)
            is_short = all(self._number_cost(n) <= MOST_DIGITS for n in inside)
            if is_short and self._total_cost([number, *inside]) < self._total_cost(total.values()):
                return product
        return None

    def _with_products(self, form: Form) -> Form:
        """A product, with its sums as products where these are shorter."""
        for atom, power in form[1]:
            if power.is_integer() and self._atoms[atom][0] == "sum" and (product := self._factored(self._atoms[atom][1])):
                rest = form[0], tuple(pair for pair in form[1] if pair[0] != atom)
                return self._with_products(self._algebra.product([rest, self._algebra.power(product, power)]))
        return form

    def _numbers(self, form: Form) -> Iterator[float]:
        """Numbers of a form and of the sums in it."""
        yield form[0]
        for atom, _ in form[1]:
            for term in self._atoms[atom][1] if self._atoms[atom][0] == "sum" else ():
                yield from self._numbers(term)

    def _gathered(self, terms: tuple[Form, ...]) -> tuple[Form, ...]:
        """Terms with those together that have a factor and the same number, as x*(a - b) + c for x*a - x*b + c."""
        for factor in {pair: None for _, factors in terms for pair in factors}:
            group = [term for term in terms if factor in term[1] and len(term[1]) > 1]
            if 1 < len(group) < len(terms) and len({abs(number) for number, _ in group}) == 1:
                rest = self._algebra.sum((n, tuple(pair for pair in factors if pair != factor)) for n, factors in group)
                return self._gathered(
                    (*(term for term in terms if term not in group), self._algebra.product([(1.0, (factor,)), rest]))
                )
        return terms

    def _total_cost(self, numbers: Iterable[float]) -> float:
        return sum(min(self._number_cost(number), self._number_cost(1.0 / number)) for number in numbers)

    def _spread(self, term: Form) -> tuple[Form, ...]:
        """Terms of a sum that takes up its number, else the term itself."""
        parts = self._algebra.terms((1.0, term[1]))
        return self._algebra.terms(term) if len(parts) > 1 and self._is_shorter_inside(term[0], parts) else (term,)

    def _term_rank(self, term: Form, *, is_angle: bool) -> tuple[Any, ...]:
        number, factors = term
        return number < 0.0, bool(factors) == (number > 0.0 and not is_angle), self._algebra.rank(term)

    def _atom(self, atom: int) -> int:
        if atom in self._written:
            return self._written[atom]
        kind, *parts = self._atoms[atom]
        if kind == "node":
            index = self._copy(parts[0])
        elif kind == "sum":
            index = self._sum(parts[0])
        elif kind == "exp":
            index = self._exponential(parts[0])
        elif kind == "log":
            index = self._apply("log(a)", self.form(parts[0]))
        elif parts[0] in ("sin(a)", "cos(a)") and len(terms := self._algebra.terms(parts[1])) > 1 and abs(parts[1][0]) == 1.0:
            index = self._apply(parts[0], self._sum(terms, is_angle=True))
        else:
            index = self._apply(parts[0], *map(self.form, parts[1:]))
        if self._algebra.size((1.0, ((atom, 1.0),))) > SMALL:
            self._written[atom] = index
        return index

    def _copy(self, index: int) -> int:
        """Copies a node of the formula unchanged."""
        node = self._algebra.formula.nodes[index]
        atom = self._algebra.atom("node", index)[1][0][0]
        if atom not in self._written:
            operands = tuple(map(self._copy, node.operands))
            self._written[atom] = self.builder.node(node.with_operands(operands))
        return self._written[atom]

    # ---- products ----

    def _factor_rank(self, factor: tuple[int, float]) -> tuple[Any, ...]:
        """Leaves are the first factors, then roots of these."""
        atom, power = factor
        return self._algebra.size((1.0, ((atom, 1.0),))) > 1, not power.is_integer(), self._algebra.rank((1.0, (factor,)))

    def _with_reciprocals(self, factors: Factors) -> Factors:
        """Sums of reciprocals below, of three, of squares, or beside another sum: 1/((n - 1)*(1/a - 1/b)) for
        a*b/((n - 1)*(b - a)).
        """
        sums = [atom for atom, power in factors if power == -1.0 and self._atoms[atom][0] == "sum"]
        for whole in sums:
            terms = self._atoms[whole][1]
            inside = {atom for _, powers in terms for atom, _ in powers}
            taken = {atom: power for atom, power in factors if atom in inside and power > 0.0}
            over = [(n, [(a, dict(powers).get(a, 0.0) - p) for a, p in taken.items()]) for n, powers in terms]
            turned = tuple((n, tuple(sorted((a, p) for a, p in powers if p))) for n, powers in over)
            is_one = all(len(powers) == 1 and powers[0][1] < 0.0 for _, powers in turned)
            is_usual = len(terms) + len(sums) > 3 or any(power < -1.0 for _, powers in turned for _, power in powers)
            if is_one and is_usual and inside <= {*taken}:
                rest = (pair for pair in factors if pair[0] not in taken and pair[0] != whole)
                return (*rest, (self._algebra.atom("sum", turned)[1][0][0], -1.0))
        return factors

    def _product(self, form: Form) -> int:
        number, factors = self._with_products(form)
        factors = self._with_reciprocals(factors)
        factors = tuple(sorted(factors, key=self._factor_rank)) if len(factors) > 1 else factors
        above, below = list[int](), list[int]()
        roots: dict[float, list[tuple[int, float]]] = {}
        logarithms = [pair for pair in factors if self._atoms[pair[0]][0] == "log"]
        for atom, power in factors:
            if not power.is_integer():
                exponent, kind, *parts = _root_of(power), *self._atoms[atom]
                inside = atom
                if kind == "sum" and (scale := self._best_scale(number, power, parts[0])) != 1.0:
                    number *= scale**power
                    [(inside, _)] = self._algebra.atom("sum", tuple(scaled(term, 1.0 / scale) for term in parts[0]))[1]
                roots.setdefault(exponent, []).append((inside, power / exponent))
        for atom, power in factors:
            kind, *parts = self._atoms[atom]
            if not power.is_integer():
                if (under := roots.pop(_root_of(power), None)) is not None:
                    number = self._root(number, _root_of(power), under, above, below)
            elif kind == "exp":
                number, exponent_form = self._folded(number, parts[0])
                above.append(self._exponential(exponent_form))
            else:
                if logarithms == [(atom, 1.0)]:
                    number, base = self._with_logarithm(number, atom)
                elif power < 0.0 and kind == "sum" and (scale := self._best_scale(number, power, parts[0])) != 1.0:
                    number, base = (
                        number * scale**power,
                        self._sum((self._plain(size / scale), inner) for size, inner in parts[0]),
                    )
                elif power == 1.0 and kind == "sum" and self._is_shorter_inside(number, parts[0]):
                    number, base = 1.0, self._sum(scaled(term, number) for term in parts[0])
                elif abs(power) == 1.0 and kind == "sum" and self._is_turned(number, parts[0]):
                    number, base = -number, self._sum(scaled(term, -1.0) for term in parts[0])
                else:
                    base = self._atom(atom)
                (above if power > 0.0 else below).append(self._raised(base, abs(power)))
        return self._quotient(number, above, below)

    def _best_scale(self, number: float, power: float, terms: tuple[Form, ...]) -> float:
        """Factor of a divisor that makes numbers short: 2.1*x/(0.7 + x) for 3*x/(1 + 10*x/7)."""
        has_one = any(abs(size) == 1.0 for size, _ in terms)

        def total(scale: float) -> float:
            price = 0.0 if scale != 1.0 else -MOST_DIGITS if has_one else 2.0
            sizes = ([size / scale] + ([] if power.is_integer() else [scale / size]) for size, _ in terms)
            inside = sum(min(map(self._number_cost, pair)) for pair in sizes)
            return price + self._number_cost(number * scale**power) + inside

        return min((1.0, *(abs(size) for size, _ in terms)), key=total)

    def _is_shorter_inside(self, number: float, terms: tuple[Form, ...]) -> bool:
        """Return whether a sum takes up the number before it: 0.5*x + y for 0.5*(x + 2*y)."""
        inside = sum(self._number_cost(number * size) for size, _ in terms)
        return inside < self._number_cost(number) + sum(self._number_cost(size) for size, _ in terms)

    @staticmethod
    def _is_turned(number: float, terms: tuple[Form, ...]) -> bool:
        """Return whether the signs of a product are turned: 0.8*(x - 2) for -0.8*(2 - x), b - a for -(a - b)."""
        is_whole = number == -1.0 or all(size < 0.0 for size, _ in terms) or all(factors for _, factors in terms)
        return is_whole and number < 0.0 and any(size < 0.0 for size, _ in terms)

    def _raised(self, base: int, power: float) -> int:
        if power == 1.0:
            return base
        for below in DIVISORS:
            if self._cost(power) > 2 * MOST_DIGITS and self._plain(power * below).is_integer():
                return self._apply("pow(a, b)", base, self._apply("a/b", self._number(power * below), self._number(below)))
        return self._apply("pow(a, b)", base, self._number(power))

    def _quotient(self, number: float, above: list[int], below: list[int]) -> int:
        if abs(number - 1.0) < self._rounding:  # a product of rounded numbers
            number = 1.0
        if number and self._cost(number) > 2 * MOST_DIGITS:
            divisor = min((abs(1.0 / number), *DIVISORS), key=lambda d: self._number_cost(number * d) + self._cost(d))
            if self._number_cost(number * divisor) + self._cost(divisor) <= MOST_DIGITS:
                below.insert(0, self._number(divisor))
                number = self._plain(number * divisor)
        if above and number == -1.0:
            above[0] = self._apply("-a", above[0])
        elif number != 1.0 or not (above or below):
            above.insert(0, self._number(number))
        top, bottom = (reduce(partial(self._apply, "a*b"), operands) if operands else None for operands in (above, below))
        if bottom is None or top is None:
            return self._apply("1/a", bottom) if bottom is not None else cast(int, top)
        return self._apply("a/b", top, bottom)

    def _root(
        self, number: float, exponent: float, factors: list[tuple[int, float]], above: list[int], below: list[int]
    ) -> float:
        """Adds a base with a power that is not an integer, and gives the remaining number."""
        if len(factors) == 1 and self._atoms[factors[0][0]][0] != "group" and abs(factors[0][1]) != 1.0:
            [(atom, times)] = factors
            (above if times > 0.0 else below).append(self._raised(self._atom(atom), abs(times) * exponent))
            return number
        sign, powers = 1.0, dict[int, float]()
        for atom, times in factors:
            inner, parts = self._atoms[atom][1] if self._atoms[atom][0] == "group" else (1.0, ((atom, 1.0),))
            sign *= inner
            for part, power in parts:
                powers[part] = powers.get(part, 0.0) + times * power
        is_below = all(power < 0.0 for power in powers.values())
        inside = sign
        taken = abs(number) ** (1.0 / exponent) or 1.0
        is_shorter = self._cost(taken) < self._cost(number)
        if exponent != 0.5:  # (x/9.4)**1.7 for 0.0221657652...*x**1.7
            is_shorter = min(map(self._cost, (taken, 1.0 / taken))) <= MOST_DIGITS and self._cost(number) > 2 * MOST_DIGITS
        if number and is_shorter:
            inside, number = sign * taken, math.copysign(1.0, number)
            is_below = is_below and exponent == 0.5
        form = (1.0 / inside if is_below else inside, tuple(sorted((a, -p if is_below else p) for a, p in powers.items() if p)))
        base = self._product(form)
        root = self._apply("sqrt(a)", base) if exponent == 0.5 else self._raised(base, exponent)
        (below if is_below else above).append(root)
        return number

    def _with_logarithm(self, number: float, atom: int) -> tuple[float, int]:
        """A number and a logarithm to the base that makes the number short."""
        inside = self._atoms[atom][1]
        if number < 0.0 and inside[0] == 1.0 and any(power < 0.0 for _, power in inside[1]):  # -log(a/b) is log(b/a)
            number, inside = -number, self._algebra.power(inside, -1.0)
        choices = {"log(a)": number, "log2(a)": number * LN_2, "log10(a)": number * LN_10}
        name = min(choices, key=lambda choice: self._number_cost(choices[choice]) + (choice != "log(a)"))
        return self._plain(choices[name]), self._apply(name, self.form(inside))

    def _folded(self, number: float, exponent: Form) -> tuple[float, Form]:
        """A number and an exponent. Either takes up the other's number, if that is shorter or nearer to 1."""
        terms = self._algebra.terms(exponent)
        added, left = sum(n for n, factors in terms if not factors), [term for term in terms if term[1]]
        if not number or (abs(number) == 1.0 and not added) or abs(added) > LARGEST_EXPONENT:
            return number, exponent
        moved, choices = number * math.exp(added), [(number, exponent)]
        choices += [(moved, self._algebra.sum(left))] if added else []
        if added and abs(math.log(abs(moved))) < 0.5 * abs(math.log(abs(number))) and abs(added) > 0.5 * math.log(1e20):
            return choices[1]
        choices += [(1.0, self._algebra.sum([*left, (math.log(moved), ())]))] if number > 0.0 else []
        [(size, [(atom, power), *more_factors]), *more] = left
        is_quotient = power == -1.0 and not more_factors and not more and self._atoms[atom][0] == "sum"
        below = self._atoms[atom][1] if is_quotient else ()
        for at_zero in (size / n for n, factors in below if not factors):  # Magnus: 611*exp(17.6*T/(243 + T))
            rest = self._algebra.sum(scaled(term, -at_zero) for term in below if term[1])
            if self._cost(moved * math.exp(at_zero)) < 2 * MOST_DIGITS:
                choices += [(moved * math.exp(at_zero), self._algebra.product([rest, (1.0, ((atom, -1.0),))]))]
        return min(choices, key=lambda choice: self._number_cost(choice[0]) + self._exponent_costs(choice[1])[0][0])

    def _exponent_costs(self, exponent: Form) -> list[tuple[float, float]]:
        """Costs of an exponent's numbers to the bases e, 2 and 10, with the logarithms of these, the least first."""
        terms = self._algebra.terms(exponent)
        inside = self._number_cost(exponent[0]) + sum(self._number_cost(n / exponent[0]) for n, _ in terms)
        bases = ((1.0, 0.0), (LN_2, 2.0), (LN_10, 2.0))
        costs = [(price + sum(self._number_cost(n / base) for n, _ in terms), base) for base, price in bases]
        return sorted([*costs, (inside, 1.0)], key=lambda pair: pair[0])

    def _exponential(self, exponent: Form) -> int:
        """By exp, exp2, or a power of the number whose text is short."""
        number, factors = exponent
        powers = [pair for pair in factors if self._atoms[pair[0]][0] == "log" and pair[1] == 1.0]
        if powers and len(factors) > 1:
            rest = tuple(pair for pair in factors if pair != powers[0])
            return self._apply("pow(a, b)", self.form(self._atoms[powers[0][0]][1]), self._product((number, rest)))
        terms = self._algebra.terms(exponent)
        if len(terms) > 1 and abs(number) == 1.0:
            base = self._exponent_costs(exponent)[0][1]
            if base == LN_2:
                return self._apply("exp2(a)", self._sum(scaled(term, 1.0 / LN_2) for term in terms))
            if base == LN_10:
                return self._apply("pow(a, b)", self._number(10.0), self._sum(scaled(term, 1.0 / LN_10) for term in terms))
            return self._apply("exp(a)", self.form(exponent))
        costs = [min(map(self._number_cost, (value, 1.0 / value))) for value in (number, number / LN_2, number / LN_10)]
        costs = [costs[0], costs[1] + 1.0, costs[2] + 1.5]
        for unit in (1.0, 10.0):  # 2.1**(x/10), growth per ten degrees
            base = self._plain(math.exp(unit * number)) if unit * abs(number) < LARGEST_EXPONENT else 0.0
            if base and self._cost(base) + 2.0 < min(costs) and self._cost(base) + 2.0 <= MOST_DIGITS:
                return self._apply("pow(a, b)", self._number(base), self._product((1.0 / unit, factors)))
        if costs[2] == min(costs):
            return self._apply("pow(a, b)", self._number(10.0), self._product((self._plain(number / LN_10), factors)))
        if costs[1] < costs[0]:
            return self._apply("exp2(a)", self.form((self._plain(number / LN_2), factors)))
        return self._apply("exp(a)", self.form(exponent))

    def _number_cost(self, number: float) -> float:
        return 0 if abs(self._plain(number)) == 1.0 else self._cost(number)


def _root_of(power: float) -> float:
    """The power that a factor is written inside of: roots are square roots, of x**3 too."""
    return 0.5 if (2.0 * power).is_integer() else abs(power)


@cache
def _sympy_of(form: str) -> str:
    rows = {row.semantics.infix: row.semantics.sympy for row in reversed(shipped_instruction_set("wide").instructions)}
    return SYMPY.get(form) or rows.get(form, "")
