"""evo list: the state of runs, from folders made by RunDir and then finished, interrupted, locked or damaged by hand."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from evo.cli import main
from evo.config import dump_config, load_config
from evo.errors import UserError
from evo.report.run_list import list_runs, runs_text
from evo.run.new_run import new_run_dir, run_paths, take_name
from evo.run.run_dir import RunDir

NUMBERS = ("offspring", "duplicates", "qd_score")


def row(generations: int, best: float | None = -0.5) -> dict:
    return {
        **dict.fromkeys(NUMBERS, 0),
        "generations": generations,
        "evaluations": 100 * generations,
        "coverage": 0.25,
        "best_objective": best,
        "elapsed_s": 2.0 * generations,
    }


@pytest.fixture
def make_run(tmp_path, small_config):
    """Makes the folder of a run that stops after 4 generations, after so many; gives its path."""

    def make(number: int, generations: int, group: str = "small", best: float | None = -0.5, overrides: tuple = ()) -> Path:
        config = dump_config(load_config(small_config(), ("stop.generations=4", *overrides)))
        with new_run_dir(tmp_path / "runs" / group) as run_dir:
            run_dir.save_config(config)
            run_dir.save_environment({})
            run_dir.save_checkpoint(0, {}, {"a": np.zeros(3)})
            for generation in range(1, generations + 1):
                run_dir.append_metrics(row(generation, best))
            run_dir.save_archive({"a": np.zeros(3)})
            take_name(run_dir, run_paths(tmp_path / "runs", group, number))
            run_dir.close()
        path = run_dir.path.with_name(f"202001{number:02d}-000000-seed{number}")
        return run_dir.path.rename(path)

    return make


def rows_of(folder: Path) -> dict[str, object]:
    return {Path(each.path).name: each for each in list_runs(folder)}


def test_runs_are_listed_from_the_youngest_with_state_and_numbers(make_run, tmp_path):
    oldest, middle, youngest = make_run(1, 4), make_run(2, 3), make_run(3, 2, group="small-sweep/a=1")
    rows = list_runs(tmp_path / "runs")
    assert [each.path for each in rows] == [str(youngest), str(middle), str(oldest)]
    assert [each.state for each in rows] == ["interrupted", "interrupted", "finished"]
    assert [each.evaluations for each in rows] == [200, 300, 400]
    assert {(each.best_objective, each.coverage, each.reason) for each in rows} == {(-0.5, 0.25, None)}
    assert rows[1].age_s - rows[0].age_s == pytest.approx(86400.0)
    assert rows[0].num_bytes == sum(path.stat().st_size for path in youngest.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("stop", "state"),
    [
        ("{evaluations: 300}", "finished"),
        ("{evaluations: 301}", "interrupted"),
        ("{seconds: 6.0}", "finished"),
        ("{seconds: 6.1}", "interrupted"),
        ("{objective: -0.5}", "finished"),
        ("{objective: -0.4, generations: 3}", "finished"),
        ("{objective: -0.4}", "interrupted"),
    ],
)
def test_a_run_is_finished_when_one_of_its_stops_is_reached(make_run, stop, state):
    path = make_run(1, 3, overrides=(f"stop={stop}",))
    assert list_runs(path)[0].state == state


def test_a_run_without_its_archive_or_before_its_first_generation_is_interrupted(make_run, tmp_path):
    (make_run(1, 4) / "archive.npz").unlink()
    make_run(2, 0)
    make_run(3, 2, best=None)
    rows = rows_of(tmp_path / "runs")
    assert {each.state for each in rows.values()} == {"interrupted"}
    assert (rows["20200102-000000-seed2"].evaluations, rows["20200102-000000-seed2"].coverage) == (None, None)
    assert (rows["20200103-000000-seed3"].evaluations, rows["20200103-000000-seed3"].best_objective) == (200, None)


def test_a_run_whose_lock_is_held_is_running_and_keeps_its_lock(make_run):
    path = make_run(1, 4)
    with RunDir(path, writable=True):
        assert list_runs(path)[0].state == "running"
        with pytest.raises(UserError, match="another process is running this run"):
            RunDir(path, writable=True)
    assert list_runs(path)[0].state == "finished"
    RunDir(path, writable=True).close()
    (path / "lock").unlink()
    assert list_runs(path)[0].state == "finished"


def remove_config(path: Path) -> None:
    (path / "config.yaml").unlink()


def break_stop(path: Path) -> None:
    config = path / "config.yaml"
    config.write_text(config.read_text().replace("generations: 4", "generations: four"))


def break_metrics(path: Path) -> None:
    with (path / "metrics.jsonl").open("a") as file:
        file.write('{"generations": 5, \n')


def break_time(path: Path) -> None:
    config = path / "config.yaml"
    config.write_text(config.read_text().replace("seconds: null", "seconds: 1.0"))
    with (path / "metrics.jsonl").open("a") as file:
        file.write(json.dumps({**row(3), "elapsed_s": "long"}) + "\n")


def remove_checkpoints(path: Path) -> None:
    for file in (path / "checkpoints").iterdir():
        file.unlink()


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (remove_config, "has no config.yaml"),
        (break_stop, "section 'stop'"),
        (break_metrics, "metrics.jsonl: last line: damaged: "),
        (remove_checkpoints, "has no checkpoint"),
        (break_time, "elapsed_s"),
    ],
)
def test_a_damaged_run_is_a_row_with_its_reason_in_one_line_and_stops_nothing(make_run, tmp_path, damage, reason):
    make_run(1, 4)
    damage(make_run(2, 4))
    make_run(3, 2)
    rows = list_runs(tmp_path / "runs")
    assert [each.state for each in rows] == ["interrupted", "damaged", "finished"]
    assert reason in rows[1].reason
    text = runs_text(rows)
    assert text.count("\n") == 4 and reason in text.splitlines()[2]


def test_the_list_as_json_and_as_a_table(make_run, tmp_path):
    path = make_run(1, 4)
    told = CliRunner().invoke(main, ["list", str(tmp_path / "runs"), "--json"])
    (only,) = json.loads(told.stdout)
    assert {name: only[name] for name in ("path", "state", "best_objective", "coverage", "evaluations", "reason")} == {
        "path": str(path),
        "state": "finished",
        "best_objective": -0.5,
        "coverage": 0.25,
        "evaluations": 400,
        "reason": None,
    }
    table = CliRunner().invoke(main, ["list", str(tmp_path / "runs")]).stdout.splitlines()
    assert table[0].split() == ["state", "best", "coverage", "evaluations", "age", "size", "run"]
    assert table[1].split()[:4] == ["finished", "-0.5", "25.0%", "400"] and table[1].endswith(f"  {path}")


def test_a_run_that_was_killed_before_its_first_checkpoint_is_not_damaged(tmp_path):
    with new_run_dir(tmp_path / "small") as run_dir:
        run_dir.save_config("stop: {generations: 3}\n")
        assert list_runs(tmp_path) == []
        take_name(run_dir, run_paths(tmp_path, "small", 1))
        assert [each.state for each in list_runs(tmp_path)] == ["running"]
        run_dir.close()
    [found] = list_runs(tmp_path)
    assert (found.state, found.reason, found.evaluations) == ("interrupted", None, None)
