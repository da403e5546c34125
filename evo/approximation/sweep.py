"""A sweep: a program compared with a function at every number of a format in an interval, on all cores.

Owns the parts of a sweep, how they join, and where it resumes. Knows nothing of runs or certificates.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evo.approximation.formats import Format
from evo.approximation.functions import Function
from evo.approximation.intervals import IntervalProgram, Products, interval_program
from evo.approximation.pieces import pieces_of
from evo.approximation.process import check_float_mode
from evo.language.program import Language
from evo.native.proof import intervals
from evo.native.ptx_vm import VirtualMachine
from evo.storage.files import write_atomically

PART = 1 << 17  # numbers of a part: the arrays of one fit a core's second-level cache
BLOCK, GROUP = 64, 8  # neighbours that one interval stands for: a block, and of a block that may be worse, each group
KEPT_BYTES = 31 << 20  # just below the largest threshold that glibc learns from freed blocks
MOST_KEPT = 0.5  # of the blocks; beyond, each input is looked at
NUM_SAMPLES = 2048  # groups that a sweep of several parts begins with
SAVE_S = 5.0
Kind = Literal["ulp", "absolute", "relative"]  # of errors
KINDS: tuple[Kind, ...] = ("ulp", "absolute", "relative")
_CLEAR = 0.98  # of a largest error: the least share that is certain despite the doubt about the function's values
_TABLE_ULPS = 2.0**-28  # which values in tables and their comparison may add to the polynomials' error
_LEAST = np.float32(2.0**-149)
_SIGNS: dict[Literal["odd", "even"], float] = {"odd": -1.0, "even": 1.0}


@dataclass
class Worst:
    """The largest error of each of KINDS so far, and at which input; NaN: there was none."""

    errors: list[float] = field(default_factory=lambda: [-1.0] * len(KINDS))
    at: list[float] = field(default_factory=lambda: [math.nan] * len(KINDS))

    def take(self, errors: list[float], at: list[float]) -> None:
        """Takes larger ones over."""
        for i, (error, x) in enumerate(zip(errors, at, strict=True)):
            if error > self.errors[i]:
                self.errors[i], self.at[i] = error, x


@dataclass
class SweepResult:
    """Result of a sweep.

    cpu: by the arithmetic of the CPU, as large as the doubt about the function's values allows; clear: as small. gpu: by the
    bounds of the instructions; infinite where these say nothing. reference_ulps: that doubt. largest: of the values' sizes.
    num_falls: steps between neighbours at which results move against the function. num_asymmetric: inputs whose result is not
    that of their opposite, of an odd or even function. is_open: whether GPUs may differ by a product below 2^-126. last: result
    and value at the last input.
    """

    num_inputs: int = 0
    cpu: Worst = field(default_factory=Worst)
    clear: Worst = field(default_factory=Worst)
    gpu: Worst = field(default_factory=Worst)
    reference_ulps: float = 0.0
    largest: float = 0.0
    num_nans: int = 0
    num_wrong_signs: int = 0
    num_falls: int = 0
    num_asymmetric: int = 0
    is_open: bool = False
    last: tuple[float, float] = (math.nan, math.nan)

    def join(self, part: SweepResult, first: tuple[float, float]) -> None:
        """Joins the part that follows, which begins with this result and value."""
        self.num_inputs += part.num_inputs
        for name in ("cpu", "clear", "gpu"):
            getattr(self, name).take(getattr(part, name).errors, getattr(part, name).at)
        self.reference_ulps = max(self.reference_ulps, part.reference_ulps)
        self.largest = max(self.largest, part.largest)
        self.is_open |= part.is_open
        for name in ("num_nans", "num_wrong_signs", "num_falls", "num_asymmetric"):
            setattr(self, name, getattr(self, name) + getattr(part, name))
        up, down = first[0] > self.last[0], first[0] < self.last[0]
        self.num_falls += (up and first[1] < self.last[1]) or (down and first[1] > self.last[1])
        self.last = part.last


class Sweep:
    """A program at all numbers of a format in an interval.

    Args:
        language: of programs with one input and one output, both f32, or both of the format.
        words: `(max_length,)` uint64.
        first, last: keys of the format.
        num_threads: None: one for each core that this process may use.

    Raises:
        UserError: the function has no value somewhere, or is too complicated on the interval.
    """

    def __init__(
        self,
        language: Language,
        words: NDArray[np.uint64],
        function: Function,
        form: Format,
        first: int,
        last: int,
        num_threads: int | None = None,
    ):
        self._machine, self._words = VirtualMachine(language.lowering), words[None]
        self._num_registers = len(language.registers)
        self._form, self._first, self._last = form, first, last
        self._pieces = pieces_of(function, form, first, last)
        self.symmetry = symmetry_of(function, form, first, last)
        self.on_intervals: IntervalProgram | str = interval_program(language, words)
        without_steps = isinstance(self.on_intervals, IntervalProgram) and not len(self.on_intervals.steps)
        self._products = Products(language, words) if without_steps else None
        self._keeps_subnormals = isinstance(self.on_intervals, IntervalProgram) and self.on_intervals.keeps_subnormals
        self._num_threads = num_threads or len(os.sched_getaffinity(0))
        # No part has both signs; a negative part is one of the opposite of positive numbers.
        starts = [*range(first, min(last + 1, 0), PART), *range(max(first, 0), last + 1, PART)]
        self._parts = [(start, self._end(start, PART)) for start in starts]
        self._sampled = Worst()
        if len(starts) > 2 and isinstance(self.on_intervals, IntervalProgram) and not self.on_intervals.is_exact:
            groups = [(start, self._end(start, GROUP)) for start in np.linspace(first, last, NUM_SAMPLES).astype(int).tolist()]
            exact = np.concatenate([self._pieces.exact(group[0], self._numbers(*group))[0] for group in groups])
            self._compare_on_gpus(self._sampled, np.concatenate([self._numbers(*group) for group in groups]), exact)

    def _end(self, start: int, count: int) -> int:
        """The key after at most `count` of one sign."""
        return min(start + count, self._last + 1, 0 if start < 0 else self._last + 1)

    def results(self, x: NDArray[np.float32]) -> NDArray[np.float32]:
        """The program's results, in the format."""
        outputs = self._machine.store(self._words, [x, *[None] * (self._num_registers - 1)])
        rounded: NDArray[np.float32] = self._form.round(outputs[0, 0])
        return rounded

    def run(self, state: Path | None = None, progress: Callable[[int, int], None] = lambda _, __: None) -> SweepResult:
        """Sweeps.

        Args:
            state: file of the progress, from which it resumes; removed in the end.
            progress: called with the number of inputs that are done, and with the total.
        """
        result, number = _restored(state)
        total = self._last - self._first + 1
        saved_s = time.monotonic()
        np.empty(KEPT_BYTES, np.uint8)  # and freed: from now on malloc keeps freed blocks, and pages need not be cleared again
        with ThreadPoolExecutor(self._num_threads) as threads:
            ahead = 4 * self._num_threads
            waiting = [threads.submit(self._part, part, result.gpu.errors) for part in self._parts[number : number + ahead]]
            while waiting:
                part, first = waiting.pop(0).result()
                number += 1
                result.join(part, first)
                if number + len(waiting) < len(self._parts):
                    waiting.append(threads.submit(self._part, self._parts[number + len(waiting)], result.gpu.errors))
                progress(result.num_inputs, total)
                if state and time.monotonic() > saved_s + SAVE_S:
                    write_atomically(state, json.dumps({"parts": number, "found": asdict(result)}).encode())
                    saved_s = time.monotonic()
        if state:
            state.unlink(missing_ok=True)
        return result

    def _part(self, keys: tuple[int, int], before: list[float]) -> tuple[SweepResult, tuple[float, float]]:
        """before: the largest errors on any GPU of inputs that come before."""
        check_float_mode()  # in the thread that computes
        x = self._numbers(*keys)
        exact, bound = self._pieces.exact(keys[0], x)
        y = self.results(x)
        result = SweepResult(len(x), reference_ulps=bound + _TABLE_ULPS, largest=max(float(exact.max()), -float(exact.min())))
        result.is_open = self._products is not None and self._products.may_be_flushed(x)
        self._take(result, x, y, exact, before)
        if keys[0] == 0:
            zero = np.array([-0.0], np.float32)
            self._take(result, zero, self.results(zero), exact[:1], before)
        if self.symmetry != "none" and keys[0] > 0:
            opposite = self.results(-x)
            expected = y * np.float32(_SIGNS[self.symmetry])
            result.num_asymmetric = int((opposite.view(np.uint32) != expected.view(np.uint32)).sum())
        result.last = float(y[-1]), float(exact[-1])
        return result, (float(y[0]), float(exact[0]))

    def _take(
        self, result: SweepResult, x: NDArray[np.float32], y: NDArray[np.float32], exact: NDArray[np.float64], before: list[float]
    ) -> None:
        errors, at, (nans, signs, falls) = self._pieces.compare(y, exact)
        result.cpu.take(errors, x[at].tolist())
        least = [self._pieces.compare(y[[i]], exact[[i]], result.reference_ulps)[0][kind] for kind, i in enumerate(at)]
        # A clear error may be larger elsewhere.
        if any(clear < _CLEAR * error for clear, error in zip(least, errors, strict=True)):
            least, at, _ = self._pieces.compare(y, exact, result.reference_ulps)
        result.clear.take(least, x[at].tolist())
        result.num_nans += nans
        result.num_wrong_signs += signs
        result.num_falls += falls
        if isinstance(self.on_intervals, IntervalProgram) and not self.on_intervals.is_exact:
            indices = self._worth_a_look(x, exact, before)
            self._compare_on_gpus(result.gpu, x[indices], exact[indices])

    def _compare_on_gpus(self, worst: Worst, x: NDArray[np.float32], exact: NDArray[np.float64]) -> None:
        if not len(x):
            return
        low, high = ends = self._intervals(x)
        if self._keeps_subnormals:  # a result between zero and the other end was not flushed
            ends += [
                np.where((low == 0.0) & (high > 0.0), _LEAST, low),
                np.where((high == 0.0) & (low < 0.0), -_LEAST, high),
            ]
        for results in ends:
            errors, at, _ = self._pieces.compare(results, exact)
            worst.take(errors, x[at].tolist())

    def _intervals(self, x: NDArray[np.float32], x_high: NDArray[np.float32] | None = None) -> list[NDArray[np.float32]]:
        assert isinstance(self.on_intervals, IntervalProgram)
        return [self._form.round(ends) for ends in intervals(self.on_intervals.steps, self.on_intervals.constants, x, x_high)]

    def _worth_a_look(self, x: NDArray[np.float32], exact: NDArray[np.float64], before: list[float]) -> NDArray[np.int64] | slice:
        """Indices at which an error on any GPU may be the largest so far, by intervals of neighbours. The result does not depend
        on earlier ones: an error as large as one before is not reported, one as large as a sample's is.
        """
        indices = np.arange(0, len(x), BLOCK)
        for size, step in ((BLOCK, GROUP), (GROUP, 1)):
            ends = self._intervals(x[indices], x[np.minimum(indices + size, len(x)) - 1])
            is_kept = self._pieces.screen(exact, indices, size, ends, self._sampled.errors, before)
            if is_kept.sum() > MOST_KEPT * len(indices):
                return slice(None)
            indices = indices[is_kept]
            indices = (indices[:, None] + np.arange(0, size, step)).ravel()
            indices = indices[: np.searchsorted(indices, len(x))]
        return indices

    def _numbers(self, first: int, end: int) -> NDArray[np.float32]:
        if self._form.name != "f32":
            return self._form.of_keys(np.arange(first, end))
        if first >= 0:
            return np.arange(first, end, dtype=np.uint32).view(np.float32)
        return (np.arange(-first, -end, -1, dtype=np.uint32) | np.uint32(1 << 31)).view(np.float32)


def symmetry_of(function: Function, form: Format, first: int, last: int) -> Literal["odd", "even", "none"]:
    """`odd` or `even`, if the interval is symmetric and the function is so at some points; else `none`."""
    if first != -last:
        return "none"
    x = form.of_keys(np.linspace(1, last, 12).astype(np.int64))
    right, left = function.values(x), function.values(-x)
    for name, sign in _SIGNS.items():
        if np.array_equal(right, sign * left):
            return name
    return "none"


def _restored(state: Path | None) -> tuple[SweepResult, int]:
    """Restore the kept state and the number of the next part."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        if state:
            kept = json.loads(state.read_text())
            values = kept["found"]
            worst = {name: Worst(**values.pop(name)) for name in ("cpu", "clear", "gpu")}
            return SweepResult(**{**values, **worst, "last": tuple(values["last"])}), int(kept["parts"])
    return SweepResult(), 0
