"""Laws that are found with units and without, of the equations of Feynman in bench_laws.py.

    python tests/bench/bench_units.py [--evaluations 20000] [--seeds 1-1] [--constants]      a line for each law, and the counts

The laws are those with dimensions that are no plain product of powers, which are found at once either way. Both searches have the
same number of evaluations. A law is found as in bench_laws.py. --constants: they have no unit (`dimensionless_constants_only`).
"""

from __future__ import annotations

import argparse
import time

import pandas as pd
from bench_laws import EXACT, laws, nmse, rows_of

from evo import SymbolicRegressor

# Name of a law; the unit of its target; those of its inputs, in their order.
_UNITS = """
I.6.2; 1/m; m, m
I.6.2b; 1/m; m, m, m
I.8.14; m; m, m, m, m
I.9.18; N; kg, kg, N*m^2/kg^2, m, m, m, m, m, m
I.10.7; kg; kg, m/s, m/s
I.11.19; J; N, N, N, m, m, m
I.12.11; N; C, V/m, T, m/s, 1
I.13.4; J; kg, m/s, m/s, m/s
I.13.12; J; kg, kg, m, m, N*m^2/kg^2
I.15.3x; m; m, m/s, m/s, s
I.15.3t; s; m, m/s, m/s, s
I.15.10; kg*m/s; kg, m/s, m/s
I.16.6; m/s; m/s, m/s, m/s
I.18.4; m; kg, m, kg, m
I.24.6; J; kg, 1/s, 1/s, m
I.27.6; m; m, m, 1
I.29.16; m; m, m, 1, 1
I.30.3; W/m^2; W/m^2, 1, 1
I.32.17; W; F/m, m/s, V/m, m, 1/s, 1/s
I.34.1; 1/s; m/s, m/s, 1/s
I.34.14; 1/s; m/s, m/s, 1/s
I.37.4; W/m^2; W/m^2, W/m^2, 1
I.40.1; 1/m^3; 1/m^3, kg, m, K, m/s^2, J/K
I.41.16; J/m^2; 1/s, K, J*s, J/K, m/s
I.44.4; J; 1, J/K, K, m^3, m^3
I.48.2; J; kg, m/s, m/s
I.50.26; m; m, 1/s, s, 1
II.2.42; W; W/m/K, K, K, m^2, m
II.6.15a; V/m; F/m, C*m, m, m, m, m
II.11.3; m; C, V/m, kg, 1/s, 1/s
II.11.17; 1/m^3; 1/m^3, J/K, K, 1, C*m, V/m
II.13.23; C/m^3; C/m^3, m/s, m/s
II.13.34; A/m^2; C/m^3, m/s, m/s
II.21.32; V; C, F/m, m, m/s, m/s
II.24.17; 1/m; 1/s, m/s, m
II.35.18; 1/m^3; 1/m^3, J/K, K, J/T, T
II.35.21; A/m; 1/m^3, J/T, T, J/K, K
II.36.38; 1; J/T, T, J/K, K, 1, F/m, m/s, A/m
III.4.32; 1; J*s, 1/s, J/K, K
III.4.33; J; J*s, 1/s, J/K, K
III.8.54; 1; J, s, J*s
III.9.52; 1; C*m, V/m, s, J*s, 1/s, 1/s
III.10.19; J; J/T, T, T, T
III.14.14; A; A, C, V, J/K, K
III.15.12; J; J, 1/m, m
"""


def units() -> dict[str, tuple[str, list[str]]]:
    """The unit of the target, and of each input, by the law's name."""
    lines = (line.split("; ") for line in _UNITS.strip().splitlines())
    return {name: (target, inputs.split(", ")) for name, target, inputs in lines}


def main() -> None:
    """Searches with units and without."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--evaluations", type=int, default=20_000)
    parser.add_argument("--seeds", default="1-1")
    parser.add_argument("--laws", default="")
    parser.add_argument("--constants", action="store_true")
    options = parser.parse_args()
    first, _, last = options.seeds.partition("-")
    found, seconds = [0, 0], [0.0, 0.0]
    for seed in range(int(first), int(last or first) + 1):
        for name, (target, each) in units().items():
            if options.laws and name not in options.laws.split(","):
                continue
            law = laws()[name]
            rows, line = rows_of(law, seed, 0.0), [f"{seed} {name:9}"]
            x, x_test = (pd.DataFrame(columns, columns=[*law.ranges]) for columns in (rows.x, rows.x_test))
            given = {"units": dict(zip(law.ranges, each, strict=True)), "y_units": target}
            for place, parameters in enumerate(({}, given | {"dimensionless_constants_only": options.constants})):
                model = SymbolicRegressor(
                    max_time=None, max_evaluations=options.evaluations, random_state=seed, n_jobs=1, **parameters
                )
                start = time.process_time()
                error = nmse(model.fit(x, rows.y).predict(x_test), rows.y_test)
                found[place] += error < EXACT
                seconds[place] += time.process_time() - start
                line.append(f"{error:.0e} ({model.get_best().complexity:g})")
            print(" | ".join(line), flush=True)
    print(
        f"found without units {found[0]} in {seconds[0]:.0f} s, with {found[1]} in {seconds[1]:.0f} s: {found[1] / found[0]:.2f}x"
    )


if __name__ == "__main__":
    main()
