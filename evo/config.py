"""The config of a run: strict models, defaults, overrides, and one clear line for whatever is wrong.

The only reader of YAML. Knows nothing of how the values are used; `evo.run.search` builds a search from them. Long, since every
section and key stands here once, with its default and bounds.
"""

from __future__ import annotations

import json
import re
import types
import typing
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeAlias

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, create_model, model_validator

from evo.errors import UserError, did_you_mean, suggestion
from evo.evaluate.backends import AUTO, BACKENDS
from evo.instructions import SHIPPED
from evo.native.vary import OPERATORS, RATES
from evo.search.archives import ARCHIVES
from evo.search.emitter import INITIAL
from evo.shipped import find_config, find_task, shipped
from evo.storage.files import exists

if typing.TYPE_CHECKING:
    ArchiveName: TypeAlias = str
    BackendName: TypeAlias = str
else:  # whatever is registered
    ArchiveName = Literal[*ARCHIVES]
    BackendName = Literal[AUTO, *BACKENDS]

PlotName = Literal["heatmap", "front", "contact_sheet", "curves", "best", "animation", "gallery", "lineage", "page"]


_WRITTEN_AS_FLOAT = re.compile(r"[-+]?(\d+\.\d*|\.\d+|\d+)[eE][-+]?\d+")
_MAX_EXACT = float(1 << 53)  # beyond it, a float may stand for another integer than the one written


def _whole(value: Any) -> Any:
    """An int for a whole number that is written as 1e6, with or without quotes; anything else as it is."""
    number = float(value) if isinstance(value, str) and _WRITTEN_AS_FLOAT.fullmatch(value) else value
    is_whole = isinstance(number, float) and number.is_integer() and abs(number) <= _MAX_EXACT
    return int(number) if is_whole else value


Integer = Annotated[int, BeforeValidator(_whole)]
Probability = Annotated[float, Field(ge=0.0, le=1.0)]
Weight = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
EmitterName = Annotated[str, Field(pattern=r"^[A-Za-z_][\w-]*$", max_length=64)]
Positive = Annotated[Integer, Field(ge=1)]
MAX_BATCH_SIZE = 1 << 22  # programs held in memory at once
BatchSize = Annotated[Integer, Field(ge=1, le=MAX_BATCH_SIZE)]

MAX_DEPTH = 64  # of lists and mappings in YAML; what reads them calls itself for each


def _names_to_weights(value: Any) -> Any:
    """A plain list of names means that each has weight 1."""
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return dict.fromkeys(value, 1.0)
    return value


Weights = Annotated[dict[str, Weight], BeforeValidator(_names_to_weights)]


class Model(BaseModel):
    """Refuses unknown keys and loose types. An int is accepted as a float, a whole float as an int; nothing else is converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, validate_default=True)


class LimitsConfig(Model):
    """Bounds on a program's run, part of its meaning (`evo.language.program.Limits`)."""

    stack_size: Annotated[Integer, Field(ge=1, le=65536)] = 128
    max_nodes: Annotated[Integer, Field(ge=1, le=65536)] = 4096
    max_frame_depth: Annotated[Integer, Field(ge=1, le=64)] = 4
    store_size: Annotated[Integer, Field(ge=0, le=4096)] = 16
    execution_limit: Annotated[Integer, Field(ge=1, le=1 << 20)] = 4096


class ConstantsConfig(Model):
    """Constants in new words: f32 ones are drawn from a normal distribution, u32 ones uniformly from 0 to `u32_max`."""

    f32_sigma: Annotated[float, Field(gt=0.0, allow_inf_nan=False)] = 1.0
    u32_max: Annotated[Integer, Field(ge=0, le=2**32 - 1)] = 255
    meta_max: Annotated[Integer, Field(ge=0, le=2**16)] = 4


class VocabularyConfig(Model):
    """What new words are drawn from. Weights are relative within a group; `groups` weighs the groups.

    Words are drawn for the stacks that inputs, outputs and instructions use. In `meta`, `constant` is a push onto the meta
    stack; in `groups`, `store` weighs the words that store and load values.
    In `phrases`, `input constant mul_ftz_f32` are three words that are drawn as one: any input, a constant drawn anew, and a
    product. Other tokens are those of the text form of programs.
    """

    instructions: Weights = Field(min_length=1)
    meta: Weights = {"dup": 1.0, "swap": 1.0, "yank_dup": 0.5, "rotate": 0.5, "constant": 0.5}
    phrases: Weights = {}
    groups: dict[Literal["instructions", "inputs", "constants", "meta", "store", "phrases"], Weight] = {
        "instructions": 0.6,
        "inputs": 0.28,
        "constants": 0.07,
        "meta": 0.05,
    }
    constants: ConstantsConfig = ConstantsConfig()


