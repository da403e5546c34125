"""What packs compute on the GPU: outputs at points, sums over these outputs, or scores by a task's own kernel.

Owns the layout of parameters and results of each kind of kernel. Knows nothing of streams, buffers or how `evo.kernel` makes the
kernels.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.compile.assembler import assembler_options
from evo.compile.compiler import Module
from evo.compile.request import assemble
from evo.compile.targets import architecture
from evo.evaluate import Evaluation, finite_only, score_batch
from evo.evaluate.cuda.device import Device
from evo.evaluate.cuda.scoring import OutputScorer
from evo.kernel import cuda_header, reduction
from evo.kernel.pointwise import kernel_name
from evo.kernel.template import ENTRY
from evo.sums import Regression
from evo.task import Task, num_kernel_results, target_array

BLOCK_SIZE = 256
# A multiprocessor holds at most 2,048 threads. Several times as many are launched if there are enough points, because programs
# differ in length. The factor is an estimate, not a measurement.
BLOCKS_PER_MULTIPROCESSOR = 8 * 2048 // BLOCK_SIZE


class DeviceInputs:
    """Values of the inputs at points, on the device.

    Args:
        arrays: for each input 4-byte values `(num_points,)`, or `()` if all points share one value.
    """

    def __init__(self, device: Device, arrays: Sequence[NDArray[Any]], num_points: int):
        self._device = device
        self.arrays = arrays
        self._buffers = [device.upload(array) for array in arrays]
        self.num_points = num_points
        self.addresses = np.array([int(buffer) for buffer in self._buffers], np.uint64)
        self.strides = np.array([4 if array.ndim else 0 for array in arrays], np.uint32)

    def close(self) -> None:
        """Frees the values."""
        for buffer in self._buffers:
            self._device.free(buffer)


class Plan(ABC):
    """What a lane's packs compute.

    Attributes:
        inputs: at which points.
        is_divisible: whether the results of any consecutive programs of a pack are consecutive bytes.
        num_results: values that a task's own kernel writes for each program; None: the kernel is not a task's.
    """

    is_divisible = True
    num_results: int | None = None

    def __init__(self, task: Task, inputs: DeviceInputs):
        self._task = task
        self.inputs = inputs

    @abstractmethod
    def result_bytes(self, num_programs: int) -> int:
        """Bytes of results that come back to this machine."""

    def scratch_bytes(self, num_programs: int) -> int:
        """Further bytes that the kernels use on the device."""
        return 0

    def prepare(self, device: Device, module: Any, results: int, scratch: int, stream: Any) -> None:  # noqa: B027 - may do nothing
        """Queues what comes before the kernels; `results` and `scratch` are addresses."""

    @abstractmethod
    def launch(self, device: Device, loaded: Any, module: Any, results: int, scratch: int, stream: Any) -> None:
        """Starts a loaded module's kernels."""

    @abstractmethod
    def score(self, host: NDArray[np.uint8], num_instructions: NDArray[np.int32]) -> Evaluation:
        """The scores of a module's programs from its results on this machine, `(result_bytes,)`."""

    def close(self) -> None:
        """Frees what the plan holds on the device, and ends its processes."""
        self.abandon()

    def abandon(self) -> None:  # noqa: B027 - may have none
        """Ends its processes. Leaves a device alone that has failed."""


