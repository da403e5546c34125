"""evo.cli.gpu_report: what the file holds at each moment, and how parts that fail are told. The parts' processes are fakes."""

import json

import pytest

from evo.cli import gpu_report
from evo.cli.gpu_report.work import FULL, row
from evo.errors import UserError
from evo.evaluate.cuda.device import DeviceInfo, Probe
from evo.evaluate.cuda.device_child import Report
from evo.evaluate.cuda.self_test import TIME_LIMIT_S, Outcome

INFO = DeviceInfo(1, "NVIDIA H200", (9, 0), 140 << 30, "b6e3a3a1-7e36-4b52-9b0c-11f0d2a1c0de")


@pytest.fixture
def make(monkeypatch, tmp_path):
    """Makes a report whose works tell these rows and have these problems; gives what it says and the file after each row."""
    monkeypatch.setattr(gpu_report, "why_no_compiler", lambda: None)
    monkeypatch.setattr(gpu_report, "probe", lambda: Probe(None, (13, 0), (INFO,)))
    monkeypatch.setattr(gpu_report, "run_self_test", lambda info: Outcome(None, lanes_problem="sin"))
    path, seen = tmp_path / "out.json", []

    def run(problems: dict[str, str], *wanted: str):
        def run_in_child(work, order, limit_s, told):
            assert order.ordinal == 1 and limit_s >= 10.0
            for number in (1, 2):
                told(row("slots", f"{number}.5", f"{number} points", slots=number + 0.5))
                seen.append(json.loads(path.read_text()))
            problem = problems.get(work.rpartition(":")[2])
            if problem == "Ctrl-C":
                raise KeyboardInterrupt
            return Report((), problem)

        monkeypatch.setattr(gpu_report, "run_in_child", run_in_child)
        return gpu_report.report(path, None, wanted), seen, json.loads(path.read_text())

    return run


def test_a_part_that_fails_ends_nothing_and_the_file_has_all_that_is_known_at_each_moment(make, capsys):
    has_passed, seen, found = make({"alone": "not finished after 110 s"}, "kernels", "driver")
    assert not has_passed
    assert [part["verdict"] for part in seen[1]["parts"]] == ["not finished"]
    assert [row["slots"] for row in seen[0]["parts"][0]["rows"]] == [1.5]
    assert [part["verdict"] for part in seen[2]["parts"]] == ["FAILED: not finished after 110 s", "not finished"]
    assert [part["verdict"] for part in found["parts"]] == ["FAILED: not finished after 110 s", "passed"]
    assert (found["uuid"], found["extent"]) == (INFO.uuid, "full")
    said = capsys.readouterr().out
    assert "kernels, alone: FAILED: not finished after 110 s (0 s)\n" in said
    assert "## driver, calls, on NVIDIA H200: passed\n       1 points  2 points\nslots  1.5       2.5\n" in said


def test_what_has_been_measured_until_ctrl_c_is_told(make, capsys):
    with pytest.raises(KeyboardInterrupt):
        make({"alone": "Ctrl-C"}, "kernels", "driver")
    expected = "## kernels, alone, on NVIDIA H200: not finished\n       1 points  2 points\nslots  1.5       2.5\n"
    assert capsys.readouterr().out.strip() == expected.strip()


def test_the_parts_take_ten_minutes_at_most(make):
    has_passed, _, found = make({})
    assert has_passed and found["parts"][0]["part"] == "device"
    works = [work for part in gpu_report.PARTS.values() for work, _ in part]
    assert len(found["parts"]) == len(works)
    assert sum(limit for part in gpu_report.PARTS.values() for _, limit in part) + TIME_LIMIT_S <= 600.0
    assert FULL.patience == 1.0
    (lanes,) = (part["rows"] for part in found["parts"] if part["part"] == "self-test")
    assert lanes[0]["text"] == "sin"


def test_a_file_that_cannot_be_written_is_told_before_anything_is_measured(make, monkeypatch, tmp_path):
    with pytest.raises(UserError, match=r"nowhere/out.json: cannot be written: No such file or directory"):
        gpu_report.report(tmp_path / "nowhere" / "out.json", None)
