"""Symbolic regression on the twelve sets, beside pyoperon and gplearn where they are installed: exact runs, test NMSE, time to
exact.

    python tests/bench/bench_regression.py [--seconds 10] [--seeds 1-10] [--sets Koza-1,Pagie-1] [--core 0]
                                           [--systems evo,operon,operon-untuned,gplearn] [--runs FILE]
                                           [--set search.tuning.share=0.1]
    python tests/bench/bench_regression.py --table FILE ...      # the table of runs that several processes wrote

A run takes this many CPU seconds on one core, imports and the reading of data not counted; systems take turns. `--runs` appends a
line of JSON for each run. Several processes on different cores may share the sets or the seeds, each with a file of its own.

A run is exact if its test NMSE is below 1e-6; the time to exact is that of the first generation whose formula is so. evo
predicts with the elite that `evo predict` takes, and stops where its config says. pyoperon predicts with its best formula on the
training points, tunes constants with Levenberg-Marquardt (`operon-untuned` does not) and stops after the seconds given, which it
measures itself. gplearn has its defaults, and goes on generation by generation.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import sys
import time
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from evo import __version__

REPOSITORY = Path(__file__).parents[2]
CONFIG = REPOSITORY / "configs" / "symbolic_regression.yaml"
SETS = (
    *("Koza-1", "Koza-3", "Nguyen-5", "Nguyen-7", "Nguyen-10", "Keijzer-4"),
    *("Keijzer-6", "Keijzer-12", "Korns-12", "Pagie-1", "Vladislavleva-4", "Poly-10"),
)
HARD = ("Pagie-1", "Vladislavleva-4", "Poly-10")
EXACT = 1e-6
CLOSE = 1e-5  # training NMSE above which no time to exact is looked for
ABSURD = 10.0
OPERON_SYMBOLS = "add,sub,mul,div,sin,cos,exp,log,sqrt,constant,variable"
GPLEARN_FUNCTIONS = ("add", "sub", "mul", "div", "sin", "cos", "log", "sqrt")  # it has no exp
OPERON_ITERATIONS = 5  # of Levenberg-Marquardt for each offspring


class Clock:
    """CPU seconds of this process since it was made, but for what ran within `stopped`."""

    def __init__(self) -> None:
        self._start = time.process_time()

    def seconds(self) -> float:
        return time.process_time() - self._start

    def stopped(self, function, *args):
        """The function's result."""
        start = time.process_time()
        result = function(*args)
        self._start += time.process_time() - start
        return result


def run_evo(name: str, seed: int, seconds: float, overrides: tuple[str, ...]) -> dict[str, Any]:
    """Test NMSE, time to exact and evaluations of a run."""
    from evo.config import load_config
    from evo.report.pareto import front_of
    from evo.report.recompute import report_facts
    from evo.run.loaded_task import load_problem
    from evo.run.search import Search

    def choose() -> dict[str, float]:
        """Facts of `report_facts` on the elite that reports take."""
        front = front_of(SimpleNamespace(search=search, backend=problem.backend))
        words = search.elites().solution[front.rows[[front.default]]]
        return {name: float(values[0]) for name, values in report_facts(problem, words).items()}

    def is_exact() -> bool:
        return choose()["test_nmse"] < EXACT

    options = (f"task_options.dataset={name}", f"task_options.split_seed={seed}", f"seed={seed}", "evaluation.threads=1")
    problem = load_problem(load_config(CONFIG, (*options, "stop.seconds=1e6", *overrides)))
    clock = Clock()
    search = Search(problem)
    exact_s = None
    for generation in search.generations():
        now = clock.seconds()
        if exact_s is None and generation.best_objective > -np.log10(CLOSE) and clock.stopped(is_exact):
            exact_s = now
        if now >= seconds:
            break
    search.tidy()
    found = {"test_nmse": choose()["test_nmse"], "exact_s": exact_s, "evaluations": search.counters.evaluations}
    found["train_digits"] = search.archive.best_objective
    problem.close()
    return found


def sample_of(name: str, seed: int):
    """The training and test points of a set."""
    from evo.tasks.folder import load_task

    task = load_task(REPOSITORY / "tasks" / "symbolic_regression", {"dataset": name, "split_seed": seed})
    return sys.modules[type(task).__module__.replace(".task", ".datasets")].sample(name, seed)


