"""templates/: what a project's task refuses, and what its run finds beside formulas that people write by hand."""

import shutil

import pytest

from evo.errors import UserError
from evo.shipped import shipped
from evo.task_folder import load_task

ROWS = "".join(f"{i},{i * i}\n" for i in range(20))


@pytest.fixture
def with_table(tmp_path):
    """The task of a regression project whose table has this text."""
    folder = shutil.copytree(shipped("templates")["regression"] / "task", tmp_path / "task")

    def load(text: str):
        (folder / "data.csv").write_text(text, encoding="utf-8")
        return load_task(folder, {})

    return load


def test_a_table_of_ones_own_has_its_last_column_as_the_target(with_table):
    task = with_table("\ufeffspeed (m/s),way [m]\n" + ROWS)
    assert (list(task.inputs), task.column_names) == (["speed_m_s"], {"f": "way_m"})
    assert task.points()["speed_m_s"].tolist() == [i for i in range(20) if i % 4]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ":1: needs at least two columns, separated by commas; write decimals with points"),
        ("a;y\n1,5;2,5\n", ":1: needs at least two columns, separated by commas; write decimals with points"),
        ("a,a,y\n1,2,3\n", ":1: columns need different names of letters a to z, digits and _, got: a,a,y"),
        ("\u6e29\u5ea6,y\n" + ROWS, ":1: columns need different names"),
        ("a,y\n1,2\nlow,3\n" + ROWS, ": not a table of numbers: could not convert string 'low'"),
        ("a,y\n1,2\n,3\n" + ROWS, ": not a table of numbers: could not convert string ''"),
        ("a,y\n1,2\nnan,3\n" + ROWS, ": not a table of numbers: row 1 has nan or inf"),
        ("a,b,y\n" + ROWS, ": 3 names but 2 columns"),
    ],
)
def test_a_table_that_cannot_be_used_is_one_line(with_table, tmp_path, text, message):
    with pytest.raises(UserError) as caught:
        with_table(text)
    assert str(caught.value).startswith(f"{tmp_path}/task/data.csv{message}") and "\n" not in str(caught.value)
