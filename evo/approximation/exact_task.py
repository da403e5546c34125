"""The task of an exact function: scores of programs for it.

Owns the sample, wrong bits and right outputs. Knows nothing of proofs.
"""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.approximation.bits import ExactFunction
from evo.approximation.exact import wrong_bits
from evo.approximation.ptx_function import is_file, path_and_name
from evo.approximation.samples import sample
from evo.errors import UserError, renamed
from evo.evaluate.slots import slots_of
from evo.instructions import shipped_instruction_set
from evo.task import Programs, Scores, Task


class ExactTask(Task):
    """Programs that compute a function of words to the bit: as few issue slots as possible.

    The objective is minus the wrong bits, of all outputs on the average of the sample; 0 is right. The archive has a cell for
    each number of right outputs and of issue slots, so that partial solutions survive.

    Args:
        function: a name of `evo.approximation.zoo`, or `module:function`, as of `ExactFunction`; or a file as of `PtxFunction`.
        precondition: on its inputs, beside the function's own, such as `q < 2**24`.
        target: the GPU whose issue slots count, and whose instructions there are.
        num_points: of the sample.
        counterexamples: inputs that a failed proof has named, which join the sample.
        seed: of the sample and of the programs to begin with.

    Raises:
        UserError: an argument is none of these.
    """

    complexity = "slots"

    def __init__(
        self,
        function: str = "ordered",
        precondition: str = "",
        target: str = "sm_90",
        num_points: int = 1 << 12,
        counterexamples: Sequence[int | Sequence[int]] = (),
        seed: int = 1,
    ):
        for key, value, least, most in (("num_points", num_points, 64, 1 << 20), ("seed", seed, 0, 1 << 62)):
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
                raise UserError(f"task_options.{key}: must be an integer from {least} to {most:,}, got {value!r}")
        self.function, self.slots, self._seed = ExactFunction(function, precondition), target, seed
        self._files = [path_and_name(function)[0].absolute()] if is_file(function) else []
        with renamed({"slots": "task_options.target"}):
            slots_of(shipped_instruction_set("default"), target)
        self.inputs = dict.fromkeys(self.function.inputs, "b32")
        self.outputs = dict.fromkeys(self.function.outputs, "b32")
        self.measures = {"slots": (0.0, 64.0), "right": (-0.5, len(self.outputs) + 0.5)}
        self.objective_range = (-32.0 * len(self.outputs), 0.0)
        self._counterexamples = counterexamples
        self._points = sample(self.function, num_points, seed, counterexamples)
        self._expected = self.function(*self._points)

    def files(self) -> list[Path]:
        """The file of the function."""
        return self._files

    def points(self) -> dict[str, NDArray[Any]]:
        """The sample."""
        return dict(zip(self.inputs, self._points, strict=True))

    def score(self, outputs: Any, programs: Programs) -> Scores:
        """Wrong bits, room for the slots, and right outputs."""
        results = np.stack([outputs[name] for name in self.outputs], axis=1)
        wrong = wrong_bits(self.function, results, self._expected)
        counts = np.bitwise_count(wrong).mean(axis=2)
        right = (counts == 0).sum(axis=1)
        return Scores(-counts.sum(axis=1), np.stack([np.zeros(len(right)), right], axis=1))

    @cached_property
    def _synthesized(self) -> list[str]:
        from evo.approximation.synthesis import synthesized

        return synthesized(self.function, str(self.slots), self._seed, self._counterexamples)

    def programs(self) -> list[str]:
        """Programs that are put together from solutions of each output."""
        return self._synthesized

    def known_of(self, program: str, run_folder: Path) -> str:
        """Statements of the certificates in the run's folder about it."""
        from evo.approximation.certificate import FOLDER, read_certificate

        proofs = [read_certificate(path) for path in sorted((run_folder / FOLDER).glob("*.json"))]
        return "\n".join(proof.description() for proof in proofs if proof.program == program)
