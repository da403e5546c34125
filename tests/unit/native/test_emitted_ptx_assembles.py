"""Whatever words a program is made of, the stub that is emitted for it assembles within a kernel: every stack is requested."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("evo.native.nvptxcompiler", reason="built without the wheel nvidia-nvptxcompiler")

from evo.instructions import SHIPPED, describe_instruction_set, shipped_instruction_set
from evo.language.program import word
from evo.native.nvptxcompiler import CompileError
from evo.native.nvptxcompiler import compile as assemble
from evo.native.stack_ptx import Lowering
from evo.native.stack_ptx_words import META_OPERATIONS, WordType

LIMITS = SimpleNamespace(stack_size=32, max_nodes=1000, max_frame_depth=3, store_size=4, execution_limit=1000)
LENGTH = 120
# Instructions that only sm_90 has.
NEEDS_SM_90 = ("aggr_smem_size",)


def routine(*words: int) -> np.ndarray:
    return np.array([*words, word(WordType.RETURN)], np.uint64)


class Bench:
    """A set's programs, with two registers of every stack, all read and written: requests are a parallel move among inputs."""

    def __init__(self, name: str):
        self.set = shipped_instruction_set(name)
        stacks = self.set.stacks
        self.registers = [(f"{stack.name.lower()}_{copy}", index) for copy in "ab" for index, stack in enumerate(stacks)]
        f32_input, add_f32 = (
            word(WordType.INPUT, payload=0),
            word(WordType.PTX, payload=self.set.instruction_index("add_ftz_f32")),
        )
        self.routines = (
            routine(f32_input, add_f32),
            routine(word(WordType.ROUTINE, payload=0), word(WordType.META, 0, 0), add_f32),
        )
        self.lowering = Lowering(self.set, self.registers, range(len(self.registers)), LIMITS, self.routines)
        self.specials = {
            "sm_90": list(range(len(self.set.special_registers))),
            "sm_80": [i for i, special in enumerate(self.set.special_registers) if special.ptx not in NEEDS_SM_90],
        }

    def kernel(self, stubs: list[str], target: str) -> str:
        """A kernel that runs one stub after the other, each on registers loaded before it and stored after it."""
        lines = [f".version 8.1\n.target {target}\n.address_size 64\n.visible .entry k(.param .u64 p)\n{{"]
        lines += [".reg .u64 %pointer;", ".reg .u32 %bits;", "ld.param.u64 %pointer, [p];"]
        lines += [f".reg .{self.set.stacks[stack].literal_prefix} %{name};" for name, stack in self.registers]
        for stub in stubs:
            lines += [self._access(i, True) for i in range(len(self.registers))]
            lines.append(stub)
            lines += [self._access(i, False) for i in range(len(self.registers))]
        return "\n".join([*lines, "ret;\n}\n"])

    def _access(self, i: int, is_load: bool) -> str:
        """Loads a register from its place or stores it there; a predicate as 0 or 1."""
        name, stack = self.registers[i]
        prefix, place = self.set.stacks[stack].literal_prefix, f"[%pointer + {8 * i}]"
        if prefix == "pred":
            load = f"ld.global.u32 %bits, {place};\nsetp.ne.u32 %{name}, %bits, 0;"
            return load if is_load else f"selp.u32 %bits, 1, 0, %{name};\nst.global.u32 {place}, %bits;"
        return f"ld.global.{prefix} %{name}, {place};" if is_load else f"st.global.{prefix} {place}, %{name};"

    def random_rows(self, seed: int, target: str, num_programs: int = 6) -> np.ndarray:
        """Random words of every type, mostly inputs and instructions, and mostly with indices that exist."""
        rng = np.random.default_rng(seed)
        num_stacks = len(self.set.stacks)
        # The default set's instructions are few: they are drawn often in any set.
        num_first = 38 if rng.random() < 0.3 else len(self.set.instructions)

        def index(count: int) -> int:
            return int(rng.integers(count + (rng.random() < 0.05)))

        special = self.specials[target]
        makers = {
            0.45: lambda: word(WordType.PTX, payload=index(num_first)),
            0.30: lambda: word(WordType.INPUT, payload=index(len(self.registers))),
            0.06: lambda: word(WordType.CONSTANT, index(num_stacks), int(rng.integers(2**32))),
            0.05: lambda: word(WordType.SPECIAL, payload=special[rng.integers(len(special))]),
            0.04: lambda: word(WordType.META, index(num_stacks), index(len(META_OPERATIONS))),
            0.03: lambda: word(WordType.META_CONSTANT, payload=int(rng.integers(6))),
            0.025: lambda: word(WordType.STORE, index(num_stacks), index(LIMITS.store_size)),
            0.02: lambda: word(WordType.LOAD, payload=index(LIMITS.store_size)),
            0.015: lambda: word(WordType.ROUTINE, payload=index(len(self.routines))),
            0.01: lambda: word(int(rng.choice([0, 8, 9, 13, 255])), int(rng.integers(2**16)), int(rng.integers(2**32))),
        }
        kinds = rng.choice(len(makers), (num_programs, LENGTH), p=list(makers))
        return np.array([[list(makers.values())[kind]() for kind in row] for row in kinds], np.uint64)

    def rows_of_each_instruction(self) -> np.ndarray:
        """A row for each: its operands are inputs, and its results are requested."""
        rows = np.zeros((len(self.set.instructions), LENGTH), np.uint64)
        for index, (row, instruction) in enumerate(zip(rows, self.set.instructions, strict=True)):
            types = [self.set.arg_types[arg] for arg in instruction.args]
            stacks = [one.stack_idx for one in types for _ in range(max(1, one.num_vec_elems))]
            words = [word(WordType.INPUT, payload=stack) for stack in stacks] + [word(WordType.PTX, payload=index)]
            row[: len(words)] = words
            row[len(words)] = WordType.RETURN
        return rows


