"""The CUDA evaluator: packs programs into kernels, compiles them in processes, runs them on an NVIDIA GPU.

Owns the connection of compiler, lane and score, and the results of programs that fail. Results equal the CPU evaluator's except
in the last bits of approximate instructions. They do not depend on packing, workers or order. Knows nothing of the search.
Slightly long: how both lanes are opened, run and closed is one life.
"""

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.compile.assembler import assembler_options, choose_opt_level
from evo.compile.compiler import FailedProgram, Module, PackCompiler
from evo.compile.packing import Packing
from evo.compile.request import CompileFailure
from evo.compile.targets import architecture
from evo.errors import DeviceFailure, FailureKind, UserError
from evo.evaluate import Evaluation, Failure, PickledTask, Stats, Status, TaskSource, by_name
from evo.evaluate.compilers import open_compilers
from evo.evaluate.cuda.choice import COMPILE, INTERPRET, choose_lane
from evo.evaluate.cuda.device import Device
from evo.evaluate.cuda.device_inputs import DeviceInputs
from evo.evaluate.cuda.interpret import InterpretLane
from evo.evaluate.cuda.interpreter_kernels import MAX_PROGRAMS, Coding, Kernel, TaskKernel, open_kernel, open_task_kernel
from evo.evaluate.cuda.lane import Lane, Pack
from evo.evaluate.cuda.plans import KernelPlan, Plan, RegressionPlan, StorePlan
from evo.evaluate.loops import LoopRunner
from evo.evaluate.options import EvaluationOptions
from evo.kernel.cuda_header import BLOCK_SIZE as KERNEL_BLOCK_SIZE
from evo.kernel.cuda_source import template_of
from evo.kernel.rollout import Loop, loop_template
from evo.kernel.template import POINTWISE, KernelTemplate
from evo.language.batch import Batch
from evo.language.program import Language
from evo.storage.disk_cache import DiskCache
from evo.task import Task
from evo.tasks.answers import ask, point_arrays, task_kernel

# Of a task's own kernel, which runs a program in each: more programs of a pack would wait for the first ones.
BLOCKS_PER_MULTIPROCESSOR = 2048 // KERNEL_BLOCK_SIZE


