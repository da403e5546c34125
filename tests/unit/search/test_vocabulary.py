"""evo.search.vocabulary: which words are drawn, and how often, is what the weights say."""

from collections import Counter

import numpy as np
import pytest

from evo.errors import UserError
from evo.instructions import shipped_instruction_set
from evo.language.program import Language, Limits
from evo.native.vary import OPERATORS, program_lengths
from evo.search.vocabulary import ConstantOptions, VariationOptions, VocabularyOptions, make_variation

VOCABULARY = VocabularyOptions(
    instructions={"add_ftz_f32": 3.0, "sin_approx_ftz_f32": 1.0},
    meta={"dup": 1.0, "constant": 1.0},
    groups={"instructions": 0.5, "inputs": 0.25, "constants": 0.15, "meta": 0.1},
    constants=ConstantOptions(f32_sigma=2.0, u32_max=9, meta_max=3),
)
OPTIONS = VariationOptions(operators={"umad": 1.0})
NUM_WORDS = 20_000


def changed(**changes) -> VocabularyOptions:
    return VOCABULARY.model_copy(update=changes)


def language(*outputs: str, limits: Limits | None = None) -> Language:
    """Two f32 inputs; outputs of the given types."""
    named = tuple((f"out{i}", type_name) for i, type_name in enumerate(outputs))
    return Language(shipped_instruction_set("default"), (("x", "f32"), ("y", "f32")), named, limits or Limits())


def draw(vocabulary: VocabularyOptions, of: Language | None = None) -> np.ndarray:
    """Many new words, one a program."""
    of = of or language("f32")
    return make_variation(of, vocabulary, OPTIONS, (1, 1)).random_programs(7, 0, 0, NUM_WORDS, 2)[:, 0]


def shares(words: np.ndarray, of: Language | None = None) -> dict[str, float]:
    """Share of each kind of word among all: instructions and inputs by name, constants and meta operations by stack."""
    names = Counter()
    for value in words.tolist():
        token = (of or language("f32")).decode(value)
        if value & 0xFFFF == 2:
            token = f"constant {value >> 16 & 0xFFFF}"
        names[token.split(":")[-1] if token.endswith(":meta") else token] += 1
    return {name: count / len(words) for name, count in names.items()}


def test_words_are_drawn_by_weight_within_their_group_and_groups_by_theirs():
    found = shares(draw(VOCABULARY))
    expected = {
        "add_ftz_f32": 0.5 * 0.75,
        "sin_approx_ftz_f32": 0.5 * 0.25,
        "%x": 0.125,
        "%y": 0.125,
        "constant 0": 0.15,
        "dup.f32": 0.05,
        "meta": 0.05,
    }
    assert set(found) == set(expected)
    for name, share in expected.items():
        # Five standard deviations of a share of 20,000 draws.
        assert abs(found[name] - share) < 5 * np.sqrt(share * (1 - share) / NUM_WORDS), name


def test_constants_are_gaussian_and_integers_even_up_to_their_greatest():
    of = language("f32", "u32")
    words = draw(changed(groups={"constants": 0.5, "meta": 0.5}, meta={"constant": 1.0}), of)
    kind, stack, payload = words & np.uint64(0xFFFF), words >> np.uint64(16) & np.uint64(0xFFFF), words >> np.uint64(32)
    floats = payload[(kind == 2) & (stack == 0)].astype(np.uint32).view(np.float32)
    assert np.isfinite(floats).all()
    assert abs(floats.mean()) < 0.15 and abs(floats.std() - 2.0) < 0.15
    assert abs(np.mean(abs(floats) < 2.0) - 0.6827) < 0.03
    integers = Counter(payload[(kind == 2) & (stack == 1)].tolist())
    assert sorted(integers) == list(range(10))
    assert max(integers.values()) < 1.3 * min(integers.values())
    assert sorted(set(payload[kind == 6].tolist())) == [0, 1, 2, 3]


