"""From candidate laws of each state to the laws of the system.

Owns which candidates are taken, which terms go, and which numbers become simple: by the fit of the whole system to the records
(`Shooting`). Knows nothing of where candidates come from.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from evo.dynamics.records import Record
from evo.dynamics.selection import Choice, cost_of
from evo.dynamics.shooting import LEAST_NOISE, Fit, Shooting
from evo.dynamics.terms import inner_numbers, laws_with_numbers, numbers_of, saturating
from evo.language.simple_numbers import simplest

MAX_SHORT = 64  # samples of a piece while laws are chosen
WORSE_NOISE = 1.05  # times the noise over short pieces, by which longer pieces may be worse
NUM_DOUBLED = 4  # times that pieces become longer
MORE_DIGITS = 2  # of a number that is not simple than its error leaves
EXACT_NOISE = 1e-6  # of a state's deviation, in samples that have less than `LEAST_NOISE`
MAX_FINENESS, ACCURACY = 16, 0.1  # of steps of integration, until their error is at most this share of the noise
ROUNDING_COST = 5.0  # of -2 log likelihood that a simple number may cost


class Refinement:
    """Chooses and refines laws.

    Args:
        records: of the same states and inputs.
        num_terms: that candidates were chosen from.
        until_s: time of `time.monotonic` at which laws stay as they are.
    """

    def __init__(self, records: Sequence[Record], num_terms: int, until_s: float = math.inf):
        self._records, self._until_s = records, until_s
        period = min(record.period for record in records)
        count = sum(len(record.times) for record in records)
        span = sum(record.times[-1] - record.times[0] for record in records)
        self._length = max(8, min(round(count * period / span), MAX_SHORT))
        self._short = self._length
        self._shooting = Shooting(records, self._length, until_s)
        num_samples = sum(int(np.isfinite(record.states).sum()) for record in records)
        self._penalty = math.log(num_samples) + 2.0 * math.log(num_terms)

    def cost(self, fit: Fit | None) -> float:
        """-2 log likelihood plus the cost of the numbers by the extended BIC."""
        if fit is None:
            return math.inf
        return fit.cost + self._penalty * sum(len(numbers_of(law)) for law in fit.laws)

    def choose(self, candidates: Sequence[Sequence[Choice]]) -> Fit:
        """The best laws, one candidate for each state, over short pieces.

        Args:
            candidates: of each state, at least one.
        """
        ordered = [sorted(choices, key=cost_of) for choices in candidates]
        fit = self._shooting.fit([choices[0].law for choices in ordered]) or self._shooting.fit([()] * len(ordered))
        assert fit is not None  # states that stay as they are can always be integrated
        for state, choices in enumerate(ordered):
            hopeless = -1
            is_exact = fit.noise[state] <= LEAST_NOISE * self._shooting.scales[state]  # then the shortest such law is best
            for choice in sorted(choices[1:], key=_size_of) if is_exact else choices[1:]:
                num = _size_of(choice)
                if not hopeless < num <= len(numbers_of(fit.laws[state])) or time.monotonic() > self._until_s:
                    continue
                laws = [*fit.laws[:state], choice.law, *fit.laws[state + 1 :]]
                candidate = self._shooting.fit(laws, fit.starts, most=self.cost(fit))
                if candidate is None:
                    hopeless = max(hopeless, num - 1)  # shorter laws that the integral form finds worse are too
                elif self.cost(candidate) < self.cost(fit):
                    fit = candidate
        return self.without_needless(fit)

    def without_needless(self, fit: Fit) -> Fit:
        """Removes the terms whose numbers the samples hardly tell from 0, and puts one in place of two that saturate together."""
        while time.monotonic() < self._until_s:
            with np.errstate(all="ignore"):
                sure = np.nan_to_num((fit.numbers / fit.deviations) ** 2, nan=0.0, posinf=1e300)
            ranked, first = [], 0
            for state, law in enumerate(fit.laws):
                for index, (_, term) in enumerate(law):
                    ranked.append((sure[first], state, index))
                    first += 1 + len(inner_numbers(term))
            doubtful = [entry for entry in sorted(ranked) if entry[0] < 2.0 * self._penalty][:2]
            shorter = [(state, fit.laws[state][:index] + fit.laws[state][index + 1 :]) for _, state, index in doubtful]
            shorter += [(state, shorter_law) for state, law in enumerate(fit.laws) for shorter_law in saturating(law)]
            for state, law in shorter:
                laws = [*fit.laws[:state], law, *fit.laws[state + 1 :]]
                candidate = self._shooting.fit(laws, fit.starts, most=self.cost(fit))
                if self.cost(candidate) < self.cost(fit):
                    assert candidate is not None
                    fit = candidate
                    break
            else:
                break
        return fit

    def lengthened(self, fit: Fit) -> Fit:
        """Fitted over longer pieces, as long as the laws explain these as well: so small numbers are known better."""
        most = max(len(record.times) for record in self._records)
        for _ in range(NUM_DOUBLED):
            if self._length >= most or time.monotonic() > self._until_s:
                break
            shooting = Shooting(self._records, min(2 * self._length, most), self._until_s)
            longer = shooting.fit(fit.laws, most=fit.cost)
            if longer is None or not (longer.noise <= WORSE_NOISE * fit.noise).all():
                break
            self._shooting, self._length = shooting, min(2 * self._length, most)
            fit = longer
        return self.without_needless(fit)

    def accurate(self, fit: Fit) -> Fit:
        """Fitted with an integration whose error is far below the noise, so that no term stands for it. Samples that seem to have
        no noise are taken to have `EXACT_NOISE`.
        """
        fit = self._integrated(fit, LEAST_NOISE)
        if (fit.noise <= LEAST_NOISE * self._shooting.scales).all():
            fit = self._integrated(fit, EXACT_NOISE)
        return self.without_needless(fit)

    def _integrated(self, fit: Fit, least_noise: float) -> Fit:
        """Fitted over short pieces, in which even chaos leaves errors small, with as many steps as this noise asks for."""
        noise = fit.noise if least_noise == LEAST_NOISE else least_noise * self._shooting.scales
        options = self._records, self._short, self._until_s, least_noise
        shooting, fineness = Shooting(*options), 1
        while fineness < MAX_FINENESS and time.monotonic() < self._until_s:
            finer = Shooting(*options, 2 * fineness)
            change = finer.course(fit.laws, shooting.starts) - shooting.course(fit.laws, shooting.starts)
            if (np.abs(change).max(axis=(0, 2)) <= ACCURACY * noise).all():
                break
            shooting, fineness = finer, 2 * fineness
        refit = None if fineness == 1 and least_noise == LEAST_NOISE else shooting.fit(fit.laws)
        if refit is None or time.monotonic() > self._until_s:
            return fit
        self._shooting = shooting
        return refit

    def rounded(self, fit: Fit) -> Fit:
        """With simple numbers where the samples allow them; the others are fitted again."""
        values, covariance, fixed = fit.numbers, fit.covariance.copy(), list[int]()
        bits = [
            simplest(value, deviation).cost for value, deviation in zip(values.tolist(), fit.deviations.tolist(), strict=True)
        ]
        for index in np.argsort(bits, kind="stable").tolist():  # or 9.8 in place of 9.81 costs another number its 1
            value, deviation = float(values[index]), math.sqrt(max(covariance[index, index], 0.0))
            if not 0.0 < deviation < 0.1 * abs(value):
                continue
            change = simplest(value, deviation).value - value
            if (change / deviation) ** 2 <= ROUNDING_COST:
                column = covariance[:, index] / covariance[index, index]
                values += change * column  # the best other numbers then, to first order
                covariance -= np.outer(column, covariance[index])
                values[index] = value + change
                fixed.append(index)
        while fixed:
            laws = laws_with_numbers(fit.laws, np.where(np.isin(np.arange(len(values)), fixed), values, fit.numbers).tolist())
            refit = self._shooting.fit(laws, fit.starts, fixed=fixed)
            if refit is not None and refit.cost <= fit.cost + ROUNDING_COST * len(fixed):
                fit = replace(refit, covariance=np.where(refit.covariance != 0.0, refit.covariance, fit.covariance))
                break
            fixed = fixed[: len(fixed) // 2]
        values = fit.numbers
        for index, (value, deviation) in enumerate(zip(values.tolist(), fit.deviations.tolist(), strict=True)):
            if index not in fixed and value and 0.0 < deviation < math.inf:
                digits = MORE_DIGITS + int(math.log10(max(abs(value) / deviation, 1.0)))
                values[index] = float(f"{value:.{digits}e}")
        return replace(fit, laws=laws_with_numbers(fit.laws, values.tolist()))


def _size_of(choice: Choice) -> int:
    return len(numbers_of(choice.law))
