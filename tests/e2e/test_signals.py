"""Signals, and what a terminal shows of them: a run that is asked to end saves, and the terminal is left as it was."""

import fcntl
import os
import pty
import re
import select
import signal
import subprocess
import termios
from pathlib import Path

import pytest
from processes import LIMIT_S

from .conftest import ENDLESS, num_rows, run_folders, state_of

SAVED_BY_SIGNAL = {**ENDLESS, "output": {"plots": [], "checkpoint_seconds": 1e6}}


class Screen:
    """A terminal's lines and cursor, as far as progress uses them."""

    _PIECE = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|\r|\n|[^\x1b\r\n]+")

    def __init__(self, text: str):
        self.lines, self.cursor_is_shown = [""], True
        row = column = 0
        for piece in self._PIECE.finditer(text):
            argument, code = piece.groups()
            if piece[0] == "\r":
                column = 0
            elif piece[0] == "\n":
                row += 1
                self.lines += [""] * (row + 1 - len(self.lines))
            elif code == "A":
                row -= int(argument or 1)
            elif code == "K":
                self.lines[row] = ""
            elif argument == "?25":
                self.cursor_is_shown = code == "h"
            elif code is None:
                self.lines[row] = self.lines[row][:column].ljust(column) + piece[0] + self.lines[row][column + len(piece[0]) :]
                column += len(piece[0])


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, command: list[str], folder: Path):
        self._master, slave = pty.openpty()
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "150", "LINES": "40"},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(slave, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - nothing else makes it the terminal
        )
        os.close(slave)
        self._written = b""

    @property
    def screen(self) -> Screen:
        return Screen(self._written.decode())

    def type(self, text: bytes) -> None:
        os.write(self._master, text)

    def read_until(self, condition) -> None:
        """Reads what the command writes until the condition holds."""
        while not condition():
            assert self._read(), f"ended before its time: {self._written!r}"

    def wait(self) -> int:
        """Reads to the command's end; gives its exit code."""
        while self._read():
            pass
        return self.process.wait(LIMIT_S)

    def hang_up(self) -> int:
        os.close(self._master)
        self._master = -1
        return self.process.wait(LIMIT_S)

    def close(self) -> None:
        if self._master >= 0:
            os.close(self._master)
        self.process.kill()
        self.process.wait()

    def _read(self) -> bool:
        assert select.select([self._master], [], [], LIMIT_S)[0], f"waited in vain: {self._written!r}"
        try:
            part = os.read(self._master, 65536)
        except OSError:  # the last program has closed the terminal
            part = b""
        self._written += part
        return bool(part)


@pytest.fixture
def run_on_terminal(evo_command, tmp_path):
    """Starts `evo run` of a config on a terminal; gives it and the run's folder, which has a few generations."""
    started = []

    def start(config: Path) -> tuple[Terminal, Path]:
        terminal = Terminal([str(evo_command), "run", str(config)], tmp_path)
        started.append(terminal)
        terminal.read_until(lambda: run_folders(tmp_path / "runs") and num_rows(run_folders(tmp_path / "runs")[0]) >= 3)
        return terminal, run_folders(tmp_path / "runs")[0]

    yield start
    for terminal in started:
        terminal.close()


def assert_saved(run: Path) -> None:
    """The last checkpoint, the metrics and the archive are of the same generation."""
    state = state_of(run)
    assert state.counters["generations"] == len(state.metrics) >= 3


def test_the_first_ctrl_c_on_a_terminal_leaves_its_message_and_the_cursor(run_on_terminal, small_config):
    terminal, run = run_on_terminal(small_config(SAVED_BY_SIGNAL))
    terminal.type(b"\x03")
    assert terminal.wait() == 130
    assert_saved(run)
    assert "evo: finishing this generation and saving; Ctrl-C again aborts" in terminal.screen.lines
    assert f"saved; go on with: evo resume {run}" in terminal.screen.lines
    assert sum("generation " in line for line in terminal.screen.lines) == 1 + 1  # the message's line, and the last numbers
    assert terminal.screen.cursor_is_shown
    assert any("coverage" in line for line in terminal.screen.lines)


