"""Tuning constants: Levenberg-Marquardt by batch call, on one core.

The programs are random trees of 32 operations over two inputs and 5 different constants, three quarters of them add sub mul
and one quarter div sin cos ex2 lg2 sqrt tanh; each has 32 live instructions, and its output depends on all 5 constants. The
target is noise. A program that is tuned in fewer iterations is not measured.
"""

import os

import numpy as np
from bench_vm import best_s

from evo.instructions import shipped_instruction_set
from evo.language.program import Language, word
from evo.native.ptx_vm import VirtualMachine, levels
from evo.native.stack_ptx_words import WordType
from evo.native.tune import Tuner

NUM_PROGRAMS = 64
NUM_OPERATIONS = 32
NUM_CONSTANTS = 5
NUM_ITERATIONS = 5
NUM_ROUNDS = 20
SIMPLE = ("add_ftz_f32", "sub_ftz_f32", "mul_ftz_f32")
OTHERS = (
    *(f"{name}_approx_ftz_f32" for name in ("div", "sin", "cos", "ex2", "lg2", "sqrt")),
    "tanh_approx_f32",
)
INPUTS = (("x", "f32"), ("y", "f32"))


def draw_words(language: Language, rng: np.random.Generator) -> list[int]:
    """A random tree in postfix order."""
    instruction_set = language.instruction_set
    names = [str(rng.choice(OTHERS if rng.random() < 0.25 else SIMPLE)) for _ in range(NUM_OPERATIONS)]
    arities = [len(instruction_set.instructions[instruction_set.instruction_index(name)].args) for name in names]
    leaves = [("input", int(i)) for i in rng.integers(len(INPUTS), size=sum(arities) - NUM_OPERATIONS + 1)]
    for place in rng.permutation(len(leaves))[:NUM_CONSTANTS]:
        leaves[place] = ("constant", int(np.float32(rng.normal()).view(np.uint32)))
    subtrees = [
        [word(WordType.INPUT, payload=value) if kind == "input" else word(WordType.CONSTANT, 0, value)] for kind, value in leaves
    ]
    for name, arity in zip(names, arities, strict=True):
        operation = word(WordType.PTX, payload=instruction_set.instruction_index(name))
        taken = [subtrees.pop(int(rng.integers(len(subtrees)))) for _ in range(arity)]
        subtrees.append([*(each for operand in taken for each in operand), operation])
    (words,) = subtrees
    return [*words, word(WordType.RETURN)]


def draw_programs(language: Language, inputs: list, targets: np.ndarray) -> np.ndarray:
    """`(NUM_PROGRAMS, length)` words."""
    rng = np.random.default_rng(30)
    machine = VirtualMachine(language.lowering)
    tuner = Tuner(machine, inputs, targets, iterations=NUM_ITERATIONS, is_scaled=True)
    rows = []
    while len(rows) < NUM_PROGRAMS:
        words = draw_words(language, rng)
        lowered = language.lowering.lower(np.array(words, np.uint64))
        _, outcomes = tuner.tune(np.array([words], np.uint64))
        if lowered.num_instructions != NUM_OPERATIONS or outcomes["num_parameters"] != NUM_CONSTANTS:
            continue
        if (
            np.isfinite(machine.store(np.array([words], np.uint64), inputs)).all()
            and outcomes["num_evaluations"] > NUM_ITERATIONS
        ):
            rows.append(words)
    table = np.zeros((NUM_PROGRAMS, max(map(len, rows))), np.uint64)
    for row, words in zip(table, rows, strict=True):
        row[: len(words)] = words
    return table


def rows():
    """Rows of the table."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    instruction_set = shipped_instruction_set("default")
    language = Language(instruction_set, INPUTS, (("f", "f32"),))
    rng = np.random.default_rng(31)
    points = rng.uniform(0.5, 2, (2, 10_000)).astype(np.float32)
    target = rng.normal(size=10_000).astype(np.float32)
    for num_points, at_least, aim in ((20, "30 us", "15 us"), (1_000, "300 us", "150 us")):
        inputs = [*np.ascontiguousarray(points[:, :num_points]), None]
        programs = draw_programs(language, inputs, target[:num_points])
        seconds = {level: float("inf") for level in levels()}
        tuners = {
            level: Tuner(
                VirtualMachine(language.lowering, level), inputs, target[:num_points], iterations=NUM_ITERATIONS, is_scaled=True
            )
            for level in levels()
        }
        for _ in range(5):  # in turn
            for level, tuner in tuners.items():
                seconds[level] = min(seconds[level], best_s(lambda t=tuner, p=programs: t.tune(p), NUM_ROUNDS // 5))
        _, outcomes = tuners[levels()[0]].tune(programs)
        share = np.mean(outcomes["num_evaluations"] == NUM_ITERATIONS + 1)
        shown = ", ".join(f"{level} {each / NUM_PROGRAMS * 1e6:.1f}" for level, each in seconds.items())
        what = f"Levenberg-Marquardt, {NUM_ITERATIONS} iterations, {NUM_OPERATIONS} instructions, {NUM_CONSTANTS} constants"
        yield f"{what}, {num_points:,} points ({share:.0%} run to the end)", f"{shown} us", at_least, aim
