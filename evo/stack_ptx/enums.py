"""Instruction sets from Python enums, the form of mm-ptx-py.

    class Stack(Enum):
        f32 = (auto(), "f32")                                                       PTX type of its registers
    class Arg(Enum):
        f32 = (auto(), Stack.f32)                                                   stack
        v4_f32 = (auto(), Stack.f32, 4)                                             and the elements of a vector
    class Instruction(Enum):
        add_ftz_f32 = (auto(), "add.ftz.f32", [Arg.f32, Arg.f32], [Arg.f32])        PTX, operands, results[, is aligned]
    class Special(Enum):
        laneid = (auto(), "laneid", Arg.u32)                                        PTX, type

    words = Words(load_enums(Stack, Arg, Instruction, Special))

Owns this form. `evo.instructions` checks what it says.
"""

from enum import Enum
from typing import Any

from evo.instructions import ABI_VERSION, InstructionSet, describe_instruction_set
from evo.native.stack_ptx_tables import CONSTANT_TYPES


def load_enums(
    stacks: type[Enum], arg_types: type[Enum], instructions: type[Enum], special_registers: type[Enum] | None = None
) -> InstructionSet:
    """An instruction set from enums; the module's docstring has their form.

    Members keep their order and names. A stack has constants if its PTX type is that of constants.

    Raises:
        ValueError: a member's value has another form.
        evo.errors.UserError: what the enums describe is not an instruction set.
    """
    special = [_fields(member, (str, Enum)) for member in special_registers or ()]
    description = {
        "abi_version": ABI_VERSION,
        "stack_types": [_stack(member) for member in stacks],
        "arg_types": [_arg_type(member) for member in arg_types],
        "instructions": [_instruction(member) for member in instructions],
        "special_registers": [{"ptx": ptx, "arg_type": arg_type.name} for ptx, arg_type in special],
    }
    return describe_instruction_set(description, f"enum {instructions.__name__}")


def _stack(member: Enum) -> dict[str, Any]:
    [prefix] = _fields(member, (str,))
    constant_type = prefix if prefix in CONSTANT_TYPES else None
    return {"name": member.name, "literal_prefix": prefix, "constant_type": constant_type}


def _arg_type(member: Enum) -> dict[str, Any]:
    stack, num_vec_elems = _fields(member, (Enum, int), (0,))
    return {"name": member.name, "stack_type": stack.name, "num_vec_elems": num_vec_elems}


def _instruction(member: Enum) -> dict[str, Any]:
    ptx, args, rets, is_aligned = _fields(member, (str, list, list, bool), (False,))
    names = {"args": [arg.name for arg in args], "rets": [ret.name for ret in rets]}
    return {"name": member.name, "ptx": ptx, **names, "aligned": is_aligned}


def _fields(member: Enum, kinds: tuple[type, ...], defaults: tuple[Any, ...] = ()) -> list[Any]:
    """A member's value without its number, which `auto()` gave."""
    value = member.value if isinstance(member.value, tuple) else (member.value,)
    explicit = list(value[1:])
    fields = explicit + list(defaults[len(explicit) + len(defaults) - len(kinds) :])
    if len(fields) != len(kinds) or not all(isinstance(field, kind) for field, kind in zip(fields, kinds, strict=True)):
        wanted = ", ".join(["auto()", *(kind.__name__ for kind in kinds)])
        raise ValueError(f"{type(member).__name__}.{member.name} = {member.value!r}: expected ({wanted})")
    return fields
