"""Types of PTX Inject in JSON: what is read, and what is refused by file and entry."""

import json

import pytest

from evo.errors import UserError
from evo.native.ptx_inject import DEFAULT_TYPES, DataType
from evo.ptx_inject.types import load_types

MASK = {"name": "mask", "register_type": "u32", "mov_postfix": "b32", "register_char": "r", "register_cast_str": ""}


@pytest.fixture
def load(tmp_path):
    """Loads a file `types.json` that holds a text, bytes, or JSON of one."""

    def load(content):
        path = tmp_path / "types.json"
        if isinstance(content, dict):
            content = json.dumps(content)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return load_types(path)

    return load


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "types.json:1:1: not JSON"),
        ('{\n"abi_version": 1,\n}', "types.json:3:1: not JSON"),
        (b"\xff{}", "types.json: cannot read the types: not UTF-8 at byte 0"),
        ("[]", "types.json: the JSON: expected an object with keys"),
        ("{}", "types.json: key 'abi_version': Field required"),
        ('{"abi_version": 1, "abi_version": 1}', "types.json: key 'abi_version' is given twice"),
        ({"abi_version": 2, "data_type_infos": [MASK]}, "key 'abi_version': Input should be 1"),
        ({"abi_version": 1, "data_type_infos": []}, "key 'data_type_infos': "),
        ({"abi_version": 1, "data_type_infos": [MASK], "types": []}, "key 'types': "),
        ({"abi_version": 1, "data_type_infos": [7]}, r"key 'data_type_infos.0': "),
        ({"abi_version": 1, "data_type_infos": [MASK, MASK]}, r"key 'data_type_infos.1' \(type 'mask'\): clashes with 'mask'"),
        (
            {"abi_version": 1, "data_type_infos": [MASK, {**MASK, "name": "Mask"}]},
            r"key 'data_type_infos.1' \(type 'Mask'\): clashes with 'mask': both would be the macro PTX_TYPE_INFO_MASK",
        ),
    ],
)
def test_wrong_descriptions_of_types_are_refused_by_place(load, content, message):
    with pytest.raises(UserError, match=message):
        load(content)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("name", "", "pattern"),
        ("name", "a b", "pattern"),
        ("name", 3, "string"),
        ("name", "Num_Enums", "what C headers call the number of types"),
        ("register_type", "f23", "is 'f23', expected one of b16, b32, b64"),
        ("register_type", "pred", "is 'pred', expected one of"),
        ("register_type", "u64", "mov_postfix is 'b32' of 32 bits, but register_type u64 has 64: one of b64, u64, s64, f64"),
        ("mov_postfix", "f16x2", "is 'f16x2', expected one of"),
        ("mov_postfix", "b16", "mov_postfix is 'b16' of 16 bits, but register_type u32 has 32"),
        ("register_char", "rr", "is 'rr', expected one of h, r, f, l, d, q"),
        ("register_char", "h", "register_char is 'h' of 16 bits, but register_type u32 has 32: one of r, f"),
        ("register_cast_str", "a\nb", "must be ASCII on one line"),
        ("register_cast_str", '"', "must be ASCII on one line"),
        ("register_cast_str", "??/", "must be ASCII on one line"),
        ("register_cast_str", "(unsigned)(", "must close each bracket"),
        ("register_size", 3, "not permitted"),
    ],
)
def test_a_wrong_entry_is_refused_by_key_and_type(load, key, value, message):
    place = rf"types\.json: key 'data_type_infos\.1(\.{key})?'"
    name = "" if key == "name" and not isinstance(value, str) else r".*\(type '.*'\)"
    with pytest.raises(UserError, match=f"{place}{name}.*{message}") as caught:
        load({"abi_version": 1, "data_type_infos": [{**MASK, "name": "other"}, {**MASK, key: value}]})
    assert len(str(caught.value).splitlines()) == 1


def test_a_file_holds_what_it_says_and_the_cast_is_optional(load):
    rows = [data_type._asdict() for data_type in DEFAULT_TYPES]
    assert load({"abi_version": 1, "data_type_infos": rows}) == DEFAULT_TYPES
    entry = {key: value for key, value in MASK.items() if key != "register_cast_str"}
    assert load({"abi_version": 1, "data_type_infos": [entry]}) == (DataType("mask", "u32", "b32", "r", ""),)


@pytest.mark.parametrize("key", ["name", "register_type", "mov_postfix", "register_char"])
def test_a_missing_key_is_named(load, key):
    with pytest.raises(UserError, match=rf"key 'data_type_infos\.0\.{key}'.*required"):
        load({"abi_version": 1, "data_type_infos": [{other: value for other, value in MASK.items() if other != key}]})
