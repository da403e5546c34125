"""Phrases: several words of the vocabulary that variation draws, and puts into programs, as one."""

import numpy as np
import pytest

from evo.language.program import word
from evo.native.stack_ptx_words import WordType
from evo.native.vary import MAX_PHRASE, Draw, program_lengths

ONE = word(WordType.PTX, 0, 9_000_077)
FIRST, LAST = word(WordType.PTX, 0, 9_000_005), word(WordType.PTX, 0, 9_000_006)
INPUT, CONSTANT = word(WordType.INPUT), word(WordType.CONSTANT, 0)
# A word, and the phrase FIRST, any of three inputs, a constant, LAST.
ENTRIES = [
    (ONE, 1.0, Draw.LITERAL, (0, 0)),
    (FIRST, 1.0, Draw.LITERAL, (0, 0)),
    (INPUT, 0.0, Draw.INTEGER, (0, 3)),
    (CONSTANT, 0.0, Draw.UNIFORM, (2.0, 3.0)),
    (LAST, 0.0, Draw.LITERAL, (0, 0)),
]
NUM_WORDS = np.array([1, 4, 1, 1, 1], np.uint32)


def words_of(row: np.ndarray) -> list[int]:
    return row[: int(program_lengths(row[None])[0])].tolist()


def split(words: list[int]) -> list[list[int]]:
    """The choices that give these new words; the last phrase may be cut."""
    choices, rest = [], words
    while rest:
        size = 4 if rest[0] == FIRST else 1
        choices.append(rest[:size])
        rest = rest[size:]
    return choices


def assert_is_choice(words: list[int], is_cut: bool = False) -> None:
    """Fails unless the words are those of one entry, or the beginning of a phrase if it may be cut."""
    if words == [ONE]:
        return
    first, *others = words
    assert first == FIRST
    assert len(words) == 4 or is_cut
    for value, kind, payloads in zip(others, (INPUT, CONSTANT, LAST), (range(3), None, (LAST >> 32,)), strict=False):
        assert value & 0xFFFFFFFF == kind & 0xFFFFFFFF
        if payloads is None:
            assert 2.0 <= np.uint32(value >> 32).view(np.float32) <= 3.0
        else:
            assert value >> 32 in payloads


def test_random_programs_consist_of_whole_phrases_up_to_their_length(make, assert_binomial):
    programs = make(ENTRIES, num_words=NUM_WORDS, initial_min_length=30, initial_max_length=30).random_programs(1, 0, 0, 500, 40)
    num_phrases = num_choices = 0
    inputs, constants = set(), set()
    for row in programs:
        words = words_of(row)
        assert len(words) == 30
        *whole, last = split(words)
        for choice in whole:
            assert_is_choice(choice)
        assert_is_choice(last, is_cut=True)
        num_phrases += sum(len(choice) == 4 for choice in whole)
        num_choices += len(whole)
        inputs |= {choice[1] for choice in whole if len(choice) == 4}
        constants |= {choice[2] for choice in whole if len(choice) == 4}
    assert len(inputs) == 3 and len(constants) > 1000  # drawn anew each time
    # Among the choices before the last one phrases are rarer than a half: a long one is more often the last.
    assert 0.4 < num_phrases / num_choices < 0.5


@pytest.mark.parametrize("max_length", [120, 22])
def test_umad_puts_whole_phrases_between_words(make, distinct_programs, max_length):
    pool = distinct_programs(50, 20, max_length)
    variation = make(ENTRIES, only="umad", num_words=NUM_WORDS)
    children, parents, _ = variation.offspring(3, 1, 0, 2000, pool)
    num_phrases = 0
    for child, (parent, _) in zip(children, parents, strict=True):
        old, words = set(pool[parent][:20].tolist()), words_of(child)
        assert [value for value in words if value in old] == sorted(value for value in words if value in old)
        runs, run = [], []
        for value in [*words, None]:
            if value in old or value is None:
                runs.append(run)
                run = []
            else:
                run.append(value)
        for index, new in enumerate(runs):
            for place, choice in enumerate(choices := split(new)):
                is_at_end = index == len(runs) - 1 and place == len(choices) - 1 and len(words) == max_length
                assert_is_choice(choice, is_cut=is_at_end)
                num_phrases += len(choice) == 4
    assert num_phrases > 500


@pytest.mark.parametrize("num_words", [[1, 0, 1, 1, 1], [1, 5, 1, 1, 1], [MAX_PHRASE + 1, 1, 1, 1, 1]])
def test_a_phrase_that_goes_past_the_last_entry_is_refused(make, num_words):
    with pytest.raises(ValueError, match="vocabulary: VARY_ERROR_INVALID_ENTRY"):
        make(ENTRIES, num_words=np.array(num_words, np.uint32))
