"""A task whose number of inputs is an option, with a reduction and check points: scores are the sums themselves."""

import numpy as np

import evo


class Checked(evo.Task):
    outputs = {"y": "f32"}
    measures = {"check_mean": (-10.0, 10.0), "num_check_nonfinite": (0.0, 10.0)}
    reduction = "regression"
    complexity = "check_mean"

    def __init__(self, num_inputs: int = 2):
        self.inputs = {f"x{i}": "f32" for i in range(num_inputs)}

    def points(self):
        return {name: np.array([1.0, 2.0, 4.0, i], np.float32) for i, name in enumerate(self.inputs)}

    def targets(self):
        return {"y": np.array([1.0, 2.0, 4.0, 1.0], np.float32)}

    def check_points(self):
        return {name: np.linspace(-2.0, 2.0, 5, dtype=np.float32) + i for i, name in enumerate(self.inputs)}

    def check_targets(self):
        return {"y": np.array([0.0, 1.0, 0.0, 1.0, 0.0], np.float32)}

    def score(self, outputs, programs):
        check = programs.check
        objective = -outputs.sum_squared_error[:, 0] - 100.0 * outputs.num_nonfinite[:, 0] - 0.001 * check.sum_squared_error[:, 0]
        return evo.Scores(objective, np.concatenate([check.sum_y, check.num_nonfinite], axis=1))

    def report_points(self):
        return {name: np.array([3.0, 5.0], np.float32) for name in self.inputs}

    def report(self, outputs):
        return {"at_3": outputs["y"][:, 0], "at_5": outputs["y"][:, 1]}

    def description_length(self, objective, complexity):
        return complexity - 2.0 * objective
