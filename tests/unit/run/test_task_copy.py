"""evo.run.task_copy: a run holds its task and what the task declares, and goes on with that wherever it lies."""

import os
import shutil

import pytest

from evo.config import load_config
from evo.errors import UserError
from evo.evaluate import TaskSource
from evo.run.run import LiveRun, Run
from evo.run.task_copy import plan_copy
from evo.tasks.folder import load_task

SOURCE = """
from pathlib import Path

import numpy as np

import evo


class Table(evo.Task):
    inputs = {{"x": "f32"}}
    outputs = {{"y": "f32"}}
    measures = {{"num_instructions": (0.0, 9.0), "label": (0.0, 9.0)}}

    def __init__(self, data: list = [], name: str = ""):
        self.data = [Path(path).absolute() for path in data]
        self.total = sum(float((path / "part.csv" if path.is_dir() else path).read_text()) for path in self.data)
        self.near = Path(__file__).parent / "../shared/near.csv"
        self.total += float(self.near.read_text()) if self.near.exists() else 0.0

    def files(self):
        return {files}

    def points(self):
        return {{"x": np.arange(5.0)}}

    def score(self, outputs, programs):
        n = programs.num_instructions
        return evo.Scores(-np.abs(outputs["y"] - self.total).mean(axis=1), np.stack([n, np.full(len(n), self.total)], axis=1))
"""
DECLARED = "self.data + (['../shared/near.csv'] if self.near.exists() else [])"
CHANGES = {
    "program": {"vocabulary": {"instructions": ["add_ftz_f32", "mul_ftz_f32"]}},
    "search": {"archive": {"type": "GridArchive", "dims": [9, 9]}},
    "output": {"plots": []},
}


@pytest.fixture
def place(tmp_path, make_task, monkeypatch):
    """A folder with a task, a file near it, and data elsewhere; paths in options begin here."""
    make_task(SOURCE.format(files=DECLARED), "problems")
    for path, number in {"data/a.csv": 1, "other/a.csv": 2, "whole/part.csv": 3, "shared/near.csv": 4}.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(str(number))
    (tmp_path / "problems" / ".hidden").write_text("no part of the task")
    (tmp_path / "problems" / "simulate").write_text("#!/bin/sh\n")
    (tmp_path / "problems" / "simulate").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def config(place, small_config):
    """Makes the config of a run on that task."""

    def make(data: list[str], **changes):
        options = {"data": data, "name": "a.csv"}
        return load_config(small_config({**CHANGES, "task": "problems", "task_options": options, **changes}))

    return make


def finish(run: Run) -> bytes:
    assert run.execute()
    elites = run.search.elites()
    run.close()
    return elites.solution.tobytes() + elites.measures.tobytes()


def test_a_run_goes_on_at_another_place_with_task_and_data_gone(place, config):
    loaded = config(["data/a.csv", str(place / "other" / "a.csv"), "whole"])
    whole = finish(LiveRun.start(loaded, "whole"))
    run = LiveRun.start(loaded, "cut")
    assert run.search.problem.task.total == 10
    run.execute(lambda *_: None, lambda _: run.search.counters.generations == 2)
    run.close()
    run.run_dir.path.rename(place / "moved")
    for name in ("problems", "data", "other", "whole", "shared"):
        shutil.rmtree(place / name)
    resumed, notes = LiveRun.resume(place / "moved", ("stop.generations=6",))
    assert notes == [] and resumed.search.problem.task.total == 10
    assert finish(resumed) == whole
    text = (place / "moved" / "config.yaml").read_text()
    assert str(place / "moved") not in text and "task: task/problems\n" in text
    assert os.access(place / "moved" / "task" / "problems" / "simulate", os.X_OK)
    (place / "moved").rename(place / "again")
    assert Run.view(place / "again")[1] == []


def test_a_run_below_a_link_is_like_any_other(place, config):
    (place / "disk").mkdir()
    (place / "runs").symlink_to("disk")
    run = LiveRun.start(config(["data/a.csv"]), "small")
    assert finish(run)
    assert run.run_dir.path.is_relative_to(place / "runs")
    text = (run.run_dir.path / "config.yaml").read_text()
    assert "task: task/problems\n" in text and "data/a.csv: task_files/a.csv\n" in text


