"""Self-test of a GPU, run once for each device, driver and version of evo, and its remembered outcome.

Owns the records in the user's cache folder. `device_tests` has what is tested, in a process of `device_child`. Knows nothing of
runs.
"""

import json
import re
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from evo.about import VERSION
from evo.evaluate.cuda.device import DeviceInfo, driver_name
from evo.evaluate.cuda.device_child import run_in_child
from evo.storage.disk_cache import cache_folder
from evo.storage.files import write_atomically

# The test takes about ten seconds. The rest is for a busy machine and a cold disk.
TIME_LIMIT_S = 120.0
# A test that timed out is done again after this time: the machine may have been busy.
TIMEOUT_LASTS_S = 3600.0
TESTS = "evo.evaluate.cuda.device_tests:run"
TEST_AGAIN = "evo doctor --test"


@dataclass(frozen=True)
class Outcome:
    """Result of a device's test.

    problem: in one line why it must not be used, or None if it passed. is_final: the outcome is remembered, because another try
    is not expected to differ. is_timeout: it timed out, which is remembered for TIMEOUT_LASTS_S.
    """

    problem: str | None
    is_final: bool = True
    is_timeout: bool = False


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


def remembered(info: DeviceInfo) -> Outcome | None:
    """The outcome of the last test of the device with this driver and evo, or None. Damaged records count as none."""
    path = _path(info)
    try:
        record = json.loads(path.read_bytes())
        if {name: record[name] for name in _key(info)} != _key(info):
            return None
        problem, is_timeout = record["problem"], record["is_timeout"]
        if is_timeout and time.time() - path.stat().st_mtime > TIMEOUT_LASTS_S:
            return None
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return Outcome(problem, is_timeout=bool(is_timeout)) if problem is None or isinstance(problem, str) else None


def run_self_test(info: DeviceInfo) -> Outcome:
    """Tests a device in a child process and remembers the outcome."""
    report = run_in_child(TESTS, info.ordinal, TIME_LIMIT_S)
    outcome = Outcome(report.problem, report.is_final, report.is_timeout)
    if outcome.is_final:
        record = {**_key(info), "problem": outcome.problem, "is_timeout": outcome.is_timeout}
        path = _path(info)
        with suppress(OSError):  # then the next process tests again
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, json.dumps(record, indent=2).encode() + b"\n")
    return outcome


def _key(info: DeviceInfo) -> dict[str, str]:
    # Equal cards are not equally healthy: each is tested.
    return {"device": info.name, "uuid": info.uuid, "target": info.target, "driver": driver_name(), "evo": VERSION}


def _path(info: DeviceInfo) -> Path:
    name = "_".join(re.sub(r"[^A-Za-z0-9.]+", "-", part) for part in _key(info).values())
    return cache_folder() / "self_tests" / f"{name}.json"
