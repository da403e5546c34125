"""The cache: what was put is what is got, or nothing; bounded; shared among processes."""

import multiprocessing
import os

import pytest

from evo.errors import UserError
from evo.storage.disk_cache import DiskCache


def files(folder) -> list:
    return sorted(path for path in folder.iterdir() if path.suffix == ".compiled")


def test_any_cache_on_the_folder_gets_what_was_put(tmp_path):
    cache = DiskCache(tmp_path / "made" / "here")
    contents = {f"{i:064x}": os.urandom(i * 100) for i in range(5)}
    for key, content in contents.items():
        assert cache.get(key) is None
        cache.put(key, b"older")
        cache.put(key, content)
    for reader in (cache, DiskCache(tmp_path / "made" / "here")):
        assert {key: reader.get(key) for key in contents} == contents


DAMAGE = {
    "cut": lambda whole: whole[:-1],
    "empty": lambda _: b"",
    "flipped": lambda whole: whole[:99] + bytes([whole[99] ^ 1]) + whole[100:],
    "longer": lambda whole: whole + b"x",
    "another magic": lambda whole: b"E" + whole[1:],
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_corrupt_entry_is_deleted_and_can_be_put_again(tmp_path, damage):
    cache = DiskCache(tmp_path)
    cache.put("a", b"content" * 100)
    (path,) = files(tmp_path)
    path.write_bytes(DAMAGE[damage](path.read_bytes()))
    assert cache.get("a") is None
    assert not path.exists()
    cache.put("a", b"content" * 100)
    assert cache.get("a") == b"content" * 100


def test_the_folder_stays_within_its_bound_and_keeps_the_most_recently_used(tmp_path):
    cache = DiskCache(tmp_path, max_bytes=10_000)
    for i in range(60):
        cache.put(f"{i}", bytes(950))
        for path in files(tmp_path):  # the next put is later by the clock of the file system, however coarse that is
            os.utime(path, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns - 10**9))
        assert cache.get("0") is not None, "used again each time"
        assert sum(path.stat().st_size for path in files(tmp_path)) <= 10_000
    kept = [i for i in range(60) if cache.get(f"{i}") is not None]
    assert kept == [0, *range(60 - len(kept) + 1, 60)]
    assert len(kept) == 10
    cache.put("more than the bound", bytes(20_000))
    assert cache.get("more than the bound") is None


def test_old_half_written_files_of_killed_processes_are_removed(tmp_path):
    old, new = tmp_path / "old.partial", tmp_path / "new.partial"
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    other = tmp_path / "README"
    other.write_text("not ours")
    DiskCache(tmp_path, max_bytes=100).put("a", b"x")
    assert not old.exists()
    assert new.exists()
    assert other.exists()


def test_a_folder_that_cannot_be_used_is_one_line(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(UserError, match=f"{file}: cannot be used as cache: File exists"):
        DiskCache(file)
    cache = DiskCache(tmp_path / "folder")
    (tmp_path / "folder" / "a.compiled").mkdir()
    with pytest.raises(UserError, match="folder: cannot be used as cache: Is a directory"):
        cache.get("a")
    with pytest.raises(UserError, match="folder: cannot be used as cache: Is a directory"):
        cache.put("a", b"content")
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["a.compiled"], "nothing half-written stays"


def use(folder: str, seed: int) -> None:
    """Puts and gets keys that other processes put and evict too; wrong content ends the process with an error."""
    cache = DiskCache(folder, max_bytes=20_000)
    for i in range(300):
        key = (i * 7 + seed) % 40
        content = cache.get(str(key))
        assert content in (None, bytes([key]) * 1000)
        if content is None:
            cache.put(str(key), bytes([key]) * 1000)


def test_processes_share_a_folder(tmp_path):
    # Forked: no CUDA is loaded, and no other thread holds a lock that `use` needs.
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=use, args=(str(tmp_path), seed)) for seed in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * 4
    assert not list(tmp_path.glob("*.partial"))
