"""Worker processes that run and score chunks of programs, for tasks whose `score` holds Python's interpreter lock.

Owns the processes, the memory shared with them, and the blame for a worker that dies or hangs. `evo.evaluate.worker` is their
side. No worker outlives this process. Knows nothing of how a chunk is scored.
"""

from __future__ import annotations

import mmap
import os
import pickle
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence

import numpy as np

from evo.errors import UserError
from evo.evaluate import Evaluation
from evo.evaluate.worker import (
    DONE,
    ERROR,
    MAX_MESSAGE,
    NUM_AREAS,
    READY,
    REPLY,
    REQUEST,
    Area,
    Setup,
    area_at,
    area_size,
)
from evo.language.batch import Batch

WAKE_S = 0.1  # longest uninterrupted wait: time limits are checked this often, and Ctrl-C is seen
END_S = 5.0  # for the end of a process whose connection has closed
MAX_DEATHS = 2  # of workers, with the same chunk or at the start: the system may have caused the first

# Parallel work is done by processes. A library that starts threads in each of them would only disturb.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"), "1")


class Processes:
    """Workers that score chunks. They start with the first call of `start` or `evaluate`.

    Args:
        make_setup: called once, when the workers start.
        place: `file:line` of the task's `score`, for messages.
        chunk_size: most programs of a chunk.
        num_measures: of the task.
        num_workers: processes.
        score_seconds: limit for a chunk.
    """

    def __init__(
        self,
        make_setup: Callable[[], Setup],
        place: str,
        *,
        chunk_size: int,
        num_measures: int,
        num_workers: int,
        score_seconds: float,
    ):
        self._make_setup = make_setup
        self._place = place
        self._chunk_size = chunk_size
        self._num_measures = num_measures
        self._num_workers = num_workers
        self._score_seconds = score_seconds
        self._folder = os.getcwd()  # a task may leave it
        self._setup_file = -1
        self._workers: list[_Worker] = []
        self._selector = selectors.DefaultSelector()
        self._num_failed_starts = 0

    def start(self) -> None:
        """Starts the workers, unless they run. Waits for nothing.

        Raises:
            UserError: the system refuses.
        """
        if self._setup_file < 0:
            self._setup_file = os.memfd_create("evo-setup")
            os.pwrite(self._setup_file, pickle.dumps(self._make_setup()), 0)
        while len(self._workers) < self._num_workers:
            self._add_worker()

    def are_ready(self) -> bool:
        """Whether all workers have loaded the task. Waits for nothing.

        Raises:
            UserError: they cannot.
        """
        self._handle_events(0.0, None)
        return len(self._workers) == self._num_workers and all(worker.is_ready for worker in self._workers)

    def evaluate(self, chunks: Sequence[Batch]) -> Evaluation:
        """The results of consecutive chunks.

        Raises:
            UserError: the task raises, hangs, or ends its process. The workers are gone then; the next call starts others.
        """
        work = _Work(chunks, self._num_measures)
        try:
            self.start()
            while work.num_done < len(chunks):
                self._hand_out(work)
                self._handle_events(WAKE_S, work)
        except BaseException:
            self.close()
            raise
        return work.evaluation

    def close(self) -> None:
        """Ends the workers, whatever they are doing."""
        while self._workers:
            self._remove(self._workers[-1])
        if self._setup_file >= 0:
            os.close(self._setup_file)
            self._setup_file = -1

    def _add_worker(self) -> None:
        try:
            worker = _Worker(self._setup_file, self._folder)
        except OSError as error:
            raise UserError(f"cannot start a process that scores programs: {error.strerror}") from error
        self._workers.append(worker)
        self._selector.register(worker.connection, selectors.EVENT_READ, worker)

    def _remove(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        self._selector.unregister(worker.connection)
        worker.end()

    def _hand_out(self, work: _Work) -> None:
        """Gives each worker a chunk, and a second one while there are enough for all."""
        for depth in range(1, NUM_AREAS + 1):
            for worker in self._workers:
                is_enough = len(work.waiting) > (depth - 1) * len(self._workers)
                if worker.is_ready and len(worker.numbers) < depth and is_enough:
                    number = work.waiting.popleft()
                    try:
                        worker.send(number, work.chunks[number], self._chunk_size, self._num_measures)
                    except ConnectionError:  # it has died, which is seen with the other events
                        work.waiting.appendleft(number)

    def _handle_events(self, timeout_s: float, work: _Work | None) -> None:
        """Waits for replies and takes them; replaces workers that died; ends the batch if one hangs."""
        events = self._selector.select(timeout_s)
        for key, _ in events:
            self._take_reply(key.data, work)
        if events or not timeout_s:
            return
        now_s = time.monotonic()
        for worker in list(self._workers):
            # A child of the task may keep the connection open.
            if worker.process.poll() is not None:
                self._replace(worker, work)
            elif worker.numbers and now_s - worker.since_s > self._score_seconds:
                raise UserError(
                    f"{self._place}: score() did not return within evaluation.score_seconds ({self._score_seconds:g} s); "
                    "a run goes on from its last checkpoint"
                )

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
            raise UserError(reply[REPLY.size :].decode(errors="replace"))
        if kind == READY:
            worker.is_ready = True
            self._num_failed_starts = 0
        if kind == DONE and work:
            work.take(*worker.finished(), evaluate_s, score_s)

    def _replace(self, worker: _Worker, work: _Work | None) -> None:
        """Starts another worker in place of one that died, and has its chunks done once more."""
        how = worker.how_it_ended()
        self._remove(worker)
        if not worker.is_ready:
            self._num_failed_starts += 1
            if self._num_failed_starts >= MAX_DEATHS:
                raise UserError(f"{self._place}: the processes that score programs do not start: {how}")
        elif worker.numbers and work:
            culprit = worker.numbers[0]
            work.num_deaths[culprit] += 1
            if work.num_deaths[culprit] >= MAX_DEATHS:
                raise UserError(
                    f"{self._place}: the process that ran and scored programs {how}, twice with the same programs; "
                    "a run goes on from its last checkpoint"
                )
            work.waiting.extendleft(reversed(worker.numbers))
        self._add_worker()


class _Work:
    """A batch in progress: chunks that wait, and the results so far."""

    def __init__(self, chunks: Sequence[Batch], num_measures: int):
        self.chunks = chunks
        self.waiting = deque(range(len(chunks)))
        self.num_deaths = [0] * len(chunks)
        self.num_done = 0
        self._firsts = np.cumsum([0, *map(len, chunks)])
        total = int(self._firsts[-1])
        times_s = {"evaluate_workers": 0.0, "score_workers": 0.0}
        self.evaluation = Evaluation(np.empty(total, np.uint8), np.empty(total), np.empty((total, num_measures)), (), times_s)

    def take(self, number: int, area: Area, evaluate_s: float, score_s: float) -> None:
        """Copies a chunk's results."""
        rows = slice(self._firsts[number], self._firsts[number + 1])
        self.evaluation.status[rows] = area.status
        self.evaluation.objective[rows] = area.objective
        self.evaluation.measures[rows] = area.measures
        self.evaluation.times_s["evaluate_workers"] += evaluate_s
        self.evaluation.times_s["score_workers"] += score_s
        self.num_done += 1


class _Worker:
    """One process with its connection and memory. numbers: chunks that it was given, in order; it works on the first."""

    def __init__(self, setup_file: int, folder: str):
        self.is_ready = False
        self.numbers: deque[int] = deque()
        self.since_s = 0.0
        self._areas: deque[Area] = deque()
        self._next_area = 0
        self._memory: mmap.mmap | None = None
        self._memory_file = os.memfd_create("evo-chunks")
        self.connection, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        files = (theirs.fileno(), setup_file, self._memory_file)
        command = [sys.executable, "-P", "-m", "evo.evaluate.worker", *map(str, files), str(os.getpid())]
        environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        # The process inherits the blocked signal: Ctrl-C before it ignores it would end it with a traceback.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, env=environment, cwd=folder, pass_fds=files)
        except OSError:
            self.connection.close()
            os.close(self._memory_file)
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            theirs.close()

    def send(self, number: int, chunk: Batch, capacity: int, num_measures: int) -> None:
        """Gives it a chunk."""
        max_length = chunk.words.shape[1]
        num_bytes = NUM_AREAS * area_size(capacity, max_length, num_measures)
        if self._memory is None or len(self._memory) < num_bytes:
            os.ftruncate(self._memory_file, num_bytes)
            self._memory = mmap.mmap(self._memory_file, num_bytes)
        area = area_at(self._memory, self._next_area, len(chunk), capacity, max_length, num_measures)
        area.words[:], area.num_instructions[:] = chunk.words, chunk.num_instructions
        self.connection.send(REQUEST.pack(self._next_area, len(chunk), max_length, len(self._memory)))
        self._next_area = (self._next_area + 1) % NUM_AREAS
        if not self.numbers:
            self.since_s = time.monotonic()
        self.numbers.append(number)
        self._areas.append(area)

    def finished(self) -> tuple[int, Area]:
        """The chunk that it has done, and where its results are."""
        self.since_s = time.monotonic()
        return self.numbers.popleft(), self._areas.popleft()

    def end(self) -> None:
        """Kills it, unless it has ended."""
        self.connection.close()
        self.process.kill()
        self.process.wait()
        os.close(self._memory_file)

    def how_it_ended(self) -> str:
        """What its end was, for a message. Its connection has closed, so it has ended or is about to."""
        try:
            code = self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            return "closed its connection"
        if code >= 0:
            return f"ended with exit code {code}"
        try:
            return f"was killed by {signal.Signals(-code).name}"
        except ValueError:
            return f"was killed by signal {-code}"
