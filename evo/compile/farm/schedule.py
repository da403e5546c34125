"""Which worker gets which request, and what becomes of it: credits, leases, losses, copies.

Owns the state of workers and requests. Knows nothing of sockets, threads and clocks: whoever calls it says what time it is. So a
thousand workers that vanish, hang and answer twice can be tried in a simulation, with the same outcome each time.

- A worker holds as many requests as it fulfils at once, and one more that waits, so that it never waits for the network. A new
  one holds a few, and one more with each that it answers.
- Each request that it holds is a lease. Whatever the worker sends renews its leases. After a silence it is lost, and its requests
  go to others. So are a worker's requests if it holds one for longer than any can take.
- Only the holder of a lease can answer it, once: what comes late or twice belongs to no lease.
- When nothing waits, an idle worker gets a copy of what another one holds for much longer than is usual (as backup tasks: Dean
  and Ghemawat, MapReduce, 2004). The first answer counts.
- What was the end of many workers is handed back to the caller.
"""

import itertools
from collections import deque
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

# A request is handed back when this many workers were lost while they held it: it may be what ends them. If a tenth of all
# workers vanishes each second, chance alone does that to one request in millions.
MAX_LOSSES = 8
FIRST_SLOTS = 8  # requests that a new worker holds, whatever it claims
# A request is late once a worker has held it LATE_TIMES as long as usual, and LATE_S; before any answer FIRST_USUAL_S is usual.
LATE_TIMES, LATE_S, FIRST_USUAL_S = 3.0, 1.0, 5.0

T = TypeVar("T")


@dataclass(eq=False)
class Job(Generic[T]):
    """A request in the farm. losses: workers that were lost with it. leases: under which it is held. is_over: nobody waits for it
    any more.
    """

    content: T
    losses: int = 0
    leases: list[int] = field(default_factory=list)
    is_over: bool = False


@dataclass
class Lease(Generic[T]):
    """A request in a worker's hands."""

    number: int
    peer: Hashable
    job: Job[T]
    since_s: float


@dataclass
class _Worker:
    """slots: requests that it fulfils at once. capacity: of these, those that it is given."""

    name: str
    slots: int
    capacity: int
    heard_s: float
    is_local: bool
    leases: dict[int, None] = field(default_factory=dict)


