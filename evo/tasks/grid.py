"""Grids of cells that read their neighbours: what a task's rollout declares of one.

Owns the declaration and its checks. Knows nothing of how grids are run.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Real

import numpy as np

from evo.errors import UserError

BOUNDARIES = ("periodic", "reflect")  # beside values
_VON_NEUMANN = {"n": (-1, 0), "e": (0, 1), "s": (1, 0), "w": (0, -1)}
LARGEST = float(np.finfo(np.float32).max)
NEIGHBOURHOODS = {
    "von_neumann": _VON_NEUMANN,
    "moore": {**_VON_NEUMANN, "ne": (-1, 1), "se": (1, 1), "sw": (1, -1), "nw": (-1, -1)},
}


@dataclass(frozen=True)
class Grid:
    """Trajectories that are the cells of grids: a cell reads states of its neighbours at the same step.

    The state `u` of the neighbour `n` is `u_n`, as an input of the program or in a formula.

    Attributes:
        shape: `(height, width)`, cells. Row 0 is the top.
        neighbours: `"von_neumann"`, which are n, e, s and w; `"moore"`, which are ne, se, sw and nw too; or name -> `(dy, dx)`:
            rows below the cell and columns to its right.
        boundary: what lies outside of the grid: `"periodic"`, its other end; `"reflect"`, the grid as in a mirror along its edge,
            so that nothing flows out; or a number, which all states have there.
    """

    shape: tuple[int, int]
    neighbours: str | Mapping[str, tuple[int, int]] = "moore"
    boundary: str | float = "periodic"

    @property
    def offsets(self) -> dict[str, tuple[int, int]]:
        """`(dy, dx)` of each neighbour."""
        return dict(NEIGHBOURHOODS[self.neighbours] if isinstance(self.neighbours, str) else self.neighbours)

    def reads(self, states: Mapping[str, object]) -> dict[str, tuple[str, int, int]]:
        """Map from each name of a neighbour's state to the state, dy and dx."""
        return {f"{state}_{name}": (state, *offset) for state in states for name, offset in self.offsets.items()}

    def outside(self, dtype: type) -> np.uint32:
        """The bits that a state of this type has outside of the grid, if that is a number."""
        value = dtype(0 if isinstance(self.boundary, str) else self.boundary)
        return np.uint32(np.frombuffer(value.tobytes(), np.uint32)[0])

    def check(self, place: str, states: Mapping[str, str], inputs: Mapping[str, str], outputs: Iterable[str] = ()) -> None:
        """Raises UserError unless the attributes are valid. place: the start of messages. Names -> types."""
        if not (_is_pair(self.shape) and min(self.shape) >= 1):
            raise UserError(f"{place}.shape is {self.shape!r}, must be (height, width), whole numbers from 1")
        neighbours = self.neighbours
        if isinstance(neighbours, str):
            if neighbours not in NEIGHBOURHOODS:
                raise UserError(
                    f"{place}.neighbours is {neighbours!r}, must be one of: {', '.join(NEIGHBOURHOODS)}, or name -> (dy, dx)"
                )
        elif not isinstance(neighbours, Mapping) or not all(
            isinstance(name, str) and _is_pair(at) for name, at in neighbours.items()
        ):
            raise UserError(f"{place}.neighbours is {neighbours!r}, must be a dict of name -> (dy, dx), whole numbers")
        for name, (dy, dx) in self.offsets.items():
            if abs(dy) > self.shape[0] or abs(dx) > self.shape[1]:
                raise UserError(f"{place}.neighbours['{name}'] is {(dy, dx)}, farther away than a grid of {self.shape} reaches")
        if wrong := [name for name in self.offsets if not f"_{name}".isidentifier()]:
            raise UserError(f"'{wrong[0]}' is not a part of a name; use letters, digits and underscores", f"{place}.neighbours")
        if len(self.reads(states)) < len(states) * len(self.offsets):
            raise UserError("two states of neighbours would have one name; rename a state or a neighbour", f"{place}.neighbours")
        if twice := (set(states) | set(outputs)) & set(self.reads(states)):
            raise UserError(f"'{min(twice)}' is a state or output; a neighbour's has a name of its own", f"{place}.neighbours")
        for name, (state, *_) in self.reads(states).items():
            if inputs.get(name, states[state]) != states[state]:
                raise UserError(f"'{name}' is {inputs[name]}, the state '{state}' {states[state]}", f"{place}.neighbours")
        if isinstance(self.boundary, str) and self.boundary in BOUNDARIES:
            return
        if isinstance(self.boundary, bool) or not isinstance(self.boundary, Real) or not abs(self.boundary) <= LARGEST:
            raise UserError(f"{place}.boundary is {self.boundary!r}, must be one of: {', '.join(BOUNDARIES)}, or a number of f32")
        low, high = (0, 2**32 - 1) if "u32" in states.values() else (-(2**31), 2**31 - 1)
        whole = set(states.values()) - {"f32"}
        if whole and not (float(self.boundary).is_integer() and low <= self.boundary <= high):
            raise UserError(f"{place}.boundary is {self.boundary!r}, which a state of type {min(whole)} cannot have")


def _is_pair(value: object) -> bool:
    return (
        isinstance(value, tuple)
        and len(value) == 2
        and all(isinstance(number, int) and not isinstance(number, bool) for number in value)
    )
