"""What the checkpoint of a search must hold: facts and arrays, by name, each of its type, shape and range.

Owns these laws. A checksum tells of accidents, not of what another program has written. Knows nothing of files.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evo.evaluate.backends import BACKENDS
from evo.language.batch import Batch
from evo.native.stack_ptx import HASH_VERSION
from evo.native.vary import OPERATORS
from evo.run.checkpoint import CheckpointError
from evo.run.loaded_task import Problem
from evo.search.archives import num_cells
from evo.search.emitter import COMBINED, TIDY
from evo.search.lineage_records import NONE, LineageLogError, Records
from evo.search.prescreen import COUNTS
from evo.search.state import Arrays, Counters, part
from evo.storage.json_file import first_mistake
from evo.task import DTYPES, REDUCTIONS

_MOST = 1 << 62
_Count = Annotated[int, Field(ge=0, le=_MOST)]
_Finite = Annotated[float, Field(allow_inf_nan=False)]
_Type = Annotated[str, Field(pattern=f"^({'|'.join(DTYPES)})$")]


class _Facts(BaseModel):
    model_config = ConfigDict(strict=True)


class _Program(_Facts):
    max_length: int


class _Searched(_Facts):
    archive: dict[str, Any]
    memory_size: int
    learning: dict[str, Any] = {}


class _Identity(_Facts):
    program: _Program
    search: _Searched


class _Task(_Facts):
    inputs: list[tuple[str, _Type]]
    outputs: list[tuple[str, _Type]]
    measures: list[tuple[str, _Finite, _Finite]]
    objective_range: tuple[_Finite, _Finite] | None
    reduction: Annotated[str, Field(pattern=f"^({'|'.join(REDUCTIONS)})$")] | None
    complexity: str | None
    input_scaling: dict[str, tuple[_Finite, _Finite]] = {}


class _MadeTask(_Facts):
    name: str
    source: str | None
    attributes: str | None


class _Lineage(_Facts):
    file: Annotated[str, Field(pattern=r"^\d+\.log$")]
    num_bytes: _Count


class _Meta(_Facts):
    evo_version: str
    hash_version: int
    identity: _Identity
    task_digest: str
    task: _Task | None = None
    made_task: _MadeTask | None = None
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
    if known.task and known.task.complexity not in (None, *(name for name, _, _ in known.task.measures)):
        raise CheckpointError(f"task.complexity: no measure {known.task.complexity!r}")


@dataclass(frozen=True)
class _Law:
    """What an array must be. shape: None: any number. low, high: of integers; floats are finite."""

    dtype: str
    shape: tuple[int | None, ...]
    low: int = 0
    high: int = _MOST

    def breach(self, array: NDArray[Any]) -> str | None:
        """In what an array is not as it must be; None: in nothing."""
        fits = len(self.shape) == array.ndim and all(a in (None, b) for a, b in zip(self.shape, array.shape, strict=True))
        if array.dtype.str != self.dtype or not fits:
            return f"{array.dtype.str} of shape {array.shape}, must be {self.dtype} of {self.shape}".replace("None", "any")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            return "not finite"
        if array.dtype.kind == "i" and array.size and not (self.low <= array.min() and array.max() <= self.high):
            return f"{array.min()} to {array.max()}, must be from {self.low} to {self.high}"
        return None


def check_arrays(arrays: Arrays, problem: Problem, meta: dict[str, Any]) -> None:
    """Raises CheckpointError unless the arrays are those of a search for a problem, whose elites have their programs' hashes."""
    laws = dict(_laws(arrays, problem, meta))
    needed = {"elites", "memory", "archive", *(["learned"] if problem.config.search.learning.is_spanning else [])}
    needed |= {name.partition(".")[0] for name in arrays} & {"population", "tidy", "prescreen", "learned"}
    missing = [name for name in laws if name not in arrays and name.partition(".")[0] in needed]
    if wrong := [name for name in arrays if name not in laws] + missing:
        raise CheckpointError(f"{wrong[0]}: missing, or unknown")
    for name, array in arrays.items():
        if reason := laws[name].breach(array):
            raise CheckpointError(f"{name}: {reason}")
    is_same = meta["hash_version"] == HASH_VERSION and meta["task_digest"] == problem.task_digest
    for prefix in _ELITES:
        if not (columns := part(arrays, prefix)):
            continue
        if (np.diff(columns["cell"]) <= 0).any():
            raise CheckpointError(f"{prefix}cell: not sorted")
        if ((columns["operator"] == TIDY) & (columns["parents"][:, 0] < 0)).any():
            raise CheckpointError(f"{prefix}parents: a tidy program without one")
        batch = Batch.analyze(problem.language.lowering, columns["solution"])
        for name, found in (("hash", batch.hashes), ("num_instructions", batch.num_instructions)):
            if is_same and not np.array_equal(columns[name], found):
                raise CheckpointError(f"{prefix}{name}: not that of the programs")


def check_records(records: Records, problem: Problem) -> None:
    """Raises LineageLogError unless records can be those of a search for a problem."""
    laws = {"cell": (0, num_cells(problem.config.search.archive.options()) - 1), "operator": (COMBINED, len(OPERATORS) - 1)}
    for name, (low, high) in laws.items():
        values = records.facts[name]
        if len(values) and not (low <= values.min() and values.max() <= high):
            raise LineageLogError(f"damaged, although its checksum fits: {name} is not from {low} to {high}")


_ELITES = ("elites.", "population.", "tidy.")


def _laws(arrays: Arrays, problem: Problem, meta: dict[str, Any]) -> Iterator[tuple[str, _Law]]:
    config, archive = problem.config, problem.config.search.archive
    cells, num_spanning = num_cells(archive.options()), len(problem.spanning)
    for prefix in _ELITES:
        rows = len(np.atleast_1d(arrays.get(prefix + "cell", np.zeros(0))))
        yield prefix + "cell", _Law("<i8", (rows,), high=cells - 1)
        yield prefix + "solution", _Law("<u8", (rows, config.program.max_length))
        yield prefix + "objective", _Law("<f8", (rows,))
        yield prefix + "measures", _Law("<f8", (rows, None))
        yield prefix + "parents", _Law("<i4", (rows, 2), NONE, cells - 1)
        yield prefix + "operator", _Law("<i4", (rows,), COMBINED, len(OPERATORS) - 1)
        yield prefix + "generation", _Law("<i8", (rows,), high=meta["counters"]["generations"])
        yield prefix + "slot", _Law("<i4", (rows,))
        yield prefix + "hash", _Law("<u8", (rows, 2))
        yield prefix + "num_instructions", _Law("<i4", (rows,))
        if config.search.learning.is_spanning:
            yield prefix + "latent", _Law("<f8", (rows, num_spanning))
    yield "initial.words", _Law("<u8", (None, None))
    yield "memory.hash", _Law("<u8", (None, 2))
    yield "lineages.founders", _Law("<i8", (cells,), NONE)
    for name in ("ancestry.archive", "ancestry.population"):
        yield name, _Law("<i8", (cells,), NONE)
    yield "ancestry.next", _Law("<i8", (1,))
    yield "emitters.success", _Law("<i8", (None, 4))
    if archive.type == "CVTArchive":
        yield "archive.centroids", _Law("<f8", (cells, num_spanning))
    yield "prescreen.counts", _Law("<i8", (len(COUNTS),))
    yield "learned.ends", _Law("<f8", (2, num_spanning))
    yield "learned.evaluations", _Law("<i8", (1,))
    for name in ("prescreen.model", "learned.model"):
        yield name, _Law("|u1", (None,))
