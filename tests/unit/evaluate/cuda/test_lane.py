"""The lane with a device that does what real ones do and the stand-in driver cannot: work that goes on by itself, and calls that do
not come back."""

from __future__ import annotations

import threading
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

from evo.compile.compiler import Module
from evo.errors import UserError
from evo.evaluate.cuda import lane as cuda_lane
from evo.evaluate.cuda.device import CudaError
from evo.evaluate.cuda.lane import Lane, PackFailure

LIMIT_S = 10.0


class GoingDevice:
    """Kernels of a pack end when its event of `ended` is set; the cubin says what happens when it is loaded."""

    info = SimpleNamespace(name="device of the tests")

    def __init__(self):
        self.ended: dict[bytes, threading.Event] = {}
        self.released = threading.Event()  # calls that do not come back do when the test is over
        self.loaded = Counter()
        self.most_loaded = 0
        self._pack_of: dict[object, bytes] = {}
        self._flags: dict[bytes, np.ndarray] = {}
        self._current = b""

    def load(self, cubin: bytes) -> bytes:
        if cubin.startswith(b"refused"):
            raise CudaError("cuModuleLoadData", cubin.split(b" ")[1].decode())
        if cubin == b"no return":
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
        self._flags[pack][:] = 1

    def record(self, event: object, stream: object) -> None:
        self._pack_of[event] = self._current

    def copy_to_host(self, host: np.ndarray, address: object, stream: object) -> None:
        if host.nbytes == 4:
            self._flags[self._current] = host

    def free_bytes(self) -> int:
        return 1 << 30

    def pinned(self, num_bytes: int) -> np.ndarray:
        return np.zeros(num_bytes, np.uint8)

    def upload(self, array: np.ndarray) -> int:
        return 1

    def allocate(self, num_bytes: int) -> int:
        return 1

    def elapsed_s(self, start: object, end: object) -> float:
        return 1.0

    def stream(self) -> object:
        return object()

    event = stream

    def nothing(self, *args) -> None:
        pass

    make_current = wait_on_stream = free = free_pinned = destroy_event = destroy_stream = nothing


class Plan:
    """Eight bytes a program, and no kernel."""

    def result_bytes(self, num_programs: int) -> int:
        return 8 * num_programs

    def scratch_bytes(self, num_programs: int) -> int:
        return 0

    def launch(self, *args) -> None:
        pass


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
    """A clock that goes on when the lane looks whether something is done, and in vain; calls `polls.hook` with each look's limit."""
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


def test_packs_are_taken_once_and_nothing_stays_loaded(device, lane):
    rows: list[int] = []
    times = lane.run((pack(device, row) for row in range(20)), taken(rows))
    assert sorted(rows) == list(range(20))
    assert times.kernels == 20.0
    assert device.loaded.total() == 0


def test_many_packs_do_not_fill_the_device_with_modules(device, lane, monkeypatch):
    monkeypatch.setattr(cuda_lane, "MAX_ENDED_MODULES", 5)
    lane.run((pack(device, row) for row in range(50)), taken([]))
    assert device.most_loaded <= 5 + cuda_lane.NUM_IN_FLIGHT


@pytest.mark.parametrize(
    ("error", "rows"),
    [(b"CUDA_ERROR_INVALID_IMAGE", [1]), (b"CUDA_ERROR_OUT_OF_MEMORY", [])],
    ids=["its fault", "nobody's fault"],
)
def test_a_pack_that_cannot_be_loaded_is_named_and_not_the_one_that_runs(device, lane, polls, error, rows):
    packs = [pack(device, 0, is_ended=False), pack(device, 1, b"refused " + error)]
    polls.hook = lambda timeout: timeout == LIMIT_S and device.ended[b"pack 0"].set()
    with pytest.raises(PackFailure, match=error.decode()) as raised:
        lane.run(iter(packs), taken([]))
    assert raised.value.rows.tolist() == rows


def test_a_kernel_that_never_ends_is_named_also_where_the_driver_waits_for_it(device, polls):
    lane = Lane(device, Plan(), 4, 0.05, 4)
    polls.step_s = 0.02
    packs = [pack(device, 0), pack(device, 1, is_ended=False), pack(device, 2, b"no return")]
    with pytest.raises(PackFailure, match="no end after 0.05 s") as raised:
        lane.run(iter(packs), taken([]))
    assert raised.value.rows.tolist() == [1]


def test_the_time_limit_is_each_packs_own(device, lane, polls):
    polls.step_s = 0.4 * LIMIT_S
    packs = [pack(device, row, is_ended=False) for row in range(3)]

    def end_one_after_two_looks(timeout) -> None:
        for row in range(min(3, round(polls.now_s / polls.step_s) // 2)):
            device.ended[b"pack %d" % row].set()

    polls.hook = end_one_after_two_looks
    rows: list[int] = []
    lane.run(iter(packs), taken(rows))
    assert sorted(rows) == [0, 1, 2]


def test_the_time_limit_is_not_the_tasks_score(device, lane, polls):
    polls.step_s = LIMIT_S
    has_looked = threading.Event()
    polls.hook = lambda timeout: polls.now_s > 5 * LIMIT_S and has_looked.set()
    lane.run([pack(device, 0)], lambda module, host: has_looked.wait())
    assert has_looked.is_set()


def test_a_score_that_raises_leaves_a_lane_that_can_be_used(device, lane):
    def fail(module, host):
        raise UserError("wrong")

    with pytest.raises(UserError, match="wrong"):
        lane.run((pack(device, row) for row in range(5)), fail)
    rows: list[int] = []
    lane.run((pack(device, row) for row in range(5)), taken(rows))
    lane.close()
    assert sorted(rows) == list(range(5))
    assert device.loaded.total() == 0
