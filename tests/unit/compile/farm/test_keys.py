"""Keys of a farm: which addresses need them, who can read them, who is let in."""

import os
import re
import socket
import stat
from types import SimpleNamespace

import pytest
import zmq

from evo.compile.farm import keys
from evo.compile.farm.keys import RunKeys, WorkerKeys, check_address, make_keys
from evo.errors import UserError


def test_an_address_of_this_machine_needs_no_keys():
    for host in ("127.0.0.1:5711", "127.9.9.9:1", "localhost:5711", "[::1]:5711", "127.0.0.1:0"):
        check_address(f"tcp://{host}", "--connect", has_keys=False)


@pytest.mark.parametrize("host", ["0.0.0.0:5711", "*:5711", "192.0.2.1:5711", "[::]:5711", "run.example.org:5711", "eth0:1"])
def test_any_other_address_needs_keys_and_the_refusal_says_how_to_make_them(host):
    address = f"tcp://{host}"
    check_address(address, "--connect", has_keys=True)
    with pytest.raises(
        UserError, match=re.escape(f"--connect: {address} is not on this machine") + ".*: evo worker --new-keys KEYS"
    ):
        check_address(address, "--connect", has_keys=False)


NO_ADDRESSES = ["", "127.0.0.1:5711", "udp://127.0.0.1:1", "tcp://127.0.0.1", "tcp://:1", "tcp://a b:1"]


@pytest.mark.parametrize("address", [*NO_ADDRESSES, "tcp://127.0.0.1:65536", "tcp://::1:5711"])
def test_what_is_no_address_is_refused(address):
    with pytest.raises(UserError, match=r"write it as tcp://127\.0\.0\.1:5711"):
        check_address(address, "listen", has_keys=True)


def mode(path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_keys_fit_each_other_and_only_their_owner_can_read_them(tmp_path):
    previous = os.umask(0)
    try:
        run, worker = make_keys(tmp_path / "keys", "worker")
    finally:
        os.umask(previous)
    assert (run, worker) == (tmp_path / "keys" / "run", tmp_path / "keys" / "worker")
    files = {path.relative_to(tmp_path / "keys").as_posix(): path for path in (tmp_path / "keys").rglob("*") if path.is_file()}
    assert set(files) == {"run/secret.key", "run/workers/worker.public", "worker/secret.key", "worker/run.public"}
    assert {mode(path) for path in files.values()} == {0o600}
    assert {mode(folder) for folder in (tmp_path / "keys", run, worker)} == {0o700}
    theirs, ours = WorkerKeys.read(worker), RunKeys(run)
    assert theirs.run == zmq.curve_public(ours.secret)
    assert theirs.secret != ours.secret
    assert ours.look() == {zmq.curve_public(theirs.secret).decode(): "worker"}


def test_each_worker_has_its_own_key_for_the_same_run(tmp_path):
    run, first = make_keys(tmp_path, "worker")
    secret = (run / "secret.key").read_bytes()
    _, second = make_keys(tmp_path, "arm-1")
    assert (run / "secret.key").read_bytes() == secret
    one, two = WorkerKeys.read(first), WorkerKeys.read(second)
    assert one.run == two.run and one.secret != two.secret
    publics = [zmq.curve_public(keys.secret).decode() for keys in (one, two)]
    assert RunKeys(run).look() == dict(zip(publics, ["worker", "arm-1"], strict=True))


def test_existing_keys_are_kept(tmp_path):
    make_keys(tmp_path, "worker")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(UserError, match="worker: exists; give another worker another name"):
        make_keys(tmp_path, "worker")
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_keys_that_were_cut_off_are_made_anew(tmp_path, monkeypatch):
    """Cut off at each step in turn, as by a full disk, the next attempt makes good keys of the same name."""
    original = keys.write_atomically
    monkeypatch.setattr(keys, "write_atomically", lambda *args, **options: (next(left), original(*args, **options)))
    num_steps = 0
    while True:
        folder, left = tmp_path / str(num_steps), iter(range(num_steps))
        try:
            make_keys(folder, "worker")
            break
        except StopIteration:
            num_steps += 1
        left = iter(range(100))
        run, worker = make_keys(folder, "worker")
        ours, theirs = RunKeys(run), WorkerKeys.read(worker)
        assert ours.look() == {zmq.curve_public(theirs.secret).decode(): "worker"}
        assert theirs.run == zmq.curve_public(ours.secret)
    assert num_steps == 4


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 41, b"\xff" * 40, b'"' * 40, b"#" * 40])
def test_a_file_that_is_no_key_is_refused_by_name(tmp_path, content):
    run, _ = make_keys(tmp_path, "worker")
    (run / "secret.key").write_bytes(content)
    with pytest.raises(UserError, match=f"{run}/secret.key: not a key"):
        RunKeys(run)


