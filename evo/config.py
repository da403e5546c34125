"""The config of a run: strict models, defaults, overrides, and one clear line for whatever is wrong.

Composes the options that each layer defines for itself. Knows nothing of how the values are used; `evo.run.search` builds a
search from them.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from evo.errors import UserError, os_errors_as, suggestion
from evo.evaluate.options import EvaluationOptions, TlsFiles
from evo.instructions import SHIPPED
from evo.language.program import Limits
from evo.options import Integer, Options, Positive, mistake
from evo.search.options import SearchConfig
from evo.search.vocabulary import VocabularyOptions
from evo.shipped import find_config, find_task, shipped
from evo.storage.files import exists, read_text
from evo.storage.yaml_text import MAX_DEPTH, dump_yaml, parse_yaml

PlotName = Literal["heatmap", "front", "contact_sheet", "curves", "best", "animation", "gallery", "lineage", "poster", "page"]


class ProgramConfig(Options):
    """Programs: their maximal length in words, their instruction set, and the words that variation may draw.

    `instruction_set` is `default`, `wide`, or a JSON file relative to the config file.
    """

    max_length: Annotated[Integer, Field(ge=1, le=4096)] = 64
    instruction_set: str = "default"
    limits: Limits = Limits()
    vocabulary: VocabularyOptions


class StopConfig(Options):
    """The run ends after the generation in which the first of these is reached; at least one is needed. `seconds` are heard
    between the batches of generation 0 too, which then begins anew when the run goes on.
    """

    generations: Positive | None = None
    evaluations: Positive | None = None
    seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    objective: Annotated[float, Field(allow_inf_nan=False)] | None = None

    @model_validator(mode="after")
    def _some_stop(self) -> Self:
        if all(getattr(self, name) is None for name in type(self).model_fields):
            raise ValueError(f"needs at least one of: {', '.join(type(self).model_fields)}")
        return self

    def reached(self, generations: int, evaluations: int, seconds: float, objective: float) -> str | None:
        """The first stop that a run has reached which has come so far, as its key and bound, or None."""
        done = {"generations": generations, "evaluations": evaluations, "seconds": seconds, "objective": objective}
        bounds = ((name, getattr(self, name), value) for name, value in done.items())
        return next((f"stop.{name}: {bound}" for name, bound, value in bounds if bound is not None and value >= bound), None)


class OutputConfig(Options):
    """Options of output: folder of runs, interval of checkpoints, and plots at the end.

    A run folder holds a copy of its task, unless the task and what it declares have more than `task_megabytes`.
    `lineage_megabytes`: of the programs that became elites, which tell how an elite came about; 0: none are kept.

    Plots: `heatmap` of the archive, `front` of objective against complexity, `contact_sheet` of each elite's picture in its cell,
    `curves` over generations, the `best` elite large, an `animation` over t of some elites, a `gallery`: the first 64 random
    programs, animated, a `lineage`: the ancestors of some elites, and a `page`: the archive as an HTML file.
    """

    runs: str = "runs"
    checkpoint_seconds: Annotated[float, Field(ge=0.0)] = 10.0
    lineage_megabytes: Annotated[Integer, Field(ge=0, le=1 << 16)] = 64
    task_megabytes: Annotated[Integer, Field(ge=0, le=1 << 20)] = 64
    plots: list[PlotName] = ["heatmap", "contact_sheet", "curves", "best", "animation"]


class RunConfig(Options):
    """One experiment. `task` is a folder, relative to the config file, or the name of one of evo's tasks.

    `task_files`, which run folders have: strings in `task_options` that are paths -> the files in their place, relative to the
    config file.
    """

    task: str
    task_options: dict[str, Any] = {}
    task_files: dict[str, str] = {}
    seed: Annotated[Integer, Field(ge=0, lt=2**64)] = 1
    program: ProgramConfig
    search: SearchConfig
    evaluation: EvaluationOptions = EvaluationOptions()
    stop: StopConfig
    output: OutputConfig = OutputConfig()

    def identity(self) -> dict[str, Any]:
        """The part that decides the archive, as plain values without defaults. A run is only resumed with the same.

        It leaves out where and how fast the work is done, when it ends, learning, and the paths of the task, the instruction
        set and the initial programs: their content counts.
        """
        left_out: dict[str, Any] = dict.fromkeys(("task", "task_files", "evaluation", "stop", "output"), True)
        left_out["program"] = {"instruction_set"}
        left_out["search"] = {"learning": True}
        if self.search.initial.digest is not None:
            left_out["search"]["initial"] = {"programs"}
        return self.model_dump(mode="json", exclude=left_out, exclude_defaults=True)


def load_config(path: Path, overrides: tuple[str, ...] = ()) -> RunConfig:
    """Reads a config, from a file or one of evo's by its name, and applies `a.b=value` overrides (values are YAML).

    Paths of the task, the instruction set, the farm's files and TLS files come back absolute: those in the file are relative to
    it, those in overrides to the working folder. Where there is no such folder, a task's name is that of one of evo's.

    Raises:
        UserError: no such file, not YAML, an unknown key, a value out of range.
    """
    file = find_config(path)
    with os_errors_as(f"{path}: cannot read the config"):
        try:
            text = read_text(file)
        except FileNotFoundError as error:
            raise UserError(_no_config(path, str(error.strerror))) from error
    data = parse_yaml(text, str(path))
    if not isinstance(data, dict):
        raise UserError(f"must be a mapping with the keys {', '.join(RunConfig.model_fields)}", path)
    for override in overrides:
        _override(data, override)
        if override.startswith("search.initial.programs="):
            data["search"]["initial"].pop("digest", None)  # of others
    config = make_config(data, str(path))

    def base(key: str) -> Path:
        is_override = any(f"{key}.".startswith(f"{override.partition('=')[0]}.") for override in overrides)
        return Path() if is_override else file.parent

    def absolute(key: str, value: str) -> str:
        target = find_task(value, base(key)) if key == "task" else base(key).joinpath(value)
        return str(target.resolve())

    return _with_paths(config, absolute)


def with_paths_in(config: RunConfig, folder: Path) -> RunConfig:
    """The config with paths below a folder made relative, as in a config file there."""
    folder = folder.resolve()

    def relative(_: str, value: str) -> str:
        path = Path(value)
        return str(path.relative_to(folder)) if path.is_relative_to(folder) else value

    return _with_paths(config, relative)


def _with_paths(config: RunConfig, change: Callable[[str, str], str]) -> RunConfig:
    """The config with each path changed by a function of its dotted key and its value."""
    changes: dict[str, Any] = {
        "task": change("task", config.task),
        "task_files": {name: change(f"task_files.{name}", file) for name, file in config.task_files.items()},
    }
    initial = config.search.initial
    if initial.programs:
        program_paths = [change("search.initial.programs", entry) for entry in initial.programs]
        programs = [path if exists(Path(path)) else entry for path, entry in zip(program_paths, initial.programs, strict=True)]
        changed_initial = initial.model_copy(update={"programs": programs})
        changes["search"] = config.search.model_copy(update={"initial": changed_initial})
    if config.program.instruction_set not in SHIPPED:
        instruction_set = change("program.instruction_set", config.program.instruction_set)
        changes["program"] = config.program.model_copy(update={"instruction_set": instruction_set})
    evaluation: dict[str, Any] = {}
    farm = config.evaluation.farm
    if farm:
        paths = {"keys": farm.keys, "server_file": farm.server_file}
        changed_paths = {name: change(f"evaluation.farm.{name}", path) for name, path in paths.items() if path}
        evaluation["farm"] = farm.model_copy(update=changed_paths)
    cluster = config.evaluation.cluster
    if cluster and cluster.tls:
        files = {name: change(f"evaluation.cluster.tls.{name}", file) for name, file in cluster.tls.model_dump().items()}
        evaluation["cluster"] = cluster.model_copy(update={"tls": TlsFiles(**files)})
    if evaluation:
        changes["evaluation"] = config.evaluation.model_copy(update=evaluation)
    return config.model_copy(update=changes)


def _no_config(path: Path, reason: str) -> str:
    names = list(shipped("configs"))
    if path.parent == Path() and not path.suffix:
        near = suggestion(str(path), names)
        return f"{path}: no such file, and no config of evo's; {f'{near} ' if near else ''}evo has {', '.join(names)}"
    hint = f"; evo has one by the name {path.stem}" if path.stem in names else ""
    return f"{path}: cannot read the config: {reason}{hint}"


def make_config(data: dict[str, Any], source: str) -> RunConfig:
    """The config with these sections and keys.

    Args:
        source: the subject of messages.

    Raises:
        UserError: an unknown key, or a value out of range.
    """
    try:
        return RunConfig.model_validate(data)
    except ValidationError as error:
        raise UserError(mistake(error, RunConfig), source) from error


def read_stop(path: Path) -> StopConfig:
    """The section `stop` of a run's config.yaml, without reading the rest: of hundreds of runs that would take seconds.

    Raises:
        UserError: it cannot be read, or is wrong.
    """
    try:
        section = re.search(r"^stop:\n(?:[ ].*\n)+", read_text(path), re.MULTILINE)
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read the config: {error}", path) from error
    if not section:
        return load_config(path).stop
    try:
        return StopConfig.model_validate(parse_yaml(section[0], str(path))["stop"])
    except ValidationError as error:
        raise UserError(f"section 'stop': {error.errors()[0]['msg']}", path) from error


def dump_config(config: RunConfig) -> str:
    """The config with all defaults filled in, as YAML that `load_config` reads."""
    return dump_yaml(config.model_dump(mode="json"))


_DEFAULT = object()


def first_difference(old: Any, new: Any, key: str = "") -> str | None:
    """The first key, dotted, at which two identities differ, with both values; None if they are equal."""
    old, new = ({} if mine is _DEFAULT and isinstance(theirs, dict) else mine for mine, theirs in ((old, new), (new, old)))
    if isinstance(old, dict) and isinstance(new, dict):
        for name in [*old, *(name for name in new if name not in old)]:
            difference = first_difference(old.get(name, _DEFAULT), new.get(name, _DEFAULT), f"{key}.{name}" if key else name)
            if difference:
                return difference
        return None
    both_nan = old != old and new != new
    now, was = ("the default" if value is _DEFAULT else json.dumps(value) for value in (new, old))
    return None if old == new or both_nan else f"{key} is {now} now, was {was}"


def parse_values(text: str, source: str) -> list[Any]:
    """The values of `256,1024`, separated by commas as in a YAML list.

    Args:
        source: the text's name in messages.

    Raises:
        UserError: not YAML.
    """
    values: list[Any] = parse_yaml(f"[{text}]", source)
    return values


def _override(data: dict[str, Any], override: str) -> None:
    key, equals, text = override.partition("=")
    parts = key.split(".")
    if not equals or not all(parts):
        raise UserError(f"--set {override}: write it as key=value, for instance search.batch_size=256")
    if len(parts) > MAX_DEPTH:
        raise UserError(f"--set {override}: nested too deeply: more than {MAX_DEPTH} levels")
    value = parse_yaml(text, f"--set {override}")
    for part in parts[:-1]:
        if data.get(part) is None:  # no such section, or one that is off
            data[part] = {}
        data = data[part]
        if not isinstance(data, dict):
            raise UserError(f"--set {override}: '{part}' is not a section")
    data[parts[-1]] = value
