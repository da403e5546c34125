"""evo.instructions: the shipped order is the documented one; each mistake in a description is named by its key.

Longer than most modules: each way in which a description can be wrong has its line.
"""

import copy
import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evo import instructions
from evo.errors import UserError
from evo.instructions import (
    SHIPPED,
    describe_instruction_set,
    load_instruction_set,
    shipped_instruction_set,
)

# Words carry these indices, so the order is part of every stored program. Written out from the documentation by hand.
STACKS = [
    ("F32", "f32", "f32"),
    ("U32", "u32", "u32"),
    ("S32", "s32", None),
    ("PRED", "pred", None),
    ("TF32", "b32", None),
    ("F16", "b16", None),
    ("F16X2", "b32", None),
    ("U8", "u8", None),
    ("PHILOX", "u32", "u32"),
]
ARG_TYPES = [
    ("F32", "F32", 0),
    ("TF32", "TF32", 0),
    ("V1_TF32", "TF32", 1),
    ("V2_TF32", "TF32", 2),
    ("V4_F32", "F32", 4),
    ("S32", "S32", 0),
    ("U32", "U32", 0),
    ("V4_U32", "U32", 4),
    ("PRED", "PRED", 0),
    ("F16", "F16", 0),
    ("F16X2", "F16X2", 0),
    ("V2_F16", "F16", 2),
    ("U8", "U8", 0),
    ("V4_U8", "U8", 4),
    ("PHILOX", "PHILOX", 0),
]
INSTRUCTIONS = [
    (0, "add_u32", "add.u32", "U32 U32 -> U32"),
    (1, "sub_u32", "sub.u32", "U32 U32 -> U32"),
    (2, "mul_lo_u32", "mul.lo.u32", "U32 U32 -> U32"),
    (3, "mad_lo_u32", "mad.lo.u32", "U32 U32 U32 -> U32"),
    (4, "copysign_f32", "copysign.f32", "F32 F32 -> F32"),
    (5, "add_ftz_f32", "add.ftz.f32", "F32 F32 -> F32"),
    (6, "sub_ftz_f32", "sub.ftz.f32", "F32 F32 -> F32"),
    (7, "mul_ftz_f32", "mul.ftz.f32", "F32 F32 -> F32"),
    (8, "fma_rn_ftz_f32", "fma.rn.ftz.f32", "F32 F32 F32 -> F32"),
    (9, "div_approx_ftz_f32", "div.approx.ftz.f32", "F32 F32 -> F32"),
    (10, "abs_ftz_f32", "abs.ftz.f32", "F32 -> F32"),
    (11, "neg_ftz_f32", "neg.ftz.f32", "F32 -> F32"),
    (12, "min_ftz_f32", "min.ftz.f32", "F32 F32 -> F32"),
    (13, "max_ftz_f32", "max.ftz.f32", "F32 F32 -> F32"),
    (14, "rcp_approx_ftz_f32", "rcp.approx.ftz.f32", "F32 -> F32"),
    (15, "sqrt_approx_ftz_f32", "sqrt.approx.ftz.f32", "F32 -> F32"),
    (16, "rsqrt_approx_ftz_f32", "rsqrt.approx.ftz.f32", "F32 -> F32"),
    (17, "sin_approx_ftz_f32", "sin.approx.ftz.f32", "F32 -> F32"),
    (18, "cos_approx_ftz_f32", "cos.approx.ftz.f32", "F32 -> F32"),
    (19, "lg2_approx_ftz_f32", "lg2.approx.ftz.f32", "F32 -> F32"),
    (20, "ex2_approx_ftz_f32", "ex2.approx.ftz.f32", "F32 -> F32"),
    (21, "tanh_approx_f32", "tanh.approx.f32", "F32 -> F32"),
    (22, "setp_lt_ftz_f32", "setp.lt.ftz.f32", "F32 F32 -> PRED"),
    (23, "setp_eq_u32", "setp.eq.u32", "U32 U32 -> PRED"),
    (24, "setp_ne_u32", "setp.ne.u32", "U32 U32 -> PRED"),
    (25, "selp_f32", "selp.f32", "F32 F32 PRED -> F32"),
    (26, "cvt_rna_tf32_f32", "cvt.rna.tf32.f32", "F32 -> TF32"),
    (27, "cvt_rn_f32_u32", "cvt.rn.f32.u32", "U32 -> F32"),
    (
        28,
        "mma_sync_aligned_m16n8k4_row_col_f32_tf32_tf32_f32",
        "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32",
        "V2_TF32 V1_TF32 V4_F32 -> V4_F32",
    ),
    (29, "f16x2_to_v2_f16", "mov.b32", "F16X2 -> V2_F16"),
    (30, "f16_to_f32", "cvt.f32.f16", "F16 -> F32"),
    (31, "u32_to_v4_u8", "mov.b32", "U32 -> V4_U8"),
    (32, "cvt_u32_u8", "cvt.u32.u8", "U8 -> U32"),
    (33, "add_philox", "add.u32", "PHILOX PHILOX -> PHILOX"),
    (34, "xor_philox", "xor.b32", "PHILOX PHILOX -> PHILOX"),
    (35, "philox_to_u32", "mov.b32", "PHILOX -> U32"),
    (36, "mul_lo_philox", "mul.lo.u32", "PHILOX PHILOX -> PHILOX"),
    (37, "mul_hi_philox", "mul.hi.u32", "PHILOX PHILOX -> PHILOX"),
]
SPECIAL_REGISTERS = [
    *("tid", "tid.x", "tid.y", "tid.z", "ntid", "ntid.x", "ntid.y", "ntid.z", "laneid", "warpid", "nwarpid"),
    *("ctaid", "ctaid.x", "ctaid.y", "ctaid.z", "nctaid", "nctaid.x", "nctaid.y", "nctaid.z", "smid", "nsmid", "gridid"),
    *("lanemask_eq", "lanemask_le", "lanemask_lt", "lanemask_ge", "lanemask_gt", "clock", "clock_hi"),
    *("total_smem_size", "aggr_smem_size", "dynamic_smem_size"),
]
COMMUTATIVE = (
    "add_u32 mul_lo_u32 mad_lo_u32 add_ftz_f32 mul_ftz_f32 fma_rn_ftz_f32 min_ftz_f32 max_ftz_f32 setp_eq_u32 setp_ne_u32"
)
COMMUTATIVE_PHILOX = "add_philox xor_philox mul_lo_philox mul_hi_philox"