def test_the_copy_is_laid_out_by_what_the_options_name(place):
    options = {"data": ["data/a.csv", "other/a.csv", "whole"], "name": "a.csv"}
    copy = plan_copy(load_task(place / "problems", options), TaskSource(place / "problems", options))
    assert {str(name): path.relative_to(place).as_posix() for name, path in copy.files.items()} == {
        "task/problems/task.py": "problems/task.py",
        "task/problems/simulate": "problems/simulate",
        "task/shared/near.csv": "shared/near.csv",
        "task_files/a.csv": "data/a.csv",
        "task_files/2-a.csv": "other/a.csv",
        "task_files/whole/part.csv": "whole/part.csv",
    }
    assert set(copy.options) == {"data/a.csv", "other/a.csv", "whole"}
    shutil.rmtree(place / "shared")
    copy = plan_copy(load_task(place / "problems", {}), TaskSource(place / "problems", {}))
    assert [str(name) for name in copy.files] == ["task/simulate", "task/task.py"]


def test_a_run_keeps_its_own_task_when_the_original_is_edited(place, config):
    run = LiveRun.start(config(["data/a.csv"]), "small")
    run.execute(lambda *_: None, lambda _: run.search.counters.generations == 2)
    run.close()
    (place / "data" / "a.csv").write_text("100")
    (place / "problems" / "task.py").write_text("raise SystemExit\n")
    resumed, notes = LiveRun.resume(run.run_dir.path)
    assert notes == [] and resumed.search.problem.task.total == 5
    resumed.close()
    (run.run_dir.path / "task_files" / "a.csv").write_text("100")
    with pytest.raises(UserError, match=r"/task/problems: the task's files have changed since the checkpoint"):
        LiveRun.resume(run.run_dir.path)


def test_a_task_that_is_too_large_stays_where_it_is(place, config):
    (place / "data" / "a.csv").write_text("1" + " " * 1_000_000)
    lines: list[str] = []
    run = LiveRun.start(config(["data/a.csv"], output={**CHANGES["output"], "task_megabytes": 1}), "small", lines.append)
    run.close()
    assert len(lines) == 1 and "1 MB with its files, more than output.task_megabytes (1)" in lines[0]
    assert str(place / "problems") in lines[0]
    assert not (run.run_dir.path / "task").exists()
    assert f"task: {place}/problems\n" in (run.run_dir.path / "config.yaml").read_text()
    LiveRun.resume(run.run_dir.path)[0].close()


def test_an_error_names_the_users_files_until_the_run_is_resumed(place, config):
    text = (place / "problems" / "task.py").read_text()
    line = f"        assert not Path({str(place / 'fails')!r}).exists()\n"
    (place / "problems" / "task.py").write_text(text.replace("        n = programs", f"{line}        n = programs"))
    run = LiveRun.start(config(["data/a.csv"], evaluation={"backend": "cpu", "executor": "processes", "threads": 1}), "small")
    (place / "fails").touch()
    with pytest.raises(UserError, match=rf"^{place}/problems/task.py:\d+: score\(\) raised AssertionError"):
        run.execute()
    run.close()
    resumed, _ = LiveRun.resume(run.run_dir.path)
    with pytest.raises(UserError, match=rf"^{run.run_dir.path}/task/problems/task.py:\d+: score\(\) raised AssertionError"):
        resumed.execute()
    resumed.close()


def test_a_task_that_changes_while_it_is_copied_is_refused(place, config, monkeypatch):
    from evo.run import run as run_module

    def edit(problem, folder, warn):
        (place / "data" / "a.csv").write_text("7")
        return hold_task(problem, folder, warn)

    hold_task = run_module.hold_task
    monkeypatch.setattr(run_module, "hold_task", edit)
    with pytest.raises(UserError, match="the task's files have changed since they were loaded; start again"):
        LiveRun.start(config(["data/a.csv"]), "small")


def test_worker_processes_load_the_runs_copy(place, config):
    """They may start long after the run: the original may be another by then."""
    changes = {"evaluation": {"backend": "cpu", "executor": "processes", "threads": 1}}
    run = LiveRun.start(config(["data/a.csv"], **changes), "small")
    (place / "problems" / "task.py").write_text("raise SystemExit\n")
    run.search.problem.evaluator._processes.close()
    assert finish(run)


def test_elites_are_read_without_running_the_tasks_code(place, config):
    run = LiveRun.start(config(["data/a.csv"]), "small")
    finish(run)
    from evo.report.elites_csv import elites_csv

    table = elites_csv(Run.view(run.run_dir.path)[0])
    (run.run_dir.path / "task" / "problems" / "task.py").write_text("raise SystemExit\n")
    seen, notes = Run.view(run.run_dir.path, with_task=False)
    assert (elites_csv(seen), notes) == (table, [])
    with pytest.raises(UserError, match="the run's task is not loaded"):
        seen.search.problem.evaluator  # noqa: B018 - it asks the task for its points
