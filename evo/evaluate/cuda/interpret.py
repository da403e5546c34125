"""The interpreter's lane of a GPU: encodes batches ahead of it, and launches them.

Owns device code on its way to the GPU. `evo.evaluate.cuda.interpreter_kernels` has the kernels, `evo.evaluate.cuda.lane` runs the
packs. Knows nothing of which lane is better.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.evaluate.cuda.device import Device
from evo.evaluate.cuda.interpreter_kernels import MAX_PROGRAMS, Coding, code_bytes, most_steps, starts_bytes
from evo.evaluate.cuda.lane import NUM_IN_FLIGHT, Lane, LaneTimes
from evo.evaluate.cuda.plans import Plan
from evo.language.batch import Batch
from evo.native.device_code import NUM_EXTRA_STEPS, Encoded, max_steps

# A batch is cut into this many packs, unless they get too small.
_NUM_PACKS = 4
_MIN_PROGRAMS = 256


@dataclass(frozen=True)
class CodePack:
    """Programs as device code, as `Lane` takes them.

    rows: for each program, the row of the batch. num_instructions: `(num_programs,)` int32. code: uint8, page-locked, overwritten
    when the pack is back: the programs' first steps, padded to `starts_bytes`, and the steps.
    """

    rows: list[NDArray[np.int64]]
    num_instructions: NDArray[np.int32]
    code: NDArray[np.uint8]
    cubin: None = None


class InterpretLane:
    """A lane whose packs are device code, encoded in threads and ahead of it.

    Args:
        plan: with a kernel; what the packs compute.
        max_programs: most programs of a pack; fewer if memory is short.
        time_limit_s, num_threads: of the lane; num_threads threads also encode.

    Raises:
        UserError: there is too little memory for even one program.
    """

    def __init__(self, device: Device, plan: Plan, kernel: Coding, max_programs: int, time_limit_s: float, num_threads: int):
        self._device = device
        self._kernel = kernel
        self.plan = plan
        self._lane = Lane(device, plan, max(1, min(max_programs, MAX_PROGRAMS)), time_limit_s, num_threads)
        self._num_requests = len(kernel.encoder.lowering.requests)
        self._most_steps = most_steps(self._lane.capacity)
        self._num_ahead = min(num_threads, NUM_IN_FLIGHT)
        # Of the lane's packs some are in flight and one waits for a place, while others are encoded.
        num_slots = NUM_IN_FLIGHT + 1 + self._num_ahead
        self._slots = [device.pinned(code_bytes(self._lane.capacity)) for _ in range(num_slots)]
        self._threads = ThreadPoolExecutor(self._num_ahead, "encode")

    def run(
        self, batch: Batch, rows: NDArray[np.int64], take: Callable[[CodePack, NDArray[Any]], None]
    ) -> tuple[LaneTimes, NDArray[np.int64]]:
        """Runs these rows of a batch, and gives those of them that the kernel cannot run.

        Args:
            take: as of `Lane.run`.

        Raises:
            PackFailure: the device failed.
        """
        left: list[NDArray[np.int64]] = []
        # If an exception ends the batch, closing the generator waits for its threads.
        with closing(self._packs(batch, rows, left)) as packs:
            times = self._lane.run(packs, take)
        return times, np.sort(np.concatenate(left))

    def _packs(self, batch: Batch, rows: NDArray[np.int64], left: list[NDArray[np.int64]]) -> Generator[CodePack, None, None]:
        slots = cycle(self._slots)
        encoding: deque[Future[tuple[CodePack, NDArray[np.int64]]]] = deque()
        try:
            for part in self._parts(rows, batch.num_instructions[rows], left):
                encoding.append(self._threads.submit(self._encode, batch, part, next(slots)))
                if len(encoding) == self._num_ahead:
                    yield from _taken(encoding.popleft(), left)
            while encoding:
                yield from _taken(encoding.popleft(), left)
        finally:
            wait(encoding)  # threads write to slots

    def _parts(
        self, rows: NDArray[np.int64], num_instructions: NDArray[np.int32], left: list[NDArray[np.int64]]
    ) -> Iterator[NDArray[np.int64]]:
        """Rows of packs, each of which has room for the code of its programs."""
        needed = max_steps(num_instructions.astype(np.int64), self._num_requests)
        room = self._most_steps - NUM_EXTRA_STEPS
        left.append(rows[needed > room])
        rows, needed = rows[needed <= room], needed[needed <= room]
        ends = np.cumsum(needed)
        most = min(self._lane.capacity, max(_MIN_PROGRAMS, -(-len(rows) // _NUM_PACKS)))
        first = 0
        while first < len(rows):
            before = int(ends[first - 1]) if first else 0
            stop = min(int(np.searchsorted(ends, before + room, "right")), first + most)
            yield rows[first:stop]
            first = stop

    def _encode(self, batch: Batch, rows: NDArray[np.int64], slot: NDArray[np.uint8]) -> tuple[CodePack, NDArray[np.int64]]:
        """The pack of these rows, and those of them that it lacks."""
        layout = self._kernel.layout
        table = starts_bytes(len(rows))
        starts, steps = slot[: len(rows) * 4].view(np.uint32), slot[table : table + 8 * self._most_steps].view(np.uint64)
        encoder = self._kernel.encoder
        results, used = encoder.encode(batch.programs, rows, steps, starts, layout.first_output, layout.num_buffered)
        is_there = results == Encoded.OK
        taken = rows[is_there]
        # Fewer programs have a shorter table. It moves up to the steps.
        gap = table - starts_bytes(len(taken))
        slot[gap : gap + 4 * len(taken)] = slot[: 4 * len(taken)].copy()
        return CodePack(list(taken[:, None]), batch.num_instructions[taken], slot[gap : table + 8 * used]), rows[~is_there]

    def close(self) -> None:
        """Ends the threads and frees the memory. The device must not have failed."""
        self._threads.shutdown()
        self._lane.close()
        for slot in self._slots:
            self._device.free_pinned(slot)


def _taken(future: Future[tuple[CodePack, NDArray[np.int64]]], left: list[NDArray[np.int64]]) -> Iterator[CodePack]:
    pack, others = future.result()
    left.append(others)
    if pack.rows:
        yield pack
