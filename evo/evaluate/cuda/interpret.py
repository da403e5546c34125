"""The interpreter's side of a GPU: assembles its kernel, encodes batches, and launches them.

Owns device code on its way to the GPU, and the plans whose programs come as code instead of cubins. `evo.kernel.interpreter`
makes the kernel, `evo.evaluate.cuda.lane` runs the packs. Knows nothing of which lane is better.
"""

from __future__ import annotations

import hashlib
import re
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass
from itertools import cycle
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from evo.compile.assembler import assembler_options
from evo.compile.request import assemble
from evo.compile.targets import architecture
from evo.evaluate.cuda.device import INVALID_VALUE, CudaError, Device
from evo.evaluate.cuda.lane import NUM_IN_FLIGHT, Lane, LaneTimes, Plan
from evo.evaluate.cuda.plans import DeviceInputs, KernelPlan, RegressionPlan, StorePlan
from evo.kernel import cuda_header, regression
from evo.kernel import interpreter as kernels
from evo.kernel.cuda_source import interpreting
from evo.kernel.interpreted_program import CODE, TABLE_ALIGNMENT, shared_bytes
from evo.kernel.interpreter import Interpreter
from evo.kernel.template import ENTRY
from evo.language.batch import Batch
from evo.language.program import Language
from evo.native import nvptxcompiler
from evo.native.device_code import NUM_EXTRA_STEPS, DeviceEncoder, Encoded, max_steps
from evo.storage.disk_cache import DiskCache
from evo.task import Task

# Most programs of a pack, and steps for each of them. A pack is a launch: large enough that starting it costs a program next to
# nothing, and small enough that a batch of a few thousand programs keeps encoding, kernels and scoring busy at once.
MAX_PROGRAMS = 1024
_STEPS_PER_PROGRAM = 128
_MIN_STEPS = 4096  # of a pack of few programs
# A batch is cut into this many packs, unless they get too small.
_NUM_PACKS = 4
_MIN_PROGRAMS = 256
# Most programs that a block runs on a tile, after which the tile's inputs are read again.
MAX_TOGETHER = 32
# Blocks that a multiprocessor should get. Two to four run at once; programs differ in length. An estimate, not a measurement.
BLOCKS_PER_MULTIPROCESSOR = 16

_OPTIONS = assembler_options(3)  # assembled once, launched for every pack
_LINE = re.compile(r"line (\d+); error")


@dataclass(frozen=True)
class CodePack:
    """Programs as device code, as `Lane` takes them.

    rows: for each program, the row of the batch. num_instructions: `(num_programs,)` int32. code: uint8, page-locked, overwritten
    when the pack is back: the programs' first steps, padded to `starts_bytes`, and the steps.
    """

    rows: list[NDArray[np.int64]]
    num_instructions: NDArray[np.int32]
    code: NDArray[np.uint8]
    cubin: None = None


class Coding:
    """How programs become code for a kernel that interprets them."""

    def __init__(self, language: Language, made: Interpreter):
        layout = made.layout
        self.layout = layout
        self.known = made.cases.names
        inputs = [name for name, _ in language.inputs]
        # An output that is no input is a register that no program reads before writing it: any vector will do.
        vectors = [inputs.index(name) if name in inputs else layout.first_output for name, _ in language.registers]
        self.encoder = DeviceEncoder(language.lowering, made.cases.numbers, vectors, layout.num_inputs, layout.num_slots)


