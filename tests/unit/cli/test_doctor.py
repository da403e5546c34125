"""evo.cli.doctor: one line for each piece, with what a missing one means. None of them is needed."""

import importlib.util

import pytest

from evo.cli import doctor
from evo.evaluate.cuda.device import DeviceInfo, Probe
from evo.evaluate.cuda.self_test import Outcome
from evo.kernel.nvrtc import NvrtcMissing


def rows() -> dict[str, str]:
    return {line[:14].strip(): line[14:].strip() for line in doctor.report().splitlines()}


def test_a_missing_assembler_is_reported_with_what_it_means(monkeypatch):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda asked, *args: None if asked == "evo.native.nvptxcompiler" else find_spec(asked, *args)
    )
    monkeypatch.setattr(doctor, "probe", lambda: Probe(None, (13, 0), ()))
    assert rows()["nvPTXCompiler"].startswith("missing")
    assert "unusable without nvPTXCompiler" in rows()["NVIDIA driver"]
    assert "evo cannot compile cubins: reinstall evo" in rows()["nvPTXCompiler"]


def test_nvrtc_has_its_version_or_is_reported_missing(monkeypatch):
    assert rows()["NVRTC"].startswith("13.0 ")

    def refuse():
        raise NvrtcMissing("no library")

    monkeypatch.setattr(doctor.nvrtc, "version", refuse)
    assert rows()["NVRTC"].startswith("missing")
    assert "needed only by tasks with their own CUDA kernel: pip install" in rows()["NVRTC"]


OLD = Probe("the NVIDIA driver supports CUDA 12.4, but evo needs CUDA 13.0: update the driver", (12, 4))
H200 = DeviceInfo(0, "NVIDIA H200", (9, 0), 140 << 30, "0-0")
V100 = DeviceInfo(1, "Tesla V100", (7, 0), 16 << 30, "0-1")


@pytest.mark.parametrize(
    ("found", "state", "meaning"),
    [
        (Probe("no NVIDIA driver"), "none", "no NVIDIA driver; programs run on the CPU, with the same semantics"),
        (OLD, "CUDA 12.4", "but evo needs CUDA 13.0: update the driver; programs run on the CPU"),
    ],
)
def test_without_a_usable_gpu_it_says_why_and_what_happens_instead(monkeypatch, found, state, meaning):
    monkeypatch.setattr(doctor, "probe", lambda: found)
    assert rows()["GPU"].startswith(state)
    assert meaning in rows()["GPU"]


class OpenedDevice:
    """A fake device with 3 GiB free."""

    free = 3 << 30

    def __init__(self, ordinal: int):
        assert ordinal == 0

    def free_bytes(self) -> int:
        return self.free

    def close(self) -> None:
        pass


@pytest.fixture(autouse=True)
def outcomes(monkeypatch) -> dict[str, Outcome]:
    """The remembered self-tests by the device's name: none; of a machine with a GPU that can be used and one that cannot."""
    found: dict[str, Outcome] = {}
    monkeypatch.setattr(doctor, "probe", lambda: Probe(None, (13, 0), (H200, V100)))
    monkeypatch.setattr(doctor, "Device", OpenedDevice)
    monkeypatch.setattr(doctor, "remembered", lambda info: found.get(info.name))
    return found


@pytest.mark.parametrize(
    ("outcome", "row"),
    [
        (None, "not yet run    runs before the GPU is first used, or with: evo doctor --test"),
        (Outcome(None), "passed         instructions, programs, reductions and unloading agree with the CPU"),
        (Outcome("add differs"), "failed         add differs; this GPU is not used; test it again with: evo doctor --test"),
    ],
)
def test_the_outcome_of_the_self_test_is_shown_for_each_gpu_that_can_be_used(outcomes, outcome, row):
    if outcome:
        outcomes[H200.name] = outcome
    assert rows()["self-test 0"] == row
    assert "self-test 1" not in rows()


def test_testing_runs_the_test_of_each_gpu_that_can_be_used(monkeypatch, outcomes):
    tested = []
    monkeypatch.setattr(doctor, "run_self_test", lambda info: tested.append(info) or Outcome("add differs"))
    outcomes[H200.name] = Outcome(None)
    assert doctor.test_gpus() == []
    assert tested == [H200]
    monkeypatch.setattr(doctor, "run_self_test", lambda info: Outcome("no memory is free", is_final=False))
    assert doctor.test_gpus() == ["NVIDIA H200 could not be tested: no memory is free"]
