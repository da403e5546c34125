"""stack_ptx_compile in C, the same from Python in a batch, and the Python package mm-ptx on the same programs; one core."""

import importlib.util
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from evo import stack_ptx

HERE = Path(__file__).parent
CSRC = HERE.parent.parent / "csrc"
COUNTS = (32, 100, 300)  # live instructions
C_BARS = {32: ("2 us", "0.8 us"), 100: ("6 us", "2.5 us"), 300: ("18 us", "7.5 us")}
PYTHON_BARS = {32: ("3 us", "1 us"), 100: ("7 us", "3 us"), 300: ("20 us", "9 us")}
NUM_C_PROGRAMS = 100
NUM_PYTHON_PROGRAMS = 1000
NUM_ROUNDS = 60
OPERATIONS = ("add_ftz_f32", "sub_ftz_f32", "mul_ftz_f32", "fma_rn_ftz_f32", "min_ftz_f32", "sin_approx_ftz_f32", "abs_ftz_f32")
SET = stack_ptx.load("default")
PTX = {one.name: (one.ptx, len(one.args)) for one in SET.instructions if one.name in OPERATIONS}

# A program before it is encoded: names of registers and instructions, and constants.
Steps = list[str | float]


def live_programs(num_instructions: int) -> list[Steps]:
    """Chains in which every instruction is live; its other operands are inputs and constants, half and half."""
    rng = np.random.default_rng(1)
    programs = []
    for _ in range(NUM_PYTHON_PROGRAMS):
        steps: Steps = ["x"]
        for name in rng.choice(OPERATIONS, num_instructions).tolist():
            for _ in range(PTX[name][1] - 1):
                steps.append("xy"[rng.integers(2)] if rng.random() < 0.5 else float(rng.normal()))
            steps.append(name)
        programs.append(steps)
    return programs


def c_times_us(batches: dict[int, np.ndarray]) -> dict[int, float]:
    """Best time of a call, by count of instructions."""
    with tempfile.TemporaryDirectory() as folder:
        program, words = Path(folder) / "stack_ptx", Path(folder) / "words"
        subprocess.run(["gcc", "-std=c99", "-O2", "-I", CSRC, HERE / "stack_ptx.c", "-o", program], check=True)
        with words.open("wb") as file:
            for count, rows in batches.items():
                np.array([count, *rows.shape], np.uint64).tofile(file)
                rows.tofile(file)
        pin = ["taskset", "-c", "0"] if shutil.which("taskset") else []
        lines = subprocess.run([*pin, program, words], capture_output=True, text=True, check=True).stdout.splitlines()
    return {int(count): float(best) for count, best in map(str.split, lines)}


def best_us(function, num_programs: int, num_rounds: int = NUM_ROUNDS) -> float:
    """Best time of a program in a call that compiles so many."""
    best = float("inf")
    for _ in range(num_rounds):
        start = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - start)
    return best / num_programs * 1e6


def peer_time_us(programs: list[Steps]) -> float:
    """Best time in which mm-ptx compiles a program; its lists are made beforehand."""
    from mm_ptx import stack_ptx as peer

    stacks = peer.StackTypeEnum("Stacks", {"f32": (0, "f32")})
    types = peer.ArgTypeEnum("Types", {"f32": (0, stacks.f32)})
    entries = {name: (i, ptx, [types.f32] * count, [types.f32]) for i, (name, (ptx, count)) in enumerate(PTX.items())}
    instructions = peer.create_instruction_enum(types)("Instructions", entries)
    compiler = peer.StackPtx(stacks, types, instructions, peer.create_special_register_enum(types)("Special", {}))
    registry = peer.RegisterRegistry()
    for name in "xyz":
        registry.add(name, stacks.f32, name=name)
    registry.freeze()

    def item(step):
        if isinstance(step, float):
            return stacks.f32.constant(step)
        return getattr(registry, step) if len(step) == 1 else instructions[step]

    lists = [[item(step) for step in steps] for steps in programs[:100]]

    def compile_all():
        for one in lists:
            stub = compiler.compile(registry, one, [registry.z], 4096, max_ast_size=4096, max_ast_to_visit_stack_depth=1024)
        return stub

    num_lines = sum(isinstance(step, str) and len(step) > 1 for step in programs[99])
    assert compile_all().count("\n") >= num_lines
    return best_us(compile_all, len(lists), 5)


def rows():
    """Rows of the table."""
    words = stack_ptx.Words(SET)
    registers = words.registers(x="f32", y="f32", z="f32")
    compiler = stack_ptx.Compiler(registers, ["z"])
    names = {**{name: registers[name] for name in registers}, **{name: words.instructions[name] for name in OPERATIONS}}
    programs = {count: live_programs(count) for count in COUNTS}
    batches = {
        count: compiler.encode_batch([[names.get(step, step) for step in steps] for steps in batch])
        for count, batch in programs.items()
    }
    assert all(len(stub.splitlines()) == count + 4 for count in COUNTS for stub in compiler.compile_batch(batches[count][:10]))
    for count, best in c_times_us({count: batch[:NUM_C_PROGRAMS] for count, batch in batches.items()}).items():
        yield f"stack_ptx_compile in C, {count} live instructions, 1 core", f"{best:.2f} us", *C_BARS[count]
    for count in COUNTS:
        time_us = best_us(lambda batch=batches[count]: compiler.compile_batch(batch), NUM_PYTHON_PROGRAMS)
        what = f"evo.stack_ptx, {count} live instructions, a program of a batch of {NUM_PYTHON_PROGRAMS}, 1 core"
        yield what, f"{time_us:.2f} us", *PYTHON_BARS[count]
    if importlib.util.find_spec("mm_ptx") is not None:
        for count in COUNTS:
            yield f"mm-ptx from Python, {count} live instructions, 1 core", f"{peer_time_us(programs[count]):.0f} us", "", ""
