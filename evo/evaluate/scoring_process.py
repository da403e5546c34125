"""A worker process that runs and scores programs: `python -m evo.evaluate.scoring_process SOCKET QUEUE SETUP MEMORY PARENT`.

Owns the worker's side of the talk with `evo.evaluate.scoring_pool`, and the forms that both sides share. The arguments are the
numbers of inherited files: a socket for requests and replies, a pipe from which all workers take the numbers of chunks, a file
with the `Setup`, and the shared memory, through which words come in and scores go out. The last argument is the parent's process
number. The worker loads the task from its folder, or gets it with its class; it never imports the parent's script.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import pickle
import signal
import socket
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.compile.language import decode_language, encode_language
from evo.errors import UserError
from evo.evaluate import PickledTask, TaskSource
from evo.evaluate.chunks import ChunkScorer, Points
from evo.language.program import Language
from evo.native.ptx_vm import levels
from evo.task import Task
from evo.task_folder import declared_files, load_task, task_digest

# A request is a batch: its worker's number, all workers, programs, words of a program, programs of a chunk, the SIMD level's
# number or STORED, bytes of the shared memory.
REQUEST = struct.Struct("<IIIIIIQ")
STORED = 0xFFFFFFFF  # in place of a level: programs ran elsewhere, and their words are their outputs
REPLY = struct.Struct("<Bdd")  # kind, seconds of evaluation and scoring; an error's text follows
READY, DONE, ERROR = range(3)
MAX_MESSAGE = 1 << 16
QUEUED = struct.Struct("<I")  # in the pipe: a chunk's number, or END, which one worker takes for the batch's end
END = 0xFFFFFFFF
PENDING = 255  # status of programs that are not scored yet
NO_CHUNK = -1.0

_ALIGNMENT = 64  # of what is in a setup's file
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Setup:
    """What a worker needs to know before its first chunk.

    task_digest: of the folder's task that the parent has loaded. python_path: the parent's `sys.path`. python_path_variable: its
    `PYTHONPATH`, which the worker's own differs from. language: of `encode_language`.
    """

    source: TaskSource | PickledTask
    task_digest: str
    python_path: tuple[str, ...]
    python_path_variable: str | None
    language: bytes
    points: Points


def setup_of(scorer: ChunkScorer, language: Language, source: TaskSource | PickledTask) -> Setup:
    """What workers need to score as this scorer does."""
    digest = ""
    if isinstance(source, TaskSource):
        digest = task_digest(source.folder, declared_files(scorer.task, source.folder))
    path = os.environ.get("PYTHONPATH")
    return Setup(source, digest, tuple(sys.path), path, encode_language(language), scorer.points)


def write_setup(setup: Setup, file: int) -> None:
    """Writes to an empty file how many parts follow, their sizes, and the parts: a pickle, and the arrays that it refers to."""
    arrays: list[pickle.PickleBuffer] = []
    pickled = pickle.dumps(setup, protocol=5, buffer_callback=arrays.append)
    parts = [memoryview(pickled), *(array.raw() for array in arrays)]
    head = struct.pack(f"={1 + len(parts)}Q", len(parts), *map(len, parts))
    place = 0
    for part in (memoryview(head), *parts):
        written = 0
        while written < len(part):  # the system may stop short
            written += os.pwrite(file, part[written:], place + written)
        place += _aligned(len(part))


def read_setup(file: int) -> Setup:
    """The setup in a file. Its arrays are the file's own memory, which all workers share."""
    memory = memoryview(mmap.mmap(file, 0, access=mmap.ACCESS_READ))
    (num_parts,) = struct.unpack_from("=Q", memory)
    place, parts = _aligned(8 * (1 + num_parts)), []
    for size in struct.unpack_from(f"={num_parts}Q", memory, 8):
        parts.append(memory[place : place + size])
        place += _aligned(size)
    setup: Setup = pickle.loads(parts[0], buffers=parts[1:])
    return setup


