"""Pairs of programs: an elite, joined with the partner that best explains its residuals.

Owns which programs go together and their constants, by least squares. Knows nothing of archives.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evo.evaluate.tuning import sampled
from evo.language.program import Language, word
from evo.native.ptx_vm import VirtualMachine
from evo.native.stack_ptx_words import WordType
from evo.native.tune import best_fits, sums_of_products
from evo.task import Task

MAX_POINTS = 128  # that pairs are chosen by
NUM_TRIED = 4  # quotients of each program, the best ones by linear least squares
LEAST_VARIATION = 1e-9  # of a column given the others, relative to its square; below it the column counts as dependent

_NEEDED = {"sum": {"mul", "add"}, "product": {"add", "mul"}, "quotient": {"add", "div"}}  # functions, by kind of pair


class _Fits(NamedTuple):
    """For each program p: a + b p + c column is nearest to the target, and c lowers the squared error by `gain`."""

    gain: NDArray[np.float64]
    a: NDArray[np.float64]
    b: NDArray[np.float64]
    c: NDArray[np.float64]


class _Moments(NamedTuple):
    """The sum of the weights, the means of the target and of each program, and the sums of p p and p t without the means."""

    total: float
    mean_t: float
    mean_p: NDArray[np.float64]
    pp: NDArray[np.float64]
    pt: NDArray[np.float64]


class Combiner:
    """Joins two programs p and q as p + k q, p (q + k) or (p + k) / (q + l); without scaling, as k p + l q, p (k + l q) or
    k p / (q + l).

    Linear least squares of the target t choose q and the constants: those of a + b p + c q, a + b p + c p q and
    a + b p + c t q, where a is 0 without scaling. This is a step of orthogonal matching pursuit (Pati et al., 1993) among
    programs, a semantic crossover.

    Args:
        language: what the programs are written in; it has one output.
        task: gives points, targets and weights.
        allowed: names of the instructions that may be used.
        linear_scale: outputs are scaled to the target.

    Raises:
        UserError: the task's points, targets or weights are malformed, or raise.

    Attributes:
        kinds: of pairs that the allowed instructions can make.
        num_inputs: of programs.
    """

    def __init__(self, language: Language, task: Task, allowed: Collection[str], *, linear_scale: bool = True):
        points = sampled(language, task, MAX_POINTS)
        self._language = language
        self._is_scaled = linear_scale
        self._machine = VirtualMachine(language.lowering)
        self._inputs = points.inputs
        self._target = points.target.astype(np.float64)
        self._weights = np.ones(len(self._target)) if points.weights is None else points.weights.astype(np.float64)
        functions = {
            instruction.semantics.function: instruction.name
            for instruction in language.instruction_set.instructions
            if instruction.name in allowed
        }
        self._words = {function: language.encode(name) for function, name in functions.items() if function}
        self._f32 = next(i for i, stack in enumerate(language.instruction_set.stacks) if stack.constant_type == "f32")
        self.num_inputs = len(language.inputs)
        also = set() if linear_scale else {"mul"}
        self.kinds: Sequence[str] = [kind for kind, needed in _NEEDED.items() if needed | also <= self._words.keys()]

    def combine(
        self, programs: NDArray[np.uint64], partners: NDArray[np.uint64], max_length: int
    ) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """Each program with its best partner, once for each of `kinds`: words `(n * len(kinds), max_length)`, with RETURN, and
        the partner's row of each; -1 where no partner makes it better.

        Args:
            programs, partners: `(n, width)` words.
        """
        outputs = self._outputs(programs), self._outputs(partners)
        words = np.zeros((len(programs), len(self.kinds), max_length), np.uint64)
        rows = np.full(words.shape[:2], -1)
        with np.errstate(all="ignore"):
            best = [*self._best(*outputs)]
            used, inverse = np.unique([row for row, _ in best], return_inverse=True)
            ours, theirs = self._plain_words(programs), self._plain_words(partners[used.astype(np.intp)])
            for number, (kind, (row, fit), indices) in enumerate(
                zip(self.kinds, best, inverse.reshape(len(best), len(programs)), strict=True)
            ):
                words[:, number] = self._joined(kind, ours, theirs[indices], fit, max_length)
                rows[:, number] = np.where(words[:, number, 0] != 0, row, -1)
        return words.reshape(-1, max_length), rows.ravel()

    def _outputs(self, words: NDArray[np.uint64]) -> NDArray[np.float64]:
        """Outputs of each program, `(n, num_points)`; NaN if one is not finite."""
        values = self._machine.store(np.ascontiguousarray(words), self._inputs)[:, 0].astype(np.float64)
        values[~np.isfinite(values).all(axis=1)] = np.nan
        return values

    def _best(self, p: NDArray[np.float64], q: NDArray[np.float64]) -> Iterator[tuple[NDArray[np.int64], _Fits]]:
        """By kind of pair: the best partner of each program, and the fits with it."""
        t, w, count = self._target, self._weights, len(p)
        moments, ends = self._moments(p), np.cumsum([1, 1, 1, count, count])
        by = np.concatenate([w * np.stack([np.ones(len(t)), t, t * t]), w * p, w * p * t, w * p * p])
        one_q, t_q, tt_q, p_q, pt_q, pp_q = np.split(sums_of_products(by, q), ends)
        one_qq, tt_qq, pp_qq = np.split(sums_of_products(by[[0, 2, *range(3 + 2 * count, 3 + 3 * count)]], q * q), [1, 2])
        sums = {"sum": (one_q, t_q, p_q, one_qq), "product": (p_q, pt_q, pp_q, pp_qq), "quotient": (t_q, tt_q, pt_q, tt_qq)}
        for kind in self.kinds:
            rows, fits = best_fits(*moments, sums[kind], LEAST_VARIATION, NUM_TRIED if kind == "quotient" else 1)
            if kind == "quotient":
                # Least squares of t (1 - c q) may be best where the divisor is next to 0.
                _, a, b, c = fits[..., None]
                quotients = (p[:, None] + a / b) / (q[rows] - 1.0 / c)
                explained = self._explained(quotients.reshape(-1, len(t))).reshape(rows.shape)
                best = explained.argmax(axis=1)[:, None]
                rows, fits = np.take_along_axis(rows, best, axis=1), np.take_along_axis(fits, best[None], axis=2)
                fits[0, :, 0] = explained.max(axis=1) - self._explained(p)
            yield rows[:, 0], _Fits(*fits[:, :, 0])

    def _moments(self, p: NDArray[np.float64]) -> _Moments:
        t, weights = self._target, self._weights
        of_one, of_t = sums_of_products(np.stack([weights, weights * t]), np.concatenate([np.stack([np.ones(len(t)), t]), p]))
        squares = sums_of_products(weights[None], p * p)[0]
        total = of_one[0] if self._is_scaled else np.inf  # without an offset, means do not count
        mean_t, mean_p = of_one[1] / total, of_one[2:] / total
        return _Moments(total, mean_t, mean_p, squares - of_one[2:] * mean_p, of_t[2:] - of_one[2:] * mean_t)

    def _explained(self, p: NDArray[np.float64]) -> NDArray[np.float64]:
        """Share of the target's sum of squares that a linear fit of each program explains; -inf where it is not finite."""
        *_, squares, products = self._moments(p)
        explained = products * products / squares
        return np.where(np.isfinite(explained), explained, -np.inf)

    def _joined(self, kind: str, p: NDArray[np.uint64], q: NDArray[np.uint64], fit: _Fits, max_length: int) -> NDArray[np.uint64]:
        """The words of both and of the operators that join them, `(n, max_length)`; zeros where the partner does not help, one
        has no words, they are too long or a constant exceeds f32.
        """
        add, mul, div, fma = (self._words.get(function, 0) for function in ("add", "mul", "div", "fma"))
        multiply_add = [fma] if fma else [mul, add]
        _, a, b, c = fit
        parts: dict[str, list[NDArray[Any] | int]]  # words, a number for each program, or an instruction
        if self._is_scaled:
            parts = {
                "sum": [p, q, c / b, *multiply_add],
                "product": [p, q, b / c, add, mul],
                "quotient": [q, -1.0 / c, add, p, a / b, add, div],
            }
        else:
            parts = {
                "sum": [p, b, mul, q, c, *multiply_add],
                "product": [p, b, q, c, *multiply_add, mul],
                "quotient": [q, -1.0 / c, add, p, -b / c, mul, div],
            }
        columns, is_joined = [], (fit.gain > 0.0) & (p[:, 0] != 0) & (q[:, 0] != 0)
        for part in [*parts[kind], word(WordType.RETURN)]:
            if isinstance(part, int):
                columns.append(np.full((len(p), 1), part, np.uint64))
            elif part.dtype == np.uint64:
                columns.append(part)
            else:
                constants = part.astype(np.float32)
                is_joined &= np.isfinite(constants)
                bits = constants.view(np.uint32).astype(np.uint64)[:, None]
                columns.append(bits << np.uint64(32) | np.uint64(word(WordType.CONSTANT, self._f32)))
        wide = np.concatenate(columns, axis=1)
        is_word = wide != 0
        lengths = is_word.sum(axis=1)
        is_joined &= lengths <= max_length
        words = np.zeros((len(p), max_length), np.uint64)
        words[np.arange(max_length) < (lengths * is_joined)[:, None]] = wide[is_word & is_joined[:, None]]
        return words

    def _plain_words(self, programs: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Words of each program that leave only the output on the stacks; zeros where there are no such words."""
        return self._language.lowering.rewritten(np.ascontiguousarray(programs), programs.shape[1])[0]
