"""Searches from Python: `evo.evolve` and `evo.resume`.

Owns the way from keyword arguments to a search. Writes no files, unless it goes on with those of a run. What comes out is
`evo.report.result`.
"""

import inspect
import json
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evo.config import RunConfig, make_config
from evo.errors import UserError, command_line, renamed
from evo.evaluate import by_name, finite_only
from evo.evaluate.cpu import without_cpu_meaning
from evo.instructions import SHIPPED, load_instruction_set, shipped_instruction_set
from evo.language.formula import scaling_notes
from evo.language.program import Language, format_program
from evo.native.ptx_vm import VirtualMachine
from evo.report.progress import progress_of
from evo.report.result import Result
from evo.run.initial_programs import INITIAL_PROGRAMS
from evo.run.interrupt import interruptible
from evo.run.loaded_task import load_problem, problem_of
from evo.run.run import LiveRun, environment
from evo.run.search import Interrupted, Journal, OnStep, Search
from evo.search.map_elites import Generation, Step
from evo.search.vocabulary import VocabularyOptions
from evo.shipped import find_task
from evo.task import RunnablePrograms, Task
from evo.tasks.answers import point_arrays
from evo.tasks.folder import check_declarations, check_options, load_task

Section = Mapping[str, Any]
Callback = Callable[[Generation], Any]
Guess: TypeAlias = str | Path | Result

NUM_CELLS = 1024  # about, of the default archive


def evolve(
    task: Task | type[Task] | str | Path,
    *,
    task_options: Section | None = None,
    vocabulary: Sequence[str] | Section | None = None,
    archive: Sequence[int] | Section | None = None,
    guesses: Guess | Sequence[Guess] = (),
    seed: int = 1,
    seconds: float | None = None,
    generations: int | None = None,
    evaluations: int | None = None,
    objective: float | None = None,
    program: Section | None = None,
    search: Section | None = None,
    evaluation: Section | None = None,
    on_generation: Callback | Sequence[Callback] = (),
    progress: bool | None = None,
) -> Result:
    """Searches for programs, as `evo run` does, without config and files.

    Equal arguments give equal archives, unless the search ends by `seconds`. Ctrl-C, or a notebook's stop button, ends it after
    the generation in progress with what it has found, and a warning; a second one raises KeyboardInterrupt.

    Args:
        task: a task, its class, the folder of its `task.py`, or the name of one of evo's tasks.
        task_options: of a class or folder, what the task is made with.
        vocabulary: names of instructions, a mapping from names to weights, or all of `program.vocabulary`; None: all instructions
            on the types of inputs and outputs that a CPU can run.
        archive: cells along each measure, or all of `search.archive`; None: a grid of about 1,024 cells.
        guesses: programs that generation 0 begins with, before its random ones: formulas such as `"sin(x0)*2 + 1"`, the text form
            of programs, paths of files with either, of run folders and of their archives, and the elites of a `Result`.
        seed: decides everything random.
        seconds, generations, evaluations, objective: the search ends after the generation that reaches the first of these.
        program, search, evaluation: further keys of these sections of a config; docs/api/files.md lists them.
        on_generation: called with each `Generation`; the search ends if one returns True.
        progress: whether progress is shown; None: on a terminal or in a notebook.

    Raises:
        UserError: an argument is wrong, or the task is or fails.
        DeviceFailure: the GPU failed.
    """
    stop = {"seconds": seconds, "generations": generations, "evaluations": evaluations, "objective": objective}
    sections = {"program": program, "search": search, "evaluation": evaluation, "stop": stop}
    callbacks = _callbacks(on_generation, "evolve")
    live_search = _search_of("evolve", task, task_options, vocabulary, archive, guesses, {"seed": seed, **sections})
    metrics: list[dict[str, Any]] = []
    quarantine: dict[str, dict[str, Any]] = {}

    def execute(on_step: OnStep, interrupted: Interrupted) -> str:
        for _ in live_search.generations(on_step, interrupted, Journal(metrics.append, quarantine.setdefault)):
            pass
        return str(live_search.stop_reason)

    with closing(live_search.problem):
        reason = _execute(live_search, execute, callbacks, progress)
        return Result(live_search, metrics, reason, environment(live_search.problem), quarantine)


