"""Where compile requests are fulfilled: in processes of this machine, or in a farm of many.

Owns this choice. Loads the farm's libraries only if it is chosen.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from evo.compile.pool import DEFAULT_TIME_LIMIT_S, CompilePool
from evo.errors import UserError
from evo.options import Options

if TYPE_CHECKING:
    from evo.compile.farm.server import CompileFarm

INSTALL_FARM = "pip install 'evo-ptx[farm]'"


class FarmOptions(Options):
    """Compile workers on other machines (`evo worker`).

    `listen` is where they connect, such as tcp://0.0.0.0:5711. `keys` is the folder of the run's keys (`evo keys new`), relative
    to the config file; an address beyond this machine needs it. `server_file`: where the run writes its address for workers, as
    long as it lasts, relative to the config file.
    """

    listen: str
    keys: str | None = None
    server_file: str | None = None


def why_no_farm() -> str | None:
    """Why this installation cannot be part of a farm, or None if it can."""
    missing = [name for name, module in (("pyzmq", "zmq"), ("msgpack", "msgpack")) if find_spec(module) is None]
    return f"{' and '.join(missing)} missing: {INSTALL_FARM}" if missing else None


def open_executor(
    num_workers: int | None = None, time_limit_s: float = DEFAULT_TIME_LIMIT_S, farm: FarmOptions | None = None
) -> CompilePool | CompileFarm:
    """An executor for compile requests.

    Args:
        num_workers: processes of this machine; None: one per core; 0: none, which takes a farm.
        time_limit_s: for one request.
        farm: None: there is none.

    Raises:
        UserError: the farm cannot be opened.
    """
    if farm is None:
        return CompilePool(num_workers, time_limit_s)
    if reason := why_no_farm():
        raise UserError(f"evaluation.farm: {reason}")
    from evo.compile.farm.server import CompileFarm

    keys, server_file = (Path(path) if path else None for path in (farm.keys, farm.server_file))
    return CompileFarm(farm.listen, keys, num_workers, time_limit_s, server_file=server_file)
