"""evo: evolutionary search for GPU programs.

Owns the public names that a task needs. Importing it loads no CUDA library, no matplotlib and no pyribs.
"""

from importlib.metadata import version

from evo.errors import UserError
from evo.task import Programs, Scores, Task

__version__ = version("evo")

__all__ = ["Programs", "Scores", "Task", "UserError", "__version__"]
