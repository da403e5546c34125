"""Laws whose formulas are known, the ground truth of SRBench: which of them the guard of regression accepts, and which are found,
beside pyoperon where it is installed.

    python tests/bench/run.py laws                                                        the share that the guard accepts
    python tests/bench/bench_laws.py [--systems evo,operon,operon-front] [--noise 0] [--seconds 10] [--seeds 1-2] [--laws I.12.2]
                                     [--runs FILE]                                        a line of JSON for each search
    python tests/bench/bench_laws.py --table FILE ...                                     their table

Feynman: Udrescu and Tegmark, "AI Feynman", Science Advances 6 (2020): 100 equations, 1,000 rows drawn evenly from their ranges.
Strogatz: the seven systems of two equations of La Cava et al., "Inference of compact nonlinear dynamic models by epigenetic local
search" (2016), along four trajectories of 100 rows each; the target is a derivative. Noise is normal, a share of the target's
deviation, and is in the training rows alone; a quarter of the rows is left out.

A law is found if the R² of what a system predicts by default is above 1 - 1e-9 on the rows that were left out, and equal if SymPy
says so of its text after La Cava et al., "Contemporary symbolic regression methods" (2021): the difference from the law or the
ratio to it simplifies to a constant. evo is `SymbolicRegressor`, operon its regressor with five iterations of
Levenberg-Marquardt for each offspring, `operon-front` with length as its second objective, and the choice by description length,
which is told the noise. Time is that of a process on one core; pyoperon measures its own by the wall and is stopped once a law is
found. Longer than most modules: a third is the laws.
"""

from __future__ import annotations

import argparse
import functools
import json
import multiprocessing
import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evo import RegressionTask, SymbolicRegressor
from evo.tasks.sums import Regression

