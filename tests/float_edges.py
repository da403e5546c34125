"""Floats on which arithmetic goes wrong first, as bits, and random ones."""

import numpy as np

# Zeros, subnormals, ends of the normal range, 2^-22 to 2^24, where division and reductions turn, infinities, NaNs of all kinds.
POSITIVE_EDGES = [
    0x00000000, 0x00000001, 0x00400000, 0x007FFFFF, 0x00800000, 0x00800001, 0x00FFFFFF, 0x01000000, 0x0DA24260, 0x33800000,
    0x34000000, 0x3EFFFFFF, 0x3F000000, 0x3F3504F3, 0x3F3504F4, 0x3F7FFFFF, 0x3F800000, 0x3F800001, 0x3FC90FDB, 0x40000000,
    0x40490FDB, 0x40A63510, 0x40A63511, 0x40C90FDB, 0x42FC0000, 0x42FE0000, 0x42FFFFFF, 0x43000000, 0x43150000, 0x4A800000,
    0x4B000000, 0x4B7FFFFF, 0x4B800000, 0x4C490FDB, 0x7E7FFFFF, 0x7E800000, 0x7E800001, 0x7F000000, 0x7F7FFFFF, 0x7F800000,
    0x7F800001, 0x7FA00000, 0x7FC00000, 0x7FC12345, 0x7FFFFFFF,
]  # fmt: skip
EDGES = np.array(POSITIVE_EDGES + [bits | 0x80000000 for bits in POSITIVE_EDGES], np.uint32)


def random_bits(seed: int, count: int = 1 << 16) -> np.ndarray:
    """Half uniform bit patterns, half numbers of moderate size."""
    rng = np.random.default_rng(seed)
    moderate = (rng.normal(size=count // 2) * 10.0 ** rng.uniform(-3, 3, count // 2)).astype(np.float32)
    return np.concatenate([rng.integers(0, 1 << 32, count // 2, np.uint32), moderate.view(np.uint32)])