@pytest.fixture(scope="module")
def default():
    return shipped_instruction_set("default")


def test_the_stacks_are_the_documented_ones_in_order(default):
    assert [(s.name, s.literal_prefix, s.constant_type) for s in default.stacks] == STACKS


def test_the_argument_types_are_the_documented_ones_in_order(default):
    assert [(a.name, default.stacks[a.stack_idx].name, a.num_vec_elems) for a in default.arg_types] == ARG_TYPES


def test_the_instructions_are_the_documented_ones_in_order(default):
    def signature(instruction) -> str:
        args, rets = (" ".join(default.arg_types[i].name for i in indices) for indices in (instruction.args, instruction.rets))
        return f"{args} -> {rets}"

    assert [(i, e.name, e.ptx, signature(e)) for i, e in enumerate(default.instructions)] == INSTRUCTIONS


def test_the_special_registers_are_the_documented_ones_in_order(default):
    assert [s.ptx for s in default.special_registers] == SPECIAL_REGISTERS
    vectors = [s.ptx for s in default.special_registers if default.arg_types[s.arg_idx].name == "V4_U32"]
    assert vectors == ["tid", "ntid", "ctaid", "nctaid"]
    assert {default.arg_types[s.arg_idx].name for s in default.special_registers} == {"V4_U32", "U32"}


