"""Sums of outputs that were stored, as the virtual machine takes them of programs while it runs these.

Owns the programs that give back their inputs. Knows nothing of where the outputs come from.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.instructions import InstructionSet
from evo.language.infix import parse_infix
from evo.language.program import Language
from evo.native.ptx_vm import Targets, VirtualMachine

MAX_WORDS = 256


class StoredSums:
    """Takes sums of this many outputs, all f32."""

    def __init__(self, instruction_set: InstructionSet, num_outputs: int):
        inputs, outputs = (tuple((f"{letter}{k}", "f32") for k in range(num_outputs)) for letter in "xy")
        language = Language(instruction_set, inputs, outputs)
        text = "\n".join(f"y{k} = x{k}" for k in range(num_outputs))
        self._words = parse_infix(language, text, "outputs", MAX_WORDS, [])[None]
        self._lowering, self._unused = language.lowering, [None] * num_outputs

    def compare(self, level: str, outputs: NDArray[Any], targets: Targets) -> NDArray[np.void]:
        """Sums against targets, `(num_programs, num_outputs)`, of outputs `(num_programs, num_outputs, num_points)`."""
        machine = VirtualMachine(self._lowering, level)
        return np.concatenate([machine.reduce(self._words, [*row, *self._unused], targets) for row in outputs])
