"""Laws of motion that are found exactly from noisy trajectories, beside PySINDy where it is installed.

    python tests/bench/run.py dynamics
    python tests/bench/bench_dynamics.py [--systems evo,sindy] [--seconds 0] [--seeds 1-2] [--noise 0.01] [--laws Lorenz]

A line of JSON for each fit. It is exact if each law has all terms of the system and no other, and each number is within 1 %.
Noise is normal, a share of each state's deviation. `seconds`: of searches for formulas; 0: polynomials alone. PySINDy (2.1) gets
evo's smooth courses and their slopes, polynomials of degree 3 and each of four thresholds; if one finds the system, that counts.
It runs in an environment of its own, with this repository on PYTHONPATH.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from evo.dynamics.records import Record
from evo.dynamics.terms import Law, Term, evaluate, numbers_of, with_numbers

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from law_texts import law_of

THRESHOLDS = (0.01, 0.03, 0.1, 0.3)  # of PySINDy's coefficients
CLOSE = 0.01
ENDS = 0.02
NUM_SAMPLES = 1001


class System(NamedTuple):
    """laws: of states x0, x1, ... and the input u0 = 0.3 cos(1.2 t). seconds: of the trajectory."""

    laws: list[str]
    start: list[float]
    seconds: float


SYSTEMS = {
    "Lorenz": System(["-10*x0 + 10*x1", "28*x0 - x0*x2 - x1", "x0*x1 - 8/3*x2"], [-8, 8, 27], 10),
    "Lotka-Volterra": System(["1.1*x0 - 0.4*x0*x1", "0.1*x0*x1 - 0.4*x1"], [10, 5], 40),
    "van der Pol": System(["x1", "2*x1 - 2*x0**2*x1 - x0"], [1, 0], 20),
    "double pendulum": System(["x2", "x3", "9.81*x1 - 19.62*x0", "19.62*x0 - 19.62*x1"], [0.1, -0.05, 0, 0], 10),
    "damped oscillator": System(["x1", "-x0 - 0.2*x1"], [2, 0], 20),
    "SIR": System(["-0.5*x0*x1", "0.5*x0*x1 - 0.1*x1", "0.1*x1"], [0.99, 0.01, 0], 60),
    "FitzHugh-Nagumo": System(["0.5 + x0 - x0**3/3 - x1", "0.056 + 0.08*x0 - 0.064*x1"], [-1, 1], 100),
    "Duffing": System(["x1", "x0 - x0**3 - 0.2*x1 + u0"], [1, 0], 60),
    "Brusselator": System(["1 + x0**2*x1 - 4*x0", "3*x0 - x0**2*x1"], [1, 1], 20),
    "Roessler": System(["-x1 - x2", "x0 + 0.2*x1", "0.2 + x0*x2 - 5.7*x2"], [0, -6.8, 0], 50),
    "pendulum": System(["x1", "-9.81*sin(x0) - 0.3*x1"], [2.8, 0], 12),
    "chemostat": System(["0.3*(5 - x0) - 2*x0*x1/(1.5 + x0)", "0.8*x0*x1/(1.5 + x0) - 0.3*x1"], [1, 0.1], 40),
    "Holling III": System(["x0 - 0.2*x0**2 - x0**2*x1/(1 + x0**2)", "0.6*x0**2*x1/(1 + x0**2) - 0.3*x1"], [1, 1], 60),
    "Rosenzweig-MacArthur": System(["x0 - 0.25*x0**2 - 1.5*x0*x1/(1 + x0)", "1.2*x0*x1/(1 + x0) - 0.5*x1"], [1, 1], 60),
}


def names_of(system: System) -> list[str]:
    return [f"x{state}" for state in range(len(system.laws))] + ["u0"] * any("u0" in law for law in system.laws)


def trajectory(system: System, noise: float, seed: int) -> Record:
    """With noise."""
    laws = [law_of(law, names_of(system)) for law in system.laws]
    has_input = len(names_of(system)) > len(laws)

    def force(t: Any) -> Any:
        return 0.3 * np.cos(1.2 * t)

    def slope(t: float, x: NDArray[np.float64]) -> list[float]:
        columns = np.array([*x, *[force(t)] * has_input])[:, None]
        return [float(evaluate(law, columns)[0]) for law in laws]

    times = np.linspace(0.0, system.seconds, NUM_SAMPLES)
    states = solve_ivp(slope, (0.0, system.seconds), system.start, t_eval=times, rtol=1e-10, atol=1e-12).y.T
    states += noise * states.std(axis=0) * np.random.default_rng(seed).normal(size=states.shape)
    inputs = force(times)[:, None] if has_input else np.zeros((NUM_SAMPLES, 0))
    return Record(times, states, inputs, np.zeros(inputs.shape[1], bool))


def is_exact(found: Law, true: Law) -> bool:
    """Return whether the laws have the same terms, and all their numbers are close."""
    numbers, wanted = ({_form(term): numbers_of(((number, term),)) for number, term in law} for law in (found, true))
    return numbers.keys() == wanted.keys() and all(
        np.allclose(numbers[form], wanted[form], rtol=CLOSE, atol=0.0) for form in wanted
    )


def _form(term: Term) -> Law:
    """A term without its numbers."""
    law = ((1.0, term),)
    return with_numbers(law, [1.0] * len(numbers_of(law)))


def by_evo(record: Record, names: list[str], seconds: float, seed: int) -> list[list[str]]:
    import evo

    inputs = record.inputs if record.inputs.shape[1] else None
    model = evo.SymbolicDynamics(max_time=seconds, random_state=seed).fit(record.times, record.states, inputs)
    return [[line.split(" = ")[1] for line in model.equations()]]


def by_sindy(record: Record, names: list[str], seconds: float, seed: int) -> list[list[str]]:
    import pysindy

    first = round(ENDS * len(record.times))
    times = record.times[first:-first]
    columns, slopes = record.columns(times), record.slopes(times)
    num_states, found = len(slopes), []
    inputs = {"u": columns[num_states:].T} if len(columns) > num_states else {}
    for threshold in THRESHOLDS:
        library = pysindy.PolynomialLibrary(degree=3)
        model = pysindy.SINDy(optimizer=pysindy.STLSQ(threshold=threshold), feature_library=library)
        model.fit(columns[:num_states].T, times, x_dot=slopes.T, feature_names=names, **inputs)
        texts = [text.replace("^", "**").replace(" ", "*") for text in model.get_feature_names()]
        laws = [
            [f"{number!r}*{text}" for number, text in zip(row.tolist(), texts, strict=True) if number]
            for row in model.coefficients()
        ]
        found.append([" + ".join(law) or "0" for law in laws])
    return found


def fitted(fitter: str, name: str, seconds: float, noise: float, seed: int) -> dict[str, Any]:
    """The results of a line of JSON."""
    system = SYSTEMS[name]
    names = names_of(system)
    true = [law_of(law, names) for law in system.laws]
    record = trajectory(system, noise, seed)
    start_s = time.process_time()
    tried = {"evo": by_evo, "sindy": by_sindy}[fitter](record, names, seconds, seed)
    row: dict[str, Any] = {"system": fitter, "law": name, "seed": seed, "noise": noise}
    row["cpu_s"] = round(time.process_time() - start_s, 2)
    row["exact"] = any(all(is_exact(law_of(text, names), law) for text, law in zip(texts, true, strict=True)) for texts in tried)
    return row | {"found": tried[0]}


def rows() -> Iterator[tuple[str, str, str, str]]:
    """For tests/bench/run.py."""
    exact = [fitted("evo", name, 0.0, 0.01, 1)["exact"] for name in list(SYSTEMS)[:10]]
    yield "systems of 10 found exactly, noise 1 %, polynomials alone", str(sum(exact)), "6", "9"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--systems", default="evo")
    parser.add_argument("--laws", default=",".join(list(SYSTEMS)[:10]))
    parser.add_argument("--seconds", type=float, default=0.0)
    parser.add_argument("--seeds", default="1-1")
    parser.add_argument("--noise", type=float, default=0.01)
    given = parser.parse_args()
    first, last = map(int, given.seeds.split("-"))
    for name in given.laws.split(","):
        for seed in range(first, last + 1):
            for fitter in given.systems.split(","):
                print(json.dumps(fitted(fitter, name, given.seconds, given.noise, seed)), flush=True)


if __name__ == "__main__":
    main()
