"""Formulas of real numbers in algebra: numbers times powers, which join wherever a formula is defined.

Owns forms and the rules by which powers, logarithms, waves, sums and quotients join. Convention: in real arithmetic, where a
formula is defined, its form has the same value, but for rounding; it may be defined in more places. Functions that hide an
undefined value (`min`, `max`, choices) are left unchanged. Offsets of inputs that float32 cannot hold stay beside them. Knows
nothing of texts.

A form is a number times powers of atoms. An atom is a leaf, a function of forms, a sum of forms, e to a form, or a product whose
factors may be negative, of which a root is taken. Slightly long: all rules that join forms share their atoms.
"""

import math
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.language.dag import REAL, Dag
from evo.language.formula import unit_nodes
from evo.language.printer import short_number
from evo.native.stack_ptx import NodeKind

Ranges = Mapping[str, tuple[float, float]]
Factors = tuple[tuple[int, float], ...]  # atoms and their powers, sorted
Form = tuple[float, Factors]

MAX_RANKED = 60  # characters by which forms are put in order
MAX_EXPANDED = 24  # terms of a sum without products of sums
MAX_TERMS = 8  # of a sum that a quotient is joined with
NEAR = 4e-16  # relative, by which rounding changes a number
LEAST_SHORTER = 3  # characters by which a phase must be shorter than a quarter of a turn away
ALIKE = 1e-12  # relative difference of phases, which lose digits as turns are taken away
ONE: Form = (1.0, ())
ANYWHERE = np.array([-np.inf, np.inf])
LN_2, LN_10 = math.log(2.0), math.log(10.0)
_HIDING = frozenset({"min(a, b)", "max(a, b)", "select(c, a, b)", "a < b", "copysign(b, a)"})
_ODD, _EVEN = frozenset({"sin(a)", "tanh(a)"}), frozenset({"cos(a)", "abs(a)"})

# Form of an operation by the forms of its operands.
_RULES: dict[str, Callable[..., Form]] = {
    "a + b": lambda algebra, a, b: algebra.sum([a, b]),
    "a - b": lambda algebra, a, b: algebra.sum([a, scaled(b, -1.0)]),
    "a*b": lambda algebra, a, b: algebra.product([a, b]),
    "a/b": lambda algebra, a, b: algebra.product([a, algebra.power(b, -1.0)]),
    "1/a": lambda algebra, a: algebra.power(a, -1.0),
    "-a": lambda _, a: scaled(a, -1.0),
    "sqrt(a)": lambda algebra, a: algebra.power(a, 0.5),
    "1/sqrt(a)": lambda algebra, a: algebra.power(a, -0.5),
    "exp(a)": lambda algebra, a: algebra.exponential(a),
    "exp2(a)": lambda algebra, a: algebra.exponential(scaled(a, LN_2)),
    "log(a)": lambda algebra, a: algebra.logarithm(a),
    "log2(a)": lambda algebra, a: scaled(algebra.logarithm(a), 1.0 / LN_2),
    "log10(a)": lambda algebra, a: scaled(algebra.logarithm(a), 1.0 / LN_10),
    "pow(a, b)": lambda algebra, a, b: algebra.any_power(a, b),
}


def scaled(form: Form, number: float) -> Form:
    """A form times a number."""
    return form[0] * number, form[1]


