"""tests/gpu and `evo gpu-report` over the tests' stand-in for a GPU: where there is no GPU this is what runs the CUDA evaluator.

Work is done only when it is waited for, so that code that does not wait finds old bytes.
"""

import json
import re
from pathlib import Path

import pytest

from evo.cli.gpu_report import PARTS

GPU_TESTS = Path(__file__).parents[1] / "gpu"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "chosen"), [("test_runs.py", ""), ("test_checks.py", "own_kernel")]
)  # the report has the others
def test_the_gpu_tests_pass_over_an_emulated_gpu(run_emulated, module, chosen):
    arguments = (GPU_TESTS / module, "-q", "-n", "0", "-p", "no:cacheprovider", "-k", chosen)
    completed = run_emulated("pytest", *arguments, options="deferred=1", timeout_s=1200.0)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    assert re.search(r"^\d+ passed( in|,)", completed.stdout.splitlines()[-1]), completed.stdout
    assert "skipped" not in completed.stdout


def report(run_emulated, tmp_path, *args: str, options: str = "deferred=1", **env: str):
    """The process of a short report, and the file that it leaves."""
    env = {"EVO_EMULATED_GPU_MAX_STEPS": "200000", **env}
    completed = run_emulated("gpu-report", "out.json", "--short", *args, options=options, env=env, timeout_s=600.0)
    path = tmp_path / "out.json"
    return completed, json.loads(path.read_text()) if path.exists() else None


@pytest.mark.slow
def test_the_whole_report_of_an_emulated_gpu_is_made_in_ten_minutes_and_finds_no_fault(run_emulated, tmp_path):
    completed, found = report(run_emulated, tmp_path, EVO_EMULATED_GPU_SELF_TEST="")
    assert completed.returncode == 0, completed.stdout + completed.stderr
    assert list(dict.fromkeys(part["part"] for part in found["parts"])) == list(PARTS)
    assert {part["verdict"] for part in found["parts"]} == {"passed"}
    assert all(part["rows"] for part in found["parts"])
    timed = [row["what"] for part in found["parts"] if part["part"] == "kernels" for row in part["rows"]]
    kinds = [
        f"{way}, {kind}" for way in ("interpret", "compile0", "compile1", "compile3") for kind in ("sums", "stores", "own kernel")
    ]
    assert all(any(what.startswith(kind) for what in timed) for kind in kinds)
    semirings = [part["rows"] for part in found["parts"] if part["part"] == "semirings"]
    agreement, speed = ({(row["what"], row["at"]): row["text"] for row in rows} for rows in semirings)
    assert agreement["min_plus", ""] == "equal bits" and agreement["log_sum_exp", ""].startswith("within ")
    assert all(speed["l1", f"tiles of {size}"].endswith(" ms") for size in (128, 64, 32))
    assert any(what == "l1, gradient by a" for what, _ in speed)


def test_parts_of_the_report_are_made_alone_and_say_whose_figures_they_are(run_emulated, tmp_path):
    completed, found = report(run_emulated, tmp_path, "--part", "device", "--part", "driver")
    assert (completed.returncode, completed.stderr) == (0, "")
    assert [(part["part"], part["verdict"]) for part in found["parts"]] == [("device", "passed"), ("driver", "passed")]
    assert found["device"] == "Emulated GPU" and "## driver, calls, on Emulated GPU: passed\n" in completed.stdout
    rows = {row["what"]: row["text"] for part in found["parts"] for row in part["rows"]}
    assert rows["UUID"] == "e0e0e0e0-e0e0-e0e0-e0e0-e0e0e0e0e0e0" and rows["multiprocessors"] == "132"
    assert rows["interpreter that sums"].endswith("carve-out 100 %, 4 blocks at once")
    assert "launch, until the end is seen" in rows


@pytest.mark.slow
def test_a_fault_of_the_gpu_fails_its_part_and_is_told_by_the_exit_code(run_emulated, tmp_path):
    wrong = {"EVO_EMULATED_GPU_SELF_TEST": "", "EVO_EMULATED_GPU_SELF_TEST_WRONG": "sub.ftz.f32"}
    completed, found = report(run_emulated, tmp_path, "--part", "self-test", "--part", "device", **wrong)
    assert completed.returncode == 1
    device, tested = found["parts"]
    assert (device["verdict"], tested["part"]) == ("passed", "self-test")
    assert tested["verdict"].startswith("FAILED: sub_ftz_f32 differs")


@pytest.mark.parametrize(
    ("args", "options", "line"),
    [
        ((), "devices=0", "evo: no GPU is usable: the NVIDIA driver finds no usable GPU (CUDA_ERROR_NO_DEVICE)"),
        (("--device", "3"), "", "evo: --device 3 is not a usable GPU, one of: 0 (Emulated GPU)"),
        (("--part", "wether"), "", "evo: --part wether: no such part, one of: device, self-test, checks, kernels,"),
    ],
)
def test_a_report_that_cannot_be_made_is_one_line(run_emulated, tmp_path, args, options, line):
    completed, found = report(run_emulated, tmp_path, *args, options=options)
    assert (completed.returncode, completed.stdout, found) == (2, "", None)
    assert completed.stderr.startswith(line) and completed.stderr.count("\n") == 1
