"""The interpreter's lane of a GPU: encodes batches ahead of it, and launches them.

Owns device code on its way to the GPU. `evo.evaluate.cuda.interpreter_kernels` has the kernels, `evo.evaluate.cuda.lane` runs the
packs. Knows nothing of which lane is better.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.evaluate.cuda.device import Device
from evo.evaluate.cuda.interpreter_kernels import (
    MAX_PROGRAMS,
    MAX_PROGRAMS_OF_MANY_POINTS,
    WORD_BYTES,
    Coding,
    code_bytes,
    most_words,
    starts_bytes,
)
from evo.evaluate.cuda.lane import NUM_IN_FLIGHT, Lane, LaneTimes
from evo.evaluate.cuda.plans import Plan
from evo.language.batch import Batch
from evo.native.device_code import NUM_EXTRA_WORDS, Encoded, max_words
from evo.native.row_threads import RowThreads

# A batch is cut into this many packs, unless they get too small. A pack takes the host half a millisecond, whatever its size; so
# it should keep a GPU busy for about as long, by the number of programs and points. A task's kernel may do more at a point.
_NUM_PACKS = 4
_MIN_PROGRAMS = 256
_MIN_WORK = 1 << 23


@dataclass(frozen=True)
class CodePack:
    """Programs as device code, as `Lane` takes them.

    rows: `(num_programs,)`, those of the batch. num_instructions: `(num_programs,)` int32. code: uint8, page-locked, overwritten
    when the pack is back: the programs' first words, padded to `starts_bytes`, and the code.
    """

    rows: NDArray[np.int64]
    num_instructions: NDArray[np.int32]
    code: NDArray[np.uint8]
    cubin: None = None

    def served(self) -> tuple[NDArray[np.int64], slice]:
        """Implement `Pack`."""
        return self.rows, slice(None)


class InterpretLane:
    """A lane whose packs are device code. While one runs, the next is encoded.

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
        enough = _MIN_WORK // plan.inputs.work if plan.num_results is None else 0
        self._min_programs = max(_MIN_PROGRAMS, min(enough, MAX_PROGRAMS))
        most = max(MAX_PROGRAMS_OF_MANY_POINTS, self._min_programs)
        self._lane = Lane(device, plan, max(1, min(max_programs, most)), time_limit_s, num_threads)
        self._num_requests = len(kernel.encoder.lowering.requests)
        self._most_words = most_words(self._lane.capacity)
        # Of the lane's packs some are in flight and one waits for a place.
        self._slots = [device.pinned(code_bytes(self._lane.capacity)) for _ in range(NUM_IN_FLIGHT + 1)]
        self._row_threads = RowThreads(num_threads)

    def run(
        self, batch: Batch, rows: NDArray[np.int64], take: Callable[[CodePack, NDArray[Any]], None]
    ) -> tuple[LaneTimes, NDArray[np.int64]]:
        """Runs these rows of a batch, and returns those that the kernel cannot run.

        Args:
            take: as of `Lane.run`.

        Raises:
            DeviceFailure: the device failed.
        """
        left: list[NDArray[np.int64]] = []
        times = self._lane.run(self._packs(batch, rows, left), take)
        return times, np.sort(np.concatenate(left))

    def _packs(self, batch: Batch, rows: NDArray[np.int64], left: list[NDArray[np.int64]]) -> Iterator[CodePack]:
        """Packs with room for the code of their programs."""
        counts, in_registers = batch.num_instructions[rows].astype(np.int64), self._kernel.encoder.in_registers
        needed = max_words(counts, self._num_requests, in_registers) + NUM_EXTRA_WORDS
        left.append(rows[needed > self._most_words])
        rows, needed = rows[needed <= self._most_words], needed[needed <= self._most_words]
        offsets = np.concatenate([[0], np.cumsum(needed)])
        most = min(self._lane.capacity, max(self._min_programs, -(-len(rows) // _NUM_PACKS)))
        first = 0
        for slot in cycle(self._slots):
            if first == len(rows):
                return
            stop = min(int(np.searchsorted(offsets, offsets[first] + self._most_words, "right")) - 1, first + most)
            pack, rejected = self._encode(batch, rows[first:stop], offsets[first : stop + 1] - offsets[first], slot)
            first = stop
            left.append(rejected)
            if len(pack.rows):
                yield pack

    def _encode(
        self, batch: Batch, rows: NDArray[np.int64], offsets: NDArray[np.int64], slot: NDArray[np.uint8]
    ) -> tuple[CodePack, NDArray[np.int64]]:
        """The pack of these rows, and the rows that did not fit. offsets: where each row's words begin, and the last's end."""
        layout, encoder = self._kernel.layout, self._kernel.encoder
        table, end = starts_bytes(len(rows)), starts_bytes(len(rows)) + WORD_BYTES * int(offsets[-1])
        starts, words = slot[: 4 * len(rows)].view(np.uint32), slot[table:end].view(np.uint32)
        results = encoder.encode(batch.programs, rows, offsets, words, starts, layout.first_output, self._row_threads)
        is_there = results == Encoded.OK
        taken = rows[is_there]
        # Fewer programs have a shorter table. It moves up to the code.
        gap = table - starts_bytes(len(taken))
        slot[gap : gap + 4 * len(taken)] = starts[is_there].view(np.uint8)
        return CodePack(taken, batch.num_instructions[taken], slot[gap:end]), rows[~is_there]

    def close(self) -> None:
        """Frees the memory. The device must not have failed."""
        self._lane.close()
        for slot in self._slots:
            self._device.free_pinned(slot)
