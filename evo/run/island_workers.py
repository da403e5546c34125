"""Islands on Dask workers.

Each call takes an island's state along and brings the next one back, so that any worker can make the next call, and a lost one
costs the generations of one call. A worker that made the call before keeps the island. Owns both sides of these calls.
"""

import tempfile
import uuid
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from evo.errors import UserError
from evo.evaluate import TaskSource
from evo.evaluate.cluster import pack_task
from evo.evaluate.dask_client import GOES_ON, WorkersDied, connect
from evo.evaluate.dask_worker import PackedTask, keep_memory
from evo.evaluate.options import ClusterOptions
from evo.instructions import SHIPPED
from evo.run.island import Island, News, Settlement, Travellers
from evo.search.state import Arrays
from evo.task import Task
from evo.waiting import WAKE_S


class IslandWorkers:
    """As `evo.run.islands._Others`: on the workers of a scheduler, with a thread for each.

    Raises:
        UserError: no connection, or the instruction set is a file, which workers do not have.
    """

    def __init__(self, settlements: list[Settlement], task: Task, cluster: ClusterOptions):
        source, config = settlements[0].source, settlements[0].config
        assert isinstance(source, TaskSource)
        if config["program"]["instruction_set"] not in SHIPPED:
            raise UserError(f"search.islands: on Dask workers, program.instruction_set must be one of: {', '.join(SHIPPED)}")
        there = {**config, "evaluation": {**config["evaluation"], "cluster": None, "threads": 1}}
        self._settlements = [replace(each, config=there) for each in settlements]
        self._run = uuid.uuid4().hex
        with ExitStack() as opened:
            self._thread = opened.enter_context(ThreadPoolExecutor(1, "islands"))
            self._workers = opened.enter_context(connect(cluster.scheduler, cluster.tls, cluster.wait_seconds, len(settlements)))
            opened.callback(self._workers.call_each, forget, self._run)
            self._packed = pack_task(task, source, settlements[0].task_digest)
            self._opened = opened.pop_all()

    def breed(self, num_generations: int, migrants: list[Travellers]) -> Future[list[News]]:
        """As of `evo.run.islands._Others`."""
        calls = [
            (self._packed, self._run, settlement, num_generations, theirs)
            for settlement, theirs in zip(self._settlements, migrants, strict=True)
        ]
        return self._thread.submit(self._call, calls)

    def news(self, started: Future[list[News]]) -> list[News]:
        """As of `evo.run.islands._Others`."""
        while wait([started], WAKE_S).not_done:  # without a limit, Ctrl-C in another thread would not wake this one
            pass
        return started.result()

    def arrays(self) -> list[Arrays]:
        """As of `evo.run.islands._Others`."""
        return [settlement.arrays for settlement in self._settlements]

    def close(self) -> None:
        """As of `evo.run.islands._Others`."""
        self._opened.close()

    def _call(self, calls: list[tuple[Any, ...]]) -> list[News]:
        all_news: dict[int, News] = {}
        for row, result in self._workers.map(breed, calls):
            if isinstance(result, WorkersDied):
                raise UserError(f"search.islands: {result}; {GOES_ON}")
            all_news[row], settlement = result
            self._settlements[row] = settlement
        return [all_news[row] for row in range(len(calls))]


class _Held:
    """An island of this worker, with a folder for its task."""

    def __init__(self, packed: PackedTask, settlement: Settlement):
        self._folder = tempfile.TemporaryDirectory(prefix="evo-task-")
        self.root = Path(self._folder.name)
        assert isinstance(settlement.source, TaskSource)
        with packed.original_places(self.root):
            source = packed.unpack(self.root, settlement.source.options)
            self.island = Island(replace(settlement, source=source))
        self.num_generations = settlement.generations

    def close(self) -> None:
        self.island.search.problem.close()
        self._folder.cleanup()


_held: dict[tuple[str, int], _Held] = {}


def breed(
    packed: PackedTask, run: str, settlement: Settlement, num_generations: int, migrants: Travellers
) -> tuple[News, Settlement]:
    """What a run's island does on this worker, and what it is like then."""
    key = (run, settlement.number)
    held = _held.pop(key, None)
    if held and held.num_generations != settlement.generations:  # others went on with it meanwhile
        held.close()
        held = None
    if not held:
        keep_memory()
        held = _Held(packed, settlement)
    with packed.original_places(held.root):
        news = held.island.breed(num_generations, migrants)
    held.num_generations += num_generations
    _held[key] = held
    return news, replace(settlement, generations=held.num_generations, arrays=held.island.arrays())


def forget(run: str) -> None:
    """Frees a run's islands."""
    for key in [key for key in _held if key[0] == run]:
        _held.pop(key).close()