def _aligned(num_bytes: int) -> int:
    return -(-num_bytes // _ALIGNMENT) * _ALIGNMENT


@dataclass(frozen=True)
class Area:
    """Views of a batch in the shared memory.

    words: of programs, or their outputs, 4 bytes each, in rows of whole words. progress: the chunk that each worker is
    at, or `NO_CHUNK`, and since when.
    """

    progress: NDArray[np.float64]
    words: NDArray[np.uint64]
    num_instructions: NDArray[np.int32]
    objective: NDArray[np.float64]
    measures: NDArray[np.float64]
    status: NDArray[np.uint8]


def area_size(num_workers: int, num_programs: int, max_length: int, num_measures: int) -> int:
    """Bytes of a batch: each number takes eight."""
    return 8 * (2 * num_workers + num_programs * (max_length + num_measures + 3))


def area_at(memory: mmap.mmap, num_workers: int, num_programs: int, max_length: int, num_measures: int) -> Area:
    """The batch at the beginning of the memory."""
    place = 0

    def view(dtype: type, *shape: int) -> NDArray[Any]:
        nonlocal place
        array: NDArray[Any] = np.ndarray(shape, dtype, memory, place)
        place += 8 * array.size
        return array

    return Area(
        view(np.float64, num_workers, 2),
        view(np.uint64, num_programs, max_length),
        view(np.int32, num_programs),
        view(np.float64, num_programs),
        view(np.float64, num_programs, num_measures),
        view(np.uint8, num_programs),
    )


def serve(connection: socket.socket, queue: int, setup: Setup, memory_file: int) -> None:
    """Loads the task and answers requests until the parent closes its end."""
    task = _task_of(setup)
    scorer = ChunkScorer(decode_language(setup.language), task, None, setup.points)
    connection.send(REPLY.pack(READY, 0.0, 0.0))
    memory: mmap.mmap | None = None
    while request := connection.recv(MAX_MESSAGE):
        worker, num_workers, num_programs, max_length, chunk_size, level, num_bytes = REQUEST.unpack(request)
        if level != STORED:
            scorer.use_level(levels()[level])
        if memory is None or len(memory) < num_bytes:
            memory = mmap.mmap(memory_file, num_bytes)
        area = area_at(memory, num_workers, num_programs, max_length, len(task.measures))
        evaluate_s = score_s = 0.0
        for number in _chunks(queue):
            area.progress[worker] = number, time.monotonic()
            rows = slice(number * chunk_size, (number + 1) * chunk_size)
            score = scorer.score_stored if level == STORED else scorer.score
            part = score(area.words[rows], area.num_instructions[rows])
            # The status comes last: it says that the rest is there.
            area.objective[rows], area.measures[rows], area.status[rows] = part.objective, part.measures, part.status
            area.progress[worker, 0] = NO_CHUNK
            evaluate_s += part.times_s["evaluate"]
            score_s += part.times_s["score"]
        _flush()
        connection.send(REPLY.pack(DONE, evaluate_s, score_s))


def _task_of(setup: Setup) -> Task:
    source = setup.source
    if isinstance(source, PickledTask):
        pickled: Task = pickle.loads(source.pickled)
        return pickled
    task = load_task(source.folder, dict(source.options))
    if task_digest(source.folder, declared_files(task, source.folder)) != setup.task_digest:
        raise UserError(f"{source.folder}: the task's files have changed since the run began; a run goes on with the same only")
    return task


def _chunks(queue: int) -> Iterator[int]:
    """The numbers of this worker's chunks of one batch."""
    while item := os.read(queue, QUEUED.size):
        (number,) = QUEUED.unpack(item)
        if number == END:
            return
        yield number


def _flush() -> None:
    """Writes what the task has printed."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # the task may have closed it, or there is none
            stream.flush()


def main(arguments: list[str]) -> None:
    """Serves the parent until it closes the connection. The worker ends with its parent, however that ends."""
    connection_file, queue, setup_file, memory_file, parent = map(int, arguments)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the line above
        return
    for file in (connection_file, queue, setup_file, memory_file):
        os.set_inheritable(file, False)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # its group is not the terminal's, which may be set to stop it when it prints
    setup = read_setup(setup_file)
    sys.path[:] = setup.python_path
    del os.environ["PYTHONPATH"]
    if setup.python_path_variable is not None:
        os.environ["PYTHONPATH"] = setup.python_path_variable
    connection = socket.socket(fileno=connection_file)
    try:
        serve(connection, queue, setup, memory_file)
    except ConnectionError:
        return  # the parent has gone
    except BaseException as error:  # noqa: BLE001 - the parent says in one line whatever it is
        text = str(error)
        if not isinstance(error, UserError):
            text = f"{setup.source.place}: the process that scores programs failed: {type(error).__name__}: {error}"
        with suppress(OSError):
            connection.send(REPLY.pack(ERROR, 0.0, 0.0) + text.encode(errors="replace")[: MAX_MESSAGE // 2])
            return
        sys.exit(1)  # the task has closed the connection


if __name__ == "__main__":
    main(sys.argv[1:])