def test_words_are_drawn_for_the_stacks_that_registers_and_instructions_use():
    vocabulary = changed(groups={"meta": 1.0, "constants": 1.0}, meta={"dup": 1.0})
    assert set(shares(draw(vocabulary))) == {"dup.f32", "constant 0"}
    of = language("f32", "u32")
    assert set(shares(draw(vocabulary, of), of)) == {"dup.f32", "dup.u32", "constant 0", "constant 1"}
    vocabulary = vocabulary.model_copy(update={"instructions": {"setp_lt_ftz_f32": 1.0}})  # predicates have no constants
    assert set(shares(draw(vocabulary))) == {"dup.f32", "dup.pred", "constant 0"}


def test_store_entries_exist():
    vocabulary = changed(groups={"store": 1.0})
    found = shares(draw(vocabulary, language("f32", limits=Limits(store_size=3))))
    assert set(found) == {f"{word}:{slot}" for word in ("store.f32", "load") for slot in range(3)}
    with pytest.raises(UserError, match="no word has a weight above 0"):
        draw(vocabulary, language("f32", limits=Limits(store_size=0)))


def test_phrases_are_drawn_as_one_by_their_weight():
    vocabulary = changed(
        phrases={"input constant mul_ftz_f32": 3.0, "%y 1.5 constant.u32 dup.f32": 1.0},
        groups={"inputs": 0.5, "phrases": 0.5},
    )
    of = language("f32", "u32")
    words = make_variation(of, vocabulary, OPTIONS, (400, 400)).random_programs(7, 0, 0, 200, 400)
    counts: Counter[str] = Counter()
    for row in words.tolist():
        tokens = [of.decode(value) for value in row[:390]]
        place = 0
        while place < len(tokens) - 4:
            first, second, third, fourth = tokens[place : place + 4]
            if third == "mul_ftz_f32":
                assert first in ("%x", "%y") and float(second) != 0.0
                counts["weighted " + first] += 1
                place += 3
            elif (second, fourth) == ("1.5", "dup.f32"):
                assert first == "%y" and third.endswith(":u32") and int(third.removesuffix(":u32")) <= 9
                counts["other"] += 1
                place += 4
            else:
                assert first in ("%x", "%y")
                counts["input"] += 1
                place += 1
    total = counts.total()
    for name, share in {"weighted %x": 3 / 16, "weighted %y": 3 / 16, "other": 1 / 8, "input": 1 / 2}.items():
        assert abs(counts[name] / total - share) < 5 * np.sqrt(share * (1 - share) / total), name


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"meta": {"dupe": 1.0}}, r"program\.vocabulary\.meta: unknown operation 'dupe', did you mean dup or "),
        (
            {"phrases": {"input constnat mul_ftz_f32": 1.0}},
            r"'input constnat mul_ftz_f32': 'constnat' is not an instr",
        ),
        ({"phrases": {"input": 1.0}}, r"program\.vocabulary\.phrases: 'input': 1 words, expected 2 to 16, such as 'input "),
        ({"phrases": {" ".join(["input"] * 17): 1.0}}, r": 17 words, expected 2 to 16"),
        ({"phrases": {"input return": 1.0}}, r"'input return': 'return' ends a program"),
        ({"phrases": {"input constant.pred": 1.0}}, r"no constants of 'pred', stacks that have some: f32, "),
        ({"phrases": {"input %z": 1.0}}, r"'input %z': unknown input 'z', one of: x, y"),
        ({"groups": {}}, r"program\.vocabulary: no word has a weight above 0$"),
        ({"groups": {"meta": 1.0}, "meta": {}}, r"program\.vocabulary: no word has a weight above 0$"),
    ],
)
def test_a_vocabulary_that_is_wrong_is_refused(changes, message):
    with pytest.raises(UserError, match=message):
        make_variation(language("f32"), changed(**changes), OPTIONS, (5, 9))


def test_a_subprogram_is_known_by_what_the_instructions_of_the_set_pop_and_push():
    of = language("f32")
    pool = np.array([[of.encode(token) for token in text.split()] for text in ("%x sin_approx_ftz_f32", "%y cos_approx_ftz_f32")])
    options = VariationOptions(operators={"subprogram": 1.0})
    words, _, operators = make_variation(of, VOCABULARY, options, (1, 1)).offspring(1, 1, 0, 50, pool.astype(np.uint64))
    assert {OPERATORS[operator] for operator in operators} == {"subprogram"}
    assert set(program_lengths(words).tolist()) == {1, 2}  # of three words, no row has room
