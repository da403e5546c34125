"""Transport of a task: contents of the zip, and a worker's checks before it makes an evaluator."""

import io
import pickle
import zipfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from evo.errors import FailureKind, UserError
from evo.evaluate import TaskSource, dask_worker
from evo.evaluate.backends import CPU, Assignment
from evo.evaluate.cluster import ClusterEvaluator, Pace, pack_task
from evo.evaluate.options import EvaluationOptions
from evo.language.batch import Batch
from evo.tasks.folder import declared_files, load_task, task_digest

SOURCE = """\
from pathlib import Path

import numpy as np

import evo


class Scaled(evo.Task):
    inputs = {"x": "f32"}
    outputs = {"y": "f32"}
    measures = {"mean": (-1.0, 1.0)}
    reduction = None

    def __init__(self):
        self.scale = float((Path(__file__).parent / "../../data/scale.txt").read_text())

    def files(self):
        return ["../../data"]

    def points(self):
        return {"x": np.linspace(-1, 1, 8)}

    def score(self, outputs, programs):
        y = outputs["y"].astype(np.float64) * self.scale
        return evo.Scores(-np.abs(y).mean(axis=1), y.mean(axis=1)[:, None])
"""


@pytest.fixture
def source(tmp_path) -> TaskSource:
    folder = tmp_path / "project" / "tasks" / "scaled"
    (folder / "__pycache__").mkdir(parents=True)
    (folder / "__pycache__" / "left.pyc").touch()
    (folder / ".hidden").touch()
    (folder / "task.py").write_text(SOURCE)
    (tmp_path / "project" / "data").mkdir()
    (tmp_path / "project" / "data" / "scale.txt").write_text("0.5")
    (tmp_path / "project" / "unrelated.txt").touch()
    return TaskSource(folder, {})


@pytest.fixture
def make_evaluator(source, language):
    """Gives for options of the task an evaluator that is not connected to anything."""

    def make(options: dict) -> ClusterEvaluator:
        task = load_task(source.folder, options)
        own = type(language)(language.instruction_set, tuple(task.inputs.items()), tuple(task.outputs.items()))
        settings = EvaluationOptions.model_validate({"cluster": {"scheduler": "tcp://127.0.0.1:1"}, "executor": "threads"})
        digest = task_digest(source.folder, declared_files(task, source.folder))
        assignment = Assignment(own, task, ["add_ftz_f32"], settings, {}, replace(source, options=options))
        return ClusterEvaluator(assignment, CPU, digest)

    return make


@pytest.fixture
def evaluator(make_evaluator):
    return make_evaluator({})


@pytest.fixture
def worker(monkeypatch, tmp_path) -> Path:
    """This process as a Dask worker; gives its scratch folder."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    here = SimpleNamespace(local_directory=str(scratch), address="tcp://here", state=SimpleNamespace(nthreads=2))
    monkeypatch.setattr(dask_worker, "_worker", lambda: here)
    monkeypatch.setattr(dask_worker, "_keep_memory", lambda: None)
    yield scratch
    while dask_worker._held:
        dask_worker._held.popitem()[1].close()


def words_of(evaluator: ClusterEvaluator, text: str) -> Batch:
    from evo.language.program import parse_program

    language = evaluator._assignment.language
    words = np.zeros((len(text.splitlines()), 8), np.uint64)
    for row, line in zip(words, text.splitlines(), strict=True):
        program = parse_program(language, line, "text")
        row[: len(program)] = program
    return Batch.analyze(language.lowering, words)


def test_the_zip_has_the_tasks_folder_and_its_declared_files_as_they_lie_to_each_other(evaluator, source):
    packed = pack_task(evaluator._assignment.task, source, evaluator._task_digest)
    assert (packed.folder, packed.root) == ("tasks/scaled", str(source.folder.parents[1]))
    with zipfile.ZipFile(io.BytesIO(packed.zip)) as files:
        assert sorted(files.namelist()) == ["data/scale.txt", "tasks/scaled/task.py"]
        assert files.read("data/scale.txt") == b"0.5"


def test_a_task_that_has_changed_since_it_was_loaded_does_not_travel(evaluator, source):
    (source.folder.parents[1] / "data" / "scale.txt").write_text("0.25")
    with pytest.raises(UserError, match="the task's files have changed since they were loaded; start again"):
        evaluator._setup  # noqa: B018


def test_a_worker_scores_as_a_local_evaluator_does(evaluator, worker):
    batch = words_of(evaluator, "%x\n%x %x add_ftz_f32")
    alone = evaluator._assignment.settings.model_copy(update={"threads": 1})
    local = CPU.start(replace(evaluator._assignment, settings=alone)).evaluate(batch)
    found = dask_worker.call(evaluator._setup, "run", "evaluate", batch)[0]
    assert found.objective.tobytes() == local.objective.tobytes()
    assert found.measures.tobytes() == local.measures.tobytes()
    assert found.objective[1] == 2 * found.objective[0] != 0.0
    (copy,) = worker.iterdir()
    assert (copy / "data" / "scale.txt").is_file()
    assert dask_worker.call(evaluator._setup, "run", "environment")[0]["executor"] == "threads"
    assert list(worker.iterdir()) == [copy]  # the evaluator is made once


def changed(evaluator: ClusterEvaluator, **changes) -> bytes:
    return pickle.dumps(replace(pickle.loads(evaluator._setup), **changes))


def test_another_task_than_the_runs_is_refused(evaluator, worker, source):
    other = io.BytesIO()
    with zipfile.ZipFile(other, "w") as files:
        files.writestr("tasks/scaled/task.py", SOURCE)
        files.writestr("data/scale.txt", "0.25")
    packed = replace(pickle.loads(evaluator._setup).packed, zip=other.getvalue())
    setup = changed(evaluator, packed=packed)
    with pytest.raises(UserError, match=f"^{source.folder}: Dask worker tcp://here has other files of the task than the run$"):
        dask_worker.call(setup, "run", "environment")
    assert not list(worker.iterdir())


def test_a_worker_keeps_the_evaluators_of_the_last_few_runs(evaluator, worker):
    for number in range(dask_worker.MAX_HELD + 1):
        dask_worker.call(evaluator._setup, f"run{number}", "environment")
    assert list(dask_worker._held) == [f"run{number}" for number in range(1, dask_worker.MAX_HELD + 1)]
    assert len(list(worker.iterdir())) == dask_worker.MAX_HELD


# The same with the file as an option.
OPTION = SOURCE.replace(
    """\
    def __init__(self):
        self.scale = float((Path(__file__).parent / "../../data/scale.txt").read_text())
