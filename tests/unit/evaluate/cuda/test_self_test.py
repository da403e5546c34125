"""evo.evaluate.cuda.self_test: outcomes, what is remembered of them, and the process of the test. The process is a shell here."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from evo.evaluate.cuda import self_test
from evo.evaluate.cuda.device import DeviceInfo
from evo.evaluate.cuda.self_test import Outcome, remembered, run_self_test, why_untrusted

INFO = DeviceInfo(3, "NVIDIA H200 / test", (9, 0), 140 << 30)


class Child:
    """Sets what the process of the test does, and counts processes."""

    def __init__(self, monkeypatch, folder: Path):
        self._monkeypatch, self._log = monkeypatch, folder / "log.txt"
        self("echo passed")

    def __call__(self, script: str) -> None:
        script = f'echo "$0" >> "{self._log}"; {script}'
        self._monkeypatch.setattr(self_test, "COMMAND", ("sh", "-c", script))

    @property
    def ordinals(self) -> list[str]:
        """The device of each process so far."""
        return self._log.read_text().split() if self._log.exists() else []


@pytest.fixture
def child(monkeypatch, tmp_path) -> Child:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(self_test, "driver_name", lambda: "CUDA 13.0 580.65.06")
    return Child(monkeypatch, tmp_path)


def test_a_device_that_passes_is_trusted_and_tested_once(child):
    assert remembered(INFO) is None
    assert (why_untrusted(INFO), why_untrusted(INFO)) == (None, None)
    assert child.ordinals == ["3"]
    assert remembered(INFO) == Outcome(None)


def test_a_failure_is_remembered_with_its_reason(child):
    child("echo step: sums; echo failed: they differ")
    line = "NVIDIA H200 / test failed the self-test: they differ; test it again with: evo doctor --test"
    assert why_untrusted(INFO) == line
    child("echo passed")
    assert why_untrusted(INFO) == line
    assert child.ordinals == ["3"]


def test_testing_again_replaces_what_is_remembered(child):
    child("echo failed: once")
    assert run_self_test(INFO) == Outcome("once")
    child("echo passed")
    assert run_self_test(INFO) == Outcome(None)
    assert why_untrusted(INFO) is None
    assert len(child.ordinals) == 2


def test_another_device_driver_or_version_of_evo_is_tested_anew(child, monkeypatch):
    assert why_untrusted(INFO) is None
    assert why_untrusted(replace(INFO, ordinal=0)) is None  # the same device in another place
    assert len(child.ordinals) == 1
    assert why_untrusted(replace(INFO, name="NVIDIA H100")) is None
    assert len(child.ordinals) == 2
    monkeypatch.setattr(self_test, "driver_name", lambda: "CUDA 13.0 580.82.07")
    assert why_untrusted(INFO) is None
    assert len(child.ordinals) == 3
    monkeypatch.setattr(self_test, "VERSION", "9.9.9")
    assert why_untrusted(INFO) is None
    assert len(child.ordinals) == 4


def test_names_that_make_the_same_file_name_are_told_apart(child):
    assert why_untrusted(replace(INFO, name="GPU/A")) is None
    assert remembered(replace(INFO, name="GPU A")) is None


@pytest.mark.parametrize("content", ["", "[]", "{}", "null", '{"problem": null}', "\xff"])
def test_a_damaged_record_counts_as_none(child, tmp_path, content):
    assert why_untrusted(INFO) is None
    (record,) = (tmp_path / "cache" / "evo" / "self_tests").iterdir()
    record.write_text(content, encoding="latin-1")
    assert remembered(INFO) is None
    assert why_untrusted(INFO) is None
    assert remembered(INFO) == Outcome(None)
    assert len(child.ordinals) == 2


def test_a_cache_folder_that_cannot_be_written_only_means_testing_again(child, tmp_path):
    (tmp_path / "cache").write_text("a file, not a folder")
    assert (why_untrusted(INFO), why_untrusted(INFO)) == (None, None)
    assert len(child.ordinals) == 2


def test_a_device_that_cannot_be_tested_now_is_tested_the_next_time(child):
    child("echo step: sums; echo untested: no memory is free")
    assert why_untrusted(INFO) == "NVIDIA H200 / test could not be tested: no memory is free"
    child("echo passed")
    assert why_untrusted(INFO) is None
    assert len(child.ordinals) == 2


def test_a_process_that_cannot_be_started_says_nothing_of_the_device(child, monkeypatch, tmp_path):
    monkeypatch.setattr(self_test, "COMMAND", (str(tmp_path / "missing"),))
    assert run_self_test(INFO) == Outcome("its process cannot be started: No such file or directory", is_final=False)
    assert remembered(INFO) is None


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("echo step: loading; kill -11 $$", "its process was killed by SIGSEGV, during: loading"),
        ("kill -9 $$", "its process was killed by SIGKILL"),
        ("echo step: one; echo step: two; exit 7", "its process ended with exit code 7, during: two"),
        ("echo Traceback >&2; echo ImportError: no evo >&2; exit 1", "its process ended with exit code 1 (ImportError: no evo)"),
        ("true", "its process ended with exit code 0"),
    ],
)
def test_a_process_that_ends_without_an_outcome_is_a_failure(child, script, problem):
    child(script)
    assert run_self_test(INFO) == Outcome(problem)
    assert remembered(INFO) == Outcome(problem)


def test_the_process_needs_nothing_of_the_current_folder_and_says_that_there_is_no_gpu(tmp_path, monkeypatch):
    pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings is not installed")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "json.py").write_text("raise SystemExit('the wrong module')")
    (tmp_path / "evo").mkdir()
    done = subprocess.run([*self_test.COMMAND, "0"], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0] == "step: every instruction"
    assert done.stdout.splitlines()[-1].startswith("untested: no GPU is usable: ")


@pytest.fixture
def after_first_line(monkeypatch, tmp_path):
    """Lets the time limit pass, or Ctrl-C be pressed, when the process has begun, however long that takes."""
    begun = tmp_path / "begun"
    communicate = subprocess.Popen.communicate

    def wait_for(error: BaseException) -> str:
        def stand_in(self, timeout):
            if timeout != self_test.TIME_LIMIT_S:
                return communicate(self, timeout=timeout)
            while not begun.exists():
                assert self.poll() is None
            raise error

        monkeypatch.setattr(subprocess.Popen, "communicate", stand_in)
        # The second process holds the pipe as well: only if both are killed, the first one's line is read.
        return f'echo step: an endless kernel; sleep 1000 & touch "{begun}"; wait'

    return wait_for


def test_a_process_that_hangs_is_killed_with_its_workers(child, after_first_line):
    child(after_first_line(subprocess.TimeoutExpired("sh", self_test.TIME_LIMIT_S)))
    assert run_self_test(INFO) == Outcome("not finished after 120 s, during: an endless kernel")
    assert remembered(INFO) == Outcome("not finished after 120 s, during: an endless kernel")


def test_an_interrupted_test_is_killed_and_not_remembered(child, after_first_line, monkeypatch):
    killed = []
    kill = self_test._kill
    monkeypatch.setattr(self_test, "_kill", lambda process: killed.append(kill(process)))
    child(after_first_line(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        run_self_test(INFO)
    assert killed == ["step: an endless kernel\n"]
    assert remembered(INFO) is None


def test_a_process_that_cannot_be_killed_is_left_alone(child, after_first_line, monkeypatch):
    script = after_first_line(subprocess.TimeoutExpired("sh", self_test.TIME_LIMIT_S))
    child(script)
    monkeypatch.setattr(self_test, "_KILL_S", 0.0)
    killed = []
    monkeypatch.setattr(self_test.os, "killpg", lambda group, number: killed.append((group, number)))
    assert run_self_test(INFO) == Outcome("not finished after 120 s")
    ((group, number),) = killed
    monkeypatch.undo()
    self_test.os.killpg(group, number)
