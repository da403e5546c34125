"""Paper cut-outs: a program's three fields are shapes of three inks on paper, one above the other, each with a soft shadow.

Owns the points, how fields become paper, and what makes a composition good. `evo.pictures` has the statistics.
"""

import math
import re
from collections.abc import Sequence

import numpy as np

import evo
from evo.pictures import PictureStatistics

WIDTH, LEFT, BOTTOM = 3.0, -1.5, -1.146  # of the plane; pictures show its origin at the golden section of their height
STEP = 1 / 512  # of the differences that give a field's slope; this and all lengths below are shares of the picture's width
SUPERSAMPLING = 2  # drawn pictures: places per pixel, along each side
COLOURS = ("f3ead7", "e3a53b", "cf4a30", "1f2f46")
EDGE = 1 / 600  # over which a drawn shape fades out
HEIGHT, BLUR, DARKNESS = 0.018, 0.04, 0.38  # of shadows: how far they reach down to the right, how soft, how dark
RELIEF, RELIEF_WIDTH = 0.1, 0.025  # how much lighter the rim towards the light is, and how wide
# Statistic -> where its factor of the objective is 0, and where it is 1; linear between.
RAMPS = {
    "contrast": (0.05, 0.2),
    "coherence": (0.4, 0.7),
    "anisotropy": (0.9, 0.4),
    "squareness": (0.9, 0.4),
    "spread": (0.1, 0.5),
    "seam": (0.45, 0.15),
    "detail": (0.4, 0.25),
}
LEAST_FACTOR = 0.02  # so that of two bad pictures one is better
LEAST_SHARE, MOST_SHARE = 0.08, 0.62  # of the picture: what paper and each ink should cover
TOLERANCE = 1.5  # octaves of power that the spectrum may differ from 1/f^2


