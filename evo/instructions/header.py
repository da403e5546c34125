"""An instruction set as a C or C++ header, to be included beside stack_ptx.h.

Owns the text of these headers. Knows nothing of files or command lines. One header has all that C needs: enumerators, encoders of
words, the tables of `stack_ptx_stack_info`, and `stack_ptx_traits` for functions that need more than PTX text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

from evo.instructions import InstructionSet
from evo.native.stack_ptx_tables import MAX_NUM_ARGS, MAX_NUM_RETS
from evo.native.stack_ptx_words import META_OPERATIONS

# By encoder_type: C type, member of StackPtxPayload.
_PAYLOADS: dict[str | None, tuple[str, str]] = {"f32": ("float", "f"), "u32": ("uint32_t", "u"), "s32": ("int32_t", "s")}


def render_header(instruction_set: InstructionSet, lang: str, file_name: str) -> str:
    """The header as text.

    Args:
        instruction_set: any.
        lang: `c` (C99 and C++11) or `cpp` (C++11, namespace `stack_ptx`).
        file_name: for the include guard.
    """
    guard = "_" * file_name[:1].isdigit() + re.sub(r"[^A-Za-z0-9_]", "_", file_name).upper()
    body = {"c": _c_lines, "cpp": _cpp_lines}[lang](instruction_set)
    num_instructions, num_stacks = len(instruction_set.instructions), len(instruction_set.stacks)
    head = [
        "/*",
        f" * {file_name} - an instruction set of Stack PTX: {num_instructions} instructions on {num_stacks} stacks.",
        " *",
        " * Written by `python -m evo.instructions generate`; edit its input instead.",
        " */",
        "",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        '#include "stack_ptx.h"',
        "",
    ]
    return "\n".join([*head, *body, "", f"#endif /* {guard} */", ""])


def _enumerators(instruction_set: InstructionSet) -> dict[str, list[str]]:
    """By kind, as in STACK_PTX_STACK_TYPE_F32: names in index order, in upper case."""
    return {
        "STACK_TYPE": [stack.name.upper() for stack in instruction_set.stacks],
        "ARG_TYPE": [arg_type.name.upper() for arg_type in instruction_set.arg_types],
        "PTX_INSTRUCTION": [instruction.name.upper() for instruction in instruction_set.instructions],
        "SPECIAL_REGISTER": [_special_name(special.ptx).upper() for special in instruction_set.special_registers],
    }


def _special_name(ptx: str) -> str:
    return ptx.replace(".", "_")


def _constants(instruction_set: InstructionSet) -> list[tuple[str, str, str, str]]:
    """(encoder's name, enumerator of the stack, C type, payload member) of each stack that has constants."""
    return [
        (stack.name.lower(), stack.name.upper(), *_PAYLOADS[stack.encoder_type])
        for stack in instruction_set.stacks
        if stack.constant_type is not None
    ]


# ---- tables ----


def _tables(
    instruction_set: InstructionSet, name: Callable[[str], str], arg: Callable[[int], str], count: Callable[[str], str]
) -> list[str]:
    """The arrays and structs of stack_ptx.h.

    Args:
        name: a table's short name -> its name in the header.
        arg: index of an argument type, or the number of types -> its initialiser.
        count: kind of things -> the expression for their number.
    """
    lines = []

    def table(c_type: str, own_name: str, rows: list[str]) -> None:
        # C has no empty arrays.
        lines.extend([f"static const {c_type} {name(own_name)}[] = {{", *(f"    {row}," for row in rows or ["0"]), "};", ""])

    sets = instruction_set
    table("char* const", "literal_prefixes", [f'"{stack.literal_prefix}"' for stack in sets.stacks])
    lines_of_types = [f"{{{a.stack_idx}, {a.num_vec_elems}}}" for a in sets.arg_types]
    table("StackPtxArgTypeInfo", "arg_type_info", lines_of_types or ["{0, 0}"])
    table("char* const", "ptx_instruction_strings", [f'"{instruction.ptx}"' for instruction in sets.instructions])
    displays = [_c_string(instruction.display) for instruction in sets.instructions]
    table("char* const", "ptx_instruction_display_names", displays)
    none = len(sets.arg_types)
    descriptors = []
    for instruction in sets.instructions:
        args = [*instruction.args, *[none] * MAX_NUM_ARGS][:MAX_NUM_ARGS]
        rets = [*instruction.rets, *[none] * MAX_NUM_RETS][:MAX_NUM_RETS]
        needs: Counter[int] = Counter()
        for index in instruction.args:
            needs[sets.arg_types[index].stack_idx] += max(1, sets.arg_types[index].num_vec_elems)
        pairs = [*needs.items(), *[(0, 0)] * MAX_NUM_ARGS][:MAX_NUM_ARGS]
        requirements = ", ".join(f"{{{stack}, {number}}}" for stack, number in pairs)
        descriptors.append(
            f"{{{{{', '.join(map(arg, args))}}}, {{{', '.join(map(arg, rets))}}}, {len(needs)}, "
            f"{'true' if instruction.aligned else 'false'}, {{{requirements}}}}}"
        )
    zeros = "{{0, 0, 0, 0}, {0, 0}, 0, false, {{0, 0}, {0, 0}, {0, 0}, {0, 0}}}"
    table("StackPtxPtxInstructionDescriptor", "ptx_instruction_descriptors", descriptors or [zeros])
    specials = [f'"{special.ptx}"' for special in sets.special_registers]
    table("char* const", "special_register_strings", specials)
    table("char* const", "special_register_display_names", specials)
    special_types = [f"{{{arg(special.arg_idx)}}}" for special in sets.special_registers]
    table("StackPtxSpecialRegisterDescriptor", "special_register_descriptors", special_types or ["{0}"])
    traits = [f"{{{i.num_commutative}, {int(i.volatile)}, {int(i.registers_only)}}}" for i in sets.instructions]
    table("StackPtxInstructionTraits", "ptx_instruction_traits", traits or ["{0, 0, 0}"])
    table("uint8_t", "volatile_special_registers", [str(int(special.volatile)) for special in sets.special_registers])
    constant_types = [f"STACK_PTX_CONSTANT_TYPE_{(stack.constant_type or 'none').upper()}" for stack in sets.stacks]
    table("uint8_t", "constant_types", constant_types)
    lines += [
        f"static const StackPtxStackInfo {name('stack_info')} = {{",
        f"    {name('ptx_instruction_strings')}, {name('ptx_instruction_descriptors')}, {count('PTX_INSTRUCTION')},",
        f"    {name('special_register_strings')}, {name('special_register_descriptors')}, {count('SPECIAL_REGISTER')},",
        f"    {name('literal_prefixes')}, {count('STACK_TYPE')},",
        f"    {name('arg_type_info')}, {count('ARG_TYPE')}",
        "};",
        "",
        "/* For StackPtxLanguageInfo. */",
        f"static const StackPtxTraits {name('traits')} = {{",
        f"    {name('ptx_instruction_traits')}, {name('volatile_special_registers')}, {name('constant_types')}",
        "};",
    ]
    return lines


def _c_string(text: str) -> str:
    """A string literal of C. Octal escapes end after three digits, whatever follows."""
    return '"' + "".join(c if " " <= c <= "~" and c not in '"\\?' else _escape(c) for c in text) + '"'


def _escape(character: str) -> str:
    return "".join(f"\\{byte:03o}" for byte in character.encode())


# ---- C ----


def _c_lines(instruction_set: InstructionSet) -> list[str]:
    lines: list[str] = []
    for kind, names in _enumerators(instruction_set).items():
        type_name = "StackPtx" + "".join(part.capitalize() for part in kind.split("_"))
        lines += ["typedef enum {"]
        lines += [f"    STACK_PTX_{kind}_{name} = {index}," for index, name in enumerate(names)]
        lines += [f"    STACK_PTX_{kind}_NUM_ENUMS = {len(names)}", f"}} {type_name};", ""]

    def word(word_type: str, aux: str = "0", member: str = "u", payload: str = "0") -> str:
        return f"STACK_PTX__WORD({word_type}, {aux}, {member}, {payload})"

    def define(name: str, value: str) -> None:
        lines.append(f"#define stack_ptx_encode_{name} {value}")

    lines.append("/* Words, as expressions: for initialisers, static ones too, and for assignments. */")
    define("input(idx)", word("INPUT", payload="(uint32_t)(idx)"))
    for name, stack, c_type, member in _constants(instruction_set):
        define(f"constant_{name}(value)", word("CONSTANT", f"STACK_PTX_STACK_TYPE_{stack}", member, f"({c_type})(value)"))
    define("store(stack, idx)", word("STORE", "stack", payload="(uint32_t)(idx)"))
    define("load(idx)", word("LOAD", payload="(uint32_t)(idx)"))
    define("routine(idx)", word("ROUTINE", payload="(uint32_t)(idx)"))
    define("return", word("RETURN"))
    define("meta_constant(value)", word("META_CONSTANT", payload="(uint32_t)(value)"))
    for operation in META_OPERATIONS:
        enumerator = f"STACK_PTX_META_INSTRUCTION_{operation.upper()}"
        define(f"meta_{operation}(stack)", word("META", "stack", payload=enumerator))
    for instruction in instruction_set.instructions:
        enumerator = f"STACK_PTX_PTX_INSTRUCTION_{instruction.name.upper()}"
        define(f"ptx_instruction_{instruction.name}", word("PTX", payload=enumerator))
    for special in instruction_set.special_registers:
        name = _special_name(special.ptx)
        define(f"special_register_{name}", word("SPECIAL", payload=f"STACK_PTX_SPECIAL_REGISTER_{name.upper()}"))
    lines += ["", "/* The word of each PTX instruction, by its index. */"]
    lines += ["static const StackPtxInstruction stack_ptx_ptx_instructions[] = {"]
    lines += [
        f"    {{STACK_PTX_INSTRUCTION_TYPE_PTX, 0, {{STACK_PTX_PTX_INSTRUCTION_{instruction.name.upper()}}}}},"
        for instruction in instruction_set.instructions
    ]
    lines += [] if instruction_set.instructions else ["    {STACK_PTX_INSTRUCTION_TYPE_RETURN, 0, {0}},"]
    lines += ["};", ""]

    def arg(index: int) -> str:
        named = index < len(instruction_set.arg_types)
        return f"STACK_PTX_ARG_TYPE_{instruction_set.arg_types[index].name.upper() if named else 'NUM_ENUMS'}"

    return lines + _tables(instruction_set, "stack_ptx_{}".format, arg, "STACK_PTX_{}_NUM_ENUMS".format)


# ---- C++ ----


def _cpp_lines(instruction_set: InstructionSet) -> list[str]:
    lines = ["namespace stack_ptx {", ""]
    for kind, names in _enumerators(instruction_set).items():
        lines += [f"enum class {_cpp_enum(kind)} : uint16_t {{"]
        lines += [f"    {name} = {index}," for index, name in enumerate(names)]
        lines += [f"    NUM_ENUMS = {len(names)}", "};", ""]
    lines += ["/* For StackPtxRegister. */"]
    lines += ["constexpr uint16_t stack_idx(StackType stack) { return static_cast<uint16_t>(stack); }", ""]

    def word(word_type: str, aux: str = "0", payload: str = "0u") -> str:
        return f"StackPtxInstruction{{STACK_PTX_INSTRUCTION_TYPE_{word_type}, {aux}, {{{payload}}}}}"

    def function(name: str, parameters: str, value: str) -> None:
        lines.append(f"constexpr StackPtxInstruction encode_{name}({parameters}) {{ return {value}; }}")

    function("input", "uint32_t idx", word("INPUT", payload="idx"))
    for name, stack, c_type, member in _constants(instruction_set):
        # C++11 can only initialise the first member of a union; gcc and clang need __extension__.
        payload = f"__extension__ StackPtxPayload{{.{member} = value}}"
        value = f"StackPtxInstruction{{STACK_PTX_INSTRUCTION_TYPE_CONSTANT, stack_idx(StackType::{stack}), {payload}}}"
        function(f"constant_{name}", f"{c_type} value", value)
    function("store", "StackType stack, uint32_t idx", word("STORE", "stack_idx(stack)", "idx"))
    function("load", "uint32_t idx", word("LOAD", payload="idx"))
    function("routine", "uint32_t idx", word("ROUTINE", payload="idx"))
    function("meta_constant", "uint32_t value", word("META_CONSTANT", payload="value"))
    for operation in META_OPERATIONS:
        enumerator = f"STACK_PTX_META_INSTRUCTION_{operation.upper()}"
        function(f"meta_{operation}", "StackType stack", word("META", "stack_idx(stack)", enumerator))
    for kind, name in (("PTX_INSTRUCTION", "ptx_instruction"), ("SPECIAL_REGISTER", "special_register")):
        word_type = "PTX" if kind == "PTX_INSTRUCTION" else "SPECIAL"
        function(name, f"{_cpp_enum(kind)} idx", word(word_type, payload="static_cast<uint32_t>(idx)"))
    lines += ["", f"constexpr StackPtxInstruction encode_return = {word('RETURN')};"]
    for instruction in instruction_set.instructions:
        value = f"encode_ptx_instruction(PtxInstruction::{instruction.name.upper()})"
        lines.append(f"constexpr StackPtxInstruction encode_ptx_instruction_{instruction.name} = {value};")
    for special in instruction_set.special_registers:
        name = _special_name(special.ptx)
        value = f"encode_special_register(SpecialRegister::{name.upper()})"
        lines.append(f"constexpr StackPtxInstruction encode_special_register_{name} = {value};")
    lines += ["", "/* The word of each PTX instruction, by its index. */"]
    lines += ["constexpr StackPtxInstruction ptx_instructions[] = {"]
    lines += [f"    encode_ptx_instruction_{instruction.name}," for instruction in instruction_set.instructions]
    lines += [] if instruction_set.instructions else ["    encode_return,"]
    lines += ["};", ""]

    def count(kind: str) -> str:
        return f"static_cast<size_t>({_cpp_enum(kind)}::NUM_ENUMS)"

    return [*lines, *_tables(instruction_set, str, str, count), "", "} /* namespace stack_ptx */"]


def _cpp_enum(kind: str) -> str:
    return "".join(part.capitalize() for part in kind.split("_"))
