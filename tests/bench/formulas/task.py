"""Five sets of symbolic regression, for bench_tuned_search.py: points from a known formula, scored up to a linear scale."""

import numpy as np

import evo

SIDE = 26  # of Pagie-1's grid


def koza_1(rng, is_test):
    """Koza 1992: x^4 + x^3 + x^2 + x."""
    x = np.linspace(-1, 1, 200)[None] if is_test else rng.uniform(-1, 1, (1, 20))
    return x, x[0] ** 4 + x[0] ** 3 + x[0] ** 2 + x[0]


def keijzer_4(rng, is_test):
    """Keijzer 2003, after Salustowicz and Schmidhuber 1997."""
    x = np.arange(201)[None] * 0.05 + 0.05 * is_test
    sine, cosine = np.sin(x[0]), np.cos(x[0])
    return x, x[0] ** 3 * np.exp(-x[0]) * cosine * sine * (sine**2 * cosine - 1)


def pagie_1(rng, is_test):
    """Pagie and Hogeweg 1997: 1 / (1 + x^-4) + 1 / (1 + y^-4)."""
    grid = np.arange(SIDE) * 0.4 - 5 + 0.2 * is_test
    x = np.stack([axis.ravel() for axis in np.meshgrid(grid, grid)])
    return x, (1 / (1 + x**-4.0)).sum(axis=0)


def vladislavleva_4(rng, is_test):
    """Vladislavleva, Smits and den Hertog 2009: 10 / (5 + sum (x_i - 3)^2), five inputs."""
    x = rng.uniform(-0.25, 6.35, (5, 5000)) if is_test else rng.uniform(0.05, 6.05, (5, 1024))
    return x, 10 / (5 + ((x - 3) ** 2).sum(axis=0))


def poly_10(rng, is_test):
    """Poli 2003: a sum of products of ten inputs."""
    x = rng.uniform(-1, 1, (10, 2000 if is_test else 250))
    return x, x[0] * x[1] + x[2] * x[3] + x[4] * x[5] + x[0] * x[6] * x[8] + x[2] * x[5] * x[9]


SETS = {each.__name__: each for each in (koza_1, keijzer_4, pagie_1, vladislavleva_4, poly_10)}


class Formulas(evo.Task):
    """Finds a formula again from points. Measures: size, and where zero lies in the output's range, which no scale changes."""

    inputs = {f"x{i}": "f32" for i in range(10)}
    outputs = {"y": "f32"}
    measures = {"num_instructions": (0.0, 40.0), "offset": (-1.0, 1.0)}
    reduction = "regression"

    def __init__(self, name: str = "pagie_1", seed: int = 1, is_test: bool = False):
        x, y = SETS[name](np.random.default_rng([seed, is_test]), is_test)
        self.x, self.y = x.astype(np.float32), y.astype(np.float32)
        self.inputs = {f"x{i}": "f32" for i in range(len(x))}

    def points(self):
        return {f"x{i}": row for i, row in enumerate(self.x)}

    def targets(self):
        return {"y": self.y}

    def score(self, outputs, programs):
        mean, sum_yy = outputs.mean_y[:, 0], outputs.sum_yy[:, 0]
        variance = outputs.centred_yy[:, 0] / outputs.num_points[:, 0]
        # Of an output that hardly varies, only rounding is left; its correlation would be noise.
        varies = (outputs.num_nonfinite[:, 0] == 0) & (variance > 1e-9 * mean**2) & (sum_yy > 1e-30) & (sum_yy < 1e30)
        unexplained = np.maximum(1 - outputs.correlation[:, 0] ** 2, 1e-16)
        offset = mean / (abs(mean) + np.sqrt(variance))
        objective = np.where(varies, -0.5 * np.log10(unexplained), np.nan)
        return evo.Scores(objective, np.stack([programs.num_instructions, np.nan_to_num(offset)], axis=1))
