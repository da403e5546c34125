"""evo.instructions.meaning: what instructions compute, in words, held to the PTX ISA."""

import pytest

from evo.instructions import describe_instruction_set, shipped_instruction_set
from evo.instructions.meaning import meaning_of

WIDE = shipped_instruction_set("wide")
BY_NAME = {instruction.name: instruction for instruction in WIDE.instructions}


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("add_ftz_f32", "sum a + b; subnormals are 0"),
        ("sub_rz_f32", "difference a - b; rounded toward zero"),
        ("add_sat_f32", "sum a + b; limited to 0 to 1"),
        ("add_sat_s32", "sum a + b; limited to the range of its type"),
        ("fma_rn_ftz_f32", "product and sum a * b + c, rounded once; subnormals are 0"),
        ("fma_rz_f32", "product and sum a * b + c, rounded once; rounded toward zero"),
        ("mul_hi_s32", "high half of the product a * b"),
        ("mul_wide_u32", "product a * b; of twice the width"),
        ("mul24_lo_u32", "low 32 bits of the product a * b of 24-bit a and b"),
        ("copysign_f32", "magnitude of b with the sign of a"),
        ("selp_f32", "select: a if c is true, else b"),
        ("slct_f32_s32", "select: a if c >= 0, else b"),
        ("setp_ltu_f32", "whether a < b or one is NaN"),
        ("setp_num_f32", "whether neither is NaN"),
        ("set_ge_f32_u32", "1 if a >= b, else 0"),
        ("set_ge_u32_u32", "all bits one if a >= b, else 0"),
        ("testp_notanumber_f64", "whether a is NaN"),
        ("cvt_rmi_s32_f32", "a converted from f32 to s32; rounded down to an integer (floor)"),
        ("cvt_rn_f16x2_f32", "a and b as the halves of f16x2; rounded to nearest"),
        ("shf_r_wrap_b32", "funnel shift: low half of b, a shifted right by c bits; counts modulo 32"),
        ("dp2a_hi_u32_u32", "dot product of the two 16-bit parts of a and two bytes of b, plus c; the high bytes of b"),
        ("bfi_b32", "b with a bit field of d bits from bit c on taken from a"),
        ("u32_to_f32", "same bits as another type"),
        ("add_f16x2", "sum a + b; in both halves"),
    ],
)
def test_an_instruction_is_told_as_in_the_ptx_isa(name, meaning):
    assert meaning_of(BY_NAME[name]) == meaning


def test_every_shipped_instruction_has_a_meaning():
    assert not [name for name, instruction in BY_NAME.items() if meaning_of(instruction) == "see the PTX ISA"]


def test_no_two_instructions_of_the_same_types_have_the_same_meaning_but_defaults():
    """`rn` is what PTX rounds by if nothing is said; whatever else differs in the PTX text must be told."""
    told: dict[tuple, set[str]] = {}
    for instruction in WIDE.instructions:
        key = (instruction.args, instruction.rets, meaning_of(instruction))
        told.setdefault(key, set()).add(instruction.ptx)
    assert not [texts for texts in told.values() if len(texts) > 1]


@pytest.mark.parametrize("name", [name for name in BY_NAME if name.startswith("lop3")])
def test_words_of_lop3_give_its_table(name):
    """PTX ISA: the table is the function of a = 0xF0, b = 0xCC and c = 0xAA."""
    instruction = BY_NAME[name]
    words = meaning_of(instruction).removesuffix(", bit by bit")
    special = {"majority of a, b and c": "a & b | a & c | b & c", "b where a has ones, else c": "a & b | ~a & c"}
    formula = special.get(words) or words.replace("xor", "^").replace("and", "&").replace("or", "|")
    assert eval(formula, {"a": 0xF0, "b": 0xCC, "c": 0xAA}) & 0xFF == int(instruction.ptx.split()[1], 16)


def test_an_unknown_mnemonic_is_left_to_the_isa():
    types = [{"name": "F32", "literal_prefix": "f32"}]
    of_a_user = {
        "stack_types": types,
        "arg_types": [{"name": "F32", "stack_type": "F32"}],
        "instructions": [{"ptx": ptx, "args": ["F32"], "rets": ["F32"]} for ptx in ("frobnicate.f32", "setp.odd.f32", "cvt.f32")],
    }
    assert {meaning_of(i) for i in describe_instruction_set(of_a_user).instructions} == {"see the PTX ISA"}
