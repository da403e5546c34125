"""tests/gpu over the tests' stand-in for a GPU: where there is no GPU this is what runs the CUDA evaluator.

Work is done only when it is waited for, so that code that does not wait finds old bytes.
"""

import json
import re
from pathlib import Path

import pytest
from gpu.report import PARTS

GPU_TESTS = Path(__file__).parents[1] / "gpu"


@pytest.mark.slow
def test_the_gpu_tests_pass_over_an_emulated_gpu(run_emulated):
    arguments = (GPU_TESTS, "-q", "-n", "0", "-p", "no:cacheprovider")
    completed = run_emulated("pytest", *arguments, options="deferred=1", timeout_s=1200.0)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    assert re.search(r"^\d+ passed( in|,)", completed.stdout.splitlines()[-1]), completed.stdout
    assert "skipped" not in completed.stdout


@pytest.fixture
def report(run_emulated, tmp_path):
    """Makes a short report; gives the exit code, what it prints, and for each work its verdict and its rows' texts."""

    def make(*args, options="deferred=1", wrong=""):
        env = {
            "EVO_EMULATED_GPU_MAX_STEPS": "200000",
            "EVO_EMULATED_GPU_SELF_TEST": "",
            "EVO_EMULATED_GPU_SELF_TEST_WRONG": wrong,
        }
        command = (GPU_TESTS / "report.py", "out.json", "--short", *args)
        done = run_emulated(*command, options=options, env=env, timeout_s=900.0)
        path = tmp_path / "out.json"
        parts = json.loads(path.read_text())["parts"] if path.exists() else []
        rows = {each["work"]: {(row["what"], row["at"]): row["text"] for row in each["rows"]} for each in parts}
        return done.returncode, done.stdout + done.stderr, {each["work"]: each["verdict"] for each in parts}, rows

    return make


@pytest.mark.slow
def test_the_whole_report_of_an_emulated_gpu_finds_no_fault(report):
    code, printed, verdicts, rows = report()
    assert code == 0, printed
    assert verdicts == {work: "passed" for works in PARTS.values() for work, _ in works}
    ways = ("interpret", "compile0", "compile1", "compile3")
    timed = {(f"{way}, {kind}, 10 instructions", "20 points") for way in ways for kind in ("sums", "stores", "own kernel")}
    assert timed <= set(rows["kernels:alone"])
    text = rows["checks:own_kernel"]["a task's own kernel", ""]
    num_programs, num_interpreted = map(int, re.fullmatch(r"(\d+) programs agree; (\d+) of them interpreted", text).groups())
    assert num_interpreted > 0.9 * num_programs
    assert rows["semirings:agreement"]["min_plus", ""] == "equal bits"
    assert {("l1, gradient by a", f"tiles of {size}") for size in (128, 64, 32)} <= set(rows["semirings:speed"])


@pytest.mark.slow
def test_one_wrong_bit_of_the_interpreter_fails_each_check_that_uses_it(report):
    code, printed, verdicts, _ = report("--part", "self-test", "--part", "checks", wrong="sub.ftz.f32@interpret")
    assert code == 1
    assert verdicts["device_tests:run"] == "FAILED: interpreted programs differ from compiled ones: sub_ftz_f32", printed
    failed = {
        work.removeprefix("checks:") for work, verdict in verdicts.items() if verdict.startswith("FAILED: AssertionError: ")
    }
    assert failed == {"instructions", "programs", "sums", "schedules"}, printed  # a task's own kernel has another interpreter
    assert "interpret: sub_ftz_f32 differs at " in verdicts["checks:instructions"]


@pytest.mark.parametrize(
    ("args", "options", "line"),
    [
        ((), "devices=0", "report: no GPU is usable: the NVIDIA driver finds no usable GPU (CUDA_ERROR_NO_DEVICE)"),
        (("--device", "3"), "", "report: --device 3 is not a usable GPU, one of: 0 (Emulated GPU)"),
    ],
)
def test_a_report_that_cannot_be_made_is_one_line(report, args, options, line):
    code, printed, verdicts, _ = report(*args, options=options)
    assert (code, verdicts) == (2, {})
    assert printed.startswith(line) and printed.count("\n") == 1
