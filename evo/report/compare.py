"""Compares runs over seeds: medians, quartiles, and which differences are more than noise.

Owns how runs are grouped and tested. Reads configs and metrics alone, so it needs neither the tasks nor the machine of the runs.
"""

import itertools
import json
import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.config import RunConfig, with_paths_in
from evo.errors import UserError
from evo.report.run_list import has_stopped
from evo.report.table import table
from evo.run.run_dir import RunDir
from evo.storage.files import PARTIAL_SUFFIX

METRICS = {"qd_score": "QD score", "coverage": "coverage", "best_objective": "best objective"}
MAX_STRAY = 1.1  # of the evaluations of groups that are compared
LEVEL = 0.05  # of significance, after the correction
# Least effects with these names (Vargha & Delaney 2000), of the chance that a run of one group beats one of the other.
_EFFECTS = ((0.71, "large"), (0.64, "medium"), (0.56, "small"), (0.0, "negligible"))
_NOT_SETTINGS = {"seed", "output", "task", "task_files"}  # keys that say nothing about what a run does
_MAX_LABEL = 60


@dataclass(frozen=True)
class FinishedRun:
    """A run's end. last: its numbers by name, `evaluations` and `elapsed_s` included."""

    path: Path
    config: RunConfig
    task_digest: str
    last: dict[str, float]


@dataclass(frozen=True)
class Group:
    """Runs that differ in their seeds alone."""

    label: str
    runs: tuple[FinishedRun, ...]

    def last(self, name: str) -> NDArray[np.float64]:
        """`(num_runs,)` numbers at the runs' ends."""
        return np.array([run.last[name] for run in self.runs])


@dataclass(frozen=True)
class Difference:
    """Two groups compared in one metric.

    chance: that a run of the first is better than one of the second, ties counting half (A12). p: two-sided, corrected.
    needed: seeds that each group would need at least; 0 if there are enough.
    """

    metric: str
    first: str
    second: str
    chance: float
    p: float
    needed: int

    @property
    def effect(self) -> str:
        """The size of the difference in a word."""
        return next(name for least, name in _EFFECTS if max(self.chance, 1.0 - self.chance) >= least)

    @property
    def verdict(self) -> str:
        """Verdict of the seeds."""
        if self.needed:
            return f"too few seeds: {self.needed} each could tell"
        if self.p > LEVEL:
            return "no more than noise"
        return f"{self.first if self.chance > 0.5 else self.second} is better"


def load_groups(paths: Sequence[Path]) -> tuple[list[Group], list[str]]:
    """The runs in these folders, grouped by config, and lines that the user should read.

    Args:
        paths: folders of runs, or folders that contain them at any depth.

    Raises:
        UserError: a folder has no run, a run is damaged, or none has finished.
    """
    notes: list[str] = []
    groups: dict[str, dict[int, FinishedRun]] = {}
    folders = dict.fromkeys(folder for path in paths for folder in _run_folders(path))
    for folder in folders:
        run, why = _read(folder)
        if run is None:
            notes.append(f"{folder}: {why}; left out")
            continue
        same = groups.setdefault(_group_key(run), {})
        first = same.setdefault(run.config.seed, run)
        if first is not run:
            notes.append(f"{folder}: seed {run.config.seed} is there twice, as in {first.path}; left out")
    if not groups:
        raise UserError("no finished run; go on with: evo resume RUN", ", ".join(map(str, paths)))
    runs = [tuple(same[seed] for seed in sorted(same)) for same in groups.values()]
    ordered = sorted(map(Group, _labels(runs), runs), key=lambda group: _natural(group.label))
    ends = [float(np.median(group.last("evaluations"))) for group in ordered]
    if max(ends) > MAX_STRAY * min(ends):
        notes.append(f"runs end after {min(ends):,.0f} to {max(ends):,.0f} evaluations (medians); the table compares their ends")
    if len({run.task_digest for group in ordered for run in group.runs}) > 1:
        notes.append("the groups have different tasks, or different versions of one; their scores may mean different things")
    return ordered, notes


def differences(groups: Sequence[Group]) -> list[Difference]:
    """Compare each pair of groups in each metric: Mann-Whitney U, two-sided, with Holm's correction over all of these tests."""
    from scipy.stats import mannwhitneyu

    tests = [(metric, *pair) for metric in METRICS for pair in itertools.combinations(groups, 2)]
    p_values, chances = [], []
    for metric, first, second in tests:
        a, b = first.last(metric), second.last(metric)
        statistic, p = mannwhitneyu(a, b)
        p_values.append(1.0 if np.isnan(p) else float(p))
        chances.append(float(statistic) / (len(a) * len(b)))
    return [
        Difference(metric, first.label, second.label, chance, p, _needed_seeds(len(first.runs), len(second.runs), len(tests)))
        for (metric, first, second), chance, p in zip(tests, chances, holm(p_values), strict=True)
    ]


def holm(p_values: Sequence[float]) -> list[float]:
    """Corrected p-values (Holm 1979): the chance of even one false alarm among all tests stays below the level."""
    corrected = [0.0] * len(p_values)
    highest = 0.0
    for rank, number in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[number]))
        corrected[number] = highest
    return corrected


