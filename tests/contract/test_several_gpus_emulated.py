"""Several GPUs, over a stand-in: a run that they share has the bits of one, and processes beside each other take one each."""

import subprocess
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings is not installed")
pytest.importorskip("evo.native.nvptxcompiler", reason="built without the wheel nvidia-nvptxcompiler")

from evo.errors import DeviceFailure, UserError
from evo.evaluate import backends
from evo.evaluate.backends import CUDA, Assignment
from evo.evaluate.cuda import self_test, several
from evo.evaluate.cuda.device import DeviceInfo, Probe, probe
from evo.evaluate.cuda.evaluator import CudaEvaluator
from evo.evaluate.cuda.several import chosen_devices
from evo.evaluate.options import EvaluationOptions
from evo.instructions import shipped_instruction_set
from evo.language.batch import Batch
from evo.language.program import Language, parse_program
from evo.tasks.folder import load_task

NAMES = ["mul_ftz_f32", "add_ftz_f32"]


@pytest.fixture
def start(emulated_gpu, plane_folder, monkeypatch):
    """Starts the evaluator of a device option on a machine with three GPUs; gives it, and 40 programs."""
    emulated_gpu.configure("devices=3")
    monkeypatch.setenv("EVO_EMULATED_GPU", "devices=3")  # of the processes in which suspects run alone, too
    monkeypatch.setattr(several, "_MIN_PROGRAMS", 5)
    monkeypatch.setattr(backends, "_shares_gpus", False)  # another test of this process may have
    task = load_task(plane_folder, {})
    language = Language(shipped_instruction_set("default"), tuple(task.inputs.items()), tuple(task.outputs.items()))
    texts = [f"%{language.inputs[0][0]} {1 + (i + 1) / 128} mul_ftz_f32" for i in range(40)]
    batch = Batch.analyze(language.lowering, np.stack([parse_program(language, text, "test", 8) for text in texts]))

    def make(device, lane: str = "interpret"):
        settings = EvaluationOptions(device=device, lane=lane, compile_workers=1, threads=3, cache_megabytes=0)
        return CUDA.start(Assignment(language, task, NAMES, settings, {})), batch

    return make


@pytest.mark.parametrize("lane", ["interpret", "compile"])
def test_all_gpus_run_a_batch_together_and_find_the_bits_of_one(emulated_gpu, start, monkeypatch, lane):
    used, evaluate = {}, CudaEvaluator.evaluate
    meet = threading.Barrier(3)

    def noted(self, batch):
        if id(self) not in used:
            meet.wait(60.0)  # each GPU has a part before any goes on
        used[id(self)] = used.get(id(self), 0) + len(batch)
        return evaluate(self, batch)

    alone, batch = start(1, lane)
    expected = alone.evaluate(batch)
    alone.close()
    evaluator, _ = start("all", lane)
    monkeypatch.setattr(CudaEvaluator, "evaluate", noted)
    found = evaluator.evaluate(batch)
    assert (len(used), sum(used.values()), evaluator.environment()["gpus"]) == (3, 40, 3)
    evaluator.close()
    assert found.objective.tobytes() == expected.objective.tobytes() and np.isfinite(found.objective).any()
    assert found.measures.tobytes() == expected.measures.tobytes()
    assert found.stats.lanes == expected.stats.lanes
    assert not any(emulated_gpu.leaked().values())


def test_a_gpu_that_fails_ends_the_batch(emulated_gpu, start):
    evaluator, batch = start([0, 2], "compile")
    emulated_gpu.fatal_text = b"0f%08X" % np.float32(1 + 30 / 128).view(np.uint32)
    with pytest.raises(DeviceFailure, match="CUDA_ERROR_ILLEGAL_ADDRESS"):
        evaluator.evaluate(batch)
    evaluator.close()


def test_each_gpu_is_tested_by_itself(start, monkeypatch):
    tested = []
    monkeypatch.setattr(
        self_test,
        "run_in_child",
        lambda work, ordinal, limit_s: (
            tested.append(ordinal)
            or SimpleNamespace(steps=(), problem="sums differ" if ordinal == 2 else None, is_final=True, is_timeout=False)
        ),
    )
    with pytest.raises(UserError, match="failed the self-test: sums differ"):
        start("all")
    evaluator, _ = start([0, 1])
    evaluator.close()
    assert sorted(tested) == [0, 1, 2]


GPUS = tuple(
    DeviceInfo(i, "NVIDIA L4" if i == 3 else "NVIDIA H200", (8, 9) if i == 3 else (9, 0), 1, f"uuid-{i}") for i in range(4)
)


@pytest.mark.parametrize(
    ("device", "ordinals"),
    [(None, [0]), (2, [2]), ([2, 0, 2], [2, 0]), ("all", "differ in last bits"), ([1, 3], "differ"), (7, "7")],
)
def test_which_gpus_an_option_means(device, ordinals):
    found = Probe(None, (13, 0), GPUS)
    if isinstance(ordinals, str):
        with pytest.raises(UserError, match=f"evaluation.device: .*{ordinals}"):
            chosen_devices(found, device, is_shared=False)
    else:
        assert [info.ordinal for info in chosen_devices(found, device, is_shared=False)] == ordinals


TAKE = """
import sys
from evo.evaluate.cuda.device import DeviceInfo, Probe
from evo.evaluate.cuda.several import chosen_devices
gpus = tuple(DeviceInfo(i, "NVIDIA H200", (9, 0), 1, f"uuid-{i}") for i in range(4))
taken = [chosen_devices(Probe(None, (13, 0), gpus), device, is_shared=True) for device in (None, [0, 1, 2])]
print(*(info.ordinal for infos in taken for info in infos), flush=True)
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


def test_a_process_that_shares_takes_one_gpu_of_those_that_are_named(start, monkeypatch):
    monkeypatch.setattr(backends, "_shares_gpus", True)
    monkeypatch.setattr(several, "_taken", {probe().devices[1].uuid: None})
    evaluator, _ = start([0, 1])
    assert "gpus" not in evaluator.environment()
    assert evaluator._device.info.ordinal == 1
    evaluator.close()
