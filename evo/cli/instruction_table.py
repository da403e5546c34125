"""The instructions that programs may use, as a table: name, types, meaning, backends, cost on a GPU.

Owns what `evo instructions` prints. Needs no task and no run.
"""

from evo.errors import UserError, did_you_mean
from evo.evaluate.cpu import without_cpu_meaning
from evo.instructions import Instruction, InstructionSet
from evo.language.program import Language
from evo.report.table import table

_HEADING = """\
# Operands are a, b, c and d; a is on top of its stack.
# Slots: of the four in a clock of a multiprocessor of {target}, those that a warp takes.
"""


def describe_instructions(instruction_set: InstructionSet, names: list[str], word: str | None, target: str) -> str:
    """A table of instructions in the order of `names`.

    Args:
        names: of the set's instructions, those to choose from.
        target: architecture of the GPU, such as `sm_90`.
        word: only those whose name or meaning contains it, in upper or lower case; None: all.

    Raises:
        UserError: none contains it; the message has the nearest names.
    """
    all_of_set = [instruction_set.instructions[instruction_set.instruction_index(name)] for name in names]
    matches = [i for i in all_of_set if word is None or word.lower() in f"{i.name}\n{i.ptx}\n{i.semantics.meaning}".lower()]
    if not matches:
        raise UserError(f"no instruction has {word!r} in its name or meaning; {did_you_mean(str(word), names)}")
    gpu_only = without_cpu_meaning(Language(instruction_set, (), ()), [instruction.name for instruction in matches])
    rows = [("name", "operands -> results", "runs on", "slots", "computes")]
    for i in matches:
        runs_on = "GPU" if i.name in gpu_only else "CPU, GPU"
        slots = i.semantics.slots_on(target)
        slots_text = "-" if slots is None else f"{slots:g}"
        rows.append((i.name, _signature(instruction_set, i), runs_on, slots_text, i.semantics.meaning))
    return _HEADING.format(target=target) + table(rows)


def _signature(instruction_set: InstructionSet, instruction: Instruction) -> str:
    def types(indices: tuple[int, ...]) -> str:
        return " ".join(instruction_set.arg_types[index].name.lower() for index in indices)

    return f"{types(instruction.args)} -> {types(instruction.rets)}"
