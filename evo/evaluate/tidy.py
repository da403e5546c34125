"""Formulas made tidy: terms that change nothing go, and constants keep the digits that the data support.

Owns which changes are tried and kept: those that make the description shorter, the bits of instructions, constants and errors at
the resolution of the data. Errors are taken in float64 of constants as they are meant, such as pi/4, so that rounding in f32
decides nothing. Knows nothing of archives. Longer than most modules: it is one search for the shortest description.
"""

import math
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from evo.evaluate.formulas import Formula, Formulas, needed
from evo.evaluate.program_simplifier import simpler_ones
from evo.evaluate.residuals import TINY, Residuals, sums_of_squares
from evo.evaluate.sampling import spread
from evo.evaluate.shorter_formulas import Shortening
from evo.language.dag import Dag, Node, dag_of, f32_bits
from evo.language.program import Language
from evo.language.signs import with_plain_signs
from evo.language.simple_numbers import F32_STEP, MOST_BITS, NEAR, Simple, f32_number, meant_number, misfit_bits, simplest
from evo.native.ptx_vm import VirtualMachine
from evo.native.stack_ptx import NodeKind
from evo.task import Task
from evo.tasks.answers import ask, point_arrays, target_array, weight_array

MAX_POINTS = 2048  # of the task's that errors are taken at
MAX_CONSTANTS, MAX_INSTRUCTIONS = 16, 128  # of a program that is tidied
MAX_OPERATIONS = 100_000  # for one program: instructions, each at all points that errors are taken at
TERMS, CONSTANTS, LEAST = 0.4, 0.7, 0.05  # shares of these after which terms, then constants, end; and of any step
INSTRUCTION = 2.0  # times the bits that tell it from others; a search tries thousands, so that chance makes terms worth as much
MARGIN = 1.0  # bits that a formula may take less by than its outputs say, where constants are in other units
LOW_PRICE = 0.2  # of an instruction, in formulas that are to be near the targets rather than short
DIVISION_BITS = 0.5  # more than another instruction: it may have poles
MAX_ROUNDS = 3  # of terms and constants
MAX_ITERATIONS, MAX_DAMPED = 12, 4  # of Levenberg-Marquardt; of its damping, for a step
LEAST_DAMPING = 1e-10
SAFETY = 4.0  # times the least mean square that f32 lets data have
MOST_LOST = misfit_bits(NEAR, 1.0) + 1.0  # bits, for a constant's simpler number
MOST_ROUNDED = 0.1  # of a constant's value
MAX_REFUSED = 3  # simple numbers of a constant that do not fit
SMALLEST = 1e-150  # whose square is not zero
EXACT_STEP = 2.0**-40  # relative, far above what float64 rounds
LARGEST = float(np.finfo(np.float32).max)  # of constants


@dataclass(frozen=True)
class _State:
    """A formula with values of its constants, the sum of squares that is left, and all its bits."""

    formula: Formula
    values: dict[int, float]
    squares: float
    bits: float


@dataclass(frozen=True)
class Tidied:
    """A tidy program.

    bits: that its constants take less. is_exact: rounding to f32 accounts for all of its error. is_coarse: its errors are greater
    than at `LOW_PRICE`.
    """

    words: NDArray[np.uint64]
    bits: float
    is_exact: bool
    is_coarse: bool


