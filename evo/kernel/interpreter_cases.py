"""The cases of the interpreter kernel: an instruction applied to operands from given places.

Owns which instructions the kernel knows, the numbers of their cases, and a case's PTX. Knows nothing of launches and of what the
vectors of shared memory hold. csrc/device_code.h has the format of a step.

An operand comes from the accumulator, from a slot or from the step itself, as a constant. Each combination that the encoder uses
is a case of its own, so that none moves an operand that it does not need. It has an even number; the odd one after it stores the
result as well. Predicates are 0 or 1 in registers and slots.

A step names the case of the one after it. So a case looks up where to go on, and loads the next step, while it waits for its
operands, and then branches there: one taken branch a step. Loads of code and of shared memory share a path to the registers,
which bounds the kernel. So a step is one word, and has a second one only where its case needs it.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from evo.instructions import Instruction, InstructionSet
from evo.native.device_code import CASE_BITS, RESULT_SHIFT, SLOT_SHIFTS, VECTOR_BITS

# As in csrc/device_code.h.
ACCUMULATOR, SLOT, CONSTANT = range(3)
NUM_FORMS = 27  # of up to three operands
NO_CASE = 0xFFFF
END, KEEP, LOAD_SLOT, LOAD_CONSTANT, _FIRST = 0, 1, 2, 4, 6
IS_STORED = 1

# The time to assemble a kernel grows with the square of its cases: that many take a core some seven seconds, once.
MAX_CASES = 2000
# The assembler makes a table of all cases, 4 bytes each, for every branch by number, in a bank of constants of 64 KiB. What does
# not fit becomes a tree of comparisons. So beyond about 125 cases the last ones share a branch, which costs them one more.
TABLES_BYTES = 60 << 10

# Types whose values have 32 bits in a slot.
_TYPES = ("f32", "u32", "s32", "b32", "pred")
_MAX_OPERANDS = 3
_SLOT_REGISTERS = "xyz"  # of the first, second and third operand from a slot


@dataclass(frozen=True)
class Threads:
    """Arrangement of threads over steps.

    num_points: of a thread. vector_bits: vectors in shared memory lie 2**vector_bits bytes apart, with the thread's 1 or 4 points
    next to each other. are_together: all threads of a warp are always at the same step.
    """

    num_points: int
    vector_bits: int
    are_together: bool


@dataclass(frozen=True)
class Cases:
    """The cases of a kernel. numbers: `(num_instructions, NUM_FORMS)` uint16, of each instruction in each form, or NO_CASE."""

    instruction_set: InstructionSet
    numbers: NDArray[np.uint16]

    @property
    def names(self) -> set[str]:
        """The instructions that have cases."""
        return {self.instruction_set.instructions[index].name for index in np.flatnonzero((self.numbers != NO_CASE).any(axis=1))}

    def text(self, threads: Threads) -> Iterator[str]:
        """PTX that takes a program's steps, from the first to a branch to `$program_end`.

        It finds the address of the program's code in %at, and in %mine the address of the thread's part of the first vector.
        """
        numbers = {int(number): tuple(where) for where, number in np.ndenumerate(self.numbers) if number != NO_CASE}
        last = max(numbers, default=LOAD_CONSTANT) | IS_STORED
        uni = ".uni" if threads.are_together else ""
        dispatch = [*go_on(), f"brx.idx{uni} %case, $cases;"]
        # Most steps store nothing, so those cases have a branch of their own first. Where threads part, all share one.
        num_own = TABLES_BYTES // (4 * (last + 1)) if threads.are_together else 0
        yield f"$cases: .branchtargets $program_end, {', '.join(f'$case_{i}' for i in range(KEEP, last + 1))};"
        yield from ("ld.global.nc.b32 %word, [%at];", "add.u64 %at, %at, 4;")
        yield from ("$step:", *dispatch)
        for number in (*range(LOAD_SLOT, last, 2), *range(KEEP, last + 1, 2)):
            yield f"$case_{number}:"
            what = number & ~IS_STORED
            if what in numbers:
                index, form = numbers[what]
                yield from self._case(self.instruction_set.instructions[index], _FORMS[form], threads)
            elif what:
                operand_form = (SLOT if what == LOAD_SLOT else CONSTANT,)
                yield from _fetch(operand_form, threads)
                yield from (f"mov.b32 %a{k}, {_register(operand_form, 0, k)};" for k in range(threads.num_points))
            if number & IS_STORED:
                yield from _store(threads)
            num_own -= 1
            yield from dispatch if num_own > 0 else (f"bra{uni} $step;",)

    def _case(self, instruction: Instruction, form: tuple[int, ...], threads: Threads) -> Iterator[str]:
        form = form[: len(instruction.args)]
        yield from _fetch(form, threads)
        yield from self.applied(instruction, threads.num_points, lambda i, k: _register(form, i, k))

    def applied(self, instruction: Instruction, num_points: int, register_of: Callable[[int, int], str]) -> Iterator[str]:
        """PTX that leaves results in the accumulator. register_of: gives the register of operand i at the thread's point k."""
        opcode, *immediates = instruction.ptx.split(" ", 1)
        result = _type_name(self.instruction_set, instruction.rets[0])
        types = [_type_name(self.instruction_set, arg) for arg in instruction.args]
        for k in range(num_points):
            operands = []
            for i, type_name in enumerate(types):
                operand = register_of(i, k)
                if type_name == "pred":
                    yield f"setp.ne.u32 %p{i}, {operand}, 0;"
                    operand = f"%p{i}"
                operands.append(operand)
            target = "%p0" if result == "pred" else f"%a{k}"
            yield f"{opcode} {', '.join([target, *operands, *immediates])};"
            if result == "pred":
                yield f"selp.u32 %a{k}, 1, 0, %p0;"


