"""A small search without config, files or virtual machine: what the tests of emitter and loop share."""

from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
import pytest

from evo.evaluate import Evaluation, Status
from evo.language.batch import Batch
from evo.native.row_threads import RowThreads
from evo.search.archives import make_archive
from evo.search.emitter import Emitter, ProgramEmitter
from evo.search.lineage import Lineage
from evo.search.map_elites import Generation, MapElites
from evo.search.memory import HashMemory
from evo.search.restarts import Restarts
from evo.search.state import Counters, SearchState
from evo.search.vocabulary import ConstantOptions, VariationOptions, VocabularyOptions, make_variation

MAX_LENGTH = 12
RANGES = np.array([(0.0, 12.0), (0.0, 1.0)])


def full_rows(words: np.ndarray, max_length: int = MAX_LENGTH) -> np.ndarray:
    """Rows with the zeros that the search leaves out."""
    return np.pad(words, ((0, 0), (0, max_length - words.shape[1])))


class WordEvaluator:
    """Scores a program by its words alone and remembers all that it was asked for.

    About one in eight is rejected, and some measures lie outside their range.
    """

    def __init__(self):
        self.evaluated: list[np.ndarray] = []

    def evaluate(self, batch: Batch) -> Evaluation:
        self.evaluated += list(full_rows(batch.words, max(MAX_LENGTH, batch.words.shape[1])))
        results = [self.score(row) for row in batch.words]
        status = np.array([Status.REJECTED if result is None else Status.OK for result in results], np.uint8)
        objective = np.array([np.nan if result is None else result[0] for result in results])
        measures = np.array([(np.nan, np.nan) if result is None else result[1] for result in results]).reshape(-1, 2)
        return Evaluation(status, objective, measures)

    @staticmethod
    def score(row: np.ndarray) -> tuple[float, tuple[float, float]] | None:
        """Objective and measures of one program, or None."""
        number = sum(int(value) * (i + 1) for i, value in enumerate(row)) % 8191
        if number % 8 == 0:
            return None
        return (number % 101) / 101, (float(number % 13), (number % 97) / 90)


class SteppedSearch:
    """MAP-Elites over what `new_search` makes, generation by generation.

    Args:
        capacity: of its memory.
        max_bytes: of its lineage.
        more: `tuning` of `MapElites`.
    """

    def __init__(
        self,
        search,
        language,
        *,
        evaluator=None,
        capacity: int = 10_000,
        counters: Counters | None = None,
        prescreen=None,
        max_bytes: int = 1 << 20,
        **more,
    ):
        self.archive, self.emitter, self.restarts = search.archive, search.emitter, search.restarts
        self.evaluator = evaluator or search.evaluator
        self.memory, self.counters = HashMemory(capacity), counters or Counters()
        self.lineage = Lineage(self.archive.cells, max_bytes)
        self.lowering = language.lowering
        state = SearchState(
            self.archive, self.restarts, self.emitter, self.memory, self.lineage, self.counters, prescreen=prescreen
        )
        self.loop = MapElites(state, self.evaluator, self.lowering, **more)

    def run(self, num_generations: int) -> list[Generation]:
        return [self.loop.step() for _ in range(num_generations)]

    def restore(self, paused: "SteppedSearch", population=None) -> None:
        """Takes over the state of a search that has been made alike. population: an empty archive, of one within a start."""
        self.archive.restore(paused.archive.elites())
        if paused.restarts.population is not paused.archive:
            self.restarts.population = population
            population.restore(paused.restarts.population.elites())
        self.memory.restore(paused.memory.arrays())
        self.lineage.restore(self.restarts.population.elites(), paused.lineage.arrays(), paused.lineage.records())


@pytest.fixture(scope="session")
def variation(language):
    """Operators over a small vocabulary."""
    return make_operators(language, ("umad", "alternation", "crossover", "perturbation", "replacement"))


@pytest.fixture(scope="session")
def umad_alone(language):
    """One operator over the same."""
    return make_operators(language, ("umad",))


def make_operators(language, names):
    vocabulary = VocabularyOptions(
        instructions={"add_ftz_f32": 1.0, "mul_ftz_f32": 1.0, "sin_approx_ftz_f32": 1.0},
        meta={"dup": 1.0, "swap": 1.0},
        groups={"instructions": 0.5, "inputs": 0.4, "constants": 0.05, "meta": 0.05},
        constants=ConstantOptions(f32_sigma=1.0, u32_max=4, meta_max=2),
    )
    options = VariationOptions(
        operators=dict.fromkeys(names, 1.0),
        alternation={"rate": 0.1, "deviation": 1.0},
        perturbation={"rate": 0.5, "absolute": 0.1},
    )
    return make_variation(language, vocabulary, options, (2, 8))


@pytest.fixture
def new_search(variation):
    """Makes a fresh archive with its emitter."""

    def make(
        *,
        seed: int = 5,
        generation: int = 0,
        num_initial: int = 40,
        batch_size: int = 30,
        num_immigrants: int = 0,
        max_length: int = MAX_LENGTH,
        row_threads: RowThreads | None = None,
        parent_shares: tuple[float, ...] = (1.0,),
        num_starts: int = 0,
        start_generations: int = 1,
        emitters: Sequence[Emitter] = (),
        given: np.ndarray | None = None,
    ):
        def make():
            return make_archive("GridArchive", max_length, [tuple(r) for r in RANGES], seed, {"dims": [6, 5]})

        archive = make()
        restarts = Restarts(archive, make, num_starts, start_generations)
        emitter = ProgramEmitter(
            restarts,
            variation,
            seed=seed,
            max_length=max_length,
            num_initial=num_initial,
            batch_size=batch_size,
            emitters=emitters
            or [
                Emitter("variation", batch_size - num_immigrants, variation, parent_shares),
                Emitter("immigrants", num_immigrants, None),
            ],
            given_programs=given,
            generation=generation,
            row_threads=row_threads,
        )
        return SimpleNamespace(archive=archive, emitter=emitter, evaluator=WordEvaluator(), restarts=restarts)

    return make