class ProgramConfig(Model):
    """Programs: their maximal length in words, their instruction set, and the words that variation may draw.

    `instruction_set` is `default`, `wide`, or a JSON file relative to the config file.
    """

    max_length: Annotated[Integer, Field(ge=1, le=4096)] = 64
    instruction_set: str = "default"
    limits: LimitsConfig = LimitsConfig()
    vocabulary: VocabularyConfig


class ArchiveConfig(Model):
    """An archive by its name in `evo.search.archives`, and its options: a GridArchive has `dims`, a CVTArchive `centroids`."""

    type: ArchiveName = "GridArchive"
    dims: list[Positive] | None = None
    centroids: Positive | None = None

    @model_validator(mode="after")
    def _fits_type(self) -> Self:
        own = ARCHIVES[self.type].options
        for name in own:
            if getattr(self, name) is None:
                raise ValueError(f"{self.type} needs '{name}'")
        for name in self._given() - set(own):
            raise ValueError(f"{self.type} has no '{name}'")
        return self

    def options(self) -> dict[str, Any]:
        """What the archive is made with, beside what every archive is."""
        return {name: getattr(self, name) for name in ARCHIVES[self.type].options}

    def _given(self) -> set[str]:
        return {name for name in type(self).model_fields if name != "type" and getattr(self, name) is not None}


class InitialConfig(Model):
    """Generation 0: the given `programs`, then random ones of uniformly drawn length.

    `programs` are files relative to the config file, run folders, archives, and texts (`evo.run.initial_programs`). `digest` says
    what they are; null: not read yet.
    """

    num_programs: BatchSize = 4096
    min_length: Positive = 8
    max_length: Positive = 48
    programs: list[str] = []
    digest: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.min_length > self.max_length:
            raise ValueError(f"min_length {self.min_length} is greater than max_length {self.max_length}")
        return self


OPERATOR_WEIGHTS = {"umad": 0.5, "alternation": 0.1, "crossover": 0.1, "perturbation": 0.2, "replacement": 0.1}
"""The default mix; an operator that is not named here has weight 0."""


class _VariationConfig(Model):
    """Operators: one is drawn for each offspring by weight. Each operator with rates has a section of its own."""

    operators: dict[str, Weight] = OPERATOR_WEIGHTS

    @property
    def rates(self) -> dict[str, float]:
        """All rates by `Rate.key`."""
        return {rate.key: getattr(getattr(self, rate.operator), rate.name) for rate in RATES}

    @model_validator(mode="after")
    def _some_operator(self) -> typing.Self:
        if not sum(self.operators.values()) > 0:
            raise ValueError("at least one of the operators needs a weight above 0")
        return self


def _variation_config() -> type[_VariationConfig]:
    """The model of `search.variation`, with the operators, rates, defaults and bounds of vary.h."""
    rates: dict[str, dict[str, Any]] = {}
    for rate in RATES:
        # A lowest value that is refused is left to vary.h.
        number = Annotated[float, Field(ge=rate.lowest, le=rate.highest)]
        rates.setdefault(rate.operator, {})[rate.name] = (number, rate.default)
    literal: Any = Literal
    fields: dict[str, Any] = {"operators": (dict[literal[OPERATORS], Weight], OPERATOR_WEIGHTS)}
    for operator, section in rates.items():
        model = create_model(f"{operator.capitalize()}Config", __base__=Model, **section)
        fields[operator] = (model, model())
    return create_model("VariationConfig", __base__=_VariationConfig, **fields)


if typing.TYPE_CHECKING:
    VariationConfig = _VariationConfig
else:
    VariationConfig = _variation_config()


