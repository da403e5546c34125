"""Who gets which request: credits, leases, losses and copies, without sockets and clocks, up to a thousand workers."""

import random
from collections import Counter

import pytest

from evo.compile.farm.schedule import FIRST_SLOTS, MAX_LOSSES, Job, Schedule

LEASE_S, LONGEST_S = 3.0, 100.0


@pytest.fixture
def schedule():
    return Schedule(LEASE_S, LONGEST_S)


def submit(schedule, *contents):
    jobs = [Job(content) for content in contents]
    for job in jobs:
        schedule.submit(job)
    return jobs


def assigned(schedule, now_s=0.0):
    """(worker, content) of what is handed out."""
    return [(peer, job.content) for peer, _, job in schedule.assign(now_s)]


def pass_time(schedule, start_s, end_s, heard=()):
    """Ticks each half second; these workers are heard. The workers that are lost."""
    lost = []
    now_s = start_s
    while now_s < end_s:
        now_s = min(end_s, now_s + 0.5)
        for peer in heard:
            schedule.heard(peer, now_s)
        lost += [peer for peer, _ in schedule.tick(now_s)]
    return lost


def test_a_worker_gets_what_its_cores_hold_and_one_that_waits(schedule):
    schedule.join("a", "host a", 2, 0.0)
    submit(schedule, *range(10))
    assert assigned(schedule) == [("a", 0), ("a", 1), ("a", 2)]
    assert schedule.num_waiting == 7
    assert assigned(schedule) == []


def test_idle_cores_come_before_places_in_waiting(schedule):
    schedule.join("a", "host a", 1, 0.0)
    schedule.join("b", "host b", 2, 0.0)
    submit(schedule, *range(5))
    peers = [peer for peer, _ in assigned(schedule)]
    assert Counter(peers[:3]) == {"a": 1, "b": 2}
    assert Counter(peers[3:]) == {"a": 1, "b": 1}


def test_only_the_holder_of_a_lease_answers_it_and_once(schedule):
    schedule.join("a", "host a", 1, 0.0)
    schedule.join("b", "host b", 1, 0.0)
    (job,) = submit(schedule, "x")
    ((peer, number, _),) = schedule.assign(0.0)
    other = "b" if peer == "a" else "a"
    assert schedule.holds(peer, number) is job
    assert schedule.holds(other, number) is schedule.answered(other, number, 0.0) is None
    assert schedule.answered(peer, number + 1, 0.0) is None
    assert schedule.answered(peer, number, 0.0) is job
    assert schedule.answered(peer, number, 0.0) is None


def test_a_silent_worker_is_lost_after_three_heartbeats_and_its_requests_go_to_others(schedule):
    schedule.join("a", "host a", 1, 0.0)
    submit(schedule, "x", "y")
    (_, number, _), _ = schedule.assign(0.0)
    schedule.join("b", "host b", 2, 0.0)
    assert pass_time(schedule, 0.0, LEASE_S, heard="b") == []
    assert pass_time(schedule, LEASE_S, LEASE_S + 0.5, heard="b") == ["a"]
    assert schedule.leave("a", is_loss=True) == []
    assert assigned(schedule) == [("b", "x"), ("b", "y")]
    assert schedule.answered("a", number, 0.0) is None  # too late
    assert not schedule.heard("a", 4.0)


def test_a_worker_that_beats_but_never_answers_is_lost_too(schedule):
    schedule.join("a", "host a", 1, 0.0)
    assert pass_time(schedule, 0.0, 500.0, heard="a") == []  # it holds nothing
    submit(schedule, "x")
    list(schedule.assign(500.0))
    assert pass_time(schedule, 500.0, 500.0 + LONGEST_S, heard="a") == []
    assert pass_time(schedule, 500.0 + LONGEST_S, 501.0 + LONGEST_S, heard="a")[:1] == ["a"]


