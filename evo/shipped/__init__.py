"""Files shipped beside the code, by name: tasks, configs, and templates of projects.

Owns where they lie: beside this file in a wheel, in the repository in an editable install. Knows nothing of what is in them.
"""

from pathlib import Path
from typing import Literal

Kind = Literal["tasks", "configs", "templates"]


def shipped(kind: Kind) -> dict[str, Path]:
    """Name -> folder of each task or template, or file of each config, sorted by name."""
    here = Path(__file__).parent
    folder = here / kind if (here / kind).is_dir() else here.parents[1] / kind
    paths = folder.glob("*.yaml") if kind == "configs" else (readme.parent for readme in folder.glob("*/README.md"))
    return {path.stem: path for path in sorted(paths)}


def find_task(named: str | Path, base: Path) -> Path:
    """The folder of a task: relative to `base` if there is one, or else the shipped task of this name; if neither exists, the
    first.
    """
    local = base / named
    return local if local.is_dir() else shipped("tasks").get(str(named), local)


def find_config(named: Path) -> Path:
    """A config's file: the one at this path if there is one, or else the shipped config of this name; if neither exists, the
    first.
    """
    return named if named.is_file() else shipped("configs").get(str(named), named)
