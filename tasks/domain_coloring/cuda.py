"""Macros of kernel.cu: the size of pictures, tables and the columns of its sums, as macros.

Owns the sizes of pictures that kernel.cu serves. Knows nothing of how sums are computed.
"""

from __future__ import annotations

import numpy as np

from evo.pictures import FIRST_BAND, SUMS, Coloring, PictureStatistics

SIZES = (32, 64)  # a block's shared memory holds no larger picture


def macros(statistics: PictureStatistics, coloring: Coloring) -> dict[str, int | str]:
    """Macros for pictures of a size and their colours."""
    return {
        "SATURATION": _literal(coloring.saturation),
        "LIGHTNESS_SCALE": _literal(coloring.lightness_scale),
        **{f"SUM_{name.upper()}": column for column, name in enumerate(SUMS)},
        "SIZE": statistics.size,
        "LOG_SIZE": statistics.size.bit_length() - 1,
        "HISTOGRAM": len(SUMS),
        "BANDS": FIRST_BAND,
        "NUM_BANDS": statistics.num_sums - FIRST_BAND - 1,
        "NUM_FINITE": statistics.num_sums - 1,
        "NUM_RESULTS": statistics.num_sums,
        "ROOTS": ", ".join(f"{{{_literal(x)}, {_literal(y)}}}" for x, y in statistics.roots.T),
        "TAPER": ", ".join(_literal(value) for value in statistics.taper),
    }


def _literal(value: float | np.float32) -> str:
    return f"{float(value)!r}f"
