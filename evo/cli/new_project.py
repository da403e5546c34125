"""New projects: a copy of a template's folder, and a notebook of its README if wanted.

Owns what is copied where. Knows of a template that its README has commands, indented, on a run RUN of its config.
"""

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

from evo.errors import UserError
from evo.shipped import shipped

_LOOK = """from pathlib import Path
from typing import Any

from IPython.display import Image, display

run = max(Path("runs/{template}").iterdir())  # the newest
for plot in sorted((run / "plots").iterdir()):
    if plot.suffix in (".png", ".gif"):
        display(Image(plot))"""


def make_project(folder: Path, template: str, *, with_notebook: bool = False) -> list[Path]:
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
        if with_notebook:
            (folder / f"{template}.ipynb").write_text(_notebook((folder / "README.md").read_text(), template))
    except (OSError, shutil.Error) as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise UserError(f"cannot write the project: {error}", folder) from error
    return sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())


def _notebook(readme: str, template: str) -> str:
    """The README as a notebook: each command is a cell, and the first one's plots are shown."""
    cells: list[tuple[str, str]] = []
    for paragraph in readme.strip().split("\n\n"):
        if not paragraph.startswith("    "):
            cells.append(("markdown", paragraph))
            continue
        for line in paragraph.splitlines():
            cells.append(("code", "!" + re.sub(r"\bRUN\b", "{run}", re.sub(" +#", "  #", line.strip()))))
            if line.split()[:2] == ["evo", "run"]:
                cells.append(("code", _LOOK.replace("{template}", template)))
    of_code: dict[str, Any] = {"execution_count": None, "outputs": []}
    written: list[dict[str, Any]] = [
        {"cell_type": kind, "id": f"cell-{i}", "metadata": {}, "source": text, **(of_code if kind == "code" else {})}
        for i, (kind, text) in enumerate(cells)
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return json.dumps({"cells": written, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}, indent=1) + "\n"
