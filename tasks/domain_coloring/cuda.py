"""What kernel.cu is compiled with: constants of kernels.py, tables and the columns of its sums, as macros.

Owns the sizes of pictures that kernel.cu serves, and where its sums lie. Knows nothing of how they are computed.
"""

from __future__ import annotations

import numpy as np

from . import kernels
from .coloring import Coloring
from .objective import EDGE_SLOPE

SIZES = (32, 64)  # a block's shared memory holds no larger picture
_HISTOGRAM = len(kernels.SUMS)
_BANDS = _HISTOGRAM + kernels.NUM_LUMINANCE_LEVELS


def num_sums(size: int) -> int:
    """Sums of a picture: those of `PictureStatistics.sums`, and the number of pixels that are finite."""
    return _BANDS + _num_bands(size) + 1


def macros(size: int, coloring: Coloring) -> dict[str, int | float | str]:
    """Of pictures of `size` x `size` pixels. Scalars in capitals of kernels.py keep their names, without underscores in front."""
    constants = {name.lstrip("_"): value for name, value in vars(kernels).items() if name.isupper() and np.isscalar(value)}
    constants |= {"SATURATION": coloring.saturation, "LIGHTNESS_SCALE": coloring.lightness_scale}
    constants["EDGE_ENERGY"] = np.float32((EDGE_SLOPE / size) ** 2)
    roots = np.exp(-2j * np.pi * np.arange(size // 2) / size).astype(np.complex64)
    taper = np.sin(np.pi * (np.arange(size) + 0.5) / size) ** 2  # that of the window in objective.py
    return {
        **{name: _literal(value) if isinstance(value, np.float32) else value for name, value in constants.items()},
        **{f"SUM_{name.upper()}": column for column, name in enumerate(kernels.SUMS)},
        "SIZE": size,
        "LOG_SIZE": size.bit_length() - 1,
        "HISTOGRAM": _HISTOGRAM,
        "BANDS": _BANDS,
        "NUM_BANDS": _num_bands(size),
        "NUM_FINITE": num_sums(size) - 1,
        "NUM_RESULTS": num_sums(size),
        "ROOTS": ", ".join(f"{{{_literal(root.real)}, {_literal(root.imag)}}}" for root in roots),
        "TAPER": ", ".join(repr(float(value)) for value in taper),
    }


def _num_bands(size: int) -> int:
    """Half-octave bands from 2^0.5 cycles a picture to size / 2."""
    return 2 * (size // 2).bit_length() - 3


def _literal(value: np.float32) -> str:
    return f"{float(value)!r}f"