def test_the_second_ctrl_c_aborts_at_once_gives_the_cursor_back_and_the_last_checkpoint_stands(
    run_on_terminal, fork_evo, blocking_config, assert_equals_whole_run, tmp_path
):
    terminal, run = run_on_terminal(blocking_config)
    (tmp_path / "block").touch()
    terminal.read_until((tmp_path / "blocked").exists)
    terminal.type(b"\x03")
    terminal.read_until(lambda: any("finishing this generation" in line for line in terminal.screen.lines))
    assert not terminal.screen.cursor_is_shown
    terminal.type(b"\x03")
    assert terminal.wait() == 130
    assert terminal.screen.cursor_is_shown
    lines = [line for line in terminal.screen.lines if line]
    assert lines[-2:] == [
        "evo: finishing this generation and saving; Ctrl-C again aborts",
        "evo: aborted; the last checkpoint stands",
    ]
    (tmp_path / "block").unlink()
    completed = fork_evo("resume", run, "--set", f"stop.generations={num_rows(run) + 5}")
    assert completed.returncode == 0, completed.stderr
    assert_equals_whole_run(run, blocking_config)


def test_a_run_whose_terminal_is_closed_is_saved(run_on_terminal, small_config):
    terminal, run = run_on_terminal(small_config(SAVED_BY_SIGNAL))
    assert terminal.hang_up() == 130
    assert_saved(run)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_run_that_is_asked_to_end_is_saved_and_goes_on_to_the_same_end(
    start_fork, fork_evo, small_config, assert_equals_whole_run, tmp_path, number
):
    config = small_config(SAVED_BY_SIGNAL)
    process = start_fork("run", config)
    process.wait_until(lambda: run_folders(tmp_path / "runs"))
    (run,) = run_folders(tmp_path / "runs")
    process.wait_until(lambda: num_rows(run) >= 3)
    process.signal(number)
    assert process.wait() == 130
    hint = "; Ctrl-C again aborts" if number == signal.SIGINT else ""
    assert process.stderr == f"evo: finishing this generation and saving{hint}\n"
    assert not (run / "plots").exists()
    assert process.stdout.splitlines()[-2:] == ["interrupted", f"saved; go on with: evo resume {run}"]
    assert_saved(run)
    completed = fork_evo("resume", run, "--set", f"stop.generations={num_rows(run) + 5}")
    assert completed.returncode == 0, completed.stderr
    assert_equals_whole_run(run, config)


def test_only_ctrl_c_aborts_a_run_that_is_ending(start_fork, blocking_config, tmp_path):
    """A terminal that closes may send SIGHUP twice: by the kernel and by the shell."""
    process = start_fork("run", blocking_config)
    process.wait_until(lambda: run_folders(tmp_path / "runs"))
    (run,) = run_folders(tmp_path / "runs")
    process.wait_until(lambda: num_rows(run) >= 3)
    (tmp_path / "block").touch()
    process.wait_until((tmp_path / "blocked").exists)
    process.signal(signal.SIGHUP)
    process.wait_until(lambda: "finishing" in process.stderr)
    process.signal(signal.SIGHUP)
    process.signal(signal.SIGTERM)
    (tmp_path / "block").unlink()
    assert process.wait() == 130
    assert process.stderr == "evo: finishing this generation and saving\n"
    assert_saved(run)


def test_a_hangup_that_is_ignored_stays_ignored(evo_command, small_config, tmp_path):
    """As under nohup."""
    config = small_config({**ENDLESS, "stop": {"generations": 3}})
    previous = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # a process inherits what is ignored
    process = subprocess.Popen([evo_command, "run", config], cwd=tmp_path, stdout=subprocess.DEVNULL)
    signal.signal(signal.SIGHUP, previous)
    try:
        while process.poll() is None:
            process.send_signal(signal.SIGHUP)
            try:
                process.wait(0.01)
            except subprocess.TimeoutExpired:
                continue
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0
    (run,) = run_folders(tmp_path / "runs")
    assert num_rows(run) == 3
