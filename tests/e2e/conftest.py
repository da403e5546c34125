"""Fixtures of the end-to-end tests: finished runs to look at, and all of a run's state that must not depend on time."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from processes import wait_until

from evo.run.checkpoint import decode_checkpoint
from evo.search.lineage_records import decode_log

from .browser import archive, browser, hostile_run, visit  # noqa: F401

signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup it is ignored, and commands would inherit that

# Such a run never ends by itself: however late it is killed or interrupted, it is in progress.
ENDLESS = {
    "search": {"archive": {"dims": [12, 10]}, "batch_size": 48},
    "stop": {"generations": 10**6},
    "output": {"plots": []},
}


def run(*command: str | Path, **options) -> subprocess.CompletedProcess:
    """Runs a command to its end; a failure shows what it printed."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\nended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def borrow_packages(python: Path) -> Path:
    """Lets a new environment find this one's packages, behind its own. Gives the folder of its own."""
    packages = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").stdout.strip())
    # Paths of a .pth file come last, so that the new environment's evo is found first.
    (packages / "borrowed.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")))
    return packages


def run_folders(runs: Path) -> list[Path]:
    """All run folders under `runs`, oldest first; none that has no name yet."""
    return sorted(runs.glob("*/[!.]*"), key=lambda path: path.stat().st_ctime_ns)


def num_rows(run: Path) -> int:
    """The generations that a run has written down."""
    path = run / "metrics.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


@dataclass
class State:
    """Results of a run, without times."""

    archive: dict[str, np.ndarray]
    checkpoint: dict[str, np.ndarray]
    counters: dict[str, int]
    metrics: list[dict]
    records: bytes


def state_of(run: Path) -> State:
    """The archive, the newest checkpoint, the metrics and the lineages of a run folder."""
    with np.load(run / "archive.npz", allow_pickle=False) as file:
        archive = {name: file[name] for name in file.files}
    meta, arrays = decode_checkpoint(max((run / "checkpoints").glob("*.ckpt")).read_bytes())
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    metrics = [{k: v for k, v in row.items() if k not in ("elapsed_s", "times_s", "lanes", "farm")} for row in rows]
    log = (run / "lineage" / meta["lineage"]["file"]).read_bytes()
    assert len(log) == meta["lineage"]["num_bytes"]
    records = decode_log(log)
    return State(archive, arrays, meta["counters"], metrics, records.facts.tobytes() + records.words.tobytes())


def assert_same_state(one: State, two: State) -> None:
    """Array for array and bit for bit."""
    assert one.counters == two.counters
    assert one.metrics == two.metrics
    assert one.records == two.records
    for first, second in ((one.archive, two.archive), (one.checkpoint, two.checkpoint)):
        assert list(first) == list(second)
        for name in first:
            assert first[name].dtype == second[name].dtype, name
            assert first[name].shape == second[name].shape, name
            assert first[name].tobytes() == second[name].tobytes(), name


class Process:
    """A command in the background, with its output in files: a fork of the server or a process of its own."""

    def __init__(self, number: int, poll: Callable[[], int | None], stdout: Path, stderr: Path):
        self.number, self._poll, self._stdout, self._stderr = number, poll, stdout, stderr
        self._code: int | None = None

    @property
    def stdout(self) -> str:
        return self._stdout.read_text()

    @property
    def stderr(self) -> str:
        return self._stderr.read_text()

    def poll(self) -> int | None:
        """The exit code; None while the process runs."""
        if self._code is None:
            self._code = self._poll()
        return self._code

    def wait_until(self, condition: Callable[[], object]) -> None:
        """Returns as soon as the condition holds; fails if the process ends before, or after a very long time."""

        def is_met() -> bool:
            met = bool(condition())
            assert met or self.poll() is None, f"ended with {self.poll()} before its time: {self.stdout}{self.stderr}"
            return met

        wait_until(is_met)

    def signal(self, number: int) -> None:
        assert self.poll() is None, f"ended with {self.poll()} before its time: {self.stdout}{self.stderr}"
        os.kill(self.number, number)

    def wait(self) -> int:
        wait_until(lambda: self.poll() is not None)
        return self.poll()

    def close(self) -> None:
        if self.poll() is None:
            self.signal(signal.SIGKILL)
            self.wait()


LINE = """\
import numpy as np

import evo


class Line(evo.Task):
    inputs = {"x": "f32"}
    outputs = {"y": "f32"}
    measures = {"num_instructions": (0.0, 24.0)}
    reduction = "regression"

    def __init__(self, num_points: int = 8):
        self.x = np.linspace(-1.0, 1.0, num_points, dtype=np.float32)

    def points(self):
        return {"x": self.x}

    def targets(self):
        return {"y": 2 * self.x + 1}

    def score(self, outputs, programs):
        return evo.Scores(-outputs.mse[:, 0], programs.num_instructions[:, None])
"""


