"""AST PTX: stubs in C and from Python, and values on a CPU, on one core. mm-ptx 1.0.1 on PyPI has nothing to compare."""

import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from evo.ast_ptx import AstPTX, I

HERE = Path(__file__).parent
CSRC = HERE.parent.parent / "csrc"
COUNTS = (32, 100, 300)
NUM_PROGRAMS = 100
NUM_BATCH = 1000
NUM_POINTS = 16384
NUM_ROUNDS = 30
INSTRUCTIONS = (I.add_ftz_f32, I.sub_ftz_f32, I.mul_ftz_f32, I.fma_rn_ftz_f32, I.min_ftz_f32, I.sin_approx_ftz_f32, I.abs_ftz_f32)


def live_programs(ast: AstPTX, num_instructions: int, num_programs: int) -> np.ndarray:
    """`(num_programs, length)` words of chains: each instruction takes what is on top, and inputs and constants beside it."""
    rng = np.random.default_rng(1)
    leaves = [*ast.registers, None]
    programs = []
    for _ in range(num_programs):
        program = [ast.registers.x]
        for _ in range(num_instructions):
            instruction = INSTRUCTIONS[rng.integers(len(INSTRUCTIONS))]
            for _ in range(instruction.num_args - 1):
                leaf = leaves[rng.integers(len(leaves))]
                program.append(float(np.float32(rng.normal())) if leaf is None else leaf)
            program.append(instruction)
        programs.append(program)
    return ast.encode_batch(programs)


def best_us(function, num_programs: int) -> float:
    """Microseconds a program, the best of many calls."""
    function()
    best = float("inf")
    for _ in range(NUM_ROUNDS):
        start = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - start)
    return best / num_programs * 1e6


def measured_in_c(folder: Path, programs: dict[int, np.ndarray]) -> dict[int, list[float]]:
    """Microseconds of compiling, measuring and interpreting, by count of instructions."""
    program, data = folder / "ast", folder / "words"
    subprocess.run(["gcc", "-std=c99", "-O2", "-I", CSRC, HERE / "ast.c", "-o", program, "-lm"], check=True, capture_output=True)
    with data.open("wb") as file:
        for count, words in programs.items():
            file.write(np.array([count, *words.shape], np.uint64).tobytes() + words.tobytes())
    pin = ["taskset", "-c", "0"] if shutil.which("taskset") else []
    lines = subprocess.run([*pin, program, data], capture_output=True, text=True, check=True).stdout.splitlines()
    return {int(line.split()[0]): [float(cell) for cell in line.split()[1:]] for line in lines}


def rows():
    """Rows of the table."""
    ast = AstPTX(["x", "y"], "z")
    programs = {count: live_programs(ast, count, NUM_PROGRAMS) for count in COUNTS}
    with tempfile.TemporaryDirectory() as folder:
        measured = measured_in_c(Path(folder), programs)
    for count in COUNTS:
        compiled, only_measured, interpreted = (f"{time_us:.2f} us" for time_us in measured[count])
        yield f"ast_ptx_compile, {count} live instructions, C", compiled, "", ""
        yield f"ast_ptx_compile, {count} live instructions, C, length only", only_measured, "", ""
        yield f"ast_ptx_interpret, {count} live instructions, one point, C", interpreted, "", ""
    for count in COUNTS:
        words = live_programs(ast, count, NUM_BATCH)
        what = f"AstPTX.compile_batch, {count} live instructions, per program of {NUM_BATCH}"
        yield what, f"{best_us(lambda words=words: ast.compile_batch(words), NUM_BATCH):.2f} us", "", ""
    points = np.random.default_rng(2).normal(size=(2, NUM_POINTS)).astype(np.float32)
    words = programs[32][:10]
    time_us = best_us(lambda: ast.interpret_batch(words, {"x": points[0], "y": points[1]}), len(words))
    yield (
        f"AstPTX.interpret_batch, 32 live instructions, {NUM_POINTS} points",
        f"{32 * NUM_POINTS / time_us / 1e3:.3f} GPops/s",
        "",
        "",
    )
