"""Programs lowered before: other native functions do with them what they do with the words, and lower nothing again."""

import pickle

import numpy as np
import pytest

from evo.instructions import shipped_instruction_set
from evo.language.batch import Batch
from evo.language.program import Language, Limits, parse_program
from evo.native.ptx_vm import VirtualMachine
from evo.native.row_threads import RowThreads

LANGUAGE = Language(shipped_instruction_set("default"), (("x", "f32"), ("y", "f32")), (("z", "f32"),))
MACHINE = VirtualMachine(LANGUAGE.lowering)
X, Y = np.random.default_rng(1).normal(size=(2, 50)).astype(np.float32)
INPUTS = [X, Y, None]
TEXTS = {
    "%x %y add_ftz_f32": X + Y,
    "%x %y mul_ftz_f32 %x sub_ftz_f32": X - X * Y,
    "return": 0 * X,
    "2.0 3.0 add_ftz_f32 %x mul_ftz_f32": 5 * X,
    "%x neg_ftz_f32": -X,
}


def programs(*texts: str, length: int = 12) -> np.ndarray:
    return np.stack([parse_program(LANGUAGE, text, "test", length) for text in texts])


def lowered(*texts: str):
    """Lowered programs whose words are gone."""
    words = programs(*texts)
    kept = LANGUAGE.lowering.lower_all(words)[2]
    words[:] = programs("%y")
    return kept


def test_hashes_and_sizes_are_those_of_the_words():
    words = programs(*TEXTS)
    hashes, sizes, kept = LANGUAGE.lowering.lower_all(words)
    for one, other in zip((hashes, sizes), LANGUAGE.lowering.analyze(words), strict=True):
        np.testing.assert_array_equal(one, other)
    assert len(kept) == len(words)


def test_hashes_sizes_and_lowered_programs_do_not_depend_on_threads():
    words = np.concatenate([programs(f"%x {number}.0 add_ftz_f32 %y mul_ftz_f32", *TEXTS) for number in range(60)])
    hashes, sizes, kept = LANGUAGE.lowering.lower_all(words, RowThreads(3))
    for row, text in enumerate(words):
        one_hash, one_size, one = LANGUAGE.lowering.lower_all(text[None])
        assert (hashes[row].tolist(), sizes[row]) == (one_hash[0].tolist(), one_size[0])
        np.testing.assert_array_equal(kept.nodes(row), one.nodes(0))


def test_blocks_that_were_lowered_apart_are_one_array():
    first, *others = (lowered(text) for text in TEXTS)
    joined = first.joined(others)
    del first, others
    np.testing.assert_array_equal(MACHINE.store(joined, INPUTS)[:, 0], list(TEXTS.values()))


def test_programs_too_large_for_a_block_of_memory_are_kept_too():
    limits = Limits(max_nodes=1 << 16, execution_limit=1 << 16)
    many = Language(LANGUAGE.instruction_set, LANGUAGE.inputs, LANGUAGE.outputs, limits)
    words = programs("%x " + "%y add_ftz_f32 " * 20_000, "%x", length=1 << 16)
    kept = many.lowering.lower_all(words)[2]
    assert kept.nodes(0)["kind"].size == len(many.lowering.lower(words[0]).nodes) > 1000
    np.testing.assert_array_equal(VirtualMachine(many.lowering).store(kept[1:], INPUTS)[0, 0], X)


def test_programs_of_another_language_are_refused():
    other = Language(LANGUAGE.instruction_set, LANGUAGE.inputs, LANGUAGE.outputs)
    with pytest.raises(ValueError, match="lowered for another language"):
        VirtualMachine(other.lowering).store(lowered(*TEXTS), INPUTS)


def test_a_batch_goes_to_another_process_without_them():
    batch = Batch.analyze(LANGUAGE.lowering, programs(*TEXTS), keep=True)
    assert batch.programs is batch.lowered
    there = pickle.loads(pickle.dumps(batch[1:3]))
    np.testing.assert_array_equal(there.programs, programs(*TEXTS)[1:3])
