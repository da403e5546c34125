"""Levenberg-Marquardt: against the minimum of a known function, and against Nielsen's schedule of the damping."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from evo.evaluate.least_squares import minimised


@dataclass
class Rosenbrock:
    """The squares of 10 (y - x^2) and 1 - x, whose sum is 0 at (1, 1) alone."""

    x: float
    y: float

    @property
    def residuals(self) -> np.ndarray:
        return np.array([10.0 * (self.y - self.x**2), 1.0 - self.x])

    @property
    def error(self) -> float:
        return float(self.residuals @ self.residuals)

    def damped(self, damping):
        jacobian = np.array([[-20.0 * self.x, 10.0], [-1.0, 0.0]])
        matrix, gradient = jacobian.T @ jacobian, -jacobian.T @ self.residuals
        step = np.linalg.solve(matrix + damping * np.diag(np.diag(matrix)), gradient)
        return Rosenbrock(self.x + step[0], self.y + step[1]), float(step @ (2.0 * gradient - matrix @ step))

    def is_better(self, than):
        return self.error < than.error

    def is_last(self, before):
        return self.error < 1e-20


def test_it_finds_the_end_of_a_curved_valley():
    found = minimised(Rosenbrock(-1.2, 1.0), 100)
    assert (found.x, found.y) == pytest.approx((1.0, 1.0), abs=1e-8)


@dataclass
class Scripted:
    """Steps whose gains, of an expected 1, are listed; a gain below 0 is refused."""

    gains: list[float]
    error: float = 0.0
    dampings: list[float] = field(default_factory=list)

    def damped(self, damping):
        self.dampings.append(damping)
        return (Scripted(self.gains, self.error - self.gains.pop(0), self.dampings), 1.0) if self.gains else None

    def is_better(self, than):
        return self.error < than.error

    def is_last(self, before):
        return False


def test_damping_follows_nielsens_schedule():
    """Times 2, 4, 8 as long as steps are refused; then times max(1/10, 1 - (2 gain / expected - 1)^3), and 2 at most."""
    model = Scripted([-1.0, -1.0, -1.0, 0.5, 1.0, 0.75, 1e-9, -1.0])
    minimised(model, 100)
    expected = np.cumprod([1e-3, 2.0, 4.0, 8.0, 1.0, 0.1, 1.0 - 0.5**3, 2.0, 2.0])
    np.testing.assert_allclose(model.dampings, expected, rtol=1e-7)