def compare_text(groups: Sequence[Group]) -> str:
    """Two tables: the groups, and their differences."""
    heads = ["config", "runs", "evaluations", "seconds", *METRICS.values()]
    forms = {"evaluations": ",.0f", "elapsed_s": ",.1f"}
    rows = [
        [group.label, str(len(group.runs))]
        + [_quartiles(group.last(name), forms.get(name, ".4g")) for name in ("evaluations", "elapsed_s", *METRICS)]
        for group in groups
    ]
    text = f"at the end of each run: median (first quartile to third)\n\n{table([heads, *rows])}"
    if len(groups) == 1:
        return text
    compared = differences(groups)
    heads = ["metric", "first", "second", "A", "effect", "p", "verdict"]
    rows = [
        [METRICS[d.metric], d.first, d.second, f"{d.chance:.2f}", d.effect, _p_text(d.p), d.verdict]
        for d in sorted(compared, key=lambda d: d.p)
    ]
    return (
        f"{text}\nMann-Whitney U, two-sided; p is corrected for {len(compared)} comparisons (Holm), {LEVEL:g} is the limit.\n"
        f"A: chance that a run of the first is better than one of the second, 0.5 if they are alike.\n\n{table([heads, *rows])}"
    )


def quartiles(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """First quartile, median, third quartile. Minus infinity is a value."""
    with np.errstate(invalid="ignore"):
        quantiles = np.quantile(values, (0.25, 0.5, 0.75))
    return np.where(np.isnan(quantiles), -np.inf, quantiles)


def _run_folders(path: Path) -> list[Path]:
    """The run folders at or below a path."""
    run_folders = []
    for folder, folders, files in os.walk(path):
        folders.sort()
        if folder.endswith(PARTIAL_SUFFIX):  # it has no name yet
            folders.clear()
        elif "config.yaml" in files:
            run_folders.append(Path(folder))
            folders.clear()
    if not run_folders:
        raise UserError("not a run folder, nor is there one in it; list yours with: evo list", path)
    return run_folders


def _read(path: Path) -> tuple[FinishedRun | None, str]:
    """A run, or why it cannot be compared."""
    run_dir = RunDir(path, writable=False)
    row = run_dir.last_metrics()
    if not row:
        return None, "has no metrics yet"
    config = run_dir.config()
    if not has_stopped(config.stop, row):
        return None, "has not finished"
    # An empty archive's best objective counts as minus infinity.
    last = {name: -np.inf if row[name] is None else row[name] for name in ("evaluations", "elapsed_s", *METRICS)}
    return FinishedRun(path, with_paths_in(config, path), run_dir.task_digest(), last), ""


def _group_key(run: FinishedRun) -> str:
    """Equal for runs that differ in nothing but their seed, and in where task and output are."""
    settings = run.config.model_dump(mode="json", exclude=_NOT_SETTINGS)
    return json.dumps([settings, run.task_digest], sort_keys=True)


def _labels(groups: Sequence[Sequence[FinishedRun]]) -> list[str]:
    """A short name for each group: the name of its runs' folder, or else the differences of the configs."""
    names = [" ".join(sorted({run.path.absolute().parent.name for run in runs})) for runs in groups]
    if len(set(names)) == len(names):
        return [name[:_MAX_LABEL] for name in names]
    flat = [_flat(runs[0].config.model_dump(mode="json", exclude=_NOT_SETTINGS)) for runs in groups]
    keys = [key for key in dict.fromkeys(itertools.chain(*flat)) if len({json.dumps(settings.get(key)) for settings in flat}) > 1]
    labels = []
    for number, (name, values) in enumerate(zip(names, flat, strict=True), 1):
        differing = ",".join(f"{key}={json.dumps(values.get(key))}" for key in keys)
        label = differing or f"{name} task {groups[number - 1][0].task_digest[:8]}"
        labels.append(label if len(label) <= _MAX_LABEL else f"{number}: {label[: _MAX_LABEL - 8]}...")
    return labels


def _natural(label: str) -> list[tuple[float, str]]:
    """Key that sorts 256 before 1024."""
    parts = re.split(r"(\d+(?:\.\d+)?)", label)
    return [(float(part), "") if i % 2 else (-1.0, part) for i, part in enumerate(parts)]


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested values by dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


def _needed_seeds(num_first: int, num_second: int, num_tests: int) -> int:
    """0 if groups of these sizes could differ by more than noise; otherwise the least size of two equal groups that could.

    Even if all runs of one group are better than all of the other, p cannot be less than 2 / binomial(m + n, n).
    """
    if 2.0 * num_tests / math.comb(num_first + num_second, num_first) <= LEVEL:
        return 0
    return next(n for n in itertools.count(2) if 2.0 * num_tests / math.comb(2 * n, n) <= LEVEL)


def _quartiles(values: NDArray[np.float64], form: str) -> str:
    low, middle, high = (format(value, form) if np.isfinite(value) else "none" for value in quartiles(values))
    return f"{middle} ({low} to {high})"


def _p_text(p: float) -> str:
    return f"{p:.3f}" if p >= 0.001 else "<0.001"
