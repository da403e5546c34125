"""Losses that formulas are fitted by in place of squared errors.

Owns their names and formulas, the worth of a sum of losses in digits, and the parabolas that touch them.
"""

from __future__ import annotations

import copy
import math
import re

import numpy as np
from numpy.typing import NDArray

from evo.errors import UserError, did_you_mean
from evo.evaluate.sampling import MANY, spread
from evo.language.dag import Builder, Dag
from evo.language.real_programs import derived, evaluate, language, read, words_of
from evo.native.tune import PointLoss

Row = NDArray[np.float64]  # a number for each point

_CLIPPED = "min(abs(prediction - target), {0!r})"
# By name: a formula, the number in brackets that it takes for {0}, and its range.
NAMED: dict[str, tuple[str, float, float, float]] = {
    "squared": ("(prediction - target)**2", 0.0, 0.0, 0.0),
    "absolute": ("abs(prediction - target)", 0.0, 0.0, 0.0),
    "huber": (f"{_CLIPPED}*(abs(prediction - target) - {_CLIPPED}/2)", 1.0, 0.0, math.inf),
    # abs(error) + log((1 + exp(-2*abs(error)))/2), without overflow.
    "log_cosh": ("abs(prediction - target) + log(0.5 + 0.5*exp(-2*abs(prediction - target)))", 0.0, 0.0, 0.0),
    "quantile": ("max({0!r}*(target - prediction), ({0!r} - 1)*(target - prediction))", 0.5, 0.0, 1.0),
    # log(1 + exp(prediction)) - target*prediction, without overflow.
    "logistic": ("max(prediction, 0) + log(1 + exp(-abs(prediction))) - target*prediction", 0.0, 0.0, 0.0),
    "poisson": ("prediction - target*log(prediction)", 0.0, 0.0, 0.0),
}
VARIABLES = ("prediction", "target", "weight")
FIRST_ERROR = 0.3  # resolution of errors at first, in deviations of a target
LEAST_ERROR = 1e-6  # and in the end: float32 hardly resolves smaller ones
PROBED = 1e-4  # deviations: errors by which a loss's degree is measured
MOST_DEGREE = 8.0
NUM_STARTS, START_STEPS = 65, 60
POLISHED, CLOSER = 30, 0.5  # iterations in float64, and the share of errors that each tells apart of those of the last


def formula_of_loss(loss: str) -> str:
    """The formula of a loss by name, such as `quantile(0.9)`, or of a formula.

    Raises:
        UserError: there is no such name, or its number is out of range.
    """
    if not isinstance(loss, str):
        raise UserError(f"loss is {loss!r}, must be the name or the formula of a loss, such as 'abs(prediction - target)'")
    loss = re.sub(r"^log\(cosh\((?:prediction - target|target - prediction)\)\)$", "log_cosh", loss.strip())
    match = re.fullmatch(r"([a-z_]+)(?:\((.*)\))?", loss)
    if not match or match[1] not in NAMED:
        if match and not match[2]:
            raise UserError(
                f"loss: {loss!r}, {did_you_mean(match[1], NAMED)}; or a formula of prediction, target and weight, such as "
                "'abs(prediction - target)'"
            )
        return loss
    text, number, low, high = NAMED[match[1]]
    if match[2] is not None:
        try:
            number = float(match[2])
        except ValueError:
            number = math.nan
        if not low < number < high:
            what = f"a number between {low:g} and {high:g}" if high else "no number"
            raise UserError(f"loss: {match[1]} takes {what} in brackets, got {match[2]!r}")
    return text.format(number)


