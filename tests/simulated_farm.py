"""A farm in simulated time: the run's real schedule, and workers that are lines of a list. No sockets, no processes, no clock.

Owns the workers' mischief: they vanish without a word, fall silent and come back with answers that nobody wants any more, answer
twice, and work on broken machines that fail with whatever they are given. Everything is drawn from one seed.
"""

from __future__ import annotations

import heapq
import itertools
import random
import threading
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from evo.compile.farm.schedule import Job, Schedule
from evo.compile.request import CompileExecutor

HEARTBEAT_S = 1.0
LEASE_S = 3 * HEARTBEAT_S


@dataclass(frozen=True)
class Mischief:
    """What goes wrong. vanish_per_s: share of the workers that vanish each second, each replaced by a new one. silent: share of
    these that are only silent for ten seconds. twice: share of answers that are sent twice. broken: the first workers,
    this many, are of one machine on which each request fails.
    """

    vanish_per_s: float = 0.0
    silent: float = 0.0
    twice: float = 0.0
    broken: int = 0


@dataclass(eq=False)
class _Worker:
    number: int
    is_broken: bool
    is_gone: bool = False
    silent_until_s: float = 0.0
    waiting: deque[tuple[int, Any]] = field(default_factory=deque)
    num_busy: int = 0


class Simulation:
    """A schedule and its workers.

    Args:
        fulfil: makes the result of a request.
        num_slots: requests that each worker fulfils at once.
        compile_s, network_s: seconds for a request, and for a message; drawn from 0.5 to 1.5 times of these.
    """

    def __init__(
        self,
        num_workers: int,
        seed: int,
        fulfil: Callable[[Any], Any],
        mischief: Mischief = Mischief(),
        num_slots: int = 1,
        compile_s: float = 1.0,
        network_s: float = 0.02,
    ):
        self.now_s = 0.0
        self.counts: Counter[str] = Counter()
        self._random = random.Random(seed)
        self._fulfil = fulfil
        self._mischief = mischief
        self._num_slots = num_slots
        self._compile_s, self._network_s = compile_s, network_s
        self._schedule: Schedule[tuple[Any, Callable[[Any], None]]] = Schedule(LEASE_S, 1e6, HEARTBEAT_S)
        self._events: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._order = itertools.count()
        self._numbers = itertools.count()
        self._workers: list[_Worker] = []
        for _ in range(num_workers):
            self._add_worker()
        self._after(0.0, self._tick)

    def submit(self, content: Any, done: Callable[[Any], None]) -> None:
        """Puts a request in line; `done` is called with its result, an exception if it was given up."""
        self._schedule.submit(Job((content, done)))
        self._assign()

    def step(self) -> None:
        """Lets the next thing happen."""
        self.now_s, _, event, arguments = heapq.heappop(self._events)
        event(*arguments)

    def _after(self, seconds: float, event: Callable[..., None], *arguments: Any) -> None:
        heapq.heappush(self._events, (self.now_s + seconds, next(self._order), event, arguments))

    def _some(self, seconds: float) -> float:
        return seconds * self._random.uniform(0.5, 1.5)

    def _message(self, event: Callable[..., None], *arguments: Any) -> None:
        self._after(self._some(self._network_s), event, *arguments)

    # ---- the run

    def _tick(self) -> None:
        for peer, _ in self._schedule.tick(self.now_s):
            self.counts["lost"] += 1
            for job in self._schedule.leave(peer, is_loss=True):
                self.counts["given up"] += 1
                job.content[1](RuntimeError("given up"))
        self._assign()
        self._after(HEARTBEAT_S / 2, self._tick)

    def _assign(self) -> None:
        for peer, number, job in self._schedule.assign(self.now_s):
            self._message(self._arrives, self._workers[peer], number, job.content[0])

    def _hears(self, worker: _Worker, what: str, number: int = 0, result: Any = None) -> None:
        if what == "hello":
            if worker.number in self._schedule:
                self._schedule.leave(worker.number, is_loss=False)
            name = "broken" if worker.is_broken else f"machine {worker.number}"
            self._schedule.join(worker.number, name, self._num_slots, self.now_s)
        elif not self._schedule.heard(worker.number, self.now_s):
            self.counts["unknown"] += 1
            self._message(self._who, worker)
        elif what == "answer":
            job = self._schedule.answered(worker.number, number)
            if job is None:
                self.counts["dropped"] += 1
            elif result is not None or self._schedule.failed(job, worker.number):
                self.counts["failed" if result is None else "done"] += 1
                job.content[1](result)
            else:
                self.counts["second opinions"] += 1
        self._assign()

    # ---- a worker

    def _add_worker(self) -> None:
        number = next(self._numbers)
        worker = _Worker(number, number < self._mischief.broken)
        self._workers.append(worker)
        self._message(self._hears, worker, "hello")
        self._after(self._some(HEARTBEAT_S), self._beats, worker)
        if self._mischief.vanish_per_s:
            self._after(self._random.expovariate(self._mischief.vanish_per_s), self._vanishes, worker)

    def _vanishes(self, worker: _Worker) -> None:
        if self._random.random() < self._mischief.silent:
            worker.silent_until_s = self.now_s + 10.0
            self._after(self._random.expovariate(self._mischief.vanish_per_s), self._vanishes, worker)
            self.counts["fell silent"] += 1
        else:
            worker.is_gone = True
            self.counts["vanished"] += 1
            self._add_worker()

    def _says(self, worker: _Worker, *message: Any) -> None:
        """A silent worker's words arrive when it is no longer silent."""
        if not worker.is_gone:
            self._after(max(0.0, worker.silent_until_s - self.now_s) + self._some(self._network_s), self._hears, worker, *message)

    def _beats(self, worker: _Worker) -> None:
        if not worker.is_gone:
            if self.now_s >= worker.silent_until_s:
                self._says(worker, "beat")
            self._after(HEARTBEAT_S, self._beats, worker)

    def _who(self, worker: _Worker) -> None:
        if not worker.is_gone:
            worker.waiting.clear()
            self._says(worker, "hello")

    def _arrives(self, worker: _Worker, number: int, content: Any) -> None:
        if not worker.is_gone:
            worker.waiting.append((number, content))
            self._works(worker)

    def _works(self, worker: _Worker) -> None:
        while worker.waiting and worker.num_busy < self._num_slots:
            worker.num_busy += 1
            self._after(self._some(self._compile_s), self._ends, worker, *worker.waiting.popleft())

    def _ends(self, worker: _Worker, number: int, content: Any) -> None:
        worker.num_busy -= 1
        if worker.is_gone:
            return
        result = None if worker.is_broken else self._fulfil(content)
        self._says(worker, "answer", number, result)
        if self._random.random() < self._mischief.twice:
            self._says(worker, "answer", number, result)
        self._works(worker)


class SimulatedFarm(CompileExecutor):
    """An executor whose calls are made by simulated workers. Time passes, as fast as it can, while calls are unfinished."""

    num_workers = 1

    def __init__(self, num_workers: int, seed: int, mischief: Mischief):
        self.num_workers = num_workers
        self.simulation = Simulation(num_workers, seed, lambda call: call(), mischief)
        self._submitted: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._wake = threading.Semaphore(0)
        self._num_unfinished = 0
        self._is_over = False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self._submitted.append((future, lambda: fn(*args, **kwargs)))
        self._wake.release()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._is_over = True
        self._wake.release()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_over:
            self._wake.acquire()
            while self._submitted or self._num_unfinished:
                while self._submitted:
                    future, call = self._submitted.popleft()
                    self._num_unfinished += 1
                    self.simulation.submit(call, lambda result, future=future: self._end(future, result))
                self.simulation.step()

    def _end(self, future: Future[Any], result: Any) -> None:
        self._num_unfinished -= 1
        if future.set_running_or_notify_cancel():
            if isinstance(result, BaseException):
                future.set_exception(result)
            else:
                future.set_result(result)
