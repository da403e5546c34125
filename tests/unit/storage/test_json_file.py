"""JSON that users wrote: read, or refused in one line that names the place."""

import pytest
from pydantic import BaseModel, ValidationError

from evo.errors import UserError
from evo.storage.json_file import first_mistake, parse_json, read_json


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "here:1:1: not JSON: Expecting value"),
        ('{\n"a": 1,\n}', "here:3:1: not JSON: "),
        ("[" * 100_000, "here: cannot read the thing: nested too deeply"),
        *((f"[{name}]", f"here: cannot read the thing: JSON does not have {name}") for name in ("NaN", "Infinity", "-Infinity")),
        ("9" * 5000, "here: cannot read the thing: Exceeds the limit"),
        ('[{"b": 1, "a": 1, "a\\n": 2, "a": 3}]', "here: key 'a' is given twice in one object"),
        ('{"\\ud800\\n": 1, "\\ud800\\n": 1}', r"here: key '\ud800\n' is given twice in one object"),
    ],
)
def test_text_that_is_not_json_is_one_line_with_its_place(text, message):
    with pytest.raises(UserError) as caught:
        parse_json(text, "here", "thing")
    assert str(caught.value).startswith(message) and str(caught.value).isprintable()


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(UserError, match=r"none: cannot read the thing: No such file or directory$"):
        read_json(tmp_path / "none", "thing")
    (tmp_path / "latin").write_bytes(b"{}\xff")
    with pytest.raises(UserError, match=r"latin: cannot read the thing: not UTF-8 at byte 2$"):
        read_json(tmp_path / "latin", "thing")


class _Inner(BaseModel):
    number: int


class _Outer(BaseModel):
    inner: list[_Inner]


@pytest.mark.parametrize(
    ("data", "place", "reason"),
    [
        ([], (), "expected an object with keys"),
        ({"inner": [{"number": 1}, 3]}, ("inner", 1), "expected an object with keys"),
        ({"inner": [{"number": "a"}, 3]}, ("inner", 0, "number"), "Input should be a valid integer"),
    ],
)
def test_the_first_mistake_of_a_model_names_no_class(data, place, reason):
    with pytest.raises(ValidationError) as caught:
        _Outer.model_validate(data)
    found = first_mistake(caught.value)
    assert found[0] == place and found[1].startswith(reason)
