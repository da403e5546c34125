"""load_enums: enums in the form of mm-ptx-py are an instruction set."""

from enum import Enum, auto

import pytest

from evo.errors import UserError
from evo.stack_ptx import Compiler, Words, load, load_enums


class Stack(Enum):
    f32 = (auto(), "f32")
    u32 = (auto(), "u32")
    pred = (auto(), "pred")


class Arg(Enum):
    f32 = (auto(), Stack.f32)
    u32 = (auto(), Stack.u32)
    v4_u32 = (auto(), Stack.u32, 4)
    pred = (auto(), Stack.pred)


class Instruction(Enum):
    add = (auto(), "add.ftz.f32", [Arg.f32, Arg.f32], [Arg.f32])
    less = (auto(), "setp.lt.ftz.f32", [Arg.f32, Arg.f32], [Arg.pred])
    select = (auto(), "selp.f32", [Arg.f32, Arg.f32, Arg.pred], [Arg.f32], True)


class Special(Enum):
    tid = (auto(), "tid", Arg.v4_u32)
    laneid = (auto(), "laneid", Arg.u32)


def test_enums_and_a_mapping_describe_the_same_set():
    assert load_enums(Stack, Arg, Instruction, Special) == load(
        {
            "abi_version": 1,
            "stack_types": [
                {"name": "f32", "literal_prefix": "f32", "constant_type": "f32"},
                {"name": "u32", "literal_prefix": "u32", "constant_type": "u32"},
                {"name": "pred", "literal_prefix": "pred"},
            ],
            "arg_types": [
                {"name": "f32", "stack_type": "f32"},
                {"name": "u32", "stack_type": "u32"},
                {"name": "v4_u32", "stack_type": "u32", "num_vec_elems": 4},
                {"name": "pred", "stack_type": "pred"},
            ],
            "instructions": [
                {"name": "add", "ptx": "add.ftz.f32", "args": ["f32", "f32"], "rets": ["f32"]},
                {"name": "less", "ptx": "setp.lt.ftz.f32", "args": ["f32", "f32"], "rets": ["pred"]},
                {"name": "select", "ptx": "selp.f32", "args": ["f32", "f32", "pred"], "rets": ["f32"], "aligned": True},
            ],
            "special_registers": [{"ptx": "tid", "arg_type": "v4_u32"}, {"ptx": "laneid", "arg_type": "u32"}],
        }
    )


def test_programs_use_the_names_of_members():
    words = Words(load_enums(Stack, Arg, Instruction))
    r = words.registers(x="f32", z="f32")
    stub = Compiler(r, ["z"]).compile([r.x, 1.0, words.instructions.add])
    assert stub.splitlines()[2:4] == ["add.ftz.f32 %_s0_0, 0f3F800000, %x;", "mov.f32 %z, %_s0_0;"]


@pytest.mark.parametrize(
    ("member", "message"),
    [
        ((1,), r"Wrong\.add = \(1,\): expected \(auto\(\), str, list, list, bool\)"),
        ("add.f32", r"Wrong\.add = 'add\.f32': expected"),
        ((1, "add.f32", Arg.f32, [Arg.f32]), "expected"),
        ((1, "add.f32", [Arg.f32], [Arg.f32], "aligned"), "expected"),
    ],
)
def test_a_member_of_another_form_is_refused_by_name(member, message):
    with pytest.raises(ValueError, match=message):
        load_enums(Stack, Arg, Enum("Wrong", {"add": member}))


def test_what_is_no_instruction_set_is_refused_with_the_enum_and_the_key():
    wrong = Enum("Wrong", {"add": (1, "no PTX!", [Arg.f32], [Arg.f32])})
    with pytest.raises(UserError, match=r"^enum Wrong: .*instructions\.0\.ptx"):
        load_enums(Stack, Arg, wrong)
