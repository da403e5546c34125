"""A lane of the GPU: takes packs as they are compiled, runs them, and hands back their results.

Owns streams, events and the buffers of the packs in flight. Each has a stream of its own: a pack that leaves multiprocessors idle
shares the device with the next one, and while one is copied back and scored, others run. Results that do not fit into page-locked
memory come back in parts. What packs compute is up to a plan (`evo.evaluate.cuda.plans`). Knows nothing of tasks or of how cubins
are made.

While packs are in flight, the calling thread never calls the driver. Any call may wait for a running kernel, above all to load or
unload a module, and a kernel that never ends must not hang the run.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from evo.errors import DeviceFailure, UserError
from evo.evaluate.cuda.device import CudaError, Device
from evo.evaluate.cuda.plans import Plan
from evo.workers import WAKE_S

# Packs in flight, such as one that runs, one that is copied back or scored, and one that waits to run.
NUM_IN_FLIGHT = 3
# A lane's buffers may take this share of the device memory that is free when the lane is made.
MEMORY_SHARE = 0.5
# Page-locked memory is lost to all other processes of the machine. One lane takes at most this much.
MAX_PINNED_BYTES = 2 << 30
# Unloading a module may wait for running kernels, so modules that have run are unloaded when nothing runs, or when this many are
# left. Each takes 100 to 200 KB.
MAX_ENDED_MODULES = 256

T = TypeVar("T")
P = TypeVar("P", bound="Pack")


class Pack(Protocol):
    """Programs that are launched together: a `Module` with a cubin to load, or code for a kernel that is there already.

    rows: for each program, the rows of the batch that it serves, or the one row. cubin: None if nothing is to be loaded.
    """

    @property
    def rows(self) -> Sequence[NDArray[Any]] | NDArray[np.int64]: ...  # noqa: D102
    @property
    def num_instructions(self) -> NDArray[np.int32]: ...  # noqa: D102
    @property
    def cubin(self) -> bytes | None: ...  # noqa: D102
    def served(self) -> tuple[NDArray[Any], NDArray[Any] | slice]:
        """All rows that are served, and the program of each."""


@dataclass
class _Buffers:
    """Memory of one pack in flight."""

    stream: Any
    host: NDArray[Any]
    results: Any
    scratch: Any
    start: Any
    end: Any
    copied: Any


@dataclass
class LaneTimes:
    """Seconds that the calling thread waits for cubins, for loading and launching, and for results. kernels: seconds in each
    pack's kernels, added up; packs may share the device.
    """

    wait_for_cubins: float = 0.0
    load: float = 0.0
    wait_for_results: float = 0.0
    kernels: float = 0.0

    def add_to(self, times_s: dict[str, float]) -> None:
        """Adds them to seconds by stage."""
        for name, seconds in asdict(self).items():
            times_s[name] = times_s.get(name, 0.0) + seconds


@dataclass
class _Flight:
    """A pack in flight. starting: ends when its kernels are launched. is_back: its results are on this machine."""

    module: Pack
    buffers: _Buffers
    began_s: float
    loaded: Any = None
    is_back: bool = False
    starting: Future[None] = field(default_factory=Future)
    landing: Future[float] | None = None


class Lane:
    """Streams and buffers for packs of at most `capacity` programs.

    Args:
        max_programs: most programs of a pack; `capacity` is less if memory is short.
        time_limit_s: for one pack to be loaded, run and copied back, counted from the return of the pack before it.
        num_threads: threads that take results.

    Raises:
        UserError: there is too little memory for even one program.
    """

    def __init__(self, device: Device, plan: Plan, max_programs: int, time_limit_s: float, num_threads: int):
        self.capacity = _capacity(device, plan, max_programs)
        self._device = device
        self.plan = plan
        self._time_limit_s = time_limit_s
        self._part_size = _part_size(plan, self.capacity)
        self._buffers = [self._make_buffers() for _ in range(NUM_IN_FLIGHT)]
        self._threads = ThreadPoolExecutor(NUM_IN_FLIGHT, "fly")
        self._scoring = threading.BoundedSemaphore(num_threads)
        self._ended: list[Any] = []  # modules to be unloaded
        self._is_lost = threading.Event()
        self._came_back_s = float("-inf")  # when the latest pack did

    def run(self, modules: Iterable[P], take: Callable[[P, NDArray[Any]], None]) -> LaneTimes:
        """Runs the modules in the order in which they come.

        Args:
            take: called in a thread of the lane with each module and the bytes of its results, which it must not keep.

        Raises:
            DeviceFailure: the device failed.
        """
        times = LaneTimes()
        flights: deque[_Flight] = deque()
        free = list(self._buffers)
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
                if flights:  # packs are launched one after the other
                    self._wait(flights[-1].starting, flights)
                flight = _Flight(module, free.pop(), time.monotonic())
                flight.landing = self._threads.submit(self._fly, flight, take)
                flights.append(flight)
                lap("load")
            lap("wait_for_cubins")
            while flights:
                self._land(flights, times)
            lap("wait_for_results")
            if self._ended:
                self._threads.submit(self._unload_ended).result()
        except CudaError as error:
            self._settle(flights)
            raise DeviceFailure(f"{self._device.info.name}: {error}") from error
        except BaseException:
            self._settle(flights)
            raise
        return times

    def close(self) -> None:
        """Frees everything. The device must not have failed."""
        self._threads.shutdown()
        self._unload_ended()
        for buffers in self._buffers:
            self._device.free_pinned(buffers.host)
            self._device.free(buffers.results)
            self._device.free(buffers.scratch)
            for event in (buffers.start, buffers.end, buffers.copied):
                self._device.destroy_event(event)
            self._device.destroy_stream(buffers.stream)

    def _make_buffers(self) -> _Buffers:
        device, plan = self._device, self.plan
        return _Buffers(
            stream=device.stream(),
            host=device.pinned(plan.result_bytes(self._part_size)),
            results=device.allocate(plan.result_bytes(self.capacity)),
            scratch=device.allocate(plan.scratch_bytes(self.capacity)),
            start=device.event(),
            end=device.event(),
            copied=device.event(),
        )

    def _fly(self, flight: _Flight, take: Callable[[Any, NDArray[Any]], None]) -> float:
        """Launch and await a pack in one thread: handing it over takes as long as launching it."""
        try:
            parts = self._start(flight)
        except BaseException as error:
            flight.starting.set_exception(error)
            raise
        flight.starting.set_result(None)
        return self._finish(flight, parts, take)

    def _start(self, flight: _Flight) -> list[tuple[Any, int]]:
        device, buffers, module = self._device, flight.buffers, flight.module
        device.make_current()
        if len(self._ended) >= MAX_ENDED_MODULES:
            self._unload_ended()
        flight.loaded = None if module.cubin is None else device.load(module.cubin)
        results, scratch, stream = int(buffers.results), int(buffers.scratch), buffers.stream
        self.plan.prepare(device, module, results, scratch, stream)
        device.record(buffers.start, stream)
        self.plan.launch(device, flight.loaded, module, results, scratch, stream)
        device.record(buffers.end, stream)
        parts = list(self._parts(module))
        self._copy_back(buffers, *parts[0])
        return parts

    def _parts(self, module: Any) -> Iterator[tuple[Any, int]]:
        """Programs whose results are copied back together, and the offset of the results."""
        for first in range(0, len(module.rows), self._part_size):
            part_rows = slice(first, first + self._part_size)
            part = replace(module, rows=module.rows[part_rows], num_instructions=module.num_instructions[part_rows])
            yield part, self.plan.result_bytes(first) if first else 0

    def _copy_back(self, buffers: _Buffers, part: Pack, offset: int) -> None:
        host = buffers.host[: self.plan.result_bytes(len(part.rows))]
        self._device.copy_to_host(host, int(buffers.results) + offset, buffers.stream)
        self._device.record(buffers.copied, buffers.stream)

    def _finish(self, flight: _Flight, parts: list[tuple[Any, int]], take: Callable[[Any, NDArray[Any]], None]) -> float:
        device, buffers = self._device, flight.buffers
        for number, (part, offset) in enumerate(parts):
            if number:
                self._copy_back(buffers, part, offset)
            device.wait(buffers.copied, self._is_lost.is_set)
            if not number:
                flight.is_back, self._came_back_s = True, time.monotonic()
                kernels_s = device.elapsed_s(buffers.start, buffers.end)
            with self._scoring:
                take(part, buffers.host[: self.plan.result_bytes(len(part.rows))])
        return kernels_s

    def _land(self, flights: deque[_Flight], times: LaneTimes) -> _Buffers:
        """Waits until the oldest flight's results are taken, and gives its buffers."""
        oldest = flights[0]
        assert oldest.landing, "a flight lands after it was started"
        times.kernels += self._wait(oldest.landing, flights)
        self._ended += [oldest.loaded] if oldest.loaded else []
        flights.popleft()
        return oldest.buffers

    def _wait(self, future: Future[T], flights: deque[_Flight]) -> T:
        """The result of a future of one of the flights.

        Raises:
            CudaError: the device failed, or the first pack that is not back yet takes too long.
        """
        while wait([future], WAKE_S).not_done:
            for flight in flights:
                if flight.starting.done():
                    flight.starting.result()
            first = next((flight for flight in flights if not flight.is_back), None)
            if first and time.monotonic() - max(first.began_s, self._came_back_s) > self._time_limit_s:
                self._is_lost.set()
                raise CudaError("cuEventQuery", f"still running after {self._time_limit_s:g} s")
        return future.result()

    def _settle(self, flights: deque[_Flight]) -> None:
        """Waits until no thread uses the buffers, so that `run` may be called again. Gives up after the time limit."""
        if wait([flight.landing for flight in flights if flight.landing], self._time_limit_s).not_done:
            self._is_lost.set()
        self._ended += [flight.loaded for flight in flights if flight.loaded]

    def _unload_ended(self) -> None:
        self._device.make_current()
        while self._ended:
            self._device.unload(self._ended.pop())