class Shapes(evo.Task):
    """See README.md.

    Args:
        size: pixels along a side of the scored picture, a power of two.
        colours: of the paper and of the inks, from the lowest shape to the highest, six hexadecimal digits each.
    """

    inputs = {"x": "f32", "y": "f32", "t": "f32"}
    outputs = {"low": "f32", "middle": "f32", "high": "f32"}
    measures = {"symmetry": (0.0, 1.0), "detail": (0.0, 0.35), "paper": (0.0, 1.0)}
    objective_range = (0.0, 1.0)

    def __init__(self, size: int = 64, colours: Sequence[str] = COLOURS):
        if len(colours) != 4 or not all(isinstance(each, str) and re.fullmatch("[0-9a-fA-F]{6}", each) for each in colours):
            raise evo.UserError(
                f"task_options.colours: {list(colours)}: must be four of six hexadecimal digits, such as {list(COLOURS)}"
            )
        self._inks = np.array([[*bytes.fromhex(each)] for each in colours], np.float32) / np.float32(255)
        try:
            self._statistics = PictureStatistics(size)
        except ValueError as error:
            raise evo.UserError(f"task_options: {error}") from error
        self._size = size
        self._points = _grid(evo.Window(size), size, 1.0)

    def programs(self):
        circle = "sqrt(x*x + y*y)"
        return [f"low = {circle} - 1; middle = abs(x) - 0.3*t; high = {circle} - 0.5"]

    def points(self):
        return self._points

    def score(self, outputs, programs):
        colours, shares, is_finite = self._paper(outputs, 1 / self._size)
        found = self._statistics.statistics(self._statistics.sums(colours))
        objective = np.exp(-0.5 * (found["spectral_deviation"] / TOLERANCE) ** 2)
        for share in shares:
            objective = objective * np.clip(np.minimum(share / LEAST_SHARE, (1 - share) / (1 - MOST_SHARE)), LEAST_FACTOR, 1.0)
        for name, (zero, one) in RAMPS.items():
            objective = objective * np.clip((found[name] - zero) / (one - zero), LEAST_FACTOR, 1.0)
        objective[~is_finite] = np.nan
        return evo.Scores(objective, np.stack([self._symmetry(colours), found["detail"], shares[0]], axis=1))

    def picture_points(self, size, t, window=None):
        side, left, top = (SUPERSAMPLING * each for each in window or evo.Window(size))
        return _grid(evo.Window(side, left, top), SUPERSAMPLING * size, 1.0 + 0.25 * math.sin(2.0 * math.pi * t))

    def picture(self, outputs, size):
        colours = self._paper(outputs, EDGE)[0].reshape(3, -1, size, SUPERSAMPLING, size, SUPERSAMPLING).mean(axis=(3, 5))
        return (255.0 * np.moveaxis(colours, 0, -1) + 0.5).astype(np.uint8)

    def _paper(self, outputs, edge):
        """Colours, `(3, batch_size, num_pixels)` float32 from 0 to 1; the shares of the picture where paper and each ink show,
        four of `(batch_size,)`; which programs are finite, `(batch_size,)`.

        Args:
            edge: over which shapes fade out.
        """
        count, num_points = outputs["low"].shape
        is_finite = np.ones(count, bool)
        colours = np.empty((3, count, num_points // 3), np.float32)
        colours[:] = self._inks[0][:, None, None]
        visible = [np.float32(1)]
        for ink, field in zip(self._inks[1:], outputs.values(), strict=True):
            is_finite &= np.isfinite(field).all(axis=1)
            here, right, below = np.moveaxis(np.nan_to_num(field).clip(-1e6, 1e6).reshape(count, 3, -1), 1, 0)
            across, down = (right - here) / np.float32(STEP), (below - here) / np.float32(STEP)
            slope = np.sqrt(across * across + down * down) + np.float32(1e-6)
            distance = (here + np.float32(1e-6)) / slope  # from the outline, to first order; below 0 within the shape
            facing = (across + down) / (slope * np.float32(math.sqrt(2)))  # 1: away from the light, which is up to the left
            shade = (distance - np.float32(HEIGHT) * facing) / np.float32(BLUR) + np.float32(0.25)
            colours *= 1 - np.float32(DARKNESS) * (1 - _smooth(shade))
            cover = 1 - _smooth(distance / np.float32(edge) + np.float32(0.5))
            rim = np.float32(RELIEF) * facing * _smooth(1 + distance / np.float32(RELIEF_WIDTH))
            colours += cover * (ink[:, None, None] * (1 - rim) - colours)
            visible = [*(share * (1 - cover) for share in visible), cover]
        return colours.clip(0, 1), [share.mean(axis=1) for share in visible], is_finite

    def _symmetry(self, colours):
        """Likeness of left and right, from 0 to 1."""
        pictures = colours.reshape(3, -1, self._size, self._size)
        pictures = pictures - pictures.mean(axis=(2, 3), keepdims=True)
        alike, most = ((pictures * other).mean(axis=(2, 3)).sum(axis=0) for other in (pictures[..., ::-1], pictures))
        return (alike / (most + np.float32(1e-6))).clip(0, 1)


def _grid(window, count, t):
    """The centres of a window's `count` x `count` cells, rows from the top, then the places a step to the right, and below."""
    centre = np.arange(count) + 0.5
    x = LEFT + WIDTH / window.side * (window.left + centre[None, :])
    y = BOTTOM + WIDTH / window.side * (window.side - window.top - centre[:, None])
    x, y = (np.stack([np.broadcast_to(each, (count, count))] * 3) for each in (x, y))
    x[1] += WIDTH * STEP
    y[2] -= WIDTH * STEP
    return {"x": x.astype(np.float32).ravel(), "y": y.astype(np.float32).ravel(), "t": np.float32(t)}


def _smooth(value):
    """0 below 0, 1 above 1, smooth between."""
    value = value.clip(0, 1)
    return value * value * (3 - 2 * value)
