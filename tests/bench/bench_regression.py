"""Symbolic regression on the twelve sets: exact runs, and median test NMSE, beside pyoperon where it is installed.

    python tests/bench/bench_regression.py [--seconds 10] [--seeds 3] [--sets Koza-1,Pagie-1]
                                           [--systems evo,operon] [--set search.tuning.share=0.1]

A run takes this many CPU seconds on one core; systems take turns. A run is exact if its test NMSE is below 1e-6. evo predicts
with its most accurate elite on the training points, the simplest of equals. pyoperon tunes constants with Levenberg-Marquardt and
stops after the seconds given, which it measures itself.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np

REPOSITORY = Path(__file__).parents[2]
CONFIG = REPOSITORY / "configs" / "symbolic_regression.yaml"
SETS = (
    *("Koza-1", "Koza-3", "Nguyen-5", "Nguyen-7", "Nguyen-10", "Keijzer-4"),
    *("Keijzer-6", "Keijzer-12", "Korns-12", "Pagie-1", "Vladislavleva-4", "Poly-10"),
)
EXACT = 1e-6
ABSURD = 10.0
OPERON_SYMBOLS = "add,sub,mul,div,sin,cos,exp,log,sqrt,constant,variable"
OPERON_ITERATIONS = 5  # of Levenberg-Marquardt for each offspring


def run_evo(name: str, seed: int, seconds: float, overrides: tuple[str, ...]) -> float:
    """The test NMSE of a run."""
    from evo.config import load_config
    from evo.report.front import report_facts
    from evo.run.problem import load_problem
    from evo.run.search import Search

    options = (f"task_options.dataset={name}", f"task_options.split_seed={seed}", f"seed={seed}", "evaluation.threads=1")
    search = Search(load_problem(load_config(CONFIG, (*options, "stop.seconds=1e6", *overrides))))
    start = time.process_time()
    for _ in search.generations():
        if time.process_time() - start >= seconds:
            break
    elites = search.elites()
    best = int(np.argmax(elites.objective))
    error = report_facts(search.problem, elites.solution[best : best + 1])["test_nmse"][0]
    search.problem.close()
    return float(error)


def run_operon(name: str, seed: int, seconds: float, overrides: tuple[str, ...]) -> float:
    """The test NMSE of a run; `overrides` are for evo."""
    from pyoperon.sklearn import SymbolicRegressor

    from evo.task import load_task

    task = load_task(REPOSITORY / "tasks" / "symbolic_regression", {"dataset": name, "split_seed": seed})
    found = sys.modules[type(task).__module__.replace(".task", ".datasets")].sample(name, seed)
    x, x_test = (np.column_stack(list(points.values())) for points in (found.train, found.test))
    model = SymbolicRegressor(
        allowed_symbols=OPERON_SYMBOLS,
        optimizer_iterations=OPERON_ITERATIONS,
        max_time=max(1, round(seconds)),
        generations=10**6,
        max_evaluations=10**9,
        n_threads=1,
        random_state=seed,
    )
    model.fit(x, found.train_target)
    error = np.mean((model.predict(x_test) - found.test_target) ** 2) / found.test_target.var()
    return float(error) if np.isfinite(error) else float("inf")


SYSTEMS = {"evo": run_evo, "operon": run_operon}


def measure(sets, systems, num_seeds: int, seconds: float, overrides=()) -> dict[str, dict[str, list[float]]]:
    """System -> set -> the test NMSE of each seed."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    errors = {system: {name: [] for name in sets} for system in systems}
    for name in sets:
        for seed in range(1, num_seeds + 1):
            for system in systems:
                errors[system][name].append(SYSTEMS[system](name, seed, seconds, overrides))
    return errors


def installed() -> list[str]:
    """The systems that can be measured here."""
    return ["evo", *(["operon"] if find_spec("pyoperon") else [])]


def rows():
    """Rows of the table: few seeds and sets, since twelve sets of ten seeds take 40 minutes."""
    for system, by_set in measure(("Koza-1", "Pagie-1"), installed(), 2, 5.0).items():
        for name, errors in by_set.items():
            exact = sum(error < EXACT for error in errors)
            yield (
                f"{name}, {system}, 5 CPU s: exact runs; median test NMSE",
                f"{exact}/{len(errors)}; {np.median(errors):.2g}",
                "",
                "",
            )


def main() -> None:
    """Prints a row for each set, and totals."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--systems", default=",".join(installed()))
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override a key of evo's config")
    args = parser.parse_args()
    sets, systems = args.sets.split(","), args.systems.split(",")
    errors = measure(sets, systems, args.seeds, args.seconds, tuple(args.set))
    print("| set | " + " | ".join(f"{system}: exact, median test NMSE" for system in systems) + " |")
    print("|---|" + "---|" * len(systems))
    for name in sets:
        cells = [f"{sum(e < EXACT for e in errors[s][name])}/{args.seeds}, {np.median(errors[s][name]):.2g}" for s in systems]
        print(f"| {name} | " + " | ".join(cells) + " |")
    everything = {system: [e for name in sets for e in errors[system][name]] for system in systems}
    cells = [
        f"{sum(e < EXACT for e in all_)}/{len(all_)}, {sum(e > ABSURD for e in all_)} absurd" for all_ in everything.values()
    ]
    print("| all | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
