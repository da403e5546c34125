"""Laws of which half is known: those of `bench_laws` with a template, beside the same search without one.

    python tests/bench/run.py templates
    python tests/bench/bench_templates.py [--evaluations 400000] [--seeds 1-2] [--laws I.12.2] [--without]

The latter writes a line for each search. A law is exact as there: R² above 1 - 1e-9 on rows that were left out. Templates give
about half of each law's structure: what is multiplied with or added to what, a square root around it, or that a function occurs
twice.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import pandas as pd
from bench_laws import Law, laws, nmse, rows_of

from evo import SymbolicRegressor

TEMPLATES = {
    "I.6.2b": "f(sigma)*g(theta - theta1, sigma)",
    "I.8.14": "sqrt(f(x1, x2) + f(y1, y2))",
    "I.9.18": "f(G, m1, m2)/(g(x1, x2) + g(y1, y2) + g(z1, z2))",
    "I.10.7": "m0*f(v, c)",
    "I.12.11": "f(q, Ef) + g(q, B, v)*h(theta)",
    "I.13.12": "f(G, m1, m2)*(g(r2_in) - g(r1_in))",
    "I.15.3x": "f(x, u, t)*g(u, c)",
    "I.15.10": "f(m0, v)*g(v, c)",
    "I.16.6": "f(u, v)/(1 + g(u, v, c))",
    "I.24.6": "f(m, x)*(g(omega) + g(omega0))",
    "I.29.16": "sqrt(f(x1) + f(x2) + g(x1, x2)*h(theta1 - theta2))",
    "I.32.17": "f(epsilon, c, Ef)*g(r)*h(w, w0)",
    "I.37.4": "I1 + I2 + f(I1*I2)*g(delta)",
    "I.40.1": "n0*f(m, g, x, kb*T)",
    "I.44.4": "f(n, kb, T)*(g(V2) - g(V1))",
    "I.50.26": "x1*(f(omega*t) + alpha*g(omega*t))",
    "II.6.15a": "f(p_d, epsilon)*g(z, r)*h(x, y)",
    "II.11.28": "1 + f(n*alpha)",
    "III.9.52": "f(p_d, Ef, t, h)*g((w - w0)*t)",
    "III.10.19": "mom*sqrt(f(Bx) + f(By) + f(Bz))",
}
EVALUATIONS, EXACT = 400_000, 1e-9


def found(law: Law, template: str | None, evaluations: int, seed: int) -> tuple[float, SymbolicRegressor]:
    """The NMSE on new rows, and the model."""
    rows = rows_of(law, seed, 0.0)
    model = SymbolicRegressor(max_time=None, max_evaluations=evaluations, random_state=seed, template=template)
    columns = [*law.ranges]
    model.fit(pd.DataFrame(rows.x, columns=columns), rows.y)
    return nmse(model.predict(pd.DataFrame(rows.x_test, columns=columns)), rows.y_test), model


def rows() -> Iterator[tuple[str, str, str, str]]:
    """(what, measured, at least, aim)."""
    known = laws()
    exact = sum(found(known[name], template, EVALUATIONS, 1)[0] < EXACT for name, template in TEMPLATES.items())
    yield f"laws with half their structure given, exact in {EVALUATIONS:,} evaluations", f"{exact} of 20", "15", "19"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--evaluations", type=int, default=EVALUATIONS)
    parser.add_argument("--seeds", default="1")
    parser.add_argument("--laws", default=",".join(TEMPLATES))
    parser.add_argument("--without", action="store_true", help="search without the templates")
    options = parser.parse_args()
    first, _, last = options.seeds.partition("-")
    exact = 0
    for seed in range(int(first), int(last or first) + 1):
        for name in options.laws.split(","):
            start = time.process_time()
            template = None if options.without else TEMPLATES[name]
            error, model = found(laws()[name], template, options.evaluations, seed)
            exact += error < EXACT
            facts = f"{model.n_evaluations_} evaluations, {time.process_time() - start:.1f} s"
            print(
                f"{name} {seed}: {error:.1e} {facts}: {model.get_best().get('functions', model.get_best().equation)}", flush=True
            )
    print(f"{exact} exact")


if __name__ == "__main__":
    main()
