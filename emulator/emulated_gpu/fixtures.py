"""Fixtures for tests that need a GPU where there is none; tests/conftest.py imports them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

PACKAGES = Path(__file__).parents[1]


@pytest.fixture
def run_emulated(tmp_path) -> Callable[..., subprocess.CompletedProcess]:
    """Runs an `evo` verb, or a script given as text, in tmp_path and a process of its own whose driver is the stand-in.

    `run("run", config, options="fault=launch:2:719")`; `run(script="...")`. Output as text.
    """

    def run(*args, script: str | None = None, options: str = "", timeout_s: float = 300.0, env: dict[str, str] | None = None):
        if script is not None:
            path = tmp_path / "script.py"
            path.write_text(script)
            args = (path, *args)
        own = {"PYTHONPATH": str(PACKAGES), "EVO_EMULATED_GPU": options, "XDG_CACHE_HOME": str(tmp_path / "cache")}
        return subprocess.run(
            [sys.executable, "-m", "emulated_gpu", *map(str, args)],
            cwd=tmp_path,
            env={**os.environ, **own, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    return run


@pytest.fixture
def emulated_gpu(monkeypatch, tmp_path) -> Iterator:
    """The stand-in driver in this process, as a process finds it that has just started; a `driver.StandIn`.

    Programs are compiled in this process, too: compile workers take a second to start, and have own tests. Where there is
    a real driver the test is skipped: a process has only one, and tests/gpu runs the real one.
    """
    from emulated_gpu import compiling, driver
    from evo.compile.request import InLine
    from evo.evaluate.cuda import evaluator

    if _has_real_driver():
        pytest.skip("this machine has a CUDA driver of its own, which this process's other tests need")
    stand_in = driver.install()
    stand_in.reset()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for owner, name, value in compiling.replacements():
        monkeypatch.setattr(owner, name, value)
    monkeypatch.setattr(evaluator, "open_compilers", lambda _: InLine())
    yield stand_in
    # Whoever probes for a device in this process later finds none.
    stand_in.reset()
    stand_in.configure("devices=0")


@cache
def _has_real_driver() -> bool:
    from emulated_gpu import driver

    return driver.has_real_driver()
