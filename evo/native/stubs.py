"""Writes the type stubs of the compiled modules from their Cython sources.

    python evo/native/stubs.py             beside the sources, for mypy
    python evo/native/stubs.py build       into another folder, as the build does

Owns how public names, signatures and annotations of a .pyx file become a .pyi file. What is not annotated is Any; C types are the
Python types that they convert from. `cdef readonly object name  #: str - comment` gives an attribute its type.
"""

import ast
import re
import sys
from pathlib import Path
from textwrap import dedent, indent

NATIVE = Path(__file__).resolve().parent
HEADER = """\
# Written by evo/native/stubs.py.
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Any, AnyStr, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
"""
C_TYPES = {
    "bint": "bool",
    **dict.fromkeys(("size_t", "uint32_t", "unsigned int", "int"), "int"),
    **dict.fromkeys(("object", "tuple", "frozenset"), "Any"),
    **{name: name for name in ("str", "Lowering")},
}
_C_DECLARATION = rf"\b({'|'.join(C_TYPES)}) (\w+)"
_LINES = re.compile(
    r"^(?:cdef )?class (?P<class>\w+)(?P<bases>\([^\n]*\))?:$"
    rf"|^    cdef readonly {_C_DECLARATION}(?: +#: (?P<type>[^\n]*?)(?: - [^\n]*)?| +#[^\n]*)?$"
    r"|^(?P<definition>(?:    @(?:property|staticmethod)\n)?(?:    )?def (?P<name>\w+)\(.*?\)(?: ->[^\n]*)?:)$"
    r"|^(?P<annotated>(?:    )?[A-Za-z]\w*: [^\n=]+?)(?: = [^\n]*)?$"
    r"|^    (?P<enumerator>[A-Z]\w*) = (?P<value>[^\n]*)$",
    re.MULTILINE | re.DOTALL,
)


def main(arguments: list[str]) -> None:
    """Writes the stubs into a folder."""
    folder = Path(arguments[0]) if arguments else NATIVE
    folder.mkdir(parents=True, exist_ok=True)
    bodies = {path.stem: _body(path) for path in sorted(NATIVE.glob("*.pyx"))}
    module_of = {name: module for module, body in bodies.items() for name in re.findall(r"^class (\w+)", body, re.MULTILINE)}
    for module, body in bodies.items():
        used = sorted(name for name in set(re.findall(r"\w+", body)) & set(module_of) if f"class {name}" not in body)
        imports = "".join(f"from evo.native.{module_of[name]} import {name}\n" for name in used)
        (folder / f"{module}.pyi").write_text(f"{HEADER}{imports}\n{body}")


def _body(path: Path) -> str:
    """Stub of a module's declarations. The attributes of its C classes may be in its .pxd file."""
    text = re.sub(r'"""(?s:.*?)"""', "", path.read_text())
    pxd = path.with_suffix(".pxd")
    declared_apart = pxd.read_text() if pxd.exists() else ""
    attributes = re.findall(r"^cdef class (\w+):\n(.*?)(?=^\S|\Z)", declared_apart, re.MULTILINE | re.DOTALL)
    for name, lines in attributes:
        text = text.replace(f"cdef class {name}:\n", f"cdef class {name}:\n{lines}")
    declared, owner = [], ""
    for match in _LINES.finditer(text):
        if match["class"] or not match[0].startswith(" "):
            owner = match["class"] or ""
        if match["class"]:
            line = f"class {match['class']}{match['bases'] or ''}: ..."
        elif match["definition"]:
            line = _definition(match["definition"], owner)
        elif match["annotated"]:
            line = match[0] if owner else match["annotated"]
        elif match["enumerator"]:
            line = f"    {match['enumerator']} = {match['value'] if match['value'].isdigit() else '...'}"
        else:
            line = f"    {match[4]}: {match['type'] or C_TYPES[match[3]]}"
        if not owner.startswith("_") and line and (owner or not line.startswith((" ", "_"))):
            declared.append(line)
    return "\n".join(_with_bodies(declared)) + "\n"


def _with_bodies(lines: list[str]) -> list[str]:
    """A class whose body follows loses its `...`."""
    following = [*lines[1:], ""]
    return [
        line.removesuffix(" ...") if line.startswith("class") and after.startswith(" ") else line
        for line, after in zip(lines, following, strict=True)
    ]


def _definition(text: str, owner: str) -> str:
    """The stub of a function or method; empty for private ones."""
    signature = re.sub(_C_DECLARATION, lambda match: f"{match[2]}: {C_TYPES[match[1]]}", dedent(text))
    [function] = ast.parse(f"{signature} ...").body
    assert isinstance(function, ast.FunctionDef)
    arguments = function.args.args
    if function.name == "__cinit__":
        function.name, arguments[0].arg, function.returns = "__new__", "cls", ast.Name(owner)
    elif function.name == "__init__":
        function.returns = ast.Constant(None)
    elif function.name == "__getitem__":  # C's slot knows no names
        function.args.posonlyargs, function.args.args = arguments, []
    elif function.name.startswith("_") and function.name != "__len__":
        return ""
    for argument in [*arguments, *function.args.kwonlyargs, *filter(None, [function.args.kwarg])]:
        if argument.arg not in ("self", "cls"):
            argument.annotation = argument.annotation or ast.Name("Any")
    function.returns = function.returns or ast.Name("Any")
    return indent(ast.unparse(function), "    " if owner else "")


if __name__ == "__main__":
    main(sys.argv[1:])