class Algebra:
    """Forms of a formula's nodes. atoms: key of each, which begins with its kind.

    Args:
        ranges: least and greatest value of inputs, by name, where the forms are to have the formula's values.
    """

    def __init__(self, formula: Dag, ranges: Ranges = MappingProxyType({})):
        self.formula = formula
        self.atoms: list[tuple[Any, ...]] = []
        self._ranges = ranges
        self._bounds: dict[int, NDArray[np.float64]] = {}
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._sizes: dict[int, int] = {}
        self._ranks: dict[int, tuple[tuple[int, ...], str]] = {}

    def forms(self) -> list[Form]:
        """The form of each node."""
        nodes, forms = self.formula.nodes, list[Form]()
        moved = set(unit_nodes(self.formula))
        for index, node in enumerate(nodes):
            operands = [forms[operand] for operand in node.operands]
            if node.kind == NodeKind.CONSTANT and node.type == REAL and math.isfinite(node.number):
                forms.append((node.number, ()))
            elif node.kind != NodeKind.PTX or node.form in _HIDING or node.type != REAL or index in moved:
                forms.append(self.atom("node", index))
            elif node.form in _RULES:
                forms.append(_RULES[node.form](self, *operands))
            elif node.form in _ODD | _EVEN:
                forms.append(self._wave(node.form, *operands))
            else:
                forms.append(self.atom("call", node.form, *operands))
            if not math.isfinite(forms[-1][0]):
                raise OverflowError
        return forms

    def atom(self, *key: Any) -> Form:
        """The form of an atom."""
        number = self._numbers.setdefault(key, len(self.atoms))
        if number == len(self.atoms):
            self.atoms.append(key)
        return 1.0, ((number, 1.0),)

    def terms(self, form: Form) -> tuple[Form, ...]:
        """The terms of a sum, and of anything else itself."""
        if len(form[1]) == 1 and form[1][0][1] == 1.0 and (key := self.atoms[form[1][0][0]])[0] == "sum":
            return tuple(scaled(term, form[0]) for term in key[1])
        return (form,)

    def size(self, form: Form) -> int:
        """Count of leaves and functions."""
        return (abs(form[0]) != 1.0 or not form[1]) + sum(self._atom_size(atom) + (power != 1.0) for atom, power in form[1])

    def _atom_size(self, atom: int) -> int:
        if atom not in self._sizes:
            kind, *parts = self.atoms[atom]
            inner = parts[0] if kind == "sum" else [part for part in parts if isinstance(part, tuple)]
            self._sizes[atom] = (kind != "sum") + sum(self.size(part) for part in inner)
        return self._sizes[atom]

    def rank(self, *forms: Form) -> tuple[tuple[int, ...], int, str]:
        """Key of forms in an order that does not depend on a program's: by inputs, size, and the beginning of a text."""
        atoms = [(power, *self._atom_rank(atom)) for _, factors in forms for atom, power in factors]
        inputs = tuple(sorted({i for _, inputs, _ in atoms for i in inputs}))
        text = "".join([*(f"{number}" for number, _ in forms), *sorted(f"{text}^{power}" for power, _, text in atoms)])
        return inputs, sum(map(self.size, forms)), text[:MAX_RANKED]

    @np.errstate(all="ignore")
    def bounds(self, form: Form) -> NDArray[np.float64]:
        """Bounds of a form's values, as far as ranges determine them."""
        bounds = np.full(2, form[0])
        for atom, power in form[1]:
            if atom not in self._bounds:
                self._bounds[atom] = self._atom_bounds(atom)
            base = self._bounds[atom]
            is_known = base[0] > 0.0 or (base[0] == 0.0 < power) or (power > 0.0 and power % 2.0 == 1.0)
            ends = np.multiply.outer(bounds, base**power if is_known else ANYWHERE)
            bounds = np.array([ends.min(), ends.max()])
        return ANYWHERE if np.isnan(bounds).any() else bounds

    def _atom_bounds(self, atom: int) -> NDArray[np.float64]:
        kind, *parts = self.atoms[atom]
        if kind == "node" and self.formula.nodes[parts[0]].kind == NodeKind.INPUT:
            return np.array(self._ranges.get(self.formula.nodes[parts[0]].name, ANYWHERE))
        if kind == "sum":
            return np.asarray(np.add.reduce([*map(self.bounds, parts[0])]))
        if kind == "exp":
            return np.exp(self.bounds(parts[0]))
        if kind == "log" and (inside := self.bounds(parts[0]))[0] > 0.0:
            return np.log(inside)
        return ANYWHERE

    def _atom_rank(self, atom: int) -> tuple[tuple[int, ...], str]:
        if atom not in self._ranks:
            kind, *parts = self.atoms[atom]
            if kind == "node":
                nodes = [self.formula.nodes[index] for index in (*self.formula.needed_by(parts[0]), parts[0])]
                inputs = tuple(sorted({node.payload for node in nodes if node.kind == NodeKind.INPUT}))
                text = "".join(f"{node.kind}:{node.payload} " for node in nodes)
            else:
                inner = parts[0] if kind == "sum" else [part for part in parts if isinstance(part, tuple)]
                inputs, _, text = self.rank(*inner)
                text = f"{kind}{parts[0] if kind == 'call' else ''}({text})"
            self._ranks[atom] = inputs, text[:MAX_RANKED]
        return self._ranks[atom]

    # ---- sums ----

    @np.errstate(invalid="ignore")  # of bounds
    def sum(self, forms: Iterable[Form]) -> Form:
        """Sums of sums are one, like terms join, and logarithms, waves and quotients. A common number of all terms comes before
        the sum.
        """
        total: dict[Factors, float] = {}
        several: list[Form] = []
        for form in forms:
            terms = self.terms(form)
            if len(terms) > 1 and abs(form[0]) != 1.0:
                several.append(form)
                continue
            for number, factors in terms:
                _add(total, factors, number)
        for form in several:
            terms = self.terms(form)
            shares = any(factors in total for _, factors in terms)
            for number, factors in terms if shares else [form]:
                _add(total, factors, number)
        for join in (self._joined_logarithms, self._joined_waves, self._joined_sums_of_waves, self._joined_quotients):
            join(total)
        terms = tuple((number, factors) for factors, number in total.items() if number)
        if len(terms) < 2:
            return terms[0] if terms else (0.0, ())
        sizes = {abs(number) for number, _ in terms}
        size = sizes.pop() if len(sizes) == 1 else 1.0
        if np.add.reduce([*map(self.bounds, terms)])[1] <= 0.0:  # so that roots of it are of no negative number
            size = -size
        return scaled(self.atom("sum", tuple(scaled(term, 1.0 / size) for term in terms)), size)

    def expanded(self, terms: Iterable[Form]) -> dict[Factors, float]:
        """Terms without sums in products, or none if there are too many."""
        total, todo = dict[Factors, float](), [*terms]
        while todo and len(todo) + len(total) <= MAX_EXPANDED:
            number, factors = todo.pop()
            inside = next((pair for pair in factors if pair[1] == 1.0 and self.atoms[pair[0]][0] == "sum"), None)
            if inside is None:
                _add(total, factors, number)
            else:
                rest = number, tuple(pair for pair in factors if pair != inside)
                todo += [self.product([rest, term]) for term in self.atoms[inside[0]][1]]
        return {} if todo else total

    def _joined_logarithms(self, total: dict[Factors, float]) -> None:
        """log(a) + log(b) is log(a*b)."""
        groups: dict[float, list[tuple[Factors, float]]] = {}
        for factors, number in total.items():
            if len(factors) == 1 and factors[0][1] == 1.0 and self.atoms[factors[0][0]][0] == "log":
                groups.setdefault(abs(number), []).append((factors, number))
        for size, several in groups.items():
            if len(several) > 1 and size:
                inner = [self.power(self.atoms[factors[0][0]][1], math.copysign(1.0, number)) for factors, number in several]
                joined = scaled(self.logarithm(self.product(inner)), size)
                _replace(total, [factors for factors, _ in several], joined)

    def _joined_waves(self, total: dict[Factors, float]) -> None:
        """Writes n*c**2 + n*s**2 as n, n - n*c**2 as n*s**2, n - 2*n*s**2 as n*cos(2*a), 0.5 + 0.5*cos(2*a) as c**2, and
        n*c + m*s as one wave if its phase is shorter.
        """
        for factors, number in list(total.items()):
            match = next(((a, p, *wave) for a, p in factors if p in (1.0, 2.0) and (wave := self._wave_of(a))), None)
            if match is None or factors not in total:
                continue
            atom, power, name, angle = match
            rest = tuple(pair for pair in factors if pair != (atom, power))
            there = total.get(rest, 0.0)
            if power == 1.0:
                if name == "cos(a)" and there and _is_near(abs(there), abs(number)) and cost(2.0 * there) < cost(there):
                    half = self._wave("cos(a)" if there * number > 0.0 else "sin(a)", scaled(angle, 0.5))
                    _replace(total, [factors, rest], self.product([(2.0 * there, rest), half, half]))
                elif name == "cos(a)":
                    sine = tuple(sorted([*rest, (self._wave_atom("sin(a)", angle), 1.0)]))
                    self._join_phases(total, factors, sine, rest, angle)
                continue
            counterpart = self._wave_atom("cos(a)" if name == "sin(a)" else "sin(a)", angle)
            partner = tuple(sorted([*rest, (counterpart, 2.0)]))
            if _is_near(total.get(partner, 0.0), number):
                _replace(total, [factors, partner], (number, rest))
            elif there and _is_near(there, -number):
                _replace(total, [factors, rest], (there, partner))
            elif there and _is_near(there, -0.5 * number):
                double = self._wave("cos(a)", scaled(angle, 2.0))
                _replace(total, [factors, rest], self.product([(there if name == "sin(a)" else -there, rest), double]))

    def _join_phases(self, total: dict[Factors, float], cosine: Factors, sine: Factors, rest: Factors, angle: Form) -> None:
        n, m = total[cosine], total.get(sine, 0.0)
        name, phase, sign = _turned("sin(a)", math.atan2(n, m))
        if m and cost(phase, ALIKE) < max(cost(n), cost(m)):
            wave = self._wave(name, self.sum([angle, (phase, ())]))
            _replace(total, [cosine, sine], self.product([(sign * math.hypot(n, m), rest), wave]))

    def _joined_sums_of_waves(self, total: dict[Factors, float]) -> None:
        """Writes n*cos(a + b) + n*cos(a - b) as 2*n*cos(a)*cos(b), and so of sines, where that is shorter."""
        waves = [(f, n, *wave) for f, n in total.items() if len(f) == 1 and f[0][1] == 1.0 and (wave := self._wave_of(f[0][0]))]
        for k, (first, n, name, a) in enumerate(waves):
            for second, m, same, b in waves[k + 1 :]:
                if name == same and first in total and second in total and _is_near(abs(m), abs(n)):
                    half = scaled(self.sum([a, b]), 0.5), scaled(self.sum([a, scaled(b, -1.0)]), 0.5)
                    is_sum, is_cosine = m * n > 0.0, name == "cos(a)"
                    names = {(1, 1): "cc", (1, 0): "ss", (0, 1): "sc", (0, 0): "cs"}[is_cosine, is_sum]
                    sign = -2.0 if names == "ss" else 2.0
                    parts = (
                        self._wave("cos(a)" if letter == "c" else "sin(a)", h) for letter, h in zip(names, half, strict=True)
                    )
                    product = self.product([(sign * n, ()), *parts])
                    if self.size(product) < self.size((n, first)) + self.size((m, second)):
                        _replace(total, [first, second], product)

    def _wave_atom(self, name: str, angle: Form) -> int:
        return self.atom("call", name, angle)[1][0][0]

    def _wave_of(self, atom: int) -> tuple[str, Form] | None:
        key = self.atoms[atom]
        return (key[1], key[2]) if key[0] == "call" and key[1] in ("sin(a)", "cos(a)") else None

    def _joined_quotients(self, total: dict[Factors, float]) -> None:
        """Joins t + n/D if t*D + n is one term, as in 1 - 1/(1 + x), or without numbers, as in 1 - 2*y/(x + y)."""
        for factors, number in list(total.items()):
            below = next((a for a, power in factors if power == -1.0 and self.atoms[a][0] == "sum"), None)
            if below is None or factors not in total or len(self.atoms[below][1]) > MAX_TERMS:
                continue
            above = number, tuple(pair for pair in factors if pair != (below, -1.0))
            for partner, size in list(total.items()):
                if partner == factors or any(atom == below for atom, _ in partner):
                    continue
                parts: dict[Factors, float] = {}
                for term in (above, *(self.product([(size, partner), term]) for term in self.atoms[below][1])):
                    for n, f in self.terms(term):
                        _add(parts, f, n)
                is_whole = not partner and len(parts) == len(self.atoms[below][1]) and len({*map(abs, parts.values())}) == 1
                if len(parts) == 1 or is_whole:
                    above = self.sum((n, f) for f, n in parts.items())
                    _replace(total, [factors, partner], self.product([above, (1.0, ((below, -1.0),))]))
                    break

    # ---- products ----

    def product(self, forms: Iterable[Form]) -> Form:
        """Powers of the same atom join, exponentials do, and sines with their cosines."""
        number, powers, exponents = 1.0, dict[int, float](), list[Form]()
        todo = [*forms]
        while todo:
            factor, factors = todo.pop(0)
            number = _held(number * factor) if number and factor else 0.0
            for atom, power in factors:
                kind, *parts = self.atoms[atom]
                total = plain(powers.pop(atom, 0.0) + power)
                if kind == "exp":
                    exponents.append(scaled(parts[0], power))
                elif kind == "group" and total.is_integer():
                    todo.append(self.power(parts[0], total))
                elif (kind, parts[0]) == ("call", "abs(a)") and total % 2 == 0.0:
                    todo.append(self.power(parts[1], total))
                elif total:
                    powers[atom] = total
        for atom in [*powers]:  # sin(a)*cos(a) is sin(2*a)/2, sin(a)/cos(a) is tan(a)
            wave = self._wave_of(atom)
            if wave and wave[0] == "sin(a)":
                cosine = self._numbers.get(("call", "cos(a)", wave[1]), -1)
                if powers[atom] == -powers.get(cosine, 0.0):
                    powers[self._wave_atom("tan(a)", wave[1])] = powers.pop(atom)
                    del powers[cosine]
                elif powers[atom] == powers.get(cosine) == 1.0:
                    del powers[atom], powers[cosine]
                    half = self._wave("sin(a)", scaled(wave[1], 2.0))
                    rest = self.product([(number, tuple(sorted(powers.items()))), *map(self._exponential, exponents)])
                    return self.product([rest, scaled(half, 0.5)])
        if not number:
            return 0.0, ()
        if exponents:
            whole = self.sum(exponents)
            if whole[1]:
                powers[self._exponential(whole)[1][0][0]] = 1.0
            number = number if whole[1] else _held(number * _held(math.exp(whole[0])))
        return self._with_full_sums((number, tuple(sorted(powers.items()))))

    def _with_full_sums(self, form: Form) -> Form:
        """Sums take up factors that their terms are divided by: sqrt(x**2 + y**2) for x*sqrt(1 + y**2/x**2)."""
        for whole, power in form[1]:
            for atom, times in form[1] if self.atoms[whole][0] == "sum" else ():
                terms = self.atoms[whole][1]
                share = min(times / power, -min(dict(factors).get(atom, 0.0) for _, factors in terms))
                if share > 0.0 and atom != whole and (power.is_integer() or self._is_positive(atom)):
                    full = self.sum(self.product([term, (1.0, ((atom, share),))]) for term in terms)
                    rest = tuple(
                        (a, p) for a, p in {**dict(form[1]), atom: plain(times - share * power)}.items() if p and a != whole
                    )
                    candidate = self.product([(form[0], rest), self.power(full, power)])
                    if self.size(candidate) < self.size(form):
                        return candidate
        return form

    def power(self, form: Form, exponent: float) -> Form:
        """A form to a number. A root of a product is that of each factor only where none of these can be negative."""
        number, factors = form
        if not exponent.is_integer():
            return self._root(form, exponent)
        if not number:
            return self.atom("call", "1/a", form) if exponent < 0 else form
        if exponent < 0 and len(factors) == 1 and len(self.terms((1.0, factors))) > 1:
            joined = self._without_fractions((1.0, factors))
            if joined[1] != factors:
                return self.power(scaled(joined, number), exponent)
        return self.product(
            [(_held(number**exponent), ()), *(self._atom_power(atom, power * exponent) for atom, power in factors)]
        )

    def _atom_power(self, atom: int, power: float) -> Form:
        kind, *parts = self.atoms[atom]
        if kind == "exp":
            return self._exponential(scaled(parts[0], power))
        return self.product([(1.0, ((atom, plain(power)),))])

    def _root(self, form: Form, exponent: float) -> Form:
        number, factors = form
        free: list[Form] = []
        signed: list[tuple[int, float]] = []
        for atom, power in factors:
            if self._is_positive(atom) or not power.is_integer():
                free.append(self._atom_power(atom, power * exponent))
            elif power % 2 == 0.0 and (power * exponent) % 2 == 0.0:
                free.append((1.0, ((atom, power * exponent),)))
            else:
                signed.append((atom, power))
        if number > 0.0 and len(signed) == 1:
            [(atom, power)] = signed
            base = (1.0, ((atom, 1.0),)) if power % 2 else self._wave("abs(a)", (1.0, ((atom, 1.0),)))
            free.append((1.0, ((base[1][0][0], power * exponent),)))
        elif signed or number < 0.0:
            free.append((1.0, ((self.atom("group", (math.copysign(1.0, number), tuple(signed)))[1][0][0], exponent),)))
        return self.product([(_held(abs(number) ** exponent) if number else 0.0, ()), *free])

    def _is_positive(self, atom: int) -> bool:
        """Return whether it is surely no negative number."""
        kind, *parts = self.atoms[atom]
        if kind == "sum" and all(n > 0.0 and all(p % 2 == 0.0 or self._is_positive(a) for a, p in f) for n, f in parts[0]):
            return True
        return kind in ("exp", "group") or (kind, parts[0]) == ("call", "abs(a)") or self.bounds((1.0, ((atom, 1.0),)))[0] >= 0.0

    def _without_fractions(self, form: Form) -> Form:
        """A sum as a quotient of one without fractions, if that is shorter: (1 + x**2)/x for x + 1/x."""
        terms = self.terms(form)
        below: dict[int, float] = {}
        for _, factors in terms:
            for atom, power in factors:
                if power < 0.0 and power.is_integer():
                    below[atom] = min(below.get(atom, 0.0), power)
        if not below or len(terms) > MAX_TERMS:
            return form
        common = tuple(sorted(below.items()))
        parts = (self.product([term, (1.0, tuple((atom, -power) for atom, power in common))]) for term in terms)
        whole = self.sum(sorted(parts, key=lambda term: term[1]))
        quotient = self.product([(1.0, common), whole])
        return quotient if self.size(self.power(quotient, -1.0)) <= self.size(form) + 2 else form

    # ---- functions ----

    def exponential(self, form: Form) -> Form:
        """The exponential of a form: of logarithms it is a power."""
        factors, rest = list[Form](), list[Form]()
        for number, powers in self.terms(form):
            key = self.atoms[powers[0][0]] if len(powers) == 1 and powers[0][1] == 1.0 else ("",)
            if key[0] == "log":
                factors.append(self.power(key[1], plain(number)))
            else:
                rest.append((number, powers))
        if not rest:
            return self.product(factors)
        return self.product([*factors, self._exponential(self.sum(rest) if factors else form)])

    def _exponential(self, form: Form) -> Form:
        return self.atom("exp", form) if form[1] else (_held(math.exp(form[0])), ())

    def logarithm(self, form: Form) -> Form:
        """The natural logarithm."""
        number, factors = form
        if len(factors) == 1 and number > 0.0:
            [(atom, power)] = factors
            if self.atoms[atom][0] == "exp":
                return self.sum([scaled(self.atoms[atom][1], power), (math.log(number), ())])
            if number == 1.0 and power != 1.0 and power % 2.0:
                return scaled(self.logarithm(self._atom_power(atom, 1.0)), power)
        return self.atom("log", form) if factors or number <= 0.0 else (math.log(number), ())

    def any_power(self, base: Form, exponent: Form) -> Form:
        """A form to a form."""
        if not exponent[1]:
            return self.power(base, exponent[0]) if exponent[0] else ONE
        return self._exponential(self.product([exponent, self.logarithm(base)]))

    def _wave(self, name: str, angle: Form) -> Form:
        """A function that is odd or even; phases lie in (-pi, pi]."""
        if name == "abs(a)" and ((ends := self.bounds(angle))[0] >= 0.0 or ends[1] <= 0.0):
            return angle if ends[0] >= 0.0 else scaled(angle, -1.0)
        terms = self.terms(angle)
        phase = sum(number for number, factors in terms if not factors)
        if name in ("sin(a)", "cos(a)") and phase and abs(phase) > math.pi:
            phase = math.atan2(math.sin(phase), math.cos(phase))  # reduced by pi itself, whatever its size
            angle = self.sum([*(term for term in terms if term[1]), (phase, ())])
            terms = self.terms(angle)
        sign = 1.0
        variable = [number for number, factors in terms if factors] or [angle[0]]
        if max(variable) < 0.0:
            angle, sign = self.sum(scaled(term, -1.0) for term in terms), -1.0 if name in _ODD else 1.0
            phase = -phase
        if name in ("sin(a)", "cos(a)") and phase:
            name, turned, turn = _turned(name, phase)
            if turned != phase:
                angle = self.sum([*(term for term in self.terms(angle) if term[1]), (turned, ())])
                return scaled(self._wave(name, angle), sign * turn)
        return scaled(self.atom("call", name, angle), sign)


