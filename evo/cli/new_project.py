"""New projects: a copy of a template's folder. Owns what is copied where."""

import os
import shutil
from pathlib import Path

from evo.errors import UserError
from evo.shipped import shipped


def make_project(folder: Path, template: str) -> list[Path]:
    """Copies a template into a new folder and gives the files' paths, relative to it.

    Raises:
        UserError: the folder exists, or cannot be written; then nothing is left of it.
    """
    source = shipped("templates")[template]
    if os.path.lexists(folder):
        raise UserError("exists; give the new project another name: evo init NAME", folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir()
    except OSError as error:
        raise UserError(f"cannot create the folder: {error.strerror}", error.filename) from error
    try:
        shutil.copytree(
            source, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"), copy_function=shutil.copyfile
        )
    except (OSError, shutil.Error) as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise UserError(f"cannot write the project: {error}", folder) from error
    return sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
