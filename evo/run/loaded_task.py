"""A problem: a config's task, its language, and the evaluator that runs its programs.

Owns the way from a config to these. Knows nothing of the search or of run folders.
"""

from __future__ import annotations

import hashlib
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.config import RunConfig
from evo.errors import UserError
from evo.evaluate import Evaluator, PickledTask, TaskSource
from evo.evaluate.backends import BACKENDS, CPU, Assignment, Backend, Quarantine
from evo.evaluate.cluster import ClusterEvaluator
from evo.evaluate.combining import Combiner
from evo.evaluate.constraints import ConstrainedEvaluator
from evo.evaluate.options import AUTO
from evo.evaluate.pickled_task import pickle_task
from evo.evaluate.slots import SlotsEvaluator, slots_of
from evo.evaluate.tuning import ConstantTuner, default_share, why_not_tunable
from evo.instructions import InstructionSet, check_names, open_instruction_set
from evo.language.program import Language
from evo.run.task_identity import DeclaredTask, MadeTask
from evo.task import Task, Window
from evo.tasks.answers import task_errors
from evo.tasks.folder import check_declarations, declared_files, load_task, task_digest


@dataclass(frozen=True)
class Problem:
    """A config with its task, its language and the evaluator that runs its programs.

    source: where the task comes from; the task itself if this process has made it, and None if it then cannot or need not go to
    other processes. made: what such a task is recognised by. task_digest and instruction_set_digest: of the files as they were
    when they were loaded; the former is that of `made` if there is one, the latter None for the default set. quarantine: programs
    that failed before. is_local: this machine evaluates, whatever the config says of clusters and farms.
    """

    config: RunConfig
    task: Task
    source: TaskSource | PickledTask | None
    task_digest: str
    language: Language
    instruction_set_digest: str | None
    backend: Backend
    quarantine: Quarantine
    made: MadeTask | None = None
    is_local: bool = False
    _started: ExitStack = field(default_factory=ExitStack, init=False, repr=False, compare=False)

    @cached_property
    def evaluator(self) -> Evaluator:
        """Started when first asked for, so that looking at programs needs no GPU. Raises UserError: it cannot be started."""
        if self.config.evaluation.cluster and not self.is_local:
            evaluator: Evaluator = ClusterEvaluator(self.assignment, self.backend, self.task_digest)
        else:
            evaluator = self.backend.start(self.assignment)
        self._started.callback(evaluator.close)
        if self.task.constraints is not None:
            evaluator = ConstrainedEvaluator(evaluator, self.language, self.task.constraints)
        if self.task.slots is None:
            return evaluator
        return SlotsEvaluator(evaluator, self.language, self.task, self.config.program.vocabulary.instructions)

    @cached_property
    def tuner(self) -> ConstantTuner | None:
        """Started when first asked for; None if the config does not tune constants.

        Raises:
            UserError: the task's points or targets are wrong.
        """
        tuning = self.config.search.tuning
        if not tuning.share:
            return None
        tuner = ConstantTuner(
            self.language,
            self.task,
            iterations=tuning.iterations,
            linear_scale=bool(tuning.linear_scale),
            trials=tuning.trials,
            max_points=tuning.points,
            num_threads=self.config.evaluation.threads,
        )
        self._started.callback(tuner.close)
        return tuner

    @cached_property
    def combiner(self) -> Combiner:
        """Raises UserError if the task does not allow it, or its points or targets are wrong."""
        has_other_words = self.task.rollout or self.task.template
        if reason := why_not_tunable(self.task) or ("needs a task without a rollout or template" if has_other_words else None):
            raise UserError(f"{reason}", "search.combination")
        scaled = bool(self.config.search.tuning.linear_scale)
        return Combiner(self.language, self.task, self.config.program.vocabulary.instructions, linear_scale=scaled)

    @property
    def assignment(self) -> Assignment:
        """The work of the evaluator."""
        names = list(self.config.program.vocabulary.instructions)
        settings = self.config.evaluation
        if self.is_local:
            # A report asks for little: starting processes would take longer.
            here = {"cluster": None, "farm": None, "local_workers": None, "executor": "threads"}
            settings = settings.model_copy(update=here)
        size = self.config.search.batch_size
        return Assignment(self.language, self.task, names, settings, self.quarantine, self.source, size)

    @property
    def ranges(self) -> NDArray[np.float64]:
        """`(num_measures, 2)` bounds of the measures."""
        return np.array(list(self.task.measures.values()), dtype=np.float64)

    def draw(self, words: NDArray[np.uint64], size: int, t: float, window: Window | None = None) -> NDArray[np.uint8]:
        """`(batch_size, size, size, 3)` pictures of `(batch_size, max_length)` programs at time t, or a window of them.

        Raises:
            UserError: the task's drawing raises or returns the wrong thing.
        """
        task = self.task
        with task_errors(type(task), "picture_points"):
            points = task.picture_points(size, t, window) if window else task.picture_points(size, t)
        outputs = self.evaluator.outputs(words, points)
        with np.errstate(all="ignore"), task_errors(type(task), "picture"):
            drawn = np.asarray(task.picture(outputs, size))
            shape = (len(words), size, size, 3)
            if drawn.shape != shape or drawn.dtype != np.uint8:
                raise TypeError(f"must return {shape} uint8, got {drawn.shape} {drawn.dtype}")
        return drawn

    def here(self, backend: Backend | None = None) -> Problem:
        """The same problem with an evaluator of its own on this machine alone, for reports. backend: None: the same."""
        return replace(self, backend=backend or self.backend, is_local=True)

    def close(self) -> None:
        """Ends the evaluator and the tuner, if they were started."""
        self._started.close()


