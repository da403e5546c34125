"""evo.language.program: text and words are the same thing; each mistake in a text is named with its line."""

from itertools import product

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evo.errors import UserError
from evo.instructions import shipped_instruction_set
from evo.language.program import Language, Limits, format_program, parse_program, program_length

RETURN = 10

# Every kind of token with the word it stands for, made by hand from the documented layout: type | aux << 16 | payload << 32.
TOKENS = {
    "%t": 3,
    "%y": 3 | 2 << 32,
    "add_u32": 1,
    "mul_ftz_f32": 1 | 7 << 32,
    "1.5": 2 | 0x3FC00000 << 32,
    "-0.0": 2 | 0x80000000 << 32,
    "0.0": 2,
    "7:u32": 2 | 1 << 16 | 7 << 32,
    "4294967295:philox": 2 | 8 << 16 | 0xFFFFFFFF << 32,
    "0x00000007:s32": 2 | 2 << 16 | 7 << 32,
    "0x7f800000:f32": 2 | 0x7F800000 << 32,
    "special:tid": 4,
    "special:tid.x": 4 | 1 << 32,
    "dup.f32": 5,
    "yank_dup.f32": 5 | 1 << 32,
    "swap.u32": 5 | 1 << 16 | 2 << 32,
    "replace.pred": 5 | 3 << 16 | 4 << 32,
    "reverse.philox": 5 | 8 << 16 | 8 << 32,
    "2:meta": 6 | 2 << 32,
    "4294967295:meta": 6 | 0xFFFFFFFF << 32,
    "routine:3": 7 | 3 << 32,
    "store.f32:0": 11,
    "store.u8:4294967295": 11 | 7 << 16 | 0xFFFFFFFF << 32,
    "load:5": 12 | 5 << 32,
    "return": 10,
    "word:0x0000000000000000": 0,
    "word:0x000000010000000a": 10 | 1 << 32,
    "word:0x0000000000010001": 1 | 1 << 16,
    "word:0x0000000000090002": 2 | 9 << 16,
    "word:0xffffffffffffffff": 2**64 - 1,
}

# Other ways to write a word; printed, it takes the form above.
SPELLINGS = {
    "3": "3.0",
    "1e3": "1000.0",
    "0x10:u32": "16:u32",
    "-1:u32": "4294967295:u32",
    "-1:s32": "0xffffffff:s32",
    "dup.F32": "dup.f32",
    "word:10": "return",
    "word:0x3": "%t",
    "load:0x5": "load:5",
}


@pytest.mark.parametrize("token", TOKENS)
def test_every_kind_of_token_is_its_documented_word_and_back(language, token):
    assert language.encode(token) == TOKENS[token]
    assert language.decode(TOKENS[token]) == token


@pytest.mark.parametrize("token", SPELLINGS)
def test_other_spellings_are_read(language, token):
    assert language.decode(language.encode(token)) == SPELLINGS[token]


def test_printing_and_parsing_gives_back_every_small_word(language):
    """Up to the first that no table of the set has."""
    end = len(language.instruction_set.instructions)
    for kind, aux, payload in product(range(14), range(11), range(end + 1)):
        value = kind | aux << 16 | payload << 32
        assert language.encode(language.decode(value)) == value


any_word = st.one_of(
    st.integers(0, 2**64 - 1),
    st.builds(lambda p: 2 | p << 32, st.integers(0, 2**32 - 1)),
)


@given(any_word)
@example(2 | 0x7FC00000 << 32)
@example(2 | 0xFFC00001 << 32)
@example(2 | 0x80000001 << 32)
@example(2 | 0x7F7FFFFF << 32)
def test_printing_and_parsing_gives_back_any_word(language, value):
    token = language.decode(value)
    assert token == token.strip() and not set(token) & set(" \t\n#")
    assert language.encode(token) == value


@given(st.lists(any_word, min_size=1, max_size=40))
@example([RETURN])
@example([3, RETURN, 3])
def test_printing_and_parsing_gives_back_any_program_up_to_its_return(language, words):
    words = np.array(words, np.uint64)
    length = next((i for i, value in enumerate(words.tolist()) if value & 0xFFFF == RETURN), len(words))
    assert program_length(words) == length
    text = format_program(language, words)
    if length == 0:
        assert text == "\n"
        return
    again = parse_program(language, text, "text")
    assert again[:length].tolist() == words[:length].tolist()
    assert again[length:].tolist() == [RETURN]
    assert all(len(line) <= 100 or " " not in line for line in text.splitlines())


