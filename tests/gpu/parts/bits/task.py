"""Outputs bit by bit, as a kernel of its own finds them."""

import numpy as np

from evo import Scores
from evo.evaluate.cuda.agreement import Operands, edge_columns, points_of

NUM_POINTS = 700


class Bits(Operands):
    """All outputs at all points are measures."""

    kernel_sums = 3 * NUM_POINTS
    measures = {f"bits_{i}": (0.0, 2.0**32) for i in range(kernel_sums)}

    def __init__(self):
        super().__init__(points_of([np.resize(column[::11], NUM_POINTS) for column in edge_columns()]))

    def score(self, outputs, programs):
        """The bits of f, g and h at each point."""
        bits = np.stack([outputs[name].view(np.uint32) for name in "fgh"], axis=2)
        return self.score_sums(bits.reshape(len(bits), -1).astype(np.float64), programs)

    def score_sums(self, sums, programs):
        """The sums of the kernel, or of `score`."""
        return Scores(np.zeros(len(sums)), sums)