class CudaEvaluator:
    """Runs and scores programs on one GPU.

    Args:
        language: what the programs are written in.
        task: gives points and score.
        options: how to do the work.
        cache: of cubins; None: nothing is kept.
        quarantine: canonical hash (16 bytes) -> kind and log of programs that failed before. They are never retried.
        source: where processes find the task; None: threads score.
        instructions: names of those that programs may use, for the interpreter; None: any.

    Raises:
        UserError: the device cannot be used or has too little memory, or the task's points, targets or kernel are wrong.
    """

    uses_lowered = True

    def __init__(
        self,
        language: Language,
        task: Task,
        options: EvaluationOptions,
        cache: DiskCache | None = None,
        quarantine: Mapping[bytes, tuple[FailureKind, str]] | None = None,
        source: TaskSource | PickledTask | None = None,
        instructions: Collection[str] | None = None,
    ):
        self._language = language
        self._task = task
        self._options = options
        self._instructions = instructions
        self._cache = cache
        self._failures = {key: CompileFailure(kind, log) for key, (kind, log) in (quarantine or {}).items()}
        self._loop = LoopRunner(language, task) if task.rollout else None
        self._num_threads = options.threads or len(os.sched_getaffinity(0))
        self._has_failed = False
        with ExitStack() as opened:  # closes them if a later step fails
            self._device = Device(options.device)
            opened.callback(self._device.close)
            inputs = self._upload(ask(task, "points"), "points()", self._loop)
            opened.callback(inputs.close)
            self._executor = open_compilers(options)
            opened.callback(self._end_compilers)
            self._template = self._own_template() or self._site_template(inputs)
            if self._has_own_kernel:
                self._plan: Plan = KernelPlan(task, inputs)
            elif task.reduction:
                self._plan = self._regression_plan(inputs, opened)
            else:
                self._plan = StorePlan(task, inputs)
                if source and options.executor != "threads" and self._num_threads > 1:
                    how = (language, source, self._num_threads, options.score_seconds)
                    self._plan.scorer.start_processes(*how, is_needed=options.executor == "processes")
            opened.callback(self._plan.close)
            level = options.opt_level
            self._opt_level = choose_opt_level(inputs.work) if level is None else level
            self._interpreter = self._open_interpreter(inputs, opened)
            # With an interpreter it is opened for the first program that needs it: its buffers may take gigabytes.
            self._compile_lane = None if self._interpreter else self._open_compile_lane(opened)
            self._opened = opened.pop_all()

    @property
    def device(self) -> str:
        """The GPU's name."""
        return self._device.info.name

    def evaluate(self, batch: Batch) -> Evaluation:
        """As `Evaluator.evaluate`, pack by pack on the GPU."""
        self._device.make_current()  # here and below: a Dask worker calls from any of its threads
        status = np.zeros(len(batch), np.uint8)
        objective = np.full(len(batch), np.nan)
        measures = np.full((len(batch), len(self._task.measures)), np.nan)
        score_s: list[float] = []
        workers_s: list[float] = []

        def take(pack: Pack, host: NDArray[np.uint8]) -> None:
            start = time.perf_counter()
            part = self._plan.score(host, pack.num_instructions)
            rows, sites = pack.served()
            status[rows], objective[rows], measures[rows] = part.status[sites], part.objective[sites], part.measures[sites]
            score_s.append(time.perf_counter() - start)
            workers_s.append(part.stats.times_s.get("score_workers", 0.0))

        left, times_s = np.arange(len(batch)), dict[str, float]()
        failures: list[tuple[int, Failure]] = []
        with self._closing():
            if self._interpreter:
                left = self._interpret(batch, left, self._interpreter, take, times_s)
            lanes = {INTERPRET: len(batch) - len(left), COMPILE: len(left)}
            if len(left):
                self._compile_lane = self._compile_lane or self._open_compile_lane(self._opened)
                failures = self._compile(batch, left, *self._compile_lane, take, times_s)
        status[[row for row, _ in failures]] = Status.FAILED
        times_s |= {"score_threads": sum(score_s), "score_workers": sum(workers_s)}
        farm = self._executor.status()
        return Evaluation(status, objective, measures, tuple(failure for _, failure in failures), Stats(times_s, lanes, farm))

    def outputs(self, words: NDArray[np.uint64], points: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """As `Evaluator.outputs`. Outputs of programs that fail, or failed in an earlier batch, are zeros."""
        self._device.make_current()
        batch = Batch.analyze(self._language.lowering, words)
        rows = np.arange(len(batch))
        with self._closing() as opened:
            whole = LoopRunner(self._language, self._task, in_pieces=False) if self._loop else None
            inputs = self._upload(points, "picture_points()", whole)
            opened.callback(inputs.close)
            plan = StorePlan(self._task, inputs)
            stored = np.zeros((len(words), plan.num_outputs, inputs.num_points), np.float32)

            def take(pack: Pack, host: NDArray[np.uint8]) -> None:
                rows, sites = pack.served()
                stored[rows] = plan.outputs(host, len(pack.rows))[sites]

            is_interpreted = choose_lane(self._options.lane, inputs.work) == INTERPRET
            kernel = self._open_kernel(False, inputs.width, opened, inputs.loop) if is_interpreted else None
            if kernel:
                code_plan = StorePlan(self._task, inputs, kernel)
                rows = self._interpret(batch, rows, self._make_interpreter(code_plan, kernel, len(words), opened), take, {})
            if len(rows):
                lane = self._make_lane(plan, len(words))
                opened.callback(lane.close)
                self._compile(batch, rows, lane, self._make_compiler(lane.capacity, self._site_template(inputs)), take, {})
        return by_name(self._task, stored)

    def environment(self) -> dict[str, str | int]:
        """GPU, target, driver, number of compile workers, and the kernel."""
        return {
            "device": self._device.info.name,
            "target": self._device.info.target,
            "driver": "CUDA {}.{}".format(*self._device.driver),
            "compile_workers": self._executor.num_workers,
            "kernel": "kernel.cu" if self._has_own_kernel else "rollout" if self._loop else "pointwise",
            "opt_level": self._opt_level,
        }

    def close(self) -> None:
        """Ends the workers and frees the device. A device that has failed is left alone."""
        if self._has_failed:
            self._end_compilers()
            self._plan.abandon()
        else:
            self._device.make_current()
            self._opened.close()

    def _end_compilers(self) -> None:
        self._executor.shutdown(cancel_futures=True)

    def _compile(
        self,
        batch: Batch,
        rows: NDArray[np.int64],
        lane: Lane,
        compiler: PackCompiler,
        take: Callable[[Pack, NDArray[np.uint8]], None],
        times_s: dict[str, float],
    ) -> list[tuple[int, Failure]]:
        """Runs some rows in the compile lane. Gives failed rows with their failures, ascending; adds to the seconds by stage."""
        failures: list[tuple[int, Failure]] = []
        times_s |= {"compiler_workers": 0.0, "emission_workers": 0.0} | times_s

        def modules(results: Iterator[Module | FailedProgram]) -> Iterator[Module]:
            for result in results:
                if isinstance(result, Module):
                    times_s["compiler_workers"] += result.compiler_s
                    times_s["emission_workers"] += result.emission_s
                    yield replace(result, rows=[rows[row] for row in result.rows])
                else:
                    kind, log = result.failure.kind, result.failure.log
                    failures.extend((int(row), _failure(batch, row, kind, log)) for row in rows[result.rows])

        # If an exception ends the batch, closing the generator cancels its compilations.
        part = batch if len(rows) == len(batch) else batch[rows]
        with closing(compiler.compile(part)) as results:
            lane.run(modules(results), take).add_to(times_s)
        return sorted(failures, key=lambda pair: pair[0])

    def _interpret(
        self,
        batch: Batch,
        rows: NDArray[np.int64],
        lane: InterpretLane,
        take: Callable[[Pack, NDArray[np.uint8]], None],
        times_s: dict[str, float],
    ) -> NDArray[np.int64]:
        """Runs rows in the interpreter's lane. Returns those that it cannot run, and adds to the seconds by stage."""
        # Programs that failed before are not tried again.
        has_failed = np.zeros(len(rows), bool)
        if self._failures:
            has_failed[:] = [row.tobytes() in self._failures for row in batch.hashes[rows]]
        times, left = lane.run(batch, rows[~has_failed], take)
        times.add_to(times_s)
        return np.sort(np.concatenate([rows[has_failed], left]))

    @contextmanager
    def _closing(self) -> Iterator[ExitStack]:
        """Close everything at the end, but leave a device that has failed alone."""
        with ExitStack() as opened:
            try:
                yield opened
            except DeviceFailure:
                self._has_failed = True
                opened.pop_all()
                raise

    @property
    def _has_own_kernel(self) -> bool:
        return self._template is not POINTWISE and not self._loop

    def _own_template(self) -> KernelTemplate | None:
        """The template of the task's kernel.cu."""
        if self._loop:
            if own_kernel := task_kernel(self._task):
                raise UserError("a task with a rollout has no kernel of its own", own_kernel[0])
            return None
        most_blocks = BLOCKS_PER_MULTIPROCESSOR * self._device.num_multiprocessors
        num_sites = min(most_blocks, self._options.packing.programs_per_module)
        return template_of(self._task, self._language, self._device.info.target, num_sites, self._cache)

    def _site_template(self, inputs: DeviceInputs) -> KernelTemplate:
        """The template of evo's own kernels that stores what programs leave."""
        if inputs.loop is None:
            return POINTWISE
        return loop_template(inputs.loop, architecture(self._device.info.target), self._options.packing.programs_per_module)

    def _open_kernel(self, sums: bool, num_points: int, opened: ExitStack, loop: Loop | None = None) -> Kernel | None:
        """The interpreter's kernel for this many points, if the inputs and outputs leave room for it."""
        is_weighted = sums and ask(self._task, "weights") is not None
        where = (self._device, self._language, sums, self._instructions, self._cache)
        in_registers = self._options.registers
        kernel = open_kernel(*where, is_weighted=is_weighted, num_points=num_points, loop=loop, in_registers=in_registers)
        if kernel:
            opened.callback(kernel.close)
        return kernel

    def _open_interpreter(self, inputs: DeviceInputs, opened: ExitStack) -> InterpretLane | None:
        if choose_lane(self._options.lane, inputs.work) == COMPILE:
            return None
        kernel: Kernel | TaskKernel | None
        if self._has_own_kernel:
            kernel = open_task_kernel(self._device, self._task, self._language, self._instructions, self._cache)
            if kernel is None:
                return None
            opened.callback(kernel.close)
            plan: Plan = KernelPlan(self._task, inputs, kernel)
        else:
            is_reduced = self._task.reduction is not None
            most_points = inputs.width if self._loop else self._plan.most_points
            kernel = self._open_kernel(self._plan.takes_sums, most_points, opened, inputs.loop)
            if kernel is None:
                return None
            plan = self._regression_plan(inputs, opened, kernel) if is_reduced else StorePlan(self._task, inputs, kernel)
        opened.callback(plan.close)
        return self._make_interpreter(plan, kernel, MAX_PROGRAMS, opened)

    def _make_interpreter(self, plan: Plan, kernel: Coding, max_programs: int, opened: ExitStack) -> InterpretLane:
        lane = InterpretLane(self._device, plan, kernel, max_programs, self._options.launch_seconds, self._num_threads)
        opened.callback(lane.close)
        return lane

    def _open_compile_lane(self, opened: ExitStack) -> tuple[Lane, PackCompiler]:
        lane = self._make_lane(self._plan, self._options.packing.programs_per_module)
        opened.callback(lane.close)
        return lane, self._make_compiler(lane.capacity, self._template)

    def _make_lane(self, plan: Plan, max_programs: int) -> Lane:
        max_programs = max(1, min(max_programs, self._options.packing.programs_per_module))
        return Lane(self._device, plan, max_programs, self._options.launch_seconds, self._num_threads)

    def _make_compiler(self, capacity: int, template: KernelTemplate) -> PackCompiler:
        packing = self._options.packing
        if capacity < packing.programs_per_module:
            sites = min(packing.sites_per_kernel, capacity)
            packing = Packing(sites_per_kernel=sites, kernels_per_module=capacity // sites)
        where = (self._language, self._device.info.target, self._executor)
        options = assembler_options(self._opt_level)
        return PackCompiler(
            *where, packing=packing, template=template, options=options, cache=self._cache, failures=self._failures
        )

    def _regression_plan(self, inputs: DeviceInputs, opened: ExitStack, kernel: Kernel | None = None) -> Plan:
        """Sums over outputs that packs store, or that the interpreter's kernel sums by itself; or losses of outputs."""
        points = None if self._loop else ask(self._task, "check_points")
        check = self._upload(points, "check_points()", None) if points else None
        if check:
            opened.callback(check.close)
        recorded = (self._loop.targets(inputs.width), self._loop.weights(inputs.num_points)) if self._loop else None
        return RegressionPlan(self._task, inputs, self._device, kernel, check, recorded)

    def _upload(self, points: dict[str, NDArray[Any]], method: str, runner: LoopRunner | None) -> DeviceInputs:
        if runner:
            columns, width = runner.columns(points, method)
            loop, arrays = runner.for_kernels(columns)
            return DeviceInputs(self._device, arrays, width * runner.num_records, runner.rollout, loop)
        return DeviceInputs(self._device, *point_arrays(self._task, points, method))


def _failure(batch: Batch, row: int | np.integer[Any], kind: FailureKind, log: str) -> Failure:
    return Failure(batch.words[row], batch.hashes[row].tobytes(), kind, log)
