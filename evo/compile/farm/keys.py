"""How run and workers of a farm find and know each other: addresses, which of them need keys, and folders of keys.

Owns the server file, and the names and modes of the keys':

    KEYS/run/secret.key            the run's secret key, mode 600
    KEYS/run/workers/NAME.public   a worker that may work for the run; delete the file to cut it off
    KEYS/run/workers/NAME.banned   a worker that has lied
    KEYS/NAME/secret.key           the worker's secret key, mode 600
    KEYS/NAME/run.public           the run that it works for

A key is 32 bytes, written as 40 characters of Z85. Knows nothing of sockets.
"""

from __future__ import annotations

import grp
import ipaddress
import json
import logging
import os
import pwd
import re
import socket
import struct
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import zmq
from zmq.utils import z85

from evo.errors import UserError, command_line, os_errors_as
from evo.storage.files import PARTIAL_SUFFIX, read_file, write_atomically
from evo.storage.json_file import read_json

RUN = "run"
LOOK_S = 5.0  # after which files are read again: a folder's time misses some changes
_log = logging.getLogger(__name__)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_ADDRESS = re.compile(r"tcp://(\[[0-9A-Fa-f:.%]+\]|[^\[\]:/\s]+):([0-9]{1,5})")


class RunKeys:
    """A run's secret key, and the workers that it lets in: those with a file.

    Attributes:
        workers: public key (40 characters) -> name, at the last `look`.

    Raises:
        UserError: the secret key is missing, is not a key, or is open to others; or others can write the folders.
    """

    def __init__(self, folder: Path):
        self._folder = folder / "workers"
        self._broken: set[str] = set()
        self._banned: set[str] = set()
        self._seen = (0, float("-inf"))  # when the folder had changed last, and when it was read
        self.workers: dict[str, str] = {}
        self.secret = _read_secret(folder / "secret.key")
        if self._folder.exists():
            _check_folder(self._folder)
        self.look()

    def look(self) -> None:
        """Reads the files again if they may have changed. Those that are not keys are told once."""
        changed_ns, now_s = 0, time.monotonic()
        with suppress(OSError):
            changed_ns = self._folder.stat().st_mtime_ns
        if changed_ns == self._seen[0] and now_s - self._seen[1] < LOOK_S:
            return
        self._seen = changed_ns, now_s
        found: dict[str, str] = {}
        for path in sorted(self._folder.glob("*.public")):
            try:
                found[_read_key(path).decode()] = path.stem
            except UserError as error:
                if path.name not in self._broken:
                    self._broken.add(path.name)
                    _log.warning("farm: %s; its worker is refused", error)
        self.workers = {key: name for key, name in found.items() if key not in self._banned}

    def ban(self, public: str) -> None:
        """Revokes a worker's access: in this process, and in later ones if its file can be renamed."""
        self._banned.add(public)
        self.workers = {key: name for key, name in self.workers.items() if key != public}
        for path in self._folder.glob("*.public"):
            with suppress(OSError, UserError):
                if _read_key(path).decode() == public:
                    path.rename(path.with_suffix(".banned"))


@dataclass(frozen=True)
class WorkerKeys:
    """A worker's secret key, and the public key of the run that it works for."""

    secret: bytes
    run: bytes

    @classmethod
    def read(cls, folder: Path) -> WorkerKeys:
        """The keys in a worker's folder. Raises UserError: a key is missing or is none, or others can read the secret key."""
        return cls(_read_secret(folder / "secret.key"), _read_key(folder / "run.public"))


def check_address(address: str, key: str, *, has_keys: bool) -> None:
    """Refuses what is not an address, and one beyond this machine without keys. `key` names it in messages.

    Raises:
        UserError: it is refused.
    """
    match = _ADDRESS.fullmatch(address)
    if not match or int(match[2]) >= 1 << 16:
        raise UserError(f"{key}: '{address}' is not an address; write it as tcp://127.0.0.1:5711")
    if not has_keys and not _is_loopback(match[1].strip("[]")):
        raise UserError(
            f"{key}: {address} is not on this machine, so run and workers need keys to know each other; make them with: "
            "evo keys new KEYS; then the run takes evaluation.farm.keys=KEYS/run, and a worker --keys KEYS/worker"
        )


def address_elsewhere(address: str) -> str:
    """The address of a run as workers of other machines call it."""
    for anywhere in ("//0.0.0.0:", "//[::]:"):
        address = address.replace(anywhere, f"//{socket.gethostname()}:")
    return address


def write_server_file(path: Path, address: str) -> None:
    """Writes where a run listens. Raises UserError: the file cannot be written."""
    with os_errors_as(f"evaluation.farm.server_file: {path}: cannot write it"):
        write_atomically(path, json.dumps({"address": address}).encode() + b"\n")


