"""Kernels that interpret programs, on a device: evo's own and a task's, each with the encoder of its code.

Owns how these kernels are assembled, loaded and launched. `evo.kernel` makes their text, `evo.evaluate.cuda.interpret` sends them
code.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from evo.compile.assembler import assembler_options
from evo.compile.request import assemble
from evo.compile.targets import architecture
from evo.evaluate.cuda.device import INVALID_VALUE, CudaError, Device
from evo.evaluate.cuda.device_inputs import DeviceInputs
from evo.kernel import cuda_header
from evo.kernel import interpreter as kernels
from evo.kernel.cuda_source import interpreting
from evo.kernel.interpreted_program import CODE, TABLE_ALIGNMENT, shared_bytes
from evo.kernel.interpreter import Interpreter
from evo.kernel.interpreter_layout import MAX_POINTS, Layout
from evo.kernel.rollout import Loop
from evo.kernel.template import ENTRY
from evo.language.program import Language
from evo.native import nvptxcompiler
from evo.native.device_code import DeviceEncoder
from evo.storage.disk_cache import DiskCache
from evo.task import Task

# Most programs of a launch, which is a pack: large enough that starting it costs a program next to nothing. At many points and
# in a task's kernel, it is small enough that a batch of a few thousand programs keeps encoding, kernels and scoring busy at once.
MAX_PROGRAMS = 4096
MAX_PROGRAMS_OF_MANY_POINTS = 1024
# Most programs that a block runs on a tile, after which the tile's inputs are read again.
MAX_TOGETHER = 32
# Threads that a multiprocessor should get. 512 to 1,024 run at once; programs differ in length. An estimate, not a measurement.
THREADS_PER_MULTIPROCESSOR = 4096

WORD_BYTES = 4
_WORDS_PER_PROGRAM = 256  # of a pack
_MIN_WORDS = 8192  # of a pack of few programs

_OPTIONS = assembler_options(3)  # assembled once, launched for every pack
_LINE = re.compile(r"line (\d+); error")


class Coding:
    """Encoding of programs for a kernel that interprets them."""

    def __init__(self, language: Language, made: Interpreter):
        layout = made.layout
        self.layout = layout
        self.known = made.cases.names
        inputs = [name for name, _ in language.inputs]
        # An output that is not an input is a register that no program reads before writing it: any vector will do.
        vectors = [inputs.index(name) if name in inputs else layout.first_output for name, _ in language.registers]
        where = (layout.num_inputs, layout.num_slots, layout.num_registers)
        self.encoder = DeviceEncoder(language.lowering, made.cases.numbers, vectors, *where)


class Kernel(Coding):
    """The interpreter kernel on a device, and the encoder for it."""

    def __init__(self, device: Device, language: Language, made: Interpreter, cubin: bytes):
        super().__init__(language, made)
        self._device = device
        self._module = device.load(cubin)
        self._function = device.function(self._module, kernels.ENTRY)
        device.allow_shared_bytes(self._function, self.layout.shared_bytes)

    def launch(
        self, inputs: DeviceInputs, code: int, num_programs: int, results: int, targets: Sequence[int], stream: Any
    ) -> None:
        """Starts the kernel for the programs whose code lies at the address `code`, as in a `CodePack`.

        Args:
            targets: in a kernel that sums, addresses of targets, weights and the targets' own sums.
        """
        tiles = self.layout.num_tiles(inputs.width)
        together = _num_together(num_programs, tiles, self._device.num_multiprocessors, self.layout)
        params: list[np.generic] = [*inputs.addresses, *inputs.strides]
        params += [np.uint64(code + starts_bytes(num_programs)), np.uint64(code), np.uint32(num_programs), np.uint32(together)]
        params += [np.uint32(inputs.width), np.uint64(results), *map(np.uint64, targets), *inputs.counts]
        grid = (tiles, -(-num_programs // together))
        self._device.launch(self._function, grid, self.layout.block_size, params, stream, self.layout.shared_bytes)

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
    device: Device,
    language: Language,
    sums: bool,
    instructions: Collection[str] | None,
    cache: DiskCache | None,
    *,
    is_weighted: bool = False,
    num_points: int = MAX_POINTS,
    loop: Loop | None = None,
    in_registers: bool = False,
) -> Kernel | None:
    """The kernel for programs of a language, or None if there are too many inputs and outputs for it.

    Args:
        sums: whether outputs are summed against targets instead of stored.
        instructions: names of those that programs may use; None: the whole set.
        cache: of cubins; None: nothing is kept.
        is_weighted: in sums, points have weights.
        num_points: the most that it will sum.
        loop: in which programs run; None: once at each point.
        in_registers: vectors are registers, if there is no loop, and few enough inputs, outputs and instructions.
    """

    def make(names: set[str] | None) -> Interpreter | None:
        where = (language, architecture(device.info.target), sums, names)
        made = None
        if in_registers and loop is None:
            made = kernels.interpreter(*where, is_weighted=is_weighted, num_points=num_points, in_registers=True)
        return made or kernels.interpreter(*where, is_weighted=is_weighted, num_points=num_points, loop=loop)

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
        return interpreting(task, language, device.info.target, MAX_PROGRAMS_OF_MANY_POINTS, names, cache)

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
            return kind(device, language, made, cubin_of(made.ptx, device.info.target, cache))
        except nvptxcompiler.CompileError as error:
            # Older GPUs lack some instructions. Programs with these fail to compile too.
            missing = made.instructions_at([int(line) for line in _LINE.findall(error.log)])
            if not missing:
                raise
            names = made.cases.names - missing
    return None


def cubin_of(ptx: str, target: str, cache: DiskCache | None) -> bytes:
    """The cubin of PTX that is launched often, from the cache if it is there."""
    text = "\0".join([kernels.TEMPLATE, str(nvptxcompiler.version()), target, *_OPTIONS, ptx])
    key = hashlib.sha256(text.encode()).hexdigest()
    cubin = cache.get(key) if cache else None
    if cubin is None:
        cubin = assemble(ptx.encode(), target, _OPTIONS)
        if cache:
            cache.put(key, cubin)
    return cubin


def most_words(max_programs: int) -> int:
    """Words of the code of a pack of at most this many programs."""
    return _MIN_WORDS + _WORDS_PER_PROGRAM * max_programs


def code_bytes(max_programs: int) -> int:
    """Bytes of that code."""
    return starts_bytes(max_programs) + WORD_BYTES * most_words(max_programs)


def starts_bytes(num_programs: int) -> int:
    """Bytes of the table of programs' first words, which lies before the code."""
    return -(-num_programs * 4 // TABLE_ALIGNMENT) * TABLE_ALIGNMENT


def _num_together(num_programs: int, num_tiles: int, num_multiprocessors: int, layout: Layout) -> int:
    """Programs that a block runs: many, so that they share inputs, unless there would be too few blocks for the device."""
    most = num_programs * num_tiles * layout.block_size // (num_multiprocessors * THREADS_PER_MULTIPROCESSOR)
    return max(1, min(most, MAX_TOGETHER) // layout.num_buffered) * layout.num_buffered