class TuningConfig(Model):
    """Constants are fitted to the targets, of a task with the reduction `regression` and one output.

    The best `share` of the new programs of each generation is tuned, each in at most this many `iterations` of
    Levenberg-Marquardt; 0: none. `linear_scale`: the error is that of the best linear function of the output, for tasks whose
    score does not change if an output is scaled or shifted. `points`: so many of the task's points are used, spread evenly over
    their order; null: all of them.
    """

    share: Probability = 0.0
    iterations: Annotated[Integer, Field(ge=1, le=1000)] = 5
    linear_scale: bool = True
    points: Annotated[Integer, Field(ge=16)] | None = None


class LearningConfig(Model):
    """What is learned while a search runs: which offspring to evaluate (`evo.search.prescreen`), and measures
    (`evo.search.learned_measures`).

    `prescreen`: so many offspring are bred for each one that is evaluated; 1: one, and there is no model. `exploration`: share of
    the evaluated that is chosen without the model. `control`: one generation in so many evaluates offspring as they come, to tell
    what the choice is worth. `model` learns from the newest `window` programs; their outputs at `points` of the task's points are
    among their features. `evaluation_cost`: of an evaluation, in units of what it costs to look at an offspring; null: measured
    as the search begins, and part of its state.
    `features`: so many principal components of the elites' outputs at these points are written beside the elites; with the
    `descriptors` `learned` they span the archive in place of the task's measures.
    """

    prescreen: Annotated[Integer, Field(ge=1, le=64)] = 1
    exploration: Probability = 0.1
    control: Annotated[Integer, Field(ge=2, le=1000)] = 8
    model: Literal["ridge"] = "ridge"
    window: Annotated[Integer, Field(ge=16, le=10000)] = 2000
    points: Annotated[Integer, Field(ge=1, le=256)] = 32
    evaluation_cost: Annotated[float, Field(gt=0.0, allow_inf_nan=False)] | None = None
    descriptors: Literal["task", "learned"] = "task"
    features: Annotated[Integer, Field(ge=0, le=8)] = 0

    @property
    def is_spanning(self) -> bool:
        """Whether learned measures span the archive."""
        return self.descriptors == "learned"

    @model_validator(mode="after")
    def _fits_descriptors(self) -> Self:
        if self.is_spanning and not self.features:
            raise ValueError("descriptors 'learned' need 'features': how many of them span the archive, 1 to 8")
        if self.is_spanning and self.prescreen > 1:
            raise ValueError("descriptors 'learned' do not go with a prescreen, which predicts the task's; give one of them")
        return self


class StartsConfig(Model):
    """The search begins from random programs `count` times, for so many `generations` each; then the elites of all are bred from.

    0: it begins once and goes on. For searches that either succeed soon or get stuck.
    """

    count: Annotated[Integer, Field(ge=0)] = 0
    generations: Positive = 300


ParentShares = Annotated[list[Annotated[float, Field(gt=0.0, le=1.0)]], Field(min_length=1)]


class EmitterConfig(Model):
    """One of several emitters: it has a share of each batch by `weight`.

    `kind`: `variation` breeds with operators and rates of its own, from parents as `search.parents` says; `random` makes random
    programs.
    """

    kind: Literal["variation", "random"] = "variation"
    weight: Weight = 1.0
    parents: ParentShares = [1.0]
    variation: VariationConfig = VariationConfig()

    @model_validator(mode="after")
    def _fits_kind(self) -> Self:
        for name in ("parents", "variation"):
            if self.kind == "random" and getattr(self, name) != type(self).model_fields[name].default:
                raise ValueError(f"an emitter of random programs has no '{name}'")
        return self


