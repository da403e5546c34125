"""Swing-up: programs drive a motor that is too weak to lift a pendulum, and make it stand.

Owns the pendulum, where it begins, the score, and the drawing. The program sees cosine and sine of the angle from the top, and
the speed; units are those in which a small swing takes 2 pi and the pendulum's weight is 1.
"""

import numpy as np
from scipy.interpolate import CubicHermiteSpline

import evo

NUM_STARTS, NUM_CHANGED, NUM_REPORTED = 480, 160, 1000  # the second of them with another weight
STEPS, TIME, RECORD_EVERY = 240, 24.0, 6
HELD = 0.9  # of the full height
WEIGHTS = (0.75, 1.3)  # of pendulums that the motor was not made for
BACKGROUND, COLOURS = (0.05, 0.05, 0.08), np.array([[0.95, 0.55, 0.15], [0.25, 0.6, 1.0]])  # of turning left and right


class Pendulum(evo.Task):
    """See README.md.

    Args:
        strength: the motor's largest torque, of what holds the pendulum level.
    """

    inputs = {"c": "f32", "s": "f32", "speed": "f32"}
    outputs = {"motor": "f32"}
    measures = {"robustness": (0.0, 1.0), "effort": (0.0, 1.0)}
    objective_range = (0.0, 1.0)

    def __init__(self, strength: float = 0.3):
        torque = "max(min(motor, 1), -1)"
        self.rollout = evo.Rollout(
            steps=STEPS,
            dt=TIME / STEPS,
            integrator="rk4",
            state={
                "c": "-s*speed",
                "s": "c*speed",
                "speed": f"weight*s + {strength}*{torque}",
                "effort": f"{1 / TIME}*abs({torque})",
            },
            record_every=RECORD_EVERY,
        )

    def points(self):
        starts = self._starts(np.random.default_rng(1), NUM_STARTS)
        weight = np.repeat([*WEIGHTS, 1.0], [NUM_CHANGED // 2, NUM_CHANGED // 2, NUM_STARTS - NUM_CHANGED])
        return {**starts, "weight": weight}

    def _starts(self, rng, count):
        angle = rng.uniform(-np.pi, np.pi, count)
        return {"c": np.cos(angle), "s": np.sin(angle), "speed": rng.uniform(-1, 1, count), "effort": 0.0}

    def report_points(self):
        return {**self._starts(np.random.default_rng(2), NUM_REPORTED), "weight": 1.0}

    def score(self, outputs, programs):
        upright = np.clip(0.5 + 0.5 * np.nan_to_num(outputs["c"], nan=-1.0), 0.0, 1.0).mean(axis=1)
        held = _held(outputs)
        robustness = held[:, :NUM_CHANGED].mean(axis=1)
        effort = np.nan_to_num(outputs["effort"][:, -1], nan=1.0).mean(axis=1)
        objective = (0.7 * held + 0.3 * upright)[:, NUM_CHANGED:].mean(axis=1)
        return evo.Scores(objective, np.stack([robustness, effort], axis=1))

    def picture_points(self, size, t):
        # A weight that is not a number ends the trajectory: there is nothing to draw after the time t, but at 0 all of it.
        steps = np.arange(STEPS)[:, None]
        weight = np.where((steps < t * STEPS) | (t == 0), 1.0, np.nan)
        return {"c": -1.0, "s": 0.1, "speed": 0.0, "effort": 0.0, "weight": weight}

    def picture(self, outputs, size):
        records = np.stack([outputs[name][:, :, 0] for name in ("c", "s", "speed")], axis=1)
        return np.stack([_drawn(*row[:, np.isfinite(row).all(axis=0)], size) for row in records])

    def report(self, outputs):
        return {"held": _held(outputs).mean(axis=1)}


def _held(outputs):
    """Return whether the pendulum stands through the last quarter of the time, `(batch_size, num_trajectories)`."""
    last = outputs["c"][:, -(STEPS // RECORD_EVERY // 4) :]
    return np.nan_to_num(last.min(axis=1), nan=-1.0) > HELD


def _drawn(c, s, speed, size):
    """The way of the rod's tip, as the rod grows with time, and the rod, `(size, size, 3)`; averaged from twice the size."""
    angle = np.unwrap(np.arctan2([0.1, *s], [-1.0, *c]))
    times = np.arange(len(angle)) * RECORD_EVERY * TIME / STEPS
    moments, angles, turning = np.zeros(1), angle, np.full((1, 1), 0.5)
    if len(angle) > 1:
        way = CubicHermiteSpline(times, angle, [0.0, *speed])
        moments = np.linspace(0.0, times[-1], 16 * size)
        angles, turning = way(moments), 0.5 + 0.5 * np.tanh(way(moments, 1))[:, None]
    drawn = np.full((2 * size, 2 * size, 3), BACKGROUND)
    rod = np.linspace(0.0, moments[-1], 4 * size)
    way_colours = (1 - turning) * COLOURS[0] + turning * COLOURS[1]
    for moment, at, colours in ((moments, angles, way_colours), (rod, np.full(len(rod), angle[-1]), np.ones((len(rod), 3)))):
        radius = size * (0.1 + 0.85 * moment / TIME)
        row, column = size - radius * np.cos(at), size + radius * np.sin(at)
        for across in range(-size // 128, size // 128 + 1):
            for down in range(-size // 128, size // 128 + 1):
                drawn[(row + down).astype(int), (column + across).astype(int)] = colours
    return (255.0 * drawn.reshape(size, 2, size, 2, 3).mean(axis=(1, 3)) + 0.5).astype(np.uint8)
