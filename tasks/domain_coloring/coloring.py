"""Domain colouring: a complex number f + ig becomes a colour, its angle the hue and its magnitude the lightness.

Owns the conversion of f and g to RGB. Knows nothing of points, of programs or of what a good picture is.

Hue, saturation and lightness are those of HSL (Joblove & Greenberg 1978, "Color Spaces for Computer Graphics"): hue is the
angle, red for positive real numbers; saturation is constant; lightness grows with the logarithm of the magnitude, from black
at zero through the purest colours to white. Infinite and undefined numbers are white.
"""

from __future__ import annotations

import math

import numpy as np

from . import kernels

_LOG_SCALE = 2.0  # lightness is proportional to log(1 + 2 |f + ig|)


class Coloring:
    """Colours of complex numbers.

    Args:
        saturation: of all colours, from 0 (grey) to 1.
        pure_magnitude: the magnitude m whose colour is purest: lightness 1/2. Everything from 2 m (m + 1) on is white.

    Attributes:
        saturation, lightness_scale: what `kernels.color` takes.
    """

    def __init__(self, saturation: float = 0.65, pure_magnitude: float = 2.0):
        if not 0.0 <= saturation <= 1.0:
            raise ValueError(f"saturation is {saturation}, must be from 0 to 1")
        if not (pure_magnitude > 0.0 and math.isfinite(pure_magnitude)):
            raise ValueError(f"pure_magnitude is {pure_magnitude}, must be above 0")
        self.saturation = np.float32(saturation)
        self.lightness_scale = np.float32(0.5 / math.log1p(_LOG_SCALE * pure_magnitude))

    def rgb(self, f: np.ndarray, g: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Red, green and blue in [0, 1] of contiguous float32 arrays of one shape: `(3, *shape)` float32, in `out` if given."""
        if out is None:
            out = np.empty((3, *f.shape), np.float32)
        kernels.color(f.ravel(), g.ravel(), self.saturation, self.lightness_scale, out.reshape(3, -1))
        return out
