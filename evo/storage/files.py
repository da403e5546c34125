"""Output files of the commands: all of them whole, or none; never over an input.

Owns these two promises. Knows nothing of what is written.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from evo.errors import UserError


def read_input(path: Path) -> bytes:
    """The bytes of a file. Raises UserError."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: error: cannot read it: {error.strerror}") from error


def write_outputs(outputs: Mapping[Path, bytes], inputs: Iterable[Path]) -> None:
    """Writes all files, folders included, each under another name first; they get their names when all are written.

    Raises:
        UserError: a file is one of the inputs or not a regular one, or cannot be written. Then none is there that was not before.
    """
    inputs = list(inputs)
    for path in outputs:
        if path.exists() and not path.is_file():
            raise UserError(f"{path}: error: it is there and is no file")
        for other in inputs:
            if path.resolve() == other.resolve() or (path.exists() and path.samefile(other)):
                raise UserError(f"{path}: error: would be written over the input {other}")
    partials: dict[Path, Path] = {}
    path = None
    try:
        for path, content in outputs.items():
            if not path.parent.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
            partial = path.with_name(f".{path.name}.{os.getpid()}")
            with partial.open("wb") as file:
                partials[path] = partial
                file.write(content)
        for path, partial in partials.items():
            os.replace(partial, path)
    except OSError as error:
        for partial in partials.values():
            partial.unlink(missing_ok=True)
        raise UserError(f"{path}: error: cannot write it: {error.strerror}") from error
