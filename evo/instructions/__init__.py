"""Instruction sets: what the words of a program can mean, and what each instruction computes.

    {
      "abi_version": 1,
      "stack_types": [{"name": "U32", "literal_prefix": "u32", "constant_type": "u32"}],
      "arg_types": [{"name": "U32", "stack_type": "U32"}, {"name": "V4_U32", "stack_type": "U32", "num_vec_elems": 4}],
      "instructions": [{"ptx": "add.u32", "args": ["U32", "U32"], "rets": ["U32"], "num_commutative": 2}],
      "special_registers": [{"ptx": "tid", "arg_type": "V4_U32"}]
    }

Optional keys: `constant_type` (f32 u32 s32 f64 u64 s64 f16 bf16; without it a stack has no constants), `encoder_type` (f32 u32
s32: the C type of constants), `num_vec_elems`, `special_registers`, and of an instruction `display` (for readers; default: its
PTX), `name` (default: its `display`, or else its PTX, as an identifier), `aligned`, `volatile`, `num_commutative`,
`registers_only` and `meaning` (one line of words): see the classes below. The rest is the shipped instruction's with its PTX.

The shipped sets are one table, instructions.json. `wide` is most of it: PTX's arithmetic, logic, shift, bit, compare, select and
convert instructions of f32, f64, f16, f16x2, u32, s32, u64, s64, b32, b64 and pred that need no memory (the sections
"Instructions: ..." of the PTX ISA, 8.1, for sm_90). Instructions with a carry flag are left out: it is state. `default` is the
beginning of it; the keys `default`, `wide` and `halves` have their counts. `halves` also has arithmetic of bf16, and constants of
f16 and bf16, which the first two lack. `bits` is all of the table: also instructions on words of 32 bits, whatever they hold,
with lop3 for each of its 256 tables. Some rows have more keys, in which operands are called a, b, c and d. They
may stand in other sets too, but `vm`, `derivative` and `code` are compiled in: only the library's own are taken. So are `error`,
`infix`, `formula`, `sympy` and `function` of an instruction that the library has: what is said of it stays true.

    vm           the operation of csrc/ptx_vm.h that computes it on a CPU; without it the CPU cannot. A second word: `extreme`
                 (minimum or maximum of floats), `exact` (of floats, but any NaN keeps its bits) or `passes_nan` (an operand's
                 NaN may keep its bits)
    error        the largest error against the exact result that the PTX ISA 9.1 allows, section 9.7.3, and where: in units
                 `ulp`, `relative`, `absolute`, or `either`: absolute for a in (0.5, 2), else relative. The ISA's "maximum ulp
                 error" is read in the wider of two ways, as ulps from the correctly rounded result, which the ISA says of ex2
                 alone and CUDA's tables of all functions: half an ulp more than its figure, 1.5 for rcp, 2.5 for div and ex2.
                 Without `error` the result is exact (for rcp and rsqrt of f64, the ISA says nothing)
    derivative   what each operand gains, in the order of addition, as a formula of the result's gain w, the operands, the result
                 y, 0, 1, half, ln2 and log2e (1/ln2), with * / - < sin cos copysign select. Operands that are left out gain
                 nothing. csrc/derive.h reads it in postfix form: see evo.instructions.tables
    code         what exported Python and C compute: see evo.language.definitions; the key `helpers` has functions that it shares
    infix        how people write it, with + - * / < and calls; it is also read back from formulas. formula: what is only read
    sympy        how SymPy writes it, if not as people do
    slots        issue slots that it takes of a warp, of the four in a clock of a multiprocessor: a number, or numbers by the
                 architecture from which on each holds. The machine instructions are nvPTXCompiler 13's, by disassembly; each
                 takes 128 / results in a clock, by the CUDA C++ Programming Guide, "Throughput of Native Arithmetic
                 Instructions": of a multiprocessor f32 add, multiply and fma 128 (64 before 8.6), integers, logic, shifts and
                 comparisons 64, special functions, bit counts and conversions 16. The guide does not name choices and
                 permutations, here 64, nor conversions from integers on the unit of integers (from 8.6 on), here 64.
                 An instruction of f16 or bf16 counts half of what its form of two values (x2) takes: add, multiply and fma 256
                 results (128 in 7.5, 8.6 to 8.9 and 12, and for bf16 in 8.x), minima, maxima and the packing of two conversions
                 64 instructions, ex2 and tanh one of the special function units a value, and half of a permutation
    function     its name among the functions of regression, and `weight`: how often it is drawn by default

Owns sets and what refers to what in them; description.py has the keys of the JSON. Knows nothing of programs, tasks or search;
native modules build their own tables from the attributes of `InstructionSet`. `python -m evo.instructions` writes sets and the
table as C headers.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from evo.errors import UserError, did_you_mean
from evo.instructions.description import InstructionSetJson, Semantics
from evo.storage.json_file import first_mistake, parse_json, read_json

ABI_VERSION = 1
SHIPPED = ("default", "wide", "halves", "bits")
HALVES = ("f16", "bf16")
FLOATS = ("f32", "f64", *HALVES)  # whose constants are written as numbers: words have them as f32
MOVE = "mov.b32"  # whose types its PTX does not tell
_WHAT = "instruction set"


@dataclass(frozen=True)
class StackType:
    """One stack of the machine. literal_prefix: its PTX register type; constant_type: None if it has no constants.

    encoder_type: the type that C passes a constant's 32 bits as, `f32`, `u32` or `s32`; None if there are no constants.
    """

    name: str
    literal_prefix: str
    constant_type: str | None
    encoder_type: str | None = None


@dataclass(frozen=True)
class ArgType:
    """The type of an operand or result: a scalar of a stack (`num_vec_elems` 0), or a vector of this many of its values."""

    name: str
    stack_idx: int
    num_vec_elems: int


@dataclass(frozen=True)
class Instruction:
    """A PTX instruction. args, rets: indices of argument types; the first `num_commutative` operands may be swapped.

    ptx: may end with a space and immediates, which are written after the operands: `lop3.b32 0x96`. registers_only: the
    assembler does not take every constant as an operand, so constants are moved into registers first. display: for readers.
    semantics: not compared, sent to workers or part of the repr, by which runs recognise a set: it may be told in other words.
    """

    ptx: str
    name: str
    args: tuple[int, ...]
    rets: tuple[int, ...]
    aligned: bool
    num_commutative: int
    volatile: bool
    registers_only: bool = False
    display: str = ""
    semantics: Annotated[Semantics, Field(exclude=True)] = field(default=Semantics(), repr=False, compare=False)


@dataclass(frozen=True)
class Function:
    """Function of an instruction in exported text, or a helper of some. operands, result: PTX types, with u32 for s32."""

    name: str
    operands: tuple[str, ...]
    result: str
    meaning: str
    code: str


@dataclass(frozen=True)
class SpecialRegister:
    """A PTX special register, named without its percent sign. A volatile one may change between reads."""

    ptx: str
    arg_idx: int
    volatile: bool


@dataclass(frozen=True)
class InstructionSet:
    """Stacks, argument types, instructions and special registers; words refer to them by index."""

    stacks: tuple[StackType, ...]
    arg_types: tuple[ArgType, ...]
    instructions: tuple[Instruction, ...]
    special_registers: tuple[SpecialRegister, ...]

    def instruction_index(self, name: str) -> int:
        """The index of the instruction with this unique name. Raises KeyError."""
        return self._instruction_indices[name]

    def stack_index(self, name: str) -> int:
        """The index of the stack with this name, in upper or lower case. Raises KeyError."""
        return self._stack_indices[name.lower()]

    @cached_property
    def with_vectors(self) -> frozenset[int]:
        """The indices of the instructions that take or give vectors."""
        instructions = enumerate(self.instructions)
        return frozenset(i for i, row in instructions if any(self.arg_types[a].num_vec_elems for a in (*row.args, *row.rets)))

    @cached_property
    def constant_types(self) -> tuple[str | None, ...]:
        """The constant type of each argument type's stack."""
        return tuple(self.stacks[kind.stack_idx].constant_type for kind in self.arg_types)

    @cached_property
    def _instruction_indices(self) -> dict[str, int]:
        return {instruction.name: index for index, instruction in enumerate(self.instructions)}

    @cached_property
    def _stack_indices(self) -> dict[str, int]:
        return {stack.name.lower(): index for index, stack in enumerate(self.stacks)}


