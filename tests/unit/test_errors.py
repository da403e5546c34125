"""evo.errors: how each exception ends a command, and how the code of a task uses the public one."""

from __future__ import annotations

import pytest

import evo
import evo.report.doctor
from evo.cli import main
from evo.errors import UserError
from evo.task import load_task


@pytest.fixture
def end_of(monkeypatch):
    """Runs a verb whose work raises this, and gives what ends the command."""

    def run(error: BaseException) -> BaseException:
        def work():
            raise error

        monkeypatch.setattr(evo.report.doctor, "report", work)
        with pytest.raises(BaseException) as raised:  # noqa: PT011 - the caller looks at its type
            main(["doctor"])
        return raised.value

    return run


def test_a_user_error_ends_a_command_with_one_line_and_exit_code_2(end_of, capsys, monkeypatch):
    monkeypatch.delenv("EVO_TRACEBACK", raising=False)
    end = end_of(UserError("config.yaml:3: not YAML:\n  a mapping was\n  expected"))
    assert isinstance(end, SystemExit) and end.code == 2
    assert tuple(capsys.readouterr()) == ("", "evo: config.yaml:3: not YAML:   a mapping was   expected\n")


@pytest.mark.parametrize("error", [ValueError("a defect"), OSError(28, "no space"), RuntimeError("a defect")], ids=repr)
def test_no_other_exception_is_taken_for_a_users_mistake(end_of, error):
    assert end_of(error) is error


@pytest.mark.parametrize("narrower", [ValueError, OSError, RuntimeError, LookupError, TypeError, ArithmeticError])
def test_code_that_expects_a_narrower_exception_does_not_catch_a_user_error(narrower):
    assert not issubclass(UserError, narrower)


def test_a_task_may_raise_the_public_user_error_with_a_message_of_its_own(make_task):
    folder = make_task(
        """\
import evo


class Line(evo.Task):
    inputs = {"x": "f32"}
    outputs = {"y": "f32"}
    measures = {"size": (0.0, 1.0)}

    def __init__(self, path: str):
        raise evo.UserError(f"{path}: no such table")
"""
    )
    with pytest.raises(evo.UserError) as raised:
        load_task(folder, {"path": "sines.csv"})
    assert str(raised.value) == "sines.csv: no such table"
