"""The prescreen: a model that learns while the search runs picks which offspring are evaluated.

More offspring are bred than are evaluated. A model predicts objective and measures of each from its features, and those are
evaluated that promise the greatest expected improvement of the cell that they are predicted to fall into (as SAIL: Gaier,
Asteroth and Mouret, Data-efficient design exploration through surrogate-assisted illumination, 2018), with some exploration.

Owns the model, the choice, and the account of whether it pays: now and then a control generation evaluates offspring as they
come. Elites for each unit of cost are compared, and a prescreen that has not shown to pay ends itself. All of this follows from
counts and from the cost in its options, so that a search stays exact. Knows nothing of tasks, files or clocks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from evo.itll import Model
from evo.language.batch import ProgramRows
from evo.options import Integer, Options, Probability
from evo.search.learned_measures import Describe

if TYPE_CHECKING:
    from evo.search.archives.base import ProgramArchive

LENGTH_SCALE = 2.0  # of the model: on regression and domain colouring better than 0.5, 1 and 4
PROBATION = 4  # periods, each with one control generation, before the first judgement
PROBATION_SHARE = 0.01  # of a run that the probation may cost
MOST_GAIN = 2.0  # elites for each evaluation that a prescreen finds at best, as a multiple (docs/benchmarks.md)
MIN_DEVIATIONS = 1.0  # the lead that a prescreen must have by then, in standard deviations
MAX_ELITES = 2000  # counted before all counts are halved, so that the newest weigh most

# Int64 state. screened_, control_: programs evaluated and elites that came of them, in generations of either kind.
COUNTS = (
    "has_ended",
    "periods",
    "screened_offspring",
    "screened_evaluations",
    "screened_elites",
    "control_evaluations",
    "control_elites",
)


class LearningOptions(Options):
    """What is learned while a search runs: which offspring to evaluate, and measures (`evo.search.learned_measures`).

    `prescreen`: offspring bred for each one that is evaluated; 1: no model. `exploration`: share of the evaluated that is chosen
    without the model. `control`: every n-th generation evaluates offspring unscreened, to measure what the choice is worth.
    `model` learns from the newest `window` programs; their outputs at `points` of the task's points are among their features.
    `evaluation_cost`: cost of an evaluation relative to inspecting an offspring (about 5 us); a prescreen needs it.
    `features`: principal components of the elites' outputs at these points that are written beside the elites; with the
    `descriptors` `learned` they span the archive in place of the task's measures.
    """

    prescreen: Annotated[Integer, Field(ge=1, le=64)] = 1
    exploration: Probability = 0.1
    control: Annotated[Integer, Field(ge=2, le=1000)] = 8
    model: Literal["ridge"] = "ridge"
    window: Annotated[Integer, Field(ge=16, le=10000)] = 2000
    points: Annotated[Integer, Field(ge=1, le=256)] = 32
    evaluation_cost: Annotated[float, Field(gt=0.0, allow_inf_nan=False)] | None = None
    descriptors: Literal["task", "learned"] = "task"
    features: Annotated[Integer, Field(ge=0, le=8)] = 0

    @property
    def is_spanning(self) -> bool:
        """Whether learned measures span the archive."""
        return self.descriptors == "learned"

    @model_validator(mode="after")
    def _has_cost(self) -> Self:
        if self.prescreen > 1 and self.evaluation_cost is None:
            raise ValueError(
                "a prescreen needs 'evaluation_cost': microseconds of a core for an evaluation, divided by 5; below 20 it loses"
            )
        return self

    @model_validator(mode="after")
    def _fits_descriptors(self) -> Self:
        if self.is_spanning and not self.features:
            raise ValueError("descriptors 'learned' need 'features': how many of them span the archive, 1 to 8")
        if self.is_spanning and self.prescreen > 1:
            raise ValueError("descriptors 'learned' do not go with a prescreen, which predicts the task's; give one of them")
        return self


@dataclass(frozen=True)
class Screening:
    """What a prescreen did in a generation.

    stage: `initial` (programs without parents), `screened`, `control`, or `off`. screened_rate, control_rate: elites for each
    evaluation, so far; None: none yet. ended: why it has ended itself, in the generation in which it does.
    """

    stage: str
    screened_rate: float | None = None
    control_rate: float | None = None
    ended: str | None = None


class Prescreen:
    """Chooses offspring, and learns from those that were evaluated.

    Args:
        options: how it chooses.
        describe: features `(n, num_features)` of programs.
        num_measures: of the archive.
        seed: of the model.
        batch_size: evaluations of a generation.
        num_evaluations: of the whole search; None: nobody knows.
        arrays: what `arrays` gave for this prescreen in an earlier process; None: it is new.

    Raises:
        ValueError: the arrays are of another version.
    """

    def __init__(
        self,
        options: LearningOptions,
        describe: Describe,
        *,
        num_measures: int,
        seed: int,
        batch_size: int,
        num_evaluations: int | None = None,
        arrays: dict[str, NDArray[Any]] | None = None,
    ):
        self._options = options
        self._describe = describe
        assert options.evaluation_cost, "the options were checked"
        self._cost = options.evaluation_cost
        self._num_targets = 1 + num_measures
        num_features = describe(np.zeros((1, 1), np.uint64)).shape[1] + self._num_targets
        self._model_options = {
            "num_features": num_features,
            "num_targets": self._num_targets,
            "window": options.window,
            "length_scale": LENGTH_SCALE,
            "seed": seed,
        }
        self._counts = dict.fromkeys(COUNTS, 0)
        self._model = self._new_model()
        self._why_not = self._reason_not_to_begin(batch_size, num_evaluations)
        self._counts["has_ended"] = int(self._why_not is not None)
        if arrays:
            self._counts = dict(zip(COUNTS, arrays["counts"].tolist(), strict=True))
            self._model.load(arrays["model"])
        self._generation = 0
        self._stage = "off"
        self._rows = np.zeros((0, num_features), np.float32)  # of the programs that are being evaluated
        self._predicted = np.zeros((0, self._num_targets), np.float32)  # of them

    @property
    def is_on(self) -> bool:
        """Whether it still chooses."""
        return not self._counts["has_ended"]

    def begin(self, generation: int, population: ProgramArchive, *, is_fresh: bool) -> int:
        """Begins a generation; returns how many offspring are to be bred for each one that is evaluated.

        Args:
            population: what is bred from.
            is_fresh: its programs will have no parents.
        """
        self._generation = generation
        if not self.is_on:
            self._stage = "off"
        elif is_fresh or not len(population) or not self._model.num_rows:
            self._stage = "initial"
        else:  # The control is in the middle of a period, since elites become rarer as a search goes on.
            is_control = generation % self._options.control == self._options.control // 2
            self._stage = "control" if is_control else "screened"
        return self._options.prescreen if self._stage == "screened" else 1

    def choose(
        self, programs: ProgramRows, is_new: NDArray[np.bool_], parents: NDArray[np.int32], population: ProgramArchive
    ) -> NDArray[np.bool_]:
        """Which programs to evaluate, `(n,)`.

        Args:
            programs: the offspring.
            is_new: `(n,)`, those that need an evaluation.
            parents: `(n, 2)`, their parents' cells in the population; -1: none.
        """
        if self._stage == "off":
            return is_new
        slots = np.flatnonzero(is_new)
        # The model forgets all but its window.
        described = slots[-self._options.window :] if self._stage == "initial" else slots
        rows = np.column_stack([self._describe(programs[described]), _scores_of(population, parents[described, 0])])
        predicted = np.stack(self._model.predict(rows, return_std=True))
        num_wanted = len(programs) // self._options.prescreen
        if self._stage == "screened" and num_wanted < len(slots):
            kept = self._picked(predicted, population, num_wanted)
            slots, rows, predicted = slots[kept], rows[kept], predicted[:, kept]
        self._rows, self._predicted = rows, predicted[0]
        chosen = np.zeros(len(programs), bool)
        chosen[slots] = True
        return chosen

    def learn(
        self,
        objective: NDArray[np.float64],
        measures: NDArray[np.float64],
        num_offspring: int,
        num_evaluations: int,
        num_elites: int,
        population: ProgramArchive,
    ) -> Screening:
        """Learns from the programs that were chosen, and judges what that choice was worth.

        Args:
            objective, measures: `(n,)` and `(n, num_measures)`, of the chosen programs in their order; NaN: rejected.
            num_offspring: offspring that were bred.
            num_evaluations: of this generation, those of tuning included.
            num_elites: that came of them.
            population: that they were added to.
        """
        stage = self._stage
        if stage == "off":
            return Screening(stage, ended=self._why_not if self._generation == 0 else None)
        first = len(objective) - len(self._rows)
        objective, measures = objective[first:], measures[first:]
        # Programs without a score are as bad as the worst that matter, and tell nothing about measures.
        floor = _floor(population)
        is_ok = np.isfinite(objective)
        clipped = np.clip(measures, population.layout.low, population.layout.high)
        targets = np.column_stack([np.maximum(objective, floor), clipped])
        targets[~is_ok] = self._predicted[~is_ok]
        targets[~is_ok, 0] = floor
        self._model.update(self._rows, targets)
        counts = self._counts
        if stage != "initial":
            counts[f"{stage}_evaluations"] += num_evaluations
            counts[f"{stage}_elites"] += num_elites
            counts["screened_offspring"] += num_offspring if stage == "screened" else 0
        rates = [_rate(counts[f"{kind}_elites"], counts[f"{kind}_evaluations"]) for kind in ("screened", "control")]
        return Screening(stage, rates[0], rates[1], self._judge())

    def _new_model(self) -> Model:
        return Model("ridge", **self._model_options)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All that it takes to go on."""
        return {
            "counts": np.array([self._counts[name] for name in COUNTS], np.int64),
            "model": self._model.save(),
        }

    def _reason_not_to_begin(self, batch_size: int, num_evaluations: int | None) -> str | None:
        """Why it cannot pay, whatever it learns; None if it can."""
        factor, control = self._options.prescreen, self._options.control
        if self._cost * (MOST_GAIN - 1.0) <= factor:
            return f"to look at {factor} offspring costs more than the evaluation that it may save"
        looks = PROBATION * control * batch_size * factor
        if num_evaluations is not None and looks > PROBATION_SHARE * num_evaluations * self._cost:
            return f"the search is too short: its probation would take {looks / (num_evaluations * self._cost):.0%} of it"
        return None

    def _picked(self, predicted: NDArray[np.float32], population: ProgramArchive, num_wanted: int) -> NDArray[np.int64]:
        """The rows to evaluate, sorted: those of greatest expected improvement, and for exploration some of the others, evenly
        spread over their slots. Only one program can take a cell, so the n-th best of a predicted cell counts an n-th.
        """
        means, deviations = predicted.astype(np.float64)
        lowest = min(population.qd_score_offset, _floor(population))
        gain = np.zeros(len(means))
        # Over the predicted cell and those a deviation away in either direction of each measure.
        for direction in (np.zeros(self._num_targets - 1), *np.eye(self._num_targets - 1), *-np.eye(self._num_targets - 1)):
            cells = population.index_of(means[:, 1:] + direction * deviations[:, 1:])
            incumbent = population.scores(cells)[0]
            gain += expected_improvement(means[:, 0] - np.where(np.isnan(incumbent), lowest, incumbent), deviations[:, 0])
        order = np.argsort(-gain / _places(population.index_of(means[:, 1:]), gain), kind="stable")
        num_explored = round(self._options.exploration * num_wanted)
        best, others = np.split(order, [num_wanted - num_explored])
        explored = np.sort(others)[np.arange(num_explored) * len(others) // max(num_explored, 1)]
        return np.sort(np.concatenate([best, explored]))

    def _judge(self) -> str | None:
        """Ends the prescreen at the end of a period unless it pays; says why."""
        counts = self._counts
        if self._generation % self._options.control != self._options.control - 1 or self._stage == "initial":
            return None
        counts["periods"] += 1
        elites = (counts["screened_elites"], counts["control_elites"])
        screened = counts["screened_evaluations"] * self._cost + counts["screened_offspring"]
        costs = (screened, counts["control_evaluations"] * self._cost)
        if counts["periods"] < PROBATION or not sum(elites) or not all(costs):
            return None
        if lead(elites, costs) < MIN_DEVIATIONS:
            gain = elites[0] * costs[1] / max(elites[1] * costs[0], 1e-9)
            counts["has_ended"] = 1
            self._model = self._new_model()  # which takes less room in checkpoints
            return f"no significant gain: {gain:.2f} times the elites at equal cost"
        if sum(elites) > MAX_ELITES:
            for name in COUNTS[2:]:
                counts[name] //= 2
        return None


def _places(cells: NDArray[Any], gain: NDArray[np.float64]) -> NDArray[np.int64]:
    """The place of each row among those of its cell by falling gain, from 1; of equals the first is before."""
    order = np.lexsort((-gain, cells))
    first = np.flatnonzero(np.diff(cells[order], prepend=-1))
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order)) - np.repeat(first, np.diff(first, append=len(order))) + 1
    return places


