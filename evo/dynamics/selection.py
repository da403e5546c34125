"""Selection of a law's terms: least squares in the integral form, over pieces of trajectories.

A state's samples are, but for noise, its value at the piece's beginning plus the integral of its law: so laws are fitted to the
samples themselves, and no derivative of noise is taken. Owns that fit and the choice among terms. Knows nothing of searches.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from evo.dynamics.records import PIECE, Record
from evo.dynamics.terms import Law, Term, divided_by, evaluate, numbers_of, product_of

MAX_CHOSEN = 10  # terms of a law
LEAST_NOISE = 1e-5  # of a state's deviation, below which errors are those of smoothing and integration
RIDGE = 1e-11  # of a term's square: terms that the others leave less of say nothing new
LEAST_SIZE = 1e-12  # of an integral's values, below which it does not vary
MIN_BEAM = 32  # sets of terms that are looked at for each number of terms
# Laws with quotients: their terms, numbers that are tried in divisors, in units of the column's size, and how far from these.
MAX_OF_QUOTIENTS = 6
NUMERATOR_DEGREE = 2
DIVISORS, WIDTH = (0.2, 1.0, 5.0), 1.6
MAX_LEVELS = 3  # of a column whose functions are all polynomials
MAX_TRIALS = 100  # of numbers in divisors
POLE = 0.9  # a divisor from which that much is taken away is too near to 0


@dataclass(frozen=True)
class Choice:
    """A law and its cost: -2 log likelihood plus the cost of its numbers, comparable between laws of one state."""

    law: Law
    cost: float


cost_of = attrgetter("cost")


class Selection:
    """Chooses the laws of the states.

    Args:
        records: of the same states and inputs.
        terms: that laws are chosen from.
    """

    def __init__(self, records: Sequence[Record], terms: Sequence[Term]):
        self._records = records
        length = PIECE * min(record.period for record in records)
        self._columns = [record.columns(record.nodes) for record in records]
        pieces, first = [], 0
        for record in records:
            pieces.append(record.pieces(length) + first)
            first = pieces[-1][-1] + 1
        self._pieces = np.concatenate(pieces)
        self._states = np.concatenate([record.states for record in records])
        # The powers of a held input of two values are sums of 1 and u, those of a state that never changes are numbers.
        columns = [*self._states.T, *np.concatenate([record.inputs for record in records]).T]
        are_held = [*[True] * len(self._states.T), *records[0].is_held]
        self._levels = [
            len(np.unique(values[np.isfinite(values)])) if is_held else len(values)
            for values, is_held in zip(columns, are_held, strict=True)
        ]
        self._terms = [term for term in terms if all(power < self._levels[column] for column, power in term)]
        self._integrals = self._integrals_of(self._terms)

    def choices(self, state: int) -> list[Choice]:
        """The laws that explain a state best, one for each number of terms from 0 on."""
        return self._choices(state, self._terms, self._integrals, is_whole=False)

    def quotients(self, state: int) -> list[Choice]:
        """The laws with products over 1 + a x, 1 + a x**2 or 1 + a x + b x**2 of a column x that explain a state best."""
        columns = np.concatenate(self._columns, axis=1)
        plain = [term for term in self._terms if sum(power for _, power in term) <= NUMERATOR_DEGREE]
        integrals = self._integrals_of(plain)
        best: dict[tuple[int, int], tuple[Choice, Law]] = {}
        for column, powers in product(range(len(columns)), ((1.0,), (2.0,), (1.0, 2.0))):
            least, size = float(columns[column].min()), float(np.sqrt((columns[column] ** 2).mean()))
            if self._levels[column] <= MAX_LEVELS or size == 0.0:
                continue
            for shares in product(DIVISORS, repeat=len(powers)):
                numbers = [share / size**power for share, power in zip(shares, powers, strict=True)]
                if sum(number * min(least, 0.0) ** power for number, power in zip(numbers, powers, strict=True)) < -POLE:
                    continue
                divisor: Law = tuple((number, ((column, power),)) for number, power in zip(numbers, powers, strict=True))
                over = [product_of(term, divided_by(divisor)) for term in plain]
                both = np.concatenate([integrals, self._integrals_of(over)])
                for choice in self._choices(state, [*plain, *over], both, is_whole=False, most=MAX_OF_QUOTIENTS):
                    key = len(choice.law), len(powers)
                    if (key not in best or choice.cost < best[key][0].cost) and any(term in over for _, term in choice.law):
                        best[key] = choice, divisor
        return [better for pair in best.values() for better in self._refined(state, *pair)]

    def _refined(self, state: int, choice: Choice, divisor: Law) -> list[Choice]:
        """Fits the numbers within the quotients. A law that is also a + b/(1 + x), or a/(1 + x) + b*x/(1 + x), gets the form a +
        b*x/(1 + x).
        """
        chosen = {term for _, term in choice.law}
        [old] = divided_by(divisor)
        single = divisor[0][1] if len(divisor) == 1 else None

        def changed(term: Term, over: Term) -> Term:
            if old not in term:
                return term
            numerator = tuple(factor for factor in term if factor != old)
            if single and product_of(term, single) in chosen:
                return numerator
            return product_of(numerator, over, single if single and numerator in chosen else ())

        def law_with(logarithms: NDArray[np.float64]) -> Law:
            numbers = np.exp(logarithms).tolist()
            over = divided_by(tuple((number, term) for number, (_, term) in zip(numbers, divisor, strict=True)))
            return tuple((1.0, term) for term in dict.fromkeys(changed(term, over) for _, term in choice.law))

        def cost(logarithms: NDArray[np.float64]) -> float:
            return min((judged.cost for judged in self.judged(state, law_with(logarithms))), default=math.inf)

        start = np.log([number for number, _ in divisor])
        bounds = [(value - WIDTH, value + WIDTH) for value in start]
        solution = minimize(
            cost, start, method="Nelder-Mead", bounds=bounds, options={"xatol": 1e-3, "fatol": 0.1, "maxfev": MAX_TRIALS}
        )
        return self.judged(state, law_with(solution.x))

    def judged(self, state: int, law: Law) -> list[Choice]:
        """The law with the best numbers before its terms; nothing if it is not finite along the trajectories."""
        terms = [term for _, term in law]
        return self._choices(state, terms, self._integrals_of(terms), is_whole=True)

    def _integrals_of(self, terms: Sequence[Term]) -> NDArray[np.float64]:
        """Along the smooth courses, `(num_terms, num_samples)`."""
        parts = [
            [record.integral(evaluate(((1.0, term),), columns)) for term in terms]
            for record, columns in zip(self._records, self._columns, strict=True)
        ]
        return np.concatenate([np.reshape(part, (len(terms), -1)) for part in parts], axis=1)

    def _choices(
        self, state: int, terms: Sequence[Term], integrals: NDArray[np.float64], *, is_whole: bool, most: int = MAX_CHOSEN
    ) -> list[Choice]:
        """The best law for each number of terms up to `most`, or with all terms, with its extended BIC (Chen and Chen 2008)."""
        known = np.isfinite(self._states[:, state])
        pieces = self._pieces[known]
        counts = np.maximum(np.bincount(pieces), 1)
        count = len(pieces) - len(np.unique(pieces))

        def about_means(row: NDArray[np.float64]) -> NDArray[np.float64]:  # so that the start of each piece is fitted too
            return np.asarray(row[known] - (np.bincount(pieces, row[known]) / counts)[pieces])

        with np.errstate(all="ignore"):
            centred = np.array([about_means(row) for row in integrals]).reshape(len(terms), len(pieces))
            sizes = np.sqrt((centred**2).sum(axis=1))
            usable = np.flatnonzero(np.isfinite(sizes) & (sizes > LEAST_SIZE * np.abs(integrals).max(axis=1, initial=0.0)))
        if is_whole and len(usable) < len(terms):
            return []
        rows = centred[usable] / sizes[usable, None]
        target = about_means(self._states[:, state])
        gram, moments, square = rows @ rows.T, rows @ target, float(target @ target)
        noise = count * (LEAST_NOISE * float(np.std(self._states[known, state]))) ** 2 or 1.0
        penalty = math.log(count) + 2.0 * math.log(len(self._terms))
        choices = []
        for subset in [[*range(len(usable))]] if is_whole else _subsets(gram, moments, most):
            numbers = _solved(gram, moments, np.array([subset], np.int64))[0]
            left = max(square - float(moments[subset] @ numbers), 0.0)
            chosen = usable[subset]
            law = tuple((float(number), terms[index]) for number, index in zip(numbers / sizes[chosen], chosen, strict=True))
            choices.append(Choice(law, count * math.log(left + noise) + penalty * len(numbers_of(law))))
        return choices


def _solved(gram: NDArray[np.float64], moments: NDArray[np.float64], sets: NDArray[np.int64]) -> NDArray[np.float64]:
    """The numbers of least squares by some rows, for each set of `(num_sets, num_rows)` places."""
    matrices = gram[sets[:, :, None], sets[:, None, :]] + RIDGE * np.eye(sets.shape[1])
    return np.asarray(np.linalg.solve(matrices, moments[sets][:, :, None])[:, :, 0], np.float64)


def _subsets(gram: NDArray[np.float64], moments: NDArray[np.float64], most: int) -> list[list[int]]:
    """For each number of rows, from 0 on, those that explain most, by beam search: among all single rows and pairs, and then
    among the best sets of one row less, each with any other row.
    """
    num, width = len(gram), max(len(gram), MIN_BEAM)
    beam: list[tuple[int, ...]] = [()]
    best: list[list[int]] = [[]]
    for _ in range(min(most, num)):
        grown = sorted({tuple(sorted((*chosen, row))) for chosen in beam for row in range(num) if row not in chosen})
        sets = np.array(grown)
        explained = (moments[sets] * _solved(gram, moments, sets)).sum(axis=1)
        order = np.argsort(-explained, kind="stable")[:width]
        beam = [grown[i] for i in order]
        best.append(list(beam[0]))
    return best
