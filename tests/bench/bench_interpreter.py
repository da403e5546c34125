"""The interpreter's lane without a GPU: issue slots that its kernel takes, by disassembly; encoding programs, on one core; what
the host does for each program of a run whose device does nothing, on one and on two.

The programs are those of bench_vm.py, of mix A. The null device is the stand-in for a GPU (emulator/), whose kernels end
at once.
"""

import os
import sys
import tempfile
import time
from itertools import pairwise, product
from pathlib import Path

import numpy as np

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS.parent / "emulator"), str(TESTS), str(TESTS / "bench")]

from bench_vm import MIX_A, SHAPES, best_s, draw_program  # noqa: E402 - from these folders
from sass import Sass, case_numbers, disassembled, disassembler  # noqa: E402

from evo.instructions import shipped_instruction_set  # noqa: E402
from evo.kernel.interpreter import interpreter  # noqa: E402
from evo.language.program import Language  # noqa: E402
from evo.native import nvptxcompiler  # noqa: E402
from evo.native.device_code import NUM_EXTRA_WORDS, DeviceEncoder, max_words  # noqa: E402

LANGUAGE = Language(shipped_instruction_set("default"), (("t", "f32"), ("x", "f32"), ("y", "f32")), (("z", "f32"),))
SLOT_TARGETS = ("sm_80", "sm_90", "sm_100", "sm_120")
NUM_PROGRAMS = 200
BOUNDS_US = {32: (3.0, 1.5), 100: (8.0, 4.0)}
BATCH_SIZE, NUM_POINTS, NUM_BATCHES = 2048, 1024, 60
HOST_BOUNDS_US = {1: (2.5, 1.2), 2: (1.5, 0.7)}  # for so many threads


def drawn_words(language, shape, num_operations):
    rng = np.random.default_rng(20)
    programs = [draw_program(language, rng, shape, "A", num_operations) for _ in range(NUM_PROGRAMS)]
    words = np.zeros((NUM_PROGRAMS, max(map(len, programs))), np.uint64)
    for row, program in zip(words, programs, strict=True):
        row[: len(program)] = program
    return words


def slot_rows():
    """Instructions that warps issue for each operation and 32 points: steps, and sums of 1,024 points."""
    for target, in_registers in product(SLOT_TARGETS, (False, True)) if disassembler() else ():
        made = interpreter(LANGUAGE, target, True, MIX_A, in_registers=in_registers)
        num_warps = made.layout.block_size // 32
        with tempfile.TemporaryDirectory() as folder:
            cubin = Path(folder) / "cubin"
            cubin.write_bytes(nvptxcompiler.compile(made.ptx, [f"--gpu-name={target}", "--fmad=false", "--opt-level=3"]))
            sass = Sass(disassembled(disassembler(), cubin)["interpret"])
        waiting, idle, summing = sass.sums(32)
        each = (3 * num_warps * waiting.issued + (num_warps - 1) * idle.issued + summing.issued) / 4
        texts = []
        for shape in SHAPES:
            words = drawn_words(LANGUAGE, shape, 32)
            _, num_instructions = LANGUAGE.lowering.analyze(words)
            rows = [
                (sum(num_warps * sass.case(number).issued for number in cases), int(count))
                for cases, count in zip(case_numbers(LANGUAGE, made, words), num_instructions, strict=True)
                if cases
            ]
            steps, operations = (sum(column) for column in zip(*rows, strict=True))
            texts.append(f"{shape} {steps / operations / 32:.2f} + {each * len(rows) / operations / 32:.2f}")
        what = f"issue slots an operation and point of the interpreter, 32 instructions, 3 inputs, {target}"
        what += f"{', in registers' if in_registers else ''}: steps + sums"
        yield what, ", ".join(texts), "6", "4"


