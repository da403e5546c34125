"""Points of a task on a device, as kernels read them.

Owns their memory. Knows nothing of kernels.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.evaluate.cuda.device import Device
from evo.kernel.rollout import Loop
from evo.tasks.rollout import Rollout


class DeviceInputs:
    """Values of the inputs at points, on the device.

    Args:
        arrays: for each input 4-byte values `(num_points,)`, or `()` if all points share one value; or what a loop reads.
        num_points: results of a program's output.
        rollout: if there is one, points are records, and threads have trajectories.
        loop: its kernels.

    Attributes:
        width: points that threads have. work: how often a program runs.
        strides, counts: further arguments of kernels, before and after `width`.
    """

    def __init__(
        self,
        device: Device,
        arrays: Sequence[NDArray[Any]],
        num_points: int,
        rollout: Rollout | None = None,
        loop: Loop | None = None,
    ):
        self._device = device
        self._buffers = [device.upload(array) for array in arrays]
        self.num_points = num_points
        self.rollout, self.loop = rollout, loop
        self.width = num_points // rollout.num_records if rollout else num_points
        self.work = rollout.num_runs * self.width if rollout else num_points
        self.addresses = np.array([int(buffer) for buffer in self._buffers], np.uint64)
        self.strides = np.array([] if rollout else [4 if array.ndim else 0 for array in arrays], np.uint32)
        self.counts = np.array([rollout.steps, rollout.record_every] if rollout else [], np.uint32)

    def close(self) -> None:
        """Frees the values."""
        for buffer in self._buffers:
            self._device.free(buffer)
