"""Floats on which arithmetic goes wrong first, as bits, and random ones."""

import numpy as np

from evo.evaluate.cuda.agreement import EDGES

__all__ = ["EDGES", "random_bits"]


def random_bits(seed: int, count: int = 1 << 16) -> np.ndarray:
    """Half uniform bit patterns, half numbers of moderate size."""
    rng = np.random.default_rng(seed)
    moderate = (rng.normal(size=count // 2) * 10.0 ** rng.uniform(-3, 3, count // 2)).astype(np.float32)
    return np.concatenate([rng.integers(0, 1 << 32, count // 2, np.uint32), moderate.view(np.uint32)])