class StorePlan(Plan):
    """Outputs at all points by the pointwise kernel: 4 bytes each, `(num_programs, num_outputs, num_points)`."""

    def __init__(self, task: Task, inputs: DeviceInputs):
        super().__init__(task, inputs)
        self.scorer = OutputScorer(task)

    def result_bytes(self, num_programs: int) -> int:
        """4 bytes for each output at each point."""
        return num_programs * len(self._task.outputs) * self.inputs.num_points * 4

    def launch(self, device: Device, loaded: Any, module: Module, results: int, scratch: int, stream: Any) -> None:
        """Starts the module's kernels, each on its sites' part of the results."""
        inputs = self.inputs
        for kernel, num_sites in enumerate(module.kernel_sizes):
            rows = -(-BLOCKS_PER_MULTIPROCESSOR * device.num_multiprocessors // num_sites)
            grid = (max(1, min(rows, -(-inputs.num_points // BLOCK_SIZE))), num_sites)
            params = [*inputs.addresses, np.uint64(results), *inputs.strides, np.uint32(inputs.num_points)]
            device.launch(device.function(loaded, kernel_name(kernel)), grid, BLOCK_SIZE, params, stream)
            results += self.result_bytes(num_sites)

    def outputs(self, host: NDArray[Any], num_programs: int) -> NDArray[Any]:
        """The results as `(num_programs, num_outputs, num_points)` float32, to be viewed as the outputs' types."""
        return host.view(np.float32).reshape(num_programs, len(self._task.outputs), self.inputs.num_points)

    def score(self, host: NDArray[Any], num_instructions: NDArray[Any]) -> Evaluation:
        """Scores chunk by chunk with the task's `score`, as the CPU evaluator does."""
        return self.scorer.score(self.outputs(host, len(num_instructions)), num_instructions)

    def abandon(self) -> None:
        """Ends the processes that score."""
        self.scorer.close()


class RegressionPlan(Plan):
    """Sums of outputs against targets (`evo.task.Regression`). The outputs stay on the device.

    Args:
        weights: of the points of `inputs`; None: all are 1.
        targets: the method of the task that gives the targets at the points of `inputs`.
    """

    def __init__(
        self, task: Task, inputs: DeviceInputs, device: Device, weights: NDArray[np.float32] | None, targets: str = "targets"
    ):
        super().__init__(task, inputs)
        self._device = device
        self._outputs = StorePlan(task, inputs)
        self._targets = device.upload(target_array(task, inputs.num_points, targets))
        target = device.info.target
        self._weights = None if weights is None else device.upload(weights)
        ptx = reduction.regression_ptx(architecture(target), weights is not None).encode()
        self._module = device.load(assemble(ptx, target, assembler_options(3)))  # compiled once, launched for every pack

    def result_bytes(self, num_programs: int) -> int:
        """The sums of each output."""
        return reduction.result_bytes(num_programs * len(self._task.outputs))

    def scratch_bytes(self, num_programs: int) -> int:
        """All outputs, and partial sums."""
        return self._output_bytes(num_programs) + reduction.scratch_bytes(
            num_programs * len(self._task.outputs), self.inputs.num_points
        )

    def launch(self, device: Device, loaded: Any, module: Module, results: int, scratch: int, stream: Any) -> None:
        """Starts the module's kernels, then the reduction of their outputs."""
        num_outputs = len(self._task.outputs)
        num_rows = len(module.rows) * num_outputs
        self._outputs.launch(device, loaded, module, scratch, 0, stream)
        outputs, sums = np.uint64(scratch), np.uint64(scratch + self._output_bytes(len(module.rows)))
        rows, points, weights = np.uint32(num_rows), np.uint32(self.inputs.num_points), np.uint64(self.weights_address)
        params: dict[str, list[np.generic]] = {
            "regression_blocks": [outputs, np.uint64(self._targets), weights, sums, rows, np.uint32(num_outputs), points],
            "regression_rows": [sums, np.uint64(results), rows, points],
        }
        for name, grid, block_size in reduction.launches(num_rows, self.inputs.num_points):
            device.launch(device.function(self._module, name), grid, block_size, params[name], stream)

    def score(self, host: NDArray[Any], num_instructions: NDArray[Any]) -> Evaluation:
        """Scores the sums with the task's `score`."""
        return score_batch(self._task, Regression.of_sums(self.sums(host, len(num_instructions))), num_instructions)

    def sums(self, host: NDArray[Any], num_programs: int) -> dict[str, NDArray[Any]]:
        """What `Regression.of_sums` takes, each `(num_programs, num_outputs)`."""
        shape = (num_programs, len(self._task.outputs))
        sums = dict(
            zip(reduction.FIELDS, np.moveaxis(host.view(np.float64).reshape(*shape, reduction.NUM_FIELDS), -1, 0), strict=True)
        )
        sums["num_points"] = np.full(shape, float(self.inputs.num_points))
        return sums

    @property
    def weights_address(self) -> int:
        """0 if there are none."""
        return 0 if self._weights is None else int(self._weights)

    def close(self) -> None:
        """Frees targets and weights and unloads the kernels."""
        self._device.unload(self._module)
        self._device.free(self._targets)
        if self._weights is not None:
            self._device.free(self._weights)

    def _output_bytes(self, num_programs: int) -> int:
        return -(-self._outputs.result_bytes(num_programs) // 256) * 256  # keeps the sums behind them aligned


class CheckedPlan(Plan):
    """Sums at the points, and then at the check points of the task."""

    is_divisible = False  # the sums of one kind follow all those of the other

    def __init__(self, task: Task, plan: RegressionPlan, check: RegressionPlan):
        super().__init__(task, plan.inputs)
        self._plan = plan
        self._check = check

    def result_bytes(self, num_programs: int) -> int:
        """The sums of both."""
        return self._plan.result_bytes(num_programs) + self._check.result_bytes(num_programs)

    def scratch_bytes(self, num_programs: int) -> int:
        """What the larger of the two needs: they run one after the other."""
        return max(self._plan.scratch_bytes(num_programs), self._check.scratch_bytes(num_programs))

    def prepare(self, device: Device, module: Module, results: int, scratch: int, stream: Any) -> None:
        """What the first of the two needs. The second one needs the same."""
        self._plan.prepare(device, module, results, scratch, stream)

    def launch(self, device: Device, loaded: Any, module: Module, results: int, scratch: int, stream: Any) -> None:
        """Starts both."""
        self._plan.launch(device, loaded, module, results, scratch, stream)
        self._check.launch(device, loaded, module, results + self._plan.result_bytes(len(module.rows)), scratch, stream)

    def score(self, host: NDArray[Any], num_instructions: NDArray[Any]) -> Evaluation:
        """Scores the sums with the task's `score`."""
        num_programs = len(num_instructions)
        num_bytes = self._plan.result_bytes(num_programs)
        sums = self._plan.sums(host[:num_bytes], num_programs)
        is_finite = (sums["num_nonfinite"] == 0).all(axis=1, keepdims=True)
        check = {
            name: np.where(is_finite, values, 0.0) for name, values in self._check.sums(host[num_bytes:], num_programs).items()
        }
        return score_batch(self._task, Regression.of_sums(sums), num_instructions, Regression.of_sums(check))

    def close(self) -> None:
        """Closes both."""
        self._plan.close()
        self._check.close()


class KernelPlan(Plan):
    """Scores, or sums, by a task's own kernel (`evo.kernel.cuda_source`): `(num_programs, num_results)` float64."""

    num_results: int

    def __init__(self, task: Task, inputs: DeviceInputs):
        super().__init__(task, inputs)
        self.num_results = num_kernel_results(task)
        self._points = cuda_header.points_argument(inputs.addresses, inputs.strides, inputs.num_points)

    def result_bytes(self, num_programs: int) -> int:
        """An objective and measures, or sums, in float64 for each program."""
        return num_programs * self.num_results * 8

    def scratch_bytes(self, num_programs: int) -> int:
        """The number of instructions of each program."""
        return num_programs * 4

    def prepare(self, device: Device, module: Module, results: int, scratch: int, stream: Any) -> None:
        """Uploads the numbers of instructions."""
        device.copy_to_device(scratch, module.num_instructions.astype(np.int32), stream)
        # What the kernel does not write must be NaN, which rejects the program, instead of another pack's result.
        device.fill(results, 0xFF, self.result_bytes(len(module.rows)), stream)

    def launch(self, device: Device, loaded: Any, module: Module, results: int, scratch: int, stream: Any) -> None:
        """Starts the task's kernel, one row of blocks for each program."""
        params = self.parameters(results, scratch)
        device.launch(device.function(loaded, ENTRY), (1, len(module.rows)), cuda_header.BLOCK_SIZE, params, stream)

    def parameters(self, results: int, num_instructions: int) -> list[NDArray[Any] | np.generic]:
        """The kernel's, given the addresses of results and of the numbers of instructions."""
        return [self._points, np.uint64(num_instructions), np.uint64(results)]

    def score(self, host: NDArray[Any], num_instructions: NDArray[Any]) -> Evaluation:
        """Takes the kernel's scores, or those that the task makes of its sums, except those that are not finite."""
        results = host.view(np.float64).reshape(len(num_instructions), self.num_results)
        if self._task.kernel_sums:
            return score_batch(self._task, results, num_instructions, method="score_sums")
        return finite_only(results[:, 0].copy(), results[:, 1:].copy())
