"""The function to approximate: Langevin's, how far magnets turn in a field."""

import mpmath


def langevin(x):
    """Takes an mpf and gives one; evo calls it with more and more digits until enough of them are right."""
    return mpmath.coth(x) - 1 / x if x else mpmath.mpf(0)
