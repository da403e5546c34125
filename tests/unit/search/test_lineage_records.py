"""evo.search.lineage_records and its folder: what was recorded comes back, as it was at each checkpoint, and damage is named."""

import numpy as np
import pytest

from evo.errors import UserError
from evo.run.new_run import new_run_dir
from evo.run.run_dir import RunDir
from evo.search.lineage_records import MAGIC, RECORD_DTYPE, LineageLogError, Records, decode_log, encode_block, joined


def records(first: int, count: int, seed: int = 0) -> Records:
    rng = np.random.default_rng(seed + first)
    facts = rng.integers(0, 256, (count, RECORD_DTYPE.itemsize), np.uint8).view(RECORD_DTYPE)[:, 0]
    facts["number"] = np.arange(first, first + count)
    facts["num_words"] = rng.integers(0, 9, count)
    return Records(facts, rng.integers(0, 2**64, facts["num_words"].sum(), np.uint64))


def assert_same(one: Records, two: Records) -> None:
    assert one.facts.tobytes() == two.facts.tobytes()
    assert one.words.tobytes() == two.words.tobytes()


def test_blocks_come_back_in_their_order():
    parts = [records(0, 30), records(30, 1), records(31, 7)]
    assert_same(decode_log(MAGIC + b"".join(map(encode_block, parts))), joined(parts))
    assert len(decode_log(MAGIC)) == 0


def test_damage_is_found_wherever_it_is():
    log = MAGIC + encode_block(records(0, 5)) + encode_block(records(5, 5))
    for place in range(len(log)):
        damaged = bytearray(log)
        damaged[place] ^= 4
        with pytest.raises(LineageLogError):
            decode_log(bytes(damaged))
    for end in range(1, len(log)):
        if end not in (len(MAGIC), len(MAGIC) + len(encode_block(records(0, 5)))):
            with pytest.raises(LineageLogError):
                decode_log(log[:end])


@pytest.fixture
def run_dir(tmp_path):
    with new_run_dir(tmp_path) as created:
        yield created


def save(run_dir: RunDir, generation: int, part: Records, *, is_all: bool = False) -> dict:
    run_dir.save_checkpoint(generation, {}, {}, part, is_all=is_all)
    run_dir.wait_for_checkpoint()
    return run_dir.load_checkpoint()[0]


def test_each_checkpoint_finds_the_log_as_it_was(run_dir):
    first = save(run_dir, 0, records(0, 3), is_all=True)
    second = save(run_dir, 1, records(3, 4))
    save(run_dir, 2, records(7, 0))
    assert_same(run_dir.records(first), records(0, 3))
    assert_same(run_dir.records(second), joined([records(0, 3), records(3, 4)]))
    run_dir.cut_records(first)
    assert_same(run_dir.records(save(run_dir, 1, records(3, 9, seed=5))), joined([records(0, 3), records(3, 9, seed=5)]))


def test_a_log_that_begins_anew_leaves_the_one_of_the_checkpoint_before(run_dir):
    save(run_dir, 0, records(0, 3), is_all=True)
    before = save(run_dir, 5, records(3, 3))
    after = save(run_dir, 9, records(2, 2), is_all=True)
    assert_same(run_dir.records(before), joined([records(0, 3), records(3, 3)]))
    assert_same(run_dir.records(after), records(2, 2))
    latest = save(run_dir, 12, records(4, 2), is_all=True)
    assert sorted(path.name for path in (run_dir.path / "lineage").iterdir()) == ["00000009.log", "00000012.log"]
    run_dir.cut_records(after)
    assert [path.name for path in (run_dir.path / "lineage").iterdir()] == ["00000009.log"]
    with pytest.raises(UserError, match=r"00000012\.log: cannot read how the elites came about: No such file"):
        run_dir.records(latest)
