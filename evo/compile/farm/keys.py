"""The keys of a farm: which addresses need them, and the folders that they lie in.

Owns the names and modes of the files:

    KEYS/run/secret.key            the run's secret key, mode 600
    KEYS/run/workers/NAME.public   a worker that may work for the run; delete the file, and it may not
    KEYS/NAME/secret.key           the worker's secret key, mode 600
    KEYS/NAME/run.public           the run that it works for

A key is 32 bytes, written as 40 characters of Z85. Knows nothing of sockets.
"""

from __future__ import annotations

import ipaddress
import re
import struct
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import zmq
from zmq.utils import z85

from evo.errors import UserError
from evo.storage.files import PARTIAL_SUFFIX, write_atomically

RUN = "run"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_ADDRESS = re.compile(r"tcp://(\[[0-9A-Fa-f:.%]+\]|[^\[\]:/\s]+):([0-9]{1,5})")


class RunKeys:
    """A run's secret key, and the workers that it lets in: those with a file when they connect.

    Raises:
        UserError: the secret key is missing, is no key, or is open to others.
    """

    def __init__(self, folder: Path):
        self._workers = folder / "workers"
        self.secret = _read_secret(folder / "secret.key")

    def name_of(self, public: bytes) -> str | None:
        """The name of the worker with this public key, 32 bytes; None if it may not work for the run.

        Raises:
            UserError: a file of a worker is no key.
        """
        return next((path.stem for path in sorted(self._workers.glob("*.public")) if z85.decode(_read_key(path)) == public), None)


@dataclass(frozen=True)
class WorkerKeys:
    """A worker's secret key, and the public key of the run that it works for."""

    secret: bytes
    run: bytes

    @classmethod
    def read(cls, folder: Path) -> WorkerKeys:
        """The keys in a worker's folder.

        Raises:
            UserError: a key is missing or is none, or others can read the secret key.
        """
        return cls(_read_secret(folder / "secret.key"), _read_key(folder / "run.public"))


def check_address(address: str, key: str, *, has_keys: bool) -> None:
    """Refuses what is no address, and one beyond this machine without keys. `key` names it in messages.

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


def make_keys(folder: Path, name: str) -> list[Path]:
    """Makes keys for a worker, and for the run if it has none yet. Existing keys are kept.

    Returns:
        the folders of the run and of the worker.

    Raises:
        UserError: the worker has keys, its name is no file name, or a file cannot be written.
    """
    if not _NAME.fullmatch(name) or name == RUN:
        raise UserError(f"--worker {name}: write a name of letters, digits and .-_, other than '{RUN}'")
    run, worker = folder / RUN, folder / name
    if worker.exists():
        raise UserError(f"{worker}: exists; give another worker another name: evo keys new {folder} --worker NAME")
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
    key = _read_key(path)
    if path.stat().st_mode & 0o077:
        raise UserError(f"{path}: others can read this secret key; close it with: chmod 600 {path}")
    return key


def _read_key(path: Path) -> bytes:
    try:
        key = path.read_bytes().strip()
    except OSError as error:
        raise UserError(f"{path}: cannot read the key: {error.strerror}; make keys with: evo keys new KEYS") from error
    try:
        is_key = len(key) == 40 and len(z85.decode(key)) == 32
    except (ValueError, KeyError, struct.error):
        is_key = False
    if not is_key:
        raise UserError(f"{path}: not a key of 40 characters; make keys with: evo keys new KEYS")
    return key
