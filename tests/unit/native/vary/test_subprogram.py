"""Subprogram crossover, against stretches that are found by running words forward from empty stacks."""

from collections import Counter

import numpy as np
import pytest

from evo.native.stack_ptx_words import META_OPERATIONS, WordType
from evo.native.vary import OPERATORS, program_lengths

SUBPROGRAM = OPERATORS.index("subprogram")
F32, U32, PRED = 0, 1, 2
# Values popped and pushed. The last has too many values, so that nothing is known of it.
EFFECTS = [
    ((F32, F32), (F32,)),
    ((F32,), (F32,)),
    ((F32, F32, F32), (F32,)),
    ((F32, F32), (PRED,)),
    ((F32, F32, PRED), (F32,)),
    ((U32,), (F32,)),
    ((F32,), (F32, U32)),
    ((F32,) * 8, (F32,) * 8),
]
INPUT_STACKS = [F32, F32, U32]
OPTIONS = {"effects": EFFECTS, "input_stacks": INPUT_STACKS}


def word(kind: WordType, aux: int = 0, payload: int = 0) -> int:
    return kind | aux << 16 | payload << 32


def meta(name: str, stack: int) -> int:
    return word(WordType.META, stack, META_OPERATIONS.index(name))


LEAVES = [
    *(word(WordType.INPUT, 0, i) for i in range(3)),
    word(WordType.CONSTANT, F32, 0x3F800000),
    word(WordType.CONSTANT, U32, 7),
]
WORDS = [
    *LEAVES,
    *(word(WordType.PTX, 0, i) for i in range(len(EFFECTS))),
    meta("dup", F32),
    meta("swap", F32),
    meta("rotate", F32),
    word(WordType.META_CONSTANT, 0, 1),
    word(WordType.STORE, F32, 0),
    word(WordType.LOAD, 0, 0),
    word(WordType.INPUT, 0, 99),
    word(WordType.PTX, 0, 99),
]


def value_of(words: list[int]) -> int | None:
    """The stack of the one value that the words leave if they are run on empty stacks; None if they take or leave more."""
    heights: Counter[int] = Counter()
    for each in words:
        kind, aux, payload = each & 0xFFFF, each >> 16 & 0xFFFF, each >> 32
        if kind == WordType.INPUT and payload < len(INPUT_STACKS):
            popped, pushed = (), (INPUT_STACKS[payload],)
        elif kind == WordType.CONSTANT:
            popped, pushed = (), (aux,)
        elif kind == WordType.PTX and payload < len(EFFECTS) - 1:
            popped, pushed = EFFECTS[payload]
        elif each == meta("dup", F32):
            popped, pushed = (F32,), (F32, F32)
        elif each == meta("swap", F32):
            popped, pushed = (F32, F32), (F32, F32)
        else:
            return None
        heights.subtract(popped)
        if min(heights.values(), default=0) < 0:
            return None
        heights.update(pushed)
    left = list(heights.elements())
    return left[0] if len(left) == 1 else None


def subprograms(words: list[int]) -> dict[int, tuple[int, int]]:
    """Last word -> first word and stack of each subprogram."""
    found = {}
    for last in range(len(words)):
        last_effect = words[last]
        # One that leaves two values, or exchanges them, does not end a subprogram.
        if last_effect in (meta("dup", F32), meta("swap", F32), word(WordType.PTX, 0, 6)):
            continue
        for first in range(last, -1, -1):
            stack = value_of(words[first : last + 1])
            if stack is not None:
                found[last] = (first, stack)
                break
    return found


def program_of(row: np.ndarray) -> list[int]:
    return row[: int(program_lengths(row[None])[0])].tolist()


@pytest.fixture(scope="module")
def pool(row):
    rng = np.random.default_rng(60)
    common = [*LEAVES[:4] * 3, *WORDS[5:12], meta("dup", F32), meta("swap", F32)]
    programs = []
    for number in range(80):
        choices = WORDS if number % 2 else common
        programs.append(row([choices[i] for i in rng.integers(len(choices), size=rng.integers(1, 24))], 24))
    return np.array(programs)


def test_a_subprogram_is_replaced_by_one_of_the_other_parent_for_the_same_stack(make, pool):
    words, parents, operators = make(only="subprogram", **OPTIONS).offspring(1, 1, 0, 2000, pool)
    acted = operators == SUBPROGRAM
    assert acted.sum() > 1000
    assert (parents[acted, 1] >= 0).all() and (parents[~acted, 1] == -1).all()
    lengths = set()
    for child, (first, second) in zip(words[acted], parents[acted], strict=True):
        one, two = program_of(pool[first]), program_of(pool[second])
        expected = [
            (one[:start] + two[other_start : other + 1] + one[last + 1 :])[:24]
            for last, (start, stack) in subprograms(one).items()
            for other, (other_start, other_stack) in subprograms(two).items()
            if stack == other_stack
        ]
        assert program_of(child) in expected
        lengths.add(len(program_of(child)) - len(one))
    assert min(lengths) < 0 < max(lengths)


def test_umad_acts_where_there_is_no_subprogram(make, row):
    none = row([word(WordType.PTX, 0, 0), meta("rotate", F32), word(WordType.LOAD, 0, 0)], 8)
    some = row([LEAVES[0], word(WordType.PTX, 0, 1)], 8)
    other_stack = row([LEAVES[4]], 8)
    variation = make(only="subprogram", **OPTIONS)
    for pair in ([none, some], [none, none], [some, other_stack]):
        _, parents, operators = variation.offspring(2, 1, 0, 50, np.array(pair))
        cannot = operators != SUBPROGRAM
        assert (operators[cannot] == OPERATORS.index("umad")).all() and (parents[cannot, 1] == -1).all()
        assert cannot.all()


def test_last_words_are_drawn_evenly(make, row, assert_chi_square):
    # x y add: three subprograms; the other parent has sin(x), two, and is told apart by its words.
    first = row([LEAVES[0], LEAVES[1], word(WordType.PTX, 0, 0)], 8)
    second = row([LEAVES[3], word(WordType.PTX, 0, 1)], 8)
    words, parents, operators = make(only="subprogram", **OPTIONS).offspring(4, 1, 0, 6000, np.array([first, second]))
    assert (operators == SUBPROGRAM).all()
    children = Counter(tuple(program_of(child)) for child in words[parents[:, 0] == 0])
    x, y, add, c, sine = LEAVES[0], LEAVES[1], word(WordType.PTX, 0, 0), LEAVES[3], word(WordType.PTX, 0, 1)
    expected = [(c, y, add), (c, sine, y, add), (x, c, add), (x, c, sine, add), (c,), (c, sine)]
    assert set(children) == set(expected)
    assert_chi_square([children[child] for child in expected], [1] * 6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"input_stacks": [64]}, "or one is not below 64"),
        ({"effects": [((0, 64), (0,))]}, "or one is not below 64"),
    ],
)
def test_stack_that_does_not_fit_is_refused(make, options, message):
    with pytest.raises(ValueError, match=message):
        make(**options)
