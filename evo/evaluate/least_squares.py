"""Levenberg-Marquardt for models in Python; csrc/tune.h has it for programs.

Owns the damping, and which steps are taken. Knows nothing of what is fitted, or of how a model solves for its step.
"""

from __future__ import annotations

from typing import Protocol, Self, TypeVar

FIRST_DAMPING, LEAST_DAMPING = 1e-3, 1e-10  # as in csrc/tune.h


class Model(Protocol):
    """The error at some parameters."""

    @property
    def error(self) -> float:
        """The number that is minimised."""

    def damped(self, damping: float) -> tuple[Self, float] | None:
        """The model after a step with Marquardt's scaling, and the gain that this one expects of it; None: there is no step."""

    def is_better(self, than: Self) -> bool:
        """Decide whether a step from another model to this one is taken."""

    def is_last(self, before: Self) -> bool:
        """Decide whether the fit ends with a step to this model."""


M = TypeVar("M", bound=Model)


def minimised(model: M, iterations: int) -> M:
    """The model after at most this many tried steps, with Nielsen's damping."""
    damping, growth = FIRST_DAMPING, 2.0
    for _ in range(iterations):
        step = model.damped(damping)
        if step is None:
            break
        trial, expected = step
        if not trial.is_better(model):
            damping, growth = damping * growth, growth * 2.0
            continue
        gain = model.error - trial.error
        ratio = min(2.0 * gain / expected - 1.0, 1.0) if expected > 0.0 else 1.0  # 1: damping falls by most
        damping, growth = max(LEAST_DAMPING, damping * min(2.0, max(0.1, 1.0 - ratio**3))), 2.0
        model, before = trial, model
        if model.is_last(before):
            break
    return model
