"""The laws of executors that fulfil compile requests: results show neither where, by whom nor in which order."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from processes import LIMIT_S, wait_until

pytest.importorskip("evo.native.nvptxcompiler", reason="built without the wheel nvidia-nvptxcompiler")
pytest.importorskip("zmq", reason="evo-ptx[farm] is not installed")

from evo.compile.compiler import FailedProgram, Module, PackCompiler
from evo.compile.farm.server import CompileFarm
from evo.compile.packing import Packing
from evo.compile.pool import CompilePool
from evo.compile.request import Compiled, CompileExecutor, CompileFailure, CompileRequest, InLine, compile_request

# compile_cases.py is imported by name, here and in worker processes, which get this process's path.
sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "compile"))
from compile_cases import BAD, break_down, program_text, programs, reject

NUM_PROGRAMS = 15
PACKING = Packing(sites_per_kernel=3, kernels_per_module=2)


class Backwards(CompileExecutor):
    """Fulfils the youngest request that is there, in a thread."""

    num_workers = 1

    def __init__(self):
        self._held: list[tuple[Future, Callable]] = []
        self._thread = ThreadPoolExecutor(1)

    def submit(self, fn: Callable, /, *args, **kwargs) -> Future:
        future: Future = Future()
        self._held.append((future, lambda: fn(*args, **kwargs)))
        self._thread.submit(self._run_youngest)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._thread.shutdown(wait, cancel_futures=cancel_futures)

    def _run_youngest(self) -> None:
        future, call = self._held.pop()
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(call())
            except Exception as error:  # noqa: BLE001 - an executor hands on whatever a call raises
                future.set_exception(error)


class FarmWithWorker(CompileFarm):
    """A farm with a process of its own and a worker that is another command."""

    def __init__(self):
        super().__init__("tcp://127.0.0.1:0", num_local=1)
        command = [Path(sys.executable).with_name("evo"), "worker", "--connect", self.address, "--workers", "1"]
        self._worker = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        wait_until(lambda: self.num_workers == 2)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        super().shutdown(wait, cancel_futures=cancel_futures)
        self._worker.terminate()
        assert self._worker.wait(LIMIT_S) == 0


# How to make each, and how many calls it makes at once while the submitting thread goes on.
EXECUTORS = {
    "in line": (InLine, 0),
    "backwards": (Backwards, 1),
    "compile pool": (lambda: CompilePool(2), 2),
    "farm": (FarmWithWorker, 1),
}


@pytest.fixture(scope="module", params=EXECUTORS)
def executor(request) -> Iterator[CompileExecutor]:
    with EXECUTORS[request.param][0]() as executor:
        yield executor


@pytest.fixture
def occupy(executor, request, tmp_path):
    """Gives each worker of the executor a call that does not end before the function that it returns is called."""
    num_workers = EXECUTORS[request.node.callspec.params["executor"]][1]
    pipes, writers, futures = [tmp_path / f"pipe{i}" for i in range(num_workers)], [], []

    def start() -> Callable[[], None]:
        for pipe in pipes:
            os.mkfifo(pipe)
            futures.append(executor.submit(pipe.read_bytes))
            writers.append(os.open(pipe, os.O_WRONLY))  # returns when the call has opened the pipe, which it reads to our end
        return end

    def end() -> None:
        while writers:
            os.close(writers.pop())
        assert [future.result(timeout=LIMIT_S) for future in futures] == [b""] * num_workers

    yield start
    end()


@pytest.fixture
def batch(language):
    """Programs of several lengths; rows 2 and 11 are the same one, which `reject` rejects."""
    texts = [program_text(i, i % 4) for i in range(NUM_PROGRAMS)]
    texts[2] = texts[11] = BAD
    return programs(language, texts)


def requests_of(language, batch) -> list[CompileRequest]:
    """The requests that a batch leads to, in the order of submission."""
    seen: list[CompileRequest] = []
    list(
        PackCompiler(
            language, "sm_90", InLine(), packing=PACKING, compile_function=lambda r: seen.append(r) or Compiled(b"")
        ).compile(batch)
    )
    return seen


def by_rows(results) -> dict[tuple, tuple]:
    """The rows of each module, and the failed programs."""
    outcomes: dict[tuple, tuple] = {}
    for result in results:
        if isinstance(result, Module):
            key = tuple(tuple(rows.tolist()) for rows in result.rows)
            outcomes[key] = (result.cubin, result.kernel_sizes, tuple(result.num_instructions.tolist()))
        else:
            assert isinstance(result, FailedProgram)
            outcomes[(tuple(result.rows.tolist()),)] = (result.failure.kind, result.failure.log)
    return outcomes


def test_a_request_gives_the_cubin_that_this_process_makes_of_it(executor, language, batch):
    requests = requests_of(language, batch)
    assert len(requests) > 2
    expected = [compile_request(request).cubin for request in requests]
    futures = [executor.submit(compile_request, request) for request in requests]
    assert [future.result(timeout=LIMIT_S).cubin for future in futures] == expected


def test_a_failure_is_a_value_with_the_compilers_log(executor, language, batch):
    request = requests_of(language, batch)[0]
    broken = CompileRequest(**{**vars(request), "options": ("--no-such-option",)})
    outcome = executor.submit(compile_request, broken).result(timeout=LIMIT_S)
    assert outcome == compile_request(broken)
    assert isinstance(outcome, CompileFailure) and "no-such-option" in outcome.log


def test_a_batch_has_the_same_results_whoever_fulfils_it_and_in_whichever_order(executor, language, batch):
    found = by_rows(PackCompiler(language, "sm_90", executor, packing=PACKING).compile(batch))
    assert sorted(row for sites in found for rows in sites for row in rows) == list(range(NUM_PROGRAMS))
    # Packs are even, and as many as workers take at once, which changes no program's place here.
    assert found == by_rows(PackCompiler(language, "sm_90", InLine(), packing=PACKING).compile(batch))


def test_the_program_at_fault_is_the_same_whoever_finds_it(executor, language, batch):
    compiler = PackCompiler(language, "sm_90", executor, packing=PACKING, compile_function=reject)
    found = by_rows(compiler.compile(batch))
    assert found[((2, 11),)] == ("rejected", "line 1: bad")
    in_line = PackCompiler(language, "sm_90", InLine(), packing=PACKING, compile_function=reject)
    assert found == by_rows(in_line.compile(batch))
    assert len(compiler.failures) == 1 and compiler.failures == in_line.failures


def test_what_a_function_raises_is_raised_and_the_executor_goes_on(executor, language, batch):
    with pytest.raises(ZeroDivisionError, match="a defect of ours"):
        list(PackCompiler(language, "sm_90", executor, packing=PACKING, compile_function=break_down).compile(batch))
    assert executor.submit(divmod, 7, 3).result(timeout=LIMIT_S) == (2, 1)


def test_a_batch_that_is_given_up_leaves_an_executor_that_goes_on(executor, language, batch):
    results = PackCompiler(language, "sm_90", executor, packing=Packing(sites_per_kernel=1, kernels_per_module=1)).compile(batch)
    assert isinstance(next(results), Module)
    results.close()
    assert executor.submit(divmod, 7, 3).result(timeout=LIMIT_S) == (2, 1)


def test_a_call_that_is_cancelled_is_not_made_and_any_other_is(executor, occupy, tmp_path):
    release = occupy()
    marks = [tmp_path / str(i) for i in range(20)]
    futures = [executor.submit(mark.touch) for mark in marks]
    cancelled = [future.cancel() for future in reversed(futures)][::-1]
    release()
    for future, is_cancelled in zip(futures, cancelled, strict=True):
        if is_cancelled:
            with pytest.raises(CancelledError):
                future.result(timeout=LIMIT_S)
        else:
            assert future.result(timeout=LIMIT_S) is None
    assert executor.submit(divmod, 7, 3).result(timeout=LIMIT_S) == (2, 1)
    assert [mark.exists() for mark in marks] == [not is_cancelled for is_cancelled in cancelled]
    # In line a call is made as it is submitted; a pool of processes keeps a few that its workers take next.
    if isinstance(executor, InLine):
        assert not any(cancelled)
    else:
        assert sum(cancelled) >= 15
