"""evo.evaluate.cuda.blame: the verdict on programs, over processes that are made up and real ones."""

import numpy as np
import pytest

from evo.compile.compiler import Module
from evo.evaluate.cuda import blame
from evo.evaluate.cuda.blame import MAX_AT_FAULT, Kernel, Verdict, run_alone, try_alone
from evo.workers import process

KERNEL = Kernel(0, {}, {"v": "f32"}, None, [np.zeros(4, np.float32)], 4)


def module(name: str) -> Module:
    return Module([np.array([0])], np.array([1], np.int32), (1,), name.encode())


EMPTY, SUSPECTS = module("empty"), [module(f"program {i}") for i in range(20)]


@pytest.fixture
def judge():
    """The verdict on 20 programs. `fails(process, name)`, of processes counted from 0, says whether a module fails in one."""

    def judged(fails) -> Verdict:
        processes = iter(range(1000))

        def run_child(kernel, modules, seconds) -> int:
            process = next(processes)
            return next((i for i, each in enumerate(modules) if fails(process, each.cubin.decode())), len(modules))

        return try_alone(KERNEL, EMPTY, SUSPECTS, 1.0, run_child)

    return judged


def test_programs_that_always_fail_are_at_fault_and_no_others(judge):
    for bad in ([0], [19], [3, 4, 17], [0, 1, 2, 18, 19]):
        names = {f"program {i}" for i in bad}
        assert judge(lambda process, name, names=names: name in names) == Verdict(tuple(bad))


def test_a_program_that_fails_once_is_not_at_fault(judge):
    once = {0: "program 7", 1: "program 7", 4: "program 9"}  # in the second process as the first of its programs
    verdict = judge(lambda process, name: once.get(process) == name)
    assert verdict.at_fault == () and "none of the 20 programs" in verdict.reason


@pytest.mark.parametrize("process", range(4))
def test_a_machine_that_breaks_during_the_trial_clears_every_program(judge, process):
    verdict = judge(lambda now, name: now >= process or name == "program 5")
    assert verdict == Verdict(reason="an empty program fails as well")


def test_where_many_programs_fail_some_are_named(judge):
    assert judge(lambda process, name: name != "empty").at_fault == tuple(range(MAX_AT_FAULT))


@pytest.mark.parametrize(
    ("end", "num_passed"),
    [("report('2')", 3), ("os._exit(1)", 2), ("os.kill(os.getpid(), 11)", 2), ("time.sleep(600)", 2), ("raise UserError", -1)],
)
def test_a_process_tells_how_many_programs_ran(monkeypatch, tmp_path, end, num_passed):
    (tmp_path / "work.py").write_text(f"import os, time\nfrom evo.errors import UserError\nreport('0'); report('1')\n{end}\n")
    monkeypatch.setenv("DEVICE_WORK", str(tmp_path / "work.py"))
    monkeypatch.setattr(blame, "MODULES", "device_work:run")
    assert run_alone(KERNEL, SUSPECTS[:3], 0.2) == num_passed


def test_a_process_that_cannot_be_started_tells_nothing(monkeypatch):
    monkeypatch.setattr(process, "COMMAND", ("/no/such/program",))
    assert try_alone(KERNEL, EMPTY, SUSPECTS, 1.0) == Verdict(reason="the device can no longer be used")
