"""A sweep: one run for each seed and each point of a grid of config values, in a folder that the same command goes on with.

Owns what a sweep consists of, where its runs are, and which of them are finished. Knows nothing of how runs are executed
(`evo.run.sweep_execute`) or shown.
"""

import itertools
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evo.config import RunConfig, first_difference, load_config, parse_values
from evo.errors import UserError, os_errors_as
from evo.run.initial_programs import read_initial, with_digest
from evo.run.loaded_task import load_problem
from evo.run.run import Run
from evo.run.run_dir import RunDir
from evo.storage.files import open_file, try_lock

MAX_RUNS = 10_000
_MAX_NAME = 120  # bytes of a folder's name; systems allow 255
_NOT_IN_A_GRID = {"seed": "give --seeds", "output.runs": "give --output"}


@dataclass(frozen=True)
class Variant:
    """A point of the grid. name: of its folder. task_digest: of its task's files."""

    name: str
    config: RunConfig
    task_digest: str


@dataclass(frozen=True)
class SweepRun:
    """One run of a sweep.

    config: resolved, with its seed and the sweep's folder. is_finished: None if it has yet to start.
    """

    variant: str
    config: RunConfig
    is_finished: bool | None

    @property
    def name(self) -> str:
        """Name in messages."""
        return f"{self.variant}, seed {self.config.seed}"

    @property
    def folder(self) -> Path:
        """Folder of the variant's runs."""
        return Path(self.config.output.runs, self.variant)

    @property
    def log(self) -> Path:
        """File of its process's standard output and error. Deleted at the end if it is empty."""
        return self.folder / f"seed{self.config.seed}.log"


@dataclass(frozen=True)
class Sweep:
    """All runs of a sweep and their folder."""

    folder: Path
    runs: tuple[SweepRun, ...]

    @property
    def unfinished(self) -> list[SweepRun]:
        """The runs that are still to be done."""
        return [run for run in self.runs if not run.is_finished]


def plan_sweep(path: Path, seeds: str, grid: Sequence[str], overrides: tuple[str, ...], folder: Path | None) -> Sweep:
    """Plan the runs. Writes nothing.

    Args:
        path: of the config.
        seeds: such as `1-20` or `1,3,7-9`.
        grid: such as `search.batch_size=256,1024`; each key's values are combined with those of all others.
        folder: of the sweep; None: `<output.runs>/<config>-sweep`.

    Raises:
        UserError: any of them is wrong, or the folder holds runs of another config or task.
    """
    base = load_config(path, overrides)
    numbers = parse_seeds(seeds)
    points = _points(grid)
    if len(numbers) * len(points) > MAX_RUNS:
        raise UserError(f"--seeds and --grid: {len(numbers) * len(points):,} runs are more than {MAX_RUNS:,}")
    folder = (folder or Path(base.output.runs, f"{path.stem}-sweep")).absolute()
    variants = [_variant(path, point, overrides, path.stem) for point in points]
    if len({variant.name for variant in variants}) < len(variants):
        raise UserError("two points have the same name", "--grid")
    runs = []
    for seed, variant in itertools.product(numbers, variants):
        config = _config_of_run(variant.config, seed, folder)
        runs.append(SweepRun(variant.name, config, _is_finished(folder / variant.name, config, variant.task_digest)))
    return Sweep(folder, tuple(runs))


def parse_seeds(text: str) -> list[int]:
    """The seeds of `1-20` or `1,3,7-9`, in this order. Raises UserError: it is something else."""
    seeds: dict[int, None] = {}
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,20})\s*(?:-\s*(\d{1,20})\s*)?", part)
        if not match:
            raise UserError(f"--seeds {text}: write seeds and ranges, for instance 1-20 or 1,3,7-9")
        first, last = int(match[1]), int(match[2] or match[1])
        if first > last:
            raise UserError(f"--seeds {text}: the range {part.strip()} is empty")
        if last >= 2**64:
            raise UserError(f"--seeds {text}: {last} is not less than 2^64")
        if last - first >= MAX_RUNS:
            raise UserError(f"--seeds {text}: more than {MAX_RUNS:,} seeds")
        seeds |= dict.fromkeys(range(first, last + 1))
    return list(seeds)


def find_run(folder: Path, seed: int) -> Path | None:
    """The run in a variant's folder with this seed, or None. The first, if someone has copied one there."""
    for path in sorted(folder.glob(f"*-seed{seed}*")):
        is_seed = re.fullmatch(rf".*-seed{seed}(-\d+)?", path.name)
        if is_seed and (path / "config.yaml").is_file():
            return path
    return None


