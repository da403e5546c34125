"""stack_ptx_compile in C, the same from Python in a batch, and the Python package of mm-ptx on the same programs; one core."""

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


def live_programs(words: stack_ptx.Words, registers: stack_ptx.Registers, num_instructions: int, num_programs: int) -> np.ndarray:
    """`(num_programs, length)`: chains in which every instruction is live, its other operands inputs and constants, half and half."""
    rng = np.random.default_rng(1)
    operands = {one.name: len(one.args) for one in words.instruction_set.instructions}
    programs = []
    for _ in range(num_programs):
        program = [registers.x]
        for name in rng.choice(OPERATIONS, num_instructions):
            for _ in range(operands[name] - 1):
                program.append(registers["xy"[rng.integers(2)]] if rng.random() < 0.5 else float(rng.normal()))
            program.append(words.instructions[name])
        programs.append(program)
    return stack_ptx.Compiler(registers, ["z"]).encode_batch(programs)


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


def python_time_us(compiler: stack_ptx.Compiler, rows: np.ndarray) -> float:
    """Best time of a program in a batch."""
    best = float("inf")
    for _ in range(NUM_ROUNDS):
        start = time.perf_counter()
        compiler.compile_batch(rows)
        best = min(best, time.perf_counter() - start)
    return best / len(rows) * 1e6


def rows():
    """Rows of the table."""
    words = stack_ptx.Words()
    registers = words.registers(x="f32", y="f32", z="f32")
    compiler = stack_ptx.Compiler(registers, ["z"])
    batches = {count: live_programs(words, registers, count, NUM_PYTHON_PROGRAMS) for count in COUNTS}
    assert all(len(stub.splitlines()) == count + 4 for count in COUNTS for stub in compiler.compile_batch(batches[count][:10]))
    for count, best in c_times_us({count: batch[:NUM_C_PROGRAMS] for count, batch in batches.items()}).items():
        yield f"stack_ptx_compile in C, {count} live instructions, 1 core", f"{best:.2f} us", *C_BARS[count]
    for count in COUNTS:
        what = f"evo.stack_ptx, {count} live instructions, a program of a batch of {NUM_PYTHON_PROGRAMS}, 1 core"
        yield what, f"{python_time_us(compiler, batches[count]):.2f} us", *PYTHON_BARS[count]
