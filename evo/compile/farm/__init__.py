"""The compile farm: workers on other machines fulfil a run's compile requests over ZeroMQ. docs/farm.md has the wire format."""

from importlib.util import find_spec

INSTALL_FARM = "pip install 'evo-ptx[farm]'"


def why_no_farm() -> str | None:
    """Why this installation cannot be part of a farm, or None if it can."""
    missing = [name for name, module in (("pyzmq", "zmq"), ("msgpack", "msgpack")) if find_spec(module) is None]
    return f"{' and '.join(missing)} missing: {INSTALL_FARM}" if missing else None
