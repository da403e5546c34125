"""Programs in a loop: what a task declares of it.

Owns the declaration and its checks. `evo.evaluate.loops` runs it.
"""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from keyword import iskeyword

import numpy as np

from evo.errors import UserError
from evo.native.rollout import INTEGRATORS
from evo.tasks.grid import Grid

_CONSTANTS = ("pi", "e")


@dataclass(frozen=True)
class Rollout:
    """Runs a program in a loop: what it computes becomes what it reads at the next step.

    Each trajectory begins at the states that `Task.points` gives. A trajectory ends at the first record with a state that is not
    finite; from there on its records are NaN, or 0 of states that are not f32.

    Attributes:
        steps: of a trajectory.
        state: name of each state -> how it changes: the name of an output, or a formula of inputs, outputs and states such as
            `"-9.81*sin(angle) + torque"`. With `map`, its next value; otherwise its derivative by time. A state that is not an
            input of the program is hidden from it; so is whatever else a formula names. `points()` has values for these too.
        integrator: `map`; `euler`; `rk4`, Runge-Kutta of order 4. Inputs that are not states are constant during a step.
        dt: time of a step, or of each, `(steps,)`.
        record_every: steps from one record of the states to the next, so there are `steps / record_every` records; the beginning
            is none.
        grid: None, or an `evo.Grid`: trajectories are the cells of grids, whose values in `points` have the shape `(num_grids,
            height, width)`, records `(..., num_records, num_grids, height, width)`. A grid ends when one of its cells does.
        pieces: with a reduction: the number of parts of equal length that a trajectory is cut into; each begins where `targets()`
            is then, or where `points()` says, with a state of shape `(pieces, num_trajectories)`. So chaos and noise do not blind
            the objective. Pictures have whole trajectories.
    """

    steps: int
    state: Mapping[str, str]
    integrator: str = "map"
    dt: float | Sequence[float] = 1.0
    record_every: int = 1
    grid: Grid | None = None
    pieces: int = 1

    @property
    def num_records(self) -> int:
        """Records of a trajectory."""
        return self.steps // self.record_every

    @property
    def num_runs(self) -> int:
        """Number of times that a trajectory runs the program."""
        return self.steps * (4 if self.integrator == "rk4" else 1)

    def piece(self) -> "Rollout":
        """The rollout of a piece."""
        steps = self.steps // self.pieces
        return replace(self, steps=steps, dt=self.dt if np.ndim(self.dt) == 0 else np.asarray(self.dt)[:steps].tolist(), pieces=1)

    def names(self) -> list[str]:
        """States and the names in their formulas, each once."""
        all_names = dict.fromkeys(self.state)
        for formula in self.state.values():
            tree = ast.parse(formula.replace("^", "**"), mode="eval")
            called = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call)}
            names = (node for node in ast.walk(tree) if isinstance(node, ast.Name) and node not in called)
            all_names |= dict.fromkeys(node.id for node in names if node.id not in _CONSTANTS)
        return list(all_names)

    def check(self, place: str, inputs: Mapping[str, str], outputs: Mapping[str, str], reduction: str | None) -> None:
        """Raises UserError unless the attributes are valid. place: the start of messages. reduction: the task's."""

        def wrong(attribute: str, must: str) -> UserError:
            return UserError(f"{place}.{attribute} is {getattr(self, attribute)!r}, must be {must}")

        for attribute in ("steps", "record_every", "pieces"):
            value = getattr(self, attribute)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise wrong(attribute, "a whole number from 1")
        if self.steps % self.record_every:
            raise wrong("record_every", f"a divisor of steps, {self.steps}")
        if self.integrator not in INTEGRATORS:
            raise wrong("integrator", f"one of: {', '.join(INTEGRATORS)}")
        try:
            dt = np.asarray(self.dt, np.float32)
        except (TypeError, ValueError):
            dt = np.zeros(1, np.float32)
        if dt.shape not in ((), (self.steps,)) or not (np.isfinite(dt) & (dt > 0)).all():
            raise wrong("dt", f"a number above 0, or {self.steps} of them")
        if self.pieces > 1:
            if self.num_records % self.pieces:
                raise wrong("pieces", f"a divisor of the records, {self.num_records}")
            if reduction is None or self.grid is not None:
                raise UserError("they need a task with a reduction, whose targets they begin at, and no grid", f"{place}.pieces")
            if dt.ndim and (dt.reshape(self.pieces, -1) != dt[: self.steps // self.pieces]).any():
                raise wrong("dt", f"the same in all {self.pieces} pieces")
        if both := [name for name in inputs if name in outputs]:
            raise UserError(f"'{both[0]}' is an input and an output; in a loop an output has a name of its own", place)
        if not isinstance(self.state, Mapping) or not self.state:
            raise wrong("state", "a dict of state -> output or formula, and not empty")
        for state, formula in self.state.items():
            if not isinstance(state, str) or not state.isidentifier() or iskeyword(state) or state in _CONSTANTS:
                raise UserError(f"{state!r} cannot be the name of a state", f"{place}.state")
            if state in outputs:
                raise UserError(f"'{state}' is an output; a state has a name of its own", f"{place}.state")
            try:
                ast.parse(formula.replace("^", "**"), mode="eval")
            except (SyntaxError, AttributeError, TypeError):
                raise UserError(f"{place}.state['{state}'] is {formula!r}, must be an output or a formula") from None
            needs_f32 = self.integrator if self.integrator != "map" else reduction
            if needs_f32 and inputs.get(state, "f32") != "f32":
                raise UserError(f"'{state}' is {inputs[state]}; {needs_f32} needs f32", f"{place}.state")
        if self.grid is not None:
            if not isinstance(self.grid, Grid):
                raise wrong("grid", "None or an evo.Grid")
            if self.integrator == "rk4":
                raise wrong("integrator", "map or euler: stages of rk4 would need those of the neighbours")
            self.grid.check(f"{place}.grid", {name: inputs.get(name, "f32") for name in self.state}, inputs, outputs)
