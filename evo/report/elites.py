"""The elites of a run as reports name and number them.

Owns how cells, operators and hashes are written. Reads runs and never changes them.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evo.language.batch import Batch
from evo.language.program import Language, format_program
from evo.native.vary import OPERATORS
from evo.run.run import Run
from evo.search.emitter import COMBINED, GIVEN, OWN, RANDOM, TIDY


def batch_of(run: Run) -> Batch:
    """All elites, sorted by cell."""
    elites = run.search.elites()
    return Batch(elites.solution, elites.hash, elites.num_instructions)


def cell_names(run: Run, rows: Sequence[int] | NDArray[np.int64] | slice = slice(None)) -> list[str]:
    """The names of the elites' cells, such as `3,4`."""
    return [run.search.layout.cell_name(int(cell)) for cell in run.search.elites().cell[rows]]


def hash_text(words: NDArray[np.uint64]) -> str:
    """A canonical hash, `(2,)`, as 32 hexadecimal digits."""
    return f"{words[1]:016x}{words[0]:016x}"


# Verbs of the operators; an offspring can have one or two parents.
OPERATOR_MEANINGS = {
    "umad": "uniform mutation by addition and deletion: words are inserted and deleted at random places",
    "alternation": "words of two parents, read in turns",
    "crossover": "at each position the word of one of two parents",
    "perturbation": "constants are changed a little",
    "replacement": "words are exchanged for random ones",
    "subprogram": "a part that gives one value is exchanged for such a part of another parent",
    "tidy": "the formula of an elite, simplified when the search ended",
    "combination": "a program that joins two elites",
    "own emitter": "made by an emitter that the user registered",
}


_OTHERS = {
    RANDOM: "none (random program)",
    GIVEN: "none (given to generation 0)",
    TIDY: "tidy",
    COMBINED: "combination",
    OWN: "own emitter",
}


def operator_name(code: int) -> str:
    """The operator that made a program."""
    return _OTHERS.get(code) or OPERATORS[code]


def program_lines(language: Language, programs: NDArray[np.uint64]) -> list[str]:
    """The text of each of `(n, max_length)` programs in one line, as `evo eval` reads it."""
    return [" ".join(format_program(language, words).split()) for words in programs]
