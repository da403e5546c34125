"""The runs below a folder: how each stands, from its files alone.

Owns what `evo list` prints. Loads no task, no archive and no checkpoint, so that hundreds of runs take a moment. What is wrong
with one run is told in its row.
"""

import json
import os
import re
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from evo.config import StopConfig, read_stop
from evo.errors import UserError
from evo.report.table import table
from evo.run.run_dir import RunDir
from evo.storage.files import PARTIAL_SUFFIX

_NAME = re.compile(r"(\d{8}-\d{6})-seed\d+(-\d+)?")
_PARTS = ("config.yaml", "environment.json", "metrics.jsonl", "checkpoints")
_TIME_DIGITS = 1e-6  # metrics round seconds to this


@dataclass(frozen=True)
class RunRow:
    """A run.

    state: `finished`, `interrupted`, `running` or `damaged`; reason: of the last. best_objective is None also if nothing
    has a finite score, and all numbers before the first generation is over. age_s: seconds since the run was started. num_bytes:
    of its files.
    """

    path: str
    state: str
    best_objective: float | None
    coverage: float | None
    evaluations: int | None
    age_s: float
    num_bytes: int
    reason: str | None = None


def list_runs(folder: Path) -> list[RunRow]:
    """All runs in a folder and below, the newest first. Raises UserError: there is no such folder."""
    if not folder.is_dir():
        raise UserError("no such folder; name the one that holds your runs: evo list FOLDER", folder)
    now_s = time.time()
    return sorted((_row(path, now_s) for path in _run_folders(folder)), key=lambda row: (row.age_s, row.path))


def runs_text(rows: list[RunRow]) -> str:
    """The rows as a table."""
    cells = [("state", "best", "coverage", "evaluations", "age", "size", "run")]
    cells += [
        (
            row.state,
            "-" if row.best_objective is None else f"{row.best_objective:.6g}",
            "-" if row.coverage is None else f"{row.coverage:.1%}",
            "-" if row.evaluations is None else f"{row.evaluations:,}",
            _age(row.age_s),
            _size(row.num_bytes),
            f"{row.path}  ({row.reason})" if row.reason else row.path,
        )
        for row in rows
    ]
    return table(cells, right=range(1, 6))


def runs_json(rows: list[RunRow]) -> str:
    """The rows as a JSON list of objects with the fields of `RunRow`."""
    return json.dumps([asdict(row) for row in rows], indent=1) + "\n"


def _run_folders(folder: Path) -> Iterator[Path]:
    """Run folders, damaged ones included. A run's own folders are not searched."""
    for root, folders, files in os.walk(folder):
        path = Path(root)
        if path.suffix == PARTIAL_SUFFIX:  # it has no name yet
            folders.clear()
        elif _NAME.fullmatch(path.name) or sum(part in files or part in folders for part in _PARTS) > 1:
            folders.clear()
            yield path


def _row(path: Path, now_s: float) -> RunRow:
    age_s, num_bytes = 0.0, 0
    metrics: dict[str, Any] = {}
    reason = None
    try:
        age_s, num_bytes = now_s - _start_s(path), _num_bytes(path)
        if not (path / "config.yaml").is_file():
            raise UserError("has no config.yaml")
        with RunDir(path, writable=False) as run_dir:
            state = "running" if run_dir.is_running() else "interrupted"
            metrics = run_dir.last_metrics() or {}
            if run_dir.has_begun() and not any((path / "checkpoints").glob("*.ckpt")):
                raise UserError("has no checkpoint", path)
        if state == "interrupted" and metrics and has_stopped(read_stop(path / "config.yaml"), metrics):
            state = "finished" if (path / "archive.npz").is_file() else state
    except (UserError, OSError) as error:
        text = str(error) if isinstance(error, UserError) else f"{error.filename}: {error.strerror}"
        state, reason = "damaged", " ".join(text.removeprefix(f"{path}: ").split())
    best, coverage, evaluations = (metrics.get(name) for name in ("best_objective", "coverage", "evaluations"))
    return RunRow(str(path), state, best, coverage, evaluations, max(0.0, age_s), num_bytes, reason)


def has_stopped(stop: StopConfig, metrics: dict[str, Any]) -> bool:
    """Return whether a run with these last metrics has reached one of its stops."""
    best, seconds = metrics["best_objective"], metrics["elapsed_s"] + _TIME_DIGITS
    objective = float("-inf") if best is None else best
    return stop.reached(metrics["generations"], metrics["evaluations"], seconds, objective) is not None


def _start_s(path: Path) -> float:
    """Start of the run, by its name; for another name, time of the folder's last change."""
    match = _NAME.fullmatch(path.name)
    try:
        return time.mktime(time.strptime(match[1], "%Y%m%d-%H%M%S")) if match else path.stat().st_mtime
    except ValueError:  # such as month 13
        return path.stat().st_mtime


def _num_bytes(path: Path) -> int:
    """The sum of the files' sizes. A file that vanishes during the count adds nothing."""
    total = 0
    for root, _, files in os.walk(path):
        for name in files:
            try:
                total += os.lstat(os.path.join(root, name)).st_size
            except FileNotFoundError:
                continue
    return total


def _age(seconds: float) -> str:
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length:.0f} {unit}"
    return f"{seconds:.0f} s"


def _size(num_bytes: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if num_bytes < 999.5:  # of which three digits are shown
            return f"{num_bytes:.3g} {unit}"
        num_bytes /= 1000
    return f"{num_bytes:.3g} TB"
