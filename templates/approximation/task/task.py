"""Programs for the function in langevin.py."""

import sys
from pathlib import Path

import evo

sys.path.insert(0, str(Path(__file__).parent))  # where `function: langevin:langevin` looks for langevin.py


class Approximation(evo.ApproximationTask):
    """evo.ApproximationTask says what makes a program good: its error, its instructions and issue slots."""