# Name; formula; ranges of its inputs.
_FEYNMAN = """
I.6.2a; exp(-theta**2/2)/sqrt(2*pi); theta 1 3
I.6.2; exp(-(theta/sigma)**2/2)/(sqrt(2*pi)*sigma); sigma 1 3, theta 1 3
I.6.2b; exp(-((theta-theta1)/sigma)**2/2)/(sqrt(2*pi)*sigma); sigma 1 3, theta 1 3, theta1 1 3
I.8.14; sqrt((x2-x1)**2+(y2-y1)**2); x1 1 5, x2 1 5, y1 1 5, y2 1 5
I.9.18; G*m1*m2/((x2-x1)**2+(y2-y1)**2+(z2-z1)**2); m1 1 2, m2 1 2, G 1 2, x1 3 4, x2 1 2, y1 3 4, y2 1 2, z1 3 4, z2 1 2
I.10.7; m0/sqrt(1-v**2/c**2); m0 1 5, v 1 2, c 3 10
I.11.19; x1*y1+x2*y2+x3*y3; x1 1 5, x2 1 5, x3 1 5, y1 1 5, y2 1 5, y3 1 5
I.12.1; mu*Nn; mu 1 5, Nn 1 5
I.12.2; q1*q2/(4*pi*epsilon*r**2); q1 1 5, q2 1 5, epsilon 1 5, r 1 5
I.12.4; q1/(4*pi*epsilon*r**2); q1 1 5, epsilon 1 5, r 1 5
I.12.5; q2*Ef; q2 1 5, Ef 1 5
I.12.11; q*(Ef+B*v*sin(theta)); q 1 5, Ef 1 5, B 1 5, v 1 5, theta 1 5
I.13.4; m*(v**2+u**2+w**2)/2; m 1 5, v 1 5, u 1 5, w 1 5
I.13.12; G*m1*m2*(1/r2-1/r1); m1 1 5, m2 1 5, r1 1 5, r2 1 5, G 1 5
I.14.3; m*g*z; m 1 5, g 1 5, z 1 5
I.14.4; k_spring*x**2/2; k_spring 1 5, x 1 5
I.15.3x; (x-u*t)/sqrt(1-u**2/c**2); x 5 10, u 1 2, c 3 20, t 1 2
I.15.3t; (t-u*x/c**2)/sqrt(1-u**2/c**2); x 1 5, c 3 10, u 1 2, t 1 5
I.15.10; m0*v/sqrt(1-v**2/c**2); m0 1 5, v 1 2, c 3 10
I.16.6; (u+v)/(1+u*v/c**2); c 1 5, v 1 5, u 1 5
I.18.4; (m1*r1+m2*r2)/(m1+m2); m1 1 5, m2 1 5, r1 1 5, r2 1 5
I.18.12; r*F*sin(theta); r 1 5, F 1 5, theta 0 5
I.18.14; m*r*v*sin(theta); m 1 5, r 1 5, v 1 5, theta 1 5
I.24.6; m*(omega**2+omega0**2)*x**2/4; m 1 3, omega 1 3, omega0 1 3, x 1 3
I.25.13; q/C; q 1 5, C 1 5
I.26.2; arcsin(n*sin(theta2)); n 0 1, theta2 1 5
I.27.6; 1/(1/d1+n/d2); d1 1 5, d2 1 5, n 1 5
I.29.4; omega/c; omega 1 10, c 1 10
I.29.16; sqrt(x1**2+x2**2-2*x1*x2*cos(theta1-theta2)); x1 1 5, x2 1 5, theta1 1 5, theta2 1 5
I.30.3; I0*sin(n*theta/2)**2/sin(theta/2)**2; I0 1 5, theta 1 5, n 1 5
I.30.5; arcsin(lambd/(n*d)); lambd 1 2, d 2 5, n 1 5
I.32.5; q**2*a**2/(6*pi*epsilon*c**3); q 1 5, a 1 5, epsilon 1 5, c 1 5
I.32.17; (epsilon*c*Ef**2/2)*(8*pi*r**2/3)*(w**4/(w**2-w0**2)**2); epsilon 1 2, c 1 2, Ef 1 2, r 1 2, w 1 2, w0 3 5
I.34.8; q*v*B/p; q 1 5, v 1 5, B 1 5, p 1 5
I.34.1; omega0/(1-v/c); c 3 10, v 1 2, omega0 1 5
I.34.14; (1+v/c)/sqrt(1-v**2/c**2)*omega0; c 3 10, v 1 2, omega0 1 5
I.34.27; (h/(2*pi))*omega; omega 1 5, h 1 5
I.37.4; I1+I2+2*sqrt(I1*I2)*cos(delta); I1 1 5, I2 1 5, delta 1 5
I.38.12; 4*pi*epsilon*(h/(2*pi))**2/(m*q**2); m 1 5, q 1 5, h 1 5, epsilon 1 5
I.39.1; 1.5*pr*V; pr 1 5, V 1 5
I.39.11; pr*V/(gamma-1); gamma 2 5, pr 1 5, V 1 5
I.39.22; n*kb*T/V; n 1 5, T 1 5, V 1 5, kb 1 5
I.40.1; n0*exp(-m*g*x/(kb*T)); n0 1 5, m 1 5, x 1 5, T 1 5, g 1 5, kb 1 5
I.41.16; h/(2*pi)*omega**3/(pi**2*c**2*(exp((h/(2*pi))*omega/(kb*T))-1)); omega 1 5, T 1 5, h 1 5, kb 1 5, c 1 5
I.43.16; mu_drift*q*Volt/d; mu_drift 1 5, q 1 5, Volt 1 5, d 1 5
I.43.31; mob*kb*T; mob 1 5, T 1 5, kb 1 5
I.43.43; kb*v/((gamma-1)*A); gamma 2 5, kb 1 5, A 1 5, v 1 5
I.44.4; n*kb*T*log(V2/V1); n 1 5, kb 1 5, T 1 5, V1 1 5, V2 1 5
I.47.23; sqrt(gamma*pr/rho); gamma 1 5, pr 1 5, rho 1 5
I.48.2; m*c**2/sqrt(1-v**2/c**2); m 1 5, v 1 2, c 3 10
I.50.26; x1*(cos(omega*t)+alpha*cos(omega*t)**2); x1 1 3, omega 1 3, t 1 3, alpha 1 3
II.2.42; kappa*(T2-T1)*A/d; kappa 1 5, T1 1 5, T2 1 5, A 1 5, d 1 5
II.3.24; Pwr/(4*pi*r**2); Pwr 1 5, r 1 5
II.4.23; q/(4*pi*epsilon*r); q 1 5, epsilon 1 5, r 1 5
II.6.11; p_d*cos(theta)/(4*pi*epsilon*r**2); epsilon 1 3, p_d 1 3, theta 1 3, r 1 3
II.6.15a; 3/(4*pi*epsilon)*p_d*z/r**5*sqrt(x**2+y**2); epsilon 1 3, p_d 1 3, r 1 3, x 1 3, y 1 3, z 1 3
II.6.15b; 3/(4*pi*epsilon)*p_d/r**3*cos(theta)*sin(theta); epsilon 1 3, p_d 1 3, theta 1 3, r 1 3
II.8.7; 3/5*q**2/(4*pi*epsilon*d); q 1 5, epsilon 1 5, d 1 5
II.8.31; epsilon*Ef**2/2; epsilon 1 5, Ef 1 5
II.10.9; sigma_den/epsilon/(1+chi); sigma_den 1 5, epsilon 1 5, chi 1 5
II.11.3; q*Ef/(m*(omega0**2-omega**2)); q 1 3, Ef 1 3, m 1 3, omega0 3 5, omega 1 2
II.11.17; n0*(1+p_d*Ef*cos(theta)/(kb*T)); n0 1 3, kb 1 3, T 1 3, theta 1 3, p_d 1 3, Ef 1 3
II.11.20; n_rho*p_d**2*Ef/(3*kb*T); n_rho 1 5, p_d 1 5, Ef 1 5, kb 1 5, T 1 5
II.11.27; n*alpha/(1-n*alpha/3)*epsilon*Ef; n 0 1, alpha 0 1, epsilon 1 2, Ef 1 2
II.11.28; 1+n*alpha/(1-n*alpha/3); n 0 1, alpha 0 1
II.13.17; 1/(4*pi*epsilon*c**2)*2*current/r; epsilon 1 5, c 1 5, current 1 5, r 1 5
II.13.23; rho_c0/sqrt(1-v**2/c**2); rho_c0 1 5, v 1 2, c 3 10
II.13.34; rho_c0*v/sqrt(1-v**2/c**2); rho_c0 1 5, v 1 2, c 3 10
II.15.4; -mom*B*cos(theta); mom 1 5, B 1 5, theta 1 5
II.15.5; -p_d*Ef*cos(theta); p_d 1 5, Ef 1 5, theta 1 5
II.21.32; q/(4*pi*epsilon*r*(1-v/c)); q 1 5, epsilon 1 5, r 1 5, v 1 2, c 3 10
II.24.17; sqrt(omega**2/c**2-pi**2/d**2); omega 4 6, c 1 2, d 2 4
II.27.16; epsilon*c*Ef**2; epsilon 1 5, c 1 5, Ef 1 5
II.27.18; epsilon*Ef**2; epsilon 1 5, Ef 1 5
II.34.2a; q*v/(2*pi*r); q 1 5, v 1 5, r 1 5
II.34.2; q*v*r/2; q 1 5, v 1 5, r 1 5
II.34.11; g_*q*B/(2*m); g_ 1 5, q 1 5, B 1 5, m 1 5
II.34.29a; q*h/(4*pi*m); q 1 5, h 1 5, m 1 5
II.34.29b; g_*mom*B*Jz/(h/(2*pi)); g_ 1 5, h 1 5, Jz 1 5, mom 1 5, B 1 5
II.35.18; n_0/(exp(mom*B/(kb*T))+exp(-mom*B/(kb*T))); n_0 1 3, kb 1 3, T 1 3, mom 1 3, B 1 3
II.35.21; n_rho*mom*tanh(mom*B/(kb*T)); n_rho 1 5, mom 1 5, B 1 5, kb 1 5, T 1 5
II.36.38; mom*H/(kb*T)+mom*alpha/(epsilon*c**2*kb*T)*M; mom 1 3, H 1 3, kb 1 3, T 1 3, alpha 1 3, epsilon 1 3, c 1 3, M 1 3
II.37.1; mom*(1+chi)*B; mom 1 5, B 1 5, chi 1 5
II.38.3; Y*A*x/d; Y 1 5, A 1 5, d 1 5, x 1 5
II.38.14; Y/(2*(1+sigma)); Y 1 5, sigma 1 5
III.4.32; 1/(exp((h/(2*pi))*omega/(kb*T))-1); h 1 5, omega 1 5, kb 1 5, T 1 5
III.4.33; (h/(2*pi))*omega/(exp((h/(2*pi))*omega/(kb*T))-1); h 1 5, omega 1 5, kb 1 5, T 1 5
III.7.38; 2*mom*B/(h/(2*pi)); mom 1 5, B 1 5, h 1 5
III.8.54; sin(E_n*t/(h/(2*pi)))**2; E_n 1 2, t 1 2, h 1 4
III.9.52; (p_d*Ef*t/(h/(2*pi)))*sin((w-w0)*t/2)**2/((w-w0)*t/2)**2; p_d 1 3, Ef 1 3, t 1 3, h 1 3, w 1 5, w0 1 5
III.10.19; mom*sqrt(Bx**2+By**2+Bz**2); mom 1 5, Bx 1 5, By 1 5, Bz 1 5
III.12.43; n*(h/(2*pi)); n 1 5, h 1 5
III.13.18; 2*E_n*d**2*k/(h/(2*pi)); E_n 1 5, d 1 5, k 1 5, h 1 5
III.14.14; I_0*(exp(q*Volt/(kb*T))-1); I_0 1 5, q 1 2, Volt 1 2, kb 1 2, T 1 2
III.15.12; 2*U*(1-cos(k*d)); U 1 5, k 1 5, d 1 5
III.15.14; (h/(2*pi))**2/(2*E_n*d**2); h 1 5, E_n 1 5, d 1 5
III.15.27; 2*pi*alpha/(n*d); alpha 1 5, n 1 5, d 1 5
III.17.37; beta*(1+alpha*cos(theta)); beta 1 5, alpha 1 5, theta 1 5
III.19.51; -m*q**4/(2*(4*pi*epsilon)**2*(h/(2*pi))**2)*(1/n**2); m 1 5, q 1 5, h 1 5, n 1 5, epsilon 1 5
III.21.20; -rho_c0*q*A_vec/m; rho_c0 1 5, q 1 5, A_vec 1 5, m 1 5
"""

