"""The cluster evaluator: batches evaluated by the workers of a Dask scheduler.

Owns how a task travels and how a batch is divided. It decides no result: every bit of a program's result depends on that program
alone, whoever evaluates it and however often. Knows nothing of how a worker evaluates.
"""

import atexit
import io
import os
import pickle
import uuid
import zipfile
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.compile.language import encode_language
from evo.errors import UserError, located
from evo.evaluate import Evaluation, Evaluator, TaskSource, dask_worker, join
from evo.evaluate.backends import CPU, Assignment, Backend
from evo.evaluate.dask_client import GOES_ON, Workers, connect
from evo.language.batch import Batch
from evo.task import Task
from evo.tasks.answers import method_place
from evo.tasks.folder import declared_files, task_digest, task_files
from evo.workers.processes import WorkerDied

PARTS_PER_WORKER = 4  # of a batch, at most: workers differ in speed, and the last part is waited for
PART_S = 0.1  # of work that a part has at least; each costs the scheduler and the worker some milliseconds
FADE = 0.5  # by which earlier batches weigh less with each batch


class ClusterEvaluator:
    """Runs and scores programs on Dask workers. Connects when it is first needed.

    Args:
        assignment: the work. Its settings have a `cluster`; its source says where the task is.
        backend: that workers start.
        task_digest: of the task as it was loaded.
    """

    uses_lowered = False

    def __init__(self, assignment: Assignment, backend: Backend, task_digest: str):
        assert isinstance(assignment.source, TaskSource)
        assert assignment.settings.cluster
        self._assignment = assignment
        self._source = assignment.source
        self._backend = backend
        self._task_digest = task_digest
        self._cluster = assignment.settings.cluster
        self._opened = ExitStack()
        self._run = uuid.uuid4().hex
        self._pace = Pace()
        self._location = method_place(type(assignment.task), "score")

    @property
    def device(self) -> str:
        """Device of the workers' evaluators, which are taken to be alike."""
        return str(self._described.get("device", "CPU"))

    def evaluate(self, batch: Batch) -> Evaluation:
        """As `Evaluator.evaluate`, in parts on the workers."""
        num_measures = len(self._assignment.task.measures)
        if not len(batch):
            return join([], num_measures)
        size = self._pace.part_size(len(batch), len(self._workers.usable()))
        batches = [batch[start : start + size] for start in range(0, len(batch), size)]
        parts = self._call("evaluate", [(part,) for part in batches])
        evaluation = join([_of_workers(part, seconds) for part, seconds in parts], num_measures)
        self._pace.note(len(batch), evaluation.stats.times_s["part_workers"])
        return evaluation

    def outputs(self, words: NDArray[np.uint64], points: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """As `Evaluator.outputs`: on a worker with a GPU, or here on the CPU."""
        if self._backend is CPU:
            return self._own_cpu.outputs(words, points)
        outputs: dict[str, NDArray[Any]] = self._call("outputs", [(words, points)])[0][0]
        return outputs

    def environment(self) -> dict[str, str | int]:
        """Facts of one worker, the scheduler's address, and the number of workers at first."""
        workers = self._workers.usable()
        counts = {"cluster_workers": len(workers), "cluster_threads": sum(workers.values())}
        return {**self._described, "cluster": self._workers.scheduler, **counts}

    def close(self) -> None:
        """Has the workers free evaluators that no other run needs, and ends the connection."""
        self._opened.close()
        atexit.unregister(self._opened.close)

    @cached_property
    def _workers(self) -> Workers:
        cluster = self._cluster
        with located("evaluation.cluster"):
            workers = self._opened.enter_context(connect(cluster.scheduler, cluster.tls, cluster.wait_seconds))
        atexit.register(self._opened.close)  # while threads still run: an error may end the process without `close`
        return workers

    @cached_property
    def _setup(self) -> bytes:
        assignment, source = self._assignment, self._source
        setup = dask_worker.RemoteSetup(
            packed=pack_task(assignment.task, source, self._task_digest),
            options=dict(source.options),
            task_digest=self._task_digest,
            language=encode_language(assignment.language),
            instructions=tuple(assignment.instructions),
            backend=self._backend.name,
            quarantine=dict(assignment.quarantine),
            settings=assignment.settings.model_copy(update={"cluster": None}),
        )
        return pickle.dumps(setup)

    @cached_property
    def _kept_setup(self) -> Any:
        workers = self._workers
        kept = workers.keep(self._setup)
        self._opened.callback(workers.call_each, dask_worker.forget, self._run)
        return kept

    @cached_property
    def _described(self) -> dict[str, str | int]:
        environment: dict[str, str | int] = self._call("environment", [()])[0][0]
        return environment

    @cached_property
    def _own_cpu(self) -> Evaluator:
        settings = self._assignment.settings.model_copy(update={"threads": 1, "executor": "threads"})
        evaluator = CPU.start(replace(self._assignment, settings=settings))
        self._opened.callback(evaluator.close)
        return evaluator

    def _call(self, method: str, arguments: list[tuple[Any, ...]]) -> list[Any]:
        """The results of an evaluator's method on workers, in order, with their seconds."""
        results: list[Any] = [None] * len(arguments)
        calls = [(self._kept_setup, self._run, method, *call_arguments) for call_arguments in arguments]
        for number, future in self._workers.map(dask_worker.call, calls):
            try:
                results[number] = future.result()
            except WorkerDied as death:
                raise UserError(f"{death}; {GOES_ON}", self._location) from None
        return results


class Pace:
    """Seconds of a worker for a program, by the last batches. Small batches weigh little: most of their time is overhead."""

    def __init__(self) -> None:
        self._num_programs, self._spent_s = 0.0, 0.0

    def part_size(self, num_programs: int, num_workers: int) -> int:
        """Programs of a part of a batch: equal shares, in several parts if they take long enough."""
        program_s = self._spent_s / max(self._num_programs, 1.0)
        parts_per_worker = min(max(int(program_s * num_programs / num_workers / PART_S), 1), PARTS_PER_WORKER)
        return -(-num_programs // (num_workers * parts_per_worker))

    def note(self, num_programs: int, seconds: float) -> None:
        """Takes a batch, and the seconds that all workers together spent on it."""
        self._num_programs = FADE * self._num_programs + num_programs
        self._spent_s = FADE * self._spent_s + seconds


def pack_task(task: Task, source: TaskSource, digest: str) -> dask_worker.PackedTask:
    """The task's folder and the files that it declares.

    Raises:
        UserError: the files are not those of the digest any more, or cannot be read.
    """
    folder = source.folder.resolve()
    declared = declared_files(task, folder)
    if task_digest(folder, declared) != digest:
        raise UserError("the task's files have changed since they were loaded; start again", folder)
    tops = [folder, *(Path(os.path.abspath(path)) for path in declared)]
    root = Path(os.path.commonpath([path if path.is_dir() else path.parent for path in tops]))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as files:
        written = set()
        for top in tops:
            for path in task_files(top):
                name = path.relative_to(root).as_posix()
                if name not in written:
                    written.add(name)
                    files.writestr(zipfile.ZipInfo(name), path.read_bytes(), zipfile.ZIP_DEFLATED)
    options = {}
    for name, value in source.options.items():
        resolved = Path(os.path.abspath(value)) if isinstance(value, str) else Path()
        if resolved in tops[1:] or (resolved.is_file() and any(resolved.is_relative_to(top) for top in tops)):
            options[name] = resolved.relative_to(root).as_posix()
    return dask_worker.PackedTask(packed.getvalue(), folder.relative_to(root).as_posix(), str(root), options)


def _of_workers(part: Evaluation, seconds: float) -> Evaluation:
    """A part with its seconds by stage, and all of them as `part`, named as sums over workers."""
    times_s = {**part.stats.times_s, "part": seconds}
    names = {name: f"{name.removesuffix('_threads').removesuffix('_workers')}_workers" for name in times_s}
    return replace(part, stats=replace(part.stats, times_s={names[name]: value for name, value in times_s.items()}))
