"""The API reference, of C, Python and files, lists what is public and nothing else."""

import importlib
import inspect
import json
import re
from functools import cached_property
from pathlib import Path

import pytest
import yaml
from pydantic import BaseModel

import evo
from evo.config import RunConfig
from evo.errors import UserError
from evo.instructions import load_instruction_set
from evo.ptx_inject.types import load_types

REPOSITORY = Path(__file__).parents[2]
CSRC = REPOSITORY / "csrc"
API = REPOSITORY / "docs" / "api"


# ---- docs/api/c.md


def public_header(path: Path) -> str:
    """The declarations of a header: no comments, no implementation, macros on one line each."""
    text = path.read_text().replace("\\\n", " ")
    text = re.split(r"^#(?:if|ifdef) .*_IMPLEMENTATION\b", text, maxsplit=1, flags=re.MULTILINE)[0]
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)


def public_functions(path: Path) -> set[str]:
    """Functions and macros with arguments, but for private ones, which have a double underscore."""
    text = public_header(path)
    macros = re.findall(r"^#define (\w+)\(", text, re.MULTILINE)
    code = re.sub(r"^#[^\n]*", "", text, flags=re.MULTILINE)
    functions = re.findall(
        r"^(?:\w+_API |static inline |static __device__ __forceinline__ )?(?:const )?\w+\*?\s\**(\w+)\(", code, re.MULTILINE
    )
    return {name for name in [*macros, *functions] if "__" not in name}


HEADERS = sorted([*CSRC.glob("*.h"), *CSRC.glob("*.cuh")])


def c_section(header: Path) -> str:
    """The section of c.md on a header."""
    parts = re.split(r"^## (\w+\.(?:h|cuh))$", (API / "c.md").read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))[header.name]


@pytest.mark.parametrize("header", HEADERS, ids=lambda path: path.name)
def test_c_reference_lists_the_functions_of_a_header_and_no_others(header):
    listed = re.findall(r"^\| `(\w+)(?:\([^`]*\))?` \|", c_section(header), re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert set(listed) == public_functions(header)


# ---- docs/api/python.md


def public_names(module) -> list[str]:
    """`__all__`, or what a module defines itself."""
    if hasattr(module, "__all__"):
        return [name for name in module.__all__ if not name.startswith("_")]
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__]
    constants = [name for name in vars(module) if name.isupper()]
    return [name for name in dict.fromkeys([*own, *constants]) if not name.startswith("_")]


def members(value) -> set[str]:
    """Public methods and properties that a class defines itself, or has from a class of evo that is not public."""
    if not inspect.isclass(value):
        return set()
    kinds = (classmethod, staticmethod, property, cached_property)
    public = tuple(base for base in value.__mro__[1:] if base is not object and hasattr(evo, base.__name__))
    bases = [b for b in value.__mro__[1:] if b.__module__.startswith("evo.") and not any(issubclass(p, b) for p in public)]
    return {
        name
        for owner in (value, *bases)
        for name, member in vars(owner).items()
        if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, kinds))
    }


def python_sections() -> dict[str, str]:
    parts = re.split(r"^## (evo[\w.]*)$", (API / "python.md").read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


MODULES = ("evo", "evo.stack_ptx", "evo.ast_ptx", "evo.ptx_inject", "evo.ptx_inject.types", "evo.instructions")
MODULES += ("evo.itll", "evo.pictures", "evo.semiring")
ENTRY = re.compile(r"^\| `(\.?)(\w+)(\(.*\))?` \| ", re.MULTILINE)


def entries(module: str) -> dict[str, str | None]:
    """Name, or Class.name, of each row of a module's section -> its arguments; None where the row has none."""
    rows: dict[str, str | None] = {}
    last = ""
    for dot, name, arguments in ENTRY.findall(python_sections()[module]):
        last = last if dot else name
        key = f"{last}.{name}" if dot else name
        assert key not in rows, key
        rows[key] = arguments or None
    return rows


@pytest.mark.parametrize("name", MODULES)
def test_python_reference_lists_the_public_names_of_a_module_and_no_others(name):
    module = importlib.import_module(name)
    names = public_names(module)
    expected = {*names, *(f"{n}.{member}" for n in names for member in members(getattr(module, n)))}
    assert set(entries(name)) == expected


# ---- docs/api/files.md


def config_keys(model: type[BaseModel], prefix: str = "") -> dict[str, object]:
    """Dotted key -> default, `...` where there is none."""
    found: dict[str, object] = {}
    for name, field in model.model_fields.items():
        if inspect.isclass(field.annotation) and issubclass(field.annotation, BaseModel):
            found |= config_keys(field.annotation, f"{prefix}{name}.")
        else:
            found[prefix + name] = ... if field.is_required() else field.get_default(call_default_factory=True)
    return found


def test_reference_of_files_has_every_key_of_a_config_with_its_default():
    section = (API / "files.md").read_text().partition("\n## config.yaml\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([\w.]+)` \| (?:`(.*?)`|required) \| ", section, re.MULTILINE)
    documented = {key: yaml.safe_load(default) if default else ... for key, default in rows}
    assert len(documented) == len(rows)
    assert documented == config_keys(RunConfig)


@pytest.mark.parametrize(("number", "load"), [(0, load_instruction_set), (1, load_types)])
def test_json_in_reference_of_files_is_as_its_readers_want_it(tmp_path, number, load):
    text = re.findall(r"^```json\n(.*?)^```$", (API / "files.md").read_text(), re.MULTILINE | re.DOTALL)[number]
    path = tmp_path / "example.json"
    path.write_text(text)
    assert load(path)
    path.write_text(json.dumps({**json.loads(text), "unknown": 1}))
    with pytest.raises(UserError, match="unknown"):
        load(path)
