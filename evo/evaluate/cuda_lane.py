"""A lane of the GPU: packs go in as they are compiled, run one after the other, and come back to be scored.

Owns streams, events and the buffers of the packs in flight: while pack k runs, pack k - 1 is copied back and scored, and
pack k + 1 is being compiled or loaded. What a pack computes, and into what, is a plan's (`evo.evaluate.cuda_plans`).
Knows nothing of tasks, and nothing of how cubins are made.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from evo.compile.compiler import Module
from evo.errors import UserError
from evo.evaluate.cuda_device import CudaError, Device

# Packs in flight: one runs, one is copied back or scored, one waits to run.
NUM_SLOTS = 3
# Of what is free on the device when a lane is made, this part may be taken by its buffers.
MEMORY_SHARE = 0.5
# Page-locked memory is taken from everybody on the machine: no more than this for one lane.
MAX_PINNED_BYTES = 2 << 30
WAKE_S = 0.1  # the longest time for which the calling thread waits without looking up, so that it sees Ctrl-C


class Plan(Protocol):
    """What the packs of a lane compute."""

    def result_bytes(self, num_programs: int) -> int:
        """Bytes that come back to this machine."""

    def scratch_bytes(self, num_programs: int) -> int:
        """Bytes on the device beside them."""

    def launch(self, device: Device, loaded: Any, module: Module, results: int, scratch: int, stream: Any) -> None:
        """Starts the kernels of a loaded module; `results` and `scratch` are addresses."""


class PackFailure(Exception):
    """The device failed, and no more can be run by this process. rows: of the pack that was at fault."""

    def __init__(self, rows: np.ndarray, error: CudaError):
        super().__init__(str(error))
        self.rows = rows


@dataclass
class _Slot:
    """What one pack in flight needs. flag: 4 bytes, not 0 once the kernels are done, also where the device failed later."""

    host: np.ndarray
    flag: np.ndarray
    results: Any
    scratch: Any
    start: Any
    end: Any
    copied: Any


@dataclass
class LaneTimes:
    """Seconds: the calling thread waiting for cubins, loading and launching, and waiting for results; the device in kernels."""

    wait_for_cubins: float = 0.0
    load: float = 0.0
    wait_for_results: float = 0.0
    kernels: float = 0.0


@dataclass
class _Flight:
    module: Module
    slot: _Slot
    landing: Future | None = field(default=None)


class Lane:
    """Buffers for packs of at most so many programs.

    Args:
        max_programs: of a pack; `capacity` may be less, where memory is short.
        time_limit_s: for the kernels of one pack, and the packs before it.
        num_threads: threads that take results.

    Raises:
        UserError: there is too little memory for even one program.
    """

    def __init__(self, device: Device, plan: Plan, max_programs: int, time_limit_s: float, num_threads: int):
        self.capacity = _capacity(device, plan, max_programs)
        self._device = device
        self._plan = plan
        self._time_limit_s = time_limit_s
        self._stream = device.stream()
        self._copy_stream = device.stream()
        self._one = device.upload(np.ones(1, np.uint32))
        self._slots = [self._make_slot() for _ in range(NUM_SLOTS)]
        self._threads = ThreadPoolExecutor(min(num_threads, NUM_SLOTS), "score", initializer=device.make_current)

    def run(self, modules: Iterable[Module], take: Callable[[Module, np.ndarray], None]) -> LaneTimes:
        """Runs the modules in the order in which they come.

        Args:
            take: called in a thread of the lane with each module and the bytes of its results, which it must not keep.

        Raises:
            PackFailure: the device failed.
        """
        times = LaneTimes()
        flights: deque[_Flight] = deque()
        free = list(self._slots)
        last = time.perf_counter()

        def lap(stage: str) -> None:
            nonlocal last
            now = time.perf_counter()
            setattr(times, stage, getattr(times, stage) + now - last)
            last = now

        try:
            for module in modules:
                lap("wait_for_cubins")
                if not free:
                    free.append(self._land(flights, times))
                lap("wait_for_results")
                flights.append(_Flight(module, free.pop()))
                self._start(flights[-1], take)
                lap("load")
            lap("wait_for_cubins")
            while flights:
                self._land(flights, times)
            lap("wait_for_results")
        except CudaError as error:
            raise PackFailure(np.concatenate(_at_fault(flights).rows), error) from error
        finally:
            # Whatever ended this, nobody writes into a slot when the next call begins.
            wait([flight.landing for flight in flights if flight.landing])
        return times

    def close(self) -> None:
        """Frees all, on a device that has not failed."""
        self._threads.shutdown()
        for slot in self._slots:
            self._device.free_pinned(slot.host)
            self._device.free_pinned(slot.flag)
            self._device.free(slot.results)
            self._device.free(slot.scratch)
            for event in (slot.start, slot.end, slot.copied):
                self._device.destroy_event(event)
        self._device.free(self._one)
        self._device.destroy_stream(self._stream)
        self._device.destroy_stream(self._copy_stream)

    def _make_slot(self) -> _Slot:
        device, plan = self._device, self._plan
        num_bytes = plan.result_bytes(self.capacity)
        return _Slot(
            host=device.pinned(num_bytes),
            flag=device.pinned(4),
            results=device.allocate(num_bytes),
            scratch=device.allocate(plan.scratch_bytes(self.capacity)),
            start=device.event(),
            end=device.event(),
            copied=device.event(),
        )

    def _start(self, flight: _Flight, take: Callable[[Module, np.ndarray], None]) -> None:
        device, slot, module = self._device, flight.slot, flight.module
        slot.flag[:] = 0
        loaded = device.load(module.cubin)
        host = slot.host[: self._plan.result_bytes(len(module.rows))]
        device.record(slot.start, self._stream)
        self._plan.launch(device, loaded, module, int(slot.results), int(slot.scratch), self._stream)
        # A copy that is behind the kernels in their stream: it tells, when the device has failed, which pack was the last good one.
        device.copy_to_host(slot.flag, self._one, self._stream)
        device.record(slot.end, self._stream)
        device.wait_on_stream(self._copy_stream, slot.end)
        device.copy_to_host(host, slot.results, self._copy_stream)
        device.record(slot.copied, self._copy_stream)
        flight.landing = self._threads.submit(self._finish, flight, loaded, host, take)

    def _finish(self, flight: _Flight, loaded: Any, host: np.ndarray, take: Callable[[Module, np.ndarray], None]) -> float:
        self._device.wait(flight.slot.copied, self._time_limit_s)
        self._device.unload(loaded)
        take(flight.module, host)
        return self._device.elapsed_s(flight.slot.start, flight.slot.end)

    def _land(self, flights: deque[_Flight], times: LaneTimes) -> _Slot:
        """The slot of the oldest flight, once its results are taken."""
        oldest = flights[0]
        while wait([oldest.landing], WAKE_S).not_done:
            pass
        times.kernels += oldest.landing.result()
        flights.popleft()
        return oldest.slot


def _at_fault(flights: deque[_Flight]) -> Module:
    """The first pack whose kernels did not come to their end: they run in order."""
    return next((flight.module for flight in flights if not flight.slot.flag.any()), flights[-1].module)


def _capacity(device: Device, plan: Plan, max_programs: int) -> int:
    """The most programs of a pack, at most `max_programs`, that fit."""
    device_bytes = int(device.free_bytes() * MEMORY_SHARE) // NUM_SLOTS
    pinned_bytes = MAX_PINNED_BYTES // NUM_SLOTS

    def fits(num_programs: int) -> bool:
        results = plan.result_bytes(num_programs)
        return results <= pinned_bytes and results + plan.scratch_bytes(num_programs) <= device_bytes

    if not fits(1):
        needed = NUM_SLOTS * (plan.result_bytes(1) + plan.scratch_bytes(1))
        raise UserError(
            f"{device.info.name}: too little memory: the task's points need {needed / 2**20:,.0f} MiB for packs of one program, "
            f"{device.free_bytes() * MEMORY_SHARE / 2**20:,.0f} MiB of the device and {MAX_PINNED_BYTES / 2**20:,.0f} MiB of "
            "page-locked memory may be used; take fewer points, or end what else uses the device"
        )
    low, high = 1, max_programs  # fits(low) holds
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low