# Name; the derivatives of x and y; ranges that trajectories begin in.
_STROGATZ = """
bacres; 20-x-x*y/(1+0.5*x**2); 10-x*y/(1+0.5*x**2); x 1 20, y 1 20
barmag; 0.5*sin(x-y)-sin(x); 0.5*sin(y-x)-sin(y); x 0 6.28, y 0 6.28
glider; -0.05*x**2-sin(y); x-cos(y)/x; x 2 8, y -1.5 1.5
lv; 3*x-2*x*y-x**2; 2*y-x*y-y**2; x 1 8, y 1 8
predprey; x*(4-x-y/(1+x)); y*(x/(1+x)-0.075*y); x 1 8, y 1 15
shearflow; cos(x)/tan(y); (cos(y)**2+0.1*sin(y)**2)*sin(x); x -3 3, y 0.4 1.4
vdp; 10*(y-(x**3-x)/3); -x/10; x -2 2, y -1 1
"""
_NAMES = {name: getattr(np, name) for name in ("exp", "log", "sqrt", "sin", "cos", "tan", "tanh", "arcsin", "pi")}
NUM_TRAJECTORIES, NUM_TIMES, STEPS = 4, 100, 20  # of a Strogatz system over 10 units of time; integration steps between two rows


class Law(NamedTuple):
    """A formula and what its data is drawn from. other: of Strogatz, the derivative of the other variable."""

    name: str
    formula: str
    ranges: dict[str, tuple[float, float]]
    other: str = ""

    def value(self, columns: dict[str, NDArray[np.float64]]) -> NDArray[np.float64]:
        """The formula at `(num_rows,)` columns."""
        return _value(self.formula, columns)

    def sample(self, num_rows: int, seed: int) -> dict[str, NDArray[np.float64]]:
        """Columns of inputs: from the ranges, or along trajectories."""
        generator = np.random.default_rng([seed, *self.name.encode()])
        if not self.other:
            return {name: generator.uniform(low, high, num_rows) for name, (low, high) in self.ranges.items()}
        rows = np.concatenate([self._trajectory(generator) for _ in range(NUM_TRAJECTORIES)])
        return dict(zip("xy", rows.T, strict=True))

    def _trajectory(self, generator: np.random.Generator) -> NDArray[np.float64]:
        """By Runge and Kutta's fourth order; another start if it leaves the formula's domain."""
        formulas = (self.formula, self.other) if self.name.endswith("1") else (self.other, self.formula)

        def slope(state: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.array([_value(formula, {"x": state[0], "y": state[1]}) for formula in formulas])

        step = 10.0 / (NUM_TIMES - 1) / STEPS
        while True:
            state = np.array([generator.uniform(low, high) for low, high in self.ranges.values()])
            rows = []
            for _ in range(NUM_TIMES):
                rows.append(state)
                for _ in range(STEPS):
                    a = slope(state)
                    b = slope(state + step / 2 * a)
                    c = slope(state + step / 2 * b)
                    d = slope(state + step * c)
                    state = state + step / 6 * (a + 2 * b + 2 * c + d)
            if np.isfinite(rows).all() and np.abs(rows).max() < 1e3:
                return np.array(rows)


def _value(formula: str, columns: dict[str, NDArray[np.float64]]) -> NDArray[np.float64]:
    with np.errstate(all="ignore"):
        return eval(formula, {"__builtins__": {}}, {**_NAMES, **columns})


def _ranges(text: str) -> dict[str, tuple[float, float]]:
    return {name: (float(low), float(high)) for name, low, high in (part.split() for part in text.split(","))}


def laws() -> dict[str, Law]:
    """All of them, by name."""
    found = {}
    for line in _FEYNMAN.strip().splitlines():
        name, formula, ranges = line.split("; ")
        found[name] = Law(name, formula, _ranges(ranges))
    for line in _STROGATZ.strip().splitlines():
        name, first, second, ranges = line.split("; ")
        found[f"{name}1"] = Law(f"{name}1", first, _ranges(ranges), second)
        found[f"{name}2"] = Law(f"{name}2", second, _ranges(ranges), first)
    return found


SEEDS = (1, 2, 3)
NUM_ROWS = 1000  # of an equation of Feynman


def is_accepted(law: Law, seed: int) -> bool:
    """Return whether the guard lets the truth itself pass."""
    columns = law.sample(NUM_ROWS, seed)
    target = law.value(columns)
    task = RegressionTask(columns, target)
    sums = []
    for points, targets in ((task.points(), task.targets()), (task.check_points(), task.check_targets())):
        y = law.value({name: values.astype(np.float64) for name, values in points.items()}).astype(np.float32).astype(np.float64)
        [t] = (values.astype(np.float64) for values in targets.values())
        mean_y, mean_t, errors = y.mean(), t.mean(), y - t
        dy, dt = y - mean_y, t - mean_t
        totals = {"num_points": len(y), "num_nonfinite": np.count_nonzero(~np.isfinite(y)), "weight": len(y)}
        totals |= {"reference_y": mean_y, "reference_t": mean_t, "sum_y": dy.sum(), "sum_t": dt.sum()}
        totals |= {"sum_yy": dy @ dy, "sum_tt": dt @ dt, "sum_yt": dy @ dt}
        totals |= {"sum_squared_error": errors @ errors, "max_abs_error": np.abs(errors).max()}
        sums.append(Regression.of_sums({name: np.array([[each]], np.float64) for name, each in totals.items()}))
    scores = task.score(sums[0], SimpleNamespace(check=sums[1], num_instructions=np.array([1])))
    return bool(np.isfinite(scores.objective[0]))


def rows():
    """(what, measured, at least, aim) of the guard."""
    known = laws()
    accepted = sum(is_accepted(law, seed) for law in known.values() for seed in SEEDS)
    total = len(known) * len(SEEDS)
    yield f"truths that the guard accepts, {len(known)} laws, {len(SEEDS)} seeds", f"{accepted / total:.1%}", "98 %", "100 %"


class Rows(NamedTuple):
    """Training and test rows of a law."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    x_test: NDArray[np.float64]
    y_test: NDArray[np.float64]
    noise: float  # standard deviation


def rows_of(law: Law, seed: int, noise: float) -> Rows:
    """The rows of a run. `noise`: in deviations of the target."""
    columns = law.sample(NUM_ROWS, seed)
    x, y = np.column_stack(list(columns.values())), law.value(columns)
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(y))
    train, test = order[len(y) // 4 :], order[: len(y) // 4]
    deviation = noise * y[train].std()
    return Rows(x[train], y[train] + deviation * generator.standard_normal(len(train)), x[test], y[test], deviation)


def nmse(predicted: NDArray[np.float64], target: NDArray[np.float64]) -> float:
    """Mean square of the error over the target's variance; infinite where a prediction is not finite."""
    with np.errstate(all="ignore"):
        error = float(np.mean((predicted - target) ** 2) / target.var())
    return error if np.isfinite(error) else float("inf")


def run_evo(law: Law, rows: Rows, seed: int, seconds: float) -> dict[str, Any]:
    """A fit of the estimator at its defaults."""
    start = time.process_time()
    model = SymbolicRegressor(max_time=seconds, random_state=seed, n_jobs=1).fit(rows.x, rows.y)
    cpu_s = time.process_time() - start
    best = model.get_best()
    found = {"test_nmse": nmse(model.predict(rows.x_test), rows.y_test), "cpu_s": cpu_s, "size": int(best.complexity)}
    return {**found, "text": str(model.sympy())}


def run_operon(law: Law, rows: Rows, seed: int, seconds: float, options: dict[str, Any]) -> dict[str, Any]:
    """As `run_evo`, in a process of its own that ends once the law is found."""
    receiver, sender = multiprocessing.get_context("fork").Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=_operon, args=(sender, rows, seed, seconds, options))
    process.start()
    found = receiver.recv()
    process.join()
    return found