BENCHES = {name: Bench(name) for name in SHIPPED}


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), case=st.sampled_from([("default", "sm_80"), ("default", "sm_90"), ("wide", "sm_90")]))
def test_any_words_assemble(seed, case):
    bench, target = BENCHES[case[0]], case[1]
    stubs = bench.lowering.emit(bench.random_rows(seed, target))
    assemble(bench.kernel(stubs, target), (f"--gpu-name={target}", "--opt-level=0"))


@pytest.mark.parametrize(("name", "target"), [("default", "sm_80"), ("default", "sm_90"), ("wide", "sm_90")])
def test_every_instruction_assembles_alone(name, target):
    bench = BENCHES[name]
    stubs = bench.lowering.emit(bench.rows_of_each_instruction())
    for stub, instruction in zip(stubs, bench.set.instructions, strict=True):
        mnemonic, _, immediates = instruction.ptx.partition(" ")
        assert f"\n{mnemonic} " in stub
        assert not immediates or f", {immediates};" in stub
        try:
            assemble(bench.kernel([stub], target), (f"--gpu-name={target}", "--opt-level=0"))
        except CompileError as error:
            pytest.fail(f"{instruction.name}: {error}")


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_every_special_register_assembles(target):
    bench = BENCHES["default"]
    available = bench.specials[target]
    rows = np.zeros((len(available), LENGTH), np.uint64)
    rows[:, 0] = [word(WordType.SPECIAL, payload=i) for i in available]
    rows[:, 1] = WordType.RETURN
    stubs = bench.lowering.emit(rows)
    for stub, index in zip(stubs, available, strict=True):
        assert f"%{bench.set.special_registers[index].ptx}" in stub
    assemble(bench.kernel(stubs, target), (f"--gpu-name={target}",))


PREFIXES = "b8 s8 u8 b16 s16 u16 f16 f16x2 b32 s32 u32 f32 b64 s64 u64 f64 pred".split()


def test_registers_of_every_type_are_moved_and_cleared():
    """A swap of two registers, which needs a temporary, and a request of a third that finds nothing."""
    words = [word(WordType.INPUT, payload=0), word(WordType.INPUT, payload=1), word(WordType.RETURN)]
    lines = [".version 8.1\n.target sm_90\n.address_size 64\n.visible .entry k()\n{"]
    for prefix in PREFIXES:
        stacks = {"stack_types": [{"name": "S", "literal_prefix": prefix}], "arg_types": [], "instructions": []}
        registers = [(f"{name}_{prefix}", 0) for name in "abc"]
        (stub,) = Lowering(describe_instruction_set(stacks), registers, (0, 1, 2), LIMITS).emit(np.array([words], np.uint64))
        assert len(stub.splitlines()) == 2 + 1 + 4
        lines += [f".reg .{prefix} {', '.join(f'%{name}' for name, _ in registers)};", stub]
    assemble("\n".join([*lines, "ret;\n}\n"]), ("--gpu-name=sm_90",))
