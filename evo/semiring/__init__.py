"""Semirings: pairwise reductions of two sets of rows, for arrays and PyTorch's tensors.

Owns the public names. Importing it loads no PyTorch. docs/guide/semirings.md is the guide.
"""

from evo.semiring import zoo
from evo.semiring.semiring import Nearest, Semiring

__all__ = ["Nearest", "Semiring", "zoo"]