def test_only_the_mma_is_aligned(default):
    assert [e.name for e in default.instructions if e.aligned] == ["mma_sync_aligned_m16n8k4_row_col_f32_tf32_tf32_f32"]


def test_operands_may_be_swapped_exactly_where_the_operation_is_commutative(default):
    commutative = {e.name: e.num_commutative for e in default.instructions if e.num_commutative}
    assert commutative == dict.fromkeys(f"{COMMUTATIVE} {COMMUTATIVE_PHILOX}".split(), 2)


def test_registers_that_change_between_reads_are_volatile(default):
    volatile = {s.ptx for s in default.special_registers if s.volatile}
    # The PTX ISA calls warpid, nwarpid, smid and nsmid volatile; the clocks run.
    assert volatile == {"warpid", "nwarpid", "smid", "nsmid", "clock", "clock_hi"}
    assert not any(e.volatile for e in default.instructions)


def test_names_are_found(default):
    assert default.instruction_index("tanh_approx_f32") == 21
    assert default.stack_index("f32") == default.stack_index("F32") == 0
    assert default.stack_index("philox") == 8
    with pytest.raises(KeyError):
        default.instruction_index("tanh")
    with pytest.raises(KeyError):
        default.stack_index("f64")


@pytest.fixture(scope="module")
def wide():
    return shipped_instruction_set("wide")


def test_the_wide_set_begins_with_the_default_one(default, wide):
    for field in ("stacks", "arg_types", "instructions", "special_registers"):
        assert getattr(wide, field)[: len(getattr(default, field))] == getattr(default, field)
    assert wide.special_registers == default.special_registers
    added = wide.stacks[len(default.stacks) :]
    assert [(s.name, s.literal_prefix, s.constant_type) for s in added] == [(t.upper(), t, t) for t in ("f64", "u64", "s64")]


# Operation and type of what the wide set has to have, by the sections of the PTX ISA.
WIDE = {
    "f32": "add sub mul fma div abs neg min max rcp sqrt rsqrt sin cos lg2 ex2 tanh copysign testp setp set selp slct cvt",
    "f64": "add sub mul fma div abs neg min max rcp sqrt rsqrt copysign testp setp selp slct cvt",
    "f16": "add sub mul fma neg abs min max tanh ex2 setp set selp slct cvt",
    "f16x2": "add sub mul fma neg abs min max tanh ex2 setp set selp slct cvt mov",
    "s32": "add sub mul mad mul24 mad24 sad div rem abs neg min max bfind szext dp4a dp2a bfe shr setp set selp slct cvt",
    "u32": "add sub mul mad mul24 mad24 sad div rem min max bfind szext dp4a dp2a bfe shr setp set selp slct cvt",
    "s64": "add sub mul mad sad div rem abs neg min max bfind bfe shr setp selp slct cvt",
    "u64": "add sub mul mad sad div rem min max bfind bfe shr setp selp slct cvt",
    "b32": "and or xor not cnot lop3 shl shf prmt bfi brev clz popc bmsk mov",
    "b64": "and or xor not cnot shl bfi brev clz popc mov",
    "pred": "and or xor not",
}


@pytest.mark.parametrize("type_name", WIDE)
def test_the_wide_set_has_the_operations_of_each_type(wide, type_name):
    names = {"f16": "b16", "f16x2": "b32"}  # registers of these types

    def types(instruction) -> set[str]:
        stacks = {wide.stacks[wide.arg_types[a].stack_idx] for a in (*instruction.args, *instruction.rets)}
        return {*instruction.ptx.partition(" ")[0].split(".")[1:], *(stack.name.lower() for stack in stacks)}

    found = {i.ptx.partition(".")[0] for i in wide.instructions if {type_name, names.get(type_name)} & types(i)}
    assert set(WIDE[type_name].split()) <= found


