"""Laws of textbooks that no setting was chosen by, noise-free or not: which of them `SymbolicRegressor` finds as it comes.

    python tests/bench/bench_textbook.py [--half first|second] [--noise 0] [--seconds 10] [--seeds 1-3] [--laws Antoine,...]

Two halves of 30 laws of engineering, chemistry, biology and finance, none of them Feynman's: settings may be chosen by the first,
the second tells. A law has 40 to 200 training rows and 1,000 for testing, drawn evenly or, behind `log`, evenly in the logarithm.
It is found if 1 - R² of the test rows is below 1e-9. A line of JSON for each search.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evo import SymbolicRegressor

EXACT = 1e-9
NUM_TEST = 1000
# Name; formula; rows; ranges. Odd lines are the first half, even lines the second.
_LAWS = """
Antoine; 10**(8.07131-1730.63/(233.426+T)); 60; T 1 100
Clausius-Clapeyron; 101.3*exp(4890*(1/373.15-1/T)); 60; T 280 450
Gompertz; 7.5*exp(-3.2*exp(-0.21*t)); 80; t 0 30
von Bertalanffy; 52*(1-exp(-0.31*(t+0.6)))**3; 80; t 0 12
logistic growth; 640/(1+9.2*exp(-0.55*t)); 60; t 0 16
four-parameter logistic; 0.15+1.9/(1+(c/3.4)**1.6); 80; c log 0.05 200
Michaelis-Menten; 12.4*s/(3.1+s); 40; s log 0.1 100
Haldane; 1.3*s/(0.8+s+s**2/14); 60; s log 0.05 120
competitive inhibition; 8.2*s/(2.5*(1+i/0.7)+s); 120; s log 0.1 50, i 0 5
uncompetitive inhibition; 5.5*s/(1.4+s*(1+i/2.2)); 120; s log 0.1 50, i 0 8
Morse; 4.6*(1-exp(-1.9*(r-0.74)))**2; 80; r 0.4 4
Lennard-Jones; 4*0.8*((3.2/r)**12-(3.2/r)**6); 80; r 3 8
Buckingham; 1200*exp(-3.1*r)-40/r**6; 80; r 1.9 6
Yukawa; 14.4*q*exp(-r/2.7)/r; 120; q 1 5, r 0.3 9
Lorentz line; 3.3/((w-5.2)**2+0.36); 80; w 1 10
Gaussian peak; 6.1*exp(-(x-3.7)**2/1.62); 80; x 0 8
resonance; F/sqrt((w0**2-w**2)**2+(0.3*w)**2); 200; F 1 5, w0 1 3, w 0.5 4
Breit-Wigner; 2.2*g**2/((E-91.2)**2+g**2/4); 200; g 1 4, E 85 97
Arrhenius; 2.4e9*exp(-8200/T); 60; T 300 900
Eyring; 2.08e10*T*exp(-6500/T); 60; T 280 420
Kepler; sqrt(a**3/(m1+m2)); 100; a log 0.3 40, m1 0.5 5, m2 0.1 5
orbital speed; sqrt(398.6*(2/r-1/a)); 120; r 7 20, a 12 40
relativistic gamma; 1/sqrt(1-(v/2.998)**2); 60; v 0 2.9
terminal speed; sqrt(2*m*9.81/(1.2*A*C)); 100; m 1 100, A 0.1 2, C 0.3 1.5
Gaussian beam; 0.8*sqrt(1+(z/12.5)**2); 60; z -60 60
thin lens; f*s/(s-f); 100; f 1 5, s 6 60
lensmaker; 1/((n-1)*(1/r1-1/r2)); 120; n 1.3 1.9, r1 5 15, r2 20 60
parallel resistors; 1/(1/a+1/b+1/c); 120; a log 1 100, b log 1 100, c log 1 100
Manning; S**0.5*R**(2/3)*A/0.013; 100; S log 0.0001 0.02, R 0.2 4, A 0.5 40
Hazen-Williams; 10.67*L*Q**1.852/(120**1.852*d**4.87); 120; L 10 500, Q 0.01 0.5, d 0.1 1
Darcy-Weisbach; 0.02*L*v**2/(d*19.62); 120; L 5 200, v 0.3 4, d 0.05 0.8
Swamee-Jain; 0.25/log10(e/3.7+5.74/Re**0.9)**2; 150; e log 1e-5 0.02, Re log 5000 1e7
weir; 1.84*(b-0.2*h)*h**1.5; 80; b 1 6, h 0.05 0.9
pump curve; 42*(n/1450)**2-0.0031*q**2; 60; q 10 90, n 900 1800
RC charge; V*(1-exp(-t/(R*C))); 150; V 1 12, t 0 5, R 0.5 4, C 0.2 2
damped oscillation; 3.4*exp(-0.23*t)*cos(2.9*t+0.6); 100; t 0 12
diode; 0.0021*(exp(v/0.0512)-1); 60; v 0 0.5
Shockley with series; v/(2.2+0.4*v)+0.03*v**2; 60; v 0 12
Planck; l**-5*38/(exp(14.4/l)-1); 80; l 0.8 12
Wien; 21*f**3*exp(-1.7*f); 60; f 0.1 8
Bose-Einstein; 1/(exp((E-0.1)/0.43)-1); 80; E 0.3 3
Fermi; 1/(1+exp((E-1.2)/T)); 120; E 0 3, T 0.1 0.8
Langmuir; 3.7*0.21*p/(1+0.21*p); 40; p log 0.05 100
Freundlich; 2.3*c**0.37; 40; c log 0.01 100
BET; 1.7*60*x/((1-x)*(1+59*x)); 60; x 0.02 0.7
van der Waals; 8.314*T/(v-0.032)-0.365/v**2; 120; T 250 500, v 0.08 2
virial; 8.314*T/v*(1+0.021/v); 100; T 250 500, v 0.05 2
Redlich-Kwong; 8.314*T/(v-0.03)-1.55/(sqrt(T)*v*(v+0.03)); 150; T 250 500, v 0.08 1
saturation humidity; rh*6.112*exp(17.67*T/(T+243.5)); 120; rh 0.1 1, T -10 40
wind chill; 13.12+0.6215*T-11.37*v**0.16+0.3965*T*v**0.16; 150; T -30 5, v 5 60
Steinhart; 1/(0.00112+0.000234*log(R)); 60; R log 300 3e5
Nernst; 0.0257*log(co/ci); 80; co log 1 150, ci log 1 150
Goldman; 26.7*log((k+0.04*n)/(140+0.04*12)); 120; k 1 20, n 50 200
annuity; P*r/(1-(1+r)**-n); 150; P 1 50, r 0.01 0.12, n 2 30
compound growth; P*(1+r/12)**(12*t); 150; P 1 20, r 0.01 0.15, t 1 20
Black discount; S*exp(-q*t)-K*exp(-r*t); 200; S 50 150, K 50 150, q 0 0.05, r 0 0.1, t 0.1 5
allometry; 3.4*m**0.75+0.0*a; 60; m log 0.01 1000, a 0 1
Holling III; 2.8*x**2/(1.9+x**2); 60; x log 0.05 40
Ricker; 4.2*s*exp(-0.37*s); 40; s 0 12
Beverton-Holt; 5.6*s/(1+0.44*s); 40; s 0 20
"""


class Law(NamedTuple):
    """A formula, how many rows train, and ranges: their kind, low and high."""

    name: str
    formula: str
    num_rows: int
    ranges: dict[str, tuple[str, float, float]]

    def sample(self, num_rows: int, generator: np.random.Generator) -> dict[str, NDArray[np.float64]]:
        """Columns of inputs."""
        return {
            name: np.exp(generator.uniform(np.log(low), np.log(high), num_rows))
            if kind == "log"
            else generator.uniform(low, high, num_rows)
            for name, (kind, low, high) in self.ranges.items()
        }

    def value(self, columns: dict[str, NDArray[np.float64]]) -> NDArray[np.float64]:
        """The formula at columns."""
        known = {name: getattr(np, name) for name in ("exp", "log", "log10", "sqrt", "cos")}
        return eval(self.formula, {"__builtins__": {}}, {**known, **columns})


def laws(half: str) -> list[Law]:
    """The laws of a half."""
    found = []
    for line in _LAWS.strip().splitlines()[half == "second" :: 2]:
        name, formula, rows, ranges = line.split("; ")
        parts = [part.split() for part in ranges.split(",")]
        found.append(Law(name, formula, int(rows), {p[0]: (p[1] * (len(p) > 3), float(p[-2]), float(p[-1])) for p in parts}))
    return found


def run(law: Law, seed: int, noise: float, seconds: float) -> dict[str, object]:
    """A fit of a law by the estimator at its defaults."""
    generator = np.random.default_rng([seed, *law.name.encode()])
    train, test = law.sample(law.num_rows, generator), law.sample(NUM_TEST, generator)
    y, truth = law.value(train), law.value(test)
    y = y + noise * y.std() * generator.standard_normal(len(y))
    model = SymbolicRegressor(max_time=seconds, random_state=seed, n_jobs=1)
    start = time.process_time()
    model.fit(np.column_stack([*train.values()]), y)
    cpu_s = time.process_time() - start
    losses = []
    for row in range(len(model.equations_)):
        predicted = model.predict(np.column_stack([*test.values()]), row)
        losses.append(float(np.mean((predicted - truth) ** 2) / truth.var()))
    chosen = losses[model.get_best().name]
    front = float(np.nanmin(losses))
    row = {"law": law.name, "seed": seed, "noise": noise, "found": chosen < EXACT, "error": chosen, "front": front}
    return {**row, "cpu_s": round(cpu_s, 2), "size": int(model.get_best().complexity), "text": model.get_best().equation}


def main() -> None:
    """Runs the laws."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=("first", "second"), default="first")
    parser.add_argument("--noise", type=float, default=0.0)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seeds", default="1-3")
    parser.add_argument("--laws", default="")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    time.monotonic = time.process_time  # seconds of one core, whatever else the machine does
    first, _, last = options.seeds.partition("-")
    for seed in range(int(first), int(last or first) + 1):
        for law in laws(options.half):
            if not options.laws or law.name in options.laws.split(","):
                print(json.dumps(run(law, seed, options.noise, options.seconds)), flush=True)


if __name__ == "__main__":
    main()
