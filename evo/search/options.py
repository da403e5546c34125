"""Options of a search: the section `search` of a config."""

import typing
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from evo.options import Integer, Options, Positive, Probability, Weight
from evo.search.archives import ARCHIVES
from evo.search.emitter import INITIAL
from evo.search.prescreen import LearningOptions
from evo.search.vocabulary import VariationOptions

if typing.TYPE_CHECKING:
    ArchiveName: TypeAlias = str
else:  # whatever is registered
    ArchiveName = Literal[*ARCHIVES]

EmitterName = Annotated[str, Field(pattern=r"^[A-Za-z_][\w-]*$", max_length=64)]
MAX_BATCH_SIZE = 1 << 22  # programs held in memory at once
BatchSize = Annotated[Integer, Field(ge=1, le=MAX_BATCH_SIZE)]


class ArchiveConfig(Options):
    """An archive by its name in `evo.search.archives`, and its options: a GridArchive has `dims`, a CVTArchive `centroids`."""

    type: ArchiveName = "GridArchive"
    dims: list[Positive] | None = None
    centroids: Positive | None = None

    @model_validator(mode="after")
    def _fits_type(self) -> Self:
        option_names = ARCHIVES[self.type].options
        for name in option_names:
            if getattr(self, name) is None:
                raise ValueError(f"{self.type} needs '{name}'")
        for name in self._set_names() - set(option_names):
            raise ValueError(f"{self.type} has no '{name}'")
        return self

    def options(self) -> dict[str, Any]:
        """Options of the archive beside those that every archive has."""
        return {name: getattr(self, name) for name in ARCHIVES[self.type].options}

    def _set_names(self) -> set[str]:
        return {name for name in type(self).model_fields if name != "type" and getattr(self, name) is not None}


class InitialConfig(Options):
    """Generation 0: the given `programs`, then random ones of uniformly drawn length.

    `programs` are files relative to the config file, run folders, and texts (`evo.run.initial_programs`). `digest` says
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


class TuningConfig(Options):
    """Constants are fitted by least squares to the targets of a task that has these and one output.

    The best `share` of the new programs of each generation is tuned, each in at most this many `iterations` of
    Levenberg-Marquardt; 0: none; null: a quarter if the task has the reduction `regression`, else none. `linear_scale`: the error
    is that of the best linear function of the output; null: if the task defines `scaling`. `points`: how many of the task's
    points are used, spread evenly over their order; null: 2,048, and all, up to 65,536, for one program in eight.

    If the task scores the largest error (`Task.point_errors`), the constants of `finished` programs of each generation, those
    that come closest to elites, are then tuned to that, over all points, and their last bits by this many `trials`; 0: none.
    """

    share: Probability | None = None
    iterations: Annotated[Integer, Field(ge=1, le=1000)] = 5
    linear_scale: bool | None = None
    points: Annotated[Integer, Field(ge=16, le=1 << 30)] | None = None
    finished: Annotated[Integer, Field(ge=0, le=MAX_BATCH_SIZE)] = 0
    trials: Annotated[Integer, Field(ge=0, le=1 << 20)] = 256


class StartsConfig(Options):
    """`count` independent searches of `generations` each, before the main search breeds from all their elites.

    0: the main search alone. For searches that either succeed soon or get stuck.
    """

    count: Annotated[Integer, Field(ge=0, le=1 << 20)] = 0
    generations: Positive = 300


ParentShares = Annotated[list[Annotated[float, Field(gt=0.0, le=1.0)]], Field(min_length=1)]


class EmitterConfig(Options):
    """One of several emitters: it has a share of each batch by `weight`.

    `kind`: `variation` breeds with operators and rates of its own, `combination` joins elites, `random` makes random
    programs; others are in `evo.search.emitter.EMITTERS`.
    """

    kind: EmitterName = "variation"
    weight: Weight = 1.0
    parents: ParentShares = [1.0]
    variation: VariationOptions = VariationOptions()

    @model_validator(mode="after")
    def _fits_kind(self) -> Self:
        for name in {"random": ("parents", "variation"), "variation": ()}.get(self.kind, ("variation",)):
            if getattr(self, name) != type(self).model_fields[name].default:
                raise ValueError(f"an emitter of kind '{self.kind}' has no '{name}'")
        return self


class SearchConfig(Options):
    """MAP-Elites: archive, sizes and operators.

    `parents`: each generation in turn draws its parents from one of these shares of the elites, the best; 1: from all of them.
    `combination` and `immigrants` are shares of each batch. The first joins an elite by least squares with another, a part of it,
    one whose inputs are exchanged, or a short random program, in tasks that can be tuned. The second are random programs.
    `emitters`, by name, replace all these and `variation`.
    `memory_size` hashes of evaluated programs are remembered, and no such program is evaluated again.
    """

    archive: ArchiveConfig
    batch_size: BatchSize = 512
    parents: ParentShares = [1.0]
    combination: Probability = 0.0
    immigrants: Probability = 0.0
    initial: InitialConfig = InitialConfig()
    starts: StartsConfig = StartsConfig()
    variation: VariationOptions = VariationOptions()
    emitters: Annotated[dict[EmitterName, EmitterConfig], Field(max_length=100)] = {}
    memory_size: Annotated[Integer, Field(ge=1, le=1 << 26)] = 1 << 18
    tuning: TuningConfig = TuningConfig()
    learning: LearningOptions = LearningOptions()

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if self.batch_size * self.learning.prescreen > MAX_BATCH_SIZE:
            raise ValueError(f"batch_size times learning.prescreen must be at most {MAX_BATCH_SIZE} programs")
        return self

    @model_validator(mode="after")
    def _emitters_alone(self) -> Self:
        if not self.emitters:
            return self
        for name in ("parents", "combination", "immigrants", "variation"):
            if getattr(self, name) != type(self).model_fields[name].default:
                raise ValueError(f"'emitters' stand in place of '{name}'; give one of them")
        if not any(emitter.weight for emitter in self.emitters.values()):
            raise ValueError("at least one of the emitters needs a weight above 0")
        if INITIAL in self.emitters:
            raise ValueError(f"no emitter can be called '{INITIAL}', which stands for the programs that a search begins with")
        return self
