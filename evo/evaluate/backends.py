"""The backends: the ways to run programs, by their names in a config.

Owns the registry and knows what each backend needs from a machine. Each evaluator's module loads when its backend starts, so
importing this module loads neither compilers nor CUDA.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evo.errors import FailureKind, UserError
from evo.evaluate import Evaluator, PickledTask, TaskSource
from evo.language.program import Language
from evo.task import Task, ask, point_arrays, task_kernel

# What to do if nvPTXCompiler is missing: the build leaves its extension out without this wheel.
INSTALL_COMPILER = "reinstall evo where the wheel nvidia-nvptxcompiler 13.0.88 is available"

# `auto` takes a GPU from this many points on. Compiling a program takes about 1 ms of a core, and in that time the core evaluates
# it at some 500,000 points itself. A task that scores in Python never pays off: its score takes far longer than its programs.
MIN_GPU_POINTS = 500_000

# Canonical hash (16 bytes) -> kind and log of each program that failed before. Backends never retry these.
Quarantine = Mapping[bytes, tuple[FailureKind, str]]


@dataclass(frozen=True)
class Assignment:
    """The work that an evaluator is started for.

    instructions: the names that programs may use. settings: a config's section `evaluation` as plain values; each backend reads
    its own keys. source: where worker processes find the task, or the task itself; None: it is evaluated in this process only.
    """

    language: Language
    task: Task
    instructions: Sequence[str]
    settings: Mapping[str, Any]
    quarantine: Quarantine
    source: TaskSource | PickledTask | None = None


@dataclass(frozen=True)
class Backend:
    """One way to run programs.

    why_unusable: gives in one line what this machine lacks, or None if nothing. start: makes the evaluator; raises UserError if
    the assignment does not fit. pays_off: whether `auto` takes it for an assignment. why_untrusted: gives in one line why it must
    not be used with a config's section `evaluation`, although its hardware is there, or None; may take seconds.
    """

    name: str
    why_unusable: Callable[[], str | None]
    start: Callable[[Assignment], Evaluator]
    pays_off: Callable[[Assignment], bool] = lambda _: True
    why_untrusted: Callable[[Mapping[str, Any]], str | None] = lambda _: None


def choose_backend(name: str, assignment: Assignment, warn: Callable[[str], None]) -> Backend:
    """The backend with this name. `auto` gives the first of `BACKENDS` that this machine can use, that pays off and that can be
    trusted. On a cluster `auto` is the CPU.

    Args:
        warn: called with a line if a backend would pay off but cannot be trusted.

    Raises:
        UserError: the task's points are wrong.
    """
    if name != AUTO:
        return BACKENDS[name]
    if assignment.settings["cluster"]:
        return CPU  # what the workers have cannot be asked before they are chosen
    for backend in BACKENDS.values():
        if backend.why_unusable() or not backend.pays_off(assignment):
            continue
        problem = backend.why_untrusted(assignment.settings)
        if not problem:
            return backend
        warn(f"programs do not run on the GPU: {problem}")
    return CPU


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


def _why_untrusted_gpu(settings: Mapping[str, Any]) -> str | None:
    if problem := why_no_compiler():
        return problem
    from evo.evaluate.cuda.device import choose_device, probe
    from evo.evaluate.cuda.self_test import why_untrusted

    return why_untrusted(choose_device(probe(), settings["device"]))


def _gpu_pays_off(assignment: Assignment) -> bool:
    from evo.evaluate.cpu import without_cpu_meaning

    if without_cpu_meaning(assignment.language, assignment.instructions):
        return True  # only a GPU can run these programs
    task = assignment.task
    if not (task.reduction or task_kernel(task)):
        return False
    return point_arrays(task, ask(task, "points"), "points()")[1] >= MIN_GPU_POINTS


def _start_cuda(assignment: Assignment) -> Evaluator:
    if problem := _why_no_cuda() or _why_untrusted_gpu(assignment.settings):
        raise UserError(f"evaluation.backend: cuda cannot be used here: {problem}; use 'cpu' or 'auto'")
    from evo.evaluate.cuda.evaluator import CudaEvaluator, CudaOptions
    from evo.storage.disk_cache import open_cache

    options = CudaOptions.from_settings(assignment.settings)
    cache = open_cache(assignment.settings["cache_megabytes"])
    return CudaEvaluator(assignment.language, assignment.task, options, cache, assignment.quarantine, assignment.source)


def _start_cpu(assignment: Assignment) -> Evaluator:
    from evo.evaluate.cpu import CpuEvaluator, without_cpu_meaning
    from evo.native import ptx_vm

    if unsupported := without_cpu_meaning(assignment.language, assignment.instructions):
        raise UserError(
            f"program.vocabulary.instructions: no CPU meaning for {', '.join(unsupported)}: remove them, or use a GPU backend"
        )
    simd = assignment.settings["simd"]
    if simd != AUTO and simd not in ptx_vm.levels():
        raise UserError(f"evaluation.simd: this CPU has no '{simd}', one of: {AUTO}, {', '.join(ptx_vm.levels())}")
    level = None if simd == AUTO else simd
    return CpuEvaluator(
        assignment.language,
        assignment.task,
        assignment.settings["threads"],
        level,
        executor=assignment.settings["executor"],
        source=assignment.source,
        score_seconds=assignment.settings["score_seconds"],
    )


AUTO = "auto"
CPU = Backend("cpu", lambda: None, _start_cpu)
CUDA = Backend("cuda", _why_no_gpu, _start_cuda, _gpu_pays_off, _why_untrusted_gpu)

# In the order in which `auto` tries them. The CPU is always usable: `auto` never takes what comes after it.
BACKENDS = {backend.name: backend for backend in (CUDA, CPU)}
