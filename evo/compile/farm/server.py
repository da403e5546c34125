"""The run's side of the farm: an executor whose requests are fulfilled by whichever workers connect, and by processes of its own.

Owns the thread that serves the socket, and what a message does. `evo.compile.farm.schedule` decides who gets what,
`evo.compile.farm.protocol` what a message may be. Trusts nothing that comes in before it is checked. Knows nothing of packs, but
that a request of one program can be halved no further: before workers condemn it, this machine tries it.
"""

from __future__ import annotations

import atexit
import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

from evo.compile.farm import protocol
from evo.compile.farm.keys import RunKeys, check_address
from evo.compile.farm.protocol import Answer, Beat, Bye, Cancel, Hello, Message, Request, Welcome, Who
from evo.compile.farm.router import Router
from evo.compile.farm.schedule import Job, Schedule
from evo.compile.pool import DEFAULT_TIME_LIMIT_S, CompilePool, WorkerDied
from evo.compile.request import Compiled, CompileExecutor, CompileFailure, CompileRequest, compile_request
from evo.errors import FailureKind
from evo.kernel.pointwise import kernel_name
from evo.kernel.template import ENTRY, POINTWISE

HEARTBEAT_S = 1.0
# Beyond the time limits of the request that a worker compiles and of the one that waits: for the network.
NETWORK_S = 60.0
MAX_WORKERS = 1 << 14
TICKS_PER_HEARTBEAT = 4  # how often time limits are checked
SILENT_HEARTBEATS = 1.25  # after such a silence it is tried whether a worker can still be reached
# Messages that are taken before time limits are checked and requests handed out.
MESSAGES_AT_ONCE = 64
RETRY_MS = 10  # until it is tried again to send to a worker that reads more slowly than is sent
MAX_REASON = 300  # characters of a failure's log in a line
ALONE_S = 3.0  # requests wait this long for the first worker before a line says so

_LOCAL = "this machine"
_log = logging.getLogger(__name__)

_P = ParamSpec("_P")
_T = TypeVar("_T")


