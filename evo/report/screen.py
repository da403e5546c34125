"""Detects terminals that can redraw their output. Knows nothing of its content."""

import os
import sys

_REFUSALS = {"TERM": ("dumb", "unknown"), "TTY_COMPATIBLE": ("0",), "TTY_INTERACTIVE": ("0",)}


def is_terminal() -> bool:
    """Return whether standard output is a terminal that moves its cursor. A notebook's cell (JPY_PARENT_PID) does not."""
    is_refused = any(os.environ.get(name) in values for name, values in _REFUSALS.items())
    return sys.stdout is not None and sys.stdout.isatty() and not is_refused and "JPY_PARENT_PID" not in os.environ