def run_operon(
    name: str, seed: int, seconds: float, overrides: tuple[str, ...], *, iterations: int = OPERON_ITERATIONS
) -> dict[str, Any]:
    """As `run_evo`; `overrides` are for evo."""
    from pyoperon import sklearn as pyoperon

    op = pyoperon.op
    found = sample_of(name, seed)
    x, x_test = (np.column_stack(list(points.values())) for points in (found.train, found.test))
    train, test = (op.Dataset(np.asfortranarray(points)) for points in (x, x_test))
    table = op.DispatchTable()
    seen = {"fitness": np.inf, "exact_s": None}

    def test_nmse_of(tree) -> float:
        fitted, predicted = (op.Evaluate(table, tree, data, op.Range(0, data.Rows)).ravel() for data in (train, test))
        scale, offset = op.FitLeastSquares(fitted, found.train_target)
        return nmse(scale * predicted + offset, found.test_target)

    class Watched(op.GeneticProgrammingAlgorithm):
        """Looks at the best model after each generation."""

        def Run(self, rng, callback, *rest):  # noqa: N802 - pyoperon's name
            return super().Run(rng, self.look, *rest)

        def look(self):
            now, fitness = clock.seconds(), self.BestModel.GetFitness(0)
            if seen["exact_s"] is None and fitness < min(seen["fitness"], CLOSE - 1.0):  # the objective is -R2
                seen["fitness"] = fitness
                if clock.stopped(test_nmse_of, self.BestModel.Genotype) < EXACT:
                    seen["exact_s"] = now

    model = pyoperon.SymbolicRegressor(
        allowed_symbols=OPERON_SYMBOLS,
        optimizer_iterations=iterations,
        max_time=max(1, round(seconds)),
        generations=10**6,
        max_evaluations=10**9,
        n_threads=1,
        random_state=seed,
    )
    original, op.GeneticProgrammingAlgorithm = op.GeneticProgrammingAlgorithm, Watched
    clock = Clock()
    try:
        model.fit(x, found.train_target)
    finally:
        op.GeneticProgrammingAlgorithm = original
    error = nmse(model.predict(x_test), found.test_target)
    return {"test_nmse": error, "exact_s": seen["exact_s"], "evaluations": model.stats_["evaluation_count"]}


def nmse(predicted, target) -> float:
    """Mean square of the error over the target's variance; infinite where a prediction is not finite."""
    with np.errstate(all="ignore"):
        error = np.mean((predicted - target) ** 2) / target.var()
    return float(error) if np.isfinite(error) else float("inf")


def run_gplearn(name: str, seed: int, seconds: float, overrides: tuple[str, ...]) -> dict[str, Any]:
    """As `run_evo`; `overrides` are for evo."""
    from gplearn.genetic import SymbolicRegressor

    found = sample_of(name, seed)
    x, x_test = (np.column_stack(list(points.values())) for points in (found.train, found.test))
    model = SymbolicRegressor(function_set=GPLEARN_FUNCTIONS, generations=0, warm_start=True, random_state=seed)
    clock = Clock()
    error, exact_s = np.inf, None
    while (now := clock.seconds()) < seconds and exact_s is None:
        model.generations += 1
        model.fit(x, found.train_target)
        error = clock.stopped(lambda: nmse(model.predict(x_test), found.test_target))
        exact_s = now if error < EXACT else None
    return {"test_nmse": error, "exact_s": exact_s, "evaluations": model.generations * model.population_size}


SYSTEMS = {
    "evo": run_evo,
    "operon": run_operon,
    "operon-untuned": functools.partial(run_operon, iterations=0),
    "gplearn": run_gplearn,
}


