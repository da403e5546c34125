"""Cart and pole: programs push a cart on a short track so that the pole on it stands.

Owns cart, pole and track, where they begin, the score, and the drawing. The physics are those of Barto, Sutton and Anderson 1983,
in metres, seconds, kilograms and newtons, without friction.
"""

import numpy as np

import evo

NUM_STARTS, NUM_CHANGED, NUM_REPORTED = 480, 160, 1000  # the second of them with another motor
STEPS, TIME, RECORD_EVERY = 200, 8.0, 4
GRAVITY, CART, POLE, HALF_LENGTH = 9.8, 1.0, 0.1, 0.5
TRACK, MARGIN = 2.4, 0.2  # to either side, and what programs must leave of it where they are scored
SHOWN = {"x": -0.9, "v": -0.4, "c": 0.93, "s": 0.37, "speed": 0.4}  # the beginning of pictures
BACKGROUND, COLOURS = (0.05, 0.05, 0.08), np.array([[0.25, 0.6, 1.0], [0.95, 0.55, 0.15]])  # of the first pole and the last
HELD = 0.9  # of the pole's height
STRENGTHS = (0.7, 1.4)  # of motors that the program was not made for


class CartPole(evo.Task):
    """See README.md.

    Args:
        max_angle: of the pole's beginnings, from the top; pi: it may hang.
        force: the largest.
    """

    inputs = {"x": "f32", "v": "f32", "c": "f32", "s": "f32", "speed": "f32"}
    outputs = {"motor": "f32"}
    measures = {"robustness": (0.0, 1.0), "effort": (0.0, 1.0)}
    objective_range = (0.0, 1.0)

    def __init__(self, max_angle: float = 0.4, force: float = 10.0):
        self._max_angle = max_angle
        mass = CART + POLE
        push = "max(min(motor, 1), -1)"
        pull = f"({force / mass}*strength*{push} + {POLE * HALF_LENGTH / mass}*s*speed*speed)"
        turn = f"({GRAVITY}*s - c*{pull})/({HALF_LENGTH * 4 / 3} - {HALF_LENGTH * POLE / mass}*c*c)"
        self.rollout = evo.Rollout(
            steps=STEPS,
            dt=TIME / STEPS,
            integrator="rk4",
            state={
                "x": "v",
                "v": f"{pull} - {POLE * HALF_LENGTH / mass}*c*{turn}",
                "c": "-s*speed",
                "s": "c*speed",
                "speed": turn,
                "effort": f"{1 / TIME}*abs({push})",
            },
            record_every=RECORD_EVERY,
        )

    def points(self):
        strength = np.repeat([*STRENGTHS, 1.0], [NUM_CHANGED // 2, NUM_CHANGED // 2, NUM_STARTS - NUM_CHANGED])
        return {**self._starts(1, NUM_STARTS), "strength": strength}

    def _starts(self, seed, count):
        x, v, angle, speed = np.random.default_rng(seed).uniform(-1, 1, (4, count)) * [[1.0], [0.5], [self._max_angle], [0.5]]
        return {"x": x, "v": v, "c": np.cos(angle), "s": np.sin(angle), "speed": speed, "effort": 0.0}

    def report_points(self):
        return {**self._starts(2, NUM_REPORTED), "strength": 1.0}

    def score(self, outputs, programs):
        is_on = np.maximum.accumulate(np.nan_to_num(np.abs(outputs["x"]), nan=np.inf), axis=1) < TRACK - MARGIN
        upright = (is_on * np.clip(0.5 + 0.5 * np.nan_to_num(outputs["c"], nan=-1.0), 0.0, 1.0)).mean(axis=1)
        held = _held(outputs, TRACK - MARGIN)
        robustness = held[:, :NUM_CHANGED].mean(axis=1)
        effort = np.nan_to_num(outputs["effort"][:, -1], nan=1.0).mean(axis=1)
        objective = (0.7 * held + 0.3 * upright)[:, NUM_CHANGED:].mean(axis=1)
        return evo.Scores(objective, np.stack([robustness, effort], axis=1))

    def picture_points(self, size, t):
        # A strength that is not a number ends the trajectory: there is nothing to draw after the time t, but at 0 all of it.
        strength = np.where((np.arange(STEPS)[:, None] < t * STEPS) | (t == 0), 1.0, np.nan)
        return {**SHOWN, "effort": 0.0, "strength": strength}

    def picture(self, outputs, size):
        records = np.stack([outputs[name][:, :, 0] for name in ("x", "c", "s")], axis=1)
        start = [[SHOWN[name]] for name in ("x", "c", "s")]
        return np.stack([_drawn(*np.hstack([start, row[:, np.isfinite(row).all(axis=0)]]), size) for row in records])

    def report(self, outputs):
        return {"held": _held(outputs, TRACK).mean(axis=1)}


def _held(outputs, track):
    """Return whether the pole stands through the last quarter of the time on a cart that never left the track."""
    last = outputs["c"][:, -(STEPS // RECORD_EVERY // 4) :]
    far = np.nan_to_num(np.abs(outputs["x"]), nan=np.inf).max(axis=1)
    return (np.nan_to_num(last.min(axis=1), nan=-1.0) > HELD) & (far < track)


def _drawn(x, c, s, size):
    """Poles one after the other, each a little higher than the one before, `(size, size, 3)`; averaged from twice the size."""
    drawn = np.full((2 * size, 2 * size, 3), BACKGROUND)
    along = np.linspace(0.0, 0.4 * size, 2 * size)
    share = np.arange(len(x))[:, None] * RECORD_EVERY / STEPS
    row = (1.95 - 1.4 * share) * size - along * c[:, None]
    column = size * (1.0 + 0.95 * x[:, None] / TRACK) + along * s[:, None]
    colours = (1 - share) * COLOURS[0] + share * COLOURS[1]
    colours[-1] = 1.0
    for pole in range(len(x)):
        for across in range(-size // 256, size // 256 + 1):
            at = np.stack([row[pole], column[pole] + across]).clip(0, 2 * size - 1).astype(int)
            drawn[at[0], at[1]] = colours[pole]
    return (255.0 * drawn.reshape(size, 2, size, 2, 3).mean(axis=(1, 3)) + 0.5).astype(np.uint8)
