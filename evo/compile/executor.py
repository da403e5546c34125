"""Where compile requests are fulfilled: in processes of this machine, or in a farm of many.

Owns this choice. Loads the farm's libraries only if it is chosen.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evo.compile.pool import DEFAULT_TIME_LIMIT_S, CompilePool
from evo.errors import UserError

if TYPE_CHECKING:
    from evo.compile.farm.server import CompileFarm

INSTALL_FARM = "pip install 'evo-ptx[farm]'"


def why_no_farm() -> str | None:
    """Why this installation cannot be part of a farm, or None if it can."""
    missing = [name for name, module in (("pyzmq", "zmq"), ("msgpack", "msgpack")) if find_spec(module) is None]
    return f"{' and '.join(missing)} missing: {INSTALL_FARM}" if missing else None


def num_local_workers(settings: Mapping[str, Any]) -> int | None:
    """Compile processes of this machine by a config's section `evaluation`, given as plain values; None: one per core."""
    wanted: int | None = settings["compile_workers"] if settings["local_workers"] is None else settings["local_workers"]
    return wanted


def open_executor(
    num_workers: int | None = None, time_limit_s: float = DEFAULT_TIME_LIMIT_S, farm: Mapping[str, Any] | None = None
) -> CompilePool | CompileFarm:
    """An executor for compile requests.

    Args:
        num_workers: processes of this machine; None: one per core; 0: none, which takes a farm.
        time_limit_s: for one request.
        farm: the section of a config, with `listen` and `keys`; None: no farm.

    Raises:
        UserError: the farm cannot be opened.
    """
    if farm is None:
        return CompilePool(num_workers, time_limit_s)
    if reason := why_no_farm():
        raise UserError(f"evaluation.farm: {reason}")
    from evo.compile.farm.server import CompileFarm

    return CompileFarm(farm["listen"], Path(farm["keys"]) if farm["keys"] else None, num_workers, time_limit_s)