class CompileFarm(CompileExecutor):
    """An executor of concurrent.futures whose compile requests go to the workers that connect, and to processes of its own.

    Other calls than of `compile_request` are made by its own processes. As with `CompilePool`, a future's exception is
    TimeoutError if a request exceeded the time limit, and WorkerDied if it ended the process that worked on it; `running()` is
    never true. A request of a single program fails only if it fails on this machine, if need be in a process that is started
    for that.

    Args:
        listen: where workers connect, such as `tcp://0.0.0.0:5711`. Port 0 takes any that is free; see `address`.
        keys: folder of the run's keys; None: workers are not authenticated, which only an address of this machine allows.
        num_local: processes of its own; None: one for each core that this process may use; 0: none.
        time_limit_s: for one request.
        heartbeat_s: what workers are asked for.

    Raises:
        UserError: the address is refused or in use, or the keys cannot be used.
    """

    def __init__(
        self,
        listen: str,
        keys: Path | None = None,
        num_local: int | None = None,
        time_limit_s: float = DEFAULT_TIME_LIMIT_S,
        heartbeat_s: float = HEARTBEAT_S,
    ):
        check_address(listen, "evaluation.farm.listen", has_keys=keys is not None)
        self._welcome = Welcome(heartbeat_s, time_limit_s)
        lease_s = protocol.HEARTBEATS_OF_LEASE * heartbeat_s
        self._schedule: Schedule[_Call] = Schedule(lease_s, 2 * time_limit_s + NETWORK_S, heartbeat_s)
        self._router = Router(listen, RunKeys(keys) if keys else None)
        self.address = self._router.address
        self._local = CompilePool(num_local, time_limit_s) if num_local != 0 else None
        self._judge = self._local  # has the last word about single programs
        if self._local:
            self._schedule.join(_LOCAL, _LOCAL, self._local.num_workers, time.monotonic(), is_local=True)
        self._shared: dict[Hashable, deque[bytes]] = {}  # digests of what each worker remembers
        self._next_tick_s = 0.0
        self._alone_since_s: float | None = None
        self._has_disagreed = False
        self._commands: deque[Callable[[], None]] = deque()
        self._unfinished: set[Future[Any]] = set()
        # Whoever submits either finds the farm closed or is among the unfinished when it closes. A signal's handler may close it
        # while its own thread submits.
        self._lock = threading.RLock()
        self._is_closed = False
        self._thread = threading.Thread(target=self._serve, name="compile-farm", daemon=True)
        self._thread.start()
        atexit.register(self.shutdown, cancel_futures=True)

    @property
    def num_workers(self) -> int:
        """Requests that the farm fulfils at once, now. At least one: a worker may be about to connect."""
        return max(1, self._schedule.num_slots)

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """Has a worker fulfil a request, or makes another call in a process of this machine.

        Raises:
            ValueError: another call, and there are no processes of this machine.
            RuntimeError: the farm is closed.
        """
        if fn is not compile_request:
            if self._local is None:
                raise ValueError("a farm without processes of its own takes compile requests only")
            return self._local.submit(fn, *args, **kwargs)
        (request,) = args
        assert isinstance(request, CompileRequest)
        call = _Call(request)
        with self._lock:
            if self._is_closed:
                raise RuntimeError("the farm is closed")
            self._unfinished.add(call.future)
        self._command(lambda: self._schedule.submit(call.job))
        call.future.add_done_callback(lambda _: self._note_end(call))
        return cast(Future[_T], call.future)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Takes leave of the workers; requests that are unfinished are fulfilled before, or cancelled."""
        with self._lock:
            self._is_closed = True
        if not wait:
            options = {"cancel_futures": cancel_futures}
            threading.Thread(target=self.shutdown, kwargs=options, name="compile-farm-end", daemon=True).start()
            return
        if cancel_futures:
            for future in self._unfinished.copy():
                future.cancel()
        self._router.wake()
        self._thread.join()  # before the processes that it gives requests to
        for pool in {self._local, self._judge}:
            if pool:
                pool.shutdown(cancel_futures=cancel_futures)
        atexit.unregister(self.shutdown)

    def __exit__(self, exception_type: type[BaseException] | None, *_: object) -> None:
        # After an exception, such as Ctrl-C, nobody waits for the results.
        self.shutdown(cancel_futures=exception_type is not None)

    def _command(self, command: Callable[[], None]) -> None:
        """Has the farm's thread call this."""
        self._commands.append(command)
        self._router.wake()

    def _note_end(self, call: _Call) -> None:
        """Has the farm's thread look at a call that has ended. It may end, too, with the last one."""
        self._commands.append(lambda: self._end_call(call))
        self._unfinished.discard(call.future)
        self._router.wake()

    # ---- all below runs in the farm's thread

    def _serve(self) -> None:
        timeout_ms = idle_ms = math.ceil(self._welcome.heartbeat_s * 1000 / TICKS_PER_HEARTBEAT)
        try:
            while not self._is_closed or self._unfinished:
                self._router.wait(timeout_ms)
                self._obey()
                for peer, frames in self._router.receive(MESSAGES_AT_ONCE):
                    try:
                        self._handle(peer, protocol.decode(frames, protocol.FROM_WORKER))
                    except protocol.ProtocolError as error:
                        self._refuse(peer, str(error))
                timeout_ms = idle_ms if self._look_after() else min(RETRY_MS, idle_ms)
            self._obey()
            for worker in self._shared:
                self._router.send(worker, Bye())
        except BaseException as error:
            with self._lock:
                self._is_closed = True
            for future in self._unfinished.copy():  # nobody would ever answer
                _resolve(future, error)
            raise
        finally:
            self._router.close()

    def _obey(self) -> None:
        while self._commands:
            self._commands.popleft()()

    def _handle(self, peer: bytes, message: Message) -> None:
        now_s = time.monotonic()
        if isinstance(message, Hello):
            self._take(peer, message, now_s)
        elif not self._schedule.heard(peer, now_s):
            self._router.send(peer, Who())
        elif isinstance(message, Beat):
            self._router.send(peer, Beat())
        elif isinstance(message, Bye):
            if message.reason:
                _log.warning("farm: the worker at %s failed: %s", self._schedule.name(peer), protocol.printable(message.reason))
            self._forget(peer, is_loss=bool(message.reason))
        elif isinstance(message, Answer):
            self._take_answer(peer, message)

    def _take(self, peer: bytes, hello: Hello, now_s: float) -> None:
        if peer in self._schedule:  # it has lost its requests
            self._forget(peer, is_loss=False)
        reason = protocol.first_difference(hello.versions, protocol.versions())
        if self._schedule.num_workers >= MAX_WORKERS:
            reason = f"the run has {MAX_WORKERS} workers"
        if reason:
            self._router.refuse(peer, hello.name, reason)
        elif self._router.send(peer, self._welcome):  # otherwise it says hello again
            self._schedule.join(peer, hello.name, hello.slots, now_s)
            self._shared[peer] = deque(maxlen=protocol.MAX_SHARED)

    def _take_answer(self, peer: bytes, answer: Answer) -> None:
        job = self._schedule.holds(peer, answer.lease)
        if job is None:
            return  # it comes too late, or for the second time
        problem = job.content.problem(answer) if not job.is_cancelled else None
        if problem:
            self._refuse(peer, f"a wrong answer: {problem}")
            return
        self._schedule.answered(peer, answer.lease)
        self._finish(peer, job, _outcome(answer))

    def _finish(self, peer: Hashable, job: Job[_Call], outcome: Compiled | CompileFailure | BaseException) -> None:
        if job.is_cancelled:
            return
        if isinstance(outcome, Compiled):
            _resolve(job.content.future, outcome)
        elif self._schedule.failed(job, peer):
            self._fail(peer, job, outcome)

    def _fail(self, peer: Hashable, job: Job[_Call], outcome: CompileFailure | BaseException) -> None:
        """Ends a request that failed on a worker. What a single program does is found out here: the worker may be to blame."""
        call = job.content
        if peer == _LOCAL or call.request.num_programs > 1:
            _resolve(call.future, outcome)
        elif not job.is_cancelled:
            self._judge = self._judge or CompilePool(1, self._welcome.compile_s)
            call.local = self._judge.submit_request(compile_request, call.request)
            call.local.add_done_callback(lambda done: self._command(lambda: self._take_verdict(call, outcome, done)))

    def _take_verdict(self, call: _Call, there: CompileFailure | BaseException, here: Future[Compiled | CompileFailure]) -> None:
        if here.cancelled():
            return
        outcome = here.exception() or here.result()
        if isinstance(outcome, Compiled) and not self._has_disagreed:
            self._has_disagreed = True
            reason = there.log if isinstance(there, CompileFailure) else str(there) or type(there).__name__
            reason = protocol.printable(reason[:MAX_REASON])
            _log.warning("farm: workers failed at a program that compiles on this machine: %s", reason)
        _resolve(call.future, outcome)

    def _refuse(self, peer: bytes, reason: str) -> None:
        """Turns a peer away. Its requests go to others."""
        name = "an unknown machine"
        if peer in self._schedule:
            name = self._schedule.name(peer)
            self._forget(peer, is_loss=True)
        self._router.refuse(peer, name, reason)

    def _forget(self, peer: Hashable, *, is_loss: bool) -> None:
        """Forgets a worker. is_loss: it did not take its leave."""
        self._shared.pop(peer)
        for job in self._schedule.leave(peer, is_loss=is_loss):
            self._fail(peer, job, WorkerDied(f"{job.losses} workers were lost while they compiled it"))

    def _look_after(self) -> bool:
        """Gives up workers that are lost, and hands out what waits; false if a worker reads more slowly than is sent."""
        now_s = time.monotonic()
        if now_s >= self._next_tick_s:
            self._next_tick_s = now_s + self._welcome.heartbeat_s / TICKS_PER_HEARTBEAT
            for peer, reason in self._schedule.tick(now_s):
                _log.info("farm: the worker at %s %s", self._schedule.name(peer), reason)
                self._forget(peer, is_loss=True)
            for peer in self._schedule.silent(now_s, SILENT_HEARTBEATS * self._welcome.heartbeat_s):
                self._router.send(peer, Beat())  # finds out whether its connection is gone
        are_all_sent = True
        self._forget_unreachable()
        while True:
            for peer, number, job in self._schedule.assign(now_s):
                if not self._hand_out(peer, number, job):
                    self._schedule.unsent(peer, number)
                    are_all_sent = False
            if not self._forget_unreachable():
                break
        self._notice_that_it_is_alone(now_s)
        return are_all_sent

    def _forget_unreachable(self) -> bool:
        """Gives up workers whose connections are gone; false if there are none."""
        lost = self._router.unreachable & self._shared.keys()
        self._router.unreachable.clear()
        for peer in lost:
            _log.info("farm: the connection of the worker at %s was lost", self._schedule.name(peer))
            self._forget(peer, is_loss=True)
        return bool(lost)

    def _hand_out(self, peer: Hashable, number: int, job: Job[_Call]) -> bool:
        """Whether the request was sent. What it shares with others is sent before it, unless the worker has it."""
        call = job.content
        if self._local and peer == _LOCAL:
            call.local = self._local.submit_request(compile_request, call.request)
            call.local.add_done_callback(lambda done: self._command(lambda: self._take_local(number, done)))
            return True
        known = self._shared[peer]
        if call.shared.digest not in known:
            if not self._router.send(peer, call.shared):
                return False
            known.append(call.shared.digest)
        request = call.request
        return self._router.send(peer, Request(number, call.shared.digest, request.words, request.lengths, request.hashes))

    def _take_local(self, number: int, done: Future[Compiled | CompileFailure]) -> None:
        job = self._schedule.answered(_LOCAL, number)
        assert job, "only its answer ends a lease of this machine"
        if not done.cancelled():
            self._finish(_LOCAL, job, done.exception() or done.result())

    def _end_call(self, call: _Call) -> None:
        """Nobody waits for a call any more. If it was cancelled, it is not made, or ended."""
        if not call.future.cancelled():
            return
        call.future.set_running_or_notify_cancel()  # for those who wait in concurrent.futures.wait
        lease = self._schedule.cancel(call.job)
        if lease and lease.peer != _LOCAL:
            self._router.send(lease.peer, Cancel(lease.number))
        elif call.local:
            call.local.cancel()

    def _notice_that_it_is_alone(self, now_s: float) -> None:
        if not self._schedule.num_waiting or self._schedule.num_workers:
            self._alone_since_s = None
        elif self._alone_since_s is None:
            self._alone_since_s = now_s
        elif now_s - self._alone_since_s > ALONE_S:
            _log.warning("farm: no worker is there yet; start some with: evo worker --connect %s", self.address)
            self._alone_since_s = float("inf")