def load_problem(config: RunConfig, backend: Backend | None = None, quarantine: Quarantine | None = None) -> Problem:
    """Loads the task and instruction set of a config.

    Args:
        backend: None: the config's; for `auto` the CPU, which is fast enough for a few programs.
        quarantine: canonical hash -> kind and log of programs that must not be tried again.

    Raises:
        UserError: any of them is wrong.
    """
    source = TaskSource(Path(config.task), located_options(config))
    task = load_task(source.folder, dict(source.options))
    digest = task_digest(source.folder, declared_files(task, source.folder))
    return _problem_for(config, task, source, digest, backend, quarantine or {})


def located_options(config: RunConfig) -> dict[str, Any]:
    """The task's options, with their strings replaced by the paths of `task_files`."""

    def located(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: located(item) for name, item in value.items()}
        if isinstance(value, list):
            return [located(item) for item in value]
        return config.task_files.get(value, value) if isinstance(value, str) else value

    return {name: located(value) for name, value in config.task_options.items()}


def problem_of(config: RunConfig, task: Task, backend: Backend | None = None, quarantine: Quarantine | None = None) -> Problem:
    """The problem of a config and a task that this process has made; `task` and `task_options` of the config say nothing.

    Args:
        backend, quarantine: as of `load_problem`.

    Raises:
        UserError: the config is wrong, or does not fit the task.
    """
    check_declarations(task)
    if config.evaluation.cluster:
        raise UserError("the workers load the task from its folder; give the folder in place of the task", "evaluation.cluster")
    source = None
    if config.evaluation.executor != "threads":
        try:
            source = pickle_task(task)
        except UserError:
            if config.evaluation.executor == "processes":
                raise
    made = MadeTask.of_task(task)
    return replace(_problem_for(config, task, source, made.digest, backend, quarantine or {}), made=made)


def unloaded_problem(config: RunConfig, task: DeclaredTask, digest: str) -> Problem:
    """The problem of a run whose task is not loaded: its programs and scores can be read.

    Raises:
        UserError: the instruction set is wrong.
    """
    return _problem_for(config, task, None, digest, None, {})


def _problem_for(
    config: RunConfig,
    task: Task,
    source: TaskSource | PickledTask | None,
    digest: str,
    backend: Backend | None,
    quarantine: Quarantine,
) -> Problem:
    """The problem of a config and its loaded task. Raises UserError: the config does not fit the task."""
    config = _with_tuning(config, task)
    chosen = config.program.instruction_set
    instruction_set = open_instruction_set(chosen)
    instruction_set_digest = None if chosen == "default" else hashlib.sha256(repr(instruction_set).encode()).hexdigest()
    try:
        language = Language(
            instruction_set,
            tuple(task.inputs.items()),
            tuple(task.outputs.items()),
            config.program.limits,
            task.template.words(instruction_set, config.program.limits) if task.template else (),
        )
        language.lowering  # noqa: B018 - built here, so that a bad name is reported as the task's
    except (KeyError, ValueError) as error:
        location = f"{source.folder}/task.py" if isinstance(source, TaskSource) else type(task).__name__
        lacking = f"program.instruction_set={chosen} has no type {error}" if isinstance(error, KeyError) else str(error)
        raise UserError(f"inputs and outputs: {lacking}", location) from error
    check_names(instruction_set, config.program.vocabulary.instructions, "program.vocabulary.instructions")
    if task.slots is not None:
        config = _with_target(config, instruction_set, str(task.slots))
    wanted = config.evaluation.backend
    backend = backend or (CPU if wanted == AUTO else BACKENDS[wanted])
    return Problem(config, task, source, digest, language, instruction_set_digest, backend, quarantine)


def _with_target(config: RunConfig, instruction_set: InstructionSet, target: str) -> RunConfig:
    """The config without instructions that only later GPUs than the target have."""
    weights, costs = config.program.vocabulary.instructions, slots_of(instruction_set, target)
    later = {
        instruction.name
        for instruction, cost in zip(instruction_set.instructions, costs, strict=True)
        if instruction.semantics.slots and np.isnan(cost)
    }
    kept = {name: weight for name, weight in weights.items() if name not in later}
    vocabulary = config.program.vocabulary.model_copy(update={"instructions": kept})
    return config.model_copy(update={"program": config.program.model_copy(update={"vocabulary": vocabulary})})


def _with_tuning(config: RunConfig, task: Task | DeclaredTask) -> RunConfig:
    """The config with the task's defaults for `search.tuning`."""
    tuning = config.search.tuning
    reason = why_not_tunable(task)
    if tuning.share and reason:
        raise UserError(f"{reason}", "search.tuning")
    if tuning.linear_scale and task.rollout:
        raise UserError("states of a rollout are not scaled; leave it out", "search.tuning.linear_scale")
    is_scaled = task.has_scaling() and (task.template is None or task.template.has_scale)
    changes = {
        "share": (0.0 if reason else default_share(task)) if tuning.share is None else tuning.share,
        "linear_scale": is_scaled if tuning.linear_scale is None else tuning.linear_scale,
    }
    search = config.search.model_copy(update={"tuning": tuning.model_copy(update=changes)})
    return config.model_copy(update={"search": search})