def resume(
    task: Task | type[Task],
    folder: str | Path,
    *,
    task_options: Section | None = None,
    seconds: float | None = None,
    generations: int | None = None,
    evaluations: int | None = None,
    objective: float | None = None,
    evaluation: Section | None = None,
    on_generation: Callback | Sequence[Callback] = (),
    progress: bool | None = None,
) -> Result:
    """Goes on with the search of a folder that `Result.save` has written, and saves it there.

    Args:
        task: as the search began with: the source of its class and its attributes are compared.
        task_options: of a class; None: as the search began.
        seconds, generations, evaluations, objective: stops in place of the run's; they count from its beginning.
        evaluation: keys that replace those of the run's config.
        on_generation, progress: as of `evolve`.

    Raises:
        UserError: an argument is wrong, or the task is or fails, or it is not the run's.
        DeviceFailure: the GPU failed.
    """
    if isinstance(task, (str, Path)):
        raise UserError(f"a run of a task's folder goes on with: {command_line('resume', folder)}", "resume")

    def make(config: RunConfig) -> Task:
        known = config.task_options if inspect.isclass(task) else {}
        made, _ = _made(task, known if task_options is None else task_options, "resume")
        assert isinstance(made, Task)
        return made

    stop = {"seconds": seconds, "generations": generations, "evaluations": evaluations, "objective": objective}
    keys, callbacks = _section(evaluation, "resume", "evaluation"), _callbacks(on_generation, "resume")
    overrides = [f"evaluation.{name}={json.dumps(_plain(value))}" for name, value in keys.items()]
    if any(value is not None for value in stop.values()):
        overrides.append(f"stop={json.dumps(_plain(stop))}")
    run, notes = LiveRun.resume(Path(folder), tuple(overrides), make)
    with closing(run):
        for note in notes:
            _warn(note)
        reason = _execute(run.search, run.execute, callbacks, progress)
        return Result(run.search, run.run_dir.metrics(), reason, environment(run.search.problem), run.run_dir.quarantine())


class Scheduler:
    """Breeds programs for a loop of the user's: `ask` gives programs, `tell` takes their scores.

    Args:
        task: declares inputs, outputs and measures. Its `points` and `score` are not called.
        others: as of `evolve`. Constants are not tuned.

    Raises:
        UserError: an argument is wrong.
    """

    def __init__(
        self,
        task: Task | type[Task],
        *,
        task_options: Section | None = None,
        vocabulary: Sequence[str] | Section | None = None,
        archive: Sequence[int] | Section | None = None,
        guesses: Guess | Sequence[Guess] = (),
        seed: int = 1,
        program: Section | None = None,
        search: Section | None = None,
    ):
        sections = {"program": program, "search": search, "evaluation": {"backend": "cpu"}, "stop": {"generations": 1 << 31}}
        self.search = _search_of("Scheduler", task, task_options, vocabulary, archive, guesses, {"seed": seed, **sections})
        if self.search.problem.config.search.learning.prescreen > 1:
            raise UserError("does not go with ask and tell", "Scheduler", "search.learning.prescreen")
        self._loop, self._metrics = self.search.loop(), list[dict[str, Any]]()
        self._num_asked: int | None = None

    def ask(self) -> RunnablePrograms:
        """Breed the next programs, which no earlier batch had. Raises UserError before the scores of the last ones are told."""
        if self._num_asked is not None:
            raise UserError("comes after tell, which takes the scores of the programs before", "Scheduler.ask")
        problem, batch = self.search.problem, self._loop.ask()
        self._num_asked = len(batch)

        def run(inputs: dict[str, Any]) -> dict[str, NDArray[Any]]:
            arrays, _ = point_arrays(problem.task, inputs, "run()")
            unused = [None] * (len(problem.language.registers) - len(arrays))
            return by_name(problem.task, VirtualMachine(problem.language.lowering).store(batch.words, [*arrays, *unused]))

        return RunnablePrograms(batch.num_instructions, run)

    def tell(self, objective: ArrayLike, measures: ArrayLike) -> Generation:
        """Takes the scores of the programs that `ask` gave: `(batch_size,)` and `(batch_size, num_measures)`; NaN rejects one."""
        if self._num_asked is None:
            raise UserError("comes after ask, once for each", "Scheduler.tell")
        try:
            scores = np.asarray(objective, np.float64), np.asarray(measures, np.float64)
        except (TypeError, ValueError) as error:
            raise UserError(f"takes arrays of numbers: {error}", "Scheduler.tell") from None
        expected = (self._num_asked,), (self._num_asked, len(self.search.problem.task.measures))
        if (got := tuple(score.shape for score in scores)) != expected:
            raise UserError(f"takes objective and measures of shapes {expected}, got {got}", "Scheduler.tell")
        self._num_asked = None
        generation = self._loop.tell(finite_only(*scores))
        self._metrics.append(self.search.metrics_row(generation, 0.0))
        return generation

    def result(self) -> Result:
        """The elites so far."""
        return Result(self.search, self._metrics, "tell", {}, {})


