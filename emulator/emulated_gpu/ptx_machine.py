"""Runs emulated kernels: threads in groups that go through the code together, part where they diverge, and meet again.

Owns scheduling, barriers and what threads of a warp tell each other. Knows nothing of what single instructions compute.

Of the threads of a group those with the smallest place in the code go first, so that those that went different ways meet where
the ways join. A group is some blocks of one row of the grid (same y and z). That threads go together hides races that a GPU
would show; `order` makes warps go one after the other between barriers instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from emulated_gpu.ptx_decode import Code
from emulated_gpu.ptx_memory import WINDOWS, Area, EmulatorFault, IllegalAddress, Memory
from emulated_gpu.ptx_text import Module

MAX_STEPS = 1_000_000  # instructions of one group of threads
GROUP_THREADS = 16384  # as many blocks as have so many threads form a group
WARP = 32
ORDERS = ("together", "warps", "warps reversed")

EMPTY = np.empty(0, np.int64)


class Timeout(EmulatorFault):
    """More steps than were allowed."""


class Deadlock(EmulatorFault):
    """Threads wait at a barrier that others will never reach."""


def launch(
    module: Module,
    kernel_name: str,
    grid: Sequence[int],
    block: Sequence[int],
    parameters: bytes,
    memory: Memory,
    *,
    shared_bytes: int = 0,
    max_steps: int = MAX_STEPS,
    order: str = "together",
) -> None:
    """Runs a kernel to its end.

    Args:
        grid, block: up to three sizes, x first.
        parameters: the parameter block, as the kernel's `parameters` lay it out.
        memory: global memory.
        shared_bytes: dynamic shared memory.
        order: of ORDERS.

    Raises:
        EmulatorFault: the kernel did what ends it on a GPU too.
        PtxError: its code is wrong or not known here.
        KeyError: no such kernel.
    """
    grid, block = ((*sizes, 1, 1)[:3] for sizes in (grid, block))
    code = Code.of(module, kernel_name)
    if len(parameters) < code.kernel.parameter_bytes:
        raise ValueError(f"parameters: expected {code.kernel.parameter_bytes} bytes, got {len(parameters)}")
    memory = memory.with_areas(code.areas)
    parameter_memory = Memory("param", (Area(0, np.frombuffer(parameters or b"\0", np.uint8)),))
    blocks_together = max(1, GROUP_THREADS // (block[0] * block[1] * block[2]))
    with np.errstate(all="ignore"):
        for z in range(grid[2]):
            for y in range(grid[1]):
                for first in range(0, grid[0], blocks_together):
                    blocks = (first, min(first + blocks_together, grid[0]), y, z)
                    Group(code, grid, block, blocks, parameter_memory, memory, shared_bytes, max_steps, order).run()


class Group:
    """Threads of some blocks of a row, block after block.

    Registers are arrays of `(num_threads,)`, or of `(1,)` where all threads have the same value. They are replaced, never
    written to. A set of threads is an array of their indices, ascending, or None for all.
    """

    def __init__(self, code, grid, block, blocks, parameters, memory, shared_bytes, max_steps, order):
        self.code, self.grid, self.block, self.memory = code, grid, block, memory
        self.first_block, end, self.y, self.z = blocks
        self.num_blocks = end - self.first_block
        self.block_threads = block[0] * block[1] * block[2]
        self.num_threads = self.num_blocks * self.block_threads
        self.registers: list[np.ndarray | None] = [None] * len(code.kernel.register_types)
        self.parameters = parameters
        self.dynamic_shared_bytes = shared_bytes
        self._max_steps = max_steps
        self._alive = np.ones(self.num_threads, bool)
        self._num_alive = self.num_threads
        self._barrier = np.full(self.num_threads, -1, np.int64)
        self._after_barrier = np.zeros(self.num_threads, np.int64)
        self._needed: dict[int, int] = {}
        self._parked: dict[int, np.ndarray] = {}
        self._num_synchronised = 0
        if order not in ORDERS:
            raise ValueError(f"order '{order}', expected one of: {', '.join(ORDERS)}")
        self._rank = None if order == "together" else (self.warp if order == "warps" else self.warp.max() - self.warp)
        self._ready: dict[tuple[int, int], np.ndarray | None] = {}

    # -- which thread is who -------------------------------------------------------------------------------------------

    @cached_property
    def thread(self) -> np.ndarray:
        """Index of each thread in its block."""
        return np.tile(np.arange(self.block_threads, dtype=np.int64), self.num_blocks)

    @cached_property
    def block_index(self) -> np.ndarray:
        """Index of each thread's block in the group."""
        return np.repeat(np.arange(self.num_blocks, dtype=np.int64), self.block_threads)

    @cached_property
    def warp(self) -> np.ndarray:
        """Index of each thread's warp in the group."""
        return self.block_index * -(-self.block_threads // WARP) + self.thread // WARP

    @cached_property
    def lane(self) -> np.ndarray:
        return self.thread % WARP

    # -- memory of blocks and threads ----------------------------------------------------------------------------------

    @cached_property
    def shared(self) -> tuple[Memory, int, np.ndarray]:
        """Shared memory of all blocks, bytes that a block may use, and where each thread's block has its own."""
        owner = self.block_index if self.num_blocks > 1 else np.zeros(1, np.int64)
        return self._private("shared", self.code.shared_bytes + self.dynamic_shared_bytes, self.num_blocks, owner)

    @cached_property
    def local(self) -> tuple[Memory, int, np.ndarray]:
        """Local memory of all threads, bytes that a thread may use, and where each has its own."""
        return self._private("local", self.code.local_bytes, self.num_threads, np.arange(self.num_threads))

    def _private(self, name: str, num_bytes: int, count: int, owner: np.ndarray):
        stride = -(-num_bytes // 256) * 256 or 256
        memory = Memory(name, (Area(0, np.full(stride * count, 0xCD, np.uint8)),))
        return memory, num_bytes, owner.astype(np.uint64) * np.uint64(stride)

    def space(self, name: str, addresses: np.ndarray, num_bytes: int, threads) -> tuple[Memory, np.ndarray]:
        """Resolve an access of so many bytes at these addresses of a space.

        Raises:
            IllegalAddress: past the end of shared or local memory.
        """
        if name == "generic":
            windows = np.unique(addresses >> np.uint64(56))
            if len(windows) > 1 or windows[0] > 2:
                raise IllegalAddress(f"generic addresses {int(addresses.min()):#x} to {int(addresses.max()):#x} in one access")
            name = ("global", "shared", "local")[int(windows[0])]
            addresses = addresses & np.uint64(WINDOWS["shared"] - 1)
        if name in ("global", "const"):
            return self.memory, addresses
        if name == "param":
            return self.parameters, addresses
        memory, available, starts = self.shared if name == "shared" else self.local
        highest = int(addresses.max())
        if highest + num_bytes > available:
            raise IllegalAddress(f"{name} address {highest:#x}, {num_bytes} bytes, of {available}")
        starts = starts if threads is None or len(starts) == 1 else starts[threads]
        return memory, addresses + starts

    # -- the scheduler -------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Until all threads have ended."""
        self.add(0, None)
        steps, retried_at = 0, -1
        instructions = self.code.instructions
        while True:
            while self._ready:
                key = min(self._ready)
                rank, place = key
                threads = self._ready.pop(key)
                limit = min((other for r, other in self._ready if r == rank), default=len(instructions) + 1)
                while place < limit:
                    steps += 1
                    if steps > self._max_steps:
                        raise Timeout(f"{self.code.kernel.name}: more than {self._max_steps} steps")
                    instruction = instructions[place] or self.code.decode(place)
                    if instruction.is_control:
                        place = self._control(instruction, threads, place)
                        if place is None:
                            break
                        continue
                    active = threads
                    if instruction.guard is not None:
                        active = self.select(threads, instruction.guard, instruction.is_negated)
                    if active is None or len(active):
                        instruction.function(self, active)
                    place += 1
                else:
                    self.add(place, threads)
            if not self._parked:
                break
            if retried_at == self._num_synchronised:
                raise Deadlock(f"{self.code.kernel.name}: threads of a warp wait for others that do not come")
            retried_at = self._num_synchronised
            for place, threads in list(self._parked.items()):
                del self._parked[place]
                self.add(place, threads)
        if (self._barrier >= 0).any():
            raise Deadlock(f"{self.code.kernel.name}: threads wait at a barrier that others do not reach")

    def add(self, place: int, threads: np.ndarray | None) -> None:
        """Threads that go on at this place."""
        if self._rank is None:
            self._add(0, place, threads)
            return
        threads = np.arange(self.num_threads) if threads is None else threads
        ranks = self._rank[threads]
        for rank in np.unique(ranks):
            self._add(int(rank), place, threads[ranks == rank])

    def _add(self, rank: int, place: int, threads: np.ndarray | None) -> None:
        key = (rank, place)
        if key in self._ready:
            threads = np.sort(np.concatenate([self._ready[key], threads]))
        self._ready[key] = None if threads is None or len(threads) == self.num_threads else threads

    def _control(self, instruction, threads, place: int) -> int | None:
        """Next statement of the threads, or None where they diverge."""
        if instruction.guard is None:
            return instruction.function(self, threads, place)
        active = self.select(threads, instruction.guard, instruction.is_negated)
        if active is not None and len(active) == 0:
            return place + 1
        if active is None or (threads is not None and len(active) == len(threads)):
            return instruction.function(self, threads, place)
        self.add(place + 1, self.without(threads, active))
        following = instruction.function(self, active, place)
        if following is not None:
            self.add(following, active)
        return None

    def select(self, threads, slot: int, is_negated: bool):
        """Select the threads whose predicate is true, or false if negated."""
        values = self.read(slot, threads)
        if is_negated:
            values = ~values
        if values.all():
            return threads
        if len(values) == 1 or not values.any():
            return EMPTY
        return np.flatnonzero(values) if threads is None else threads[values]

    def without(self, threads, others: np.ndarray) -> np.ndarray:
        """The threads that are not among the others."""
        keep = np.ones(self.num_threads, bool)
        keep[others] = False
        return np.flatnonzero(keep) if threads is None else threads[keep[threads]]

    def leave(self, threads) -> None:
        """Threads that have ended."""
        if threads is None:
            self._alive[:] = False
        else:
            self._alive[threads] = False
        self._num_alive = int(self._alive.sum())
        if self._num_alive:
            self._release()

    # -- registers -----------------------------------------------------------------------------------------------------

    def read(self, slot: int, threads) -> np.ndarray:
        """A register's values for these threads, `(1,)` where all are the same."""
        values = self.registers[slot]
        if values is None:
            raise EmulatorFault(f"{self.code.kernel.name}: register {self.code.register_name(slot)} is read before it is written")
        return values if threads is None or len(values) == 1 else values[threads]

    def write(self, slot: int, threads, values: np.ndarray) -> None:
        """Sets a register of these threads; `values` is `(1,)` or one for each."""
        if threads is None:
            self.registers[slot] = values
            return
        old = self.registers[slot]
        if old is None:
            new = np.zeros(self.num_threads, values.dtype)
        else:
            new = np.repeat(old, self.num_threads) if len(old) == 1 else old.copy()
        new[threads] = values
        self.registers[slot] = new

    def spread(self, values: np.ndarray, threads) -> np.ndarray:
        """One value for each of the threads."""
        return np.broadcast_to(values, (self.num_threads if threads is None else len(threads),))

    # -- barriers ------------------------------------------------------------------------------------------------------

    def wait_at_barrier(self, threads, place: int, barrier: int, num_threads: int | None) -> int | None:
        """bar.sync: where to go on, or None where threads wait for others of their block."""
        if threads is None and num_threads in (None, self.block_threads):
            return place + 1
        threads = np.arange(self.num_threads) if threads is None else threads
        self._barrier[threads] = barrier
        self._after_barrier[threads] = place + 1
        if num_threads is not None:
            self._needed[barrier] = num_threads
        self._release()
        return None

    def _release(self) -> None:
        waiting = np.flatnonzero(self._barrier >= 0)
        if not len(waiting):
            return
        alive = np.bincount(self.block_index[self._alive], minlength=self.num_blocks)
        for barrier in np.unique(self._barrier[waiting]):
            at = waiting[self._barrier[waiting] == barrier]
            arrived = np.bincount(self.block_index[at], minlength=self.num_blocks)
            is_full = (arrived > 0) & (arrived >= np.minimum(self._needed.get(int(barrier), self.block_threads), alive))
            free = at[is_full[self.block_index[at]]]
            self._barrier[free] = -1
            for place in np.unique(self._after_barrier[free]):
                self.add(int(place), free[self._after_barrier[free] == place])

    # -- warps ---------------------------------------------------------------------------------------------------------

    def meet_in_warp(self, threads, place: int, members: np.ndarray):
        """Threads at an instruction that all members (bits of lanes) of their warps take part in.

        Args:
            members: one for each of the threads, or `(1,)`.

        Returns:
            Those whose members are all here; the rest waits. None where all threads of the group are.
        """
        if threads is None:
            return None
        lanes, num_warps = 1 << self.lane, int(self.warp[-1]) + 1
        here = np.bincount(self.warp[threads], lanes[threads], num_warps).astype(np.int64)
        alive = np.bincount(self.warp[self._alive], lanes[self._alive], num_warps).astype(np.int64)
        warps = self.warp[threads]
        is_complete = (self.spread(members, threads) & alive[warps] & ~here[warps]) == 0
        if not is_complete.all():
            self._parked[place] = threads[~is_complete]
        self._num_synchronised += int(is_complete.any())
        return threads[is_complete]

    def with_parked(self, threads, place: int):
        """These threads and those that wait for them at this place."""
        before = self._parked.pop(place, None)
        if before is None:
            return threads
        together = np.sort(np.concatenate([before, threads]))
        return None if len(together) == self.num_threads else together

    def from_lanes(self, values: np.ndarray, threads, source_lanes: np.ndarray) -> np.ndarray:
        """For each of the threads the value of another lane of its warp; a pattern where that lane takes no part."""
        if threads is None and len(values) == 1:
            return values
        everybody = np.full(self.num_threads + WARP, 0xDEADBEEF, np.uint32)
        here = np.arange(self.num_threads) if threads is None else threads
        everybody[here] = values
        first_of_warp = here - self.lane[here]
        sources = first_of_warp + source_lanes
        is_own_block = (sources < self.num_threads) & (self.thread[here] - self.lane[here] + source_lanes < self.block_threads)
        return everybody[np.where(is_own_block, sources, self.num_threads)]

    def ballot(self, predicate: np.ndarray, threads) -> np.ndarray:
        """For each thread the lanes of its warp, of those here, whose predicate is true."""
        here = np.arange(self.num_threads) if threads is None else threads
        true = here[self.spread(predicate, threads)]
        votes = np.bincount(self.warp[true], (1 << self.lane)[true], int(self.warp[-1]) + 1)
        return votes.astype(np.uint32)[self.warp[here]]