def _operon(sender: Any, rows: Rows, seed: int, seconds: float, options: dict[str, Any]) -> None:
    from pyoperon import sklearn as pyoperon

    op = pyoperon.op
    train, test = (op.Dataset(np.asfortranarray(x)) for x in (rows.x, rows.x_test))
    table = op.DispatchTable()

    def tell(tree: Any, scale: float, offset: float, predicted: NDArray[np.float64]) -> None:
        text = op.InfixFormatter.Format(tree, names, 17)
        size = tree.Length + 2 * (scale != 1) + 2 * (offset != 0)
        sender.send(
            {
                "test_nmse": nmse(predicted, rows.y_test),
                "cpu_s": time.process_time() - start,
                "size": size,
                "text": f"{scale!r}*({text}) + {offset!r}",
            }
        )
        sender.close()
        os._exit(0)

    class Watched(op.NSGA2Algorithm if "objectives" in options else op.GeneticProgrammingAlgorithm):  # type: ignore[misc]
        """Ends with the process once a generation has the law."""

        def Run(self, rng: Any, callback: Any, *rest: Any) -> Any:  # noqa: N802 - pyoperon's name
            return super().Run(rng, self.look, *rest)

        def look(self) -> None:
            front = self.BestFront if "objectives" in options else [self.BestModel]
            for tree in (each.Genotype for each in front if each.GetFitness(0) < 1e-8 - 1.0):  # the objective is -R2
                fitted, predicted = (op.Evaluate(table, tree, data, op.Range(0, data.Rows)).ravel() for data in (train, test))
                scale, offset = op.FitLeastSquares(fitted, rows.y)
                predicted = scale * predicted.astype(np.float64) + offset
                if nmse(predicted, rows.y_test) < EXACT:
                    tell(tree, scale, offset, predicted)

    names = {variable.Hash: variable.Name for variable in train.Variables}
    setattr(op, Watched.__base__.__name__, Watched)
    model = pyoperon.SymbolicRegressor(
        allowed_symbols="add,sub,mul,div,sin,cos,exp,log,sqrt,constant,variable",
        max_time=max(1, round(seconds)),
        generations=10**6,
        max_evaluations=10**9,
        n_threads=1,
        uncertainty=[max(rows.noise, 1e-6 * rows.y.std())],
        random_state=seed,
        **options,
    )
    start = time.process_time()
    model.fit(rows.x, rows.y)
    tell(model.model_, 1.0, 0.0, model.predict(rows.x_test))


