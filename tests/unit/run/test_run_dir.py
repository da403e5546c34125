"""evo.run.run_dir: nothing is written over, and a crash at any moment leaves something to go on with."""

import json
import os
from concurrent.futures import wait

import numpy as np
import pytest

from evo.errors import UserError
from evo.run.new_run import new_run_dir, take_name
from evo.run.run_dir import RunDir
from evo.storage.files import PARTIAL_SUFFIX

ARRAYS = {"a": np.arange(5)}


@pytest.fixture
def run_dir(tmp_path):
    with new_run_dir(tmp_path / "runs") as created:
        created.save_config("seed: 3\n")
        take_name(created, [tmp_path / "runs" / "small"])
        yield created
        created.close()


def row(generation: int, **more) -> dict:
    """A row of metrics as runs write it, as far as plots read it."""
    counts = {"generations": generation, "offspring": 8, "evaluations": 7, "duplicates": 1}
    return {**counts, "coverage": 0.5, "qd_score": -1.5, "best_objective": None, "elapsed_s": 0.25, **more}


def save(run_dir, generation, meta, arrays):
    run_dir.save_checkpoint(generation, meta, arrays)
    run_dir.wait_for_checkpoint()


def checkpoints(run_dir) -> list[str]:
    return sorted(path.name for path in (run_dir.path / "checkpoints").glob("*.ckpt"))


