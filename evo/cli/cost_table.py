"""What a program costs on this machine, by what runs it and by how many points it runs at: the table of `evo doctor --measure`.

Owns the programs and the task that are measured, and the table. Knows nothing of runs.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.config import make_config
from evo.errors import DeviceFailure, UserError
from evo.evaluate.backends import BACKENDS, CPU, calibrate_cpu, calibrate_lanes
from evo.evaluate.calibration import VERBS, Calibration, break_even, duration
from evo.instructions import shipped_instruction_set
from evo.run.loaded_task import problem_of
from evo.run.search import Search
from evo.sums import Regression
from evo.task import Programs, Scores, Task

NUM_POINTS = (1_000, 10_000, 100_000, 1_000_000, 16_000_000)
# The exact instructions of formulas, and three approximate ones.
_APPROXIMATE = ("sin", "exp2", "tanh")
_INSTRUCTIONS = [
    i.name
    for i in shipped_instruction_set("default").instructions
    if i.semantics.infix and (i.semantics.function in _APPROXIMATE or not i.semantics.error)
]
_CONFIG = {
    "task": "",  # made here
    "program": {"vocabulary": {"instructions": _INSTRUCTIONS}},
    "search": {"archive": {"dims": [1]}},
    "stop": {"generations": 1},
}


class Probe(Task):
    """Two inputs, one output, and sums against a target: programs of which only what running them costs matters."""

    inputs = {"x": "f32", "y": "f32"}  # noqa: RUF012 - as tasks are declared
    outputs = {"f": "f32"}  # noqa: RUF012 - as tasks are declared
    measures = {"num_instructions": (0.0, 64.0)}  # noqa: RUF012 - as tasks are declared
    reduction = "regression"

    def __init__(self, num_points: int):
        self.x = np.linspace(-1.0, 1.0, num_points, dtype=np.float32)

    def points(self) -> dict[str, NDArray[Any]]:
        """A line through the plane."""
        return {"x": self.x, "y": self.x[::-1].copy()}

    def targets(self) -> dict[str, NDArray[Any]]:
        """The product of the inputs."""
        return {"f": self.x * self.x[::-1]}

    def score(self, outputs: Any, programs: Programs) -> Scores:
        """The mean squared error."""
        assert isinstance(outputs, Regression)
        return Scores(-outputs.mse[:, 0], programs.num_instructions[:, None].astype(np.float64))


def cost_table(warn: Callable[[str], None], num_points: tuple[int, ...] = NUM_POINTS) -> Iterator[str]:
    """The lines of the table, each as soon as it is measured, and then from how many points on each lane of a GPU pays.

    Args:
        warn: called with a line if there is a GPU that cannot be used.
    """
    backends = [backend for backend in BACKENDS.values() if backend is not CPU and not backend.why_unusable()]
    measured: list[Calibration] = []
    for count in num_points:
        search = Search(problem_of(make_config(_CONFIG, "evo doctor --measure"), Probe(count)))
        assignment, batch = search.problem.assignment, search.typical_programs()
        calibration = calibrate_cpu(assignment, batch)
        for backend in list(backends):
            try:
                calibration = calibrate_lanes(backend, assignment, batch, calibration)
            except (UserError, DeviceFailure) as error:
                warn(f"the GPU is not measured at {count:,} points and beyond: {error}")
                backends.remove(backend)
        if not measured:
            yield from _head(calibration)
        measured.append(calibration)
        yield _row(calibration, list(measured[0].lanes))
    yield from _break_evens(measured)


def _head(calibration: Calibration) -> Iterator[str]:
    threads = f"{calibration.threads} thread{'' if calibration.threads == 1 else 's'}"
    size = calibration.num_instructions
    yield f"Time of a program of {size:.0f} instructions in the mean, summed against a target. CPU: {threads}."
    if not calibration.lanes:
        yield "No GPU can be used here: only the CPU is measured."
    columns = ["points", "CPU", *(f"GPU {VERBS.get(name, name)}" for name in calibration.lanes)]
    if any(lane.compile_s for lane in calibration.lanes.values()):
        columns.append("compiling, a core")
    yield "".join(f"{column:>20}" for column in columns)


def _row(calibration: Calibration, lanes: list[str]) -> str:
    costs = calibration.costs()
    cells = [f"{calibration.num_points:,}", *(duration(costs[name]) if name in costs else "-" for name in (CPU.name, *lanes))]
    if compiled := [lane.compile_s for lane in calibration.lanes.values() if lane.compile_s]:
        cells.append(duration(compiled[0]))
    return "".join(f"{cell:>20}" for cell in cells)


def _break_evens(measured: list[Calibration]) -> Iterator[str]:
    for name in measured[0].lanes:
        rows = [(each.num_points, each.costs()[CPU.name], each.costs()[name]) for each in measured if name in each.lanes]
        from_points = break_even(*zip(*rows, strict=True))
        what = VERBS.get(name, name)
        if from_points is None:
            yield f"GPU {what}: the CPU is faster at up to {rows[-1][0]:,} points"
        else:
            yield f"GPU {what}: faster than the CPU from about {_rounded(from_points):,} points on"


def _rounded(number: float) -> int:
    """To two digits."""
    return int(float(f"{number:.1e}"))