def resume_overrides(folder: Path, config: RunConfig) -> tuple[str, ...]:
    """Overrides that bring a stored run's config to this one where a resumed run may differ. Its task stays.

    Raises:
        UserError: the run's config cannot be read.
    """
    values = config.model_dump(mode="json")
    stored = RunDir(folder, writable=False).config()
    changes = {name: values[name] for name in ("stop", "evaluation", "output")}
    if not Path(stored.task).is_relative_to(folder.resolve()):
        changes |= {"task": config.task, "program.instruction_set": config.program.instruction_set}
    return tuple(f"{key}={json.dumps(value)}" for key, value in changes.items())


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Makes the sweep's folder and keeps other processes from running the same sweep.

    Raises:
        UserError: one does, or the folder cannot be made.
    """
    with os_errors_as(f"{folder}: cannot create the folder of the sweep"):
        folder.mkdir(parents=True, exist_ok=True)
        lock = open(folder / "lock", "w")  # noqa: SIM115 - closed below
    with lock:
        if not try_lock(lock):
            raise UserError("another process is running this sweep; wait for it or stop it", folder)
        yield


def _points(grid: Sequence[str]) -> list[dict[str, str]]:
    """Yield each point of the grid as key -> value; values are JSON."""
    axes: dict[str, list[str]] = {}
    for text in grid:
        key, equals, values = text.partition("=")
        if not (key and equals and values.strip()):
            raise UserError(f"--grid {text}: write it as key=value,value, for instance search.batch_size=256,1024")
        if key in _NOT_IN_A_GRID:
            raise UserError(f"--grid {text}: {key} is not for a grid; {_NOT_IN_A_GRID[key]}")
        if key in axes:
            raise UserError(f"--grid {text}: {key} is given twice; write all its values in one --grid")
        axes[key] = [json.dumps(value, default=str) for value in parse_values(values, f"--grid {text}")]
        if len(set(axes[key])) < len(axes[key]):
            raise UserError(f"--grid {text}: a value is given twice")
    return [dict(zip(axes, point, strict=True)) for point in itertools.product(*axes.values())]


def _variant(path: Path, point: dict[str, str], overrides: tuple[str, ...], stem: str) -> Variant:
    """A point's config, checked as far as possible without running programs."""
    point_overrides = tuple(f"{key}={value}" for key, value in point.items())
    config = load_config(path, (*overrides, *point_overrides))
    name = ",".join(f"{key}={value}" for key, value in point.items()) or stem
    name = re.sub(r"[^\w.,=+\-\[\]]", "", name)
    if len(name.encode()) > _MAX_NAME:
        raise UserError(f"too long for the name of a folder, at most {_MAX_NAME} bytes", "--grid", name)
    problem = load_problem(config)
    problem = with_digest(problem, read_initial(problem))
    return Variant(name, problem.config, problem.task_digest)


def _config_of_run(config: RunConfig, seed: int, folder: Path) -> RunConfig:
    """A run's config. Runs share the cores: unless the config says so, none starts more than one thread or compiler."""
    options = config.evaluation
    evaluation = options.model_copy(update={"threads": options.threads or 1, "compile_workers": options.compile_workers or 1})
    output = config.output.model_copy(update={"runs": str(folder)})
    return config.model_copy(update={"seed": seed, "evaluation": evaluation, "output": output})


def _is_finished(folder: Path, config: RunConfig, task_digest: str) -> bool | None:
    """Return whether a run has reached a stop and written its archive; None if it has yet to start.

    Raises:
        UserError: there is a run of another config or task.
    """
    path = find_run(folder, config.seed)
    if path is None:
        return None
    elsewhere = "; choose another folder with --output"
    run_dir = RunDir(path, writable=False)
    was = run_dir.config()
    if change := first_difference(was.identity(), config.identity()):
        raise UserError(f"made with another config: {change}{elsewhere}", path)
    if not run_dir.has_begun():
        return False
    if run_dir.task_digest() != task_digest:
        raise UserError(f"made when the task had other files{elsewhere}", path)
    run, _ = Run.view(path, resume_overrides(path, config))
    return was.stop == config.stop and run.search.is_finished and _has_archive(run, path)


def _has_archive(run: Run, path: Path) -> bool:
    """Return whether archive.npz holds the elites of the last checkpoint."""
    try:
        with open_file(path / "archive.npz") as file, np.load(file) as archive:
            elites = run.search.elites().arrays()
            return set(archive.files) == set(elites) and all(np.array_equal(archive[name], elites[name]) for name in elites)
    except (OSError, ValueError):
        return False
