"""Lowering, emission and hashing of programs by batch call, on one thread."""

import time

import numpy as np

from evo.instructions import shipped_instruction_set
from evo.language.program import Language, word
from evo.native.stack_ptx_words import WordType

NUM_PROGRAMS = 100  # a batch whose words and stubs stay in the L2 cache
NUM_ROUNDS = 400
OPERATIONS = ("add_ftz_f32", "sub_ftz_f32", "mul_ftz_f32", "fma_rn_ftz_f32", "min_ftz_f32", "sin_approx_ftz_f32", "abs_ftz_f32")


def live_programs(language: Language, num_instructions: int, seed: int, num_programs: int = NUM_PROGRAMS) -> np.ndarray:
    """`(num_programs, length)` programs in which every one of `num_instructions` PTX instructions is live and distinct.

    Each is a chain: the value on top goes through an operation whose other operands are inputs and constants.
    """
    rng = np.random.default_rng(seed)
    instruction_set = language.instruction_set
    rows = []
    for _ in range(num_programs):
        words = [word(WordType.INPUT, payload=0)]
        for _ in range(num_instructions):
            index = instruction_set.instruction_index(OPERATIONS[rng.integers(len(OPERATIONS))])
            for _ in range(len(instruction_set.instructions[index].args) - 1):
                if rng.random() < 0.5:
                    words.append(word(WordType.INPUT, payload=int(rng.integers(len(language.inputs)))))
                else:
                    bits = int(np.float32(rng.normal()).view(np.uint32))
                    words.append(word(WordType.CONSTANT, 0, bits))
            words.append(word(WordType.PTX, payload=index))
        rows.append([*words, word(WordType.RETURN)])
    table = np.zeros((num_programs, max(map(len, rows))), np.uint64)
    for row, words in zip(table, rows, strict=True):
        row[: len(words)] = words
    return table


def best_us(function, programs: np.ndarray) -> float:
    """Microseconds a program: the best of `NUM_ROUNDS` calls."""
    function(programs)
    best = float("inf")
    for _ in range(NUM_ROUNDS):
        start = time.perf_counter()
        function(programs)
        best = min(best, time.perf_counter() - start)
    return best / len(programs) * 1e6


def rows():
    """Rows of the table."""
    language = Language(shipped_instruction_set("default"), (("x", "f32"), ("y", "f32")), (("z", "f32"),))
    lowering = language.lowering
    for num_instructions, at_least, aim in ((32, "", ""), (100, "5 us", "2.5 us"), (300, "", "")):
        programs = live_programs(language, num_instructions, seed=1)
        _, counts = lowering.analyze(programs)
        assert (counts > 0.9 * num_instructions).all()
        what = f"{num_instructions} live instructions, 1 core"
        yield f"lowering + emission, {what}", f"{best_us(lowering.emit, programs):.2f} us", at_least, aim
        yield f"lowering + hash, {what}", f"{best_us(lowering.analyze, programs):.2f} us", "", ""
