"""Rollouts: a task's programs in the loop that it declares.

Owns what is made of the declaration and the task's points, for the CPU, where csrc/detail/rollout.h runs it, and for kernels.
Knows nothing of scores.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.errors import UserError
from evo.evaluate import by_name, stored_types
from evo.evaluate.stored_sums import StoredSums
from evo.kernel.rollout import Loop as KernelLoop
from evo.language.batch import ProgramRows
from evo.language.infix import parse_infix
from evo.language.program import Language
from evo.native.ptx_vm import Targets, VirtualMachine
from evo.native.rollout import NEIGHBOUR_DTYPE, NO_STATE, GridLoop, Loop, rollouts
from evo.task import DTYPES, Task, place_of
from evo.tasks.answers import ask, point_arrays, typed_arrays, weight_array
from evo.tasks.grid import Grid

_CHANGE = "change_of_"  # names of requests
_MAX_WORDS = 4096  # of all formulas
_NEEDED = {"add": "add.ftz.f32", "fma": "fma.rn.ftz.f32"}  # by integrators


class LoopRunner:
    """Runs programs of a task with a rollout.

    Args:
        in_pieces: in those that the rollout is cut into, or else whole.

    Attributes:
        rollout: what is run: the task's, or that of a piece.
        types: of each column, by name. state_columns: where states begin.
        field, words: the formulas as a program that reads the columns and then the task's outputs.
        loop: what the CPU repeats.

    Raises:
        UserError: a formula of the rollout is wrong, or the instruction set lacks what the integrator needs.
    """

    def __init__(self, language: Language, task: Task, *, in_pieces: bool = True):
        assert task.rollout is not None
        self._task, self._whole = task, task.rollout
        self._pieces = task.rollout.pieces if in_pieces else 1
        self.rollout = rollout = task.rollout.piece() if self._pieces > 1 else task.rollout
        hidden = [name for name in rollout.names() if name not in task.inputs and name not in task.outputs]
        self.num_records = rollout.num_records
        self.states = stored_types(task)
        read = rollout.grid.reads(rollout.state) if rollout.grid else {}
        self.types = {**task.inputs, **{name: self.states[read[name][0]] if name in read else "f32" for name in hidden}}
        self._given_types = {name: kind for name, kind in self.types.items() if name not in read}
        location = f"{place_of(type(task))}: {type(task).__name__}.rollout"
        instruction_set = language.instruction_set
        by_ptx = {instruction.ptx: index for index, instruction in enumerate(instruction_set.instructions)}
        if rollout.integrator != "map" and (lacking := [ptx for ptx in _NEEDED.values() if ptx not in by_ptx]):
            raise UserError(
                f"{rollout.integrator} needs the instruction {lacking[0]}, which the set lacks", f"{location}.integrator"
            )
        names = {_CHANGE + name: kind for name, kind in self.states.items()}
        self._language = language
        self.field = field = Language(instruction_set, (*self.types.items(), *task.outputs.items()), tuple(names.items()))
        text = "\n".join(f"{_CHANGE}{name} = {formula}" for name, formula in rollout.state.items())
        self.words = words = parse_infix(
            field, text, f"{location}.state", _MAX_WORDS, [instruction.name for instruction in instruction_set.instructions]
        )
        add, fma = (by_ptx.get(ptx, -1) for ptx in _NEEDED.values())
        indices = {name: index for index, name in enumerate(self.types)}
        self.state_columns = columns = tuple(indices[name] for name in rollout.state)
        dt = np.asarray(rollout.dt, np.float32)
        self._times = np.stack([dt, dt / np.float32(2.0), dt / np.float32(6.0)], axis=-1)
        lowered = field.lowering.lower(words)
        f32 = next(index for index, stack in enumerate(instruction_set.stacks) if stack.literal_prefix == "f32")
        grid = _grid_loop(rollout.grid, self.states, [read.get(name) for name in self.types]) if rollout.grid else None
        self.loop = Loop(rollout.integrator, columns, lowered, f32, add, fma, dt, rollout.steps, rollout.record_every, grid)
        self._sums = StoredSums(instruction_set, len(self.states))

    def columns(self, points: Any, method: str) -> tuple[list[NDArray[Any]], int]:
        """Columns of `Task.points`, each of its type, and the number of trajectories.

        Raises:
            UserError: a value is missing, unknown or no number, or shapes differ.
        """
        location = f"{place_of(type(self._task))}: {method}"
        arrays = typed_arrays(points, self._given_types, location)
        steps = self._whole.steps
        if self._whole.grid:
            return self._cells(arrays, self._whole.grid.shape, location)
        widths = {array.shape[-1] for array in arrays if array.ndim == 1 or (array.ndim == 2 and array.shape[1] != 1)}
        width = max(widths, default=1)
        for name, array in zip(self._given_types, arrays, strict=True):
            allowed: list[tuple[int, ...]] = [(), (width,)]
            by_piece = f"; ({self._pieces}, num_trajectories), by piece" * (self._pieces > 1)
            if name not in self.states:
                allowed += [(steps, 1), (steps, width)]
            elif by_piece:
                allowed.append((self._pieces, width))
            if array.shape not in allowed or not width:
                raise UserError(
                    f"'{name}' has shape {array.shape}; a state is a scalar or (num_trajectories,){by_piece}; other "
                    f"values may also be ({steps}, 1) or ({steps}, num_trajectories), by step",
                    location,
                )
        return (arrays, width) if self._pieces == 1 else (self._cut(arrays, width), self._pieces * width)

    def _cut(self, arrays: list[NDArray[Any]], width: int) -> list[NDArray[Any]]:
        """Columns of pieces: the first ones of all trajectories, the second ones, and so on."""
        recorded = dict(zip(self.states, self._recorded(width), strict=True))
        columns = []
        for name, array in zip(self._given_types, arrays, strict=True):
            if name in self.states and array.ndim < 2:
                begins = recorded[name][self.num_records - 1 : -1 : self.num_records]
                if (is_lacking := ~np.isfinite(begins).all(axis=1)).any():
                    record = self.num_records * (1 + int(is_lacking.argmax())) - 1
                    where = f"'{name}' is not finite at record {record}, where a piece of the rollout begins"
                    raise UserError(f"targets(): {where}", place_of(type(self._task)))
                columns.append(np.concatenate([np.broadcast_to(array, (1, width)), begins]).ravel())
            elif name in self.states:
                columns.append(array.ravel())
            elif array.ndim == 2:
                columns.append(self.cut_records(np.broadcast_to(array, (len(array), width))))
            else:
                columns.append(np.tile(array, self._pieces) if array.ndim else array)
        return columns

    def cut_records(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values by step or record and trajectory, `(..., num_records, num_trajectories)`, those of pieces side by side."""
        *first, length, width = values.shape
        by_piece = values.reshape(*first, self._pieces, length // self._pieces, width)
        return np.ascontiguousarray(by_piece.swapaxes(-3, -2)).reshape(*first, length // self._pieces, self._pieces * width)

    def weights(self, num_points: int) -> NDArray[np.float32] | None:
        """As `weight_array`, of records in the order of `targets`."""
        weights = weight_array(self._task, num_points)
        return weights if weights is None else self.cut_records(weights.reshape(self._whole.num_records, -1)).ravel()

    def _cells(self, arrays: list[NDArray[Any]], shape: tuple[int, int], location: str) -> tuple[list[NDArray[Any]], int]:
        """Columns of all cells of all grids, of values of grids; those that hold neighbours' states are 0."""
        steps = self._whole.steps
        whole = (max((array.shape[-3] for array in arrays if array.ndim > 2), default=1), *shape)
        if not whole[0]:
            raise UserError("there are no grids", location)
        columns: dict[str, NDArray[Any]] = {name: np.zeros((), np.uint32) for name in self.types}
        for name, array in zip(self._given_types, arrays, strict=True):
            by_step = (steps,) if array.ndim == 4 and name not in self.states else ()
            is_same = name not in self.states and array.shape[len(by_step) :] in ((), (1, 1, 1))  # in all cells
            try:
                cells = np.broadcast_to(array, (*by_step, *whole))
            except ValueError:
                raise UserError(
                    f"'{name}' has shape {array.shape}; a state's broadcasts to (num_grids, {shape[0]}, {shape[1]}), "
                    f"other values' may also be ({steps}, num_grids, {shape[0]}, {shape[1]}), by step",
                    location,
                ) from None
            columns[name] = array.reshape((*by_step, 1) if by_step else ()) if is_same else cells.reshape(*by_step, -1)
        return [*columns.values()], int(np.prod(whole))

    def run(self, machine: VirtualMachine, programs: ProgramRows, columns: list[NDArray[Any]]) -> NDArray[Any]:
        """The records, `(num_programs, num_states, num_records, num_trajectories)`."""
        width = max((array.shape[-1] for array in columns if array.ndim), default=1)
        return np.asarray(rollouts(machine, programs, self.loop, columns, width))

    def for_kernels(self, columns: list[NDArray[Any]]) -> tuple[KernelLoop, list[NDArray[Any]]]:
        """The loop as kernels have it, and all that they read: the columns and the times."""
        shapes = tuple((array.ndim == 2, array.ndim > 0 and array.shape[-1] > 1) for array in columns)
        integrator, differ = self.rollout.integrator, self._times.ndim > 1
        loop = KernelLoop(self._language, self.field, self.words, integrator, self.state_columns, shapes, differ)
        return loop, [*columns, self._times]

    def reduced(self, level: str, records: NDArray[np.float32], targets: Targets) -> NDArray[np.void]:
        """Sums that compare records with data, `(num_programs, num_states)`."""
        return self._sums.compare(level, records.reshape(*records.shape[:2], -1), targets)

    def targets(self, num_trajectories: int) -> NDArray[np.float32]:
        """The recorded data, `(num_states, num_records * num_trajectories)`.

        Raises:
            UserError: a state is missing, unknown or no number, or has another shape; or there are check points.
        """
        return self.cut_records(self._recorded(num_trajectories // self._pieces)).reshape(len(self.states), -1)

    def _recorded(self, num_trajectories: int) -> NDArray[np.float32]:
        """The data of whole trajectories, `(num_states, num_records, num_trajectories)`."""
        location = f"{place_of(type(self._task))}: targets()"
        if ask(self._task, "check_points"):
            raise UserError("check_points(): a task with a rollout has none", place_of(type(self._task)))
        targets = ask(self._task, "targets")
        if not isinstance(targets, dict) or set(targets) != set(self.states):
            raise UserError(f"must return a dict of exactly {', '.join(self.states)}", location)
        cells = self._whole.grid.shape if self._whole.grid else ()
        shape = (self._whole.num_records, num_trajectories // int(np.prod(cells)), *cells)
        try:
            rows = [np.asarray(targets[name], np.float32) for name in self.states]
        except (TypeError, ValueError) as error:
            raise UserError(f"a target is not an array of f32: {error}", location) from error
        for name, row in zip(self.states, rows, strict=True):
            if row.shape != shape:
                raise UserError(f"'{name}' has shape {row.shape}, the records have {shape}", location)
        return np.stack(rows).reshape(len(rows), self._whole.num_records, num_trajectories)


def _grid_loop(grid: Grid, states: dict[str, str], reads: Sequence[tuple[str, int, int] | None]) -> GridLoop:
    """reads: of each column, the state, dy and dx that it holds of neighbours."""
    order = list(states)
    neighbours = [(order.index(read[0]), *read[1:]) if read else (NO_STATE, 0, 0) for read in reads]
    boundary = grid.boundary if isinstance(grid.boundary, str) else "constant"
    outside = np.array([grid.outside(DTYPES[kind]) for kind in states.values()], np.uint32)
    return GridLoop(*grid.shape, boundary, outside, np.array(neighbours, NEIGHBOUR_DTYPE))


def trajectories(
    machine: VirtualMachine, language: Language, task: Task, words: ProgramRows, points: Any, method: str
) -> dict[str, NDArray[Any]]:
    """The records of each state, of whole trajectories that begin at such points as `Task.points` gives.

    Raises:
        UserError: the points are malformed.
    """
    loop = LoopRunner(language, task, in_pieces=False)
    return by_name(task, loop.run(machine, words, loop.columns(points, method)[0]))


def num_runs(language: Language, task: Task) -> int:
    """Number of times that a task runs a program.

    Raises:
        UserError: the task's points are malformed, or raise.
    """
    points = ask(task, "points")
    if task.rollout is None:
        return point_arrays(task, points, "points()")[1]
    loop = LoopRunner(language, task)
    return loop.rollout.num_runs * loop.columns(points, "points()")[1]
