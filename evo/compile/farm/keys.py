"""Addresses and keys of a farm's run and workers: addresses, which of them need keys, and folders of keys.

Owns the server file, and names, form and modes of the keys, which docs/farm.md lists. Knows nothing of sockets.
"""

import logging
import os
import re
import socket
import struct
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Self

import zmq
from zmq.utils import z85

from evo.errors import UserError, command_line, os_errors_as
from evo.storage.files import read_file, write_atomically

RUN = "run"
LOOK_S = 5.0  # after which files are read again: a folder's time misses some changes
_log = logging.getLogger(__name__)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_ADDRESS = re.compile(r"tcp://(\[[0-9A-Fa-f:.%]+\]|[^\[\]:/\s]+):([0-9]{1,5})")
_LOOPBACK = re.compile(r"localhost|\[::1\]|127(\.(25[0-5]|2[0-4]\d|1?\d?\d)){3}")


class RunKeys:
    """A run's secret key, and the workers that it admits. Raises UserError: no key there, or one that is open to others."""

    def __init__(self, folder: Path):
        self.secret = _read_secret(folder / "secret.key")
        self._folder = folder / "workers"
        if self._folder.exists():
            _check_mode(self._folder)
        self._workers: dict[str, str] = {}
        self._broken: set[Path] = set()
        self._seen = (0, -LOOK_S)  # when the folder had changed last, and when it was read

    def look(self) -> dict[str, str]:
        """The workers, now: public key (40 characters) -> name. A line names each file that is not a key, once."""
        changed_ns, now_s = 0, time.monotonic()
        with suppress(OSError):
            changed_ns = self._folder.stat().st_mtime_ns
        if changed_ns != self._seen[0] or now_s - self._seen[1] >= LOOK_S:
            self._seen, self._workers = (changed_ns, now_s), {}
            for path in sorted(self._folder.glob("*.public")):
                try:
                    self._workers[_read_key(path).decode()] = path.stem
                except UserError as error:
                    if path not in self._broken:
                        _log.warning("farm: %s; its worker is refused", error)
                    self._broken.add(path)
        return self._workers


class WorkerKeys(NamedTuple):
    """A worker's secret key, and the public key of the run that it works for."""

    secret: bytes
    run: bytes

    @classmethod
    def read(cls, folder: Path) -> Self:
        """The keys in a worker's folder. Raises UserError: one is missing, is not a key, or is open to others."""
        return cls(_read_secret(folder / "secret.key"), _read_key(folder / "run.public"))


def check_address(address: str, key: str, *, has_keys: bool) -> None:
    """Raises UserError: not an address, or one beyond this machine without keys. `key` names it in messages."""
    match = _ADDRESS.fullmatch(address)
    if not match or int(match[2]) >= 1 << 16:
        raise UserError(f"'{address}' is not an address; write it as tcp://127.0.0.1:5711", key)
    if not has_keys and not _LOOPBACK.fullmatch(match[1]):
        raise UserError(
            f"{address} is not on this machine, so run and workers need keys to know each other; make them with: "
            "evo worker --new-keys KEYS; then the run takes evaluation.farm.keys=KEYS/run, and a worker --keys KEYS/worker",
            key,
        )


def write_server_file(path: Path, address: str) -> None:
    """Tells workers of other machines where a run listens. Raises UserError: the file cannot be written."""
    for anywhere in ("//0.0.0.0:", "//[::]:"):
        address = address.replace(anywhere, f"//{socket.gethostname()}:")
    with os_errors_as(f"evaluation.farm.server_file: {path}: cannot write it"):
        write_atomically(path, address.encode() + b"\n")


def read_server_file(path: Path) -> str | None:
    """The address in a server file; None: there is no such file yet. Raises UserError: it cannot be read."""
    with os_errors_as(f"{path}: cannot read the server file"), suppress(FileNotFoundError):
        return read_file(path).decode(errors="replace").strip()
    return None


def make_keys(folder: Path, name: str) -> list[Path]:
    """Makes keys for a worker, and for the run if it has none; the folders of both. Raises UserError: it cannot, or may not."""
    if not _NAME.fullmatch(name) or name == RUN:
        raise UserError(f"--name {name}: write a name of letters, digits and .-_, other than '{RUN}'")
    run, worker = folder / RUN, folder / name
    if (worker / "secret.key").exists():
        again = f"{command_line('worker', '--new-keys', folder)} --name NAME"
        raise UserError(f"exists; give another worker another name: {again}", worker)
    try:
        if not (run / "secret.key").exists():
            _write_key(run / "secret.key", zmq.curve_keypair()[1])
        run_public = zmq.curve_public(_read_secret(run / "secret.key"))
        public, secret = zmq.curve_keypair()
        _write_key(run / "workers" / f"{name}.public", public)  # the run learns the key first, so that its owner can use it
        _write_key(worker / "run.public", run_public)
        _write_key(worker / "secret.key", secret)
    except OSError as error:
        raise UserError(f"cannot write the keys: {error.strerror}", error.filename or folder) from error
    return [run, worker]


def _write_key(path: Path, key: bytes) -> None:
    """Writes a key, in a folder that only its owner can read."""
    for folder in (path.parent.parent, path.parent):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_atomically(path, key + b"\n", durable=True)
    path.chmod(0o600)


def _read_secret(path: Path) -> bytes:
    key = _read_key(path)
    _check_mode(path)
    _check_mode(path.parent)
    return key


def _check_mode(path: Path) -> None:
    """Refuses a secret key that others can read, and a folder in which they could put keys of their own."""
    status, is_folder = path.stat(), path.is_dir()
    is_read_only = os.statvfs(path).f_flag & os.ST_RDONLY  # as a secret that Kubernetes mounts, which a group may read
    if is_folder and not is_read_only and (status.st_mode & 0o022 or status.st_uid not in (0, os.geteuid())):
        raise UserError(f"others can write this folder of keys; close it with: chmod 700 {path}", path)
    if not is_folder and status.st_mode & (0o037 if is_read_only else 0o077):
        raise UserError(f"others can read this secret key; close it with: chmod 600 {path}", path)


def _read_key(path: Path) -> bytes:
    try:
        key = read_file(path).strip()
    except OSError as error:
        raise UserError(f"cannot read the key: {error.strerror}; make keys with: evo worker --new-keys KEYS", path) from error
    is_key = False
    with suppress(ValueError, KeyError, struct.error):
        is_key = len(key) == 40 and len(z85.decode(key)) == 32
    if not is_key:
        raise UserError("not a key of 40 characters; make keys with: evo worker --new-keys KEYS", path)
    return key
