"""Ctrl-C in searches from Python, which end with what they have found. Knows nothing of searches."""

import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Keeps the first Ctrl-C, or a notebook's stop button, from raising KeyboardInterrupt, and warns of it at the end.

    Nothing changes in other threads than the main one, and where somebody handles SIGINT already.

    Yields:
        Whether it was pressed: the search is to end.
    """
    pressed = threading.Event()

    def press(*_: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        pressed.set()

    is_free = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not is_free or threading.current_thread() is not threading.main_thread():
        yield pressed.is_set
        return
    signal.signal(signal.SIGINT, press)
    try:
        yield pressed.is_set
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if pressed.is_set():
        warnings.warn("interrupted: this is what the search has found so far", stacklevel=5)