def _search_of(
    caller: str,
    task: Task | type[Task] | str | Path,
    task_options: Section | None,
    vocabulary: Sequence[str] | Section | None,
    archive: Sequence[int] | Section | None,
    guesses: Guess | Sequence[Guess],
    sections: Mapping[str, Any],
) -> Search:
    """A search of the arguments of `evolve`. sections: parts of its config; None: empty."""
    made, options = _made(task, task_options, caller)
    data: dict[str, Any] = {
        "task": type(made).__name__ if isinstance(made, Task) else str(made.absolute()),
        "task_options": options,
        **{name: value if name == "seed" else _section(value, caller, name) for name, value in sections.items()},
    }
    for name, value, section in (("vocabulary", vocabulary, "program"), ("archive", archive, "search")):
        if value is not None and name in data[section]:
            raise UserError(f"{name} and {section}.{name} are the same; give one of them", caller)
    known_programs, locations = _texts_of(guesses, caller)
    if known_programs:
        initial = _section(data["search"].get("initial"), caller, "search.initial")
        if initial.get("programs"):
            raise UserError("guesses and search.initial.programs are the same; give one of them", caller)
        data["search"]["initial"] = initial | {"programs": known_programs}
    if vocabulary is not None:
        data["program"]["vocabulary"] = _vocabulary_section(vocabulary, caller)
    if archive is not None:
        data["search"]["archive"] = archive if isinstance(archive, Mapping) else {"dims": archive}
    known = made if isinstance(made, Task) else load_task(made, options)
    check_declarations(known)
    if "vocabulary" not in data["program"]:
        data["program"]["vocabulary"] = {"instructions": _instructions_for(known, data["program"])}
    if "archive" not in data["search"]:
        data["search"]["archive"] = {"dims": [max(2, round(NUM_CELLS ** (1 / len(known.measures))))] * len(known.measures)}
    with renamed({f"{INITIAL_PROGRAMS}.{number}": location for number, location in enumerate(locations)}):
        return make_search(caller, data, made if isinstance(made, Task) else None)


def _execute(
    search: Search,
    execute: Callable[[OnStep, Interrupted], str],
    callbacks: Sequence[Callback],
    progress: bool | None,
) -> str:
    """Executes a search with progress; returns why it ended."""
    ended_by: list[str] = []

    def ends(step: Step) -> bool:
        if isinstance(step, Generation) and any([callback(step) is True for callback in callbacks]):  # noqa: C419 - each is called
            ended_by.append("on_generation")
        return bool(ended_by) or asked()

    with interruptible() as asked, progress_of(search, shown=progress) as show:
        reason = execute(show, ends)
    return (ended_by or [reason])[0]


def _made(task: Task | type[Task] | str | Path, section: Section | None, caller: str) -> tuple[Task | Path, dict[str, Any]]:
    """The task, or its folder, and its options."""
    options = _section(section, caller, "task_options")
    if options and isinstance(task, Task):
        raise UserError("task_options are for a class or a folder; this task is made already", caller)
    if inspect.isclass(task) and issubclass(task, Task):
        check_options(task, options)
    made = task(**options) if inspect.isclass(task) else task
    if not isinstance(made, (Task, str, Path)):
        raise UserError(f"a task is an evo.Task, its class or a folder, got {type(made).__name__}", caller)
    return made if isinstance(made, Task) else find_task(made, Path()), options


def _section(value: Section | None, caller: str, name: str) -> dict[str, Any]:
    """A section of a config as a dict of its own; None: an empty one."""
    if value is not None and not isinstance(value, Mapping):
        raise UserError(f"must be a mapping from names to values, got {value!r}", caller, name)
    return dict(value or {})


