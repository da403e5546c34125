"""Fast approximations of the error function, by number of instructions and worst error."""

import math

import numpy as np

import evo


class ErrorFunction(evo.Task):
    inputs = {"x": "f32"}
    outputs = {"y": "f32"}
    measures = {"num_instructions": (0.0, 32.0), "worst_digits": (0.0, 8.0)}
    reduction = "regression"  # score gets sums against targets() instead of the outputs
    complexity = "num_instructions"  # evo show RUN --front: what each further instruction gains

    def __init__(self, num_points: int = 2048):
        self.x = np.linspace(-4.0, 4.0, num_points, dtype=np.float32)

    def points(self):
        return {"x": self.x}

    def targets(self):
        return {"y": np.array([math.erf(x) for x in self.x.tolist()], dtype=np.float32)}

    def score(self, outputs, programs):
        whole = outputs.num_nonfinite[:, 0] == 0  # a program that fails anywhere is rejected by NaN
        digits = np.where(whole, -0.5 * np.log10(outputs.mse[:, 0] + 1e-16), np.nan)
        worst_digits = -np.log10((outputs.max_abs_error[:, 0] + 1e-8).clip(max=1.0))  # erf itself is at most 1
        return evo.Scores(digits, np.stack([programs.num_instructions, worst_digits], axis=1))
