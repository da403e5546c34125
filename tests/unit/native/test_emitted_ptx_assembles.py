"""Whatever words a program is made of, the stub that is emitted for it assembles within a kernel.

Not among the requests are U8 values: a request is a `mov.u8`, which PTX does not have.
"""

import os
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

if not os.environ.get("CI"):  # in CI a build without the wheel is a failure
    pytest.importorskip("evo.native.nvptxcompiler", reason="built without the wheel nvidia-nvptxcompiler")

from evo.instructions import default_instruction_set
from evo.native.nvptxcompiler import CompileError, compile
from evo.native.stack_ptx import META_OPERATIONS, Lowering, WordType
from evo.program import word

SET = default_instruction_set()
NUM_STACKS = len(SET.stacks)
LIMITS = SimpleNamespace(stack_size=32, max_nodes=1000, max_frame_depth=3, store_size=4, execution_limit=1000)
LENGTH = 120
# Two registers of every stack, read and written: requests are then a parallel move among inputs.
REGISTERS = [(f"{stack.name.lower()}_{copy}", index) for copy in "ab" for index, stack in enumerate(SET.stacks)]
REQUESTS = [i for i, (_, stack) in enumerate(REGISTERS) if SET.stacks[stack].name != "U8"]
# What only sm_90 has.
NEEDS_SM_90 = {i for i, special in enumerate(SET.special_registers) if special.ptx == "aggr_smem_size"}


def routine(*words: int) -> np.ndarray:
    return np.array([*words, word(WordType.RETURN)], np.uint64)


F32_INPUT, ADD_F32 = word(WordType.INPUT, payload=0), word(WordType.PTX, payload=SET.instruction_index("add_ftz_f32"))
ROUTINES = (routine(F32_INPUT, ADD_F32), routine(word(WordType.ROUTINE, payload=0), word(WordType.META, 0, 0), ADD_F32))


def kernel(stubs: list[str], target: str) -> str:
    """A kernel that runs one stub after the other, each on registers loaded before it and stored after it."""
    lines = [f".version 8.1\n.target {target}\n.address_size 64\n.visible .entry k(.param .u64 p)\n{{"]
    lines += [".reg .u64 %pointer;", ".reg .u32 %bits;", "ld.param.u64 %pointer, [p];"]
    lines += [f".reg .{SET.stacks[stack].literal_prefix} %{name};" for name, stack in REGISTERS]
    for stub in stubs:
        for i, (name, stack) in enumerate(REGISTERS):
            prefix = SET.stacks[stack].literal_prefix
            load = f"ld.global.{prefix} %{name}, [%pointer + {8 * i}];"
            lines.append(
                f"ld.global.u32 %bits, [%pointer + {8 * i}];\nsetp.ne.u32 %{name}, %bits, 0;"
                if prefix == "pred"
                else load
            )
        lines.append(stub)
        for i, (name, stack) in enumerate(REGISTERS):
            prefix = SET.stacks[stack].literal_prefix
            store = f"st.global.{prefix} [%pointer + {8 * i}], %{name};"
            lines.append(
                f"selp.u32 %bits, 1, 0, %{name};\nst.global.u32 [%pointer + {8 * i}], %bits;"
                if prefix == "pred"
                else store
            )
    return "\n".join([*lines, "ret;\n}\n"])


def assemble(rows: np.ndarray, target: str) -> None:
    lowering = Lowering(SET, REGISTERS, REQUESTS, LIMITS, ROUTINES)
    compile(kernel(lowering.emit(rows), target), (f"--gpu-name={target}", "--opt-level=0"))