SYSTEMS = {
    "evo": run_evo,
    "operon": functools.partial(run_operon, options={"optimizer_iterations": 5}),
    "operon-front": functools.partial(run_operon, options={"optimizer_iterations": 5, "objectives": ["r2", "length"]}),
}
EXACT = 1e-9


def is_equal(law: Law, text: str, seconds: int = 20) -> bool:
    """Compare text and law, up to a constant that is added or multiplied, by SymPy; False where it takes longer."""
    receiver, sender = multiprocessing.get_context("fork").Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=_compare, args=(sender, law, text))
    process.start()
    sender.close()
    try:
        return bool(receiver.poll(seconds) and receiver.recv())
    except EOFError:
        return False
    finally:
        process.kill()
        process.join()


def _compare(sender: Any, law: Law, text: str) -> None:
    import sympy

    symbols = {name: sympy.Symbol(name, positive=low > 0, real=True) for name, (low, _) in law.ranges.items()}
    columns = {
        f"{prefix}{i + first}": symbols[name] for i, name in enumerate(law.ranges) for prefix, first in (("x", 0), ("X", 1))
    }
    truth = sympy.sympify(law.formula.replace("arcsin", "asin"), locals=symbols)
    found = sympy.sympify(text.replace("^", "**"), locals=columns)
    rounded = {number: sympy.Float(round(float(number), 6)) for number in found.atoms(sympy.Float)}
    found, truth = sympy.nsimplify(found.xreplace(rounded), [sympy.pi], tolerance=1e-6), sympy.nsimplify(truth, rational=True)
    sender.send(any(sympy.simplify(each).is_constant() for each in (found - truth, found / truth)))


