"""The tests' task with a kernel of its own: fit t + x * y on 20 x 20 points, and leave a second output small.

`score` adds in the order of kernel.cu, so that the two agree in every bit where the outputs do.
"""

import numpy as np

import evo

SIDE = 20
NUM_THREADS = 256  # EVO_BLOCK_SIZE


class OwnKernel(evo.Task):
    inputs = {"t": "f32", "x": "f32", "y": "f32", "n": "u32"}
    outputs = {"v": "f32", "w": "f32"}
    measures = {"mean": (-1.0, 1.0), "size": (0.0, 64.0)}

    def __init__(self, weight: float = 0.5):
        self.weight = weight

    def points(self):
        y, x = np.meshgrid(np.linspace(-1, 1, SIDE), np.linspace(-1, 1, SIDE), indexing="ij")
        x, y = (values.ravel().astype(np.float32) for values in (x, y))
        return {"t": np.float32(0.25), "x": x, "y": y, "n": np.arange(SIDE * SIDE, dtype=np.uint32)}

    def kernel_defines(self):
        return {"WEIGHT": self.weight}

    def score(self, outputs, programs):
        points = self.points()
        target = points["t"] + points["x"] * points["y"]
        v, w = (outputs[name].astype(np.float64) for name in ("v", "w"))
        cost = block_sum((v - target) ** 2 + self.weight * (w * w))
        num_points = SIDE * SIDE
        return evo.Scores(-cost / num_points, np.stack([block_sum(v) / num_points, programs.num_instructions], axis=1))


def block_sum(values):
    """Sums of each row: thread i adds up values i, i + NUM_THREADS, ..., then the threads meet in halves."""
    padding = -values.shape[1] % NUM_THREADS
    by_thread = np.pad(values, ((0, 0), (0, padding))).reshape(len(values), -1, NUM_THREADS)
    sums = np.zeros((len(values), NUM_THREADS))
    for i in range(by_thread.shape[1]):
        sums = sums + by_thread[:, i]
    while sums.shape[1] > 1:
        half = sums.shape[1] // 2
        sums = sums[:, :half] + sums[:, half:]
    return sums[:, 0]