class TargetLoss:
    """A loss for the rows of a table.

    A loss that is 0 where the prediction equals the target is one of errors: its logarithm counts, as if their size were fitted
    too. Any other is the negative logarithm of a likelihood.

    Args:
        loss: as for `formula_of_loss`. Unless it has the weight in it, it is multiplied by that.
        target: `(num_points,)`.
        weights: `(num_points,)`; None: all are 1.

    Raises:
        UserError: it is not a loss, or not finite for any prediction that is the same at all points.

    Attributes:
        is_of_errors: see above.
        moves: it depends on the difference of prediction and target alone.
        constant: the best prediction that is the same at all points.
    """

    def __init__(self, loss: str, target: Row, weights: Row | None = None):
        self._target, self._weights = target, np.ones_like(target) if weights is None else weights
        graph = read(formula_of_loss(loss), VARIABLES, "loss")
        used = {node.payload for node in graph.nodes if node.kind.name == "INPUT"}
        if 0 not in used:
            raise UserError(f"loss: {loss!r} does not depend on prediction")
        if weights is not None and VARIABLES.index("weight") not in used:
            builder = Builder()
            inputs = [builder.input(index) for index in range(len(VARIABLES))]
            graph = builder.graph(builder.call("mul_ftz_f32", inputs[2], builder.include(graph, inputs)[0]))
        self._graphs = [graph]
        for _ in range(2):
            last = self._graphs[-1]
            slope = derived(last, len(VARIABLES)) if last.results[0] is not None else last
            self._graphs.append(Dag(slope.nodes, slope.results[:1]))
        self.is_of_errors = bool((self._at(0, target) == 0.0).all())
        deviation = float(target.std()) or 1.0
        self._resolution = FIRST_ERROR * deviation, max(LEAST_ERROR * deviation, float(np.finfo(np.float32).tiny))
        moved = evaluate(self._graphs[0], [target + 2.0 * deviation, target + deviation, self._weights])[0]
        self.moves = self.is_of_errors and np.allclose(moved, self._at(0, target + deviation), rtol=1e-9)
        self.constant = self.of_rows(spread(len(target), MANY)).best_constant(deviation)
        self._least = self.mean(np.full_like(target, self.constant))
        errors = [self.mean(target + factor * PROBED * deviation) for factor in (1.0, 2.0)] if self.is_of_errors else [1.0, 2.0]
        self._degree = min(max(round(math.log2(errors[1] / errors[0])), 1.0), MOST_DEGREE) if errors[0] > 0.0 else 2.0

    def of_rows(self, rows: NDArray[np.int64]) -> TargetLoss:
        """The same loss for some of the rows."""
        subset = copy.copy(self)
        vars(subset).update(_target=self._target[rows], _weights=self._weights[rows])
        return subset

    def point_loss(self) -> PointLoss:
        """As `Task.point_loss`."""
        builder = Builder()
        inputs = [builder.input(index) for index in range(len(VARIABLES))]
        results = [builder.include(graph, inputs)[0] for graph in self._graphs[: 2 if self.is_of_errors else 3]]
        outputs = ("loss", "slope", "curvature")[: len(results)]
        words = words_of(builder.graph(*results), VARIABLES, outputs)
        lowering = language(VARIABLES, outputs).lowering
        return PointLoss(lowering, words, np.float32(self.constant).item(), self.is_of_errors, *self._resolution)

    def mean(self, predictions: Row) -> float:
        """The mean loss, `(num_points,)` each a prediction."""
        losses = self._at(0, predictions)
        return float(losses.sum() / self._weights.sum())

    def digits(self, losses: NDArray[np.float64]) -> NDArray[np.float64]:
        """Worth of mean losses over the best constant: bits for a point, as those of half a digit of squared error."""
        with np.errstate(all="ignore"):
            if not self.is_of_errors:
                return np.asarray(2.0 * (self._least - losses) / math.log(10.0))
            return np.asarray(-2.0 / self._degree * np.log10(np.maximum(losses / self._least, np.finfo(np.float64).tiny)))

    def polished(self, values: Row, offset: float, scale: float) -> tuple[float, float]:
        """Offset and scale of values, finite, with the least loss, from those nearby."""
        least, least_error = self.mean(offset + scale * values), self._resolution[0]
        for _ in range(POLISHED):
            least_error = max(least_error * CLOSER, self._resolution[1])
            response, weights = self.working(offset + scale * values, least_error)
            total = weights.sum()
            if not (np.isfinite(response).all() and 0.0 < total < np.inf):
                break
            mean, mean_response = weights @ values / total, weights @ response / total
            variance = weights @ (values - mean) ** 2
            slope = weights @ ((values - mean) * (response - mean_response)) / variance if variance > 0.0 else 0.0
            moved = float(mean_response - slope * mean), float(slope)
            loss = self.mean(moved[0] + moved[1] * values)
            if loss < least:
                (offset, scale), least = moved, loss
        return offset, scale

    def working(self, predictions: Row, least_error: float = 0.0) -> tuple[Row, Row]:
        """Targets and weights of a weighted least-squares fit along which the loss falls.

        Args:
            least_error: smaller errors count as this size.
        """
        slope = self._at(1, predictions)
        if self.is_of_errors:
            curvature = np.abs(slope) / np.maximum(np.abs(predictions - self._target), max(least_error, self._resolution[1]))
        else:
            curvature = self._at(2, predictions)
        curvature = np.where(curvature > 0.0, curvature, 0.0)
        with np.errstate(all="ignore"):
            return np.where(curvature > 0.0, predictions - slope / curvature, predictions), curvature

    def _at(self, order: int, predictions: Row) -> Row:
        """The loss, or a derivative of it by the prediction."""
        values = np.empty(predictions.shape)
        for start in range(0, len(values), MANY):
            rows = slice(start, start + MANY)
            values[rows] = evaluate(self._graphs[order], [predictions[rows], self._target[rows], self._weights[rows]])[0]
        return values

    def best_constant(self, deviation: float) -> float:
        """The best prediction that is the same at all points. deviation: of the target.

        Raises:
            UserError: none is finite.
        """
        starts = np.quantile(self._target, np.linspace(0.0, 1.0, NUM_STARTS))
        starts = np.concatenate([starts, [self._target.mean(), 0.0, 1.0]])
        losses = np.array([self.mean(np.full_like(self._target, prediction)) for prediction in starts])
        if not np.isfinite(losses).any():
            raise UserError("loss: is not finite for any prediction that is the same at all rows")
        best, step = float(starts[np.nanargmin(np.where(np.isfinite(losses), losses, np.nan))]), deviation
        least = float(np.nanmin(np.where(np.isfinite(losses), losses, np.nan)))
        for _ in range(START_STEPS):
            tried = {prediction: self.mean(np.full_like(self._target, prediction)) for prediction in (best - step, best + step)}
            better = min(tried, key=lambda prediction: tried[prediction] if np.isfinite(tried[prediction]) else math.inf)
            if tried[better] < least:
                best, least = better, tried[better]
            else:
                step /= 2.0
        return best