SYMMETRIC = ["add", "mul", "mad", "fma", "min", "max", "and", "or", "xor", "sad", "mul24", "mad24", "dp4a"]
SYMMETRIC_COMPARISONS = ("eq", "ne", "equ", "neu", "num", "nan")


def test_operands_of_the_wide_set_may_be_swapped_exactly_where_the_operation_is_symmetric(wide):
    for one in wide.instructions:
        operation, *modifiers = one.ptx.partition(" ")[0].split(".")
        symmetric = operation in SYMMETRIC or (operation in ("setp", "set") and modifiers[0] in SYMMETRIC_COMPARISONS)
        # The packed product of signed and unsigned bytes takes each operand in its own way.
        symmetric = symmetric and (operation != "dp4a" or modifiers[0] == modifiers[1])
        assert one.num_commutative == (2 if symmetric else 0), one.name
        if symmetric:
            assert one.args[0] == one.args[1], one.name


def test_fields_are_moved_where_the_assembler_bounds_them(wide):
    """It takes positions and lengths of bit fields up to 255 as constants, and any as registers."""
    assert {i.ptx.partition(".")[0] for i in wide.instructions if i.registers_only} == {"bfe", "bfi"}
    assert all(i.registers_only for i in wide.instructions if i.ptx.startswith(("bfe.", "bfi.")))


def test_shipped_sets_are_known_by_name():
    assert SHIPPED == ("default", "wide")
    assert shipped_instruction_set("default") is shipped_instruction_set("default")
    with pytest.raises(KeyError):
        shipped_instruction_set("none")


def test_a_description_in_python_is_checked_like_a_file(tmp_path):
    of_file = load_instruction_set(write(tmp_path, MINIMAL))
    assert describe_instruction_set(MINIMAL) == of_file
    assert describe_instruction_set({k: v for k, v in MINIMAL.items() if k != "abi_version"}) == of_file
    with pytest.raises(UserError, match=r"^here: key 'instructions': "):
        describe_instruction_set({**MINIMAL, "instructions": 3}, "here")


@settings(max_examples=300, deadline=None)
@given(text=st.binary(max_size=200))
def test_any_bytes_are_a_description_or_one_line(tmp_path_factory, text):
    source = tmp_path_factory.mktemp("any") / "set.json"
    source.write_bytes(text)
    with pytest.raises(UserError) as caught:
        load_instruction_set(source)
    assert str(caught.value).startswith(f"{source}:") and "\n" not in str(caught.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=300, deadline=None)
@given(key=st.sampled_from(["abi_version", "stack_types", "arg_types", "instructions", "special_registers", "other"]), value=JSON)
def test_any_value_of_a_key_is_taken_or_refused_by_that_key(key, value):
    try:
        describe_instruction_set({**MINIMAL, key: value})
    except UserError as error:
        assert re.fullmatch("description: key '.+", str(error))  # noqa: PT017 - either outcome is right


MINIMAL = {
    "abi_version": 1,
    "stack_types": [{"name": "F32", "literal_prefix": "f32", "constant_type": "f32"}],
    "arg_types": [{"name": "F32", "stack_type": "F32"}, {"name": "V2", "stack_type": "F32", "num_vec_elems": 2}],
    "instructions": [
        {"ptx": "add.f32", "args": ["F32", "F32"], "rets": ["F32"], "num_commutative": 2},
        {"ptx": "mov.b64", "args": ["V2"], "rets": ["F32"], "display": "v2 -> f32", "aligned": True, "volatile": True},
    ],
    "special_registers": [{"ptx": "clock", "arg_type": "F32", "volatile": True}],
}


def write(tmp_path, description) -> str:
    path = tmp_path / "set.json"
    path.write_text(description if isinstance(description, str) else json.dumps(description))
    return str(path)


