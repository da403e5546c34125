"""Reaction and diffusion: programs say how two chemicals react, and patterns form.

Owns diffusion, the beginning, the statistics of patterns that are objective and measures, and the drawing.
"""

import numpy as np
from scipy.ndimage import zoom

import evo

SIDE, STEPS, RECORD_EVERY = 64, 1000, 40
LATER = 5  # records between the two patterns whose difference is motion
RATE = 0.05  # the most that a chemical gains or loses in a step
REGION = 8  # cells; a side of the regions that a pattern is to fill alike
FINEST = 4  # cells; the shortest wave of a pattern
FULL_CONTRAST = 0.25  # standard deviation of v
WAVES = np.hypot(*np.meshgrid(np.fft.fftfreq(SIDE) * SIDE, np.fft.rfftfreq(SIDE) * SIDE, indexing="ij"))  # on the grid's width
RINGS = np.floor(2 * np.log2(np.maximum(WAVES, 1.0))).astype(int)  # half octaves
TINY = 1e-12
COLOURS = np.array([[14, 17, 46], [28, 78, 128], [61, 165, 160], [245, 226, 178], [238, 108, 77], [120, 25, 60]], float)


class ReactionDiffusion(evo.Task):
    """See README.md."""

    inputs = {"u": "f32", "v": "f32"}
    outputs = {"du": "f32", "dv": "f32"}
    measures = {"wavelength": (4.0, 16.0), "coverage": (0.0, 1.0), "motion": (0.0, 1.0)}
    objective_range = (0.0, 1.0)
    rollout = evo.Rollout(
        steps=STEPS,
        state={
            name: f"min(max({name} + {diffusion}*({name}_n + {name}_e + {name}_s + {name}_w - 4*{name})"
            f" + min(max(d{name}, {-RATE}), {RATE}), 0), 1) + end"
            for name, diffusion in (("u", 0.2), ("v", 0.05))
        },
        record_every=RECORD_EVERY,
        grid=evo.Grid((SIDE, SIDE), "von_neumann", "periodic"),
    )

    def __init__(self):
        self._begun = self.points()["v"]

    def points(self):
        waves = np.fft.rfft2(np.random.default_rng(1).normal(size=(SIDE, SIDE)))
        noise = np.fft.irfft2(waves * np.exp(-((WAVES / 10) ** 2)), s=(SIDE, SIDE))
        v = np.clip(0.4 * noise / noise.std(), 0.0, 0.6)
        return {"u": 1.0 - v, "v": v, "end": 0.0}

    def programs(self):
        return ["r = u*v*v; du = 0.03*(1 - u) - r; dv = r - 0.085*v"]  # of Gray and Scott

    def score(self, outputs, programs):
        before, after = (outputs["v"][:, at, 0].astype(np.float64) for at in (-1 - LATER, -1))
        contrast = after.std(axis=(1, 2))
        power = np.abs(np.fft.rfft2(after - after.mean(axis=(1, 2), keepdims=True))) ** 2
        power[:, :, 1:-1] *= 2  # those columns stand for two
        total = power.sum(axis=(1, 2)) + TINY
        rings = np.stack([(power * (ring == RINGS)).sum(axis=(1, 2)) for ring in range(RINGS.max() + 1)], axis=1)
        coarse = (power * (WAVES <= SIDE / FINEST)).sum(axis=(1, 2)) / total
        order = (rings[:, 1:] + rings[:, :-1]).max(axis=1) / total  # the share of one octave
        wavelength = SIDE / ((power * WAVES).sum(axis=(1, 2)) / total + TINY)
        local = after.reshape(-1, SIDE // REGION, REGION, SIDE // REGION, REGION).std(axis=(2, 4))
        spread = local.mean(axis=(1, 2)) ** 2 / ((local**2).mean(axis=(1, 2)) + TINY)
        middle = 0.5 * (after.max(axis=(1, 2)) + after.min(axis=(1, 2)))
        coverage = (after > middle[:, None, None]).mean(axis=(1, 2))
        motion = (after - before).std(axis=(1, 2)) / (contrast + before.std(axis=(1, 2)) + TINY)
        begun = self._begun - self._begun.mean()
        memory = np.abs((after * begun).mean(axis=(1, 2))) / (contrast * begun.std() + TINY)
        objective = np.minimum(contrast / FULL_CONTRAST, 1.0) * coarse * order * spread * (1.0 - memory)
        objective[~np.isfinite(after).all(axis=(1, 2))] = np.nan
        return evo.Scores(objective, np.stack([np.clip(wavelength, 4.0, 16.0), coverage, np.minimum(motion, 1.0)], axis=1))

    def picture_points(self, size, t):
        # A state that is not a number ends the grid: there is nothing to draw after the time t, but at 0 all of it.
        ends = (np.arange(STEPS) >= t * STEPS) & (t > 0)
        return {**self.points(), "end": np.where(ends, np.nan, 0.0).reshape(-1, 1, 1, 1)}

    def picture(self, outputs, size):
        records = outputs["v"][:, :, 0].astype(np.float64)
        shown = [[self._begun, *each[np.isfinite(each).all(axis=(1, 2))]][-1] for each in records]
        return np.stack([_drawn(v, size) for v in shown])


def _drawn(v, size):
    """Heights as colours, lit from the upper left."""
    heights = zoom(np.pad(v, 4, mode="wrap"), size / SIDE, order=3, mode="nearest", grid_mode=True)
    edge = (len(heights) - size) // 2
    heights = heights[edge : edge + size, edge : edge + size]
    scaled = np.clip((heights - v.min()) / max(np.ptp(v), 0.05), 0.0, 1.0)
    colours = np.stack([np.interp(scaled, np.linspace(0.0, 1.0, len(COLOURS)), each) for each in COLOURS.T], axis=2)
    down, right = np.gradient(scaled, SIDE / size)
    light = 1.0 - 0.9 * (down + right) / np.sqrt(1.0 + 4.0 * (down**2 + right**2))
    return np.clip(colours * light[:, :, None], 0.0, 255.0).round().astype(np.uint8)
