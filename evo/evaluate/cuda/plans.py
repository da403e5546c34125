"""Kernels of packs on the GPU: outputs at points, sums over these outputs, or scores by a task's own kernel.

Owns the layout of parameters and results of each kind of kernel. Knows nothing of streams, buffers or how `evo.kernel` makes the
kernels.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.compile.assembler import assembler_options
from evo.compile.request import assemble
from evo.compile.targets import architecture
from evo.evaluate import Evaluation, finite_only, score_batch, stored_types
from evo.evaluate.cuda.device import Device
from evo.evaluate.cuda.device_inputs import DeviceInputs
from evo.evaluate.cuda.interpreter_kernels import Kernel, TaskKernel, code_bytes
from evo.evaluate.cuda.scoring import OutputScorer
from evo.kernel import cuda_header, reduction
from evo.kernel.pointwise import kernel_name
from evo.kernel.template import ENTRY
from evo.native.ptx_vm import Targets
from evo.task import Task
from evo.tasks.answers import num_kernel_results, target_array, weight_array
from evo.tasks.sums import Regression

BLOCK_SIZE = 256
WARP = 32
# A multiprocessor holds at most 2,048 threads. Several times as many are launched if there are enough points, because programs
# differ in length. The factor is an estimate, not a measurement.
BLOCKS_PER_MULTIPROCESSOR = 8 * 2048 // BLOCK_SIZE


class Plan(ABC):
    """Computation of a lane's packs.

    Args:
        kernel: interprets the packs, which are code; None: they are modules.

    Attributes:
        inputs: at which points.
        takes_sums: whether an interpreter adds outputs up, and stores none.
        is_divisible: whether the results of any consecutive programs of a pack are consecutive bytes.
        num_results: values that a task's own kernel writes for each program; None: the kernel is not a task's.
    """

    takes_sums = False
    is_divisible = True
    num_results: int | None = None

    def __init__(self, task: Task, inputs: DeviceInputs, kernel: Kernel | TaskKernel | None = None):
        self._task = task
        self.inputs = inputs
        self._kernel = kernel

    @property
    def most_points(self) -> int:
        """Points of the largest launch."""
        return self.inputs.num_points

    @abstractmethod
    def result_bytes(self, num_programs: int) -> int:
        """Bytes of results that come back to this machine."""

    def scratch_bytes(self, num_programs: int) -> int:
        """Further bytes that the kernels use on the device. A pack's code comes first."""
        return _aligned(code_bytes(num_programs)) if self._kernel else 0

    def prepare(self, device: Device, module: Any, results: int, scratch: int, stream: Any) -> None:
        """Queues what comes before the kernels, such as the code; `results` and `scratch` are addresses."""
        if self._kernel:
            device.copy_to_device(scratch, module.code, stream)

    def _after_code(self, module: Any, scratch: int) -> int:
        return scratch + _aligned(len(module.code)) if self._kernel else scratch

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

    _kernel: Kernel | None

    def __init__(self, task: Task, inputs: DeviceInputs, kernel: Kernel | None = None):
        super().__init__(task, inputs, kernel)
        self.num_outputs = len(stored_types(task))
        self.scorer = OutputScorer(task)

    def result_bytes(self, num_programs: int) -> int:
        """4 bytes for each output at each point."""
        return num_programs * self.num_outputs * self.inputs.num_points * 4

    def launch(self, device: Device, loaded: Any, module: Any, results: int, scratch: int, stream: Any) -> None:
        """Starts the module's kernels, each on its sites' part of the results, or the interpreter."""
        inputs = self.inputs
        if self._kernel:
            self._kernel.launch(inputs, scratch, len(module.rows), results, (), stream)
            return
        for kernel, num_sites in enumerate(module.kernel_sizes):
            rows = -(-BLOCKS_PER_MULTIPROCESSOR * device.num_multiprocessors // num_sites)
            name, size = kernel_name(kernel), BLOCK_SIZE
            if inputs.rollout:  # a thread for each trajectory
                name, size = ENTRY, min(BLOCK_SIZE, -(-inputs.width // WARP) * WARP)
                rows = -(-inputs.width // size)
            grid = (max(1, min(rows, -(-inputs.width // size))), num_sites)
            params = [*inputs.addresses, np.uint64(results), *inputs.strides, np.uint32(inputs.width), *inputs.counts]
            device.launch(device.function(loaded, name), grid, size, params, stream)
            results += self.result_bytes(num_sites)

    def outputs(self, host: NDArray[Any], num_programs: int) -> NDArray[Any]:
        """The results as `(num_programs, num_outputs, num_points)` float32, to be viewed as the outputs' types."""
        return host.view(np.float32).reshape(num_programs, self.num_outputs, self.inputs.num_points)

    def score(self, host: NDArray[Any], num_instructions: NDArray[Any]) -> Evaluation:
        """Scores chunk by chunk with the task's `score`, as the CPU evaluator does."""
        return self.scorer.score(self.outputs(host, len(num_instructions)), num_instructions)

    def abandon(self) -> None:
        """Ends the processes that score."""
        self.scorer.close()


@dataclass(frozen=True)
class _PointSet:
    """Points that sums are taken at. targets, target_sums, weights: on the device; None: all weights are 1."""

    stores: StorePlan
    targets: Any
    target_sums: Any
    weights: Any

    @property
    def num_points(self) -> int:
        return self.stores.inputs.num_points


class RegressionPlan(Plan):
    """Sums of outputs against targets (`evo.task.Regression`). The outputs stay on the device; an interpreter stores none, unless
    it runs a loop.

    Args:
        check: the task's check points, if it has any. Their sums follow all those at the other points.
        recorded: targets and weights of a loop's records; None: the task is asked.
    """

    _kernel: Kernel | None

    def __init__(
        self,
        task: Task,
        inputs: DeviceInputs,
        device: Device,
        kernel: Kernel | None = None,
        check: DeviceInputs | None = None,
        recorded: tuple[NDArray[np.float32], NDArray[np.float32] | None] | None = None,
    ):
        super().__init__(task, inputs, kernel)
        self._device = device
        self._num_outputs = len(stored_types(task))
        self.takes_sums, self.is_divisible = inputs.rollout is None, check is None
        count = inputs.num_points
        targets, weights = recorded or (target_array(task, count), weight_array(task, count))
        self._point_sets = [self._upload(inputs, targets, weights)]
        if check:
            equal_weights = (
                None if weights is None else np.ones(check.num_points, np.float32)
            )  # the kernels are the same for both
            self._point_sets.append(self._upload(check, target_array(task, check.num_points, "check_targets"), equal_weights))
        target = device.info.target
        ptx = reduction.regression_ptx(architecture(target), weights is not None).encode()
        self._module = device.load(assemble(ptx, target, assembler_options(3)))  # compiled once, launched for every pack

    @property
    def most_points(self) -> int:
        """The greater number of points and check points."""
        return max(point_set.num_points for point_set in self._point_sets)

    def result_bytes(self, num_programs: int) -> int:
        """The sums of each output."""
        return len(self._point_sets) * reduction.result_bytes(num_programs * self._num_outputs)

    def scratch_bytes(self, num_programs: int) -> int:
        """The code, all outputs, and partial sums. The sets of points follow one another."""
        num_rows = num_programs * self._num_outputs
        return super().scratch_bytes(num_programs) + max(
            (_output_bytes(point_set, num_programs) if self._stores else 0)
            + reduction.scratch_bytes(num_rows, point_set.num_points)
            for point_set in self._point_sets
        )

    @property
    def _stores(self) -> bool:
        return self._kernel is None or not self.takes_sums

    def launch(self, device: Device, loaded: Any, module: Any, results: int, scratch: int, stream: Any) -> None:
        """Starts the module's kernels and the reduction of their outputs, or the interpreter; then adds up the partial sums."""
        num_programs, num_outputs = len(module.rows), self._num_outputs
        rows = np.uint32(num_programs * num_outputs)

        def start(launch: tuple[str, tuple[int, int], int], *params: np.generic) -> None:
            name, grid, block_size = launch
            device.launch(device.function(self._module, name), grid, block_size, params, stream)

        for point_set in self._point_sets:
            inputs, points = point_set.stores.inputs, np.uint32(point_set.num_points)
            blocks, whole = reduction.launches(int(rows), point_set.num_points)
            targets = np.uint64(int(point_set.targets))
            weights = np.uint64(0 if point_set.weights is None else int(point_set.weights))
            compared = (int(targets), int(weights), int(point_set.target_sums))
            sums = self._after_code(module, scratch)
            if self._kernel and not self._stores:
                self._kernel.launch(inputs, scratch, num_programs, sums, compared, stream)
            else:
                outputs, sums = sums, sums + _output_bytes(point_set, num_programs)
                point_set.stores.launch(device, loaded, module, outputs, scratch, stream)
                start(blocks, np.uint64(outputs), targets, weights, np.uint64(sums), rows, np.uint32(num_outputs), points)
            start(whole, np.uint64(sums), np.uint64(results), rows, points)
            results += reduction.result_bytes(int(rows))

    def score(self, host: NDArray[Any], num_instructions: NDArray[Any]) -> Evaluation:
        """Scores the sums with the task's `score`."""
        shape = (len(num_instructions), self._num_outputs, reduction.NUM_FIELDS)
        all_sums: list[dict[str, NDArray[Any]]] = []
        for point_set, part in zip(self._point_sets, np.split(host.view(np.float64), len(self._point_sets)), strict=True):
            sums = dict(zip(reduction.FIELDS, np.moveaxis(part.reshape(shape), -1, 0), strict=True))
            sums["num_points"] = np.full(shape[:2], float(point_set.num_points))
            if all_sums:  # programs that are not finite at the points have no sums at the check points
                is_finite = (all_sums[0]["num_nonfinite"] == 0).all(axis=1, keepdims=True)
                sums = {name: np.where(is_finite, values, 0.0) for name, values in sums.items()}
            all_sums.append(sums)
        sums_of = [Regression.of_sums(sums) for sums in all_sums]
        return score_batch(self._task, sums_of[0], num_instructions, sums_of[1] if len(sums_of) > 1 else None)

    def close(self) -> None:
        """Frees targets and weights and unloads the kernels."""
        self._device.unload(self._module)
        for point_set in self._point_sets:
            self._device.free(point_set.targets)
            self._device.free(point_set.target_sums)
            if point_set.weights is not None:
                self._device.free(point_set.weights)

    def _upload(self, inputs: DeviceInputs, values: NDArray[np.float32], weights: NDArray[np.float32] | None) -> _PointSet:
        targets = Targets(values, weights)
        upload = self._device.upload
        sent_weights = None if weights is None else upload(weights)
        return _PointSet(StorePlan(self._task, inputs, self._kernel), upload(targets.values), upload(targets.sums), sent_weights)


class KernelPlan(Plan):
    """Scores, or sums, by a task's own kernel (`evo.kernel.cuda_source`): `(num_programs, num_results)` float64."""

    num_results: int
    _kernel: TaskKernel | None

    def __init__(self, task: Task, inputs: DeviceInputs, kernel: TaskKernel | None = None):
        super().__init__(task, inputs, kernel)
        self.num_results = num_kernel_results(task)
        self._points = cuda_header.points_argument(inputs.addresses, inputs.strides, inputs.num_points)

    def result_bytes(self, num_programs: int) -> int:
        """An objective and measures, or sums, in float64 for each program."""
        return num_programs * self.num_results * 8

    def scratch_bytes(self, num_programs: int) -> int:
        """The code, and the number of instructions of each program."""
        return super().scratch_bytes(num_programs) + num_programs * 4

    def prepare(self, device: Device, module: Any, results: int, scratch: int, stream: Any) -> None:
        """Uploads the code and the numbers of instructions."""
        super().prepare(device, module, results, scratch, stream)
        device.copy_to_device(self._after_code(module, scratch), module.num_instructions.astype(np.int32), stream)
        # Results that the kernel does not write must be NaN, which rejects the program, instead of another pack's result.
        device.fill(results, 0xFF, self.result_bytes(len(module.rows)), stream)

    def launch(self, device: Device, loaded: Any, module: Any, results: int, scratch: int, stream: Any) -> None:
        """Starts the task's kernel, one row of blocks for each program."""
        num_programs = len(module.rows)
        numbers = self._after_code(module, scratch)
        params: list[NDArray[Any] | np.generic] = [self._points, np.uint64(numbers), np.uint64(results)]
        if self._kernel:
            self._kernel.launch(scratch, num_programs, params, stream)
        else:
            device.launch(device.function(loaded, ENTRY), (1, num_programs), cuda_header.BLOCK_SIZE, params, stream)

    def score(self, host: NDArray[Any], num_instructions: NDArray[Any]) -> Evaluation:
        """Takes the kernel's scores, or those that the task makes of its sums, except those that are not finite."""
        results = host.view(np.float64).reshape(len(num_instructions), self.num_results)
        if self._task.kernel_sums:
            return score_batch(self._task, results, num_instructions, method="score_sums")
        return finite_only(results[:, 0].copy(), results[:, 1:].copy())


def _output_bytes(point_set: _PointSet, num_programs: int) -> int:
    return _aligned(point_set.stores.result_bytes(num_programs))


def _aligned(num_bytes: int) -> int:
    """Number of bytes rounded up, so that the next buffer is aligned."""
    return -(-num_bytes // 256) * 256
