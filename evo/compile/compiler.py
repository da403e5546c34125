"""Programs to modules: packs them, has the packs compiled, and finds the program at fault if that fails.

Owns the use of the cache, the one retry after a worker's death, and bisection. Knows nothing of where requests are fulfilled.
"""

from collections.abc import Generator, Iterator
from concurrent.futures import BrokenExecutor, Future
from dataclasses import dataclass, field, replace
from queue import Empty, SimpleQueue
from typing import TypeAlias

import numpy as np

from evo.compile.assembler import DEFAULT_OPTIONS
from evo.compile.language import encode_language
from evo.compile.packing import Packing, plan_packs
from evo.compile.request import (
    Compiled,
    CompileExecutor,
    CompileFailure,
    CompileRequest,
    Fulfil,
    Outcome,
    compile_request,
    pack_programs,
)
from evo.errors import FailureKind, UserError
from evo.kernel.template import POINTWISE, KernelTemplate
from evo.language.batch import Batch
from evo.language.program import Language
from evo.storage.disk_cache import DiskCache
from evo.workers import WAKE_S


@dataclass(frozen=True)
class Module:
    """A compiled pack, launched as its kernel template says.

    rows: for each site, in order through all kernels, the rows of the batch that it serves. num_instructions: `(num_sites,)`
    int32, live instructions of each site's program. kernel_sizes: sites of each kernel. compiler_s, emission_s: seconds inside
    nvPTXCompiler and before it, 0 if the cubin came from the cache.
    """

    rows: list[np.ndarray]
    num_instructions: np.ndarray
    kernel_sizes: tuple[int, ...]
    cubin: bytes
    compiler_s: float = 0.0
    emission_s: float = 0.0

    def served(self) -> tuple[np.ndarray, np.ndarray]:
        """All rows that are served, and the site of each."""
        return np.concatenate(self.rows), np.repeat(np.arange(len(self.rows)), [len(rows) for rows in self.rows])


@dataclass(frozen=True)
class FailedProgram:
    """A program that cannot be compiled, even alone. rows: all rows of the batch that mean this program."""

    rows: np.ndarray
    failure: CompileFailure


_Future: TypeAlias = Future[Outcome]


@dataclass(frozen=True)
class _Job:
    rows: list[np.ndarray]
    num_instructions: np.ndarray
    request: CompileRequest
    is_retry: bool = False


@dataclass(frozen=True)
class _Work:
    """A batch in progress: requests under way, those of them that have ended, and modules that the cache had."""

    pending: dict[_Future, _Job] = field(default_factory=dict)
    done: SimpleQueue[_Future] = field(default_factory=SimpleQueue)
    cached: list[Module] = field(default_factory=list)