def load_instruction_set(path: str | Path) -> InstructionSet:
    """Reads and checks the JSON description of an instruction set.

    Raises:
        UserError: the file cannot be read, is not JSON, or a key or name in it is wrong.
    """
    return _check(read_json(path, _WHAT), str(path))


def open_instruction_set(name: str | Path) -> InstructionSet:
    """The shipped set with this name (a string), or else that of the JSON file with this path.

    Raises:
        UserError: as `load_instruction_set`.
    """
    return shipped_instruction_set(str(name)) if name in SHIPPED else load_instruction_set(name)


def check_names(instruction_set: InstructionSet, names: Iterable[str], source: str) -> None:
    """Refuses the first name that no instruction has.

    Raises:
        UserError: such a name; the message has the nearest ones.
    """
    known = [instruction.name for instruction in instruction_set.instructions]
    for name in names:
        if name in known:
            continue
        set_names = [set_name for set_name in SHIPPED if name in {i.name for i in shipped_instruction_set(set_name).instructions}]
        hint = f"it is in the set '{set_names[0]}': program.instruction_set={set_names[0]}; " if set_names else ""
        raise UserError(f"unknown instruction '{name}'; {hint}{did_you_mean(name, known)}", source)


def describe_instruction_set(description: Mapping[str, Any], source: str = "description") -> InstructionSet:
    """Checks a description in Python: the keys of the JSON form, `abi_version` optional. Errors name the `source` and the key.

    Raises:
        UserError: a key or name in it is wrong.
    """
    return _check({"abi_version": ABI_VERSION, **description}, source)


