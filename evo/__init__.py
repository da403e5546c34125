"""evo: evolutionary search for GPU programs.

Owns the public names that a task needs. Importing it loads no CUDA library, no matplotlib and no pyribs; NumPy is loaded with the
first name that needs it.
"""

from typing import TYPE_CHECKING, Any

from evo.errors import UserError

if TYPE_CHECKING:
    from evo.task import Programs, Scores, Task

    __version__: str

__all__ = ["Programs", "Scores", "Task", "UserError", "__version__"]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("evo")
    if name in __all__:
        from evo import task

        return getattr(task, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