def measure(sets, systems, seeds, seconds: float, overrides=(), core: int | None = None):
    """Yields a run after the other: set, seed, system, test_nmse, exact_s (None: never), evaluations."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0)) if core is None else core})
    for system in systems:  # imports, and whatever is done once
        SYSTEMS[system](sets[0], 0, 0.5, overrides)
    for seed in seeds:
        for name in sets:
            for system in systems:
                yield {"set": name, "seed": seed, "system": system, **SYSTEMS[system](name, seed, seconds, overrides)}


def installed() -> list[str]:
    """The systems that can be measured here."""
    return ["evo", *(["operon"] if find_spec("pyoperon") else [])]


def table(runs: list[dict[str, Any]]) -> str:
    """The runs as two tables in markdown: a row for each set, and totals."""
    systems = [system for system in SYSTEMS if any(run["system"] == system for run in runs)]
    names = [name for name in SETS if any(run["set"] == name for run in runs)]
    by_set = {(s, n): [run for run in runs if (run["system"], run["set"]) == (s, n)] for s in systems for n in names}
    lines = ["| set | " + " | ".join(f"{s}: exact | median test NMSE | median s to exact" for s in systems) + " |"]
    lines += ["|---|" + "---|---|---|" * len(systems)]
    for name in names:
        cells = []
        for system in systems:
            group = by_set[system, name]
            nmse, exact_s = median_nmse(group), median_exact_s(group)
            cells += [f"{num_exact(group)} of {len(group)}", f"{nmse:.1e}", "" if exact_s == np.inf else f"{exact_s:.2f}"]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    lines += ["", "| all sets | " + " | ".join(systems) + " |", "|---|" + "---|" * len(systems)]
    of_system = {s: [run for run in runs if run["system"] == s] for s in systems}
    totals = {
        "exact runs": lambda s: f"{num_exact(of_system[s])} of {len(of_system[s])}",
        f"test NMSE above {ABSURD:g}": lambda s: str(sum(not run["test_nmse"] <= ABSURD for run in of_system[s])),
    }
    if len(systems) == 2:
        both = [name for name in names if all(median_exact_s(by_set[s, name]) < np.inf for s in systems)]
        faster = {s: sum(is_least(median_exact_s, by_set, s, name) for name in both) for s in systems}
        totals[f"sooner exact, of {len(both)} sets that both solve in most runs"] = lambda s: str(faster[s])
        for name in (name for name in HARD if name in names):
            first, second = (median_nmse(by_set[s, name]) for s in systems)
            totals[f"{name}: median test NMSE"] = dict(
                zip(systems, (f"{first:.1e}, {first / second:.2g}x", f"{second:.1e}"), strict=True)
            ).get
    lines += [f"| {what} | " + " | ".join(cell(s) for s in systems) + " |" for what, cell in totals.items()]
    return "\n".join(lines)


def num_exact(runs) -> int:
    """The number of exact runs."""
    return sum(run["test_nmse"] < EXACT for run in runs)


def median_nmse(runs) -> float:
    """The median test NMSE."""
    return float(np.median([run["test_nmse"] for run in runs]))


def median_exact_s(runs) -> float:
    """The median time to exact over all runs; infinite unless most of them are exact, and still so at their end."""
    return float(np.median([run["exact_s"] if run["exact_s"] and run["test_nmse"] < EXACT else np.inf for run in runs]))


def is_least(of, by_set, system, name) -> bool:
    """Return whether no other system has a lower number for this set."""
    return of(by_set[system, name]) == min(of(group) for (_, set_name), group in by_set.items() if set_name == name)


def machine() -> str:
    """Versions and machine of the runs, in a line."""
    cpu = [line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line]
    others = "".join(f", {name} {version(name)}" for name in ("pyoperon", "gplearn") if find_spec(name))
    return f"One core of {cpu[0] if cpu else 'this machine'}, Python {sys.version.split()[0]}, evo {__version__}{others}."


def rows():
    """Rows of the table of run.py: few seeds and sets, since twelve sets of ten seeds take 40 minutes."""
    runs = list(measure(("Koza-1", "Pagie-1"), installed(), (1, 2), 5.0))
    for name, system in dict.fromkeys((run["set"], run["system"]) for run in runs):
        group = [run for run in runs if (run["set"], run["system"]) == (name, system)]
        what = f"{name}, {system}, 5 CPU s: exact runs; median test NMSE"
        yield what, f"{num_exact(group)}/{len(group)}; {median_nmse(group):.2g}", "", ""


def numbers(text: str) -> list[int]:
    """The seeds of `3`, `1-10` or `1,5`."""
    first, dash, last = text.partition("-")
    return list(range(int(first), int(last) + 1)) if dash else [int(part) for part in text.split(",")]


def main() -> None:
    """Makes runs, or reads some, and prints their table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seeds", type=numbers, default="1-3", help="such as 1-10")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--systems", default=",".join(installed()))
    parser.add_argument("--core", type=int, help="of the processor; default: the first that may be used")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override a key of evo's config")
    parser.add_argument("--runs", type=Path, metavar="FILE", help="append each run as a line of JSON")
    parser.add_argument("--table", type=Path, nargs="+", metavar="FILE", help="make no runs; read these")
    args = parser.parse_args()
    if args.table:
        runs = [json.loads(line) for path in args.table for line in path.read_text().splitlines()]
    else:
        runs = []
        given = (args.sets.split(","), args.systems.split(","), args.seeds, args.seconds, tuple(args.set), args.core)
        for run in measure(*given):
            runs.append(run)
            print(json.dumps(run), file=sys.stderr, flush=True)
            if args.runs:
                with args.runs.open("a") as file:
                    file.write(json.dumps(run) + "\n")
    print(f"{machine()} {args.seconds:g} CPU seconds a run.\n\n{table(runs)}")


if __name__ == "__main__":
    main()