def test_a_request_that_was_the_end_of_many_workers_is_handed_back(schedule):
    (job,) = submit(schedule, "x")
    for number in range(MAX_LOSSES):
        schedule.join(number, f"host {number % 2}", 1, 0.0)
        assert assigned(schedule) == [(number, "x")]
        assert schedule.leave(number, is_loss=True) == [job] * (number == MAX_LOSSES - 1)
    assert schedule.num_waiting == 0


def test_workers_that_take_their_leave_are_no_losses(schedule):
    submit(schedule, "x")
    for number in range(3 * MAX_LOSSES):
        schedule.join(number, "host", 1, 0.0)
        assert assigned(schedule) == [(number, "x")]
        assert schedule.leave(number, is_loss=False) == []
    assert schedule.num_waiting == 1


def test_the_runs_own_workers_are_never_lost(schedule):
    schedule.join("own", "this machine", 1, 0.0, is_local=True)
    submit(schedule, "x")
    assigned(schedule)
    assert pass_time(schedule, 0.0, 10 * LONGEST_S) == []


def test_a_request_that_is_over_is_not_handed_out_and_one_that_is_held_ends_with_its_lease(schedule):
    schedule.join("a", "host a", 1, 0.0)
    held, next_one, waiting, _ = submit(schedule, "held", "next", "waiting", "last")
    (_, number, _), _ = schedule.assign(0.0)
    assert schedule.give_up(waiting) == []
    (lease,) = schedule.give_up(held)
    assert (lease.peer, lease.number) == ("a", number)
    assert assigned(schedule) == []
    assert schedule.answered("a", number, 0.0) is held
    assert assigned(schedule) == [("a", "last")]
    assert [lease.peer for lease in schedule.give_up(next_one)] == ["a"]
    assert schedule.leave("a", is_loss=True) == []
    schedule.join("b", "host b", 1, 0.0)
    assert assigned(schedule) == [("b", "last")]


# ---- copies


@pytest.fixture
def late(schedule):
    """The lease of `slow`, which holds "x" for 10 s, where answers usually take a second. `fast` is idle."""
    schedule.join("slow", "a", 1, 0.0)
    schedule.join("fast", "b", 1, 0.0)
    submit(schedule, "x", "y")
    leases = {peer: number for peer, number, _ in schedule.assign(0.0)}
    assert schedule.answered("fast", leases["fast"], 1.0).content == "y"
    pass_time(schedule, 0.0, 2.5, heard=("slow", "fast"))
    assert assigned(schedule, 2.5) == []  # it is not late yet
    pass_time(schedule, 2.5, 10.0, heard=("slow", "fast"))
    return leases["slow"]


def test_an_idle_worker_gets_a_copy_of_what_is_late_and_the_first_answer_counts(schedule, late):
    ((peer, number, job),) = schedule.assign(10.0)
    assert (peer, job.content, schedule.num_copies) == ("fast", "x", 1)
    assert assigned(schedule, 10.0) == []  # one copy
    assert schedule.answered("fast", number, 10.5) is job
    assert [lease.number for lease in schedule.give_up(job)] == [late]
    assert assigned(schedule, 10.5) == []
    assert schedule.leave("slow", is_loss=True) == [] and assigned(schedule, 10.5) == []


def test_a_request_with_a_copy_is_put_back_only_when_both_are_lost(schedule, late):
    list(schedule.assign(10.0))
    assert schedule.leave("slow", is_loss=True) == [] and schedule.num_waiting == 0
    assert schedule.leave("fast", is_loss=True) == [] and schedule.num_waiting == 1


def test_what_waits_comes_before_copies(schedule, late):
    submit(schedule, "z")
    assert assigned(schedule, 10.0) == [("fast", "z")]