def table(runs: list[dict[str, Any]]) -> str:
    """Counts and medians for each system, family and noise, as a table in markdown."""
    known = laws()
    for run in runs:
        run["equal"] = run["noise"] == 0 and run["test_nmse"] < 1e-5 and is_equal(known[run["law"]], run["text"])
    lines = [
        "| noise | laws | system | found | equal | median 1 - R² | median size | median CPU s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for noise in sorted({run["noise"] for run in runs}):
        for family in ("Feynman", "Strogatz"):
            for system in SYSTEMS:
                group = [
                    run
                    for run in runs
                    if (run["noise"], run["system"], bool(known[run["law"]].other)) == (noise, system, family == "Strogatz")
                ]
                if group:
                    found = sum(run["test_nmse"] < EXACT for run in group)
                    medians = (np.median([run[key] for run in group]) for key in ("test_nmse", "size", "cpu_s"))
                    cells = (noise, family, system, f"{found} of {len(group)}", sum(run["equal"] for run in group))
                    lines.append("| " + " | ".join([*map(str, cells), *(f"{each:.2g}" for each in medians)]) + " |")
    times = {
        (run["law"], run["seed"], run["system"]): run["cpu_s"] for run in runs if run["test_nmse"] < EXACT and not run["noise"]
    }
    for system in list(SYSTEMS)[1:]:
        both = [(law, seed) for law, seed, name in times if name == "evo" and (law, seed, system) in times]
        sooner = sum(times[*each, "evo"] < times[*each, system] for each in both)
        lines.append(f"\nevo is sooner than {system} in {sooner} of {len(both)} runs that both solve.")
    return "\n".join(lines)


def main() -> None:
    """Runs the laws, or prints the table of earlier runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--systems", default="evo")
    parser.add_argument("--noise", type=float, default=0.0)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seeds", default="1-2")
    parser.add_argument("--laws", default="")
    parser.add_argument("--runs", type=Path)
    parser.add_argument("--table", nargs="+", type=Path)
    options = parser.parse_args()
    if options.table:
        print(table([json.loads(line) for path in options.table for line in path.read_text().splitlines()]))
        return
    first, _, last = options.seeds.partition("-")
    for seed in range(int(first), int(last or first) + 1):
        for name, law in laws().items():
            if options.laws and name not in options.laws.split(","):
                continue
            for system in options.systems.split(","):
                found = SYSTEMS[system](law, rows_of(law, seed, options.noise), seed, options.seconds)
                line = json.dumps({"law": name, "seed": seed, "noise": options.noise, "system": system, **found})
                print(line, flush=True)
                if options.runs:
                    with options.runs.open("a") as file:
                        file.write(f"{line}\n")


if __name__ == "__main__":
    main()
