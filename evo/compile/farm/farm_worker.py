"""A worker of the farm: connects to a run, fulfils its requests in processes of this machine, and waits for the next run.

Owns the conversation with the run. Knows nothing of what a person sees, and keeps nothing: the cache is the run's.
"""

import os
import socket
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future
from dataclasses import dataclass
from pathlib import Path

import zmq

from evo.compile.farm import protocol
from evo.compile.farm.keys import WorkerKeys, check_address, read_server_file
from evo.compile.farm.sockets import Dealer
from evo.compile.pool import CompilePool
from evo.compile.request import CompileFailure, CompileRequest, Outcome, compile_request
from evo.errors import FailureKind, UserError

HELLO_S = 1.0  # between two attempts to be taken


@dataclass
class Status:
    """State of a worker: whether it works for a run, counts of compiled requests and programs, and requests that it holds."""

    run: bool = False
    requests: int = 0
    programs: int = 0
    failures: int = 0
    queue: int = 0


class Worker:
    """Fulfils requests of the run at an address, one run after the other, until it is stopped.

    Args:
        connect: the run's address, such as `tcp://192.0.2.1:5711`; or the file in which runs write theirs, which need not exist.
        keys: folder of the worker's keys; None: no authentication, which only an address of this machine allows.
        num_workers: processes; None: one for each core that this process may use.
        idle_s: it ends when it has had no run for so long; None: never.
        on_status, say: called about every second, and with a line that a person should read.

    Raises UserError: the address is refused, or the keys cannot be used.
    """

    def __init__(
        self,
        connect: str | Path,
        keys: Path | None,
        num_workers: int | None,
        idle_s: float | None,
        on_status: Callable[[Status], None],
        say: Callable[[str], None],
    ):
        if num_workers is not None and num_workers > protocol.MAX_SLOTS:
            raise UserError(f"at most {protocol.MAX_SLOTS}, got {num_workers}; start several workers", "--workers")
        self._connect, self._has_keys = connect, keys is not None
        self._idle_s, self._on_status, self._say = idle_s, on_status, say
        self.status = Status()
        self._calls: dict[int, tuple[int, Future[Outcome]]] = {}  # by number, with the number of programs
        self._heartbeat_s = 0.0  # that its run wants; 0: it has none
        self._heard_s = self._next_word_s = 0.0
        self._idle_since_s = time.monotonic()
        self._is_stopped = False
        self._socket = Dealer(WorkerKeys.read(keys) if keys else None, say)
        try:
            self._find_run()
            self._pool = CompilePool(num_workers)
        except UserError:
            self._socket.close()
            raise

    def stop(self) -> None:
        """Has `serve` return. May be called at any time, by any thread and by a signal's handler."""
        self._is_stopped = True
        self._socket.wake()

    def serve(self) -> None:
        """Works until it is stopped. Raises UserError: the run refuses this worker."""
        try:
            while not self._is_stopped:
                for frames in self._socket.receive(self._next_word_s - time.monotonic()):
                    self._handle(frames)
                for number in [number for number, (_, future) in self._calls.items() if future.done()]:
                    self._answer(number, *self._calls.pop(number))
                self._keep_alive()
            self._socket.send(("bye",))
        except protocol.ProtocolError as error:
            raise UserError(f"the run at {self._socket.address} is not of this worker's version: {error}") from error
        finally:
            self._socket.close()
            self._pool.shutdown(cancel_futures=True)

    def _find_run(self) -> None:
        """Connects to the address, or to the one that the server file has now, unless it is connected to it."""
        is_file = isinstance(self._connect, Path)
        address = read_server_file(Path(self._connect)) if is_file else str(self._connect)
        if address and address != self._socket.address:
            key = str(self._connect) if is_file else "--connect"
            check_address(address, key, has_keys=self._has_keys)
            try:
                self._socket.connect(address)
            except zmq.ZMQError as error:
                raise UserError(f"cannot connect to {address}: {os.strerror(error.errno or 0)}", key) from error

    def _handle(self, frames: list[bytes]) -> None:
        if not frames:  # a new connection: says hello before the run takes it for a stranger's
            self._next_word_s = 0.0
            return
        self._heard_s = time.monotonic()
        match protocol.decode(frames):
            case "refused", str(reason):
                raise UserError(f"the run at {self._socket.address} refuses this worker: {protocol.short_text(reason)}")
            case "welcome", float(heartbeat_s), float(compile_s):
                self._forget()
                self._heartbeat_s, self._pool.time_limit_s = heartbeat_s, compile_s
            case ("bye",):
                self._forget()
            case "request", int(number), target, sites, options, words, lengths, hashes, language, template if self._heartbeat_s:
                request = CompileRequest(words, lengths, hashes, language, target, sites, tuple(options), template)
                future = self._pool.submit(compile_request, request)
                self._calls[number] = request.num_programs, future
                future.add_done_callback(lambda _: self._socket.wake())
            case "cancel", int(number) if number in self._calls:
                self._calls.pop(number)[1].cancel()

    def _answer(self, number: int, num_programs: int, done: Future[Outcome]) -> None:
        try:
            outcome = done.result()
        except (TimeoutError, BrokenExecutor) as error:
            outcome = CompileFailure(FailureKind.DIED, str(error) or "the time limit passed")
        self.status.requests += 1
        self.status.programs += num_programs
        if isinstance(outcome, CompileFailure):
            self.status.failures += 1
            self._socket.send(("answer", number, protocol.short_text(outcome.log or outcome.kind), 0.0, 0.0, b""))
        else:
            self._socket.send(("answer", number, "", outcome.compiler_s, outcome.emission_s, outcome.cubin))

    def _forget(self) -> None:
        """Ends all work: the run has gone, or has given it to others."""
        self._heartbeat_s = self._next_word_s = 0.0
        calls, self._calls = self._calls, {}
        for _, future in calls.values():
            future.cancel()

    def _keep_alive(self) -> None:
        """Beats or says hello, and reports, when it is time."""
        now_s = time.monotonic()
        if self._heartbeat_s and now_s - self._heard_s > protocol.HEARTBEATS_OF_LEASE * self._heartbeat_s:
            self._forget()
        if self._heartbeat_s:
            self._idle_since_s = now_s
        elif self._idle_s is not None and now_s - self._idle_since_s > self._idle_s:
            self._say(f"no run for {self._idle_s:g} s: this worker ends")
            self._is_stopped = True
        if now_s >= self._next_word_s:
            self._next_word_s = now_s + (self._heartbeat_s or HELLO_S)
            self.status.run, self.status.queue = self._heartbeat_s > 0, len(self._calls)
            self._on_status(self.status)
            if self._heartbeat_s:
                self._socket.send(("beat",))
            else:
                self._find_run()
                self._socket.send(("hello", protocol.versions(), self._pool.num_workers, socket.gethostname()))
