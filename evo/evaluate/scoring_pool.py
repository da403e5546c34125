"""Worker processes that run and score chunks of programs, for tasks whose `score` holds Python's interpreter lock.

Owns the processes, the memory shared with them, and the blame for a worker that dies or hangs. `scoring_process` is their side.
Workers take chunks from one pipe until it is empty, so this process sleeps while they work. Each has a process group of its
own, so signals to this process's group, such as Ctrl-C, do not reach it. No worker outlives this process. Knows nothing of how a
chunk is scored. Longer than most modules, since blame takes the whole state of a batch.
"""

from __future__ import annotations

import mmap
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Hashable, Iterable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.errors import UserError, how_it_ended
from evo.evaluate import Evaluation
from evo.evaluate.scoring_process import (
    DONE,
    END,
    ERROR,
    MAX_MESSAGE,
    NO_CHUNK,
    PENDING,
    QUEUED,
    READY,
    REPLY,
    REQUEST,
    STORED,
    Area,
    Setup,
    area_at,
    area_size,
    write_setup,
)
from evo.language.batch import Batch
from evo.native.ptx_vm import levels
from evo.waiting import WAKE_S

LOAD_S = 120.0  # for a worker to start and load the task
FLUSH_S = 1.0  # for workers to end by themselves, with what Python and the task do at their end
END_S = 5.0  # for the end of a process whose connection has closed
MAX_QUEUED = 512  # chunks in the pipe; with the workers' ends they fit its smallest size, a page, so no write waits
MAX_DEATHS = 2  # of workers, with the same chunk or at the start: the system may have caused the first

# Parallel work is done by processes. A library that starts threads in each of them would only disturb.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"), "1")


class WorkerError(UserError):
    """Workers cannot start or load the task, or the task raises in one. Threads may do better."""


class Ongoing:
    """Tells how long things go on, from regular looks at them. Hardly counts time in which this process was stopped."""

    def __init__(self) -> None:
        self._looked_s = time.monotonic()
        self._seconds: dict[Hashable, float] = {}

    def look(self, things: Iterable[Hashable]) -> float:
        """How long the oldest of the things that go on has been seen, in seconds."""
        now_s = time.monotonic()
        step_s = min(now_s - self._looked_s, 2 * WAKE_S)
        self._looked_s = now_s
        self._seconds = {thing: self._seconds.get(thing, -step_s) + step_s for thing in things}
        return max(self._seconds.values(), default=0.0)