def cases_of(instruction_set: InstructionSet, names: Collection[str] | None = None) -> Cases:
    """The cases of the instructions that a kernel can interpret: one result and up to three operands, each a scalar of 32 bits
    or a predicate, whose values depend on nothing else. If there would be more than MAX_CASES, the last ones are left out.

    Args:
        names: of those that programs may use; None: the whole set.
    """
    numbers = np.full((len(instruction_set.instructions), NUM_FORMS), NO_CASE, np.uint16)
    count = _FIRST
    for index, instruction in enumerate(instruction_set.instructions):
        if (names is not None and instruction.name not in names) or not is_interpretable(instruction_set, instruction):
            continue
        taken = list(forms(instruction))
        if count + 2 * len(taken) > MAX_CASES:
            continue
        for form in taken:
            numbers[index, form_index(form)] = count
            count += 2
    return Cases(instruction_set, numbers)


def is_interpretable(instruction_set: InstructionSet, instruction: Instruction) -> bool:
    """Return whether a case can do this instruction."""
    if (
        instruction.aligned
        or instruction.volatile
        or len(instruction.rets) != 1
        or not 1 <= len(instruction.args) <= _MAX_OPERANDS
    ):
        return False
    types = [instruction_set.arg_types[arg] for arg in (*instruction.args, *instruction.rets)]
    return all(arg.num_vec_elems == 0 and instruction_set.stacks[arg.stack_idx].literal_prefix in _TYPES for arg in types)


def form_index(form: tuple[int, ...]) -> int:
    """The index of a form: its sources as the digits of a number to base 3, the first operand's last."""
    return sum(kind * 3**i for i, kind in enumerate(form))


_FORMS = [form[::-1] for form in product(range(3), repeat=_MAX_OPERANDS)]


def forms(instruction: Instruction) -> Iterator[tuple[int, ...]]:
    """The forms of an instruction that the encoder uses. It swaps the first two operands of a commutative one into ascending
    order, moves a second constant into a slot, and takes the accumulator twice only in instructions of two operands.
    """
    num_operands = len(instruction.args)
    for form in product(range(3), repeat=num_operands):
        has_two = num_operands > 2 and form.count(ACCUMULATOR) > 1
        is_swapped = instruction.num_commutative == 2 and form[0] > form[1]
        if not (has_two or is_swapped or form.count(CONSTANT) > (num_operands > 1)):
            yield form


def go_on(num_bytes: int = 4) -> tuple[str, ...]:
    """Lines that take the next case from %word, and load the word of its step. num_bytes: from %at to that step's end."""
    return (
        f"and.b32 %case, %word, {(1 << CASE_BITS) - 1:#x};",
        f"add.u64 %at, %at, {num_bytes};",
        "ld.global.nc.b32 %word, [%at+-4];",
    )


def _fetch(form: tuple[int, ...], threads: Threads) -> Iterator[str]:
    """Loads the step's second word, if it has one, and the operands that come from slots."""
    num_slots = form.count(SLOT)
    if CONSTANT in form or num_slots > len(SLOT_SHIFTS):
        yield from ("ld.global.nc.b32 %extra, [%at];", "add.u64 %at, %at, 4;")
    sources = [("%word", shift) for shift in SLOT_SHIFTS] + [("%extra", SLOT_SHIFTS[0])]
    for (word, shift), register in zip(sources[:num_slots], _SLOT_REGISTERS, strict=False):
        yield from _address("%from", word, shift, threads)
        suffix, registers = vector(f"%{register}", range(threads.num_points))
        yield f"ld.shared{suffix} {registers}, [%from];"


def _store(threads: Threads) -> Iterator[str]:
    """Stores the accumulator in the step's vector."""
    yield from _address("%target", "%word", RESULT_SHIFT, threads)
    suffix, registers = vector("%a", range(threads.num_points))
    yield f"st.shared{suffix} [%target], {registers};"


def _address(register: str, word: str, shift: int, threads: Threads) -> Iterator[str]:
    """The address of the vector that a word names from bit `shift` on."""
    yield f"and.b32 {register}, {word}, {((1 << VECTOR_BITS) - 1) << shift:#x};"
    yield f"shr.u32 {register}, {register}, {shift - threads.vector_bits};"
    yield f"add.u32 {register}, {register}, %mine;"


def vector(register: str, points: range) -> tuple[str, str]:
    """Suffix of a load or store, and the registers of the thread's points, which have their numbers after this name."""
    names = [f"{register}{k}" for k in points]
    return (".b32", names[0]) if len(names) == 1 else (".v4.b32", f"{{{', '.join(names)}}}")


def _register(form: tuple[int, ...], i: int, k: int) -> str:
    """The register of operand i at the thread's point k."""
    if form[i] == ACCUMULATOR:
        return f"%a{k}"
    return "%extra" if form[i] == CONSTANT else f"%{_SLOT_REGISTERS[form[:i].count(SLOT)]}{k}"


def _type_name(instruction_set: InstructionSet, arg: int) -> str:
    return instruction_set.stacks[instruction_set.arg_types[arg].stack_idx].literal_prefix
