"""Approximations of a function of one number: bits of accuracy by instructions and issue slots."""

import evo


class Approximation(evo.ApproximationTask):
    pass
