"""evo.evolve with run folders: what is saved goes on as if it had never stopped, with the same task only."""

import importlib.util
import linecache
import os
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import evo
from evo.report.predict import predictions
from evo.run.run import LiveRun, Run

X = np.linspace(-2, 2, 40)
SETTINGS = {"archive": [20], "seed": 3, "search": {"batch_size": 64}, "evaluation": {"threads": 1}}


class Square(evo.Task):
    inputs = {"x": "f32"}
    outputs = {"y": "f32"}
    measures = {"num_instructions": (0.0, 20.0)}
    complexity = "num_instructions"

    def __init__(self, shift: float = 0.0):
        self.shift = shift

    def points(self):
        return {"x": X + self.shift}

    def score(self, outputs, programs):
        error = np.abs(outputs["y"] - (X + self.shift) ** 2).mean(axis=1)
        return evo.Scores(-error, programs.num_instructions[:, None])


def elites(result: evo.Result) -> dict[str, bytes]:
    found = result.search.elites()
    return {name: getattr(found, name).tobytes() for name in ("cell", "solution", "objective", "parents", "generation")}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Writes the search of six generations to a folder."""
    result = evo.evolve(Square, generations=6, **SETTINGS)

    def save(name: str):
        return result.save(tmp_path_factory.mktemp("saved") / name)

    return save


def test_a_search_goes_on_from_its_folder_to_the_same_bits(saved):
    folder = saved("run").rename(saved("other").parent / "moved")
    resumed = evo.resume(Square, folder, generations=12)
    whole = evo.evolve(Square, generations=12, **SETTINGS)
    assert elites(resumed) == elites(whole)
    assert resumed.stop_reason == whole.stop_reason == "stop.generations: 12"
    assert resumed.history.drop(columns="elapsed_s").equals(whole.history.drop(columns="elapsed_s"))
    with np.load(folder / "archive.npz") as archive:
        assert archive["solution"].tobytes() == elites(whole)["solution"]
    assert elites(evo.resume(Square, folder)) == elites(whole)  # it is finished


def test_a_stop_in_the_middle_is_saved_too(saved):
    folder, seen = saved("run"), []
    stopped = evo.resume(
        Square,
        str(folder),
        generations=12,
        on_generation=[lambda generation: generation.counters.generations == 9, seen.append],
    )
    assert stopped.stop_reason == "on_generation" and len(stopped.history) == 9 and len(seen) == 3
    assert elites(evo.resume(Square, folder)) == elites(evo.evolve(Square, generations=12, **SETTINGS))


def test_a_saved_search_is_a_run_that_can_be_looked_at_without_its_class(saved):
    folder = saved("run")
    files = {"archive.npz", "checkpoints", "config.yaml", "environment.json", "lineage", "lock", "metrics.jsonl"}
    assert {path.name for path in folder.iterdir()} == files
    run, [note] = Run.view(folder)
    assert note == f"{folder}: what the task reports is left out, since it is the class Square of a script or notebook"
    assert run.search.problem.task.inputs == Square.inputs and run.search.problem.task.complexity == "num_instructions"
    assert run.search.layout.cell_name(3) == "3" and len(run.run_dir.metrics()) == 6
    message = rf"the class Square of a script or notebook; go on there with: evo\.resume\(Square, '{folder}'\)$"
    with pytest.raises(evo.UserError, match=message):
        run.search.problem.evaluator  # noqa: B018 - it asks the task for its points
    with pytest.raises(evo.UserError, match=message):
        predictions(run, folder / "config.yaml")
    with pytest.raises(evo.UserError, match=message):
        LiveRun.resume(folder)


def test_a_search_of_a_tasks_folder_is_saved_with_its_task(plane_folder, tmp_path):
    settings = {**SETTINGS, "archive": [5, 5], "task_options": {"scale": 2.0}}
    path = evo.evolve(plane_folder, generations=3, **settings).save(tmp_path / "run")
    assert (path / "task" / "task.py").read_text() == (plane_folder / "task.py").read_text()
    run, notes = LiveRun.resume(path, ("stop.generations=5",))
    run.execute()
    run.close()
    assert notes == []
    whole = evo.evolve(plane_folder, generations=5, **settings)
    assert run.search.elites().solution.tobytes() == elites(whole)["solution"]
    with pytest.raises(evo.UserError, match=f"^{path}: this run has a task of its own; go on with: evo resume {path}$"):
        evo.resume(Square, path)


def load(path, source: str) -> type[evo.Task]:
    """The class Square of a script."""
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    del sys.modules[path.stem].__spec__
    return module.Square


def source_of(change: tuple[str, str] = ("", "")) -> str:
    """A script with the class above."""
    text = Path(__file__).read_text()
    source = text[text.index("class Square") : text.index("def elites")].replace(*change)
    return f"import numpy as np\nimport evo\nX = np.linspace(-2, 2, 40)\n\n\n{source}"


@pytest.fixture
def script(tmp_path, monkeypatch):
    """Makes the class of a script with this text, a new one each time."""
    numbers = iter(range(9))

    def make(change: tuple[str, str] = ("", "")) -> type[evo.Task]:
        name = f"script{next(numbers)}"
        monkeypatch.setitem(sys.modules, name, None)
        return load(tmp_path / f"{name}.py", source_of(change))

    return make


def test_only_the_same_task_goes_on(script, tmp_path):
    folder = evo.evolve(script(), generations=2, **SETTINGS).save(tmp_path / "run")
    evo.resume(script(), folder, generations=3)
    evo.resume(script()(shift=0.0), folder, generations=4)
    for task, message in (
        (script((".mean(axis=1)", ".max(axis=1)")), "the source of class Square has changed since the run began"),
        (script()(shift=1.0), "the attributes of the task, such as data or options of Square, have changed"),
        (type("Cube", (Square,), {}), "the run's task is of class Square, not Cube"),
    ):
        with pytest.raises(evo.UserError) as caught:
            evo.resume(task, folder, generations=5)
        assert str(caught.value).startswith(f"{folder}: {message}")
    with pytest.raises(evo.UserError, match=r"the config has changed since the checkpoint|the attributes of the task"):
        evo.resume(script(), folder, task_options={"shift": 1.0})


def test_a_script_that_no_longer_parses_does_not_stop_its_search(script, tmp_path):
    """Its text is what somebody edits now. Then the class is known by its attributes alone."""
    task = script()
    (tmp_path / "script0.py").write_text("class Square(evo.Task:\n")
    folder = evo.evolve(task, generations=2, **SETTINGS).save(tmp_path / "run")
    assert len(evo.resume(task, folder, generations=3).history) == 3


def test_a_class_of_a_notebooks_cell_is_recognised_by_its_text(tmp_path):
    """IPython keeps the text of cells where tracebacks look for it, and runs them in a module without a file."""

    def cell(number: int, text: str) -> type[evo.Task]:
        name = f"<cell {number} of a test>"
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        names: dict = {"__name__": "__main__"}
        exec(compile(text, name, "exec"), names)
        return names["Square"]

    folder = evo.evolve(cell(1, source_of()), generations=1, **SETTINGS).save(tmp_path / "run")
    other = source_of().replace("\n\nclass", "\n\n# another cell\nclass")
    evo.resume(cell(2, f"{other}\nprint(Square.__name__)"), folder, generations=2)
    with pytest.raises(evo.UserError, match="the source of class Square has changed"):
        evo.resume(cell(3, source_of((".mean(axis=1)", ".max(axis=1)"))), folder, generations=3)


def test_wrong_arguments_of_a_resume_are_told_in_one_line(saved, tmp_path):
    folder = saved("run")
    for task, arguments, message in (
        (str(tmp_path), {}, f"resume: a run of a task's folder goes on with: evo resume {folder}"),
        (3, {}, "resume: a task is an evo.Task, its class or a folder, got int"),
        (Square, {"seconds": -1}, "key 'stop.seconds': must be greater than 0, got -1"),
        (Square(), {"task_options": {"shift": 1}}, "resume: task_options are for a class or a folder"),
        (Square, {"folder": tmp_path / "none"}, f"{tmp_path}/none: not a run folder"),
    ):
        with pytest.raises(evo.UserError) as caught:
            evo.resume(task, **{"folder": folder, **arguments})
        assert message in str(caught.value) and len(str(caught.value).splitlines()) == 1
    assert Run.view(folder)[0].search.counters.generations == 6


def test_a_folder_that_exists_is_not_written_over(saved):
    folder = saved("run")
    before = (folder / "config.yaml").read_text()
    result = evo.evolve(Square, generations=1, **SETTINGS)
    with pytest.raises(evo.UserError, match=f"^{folder}: exists already; a run is never written over$"):
        result.save(folder)
    assert (folder / "config.yaml").read_text() == before


class Where(Square):
    """Says in which process it scores."""

    measures = {"process": (0.0, 1e9)}
    complexity = None

    def score(self, outputs, programs):
        return evo.Scores(np.zeros(len(outputs["y"])), np.full((len(outputs["y"]), 1), os.getpid()))


def test_a_class_that_only_this_process_knows_is_scored_in_worker_processes():
    settings = {**SETTINGS, "archive": [4], "generations": 1}
    found = evo.evolve(Where, **{**settings, "evaluation": {"threads": 1, "executor": "processes"}})
    assert os.getpid() not in set(found.archive.process)
    found = evo.evolve(Where, **{**settings, "evaluation": {"threads": 2}})
    assert set(found.archive.process) == {os.getpid()}  # most searches are over before processes have started


def test_a_task_that_cannot_be_pickled_is_scored_on_threads():
    task = Square()
    task.lock = threading.Lock()
    assert len(evo.evolve(task, generations=1, **{**SETTINGS, "evaluation": {"threads": 2}}).archive)
    with pytest.raises(evo.UserError, match=r"^Square: cannot be sent to worker processes: TypeError: cannot pickle"):
        evo.evolve(task, generations=1, **{**SETTINGS, "evaluation": {"executor": "processes"}})
