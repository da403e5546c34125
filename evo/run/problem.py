"""A problem: a config's task, its language, and the evaluator that runs its programs, on a CPU or on a GPU.

Owns the choice of the backend. Knows nothing of the search or of run folders.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from evo.compile.packing import Packing
from evo.config import RunConfig
from evo.errors import UserError
from evo.evaluate import Evaluator, Status
from evo.evaluate.cpu import CpuEvaluator, check_cpu_meaning
from evo.evaluate.cuda.device import probe
from evo.instructions import SHIPPED, load_instruction_set, shipped_instruction_set
from evo.language.program import Language, Limits
from evo.native import ptx_vm
from evo.storage.disk_cache import DiskCache, cache_folder
from evo.task import Task, load_task, task_digest

Quarantine = Mapping[bytes, tuple[Status, str]]


@dataclass(frozen=True)
class Problem:
    """A config with its task, its language and the evaluator that runs it.

    task_digest and instruction_set_digest: of the sources as they were when they were loaded; the latter is None for the
    shipped set. start_evaluator: makes the evaluator; `evaluator` calls it when it is first asked for, so that who only looks at
    programs needs no GPU.
    """

    config: RunConfig
    task: Task
    task_digest: str
    language: Language
    instruction_set_digest: str | None
    start_evaluator: Callable[[], Evaluator]

    @cached_property
    def evaluator(self) -> Evaluator:
        """Raises UserError where it cannot be started."""
        return self.start_evaluator()

    @property
    def ranges(self) -> np.ndarray:
        """`(num_measures, 2)` bounds of the measures."""
        return np.array(list(self.task.measures.values()), dtype=np.float64)

    @property
    def runs_on(self) -> str:
        """`CPU`, or the GPU's name."""
        return str(self.evaluator.environment().get("device", "CPU"))

    def close(self) -> None:
        """Ends the evaluator, if it was started."""
        if "evaluator" in vars(self):
            self.evaluator.close()


def load_problem(config: RunConfig, backend: str | None = None, quarantine: Quarantine | None = None) -> Problem:
    """Loads the task and instruction set of a config.

    Args:
        backend: `cpu` or `cuda`; None: the config's, where `auto` is the CPU, which does for a few programs.
        quarantine: canonical hash -> status and log of programs that a GPU backend must not try again.

    Raises:
        UserError: any of them is wrong.
    """
    task = load_task(Path(config.task), config.task_options)
    digest = task_digest(Path(config.task))
    chosen = config.program.instruction_set
    instruction_set = shipped_instruction_set(chosen) if chosen in SHIPPED else load_instruction_set(chosen)
    instruction_set_digest = None if chosen == "default" else hashlib.sha256(repr(instruction_set).encode()).hexdigest()
    try:
        language = Language(
            instruction_set,
            tuple(task.inputs.items()),
            tuple(task.outputs.items()),
            Limits(**config.program.limits.model_dump()),
        )
        language.lowering  # noqa: B018 - built here, so that a bad name is reported as the task's
    except (KeyError, ValueError) as error:
        raise UserError(f"{config.task}/task.py: inputs and outputs: {error}") from error
    known = [instruction.name for instruction in instruction_set.instructions]
    names = list(config.program.vocabulary.instructions)
    for name in names:
        if name not in known:
            raise UserError(f"program.vocabulary.instructions: unknown instruction '{name}', one of: {', '.join(known)}")
    if backend is None:
        backend = "cuda" if config.evaluation.backend == "cuda" else "cpu"
    make = _cuda_evaluator if backend == "cuda" else _cpu_evaluator
    return Problem(config, task, digest, language, instruction_set_digest, lambda: make(config, task, language, quarantine or {}))


def choose_backend(config: RunConfig) -> str:
    """`cpu` or `cuda` for a search: `auto` takes a GPU where one can be used."""
    wanted = config.evaluation.backend
    if wanted != "auto":
        return wanted
    return "cpu" if why_no_cuda() else "cuda"


def why_no_cuda() -> str | None:
    """What is missing for the CUDA backend; None: nothing."""
    if importlib.util.find_spec("evo.native.nvptxcompiler") is None:
        return "nvPTXCompiler is missing: install evo again where the wheel nvidia-nvptxcompiler 13.0.88 can be had"
    return probe().problem


def _cpu_evaluator(config: RunConfig, task: Task, language: Language, quarantine: Quarantine) -> Evaluator:
    check_cpu_meaning(language, list(config.program.vocabulary.instructions), "program.vocabulary.instructions")
    simd = config.evaluation.simd
    if simd != "auto" and simd not in ptx_vm.levels():
        raise UserError(f"evaluation.simd: this CPU has no '{simd}', one of: auto, {', '.join(ptx_vm.levels())}")
    return CpuEvaluator(language, task, config.evaluation.threads, None if simd == "auto" else simd)


def _cuda_evaluator(config: RunConfig, task: Task, language: Language, quarantine: Quarantine) -> Evaluator:
    if problem := why_no_cuda():
        raise UserError(f"evaluation.backend: cuda cannot be used here: {problem}; 'cpu' and 'auto' can")
    from evo.evaluate.cuda.evaluator import CudaEvaluator, CudaOptions

    evaluation = config.evaluation
    options = CudaOptions(
        device=evaluation.device,
        num_workers=evaluation.compile_workers,
        packing=Packing(evaluation.packing.sites_per_kernel, evaluation.packing.kernels_per_module),
        opt_level=evaluation.opt_level,
        compile_seconds=evaluation.compile_seconds,
        launch_seconds=evaluation.launch_seconds,
        num_threads=evaluation.threads,
    )
    cache = DiskCache(cache_folder(), evaluation.cache_megabytes << 20) if evaluation.cache_megabytes else None
    return CudaEvaluator(language, task, options, cache, quarantine)
