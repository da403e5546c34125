"""Morphogenesis: programs are the rule of a cellular automaton that grows a figure from one cell, and heals it.

Owns the figure, the automaton's law of life, the wounds, the score, and the drawing.
"""

from pathlib import Path

import numpy as np

import evo

SIDE, STEPS, RECORD_EVERY = 32, 112, 4
WOUNDED = (48, 80)  # after these steps
JUDGED = (32, 48, 80, 112)  # steps: grown, still the same, healed, and healed again
BOUND = 16.0  # of all channels; an empty cell has -BOUND in each
LIFE = "0 < max(max(max(a_n, a_s), max(a_e, a_w)), a)"  # of a cell or a neighbour; without, a cell empties
CELL = 0.0625  # from one cell's position to the next
CHANNELS = {  # and their laws
    "a": "next_a",
    "x": f"max(max(max(x_w + {CELL}, x_e - {CELL}), max(x_n, x_s)), x)",
    "y": f"max(max(max(y_n + {CELL}, y_s - {CELL}), max(y_e, y_w)), y)",
}
BACKGROUND = np.array([18.0, 18.0, 28.0])
COLOURS = np.array([[[255, 196, 84], [255, 99, 94]], [[236, 72, 153], [124, 58, 237]]], float)  # corners of the hidden channels


class Morphogenesis(evo.Task):
    """See README.md.

    Args:
        figure: `heart` or `fish`, or a file of 32 lines of 32 characters, # where a cell is to live.
    """

    inputs = dict.fromkeys((*CHANNELS, "a_n", "a_e", "a_s", "a_w"), "f32")
    outputs = {"next_a": "f32"}
    measures = {"outline": (0.0, 720.0), "num_instructions": (0.0, 48.0)}
    objective_range = (0.0, 1.0)
    complexity = "num_instructions"
    rollout = evo.Rollout(
        steps=STEPS,
        state={name: f"select({LIFE}, max(min({law}, bound - wound), -bound), -bound)" for name, law in CHANNELS.items()},
        record_every=RECORD_EVERY,
        grid=evo.Grid((SIDE, SIDE), "von_neumann", boundary=-BOUND),
    )

    def __init__(self, figure: str = "heart"):
        shipped = Path(__file__).parent / "figures" / f"{figure}.txt"
        path = shipped if shipped.is_file() else Path(figure)
        try:
            lines = path.read_text().split()
        except OSError as error:
            raise evo.UserError(f"task_options.figure: no figure {figure}: {error.strerror}") from error
        if len(lines) != SIDE or {len(line) for line in lines} != {SIDE} or "#" not in "".join(lines):
            raise evo.UserError(f"{path}: must have {SIDE} lines of {SIDE} characters, and # where a cell is to live")
        self._path, self._figure = path, np.array([list(line) for line in lines]) == "#"

    def files(self):
        return [self._path]

    def programs(self):
        return ["1 - 2*x*x - 2*y*y"]  # a disc

    def points(self):
        wounds = np.zeros((STEPS, 1, SIDE, SIDE))
        wounds[WOUNDED[0], :, :, : SIDE // 2] = wounds[WOUNDED[1], :, : SIDE // 2] = 1.0
        return self._begin(wounds)

    def _begin(self, wounds):
        """A seed in the middle of the figure. wounds: 1 where a step empties a cell, `(STEPS, num_grids, SIDE, SIDE)`."""
        position = np.full((SIDE, SIDE), -BOUND)
        middle = tuple(np.argwhere(self._figure).mean(axis=0).round().astype(int))
        position[middle] = 0.0
        alive = position.copy()
        alive[middle] = 1.0
        return {"a": alive, "x": position, "y": position, "bound": BOUND, "wound": 2.0 * BOUND * wounds}

    def score(self, outputs, programs):
        a = outputs["a"][:, [step // RECORD_EVERY - 1 for step in JUDGED], 0]
        judged = (a > 0) & (a <= BOUND)
        overlap = (judged & self._figure).sum(axis=(2, 3)) / np.maximum((judged | self._figure).sum(axis=(2, 3)), 1)
        padded = np.pad(judged[:, 1], ((0, 0), (1, 1), (1, 1)))
        outline = sum((padded != np.roll(padded, 1, axis)).sum(axis=(1, 2)) for axis in (1, 2))  # sides of living cells
        return evo.Scores(overlap.mean(axis=1), np.stack([outline, programs.num_instructions], axis=1))

    def report_points(self):
        rng = np.random.default_rng(1)
        wounds = np.zeros((STEPS, 13, SIDE, SIDE))
        left, *others = wounds[WOUNDED[0]]
        left[:, : SIDE // 2] = others[0][:, SIDE // 2 :] = others[1][: SIDE // 2] = others[2][SIDE // 2 :] = 1.0
        for other in others[3:-1]:
            (top, bottom), (first, last) = np.sort(rng.integers(0, SIDE + 1, (2, 2)), axis=1)
            other[top:bottom, first:last] = 1.0
        return self._begin(wounds)

    def report(self, outputs):
        right = ((outputs["a"] > 0) == self._figure).mean(axis=(3, 4))
        return {
            "grown": right[:, WOUNDED[0] // RECORD_EVERY - 1, 0],
            "healed_left": right[:, -1, 0],
            "healed_other_halves": right[:, -1, 1:4].mean(axis=1),
            "healed_rectangles": right[:, -1, 4:-1].mean(axis=1),
            "kept": right[:, -1, -1],
        }

    def picture_points(self, size, t):
        # A bound that is not a number ends the grid: there is nothing to draw after the time t, but at 0 all of it.
        points = self.points()
        ends = (np.arange(STEPS) >= t * STEPS) & (t > 0)
        return {**points, "bound": np.where(ends, np.nan, BOUND).reshape(-1, 1, 1, 1)}

    def picture(self, outputs, size):
        rows = np.arange(size) * SIDE // size
        channels = np.stack([outputs[channel][:, :, 0] for channel in CHANNELS], axis=2)
        return np.stack([_drawn(each[np.isfinite(each).all(axis=(1, 2, 3))])[rows][:, rows] for each in channels])


def _drawn(records):
    """The last of `(num_records, channels, SIDE, SIDE)`: living cells in colours by position; nothing before the first."""
    drawn = np.full((SIDE, SIDE, 3), BACKGROUND)
    if len(records):
        a, x, y = records[-1]
        alive = a > 0
        across, down = (np.clip(0.5 + 0.5 * each[alive], 0.0, 1.0)[:, None] for each in (x, y))
        (upper_left, upper_right), (lower_left, lower_right) = COLOURS
        upper = upper_left * (1 - across) + upper_right * across
        drawn[alive] = upper * (1 - down) + (lower_left * (1 - across) + lower_right * across) * down
    return drawn.round().astype(np.uint8)