class Schedule(Generic[T]):
    """Requests that wait, workers, and who holds what.

    Attributes:
        num_slots: requests that all workers fulfil at once, as far as they have shown.
        num_copies: that were handed out so far.

    Args:
        lease_s: silence after which a worker is lost.
        longest_s: a worker is lost, too, if it holds a request for longer than this.
    """

    def __init__(self, lease_s: float, longest_s: float):
        self.num_slots = self.num_copies = 0
        self._lease_s = lease_s
        self._longest_s = longest_s
        self._usual_s, self._num_answers = FIRST_USUAL_S, 0
        self._numbers = itertools.count(1)
        self._waiting: deque[Job[T]] = deque()
        self._leases: dict[int, Lease[T]] = {}
        self._workers: dict[Hashable, _Worker] = {}
        # Workers with an idle core, and workers that only lack a request in waiting. In both, who waits longest comes first.
        self._idle: dict[Hashable, None] = {}
        self._spare: dict[Hashable, None] = {}

    @property
    def num_workers(self) -> int:
        """Workers, this machine's own included."""
        return len(self._workers)

    @property
    def num_waiting(self) -> int:
        """Requests that no worker holds."""
        return len(self._waiting)

    def __contains__(self, peer: Hashable) -> bool:
        return peer in self._workers

    def join(self, peer: Hashable, name: str, slots: int, now_s: float, *, is_local: bool = False) -> None:
        """Takes a worker. A local one is never lost, and what fails there has failed."""
        capacity = slots if is_local else min(slots, FIRST_SLOTS)
        self._workers[peer] = _Worker(name, slots, capacity, now_s, is_local)
        self.num_slots += capacity
        self._seat(peer)

    def leave(self, peer: Hashable, *, is_loss: bool) -> list[Job[T]]:
        """Forgets a worker. Its requests go to others, but for those that were the end of many workers: they are returned."""
        worker = self._workers.pop(peer)
        self.num_slots -= worker.capacity
        self._idle.pop(peer, None)
        self._spare.pop(peer, None)
        handed_back = []
        for number in reversed(worker.leases):
            lease = self._end(number)
            lease.job.losses += is_loss
            if lease.job.losses < MAX_LOSSES:
                self._put_back(lease.job)
            elif not lease.job.leases:
                handed_back.append(lease.job)
        return handed_back

    def heard(self, peer: Hashable, now_s: float) -> bool:
        """Renews a worker's leases; false if there is no such worker."""
        worker = self._workers.get(peer)
        if worker:
            worker.heard_s = now_s
        return worker is not None

    def name(self, peer: Hashable) -> str:
        """The machine of a worker."""
        return self._workers[peer].name

    def submit(self, job: Job[T]) -> None:
        """Puts a request in line."""
        self._waiting.append(job)

    def give_up(self, job: Job[T]) -> list[Lease[T]]:
        """Notes that nobody waits for a request any more; its leases, which end as any other does."""
        job.is_over = True
        return [self._leases[number] for number in job.leases]

    def answered(self, peer: Hashable, number: int, now_s: float) -> Job[T] | None:
        """Ends a lease: the request that is answered. None if this worker does not hold it, or no longer does."""
        if not self.holds(peer, number):
            return None
        lease, worker = self._end(number), self._workers[peer]
        del worker.leases[number]
        if worker.capacity < worker.slots:
            worker.capacity += 1
            self.num_slots += 1
        self._num_answers += 1
        self._usual_s += (now_s - lease.since_s - self._usual_s) * max(1 / self._num_answers, 0.05)
        self._seat(peer)
        return lease.job

    def holds(self, peer: Hashable, number: int) -> Job[T] | None:
        """The request of a lease; None if this worker does not hold it."""
        lease = self._leases.get(number)
        return lease.job if lease and lease.peer == peer else None

    def assign(self, now_s: float) -> Iterator[tuple[Hashable, int, Job[T]]]:
        """Gives requests to workers, as far as both go: worker, number of the lease and request of each."""
        while self._waiting:
            job = self._waiting[0]
            if job.is_over:
                self._waiting.popleft()
                continue
            seats = self._idle or self._spare
            if not seats:
                return
            self._waiting.popleft()
            yield self._lend(next(iter(seats)), job, now_s)
        late_s = now_s - max(LATE_TIMES * self._usual_s, LATE_S)
        for lease in [*self._leases.values()] if self._idle else ():  # the oldest first
            others = [peer for peer in itertools.islice(self._idle, 2) if peer != lease.peer]
            if not self._idle or lease.since_s > late_s:
                return
            if others and len(lease.job.leases) == 1 and not lease.job.is_over:
                self.num_copies += 1
                yield self._lend(others[0], lease.job, now_s)

    def tick(self, now_s: float) -> list[tuple[Hashable, str]]:
        """Workers that are lost, and why. They are still there: `leave` forgets them."""
        lost = []
        for peer, worker in self._workers.items():
            if worker.is_local:
                continue
            if now_s - worker.heard_s > self._lease_s:
                lost.append((peer, f"was silent for {self._lease_s:g} s"))
            elif worker.leases and now_s - self._leases[next(iter(worker.leases))].since_s > self._longest_s:
                lost.append((peer, f"did not answer within {self._longest_s:g} s"))
        return lost

    def silent(self, now_s: float, seconds: float) -> list[Hashable]:
        """Workers that have said nothing for this long."""
        return [peer for peer, worker in self._workers.items() if not worker.is_local and now_s - worker.heard_s > seconds]

    def _lend(self, peer: Hashable, job: Job[T], now_s: float) -> tuple[Hashable, int, Job[T]]:
        number = next(self._numbers)
        job.leases.append(number)
        self._leases[number] = Lease(number, peer, job, now_s)
        self._workers[peer].leases[number] = None
        self._seat(peer)
        return peer, number, job

    def _seat(self, peer: Hashable) -> None:
        """Puts a worker where its number of leases says."""
        worker = self._workers[peer]
        self._idle.pop(peer, None)
        self._spare.pop(peer, None)
        if len(worker.leases) < worker.capacity:
            self._idle[peer] = None
        elif len(worker.leases) == worker.capacity:
            self._spare[peer] = None

    def _end(self, number: int) -> Lease[T]:
        lease = self._leases.pop(number)
        lease.job.leases.remove(number)
        return lease

    def _put_back(self, job: Job[T]) -> None:
        """Puts a request that was handed out in line again, before all others, unless a copy of it is in a worker's hands."""
        if not job.leases:
            self._waiting.appendleft(job)
