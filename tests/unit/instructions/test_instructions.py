"""evo.instructions: the shipped order stays; each mistake in a description is named by its key."""

import copy
import dataclasses
import hashlib
import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evo import instructions
from evo.errors import UserError
from evo.instructions import (
    describe_instruction_set,
    load_instruction_set,
    shipped_instruction_set,
)


@pytest.fixture(scope="module")
def wide():
    return shipped_instruction_set("wide")


@pytest.mark.parametrize(
    ("name", "num_instructions", "digest"),
    [
        ("default", 38, "350833aca07435c3bbd794100f47ec8556f05be98f143db69cf0280191c4ab10"),
        ("wide", 808, "afd27986a986baf08443bac59b7a1baf692de112f85c821cf395d8c5e176ef6a"),
    ],
)
def test_indices_types_and_traits_of_shipped_instructions_never_change(name, num_instructions, digest):
    """Words of stored programs and users' C carry the indices, and runs recognise their set by its repr. New ones come last."""
    found = shipped_instruction_set(name)
    first = dataclasses.replace(found, instructions=found.instructions[:num_instructions])
    assert hashlib.sha256(repr(first).encode()).hexdigest() == digest


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


def test_a_description_is_read_from_a_file_and_from_python(tmp_path):
    found = load_instruction_set(write(tmp_path, MINIMAL))
    assert describe_instruction_set({k: v for k, v in MINIMAL.items() if k != "abi_version"}) == found
    with pytest.raises(UserError, match=r"^here: key 'instructions': "):
        describe_instruction_set({**MINIMAL, "instructions": 3}, "here")
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
        ({"display": "xor", "name": "Xor3"}, "Xor3"),
    ],
)
def test_an_instruction_without_a_name_is_called_by_its_display_or_its_ptx(keys, name):
    instruction = {"ptx": "lop3.b32 0x96", "args": ["F32"] * 3, "rets": ["F32"], **keys}
    assert describe_instruction_set({**MINIMAL, "instructions": [instruction]}).instructions[0].name == name


REMOVED = object()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("abi_version", 2),
        ("stack_types", []),
        ("stack_types.0.name", REMOVED),
        ("stack_types.0.literal_prefix", 3),
        ("stack_types.0.constant_typ", "f32"),
        ("arg_types.0.stack_type", "F64"),
        ("arg_types.1.name", "F32"),
        ("arg_types.1.num_vec_elems", 9),
        ("instructions.0.ptx", REMOVED),
        ("instructions.0.args", ["F32", "F33"]),
        ("instructions.0.args", ["F32"] * 5),
        ("instructions.0.rets", []),
        ("instructions.0.num_commutative", 1),
        ("instructions.1.num_commutative", 2),
        ("instructions.1.aligned", 1),
        ("instructions.0.vm", "add_f32"),
        ("instructions.0.derivative", {"a": "w"}),
        ("special_registers.0.arg_type", "U32"),
        # Texts that cannot be C or PTX.
        ("stack_types.0.name", "two words"),
        ("stack_types.0.literal_prefix", "f32; bad"),
        ("stack_types.0.constant_type", "f99"),
        ("instructions.0.ptx", 'add"'),
        ("instructions.0.ptx", "add.f32;"),
        ("instructions.0.name", "int main"),
        ("instructions.1.name", "ADD_F32"),
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
    owner = key.removesuffix(".name") if value in ("F32", "ADD_F32") else key
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
    # Refusals of stack_ptx_language_init.
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


def test_two_instructions_of_one_name_are_refused_with_the_remedy(tmp_path):
    description = copy.deepcopy(MINIMAL)
    description["instructions"].append({"ptx": "add.f32", "args": ["F32"], "rets": ["F32"]})
    with pytest.raises(
        UserError, match=r"key 'instructions\.2': the name 'add_f32' is used twice; give one entry a 'name' of its own"
    ):
        load_instruction_set(write(tmp_path, description))
