"""An instruction set as a C or C++ header, to be included beside stack_ptx.h.

Owns the text of these headers. Knows nothing of files or command lines. One header has all that is needed: enumerators, encoders
of words, the tables of `stack_ptx_stack_info`, and `stack_ptx_traits` for functions that need more than PTX text.
"""

from collections import Counter
from collections.abc import Iterable

from evo.c_text import header
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
    num_instructions, num_stacks = len(instruction_set.instructions), len(instruction_set.stacks)
    text = _Header(instruction_set, lang == "cpp")
    text.write_enumerators()
    text.write_encoders()
    text.write_tables()
    remark = [
        f"{file_name} - an instruction set of Stack PTX: {num_instructions} instructions on {num_stacks} stacks.",
        "",
        "Written by `python -m evo.instructions generate`; edit its input instead.",
    ]
    body = ["namespace stack_ptx {", "", *text.lines, "", "} /* namespace stack_ptx */"] if text.is_cpp else text.lines
    return header(remark, ['#include "stack_ptx.h"', "", *body], file_name)


class _Header:
    """The lines between the guards. Kinds of things are named as in STACK_PTX_STACK_TYPE_F32."""

    def __init__(self, instruction_set: InstructionSet, is_cpp: bool):
        self.set = instruction_set
        self.is_cpp = is_cpp
        self.lines: list[str] = []

    def _enumerator(self, kind: str, name: str) -> str:
        return f"{_capitals(kind)}::{name.upper()}" if self.is_cpp else f"STACK_PTX_{kind}_{name.upper()}"

    def _name(self, own_name: str) -> str:
        return own_name if self.is_cpp else f"stack_ptx_{own_name}"

    def write_enumerators(self) -> None:
        names = {
            "STACK_TYPE": [stack.name for stack in self.set.stacks],
            "ARG_TYPE": [arg_type.name for arg_type in self.set.arg_types],
            "PTX_INSTRUCTION": [instruction.name for instruction in self.set.instructions],
            "SPECIAL_REGISTER": [_special_name(special.ptx) for special in self.set.special_registers],
        }
        for kind, of_kind in names.items():
            prefix = "" if self.is_cpp else f"STACK_PTX_{kind}_"
            rows = [f"    {prefix}{name.upper()} = {index}," for index, name in enumerate(of_kind)]
            rows += [f"    {prefix}NUM_ENUMS = {len(of_kind)}"]
            if self.is_cpp:
                self.lines += [f"enum class {_capitals(kind)} : uint16_t {{", *rows, "};", ""]
            else:
                self.lines += ["typedef enum {", *rows, f"}} StackPtx{_capitals(kind)};", ""]

    def write_encoders(self) -> None:
        stack = {"stack": "StackType"}
        if self.is_cpp:
            self.lines += ["/* For StackPtxRegister. */"]
            self.lines += ["constexpr uint16_t stack_idx(StackType stack) { return static_cast<uint16_t>(stack); }", ""]
        self.lines += ["/* Words, as expressions: for initialisers, static ones too, and for assignments. */"]
        self._encoder("input", {"idx": "uint32_t"}, "INPUT")
        for stack_row in self.set.stacks:
            if stack_row.constant_type is not None:
                c_type, member = _PAYLOADS[stack_row.encoder_type]
                stack_type = self._enumerator("STACK_TYPE", stack_row.name)
                self._encoder(f"constant_{stack_row.name.lower()}", {"value": c_type}, "CONSTANT", stack_type, member)
        self._encoder("store", {**stack, "idx": "uint32_t"}, "STORE", "stack")
        self._encoder("load", {"idx": "uint32_t"}, "LOAD")
        self._encoder("routine", {"idx": "uint32_t"}, "ROUTINE")
        self._encoder("return", {}, "RETURN")
        self._encoder("meta_constant", {"value": "uint32_t"}, "META_CONSTANT")
        for operation in META_OPERATIONS:
            payload = f"STACK_PTX_META_INSTRUCTION_{operation.upper()}"
            self._encoder(f"meta_{operation}", stack, "META", "stack", payload=payload)
        named = {
            "ptx_instruction": ("PTX", [instruction.name for instruction in self.set.instructions]),
            "special_register": ("SPECIAL", [_special_name(special.ptx) for special in self.set.special_registers]),
        }
        for kind, (word_type, names) in named.items():
            if self.is_cpp:
                self._encoder(kind, {"idx": _capitals(kind)}, word_type, payload="static_cast<uint32_t>(idx)")
            for name in names:
                self._encoder(f"{kind}_{name}", {}, word_type, payload=f"(uint32_t){self._enumerator(kind.upper(), name)}")

    def _encoder(
        self, name: str, parameters: dict[str, str], word_type: str, aux: str = "0", member: str = "u", payload: str = ""
    ) -> None:
        """parameters: C types by name. payload: without one, the last parameter but a stack; else 0."""
        values = [f"({c_type})({parameter})" for parameter, c_type in parameters.items() if c_type != "StackType"]
        word = f"STACK_PTX__WORD({word_type}, {aux}, {member}, {payload or (values or ['0'])[-1]})"
        if not self.is_cpp:
            listed = f"({', '.join(parameters)})" if parameters else ""
            self.lines += [f"#define stack_ptx_encode_{name}{listed} {word}"]
        elif parameters:
            typed = ", ".join(f"{c_type} {parameter}" for parameter, c_type in parameters.items())
            self.lines += [f"constexpr StackPtxInstruction encode_{name}({typed}) {{ return {word}; }}"]
        else:
            self.lines += [f"constexpr StackPtxInstruction encode_{name} = {word};"]

    def write_tables(self) -> None:
        """The arrays and structs of stack_ptx.h."""
        sets, none = self.set, len(self.set.arg_types)
        self.lines += ["", "/* The word of each PTX instruction, by its index. */"]
        words = [f"{{STACK_PTX_INSTRUCTION_TYPE_PTX, 0, {{{index}}}}}" for index in range(len(sets.instructions))]
        self._table("StackPtxInstruction", "ptx_instructions", words, "{STACK_PTX_INSTRUCTION_TYPE_RETURN, 0, {0}}")
        self._table("char* const", "literal_prefixes", (f'"{stack.literal_prefix}"' for stack in sets.stacks))
        arg_types = (f"{{{a.stack_idx}, {a.num_vec_elems}}}" for a in sets.arg_types)
        self._table("StackPtxArgTypeInfo", "arg_type_info", arg_types, "{0, 0}")
        self._table("char* const", "ptx_instruction_strings", (f'"{instruction.ptx}"' for instruction in sets.instructions))
        self._table(
            "char* const", "ptx_instruction_display_names", (_c_string(instruction.display) for instruction in sets.instructions)
        )
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
                f"{{{{{', '.join(map(str, args))}}}, {{{', '.join(map(str, rets))}}}, {len(needs)}, "
                f"{'true' if instruction.aligned else 'false'}, {{{requirements}}}}}"
            )
        zeros = "{{0, 0, 0, 0}, {0, 0}, 0, false, {{0, 0}, {0, 0}, {0, 0}, {0, 0}}}"
        self._table("StackPtxPtxInstructionDescriptor", "ptx_instruction_descriptors", descriptors, zeros)
        specials = [f'"{special.ptx}"' for special in sets.special_registers]
        self._table("char* const", "special_register_strings", specials)
        self._table("char* const", "special_register_display_names", specials)
        special_types = (f"{{{special.arg_idx}}}" for special in sets.special_registers)
        self._table("StackPtxSpecialRegisterDescriptor", "special_register_descriptors", special_types, "{0}")
        traits = (f"{{{i.num_commutative}, {int(i.volatile)}, {int(i.registers_only)}}}" for i in sets.instructions)
        self._table("StackPtxInstructionTraits", "ptx_instruction_traits", traits, "{0, 0, 0}")
        self._table("uint8_t", "volatile_special_registers", (str(int(special.volatile)) for special in sets.special_registers))
        constant_types = (f"STACK_PTX_CONSTANT_TYPE_{(stack.constant_type or 'none').upper()}" for stack in sets.stacks)
        self._table("uint8_t", "constant_types", constant_types)
        name = self._name
        counts = {
            kind: f"(size_t){self._enumerator(kind, 'NUM_ENUMS')}"
            for kind in ("PTX_INSTRUCTION", "SPECIAL_REGISTER", "STACK_TYPE", "ARG_TYPE")
        }
        self.lines += [
            f"{self._storage} StackPtxStackInfo {name('stack_info')} = {{",
            f"    {name('ptx_instruction_strings')}, {name('ptx_instruction_descriptors')}, {counts['PTX_INSTRUCTION']},",
            f"    {name('special_register_strings')}, {name('special_register_descriptors')}, {counts['SPECIAL_REGISTER']},",
            f"    {name('literal_prefixes')}, {counts['STACK_TYPE']},",
            f"    {name('arg_type_info')}, {counts['ARG_TYPE']}",
            "};",
            "",
            "/* For StackPtxLanguageInfo. */",
            f"{self._storage} StackPtxTraits {name('traits')} = {{",
            f"    {name('ptx_instruction_traits')}, {name('volatile_special_registers')}, {name('constant_types')}",
            "};",
        ]

    @property
    def _storage(self) -> str:
        return "static constexpr const" if self.is_cpp else "static const"

    def _table(self, c_type: str, own_name: str, rows: Iterable[str], placeholder: str = "0") -> None:
        """placeholder: the row of an empty table, which C does not have."""
        listed = list(rows) or [placeholder]
        self.lines += [f"{self._storage} {c_type} {self._name(own_name)}[] = {{", *(f"    {row}," for row in listed), "};", ""]


def _capitals(kind: str) -> str:
    """STACK_TYPE as StackType."""
    return "".join(part.capitalize() for part in kind.split("_"))


def _special_name(ptx: str) -> str:
    return ptx.replace(".", "_")


def _c_string(text: str) -> str:
    """A string literal of C. Octal escapes end after three digits, whatever follows."""
    return '"' + "".join(c if " " <= c <= "~" and c not in '"\\?' else _escape(c) for c in text) + '"'


def _escape(character: str) -> str:
    return "".join(f"\\{byte:03o}" for byte in character.encode())