class _Call:
    """A compile request in the farm, and the future that waits for it."""

    def __init__(self, request: CompileRequest):
        self.request = request
        self.shared = protocol.shared_of(request)
        self.future: Future[Compiled | CompileFailure] = Future()
        self.local: Future[Compiled | CompileFailure] | None = None
        self.job: Job[_Call] = Job(self)

    def problem(self, answer: Answer) -> str | None:
        """Why this answer is not one to the request; None if it is."""
        if answer.seal != protocol.seal(self.shared.digest, self.request.hashes, answer.content):
            return "it is damaged, or meant for another request"
        if answer.outcome == protocol.CANCELLED:
            return "the request was not cancelled"
        if answer.outcome != protocol.COMPILED:
            return None
        problem = protocol.cubin_problem(answer.content, self._kernels())
        return f"a cubin that is {problem}" if problem else None

    def _kernels(self) -> list[str]:
        if self.request.template != POINTWISE.content:
            return [ENTRY]
        return [kernel_name(index) for index in range(len(self.request.kernel_sizes))]


def _outcome(answer: Answer) -> Compiled | CompileFailure | BaseException:
    if answer.outcome == protocol.COMPILED:
        return Compiled(answer.content, answer.compiler_s, answer.emission_s)
    log = answer.content.decode(errors="replace")
    if answer.outcome == FailureKind.TIMED_OUT:
        return TimeoutError(log)
    if answer.outcome == FailureKind.DIED:
        return WorkerDied(log)
    return CompileFailure(FailureKind.REJECTED, log)


def _resolve(future: Future[Any], outcome: object) -> None:
    with suppress(InvalidStateError):  # it was cancelled
        if isinstance(outcome, BaseException):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
