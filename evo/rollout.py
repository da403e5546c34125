"""Programs in a loop: what a task declares of it.

Owns the declaration and its checks. `evo.evaluate.loops` runs it.
"""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evo.errors import UserError
from evo.native.rollout import INTEGRATORS

_CONSTANTS = ("pi", "e")


@dataclass(frozen=True)
class Rollout:
    """Runs a program in a loop: what it computes becomes what it reads at the next step.

    Each trajectory begins at the states that `Task.points` gives. A trajectory ends at the first record with a state that is not
    finite; from there on its records are NaN.

    Attributes:
        steps: of a trajectory.
        state: name of each state -> how it changes: the name of an output, or a formula of inputs, outputs and states such as
            `"-9.81*sin(angle) + torque"`. With `map`, its next value; otherwise its derivative by time. A state that is no input
            of the program is hidden from it; so is whatever else a formula names. `points()` has values for these too.
        integrator: `map`; `euler`; `rk4`, Runge-Kutta of order 4. Inputs that are no states are constant during a step.
        dt: time of a step, or of each, `(steps,)`.
        record_every: after so many steps the states are recorded, so there are `steps / record_every` records; the beginning is
            none.
    """

    steps: int
    state: Mapping[str, str]
    integrator: str = "map"
    dt: float | Sequence[float] = 1.0
    record_every: int = 1

    @property
    def num_records(self) -> int:
        """Of a trajectory."""
        return self.steps // self.record_every

    def names(self) -> list[str]:
        """States, and all that formulas name, each once."""
        found = dict.fromkeys(self.state)
        for formula in self.state.values():
            tree = ast.parse(formula.replace("^", "**"), mode="eval")
            called = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call)}
            names = (node for node in ast.walk(tree) if isinstance(node, ast.Name) and node not in called)
            found |= dict.fromkeys(node.id for node in names if node.id not in _CONSTANTS)
        return list(found)

    def check(self, place: str, inputs: Mapping[str, str], outputs: Mapping[str, str]) -> None:
        """Raises UserError unless the attributes are as said. place: what messages begin with."""

        def wrong(attribute: str, must: str) -> UserError:
            return UserError(f"{place}.{attribute} is {getattr(self, attribute)!r}, must be {must}")

        for attribute in ("steps", "record_every"):
            value = getattr(self, attribute)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise wrong(attribute, "a whole number from 1")
        if self.steps % self.record_every:
            raise wrong("record_every", f"a divisor of steps, {self.steps}")
        if self.integrator not in INTEGRATORS:
            raise wrong("integrator", f"one of: {', '.join(INTEGRATORS)}")
        dt = np.asarray(self.dt)
        if dt.dtype.kind not in "fiu" or dt.shape not in ((), (self.steps,)) or not (np.isfinite(dt) & (dt > 0)).all():
            raise wrong("dt", f"a number above 0, or {self.steps} of them")
        if not isinstance(self.state, Mapping) or not self.state:
            raise wrong("state", "a dict of state -> output or formula, and not empty")
        for state, formula in self.state.items():
            if state in outputs:
                raise UserError(f"{place}.state: '{state}' is an output; a state has a name of its own")
            try:
                ast.parse(formula.replace("^", "**"), mode="eval")
            except (SyntaxError, AttributeError, TypeError):
                raise UserError(f"{place}.state['{state}'] is {formula!r}, must be an output or a formula") from None
            if self.integrator != "map" and inputs.get(state, "f32") != "f32":
                raise UserError(f"{place}.state: '{state}' is {inputs[state]}; {self.integrator} needs f32")
