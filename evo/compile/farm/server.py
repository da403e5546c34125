"""The run's side of the farm: an executor whose requests are fulfilled by whichever workers connect, and by processes of its own.

Owns the thread that serves the socket, and what a message does. `evo.compile.farm.schedule` decides who gets what,
`evo.compile.farm.protocol` what a message may be. Checks all that comes in. What fails on a worker has failed only if it fails on
this machine too. Some cubins are compiled again here: whoever made a wrong one is banned, and its cubins are not used. Knows
nothing of packs.
"""

import atexit
import logging
import math
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

from evo.compile.farm import protocol
from evo.compile.farm.call import Call, outcome_of, resolve
from evo.compile.farm.keys import RunKeys, address_elsewhere, check_address, remove_server_file, write_server_file
from evo.compile.farm.protocol import Answer, Beat, Bye, Cancel, Hello, Message, Request, Welcome, Who
from evo.compile.farm.router import Origin, Router
from evo.compile.farm.schedule import Job, Schedule
from evo.compile.pool import DEFAULT_TIME_LIMIT_S, CompilePool, WorkerDied
from evo.compile.request import Compiled, CompileExecutor, CompileFailure, CompileRequest, compile_request
from evo.errors import UserError

HEARTBEAT_S = 1.0
NETWORK_S = 60.0  # for the network, beyond the time limits of two requests: one under way and one that waits
MAX_WORKERS = 1 << 14
TICKS_PER_HEARTBEAT = 4  # how often time limits are checked
SILENT_HEARTBEATS = 1.25  # after such a silence it is tried whether a worker can still be reached
MESSAGES_AT_ONCE = 64  # before time limits are checked and requests handed out
MAX_REASON = 300  # characters of a failure's log in a line
CHECK_ONE_IN = 100  # cubins, one at a time; a worker cannot know which
ANYBODY = "?"  # who makes the cubins of a farm without keys
ALONE_S = 3.0  # requests wait this long for the first worker before a line says so
NO_LONGER = "its key is not, or no longer, in the workers/ of this run's keys"
_LOCAL = "this machine"
_log = logging.getLogger(__name__)

_P = ParamSpec("_P")
_T = TypeVar("_T")


