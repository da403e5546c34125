"""A Dask scheduler and workers as real processes on loopback, for tests."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from processes import LIMIT_S, wait_until


class DaskCluster:
    """A scheduler with a worker of one thread; more are added one by one. Each worker has a nanny, which restarts it."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._started: list[subprocess.Popen] = []
        self._workers: list[subprocess.Popen] = []
        self.scheduler: subprocess.Popen | None = None

    def start(self) -> None:
        """Replaces what a test has ended."""
        if self.scheduler is None or self.scheduler.poll() is not None:
            self.close()
            file = self._folder / f"scheduler-{len(self._started)}.json"
            self.scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", file)
            wait_until(lambda: file.exists() and file.read_text().endswith("}"))
            self.address = json.loads(file.read_text())["address"]
        if all(worker.poll() is not None for worker in self._workers):
            self.add_worker()

    @property
    def worker(self) -> subprocess.Popen:
        """The nanny of the worker that has been here longest."""
        return next(worker for worker in self._workers if worker.poll() is None)

    def add_worker(self, env: dict[str, str] | None = None) -> subprocess.Popen:
        """The nanny of a new worker, which may still be starting."""
        options = ("--nthreads", "1", "--host", "127.0.0.1", "--local-directory", self._folder / "scratch")
        self._workers.append(self._start("worker", self.address, *options, env=env))
        return self._workers[-1]

    def close(self) -> None:
        for process in self._started:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait(LIMIT_S)

    def _start(self, kind: str, *args: str | Path, env: dict[str, str] | None = None) -> subprocess.Popen:
        command = [
            sys.executable,
            "-m",
            f"distributed.cli.dask_{kind}",
            "--no-dashboard",
            "--dashboard-address",
            "127.0.0.1:0",
            *map(str, args),
        ]
        with (self._folder / f"{kind}-{len(self._started)}.log").open("w") as log:
            self._started.append(
                subprocess.Popen(command, cwd=self._folder, env={**os.environ, **(env or {})}, stdout=log, stderr=log)
            )
        return self._started[-1]