def _turned(name: str, phase: float) -> tuple[str, float, float]:
    """The sine or cosine by quarters of a turn, and its sign, that has the shortest phase."""
    other = "cos(a)" if name == "sin(a)" else "sin(a)"
    quarter = math.copysign(math.pi / 2.0, 1.0 if name == "sin(a)" else -1.0)
    turns = ((name, 0.0, 1.0), (other, quarter, 1.0), (name, math.pi, -1.0), (other, -quarter, -1.0))
    waves = [(form, math.remainder(phase - turn, 2.0 * math.pi), sign) for form, turn, sign in turns]
    waves = [(form, moved if abs(moved) > 1e-15 else 0.0, sign) for form, moved, sign in waves]
    costs = [cost(moved, ALIKE) if moved else 0 for _, moved, _ in waves]
    best = costs.index(min(costs))
    return waves[best if costs[best] < costs[0] - LEAST_SHORTER else 0]


def _held(number: float) -> float:
    """A number that is not 0, with all its digits."""
    if abs(number) < sys.float_info.min:
        raise OverflowError
    return number


def _add(total: dict[Factors, float], factors: Factors, number: float) -> None:
    before = total.pop(factors, 0.0)
    if abs(before + number) > NEAR * max(abs(before), abs(number)):
        total[factors] = before + number


def _replace(total: dict[Factors, float], gone: Iterable[Factors], form: Form) -> None:
    for factors in gone:
        del total[factors]
    _add(total, form[1], form[0])


def _is_near(a: float, b: float) -> bool:
    return abs(a - b) <= NEAR * abs(b)


def plain(number: float, near: float = NEAR) -> float:
    """A number, or the decimal of up to 14 digits that rounding has made it of. near: the relative error of the number."""
    for digits in (3, 6, 9, 12, 14) if near == NEAR else range(1, 15):
        short = float(f"{number:.{digits}g}")
        if abs(short - number) <= near * abs(number):
            return short
    return number


@cache
def cost(number: float, near: float = NEAR) -> int:
    """Characters of a number's text."""
    return len(short_number(plain(abs(number), near)))
