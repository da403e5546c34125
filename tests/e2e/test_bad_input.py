"""evo.cli.terminal: a user's mistake is one line that begins with 'evo: ' and exit code 2, without traceback or run folder."""

import errno
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from evo.cli import main

TASK = """\
import numpy as np
import evo

class Line(evo.Task):
    inputs = {"x": "f32"}
    outputs = {"y": "f32"}
    measures = {"mean": (-1.0, 1.0)}

    def points(self):
        return {"x": np.linspace(0, 1, 8)}

    def score(self, outputs, programs):
        y = outputs["y"].astype(float)
        return evo.Scores(-abs(y).mean(axis=1), y.mean(axis=1)[:, None])
"""
LINE = {"search": {"archive": {"dims": [8]}}}


@pytest.fixture
def refusal(fork_evo, tmp_path):
    """Runs a command that must be refused, and gives the line after 'evo: '."""

    def run(*args, env: dict[str, str] | None = None) -> str:
        before = sorted(tmp_path.rglob("*"))
        completed = fork_evo(*args, env=env)
        assert completed.returncode == 2, completed.stdout + completed.stderr
        assert completed.stderr.startswith("evo: ")
        assert completed.stderr.endswith("\n") and completed.stderr.count("\n") == 1, completed.stderr
        assert completed.stdout == ""
        left = [path for path in sorted(tmp_path.rglob("*")) if path not in before and "__pycache__" not in path.parts]
        assert not left
        return completed.stderr.removeprefix("evo: ").rstrip("\n")

    return run


def test_the_installed_command_refuses_in_one_line(run_evo):
    line = "none.yaml: cannot read the config: No such file or directory"
    installed = run_evo("run", "none.yaml")
    assert (installed.returncode, installed.stdout, installed.stderr) == (2, "", f"evo: {line}\n")