class SearchConfig(Model):
    """MAP-Elites: archive, sizes and operators.

    `parents`: each generation in turn draws its parents from one of these shares of the elites, the best; 1: from all of them.
    `immigrants` is the share of random programs in each batch. `emitters`, by name, stand in place of `parents`, `immigrants` and
    `variation`. `memory_size` hashes of evaluated programs are remembered, and no such program is evaluated again.
    """

    archive: ArchiveConfig
    batch_size: BatchSize = 512
    parents: ParentShares = [1.0]
    immigrants: Probability = 0.0
    initial: InitialConfig = InitialConfig()
    starts: StartsConfig = StartsConfig()
    variation: VariationConfig = VariationConfig()
    emitters: Annotated[dict[EmitterName, EmitterConfig], Field(max_length=100)] = {}
    memory_size: Annotated[Integer, Field(ge=1, le=1 << 26)] = 1 << 18
    tuning: TuningConfig = TuningConfig()
    learning: LearningConfig = LearningConfig()

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if self.batch_size * self.learning.prescreen > MAX_BATCH_SIZE:
            raise ValueError(f"batch_size times learning.prescreen must be at most {MAX_BATCH_SIZE} programs")
        return self

    @model_validator(mode="after")
    def _fits_learned(self) -> Self:
        dims, num_learned = self.archive.dims, self.learning.features
        if self.learning.is_spanning and dims and len(dims) != num_learned:
            raise ValueError(f"archive.dims {dims} has {len(dims)} numbers, but learning.features is {num_learned}")
        if self.learning.is_spanning and self.starts.count:
            raise ValueError("'starts' do not go with learning.descriptors 'learned'; give one of them")
        return self

    @model_validator(mode="after")
    def _emitters_alone(self) -> Self:
        if not self.emitters:
            return self
        for name in ("parents", "immigrants", "variation"):
            if getattr(self, name) != type(self).model_fields[name].default:
                raise ValueError(f"'emitters' stand in place of '{name}'; give one of them")
        if not any(emitter.weight for emitter in self.emitters.values()):
            raise ValueError("at least one of the emitters needs a weight above 0")
        if INITIAL in self.emitters:
            raise ValueError(f"no emitter can be called '{INITIAL}', which stands for the programs that a search begins with")
        return self


class PackingConfig(Model):
    """Programs that are compiled, loaded and run together: sites of a kernel, and kernels of a module."""

    sites_per_kernel: Annotated[Integer, Field(ge=1, le=4096)] = 64
    kernels_per_module: Annotated[Integer, Field(ge=1, le=4096)] = 2

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if self.sites_per_kernel * self.kernels_per_module > 4096:
            raise ValueError("sites_per_kernel times kernels_per_module must be at most 4096 programs")
        return self


class FarmConfig(Model):
    """Compile workers on other machines (`evo worker`).

    `listen` is where they connect, such as tcp://0.0.0.0:5711. `keys` is the folder of the run's keys (`evo keys new`), relative
    to the config file; an address beyond this machine needs it.
    """

    listen: str
    keys: str | None = None


class TlsConfig(Model):
    """PEM files, relative to the config file: the authority's certificate, and this client's certificate and key."""

    ca: str
    cert: str
    key: str


class ClusterConfig(Model):
    """Dask workers that evaluate batches in place of this machine (docs/cluster.md).

    `scheduler`: its address, or `local`, which starts one worker process for each of `evaluation.threads` on this machine. `tls`:
    for an address that begins with `tls://`; null: what Dask's own config says. `wait_seconds`: longest wait for a first worker,
    or for another one after all were lost.
    """

    scheduler: str
    tls: TlsConfig | None = None
    wait_seconds: Annotated[float, Field(gt=0.0, le=86400.0)] = 60.0

    @model_validator(mode="after")
    def _is_address(self) -> Self:
        if self.scheduler != "local" and not re.fullmatch(r"\w+://[^/\s]+:\d+", self.scheduler):
            raise ValueError(f"scheduler {self.scheduler}: must be 'local' or an address such as tcp://10.0.0.1:8786")
        if self.tls and not self.scheduler.startswith("tls://"):
            raise ValueError(f"scheduler {self.scheduler}: 'tls' needs an address that begins with tls://")
        return self


