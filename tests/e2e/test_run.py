"""evo run (evo.cli.search_verbs): what a finished run leaves behind, and when it stops."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from .conftest import run_folders, state_of


def assert_a_whole_run(run: Path, plots: dict[str, str]) -> None:
    """All files of runs/README.md are there and fit each other; `plots`: name -> picture format."""
    files = "config.yaml environment.json metrics.jsonl checkpoints archive.npz lineage plots lock task"
    assert {path.name for path in run.iterdir()} == {*files.split()}
    environment = json.loads((run / "environment.json").read_text())
    assert {"evo", "python", "packages", "machine", "cores", "backend", "simd", "task_digest"} <= set(environment)
    state = state_of(run)
    assert len(state.metrics) == state.counters["generations"]
    assert state.metrics[-1]["elites"] == len(state.archive["cell"]) > 0
    assert state.metrics[-1]["evaluations"] == state.counters["evaluations"]
    assert state.metrics[-1]["best_objective"] == state.archive["objective"].max()
    assert state.metrics[-1]["qd_score"] == pytest.approx(state.archive["objective"].sum())
    assert {name: state.archive[name].tobytes() for name in state.archive} == {
        name: state.checkpoint[f"elites.{name}"].tobytes() for name in state.archive
    }
    assert {path.name for path in (run / "plots").iterdir()} == set(plots)
    for name, image_format in plots.items():
        with Image.open(run / "plots" / name) as image:
            assert image.format == image_format
            pixels = np.asarray(image.convert("RGB"))
        assert pixels.std() > 1, f"{name} is empty"


def test_a_finished_run_has_all_its_files_and_pictures(finished_run):
    assert re.fullmatch(r"\d{8}-\d{6}-seed7", finished_run.name)
    assert finished_run.parent.name == "small"
    png, gif = ("heatmap.png", "contact_sheet.png", "curves.png", "best.png"), ("animation.gif", "gallery.gif")
    assert_a_whole_run(finished_run, dict.fromkeys(png, "PNG") | dict.fromkeys(gif, "GIF"))
    assert len(list((finished_run / "checkpoints").iterdir())) <= 2


def test_without_a_terminal_progress_is_plain_lines(finished_run):
    output = (finished_run.parents[2] / "stdout.txt").read_text()
    lines = output.splitlines()
    assert lines[0] == f"run folder: runs/small/{finished_run.name}"
    assert "stopped by stop.generations: 6" in lines
    number = r"[0-9][0-9,]*(\.[0-9]+)?%?"
    progress = re.compile(
        rf"generation {number}  evaluations {number} \({number}/s\)  duplicates {number}  unchanged {number}  "
        rf"coverage {number}  QD score {number}  best {number}"
    )
    assert any(progress.fullmatch(line) for line in lines)
    assert lines[-2].endswith("gallery.gif")
    assert lines[-1] == f"look at it with: evo page runs/small/{finished_run.name}"
    assert not re.search(r"[\x1b\r]", output)


@pytest.mark.parametrize("method", ["", "picture_points"])
def test_a_task_that_changes_the_working_folder_does_not_move_the_run(
    fork_evo, small_config, make_task, plane_folder, tmp_path, method
):
    (tmp_path / "elsewhere").mkdir()
    source = (plane_folder / "task.py").read_text()
    move = f"import os; os.chdir({str(tmp_path / 'elsewhere')!r})\n"
    lines = source.splitlines(keepends=True)
    if method:
        (number,) = (i for i, line in enumerate(lines) if line.startswith(f"    def {method}("))
        lines.insert(number + 1, f"        {move}")
    else:
        lines.insert(0, move)
    small_config({"task": str(make_task("".join(lines))), "output": {"runs": "runs", "plots": ["best"]}})
    completed = fork_evo("run", "small.yaml")
    assert completed.returncode == 0, completed.stderr
    assert not list((tmp_path / "elsewhere").iterdir())
    (run,) = run_folders(tmp_path / "runs")
    assert (run / "archive.npz").is_file()
    shown = run.relative_to(tmp_path)
    assert completed.stdout.startswith(f"run folder: {shown}\n")
    assert f"\n{shown}/plots/best.png\n" in completed.stdout
    resumed = fork_evo("resume", shown, "--set", "stop.generations=7")
    assert resumed.returncode == 0, resumed.stderr
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_run_without_a_single_elite_ends_with_a_warning(fork_evo, small_config, tmp_path):
    completed = fork_evo("run", small_config({"task_options": {"scale": float("nan")}, "stop": {"generations": 2}}))
    assert completed.returncode == 0, completed.stderr
    early, late = completed.stderr.splitlines()
    assert re.fullmatch(r"warning: none of the first 64 programs survives: \S+/task.py:\d+ gives NaN, infinity or more .*", early)
    assert re.fullmatch(r"warning: none of [\d,]+ programs got a finite score; the archive is empty", late)
    (run,) = run_folders(tmp_path / "runs")
    assert state_of(run).metrics[-1]["best_objective"] is None
    assert {path.name for path in (run / "plots").iterdir()} == {"curves.png"}
    for verb, *arguments in (["show"], ["page"], ["watch"], ["plot", "--plot", "best"]):
        refused = fork_evo(verb, run, *arguments)
        told = " ".join(arguments) or run
        assert (refused.returncode, refused.stdout) == (2, "")
        assert refused.stderr.startswith(f"evo: {told}: the archive is empty") and refused.stderr.count("\n") == 1


def test_quietly_a_run_its_resumption_and_a_sweep_print_nothing(fork_evo, small_config, tmp_path):
    """Loudly, each of them would print: this vocabulary gives a warning too."""
    config = small_config({"program": {"vocabulary": {"instructions": {"rcp_approx_ftz_f32": 1.0}}}, "stop": {"generations": 1}})
    short = ["--set", "output.plots=[curves]", "--set", "search.initial.num_programs=8"]
    for command in (
        ["run", config, "-q", *short],
        ["resume", "RUN", "--quiet", "--set", "stop.generations=2"],
        ["sweep", config, "--quiet", "--seeds", "1", "--jobs", "1", *short],
    ):
        arguments = [run_folders(tmp_path / "runs")[0] if argument == "RUN" else argument for argument in command]
        completed = fork_evo(*arguments)
        assert (completed.returncode, completed.stdout, completed.stderr) == (0, "", ""), command
    run = run_folders(tmp_path / "runs")[0]
    assert len(state_of(run).metrics) == 2
    assert (run / "plots" / "curves.png").is_file()


def test_measures_out_of_range_are_counted_and_warned_about(finished_run):
    out_of_range = state_of(finished_run).counters["out_of_range"]
    assert out_of_range > 0
    warning = (finished_run.parents[2] / "stderr.txt").read_text()
    assert warning.startswith(f"warning: {out_of_range:,} of ") and warning.count("\n") == 1
