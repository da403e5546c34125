"""evo.evaluate.cuda.lane on a fake device whose kernels run by themselves and whose calls may never return: the stand-in driver
of emulator/ can do neither."""

import threading
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

from evo.compile.compiler import Module
from evo.errors import DeviceFailure, UserError
from evo.evaluate.cuda import lane as cuda_lane
from evo.evaluate.cuda.device import CudaError
from evo.evaluate.cuda.lane import Lane

# Only the fake clock of `polls` ever reaches it.
LIMIT_S = 1e6


class GoingDevice:
    """A pack's kernels end when its event in `ended` is set. A cubin's text says what happens when it is loaded."""

    info = SimpleNamespace(name="device of the tests")

    def __init__(self):
        self.ended: dict[bytes, threading.Event] = {}
        self.stuck = threading.Event()  # set by the call that does not return
        self.released = threading.Event()  # lets that call return when the test is over
        self.loaded = Counter()
        self.most_loaded = 0
        self._pack_of: dict[object, bytes] = {}
        self.seen: set[bytes] = set()  # packs whose end the lane has seen
        self._current = b""

    def load(self, cubin: bytes) -> bytes:
        if cubin.startswith(b"refused"):
            raise CudaError("cuModuleLoadData", cubin.split(b" ")[1].decode())
        if cubin == b"no return":
            self.stuck.set()
            self.released.wait()
        self.loaded[cubin] += 1
        self.most_loaded = max(self.most_loaded, self.loaded.total())
        self._current = cubin
        return cubin

    def unload(self, module: bytes) -> None:
        assert self.ended[module].is_set()
        self.loaded[module] -= 1

    def wait(self, event: object, is_given_up) -> None:
        pack = self._pack_of[event]
        while not self.ended[pack].wait(0.001):
            if is_given_up():
                raise CudaError("cuEventQuery", "given up")
        self.seen.add(pack)

    def record(self, event: object, stream: object) -> None:
        self._pack_of[event] = self._current

    def copy_to_host(self, host: np.ndarray, address: object, stream: object) -> None:
        pass

    def free_bytes(self) -> int:
        return 1 << 30

    def pinned(self, num_bytes: int) -> np.ndarray:
        return np.zeros(num_bytes, np.uint8)

    def allocate(self, num_bytes: int) -> int:
        return 1

    def elapsed_s(self, start: object, end: object) -> float:
        return 1.0

    def stream(self) -> object:
        return object()

    event = stream

    def nothing(self, *args) -> None:
        pass

    make_current = free = free_pinned = destroy_event = destroy_stream = nothing


class Plan:
    """Eight bytes a program, and no kernel."""

    is_divisible = True

    def result_bytes(self, num_programs: int) -> int:
        return 8 * num_programs

    def scratch_bytes(self, num_programs: int) -> int:
        return 0

    def nothing(self, *args) -> None:
        pass

    prepare = launch = nothing


@pytest.fixture
def device():
    device = GoingDevice()
    yield device
    device.released.set()


@pytest.fixture
def lane(device):
    return Lane(device, Plan(), 4, LIMIT_S, 4)


@pytest.fixture
def polls(monkeypatch):
    """A fake clock that advances by `step_s` whenever the lane polls in vain. `hook` is called with each poll's time limit."""
    state = SimpleNamespace(now_s=0.0, step_s=0.0, hook=lambda timeout: None)
    really_wait = cuda_lane.wait

    def wait(futures, timeout=None):
        state.hook(timeout)
        result = really_wait(futures, min(timeout, 0.02) if timeout == cuda_lane.WAKE_S else timeout)
        state.now_s += state.step_s if result.not_done else 0.0
        return result

    monkeypatch.setattr(cuda_lane, "wait", wait)
    monkeypatch.setattr(cuda_lane, "time", SimpleNamespace(monotonic=lambda: state.now_s, perf_counter=lambda: 0.0))
    return state


def pack(device: GoingDevice, row: int, cubin: bytes = b"", is_ended: bool = True) -> Module:
    cubin = cubin or b"pack %d" % row
    device.ended[cubin] = threading.Event()
    if is_ended:
        device.ended[cubin].set()
    return Module([np.array([row])], np.array([1], np.int32), (1,), cubin)


