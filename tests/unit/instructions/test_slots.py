"""The column `slots`, held to the machine instructions that the assembler makes of each row."""

from collections import Counter

import pytest

from evo.instructions import Instruction, shipped_instruction_set

nvptxcompiler = pytest.importorskip("evo.native.nvptxcompiler")

WIDE, HALVES = shipped_instruction_set("wide"), shipped_instruction_set("halves")
FEW, MANY = 2, 6  # copies of an instruction in a kernel: the difference leaves out what a kernel has besides
# Operations that the assembler shares or writes in ways that depend on the kernel: predicates that are combined while they are
# compared, and sizes of integers that are moved.
NOT_ALONE = ("and_pred", "or_pred", "xor_pred", "not_pred", "abs_s32")
# CUDA C++ Programming Guide: 128 over the results of a multiprocessor in a clock, on sm_80 and sm_90. All others take 2.
SLOTS = {"FADD": (2, 1), "FMUL": (2, 1), "FFMA": (2, 1), "HADD2": (1, 1)}
SLOTS |= dict.fromkeys(("MUFU", "I2F", "FRND", "FLO", "POPC", "BREV"), (8, 8))


def types_of(indices: tuple[int, ...]) -> list[str]:
    return [WIDE.stacks[WIDE.arg_types[index].stack_idx].literal_prefix for index in indices]


def kernel(instruction: Instruction, copies: int) -> str:
    """Operands are loaded and results stored. Predicates are numbers there: a comparison reads each, a choice writes each."""
    lines, number = [], 0

    def register(kind: str) -> str:
        nonlocal number
        number += 1
        lines.append(f".reg .{'b16' if kind == 'f16' else kind} %v{number}; .reg .u32 %w{number};")
        return f"%v{number}"

    for _ in range(copies):
        operands = []
        for kind in types_of(instruction.args):
            value = register(kind)
            if kind == "pred":
                bits = value.replace("v", "w")
                lines.append(f"ld.volatile.global.u32 {bits}, [%a]; setp.ne.u32 {value}, {bits}, 0;")
            else:
                lines.append(f"ld.volatile.global.{'b16' if kind == 'f16' else kind} {value}, [%a];")
            operands.append(value)
        [kind] = types_of(instruction.rets)
        result = register(kind)
        lines.append(f"{instruction.ptx} {result}, {', '.join(operands)};")
        if kind == "pred":
            lines.append(f"selp.u32 {result.replace('v', 'w')}, 7, 9, {result};")
            result, kind = result.replace("v", "w"), "u32"
        lines.append(f"st.volatile.global.{'b16' if kind == 'f16' else kind} [%a], {result};")
    body = "\n".join(lines)
    return (
        f".visible .entry {instruction.name}_{copies}(.param .u64 p) {{\n.reg .b64 %a; ld.param.u64 %a, [p];\n{body}\nret; }}\n"
    )


def slots_of(sass: list[str], target: str) -> float:
    opcodes = Counter(line.split()[1 if line.startswith("@") else 0].split(".")[0] for line in sass if not line.startswith(".L"))
    column = ("sm_80", "sm_90").index(target)
    counted = [opcode for opcode in opcodes if opcode not in ("LDG", "STG", "NOP", "EXIT", "BRA")]
    return sum(opcodes[opcode] * SLOTS.get(opcode, (2, 2))[column] for opcode in counted)


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_slots_are_those_of_the_machine_instructions(disassemble, target):
    chosen = [
        each
        for each in WIDE.instructions
        if each.semantics.slots_on(target) is not None
        and each.name not in NOT_ALONE
        and not each.ptx.endswith(".f16")
        and each.ptx != "cvt.rn.f16.f32"
        and not any(WIDE.arg_types[index].num_vec_elems for index in (*each.args, *each.rets))
    ]
    assert len(chosen) > 80
    head = f".version 8.0\n.target {target}\n.address_size 64\n"
    ptx = head + "".join(kernel(each, copies) for each in chosen for copies in (FEW, MANY))
    sass = disassemble(nvptxcompiler.compile(ptx, [f"--gpu-name={target}", "--fmad=false"]))
    found = {}
    for each in chosen:
        both = (slots_of(sass[f"{each.name}_{copies}"], target) for copies in (MANY, FEW))
        num_predicates = types_of((*each.args, *each.rets)).count("pred")
        found[each.name] = (next(both) - next(both)) / (MANY - FEW) - 2 * num_predicates
    assert found == {each.name: each.semantics.slots_on(target) for each in chosen}
