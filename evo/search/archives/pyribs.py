"""pyribs' grid, without the two seconds that importing all of pyribs takes.

Owns which modules wait. pyribs' packages import every archive, and with them scikit-learn, SciPy, pandas and numba. A module that
waits is in `sys.modules` with nothing executed. Whoever asks it for a name, in evo or not, makes it the complete module; of the
functions that pyribs takes from it by name, it has stand-ins that call the true ones. Knows nothing of programs.
"""

import sys
import threading
from importlib.abc import Loader
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any

# Packages before what is in them. Module -> the names that pyribs' grid imports from it, and calls where evo does not.
_NAMES = {
    "ribs": (),
    "ribs.archives": (),
    "ribs.archives._archive_data_frame": ("ArchiveDataFrame",),
    "numpy_groupies": ("aggregate_nb",),
}
_waiting: dict[str, tuple[ModuleType, Loader]] = {}
# One each: a thread that imports something of pyribs may wait for a package that this is in, which another thread executes.
_locks = {name: threading.RLock() for name in _NAMES}


def _wait(module_name: str) -> None:
    """Puts a module where imports find it, to be executed when it is asked for a name."""
    spec = find_spec(module_name)
    assert spec
    assert spec.loader
    module = module_from_spec(spec)

    def get(name: str) -> Any:
        if name != "__path__":  # which an import asks of modules that are not packages
            _complete(module_name)
        if name in vars(module):
            return vars(module)[name]
        raise AttributeError(f"module {module_name!r} has no attribute {name!r}")

    def stand_in(name: str) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            _complete(module_name)
            return vars(module)[name](*args, **kwargs)

        return call

    vars(module).update({name: stand_in(name) for name in _NAMES[module_name]}, __getattr__=get)
    _waiting[module_name] = module, spec.loader
    sys.modules[module_name] = module


def _complete(module_name: str) -> None:
    """Executes a module, after those in it and behind it that wait: packages hand on names of what is in them."""
    names = list(_NAMES)
    for name in reversed(names[names.index(module_name) :]):
        with _locks[name]:
            if waiting := _waiting.pop(name, None):
                module, loader = waiting
                get = vars(module)["__getattr__"]
                loader.exec_module(module)
                if vars(module)["__getattr__"] is get:
                    del vars(module)["__getattr__"]


for _name in _NAMES:
    if _name not in sys.modules:
        _wait(_name)

from ribs.archives._archive_base import ArchiveBase  # noqa: E402
from ribs.archives._array_store import Update  # noqa: E402
from ribs.archives._grid_archive import GridArchive  # noqa: E402

__all__ = ["ArchiveBase", "GridArchive", "Update"]
