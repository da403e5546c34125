"""A worker process that runs and scores programs: `python -m evo.evaluate.worker SOCKET SETUP MEMORY PARENT`.

Owns the worker's side of the talk with `evo.evaluate.processes`, and the forms that both sides share. The arguments are the
numbers of inherited files: a socket for requests and replies, a file with a pickled `Setup`, and the shared memory. Words come
in and scores go out through areas of that memory. The last argument is the parent's process number. The worker loads the task
from its folder; it never imports the parent's script.
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
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.errors import UserError
from evo.evaluate import TaskSource
from evo.evaluate.chunks import ChunkScorer
from evo.instructions import InstructionSet
from evo.language.program import Language, Limits
from evo.task import load_task

REQUEST = struct.Struct("<IIIQ")  # area, number of programs, words of a program, bytes of the shared memory
REPLY = struct.Struct("<Bdd")  # kind, seconds of evaluation and scoring; an error's text follows
READY, DONE, ERROR = range(3)
MAX_MESSAGE = 1 << 16
NUM_AREAS = 2  # one that is worked on, one that waits

_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Setup:
    """What a worker needs to know before its first chunk. python_path: the parent's `sys.path`."""

    source: TaskSource
    python_path: tuple[str, ...]
    instruction_set: InstructionSet
    inputs: tuple[tuple[str, str], ...]
    outputs: tuple[tuple[str, str], ...]
    limits: Limits
    level: str


@dataclass(frozen=True)
class Area:
    """Views of a chunk's place in the shared memory."""

    words: NDArray[np.uint64]
    num_instructions: NDArray[np.int32]
    status: NDArray[np.uint8]
    objective: NDArray[np.float64]
    measures: NDArray[np.float64]


def area_size(capacity: int, max_length: int, num_measures: int) -> int:
    """Bytes of an area for this many programs."""
    return 8 * capacity * (max_length + 3 + num_measures)


def area_at(memory: mmap.mmap, index: int, num_programs: int, capacity: int, max_length: int, num_measures: int) -> Area:
    """The area with this index. Each of its arrays begins where it would begin for `capacity` programs."""
    base = index * area_size(capacity, max_length, num_measures)

    def view(dtype: type, num_before: int, *shape: int) -> NDArray[Any]:
        return np.ndarray(shape, dtype, memory, base + 8 * capacity * num_before)

    return Area(
        view(np.uint64, 0, num_programs, max_length),
        view(np.int32, max_length, num_programs),
        view(np.uint8, max_length + 1, num_programs),
        view(np.float64, max_length + 2, num_programs),
        view(np.float64, max_length + 3, num_programs, num_measures),
    )


def serve(connection: socket.socket, setup: Setup, memory_file: int) -> None:
    """Loads the task and answers requests until the parent closes its end."""
    task = load_task(setup.source.folder, dict(setup.source.options))
    scorer = ChunkScorer(Language(setup.instruction_set, setup.inputs, setup.outputs, setup.limits), task, setup.level)
    connection.send(REPLY.pack(READY, 0.0, 0.0))
    memory: mmap.mmap | None = None
    while request := connection.recv(MAX_MESSAGE):
        index, num_programs, max_length, num_bytes = REQUEST.unpack(request)
        if memory is None or len(memory) < num_bytes:
            memory = mmap.mmap(memory_file, num_bytes)
        area = area_at(memory, index, num_programs, scorer.chunk_size, max_length, len(task.measures))
        part = scorer.score(area.words, area.num_instructions)
        area.status[:], area.objective[:], area.measures[:] = part.status, part.objective, part.measures
        connection.send(REPLY.pack(DONE, part.times_s["evaluate"], part.times_s["score"]))


def main(arguments: list[str]) -> None:
    """Serves the parent. Only the parent handles signals; the worker ends with it, however it ends."""
    connection_file, setup_file, memory_file, parent = map(int, arguments)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the line above
        return
    setup = pickle.loads(os.pread(setup_file, os.fstat(setup_file).st_size, 0))
    sys.path[:] = setup.python_path
    with socket.socket(fileno=connection_file) as connection:
        try:
            serve(connection, setup, memory_file)
        except UserError as error:
            connection.send(REPLY.pack(ERROR, 0.0, 0.0) + str(error).encode()[: MAX_MESSAGE // 2])
        except ConnectionError:
            return  # the parent has gone


if __name__ == "__main__":
    main(sys.argv[1:])
