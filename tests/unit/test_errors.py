"""evo.errors: how each exception ends a command, and how the code of a task uses the public one."""

from __future__ import annotations

import pytest

import evo
import evo.cli.doctor
from evo.cli import main
from evo.errors import MAX_LISTED, UserError, did_you_mean, suggestion
from evo.instructions import shipped_instruction_set
from evo.task_folder import load_task


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


@pytest.mark.parametrize("error", [ValueError("a defect"), OSError(28, "no space"), RuntimeError("a defect")], ids=repr)
def test_no_other_exception_is_taken_for_a_users_mistake(end_of, error):
    assert end_of(error) is error


def test_code_that_expects_a_narrower_exception_does_not_catch_a_user_error():
    assert not issubclass(UserError, (ValueError, OSError, RuntimeError, LookupError, TypeError, ArithmeticError))


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


DEFAULT = [instruction.name for instruction in shipped_instruction_set("default").instructions]


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("add_f32", "add_ftz_f32"),
        ("ADD.FTZ.F32", "add_ftz_f32"),
        ("sqrt", "sqrt_approx_ftz_f32"),
        ("sine", "sin_approx_ftz_f32"),
        ("mul_fzt_f32", "mul_ftz_f32"),
        ("tanh_f32", "tanh_approx_f32"),
    ],
)
def test_a_name_is_answered_with_the_instruction_that_was_meant_first(name, nearest):
    assert did_you_mean(name, DEFAULT).startswith(f"did you mean {nearest}")


def test_a_name_that_is_far_behind_the_nearest_is_left_out():
    assert did_you_mean("add_f32", DEFAULT) == "did you mean add_ftz_f32 or add_u32?"  # but not abs_ftz_f32


def test_at_most_three_names_are_suggested_in_one_sentence():
    assert did_you_mean("abcd", ["abce", "abcf", "abcg", "abch"]) == "did you mean abce, abcf or abcg?"
    assert did_you_mean("abcd", ["abce", "xyz", "abcf"]) == "did you mean abce or abcf?"
    assert did_you_mean("batchsize", ["archive", "batch_size"]) == "did you mean batch_size?"


def test_without_a_near_name_a_short_list_is_given_whole_and_a_long_one_in_part():
    names = [f"{letter}{letter}" for letter in "abcdefghijklmnopqrstuvw"]
    assert did_you_mean("XYZ", names[:MAX_LISTED]) == f"one of: {', '.join(names[:MAX_LISTED])}"
    assert did_you_mean("XYZ", names) == "one of 23, such as: aa, bb, cc"
    assert did_you_mean("XYZ", []) == "one of: none"
    assert suggestion("XYZ", names) is None
    assert suggestion("", ["x"]) is None
