"""The task of an approximation: scores of programs for a function.

Owns points, errors in bits, and the programs to begin with. Knows nothing of proofs.
"""

import math
import re
from collections.abc import Callable, Sequence
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.approximation.fitting import FAR, Goal, formulas
from evo.approximation.formats import FLUSHED, FORMATS, Format
from evo.approximation.functions import Function
from evo.approximation.pieces import pieces_of
from evo.errors import UserError, did_you_mean, renamed
from evo.evaluate.slots import slots_of
from evo.instructions import HALVES, shipped_instruction_set
from evo.native.tune import PointErrors
from evo.task import Programs, Scores, Task

ERRORS = ("ulp", "relative", "absolute", "mixed")
ARITHMETICS = ("f32", "native")
_TO_F32 = {"f16": "f16_to_f32", "bf16": "cvt_f32_bf16"}  # instructions
_NORMS: dict[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {  # of errors, which may be overwritten
    "max": lambda errors: errors.max(axis=1),
    "mean": lambda errors: errors.mean(axis=1),
    "rms": lambda errors: np.sqrt(np.square(errors, out=errors).mean(axis=1)),
}
LEAST_SHARE = 2.0**-20  # of the interval's largest number, down to which points are spread over the floats
NUM_TINY = 16  # points below, at least, of each sign
MOST_ROOTS = 16  # near which there are more points,
MOST_STEPS = 24  # on either side, each twice as many values away as the one before
LEAST_ERROR = 2.0**-40  # of errors that are not in ulps; a correctly rounded result is 0.5 ulp off at most
NEIGHBOURS = 8  # of points of `denser`, that one piece of the function gives at once
MAX_WEIGHT = 1e30  # over the median, and its inverse the least
SIZES = {"num_instructions": (0.0, 32.0), "slots": (0.0, 64.0)}


class ApproximationTask(Task):
    """Programs that approximate a function of one number: accuracy in bits against instructions and issue slots.

    The objective is -log2 of the error over the points; of an error in ulps, what it leaves of the format's binary digits: half
    an ulp, the best, gives all of them. A result that is subnormal may be flushed to zero. References are mpmath's.

    Args:
        function: a name or formula (`evo.approximation.functions`).
        interval: its ends, finite, within which the function is finite.
        format: of what programs read and give: f32, or f16 or bf16, to which inputs and results are rounded.
        arithmetic: `f32`, or `native`: programs read and give values of the format, f16 or bf16, for instructions of its own.
        error: `ulp`, `relative`, `absolute`, or `mixed`: relative above 1, else absolute.
        norm: of the errors at the points: `max`, `mean` or `rms`, the root of the mean square.
        num_points: about this many, half of them spread over the interval, and over what is near 0 if it reaches far, and half
            over its floats; every value of f16 and bf16, if the interval has fewer.
        target: the GPU whose issue slots count.

    Raises:
        UserError: an argument is none of these.
    """

    inputs = {"x": "f32"}  # noqa: RUF012 - as in `Task`
    outputs = {"y": "f32"}  # noqa: RUF012
    measures = SIZES
    complexity = "slots"

    def __init__(
        self,
        function: str = "gelu",
        interval: Sequence[float] = (-8.0, 8.0),
        format: str = "f32",  # noqa: A002 - an option of users
        error: str = "absolute",
        norm: str = "max",
        num_points: int = 1 << 14,
        target: str = "sm_90",
        arithmetic: str = "f32",
    ):
        known_of = {"format": FORMATS, "error": ERRORS, "norm": _NORMS, "arithmetic": ARITHMETICS}
        for (name, known), value in zip(known_of.items(), (format, error, norm, arithmetic), strict=True):
            if value not in known:
                raise UserError(f"task_options.{name}: {value!r}, {did_you_mean(str(value), known)}")
        if arithmetic == "native" and format not in HALVES:
            raise UserError(f"task_options.arithmetic: 'native' needs task_options.format f16 or bf16, got {format!r}")
        if arithmetic == "native":
            self.inputs, self.outputs = {"x": format}, {"y": format}
        with renamed({"slots": "task_options.target"}):
            slots_of(shipped_instruction_set("default"), target)
        if isinstance(num_points, bool) or not isinstance(num_points, int) or not 16 <= num_points <= 1 << 20:
            raise UserError(f"task_options.num_points: must be an integer from 16 to {1 << 20:,}, got {num_points!r}")
        self.function, self.interval, self.format = Function(function), checked_interval(interval), FORMATS[format]
        self.error, self.norm, self.slots = error, norm, target
        keys = self._keys(num_points)
        exact = self.function.values(self.format.of_keys(keys))
        if norm == "max" and error in ("ulp", "relative"):
            keys = np.union1d(keys, self._near_changes(keys, exact))
        x = self.format.of_keys(keys)
        exact = self.function.values(x)
        if np.isnan(exact).any():
            where = float(x[np.isnan(exact)][0])
            raise UserError(f"task_options.interval: {self.function.shown} has no value at {where!r}; leave it out")
        is_finite = np.abs(exact) < self.format.largest
        if not is_finite.sum() >= 2:
            reason = f"overflows {format} there" if len(x) >= 2 else f"has {len(x)} value of {format} there; two are needed"
            raise UserError(f"task_options.interval: {self.function.shown} {reason}")
        self._take(x[is_finite], exact[is_finite])

    def _take(self, x: NDArray[np.float32], exact: NDArray[np.float64]) -> None:
        self._x, self._exact = x, exact
        self._scale = error_scale(self.error, self.format, exact)
        self._may_flush = np.flatnonzero(np.abs(exact) < FLUSHED)

    def joined(self, task: "ApproximationTask", rows: NDArray[np.int64]) -> "ApproximationTask":
        """The same with some points of another."""
        joined = copy(self)
        x, first = np.unique(np.append(self._x, task.points()["x"][rows]), return_index=True)
        joined._take(x, np.append(self._exact, task.targets()["y"][rows])[first])  # noqa: SLF001 - of its own class
        return joined

    def _keys(self, num_points: int) -> NDArray[np.int64]:
        low, high = self.interval
        first, last = self.format.keys_of(low, high)
        if last < first:
            raise UserError(f"task_options.interval: {self.format.name} has no value in [{low:g}, {high:g}]")
        if last - first < num_points:
            return np.arange(first, last + 1)
        parts = {(low, high), (max(low, -FAR), min(high, FAR))}
        parts = {part for part in parts if part[0] < part[1]}
        grids = [np.linspace(first, last, num_points // 2 // len(parts))[1:-1] for first, last in sorted(parts)]
        spread = np.array([self.format.key(x) for x in np.concatenate(grids)])
        least = self.format.key(max(abs(low), abs(high)) * LEAST_SHARE)
        normal = self.format.key(FLUSHED)
        groups = [spread, np.array([0, first, last])]
        for sign in (-1, 1):
            a, b = sorted((sign * first, sign * last))
            if b > least:
                groups.append(sign * np.linspace(max(a, least), b, num_points // 4).astype(np.int64))
            if a < least and b > normal:
                groups.append(sign * np.linspace(max(a, normal), min(b, least), max(num_points // 8, NUM_TINY)).astype(np.int64))
        keys = np.unique(np.concatenate(groups))
        return keys[(keys >= first) & (keys <= last)]

    def _near_changes(self, keys: NDArray[np.int64], exact: NDArray[np.float64]) -> NDArray[np.int64]:
        """Keys ever closer to where relative errors and ulps are large: where the sign changes, and where the function reaches
        the least normal float32, so that a zero is wrong.
        """
        near_keys: list[int] = []
        sides: list[Callable[[NDArray[np.float64]], NDArray[np.bool_]]] = [
            lambda values: values >= 0.0,
            lambda values: np.abs(values) >= FLUSHED,
        ]
        for side in sides if 2.0**self.format.least == FLUSHED else sides[:1]:
            for index in np.flatnonzero(np.diff(side(exact)))[:MOST_ROOTS]:
                low, high = int(keys[index]), int(keys[index + 1])
                while high - low > 1:
                    middle = (low + high) // 2
                    is_low = side(self.function.values(self.format.of_keys(np.array([middle]))))[0] == side(exact[index])
                    low, high = (middle, high) if is_low else (low, middle)
                steps = 1 << np.arange(MOST_STEPS)
                near = np.concatenate([low - steps, [low], high + steps, [high]])
                near_keys += near[(near >= keys[0]) & (near <= keys[-1])].tolist()
        return np.array(near_keys, np.int64)

    def points(self) -> dict[str, NDArray[Any]]:
        """The inputs."""
        return {"x": self._x}

    def targets(self) -> dict[str, NDArray[Any]]:
        """The exact values, as float64 of odd last bit."""
        return {"y": self._exact}

    def weights(self) -> NDArray[np.float64]:
        """So that constants are fitted by the errors that count."""
        weights = self._scale**2
        return np.clip(weights / np.median(weights), 1.0 / MAX_WEIGHT, MAX_WEIGHT)

    def point_errors(self) -> PointErrors | None:
        """As `score` measures them."""
        if self.norm != "max":
            return None
        form = self.format
        return PointErrors(self._exact, self._scale, form.digits, form.least, form.largest, FLUSHED)

    def denser(self, num_points: int) -> "ApproximationTask":
        """The same at about this many groups of neighbours, where the function is known as proofs know it.

        Raises:
            UserError: the function is too complicated for that.
        """
        form, denser = self.format, copy(self)
        keys = self._keys(num_points)
        keys = np.unique(np.concatenate([keys + step for step in range(NEIGHBOURS)]).clip(keys[0], keys[-1]))
        pieces = pieces_of(self.function, form, int(keys[0]), int(keys[-1]))
        exact = np.concatenate(
            [pieces.exact(int(part[0]), form.of_keys(part))[0] for part in np.split(keys, np.flatnonzero(np.diff(keys) > 1) + 1)]
        )
        is_finite = np.abs(exact) < form.largest
        denser._take(form.of_keys(keys)[is_finite], exact[is_finite])  # noqa: SLF001 - of its own class
        return denser

    def errors(self, y: NDArray[np.float32]) -> NDArray[np.float64]:
        """As `score` takes the largest of, of results at all points, `(..., num_points)`."""
        y = self.format.round(y)
        errors = y - self._exact
        np.abs(errors, out=errors)
        errors *= self._scale
        flushed = errors[..., self._may_flush]
        flushed[y[..., self._may_flush] == 0.0] = 0.0
        errors[..., self._may_flush] = flushed
        return errors

    def score(self, outputs: Any, programs: Programs) -> Scores:
        """Bits, instructions, and room for the slots."""
        error = _NORMS[self.norm](self.errors(outputs["y"]))
        error[~np.isfinite(error)] = np.nan
        sizes = np.asarray(programs.num_instructions, np.float64)
        return Scores(self._bits(error), np.stack([sizes, np.zeros_like(sizes)], axis=1))

    def _bits(self, error: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.error == "ulp":
            return self.format.digits - 1.0 - np.log2(np.maximum(error, 0.5))
        return -np.log2(np.maximum(error, LEAST_ERROR))

    def known_of(self, program: str, run_folder: Path) -> str:
        """Statements that certificates in the run's folder prove of it."""
        from evo.approximation.certificate import FOLDER, Certificate, read_certificate

        proofs = [read_certificate(path) for path in sorted((run_folder / FOLDER).glob("*.json"))]
        return "\n".join(
            f"Proven of its PTX: {proof.description()}"
            for proof in proofs
            if isinstance(proof, Certificate) and proof.program == program
        )

    def programs(self) -> list[str]:
        """The forms that people write, and others with polynomials and quotients that are fitted. In native arithmetic, each is
        there twice: as far as it can be native, and in f32.
        """
        order = np.argsort(self._x)
        goal = Goal(self._x[order].astype(np.float64), self._exact[order], self._scale[order], self.format)
        texts = formulas(self.function.text, goal)
        if convert := _TO_F32.get(self.inputs["x"]):
            texts += [re.sub(r"\bx\b", f"{convert}(x)", text) for text in texts]
        return texts


def checked_interval(interval: Any, source: str = "task_options.interval") -> tuple[float, float]:
    """An interval's ends. Raises UserError unless they are two finite numbers, the lower first."""
    try:
        low, high = (float(end) for end in interval)
    except (TypeError, ValueError):
        low = high = math.nan
    if not (low < high and math.isfinite(high - low)):
        raise UserError(f"{source}: must be two numbers, the lower first, such as [-8, 8]; got {interval!r}")
    return low, high


def error_scale(error: str, form: Format, exact: NDArray[np.float64]) -> NDArray[np.float64]:
    """Factor from absolute errors to errors of a kind."""
    if error == "ulp":
        return 1.0 / form.ulp(exact)
    if error == "absolute":
        return np.ones_like(exact)
    return 1.0 / np.maximum(np.abs(exact), 2.0**form.least if error == "relative" else 1.0)
