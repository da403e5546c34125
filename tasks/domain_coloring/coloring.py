"""Domain colouring: a complex number f + ig becomes a colour, its angle the hue and its magnitude the lightness.

Owns the conversion of f and g to RGB. Knows nothing of points, of programs or of what a good picture is.

Hue, saturation and lightness are those of HSL (Joblove & Greenberg 1978, "Color Spaces for Computer Graphics"): hue is the
angle, red for positive real numbers; saturation is constant; lightness grows with the logarithm of the magnitude, from black
at zero through the purest colours to white. Infinite and undefined numbers are white.
"""

from __future__ import annotations

import math

import numpy as np

from .scratch import Scratch

# Minimax fit of (6 / pi) atan(r) = r P(r^2) on [0, 1]: twice an angle, in sixths of a turn; error below 2.3e-5.
_ATAN = (1.90960407, -0.630835652, 0.344078898, -0.162636623, 0.0398112237)
_WHITE = 1e30  # squared magnitude beyond which everything is white; keeps infinities and NaN out of what follows
_LOG_SCALE = 2.0  # lightness is proportional to log(1 + 2 |f + ig|)


class Coloring:
    """Colours of complex numbers.

    Args:
        saturation: of all colours, from 0 (grey) to 1.
        pure_magnitude: the magnitude m whose colour is purest: lightness 1/2. Everything from 2 m (m + 1) on is white.
    """

    def __init__(self, saturation: float = 0.65, pure_magnitude: float = 2.0):
        if not 0.0 <= saturation <= 1.0:
            raise ValueError(f"saturation is {saturation}, must be from 0 to 1")
        if not (pure_magnitude > 0.0 and math.isfinite(pure_magnitude)):
            raise ValueError(f"pure_magnitude is {pure_magnitude}, must be above 0")
        self._saturation = np.float32(saturation)
        self._lightness_scale = np.float32(0.5 / math.log1p(_LOG_SCALE * pure_magnitude))

    def rgb(self, f: np.ndarray, g: np.ndarray, scratch: Scratch | None = None) -> np.ndarray:
        """Red, green and blue in [0, 1] of float32 arrays of one shape: `(3, *shape)` float32.

        With `scratch` the result lies in its memory, until its next use.
        """
        scratch = scratch or Scratch()
        out = scratch("rgb", (3, *f.shape))
        red, green, blue = out
        with np.errstate(all="ignore"):
            magnitude = np.multiply(f, f, out=scratch("magnitude", f.shape))
            magnitude += np.multiply(g, g, out=red)
            np.fmin(magnitude, np.float32(_WHITE), out=magnitude)
            np.sqrt(magnitude, out=magnitude)
            sixths = _sixths_of_turn(f, g, magnitude, scratch)
        # Each channel is a trapezoid over the hue. Green and blue mirror each other in the real axis.
        np.subtract(np.float32(2.0), sixths, out=red)
        np.clip(red, np.float32(0.0), np.float32(1.0), out=red)
        np.minimum(sixths, np.float32(1.0), out=green)
        np.subtract(sixths, np.float32(2.0), out=blue)
        np.maximum(blue, np.float32(0.0), out=blue)
        half_sum = np.add(green, blue, out=sixths)
        half_sum *= np.float32(0.5)
        half_difference = np.subtract(green, half_sum, out=green)
        np.copysign(half_difference, g, out=half_difference)
        np.subtract(half_sum, half_difference, out=blue)
        np.add(half_sum, half_difference, out=green)

        lightness = self._lightness(magnitude)
        chroma = np.subtract(np.float32(1.0), lightness, out=sixths)
        np.minimum(lightness, chroma, out=chroma)
        chroma *= np.float32(2.0) * self._saturation
        out -= np.float32(0.5)
        out *= chroma
        out += lightness
        return out

    def _lightness(self, magnitude: np.ndarray) -> np.ndarray:
        lightness = np.multiply(magnitude, np.float32(_LOG_SCALE), out=magnitude)
        lightness += np.float32(1.0)
        np.log(lightness, out=lightness)
        lightness *= self._lightness_scale
        return np.minimum(lightness, np.float32(1.0), out=lightness)


def _sixths_of_turn(f: np.ndarray, g: np.ndarray, magnitude: np.ndarray, scratch: Scratch) -> np.ndarray:
    """|angle of f + ig| in sixths of a turn, from 0 to 3; an arbitrary value in that range where f or g is not finite."""
    # The tangent of half the angle to the nearer half of the real axis lies in [0, 1], so no octants are needed.
    tangent, square, angle = scratch("tangent", f.shape), scratch("square", f.shape), scratch("angle", f.shape)
    denominator = np.abs(f, out=square)
    denominator += magnitude
    denominator += np.float32(np.finfo(np.float32).tiny)
    np.abs(g, out=tangent)
    tangent /= denominator
    np.fmin(tangent, np.float32(1.0), out=tangent)
    np.multiply(tangent, tangent, out=square)
    np.multiply(square, np.float32(_ATAN[-1]), out=angle)
    for coefficient in _ATAN[-2:0:-1]:
        angle += np.float32(coefficient)
        angle *= square
    angle += np.float32(_ATAN[0])
    angle *= tangent
    np.subtract(np.float32(1.5), angle, out=angle)
    np.copysign(angle, f, out=angle)
    return np.subtract(np.float32(1.5), angle, out=angle)
