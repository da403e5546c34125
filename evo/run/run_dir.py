"""The folder of a run: appended to, checkpointed, resumed. With `evo.run.new_run`, which makes it, the only writer under runs/.

Owns names and durability: files appear whole, and the last two checkpoints are kept, so a run that is killed at any moment can
be resumed. Knows nothing of how a run is computed. runs/README.md describes the layout.
Longer than most modules, so that one file holds all that must survive a kill.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from evo.config import RunConfig, load_config
from evo.errors import UserError, command_line, os_errors_as
from evo.run.checkpoint import (
    PREFIX_BYTES,
    CheckpointError,
    OtherVersionError,
    check_version,
    decode_checkpoint,
    encode_checkpoint,
)
from evo.run.metrics_rows import is_row_until, row_of
from evo.search.lineage_records import MAGIC, LineageLogError, Records, decode_log, encode_block, joined
from evo.storage.files import PARTIAL_SUFFIX, open_file, read_file, try_lock, write_atomically
from evo.storage.json_file import read_json
from evo.workers import WAKE_S

CHECKPOINTS_KEPT = 2
_TAIL_BYTES = 4096  # read at a time to find the last row of metrics
_MAX_ROW_BYTES = 1 << 20  # of metrics
_MAX_BYTES = 1 << 34  # of a checkpoint, and of metrics


def open_lock(folder: Path) -> IO[str]:
    """A run's lock, to be locked. It holds the name of the newest checkpoint."""
    # A pipe in its place would wait.
    return open(folder / "lock", "w", opener=lambda name, flags: os.open(name, flags & ~os.O_TRUNC | os.O_NONBLOCK, 0o666))


