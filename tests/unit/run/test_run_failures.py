"""evo.run.run and programs that cannot be compiled or run: they are noted once, for good, and a run goes on without them."""

import json
from dataclasses import replace

import numpy as np
import pytest

from evo.config import load_config
from evo.errors import DeviceFailure, FailureKind, UserError
from evo.evaluate import Failure, Status, calibration
from evo.evaluate.backends import BACKENDS, Backend
from evo.evaluate.cpu import CpuEvaluator
from evo.report.show import describe_failed
from evo.run.run import LiveRun, Run


class GpuLike(CpuEvaluator):
    """Stands in for a GPU that times out on every fifth program, and loses itself on the batch `fatal_call`, by the CPU."""

    fatal_call: int | None = None

    def __init__(self, language, task, quarantine):
        super().__init__(language, task, 1)
        self.quarantine = quarantine
        self.num_calls = 0

    @property
    def device(self):
        return "GPU of the tests"

    def evaluate(self, batch):
        self.num_calls += 1
        refused = np.array([row.tobytes() in self.quarantine for row in batch.hashes], bool)
        if self.fatal_call == self.num_calls:
            raise DeviceFailure("it fell off the bus")
        slow = refused | (batch.hashes[:, 0] % np.uint64(5) == 0)
        results = super().evaluate(batch)
        status = np.where(slow, Status.FAILED, results.status).astype(np.uint8)
        objective = np.where(slow, np.nan, results.objective)
        measures = np.where(slow[:, None], np.nan, results.measures)
        failures = tuple(failures_of(batch[slow], FailureKind.TIMED_OUT, "too slow"))
        return replace(results, status=status, objective=objective, measures=measures, failures=failures)


GPU_LIKE = Backend("cuda", lambda: None, lambda a: GpuLike(a.language, a.task, a.quarantine))


def failures_of(batch, kind: FailureKind, log: str) -> list[Failure]:
    return [Failure(words, key.tobytes(), kind, log) for words, key in zip(batch.words, batch.hashes, strict=True)]


def without_cuda(reason: str) -> Backend:
    """The CUDA backend of a machine that cannot use it."""
    return replace(BACKENDS["cuda"], why_unusable=lambda: reason)


@pytest.fixture
def gpu(monkeypatch):
    """Puts GpuLike in the place of the CUDA backend."""
    monkeypatch.setitem(BACKENDS, "cuda", GPU_LIKE)
    monkeypatch.setattr(GpuLike, "fatal_call", None)
    monkeypatch.setattr(calibration, "measure_cpu", lambda scorer, batch, threads: (1.0, 0.0))
    monkeypatch.setattr(calibration, "measure_gpu", lambda *_: ("compile", 0.1))
    return GpuLike


def execute(run: Run) -> str:
    try:
        return run.execute()
    finally:
        run.close()


def start(small_config, *overrides: str) -> Run:
    return LiveRun.start(load_config(small_config({"evaluation": {"backend": "auto"}}), overrides), "small")


def records(run: Run) -> dict[str, dict]:
    return {path.stem: json.loads(path.read_text()) for path in (run.run_dir.path / "quarantine").glob("*.json")}


def test_programs_that_failed_are_noted_with_what_is_needed_to_see_them_again(gpu, small_config):
    run = start(small_config)
    execute(run)
    found = records(run)
    assert 3 < len(found) == run.search.counters.failed
    lowering = run.search.problem.language.lowering
    for key, record in found.items():
        words = np.array([int(word, 16) for word in record["words"]], np.uint64)
        assert lowering.analyze(words[None])[0].tobytes().hex() == key
        assert (record["kind"], record["log"]) == ("timed out", "too slow")
    assert not {row.tobytes().hex() for row in run.search.archive.elites().hash} & set(found)
    # Counted as for elites, which begin with generation 0.
    assert {record["generation"] for record in found.values()} <= set(range(run.search.counters.generations))
    assert min(record["generation"] for record in found.values()) == 0
    text = describe_failed(Run.view(run.run_dir.path)[0])
    assert text.count("# PTX stub") == text.count("kind       timed out") == text.count("too slow") == len(found)