def test_text_may_be_laid_out_and_commented_freely(language):
    words = parse_program(language, "# all of it\n\n  %x\t%x # twice\nmul_ftz_f32#product\n", "text", 6)
    assert words.dtype == np.uint64
    assert words.tolist() == [3 | 1 << 32, 3 | 1 << 32, 1 | 7 << 32, RETURN, 0, 0]


@pytest.mark.parametrize(
    ("token", "message"),
    [
        ("bogus", "'bogus' is not an instruction, constant, input (%name) or meta operation (name.stack)"),
        (
            "add_f32",
            "'add_f32' is not an instruction, constant, input (%name) or meta operation (name.stack); did you mean add_ftz_f32",
        ),
        ("dup.philx", "unknown stack 'philx', did you mean philox?"),
        ("0x10", "'0x10' is not an instruction, constant"),
        ("\u0661", "'\u0661' is not an instruction, constant"),
        ("%z", "unknown input 'z', one of: t, x, y"),
        ("special:tid.w", "unknown special register 'tid.w', did you mean tid.x, tid.y or tid.z?"),
        ("dup.f64", "unknown stack 'f64', one of: f32, u32, s32, pred, tf32, f16, f16x2, u8, philox"),
        (
            "dupp.f32",
            "'dupp.f32' is not an instruction, constant, input (%name) or meta operation (name.stack); did you mean dup.f32",
        ),
        ("store.f32:x", "'x' is not a store index: an unsigned integer of at most 32 bits"),
        ("load:-1", "'-1' is not a store index"),
        ("routine:1.5", "'1.5' is not a routine's index"),
        ("x:f32", "'x' is not an f32 constant; write 1.5, or its bits as 0x3fc00000:f32"),
        ("1e39", "'1e39' is out of the range of f32; infinity is 0x7f800000:f32"),
        ("0x100000000:f32", "'0x100000000' does not fit into 32 bits"),
        ("-2147483649:s32", "'-2147483649' does not fit into 32 bits"),
        ("1.5:u32", "'1.5' is not an integer constant"),
        ("word:0x10000000000000000", "'0x10000000000000000' is not a word: an unsigned integer of at most 64 bits"),
    ],
)
def test_a_bad_token_is_named_with_its_line_and_the_remedy(language, token, message):
    with pytest.raises(UserError) as caught:
        parse_program(language, f"%x\n%x {token} # here\n", "hand.txt")
    assert str(caught.value).startswith(f"hand.txt:2: {message}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n"])
def test_a_text_without_a_program_is_refused(language, text):
    with pytest.raises(UserError, match=r"^hand\.txt: holds no program; write tokens such as: "):
        parse_program(language, text, "hand.txt")


def test_too_many_words_are_refused_with_both_numbers(language):
    with pytest.raises(UserError, match=r"^hand\.txt: 3 words, but program\.max_length is 2$"):
        parse_program(language, "%x %x %x", "hand.txt", 2)


def test_registers_are_inputs_then_outputs_that_are_not_inputs():
    language = Language(shipped_instruction_set("default"), (("x", "f32"), ("n", "u32")), (("y", "f32"), ("x", "f32")))
    assert language.registers == (("x", 0), ("n", 1), ("y", 0))
    assert language.requests == (2, 0)


def test_an_input_and_output_of_one_name_and_two_types_are_refused():
    language = Language(shipped_instruction_set("default"), (("x", "f32"),), (("x", "u32"),))
    with pytest.raises(UserError, match="'x' is an input and an output of different types"):
        language.lowering  # noqa: B018


def test_the_lowering_has_the_limits_of_the_language(language):
    small = Language(language.instruction_set, language.inputs, language.outputs, Limits(stack_size=1))
    words = parse_program(language, "%x %y add_ftz_f32", "text", 8)[None]
    assert language.lowering.analyze(words)[1].tolist() == [1]
    assert small.lowering.analyze(words)[1].tolist() == [0]


class _CountedName(str):
    """A name that counts how often it is compared with another one."""

    num_compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        _CountedName.num_compared += 1
        return str.__eq__(self, other)


def test_constants_of_signed_types_are_numbers():
    language = Language(shipped_instruction_set("wide"), (), ())
    stack = language.instruction_set.stack_index("S64")
    for text, bits in (("-5:s64", 0xFFFFFFFB), ("7:s64", 7), ("-2147483648:s64", 0x80000000)):
        assert language.encode(text) == 2 | stack << 16 | bits << 32
        assert language.decode(language.encode(text)) == text