class ScoringPool:
    """Workers that score chunks. They start with the first call of `start` or `evaluate`.

    Args:
        setup: what workers get when they start.
        place: `file:line` of the task's `score`, for messages.
        chunk_size: most programs of a chunk.
        num_measures: of the task.
        num_workers: processes.
        score_seconds: limit for a chunk.

    Attributes:
        num_deaths: workers that died while programs were scored.
    """

    def __init__(
        self,
        setup: Setup,
        place: str,
        *,
        chunk_size: int,
        num_measures: int,
        num_workers: int,
        score_seconds: float,
    ):
        self.num_deaths = 0
        self._last_end = ""
        self._told_from = 1  # deaths; twice as many after each line
        self._setup = setup
        self._place = place
        self._chunk_size = chunk_size
        self._num_measures = num_measures
        self._num_workers = num_workers
        self._score_seconds = score_seconds
        self._folder = os.getcwd()  # a task may leave it
        self._files: _Files | None = None
        self._memory: mmap.mmap | None = None
        self._workers: dict[int, _Worker] = {}
        self._num_failed_starts: Counter[int] = Counter()  # worker's number -> in a row
        # The kernel ends a worker with the thread that started it. The caller's thread may end earlier than this one.
        self._starter = ThreadPoolExecutor(1, "start_workers")
        self._loading = Ongoing()
        self._scoring = Ongoing()

    def start(self) -> None:
        """Starts the workers, unless they run. Waits for nothing.

        Raises:
            WorkerError: the system refuses.
        """
        try:
            if not self._files:
                self._files = _Files()
                write_setup(self._setup, self._files.setup)
            for number in range(self._num_workers):
                if number not in self._workers:
                    self._add_worker(number, self._files)
        except (OSError, RuntimeError) as error:  # it refuses files, processes or threads
            self.close()
            reason = f"{error.strerror}: {error.filename or ''}".removesuffix(": ") if isinstance(error, OSError) else error
            raise WorkerError(f"cannot start a process that scores programs: {reason}") from error

    def are_ready(self) -> bool:
        """Whether all workers have loaded the task. Waits for nothing.

        Raises:
            WorkerError: they cannot.
        """
        if not self._files:
            return False
        self._handle_events(0.0, None)
        return len(self._workers) == self._num_workers and all(worker.is_ready for worker in self._workers.values())

    def evaluate(self, batch: Batch, level: str) -> Evaluation:
        """The results of a batch, run at a SIMD level.

        Raises:
            WorkerError: see there. The workers are gone then; the next call starts others.
            UserError: the task hangs, or ends its process. The workers are gone, too.
        """
        return self._evaluate(batch.words, batch.num_instructions, self._chunk_size, levels().index(level))

    def score(self, outputs: NDArray[np.float32], num_instructions: NDArray[np.int32]) -> Evaluation:
        """The results of programs that ran elsewhere, given their outputs, `(num_programs, num_outputs, num_points)`.

        Raises as `evaluate`.
        """
        chunk_size = min(self._chunk_size, -(-len(outputs) // self._num_workers))
        return self._evaluate(outputs.reshape(len(outputs), -1), num_instructions, chunk_size, STORED)

    def _evaluate(self, rows: NDArray[Any], num_instructions: NDArray[np.int32], chunk_size: int, level: int) -> Evaluation:
        """Shares the programs' rows of words or outputs, and has the workers score them."""
        try:
            self.start()
            work = self._share(rows, num_instructions, chunk_size, level)
            while work.is_busy or len(work.pending()):
                if not work.is_busy:
                    self._hand_out(work)
                self._handle_events(WAKE_S, work)
        except BaseException:
            self.close()
            raise
        if self.num_deaths >= self._told_from:
            self._told_from = 2 * self.num_deaths
            told = f"{self.num_deaths} so far died while they scored programs; the last {self._last_end}, another took its place"
            print(f"evo: worker processes: {told}", file=sys.stderr)
        area = work.area
        return Evaluation(area.status.copy(), area.objective.copy(), area.measures.copy(), (), work.times_s)

    def close(self) -> None:
        """Ends the workers: those that can by themselves, so that nothing that the task prints is lost."""
        files, workers = self._files, list(self._workers.values())
        self._files, self._workers, self._memory = None, {}, None
        if files:
            files.close()  # the end of the pipe and of the connections is the end for workers
        for worker in workers:
            worker.connection.close()
        end_s = time.monotonic() + FLUSH_S
        for worker in workers:
            worker.end(max(0.0, end_s - time.monotonic()) if worker.is_ready else 0.0)

    def _add_worker(self, number: int, files: _Files) -> None:
        worker = _Worker(number, files, self._folder, self._starter)
        self._workers[number] = worker
        files.selector.register(worker.connection, selectors.EVENT_READ, worker)

    def _share(self, rows: NDArray[Any], num_instructions: NDArray[np.int32], chunk_size: int, level: int) -> _Work:
        """Copies a batch to the shared memory."""
        assert self._files
        num_words = -(-rows.itemsize * rows.shape[1] // 8)
        shape = (self._num_workers, len(rows), num_words, self._num_measures)
        num_bytes = area_size(*shape)
        if self._memory is None or len(self._memory) < num_bytes:
            try:
                os.ftruncate(self._files.memory, num_bytes)
                self._memory = mmap.mmap(self._files.memory, num_bytes)
            except OSError as error:
                raise WorkerError(f"cannot share {num_bytes} bytes with worker processes: {error.strerror}") from error
        area = area_at(self._memory, *shape)
        area.progress[:] = NO_CHUNK
        area.words.view(rows.dtype)[:, : rows.shape[1]] = rows
        area.num_instructions[:] = num_instructions
        area.status[:] = PENDING
        return _Work(area, chunk_size, level, len(self._memory), self._files)

    def _hand_out(self, work: _Work) -> None:
        """Queues chunks that have no results, while no worker is busy. Wakes no more workers than there are chunks."""
        num_chunks = work.queue_chunks()
        for worker in [worker for worker in self._workers.values() if worker.is_ready][:num_chunks]:
            work.give(worker)

    def _handle_events(self, timeout_s: float, work: _Work | None) -> None:
        """Waits for replies and takes them; replaces workers that died; ends the batch if one hangs."""
        assert self._files
        events = self._files.selector.select(timeout_s)
        for key, _ in events:
            self._take_reply(key.data, work)
        if events:
            return
        for worker in list(self._workers.values()):
            # A child of the task may keep the connection open.
            if worker.process.poll() is not None:
                self._replace(worker, work)
        if self._loading.look(worker for worker in self._workers.values() if not worker.is_ready) > LOAD_S:
            raise WorkerError(
                f"{self._place}: a process that scores programs has not loaded the task within {LOAD_S:g} s; "
                "it may wait for something that another process holds"
            )
        if work and self._scoring.look(work.in_progress()) > self._score_seconds:
            raise UserError(overtime_message(self._place, self._score_seconds))

    def _take_reply(self, worker: _Worker, work: _Work | None) -> None:
        try:
            reply = worker.connection.recv(MAX_MESSAGE)
        except ConnectionError:
            reply = b""
        if not reply:
            self._replace(worker, work)
            return
        kind, evaluate_s, score_s = REPLY.unpack_from(reply)
        if kind == ERROR:
            raise WorkerError(reply[REPLY.size :].decode(errors="replace"))
        if kind == READY:
            worker.is_ready = True
            del self._num_failed_starts[worker.number]
            if work and work.is_busy:
                work.give(worker)
        if kind == DONE and work:
            work.finish(worker, evaluate_s, score_s)

    def _replace(self, worker: _Worker, work: _Work | None) -> None:
        """Starts another worker in place of one that died. Its chunk is still pending, and is done once more."""
        assert self._files
        how = worker.how_it_ended()
        del self._workers[worker.number]
        self._files.selector.unregister(worker.connection)
        worker.connection.close()
        worker.end(0.0)
        if not worker.is_ready:
            self._num_failed_starts[worker.number] += 1
            if self._num_failed_starts[worker.number] >= MAX_DEATHS:
                raise WorkerError(f"{self._place}: the processes that score programs do not start: {how}")
        elif work and work.num_deaths_with(worker) >= MAX_DEATHS:
            raise UserError(
                f"{self._place}: the process that ran and scored programs {how}, twice with the same programs; "
                "a run goes on from its last checkpoint"
            )
        elif work:
            self.num_deaths += 1
            self._last_end = how
        self.start()


def overtime_message(place: str, score_seconds: float) -> str:
    """What ends a batch with a chunk that takes too long, whether its programs or the task's `score` do."""
    return (
        f"{place}: programs were not run and scored within evaluation.score_seconds ({score_seconds:g} s a chunk); "
        "a run goes on from its last checkpoint"
    )


def threads_go_on(pool: ScoringPool, error: WorkerError) -> None:
    """Ends a pool whose workers fail where threads may do better, and says so in a line."""
    pool.close()
    line = " ".join(str(error).splitlines())
    print(f"evo: the processes that score programs fail, threads go on: {line}", file=sys.stderr)


class _Files:
    """What workers inherit: a pipe of chunk numbers, the setup, the shared memory. And the selector of their connections."""

    def __init__(self) -> None:
        with ExitStack() as stack:
            self.selector = stack.enter_context(selectors.DefaultSelector())
            self.queue, self.queue_end = os.pipe()
            stack.callback(os.close, self.queue)
            stack.callback(os.close, self.queue_end)
            self.setup = os.memfd_create("evo-setup")
            stack.callback(os.close, self.setup)
            self.memory = os.memfd_create("evo-batch")
            stack.callback(os.close, self.memory)
            self._stack = stack.pop_all()

    def empty_queue(self) -> None:
        """Reads what workers have left in the pipe."""
        if select.select([self.queue], [], [], 0)[0]:
            os.read(self.queue, MAX_MESSAGE)

    def close(self) -> None:
        """Closes them."""
        self.empty_queue()
        self._stack.close()


class _Work:
    """A batch in progress."""

    def __init__(self, area: Area, chunk_size: int, level: int, num_bytes: int, files: _Files):
        self.area = area
        self.times_s = {"evaluate_workers": 0.0, "score_workers": 0.0}
        self._chunk_size = chunk_size
        self._level = level
        self._num_bytes = num_bytes
        self._files = files
        self._busy: set[int] = set()
        self._num_deaths: Counter[float] = Counter()

    @property
    def is_busy(self) -> bool:
        """Whether a worker is at it."""
        return bool(self._busy)

    def pending(self) -> NDArray[np.intp]:
        """The chunks that have no results."""
        return np.flatnonzero(self.area.status[:: self._chunk_size] == PENDING)

    def queue_chunks(self) -> int:
        """Fills the pipe, in which workers that died may have left something. Returns the number of chunks in it."""
        self._files.empty_queue()
        chunks = self.pending()[:MAX_QUEUED]
        os.write(self._files.queue_end, chunks.astype("<u4").tobytes())
        return len(chunks)

    def give(self, worker: _Worker) -> None:
        """Has a worker take part."""
        num_workers, max_length = len(self.area.progress), self.area.words.shape[1]
        batch = (len(self.area.words), max_length, self._chunk_size, self._level, self._num_bytes)
        request = REQUEST.pack(worker.number, num_workers, *batch)
        try:
            worker.connection.send(request)
        except ConnectionError:  # it has died, which is seen with the other events
            return
        os.write(self._files.queue_end, QUEUED.pack(END))
        self._busy.add(worker.number)

    def finish(self, worker: _Worker, evaluate_s: float, score_s: float) -> None:
        """Notes that a worker has found the end of the pipe."""
        self._busy.remove(worker.number)
        self.times_s["evaluate_workers"] += evaluate_s
        self.times_s["score_workers"] += score_s

    def in_progress(self) -> list[tuple[float, float]]:
        """The chunks that workers are at, and since when."""
        return [(chunk, since_s) for chunk, since_s in self.area.progress.tolist() if chunk != NO_CHUNK]

    def num_deaths_with(self, worker: _Worker) -> int:
        """Notes that a worker died. Returns how many have died with the chunk that it was at."""
        self._busy.discard(worker.number)
        chunk, self.area.progress[worker.number, 0] = float(self.area.progress[worker.number, 0]), NO_CHUNK
        if chunk == NO_CHUNK:
            return 0
        self._num_deaths[chunk] += 1
        return self._num_deaths[chunk]


class _Worker:
    """One process with its connection."""

    def __init__(self, number: int, files: _Files, folder: str, starter: Executor):
        self.number = number
        self.is_ready = False
        with ExitStack() as stack:
            self.connection, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            stack.enter_context(self.connection)
            with theirs:
                inherited = (theirs.fileno(), files.queue, files.setup, files.memory)
                command = [sys.executable, "-P", "-m", "evo.evaluate.scoring_process", *map(str, inherited), str(os.getpid())]
                environment = {**ONE_THREAD, **os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
                self.process: subprocess.Popen[bytes] = starter.submit(
                    lambda: subprocess.Popen(
                        command, stdin=subprocess.DEVNULL, env=environment, cwd=folder, pass_fds=inherited, process_group=0
                    )
                ).result()
            stack.pop_all()

    def end(self, patience_s: float) -> None:
        """Waits a while for it to end, then kills it with the processes that the task has started."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(patience_s)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def how_it_ended(self) -> str:
        """What its end was, for a message. Its connection has closed, so it has ended or is about to."""
        try:
            code = self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            return "closed its connection"
        return how_it_ended(code)