def taken(rows: list[int]):
    return lambda module, host: rows.append(int(module.rows[0][0]))


@pytest.mark.parametrize(("free_bytes", "capacity"), [(47, None), (48, 1), (144, 3), (999, 4)])
def test_packs_in_flight_share_half_of_the_memory(device, free_bytes, capacity):
    device.free_bytes = lambda: free_bytes
    if capacity:
        assert Lane(device, Plan(), 4, LIMIT_S, 1).capacity == capacity
        return
    with pytest.raises(UserError, match=r"^device of the tests: too little memory: packs of one program need 0 MiB"):
        Lane(device, Plan(), 4, LIMIT_S, 1)


def test_few_modules_are_loaded_at_a_time(device, lane, monkeypatch):
    monkeypatch.setattr(cuda_lane, "MAX_ENDED_MODULES", 5)
    lane.run((pack(device, row) for row in range(50)), taken([]))
    assert device.most_loaded <= 5 + cuda_lane.NUM_IN_FLIGHT


@pytest.mark.parametrize("error", [b"CUDA_ERROR_INVALID_IMAGE", b"CUDA_ERROR_OUT_OF_MEMORY"])
def test_a_pack_that_cannot_be_loaded_ends_the_batch(device, lane, polls, error):
    packs = [pack(device, 0, is_ended=False), pack(device, 1, b"refused " + error)]
    polls.hook = lambda timeout: timeout == LIMIT_S and device.ended[b"pack 0"].set()
    with pytest.raises(DeviceFailure, match=error.decode()):
        lane.run(iter(packs), taken([]))


def test_a_kernel_that_never_ends_is_given_up_even_if_a_call_of_the_driver_waits_for_it(device, polls):
    lane = Lane(device, Plan(), 4, 0.05, 4)
    packs = [pack(device, 0), pack(device, 1, is_ended=False), pack(device, 2, b"no return")]

    def start_the_clock_once_only_the_kernel_is_waited_for(timeout) -> None:
        if b"pack 0" in device.seen and device.stuck.is_set():
            polls.step_s = 0.02

    polls.hook = start_the_clock_once_only_the_kernel_is_waited_for
    with pytest.raises(DeviceFailure, match=r"still running after 0\.05 s"):
        lane.run(iter(packs), taken([]))


def test_each_pack_has_its_own_time_limit(device, lane, polls):
    packs = [pack(device, row, is_ended=False) for row in range(3)]
    was_taken = [threading.Event() for _ in packs]

    def end_a_pack_every_two_steps(timeout) -> None:
        if device.loaded.total() < 3:
            return
        polls.step_s = 0.4 * LIMIT_S
        for row in range(min(3, round(polls.now_s / polls.step_s) // 2)):
            device.ended[b"pack %d" % row].set()
            was_taken[row].wait()

    polls.hook = end_a_pack_every_two_steps
    lane.run(iter(packs), lambda module, host: was_taken[int(module.rows[0][0])].set())
    assert all(event.is_set() for event in was_taken)
    assert polls.now_s > 2 * LIMIT_S


def test_the_time_limit_does_not_apply_to_scoring(device, lane, polls):
    is_late = threading.Event()
    polls.hook = lambda timeout: (polls.now_s > 5 * LIMIT_S or timeout == LIMIT_S) and is_late.set()
    rows: list[int] = []

    def score_for_a_long_time(module, host) -> None:
        polls.step_s = LIMIT_S
        is_late.wait()
        rows.append(int(module.rows[0][0]))

    lane.run([pack(device, 0)], score_for_a_long_time)
    assert rows == [0]


def test_a_lane_is_usable_after_a_score_that_raised(device, lane):
    def fail(module, host):
        raise UserError("wrong")

    with pytest.raises(UserError, match="wrong"):
        lane.run((pack(device, row) for row in range(5)), fail)
    rows: list[int] = []
    lane.run((pack(device, row) for row in range(5)), taken(rows))
    lane.close()
    assert sorted(rows) == list(range(5))
    assert device.loaded.total() == 0
