"""The task of the tests: as small as a task with pictures can be. Fit the saddle t + x * y on 8 x 8 points."""

import numpy as np

import evo

SIDE = 8


class Plane(evo.Task):
    inputs = {"t": "f32", "x": "f32", "y": "f32"}
    outputs = {"v": "f32"}
    measures = {"mean": (-1.0, 1.0), "deviation": (0.0, 2.0)}

    def __init__(self, scale: float = 1.0):
        self.scale = scale
        points = self.picture_points(SIDE, 0.5)
        self.target = points["t"] + points["x"] * points["y"]

    def points(self):
        return self.picture_points(SIDE, 0.5)

    def score(self, outputs, programs):
        v = outputs["v"].astype(np.float64)
        objective = 1.0 / (1.0 + self.scale * ((v - self.target) ** 2).mean(axis=1))
        objective[~np.isfinite(v).all(axis=1)] = np.nan
        return evo.Scores(objective, np.stack([v.mean(axis=1), v.std(axis=1)], axis=1))

    def picture_points(self, size, t):
        y, x = np.meshgrid(np.linspace(-1, 1, size), np.linspace(-1, 1, size), indexing="ij")
        return {"t": np.float32(t), "x": x.ravel().astype(np.float32), "y": y.ravel().astype(np.float32)}

    def picture(self, outputs, size):
        """Red where v is positive, green where it is negative, blue where it is about zero; black where it is not finite."""
        v = outputs["v"].reshape(-1, size, size)
        rgb = np.stack([v > 0.1, v < -0.1, abs(v) <= 0.1], axis=-1)
        return (rgb * 255).astype(np.uint8)
