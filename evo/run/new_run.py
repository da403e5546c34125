"""The folder of a new run: it is filled under a hidden name, so that a kill leaves a run that can go on, or none.

Owns names of run folders, and what killed starts leave. `evo.run.run_dir` owns the folder's content.
"""

import errno
import os
import secrets
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import IO

from evo.errors import UserError, os_errors_as
from evo.run.run_dir import RunDir, open_lock
from evo.storage.files import PARTIAL_SUFFIX, open_file, try_lock

_TAKEN = (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR)


def run_paths(runs: Path, name: str, seed: int) -> Iterator[Path]:
    """Yield folders for a new run: `runs/name/<time>-seed<seed>`, then the same with a number behind it."""
    stem = f"{time.strftime('%Y%m%d-%H%M%S')}-seed{seed}"
    return (runs / name / (stem if number == 1 else f"{stem}-{number}") for number in count(1))


@contextmanager
def new_run_dir(parent: Path) -> Iterator[RunDir]:
    """A run folder to be filled, hidden in `parent` until `take_name`. Removes the leftovers of killed starts there.

    If the context fails, the folder is removed with those made above it.

    Raises:
        UserError: it cannot be made.
    """
    above = [path for path in (parent, *parent.parents) if not path.exists()]
    try:
        with os_errors_as(f"{parent}: cannot create the run folder"):
            parent.mkdir(parents=True, exist_ok=True)
            _remove_abandoned(parent)
            folder, lock = _hidden_folder(parent)
        run_dir = RunDir(folder, writable=True, lock=lock)
        try:
            yield run_dir
        except BaseException:
            with suppress(UserError):
                run_dir.close()
            shutil.rmtree(run_dir.path, ignore_errors=True)
            raise
    except BaseException:
        for path in above:
            with suppress(OSError):  # another run may lie there by now
                path.rmdir()
        raise


def take_name(run_dir: RunDir, paths: Iterable[Path]) -> None:
    """Moves a new run, which has its config, to the first of the paths where there is nothing.

    Raises:
        UserError: something exists at each of them, or the system refuses.
    """
    run_dir.wait_for_checkpoint()
    for path in paths:
        if path.exists():
            continue
        try:
            run_dir.path = run_dir.path.rename(path)
        except OSError as error:
            if error.errno in _TAKEN:  # by another start just now
                continue
            raise UserError(f"cannot create the run folder: {error.strerror}", path) from error
        return
    raise UserError("exists already; a run is never written over", path)


def _hidden_folder(parent: Path) -> tuple[Path, IO[str]]:
    """A new folder with one for checkpoints, and its lock, which this process holds. If that fails, nothing is left."""
    while True:
        folder = parent / f".run.{secrets.token_hex(8)}{PARTIAL_SUFFIX}"
        folder.mkdir()
        try:
            lock = open_lock(folder)
            if try_lock(lock) and (folder / "lock").exists():
                (folder / "checkpoints").mkdir()
                return folder, lock
            lock.close()
        except FileNotFoundError:  # another start has removed it: it was not locked yet
            continue
        except (OSError, UserError):
            shutil.rmtree(folder, ignore_errors=True)
            raise


def _remove_abandoned(parent: Path) -> None:
    """Removes hidden folders whose lock nobody holds."""
    if os.environ.get("EVO_NO_LOCK"):
        return  # without locks, abandoned folders cannot be recognised
    for folder in parent.glob(f".*{PARTIAL_SUFFIX}"):
        with suppress(OSError):
            try:
                with open_file(folder / "lock") as lock:
                    if try_lock(lock, is_shared=True):
                        shutil.rmtree(folder)
            except FileNotFoundError:
                folder.rmdir()  # if it is still empty
