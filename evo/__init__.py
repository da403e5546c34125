"""evo: evolutionary search for GPU programs.

Owns the public names that a task needs, and the place of the C headers. Importing it loads no CUDA library, no matplotlib and no
pyribs; NumPy is loaded with the first name that needs it.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from evo.errors import UserError

if TYPE_CHECKING:
    from evo.task import Programs, Scores, Task

    __version__: str

__all__ = ["Programs", "Scores", "Task", "UserError", "__version__", "get_include"]


def get_include() -> str:
    """The folder of the C headers, for a compiler's include path; `cmake/` in it has a package config for CMake."""
    package = Path(__file__).parent
    installed = package / "include"
    return str(installed if installed.is_dir() else package.parent / "csrc")  # csrc: an editable install


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("evo")
    if name in __all__:
        from evo import task

        return getattr(task, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
