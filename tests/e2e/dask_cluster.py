"""A Dask scheduler and workers as real processes on loopback, for tests."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from .conftest import WAIT_S


class DaskCluster:
    """A scheduler; workers are added one by one. Each worker has a nanny, which restarts it."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._started: list[subprocess.Popen] = []
        self.scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", "scheduler.json")
        self._wait_until((folder / "scheduler.json").exists)
        self._wait_until(lambda: (folder / "scheduler.json").read_text().endswith("}"))
        self.address = json.loads((folder / "scheduler.json").read_text())["address"]

    def add_worker(self, num_threads: int = 1, env: dict[str, str] | None = None) -> subprocess.Popen:
        """The nanny of a new worker, which may still be starting."""
        scratch = ("--local-directory", str(self._folder / "scratch"))
        return self._start("worker", self.address, "--nthreads", str(num_threads), "--host", "127.0.0.1", *scratch, env=env)

    def close(self) -> None:
        for process in self._started:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait(WAIT_S)

    def _start(self, kind: str, *args: str, env: dict[str, str] | None = None) -> subprocess.Popen:
        command = [
            sys.executable,
            "-m",
            f"distributed.cli.dask_{kind}",
            "--no-dashboard",
            "--dashboard-address",
            "127.0.0.1:0",
            *args,
        ]
        with (self._folder / f"{kind}-{len(self._started)}.log").open("w") as log:
            self._started.append(
                subprocess.Popen(command, cwd=self._folder, env={**os.environ, **(env or {})}, stdout=log, stderr=log)
            )
        return self._started[-1]

    def _wait_until(self, condition) -> None:
        end_s = time.monotonic() + WAIT_S
        while not condition():
            assert self.scheduler.poll() is None
            assert time.monotonic() < end_s, "waited in vain"
            time.sleep(0.01)