def expected_improvement(lead: NDArray[np.float64], deviation: NDArray[np.float64]) -> NDArray[np.float64]:
    """By how much a program is expected to beat an incumbent that it leads by `lead`, give or take `deviation`; never negative.

    E max(0, lead + deviation x) for an x with Student's distribution of two degrees of freedom, scaled so that at lead 0 it is
    that of a normal distribution. It needs no exponential function, which has other bits on other machines, and its heavy tails
    forgive a model that is too sure of itself.
    """
    return 0.5 * (lead + np.sqrt(lead * lead + (2.0 / math.pi) * deviation * deviation))


def lead(elites: tuple[int, int], costs: tuple[float, float]) -> float:
    """How many standard deviations the first count lies above what it would be if both had the same rate for each unit of cost.

    Given their sum, the first of two Poisson counts is binomial (Przyborowski and Wilenski, Homogeneity of results in testing
    samples from Poisson series, 1940).
    """
    total, share = sum(elites), costs[0] / sum(costs)
    return (elites[0] - total * share) / math.sqrt(total * share * (1.0 - share))


def _rate(elites: int, evaluations: int) -> float | None:
    return elites / evaluations if evaluations else None


def _scores_of(population: ProgramArchive, cells: NDArray[np.int32]) -> NDArray[np.float64]:
    """Objective and measures of the elites in some cells, `(n, 1 + num_measures)`; NaN where there is none or the cell is -1."""
    scores = np.column_stack(population.scores(np.maximum(cells, 0)))
    scores[cells < 0] = np.nan
    return scores


def _floor(population: ProgramArchive) -> float:
    """The objective below which programs count as equal: that of the worst elite, unless it is an outlier."""
    objective = population.scores(population.occupied_cells)[0]
    return max(objective.min(), 5.0 * np.median(objective) - 4.0 * objective.max()) if len(objective) else 0.0