def test_a_worker_that_claims_thousands_of_slots_and_answers_nothing_gets_a_few_requests(schedule):
    schedule.join("hog", "a", 4096, 0.0)
    schedule.join("good", "b", 4, 0.0)
    submit(schedule, *range(200))
    held = [*schedule.assign(0.0)]
    assert Counter(peer for peer, _, _ in held) == {"hog": FIRST_SLOTS + 1, "good": 5}
    assert schedule.num_slots == FIRST_SLOTS + 4
    held = [(peer, number) for peer, number, _ in held if peer == "good"]
    now_s, done = 0.0, set()
    while held:
        peer, number = held.pop(0)
        now_s += 0.1
        job = schedule.answered(peer, number, now_s)
        schedule.give_up(job)
        done.add(job.content)
        if not held and len(done) < 200:
            pass_time(schedule, now_s, now_s + 5.0, heard=("hog", "good"))
            now_s += 5.0
        held += [(peer, number) for peer, number, _ in schedule.assign(now_s)]
    assert done == set(range(200)) and schedule.num_copies == FIRST_SLOTS + 1


def test_a_worker_that_answers_soon_holds_as_many_requests_as_it_claims(schedule):
    schedule.join("a", "host a", 64, 0.0)
    submit(schedule, *range(1000))
    held = [*schedule.assign(0.0)]
    for _ in range(56):
        peer, number, _ = held.pop(0)
        schedule.answered(peer, number, 0.1)
        held += schedule.assign(0.1)
    assert len(held) == 65 and schedule.num_slots == 64


# ---- many workers


class Mischief:
    """Workers that join, vanish, take their leave, fall silent, and answer late and twice, all drawn from one seed."""

    def __init__(self, schedule, seed):
        self.schedule, self.random, self.now_s = schedule, random.Random(seed), 0.0
        self.counts, self.peers, self.leases, self.ends = Counter(), {}, [], Counter()  # peers: slots of each

    def step(self):
        act = self.random.choices((self.join, self.go, self.answer, self.wait, self.cancel), (3, 1, 40, 10, 1))[0]
        act()
        assert self.schedule.num_slots == sum(self.peers.values()) and self.schedule.num_workers == len(self.peers)
        for peer, number, job in self.schedule.assign(self.now_s):
            assert peer in self.peers and not job.is_over and not self.ends[job.content]
            self.leases.append((peer, number, job))

    def join(self):
        peer = f"worker {self.counts['join']}"
        self.counts["join"] += 1
        self.peers[peer] = self.random.randint(1, 4)
        self.schedule.join(peer, f"host {self.random.randrange(3)}", self.peers[peer], self.now_s)

    def go(self):
        if len(self.peers) > 3:
            self.lose(self.random.choice([*self.peers]), self.random.random() < 0.3)

    def lose(self, peer, is_loss):
        self.counts["lost"] += 1
        del self.peers[peer]
        for job in self.schedule.leave(peer, is_loss=is_loss):
            self.end(job)

    def answer(self):
        if not self.leases:
            return
        peer, number, job = self.leases[self.random.randrange(-min(9, len(self.leases)), 0)]  # perhaps again, perhaps too late
        answered = self.schedule.answered(peer, number, self.now_s)
        if answered is None:
            self.counts["dropped"] += 1
            return
        assert answered is job and peer in self.peers
        if job.is_over:
            return
        self.end(job)

    def wait(self):
        self.now_s += self.random.uniform(0.0, 0.4)
        for peer in self.peers:
            if self.random.random() < 0.5:
                self.schedule.heard(peer, self.now_s)
        for peer, _ in self.schedule.tick(self.now_s):
            self.lose(peer, True)

    def cancel(self):
        waiting = [job for _, _, job in self.leases[-9:] if not self.ends[job.content]]
        if waiting:
            job = self.random.choice(waiting)
            self.end(job)

    def end(self, job):
        if not job.is_over:
            self.schedule.give_up(job)
            self.ends[job.content] += 1


@pytest.mark.parametrize("seed", range(5))
def test_whatever_workers_do_each_request_ends_once(schedule, seed):
    mischief = Mischief(schedule, seed)
    for _ in range(10):
        mischief.join()
    submit(schedule, *range(500))
    for _ in range(100_000):
        if len(mischief.ends) == 500:
            break
        mischief.step()
    assert mischief.ends == Counter(range(500))
    assert schedule.num_copies > 5 and mischief.counts["lost"] > 10 and mischief.counts["dropped"] > 50
