"""evo.evaluate.cuda.self_test and device_child: outcomes, what is remembered of them, and the process."""

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from processes import is_gone, wait_until

from evo.evaluate.cuda import self_test
from evo.evaluate.cuda.device import DeviceInfo
from evo.evaluate.cuda.device_child import Report, run_in_child
from evo.evaluate.cuda.self_test import Outcome, remembered, run_self_test, why_untrusted
from evo.workers import process

TESTS, WORK = self_test.TESTS, "device_work:run"
INFO = DeviceInfo(3, "NVIDIA H200 / test", (9, 0), 140 << 30, "b6e3a3a1-7e36-4b52-9b0c-11f0d2a1c0de")


class Child:
    """Sets what the process of the test does, and counts processes."""

    def __init__(self, monkeypatch, folder: Path):
        self._log, self._script = folder / "log.txt", folder / "work.py"
        monkeypatch.setattr(self_test, "TESTS", WORK)
        monkeypatch.setenv("DEVICE_WORK", str(self._script))
        self("pass")

    def __call__(self, script: str) -> None:
        log = f"open({str(self._log)!r}, 'a').write('x')"
        self._script.write_text(f"import os, subprocess, sys, time\nfrom evo.errors import UserError\n{log}\n{script}\n")

    @property
    def count(self) -> int:
        """Processes so far."""
        return len(self._log.read_text()) if self._log.exists() else 0


@pytest.fixture
def child(monkeypatch, tmp_path) -> Child:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(self_test, "driver_name", lambda: "CUDA 13.0 580.65.06")
    return Child(monkeypatch, tmp_path)


def test_a_device_that_passes_is_trusted_and_tested_once(child):
    assert remembered(INFO) is None
    assert (why_untrusted(INFO), why_untrusted(INFO)) == (None, None)
    assert child.count == 1
    assert remembered(INFO) == Outcome(None)


def test_a_failure_is_remembered_with_its_reason(child):
    child("report('sums'); problem = 'they differ'")
    line = "NVIDIA H200 / test failed the self-test: they differ; test it again with: evo doctor --test"
    assert why_untrusted(INFO) == line
    child("pass")
    assert why_untrusted(INFO) == line
    assert child.count == 1


def test_another_device_driver_or_version_of_evo_is_tested_anew(child, monkeypatch):
    assert why_untrusted(INFO) is None
    assert why_untrusted(replace(INFO, ordinal=0)) is None  # the same device in another place
    assert child.count == 1
    assert why_untrusted(replace(INFO, uuid="0a0b0c0d-0000-4000-8000-000000000001")) is None  # an equal card
    assert child.count == 2
    monkeypatch.setattr(self_test, "driver_name", lambda: "CUDA 13.0 580.82.07")
    assert why_untrusted(INFO) is None
    assert child.count == 3
    monkeypatch.setattr(self_test, "VERSION", "9.9.9")
    assert why_untrusted(INFO) is None
    assert child.count == 4


@pytest.mark.parametrize("content", ["", "[]", "{}", "null", '{"problem": null}', "\xff"])
def test_a_damaged_record_counts_as_none(child, tmp_path, content):
    assert why_untrusted(INFO) is None
    (record,) = (tmp_path / "cache" / "evo" / "self_tests").iterdir()
    record.write_text(content, encoding="latin-1")
    assert remembered(INFO) is None
    assert why_untrusted(INFO) is None
    assert remembered(INFO) == Outcome(None)
    assert child.count == 2


def test_a_device_that_cannot_be_tested_now_is_tested_the_next_time(child):
    child("report('sums'); raise UserError('no memory is free')")
    assert why_untrusted(INFO) == "NVIDIA H200 / test could not be tested: no memory is free"
    child("pass")
    assert why_untrusted(INFO) is None
    assert child.count == 2


def test_a_process_that_cannot_be_started_says_nothing_of_the_device(child, monkeypatch, tmp_path):
    monkeypatch.setattr(process, "COMMAND", (str(tmp_path / "missing"),))
    assert run_self_test(INFO) == Outcome("its process cannot be started: No such file or directory", is_final=False)
    assert remembered(INFO) is None


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("report('loading'); os.kill(os.getpid(), 11)", "its process was killed by SIGSEGV, during: loading"),
        ("os.kill(os.getpid(), 9)", "its process was killed by SIGKILL"),
        ("report('one'); report('two'); os._exit(7)", "its process ended with exit code 7, during: two"),
        (
            "os.write(2, b'Traceback\\nImportError: no evo\\n'); os._exit(1)",
            "its process ended with exit code 1 (ImportError: no evo)",
        ),
        ("os._exit(0)", "its process ended with exit code 0"),
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
    report = run_in_child(TESTS, 0, self_test.TIME_LIMIT_S)
    assert (report.steps, report.is_final) == (("every instruction",), False)
    assert report.problem.startswith("no GPU is usable: ")


HANGING = """
child = subprocess.Popen(["sleep", "1000"])
report("an endless kernel")
open({pid!r}, "w").write(str(child.pid))
report("it began")
child.wait()
"""


def test_a_process_that_hangs_is_killed_with_its_workers(child, tmp_path):
    child(HANGING.format(pid=str(tmp_path / "pid")))
    report = run_in_child(WORK, None, 3.0)
    assert report == Report(("an endless kernel", "it began"), "not finished after 3 s, during: it began", is_timeout=True)
    wait_until(lambda: is_gone(int((tmp_path / "pid").read_text())))


def test_the_limit_of_a_test_is_for_all_its_steps(child, monkeypatch):
    monkeypatch.setattr(self_test, "TIME_LIMIT_S", 0.3)
    child("while True: report('one more'); time.sleep(0.01)")
    outcome = run_self_test(INFO)
    assert outcome == remembered(INFO) and outcome.is_timeout


@pytest.mark.parametrize(("script", "is_timeout"), [("time.sleep(1000)", True), ("problem = 'sums'", False)])
def test_a_timeout_is_forgotten_after_an_hour_and_no_other_failure_is(child, monkeypatch, tmp_path, script, is_timeout):
    monkeypatch.setattr(self_test, "TIME_LIMIT_S", 0.1 if is_timeout else 60.0)
    child(script)
    assert why_untrusted(INFO)
    (record,) = (tmp_path / "cache" / "evo" / "self_tests").iterdir()
    for age_s, expected in ((3500, True), (3700, not is_timeout)):
        os.utime(record, (time.time() - age_s,) * 2)
        assert (remembered(INFO) is not None) == expected


def test_an_interrupted_test_is_killed_and_not_remembered(child, tmp_path, monkeypatch):
    def interrupt(*_):
        wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
        raise KeyboardInterrupt

    monkeypatch.setattr(process.Connection, "poll", interrupt)
    child(HANGING.format(pid=str(tmp_path / "pid")))
    with pytest.raises(KeyboardInterrupt):
        run_self_test(INFO)
    wait_until(lambda: is_gone(int((tmp_path / "pid").read_text())))
    assert remembered(INFO) is None
