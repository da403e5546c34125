"""Laws of motion from noisy recordings of four systems, beside the true ones.

    python docs/examples/dynamics/laws.py [noise]

Each is recorded at 600 times, with normal noise: a share of each state's deviation, 0.01 if not given.
"""

import sys

import numpy as np
from scipy.integrate import solve_ivp

import evo

SYSTEMS = {  # slopes, where it begins, and seconds
    "Lorenz": ("-10*x0 + 10*x1", "28*x0 - x1 - x0*x2", "-8/3*x2 + x0*x1", [-8, 8, 27], 8),
    "Lotka-Volterra": ("1.1*x0 - 0.4*x0*x1", "-0.4*x1 + 0.1*x0*x1", [10, 5], 30),
    "van der Pol": ("x1", "-x0 + 2*x1 - 2*x0**2*x1", [1, 0], 20),
    "double pendulum, small angles": ("x2", "x3", "-19.62*x0 + 9.81*x1", "19.62*x0 - 19.62*x1", [0.1, -0.05, 0, 0], 10),
}


def recorded(laws: list[str], start: list[float], seconds: float, noise: float) -> tuple[np.ndarray, np.ndarray]:
    code = compile(f"[{', '.join(laws)}]", "laws", "eval")
    times = np.linspace(0.0, seconds, 600)
    states = solve_ivp(
        lambda _, x: eval(code, {f"x{place}": value for place, value in enumerate(x)}),
        (0.0, seconds),
        start,
        t_eval=times,
        rtol=1e-10,
        atol=1e-12,
    ).y.T
    return times, states + noise * states.std(axis=0) * np.random.default_rng(1).normal(size=states.shape)


def main() -> None:
    noise = float(sys.argv[1]) if len(sys.argv) > 1 else 0.01
    for name, (*laws, start, seconds) in SYSTEMS.items():
        model = evo.SymbolicDynamics(max_time=0)  # polynomials alone; with seconds, it searches for functions too
        model.fit(*recorded(laws, start, seconds, noise))
        print(name)
        for found, law in zip(model.equations(), laws, strict=True):
            print(f"    {found:40} true: {law}")


if __name__ == "__main__":
    main()