class RunDir(AbstractContextManager["RunDir"]):
    """A run folder. While it is open for writing, other processes cannot open it for writing."""

    def __init__(self, path: Path, *, writable: bool, lock: IO[str] | None = None):
        """Opens the folder of a run.

        Args:
            lock: of a new folder, which has no config yet (`evo.run.new_run`).

        Raises:
            UserError: not a run folder, not writable, or another process has it open for writing.
        """
        self.path = path
        if not (lock or (path / "config.yaml").is_file()):
            raise UserError("not a run folder (it has no config.yaml); list yours with: evo list", path)
        self._lock = lock
        self._metrics: IO[bytes] | None = None
        self._writer = ThreadPoolExecutor(1, "checkpoint")  # its thread starts with the first checkpoint
        self._saving: Future[None] | None = None
        if writable and not lock:
            with _writing(path / "lock"):
                self._lock = open_lock(path)  # held as long as the object
            if not try_lock(self._lock):
                self._lock.close()
                raise UserError("another process is running this run; wait for it or stop it", path)
            for partial in path.rglob(f".*{PARTIAL_SUFFIX}"):  # of a process that was killed
                partial.unlink(missing_ok=True)

    def has_begun(self) -> bool:
        """Return whether there is a checkpoint, or was one."""
        return bool(self._checkpoints()) or (self.path / "metrics.jsonl").exists()

    def save_environment(self, facts: dict[str, Any]) -> None:
        """Writes environment.json."""
        _write(self.path / "environment.json", (json.dumps(facts, indent=2) + "\n").encode())

    def save_config(self, config_yaml: str) -> None:
        """Replaces config.yaml."""
        _write(self.path / "config.yaml", config_yaml.encode())

    def append_metrics(self, row: dict[str, Any]) -> None:
        """Appends one line to metrics.jsonl."""
        path = self.path / "metrics.jsonl"
        with _writing(path):
            if self._metrics is None:
                self._metrics = open(path, "ab")  # noqa: SIM115 - closed by close()
            self._metrics.write(json.dumps(row).encode() + b"\n")
            self._metrics.flush()  # visible at once to readers of a run in progress

    def cut_metrics(self, num_bytes: int, generations: int) -> int:
        """Cuts metrics.jsonl back to a checkpoint: to its length then, to whole lines, and to its generations.

        Lines may be missing although the checkpoint knew them: a damaged disk, or an editor. What is appended later then stands
        behind whole lines. Returns the number of generations whose lines are missing.
        """
        path = self.path / "metrics.jsonl"
        if not path.exists():
            return generations
        with _writing(path):
            with open_file(path) as file:
                known = file.read(min(num_bytes, path.stat().st_size))
            end = known.rfind(b"\n") + 1
            while end and not is_row_until(known[known.rfind(b"\n", 0, end - 1) + 1 : end], generations):
                end = known.rfind(b"\n", 0, end - 1) + 1
            if path.stat().st_size > end:
                os.truncate(path, end)
        return max(0, generations - known.count(b"\n", 0, end))

    def save_checkpoint(
        self,
        generation: int,
        meta: dict[str, Any],
        arrays: dict[str, NDArray[Any]],
        records: Records | None = None,
        *,
        is_all: bool = False,
    ) -> None:
        """Starts to write the checkpoint of a generation, durably and in the background. One earlier checkpoint is kept.

        Checkpoints of later generations are deleted too: they are damaged, or the run would not have gone back before them.

        Args:
            arrays: nobody may change them any more.
            records, is_all: what is added to the lineage log, or all that is in it from now on; None: there is no log.

        Raises:
            UserError: the checkpoint before, which is waited for, could not be written.
        """
        self.wait_for_checkpoint()
        meta = {**meta, "metrics_num_bytes": self._metrics_num_bytes()}
        self._saving = self._writer.submit(self._write_checkpoint, generation, meta, arrays, records, is_all)

    def is_saving(self) -> bool:
        """Return whether a checkpoint is being written. Raises UserError: the last one could not be written."""
        if self._saving and self._saving.done():
            self.wait_for_checkpoint()
        return self._saving is not None

    def wait_for_checkpoint(self) -> None:
        """Returns when no checkpoint is being written. Raises UserError: the last one could not be written."""
        while self._saving:
            # The system may deliver Ctrl-C to another thread, which does not wake this one: hence the time limit.
            if wait([self._saving], WAKE_S).done:
                done, self._saving = self._saving, None
                done.result()

    def load_checkpoint(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]], list[str]]:
        """The newest intact checkpoint, and a line for each newer one that is damaged, or gone.

        Raises:
            UserError: there is none, none is intact, or it was written by another version of evo.
        """
        lock = self.path / "lock"  # read first: a run in progress writes its checkpoint, then this
        newest = self.path / "checkpoints" / (read_file(lock).decode(errors="replace") if lock.is_file() else "")
        paths = self._checkpoints()
        damaged = [f"{newest}: gone"] if newest.suffix and paths and newest > paths[-1] else []
        for path in reversed(paths):
            try:
                return *decode_checkpoint(read_file(path, _MAX_BYTES)), damaged
            except FileNotFoundError:
                return self.load_checkpoint()  # a run in progress has just replaced it
            except OtherVersionError as error:
                raise self.other_version(error) from error
            except (CheckpointError, OSError, MemoryError) as error:
                damaged.append(f"{path}: {getattr(error, 'strerror', None) or str(error) or 'out of memory'}")
        if damaged:
            raise UserError(f"{'; '.join(damaged)}; no intact checkpoint is left")
        if self.has_begun():
            raise UserError("its checkpoints are gone; start a new run with: evo run", self.path)
        raise UserError(f"has no checkpoint yet; begin with: {command_line('resume', self.path)}", self.path)

    def config(self, overrides: tuple[str, ...] = ()) -> RunConfig:
        """The run's config with overrides.

        Raises:
            UserError: another version of evo made the run, or the config is wrong.
        """
        try:
            for path in self._checkpoints()[-1:]:
                with open_file(path) as file:
                    check_version(file.read(PREFIX_BYTES))
        except OtherVersionError as error:
            raise self.other_version(error) from error
        except (CheckpointError, OSError):
            pass  # `load_checkpoint` goes back to the one before, or says so
        return load_config(self.path / "config.yaml", overrides)

    def other_version(self, reason: object) -> UserError:
        """The error about a run of another version of evo. reason: what that version does differently."""
        try:
            maker = f"evo {read_json(self.path / 'environment.json', 'environment')['evo']}"
        except (UserError, OSError, KeyError, TypeError):
            maker = "another version of evo"
        return UserError(f"made by {maker}: {reason}; open it with that version, or start a new run with: evo run", self.path)

    def records(self, meta: dict[str, Any]) -> Records:
        """The records that the lineage log had when a checkpoint with this header was written; none if there was no log.

        Raises:
            UserError: the log is damaged or gone.
        """
        if "lineage" not in meta:
            return joined([])
        path = self.path / "lineage" / meta["lineage"]["file"]
        try:
            data = read_file(path, _MAX_BYTES)[: meta["lineage"]["num_bytes"]]
            if len(data) < meta["lineage"]["num_bytes"]:
                raise LineageLogError(f"cut short at {len(data)} bytes")
            return decode_log(data)
        except (LineageLogError, OSError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise UserError(f"cannot read how the elites came about: {reason}", path) from error

    def cut_records(self, meta: dict[str, Any]) -> None:
        """Cuts the lineage log back to its length when a checkpoint with this header was written."""
        known = meta.get("lineage", {"file": "", "num_bytes": 0})
        for path in self._logs():
            with _writing(path):
                if path.name > known["file"]:
                    path.unlink()
                elif path.name == known["file"] and path.stat().st_size > known["num_bytes"]:
                    os.truncate(path, known["num_bytes"])

    def save_quarantine(self, key: str, record: dict[str, Any]) -> None:
        """Writes quarantine/KEY.json, about a program that could not be compiled or run. An existing file is kept."""
        folder = self.path / "quarantine"
        with _writing(folder):
            folder.mkdir(exist_ok=True)
        if not (folder / f"{key}.json").exists():
            _write(folder / f"{key}.json", (json.dumps(record, indent=1) + "\n").encode())

    def quarantine(self) -> dict[str, dict[str, Any]]:
        """The records of `save_quarantine` by key. Raises UserError: one of them is damaged."""
        records = {}
        for path in sorted((self.path / "quarantine").glob("*.json")):
            try:
                records[path.stem] = json.loads(read_file(path))
            except (ValueError, OSError) as error:
                raise UserError(f"damaged: {error}; delete it, and its program is tried again", path) from error
        return records

    def save_archive(self, arrays: Mapping[str, Any]) -> None:
        """Writes archive.npz, the elites as plain arrays for `numpy.load`."""
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)
        _write(self.path / "archive.npz", buffer.getvalue())

    def metrics(self) -> list[dict[str, Any]]:
        """The rows of metrics.jsonl, without a last line that a crash cut off.

        Raises:
            UserError: another line is damaged, or lacks a number that plots need.
        """
        path = self.path / "metrics.jsonl"
        if not path.exists():
            return []
        rows = []
        try:
            lines = read_file(path, _MAX_BYTES).splitlines(keepends=True)
        except (OSError, MemoryError) as error:
            raise UserError(f"cannot read it: {getattr(error, 'strerror', None) or 'out of memory'}", path) from error
        for number, line in enumerate(lines, 1):
            if line.endswith(b"\n"):
                rows.append(row_of(line, f"{path}:{number}"))
        return rows

    def task_digest(self) -> str:
        """The digest of the task's files when the run began. Raises UserError: environment.json is damaged or gone."""
        path = self.path / "environment.json"
        facts = read_json(path, "run's environment")
        if not (isinstance(facts, dict) and isinstance(facts.get("task_digest"), str)):
            raise UserError("damaged: no text 'task_digest'", path)
        return str(facts["task_digest"])

    def last_metrics(self) -> dict[str, Any] | None:
        """The last whole row of metrics.jsonl, without reading the rows before; None if there is none.

        Raises:
            UserError: it is damaged.
        """
        path = self.path / "metrics.jsonl"
        if not path.exists():
            return None
        with os_errors_as(f"{path}: cannot read"), open_file(path) as file:
            end = file.seek(0, os.SEEK_END)
            tail = b""
            while end and tail.count(b"\n") < 2 and len(tail) < _MAX_ROW_BYTES:
                start = max(0, end - _TAIL_BYTES)
                file.seek(start)
                tail = file.read(end - start) + tail
                end = start
        lines = tail[: tail.rfind(b"\n") + 1].splitlines()
        return row_of(lines[-1], f"{path}: last line") if lines else None

    def is_running(self) -> bool:
        """Return whether a process has the run open for writing. Asks by a shared lock, which it gives back at once."""
        path = self.path / "lock"
        if not path.exists():
            return False
        with os_errors_as(f"{path}: cannot read"), open_file(path) as lock:
            return not try_lock(lock, is_shared=True)

    def plot_path(self, name: str) -> Path:
        """The path of a picture of this run, in a folder that exists."""
        (self.path / "plots").mkdir(exist_ok=True)
        return self.path / "plots" / name

    def close(self) -> None:
        """Waits for the checkpoint that is being written, closes the files and unlocks the folder.

        Raises:
            UserError: the checkpoint could not be written.
        """
        try:
            self.wait_for_checkpoint()
        finally:
            self._writer.shutdown()
            for file in (self._metrics, self._lock):
                if file is not None:
                    file.close()
            self._metrics = self._lock = None

    def __exit__(self, *_: object) -> None:
        self.close()

    def _checkpoints(self) -> list[Path]:
        return sorted((self.path / "checkpoints").glob("*.ckpt"))

    def _metrics_num_bytes(self) -> int:
        if self._metrics is None:
            path = self.path / "metrics.jsonl"
            return path.stat().st_size if path.exists() else 0
        return self._metrics.tell()

    def _write_checkpoint(
        self,
        generation: int,
        meta: dict[str, Any],
        arrays: dict[str, NDArray[Any]],
        records: Records | None,
        is_all: bool,
    ) -> None:
        if self._metrics is not None:  # the checkpoint counts on its rows
            with _writing(self.path / "metrics.jsonl"):
                os.fsync(self._metrics.fileno())
        if records is not None:
            log = self._write_records(generation, records, is_all)
            meta = {**meta, "lineage": {"file": log.name, "num_bytes": log.stat().st_size}}
        newest = self.path / "checkpoints" / f"{generation:08d}.ckpt"
        _write(newest, encode_checkpoint(meta, arrays))
        if self._lock:
            self._lock.seek(0)
            self._lock.write(newest.name)
            self._lock.flush()
        paths = self._checkpoints()
        num_valid = paths.index(newest) + 1
        with _writing(self.path / "checkpoints"):
            for path in paths[: max(0, num_valid - CHECKPOINTS_KEPT)] + paths[num_valid:]:
                path.unlink()
            # A checkpoint begins one log at most, so those that are kept need no more logs than there are of them.
            for path in self._logs()[:-CHECKPOINTS_KEPT]:
                path.unlink()

    def _write_records(self, generation: int, records: Records, is_all: bool) -> Path:
        """Brings the lineage log up to date, durably: appends to it, or begins another one. Returns its path."""
        logs = self._logs()
        block = encode_block(records) if len(records) else b""
        if is_all or not logs:
            path = self.path / "lineage" / f"{generation:08d}.log"
            with _writing(path):
                path.parent.mkdir(exist_ok=True)
            _write(path, [MAGIC, block])
            for later in self._logs():  # the run went back before them
                if later > path:
                    later.unlink()
            return path
        with _writing(logs[-1]), logs[-1].open("ab") as file:
            file.write(block)
            file.flush()
            os.fsync(file.fileno())
        return logs[-1]

    def _logs(self) -> list[Path]:
        return sorted((self.path / "lineage").glob("*.log"))


def _write(path: Path, content: bytes | Iterable[bytes | memoryview]) -> None:
    with _writing(path):
        write_atomically(path, content, durable=True)


def _writing(path: Path) -> AbstractContextManager[None]:
    """Reports a full disk or a missing permission as the user's error."""
    return os_errors_as(f"{path}: cannot write")
