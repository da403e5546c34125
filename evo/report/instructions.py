"""The instructions that programs may use, as a table: name, types, meaning, backends.

Owns what `evo instructions` prints. Needs no task and no run.
"""

from __future__ import annotations

from evo.errors import UserError, did_you_mean
from evo.evaluate.cpu import without_cpu_meaning
from evo.instructions import Instruction, InstructionSet
from evo.instructions.meaning import meaning_of
from evo.language.program import Language

_HEADING = "# Operands are a, b, c and d; a is on top of its stack.\n"


def describe_instructions(instruction_set: InstructionSet, names: list[str], word: str | None) -> str:
    """A table of instructions in the order of `names`.

    Args:
        names: of the set's instructions, those to choose from.
        word: only those whose name or meaning contains it, in upper or lower case; None: all.

    Raises:
        UserError: none contains it; the message has the nearest names.
    """
    all_of_set = [instruction_set.instructions[instruction_set.instruction_index(name)] for name in names]
    meanings = {instruction.name: meaning_of(instruction) for instruction in all_of_set}
    found = [i for i in all_of_set if word is None or word.lower() in f"{i.name}\n{i.ptx}\n{meanings[i.name]}".lower()]
    if not found:
        raise UserError(f"no instruction has {word!r} in its name or meaning; {did_you_mean(str(word), names)}")
    only_gpu = set(without_cpu_meaning(Language(instruction_set, (), ()), names))
    rows = [("name", "operands -> results", "runs on", "computes")]
    rows += [
        (i.name, _signature(instruction_set, i), "GPU" if i.name in only_gpu else "CPU, GPU", meanings[i.name]) for i in found
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = ("  ".join((*map(str.ljust, row[:3], widths), row[3])) for row in rows)
    return _HEADING + "".join(f"{line}\n" for line in lines)


def _signature(instruction_set: InstructionSet, instruction: Instruction) -> str:
    def types(indices: tuple[int, ...]) -> str:
        return " ".join(instruction_set.arg_types[index].name.lower() for index in indices)

    return f"{types(instruction.args)} -> {types(instruction.rets)}"