def random_rows(seed: int, num_programs: int = 6) -> np.ndarray:
    """Random words of every type, mostly inputs and instructions, and mostly with indices that exist."""
    rng = np.random.default_rng(seed)

    def index(count: int) -> int:
        return int(rng.integers(count + (rng.random() < 0.05)))

    special = sorted(set(range(len(SET.special_registers))) - NEEDS_SM_90)
    makers = {
        0.45: lambda: word(WordType.PTX, payload=index(len(SET.instructions))),
        0.30: lambda: word(WordType.INPUT, payload=index(len(REGISTERS))),
        0.06: lambda: word(WordType.CONSTANT, index(NUM_STACKS), int(rng.integers(2**32))),
        0.05: lambda: word(WordType.SPECIAL, payload=special[rng.integers(len(special))]),
        0.04: lambda: word(WordType.META, index(NUM_STACKS), index(len(META_OPERATIONS))),
        0.03: lambda: word(WordType.META_CONSTANT, payload=int(rng.integers(6))),
        0.025: lambda: word(WordType.STORE, index(NUM_STACKS), index(LIMITS.store_size)),
        0.02: lambda: word(WordType.LOAD, payload=index(LIMITS.store_size)),
        0.015: lambda: word(WordType.ROUTINE, payload=index(len(ROUTINES))),
        0.01: lambda: word(int(rng.choice([0, 8, 9, 13, 255])), int(rng.integers(2**16)), int(rng.integers(2**32))),
    }
    kinds = rng.choice(len(makers), (num_programs, LENGTH), p=list(makers))
    return np.array([[list(makers.values())[kind]() for kind in row] for row in kinds], np.uint64)


@settings(max_examples=150)
@given(seed=st.integers(0, 2**32 - 1), target=st.sampled_from(["sm_80", "sm_90"]))
def test_any_words_assemble(seed, target):
    assemble(random_rows(seed), target)


def test_random_words_reach_every_instruction():
    lowering = Lowering(SET, REGISTERS, REQUESTS, LIMITS, ROUTINES)
    text = "\n".join(stub for seed in range(40) for stub in lowering.emit(random_rows(seed)))
    for instruction in SET.instructions:
        assert f"\n{instruction.ptx} " in text


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_every_instruction_assembles(target):
    rows = np.zeros((len(SET.instructions), LENGTH), np.uint64)
    for index, (row, instruction) in enumerate(zip(rows, SET.instructions, strict=True)):
        stacks = [
            SET.arg_types[arg].stack_idx
            for arg in instruction.args
            for _ in range(max(1, SET.arg_types[arg].num_vec_elems))
        ]
        words = [word(WordType.INPUT, payload=stack) for stack in stacks] + [word(WordType.PTX, payload=index)]
        if SET.stacks[SET.arg_types[instruction.rets[0]].stack_idx].name == "U8":
            words.append(word(WordType.PTX, payload=SET.instruction_index("cvt_u32_u8")))
        row[: len(words)] = words
        row[len(words)] = WordType.RETURN
    lowering = Lowering(SET, REGISTERS, REQUESTS, LIMITS, ROUTINES)
    stubs = lowering.emit(rows)
    for stub, instruction in zip(stubs, SET.instructions, strict=True):
        assert f"{instruction.ptx} " in stub
    compile(kernel(stubs, target), (f"--gpu-name={target}",))


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_every_special_register_assembles(target):
    available = [i for i in range(len(SET.special_registers)) if target == "sm_90" or i not in NEEDS_SM_90]
    rows = np.zeros((len(available), LENGTH), np.uint64)
    rows[:, 0] = [word(WordType.SPECIAL, payload=i) for i in available]
    rows[:, 1] = WordType.RETURN
    stubs = Lowering(SET, REGISTERS, REQUESTS, LIMITS, ROUTINES).emit(rows)
    for stub, index in zip(stubs, available, strict=True):
        assert f"%{SET.special_registers[index].ptx}" in stub
    compile(kernel(stubs, target), (f"--gpu-name={target}",))


def test_a_stub_that_is_broken_does_not_assemble():
    (stub,) = Lowering(SET, REGISTERS, REQUESTS, LIMITS).emit(np.array([[F32_INPUT, F32_INPUT, ADD_F32]], np.uint64))
    with pytest.raises(CompileError, match=r"Unknown modifier .\.f23"):
        compile(kernel([stub.replace("add.ftz.f32", "add.ftz.f23")], "sm_90"), ("--gpu-name=sm_90",))
