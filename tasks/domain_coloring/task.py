"""Pictures by domain colouring: programs map a point (x, y) and a time t to a complex number f + ig, which sets the colour.

Owns the points, the treatment of numbers that are not finite, and what is drawn. evo.pictures has colours and statistics of
pictures; objective.py owns what makes a picture good.
"""

import math
from collections.abc import Sequence

import numpy as np

import evo
from evo.pictures import Coloring, PictureStatistics, PictureSums

from . import cuda
from .objective import objective

RANGES = {"detail": (0.0, 0.5), "hue": (0.0, 360.0), "orientation": (0.0, 180.0)}  # of the measures
SUPERSAMPLING = 2  # drawn pictures: points per pixel, along each side; picture() adds up two by two


class DomainColoring(evo.Task):
    """See README.md.

    Args:
        size: pixels along a side of the scored picture, a power of two.
        low, high: the pictures show the square from `low` to `high` in x and in y.
        t: the time at which pictures are scored.
        t_swing: amplitude of t around that time in an animation.
        saturation, pure_magnitude: see `Coloring`.
        measures: names of those that span the archive.
        kernel: score on a GPU by kernel.cu, if it serves the size and NVRTC is installed.
    """

    inputs = {"t": "f32", "x": "f32", "y": "f32"}
    outputs = {"f": "f32", "g": "f32"}
    needs_kernel = False

    def __init__(
        self,
        size: int = 64,
        low: float = -0.75,
        high: float = 2.25,
        t: float = 1.0,
        t_swing: float = 0.4,
        saturation: float = 0.65,
        pure_magnitude: float = 2.0,
        measures: Sequence[str] = ("colourfulness", "detail"),
        kernel: bool = True,
    ):
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise evo.UserError(f"task_options: low is {low} and high is {high}, low must be the smaller")
        ranges = {"colourfulness": (0.0, saturation or 1.0), **RANGES}
        if unknown := set(measures) - set(ranges):
            raise evo.UserError(f"task_options.measures: no '{min(unknown)}', these are: {', '.join(ranges)}")
        self.measures = {name: ranges[name] for name in measures}
        self._low, self._width = low, high - low
        self._t, self._t_swing = t, t_swing
        try:
            self._statistics = PictureStatistics(size)
            self._coloring = Coloring(saturation, pure_magnitude)
        except ValueError as error:
            raise evo.UserError(f"task_options: {error}") from error
        self._has_kernel = kernel and size in cuda.SIZES
        self.kernel_sums = self._statistics.num_sums
        self.cpu_sums = PictureSums(self._statistics, self._coloring)
        self._points = self._grid(size, evo.Window(size), _jitter(size)) | {"t": np.float32(t)}

    def points(self):
        return self._points

    def score(self, outputs, programs):
        return self.score_sums(self._statistics.sums_of_complex(outputs["f"], outputs["g"], self._coloring), programs)

    def kernel_defines(self):
        return cuda.macros(self._statistics, self._coloring) if self._has_kernel else None

    def score_sums(self, sums, programs):
        statistics = self._statistics.statistics(sums)
        objectives = objective(statistics)
        objectives[~(statistics["finite"] >= 0.5)] = np.nan
        return evo.Scores(objectives, np.stack([statistics[name] for name in self.measures], axis=1))

    def picture_points(self, size, t, window=None):
        # There and back, so that every animation is a loop. It begins with the scored picture.
        swung = self._t + self._t_swing * math.sin(2.0 * math.pi * t)
        samples = evo.Window(*(SUPERSAMPLING * each for each in window or evo.Window(size)))
        return self._grid(SUPERSAMPLING * size, samples) | {"t": np.float32(swung)}

    def picture(self, outputs, size):
        pictures = np.empty((len(outputs["f"]), size, size, 3), np.uint8)
        for picture, f, g in zip(pictures, outputs["f"], outputs["g"], strict=True):
            picture[:] = self._coloring.picture(f, g, size)
        return pictures

    def _grid(
        self, size: int, window: evo.Window, jitter: tuple[np.ndarray, np.ndarray] | tuple[float, float] = (0.0, 0.0)
    ) -> dict:
        """The centres of a window's `size` x `size` cells, moved by `jitter` cells; rows from the top, where y is highest."""
        cell = self._width / window.side
        centre = np.arange(size) + 0.5
        x = self._low + cell * (window.left + centre[None, :] + jitter[0])
        y = self._low + cell * (window.side - window.top - centre[:, None] + jitter[1])
        shape = (size, size)
        return {
            "x": np.broadcast_to(x.astype(np.float32), shape).ravel(),
            "y": np.broadcast_to(y.astype(np.float32), shape).ravel(),
        }


def _jitter(side: int) -> tuple[np.ndarray, np.ndarray]:
    """Fixed pseudo-random offsets in [-0.5, 0.5), `(side, side)` each.

    Structure too fine for the pixels would appear as a moire pattern, which may look good but exists at one resolution only.
    At jittered points it appears as noise instead (Cook 1986), and noise scores low.
    """
    bits = np.arange(1, 2 * side * side + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)  # SplitMix64
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bits ^= bits >> np.uint64(31)
    offsets = (bits >> np.uint64(11)) * 2.0**-53 - 0.5
    return tuple(offsets.reshape(2, side, side))
