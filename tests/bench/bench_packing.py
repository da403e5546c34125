"""Load of compile workers: packs of a search's elites are compiled here one by one, and many workers are simulated."""

import heapq
from pathlib import Path

import numpy as np

from evo.compile.assembler import DEFAULT_OPTIONS
from evo.compile.compiler import Module, PackCompiler
from evo.compile.packing import Packing, plan_packs
from evo.compile.request import InLine
from evo.config import load_config
from evo.evaluate.backends import CPU
from evo.language.batch import Batch
from evo.language.program import Language
from evo.run.loaded_task import load_problem
from evo.run.search import Search

CONFIG = Path(__file__).parents[2] / "configs" / "domain_coloring_smoke.yaml"
SETTINGS = ("task_options.size=32", "search.archive.dims=[64, 64]", "search.batch_size=1024", "stop.generations=40")
TARGET = "sm_90"
NUM_ROUNDS = 5  # of compiling each pack; the shortest time counts


def elites() -> tuple[Language, Batch]:
    """The elites of a short search for pictures."""
    search = Search(load_problem(load_config(CONFIG, SETTINGS), CPU))
    for _ in search.generations():
        pass
    found = search.elites()
    search.problem.close()
    return search.problem.language, Batch(found.solution, found.hash, found.num_instructions)


def pack_times_s(language: Language, batch: Batch, num_workers: int) -> list[float]:
    """Seconds of a core for each pack, in the order in which a pool gets them."""
    packs = plan_packs(batch.hashes, batch.num_instructions, Packing(), num_workers)
    parts = [batch[np.array([site[0] for site in pack])] for pack in packs]
    times_s = np.full((NUM_ROUNDS, len(parts)), np.inf)
    with InLine() as executor:
        compiler = PackCompiler(
            language, TARGET, executor, packing=Packing(sites_per_kernel=1024, kernels_per_module=1), options=DEFAULT_OPTIONS
        )
        for taken_s in times_s:  # all packs in turn, so that a slow moment of the machine is not a pack's
            for number, part in enumerate(parts):
                (module,) = compiler.compile(part)
                assert isinstance(module, Module)
                taken_s[number] = module.compiler_s + module.emission_s
    return list(times_s.min(axis=0))


def utilisation(times_s: list[float], num_workers: int) -> float:
    """The share of their time that workers are busy who take packs in order, until the last one is done."""
    free_s = [0.0] * num_workers
    for time_s in times_s:
        heapq.heappush(free_s, heapq.heappop(free_s) + time_s)
    return sum(times_s) / (num_workers * max(free_s))


def rows():
    """Rows of the table."""
    language, batch = elites()
    assert len(batch) >= 2048
    order = np.random.default_rng(1).permutation(len(batch))
    for num_programs, num_workers in ((512, 16), (2048, 16), (512, 64), (2048, 64)):
        times_s = pack_times_s(language, batch[order[:num_programs]], num_workers)
        what = f"{num_programs} elites in {len(times_s)} packs, {num_workers} workers simulated"
        yield f"compile workers busy, {what}", f"{utilisation(times_s, num_workers):.1%}", "95 %", "98 %"
        yield f"seconds of a core, {what}", f"{sum(times_s):.2f} s", "", ""
