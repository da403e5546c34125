"""Outputs bit by bit, as a kernel of its own finds them, or a fault of that kernel."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo import Programs, Scores
from evo.evaluate.cuda.agreement import Operands, edge_columns, points_of

NUM_POINTS = 700
NO_FAULT, ILLEGAL_ADDRESS, ENDLESS = 0, 1, 2
FAULTY_INSTRUCTIONS = 5  # programs with as many have the fault


class Bits(Operands):
    """All outputs at all points are measures."""

    kernel_sums = 3 * NUM_POINTS
    measures = {f"bits_{i}": (0.0, 2.0**32) for i in range(kernel_sums)}  # noqa: RUF012 - as tasks are declared

    def __init__(self, fault: int = NO_FAULT):
        self.fault = fault
        super().__init__(points_of([np.resize(column[::11], NUM_POINTS) for column in edge_columns()]))

    def kernel_defines(self) -> dict[str, int | float | str] | None:
        """Macros of kernel.cu."""
        return {"FAULT": self.fault, "FAULTY_INSTRUCTIONS": FAULTY_INSTRUCTIONS}

    def score(self, outputs: dict[str, NDArray[Any]], programs: Programs) -> Scores:
        """The bits of f, g and h at each point."""
        bits = np.stack([outputs[name].view(np.uint32) for name in "fgh"], axis=2)
        return self.score_sums(bits.reshape(len(bits), -1).astype(np.float64), programs)

    def score_sums(self, sums: NDArray[np.float64], programs: Programs) -> Scores:
        """What the kernel, or `score`, finds."""
        return Scores(np.zeros(len(sums)), sums)