@pytest.mark.parametrize(
    ("arguments", "message", "verb"),
    [
        (["rum"], "No such command 'rum'", ""),
        (["run"], "Missing argument 'CONFIG'", " run"),
        (["run", "a.yaml", "--sett", "a=1"], "No such option '--sett'", " run"),
        (
            ["compile", "a.yaml", "--random", "none"],
            "Invalid value for '--random': 'none' is not a valid integer range",
            " compile",
        ),
        (["show", "a", "--cell"], "Option '--cell' requires an argument", ""),
    ],
)
def test_wrong_usage(refusal, arguments, message, verb):
    line = refusal(*arguments)
    assert line.startswith(message) and line.endswith(f"; see: evo{verb} --help")


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("search.batchsize=3", "unknown key 'search.batchsize', did you mean batch_size?"),
        ("task=nowhere", "nowhere/task.py: no such file; a task is a folder with a task.py"),
        (
            "program.vocabulary.instructions=[sine]",
            "program.vocabulary.instructions: unknown instruction 'sine'; did you mean sin_approx_ftz_f32",
        ),
        ("program.vocabulary.instructions=[cvt_u32_u8,add_ftz_f32]", "instructions: no CPU meaning for cvt_u32_u8: "),
        ("program.vocabulary.instructions=[add_u32]", "instructions: none takes f32, the type of the task's inputs"),
        ("search.archive.dims=[4, 4, 4]", "search.archive: dims: [4, 4, 4] has 3 numbers, but the task has 2 measures"),
        ("search.archive.dims=[3000000000, 1]", "search.archive: 3,000,000,000 cells, at most 134,217,728 fit"),
        ('task="\\0"', "a text holds a NUL"),
        ("program.instruction_set=/dev/zero", "/dev/zero: cannot read the instruction set: not a regular file"),
        ("task_files={a: loop}", "loop: Too many levels of symbolic links"),
        ("output.runs=small.yaml/runs", "small.yaml/runs/small: cannot create the run folder: Not a directory"),
    ],
)
def test_what_does_not_fit_the_config_the_task_or_the_machine(refusal, small_config, override, message, tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    assert message in refusal("run", small_config(), "--set", override)


@pytest.mark.parametrize(
    ("old", "new", "place", "message"),
    [
        ("np.linspace(0, 1, 8)", "np.linspace(0, 1, n)", ":10", "points() raised NameError: name 'n' is not defined"),
        (
            "    def points",
            "    def programs(self):\n        return [3]\n\n    def points",
            ":9",
            "formulas or programs as text, got 3",
        ),
        ("        y = ", "        raise SystemExit(3)\n        y = ", ":13", "score() raised SystemExit: 3"),
        ('measures = {"mean": (-1.0, 1.0)}', 'measures = {"mean": (-1.0, 1.0)}\n    reduction = "regression"', "", "targets()"),
    ],
)
def test_a_task_that_is_wrong_is_named_with_its_line(refusal, small_config, make_task, old, new, place, message):
    assert old in TASK
    folder = make_task(TASK.replace(old, new))
    line = refusal("run", small_config({"task": str(folder), **LINE}))
    assert line.startswith(f"{folder}/task.py{place}: ")
    assert message in line


def verbs_with(argument: str) -> list[str]:
    """The verbs that take this argument, by its name in their help."""
    return [
        name
        for name, command in main.commands.items()
        if any(isinstance(p, click.Argument) and argument in (p.metavar or p.name.upper()).split("|") for p in command.params)
    ]


NEEDED = {
    "eval": ("none.txt",),
    "export": ("--format", "c"),
    "film": ("--output", "none.png"),
    "predict": ("--data", "none.csv"),
}  # what has no default


@pytest.mark.parametrize("verb", verbs_with("RUN"))
def test_a_folder_that_is_empty_or_not_there_is_no_run_folder(refusal, tmp_path, verb):
    (tmp_path / "empty").mkdir()
    assert refusal(verb, tmp_path / "empty", *NEEDED.get(verb, ())).startswith(f"{tmp_path}/empty: not a run folder")
    if verb not in verbs_with("CONFIG"):
        assert refusal(verb, tmp_path / "none", *NEEDED.get(verb, ())).startswith(f"{tmp_path}/none: not a run folder")


@pytest.mark.parametrize(
    "error", [IsADirectoryError(errno.EISDIR, "Is a directory", "a.csv"), RuntimeError("Symlink loop from 'a.csv'")]
)
def test_any_path_that_the_system_refuses_is_named_in_one_line(monkeypatch, error):
    monkeypatch.setattr("evo.report.run_list.list_runs", lambda _: (_ for _ in ()).throw(error))
    refused = CliRunner().invoke(main, ["list"])
    assert refused.exit_code == 2 and refused.stderr in (
        "evo: a.csv: Is a directory\n",
        "evo: a.csv: Too many levels of symbolic links\n",
    )


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ('exec "$0" -m evo doctor >&-', "evo: standard output is closed; send it to a file or to /dev/null\n"),
        (
            'mkdir gone && cd gone && rmdir ../gone && "$0" -P -m evo doctor',
            "evo: the working folder is gone, or cannot be entered; ",
        ),
    ],
)
def test_a_closed_output_and_a_lost_working_folder(tmp_path, script, message):
    completed = subprocess.run(["sh", "-c", script, sys.executable], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (completed.returncode, completed.stdout) == (2, "")
    assert completed.stderr.startswith(message) and completed.stderr.count("\n") == 1


@pytest.mark.parametrize("verb", verbs_with("CONFIG"))
def test_every_verb_refuses_a_config_that_is_missing_or_a_folder(refusal, tmp_path, verb):
    (tmp_path / "folder").mkdir()
    assert refusal(verb, "none.yaml", *NEEDED.get(verb, ())) == "none.yaml: cannot read the config: No such file or directory"
    if verb != "compile":  # which takes the folder of a run
        assert refusal(verb, "folder", *NEEDED.get(verb, ())).endswith(": Is a directory")


def test_a_plot_that_does_not_exist(refusal, finished_run):
    assert refusal("plot", finished_run, "--plot", "portrait").startswith("--plot portrait: unknown plot, one of: heatmap, ")


def test_a_program_that_is_wrong_or_cannot_be_read(refusal, small_config, tmp_path):
    config = small_config()
    for text, message in (
        (b"%x\n%q mul_ftz_f32\n", ":2: unknown input 'q', one of: t, x, y"),
        (b"%x " * 25, ": 25 words, but program.max_length is 24"),
        (b"\xff\xfe\x00", ": cannot read the program: "),
    ):
        (tmp_path / "hand.txt").write_bytes(text)
        assert refusal("eval", config, "hand.txt").startswith(f"hand.txt{message}")
    missing = refusal("eval", config, "none.txt")
    assert missing.startswith("the formula: there is no file or folder 'none.txt', and it is not a formula: ")


def test_a_folder_for_pictures_that_cannot_be_written(fork_evo, small_config, tmp_path):
    (tmp_path / "hand.txt").write_text("%x")
    completed = fork_evo("eval", small_config(), "hand.txt", "--output", "hand.txt/pictures")
    assert completed.returncode == 2
    assert completed.stderr == "evo: hand.txt/pictures: cannot write the pictures: Not a directory\n"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("return (rgb * 255).astype(np.uint8)", "return rgb", "must return (1, 8, 8, 3) uint8, got (1, 8, 8, 3) bool"),
    ],
)
def test_a_picture_that_fails_is_found_before_the_search(
    fork_evo, refusal, small_config, make_task, plane_folder, old, new, message
):
    source = (plane_folder / "task.py").read_text()
    assert old in source
    folder = make_task(source.replace(old, new))
    config = small_config({"task": str(folder), "output": {"plots": ["best"]}, "stop": {"generations": 1}})
    line = refusal("run", config)
    assert line.startswith(f"{folder}/task.py:") and message in line
    assert fork_evo("run", config, "--set", "output.plots=[heatmap]").returncode == 0


def test_a_traceback_is_printed_on_request(fork_evo):
    completed = fork_evo("run", "none.yaml", env={"EVO_TRACEBACK": "1"})
    assert completed.returncode == 1
    assert "Traceback" in completed.stderr and "evo: none.yaml: cannot read the config" in completed.stderr


NO_GPU = {"CUDA_VISIBLE_DEVICES": ""}


def test_a_check_without_a_gpu(refusal, finished_run):
    assert refusal("doctor", finished_run, env=NO_GPU).startswith("a check needs a GPU, and none can be used here: ")
