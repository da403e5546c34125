"""Waits of tests, and questions about processes."""

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

LIMIT_S = 300.0  # far beyond what any of these waits takes, on a busy machine too: it ends a test that hangs


def wait_until(condition: Callable[[], object]) -> None:
    """Returns as soon as the condition holds."""
    end_s = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < end_s, "waited in vain"
        time.sleep(0.002)


def is_gone(process: int) -> bool:
    """Return whether a process has ended. One that nobody has waited for yet has."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def children_of(process: int) -> set[int]:
    """Numbers of the processes that any thread of a process has started."""
    found: set[int] = set()
    for thread in Path(f"/proc/{process}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended; another one has its children now
            found.update(map(int, (thread / "children").read_text().split()))
    return found
