"""Detection of noise in proportion to a target, as that of most measurements.

Owns that comparison, by the likelihoods of first formulas. Knows nothing of searches.
"""

from __future__ import annotations

import math
import time

import numpy as np
from numpy.typing import NDArray

from evo.language.formula import FUNCTIONS
from evo.language.parsed import closure
from evo.regression.guesses import guesses, spread_rows
from evo.regression.inverses import MAX_ROWS, inverses

Row = NDArray[np.float64]  # a number for each point

LEAST_RANGE = 10.0  # of positive targets, the largest over the smallest: in less, both kinds of noise are nearly the same
LEAST_NOISE = 1e-3  # of the target: with less, data are exact
MOST_SHARED = 0.25  # correlation of errors of neighbouring rows: beyond, they are what the formula lacks
MAX_NEIGHBOURS = 4096  # rows whose neighbours are looked at
MOST_NOISE = 0.3  # of the target: with more, the formula is wrong rather than the data noisy
ROWS_OF_INPUT = 50  # rows for each input: with fewer, neighbours are too far away to tell noise from misfit
SURE = 0.1  # nats a row by which proportional noise must be likelier
GROWS, STAYS = 0.25, 0.35  # rank correlations with the prediction: at least of errors, at most of relative errors
_NUMPY = {name: getattr(np, texts[0].removeprefix("np.")) for name, texts in FUNCTIONS.items()}


def proportional_weights(columns: dict[str, Row], target: Row, until_s: float = math.inf) -> Row | None:
    """Weights of squared errors for noise in proportion to a smooth formula; None: noise that is the same everywhere says as
    much of the data.

    Args:
        columns: inputs, by names that formulas may have, `(num_points,)`.
        target: `(num_points,)`.
        until_s: of `time.monotonic`, when it is given up.
    """
    if len(target) < ROWS_OF_INPUT * len(columns) or not target.min() > 0.0 or target.max() < LEAST_RANGE * target.min():
        return None
    columns = {f"x{number}": values for number, values in enumerate(columns.values())}  # no function has such a name
    even, falling = np.ones_like(target), (target.min() / target) ** 2
    texts = list[str]()
    for weights in (even, falling):  # either noise may have the other's
        texts += _formulas(columns, target, weights, until_s)
        if time.monotonic() >= until_s:
            return None
    (alike, level, _), (grown, predicted, noise) = _likeliest(texts, columns, target, {0.0: even, 1.0: falling})
    if level is None or predicted is None or not LEAST_NOISE <= noise <= MOST_NOISE or not grown - alike > SURE * len(target):
        return None
    relative = target / predicted - 1.0
    if _trend(target - level, level) < GROWS or abs(_trend(relative, predicted)) > STAYS:
        return None
    if _shared(np.stack([*columns.values()], axis=1), relative) + 2.0 / len(target) ** 0.5 > MOST_SHARED:
        return None
    return np.asarray((target.min() / predicted) ** 2)


def _trend(errors: Row, predicted: Row) -> float:
    """The rank correlation of absolute errors with predictions."""
    first, second = (np.argsort(np.argsort(values)) for values in (np.abs(errors), predicted))
    return float(np.corrcoef(first, second)[0, 1])


def are_shared(points: Row, errors: Row) -> bool:
    """Return whether neighbouring rows surely share errors, as they do those of what a formula lacks. points: `(num_points,
    num_inputs)`.
    """
    return bool(_shared(points, errors) > MOST_SHARED + 2.0 / len(errors) ** 0.5)


def _shared(points: Row, errors: Row) -> float:
    """The correlation of errors with those of the nearest rows: near 0 of noise, near 1 of what a formula lacks."""
    from scipy.spatial import KDTree

    rows = spread_rows(len(errors), MAX_NEIGHBOURS)
    points, errors = points[rows], errors[rows]
    points = (points - points.mean(axis=0)) / np.maximum(points.std(axis=0), np.finfo(np.float64).tiny)
    nearest = KDTree(points).query(points, 2)[1][:, 1]
    return float(np.corrcoef(errors, errors[nearest])[0, 1])


def _formulas(columns: dict[str, Row], target: Row, weights: Row, until_s: float) -> list[str]:
    """First formulas by these weights."""
    rows = spread_rows(len(target), 4 * MAX_ROWS)
    sample = {name: values[rows] for name, values in columns.items()}, target[rows], weights[rows]
    return guesses(*sample) + inverses(*sample, is_broad=False, until_s=until_s)


def _likeliest(
    texts: list[str], columns: dict[str, Row], target: Row, weights: dict[float, Row]
) -> list[tuple[float, Row | None, float]]:
    """The most likely of these formulas if noise grows by a power of it, for the weights of each power: its likelihood
    (logarithm, up to a constant), its predictions, and the noise over these.
    """
    best: dict[float, tuple[float, Row | None, float]] = dict.fromkeys(weights, (-np.inf, None, 0.0))
    with np.errstate(all="ignore"):
        for text in dict.fromkeys(texts):
            matrix = np.stack([np.ones_like(target), closure(text, _NUMPY)(columns)], axis=1)
            if not np.isfinite(matrix).all():
                continue
            for power, shares in weights.items():
                root = np.sqrt(shares)
                predicted = matrix @ np.linalg.lstsq(matrix * root[:, None], target * root, rcond=1e-13)[0]
                if power and not predicted.min() > 0.0:
                    continue
                noise = float(np.sqrt(np.mean(((target - predicted) / predicted**power) ** 2)))
                likelihood = -len(target) * np.log(noise) - power * float(np.log(np.abs(predicted)).sum())
                if likelihood > best[power][0]:
                    best[power] = likelihood, predicted, noise
    return [*best.values()]
