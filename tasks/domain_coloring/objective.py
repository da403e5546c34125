"""Objective of a picture: statistics that natural scenes and works of art share.

Owns the factors of the objective. evo.pictures computes the statistics; the README gives each factor and its source.
"""

from __future__ import annotations

import numpy as np

from evo.pictures import STATISTICS

SPECTRAL_TOLERANCE = 1.2  # octaves of power
LEAST_HUE_FACTOR = 0.3  # without any variety
# Statistic -> where its factor is 0, and where it is 1; linear between. The first may be the larger.
RAMPS = (
    ("brightness", 0.1, 0.35),
    ("brightness", 1.0, 0.75),
    ("contrast", 0.0, 0.18),
    ("entropy", 0.3, 0.85),
    ("coherence", 1.0 / 3.0, 0.8),
    ("anisotropy", 1.0, 0.3),
    ("squareness", 1.0, 0.3),
    ("spread", 0.2, 0.65),
    ("seam", 1.0, 0.7),
    ("finite", 0.75, 1.0),  # a few poles and holes are part of the genre; a quarter of the picture makes it worthless
    ("hue_variety", 0.0, 0.5),
)
_ZEROS, _ONES = (np.array(column) for column in list(zip(*RAMPS, strict=True))[1:])
_COLUMNS = [STATISTICS.index(name) for name, _, _ in RAMPS]


def objective(statistics: np.ndarray) -> np.ndarray:
    """`(batch_size,)` float64 in [0, 1]: a product of factors, each 1 over the range of natural scenes and art."""
    values = statistics.view(np.float64).reshape(-1, len(STATISTICS))[:, _COLUMNS]
    factors = np.minimum(np.maximum((values - _ZEROS) / (_ONES - _ZEROS), 0.0), 1.0)
    factors[:, -1] = LEAST_HUE_FACTOR + (1.0 - LEAST_HUE_FACTOR) * factors[:, -1]
    return factors.prod(axis=1) * np.exp(-0.5 * (statistics["spectral_deviation"] / SPECTRAL_TOLERANCE) ** 2)