def damage(path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def test_the_last_two_checkpoints_are_kept(run_dir):
    for generation in (0, 9, 10, 100, 100):  # one saved again replaces its checkpoint
        save(run_dir, generation, {"generation": generation}, ARRAYS)
    assert checkpoints(run_dir) == ["00000010.ckpt", "00000100.ckpt"]
    meta, arrays, damaged = run_dir.load_checkpoint()
    assert (meta["generation"], damaged) == (100, [])
    np.testing.assert_array_equal(arrays["a"], ARRAYS["a"])


def test_a_damaged_checkpoint_of_the_future_does_not_count_among_the_two_kept(run_dir):
    """After going back, two intact ones must be there again: the damaged one goes, not the good one that is older."""
    for generation in (10, 20):
        save(run_dir, generation, {"generation": generation}, ARRAYS)
    damage(run_dir.path / "checkpoints" / "00000020.ckpt")
    save(run_dir, 11, {"generation": 11}, ARRAYS)
    assert checkpoints(run_dir) == ["00000010.ckpt", "00000011.ckpt"]


def test_files_left_over_by_a_crash_are_harmless(run_dir):
    save(run_dir, 1, {"generation": 1}, ARRAYS)
    partial = run_dir.path / "checkpoints" / f".00000002.ckpt.0123{PARTIAL_SUFFIX}"
    partial.write_bytes(b"EVOCKPT\n half of")
    assert run_dir.load_checkpoint()[0]["generation"] == 1
    save(run_dir, 2, {"generation": 2}, ARRAYS)
    assert checkpoints(run_dir) == ["00000001.ckpt", "00000002.ckpt"]
    run_dir.close()
    RunDir(run_dir.path, writable=False).close()
    assert partial.exists()
    RunDir(run_dir.path, writable=True).close()
    assert not partial.exists()


def test_a_checkpoint_that_could_not_be_written_is_told_once_by_whoever_asks_next(run_dir, monkeypatch):
    save(run_dir, 1, {"try": 1}, ARRAYS)
    fsync = os.fsync

    def full(*_):
        raise OSError(28, "No space left on device")

    for ask in (
        run_dir.wait_for_checkpoint,
        run_dir.is_saving,
        lambda: run_dir.save_checkpoint(3, {}, ARRAYS),
        run_dir.close,
    ):
        monkeypatch.setattr("os.fsync", full)
        run_dir.save_checkpoint(2, {}, ARRAYS)
        wait([run_dir._saving])
        monkeypatch.setattr("os.fsync", fsync)
        with pytest.raises(UserError, match=r"00000002\.ckpt: cannot write: No space left on device$"):
            ask()
        assert not run_dir.is_saving()
    assert checkpoints(run_dir) == ["00000001.ckpt"]
    RunDir(run_dir.path, writable=True).close()  # not locked any more


def test_metrics_are_cut_back_to_what_the_checkpoint_knew(run_dir):
    run_dir.append_metrics(row(1))
    run_dir.append_metrics(row(2))
    save(run_dir, 2, {}, ARRAYS)
    run_dir.append_metrics(row(3))
    run_dir.close()
    with open(run_dir.path / "metrics.jsonl", "ab") as file:
        file.write(b'{"generations": 4')
    with RunDir(run_dir.path, writable=True) as again:
        assert [row["generations"] for row in again.metrics()] == [1, 2, 3]
        assert again.cut_metrics(again.load_checkpoint()[0]["metrics_num_bytes"], 2) == 0
        assert [row["generations"] for row in again.metrics()] == [1, 2]
        again.append_metrics(row(3, again=True))
        save(again, 3, {}, ARRAYS)
        assert [row["generations"] for row in again.metrics()] == [1, 2, 3]
        assert again.load_checkpoint()[0]["metrics_num_bytes"] == (run_dir.path / "metrics.jsonl").stat().st_size


@pytest.mark.parametrize(
    ("left", "kept"),
    [("", []), ("half a line", []), ("one line", [1]), ("one line and a half", [1]), ("one line and garbage", [1])],
)
def test_metrics_shorter_than_the_checkpoint_knew_are_cut_to_whole_lines(run_dir, left, kept):
    for generation in (1, 2, 3):
        run_dir.append_metrics(row(generation))
    save(run_dir, 3, {}, ARRAYS)
    run_dir.close()
    path = run_dir.path / "metrics.jsonl"
    line, num_bytes = json.dumps(row(1)), path.stat().st_size
    path.write_text({"half a line": line[:9], "": ""}.get(left, line + "\n"))
    with path.open("a") as file:
        file.write({"one line and a half": line[:9], "one line and garbage": "{}\n\0\0\n"}.get(left, ""))
    with RunDir(run_dir.path, writable=True) as again:
        assert again.cut_metrics(num_bytes, 3) == 3 - len(kept)
        again.append_metrics(row(4))
        assert [each["generations"] for each in again.metrics()] == [*kept, 4]


def test_metrics_written_after_a_loss_are_cut_by_generation_not_by_length(run_dir):
    """The length that an older checkpoint knew is then too long."""
    for generation in (1, 2, 3):
        run_dir.append_metrics(row(generation))
    num_bytes = (run_dir.path / "metrics.jsonl").stat().st_size
    run_dir.close()
    (run_dir.path / "metrics.jsonl").write_text("")
    with RunDir(run_dir.path, writable=True) as again:
        again.append_metrics(row(4))
        again.append_metrics(row(5))
        assert again.cut_metrics(num_bytes, 4) == 3
        assert again.metrics() == [row(4)]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{}", "no number 'generations'"),
        ("3", "no number 'generations'"),
        (json.dumps(row(2, coverage="0.5")), "no number 'coverage'"),
        (json.dumps(row(2, qd_score=None)), "no number 'qd_score'"),
        (json.dumps({name: value for name, value in row(2).items() if name != "best_objective"}), "no number 'best_objective'"),
        ("[" * 100_000, "maximum recursion depth"),
        ("{bad", ""),
    ],
    ids=["empty", "number", "text", "null", "missing", "deep", "no JSON"],
)
def test_a_line_of_metrics_without_what_plots_need_is_named(run_dir, line, reason):
    run_dir.append_metrics(row(1))
    with open(run_dir.path / "metrics.jsonl", "a") as file:
        file.write(f"{line}\n")
    with pytest.raises(UserError, match=rf"metrics\.jsonl:2: damaged: {reason}.*; delete this line$"):
        run_dir.metrics()


@pytest.mark.parametrize("name", ["metrics.jsonl", "lock", "lineage/00000000.log"])
def test_a_pipe_in_the_place_of_a_file_is_refused_and_nobody_waits(run_dir, name):
    run_dir.close()
    (run_dir.path / "lineage").mkdir()
    (run_dir.path / name).unlink(missing_ok=True)
    os.mkfifo(run_dir.path / name)
    look = RunDir(run_dir.path, writable=False)
    ask = {"metrics.jsonl": look.last_metrics, "lock": look.is_running}
    with pytest.raises(UserError, match=rf"{name}: cannot read.*: not a regular file$"):
        ask.get(name, lambda: look.records({"lineage": {"file": "00000000.log", "num_bytes": 3}}))()
    if name == "lock":
        with pytest.raises(UserError, match=f"{name}: cannot write: "):
            RunDir(run_dir.path, writable=True)
