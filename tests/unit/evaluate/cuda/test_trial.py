"""evo.evaluate.cuda.trial: the verdict on programs, over processes that are made up, and the watch over real ones."""

from __future__ import annotations

import numpy as np
import pytest

from evo.compile.compiler import Module
from evo.evaluate.cuda import trial
from evo.evaluate.cuda.trial import Kernel, Verdict, try_alone

KERNEL = Kernel(0, {"v": "f32"}, None, [np.zeros(4, np.float32)], 4)


def module(name: str) -> Module:
    return Module([np.array([0])], np.array([1], np.int32), (1,), name.encode())


EMPTY, SUSPECTS = module("empty"), [module(f"program {i}") for i in range(20)]


@pytest.fixture
def judge(monkeypatch):
    """The verdict on 20 programs. `fails(process, name)`, of processes counted from 0, says whether a module fails in one."""

    def judged(fails) -> Verdict:
        processes = iter(range(1000))

        def run_child(kernel, modules, seconds) -> int:
            process = next(processes)
            return next((i for i, each in enumerate(modules) if fails(process, each.cubin.decode())), len(modules))

        monkeypatch.setattr(trial, "_run_child", run_child)
        return try_alone(KERNEL, EMPTY, SUSPECTS, 1.0)

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
    assert judge(lambda process, name: name != "empty").at_fault == tuple(range(trial.MAX_AT_FAULT))


@pytest.mark.parametrize(
    ("script", "num_passed"),
    [
        ("printf ...", 3),
        ("printf ..; exit 1", 2),
        ("printf ..; kill -SEGV $$", 2),
        ("printf ..; exec sleep 600", 2),  # beyond the time limit
        (f"printf .; exit {trial.EXIT_UNTESTED}", -1),
    ],
)
def test_the_watch_over_a_process_tells_how_many_programs_ran(monkeypatch, script, num_passed):
    monkeypatch.setattr(trial, "COMMAND", ("sh", "-c", script))
    assert trial._run_child(KERNEL, SUSPECTS[:3], 0.2) == num_passed


def test_a_process_that_cannot_be_started_tells_nothing(monkeypatch):
    monkeypatch.setattr(trial, "COMMAND", ("/no/such/program",))
    assert try_alone(KERNEL, EMPTY, SUSPECTS, 1.0) == Verdict(reason="the device can no longer be used")
