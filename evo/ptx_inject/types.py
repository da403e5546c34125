"""Types of PTX Inject as JSON: those that annotations may name, and how inline assembly passes them.

    {
      "abi_version": 1,
      "data_type_infos": [
        {"name": "mask", "register_type": "u32", "mov_postfix": "b32", "register_char": "r", "register_cast_str": ""}
      ]
    }

Owns the format and its checks. The fields are those of `DataType`; register_cast_str is optional.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from evo.errors import UserError
from evo.native.ptx_inject import DataType
from evo.storage.json_file import first_mistake, read_json

# Bits of what can be an operand of inline assembly. PTX types: the fundamental types of PTX ISA 9.0, 5.2.1, of at least 16 bits;
# types of mov: 9.7.9.2; constraint letters: "Inline PTX Assembly in CUDA", 1.1.2.
REGISTER_TYPE_BITS = {
    **{f"{kind}{bits}": bits for kind in "bus" for bits in (16, 32, 64)},
    "f16": 16,
    "f16x2": 32,
    "f32": 32,
    "f64": 64,
    "b128": 128,
}
MOV_POSTFIX_BITS = {name: bits for name, bits in REGISTER_TYPE_BITS.items() if name not in ("f16", "f16x2")}
REGISTER_CHAR_BITS = {"h": 16, "r": 32, "f": 32, "l": 64, "d": 64, "q": 128}


def _one_of(names: Collection[str]) -> AfterValidator:
    def check(value: str) -> str:
        if value not in names:
            raise ValueError(f"is '{value}', expected one of {', '.join(names)}")
        return value

    return AfterValidator(check)


def _check_cast(value: str) -> str:
    # "??" begins trigraphs, one of which is a backslash.
    if not (value.isascii() and value.isprintable()) or any(mark in value for mark in ('"', "'", "\\", "??", "//", "/*")):
        raise ValueError("must be ASCII on one line without quotes, backslashes and comments, as in '*(unsigned short*)&'")
    if not _closes_its_brackets(value):
        raise ValueError("must close each bracket that it opens, as in '*(unsigned short*)&'")
    return value


def _closes_its_brackets(text: str) -> bool:
    expected = []
    for character in text:
        if character in "([{":
            expected.append(")]}"["([{".index(character)])
        elif character in ")]}" and (not expected or expected.pop() != character):
            return False
    return not expected


def _check_name(value: str) -> str:
    if value.upper() == "NUM_ENUMS":
        raise ValueError(f"is '{value}', which is what C headers call the number of types; use another name")
    return value


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _DataTypeJson(_Strict):
    name: Annotated[str, StringConstraints(pattern=r"\A[A-Za-z_][A-Za-z0-9_]*\z"), AfterValidator(_check_name)]
    register_type: Annotated[str, _one_of(REGISTER_TYPE_BITS)]
    mov_postfix: Annotated[str, _one_of(MOV_POSTFIX_BITS)]
    register_char: Annotated[str, _one_of(REGISTER_CHAR_BITS)]
    register_cast_str: Annotated[str, AfterValidator(_check_cast)] = ""


class _TypesJson(_Strict):
    abi_version: Literal[1]
    data_type_infos: list[_DataTypeJson] = Field(min_length=1)


def load_types(path: str | Path) -> tuple[DataType, ...]:
    """Reads and checks types, for `process_cuda` and `PTXInject`.

    Raises:
        UserError: the file cannot be read, is not JSON, or has a wrong entry, which the message names.
    """
    source = str(path)
    data = read_json(path, "types")
    try:
        parsed = _TypesJson.model_validate(data)
    except ValidationError as error:
        location, reason = first_mistake(error)
        raise UserError(f"{_key_text(data, location)}: {reason}", source) from error
    names: dict[str, str] = {}  # by macro
    for index, entry in enumerate(parsed.data_type_infos):
        entry_location = f"{source}: {_key_text(data, ('data_type_infos', index))}"
        _check_widths(entry, entry_location)
        macro = f"PTX_TYPE_INFO_{entry.name.upper()}"
        if macro in names:
            raise UserError(f"clashes with '{names[macro]}': both would be the macro {macro}", entry_location)
        names[macro] = entry.name
    return tuple(DataType(**entry.model_dump()) for entry in parsed.data_type_infos)


def _key_text(data: Any, location: tuple[str | int, ...]) -> str:
    """`key 'data_type_infos.2.register_char' (type 'mask')`, with the type if the entry has a name."""
    key = f"key {'.'.join(map(str, location))!r}" if location else "the JSON"
    try:
        name = data["data_type_infos"][location[1]]["name"]
    except (IndexError, KeyError, TypeError):
        return key
    return f"{key} (type {name!r})"


def _check_widths(entry: _DataTypeJson, location: str) -> None:
    """Refuses types whose registers differ in width: the compiler's, the stub's and the mov's between them."""
    expected = REGISTER_TYPE_BITS[entry.register_type]
    for key, bits in (("mov_postfix", MOV_POSTFIX_BITS), ("register_char", REGISTER_CHAR_BITS)):
        value = getattr(entry, key)
        if bits[value] != expected:
            fitting = ", ".join(name for name in bits if bits[name] == expected)
            raise UserError(
                f"{key} is '{value}' of {bits[value]} bits, but register_type {entry.register_type} has {expected}: "
                f"one of {fitting}",
                location,
            )
