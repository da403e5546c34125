"""Programs for the function in unpack.py."""

import sys
from pathlib import Path

import evo

sys.path.insert(0, str(Path(__file__).parent))  # where `function: unpack:s4x8_f16x2x4` looks for unpack.py


class Exact(evo.ExactTask):
    """evo.ExactTask says what makes a program good: wrong bits, right outputs and issue slots."""