def test_a_resumed_run_hands_the_evaluator_what_failed_also_if_the_folder_is_lost(gpu, small_config):
    run = start(small_config, "stop.generations=3")
    execute(run)
    found = records(run)
    for path in (run.run_dir.path / "quarantine").glob("*.json"):
        path.unlink()
    resumed = LiveRun.resume(run.run_dir.path, ("stop.generations=4",))[0]
    assert {key.hex() for key in resumed.search.problem.evaluator.quarantine} == set(found) != set()
    resumed.close()


def test_when_the_gpu_fails_the_last_checkpoint_stands_and_the_run_goes_on(gpu, small_config):
    gpu.fatal_call = 5  # the first call tries the task
    run = start(small_config)
    with pytest.raises(DeviceFailure, match="fell off the bus"):
        run.execute()
    before = sorted(path.name for path in (run.run_dir.path / "checkpoints").glob("*.ckpt"))
    run.run_dir.close()
    assert before[-1] == "00000003.ckpt"
    gpu.fatal_call = None
    resumed, notes = LiveRun.resume(run.run_dir.path)
    assert notes == []
    assert resumed.search.counters.generations == 3
    assert execute(resumed) == "stop.generations: 6"


def test_a_run_goes_on_with_the_backend_that_it_had(gpu, small_config, monkeypatch):
    run = start(small_config, "stop.generations=2")
    execute(run)
    monkeypatch.setitem(BACKENDS, "cuda", without_cuda("no NVIDIA driver"))
    with pytest.raises(
        UserError, match=r"ran on GPU of the tests, which cannot be used here: no NVIDIA driver; .*--set evaluation.backend=cpu"
    ):
        LiveRun.resume(run.run_dir.path)
    resumed, notes = LiveRun.resume(run.run_dir.path, ("evaluation.backend=cpu",))
    assert resumed.search.problem.evaluator.device == "CPU"
    assert notes == [
        "programs ran on GPU of the tests and run on CPU from now on: approximate instructions may differ in their last bits"
    ]
    resumed.close()


def test_a_run_of_the_cpu_stays_there_when_a_gpu_appears(small_config, monkeypatch):
    monkeypatch.setitem(BACKENDS, "cuda", without_cuda("no NVIDIA driver"))
    run = start(small_config, "stop.generations=2")
    execute(run)
    monkeypatch.setitem(BACKENDS, "cuda", GPU_LIKE)
    resumed, notes = LiveRun.resume(run.run_dir.path)
    assert (resumed.search.problem.evaluator.device, notes) == ("CPU", [])
    resumed.close()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *(("0" * 32, content) for content in ("{", "[]", '{"kind": "timed out"}', '{"kind": "BOGUS", "log": ""}')),
        ("mine", '{"kind": "timed out", "log": ""}'),  # no hash
    ],
)
def test_a_damaged_record_is_named(small_config, name, content):
    run = start(small_config, "stop.generations=2", "evaluation.backend=cpu")
    execute(run)
    (run.run_dir.path / "quarantine").mkdir()
    path = run.run_dir.path / "quarantine" / f"{name}.json"
    path.write_text(content)
    with pytest.raises(UserError) as caught:
        LiveRun.resume(run.run_dir.path)
    assert str(path) in str(caught.value) and (name == "mine" or "delete it" in str(caught.value))


def test_cuda_without_a_gpu_is_refused_with_the_reason(small_config, monkeypatch):
    monkeypatch.setattr("evo.evaluate.backends._why_no_cuda", lambda: "no NVIDIA driver")
    with pytest.raises(UserError, match=r"evaluation\.backend: cuda cannot be used here: no NVIDIA driver; use 'cpu' or 'auto'"):
        start(small_config, "evaluation.backend=cuda")