@cache
def shipped_instruction_set(name: str) -> InstructionSet:
    """One of `SHIPPED`. Its order of indices is part of the meaning of every stored program. Raises KeyError."""
    if name not in SHIPPED:
        raise KeyError(name)
    full, table = _table()
    if name == "bits":
        return full
    counts: Any = getattr(table, name)
    stacks = full.stacks[: counts.stack_types]
    has_halves = name == "halves"
    return InstructionSet(
        tuple(
            replace(s, constant_type=None, encoder_type=None) if s.constant_type in HALVES and not has_halves else s
            for s in stacks
        ),
        full.arg_types[: counts.arg_types],
        full.instructions[: counts.instructions],
        full.special_registers,
    )


@cache
def shipped_functions() -> tuple[Function, ...]:
    """The helpers, and the instructions with `code`; one for each PTX, or, of moves between types, for each name."""
    full, table = _table()
    prefixes = [full.stacks[kind.stack_idx].literal_prefix for kind in full.arg_types]
    types = {kind.name: prefix for kind, prefix in zip(full.arg_types, prefixes, strict=True)}
    functions = [Function(h.name, tuple(types[a] for a in h.args), types[h.rets[0]], h.meaning, h.code) for h in table.helpers]
    for instruction in full.instructions:
        if instruction.semantics.code:
            words = [prefixes[index].replace("s32", "u32") for index in (*instruction.rets, *instruction.args)]
            functions.append(
                Function(
                    _identifier(_key(instruction)),
                    tuple(words[1:]),
                    words[0],
                    instruction.semantics.meaning,
                    instruction.semantics.code,
                )
            )
    return tuple({function.name: function for function in functions}.values())


@cache
def _table() -> tuple[InstructionSet, InstructionSetJson]:
    """Load the shipped instructions, as a set and as it is written."""
    source = "instructions.json"
    table = _parsed(parse_json(files(__package__).joinpath(source).read_text(encoding="utf-8"), source, _WHAT), source)
    rows = []
    for row in table.instructions:  # one stands for all tables of lop3
        tables = range(256) if row.name == "lop3_00" else ()
        more = [row.model_copy(update={"ptx": f"lop3.b32 0x{k:02X}", "name": f"lop3_{k:02x}"}) for k in tables]
        rows += more or [row]
    table = table.model_copy(update={"instructions": rows})
    return _resolved(table, source, {}), table


def _check(data: Any, source: str) -> InstructionSet:
    known_instructions = [*reversed(shipped_instruction_set("bits").instructions)]
    known_instructions.sort(key=lambda instruction: bool(instruction.semantics.vm))
    known = {_key(instruction): instruction.semantics for instruction in known_instructions}
    instruction_set = _resolved(_parsed(data, source), source, known)
    for i, instruction in enumerate(instruction_set.instructions):
        rows = [candidate.semantics for candidate in known_instructions if _key(candidate) == _key(instruction)]
        for key in _LIBRARYS if rows else ("vm", "derivative", "code"):
            value, shipped = getattr(instruction.semantics, key), [getattr(row, key) for row in rows or [_UNKNOWN]]
            if value not in shipped and (value or key == "error"):  # without an error, it would be exact
                raise UserError(
                    f"key 'instructions.{i}.{key}': the library finds it by the PTX text; leave it out, or add "
                    f"{instruction.ptx!r} to the library (CONTRIBUTING.md)",
                    source,
                )
    return instruction_set


def _parsed(data: Any, source: str) -> InstructionSetJson:
    try:
        parsed = InstructionSetJson.model_validate(data)
    except ValidationError as error:
        location, reason = first_mistake(error)
        key = f"key {'.'.join(map(str, location))!r}" if location else "the JSON"
        raise UserError(f"{key}: {reason}", source) from error
    if parsed.abi_version != ABI_VERSION:
        raise UserError(f"key 'abi_version': {parsed.abi_version} is not supported, use {ABI_VERSION}", source)
    return parsed