class EvaluationConfig(Model):
    """Where programs run, and how the work is done.

    `backend`: auto takes an NVIDIA GPU if one can be used, passes its self-test and is measured to be faster
    (`evo.evaluate.calibration`). CPU and GPU differ in the last bits of approximate instructions. No other key changes a result,
    except `compile_seconds`, after which a program counts as failed, and `opt_level` last bits of rare programs (docs/gpu.md).
    Both: `threads` evaluate and score; null: one per core. `executor` says whether these are threads or processes, which run
    a `score` in Python in parallel; auto: processes, or on the CPU threads, if the first batches show them to be clearly faster.
    `score_seconds` limits the scoring of a chunk of programs, and the run ends when it passes. `simd`, auto: the faster on the
    first programs. GPU: `device` is its number, null: the first that can be used; `lane`: programs are interpreted or compiled,
    auto: the faster, batch by batch; `compile_workers` are processes, null: one per core; `farm` adds workers of other
    machines, and `local_workers` are the processes beside it, null: `compile_workers`, 0: none; `packing`; `opt_level` of the
    assembler, null: by the number of points; `launch_seconds` limits the kernels of one pack, and the run ends when it passes;
    `cache_megabytes` of cubins are kept on disk for all runs, 0: none.
    `cluster`: Dask workers do the work.
    """

    backend: BackendName = AUTO
    threads: Positive | None = None
    simd: Literal["auto", "portable", "baseline", "avx2", "avx512"] = "auto"
    executor: Literal["auto", "threads", "processes"] = "auto"
    score_seconds: Annotated[float, Field(gt=0.0, le=86400.0)] = 300.0
    device: Annotated[Integer, Field(ge=0)] | None = None
    lane: Literal["auto", "interpret", "compile"] = "auto"
    compile_workers: Positive | None = None
    local_workers: Annotated[Integer, Field(ge=0)] | None = None
    farm: FarmConfig | None = None
    packing: PackingConfig = PackingConfig()
    opt_level: Annotated[Integer, Field(ge=0, le=3)] | None = None
    compile_seconds: Annotated[float, Field(gt=0.0, le=86400.0)] = 60.0
    launch_seconds: Annotated[float, Field(gt=0.0, le=86400.0)] = 60.0
    cache_megabytes: Annotated[Integer, Field(ge=0, le=1 << 20)] = 2048
    cluster: ClusterConfig | None = None

    @model_validator(mode="after")
    def _somebody_compiles(self) -> Self:
        if self.local_workers is not None and self.farm is None:
            raise ValueError("local_workers are the processes beside a farm; without one, set compile_workers")
        return self


class StopConfig(Model):
    """The run ends after the generation in which the first of these is reached; at least one is needed."""

    generations: Positive | None = None
    evaluations: Positive | None = None
    seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    objective: Annotated[float, Field(allow_inf_nan=False)] | None = None

    @model_validator(mode="after")
    def _some_stop(self) -> Self:
        if all(getattr(self, name) is None for name in type(self).model_fields):
            raise ValueError(f"needs at least one of: {', '.join(type(self).model_fields)}")
        return self


class OutputConfig(Model):
    """Where runs are written, how often their state is saved, and the plots drawn at the end.

    A run folder holds a copy of its task, unless the task and what it declares have more than `task_megabytes`.
    `lineage_megabytes`: of the programs that became elites, which tell how an elite came about; 0: none are kept.

    Plots: `heatmap` of the archive, `front` of objective against complexity, `contact_sheet` of each elite's picture in its cell,
    `curves` over generations, the `best` elite large, an `animation` over t of some elites, a `gallery`: the first 64 random
    programs, animated, a `lineage`: the ancestors of some elites, and a `page`: the archive as an HTML file.
    """

    runs: str = "runs"
    checkpoint_seconds: Annotated[float, Field(ge=0.0)] = 10.0
    lineage_megabytes: Annotated[Integer, Field(ge=0, le=1 << 16)] = 64
    task_megabytes: Annotated[Integer, Field(ge=0)] = 64
    plots: list[PlotName] = [
        "heatmap",
        "contact_sheet",
        "curves",
        "best",
        "animation",
    ]


class RunConfig(Model):
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
    evaluation: EvaluationConfig = EvaluationConfig()
    stop: StopConfig
    output: OutputConfig = OutputConfig()

    def identity(self) -> dict[str, Any]:
        """The part that decides the archive, as plain values. A run is only resumed with the same.

        It leaves out where and how fast the work is done, when it ends, and the paths of the task, the instruction set and the
        initial programs: their content counts.
        """
        program: dict[str, Any] = {"instruction_set": True}
        if not self.program.vocabulary.phrases:
            program["vocabulary"] = {"phrases"}  # as with tuning below, for runs that were started before there were phrases
        left_out: dict[str, Any] = {
            "task": True,
            "task_files": True,
            "program": program,
            "evaluation": True,
            "stop": True,
            "output": True,
        }
        # So that runs that were started before there were tuning, its points, learning, parents, starts, emitters and given
        # programs go on.
        tuning: Any = {"points": True} if self.search.tuning.points is None else {}
        left_out["search"] = {"tuning": tuning if self.search.tuning.share else True}
        learning = self.search.learning
        if not learning.is_spanning:  # components of the elites are computed at the end
            left_out["search"]["learning"] = {"descriptors", "features"} if learning.prescreen > 1 else True
        if not self.search.starts.count:
            left_out["search"]["starts"] = True
        if self.search.parents == [1.0]:
            left_out["search"]["parents"] = True
        if not self.search.emitters:
            left_out["search"]["emitters"] = True
        initial = self.search.initial
        if initial.digest is None:  # no programs, or nobody has read them yet
            left_out["search"]["initial"] = {"digest"} if initial.programs else {"digest", "programs"}
        else:
            left_out["search"]["initial"] = {"programs"}
        return self.model_dump(mode="json", exclude=left_out)