def test_a_description_is_read(tmp_path):
    found = load_instruction_set(write(tmp_path, MINIMAL))
    assert [(e.name, e.display, e.args, e.rets, e.aligned, e.num_commutative, e.volatile) for e in found.instructions] == [
        ("add_f32", "add.f32", (0, 0), (0,), False, 2, False),
        ("v2_f32", "v2 -> f32", (1,), (0,), True, 0, True),
    ]
    assert [(s.ptx, s.arg_idx, s.volatile) for s in found.special_registers] == [("clock", 0, True)]


def test_the_description_in_the_documentation_is_one():
    text = instructions.__doc__
    found = describe_instruction_set(json.loads(text[text.index("{") : text.index("\n    }") + 6]))
    assert [entry.ptx for entry in (*found.instructions, *found.special_registers)] == ["add.u32", "tid"]


@pytest.mark.parametrize(
    ("keys", "name"),
    [
        ({}, "lop3_b32_0x96"),
        ({"display": "a ^ b ^ c"}, "a_b_c"),
        ({"display": "3-way xor!"}, "_3_way_xor"),
        ({"display": "^"}, "lop3_b32_0x96"),
        ({"display": "xor", "name": "Xor3"}, "Xor3"),
    ],
)
def test_an_instruction_without_a_name_is_called_by_its_display_or_its_ptx(keys, name):
    instruction = {"ptx": "lop3.b32 0x96", "args": ["F32"] * 3, "rets": ["F32"], **keys}
    assert describe_instruction_set({**MINIMAL, "instructions": [instruction]}).instructions[0].name == name


def test_special_registers_are_optional(tmp_path):
    assert (
        load_instruction_set(write(tmp_path, {k: v for k, v in MINIMAL.items() if k != "special_registers"})).special_registers
        == ()
    )


REMOVED = object()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("abi_version", 2),
        ("abi_version", "1"),
        ("abi_version", REMOVED),
        ("stack_types", []),
        ("stack_types", {}),
        ("stack_types.0.name", REMOVED),
        ("stack_types.0.literal_prefix", 3),
        ("stack_types.0.constant_typ", "f32"),
        ("arg_types.0.stack_type", "F64"),
        ("arg_types.1.name", "F32"),
        ("arg_types.1.num_vec_elems", -1),
        ("arg_types.1.num_vec_elems", 9),
        ("instructions", REMOVED),
        ("instructions.0.ptx", REMOVED),
        ("instructions.0.args", ["F32", "F33"]),
        ("instructions.0.args", ["F32"] * 5),
        ("instructions.0.rets", []),
        ("instructions.0.rets", ["F32"] * 3),
        ("instructions.1.rets", ["f32"]),
        ("instructions.0.num_commutative", 1),
        ("instructions.0.num_commutative", 3),
        ("instructions.1.num_commutative", 2),
        ("instructions.1.aligned", 1),
        ("instructions.1.comutative", 2),
        ("instructions.0.meaning", ""),
        ("instructions.0.vm", "add_f32"),
        ("instructions.0.derivative", {"a": "w"}),
        ("special_registers.0.arg_type", "U32"),
        ("special_registers.0.bogus", 1),
        ("stack_types.0", 3),
    ],
)
def test_every_mistake_is_named_by_its_key(tmp_path, key, value):
    description = copy.deepcopy(MINIMAL)
    *path, last = [int(part) if part.isdigit() else part for part in key.split(".")]
    entry = description
    for part in path:
        entry = entry[part]
    if value is REMOVED:
        del entry[last]
    else:
        entry[last] = value
    source = write(tmp_path, description)
    with pytest.raises(UserError) as caught:
        load_instruction_set(source)
    owner = key if key != "arg_types.1.name" else "arg_types.1"
    assert str(caught.value).startswith(f"{source}: key '{owner}")
    assert "\n" not in str(caught.value)


def with_entries(**more: list) -> dict:
    """The minimal description with more entries."""
    return {**MINIMAL, **{key: [*MINIMAL[key], *entries] for key, entries in more.items()}}