def read_server_file(path: Path) -> str | None:
    """Where a run listens; None: there is no such file yet. Raises UserError: the file says something else."""
    try:
        content = read_json(path, "server file")
    except UserError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        raise
    address = content.get("address") if isinstance(content, dict) else None
    if not isinstance(address, str):
        raise UserError(f"{path}: not a server file, which a run writes: evaluation.farm.server_file")
    return address


def remove_server_file(path: Path, address: str) -> None:
    """Removes the file of a run that ends, unless another one has written its own address since."""
    with suppress(OSError, UserError):
        if read_server_file(path) == address:
            path.unlink()


def make_keys(folder: Path, name: str) -> list[Path]:
    """Makes keys for a worker, and for the run if it has none yet. Existing keys are kept.

    Returns:
        the folders of the run and of the worker.

    Raises:
        UserError: the worker has keys, its name is not a file name, or a file cannot be written.
    """
    if not _NAME.fullmatch(name) or name == RUN:
        raise UserError(f"--worker {name}: write a name of letters, digits and .-_, other than '{RUN}'")
    run, worker = folder / RUN, folder / name
    if worker.exists():
        raise UserError(
            f"{worker}: exists; give another worker another name: {command_line('keys', 'new', folder)} --worker NAME"
        )
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not run.exists():
            _make_folder(run, {"secret.key": zmq.curve_keypair()[1]})
        run_public = zmq.curve_public(_read_secret(run / "secret.key"))
        public, secret = zmq.curve_keypair()
        # The run learns the key first: whoever sees the worker's folder can use it.
        (run / "workers").mkdir(mode=0o700, exist_ok=True)
        public_path = run / "workers" / f"{name}.public"
        write_atomically(public_path, public + b"\n", durable=True)
        public_path.chmod(0o600)
        _make_folder(worker, {"secret.key": secret, "run.public": run_public})
    except OSError as error:
        raise UserError(f"{error.filename or folder}: cannot write the keys: {error.strerror}") from error
    return [run, worker]


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _make_folder(path: Path, keys: Mapping[str, bytes]) -> None:
    """Makes a folder of keys that only its owner can read. It appears as a whole."""
    with tempfile.TemporaryDirectory(prefix=f".{path.name}.", suffix=PARTIAL_SUFFIX, dir=path.parent) as made:
        partial = Path(made, path.name)
        partial.mkdir(mode=0o700)
        for name, key in keys.items():
            write_atomically(partial / name, key + b"\n", durable=True)
            (partial / name).chmod(0o600)
        partial.rename(path)


def _read_secret(path: Path) -> bytes:
    key, status = _read_key(path), path.stat()
    if status.st_mode & 0o037 or (status.st_mode & 0o040 and not _is_own_group(status.st_gid)):
        raise UserError(f"{path}: others can read this secret key; close it with: chmod 600 {path}")
    _check_folder(path.parent)
    return key


def _check_folder(folder: Path) -> None:
    """Refuses a folder in which others could put keys of their own."""
    status = folder.stat()
    is_open = status.st_mode & 0o002 or (status.st_mode & 0o020 and not _is_own_group(status.st_gid))
    is_read_only = os.statvfs(folder).f_flag & os.ST_RDONLY  # as a mounted secret of Kubernetes is
    if (is_open or status.st_uid not in (0, os.geteuid())) and not is_read_only:
        raise UserError(f"{folder}: others can write this folder of keys; close it with: chmod 700 {folder}")


def _is_own_group(group: int) -> bool:
    """Whether this process is in a group, and no other user but root."""
    with suppress(KeyError):  # groups of Kubernetes have no entry
        if {*grp.getgrgid(group).gr_mem} - {_user_name(), "root"}:
            return False
    others = (user.pw_uid for user in pwd.getpwall() if user.pw_gid == group)
    return group in (os.getegid(), *os.getgroups()) and not {*others} - {0, os.geteuid()}


def _user_name() -> str | None:
    with suppress(KeyError):  # nor have its users
        return pwd.getpwuid(os.geteuid()).pw_name
    return None


def _read_key(path: Path) -> bytes:
    try:
        key = read_file(path).strip()
    except OSError as error:
        raise UserError(f"{path}: cannot read the key: {error.strerror}; make keys with: evo keys new KEYS") from error
    try:
        is_key = len(key) == 40 and len(z85.decode(key)) == 32
    except (ValueError, KeyError, struct.error):
        is_key = False
    if not is_key:
        raise UserError(f"{path}: not a key of 40 characters; make keys with: evo keys new KEYS")
    return key