@pytest.fixture
def line_config(small_config, make_task):
    """A short search by a task with a reduction."""

    def make(backend: str):
        return small_config(
            {
                "task": str(make_task(LINE, "line")),
                "program": {"vocabulary": {"instructions": ["add_ftz_f32", "mul_ftz_f32"]}},
                "search": {"archive": {"dims": [24]}, "batch_size": 4, "initial": {"num_programs": 4}},
                "evaluation": {"backend": backend, "compile_workers": 1, "threads": 1},
                "stop": {"generations": 1},
                "output": {"plots": []},
            },
            f"line_{backend}",
        )

    return make


@pytest.fixture
def start_evo(evo_command, tmp_path):
    """Starts the `evo` command in the background, in a process group of its own; it ends with the test at the latest."""
    started = []

    def start(*args) -> Process:
        paths = [tmp_path / f"{name}.txt" for name in ("stdout", "stderr")]
        command = [str(part) for part in (evo_command, *args)]
        with paths[0].open("w") as stdout, paths[1].open("w") as stderr:
            popen = subprocess.Popen(
                command, cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, process_group=0
            )
        started.append(Process(popen.pid, popen.poll, *paths))
        return started[-1]

    yield start
    for process in started:
        process.close()


@pytest.fixture
def start_fork(fork_server, tmp_path):
    """As `start_evo`, but without its two seconds of imports, as `fork_evo`; any number of commands."""
    started = []

    def start(*args, env: dict[str, str] | None = None) -> Process:
        paths = [tmp_path / f"{len(started)}.{name}.txt" for name in ("stdout", "stderr")]
        for path in paths:
            path.touch()
        number = fork_server.start([str(arg) for arg in args], tmp_path, env or {}, *paths)
        started.append(Process(number, lambda: fork_server.poll(number), *paths))
        return started[-1]

    yield start
    for process in started:
        process.close()


@pytest.fixture(scope="session")
def finished_run(fork_evo_in, small_config_in, tmp_path_factory) -> Path:
    """A small finished run of the plane task with its plots; what it printed is beside its config. None may change it."""
    folder = tmp_path_factory.mktemp("finished")
    plots = ["heatmap", "contact_sheet", "curves", "best", "animation", "gallery"]
    small_config_in(folder, {"output": {"plots": plots, "runs": "runs", "checkpoint_seconds": 30.0}})
    done = fork_evo_in(folder, "run", "small.yaml")
    assert done.returncode == 0, done.stderr
    for name in ("stdout", "stderr"):
        (folder / f"{name}.txt").write_text(getattr(done, name))
    (run,) = run_folders(folder / "runs")
    return run


@pytest.fixture
def assert_equals_whole_run(fork_evo, tmp_path):
    """Checks a run against one of the same config that was not disturbed, and ends at the same generation."""

    def check(run: Path, config: Path) -> None:
        stop = ("--set", f"stop.generations={state_of(run).counters['generations']}")
        completed = fork_evo("run", config, *stop, "--set", f"output.runs={tmp_path}/whole")
        assert completed.returncode == 0, completed.stderr
        (whole,) = run_folders(tmp_path / "whole")
        assert_same_state(state_of(run), state_of(whole))

    return check


BLOCKING_TASK = """\
import time
from pathlib import Path

import numpy as np

import evo


class Blocking(evo.Task):
    inputs = {"x": "f32"}
    outputs = {"y": "f32"}
    measures = {"mean": (-2.0, 2.0)}

    def __init__(self, folder):
        self.folder = Path(folder)

    def points(self):
        return {"x": np.linspace(-1, 1, 16, dtype=np.float32)}

    def score(self, outputs, programs):
        while (self.folder / "block").exists():  # until the test lets go
            (self.folder / "blocked").touch()
            time.sleep(0.001)
        y = outputs["y"].astype(np.float64)
        return evo.Scores(-np.abs(y - 1).mean(axis=1), y.mean(axis=1)[:, None])
"""


@pytest.fixture
def blocking_config(make_task, small_config, tmp_path) -> Path:
    """A run that saves each generation and stands still in one while the file `block` exists."""
    return small_config(
        {
            "task": str(make_task(BLOCKING_TASK)),
            "task_options": {"folder": str(tmp_path)},
            "search": {"archive": {"dims": [10]}},
            "stop": {"generations": 10**6},
            "output": {"plots": []},
        }
    )
