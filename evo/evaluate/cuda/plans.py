"""What packs compute on the GPU: outputs at points, or sums of them, or scores by a task's own kernel.

Owns the layout of parameters and results of each kind of kernel; the kernels themselves are `evo.kernel`'s.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.compile.assembler import assembler_options, compiler_options
from evo.compile.compiler import Module
from evo.evaluate import CHUNK_SIZE, Evaluation, by_name, finite_only, join, score_batch
from evo.evaluate.cuda.device import Device
from evo.kernel import cuda_header, regression
from evo.kernel.cuda_header import points_argument
from evo.kernel.pointwise import kernel_name
from evo.kernel.template import ENTRY
from evo.native import nvptxcompiler
from evo.task import Regression, Task, target_array

BLOCK_SIZE = 256
# Blocks in flight on a multiprocessor are at most 2,048 threads; several times as many are launched where there are points for
# them, since programs differ in length. An estimate for the H200, not yet measured.
BLOCKS_PER_MULTIPROCESSOR = 8 * 2048 // BLOCK_SIZE


class DeviceInputs:
    """Values of the inputs at points, on the device.

    Args:
        arrays: of each input its values of 4 bytes, `(num_points,)`, or `()` for one that is the same at all points.
    """

    def __init__(self, device: Device, arrays: list[NDArray[Any]], num_points: int):
        self._device = device
        self._buffers = [device.upload(array) for array in arrays]
        self.num_points = num_points
        self.addresses = np.array([int(buffer) for buffer in self._buffers], np.uint64)
        self.strides = np.array([4 if array.ndim else 0 for array in arrays], np.uint32)

    def close(self) -> None:
        """Frees them."""
        for buffer in self._buffers:
            self._device.free(buffer)


class StorePlan:
    """Outputs at all points: `(num_programs, num_outputs, num_points)` of 4 bytes, by the pointwise kernel."""

    def __init__(self, task: Task, inputs: DeviceInputs):
        self._task = task
        self._inputs = inputs

    def result_bytes(self, num_programs: int) -> int:
        return num_programs * len(self._task.outputs) * self._inputs.num_points * 4

    def scratch_bytes(self, num_programs: int) -> int:
        return 0

    def launch(self, device: Device, loaded: Any, module: Module, results: int, scratch: int, stream: Any) -> None:
        inputs = self._inputs
        for kernel, num_sites in enumerate(module.kernel_sizes):
            rows = -(-BLOCKS_PER_MULTIPROCESSOR * device.num_multiprocessors // num_sites)
            grid = (max(1, min(rows, -(-inputs.num_points // BLOCK_SIZE))), num_sites)
            params = [*inputs.addresses, np.uint64(results), *inputs.strides, np.uint32(inputs.num_points)]
            device.launch(device.function(loaded, kernel_name(kernel)), grid, BLOCK_SIZE, params, stream)
            results += self.result_bytes(num_sites)

    def outputs(self, host: NDArray[Any], num_programs: int) -> NDArray[Any]:
        """The results as `(num_programs, num_outputs, num_points)` float32, whose bits are those of the outputs' types."""
        return host.view(np.float32).reshape(num_programs, len(self._task.outputs), self._inputs.num_points)

    def close(self) -> None:
        """There is nothing of its own."""

    def score(self, host: NDArray[Any], num_instructions: NDArray[Any]) -> Evaluation:
        outputs = self.outputs(host, len(num_instructions))
        chunks = [slice(first, first + CHUNK_SIZE) for first in range(0, len(num_instructions), CHUNK_SIZE)]
        parts = [score_batch(self._task, by_name(self._task, outputs[chunk]), num_instructions[chunk]) for chunk in chunks]
        return join(parts, len(self._task.measures))


