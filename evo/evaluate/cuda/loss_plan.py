"""Losses of a task's own on the GPU: outputs come back, and threads of this machine score them.

Owns where outputs lie among the results. What a loss is worth is `evo.evaluate.chunks`'.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.evaluate import Evaluation, join
from evo.evaluate.chunks import ChunkScorer, slices
from evo.evaluate.cuda.device import Device
from evo.evaluate.cuda.device_inputs import DeviceInputs
from evo.evaluate.cuda.interpreter_kernels import Kernel
from evo.evaluate.cuda.plans import Plan, StorePlan
from evo.language.program import Language
from evo.task import Task


class LossPlan(Plan):
    """Outputs at all points and check points, by which threads of this machine fit offset, scale and loss of each program.

    Args:
        check: the task's check points, if it has any. Outputs there follow all those at the other points.
    """

    _kernel: Kernel | None

    def __init__(
        self,
        task: Task,
        inputs: DeviceInputs,
        language: Language,
        num_threads: int,
        kernel: Kernel | None = None,
        check: DeviceInputs | None = None,
    ):
        super().__init__(task, inputs, kernel)
        self.is_divisible = check is None
        self._scorer, self._threads = ChunkScorer(language, task), ThreadPoolExecutor(num_threads)
        self._plans = [StorePlan(task, point_inputs, kernel) for point_inputs in (inputs, check) if point_inputs]

    @property
    def most_points(self) -> int:
        """The greater number of points and check points."""
        return max(plan.inputs.num_points for plan in self._plans)

    def result_bytes(self, num_programs: int) -> int:
        """4 bytes for each point and check point."""
        return sum(plan.result_bytes(num_programs) for plan in self._plans)

    def launch(self, device: Device, loaded: Any, module: Any, results: int, scratch: int, stream: Any) -> None:
        """Starts the kernels at the points, then at the check points."""
        for plan in self._plans:
            plan.launch(device, loaded, module, results, scratch, stream)
            results += plan.result_bytes(len(module.rows))

    def score(self, host: NDArray[Any], num_instructions: NDArray[Any]) -> Evaluation:
        """Scores chunk by chunk with the task's `score`."""
        count = len(num_instructions)
        parts = np.split(host, [self._plans[0].result_bytes(count)])
        stored = [plan.outputs(part, count) for plan, part in zip(self._plans, parts, strict=False)]

        def score(rows: slice) -> Evaluation:
            outputs, *checked = (array[rows] for array in stored)
            return self._scorer.score_losses(outputs, checked[0] if checked else None, num_instructions[rows])

        return join([*self._threads.map(score, slices(count, self._scorer.chunk_size))], len(self._task.measures))

    def abandon(self) -> None:
        """Ends the threads."""
        self._threads.shutdown()
