"""evo.language.dag: a graph written as words computes what the program computed, and a changed one what was changed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evo.instructions import shipped_instruction_set
from evo.language.dag import Dag, Node, dag_of
from evo.language.formula_text import infix
from evo.language.program import Language, format_program, parse_program, program_length, word
from evo.native.stack_ptx import NodeKind
from evo.native.stack_ptx_words import META_OPERATIONS, WordType

SET = shipped_instruction_set("default")
LANGUAGE = Language(SET, (("x", "f32"), ("y", "f32"), ("u", "u32")), (("f", "f32"), ("g", "f32"), ("n", "u32")))
ONE = Language(SET, (("x", "f32"), ("y", "f32")), (("f", "f32"),))


def graph(text: str, language: Language = ONE) -> Dag:
    made = dag_of(language, parse_program(language, text, "text"))
    assert made
    return made


WORDS = st.one_of(
    st.integers(0, len(SET.instructions) - 1).map(lambda i: word(WordType.PTX, payload=i)),
    st.integers(0, 2).map(lambda i: word(WordType.INPUT, payload=i)),
    st.sampled_from([0x3F800000, 0xC0000000, 0x3DCCCCCD]).map(lambda b: word(WordType.CONSTANT, SET.stack_index("f32"), b)),
    st.sampled_from(["dup", "swap", "yank_dup", "rotate"]).map(
        lambda name: word(WordType.META, SET.stack_index("f32"), META_OPERATIONS.index(name))
    ),
)


def check_native(language: Language, row: np.ndarray, by_graph: np.ndarray | None, max_length: int) -> None:
    """The native module writes the words that the graph does."""
    words, lengths = language.lowering.rewritten(row[None], max_length)
    expected = [] if by_graph is None else by_graph[: program_length(by_graph)].tolist()
    assert lengths[0] == (-1 if by_graph is None else len(expected))
    assert words[0].tolist() == expected + [0] * (max_length - len(expected))


@given(st.lists(WORDS, min_size=5, max_size=80))
def test_a_graph_written_as_words_has_the_hash_of_its_program(listed):
    row = np.array([*listed, word(WordType.RETURN)], np.uint64)
    made = dag_of(LANGUAGE, row)
    for max_length in (20, 4000):
        again = made.words(LANGUAGE, max_length) if made.is_writable else None
        check_native(LANGUAGE, row, again, max_length)
    if again is None:
        return
    hashes, _ = LANGUAGE.lowering.analyze(np.stack([np.pad(row, (0, 4000 - len(row))), again]))
    assert hashes[0].tolist() == hashes[1].tolist()


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("%x sin_approx_ftz_f32 dup.f32 mul_ftz_f32", "%x sin_approx_ftz_f32 dup.f32 mul_ftz_f32\n"),
        ("2.0 drop.f32 %y %x sub_ftz_f32", "%y %x sub_ftz_f32\n"),
        (
            "%x sin_approx_ftz_f32 dup.f32 %y add_ftz_f32 mul_ftz_f32",
            "%x sin_approx_ftz_f32 store.f32:0 load:0 %y add_ftz_f32 load:0 mul_ftz_f32\n",
        ),
    ],
)
def test_a_program_is_written_with_few_words(text, written):
    words = graph(text).words(ONE, 16)
    assert words is not None and graph(text) == Dag(graph(text).nodes, graph(text).results)  # names do not count
    hashes, _ = ONE.lowering.analyze(np.stack([words, parse_program(ONE, written, "text", 16)]))
    assert hashes[0].tolist() == hashes[1].tolist()
    assert len(format_program(ONE, words).split()) == len(written.split())


def test_a_program_that_is_longer_than_it_may_be_is_not_written():
    made = graph("%x %y add_ftz_f32 sin_approx_ftz_f32")
    assert made.words(ONE, 3) is None
    for max_length in (3, 4):
        row = parse_program(ONE, "%x %y add_ftz_f32 sin_approx_ftz_f32", "text")
        check_native(ONE, row, made.words(ONE, max_length), max_length)
    assert made.words(ONE, 4) is not None


def formula(changed: Dag) -> str:
    words = changed.words(ONE, 32)
    assert words is not None
    return infix(dag_of(ONE, words))


def test_a_value_gives_way_to_one_that_it_is_computed_from_or_to_a_leaf():
    made = graph("%x sin_approx_ftz_f32 %y mul_ftz_f32 dup.f32 cos_approx_ftz_f32 add_ftz_f32")
    names = {SET.instructions[made.nodes[i].payload].name: i for i in made.instructions()}
    product, sine = names["mul_ftz_f32"], names["sin_approx_ftz_f32"]
    assert set(made.needed_by(product)) == {sine, *made.nodes[product].operands, *made.nodes[sine].operands}
    assert formula(made.replaced(product, sine)).replace(" ", "") in ("t0=sin(x)\nf=cos(t0)+t0\n", "t0=sin(x)\nf=t0+cos(t0)\n")
    one = Node(NodeKind.CONSTANT, 0x3F800000, SET.stack_index("f32"))
    assert formula(made.replaced(names["add_ftz_f32"], one)) == "f = 1\n"
    (result,) = made.results
    assert formula(made.replaced(result, made.nodes[sine].operands[0])) == "f = x\n"
