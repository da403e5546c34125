"""The backends: the ways to run programs, by their names in a config.

Owns the registry and knows what each backend needs from a machine. Each evaluator's module loads when its backend starts, so
importing this module loads neither compilers nor CUDA.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from evo.errors import DeviceFailure, FailureKind, UserError
from evo.evaluate import Evaluator, PickledTask, TaskSource
from evo.evaluate.options import AUTO, EvaluationOptions
from evo.instructions import HALVES
from evo.language.batch import Batch
from evo.language.program import Language
from evo.native import ptx_vm
from evo.task import Task
from evo.tasks.answers import ask

if TYPE_CHECKING:
    from evo.evaluate.calibration import Calibration
    from evo.evaluate.cuda.device import DeviceInfo

# Advice if nvPTXCompiler is missing: the build leaves its extension out without this wheel.
INSTALL_COMPILER = "reinstall evo where the wheel nvidia-nvptxcompiler 13.0.88 is available"

# A program that the CPU runs and scores in less time is not worth a GPU, since handing it over takes longer: `auto` starts none.
LEAST_GPU_S = 5e-6

# Canonical hash (16 bytes) -> kind and log of each program that failed before. Backends never retry these.
Quarantine = Mapping[bytes, tuple[FailureKind, str]]


@dataclass(frozen=True)
class Assignment:
    """The work that an evaluator is started for.

    instructions: the names that programs may use. settings: each backend reads its own. source: where worker processes find the
    task, or the task itself; None: it is evaluated in this process only. batch_size: of the search; 0: not known.
    """

    language: Language
    task: Task
    instructions: Sequence[str]
    settings: EvaluationOptions
    quarantine: Quarantine
    source: TaskSource | PickledTask | None = None
    batch_size: int = 0


@dataclass(frozen=True)
class Backend:
    """One way to run programs.

    why_unusable: gives in one line what this machine lacks, or None if nothing. start: makes the evaluator; raises UserError if
    the assignment does not fit. why_untrusted: gives in one line why it must not be used with these options, although its
    hardware is there, or None; may take seconds. why_slow: gives in one line what this installation lacks to be as fast as it
    could be, or None.
    """

    name: str
    why_unusable: Callable[[], str | None]
    start: Callable[[Assignment], Evaluator]
    why_untrusted: Callable[[EvaluationOptions], str | None] = lambda _: None
    why_slow: Callable[[Task], str | None] = lambda _: None


@dataclass(frozen=True)
class Choice:
    """A backend, and what programs cost if that decided."""

    backend: Backend
    calibration: Calibration | None = None


def choose_backend(
    name: str, assignment: Assignment, programs: Callable[[], Batch], warn: Callable[[str], None] = lambda _: None
) -> Choice:
    """The backend with this name. `auto` gives the GPU if this machine can use it, it can be trusted and it runs the task's
    programs faster than the CPU does, as measured now. On a cluster `auto` is the CPU.

    Args:
        programs: gives programs such as the search will have. They are run if there is a choice.
        warn: called with a line if a backend could be used but fails, or is slower than it could be.

    Raises:
        UserError: the task's points or score are wrong.
    """
    if name == AUTO and _why_cpu(assignment.task):
        return Choice(CPU)
    if assignment.settings.cluster:
        return Choice(CPU if name == AUTO else BACKENDS[name])  # the workers' devices are unknown before they are chosen
    choice = Choice(BACKENDS[name]) if name != AUTO else _measured_choice(assignment, programs, warn)
    if problem := choice.backend.why_slow(assignment.task):
        warn(problem)
    return choice


def _measured_choice(assignment: Assignment, programs: Callable[[], Batch], warn: Callable[[str], None]) -> Choice:
    backend = BACKENDS["cuda"]
    if backend.why_unusable():
        return Choice(CPU)
    batch = programs()
    calibration = calibrate_cpu(assignment, batch)
    if calibration.costs().get(CPU.name, LEAST_GPU_S) < LEAST_GPU_S:
        return Choice(CPU, calibration)
    try:
        calibration = calibrate_gpu(backend, assignment, batch, calibration)
    except (UserError, DeviceFailure) as error:
        warn(f"programs do not run on the GPU: {error}")
        return Choice(CPU, calibration)
    return Choice(CPU if calibration.fastest() == CPU.name else backend, calibration)


def calibrate_cpu(assignment: Assignment, batch: Batch) -> Calibration:
    """Measure the cost of these programs on the CPU, if it can run all that the assignment may bring.

    Raises:
        UserError: the task's points or score are wrong.
    """
    from evo.evaluate.calibration import Calibration, measure_cpu
    from evo.evaluate.chunks import ChunkScorer
    from evo.evaluate.cpu import without_cpu_meaning
    from evo.evaluate.loops import num_runs

    num_points = num_runs(assignment.language, assignment.task)
    threads = num_threads(assignment.settings)
    size = float(np.mean(batch.num_instructions))
    if without_cpu_meaning(assignment.language, assignment.instructions):
        return Calibration(num_points, size, threads, None, 0.0)  # only a GPU can run these programs
    scorer = ChunkScorer(assignment.language, assignment.task, simd_level(assignment.settings))
    return Calibration(num_points, size, threads, *measure_cpu(scorer, batch, threads))


def calibrate_gpu(backend: Backend, assignment: Assignment, batch: Batch, calibration: Calibration) -> Calibration:
    """The calibration with the backend.

    Raises:
        UserError: the backend cannot be started, or its results not be trusted.
        DeviceFailure: the device failed.
    """
    from evo.evaluate.calibration import MOST_PROGRAMS, measure_gpu

    if problem := backend.why_untrusted(assignment.settings):
        raise UserError(problem)
    settings = assignment.settings.model_copy(update={"cache_megabytes": 0})  # compiled packs are to be compiled again
    with closing(backend.start(replace(assignment, settings=settings))) as evaluator:
        lane, gpu_s = measure_gpu(evaluator, batch, assignment.batch_size or MOST_PROGRAMS)
    return replace(calibration, lane=lane, gpu_s=gpu_s)


def num_threads(settings: EvaluationOptions) -> int:
    """Number of threads or processes that evaluate: one per core of this process unless the options set it."""
    return settings.threads or len(os.sched_getaffinity(0))


def simd_level(settings: EvaluationOptions) -> str | None:
    """The SIMD level that the options name; None: the widest. Raises UserError: this CPU lacks it."""
    levels = ptx_vm.levels()
    if settings.simd in (AUTO, "portable"):
        return levels[0] if settings.simd == "portable" else None
    if settings.simd not in levels:
        known = ", ".join(dict.fromkeys((AUTO, "portable", *levels)))
        raise UserError(f"this CPU has no '{settings.simd}', one of: {known}", "evaluation.simd")
    return settings.simd


def why_no_compiler() -> str | None:
    """Why this installation cannot compile cubins, or None if it can."""
    if importlib.util.find_spec("evo.native.nvptxcompiler") is None:
        return f"nvPTXCompiler is missing: {INSTALL_COMPILER}"
    return None


def _why_no_gpu() -> str | None:
    from evo.evaluate.cuda.device import probe

    return probe().problem


def _why_no_cuda() -> str | None:
    return why_no_compiler() or _why_no_gpu()


def _why_untrusted_gpu(settings: EvaluationOptions) -> str | None:
    if problem := why_no_compiler():
        return problem
    from evo.evaluate.cuda.self_test import why_untrusted

    return why_untrusted(_gpu(settings))


def _gpu(settings: EvaluationOptions) -> DeviceInfo:
    from evo.evaluate.cuda.device import probe
    from evo.evaluate.cuda.shared import chosen_device

    return chosen_device(probe(), settings.device, is_shared=_shares_gpus)


def _why_own_kernel_is_left_out(task: Task) -> str | None:
    from evo.kernel.cuda_source import why_left_out

    return why_left_out(task)


def _why_cpu(task: Task) -> str | None:
    """Reason why a task needs the CPU; None: it does not."""
    if task.rollout is not None and task.rollout.grid is not None:
        return "whose rollout has a grid"
    if task.has_simulation():
        return "that simulates"
    if task.rollout is None and ask(task, "point_loss"):
        return "with a loss of its own"
    return None if {*task.inputs.values(), *task.outputs.values()}.isdisjoint(HALVES) else "of f16 or bf16"


def _start_cuda(assignment: Assignment) -> Evaluator:
    if reason := _why_cpu(assignment.task):
        raise UserError(f"a task {reason} runs on the CPU; set it to cpu or auto", "evaluation.backend")
    if problem := _why_no_cuda() or _why_untrusted_gpu(assignment.settings):
        raise UserError(f"cuda cannot be used here: {problem}; use 'cpu' or 'auto'", "evaluation.backend")
    from evo.evaluate.cuda.evaluator import CudaEvaluator
    from evo.storage.disk_cache import open_cache

    settings = assignment.settings.model_copy(update={"device": _gpu(assignment.settings).ordinal})
    return CudaEvaluator(
        assignment.language,
        assignment.task,
        settings,
        open_cache(settings.cache_megabytes),
        assignment.quarantine,
        assignment.source,
        assignment.instructions,
    )


def _start_cpu(assignment: Assignment) -> Evaluator:
    from evo.evaluate.cpu import CpuEvaluator, without_cpu_meaning

    if assignment.settings.farm:
        raise UserError(
            "programs run on the CPU, so there is nothing to compile; set evaluation.backend to cuda, "
            "or: --set evaluation.farm=null",
            "evaluation.farm",
        )
    if unsupported := without_cpu_meaning(assignment.language, assignment.instructions):
        raise UserError(
            f"no CPU meaning for {', '.join(unsupported)}: remove them, or use a GPU backend", "program.vocabulary.instructions"
        )
    return CpuEvaluator(
        assignment.language,
        assignment.task,
        assignment.settings.threads,
        simd_level(assignment.settings),
        executor=assignment.settings.executor,
        source=assignment.source,
        score_seconds=assignment.settings.score_seconds,
    )


_shares_gpus = False


def share_gpus() -> None:
    """Makes this process take one of the GPUs that its options name, since it is one of several on this machine."""
    global _shares_gpus  # noqa: PLW0603 - of the process
    _shares_gpus = True


CPU = Backend("cpu", lambda: None, _start_cpu)
CUDA = Backend("cuda", _why_no_gpu, _start_cuda, _why_untrusted_gpu, _why_own_kernel_is_left_out)

BACKENDS = {backend.name: backend for backend in (CUDA, CPU)}