class RegressionPlan:
    """Sums of the outputs against targets (`evo.task.Regression`): the outputs stay on the device."""

    def __init__(self, task: Task, inputs: DeviceInputs, device: Device):
        self._task = task
        self._device = device
        self._inputs = inputs
        self._outputs = StorePlan(task, inputs)
        self._targets = device.upload(target_array(task, inputs.num_points))
        self._module = device.load(nvptxcompiler.compile(regression.regression_ptx(device.info.target), _options(device)))

    def result_bytes(self, num_programs: int) -> int:
        return regression.result_bytes(num_programs * len(self._task.outputs))

    def scratch_bytes(self, num_programs: int) -> int:
        return self._output_bytes(num_programs) + regression.scratch_bytes(
            num_programs * len(self._task.outputs), self._inputs.num_points
        )

    def launch(self, device: Device, loaded: Any, module: Module, results: int, scratch: int, stream: Any) -> None:
        num_outputs = len(self._task.outputs)
        num_rows = len(module.rows) * num_outputs
        self._outputs.launch(device, loaded, module, scratch, 0, stream)
        outputs, sums = np.uint64(scratch), np.uint64(scratch + self._output_bytes(len(module.rows)))
        rows, points = np.uint32(num_rows), np.uint32(self._inputs.num_points)
        params: dict[str, list[np.generic]] = {
            "regression_blocks": [outputs, np.uint64(self._targets), sums, rows, np.uint32(num_outputs), points],
            "regression_rows": [sums, np.uint64(results), rows, points],
        }
        for name, grid, block_size in regression.launches(num_rows, self._inputs.num_points):
            device.launch(device.function(self._module, name), grid, block_size, params[name], stream)

    def score(self, host: NDArray[Any], num_instructions: NDArray[Any]) -> Evaluation:
        shape = (len(num_instructions), len(self._task.outputs))
        sums = dict(
            zip(regression.FIELDS, np.moveaxis(host.view(np.float64).reshape(*shape, regression.NUM_FIELDS), -1, 0), strict=True)
        )
        sums["num_points"] = np.full(shape, float(self._inputs.num_points))
        return score_batch(self._task, Regression(**sums), num_instructions)

    def close(self) -> None:
        """Frees targets and kernels."""
        self._device.unload(self._module)
        self._device.free(self._targets)

    def _output_bytes(self, num_programs: int) -> int:
        return -(-self._outputs.result_bytes(num_programs) // 256) * 256  # what follows stays aligned


class KernelPlan:
    """Scores by a task's own kernel (`evo.kernel.cuda_source`): `(num_programs, 1 + num_measures)` float64."""

    def __init__(self, task: Task, inputs: DeviceInputs):
        self._num_scores = 1 + len(task.measures)
        self._points = points_argument(inputs.addresses, inputs.strides, inputs.num_points)

    def result_bytes(self, num_programs: int) -> int:
        return num_programs * self._num_scores * 8

    def scratch_bytes(self, num_programs: int) -> int:
        return num_programs * 4

    def launch(self, device: Device, loaded: Any, module: Module, results: int, scratch: int, stream: Any) -> None:
        num_programs = len(module.rows)
        device.copy_to_device(scratch, module.num_instructions.astype(np.int32), stream)
        # A score that the kernel does not write is NaN, which rejects the program, and not what another pack left there.
        device.fill(results, 0xFF, self.result_bytes(num_programs), stream)
        params: list[NDArray[Any] | np.generic] = [self._points, np.uint64(scratch), np.uint64(results)]
        device.launch(device.function(loaded, ENTRY), (1, num_programs), cuda_header.BLOCK_SIZE, params, stream)

    def score(self, host: NDArray[Any], num_instructions: NDArray[Any]) -> Evaluation:
        scores = host.view(np.float64).reshape(len(num_instructions), self._num_scores)
        return finite_only(scores[:, 0].copy(), scores[:, 1:].copy())

    def close(self) -> None:
        """There is nothing of its own."""


def _options(device: Device) -> tuple[str, ...]:
    return compiler_options(device.info.target, assembler_options(3))  # compiled once, launched for every pack