def load_config(path: Path, overrides: tuple[str, ...] = ()) -> RunConfig:
    """Reads a config, from a file or one of evo's by its name, and applies `a.b=value` overrides (values are YAML).

    Paths of the task, the instruction set, the farm's keys and TLS files come back absolute: those in the file are relative to
    it, those in overrides to the working folder. Where there is no such folder, a task's name is that of one of evo's.

    Raises:
        UserError: no such file, not YAML, an unknown key, a value out of range.
    """
    file = find_config(path)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        if isinstance(error, FileNotFoundError):
            raise UserError(_no_config(path, str(error.strerror))) from error
        reason = error.strerror if isinstance(error, OSError) else error
        raise UserError(f"{path}: cannot read the config: {reason}") from error
    data = _parse_yaml(text, str(path))
    if not isinstance(data, dict):
        raise UserError(f"{path}: must be a mapping with the keys {', '.join(RunConfig.model_fields)}")
    for override in overrides:
        _override(data, override)
        if override.startswith("search.initial.programs="):
            data["search"]["initial"].pop("digest", None)  # of others
    config = make_config(data, str(path))

    def base(key: str) -> Path:
        given = any(f"{key}.".startswith(f"{override.partition('=')[0]}.") for override in overrides)
        return Path() if given else file.parent

    def absolute(key: str, value: str) -> str:
        found = find_task(value, base(key)) if key == "task" else base(key).joinpath(value)
        return str(found.resolve())

    return _with_paths(config, absolute)