class Kernel(Coding):
    """The interpreter kernel on a device, and the encoder for it."""

    def __init__(self, device: Device, language: Language, made: Interpreter, cubin: bytes):
        super().__init__(language, made)
        self._device = device
        self._module = device.load(cubin)
        self._function = device.function(self._module, kernels.ENTRY)
        device.allow_shared_bytes(self._function, self.layout.shared_bytes)

    def launch(self, inputs: DeviceInputs, code: int, num_programs: int, results: int, targets: int | None, stream: Any) -> None:
        """Starts the kernel for the programs whose code lies at the address `code`, as in a `CodePack`."""
        tiles = kernels.num_tiles(inputs.num_points)
        together = _num_together(num_programs, tiles, self._device.num_multiprocessors, self.layout.num_buffered)
        params: list[np.generic] = [*inputs.addresses, *inputs.strides]
        params += [np.uint64(code + starts_bytes(num_programs)), np.uint64(code), np.uint32(num_programs), np.uint32(together)]
        params += [np.uint32(inputs.num_points), np.uint64(results), *([] if targets is None else [np.uint64(targets)])]
        grid = (tiles, -(-num_programs // together))
        self._device.launch(self._function, grid, kernels.BLOCK_SIZE, params, stream, self.layout.shared_bytes)

    def close(self) -> None:
        """Unloads it."""
        self._device.unload(self._module)


class TaskKernel(Coding):
    """A task's own kernel, whose `evo_program` interprets, on a device, and the encoder for it.

    It finds its code by a variable of its module. So each place that code is sent to has a module of its own.
    """

    def __init__(self, device: Device, language: Language, made: Interpreter, cubin: bytes):
        super().__init__(language, made)
        self._device = device
        self._cubin = cubin
        self._modules: dict[int, tuple[Any, Any]] = {}  # and its kernel, by the address of the code
        self._next: tuple[Any, Any] | None = self._open()

    def launch(self, code: int, num_programs: int, params: Sequence[NDArray[Any] | np.generic], stream: Any) -> None:
        """Starts the kernel for the programs whose code lies at the address `code`, as in a `CodePack`."""
        if code not in self._modules:
            self._modules[code], self._next = self._next or self._open(), None
            address = self._device.variable(self._modules[code][0], CODE)
            self._device.copy_to_device(address, np.array([code], np.uint64), stream)
        size = shared_bytes(self.layout)
        self._device.launch(self._modules[code][1], (1, num_programs), cuda_header.BLOCK_SIZE, params, stream, size)

    def close(self) -> None:
        """Unloads it."""
        for module, _ in [*self._modules.values(), *([self._next] if self._next else [])]:
            self._device.unload(module)

    def _open(self) -> tuple[Any, Any]:
        module = self._device.load(self._cubin)
        try:
            function = self._device.function(module, ENTRY)
            self._device.allow_shared_bytes(function, shared_bytes(self.layout))
        except CudaError:
            self._device.unload(module)
            raise
        return module, function


K = TypeVar("K", bound=Coding)


def open_kernel(
    device: Device, language: Language, sums: bool, instructions: Collection[str] | None, cache: DiskCache | None
) -> Kernel | None:
    """The kernel for programs of a language, or None if there are too many inputs and outputs for it.

    Args:
        sums: whether outputs are summed against targets instead of stored.
        instructions: names of those that programs may use; None: the whole set.
        cache: of cubins; None: nothing is kept.
    """

    def make(names: set[str] | None) -> Interpreter | None:
        return kernels.interpreter(language, architecture(device.info.target), sums, names)

    return _opened(Kernel, make, device, language, instructions, cache)


def open_task_kernel(
    device: Device, task: Task, language: Language, instructions: Collection[str] | None, cache: DiskCache | None
) -> TaskKernel | None:
    """A task's own kernel for programs of a language, or None if there are too many inputs and outputs, or if it and the
    interpreter need more shared memory than a block can have.

    Args:
        instructions, cache: as of `open_kernel`.

    Raises:
        UserError: as of `evo.kernel.cuda_source.template_of`.
    """

    def make(names: set[str] | None) -> Interpreter | None:
        return interpreting(task, language, device.info.target, MAX_PROGRAMS, names, cache)

    try:
        return _opened(TaskKernel, make, device, language, instructions, cache)
    except CudaError as error:
        if error.name != INVALID_VALUE:
            raise
        return None


def _opened(
    kind: Callable[[Device, Language, Interpreter, bytes], K],
    make: Callable[[set[str] | None], Interpreter | None],
    device: Device,
    language: Language,
    instructions: Collection[str] | None,
    cache: DiskCache | None,
) -> K | None:
    names = None if instructions is None else set(instructions)
    while made := make(names):
        try:
            return kind(device, language, made, _assemble(made.ptx, device.info.target, cache))
        except nvptxcompiler.CompileError as error:
            # Older GPUs lack some instructions. Programs with these fail to compile too.
            missing = made.instructions_at([int(line) for line in _LINE.findall(error.log)])
            if not missing:
                raise
            names = made.cases.names - missing
    return None


def _assemble(ptx: str, target: str, cache: DiskCache | None) -> bytes:
    text = "\0".join([kernels.TEMPLATE, str(nvptxcompiler.version()), target, *_OPTIONS, ptx])
    key = hashlib.sha256(text.encode()).hexdigest()
    cubin = cache.get(key) if cache else None
    if cubin is None:
        cubin = assemble(ptx.encode(), target, _OPTIONS)
        if cache:
            cache.put(key, cubin)
    return cubin


def starts_bytes(num_programs: int) -> int:
    """Bytes of the first steps of so many programs, as they lie before the steps."""
    return -(-num_programs * 4 // TABLE_ALIGNMENT) * TABLE_ALIGNMENT


def code_bytes(max_programs: int) -> int:
    """Bytes of the code of a pack of at most so many programs."""
    return starts_bytes(max_programs) + 8 * _most_steps(max_programs)


def _most_steps(max_programs: int) -> int:
    return _MIN_STEPS + _STEPS_PER_PROGRAM * max_programs


class InterpretLane:
    """A lane whose packs are device code, encoded in threads and ahead of it.

    Args:
        plan: with a kernel; what the packs compute.
        max_programs: most programs of a pack; fewer if memory is short.
        time_limit_s, num_threads: of the lane; so many threads also encode.

    Raises:
        UserError: there is too little memory for even one program.
    """

    def __init__(self, device: Device, plan: Plan, kernel: Coding, max_programs: int, time_limit_s: float, num_threads: int):
        self._device = device
        self._kernel = kernel
        self.plan = plan
        self._lane = Lane(device, plan, max(1, min(max_programs, MAX_PROGRAMS)), time_limit_s, num_threads)
        self._num_requests = len(kernel.encoder.lowering.requests)
        self._most_steps = _most_steps(self._lane.capacity)
        self._num_ahead = min(num_threads, NUM_IN_FLIGHT)
        # Of the lane's packs some are in flight and one waits for a place, while others are encoded.
        num_slots = NUM_IN_FLIGHT + 1 + self._num_ahead
        self._slots = [device.pinned(code_bytes(self._lane.capacity)) for _ in range(num_slots)]
        self._threads = ThreadPoolExecutor(self._num_ahead, "encode")

    def run(
        self, batch: Batch, rows: NDArray[np.int64], take: Callable[[CodePack, NDArray[Any]], None]
    ) -> tuple[LaneTimes, NDArray[np.int64]]:
        """Runs these rows of a batch, and gives those of them that the kernel cannot run.

        Args:
            take: as of `Lane.run`.

        Raises:
            PackFailure: the device failed.
        """
        left: list[NDArray[np.int64]] = []
        # If an exception ends the batch, closing the generator waits for its threads.
        with closing(self._packs(batch, rows, left)) as packs:
            times = self._lane.run(packs, take)
        return times, np.sort(np.concatenate(left))

    def _packs(self, batch: Batch, rows: NDArray[np.int64], left: list[NDArray[np.int64]]) -> Generator[CodePack, None, None]:
        slots = cycle(self._slots)
        encoding: deque[Future[tuple[CodePack, NDArray[np.int64]]]] = deque()
        try:
            for part in self._parts(rows, batch.num_instructions[rows], left):
                encoding.append(self._threads.submit(self._encode, batch, part, next(slots)))
                if len(encoding) == self._num_ahead:
                    yield from _taken(encoding.popleft(), left)
            while encoding:
                yield from _taken(encoding.popleft(), left)
        finally:
            wait(encoding)  # threads write to slots

    def _parts(
        self, rows: NDArray[np.int64], num_instructions: NDArray[np.int32], left: list[NDArray[np.int64]]
    ) -> Iterator[NDArray[np.int64]]:
        """Rows of packs whose code has room for any programs of so many instructions."""
        needed = max_steps(num_instructions.astype(np.int64), self._num_requests)
        room = self._most_steps - NUM_EXTRA_STEPS
        left.append(rows[needed > room])
        rows, needed = rows[needed <= room], needed[needed <= room]
        ends = np.cumsum(needed)
        most = min(self._lane.capacity, max(_MIN_PROGRAMS, -(-len(rows) // _NUM_PACKS)))
        first = 0
        while first < len(rows):
            before = int(ends[first - 1]) if first else 0
            stop = min(int(np.searchsorted(ends, before + room, "right")), first + most)
            yield rows[first:stop]
            first = stop

    def _encode(self, batch: Batch, rows: NDArray[np.int64], slot: NDArray[np.uint8]) -> tuple[CodePack, NDArray[np.int64]]:
        """The pack of these rows, and those of them that it lacks."""
        layout = self._kernel.layout
        table = starts_bytes(len(rows))
        starts, steps = slot[: len(rows) * 4].view(np.uint32), slot[table : table + 8 * self._most_steps].view(np.uint64)
        results, used = self._kernel.encoder.encode(batch.words, rows, steps, starts, layout.first_output, layout.num_buffered)
        is_there = results == Encoded.OK
        taken = rows[is_there]
        # Fewer programs have a shorter table. It moves up to the steps.
        gap = table - starts_bytes(len(taken))
        slot[gap : gap + 4 * len(taken)] = slot[: 4 * len(taken)].copy()
        return CodePack(list(taken[:, None]), batch.num_instructions[taken], slot[gap : table + 8 * used]), rows[~is_there]

    def close(self) -> None:
        """Ends the threads and frees the memory. The device must not have failed."""
        self._threads.shutdown()
        self._lane.close()
        for slot in self._slots:
            self._device.free_pinned(slot)


def _taken(future: Future[tuple[CodePack, NDArray[np.int64]]], left: list[NDArray[np.int64]]) -> Iterator[CodePack]:
    pack, others = future.result()
    left.append(others)
    if pack.rows:
        yield pack


class CodeStorePlan(StorePlan):
    """Outputs at all points, as `StorePlan` gives them, by the interpreter."""

    def __init__(self, task: Task, inputs: DeviceInputs, kernel: Kernel):
        super().__init__(task, inputs)
        self._kernel = kernel

    def scratch_bytes(self, num_programs: int) -> int:
        """The code."""
        return code_bytes(num_programs)

    def prepare(self, device: Device, module: Any, results: int, scratch: int, stream: Any) -> None:
        """Sends the pack's code."""
        device.copy_to_device(scratch, module.code, stream)

    def launch(self, device: Device, loaded: Any, module: Any, results: int, scratch: int, stream: Any) -> None:
        """Starts the kernel."""
        self._kernel.launch(self.inputs, scratch, len(module.rows), results, None, stream)


class CodeRegressionPlan(RegressionPlan):
    """Sums of outputs against targets, as `RegressionPlan` gives them, by the interpreter: no output goes to memory."""

    def __init__(self, task: Task, inputs: DeviceInputs, device: Device, kernel: Kernel, targets: str = "targets"):
        super().__init__(task, inputs, device, targets)
        self._kernel = kernel

    def scratch_bytes(self, num_programs: int) -> int:
        """The code, and partial sums."""
        num_rows = num_programs * len(self._task.outputs)
        return _aligned(code_bytes(num_programs)) + regression.scratch_bytes(num_rows, self.inputs.num_points)

    def prepare(self, device: Device, module: Any, results: int, scratch: int, stream: Any) -> None:
        """Sends the pack's code."""
        device.copy_to_device(scratch, module.code, stream)

    def launch(self, device: Device, loaded: Any, module: Any, results: int, scratch: int, stream: Any) -> None:
        """Starts the kernel, then adds up its partial sums."""
        num_programs = len(module.rows)
        num_rows = num_programs * len(self._task.outputs)
        sums = scratch + _aligned(len(module.code))
        self._kernel.launch(self.inputs, scratch, num_programs, sums, int(self._targets), stream)
        params: list[np.generic] = [np.uint64(sums), np.uint64(results), np.uint32(num_rows), np.uint32(self.inputs.num_points)]
        _, (name, grid, block_size) = regression.launches(num_rows, self.inputs.num_points)
        device.launch(device.function(self._module, name), grid, block_size, params, stream)


class CodeKernelPlan(KernelPlan):
    """Scores, or sums, by a task's own kernel, as `KernelPlan` gives them, whose `evo_program` interprets."""

    def __init__(self, task: Task, inputs: DeviceInputs, kernel: TaskKernel):
        super().__init__(task, inputs)
        self._kernel = kernel

    def scratch_bytes(self, num_programs: int) -> int:
        """The code, and the number of instructions of each program."""
        return _aligned(code_bytes(num_programs)) + super().scratch_bytes(num_programs)

    def prepare(self, device: Device, module: Any, results: int, scratch: int, stream: Any) -> None:
        """Sends the pack's code and the numbers of instructions."""
        device.copy_to_device(scratch, module.code, stream)
        super().prepare(device, module, results, scratch + _aligned(len(module.code)), stream)

    def launch(self, device: Device, loaded: Any, module: Any, results: int, scratch: int, stream: Any) -> None:
        """Starts the task's kernel."""
        params = self.parameters(results, scratch + _aligned(len(module.code)))
        self._kernel.launch(scratch, len(module.rows), params, stream)


def _aligned(num_bytes: int) -> int:
    return -(-num_bytes // 256) * 256


def _num_together(num_programs: int, num_tiles: int, num_multiprocessors: int, num_buffered: int) -> int:
    """Programs that a block runs: many, so that they share inputs, unless there would be too few blocks for the device."""
    most = num_programs * num_tiles // (num_multiprocessors * BLOCKS_PER_MULTIPROCESSOR)
    return max(1, min(most, MAX_TOGETHER) // num_buffered) * num_buffered