class Tidier:
    """Tidies programs of a task with the reduction `regression` and one output.

    A program costs about `MAX_OPERATIONS` at most; then the shortest description so far stands.

    Args:
        allowed: names of the instructions that may be used.
        keeps_all: what programs compute must stay as it is, but for rounding. It stays so wherever f32 is far from real numbers.
        end_s: of `time.monotonic`, when the shortest description so far stands.

    Raises:
        UserError: the task's points or targets are malformed, or raise.
    """

    def __init__(
        self, language: Language, task: Task, allowed: Collection[str], *, keeps_all: bool = False, end_s: float = math.inf
    ):
        self._end_s = end_s
        self._allowed = frozenset(allowed)
        points = ask(task, "points")
        inputs, num_points = point_arrays(task, points, "points()")
        rows = spread(num_points, MAX_POINTS)
        self._language = language
        is_scaled = task.has_scaling()
        self._shortening = Shortening(language, allowed, is_scaled=is_scaled)
        self._keeps_all = keeps_all
        target = target_array(task, num_points, dtype=np.float64)[0, rows]
        all_weights = weight_array(task, num_points)
        weights = np.ones(len(rows)) if all_weights is None else all_weights[rows].astype(np.float64)
        self._of_task = self._residuals = Residuals(target, weights / weights.mean(), is_scaled)
        self._inputs = [np.ascontiguousarray(np.broadcast_to(column, num_points)[rows]) for column in inputs]
        self._machine = VirtualMachine(language.lowering)
        exact = [np.asarray(points[name], np.float64) for name in task.inputs]
        self._formulas = Formulas(language, [column[rows] if column.ndim else column for column in exact])
        self._count = len(rows)
        self._repeats = num_points / len(rows)  # points that stand behind each
        self._instruction_bits = INSTRUCTION * math.log2(16 + len(inputs))
        self._floor = 0.0
        self._price, self._most = 1.0, math.inf  # times the bits of instructions; bits of a constant at most
        self._begin, self._end = 0, 0.0  # of the current step, in operations

    @property
    def num_operations(self) -> int:
        """Instructions that were computed, each at all points."""
        return self._formulas.num_operations

    def _spend(self, share: float) -> None:
        """Lets the next step go on until a share of a program's operations is spent."""
        self._end = max(self._begin + share * MAX_OPERATIONS, self.num_operations + LEAST * MAX_OPERATIONS)

    @property
    def _is_spent(self) -> bool:
        return self.num_operations >= self._end or time.monotonic() >= self._end_s

    @np.errstate(all="ignore")  # formulas may be anything
    def tidy(self, words: NDArray[np.uint64], price: float = 1.0) -> Tidied | None:
        """Simplify a program of `(max_length,)` words; the result may be the program itself. None: unknown.

        The result depends on the program, the task and the price alone.

        Args:
            price: times the bits of an instruction that it must save in those of errors, so that it stays.
        """
        graph = dag_of(self._language, words)
        if not self._formulas.is_known(graph) or len([*graph.instructions()]) > MAX_INSTRUCTIONS:
            return None
        self._begin, self._price = self.num_operations, price
        self._spend(1.0)
        formula = self._formulas.formula(self._without_constant_values(graph, len(words)))
        keeps_all = self._keeps_all or self._formulas.is_coarse(graph)
        self._step = F32_STEP if keeps_all else EXACT_STEP
        self._residuals = replace(self._of_task, target=formula.outputs()) if keeps_all else self._of_task
        self._floor = 0.0
        state = self._state(formula)
        if len(state.values) > MAX_CONSTANTS or not math.isfinite(state.squares):
            return None
        self._floor = self._resolution(state, self._step)
        state = self._state(state.formula)
        begun = state
        fitted = self._fitted(state.formula, list(state.values))
        for _ in range(MAX_ROUNDS):
            self._spend(TERMS)
            fitted = self._without_terms(fitted)
            self._spend(CONSTANTS)
            rounded = [self._rewritten(self._with_simple_constants(fitted), words)]
            self._spend(1.0)
            rounded += [self._rewritten(self._with_simple_constants(candidate), words) for candidate in self._units(fitted)]
            best = min((candidate for candidate in rounded if candidate), key=lambda candidate: candidate.bits, default=state)
            if best.bits >= state.bits:
                break
            self._floor = min(self._floor, self._resolution(best, self._step))
            state = fitted = self._state(best.formula)
        plain = with_plain_signs(self._language, state.formula.graph, self._allowed)
        written = None if plain == graph else plain.words(self._language, len(words))
        is_exact = not keeps_all and state.squares <= self._resolution(state, F32_STEP) * self._count
        saved = _constant_bits(begun.formula, begun.values) - _constant_bits(state.formula, state.values)
        num_gone = begun.formula.size[0] - state.formula.size[0]
        lost = self._error_bits(state.squares) - self._error_bits(begun.squares)
        is_coarse = lost > MOST_LOST + LOW_PRICE * self._instruction_bits * num_gone
        return Tidied(words if written is None else written, saved, is_exact, is_coarse)

    # ---- terms ----

    def _without_constant_values(self, graph: Dag, max_length: int) -> Dag:
        """Numbers in place of values that are equal at all points in f32, such as the cosine of values near 1e11, which is 1
        there and anything in real numbers.
        """
        left = needed(graph)
        for index in reversed([*graph.instructions()]):
            words = Dag(graph.nodes, (index,)).words(self._language, max_length) if index in left else None
            if words is None:
                continue
            values = self._machine.store(words[None], [*self._inputs, None])[0, 0]
            if np.isfinite(values[0]) and (values == values[0]).all():
                graph = graph.replaced(index, Node(NodeKind.CONSTANT, f32_bits(values[0]), graph.nodes[index].stack))
                left = needed(graph)
        return graph

    def _without_terms(self, state: _State) -> _State:
        """Removes one part after the other, first the one without which the description is shortest. Constants will be rounded
        to what the data determine, which is about as much as they determine of a scale.
        """
        noise = (state.squares / self._count + self._floor) / max(float(self._residuals.mean(self._residuals.target**2)), TINY)
        self._most = self._price * 0.5 * max(math.log2(self._count * self._repeats / max(noise, TINY)), 0.0)
        state = self._state(state.formula, state.values, state.squares)
        while not self._is_spent:
            now = self._formulas.formula(_with_values(state).trimmed())
            best = state
            for index, substitutes in takewhile(lambda _: not self._is_spent, simpler_ones(self._language, now.graph)):
                squares, sizes = (
                    self._residuals.squares(now.outputs_with(index, substitutes)).tolist(),
                    now.sizes_with(index, substitutes),
                )
                for substitute, left, size in zip(substitutes, squares, sizes, strict=True):
                    if self._bits(left, *size) < best.bits + MARGIN:
                        candidate = self._state(
                            self._formulas.formula(now.graph.replaced(index, substitute), now), enough=best.bits
                        )
                        best = candidate if candidate.bits < best.bits else best
            if best is state:
                for changed, gone, is_sum in takewhile(lambda _: not self._is_spent, self._shortening.without_constant(now)):
                    formula = self._formulas.formula(changed, now)
                    candidate = self._fitted(formula, list(formula.values), self._start(formula, gone, is_sum), best.bits)
                    best = candidate if candidate.bits < best.bits else best
            if best is state:
                break
            state = best
        self._most = math.inf
        return state

    # ---- constants ----

    def _units(self, state: _State) -> Iterator[_State]:
        """States with 1 or -1 in place of a constant, where the others make up for it: `x + 2*y` for `3*x + 6*y`."""
        for index, value in state.values.items():
            if value in (0.0, 1.0) or not math.isfinite(value) or self._is_spent:
                continue
            unit = 1.0 if value == -1.0 else math.copysign(1.0, value)
            node = Node(NodeKind.CONSTANT, f32_bits(unit), state.formula.graph.nodes[index].stack)
            formula = self._formulas.formula(_with_values(state).replaced(index, node))
            remaining = [constant for constant in state.values if constant != index]
            start = self._start(formula, value / unit, False, remaining)
            fitted = self._fitted(formula, remaining, start, enough=self._bits(state.squares, *formula.size) + 1.0)
            if self._error_bits(fitted.squares) <= self._error_bits(state.squares) + 1.0:
                yield fitted

    def _with_simple_constants(self, state: _State) -> _State:
        """Rounds constants to simple numbers, the cheapest first, and fits the others anew each time."""
        free, units = [index for index, value in state.values.items() if math.isfinite(value)], state.formula.units
        refused: dict[int, frozenset[float]] = dict.fromkeys(free, frozenset())
        while free and not self._is_spent:
            deviations = self._deviations(state, free)
            choices = {
                index: simplest(state.values[index], deviations[index], refused[index], LARGEST, units.get(index, 1.0))
                for index in free
            }
            index = min(free, key=lambda index: choices[index].cost)
            value = meant_number(np.float32(choices[index].value), units.get(index, 1.0))
            rest = [constant for constant in free if constant != index]
            fitted = self._fitted(state.formula, rest, {**state.values, index: value})
            lost = self._error_bits(fitted.squares) - self._error_bits(state.squares)
            if lost <= MOST_LOST or value == state.values[index]:
                state, free = fitted, rest
            elif len(refused[index]) < MAX_REFUSED and choices[index].value not in refused[index]:
                refused[index] |= {choices[index].value}
            else:  # it stays as it is
                free = rest
        return state

    def _deviations(self, state: _State, free: list[int]) -> dict[int, float]:
        """Standard deviations of the free constants, fitted together, as the errors suggest."""
        at = state.formula.outputs(state.values)
        slopes = self._residuals.slopes(at, state.formula.derivatives(state.values, free, at))
        variance = (state.squares / self._count + self._floor) / self._repeats
        lengths = np.sqrt((slopes**2).sum(axis=0))
        usable = np.isfinite(lengths) & (lengths > 0.0)
        deviations = np.full(len(free), np.inf)
        if usable.any():
            unit = slopes[:, usable] / lengths[usable]
            inverse = np.linalg.inv(unit.T @ unit + 1e-12 * np.eye(unit.shape[1]))
            deviations[usable] = np.sqrt(np.maximum(np.diag(inverse), 0.0) * variance) / lengths[usable]
        # Farther off the slopes say nothing.
        return {
            index: max(min(deviation, MOST_ROUNDED * abs(state.values[index])), F32_STEP * abs(state.values[index]))
            for index, deviation in zip(free, deviations.tolist(), strict=True)
        }

    def _start(self, formula: Formula, gone: float, is_sum: bool, remaining: list[int] | None = None) -> dict[int, float]:
        """Initial constants of a fit without a term or factor: one of the others, or all, make up for it."""
        values, starts = formula.values, [dict[int, float]()]
        remaining = [*values] if remaining is None else remaining
        if gone and not is_sum:
            starts.append({index: values[index] / gone for index in remaining})
        for index in remaining if gone else ():
            value = values[index]
            moved = (value + gone, value - gone, gone - value) if is_sum else (value * gone, value / gone)
            starts += [{index: number} for number in moved]
        held = [{**values, **start} for start in starts if all(abs(value) <= LARGEST for value in start.values())]
        columns = {index: np.array([[constants[index]] for constants in held]) for index in values}
        outputs = np.broadcast_to(formula.outputs(columns), (len(held), self._formulas.num_points))
        return held[int(np.argmin(self._residuals.squares(outputs)))]

    # ---- errors ----

    def _fitted(
        self, formula: Formula, free: list[int], values: dict[int, float] | None = None, enough: float = math.inf
    ) -> _State:
        """Fits the free constants by Levenberg-Marquardt. Gives up where it approaches `enough` bits only slowly."""
        values = dict(values or formula.values)
        free = [index for index in free if math.isfinite(values[index])]
        at, damping = formula.outputs(values), 1e-4
        squares = float(sums_of_squares(left := self._residuals.compute(at)))
        for _ in range(MAX_ITERATIONS if free and math.isfinite(squares) else 0):
            slopes = self._residuals.slopes(at, formula.derivatives(values, free, at))
            toward, normal = slopes.T @ left, slopes.T @ slopes
            if self._is_spent or not (np.isfinite(normal).all() and np.isfinite(toward).all()):
                break
            scale = np.maximum(np.sqrt(np.diag(normal)), SMALLEST)
            before = squares
            for _ in range(MAX_DAMPED):
                system = normal / np.outer(scale, scale) + damping * np.eye(len(free))
                steps = np.linalg.solve(system, toward / scale) / scale
                moved = np.clip([values[index] for index in free] + steps, -LARGEST, LARGEST).tolist()
                tried = {**values, **dict(zip(free, moved, strict=True))}
                outputs = formula.outputs(tried)
                residuals = self._residuals.compute(outputs)
                new_squares = float(sums_of_squares(residuals))
                if new_squares < squares:
                    at, left, values, squares, damping = outputs, residuals, tried, new_squares, max(0.1 * damping, LEAST_DAMPING)
                    break
                damping *= 10.0
            if not squares:
                break
            least = self._floor * self._count
            gain = (before + least) / (squares + least)
            if not gain > 1.001 or (gain < 2.0 and self._bits(squares, *formula.size) > enough):
                break
        return self._state(formula, values, squares, enough)

    def _squares(self, formula: Formula, values: dict[int, float] | None = None) -> float:
        return float(self._residuals.squares(formula.outputs(values)))

    def _resolution(self, state: _State, step: float) -> float:
        """The mean square of the error that remains where inputs and targets are rounded by a relative step, and constants to f32
        if they are not simple numbers.
        """
        formula, at = state.formula, state.formula.outputs()
        scale, seen = self._residuals.scaling(at)[1], state.squares / self._count
        moved = [formula.outputs_near(step) - at]
        steps = {index: value * max(step, _rounding(formula, index, value)) for index, value in state.values.items()}
        moved += [formula.outputs({**state.values, index: state.values[index] + step}) - at for index, step in steps.items()]
        total = sum(float(self._residuals.mean((scale * change) ** 2)) for change in moved)
        least = float(self._residuals.mean((step * self._residuals.target) ** 2))
        return SAFETY * ((min(total, seen) if math.isfinite(total) else seen) + least)

    # ---- bits ----

    def _state(
        self,
        formula: Formula,
        values: dict[int, float] | None = None,
        squares: float | None = None,
        enough: float = math.inf,
    ) -> _State:
        """enough: where it takes more bits already, those of constants are left out."""
        squares = self._squares(formula, values) if squares is None else squares
        values = formula.values if values is None else values
        bits = self._bits(squares, *formula.size)
        if bits < enough:
            bits += _constant_bits(formula, values, self._most)
        return _State(formula, values, squares, bits)

    def _bits(self, squares: float, num_instructions: int, num_divisions: int) -> float:
        """Bits of errors and instructions."""
        size = self._instruction_bits * num_instructions + DIVISION_BITS * num_divisions
        return self._error_bits(squares) + self._price * size

    def _error_bits(self, squares: float) -> float:
        if not math.isfinite(squares):
            return math.inf
        return 0.5 * self._count * self._repeats * math.log2(squares / self._count + self._floor + TINY)

    def _rewritten(self, state: _State, words: NDArray[np.uint64]) -> _State | None:
        """Rebuild the program from words, which merge equal values."""
        row = _with_values(state).words(self._language, len(words))
        graph = None if row is None else dag_of(self._language, row)
        return self._state(self._formulas.formula(graph)) if graph and graph.results[0] is not None else None


def _number(formula: Formula, index: int, value: float) -> Simple:
    return f32_number(float(np.float32(value)), formula.units.get(index, 1.0))


def _constant_bits(formula: Formula, values: dict[int, float], most: float = math.inf) -> float:
    """A minus sign is one bit."""
    return sum(min(_number(formula, index, value).bits, most) + (value < 0.0) for index, value in values.items())


def _rounding(formula: Formula, index: int, value: float) -> float:
    """The relative step of f32 that a constant is rounded by; of a simple number none, since that is meant."""
    return 0.0 if _number(formula, index, value).bits <= MOST_BITS else F32_STEP


def _with_values(state: _State) -> Dag:
    """The graph with the state's constants."""
    nodes = list(state.formula.graph.nodes)
    for index, value in state.values.items():
        nodes[index] = replace(nodes[index], payload=f32_bits(value))
    return Dag(tuple(nodes), state.formula.graph.results)
