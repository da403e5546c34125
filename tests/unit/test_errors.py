"""evo.errors: how each exception ends a command, and how the code of a task uses the public one."""

import pickle
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from processes import LIMIT_S

import evo
import evo.cli.doctor
from evo.cli import main
from evo.errors import (
    MAX_LISTED,
    DeviceFailure,
    UserError,
    did_you_mean,
    located,
    renamed,
    shortage,
    suggestion,
)
from evo.evaluate.cuda.device import CudaError
from evo.instructions import shipped_instruction_set
from evo.tasks.folder import load_task


@pytest.fixture
def end_of(monkeypatch):
    """Runs a verb whose work raises this, and gives what ends the command."""

    def run(error: BaseException) -> BaseException:
        def work():
            raise error

        monkeypatch.setattr(evo.cli.doctor, "report", work)
        with pytest.raises(BaseException) as raised:  # noqa: PT011 - the caller looks at its type
            main(["doctor"])
        return raised.value

    return run


def test_a_user_error_ends_a_command_with_one_line_and_exit_code_2(end_of, capsys, monkeypatch):
    monkeypatch.delenv("EVO_TRACEBACK", raising=False)
    end = end_of(UserError("config.yaml:3: not YAML:\n  a mapping was\n  expected"))
    assert isinstance(end, SystemExit) and end.code == 2
    assert tuple(capsys.readouterr()) == ("", "evo: config.yaml:3: not YAML:   a mapping was   expected\n")


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (MemoryError("18 MiB for an array"), "out of memory, or beyond its limit (ulimit -v): 18 MiB for an array"),
        (
            RuntimeError("can't start new thread"),
            "the system starts no more threads: too many run (ulimit -u), or memory is short",
        ),
        (OSError(28, "No space left on device"), "the system refuses: No space left on device"),
        (ImportError("a.so: failed to map segment from shared object"), "out of memory, or beyond its limit (ulimit -v): a.so"),
    ],
)
def test_what_the_machine_lacks_ends_a_command_with_one_line_and_without_pythons_own_end(
    end_of, capsys, monkeypatch, error, line
):
    monkeypatch.delenv("EVO_TRACEBACK", raising=False)
    monkeypatch.setattr("atexit._run_exitfuncs", lambda: None)
    for name in ("evo.exit_codes._exit", "os._exit"):
        monkeypatch.setattr(name, lambda code: sys.exit(f"at once {code}"))
    assert end_of(error).code == "at once 2"
    told = capsys.readouterr().err
    assert told.startswith(f"evo: {line}") and told.count("\n") == 1


@pytest.mark.parametrize(("factor", "is_short"), [(1.05, True), (2.0, False), (None, False)])
def test_any_error_of_a_process_that_has_used_up_its_address_space_is_a_shortage(monkeypatch, factor, is_short):
    """matplotlib raises ValueError where NumPy cannot allocate."""
    peak = 1024 * int(Path("/proc/self/status").read_text().partition("VmPeak:")[2].split()[0])
    limit = int(peak * factor) if factor else resource.RLIM_INFINITY
    monkeypatch.setattr("resource.getrlimit", lambda _: (limit, limit))
    told = shortage(ValueError("could not be made C-contiguous"))
    memory = "out of memory, or beyond its limit (ulimit -v): ValueError: could not be made C-contiguous"
    assert told == (memory if is_short else None)


def test_scipy_that_would_wait_for_memory_for_ever_is_refused():
    code = """
import re, resource
from pathlib import Path
import evo.regression.task, evo.report.recompute, evo.run.initial_programs
from evo.cli import main
size = 1024 * int(re.search("VmSize:(.*)kB", Path("/proc/self/status").read_text())[1])
resource.setrlimit(resource.RLIMIT_AS, (size + (90 << 20), -1))
main(["eval", "symbolic_regression", "x1"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert (done.returncode, done.stdout) == (2, "") and done.stderr.count("\n") == 1, done.stderr
    assert "SciPy needs 128 MiB to load" in done.stderr


def test_code_that_expects_a_narrower_exception_does_not_catch_a_user_error():
    assert not issubclass(UserError, (ValueError, OSError, RuntimeError, LookupError, TypeError, ArithmeticError))


def test_a_task_may_raise_the_public_user_error_with_a_message_of_its_own(make_task):
    folder = make_task("import evo\nclass Line(evo.Task):\n    def __init__(self, path): raise evo.UserError(f'{path}: gone')\n")
    with pytest.raises(evo.UserError, match=r"^sines\.csv: gone$"):
        load_task(folder, {"path": "sines.csv"})


DEFAULT = [instruction.name for instruction in shipped_instruction_set("default").instructions]


LETTERS = [f"{letter}{letter}" for letter in "abcdefghijklmnopqrstuvw"]


@pytest.mark.parametrize(
    ("name", "names", "answer"),
    [
        ("add_f32", DEFAULT, "did you mean add_ftz_f32 or add_u32?"),  # but not abs_ftz_f32, which is far behind
        ("ADD.FTZ.F32", DEFAULT, "did you mean add_ftz_f32"),
        ("sqrt", DEFAULT, "did you mean sqrt_approx_ftz_f32"),
        ("sine", DEFAULT, "did you mean sin_approx_ftz_f32"),
        ("mul_fzt_f32", DEFAULT, "did you mean mul_ftz_f32"),
        ("abcd", ["abce", "abcf", "abcg", "abch"], "did you mean abce, abcf or abcg?"),
        ("abcd", ["abce", "xyz", "abcf"], "did you mean abce or abcf?"),
        ("batchsize", ["archive", "batch_size"], "did you mean batch_size?"),
        ("XYZ", LETTERS[:MAX_LISTED], f"one of: {', '.join(LETTERS[:MAX_LISTED])}"),
        ("XYZ", LETTERS, "one of 23, such as: aa, bb, cc"),
        ("XYZ", [], "one of: none"),
    ],
)
def test_an_unknown_name_is_answered_with_those_that_may_be_meant(name, names, answer):
    found = did_you_mean(name, names)
    assert found.startswith(answer) if names is DEFAULT else found == answer
    assert (suggestion(name, names) is None) == answer.startswith("one of")
    assert suggestion("", ["x"]) is None


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (DeviceFailure("an address"), "an address"),
        (CudaError("cuCtxCreate", "CUDA_ERROR_UNKNOWN"), "cuCtxCreate: CUDA_ERROR_UNKNOWN"),
    ],
)
def test_a_failure_of_the_device_comes_from_another_process_whole(error, message):
    found = pickle.loads(pickle.dumps(error))
    assert isinstance(found, DeviceFailure)
    assert str(found) == message


def test_a_place_grows_from_outside_takes_other_names_and_survives_a_pickle():
    names = {"/copy/task": "tasks/mine", "programs.1": "guesses[1]"}
    with pytest.raises(UserError) as raised, located("run.yaml", "key 'x'"), renamed(names):
        raise UserError("must be 1, got 2", "/copy/task/task.py:3", "programs.1:1", "programs.12")
    error = pickle.loads(pickle.dumps(raised.value))
    assert error.place == ("run.yaml", "key 'x'", "tasks/mine/task.py:3", "guesses[1]:1", "programs.12")
    assert str(error) == "run.yaml: key 'x': tasks/mine/task.py:3: guesses[1]:1: programs.12: must be 1, got 2"