def _callbacks(argument: Callback | Sequence[Callback], caller: str) -> list[Callback]:
    callbacks = list(argument) if isinstance(argument, Iterable) else [argument]
    if not all(map(callable, callbacks)):
        raise UserError(
            f"must be a function of a Generation, or a list of such functions, got {argument!r}", caller, "on_generation"
        )
    return callbacks


def _vocabulary_section(vocabulary: Sequence[str] | Section, caller: str) -> Section:
    """Build all of `program.vocabulary`."""
    if isinstance(vocabulary, Mapping) and vocabulary:
        is_section = not vocabulary.keys().isdisjoint(VocabularyOptions.model_fields)
        return vocabulary if is_section else {"instructions": vocabulary}
    is_list = isinstance(vocabulary, (list, tuple, np.ndarray)) and len(vocabulary)
    if not is_list or not all(isinstance(name, str) for name in vocabulary):
        raise UserError(
            "vocabulary is a list of names of instructions such as ['add_ftz_f32'], a mapping from names to weights, or "
            f"the keys of program.vocabulary; got {vocabulary!r}",
            caller,
        )
    return {"instructions": vocabulary}


def make_search(caller: str, data: dict[str, Any], task: Task | None) -> Search:
    """The search of a config's sections with a task that this process has made; None: with the config's own.

    Args:
        caller: the start of messages about the sections.

    Raises:
        UserError: the task or the config is wrong.
    """
    config = make_config(_plain(data), caller)
    problem = problem_of(config, task) if task else load_problem(config)
    search = Search(problem)
    search.choose_backend(_warn)
    for line in (*problem.task.notes, *scaling_notes(problem.task.input_scaling())):
        _warn(line)
    return search


def _texts_of(guesses: Guess | Sequence[Guess], caller: str) -> tuple[list[str], list[str]]:
    """Guesses as entries of `search.initial.programs`, and the name of each in messages."""
    named: list[tuple[str, Any]] = [("guesses", guesses)]
    if isinstance(guesses, Iterable) and not isinstance(guesses, str):
        named = [(f"guesses[{number}]", guess) for number, guess in enumerate(guesses)]
    texts, locations = [], []
    for location, guess in named:
        if isinstance(guess, Result):
            language = guess.search.problem.language
            new_texts = [format_program(language, words) for words in guess.search.elites().solution]
        elif isinstance(guess, Path):
            if not guess.exists():
                raise UserError("no such file or folder", caller, location, guess)
            new_texts = [str(guess.absolute())]
        elif isinstance(guess, str):
            new_texts = [guess]
        else:
            raise UserError(
                f"a guess is a formula or a program as text, a path or a Result, got {type(guess).__name__}", caller, location
            )
        texts += new_texts
        locations += [location] * len(new_texts)
    return texts, locations


def _plain(value: Any) -> Any:
    """Converts NumPy values, tuples, Dask's clients and mappings other than dicts, which configs refuse."""
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if type(value).__module__.partition(".")[0] == "distributed":
        from evo.evaluate.dask_client import address_of

        return address_of(value)
    return value.tolist() if isinstance(value, (np.generic, np.ndarray)) else value


def _warn(line: str) -> None:
    warnings.warn(line, stacklevel=7)  # where the user called


def _instructions_for(task: Task, program: Section) -> list[str]:
    """The instructions that a CPU can run, whose operands and results have the types of the task's inputs and outputs."""
    chosen = program.get("instruction_set", "default")
    instruction_set = shipped_instruction_set(chosen) if chosen in SHIPPED else load_instruction_set(chosen)
    # The names of inputs and outputs are checked with the problem.
    types = sorted({*task.inputs.values(), *task.outputs.values()})
    language = Language(instruction_set, tuple((f"{kind}_value", kind) for kind in types), ())
    stacks = {stack for _, stack in language.registers}
    names = [
        instruction.name
        for instruction in instruction_set.instructions
        if {instruction_set.arg_types[arg].stack_idx for arg in (*instruction.args, *instruction.rets)} <= stacks
    ]
    unsupported = without_cpu_meaning(language, names)
    return [name for name in names if name not in unsupported]
