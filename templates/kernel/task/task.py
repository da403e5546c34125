"""Runge's function 1 / (1 + x² + y²) without a division, scored on the GPU by the kernel beside this file."""

import numpy as np

import evo


class Runge(evo.Task):
    inputs = {"x": "f32", "y": "f32"}
    outputs = {"v": "f32"}
    # The archive keeps the best program for each combination of length and worst error.
    measures = {"num_instructions": (0.0, 32.0), "worst_digits": (0.0, 2.0)}
    complexity = "num_instructions"  # for `evo show RUN --front`

    def __init__(self, size: int = 32, width: float = 0.1):
        self.size, self.width = size, width
        points = self.points()
        x, y = (points[name].astype(np.float64) for name in ("x", "y"))
        self.target = 1.0 / (1.0 + (x * x + y * y))

    def points(self):
        """A grid of size x size points from -5 to 5."""
        axis = np.linspace(-5.0, 5.0, self.size, dtype=np.float32)
        return {"x": np.tile(axis, self.size), "y": np.repeat(axis, self.size)}

    def targets(self):
        """Targets to which constants are fitted, by least squares (`search.tuning`)."""
        return {"v": self.target.astype(np.float32)}

    def kernel_defines(self):
        """Macros of kernel.cu."""
        return {"WIDTH": self.width}

    def score(self, outputs, programs):
        """On the CPU: what kernel.cu computes on the GPU. `evo doctor RUN` compares the two, so change both."""
        error = np.abs(outputs["v"].astype(np.float64) - self.target)
        # Errors far beyond the width count once, not squared (pseudo-Huber loss).
        loss = (np.sqrt(1.0 + (error / self.width) ** 2) - 1.0).mean(axis=1)
        worst = error.max(axis=1).clip(1e-8, 1.0)
        measures = [programs.num_instructions, -np.log10(worst)]
        return evo.Scores(-np.log10(loss + 1e-8), np.stack(measures, axis=1))
