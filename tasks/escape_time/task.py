"""Pictures of iterated maps, in Mandelbrot's manner: how fast a program, repeated, sends each point of the plane away.

Owns the loop, the points, the colours, and what makes a picture good. `evo.pictures` has the statistics.
"""

import math

import numpy as np

import evo
from evo.pictures import PictureStatistics

STEPS, RADIUS = 40, 32.0  # a point that is farther away than RADIUS has escaped
# Where z has escaped it stays: GOES is 0 there, and 1 before. min and max make numbers of what is none.
SQUARE = "(x*x + y*y)"
GOES = f"max(min(1e6*({RADIUS**2} - {SQUARE}), 1), 0)"
LEFT, BOTTOM, WIDTH = -1.75, -1.25, 2.5  # of the plane that pictures show
SUPERSAMPLING = 3  # drawn pictures: points per pixel, along each side
LAST = 1e3  # of the largest distance from the origin that counts as an orbit's nearest
NUM_COLOURS = 4096  # of either kind
# Colours from the fastest points to the slowest, and of those that stay, from the nearest to the origin to the farthest.
OUTSIDE = ("0b0a1e", "232a63", "3b6fb6", "a9dbe8", "fff6d6", "ffc44d", "e8652a", "8c1c3a", "35104a", "100b24", "2f7f86", "f2f0c4")
INSIDE = ("fdf3cf", "e09b4e", "8a2f4f", "2a1243", "07060f")
# Statistic -> where its factor of the objective is 0, and where it is 1; linear between.
RAMPS = {
    "brightness": (0.08, 0.3),
    "contrast": (0.05, 0.2),
    "entropy": (0.4, 0.9),
    "coherence": (0.35, 0.5),
    "anisotropy": (1.0, 0.4),
    "squareness": (1.0, 0.4),
    "spread": (0.2, 0.6),
    "seam": (1.0, 0.6),
    "hue_variety": (0.0, 0.4),
}
LEAST_FACTOR = 0.02  # so that of two bad pictures one is better
TOLERANCE = 1.2  # octaves of power that the spectrum may differ from 1/f^2


class EscapeTime(evo.Task):
    """See README.md.

    Args:
        size: pixels along a side of the scored picture, a power of two.
    """

    inputs = {"x": "f32", "y": "f32", "a": "f32", "b": "f32", "t": "f32"}
    outputs = {"f": "f32", "g": "f32"}
    measures = {"never_escaping": (0.0, 1.0), "detail": (0.0, 0.6)}
    objective_range = (0.0, 1.0)
    rollout = evo.Rollout(
        steps=STEPS,
        state={
            "x": f"{GOES}*max(min(x*x - y*y + f, 1e3), -1e3) + (1 - {GOES})*x",
            "y": f"{GOES}*max(min(2*x*y + g, 1e3), -1e3) + (1 - {GOES})*y",
            "slow": f"slow + {GOES}*exp2(-sqrt{SQUARE})",  # smooth where the number of steps has jumps
            "near": f"min(near, {SQUARE})",
        },
        record_every=STEPS,
    )

    def __init__(self, size: int = 64):
        try:
            self._statistics = PictureStatistics(size)
        except ValueError as error:
            raise evo.UserError(f"task_options: {error}") from error
        rng = np.random.default_rng(1)  # anywhere in its pixel, or finer structure shows as moire
        self._points = _grid(evo.Window(size), size, rng.uniform(-0.5, 0.5, (2, size, size)), 1.0)

    def programs(self):
        return ["f = a; g = b", "f = -0.8; g = 0.156"]  # the Mandelbrot set, and a Julia set

    def points(self):
        return self._points

    def score(self, outputs, programs):
        colours, has_escaped = _colours(outputs)
        found = self._statistics.statistics(self._statistics.sums(colours))
        objective = np.exp(-0.5 * (found["spectral_deviation"] / TOLERANCE) ** 2)
        objective *= np.clip((0.8 - found["coherence"]) / 0.25, LEAST_FACTOR, 1.0)  # smooth pictures have no fractal
        for name, (zero, one) in RAMPS.items():
            objective = objective * np.clip((found[name] - zero) / (one - zero), LEAST_FACTOR, 1.0)
        objective[~np.isfinite(list(outputs.values())).all(axis=(0, 2, 3))] = np.nan
        return evo.Scores(objective, np.stack([1.0 - has_escaped.mean(axis=1), found["detail"]], axis=1))

    def picture_points(self, size, t, window=None):
        side, left, top = (SUPERSAMPLING * each for each in window or evo.Window(size))
        swung = 1.0 + 0.25 * math.sin(2.0 * math.pi * t)
        return _grid(evo.Window(side, left, top), SUPERSAMPLING * size, np.zeros((2, 1, 1)), swung)

    def picture(self, outputs, size):
        colours = _colours(outputs)[0].reshape(3, -1, size, SUPERSAMPLING, size, SUPERSAMPLING).mean(axis=(3, 5))
        return (255.0 * np.moveaxis(colours, 0, -1) + 0.5).astype(np.uint8)


def _grid(window, count, jitter, t):
    """The centres of a window's `count` x `count` cells, moved by `jitter` cells; rows from the top."""
    centre = np.arange(count) + 0.5
    a = LEFT + WIDTH / window.side * (window.left + centre[None, :] + jitter[0])
    b = BOTTOM + WIDTH / window.side * (window.side - window.top - centre[:, None] + jitter[1])
    a, b = (np.broadcast_to(each, (count, count)).astype(np.float32).ravel() for each in (a, b))
    return {"x": a, "y": b, "a": a, "b": b, "t": np.float32(t), "slow": 0.0, "near": LAST}


def _table(colours):
    """A smooth row of colours, `(3, NUM_COLOURS)` float32 from 0 to 1."""
    stops = np.array([[*bytes.fromhex(text)] for text in colours]) / 255.0
    at = np.linspace(0.0, len(stops) - 1.0, NUM_COLOURS)
    return np.stack([np.interp(at, np.arange(len(stops)), column) for column in stops.T]).astype(np.float32)


_COLOURS = np.concatenate([_table(OUTSIDE), _table(INSIDE)], axis=1)


def _colours(outputs):
    """`(3, batch_size, num_points)` float32 from 0 to 1, and which points escape, `(batch_size, num_points)`."""
    x, y, slow, near = (np.nan_to_num(outputs[name][:, -1]).clip(-1e6, 1e6) for name in ("x", "y", "slow", "near"))
    slow, near = np.maximum(slow, 0.0), np.sqrt(np.maximum(near, 0.0))
    has_escaped = x * x + y * y >= RADIUS**2
    share = np.where(has_escaped, slow / (slow + np.float32(3.0)), np.float32(1.0) + near / (near + np.float32(0.3)))
    return np.take(_COLOURS, (share * (NUM_COLOURS - 1)).astype(np.int32), axis=1), has_escaped