class CompileFarm(CompileExecutor):
    """An executor of concurrent.futures whose compile requests go to the workers that connect, and to processes of its own.

    Other calls than of `compile_request` are made by its own processes. As with `CompilePool`, a future's exception is
    TimeoutError if a request exceeded the time limit, and WorkerDied if it ended the process that worked on it; `running()` is
    never true. A request fails only if it fails on this machine, if need be in a process that is started for that.

    Args:
        listen: where workers connect, such as `tcp://0.0.0.0:5711`. Port 0 takes any that is free; see `address`.
        keys: folder of the run's keys; None: workers are not authenticated, which only an address of this machine allows.
        num_local: processes of its own; None: one for each core that this process may use; 0: none.
        time_limit_s: for one request.
        heartbeat_s: what workers are asked for.
        server_file: where the address is written for workers as long as the farm is open.

    Raises:
        UserError: the address is refused or in use, the keys cannot be used, or the file not be written.
    """

    def __init__(
        self,
        listen: str,
        keys: Path | None = None,
        num_local: int | None = None,
        time_limit_s: float = DEFAULT_TIME_LIMIT_S,
        heartbeat_s: float = HEARTBEAT_S,
        server_file: Path | None = None,
    ):
        check_address(listen, "evaluation.farm.listen", has_keys=keys is not None)
        self._welcome = Welcome(heartbeat_s, time_limit_s)
        lease_s = protocol.HEARTBEATS_OF_LEASE * heartbeat_s
        self._schedule: Schedule[Call] = Schedule(lease_s, 2 * time_limit_s + NETWORK_S)
        self._router = Router(listen, RunKeys(keys) if keys else None)
        self.address = self._router.address
        self._server_file = server_file
        if server_file:
            try:
                write_server_file(server_file, address_elsewhere(self.address))
            except UserError:
                self._router.close()
                raise
        self._local = CompilePool(num_local, time_limit_s) if num_local != 0 else None
        self._judge = self._local  # has the last word about what fails
        # Stands still while this process does: then no worker is to blame for its silence.
        self._now_s, self._looked_s = 0.0, time.monotonic()
        if self._local:
            self._schedule.join(_LOCAL, _LOCAL, self._local.num_workers, self._now_s, is_local=True)
        self._shared: dict[Hashable, deque[bytes]] = {}  # digests of what each worker remembers
        self._keys: dict[Hashable, str | None] = {}  # of each worker
        self._num_lost, self._next_tick_s = 0, 0.0
        self._alone_since_s: float | None = None
        self._is_checking = self._has_disagreed = False
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

    def trusts(self, maker: str) -> bool:
        """Whether this machine has made it, or a worker that may work for the run now."""
        return not maker or self._router.trusts(maker)

    def status(self) -> dict[str, int]:
        """Workers that are connected, and those lost and requests late so far."""
        return {"workers": len(self._shared), "lost": self._num_lost, "late": self._schedule.num_copies}

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
        call = Call(cast(CompileRequest, args[0]))
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
        if self._server_file:
            remove_server_file(self._server_file, address_elsewhere(self.address))
        self._router.wake()
        self._thread.join()  # before the processes that it gives requests to
        for pool in filter(None, {self._local, self._judge}):
            pool.shutdown(cancel_futures=cancel_futures)
        atexit.unregister(self.shutdown)

    def _command(self, command: Callable[[], None]) -> None:
        """Has the farm's thread call this."""
        self._commands.append(command)
        self._router.wake()

    def _note_end(self, call: Call) -> None:
        """Has the farm's thread look at a call that has ended. It may end, too, with the last one."""
        self._commands.append(lambda: self._end_call(call))
        self._unfinished.discard(call.future)
        self._router.wake()

    # ---- all below runs in the farm's thread

    def _serve(self) -> None:
        timeout_ms = math.ceil(self._welcome.heartbeat_s * 1000 / TICKS_PER_HEARTBEAT)
        try:
            while not self._is_closed or self._unfinished:
                self._router.wait(timeout_ms)
                looked_s, self._looked_s = self._looked_s, time.monotonic()
                self._now_s += min(self._looked_s - looked_s, self._welcome.heartbeat_s)
                self._obey()
                for peer, frames, origin in self._router.receive(MESSAGES_AT_ONCE):
                    try:
                        self._handle(peer, protocol.decode(frames, protocol.FROM_WORKER), origin)
                    except protocol.ProtocolError as error:
                        self._refuse(peer, str(error))
                self._look_after()
            self._obey()
            for worker in self._shared:
                self._router.send(worker, Bye())
        except BaseException as error:
            with self._lock:
                self._is_closed = True
            for future in self._unfinished.copy():  # nobody would ever answer
                resolve(future, error)
            raise
        finally:
            self._router.close()

    def _obey(self) -> None:
        while self._commands:
            self._commands.popleft()()

    def _handle(self, peer: bytes, message: Message, origin: Origin) -> None:
        if isinstance(message, Hello):
            self._take(peer, message, origin)
        elif self._keys.get(peer) != origin.key or not self._schedule.heard(peer, self._now_s):
            self._router.send(peer, Who())  # or another worker has taken this one's name in ZeroMQ
        elif isinstance(message, Beat):
            self._router.send(peer, Beat())
        elif isinstance(message, Bye):
            if message.reason:
                _log.warning("farm: the worker at %s failed: %s", self._schedule.name(peer), protocol.printable(message.reason))
            self._forget(peer, is_loss=bool(message.reason))
        elif isinstance(message, Answer):
            self._take_answer(peer, message)

    def _take(self, peer: bytes, hello: Hello, origin: Origin) -> None:
        if peer in self._schedule:  # it has lost its requests
            self._forget(peer, is_loss=False)
        reason: str | None = None if self._router.may_work(origin.key) else NO_LONGER
        if self._schedule.num_workers >= MAX_WORKERS:
            reason = reason or f"the run has {MAX_WORKERS} workers"
        if not reason:
            reason = protocol.first_difference(hello.versions, protocol.versions()) or ""
        if reason:
            self._router.refuse(peer, hello.name, reason)
        elif self._router.send(peer, self._welcome):  # otherwise it says hello again
            self._router.let_in(origin)
            self._schedule.join(peer, hello.name, hello.slots, self._now_s)
            self._shared[peer] = deque(maxlen=protocol.MAX_SHARED)
            self._keys[peer] = origin.key

    def _take_answer(self, peer: bytes, answer: Answer) -> None:
        job = self._schedule.holds(peer, answer.lease)
        problem = job.content.problem(answer) if job and not job.is_over else None
        if problem:
            self._refuse(peer, f"a wrong answer: {problem}")
        elif job:  # otherwise it comes too late, or for the second time
            self._schedule.answered(peer, answer.lease, self._now_s)
            self._finish(peer, job, outcome_of(answer, self._keys[peer] or ANYBODY))

    def _finish(self, peer: Hashable, job: Job[Call], outcome: Compiled | CompileFailure | BaseException) -> None:
        if job.is_over:
            return
        self._give_up(job)
        if isinstance(outcome, Compiled):
            if peer != _LOCAL and not self._is_checking and not secrets.randbelow(CHECK_ONE_IN):
                self._check(peer, job.content, outcome)
            else:
                resolve(job.content.future, outcome)
        else:
            self._fail(peer, job.content, outcome)

    def _check(self, peer: Hashable, call: Call, there: Compiled) -> None:
        """Compiles a request here, too, before the cubin of a worker is used."""
        name, key, self._is_checking = self._schedule.name(peer), self._keys[peer], True

        def take(done: Future[Compiled | CompileFailure]) -> None:
            self._is_checking = False
            here = None if done.cancelled() or done.exception() else done.result()
            if isinstance(here, Compiled) and here.cubin != there.cubin:
                self._ban(name, key)
                resolve(call.future, here)
            else:
                resolve(call.future, there)

        self._compile_here(call, take)

    def _ban(self, name: str, key: str | None) -> None:
        _log.warning(
            "farm: the worker at %s made a wrong cubin, so it is banned, and what it has made is not used again; elites may have "
            "wrong scores since it is there: see evo check",
            protocol.printable(name),
        )
        self._router.ban(key)
        for peer, its_key in [*self._keys.items()]:
            if its_key == key and (key or self._schedule.name(peer) == name):
                self._refuse(peer, "it made a wrong cubin")

    def _compile_here(self, call: Call, take: Callable[[Future[Compiled | CompileFailure]], None]) -> None:
        self._judge = self._judge or CompilePool(1, self._welcome.compile_s)
        call.local = self._judge.submit_request(compile_request, call.request)
        call.local.add_done_callback(lambda done: self._command(lambda: take(done)))

    def _fail(self, peer: Hashable, call: Call, outcome: CompileFailure | BaseException) -> None:
        """Ends a request that failed. If that was on a worker, it is tried here: the worker may be to blame."""
        if peer == _LOCAL:
            resolve(call.future, outcome)
        elif not call.future.cancelled():
            self._compile_here(call, lambda done: self._take_verdict(call, outcome, done))

    def _take_verdict(self, call: Call, there: CompileFailure | BaseException, here: Future[Compiled | CompileFailure]) -> None:
        if here.cancelled():
            return
        outcome = here.exception() or here.result()
        if isinstance(outcome, Compiled) and not self._has_disagreed:
            self._has_disagreed = True
            reason = there.log if isinstance(there, CompileFailure) else str(there) or type(there).__name__
            reason = protocol.printable(reason[:MAX_REASON])
            _log.warning("farm: workers failed at a program that compiles on this machine: %s", reason)
        resolve(call.future, outcome)

    def _refuse(self, peer: Hashable, reason: str) -> None:
        """Turns a peer away. Its requests go to others."""
        name = self._schedule.name(peer) if peer in self._schedule else "an unknown machine"
        if peer in self._schedule:
            self._forget(peer, is_loss=True)
        self._router.refuse(peer, name, reason)

    def _forget(self, peer: Hashable, *, is_loss: bool) -> None:
        """Forgets a worker. is_loss: it did not take its leave."""
        self._num_lost += is_loss
        self._shared.pop(peer)
        del self._keys[peer]
        for job in self._schedule.leave(peer, is_loss=is_loss):
            self._give_up(job)
            self._fail(peer, job.content, WorkerDied(f"{job.losses} workers were lost while they compiled it"))

    def _look_after(self) -> None:
        """Gives up workers that are lost, and hands out what waits."""
        if self._now_s >= self._next_tick_s:
            self._next_tick_s = self._now_s + self._welcome.heartbeat_s / TICKS_PER_HEARTBEAT
            for peer, reason in self._schedule.tick(self._now_s):
                _log.info("farm: the worker at %s %s", self._schedule.name(peer), reason)
                self._forget(peer, is_loss=True)
            for peer in self._schedule.silent(self._now_s, SILENT_HEARTBEATS * self._welcome.heartbeat_s):
                self._router.send(peer, Beat())  # finds out whether its connection is gone
            self._router.look_at_keys()
            for peer in [peer for peer, key in self._keys.items() if not self._router.may_work(key)]:
                self._refuse(peer, NO_LONGER)
        self._forget_unreachable()
        while True:
            for peer, number, job in self._schedule.assign(self._now_s):
                self._hand_out(peer, number, job)
            if not self._forget_unreachable():
                break
        self._notice_that_it_is_alone()

    def _forget_unreachable(self) -> bool:
        """Gives up workers whose connections are gone; false if there are none."""
        lost = self._router.unreachable & self._shared.keys()
        self._router.unreachable.clear()
        for peer in lost:
            _log.info("farm: the connection of the worker at %s was lost", self._schedule.name(peer))
            self._forget(peer, is_loss=True)
        return bool(lost)

    def _hand_out(self, peer: Hashable, number: int, job: Job[Call]) -> None:
        """Sends a request. What it shares with others is sent before it, unless the worker has it."""
        call, request = job.content, job.content.request
        if self._local and peer == _LOCAL:
            call.local = self._local.submit_request(compile_request, request)
            call.local.add_done_callback(lambda done: self._command(lambda: self._take_local(number, done)))
            return
        known = self._shared[peer]
        messages: list[Message] = [Request(number, call.shared.digest, request.words, request.lengths, request.hashes)]
        if call.shared.digest not in known:
            messages.insert(0, call.shared)
            known.append(call.shared.digest)
        if not all(self._router.send(peer, message) for message in messages):
            self._router.unreachable.add(peer)

    def _take_local(self, number: int, done: Future[Compiled | CompileFailure]) -> None:
        job = self._schedule.answered(_LOCAL, number, self._now_s)
        assert job, "only its answer ends a lease of this machine"
        if not done.cancelled():
            self._finish(_LOCAL, job, done.exception() or done.result())

    def _end_call(self, call: Call) -> None:
        """Nobody waits for a call any more. If it was cancelled, it is not made, or ended."""
        if not call.future.cancelled():
            return
        call.future.set_running_or_notify_cancel()  # for those who wait in concurrent.futures.wait
        self._give_up(call.job)
        if call.local:
            call.local.cancel()

    def _give_up(self, job: Job[Call]) -> None:
        """Nobody waits for a request any more. Whoever holds it, or a copy, may end it."""
        for lease in self._schedule.give_up(job):
            if lease.peer != _LOCAL:
                self._router.send(lease.peer, Cancel(lease.number))
            elif job.content.local:
                job.content.local.cancel()

    def _notice_that_it_is_alone(self) -> None:
        if not self._schedule.num_waiting or self._schedule.num_workers:
            self._alone_since_s = None
        elif self._alone_since_s is None:
            self._alone_since_s = self._now_s
        elif self._now_s - self._alone_since_s > ALONE_S:
            _log.warning("farm: no worker is there yet; start some with: evo worker --connect %s", self.address)
            self._alone_since_s = float("inf")