def _capacity(device: Device, plan: Plan, max_programs: int) -> int:
    """The largest number of programs per pack, up to `max_programs`, whose buffers fit."""
    device_bytes = int(device.free_bytes() * MEMORY_SHARE) // NUM_IN_FLIGHT

    def fits(num_programs: int) -> bool:
        results = plan.result_bytes(num_programs)
        is_small = _are_pinned(plan, 1 if plan.is_divisible else num_programs)
        return is_small and results + plan.scratch_bytes(num_programs) <= device_bytes

    if not fits(1):
        needed = NUM_IN_FLIGHT * (plan.result_bytes(1) + plan.scratch_bytes(1))
        raise UserError(
            f"too little memory: packs of one program need {needed / 2**20:,.0f} MiB with the task's points, "
            f"but may use {device.free_bytes() * MEMORY_SHARE / 2**20:,.0f} MiB of device memory and "
            f"{MAX_PINNED_BYTES / 2**20:,.0f} MiB of page-locked memory; use fewer points, or end other processes on the device",
            device.info.name,
        )
    return _largest(fits, max_programs)


def _part_size(plan: Plan, capacity: int) -> int:
    """The largest number of programs, up to `capacity`, whose results are copied back together."""
    return _largest(lambda num_programs: _are_pinned(plan, num_programs), capacity) if plan.is_divisible else capacity


def _are_pinned(plan: Plan, num_programs: int) -> bool:
    return plan.result_bytes(num_programs) <= MAX_PINNED_BYTES // NUM_IN_FLIGHT


def _largest(fits: Callable[[int], bool], most: int) -> int:
    """The largest number that fits, up to `most`; 1 fits."""
    low, high = 1, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low
