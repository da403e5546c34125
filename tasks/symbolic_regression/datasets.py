"""Twelve functions that symbolic regression is measured on, as training and test points.

Owns their definitions. Ten are in the list of McDermott et al., "Genetic programming needs better benchmarks", GECCO 2012
(tables 1 and 2), with the samples given there: U draws uniformly, E is a grid with both ends. Each docstring names the origin.
Where a list has no test points, 1,000 are drawn from the training range. Poly-10 comes from Poli 2003.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Points = dict[str, NDArray[np.float64]]
Function = Callable[..., NDArray[np.float64]]
NUM_TEST = 1000  # where the source gives no test points


@dataclass(frozen=True)
class Sample:
    """Inputs and target at training and at test points."""

    train: Points
    train_target: NDArray[np.float64]
    test: Points
    test_target: NDArray[np.float64]


def sample(name: str, seed: int) -> Sample:
    """The set with this name, which must be one of `DATASETS`."""
    function, train, test = DATASETS[name]
    rng = np.random.default_rng(seed)
    first = train(rng)
    second = test(rng)
    return Sample(first, function(**first), second, function(**second))


def koza_1(x):
    """Koza, "Genetic Programming", 1992: a quartic polynomial. U[-1, 1, 20]."""
    return x**4 + x**3 + x**2 + x


def koza_3(x):
    """Koza, "Genetic Programming II", 1994: a sextic polynomial. U[-1, 1, 20]."""
    return x**6 - 2 * x**4 + x**2


def nguyen_5(x):
    """Uy et al., "Semantically-based crossover in genetic programming", 2011. U[-1, 1, 20]."""
    return np.sin(x**2) * np.cos(x) - 1


def nguyen_7(x):
    """Uy et al. 2011. U[0, 2, 20]."""
    return np.log(x + 1) + np.log(x**2 + 1)


def nguyen_10(x, y):
    """Uy et al. 2011. U[0, 1, 100]."""
    return 2 * np.sin(x) * np.cos(y)


def keijzer_4(x):
    """Keijzer, "Improving symbolic regression with interval arithmetic and linear scaling", EuroGP 2003, after Salustowicz and
    Schmidhuber 1997. E[0, 10, 0.05]; test E[0.05, 10.05, 0.05].
    """
    return x**3 * np.exp(-x) * np.cos(x) * np.sin(x) * (np.sin(x) ** 2 * np.cos(x) - 1)


def keijzer_6(x):
    """Keijzer 2003: partial sums of the harmonic series, after Streeter 2001. E[1, 50, 1]; test E[1, 120, 1], which
    extrapolates.
    """
    return np.array([np.sum(1.0 / np.arange(1, round(n) + 1)) for n in x])


def keijzer_12(x, y):
    """Keijzer 2003, after Topchy and Punch 2001. U[-3, 3, 20]; test E[-3, 3, 0.01] in both inputs."""
    return x**4 - x**3 + y**2 / 2 - y


def korns_12(x, y, z, v, w):
    """Korns, "Accuracy in symbolic regression", GPTP 2011: three of the five inputs do nothing. U[-50, 50, 10000], test too."""
    del y, z, v
    return 2 - 2.1 * np.cos(9.8 * x) * np.sin(1.3 * w)


def pagie_1(x, y):
    """Pagie and Hogeweg, "Evolutionary consequences of coevolving targets", 1997. E[-5, 5, 0.4] in both inputs."""
    return 1 / (1 + x**-4) + 1 / (1 + y**-4)


def vladislavleva_4(x1, x2, x3, x4, x5):
    """Vladislavleva, Smits and den Hertog, "Order of nonlinearity as a complexity measure", 2009: the "UBall".
    U[0.05, 6.05, 1024]; test U[-0.25, 6.35, 5000], which is a little wider.
    """
    return 10 / (5 + sum((x - 3) ** 2 for x in (x1, x2, x3, x4, x5)))


def poly_10(x1, x2, x3, x4, x5, x6, x7, x8, x9, x10):
    """Poli, "A simple but theoretically-motivated method to control bloat", EuroGP 2003: x8 does nothing. Inputs from [-1, 1];
    250 training and 250 test points, as in HeuristicLab's collection.
    """
    del x8
    return x1 * x2 + x3 * x4 + x5 * x6 + x1 * x7 * x9 + x3 * x6 * x10


def _uniform(names: str, low: float, high: float, count: int) -> Callable[[Generator], Points]:
    return lambda rng: {name: rng.uniform(low, high, count) for name in names.split()}


def _grid(names: str, low: float, high: float, step: float) -> Callable[[Generator], Points]:
    axis = low + step * np.arange(round((high - low) / step) + 1)
    axes = names.split()
    return lambda _: dict(zip(axes, (mesh.ravel() for mesh in np.meshgrid(*[axis] * len(axes))), strict=True))


_BALL = "x1 x2 x3 x4 x5"
_TEN = " ".join(f"x{i}" for i in range(1, 11))
# Name: the function, its training points and its test points.
DATASETS: dict[str, tuple[Function, Callable[[Generator], Points], Callable[[Generator], Points]]] = {
    "Koza-1": (koza_1, _uniform("x", -1, 1, 20), _uniform("x", -1, 1, NUM_TEST)),
    "Koza-3": (koza_3, _uniform("x", -1, 1, 20), _uniform("x", -1, 1, NUM_TEST)),
    "Nguyen-5": (nguyen_5, _uniform("x", -1, 1, 20), _uniform("x", -1, 1, NUM_TEST)),
    "Nguyen-7": (nguyen_7, _uniform("x", 0, 2, 20), _uniform("x", 0, 2, NUM_TEST)),
    "Nguyen-10": (nguyen_10, _uniform("x y", 0, 1, 100), _uniform("x y", 0, 1, NUM_TEST)),
    "Keijzer-4": (keijzer_4, _grid("x", 0, 10, 0.05), _grid("x", 0.05, 10.05, 0.05)),
    "Keijzer-6": (keijzer_6, _grid("x", 1, 50, 1), _grid("x", 1, 120, 1)),
    "Keijzer-12": (keijzer_12, _uniform("x y", -3, 3, 20), _grid("x y", -3, 3, 0.01)),
    "Korns-12": (korns_12, _uniform("x y z v w", -50, 50, 10_000), _uniform("x y z v w", -50, 50, 10_000)),
    "Pagie-1": (pagie_1, _grid("x y", -5, 5, 0.4), _uniform("x y", -5, 5, NUM_TEST)),
    "Vladislavleva-4": (vladislavleva_4, _uniform(_BALL, 0.05, 6.05, 1024), _uniform(_BALL, -0.25, 6.35, 5000)),
    "Poly-10": (poly_10, _uniform(_TEN, -1, 1, 250), _uniform(_TEN, -1, 1, 250)),
}
