"""Several GPUs of a machine: processes beside each other take one each."""

import subprocess
import sys

import pytest

pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings is not installed")

from evo.errors import UserError
from evo.evaluate.cuda import shared
from evo.evaluate.cuda.device import DeviceInfo, Probe
from evo.evaluate.cuda.shared import chosen_device

GPUS = tuple(
    DeviceInfo(i, "NVIDIA L4" if i == 3 else "NVIDIA H200", (8, 9) if i == 3 else (9, 0), 1, f"uuid-{i}") for i in range(4)
)


FOUND = Probe(None, (13, 0), GPUS)


@pytest.mark.parametrize(("device", "ordinal"), [(None, 0), (2, 2)])
def test_which_gpu_an_option_means(device, ordinal):
    assert chosen_device(FOUND, device, is_shared=False).ordinal == ordinal
    with pytest.raises(UserError, match=r"evaluation\.device: .*7"):
        chosen_device(FOUND, 7, is_shared=False)


TAKE = """
import sys
from evo.evaluate.cuda.device import DeviceInfo, Probe
from evo.evaluate.cuda.shared import chosen_device
gpus = tuple(DeviceInfo(i, "NVIDIA H200", (9, 0), 1, f"uuid-{i}") for i in range(4))
taken = [chosen_device(Probe(None, (13, 0), gpus), None, is_shared=True) for _ in range(2)]
print(*(info.ordinal for info in taken), flush=True)
sys.stdin.read()
"""


def test_processes_beside_each_other_take_different_gpus_and_give_them_back(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    processes = []

    def take() -> str:
        pipe = subprocess.PIPE
        processes.append(subprocess.Popen([sys.executable, "-c", TAKE], stdin=pipe, stdout=pipe, text=True))
        return processes[-1].stdout.readline().strip()

    try:
        assert [take() for _ in range(3)] == ["0 0", "1 1", "2 2"]  # each keeps to its own
        processes[1].communicate()
        assert take() == "1 1"
    finally:
        for process in processes:
            process.communicate()


def test_a_process_that_shares_takes_one_of_the_first_gpus_kind_unless_one_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(shared, "_taken", {"uuid-1": None})
    assert chosen_device(FOUND, None, is_shared=True).ordinal == 1
    assert chosen_device(FOUND, 3, is_shared=True).ordinal == 3
    alike = Probe(None, (13, 0), (GPUS[3], *GPUS[:2]))
    monkeypatch.setattr(shared, "_taken", {})
    assert chosen_device(alike, None, is_shared=True).ordinal == 3
