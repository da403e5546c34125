"""Required content of a search's checkpoint: facts and arrays by name, each of its type and shape, and cells of the archive.

Owns these laws. A checksum tells of accidents, not of what another program has written. Knows nothing of files.
"""

import json
from collections.abc import Iterator
from dataclasses import fields
from typing import Annotated, Any, TypeAlias

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evo.evaluate.backends import BACKENDS
from evo.run.checkpoint import CheckpointError
from evo.run.loaded_task import Problem
from evo.search.archives import num_cells
from evo.search.state import Arrays, Counters
from evo.storage.json_file import first_mistake

_Count = Annotated[int, Field(ge=0, le=1 << 62)]
_Law: TypeAlias = tuple[str, tuple[int | None, ...]]  # type and shape; None: any number


class _Facts(BaseModel):
    model_config = ConfigDict(strict=True)


class _Identity(_Facts):
    program: dict[str, Any]
    search: dict[str, Any]


class _Lineage(_Facts):
    file: Annotated[str, Field(pattern=r"^\d+\.log$")]
    num_bytes: _Count


class _Meta(_Facts):
    evo_version: str
    hash_version: int
    identity: _Identity
    task_digest: str
    task: dict[str, Any]
    made_task: dict[str, str | None] | None
    instruction_set_digest: str | None
    counters: dict[str, _Count]
    elapsed_s: Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
    backend: Annotated[str, Field(pattern=f"^({'|'.join(BACKENDS)})$")]
    device: str
    quarantine: dict[str, dict[str, Any]]
    metrics_num_bytes: _Count
    lineage: _Lineage | None = None


def check_meta(meta: Any) -> None:
    """Raises CheckpointError unless the facts are those of a search."""
    try:
        known = _Meta.model_validate_json(json.dumps(meta))
    except ValidationError as error:
        place, reason = first_mistake(error)
        raise CheckpointError(f"{'.'.join(map(str, place)) or 'facts'}: {reason}") from error
    if wrong := known.counters.keys() ^ {field.name for field in fields(Counters)}:
        raise CheckpointError(f"counters.{min(wrong)}: missing, or unknown")


def check_arrays(arrays: Arrays, problem: Problem) -> None:
    """Raises CheckpointError unless the arrays have the names, types and shapes of a search for a problem."""
    laws = dict(_laws(arrays, problem))
    needed = {"elites", "memory", "archive", "lineages", "emitters"}
    needed |= {name.partition(".")[0] for name in arrays} & {"population", "tidy"}
    missing = [name for name in laws if name not in arrays and name.partition(".")[0] in needed]
    missing += [name for name in ("ancestry.archive", "ancestry.next") if name not in arrays]
    if wrong := [name for name in arrays if name not in laws] + missing:
        raise CheckpointError(f"{wrong[0]}: missing, or unknown")
    for name, array in arrays.items():
        dtype, shape = laws[name]
        fits = len(shape) == array.ndim and all(a in (None, b) for a, b in zip(shape, array.shape, strict=True))
        if array.dtype.str != dtype or not fits:
            must = f"{dtype} of {shape}".replace("None", "any")
            raise CheckpointError(f"{name}: {array.dtype.str} of shape {array.shape}, must be {must}")
    cells = num_cells(problem.config.search.archive.options())
    for name in (name for name in arrays if name.endswith(".cell")):
        if ((arrays[name] < 0) | (arrays[name] >= cells)).any():
            raise CheckpointError(f"{name}: not cells from 0 to {cells - 1}")


def _laws(arrays: Arrays, problem: Problem) -> Iterator[tuple[str, _Law]]:
    config, archive = problem.config, problem.config.search.archive
    cells, num_measures = num_cells(archive.options()), len(problem.task.measures)
    for prefix in ("elites.", "population.", "tidy."):
        rows = len(np.atleast_1d(arrays.get(prefix + "cell", np.zeros(0))))
        for name in ("cell", "generation"):
            yield prefix + name, ("<i8", (rows,))
        for name in ("operator", "slot", "num_instructions"):
            yield prefix + name, ("<i4", (rows,))
        yield prefix + "solution", ("<u8", (rows, config.program.max_length))
        yield prefix + "objective", ("<f8", (rows,))
        yield prefix + "measures", ("<f8", (rows, None))
        yield prefix + "parents", ("<i4", (rows, 2))
        yield prefix + "hash", ("<u8", (rows, 2))
    yield "initial.words", ("<u8", (None, None))
    yield "memory.hash", ("<u8", (None, 2))
    for name in ("lineages.founders", "ancestry.archive", "ancestry.population"):
        yield name, ("<i8", (cells,))
    yield "ancestry.next", ("<i8", (1,))
    yield "emitters.success", ("<i8", (None, 4))
    if archive.type == "CVTArchive":
        yield "archive.centroids", ("<f8", (cells, num_measures))
    yield "prescreen.model", ("|u1", (None,))
