"""The table of instructions: its words and derivatives, held to the PTX ISA and to calculus."""

import hashlib
import math

import pytest

from evo.errors import UserError
from evo.instructions import describe_instruction_set, shipped_instruction_set
from evo.instructions.tables import postfix

WIDE, HALVES = shipped_instruction_set("wide"), shipped_instruction_set("halves")
WIDE_DIGEST = "afd27986a986baf08443bac59b7a1baf692de112f85c821cf395d8c5e176ef6a"
BY_NAME = {instruction.name: instruction for instruction in WIDE.instructions}


def test_no_two_instructions_of_the_same_types_have_the_same_meaning_but_defaults():
    """`rn` is what PTX rounds by if nothing is said; whatever else differs in the PTX text must be told."""
    told: dict[tuple, set[str]] = {}
    for instruction in WIDE.instructions:
        assert instruction.semantics.meaning != "see the PTX ISA", instruction.name
        key = (instruction.args, instruction.rets, instruction.semantics.meaning)
        told.setdefault(key, set()).add(instruction.ptx)
    assert not [texts for texts in told.values() if len(texts) > 1]


@pytest.mark.parametrize("name", [name for name in BY_NAME if name.startswith("lop3")])
def test_words_of_lop3_give_its_table(name):
    """PTX ISA: the table is the function of a = 0xF0, b = 0xCC and c = 0xAA."""
    instruction = BY_NAME[name]
    words = instruction.semantics.meaning.removesuffix(", bit by bit")
    special = {"majority of a, b and c": "a & b | a & c | b & c", "b where a has ones, else c": "a & b | ~a & c"}
    formula = special.get(words) or words.replace("xor", "^").replace("and", "&").replace("or", "|")
    assert eval(formula, {"a": 0xF0, "b": 0xCC, "c": 0xAA}) & 0xFF == int(instruction.ptx.split()[1], 16)


def test_a_users_instruction_has_its_own_words_or_those_of_its_ptx():
    rows = [{"ptx": ptx, "args": ["F32"], "rets": ["F32"]} for ptx in ("frobnicate.f32", "neg.f32", "abs.f32")]
    rows[2]["meaning"] = "the size of a"
    types = {"stack_types": [{"name": "F32", "literal_prefix": "f32"}], "arg_types": [{"name": "F32", "stack_type": "F32"}]}
    own = describe_instruction_set({**types, "instructions": rows})
    assert [i.semantics.meaning for i in own.instructions] == [
        "see the PTX ISA",
        BY_NAME["neg_f32"].semantics.meaning,
        "the size of a",
    ]
    other = describe_instruction_set({**types, "instructions": [*rows[:2], {**rows[2], "meaning": "other words"}]})
    assert repr(own) == repr(other)  # which says whether a run goes on with the same set


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("fma_rn_ftz_f32", "w=cwb@awa@b"),
        ("div_approx_ftz_f32", "wb/=awb/~y@b"),
        ("cos_approx_ftz_f32", "w~aS@a"),
        ("min_ftz_f32", "ab<w0?=aab<0w?=b"),
        ("setp_lt_ftz_f32", ""),
    ],
)
def test_derivatives_are_written_in_postfix_form(name, text):
    assert postfix(BY_NAME[name]) == text


def test_errors_are_those_of_the_isa_and_only_tanh_is_coarse():
    """Sections 9.7.3.8, .13, .18, .21 and .22; ulps count from the correctly rounded result."""
    assert BY_NAME["rcp_approx_ftz_f32"].semantics.error[:2] == ("ulp", 1.5)
    assert BY_NAME["ex2_approx_ftz_f32"].semantics.error[:2] == ("ulp", 2.5)
    errors = {
        name: tuple(BY_NAME[name].semantics.error) for name in ("div_approx_ftz_f32", "sin_approx_ftz_f32", "tanh_approx_f32")
    }
    assert errors == {
        "div_approx_ftz_f32": ("ulp", 2.5, "b", 2.0**126, 2.0**-126),
        "sin_approx_ftz_f32": ("absolute", 2.0**-20.5, "a", 2 * math.pi, 0.0),
        "tanh_approx_f32": ("relative", 2.0**-11, "a", math.inf, 0.0),
    }
    of_f32 = [i for i in WIDE.instructions if i.semantics.vm and "f16" not in i.ptx]
    assert [i.name for i in of_f32 if i.semantics.is_coarse] == ["tanh_approx_f32"]


def test_what_recognises_the_older_sets_has_not_changed():
    """The digest is in checkpoints: of `wide` as it was before there were constants of halves."""
    assert hashlib.sha256(repr(WIDE).encode()).hexdigest() == WIDE_DIGEST
    assert len(shipped_instruction_set("default").instructions) == 38
    assert all(stack.constant_type not in ("f16", "bf16") for stack in shipped_instruction_set("default").stacks)


def test_a_users_instruction_has_its_own_slots_or_those_of_its_ptx():
    rows = [
        {"ptx": ptx, "args": ["F32"], "rets": ["F32"]} for ptx in ("frobnicate.f32", "neg.ftz.f32", "abs.ftz.f32", "sqrt.f32")
    ]
    rows[2]["slots"] = 3
    rows[3]["slots"] = {"sm_90": 0.5, "sm_80": 7}
    types = {"stack_types": [{"name": "F32", "literal_prefix": "f32"}], "arg_types": [{"name": "F32", "stack_type": "F32"}]}
    own = describe_instruction_set({**types, "instructions": rows})
    slots = [[i.semantics.slots_on(target) for target in ("sm_75", "sm_89", "sm_121")] for i in own.instructions]
    assert slots == [[None, None, None], [2.0, 1.0, 1.0], [3.0, 3.0, 3.0], [None, 7.0, 0.5]]


@pytest.mark.parametrize("slots", [-1, "2", {"90": 2}, {"sm_90": -0.5}, [2]])
def test_wrong_slots_are_refused(slots):
    row = {"ptx": "neg.f32", "args": ["F32"], "rets": ["F32"], "slots": slots}
    types = {"stack_types": [{"name": "F32", "literal_prefix": "f32"}], "arg_types": [{"name": "F32", "stack_type": "F32"}]}
    with pytest.raises(UserError, match=r"^own\.json: key 'instructions\.0\.slots"):
        describe_instruction_set({**types, "instructions": [row]}, "own.json")