def test_a_secret_key_that_others_can_read_is_refused(tmp_path):
    run, worker = make_keys(tmp_path, "worker")
    for folder, read in ((run, RunKeys), (worker, WorkerKeys.read)):
        (folder / "secret.key").chmod(0o640 if folder == run else 0o604)
        with pytest.raises(UserError, match=f"others can read this secret key; close it with: chmod 600 {folder}/secret.key"):
            read(folder)


def test_a_group_may_read_a_secret_key_only_on_a_read_only_file_system(tmp_path, monkeypatch):
    """As the files that Kubernetes mounts with `fsGroup`."""
    run, _ = make_keys(tmp_path, "worker")
    (run / "secret.key").chmod(0o440)
    with pytest.raises(UserError, match="others can read this secret key"):
        RunKeys(run)
    monkeypatch.setattr(keys.os, "statvfs", lambda _: SimpleNamespace(f_flag=os.ST_RDONLY))
    assert RunKeys(run).look()
    (run / "secret.key").chmod(0o444)
    with pytest.raises(UserError, match="others can read this secret key"):
        RunKeys(run)


@pytest.mark.parametrize("folder", ["run", "run/workers", "worker"])
def test_a_folder_that_others_may_write_is_refused(tmp_path, folder):
    run, worker = make_keys(tmp_path, "worker")
    (tmp_path / folder).chmod(0o702)
    with pytest.raises(UserError, match=f"{tmp_path / folder}: others can write this folder of keys; close it with: chmod 700"):
        WorkerKeys.read(worker) if folder == "worker" else RunKeys(run)


def test_a_broken_file_keeps_no_other_worker_out_and_is_told_once(tmp_path, caplog, monkeypatch):
    run, _ = make_keys(tmp_path, "worker")
    (run / "workers" / "a.public").write_text("not a key")
    ours = RunKeys(run)
    for _ in range(2):
        assert list(ours.look().values()) == ["worker"]
        monkeypatch.setattr(keys, "LOOK_S", 0.0)
    assert [record.message for record in caplog.records] == [
        (
            f"farm: {run}/workers/a.public: not a key of 40 characters; make keys with: evo worker --new-keys KEYS; "
            "its worker is refused"
        )
    ]


def test_files_are_read_again_if_the_folder_has_changed_or_after_a_while(tmp_path, monkeypatch):
    """However many strangers ask; and a key whose content came after its file is found, of which the folder does not tell."""
    run, _ = make_keys(tmp_path, "worker")
    file = run / "workers" / "worker.public"
    content = file.read_bytes()
    file.write_bytes(b"")
    now_s = 0.0
    monkeypatch.setattr(keys.time, "monotonic", lambda: now_s)
    ours = RunKeys(run)
    assert not ours.look()
    file.write_bytes(content)
    assert not ours.look()
    now_s = keys.LOOK_S
    assert list(ours.look().values()) == ["worker"]
    file.unlink()
    os.utime(file.parent, ns=(1, 1))
    assert not ours.look()


def test_a_server_file_has_the_address_that_other_machines_call(tmp_path):
    file = tmp_path / "server"
    assert keys.read_server_file(file) is None
    for address, elsewhere in (("tcp://0.0.0.0:7", f"tcp://{socket.gethostname()}:7"), ("tcp://127.0.0.1:7",) * 2):
        keys.write_server_file(file, address)
        assert keys.read_server_file(file) == elsewhere


def test_missing_keys_are_refused_with_the_command_that_makes_them(tmp_path):
    with pytest.raises(UserError, match="No such file or directory; make keys with: evo worker --new-keys KEYS"):
        RunKeys(tmp_path)
