"""Wakes a thread that waits in a poll, from other threads and from handlers of signals.

Owns a descriptor, and sees that nobody writes to it after it was closed: its number may then be that of another file.
"""

import os
import threading
from contextlib import suppress


class Wake:
    """A descriptor for a poll, which is readable from `set` to `clear`. After `close`, `set` does nothing."""

    def __init__(self) -> None:
        self._descriptor = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        # A signal's handler may want it while its own thread has it.
        self._lock = threading.RLock()

    def fileno(self) -> int:
        """The descriptor."""
        return self._descriptor

    def set(self) -> None:
        """Makes it readable. May be called by any thread and by a signal's handler."""
        with self._lock:
            if self._descriptor >= 0:
                os.eventfd_write(self._descriptor, 1)

    def clear(self) -> None:
        """Makes it unreadable."""
        with suppress(BlockingIOError):
            os.eventfd_read(self._descriptor)

    def close(self) -> None:
        """Closes the descriptor, once. The poll must be over."""
        with self._lock:
            descriptor, self._descriptor = self._descriptor, -1
            if descriptor >= 0:
                os.close(descriptor)