class PackCompiler:
    """Compiles batches of programs of one language for one target.

    Args:
        language: what the programs are written in.
        target: a GPU architecture such as `sm_90`.
        executor: where requests are fulfilled.
        packing: how many programs go together.
        template: the kernel. A task's own kernel is made for this target and bounds the packing.
        options: of the assembler, beside the target.
        cache: looked up first, and filled; None: nothing is kept.
        compile_function: fulfils a request.
        failures: canonical hash (16 bytes) -> failure of each program known to fail. These are never compiled again. New ones
            are added.

    Raises:
        UserError: the assembler refuses target or options.
    """

    def __init__(
        self,
        language: Language,
        target: str,
        executor: CompileExecutor,
        *,
        packing: Packing = Packing(),
        template: KernelTemplate = POINTWISE,
        options: tuple[str, ...] = DEFAULT_OPTIONS,
        cache: DiskCache | None = None,
        compile_function: Fulfil = compile_request,
        failures: dict[bytes, CompileFailure] | None = None,
    ):
        if template.num_sites is not None:
            packing = Packing(sites_per_kernel=min(packing.programs_per_module, template.num_sites), kernels_per_module=1)
        encoded = encode_language(language)
        self._blank = CompileRequest(b"", b"", b"", encoded, target, packing.sites_per_kernel, options, template.content)
        _check_template(self._blank)
        self._executor = executor
        self._packing = packing
        self._cache = cache
        self._compile_function = compile_function
        self.failures = {} if failures is None else failures

    def compile(self, batch: Batch) -> Generator[Module | FailedProgram, None, None]:
        """Modules as they get ready, in any order, and failed programs; together they hold every row once."""
        words, hashes, num_instructions = batch.words, batch.hashes, batch.num_instructions
        known = np.array([row.tobytes() in self.failures for row in hashes], bool)
        for row in np.flatnonzero(known):
            yield FailedProgram(np.array([row]), self.failures[hashes[row].tobytes()])
        candidates = np.flatnonzero(~known)
        packs = plan_packs(hashes[candidates], num_instructions[candidates], self._packing, self._executor.num_workers)
        work = _Work()
        for pack in packs:
            rows = [candidates[site] for site in pack]
            firsts = [site[0] for site in rows]
            packed_words, lengths, packed_hashes = pack_programs(words[firsts], hashes[firsts])
            request = replace(self._blank, words=packed_words, lengths=lengths, hashes=packed_hashes)
            self._start(_Job(rows, num_instructions[firsts], request), work)
        try:
            while work.pending or work.cached:
                yield from work.cached
                work.cached.clear()
                if work.pending and (future := _next_done(work)):
                    yield from self._finish(future, work)
        finally:
            for future in work.pending:
                future.cancel()

    def _start(self, job: _Job, work: _Work) -> None:
        cubin = self._cache.get(job.request.cache_key()) if self._cache else None
        if cubin is not None:
            work.cached.append(_module(job, Compiled(cubin)))
        else:
            future = self._executor.submit(self._compile_function, job.request)
            work.pending[future] = job
            future.add_done_callback(work.done.put)

    def _finish(self, future: _Future, work: _Work) -> Iterator[Module | FailedProgram]:
        """The results of one request; if it failed, its parts are started."""
        job = work.pending.pop(future)
        outcome = _outcome(future)
        if isinstance(outcome, Compiled):
            if self._cache and self._executor.fills_cache:
                self._cache.put(job.request.cache_key(), outcome.cubin)
            yield _module(job, outcome)
        elif outcome.kind == FailureKind.DIED and not job.is_retry:
            # The system may have killed the worker for a reason that is not in its request.
            self._start(replace(job, is_retry=True), work)
        elif len(job.rows) == 1:
            self.failures[job.request.hashes] = outcome
            yield FailedProgram(job.rows[0], outcome)
        else:
            middle, end = len(job.rows) // 2, len(job.rows)
            for start, stop in ((0, middle), (middle, end)):
                part = _Job(job.rows[start:stop], job.num_instructions[start:stop], job.request.subset(start, stop))
                self._start(part, work)


def _module(job: _Job, compiled: Compiled) -> Module:
    times_s = compiled.compiler_s, compiled.emission_s
    return Module(job.rows, job.num_instructions, job.request.kernel_sizes, compiled.cubin, *times_s)


def _next_done(work: _Work) -> _Future | None:
    try:
        return work.done.get(timeout=WAKE_S)
    except Empty:
        return None


def _outcome(future: _Future) -> Outcome:
    try:
        return future.result()
    except TimeoutError:
        return CompileFailure(FailureKind.TIMED_OUT, "the time limit of one compile request passed")
    except BrokenExecutor as error:
        return CompileFailure(FailureKind.DIED, str(error))


def _check_template(blank: CompileRequest) -> None:
    """Compiles one program without words, to find failures that would otherwise look like every program's fault."""
    outcome = compile_request(replace(blank, lengths=bytes(4), hashes=bytes(16)))
    if isinstance(outcome, CompileFailure):
        options, reason = " ".join(blank.options), outcome.log.splitlines()[-1]
        raise UserError(f"cannot compile for target '{blank.target}' with options {options}: {reason}")
