"""Whether a GPU may be trusted: the self-test, run once for each device, driver and version of evo, and its remembered outcome.

Owns the child process with its time limit, and the records in the user's cache folder. What is tested: `self_test_child`. Knows
nothing of runs.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from evo.about import VERSION
from evo.evaluate.cuda.device import DeviceInfo, driver_name
from evo.storage.disk_cache import cache_folder
from evo.storage.files import write_atomically

# The test takes some ten seconds. The rest is for a busy machine and a cold disk.
TIME_LIMIT_S = 120.0
# How long a killed process may take to end. One that waits inside a driver may never do.
_KILL_S = 5.0

# -P: modules in the user's current folder are not imported.
COMMAND = (sys.executable, "-P", "-m", "evo.evaluate.cuda.self_test_child")
TEST_AGAIN = "evo doctor --test"

# What the child's lines begin with.
STEP, PASSED, FAILED, UNTESTED, LANES_DIFFER = "step: ", "passed", "failed: ", "untested: ", "lanes differ: "


@dataclass(frozen=True)
class Outcome:
    """What a test said of a device.

    problem: in one line why it must not be used, or None if it passed. is_final: the outcome is remembered, because another try
    is not expected to differ. lanes_problem: in one line how interpreted programs differ from compiled ones, so that a run must
    keep to one lane, or None if they do not.
    """

    problem: str | None
    is_final: bool = True
    lanes_problem: str | None = None


def why_untrusted(info: DeviceInfo) -> str | None:
    """Why a device must not be used, in one line, or None if it passed its self-test.

    Runs the test unless its outcome is remembered.
    """
    outcome = remembered(info) or run_self_test(info)
    if outcome.problem is None:
        return None
    if outcome.is_final:
        return f"{info.name} failed the self-test: {outcome.problem}; test it again with: {TEST_AGAIN}"
    return f"{info.name} could not be tested: {outcome.problem}"


def why_one_lane(info: DeviceInfo) -> str | None:
    """Why a run on a device that passed its self-test must keep to the compile lane, in one line, or None if it need not."""
    outcome = remembered(info)
    return outcome.lanes_problem if outcome else None


def remembered(info: DeviceInfo) -> Outcome | None:
    """The outcome of the last test of such a device with this driver and evo, or None. Damaged records count as none."""
    try:
        record = json.loads(_path(info).read_bytes())
        if {name: record[name] for name in _key(info)} != _key(info):
            return None
        problem, lanes_problem = record["problem"], record["lanes_problem"]
    except (OSError, ValueError, TypeError, KeyError):
        return None
    is_valid = all(each is None or isinstance(each, str) for each in (problem, lanes_problem))
    return Outcome(problem, lanes_problem=lanes_problem) if is_valid else None


def run_self_test(info: DeviceInfo) -> Outcome:
    """Tests a device in a child process and remembers the outcome."""
    outcome = _run_child(info.ordinal)
    if outcome.is_final:
        record = {**_key(info), "problem": outcome.problem, "lanes_problem": outcome.lanes_problem}
        path = _path(info)
        with suppress(OSError):  # then the next process tests again
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, json.dumps(record, indent=2).encode() + b"\n")
    return outcome


def _run_child(ordinal: int) -> Outcome:
    try:
        child = subprocess.Popen(
            [*COMMAND, str(ordinal)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,  # so that its compile workers can be killed with it
        )
    except OSError as error:
        return Outcome(f"its process cannot be started: {error.strerror}", is_final=False)
    try:
        text, errors = child.communicate(timeout=TIME_LIMIT_S)
    except subprocess.TimeoutExpired:
        return Outcome(f"not finished after {TIME_LIMIT_S:g} s{_during(_kill(child))}")
    except BaseException:
        _kill(child)
        raise
    *_, last = ["", *text.splitlines()]
    if last == PASSED:
        told = [line.removeprefix(LANES_DIFFER) for line in text.splitlines() if line.startswith(LANES_DIFFER)]
        return Outcome(None, lanes_problem=told[0] if told else None)
    for prefix, is_final in ((FAILED, True), (UNTESTED, False)):
        if last.startswith(prefix):
            return Outcome(last.removeprefix(prefix), is_final)
    return Outcome(f"its process {_how_it_ended(child.returncode, errors)}{_during(text)}")


def _kill(child: subprocess.Popen[str]) -> str:
    """Kills the child and its workers, and gives what it had printed."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    try:
        return child.communicate(timeout=_KILL_S)[0]
    except subprocess.TimeoutExpired:
        return ""


def _during(text: str) -> str:
    """The step that had begun last."""
    steps = [line.removeprefix(STEP) for line in text.splitlines() if line.startswith(STEP)]
    return f", during: {steps[-1]}" if steps else ""


def _how_it_ended(code: int, errors: str) -> str:
    if code >= 0:
        *_, last = ["", *errors.strip().splitlines()]  # of a traceback: the exception
        return f"ended with exit code {code}" + (f" ({last})" if last else "")
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


def _key(info: DeviceInfo) -> dict[str, str]:
    return {"device": info.name, "target": info.target, "driver": driver_name(), "evo": VERSION}


def _path(info: DeviceInfo) -> Path:
    name = "_".join(re.sub(r"[^A-Za-z0-9.]+", "-", part) for part in _key(info).values())
    return cache_folder() / "self_tests" / f"{name}.json"
