"""Threads that do the parts of a batch together.

Owns who does which part, the order of the results, the first error and the time limit. Knows nothing of what a part is, but that
the task's `score` is at fault if it does not end.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from evo.errors import UserError
from evo.waiting import WAKE_S

T = TypeVar("T")
R = TypeVar("R")


class Crew:
    """Threads. The caller waits while they work, so that it can end a batch with a part that hangs.

    Args:
        size: how many they are.
        place: `file:line` of the task's `score`, for messages.
    """

    def __init__(self, size: int, place: str):
        self.size, self.place = size, place
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._is_abandoned = False
        # Python's end does not wait for daemons, so a part that hangs cannot hold it.
        self._threads = [threading.Thread(target=self._serve, name=f"evaluate_{i}", daemon=True) for i in range(size)]
        for thread in self._threads:
            thread.start()

    def map(
        self,
        function: Callable[[T], R],
        parts: Sequence[T],
        limit_s: float = float("inf"),
        then: Callable[[list[R]], Any] | None = None,
    ) -> list[Any]:
        """What the function returns for each part, in order. Where it raises something, this raises the first.

        Args:
            limit_s: for a part.
            then: makes one result of them all, which is what is given then; called by the thread that ends the last part.

        Raises:
            UserError: a part takes longer than the limit. Its thread goes on.
        """
        if not self._threads:
            raise RuntimeError("the evaluator is closed")
        job = _Job(function, parts, then)
        num_threads = min(self.size, len(parts))
        seen_s: dict[tuple[int, int], float] = {}  # how long parts have been under way
        for _ in range(num_threads):
            self._jobs.put(job)
        try:
            while num_threads:
                # Python handles signals in the main thread. The system may deliver Ctrl-C to another one, which does not wake the
                # main thread: without a time limit it would see the signal only after the batch.
                try:
                    error = job.ended.get(timeout=WAKE_S)
                except Empty:
                    if not all(thread.is_alive() for thread in self._threads):  # Python could not even tell of an error
                        raise MemoryError("a thread that runs programs has ended") from None
                    seen_s = {part: seen_s.get(part, -WAKE_S) + WAKE_S for part in job.begun.copy().items()}
                    if max(seen_s.values(), default=0.0) > limit_s:
                        raise UserError(overtime_message(self.place, limit_s)) from None
                    continue
                if isinstance(error, Exception):
                    raise error
                if error:  # such as asyncio.CancelledError: signals come in the main thread only
                    raise UserError(f"{self.place}: score() raised {type(error).__name__}: {error}") from error
                num_threads -= 1
        except BaseException:
            self._is_abandoned = True
            job.waiting.clear()
            raise
        return job.results

    def close(self) -> None:
        """Ends the threads, and waits for them unless a batch was given up."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            if not self._is_abandoned:
                thread.join()
        self._threads = []

    def _serve(self) -> None:
        while job := self._jobs.get():
            job.take_part()


def overtime_message(place: str, score_seconds: float) -> str:
    """What ends a batch with a chunk that takes too long, whether its programs or the task's `score` do."""
    return (
        f"{place}: programs were not run and scored within evaluation.score_seconds ({score_seconds:g} s a chunk); "
        "a run goes on from its last checkpoint"
    )


class _Job:
    """Parts that threads do together.

    Attributes:
        waiting: the indices of the parts that nobody has begun.
        begun: the part that each thread is at.
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