V5 = {"name": "V5", "stack_type": "F32", "num_vec_elems": 5}
SWAPPED = {"ptx": "mul.f32", "rets": ["F32"], "num_commutative": 2}
WHAT_C_CANNOT_HAVE = {
    # The enumerators of the numbers of entries are NUM_ENUMS, and that of tid.x is TID_X.
    "stack_types.1": with_entries(stack_types=[{"name": "num_enums", "literal_prefix": "f32"}]),
    "arg_types.2": with_entries(arg_types=[{"name": "NUM_ENUMS", "stack_type": "F32"}]),
    "instructions.2": with_entries(instructions=[{"ptx": "mul.f32", "args": [], "rets": ["F32"], "name": "Num_Enums"}]),
    "special_registers.1": with_entries(special_registers=[{"ptx": "num_enums", "arg_type": "F32"}]),
    "special_registers.2": with_entries(special_registers=[{"ptx": name, "arg_type": "F32"} for name in ("tid.x", "tid_x")]),
    # What stack_ptx_language_init refuses.
    "special_registers.1.arg_type": with_entries(arg_types=[V5], special_registers=[{"ptx": "tid", "arg_type": "V5"}]),
    "instructions.2.num_commutative": with_entries(instructions=[{**SWAPPED, "args": ["F32", "V2"]}]),
    "instructions.3.num_commutative": with_entries(
        instructions=[{"ptx": "neg.f32", "args": ["F32"], "rets": ["F32"]}, {**SWAPPED, "args": ["V2", "V2"]}]
    ),
    # Would be %tid.x.x.
    "special_registers.3.arg_type": with_entries(
        special_registers=[{"ptx": f"tid.{name}", "arg_type": "V2" if name == "z" else "F32"} for name in "xyz"]
    ),
    # Their indices are 16 bits.
    "stack_types": with_entries(stack_types=[{"name": f"A{i}", "literal_prefix": "f32"} for i in range(65535)]),
    "arg_types": with_entries(arg_types=[{"name": f"A{i}", "stack_type": "F32"} for i in range(65535)]),
}


@pytest.mark.parametrize("key", WHAT_C_CANNOT_HAVE)
def test_what_c_structs_and_headers_cannot_hold_is_refused_by_its_key(key):
    with pytest.raises(UserError, match=f"^description: key '{re.escape(key)}': "):
        describe_instruction_set(WHAT_C_CANNOT_HAVE[key])


def test_an_unknown_type_is_refused_with_the_known_ones(tmp_path):
    description = copy.deepcopy(MINIMAL)
    description["instructions"][0]["args"][1] = "F33"
    with pytest.raises(UserError, match=r"key 'instructions\.0\.args': unknown type 'F33', one of: F32, V2$"):
        load_instruction_set(write(tmp_path, description))


def test_two_instructions_of_one_name_are_refused_with_the_remedy(tmp_path):
    description = copy.deepcopy(MINIMAL)
    description["instructions"].append({"ptx": "add.f32", "args": ["F32"], "rets": ["F32"]})
    with pytest.raises(
        UserError, match=r"key 'instructions\.2': the name 'add_f32' is used twice; give one entry a 'name' of its own"
    ):
        load_instruction_set(write(tmp_path, description))


def test_text_that_is_not_json_is_refused_with_its_line_and_column(tmp_path):
    source = write(tmp_path, '{\n"abi_version": 1,\n"stack_types": [,]}')
    with pytest.raises(UserError, match=r"set\.json:3:17: not JSON: "):
        load_instruction_set(source)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(UserError, match=r"none\.json: cannot read the instruction set: "):
        load_instruction_set(tmp_path / "none.json")
    (tmp_path / "latin.json").write_bytes(b'{"\xff": 1}')
    with pytest.raises(UserError, match=r"latin\.json: cannot read the instruction set: "):
        load_instruction_set(tmp_path / "latin.json")
