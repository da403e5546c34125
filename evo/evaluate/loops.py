"""Rollouts on the CPU: a task's programs in the loop that it declares.

Owns what is made of the declaration and the task's points. Knows nothing of scores. csrc/detail/rollout.h runs it.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.errors import UserError
from evo.language.batch import ProgramRows
from evo.language.infix import parse_infix
from evo.language.program import Language
from evo.native.ptx_vm import Targets, VirtualMachine
from evo.native.rollout import Loop, rollouts
from evo.task import DTYPES, Task, ask, place_of, typed_arrays

_CHANGE = "change_of_"  # names of requests
_MAX_WORDS = 4096  # of all formulas
_NEEDED = {"add": "add.ftz.f32", "fma": "fma.rn.ftz.f32"}  # by integrators


class LoopRunner:
    """Runs programs of a task with a rollout.

    Raises:
        UserError: a formula of the rollout is wrong, or the instruction set lacks what the integrator needs.
    """

    def __init__(self, language: Language, task: Task):
        assert task.rollout is not None
        rollout = task.rollout
        self._task, self._rollout = task, rollout
        hidden = [name for name in rollout.names() if name not in task.inputs and name not in task.outputs]
        self._types = {**task.inputs, **dict.fromkeys(hidden, "f32")}
        self.num_records = rollout.num_records
        self.states = {name: self._types[name] for name in rollout.state}
        place = f"{place_of(type(task))}: {type(task).__name__}.rollout"
        instruction_set = language.instruction_set
        by_ptx = {instruction.ptx: index for index, instruction in enumerate(instruction_set.instructions)}
        if rollout.integrator != "map" and (lacking := [ptx for ptx in _NEEDED.values() if ptx not in by_ptx]):
            raise UserError(f"{place}.integrator: {rollout.integrator} needs the instruction {lacking[0]}, which the set lacks")
        names = {_CHANGE + name: kind for name, kind in self.states.items()}
        field = Language(instruction_set, (*self._types.items(), *task.outputs.items()), tuple(names.items()))
        text = "\n".join(f"{_CHANGE}{name} = {formula}" for name, formula in rollout.state.items())
        words = parse_infix(field, text, f"{place}.state", _MAX_WORDS, [each.name for each in instruction_set.instructions])
        add, fma = (by_ptx.get(ptx, -1) for ptx in _NEEDED.values())
        columns = tuple([*self._types].index(name) for name in rollout.state)
        dt = np.asarray(rollout.dt, np.float32)
        lowered = field.lowering.lower(words)
        f32 = next(index for index, stack in enumerate(instruction_set.stacks) if stack.literal_prefix == "f32")
        self._loop = Loop(rollout.integrator, columns, lowered, f32, add, fma, dt, rollout.steps, rollout.record_every)
        # A reduction's sums are those of programs that give back the records.
        given = Language(instruction_set, tuple(self.states.items()), tuple(names.items()))
        self._given = given.lowering
        text = "\n".join(f"{_CHANGE}{name} = {name}" for name in self.states)
        self._records = parse_infix(given, text, place, _MAX_WORDS, [])[None]

    def columns(self, points: Any, method: str) -> tuple[list[NDArray[Any]], int]:
        """What `Task.points` gives, each of its type, and the number of trajectories.

        Raises:
            UserError: a value is missing, unknown or no number, or shapes differ.
        """
        place = f"{place_of(type(self._task))}: {method}"
        arrays = typed_arrays(points, self._types, place)
        steps = self._rollout.steps
        widths = {array.shape[-1] for array in arrays if array.ndim == 1 or (array.ndim == 2 and array.shape[1] != 1)}
        width = max(widths, default=1)
        for (name, _), array in zip(self._types.items(), arrays, strict=True):
            allowed: list[tuple[int, ...]] = [(), (width,)]
            if name not in self.states:
                allowed += [(steps, 1), (steps, width)]
            if array.shape not in allowed or not width:
                raise UserError(
                    f"{place}: '{name}' has shape {array.shape}; a state is a scalar or (num_trajectories,), other values may "
                    f"also be ({steps}, 1) or ({steps}, num_trajectories), by step"
                )
        return arrays, width

    def run(self, machine: VirtualMachine, programs: ProgramRows, columns: list[NDArray[Any]]) -> NDArray[Any]:
        """The records, `(num_programs, num_states, num_records, num_trajectories)`."""
        width = max((array.shape[-1] for array in columns if array.ndim), default=1)
        return np.asarray(rollouts(machine, programs, self._loop, columns, width))

    def reduced(self, level: str, records: NDArray[np.float32], targets: Targets) -> NDArray[np.void]:
        """Sums that compare records with data, `(num_programs, num_states)`."""
        machine = VirtualMachine(self._given, level)
        rows = records.reshape(*records.shape[:2], -1)
        inputs = len(self._given.registers) - len(self.states)
        return np.concatenate([machine.reduce(self._records, [*row, *[None] * inputs], targets) for row in rows])

    def targets(self, num_trajectories: int) -> NDArray[np.float32]:
        """The recorded data, `(num_states, num_records * num_trajectories)`.

        Raises:
            UserError: a state is missing, unknown or no number, or has another shape.
        """
        place = f"{place_of(type(self._task))}: targets()"
        given = ask(self._task, "targets")
        if not isinstance(given, dict) or set(given) != set(self.states):
            raise UserError(f"{place}: must return a dict of exactly {', '.join(self.states)}")
        shape = (self._rollout.num_records, num_trajectories)
        try:
            rows = [np.asarray(given[name], np.float32) for name in self.states]
        except (TypeError, ValueError) as error:
            raise UserError(f"{place}: a target is not an array of f32: {error}") from error
        for name, row in zip(self.states, rows, strict=True):
            if row.shape != shape:
                raise UserError(f"{place}: '{name}' has shape {row.shape}, the records have {shape}")
        return np.stack(rows).reshape(len(rows), -1)

    def by_name(self, records: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """Records by state, `(num_programs, num_records, num_trajectories)` each, of its type."""
        return {name: records[:, row].view(DTYPES[kind]) for row, (name, kind) in enumerate(self.states.items())}
