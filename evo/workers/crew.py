"""Threads that do the parts of a job together, or calls one by one.

Owns who does which part, the order of the results, the first error and the time limit. Knows nothing of what a part is.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from evo.workers import WAKE_S

T = TypeVar("T")
R = TypeVar("R")


class Crew:
    """Threads. The caller of `map` waits while they work, so that it can end a job with a part that hangs.

    Raises RuntimeError: the system starts no more threads.
    """

    def __init__(self, size: int):
        self.size = size
        self._calls: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._is_abandoned = False
        # Python's end does not wait for daemons, so a part that hangs cannot hold it.
        self._threads = [threading.Thread(target=self._serve, name=f"crew_{i}", daemon=True) for i in range(size)]
        try:
            for thread in self._threads:
                thread.start()
        except RuntimeError:
            self.close(waits=False)
            raise

    def put(self, call: Callable[[], object]) -> None:
        """Has a thread make a call, which raises nothing."""
        self._calls.put(call)

    def map(
        self,
        function: Callable[[T], R],
        parts: Sequence[T],
        limit_s: float = float("inf"),
        then: Callable[[list[R]], Any] | None = None,
    ) -> list[Any]:
        """The function's results for all parts, in order. Raises the first exception that it raises.

        Args:
            limit_s: for a part.
            then: makes one result of them all, which is the only one then; called by the thread that ends the last part.

        Raises:
            TimeoutError: a part takes longer than the limit. Its thread goes on.
        """
        if not self._threads:
            raise RuntimeError("the threads have ended")
        job = _Job(function, parts, then)
        num_threads = min(self.size, len(parts))
        seen_s: dict[tuple[int, int], float] = {}  # how long parts have been under way
        for _ in range(num_threads):
            self._calls.put(job.take_part)
        try:
            while num_threads:
                # Python handles signals in the main thread. The system may deliver Ctrl-C to another one, which does not wake the
                # main thread: without a time limit it would see the signal only after the job.
                try:
                    error = job.ended.get(timeout=WAKE_S)
                except Empty:
                    if not all(thread.is_alive() for thread in self._threads):  # Python could not even tell of an error
                        raise MemoryError("a thread that runs programs has ended") from None
                    seen_s = {part: seen_s.get(part, -WAKE_S) + WAKE_S for part in job.begun.copy().items()}
                    if max(seen_s.values(), default=0.0) > limit_s:
                        raise TimeoutError from None
                    continue
                if error:
                    raise error
                num_threads -= 1
        except BaseException:
            self._is_abandoned = True
            job.waiting.clear()
            raise
        return job.results

    def close(self, *, waits: bool = True) -> None:
        """Ends the threads after the calls that they have, and waits for them unless a job was given up."""
        for _ in self._threads:
            self._calls.put(None)
        for thread in self._threads:
            if waits and not self._is_abandoned:
                thread.join()
        self._threads = []

    def _serve(self) -> None:
        while call := self._calls.get():
            call()


class _Job:
    """Parts that threads do together.

    Attributes:
        waiting: the indices of the parts that nobody has begun.
        begun: thread -> the part that it is at.
        ended: gets an error or None from each thread.
    """

    def __init__(self, function: Callable[[Any], Any], parts: Sequence[Any], then: Callable[[list[Any]], Any] | None):
        self._function, self._parts, self._then = function, parts, then
        self._left = iter(range(len(parts) - 1, -1, -1))  # parts that have not ended; taking one is atomic
        self.results: list[Any] = [None] * len(parts)
        self.waiting = deque(range(len(parts)))
        self.begun: dict[int, int] = {}
        self.ended: SimpleQueue[BaseException | None] = SimpleQueue()

    def take_part(self) -> None:
        """Does parts until none is left."""
        thread, error = threading.get_ident(), None
        try:
            while (index := self._next()) is not None:
                self.begun[thread] = index
                self.results[index] = self._function(self._parts[index])
                if next(self._left) == 0 and self._then:
                    self.begun[thread] = len(self._parts)
                    self.results = [self._then(self.results)]
        except BaseException as raised:  # noqa: BLE001 - the caller gets whatever it is
            self.waiting.clear()
            error = raised
        self.begun.pop(thread, None)
        self.ended.put(error)

    def _next(self) -> int | None:
        try:
            return self.waiting.popleft()
        except IndexError:
            return None
