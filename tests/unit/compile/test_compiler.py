"""Batches of programs: what is compiled together, and how the program at fault is found, whatever goes wrong."""

import os
from concurrent.futures import Future

import numpy as np
import pytest
from compile_cases import BAD, die, dispute, hang, program_text, programs, reject

from evo.compile.compiler import FailedProgram, Module, PackCompiler
from evo.compile.packing import Packing
from evo.compile.pool import CompilePool
from evo.compile.request import Compiled, InLine
from evo.errors import FailureKind, UserError
from evo.storage.disk_cache import DiskCache
from evo.workers.processes import WorkerDied

NUM_PROGRAMS = 21


@pytest.fixture(scope="module")
def pool():
    with CompilePool(2, time_limit_s=2.0) as pool:
        for future in [pool.submit(os.getpid) for _ in range(4)]:
            future.result()
        yield pool


@pytest.fixture
def batch(language):
    """NUM_PROGRAMS programs; rows 5 and 17 are the same bad program."""
    texts = [program_text(i) for i in range(NUM_PROGRAMS)]
    texts[5] = texts[17] = BAD
    return programs(language, texts)


def split(results) -> tuple[list[Module], list[FailedProgram]]:
    results = list(results)
    modules = [result for result in results if isinstance(result, Module)]
    failed = [result for result in results if isinstance(result, FailedProgram)]
    rows = np.concatenate([row for module in modules for row in module.rows] + [failure.rows for failure in failed])
    assert sorted(rows.tolist()) == list(range(NUM_PROGRAMS)), "every row once"
    return modules, failed


@pytest.mark.parametrize(
    ("function", "kind"), [(reject, FailureKind.REJECTED), (hang, FailureKind.TIMED_OUT), (die, FailureKind.DIED)]
)
def test_the_program_at_fault_is_named_and_all_others_survive(language, pool, batch, function, kind):
    compiler = PackCompiler(
        language, "sm_90", pool, packing=Packing(sites_per_kernel=4, kernels_per_module=2), compile_function=function
    )
    modules, failed = split(compiler.compile(batch))
    assert [failure.rows.tolist() for failure in failed] == [[5, 17]]
    assert failed[0].failure.kind is kind
    logs = {FailureKind.REJECTED: "line 1: bad", FailureKind.TIMED_OUT: "time limit", FailureKind.DIED: "SIGSEGV"}
    assert logs[kind] in failed[0].failure.log
    assert sum(len(module.rows) for module in modules) == NUM_PROGRAMS - 2


def test_a_program_at_fault_is_never_compiled_again(language, in_process, batch):
    seen = []

    def count(request):
        seen.append(request)
        return reject(request)

    compiler = PackCompiler(language, "sm_90", in_process, compile_function=count)
    split(compiler.compile(batch))
    assert len(compiler.failures) == 1
    assert len({request.cache_key() for request in seen}) == len(seen) > 1  # only a death is tried again as it was
    seen.clear()
    modules, failed = split(compiler.compile(batch))
    assert [request.num_programs for request in seen] == [NUM_PROGRAMS - 2]
    assert sorted(row for failure in failed for row in failure.rows.tolist()) == [5, 17]
    assert len(modules) == 1


def test_programs_that_fail_only_together_are_compiled_apart(language, in_process, batch):
    modules, failed = split(PackCompiler(language, "sm_90", in_process, compile_function=dispute).compile(batch))
    assert not failed
    assert max(len(module.rows) for module in modules) == 2


class DiesOnce(InLine):
    """An executor whose first future ends as if the worker had died."""

    def __init__(self):
        self.num_submitted = 0

    def submit(self, fn, /, *args):
        self.num_submitted += 1
        if self.num_submitted > 1:
            return super().submit(fn, *args)
        future = Future()
        future.set_exception(WorkerDied("gone"))
        return future


def test_a_request_whose_worker_died_is_tried_once_more_as_it_was(language, batch):
    with DiesOnce() as executor:
        modules, failed = split(
            PackCompiler(language, "sm_90", executor, compile_function=lambda request: Compiled(b"")).compile(batch)
        )
        assert executor.num_submitted == 2
    assert (len(modules), len(failed)) == (1, 0)


def test_a_cached_batch_is_compiled_once(language, in_process, batch, tmp_path):
    seen = []

    def count(request):
        seen.append(request)
        return Compiled(b"cubin %d" % request.num_programs, 1.0)

    def compile_all():
        compiler = PackCompiler(
            language,
            "sm_90",
            in_process,
            packing=Packing(sites_per_kernel=4, kernels_per_module=2),
            cache=DiskCache(tmp_path),
            compile_function=count,
        )
        return split(compiler.compile(batch))[0]

    first = compile_all()
    assert len(seen) == 3
    second = compile_all()
    assert len(seen) == 3
    assert sorted(module.cubin for module in first) == sorted(module.cubin for module in second)
    assert {module.compiler_s for module in second} == {0.0}


def test_an_executor_whose_cubins_nobody_vouches_for_leaves_none_in_the_cache(language, in_process, batch, tmp_path):
    for in_process.fills_cache in (False, True):
        compiler = PackCompiler(
            language, "sm_90", in_process, cache=DiskCache(tmp_path), compile_function=lambda _: Compiled(b"x")
        )
        assert len(split(compiler.compile(batch))[0]) > 0
        assert bool(list(tmp_path.iterdir())) == in_process.fills_cache


def test_an_abandoned_batch_leaves_no_work_behind(language, batch):
    with CompilePool(1, time_limit_s=600.0) as pool:
        results = PackCompiler(
            language, "sm_90", pool, packing=Packing(sites_per_kernel=1, kernels_per_module=1), compile_function=hang
        ).compile(batch)
        next(results)
        results.close()
        assert pool.submit(os.getpid).result(timeout=30) > 0


@pytest.mark.parametrize(
    ("target", "options", "reason"), [("sm_1", (), "sm_1"), ("sm_90", ("--no-such-option",), "no-such-option")]
)
def test_wrong_targets_and_options_are_the_users_mistake(language, in_process, target, options, reason):
    with pytest.raises(UserError, match=f"cannot compile for target '{target}' .*{reason}") as error:
        PackCompiler(language, target, in_process, options=options)
    assert "\n" not in str(error.value)
