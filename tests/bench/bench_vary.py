"""Variation of 10,000 programs of 64 words in one call on one thread: by the default mix of operators, and by each alone."""

import time
from types import SimpleNamespace

import numpy as np

from evo.language.program import word
from evo.native.stack_ptx_words import WordType
from evo.native.vary import OPERATORS, Draw, Variation
from evo.search.vocabulary import VariationOptions

NUM_OFFSPRING = 10_000
NUM_PARENTS = 1000
LENGTH = 64
NUM_ROUNDS = 200
NUM_LITERALS = 60  # about the size of the default vocabulary
CONSTANT_SHARE = 0.1


def make_variation(operator_weights: tuple[float, ...]) -> Variation:
    """Rates as the config has them by default; a tenth of the new words are f32 constants."""
    words = [word(WordType.PTX, payload=i) for i in range(NUM_LITERALS)] + [word(WordType.CONSTANT)]
    weights = [(1 - CONSTANT_SHARE) / NUM_LITERALS] * NUM_LITERALS + [CONSTANT_SHARE]
    draws = [Draw.LITERAL] * NUM_LITERALS + [Draw.GAUSSIAN]
    params = np.zeros((NUM_LITERALS + 1, 2))
    params[-1] = 0.0, 1.0
    options = SimpleNamespace(
        operator_weights=operator_weights,
        **VariationOptions().rates,
        initial_min_length=LENGTH,
        initial_max_length=LENGTH,
        float_stacks=1,
        unsigned_stacks=0,
        signed_stacks=0,
    )
    return Variation(np.array(words, np.uint64), np.array(weights), np.array(draws, np.uint32), params, options)


def best_ms(function) -> float:
    """Milliseconds of the best of `NUM_ROUNDS` calls, each with another generation."""
    best = float("inf")
    for generation in range(NUM_ROUNDS):
        start = time.perf_counter()
        function(generation)
        best = min(best, time.perf_counter() - start)
    return best * 1e3


def rows():
    """Rows of the table."""
    mix = tuple(VariationOptions().operators.get(name, 0.0) for name in OPERATORS)
    alone = [(f"{name} alone", tuple(float(name == other) for other in OPERATORS)) for name in OPERATORS]
    for what, weights in [("default mix", mix), *alone]:
        variation = make_variation(weights)
        pool = variation.random_programs(1, 0, 0, NUM_PARENTS, LENGTH)
        time_ms = best_ms(lambda generation, v=variation, p=pool: v.offspring(1, generation, 0, NUM_OFFSPRING, p))
        limits = ("2 ms", "1 ms") if what in ("default mix", "umad alone") else ("", "")
        yield f"variation of 10,000 programs of 64 words, {what}", f"{time_ms:.2f} ms", *limits
    time_ms = best_ms(lambda generation: variation.random_programs(1, generation, 0, NUM_OFFSPRING, LENGTH))
    yield "10,000 random programs of 64 words", f"{time_ms:.2f} ms", "", ""