def with_paths_in(config: RunConfig, folder: Path) -> RunConfig:
    """The same config with relative paths of what lies in a folder, as a config file there has them."""
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
        places = [change("search.initial.programs", entry) for entry in initial.programs]
        programs = [place if exists(Path(place)) else entry for place, entry in zip(places, initial.programs, strict=True)]
        found = initial.model_copy(update={"programs": programs})
        changes["search"] = config.search.model_copy(update={"initial": found})
    if config.program.instruction_set not in SHIPPED:
        instruction_set = change("program.instruction_set", config.program.instruction_set)
        changes["program"] = config.program.model_copy(update={"instruction_set": instruction_set})
    evaluation: dict[str, Any] = {}
    farm = config.evaluation.farm
    if farm and farm.keys:
        evaluation["farm"] = farm.model_copy(update={"keys": change("evaluation.farm.keys", farm.keys)})
    cluster = config.evaluation.cluster
    if cluster and cluster.tls:
        files = {name: change(f"evaluation.cluster.tls.{name}", file) for name, file in cluster.tls.model_dump().items()}
        evaluation["cluster"] = cluster.model_copy(update={"tls": TlsConfig(**files)})
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
        source: what messages say is wrong.

    Raises:
        UserError: an unknown key, or a value out of range.
    """
    try:
        return RunConfig.model_validate(data)
    except ValidationError as error:
        raise UserError(f"{source}: {_describe(error)}") from error


def read_stop(path: Path) -> StopConfig:
    """The section `stop` of a run's config.yaml, without reading the rest: of hundreds of runs that would take seconds.

    Raises:
        UserError: it cannot be read, or is wrong.
    """
    try:
        section = re.search(r"^stop:\n(?:[ ].*\n)+", path.read_text(encoding="utf-8"), re.MULTILINE)
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot read the config: {error}") from error
    if not section:
        return load_config(path).stop
    try:
        return StopConfig.model_validate(_parse_yaml(section[0], str(path))["stop"])
    except ValidationError as error:
        raise UserError(f"{path}: section 'stop': {error.errors()[0]['msg']}") from error


def dump_config(config: RunConfig) -> str:
    """The config with all defaults filled in, as YAML that `load_config` reads."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def first_difference(old: Any, new: Any, key: str = "") -> str | None:
    """The first key, dotted, at which two identities differ, with both values; None if they are equal."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in [*old, *(name for name in new if name not in old)]:
            found = first_difference(old.get(name), new.get(name), f"{key}.{name}" if key else name)
            if found:
                return found
        return None
    both_nan = old != old and new != new
    return None if old == new or both_nan else f"{key} is {json.dumps(new)} now, was {json.dumps(old)}"


def parse_values(text: str, source: str) -> list[Any]:
    """The values of `256,1024`, separated by commas as in a YAML list.

    Args:
        source: what messages call the text.

    Raises:
        UserError: not YAML.
    """
    values: list[Any] = _parse_yaml(f"[{text}]", source)
    return values


def _parse_yaml(text: str, source: str) -> Any:
    too_deep = UserError(f"{source}: nested too deeply: more than {MAX_DEPTH} levels")
    try:
        value = yaml.load(text, _UniqueKeyLoader)
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UserError(f"{source}{line}: not YAML: {error.problem}") from error
    except yaml.YAMLError as error:
        raise UserError(f"{source}: not YAML: {' '.join(str(error).split())}") from error
    except RecursionError:
        raise too_deep from None
    if _is_deeper(value, MAX_DEPTH):
        raise too_deep
    return value


def _is_deeper(value: Any, limit: int) -> bool:
    """Whether lists and mappings nest deeper than the limit. One that contains itself does."""
    level = [value]
    for _ in range(limit + 1):
        level = list({id(each): each for each in level if isinstance(each, (dict, list))}.values())
        if not level:
            return False
        level = [child for each in level for child in (each.values() if isinstance(each, dict) else each)]
    return True


class _UniqueKeyLoader(yaml.SafeLoader):
    """Refuses a key that is given twice, reads 1e-3 as a number, and names the line of an invalid value."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except ValueError as error:  # such as a date in month 13
            raise yaml.MarkedYAMLError(problem=str(error), problem_mark=node.start_mark) from error

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue  # `<<: *anchor`: given keys win over merged ones
            if not isinstance(key_node, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(problem="a key must be a plain value", problem_mark=key_node.start_mark)
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.MarkedYAMLError(problem=f"key '{key}' is given twice", problem_mark=key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


_UniqueKeyLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(rf"^{_WRITTEN_AS_FLOAT.pattern}$"),
    list("-+0123456789."),
)


def _override(data: dict[str, Any], override: str) -> None:
    key, equals, text = override.partition("=")
    parts = key.split(".")
    if not equals or not all(parts):
        raise UserError(f"--set {override}: write it as key=value, for instance search.batch_size=256")
    if len(parts) > MAX_DEPTH:
        raise UserError(f"--set {override}: nested too deeply: more than {MAX_DEPTH} levels")
    value = _parse_yaml(text, f"--set {override}")
    for part in parts[:-1]:
        if data.get(part) is None:  # no such section, or one that is off
            data[part] = {}
        data = data[part]
        if not isinstance(data, dict):
            raise UserError(f"--set {override}: '{part}' is not a section")
    data[parts[-1]] = value


def _describe(error: ValidationError) -> str:
    first = error.errors()[0]
    path = [part for part in first["loc"] if part != "[key]"]
    key = ".".join(str(part) for part in path)
    if first["type"] == "extra_forbidden":
        valid = _keys_of(path[:-1])
        return f"unknown key '{key}', {did_you_mean(str(path[-1]), valid)}"
    if first["type"] == "missing":
        return f"key '{key}' is missing"
    if first["type"] == "value_error":
        message = str(first["ctx"]["error"])
        return f"key '{key}': {message}" if key else message
    if first["type"] == "model_type":
        return f"key '{key}': must be a section with the keys {', '.join(_keys_of(path))}, got {json.dumps(first['input'])}"
    message = first["msg"].replace("Input should be", "must be")
    return f"key '{key}': {message}, got {json.dumps(first['input'], default=str)}"


def _keys_of(path: list[int | str]) -> list[str]:
    model: Any = RunConfig
    for part in path:
        if typing.get_origin(model) is dict:
            model = typing.get_args(model)[1]
            continue
        model = model.model_fields[part].annotation
        if typing.get_origin(model) in (typing.Union, types.UnionType):
            model = next(arg for arg in typing.get_args(model) if isinstance(arg, type) and issubclass(arg, BaseModel))
    return list(model.model_fields)
