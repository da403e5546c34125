"""tests/gpu/offline.sh: a part that hangs or fails costs no other part, and what it has printed is kept."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "gpu" / "offline.sh"

# Each stands for a command of the virtual environment.
COMMANDS = {
    "pip": "exit 0",
    "evo": "echo a GPU; exit 3",
    "pytest": "echo one test passed; exec sleep 600",
    "python": "echo '| what | measured |'",
}


@pytest.fixture
def run(tmp_path):
    """Runs the script with these commands in place of a virtual environment's; gives the process and the folder of results."""

    def start(commands: dict[str, str], **limits: str):
        folder = tmp_path / "commands"
        folder.mkdir()
        for name, text in commands.items():
            (folder / name).write_text(f"#!/bin/sh\n{text}\n")
            (folder / name).chmod(0o755)
        # The script makes a virtual environment whose commands come first: this makes one of those above.
        (folder / "python3").write_text(f'#!/bin/sh\nfor last; do :; done\nmkdir -p "$last" && cp -r {folder} "$last/bin"\n')
        (folder / "python3").chmod(0o755)
        environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", **limits}
        results = tmp_path / "results"
        done = subprocess.run(
            ["bash", SCRIPT, "run", tmp_path, results], env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        return done, results

    return start


def test_every_part_runs_within_its_time_and_leaves_what_it_has_done(run):
    done, results = run(COMMANDS, TESTS_LIMIT_S="1")
    assert done.returncode != 0
    assert (results / "outcomes.txt").read_text().splitlines() == [
        "setup: passed",
        "doctor: failed with 3",
        "tests: ended after 1 s",
        "benchmarks: passed",
    ]
    assert (results / "doctor.txt").read_text() == "a GPU\n"
    assert (results / "tests.txt").read_text() == "one test passed\n"
    assert (results / "benchmarks.md").read_text() == "| what | measured |\n"


def test_a_setup_that_fails_ends_the_script(run):
    done, results = run(COMMANDS | {"pip": "echo no such package; exit 1"})
    assert done.returncode == 1
    assert (results / "outcomes.txt").read_text() == "setup: failed with 1\n"
    assert (results / "setup.txt").read_text() == "no such package\n"
