"""evo: evolutionary search for GPU programs.

Owns the public names of tasks and of searches from Python, and the place of the C headers. Importing it loads no CUDA library, no
matplotlib and no pyribs; each name loads its module when it is first asked for.
"""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evo.errors import UserError

if TYPE_CHECKING:
    from evo.approximation.exact_task import ExactTask
    from evo.approximation.task import ApproximationTask
    from evo.dynamics.estimator import SymbolicDynamics
    from evo.evolution import Scheduler, evolve, resume
    from evo.regression.classifier import SymbolicClassifier
    from evo.regression.estimator import SymbolicRegressor
    from evo.regression.task import RegressionTask
    from evo.report.result import Result
    from evo.task import Programs, RunnablePrograms, Scores, Task, Window
    from evo.tasks.grid import Grid
    from evo.tasks.rollout import Rollout

    __version__: str

__all__ = [
    "ApproximationTask",
    "ExactTask",
    "Grid",
    "Programs",
    "RegressionTask",
    "Result",
    "Rollout",
    "RunnablePrograms",
    "Scheduler",
    "Scores",
    "SymbolicClassifier",
    "SymbolicDynamics",
    "SymbolicRegressor",
    "Task",
    "UserError",
    "Window",
    "__version__",
    "evolve",
    "get_include",
    "resume",
]

_MODULES = {
    **dict.fromkeys(("Programs", "RunnablePrograms", "Scores", "Task", "Window"), "evo.task"),
    "ApproximationTask": "evo.approximation.task",
    "ExactTask": "evo.approximation.exact_task",
    "Grid": "evo.tasks.grid",
    "Result": "evo.report.result",
    "Rollout": "evo.tasks.rollout",
    **dict.fromkeys(("Scheduler", "evolve", "resume"), "evo.evolution"),
    "RegressionTask": "evo.regression.task",
    "SymbolicClassifier": "evo.regression.classifier",
    "SymbolicDynamics": "evo.dynamics.estimator",
    "SymbolicRegressor": "evo.regression.estimator",
}


def get_include() -> str:
    """The folder of the C headers, for a compiler's include path; `cmake/` in it has a package config for CMake."""
    package = Path(__file__).parent
    installed = package / "include"
    return str(installed if installed.is_dir() else package.parent / "csrc")  # csrc: an editable install


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from evo.about import VERSION

        return VERSION
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
