"""evo.doctor: a line for each piece, and what a missing one means, without needing any of them."""

import ctypes
import importlib.util

import pytest

from evo import doctor
from evo.native import ptx_vm


def rows() -> dict[str, str]:
    return {line[:14].strip(): line[14:].strip() for line in doctor.report().splitlines()}


def test_the_machine_is_described():
    found = rows()
    assert found["SIMD"].startswith(ptx_vm.levels()[-1])
    assert found["SIMD"].endswith(", ".join(ptx_vm.levels()))
    assert int(found["cores"].split()[0]) >= 1


@pytest.mark.parametrize(
    "name, piece, meaning",
    [
        ("evo.native.nvptxcompiler", "nvPTXCompiler", "no cubins can be made"),
        ("nvidia", "NVRTC", "only tasks with a CUDA kernel of their own need it"),
    ],
)
def test_a_missing_piece_is_said_to_be_missing_with_what_it_means(monkeypatch, name, piece, meaning):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda asked, *args: None if asked == name else find_spec(asked, *args))
    monkeypatch.setattr(ctypes.util, "find_library", lambda _: None)
    assert rows()[piece].startswith("missing")
    assert meaning in rows()[piece]


class Driver:
    """Stands in for libcuda: `cuInit` answers as given, and it counts this many devices."""

    def __init__(self, init_answer: int, num_devices: int):
        self.cuInit = lambda flags: init_answer
        self.cuDeviceGetCount = lambda pointer: setattr(pointer._obj, "value", num_devices) or 0


@pytest.mark.parametrize(
    "driver, state, meaning",
    [
        (None, "none", "no NVIDIA driver; programs run on the CPU, which means the same"),
        (Driver(100, 0), "none", "the NVIDIA driver finds no usable GPU"),
        (Driver(0, 0), "none", "the NVIDIA driver finds no usable GPU"),
        (Driver(0, 2), "2 found", ""),
    ],
)
def test_a_gpu_is_found_or_not_without_being_opened(monkeypatch, driver, state, meaning):
    def load(name):
        if driver is None:
            raise OSError("no such library")
        return driver

    monkeypatch.setattr(ctypes, "CDLL", load)
    assert rows()["GPU"].startswith(state)
    assert meaning in rows()["GPU"]