""",
    """\
    def __init__(self, data):
        self.data = Path(data).absolute()
        self.scale = float(self.data.read_text())
""",
)


@pytest.mark.parametrize("is_absolute", [True, False], ids=["absolute", "relative"])
@pytest.mark.parametrize(
    ("place", "declared"),
    [("data/scale.txt", "[self.data]"), ("data/scale.txt", "[self.data.parent]"), ("tasks/scaled/scale.txt", "[]")],
    ids=["declared", "in a declared folder", "in the task's folder"],
)
def test_an_option_that_names_a_file_of_the_task_names_a_workers_copy(
    source, make_evaluator, worker, monkeypatch, place, declared, is_absolute
):
    """The worker has neither that path nor the run's working folder."""
    (source.folder / "task.py").write_text(OPTION.replace('["../../data"]', declared))
    data = source.folder.parents[1] / place
    data.write_text("0.5")
    monkeypatch.chdir(data.parent)
    evaluator = make_evaluator({"data": str(data) if is_absolute else "scale.txt"})
    batch = words_of(evaluator, "%x\n%x %x add_ftz_f32")
    local = CPU.start(evaluator._assignment).evaluate(batch)
    setup = evaluator._setup
    monkeypatch.chdir(worker)
    data.unlink()
    assert dask_worker.call(setup, "run", "evaluate", batch)[0].objective.tobytes() == local.objective.tobytes()


def test_a_worker_never_tries_what_failed_before(evaluator, worker, monkeypatch):
    """As after a resume: the checkpoint knows the program that made a GPU fail."""
    quarantine = {bytes(16): (FailureKind.DIED, "illegal address")}
    started = []
    backend = replace(CPU, start=lambda assignment: started.append(assignment) or CPU.start(assignment))
    monkeypatch.setitem(dask_worker.BACKENDS, "cpu", backend)
    resumed = ClusterEvaluator(replace(evaluator._assignment, quarantine=quarantine), CPU, evaluator._task_digest)
    dask_worker.call(resumed._setup, "run", "environment")
    assert [assignment.quarantine for assignment in started] == [quarantine]


@pytest.mark.parametrize(
    ("program_s", "num_programs", "num_workers", "size"),
    [
        (0.0, 4096, 2, 2048),
        (0.00001, 4096, 2, 2048),
        (0.0001, 4096, 2, 1024),
        (1.0, 4096, 2, 512),
        (1.0, 3, 2, 1),
        (0.0, 1, 8, 1),
    ],
)
def test_parts_are_equal_shares_and_more_of_them_if_they_take_long(program_s, num_programs, num_workers, size):
    pace = Pace()
    if program_s:
        pace.note(100, 100 * program_s)
    assert pace.part_size(num_programs, num_workers) == size
