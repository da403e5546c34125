"""First formulas for exact data: quotients, roots and exponentials of sums of monomials, by least squares on a relation.

Owns relations that are linear in their numbers: the argument of a link is a sum N of monomials, or N/(1 - D), as z = N + z D
(an implicit relation, Kaheman, Kutz and Brunton 2020); or y solves the square y² = N + y D. All pairs of terms are compared, and
one more term joins the best sums (a beam), until the relation is exact. Only nearly exact relations are returned: noise hides
others. Knows nothing of programs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from evo.regression.guesses import spread_rows
from evo.regression.terms import Row, smallest

MAX_ROWS, MAX_INPUTS = 96, 8  # that are looked at
MAX_MONOMIALS, MAX_PARTNERS = 800, 250  # terms by themselves, and times y
MAX_TERMS, WIDTH, NUM_WEIGHED = 6, 40, 4  # of a sum; sums that one more term joins; those of them whose errors of y are looked at
NUM_KEPT = 8  # formulas that are handed over
LEAST_LEFT = 1e-8  # of a term's square, given the others
LEAST = 1e-3  # of the largest y: errors of smaller ones count hardly more
NEAR, EXACT = 1e-9, 1e-13  # share of the variance that a relation may leave; that is rounding
GAIN = 0.3  # of the error, that one more term must leave at most
LETTER = 0.02  # decades that a letter is worth
DIGITS = 9  # of numbers
POWERS = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0)  # of single inputs
SEVERAL = ((2, 4), (3, 2), (4, 1))  # inputs of a monomial, and the greatest power of each
MOST_POWERS = 6  # sum of the powers of several


@dataclass(frozen=True)
class _Kind:
    """Relation of z, a function of y.

    texts: of y in all ways that solve the relation, with {n} and {d} for the sums. transform: z of y, and its derivative. solve:
        y, in the same ways. partner: factor of the terms of D, by y; None: there are none. is_quotient: z = N/(1 - D).
        has_powers: N begins with the logarithms of all inputs.
    """

    texts: tuple[str, ...]
    transform: Callable[[Row], tuple[Row, Row]]
    solve: Callable[[Row, Row], tuple[Row, ...]]
    partner: Callable[[Row], Row] | None = None
    is_quotient: bool = False
    has_powers: bool = False


def _linear(y: Row) -> tuple[Row, Row]:
    return y, np.ones_like(y)


def _square(y: Row) -> tuple[Row, Row]:
    return y**2, 2.0 * y


_KINDS = (
    _Kind(("{n}",), _linear, lambda n, _: (n,)),
    _Kind(("sqrt({n})",), _square, lambda n, _: (np.sqrt(n),)),
    _Kind(("{n}",), _linear, lambda n, d: (n / (1.0 - d),), lambda y: y, is_quotient=True),
    _Kind(("sqrt({n})",), _square, lambda n, d: (np.sqrt(n / (1.0 - d)),), np.square, is_quotient=True),
    _Kind(("exp2({n})",), lambda y: (np.log2(y), 1.0 / y), lambda n, _: (np.exp2(n),), has_powers=True),
    _Kind(("1/({n})",), lambda y: (1.0 / y, y**-2), lambda n, _: (1.0 / n,)),
    _Kind(("1/sqrt({n})",), lambda y: (y**-2, 2.0 * y**-3), lambda n, _: (1.0 / np.sqrt(n),)),
    _Kind(("({n})**2",), lambda y: (np.sqrt(y), 0.5 / np.sqrt(y)), lambda n, _: (n**2,)),
    _Kind(
        ("0.5*({d}) + sqrt(0.25*({d})**2 + {n})", "0.5*({d}) - sqrt(0.25*({d})**2 + {n})"),
        _square,
        lambda n, d: (d / 2.0 + np.sqrt(d**2 / 4.0 + n), d / 2.0 - np.sqrt(d**2 / 4.0 + n)),
        lambda y: y,
    ),
)


def relations(columns: dict[str, Row], target: Row, weights: Row | None = None) -> list[str]:
    """Formulas in the notation of `evo.language.infix`, up to offset and scale. Arguments are those of
    `evo.regression.guesses.guesses`.
    """
    if len(columns) > MAX_INPUTS:
        return []
    inputs, y, root = sampled_rows(columns, target, weights, MAX_ROWS)
    if not np.ptp(y):
        return []
    y = -y if (y < 0.0).all() else y
    with np.errstate(all="ignore"):
        terms = {f"log2({name})": np.log2(x) for name, x in inputs.items() if (x > 0.0).all()}
        terms |= itertools.islice(monomials(inputs), MAX_MONOMIALS)
        formulas = sorted(relation for kind in _KINDS for relation in _relations(kind, terms, y, root)) if terms else []
    return [text for _, text in formulas[:NUM_KEPT]]


def sampled_rows(columns: dict[str, Row], target: Row, weights: Row | None, most: int) -> tuple[dict[str, Row], Row, Row]:
    """Rows spread evenly: of the columns, of the target over its largest size, and roots of the weights over theirs."""
    rows = spread_rows(len(target), most)
    root = np.ones(len(rows)) if weights is None else np.sqrt(weights[rows] / weights.max())
    return {name: values[rows] for name, values in columns.items()}, target[rows] / np.abs(target).max(), root


def monomials(inputs: dict[str, Row]) -> Iterator[tuple[str, Row]]:
    """Yield monomials of up to four inputs that are finite and not the same everywhere, the simplest first."""
    signed = [sign * power for power in POWERS for sign in (1.0, -1.0)]
    powers: list[tuple[tuple[str, float], ...]] = [((name, power),) for name in inputs for power in signed]
    for count, most in SEVERAL:
        chosen = itertools.product([float(power) for power in range(-most, most + 1) if power], repeat=count)
        exponents = [choice for choice in chosen if sum(map(abs, choice)) <= MOST_POWERS]
        powers += [
            tuple(zip(names, choice, strict=True)) for names in itertools.combinations(inputs, count) for choice in exponents
        ]
    for factors in sorted(
        powers, key=lambda monomial: sum(1.0 + abs(power) + 2.0 * (power % 1.0 > 0.0) for _, power in monomial)
    ):
        if all((inputs[name] > 0.0).all() or power in (1.0, 2.0, 3.0, 4.0) for name, power in factors):
            values = np.prod([inputs[name] ** power for name, power in factors], axis=0)
            if np.isfinite(values).all() and np.ptp(values) > 1e-9 * np.abs(values).max():
                above = "*".join(_power(name, power) for name, power in factors if power > 0.0)
                below = "*".join(_power(name, -power) for name, power in factors if power < 0.0)
                yield f"{above or '1'}/({below})" if below else above, values


def _power(name: str, power: float) -> str:
    whole, half = divmod(power, 1.0)
    return "*".join([name if whole == 1.0 else f"{name}**{whole:.0f}"] * (whole > 0.0) + [f"sqrt({name})"] * (half > 0.0))


@dataclass(frozen=True)
class _System:
    """Equations of a relation. names, values: of monomials. rows: these, and those times the partner, about `centres`, which
    keeps z from being explained by itself. root: `(num_points,)`, of the weights of z. scale: of errors of y.
    """

    kind: _Kind
    names: list[str]
    values: Row
    rows: Row
    centres: Row
    z: Row
    root: Row
    y: Row
    scale: Row

    def solved(self, chosen: tuple[int, ...], has_constant: bool = True) -> tuple[float, str]:
        """The share of the variance that a relation of these terms leaves, and its formula."""
        design = np.concatenate([np.ones((int(has_constant), len(self.y))), self.rows[list(chosen)]])
        sizes = np.abs(design).max(axis=1)
        scaled = (design / sizes[:, None] * self.root).T
        if not np.isfinite(scaled).all():
            return np.inf, ""
        numbers = np.linalg.lstsq(scaled, self.z * self.root, rcond=1e-14)[0] / sizes
        terms = dict(zip(chosen, numbers[int(has_constant) :], strict=True))
        count, rest = len(self.names), 1.0
        above = [("", float(numbers[0]))] * has_constant + [(self.names[i], number) for i, number in terms.items() if i < count]
        below = [(self.names[i - count], number) for i, number in terms.items() if i >= count]
        n, d = np.full(len(self.y), numbers[0] * has_constant), np.zeros(len(self.y))
        for i, number in terms.items():
            if i < count:
                n += number * self.values[i]
            else:
                d += number * (self.values[i - count] - self.centres[i - count])
                rest += number * float(self.centres[i - count])
        left = [float((((solution - self.y) * self.scale) ** 2).sum()) for solution in self.kind.solve(n, d)]
        best = int(np.argmin(np.nan_to_num(left, nan=np.inf)))
        text = summed(above)
        if self.kind.is_quotient and below:
            is_one = bool(abs(rest) > 1e-7 * np.abs(d).max())  # the denominator's constant, after division by it
            unit = rest if is_one else below[0][1]
            text = summed([(name, number / unit) for name, number in above])
            text = f"({text})/({summed([('', 1.0)] * is_one + [(name, -number / unit) for name, number in below])})"
        return (left[best] if np.isfinite(left[best]) else np.inf), self.kind.texts[best].format(n=text, d=summed(below))

    def shortened(self, chosen: tuple[int, ...], most: float) -> tuple[float, str]:
        """As `solved`, without terms that the error is not above `most` without."""
        best, has_constant = self.solved(chosen), True
        for left_out in (-1, *chosen):
            fewer = tuple(term for term in chosen if term != left_out)
            error, text = self.solved(fewer, has_constant and left_out >= 0) if fewer else (np.inf, "")
            if error < most:
                best, chosen, has_constant = (error, text), fewer, has_constant and left_out >= 0
        return best


def _relations(kind: _Kind, terms: dict[str, Row], y: Row, root: Row) -> Iterator[tuple[float, str]]:
    """Yields the best relations of a kind with their scores, lower is better."""
    (z, slope), names, values = kind.transform(y), [*terms], np.array([*terms.values()])
    weight = root / np.abs(slope) / (np.abs(y) + LEAST)  # so that small ones count, too
    if not (np.isfinite(z).all() and np.isfinite(weight).all() and np.ptp(z)):
        return
    centres = values.mean(axis=1) if kind.is_quotient else np.zeros(len(values))
    rows = values
    if kind.partner is not None:
        rows = np.concatenate([values, ((values - centres[:, None]) * kind.partner(y))[:MAX_PARTNERS]])
    scale = root / np.sqrt(np.cov(y, aweights=root**2, ddof=0) * (root @ root))
    system = _System(kind, names, values, rows, centres, z, weight, y, scale)
    unit = weight / np.linalg.norm(weight)
    matrix = rows / np.abs(rows).max(axis=1, keepdims=True) * unit
    matrix -= (matrix @ unit)[:, None] * unit
    sizes = np.linalg.norm(matrix, axis=1, keepdims=True)
    matrix /= np.where(sizes > 1e-9, sizes, np.inf)
    t, least = z * weight - (z * weight) @ unit * unit, np.inf
    base = tuple(i for i, name in enumerate(names) if kind.has_powers and name.startswith("log2"))
    for beam in _beams(matrix, t, base, min(len(base) + MAX_TERMS, len(y) // 3)):
        error, chosen = min((system.solved(candidate)[0], candidate) for candidate in beam[:NUM_WEIGHED])
        if error < NEAR and error < GAIN * least:
            error, text = system.shortened(chosen, max(4.0 * error, EXACT))
            yield float(np.log10(max(error, EXACT))) + LETTER * len(text), text
        least = min(least, error)
        if least < EXACT:
            return


def _beams(matrix: Row, t: Row, base: tuple[int, ...], most: int) -> Iterator[list[tuple[int, ...]]]:
    """Yield the rows whose sums leave least of t: of the base, with one more, and so on up to the most; the best first."""
    beam = [base]
    if base:
        yield beam
    for count in range(len(base) + 1, most + 1):
        if count == 2 and not base:
            pairs: list[tuple[int, ...]] = [(row,) for row in range(len(matrix))]
            along, angles = matrix @ t, matrix @ matrix.T
            gain = (2.0 * along)[:, None] * angles
            gain *= -along
            gain += along[:, None] ** 2 + along**2
            left = np.subtract(1.0, np.square(angles, out=angles), out=angles)
            left[left <= LEAST_LEFT] = np.inf
            errors = t @ t - np.divide(gain, left, out=gain)
        else:
            pairs, bases = beam, np.linalg.qr(matrix[np.array(beam, np.intp)].swapaxes(1, 2))[0]
            rests = t - (bases @ (t @ bases)[:, :, None])[:, :, 0]
            spans = matrix @ np.moveaxis(bases, 0, 1).reshape(len(t), -1)
            left = 1.0 - (spans**2).reshape(len(matrix), *bases.shape[::2]).sum(axis=2)
            left[left <= LEAST_LEFT] = np.inf
            errors = (rests**2).sum(axis=1) - (matrix @ rests.T) ** 2 / left
        left_over: dict[tuple[int, ...], float] = {}
        num_seen = 2 * count * WIDTH  # a sum comes from as many as it has terms
        for flat in smallest(errors, num_seen).tolist():
            row, pair = divmod(flat, errors.shape[1])
            if row not in pairs[pair]:
                left_over[tuple(sorted((*pairs[pair], row)))] = float(errors[row, pair])
        beam = sorted(left_over, key=lambda rows: left_over[rows])[:WIDTH]
        if not beam:
            return
        yield beam


def summed(parts: list[tuple[str, float]]) -> str:
    """A sum of terms times numbers; a term without a name is a number alone."""
    texts = []
    for name, number in parts:
        factor, below = f"{number:.{DIGITS}g}", name.removeprefix("1/")
        texts.append(f"{factor}/{below}" if below != name else f"{factor}*{name}" if name and factor != "1" else name or factor)
    return " + ".join(texts) or "0"