def encoding_rows():
    """Lowering and encoding, in one call for all programs."""
    language = LANGUAGE
    made = interpreter(language, "sm_90", True)
    layout = made.layout
    vectors = [*range(3), layout.first_output]
    encoder = DeviceEncoder(language.lowering, made.cases.numbers, vectors, layout.num_inputs, layout.num_slots)
    for num_operations, (at_least, aim) in BOUNDS_US.items():
        texts = []
        for shape in SHAPES:
            words = drawn_words(language, shape, num_operations)
            _, num_instructions = language.lowering.analyze(words)
            rooms = max_words(num_instructions.astype(np.int64), 1) + NUM_EXTRA_WORDS
            places = np.concatenate([[0], np.cumsum(rooms)])
            code, starts = np.zeros(places[-1], np.uint32), np.zeros(NUM_PROGRAMS, np.uint32)
            arguments = (words, np.arange(NUM_PROGRAMS), places, code, starts)
            results = encoder.encode(*arguments, layout.first_output)
            seconds = best_s(lambda arguments=arguments: encoder.encode(*arguments, layout.first_output))
            us = seconds / NUM_PROGRAMS * 1e6 * num_operations / num_instructions.mean()
            texts.append(f"{shape} {us:.2f}" + (f" ({(results != 0).mean():.0%} refused)" if results.any() else ""))
        what = f"encoding for the interpreter, lowering included, {num_operations} live instructions, 1 core"
        yield what, f"{', '.join(texts)} us", f"{at_least:g} us", f"{aim:g} us"


def host_rows(cores):
    """A search whose kernels take no time."""
    from emulated_gpu import compiling, driver

    stand_in = driver.install()
    stand_in.is_null = True
    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp()
    for owner, name, value in compiling.replacements():
        setattr(owner, name, value)
    from evo.config import load_config
    from evo.run.loaded_task import load_problem
    from evo.run.search import Search

    for num_threads, bounds in HOST_BOUNDS_US.items():
        os.sched_setaffinity(0, cores[:num_threads])
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "task.py").write_text(TASK)
            config = Path(folder) / "config.yaml"
            config.write_text(CONFIG)
            search = Search(load_problem(load_config(config, (f"evaluation.threads={num_threads}",))))
            marks = [
                (time.perf_counter(), generation.counters.evaluations)
                for generation, _ in zip(search.generations(), range(NUM_BATCHES), strict=False)
            ]
            search.problem.evaluator.close()
        us = min((end - start) / (after - before) * 1e6 for (start, before), (end, after) in pairwise(marks))
        what = f"host work a program in a run with the interpreter, null device, {NUM_POINTS:,} points, cores: {num_threads}"
        yield what, f"{us:.2f} us", *(f"{bound:g} us" for bound in bounds)


CONFIG = f"""
task: .
program: {{max_length: 64, vocabulary: {{instructions: [{", ".join(MIX_A)}]}}}}
search:
  archive: {{type: GridArchive, dims: [50, 50]}}
  batch_size: {BATCH_SIZE}
  tuning: {{share: 0}}
evaluation: {{backend: cuda, lane: interpret, compile_workers: 1}}
stop: {{generations: {10 * NUM_BATCHES}}}
"""

TASK = f"""
import numpy as np
import evo

class Line(evo.Task):
    inputs = {{"x": "f32", "y": "f32"}}
    outputs = {{"z": "f32"}}
    measures = {{"a": (-1.0, 1.0), "b": (0.0, 100.0)}}
    reduction = "regression"

    def points(self):
        return {{name: np.linspace(-1.0, 1.0, {NUM_POINTS}, dtype=np.float32) for name in "xy"}}

    def targets(self):
        return {{"z": np.ones({NUM_POINTS}, np.float32)}}

    def score(self, sums, programs):
        count = programs.num_instructions.astype(float)
        return evo.Scores(np.ones(len(count)), np.stack([np.cos(count), count], axis=1))
"""


def rows():
    """One row for each size of programs, and some for runs."""
    cores = sorted(os.sched_getaffinity(0))
    yield from slot_rows()
    yield from encoding_rows()
    if len(cores) > 1:
        yield from host_rows(cores)