def _resolved(parsed: InstructionSetJson, source: str, known: Mapping[str, Semantics]) -> InstructionSet:
    """known: by `_key`, from which instructions take what they do not say."""
    stacks = tuple(
        StackType(s.name, s.literal_prefix, s.constant_type, s.encoder_type or _ENCODER_TYPES[s.constant_type])
        for s in parsed.stack_types
    )
    stack_indices = _index_names([s.name for s in stacks], "stack_types", source)
    arg_types = tuple(
        ArgType(a.name, _look_up(stack_indices, a.stack_type, f"arg_types.{i}.stack_type", source), a.num_vec_elems)
        for i, a in enumerate(parsed.arg_types)
    )
    arg_indices = _index_names([a.name for a in arg_types], "arg_types", source)
    instructions = tuple(
        Instruction(
            ptx=entry.ptx,
            name=entry.name or _identifier(entry.display or "") or _identifier(entry.ptx),
            args=tuple(_look_up(arg_indices, name, f"instructions.{i}.args", source) for name in entry.args),
            rets=tuple(_look_up(arg_indices, name, f"instructions.{i}.rets", source) for name in entry.rets),
            aligned=entry.aligned,
            num_commutative=entry.num_commutative,
            volatile=entry.volatile,
            registers_only=entry.registers_only,
            display=entry.display or entry.ptx,
            semantics=known.get(_key(entry), _UNKNOWN).model_copy(
                update={key: getattr(entry, key) for key in entry.semantics_set}
            ),
        )
        for i, entry in enumerate(parsed.instructions)
    )
    _index_names([instruction.name for instruction in instructions], "instructions", source)
    for i, instruction in enumerate(instructions):
        if instruction.num_commutative and not _first_two_are_alike(instruction, arg_types):
            raise UserError(
                f"key 'instructions.{i}.num_commutative': 0, or 2 where the first two operands are scalars of one type", source
            )
    special_registers = tuple(
        SpecialRegister(s.ptx, _look_up(arg_indices, s.arg_type, f"special_registers.{i}.arg_type", source), s.volatile)
        for i, s in enumerate(parsed.special_registers)
    )
    _index_names([s.ptx.replace(".", "_") for s in special_registers], "special_registers", source)
    for i, special in enumerate(special_registers):
        num_vec_elems = arg_types[special.arg_idx].num_vec_elems
        if num_vec_elems > 4 or (num_vec_elems and "." in special.ptx):
            raise UserError(
                f"key 'special_registers.{i}.arg_type': a vector of {num_vec_elems}, but .x .y .z .w are all the "
                "elements of a special register, and each of them is a scalar",
                source,
            )
    return InstructionSet(stacks, arg_types, instructions, special_registers)


_UNKNOWN = Semantics()
_LIBRARYS = ("vm", "derivative", "code", "error", "infix", "formula", "sympy", "function")  # of an instruction that it has

# The default encoder type by constant type: constants of 64-bit types are widened from 32 bits, those of 16 are rounded.
_ENCODER_TYPES = {None: None, "f32": "f32", "u32": "u32", "s32": "s32", "f64": "f32", "u64": "u32", "s64": "s32"}
_ENCODER_TYPES |= dict.fromkeys(HALVES, "f32")


def _key(instruction: Any) -> str:
    """Key of its meaning: its PTX, or the name of a move, which may change the type."""
    return str(instruction.name or "") if instruction.ptx == MOVE else str(instruction.ptx)


def _first_two_are_alike(instruction: Instruction, arg_types: tuple[ArgType, ...]) -> bool:
    first_two = instruction.args[:2]
    is_pair = instruction.num_commutative == 2 and len(first_two) == 2 and first_two[0] == first_two[1]
    return is_pair and arg_types[first_two[0]].num_vec_elems == 0


def _identifier(text: str) -> str:
    """The letters and digits of a text with _ between words; empty if it has none."""
    name = re.sub(r"[^A-Za-z0-9_]+", "_", text).strip("_")
    return f"_{name}" if name[:1].isdigit() else name


def _index_names(names: list[str], key: str, source: str) -> dict[str, int]:
    """Indices by name. Names that differ only in case clash: C writes them as enumerators in upper case."""
    indices: dict[str, int] = {}
    for index, name in enumerate(names):
        if name.lower() == "num_enums":
            raise UserError(
                f"key '{key}.{index}': '{name}' is what C headers call the number of entries; use another name", source
            )
        if indices.setdefault(name.lower(), index) != index:
            raise UserError(f"key '{key}.{index}': the name '{name}' is used twice; give one entry a 'name' of its own", source)
    return {name: index for index, name in enumerate(names)}


def _look_up(indices: dict[str, int], name: str, key: str, source: str) -> int:
    try:
        return indices[name]
    except KeyError:
        raise UserError(f"key '{key}': unknown type {name!r}, {did_you_mean(name, indices)}", source) from None
