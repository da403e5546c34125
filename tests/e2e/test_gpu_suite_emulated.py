"""tests/gpu over the tests' stand-in for a GPU: where there is no GPU this is what runs the CUDA evaluator, and these tests."""

import re
from pathlib import Path

import pytest

GPU_TESTS = Path(__file__).parents[1] / "gpu"


@pytest.mark.slow
@pytest.mark.parametrize("module", sorted(path.name for path in GPU_TESTS.glob("test_*.py")))
def test_the_gpu_tests_pass_over_an_emulated_gpu(run_emulated, module):
    # Work is done only when it is waited for, so that code that does not wait finds old bytes.
    arguments = (GPU_TESTS / module, "-q", "-n", "0", "-p", "no:cacheprovider")
    completed = run_emulated("pytest", *arguments, options="deferred=1", timeout_s=1200.0)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    assert re.search(r"^\d+ passed( in|,)", completed.stdout.splitlines()[-1]), completed.stdout
    assert "skipped" not in completed.stdout
