"""Atomic writes: a file has its old content or its new one, and nothing else is left in its folder."""

import errno
import fcntl
import os
import resource
import stat
import threading

import pytest

from evo.errors import UserError
from evo.storage.files import read_file, try_lock, write_atomically


@pytest.mark.parametrize("durable", [False, True])
def test_a_new_file_and_a_replaced_one_have_the_content(tmp_path, durable):
    path = tmp_path / "file"
    for content in (b"first", b"", b"\0" * 100_000):
        write_atomically(path, content, durable=durable)
        assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_has_the_mode_of_any_new_file(tmp_path):
    old = os.umask(0o027)
    try:
        write_atomically(tmp_path / "file", b"content")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


@pytest.fixture
def full_disk():
    """No file can grow beyond 1,000 bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.usefixtures("full_disk")
def test_a_write_that_fails_keeps_the_old_file_alone(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(OSError, match="File too large"):
        write_atomically(path, b"x" * 1001)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_parts_make_up_the_content_and_a_part_that_fails_keeps_the_old_file_alone(tmp_path):
    path = tmp_path / "file"
    write_atomically(path, iter([b"one ", memoryview(b"two "), b"", b"three"]))
    assert path.read_bytes() == b"one two three"

    def parts():
        yield b"four"
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_atomically(path, parts())
    assert path.read_bytes() == b"one two three"
    assert list(tmp_path.iterdir()) == [path]


def test_a_durable_file_is_on_disk_before_its_name_is(tmp_path, monkeypatch):
    path = tmp_path / "file"
    steps = []
    fsync, replace = os.fsync, os.replace

    def record_fsync(descriptor):
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        steps.append("sync folder" if is_folder else f"sync {os.fstat(descriptor).st_size} bytes")
        fsync(descriptor)

    def record_replace(source, target):
        steps.append(f"rename to {os.path.basename(target)}")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", record_fsync)
    monkeypatch.setattr(os, "replace", record_replace)
    write_atomically(path, b"content", durable=True)
    assert steps == ["sync 7 bytes", "rename to file", "sync folder"]
    steps.clear()
    write_atomically(path, b"content")
    assert steps == ["rename to file"]


def test_writers_of_one_file_do_not_disturb_each_other(tmp_path, monkeypatch):
    path = tmp_path / "file"
    replace = os.replace
    both_have_written = threading.Barrier(2, timeout=60)

    def replace_together(source, target):
        both_have_written.wait()
        replace(source, target)

    monkeypatch.setattr(os, "replace", replace_together)
    contents = [b"a" * 1000, b"b" * 1000]
    writers = [threading.Thread(target=write_atomically, args=(path, content)) for content in contents]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert path.read_bytes() in contents
    assert list(tmp_path.iterdir()) == [path]


def test_pipes_devices_and_files_beyond_the_bound_are_refused_without_reading(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with open(tmp_path / "large", "wb") as file:
        file.truncate(20 * 10**9)
    reasons = {"pipe": "not a regular file", "/dev/zero": "not a regular file", "large": "20,000,000,000 bytes are more than"}
    for name, reason in {**reasons, ".": "Is a directory"}.items():
        with pytest.raises(OSError, match=reason):
            read_file(tmp_path / name)


def test_a_file_takes_its_own_size_of_memory_whatever_may_be_read(tmp_path):
    (tmp_path / "small").write_bytes(b"123")
    assert read_file(tmp_path / "small", 1 << 62) == b"123"


def test_only_a_lock_of_another_process_counts_as_one(tmp_path, monkeypatch):
    with open(tmp_path / "lock", "w") as first, open(tmp_path / "lock", "w") as second:
        assert (try_lock(first), try_lock(second)) == (True, False)

        def without_locks(*_):
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

        monkeypatch.setattr(fcntl, "flock", without_locks)
        with pytest.raises(UserError, match=r"/lock: cannot lock it: No locks available; .* go on without locks: EVO_NO_LOCK=1$"):
            try_lock(second)
        monkeypatch.setenv("EVO_NO_LOCK", "1")
        assert try_lock(second)
