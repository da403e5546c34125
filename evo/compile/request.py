"""One compile request: programs, language, kernel template and target in, a cubin or a failure out.

Owns the request, the function that fulfils it, and the interface of what has requests fulfilled. The function is pure: it reads
no file and no environment, so it can run anywhere. Knows nothing of pools, caches or retries.
"""

from __future__ import annotations

import hashlib
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import ParamSpec, TypeAlias, TypeVar

import numpy as np

from evo.compile.assembler import DEFAULT_OPTIONS, compiler_options
from evo.compile.language import decode_language
from evo.compile.targets import architecture, is_assembled_by_driver
from evo.errors import FailureKind
from evo.instructions import ABI_VERSION
from evo.kernel import pointwise
from evo.kernel.template import POINTWISE, fill_sites, task_ptx
from evo.native import nvptxcompiler
from evo.native.ptx_inject import AnnotatedPtx
from evo.native.stack_ptx import HASH_VERSION, Lowering
from evo.native.stack_ptx_words import WordType

# Part of every cubin's cache key. Change it when equal programs get other stubs.
_STUBS = "stubs-1"

_HASH_BYTES = 16
_P = ParamSpec("_P")
_T = TypeVar("_T")
_UNROUNDED = re.compile(rb"\b(add|sub|mul)((?:\.ftz)?(?:\.sat)?\.f(?:32|64))\b")


@dataclass(frozen=True)
class CompileRequest:
    """Programs to compile into one module.

    words, lengths, hashes: of `pack_programs`: the programs one after the other, each up to its RETURN, 8 bytes a word,
    little-endian; words of each program, 4 bytes each; canonical hashes, 16 bytes each. language: of `encode_language`.
    target: of `evo.compile.targets`; options: further options of ptxas. template: the content of a `KernelTemplate`; a task's own
    kernel has sites for all programs.
    """

    words: bytes
    lengths: bytes
    hashes: bytes
    language: bytes
    target: str
    sites_per_kernel: int
    options: tuple[str, ...] = DEFAULT_OPTIONS
    template: bytes = POINTWISE.content

    @property
    def num_programs(self) -> int:
        """The number of programs, at least one."""
        return len(self.hashes) // _HASH_BYTES

    @property
    def kernel_sizes(self) -> tuple[int, ...]:
        """Sites of each kernel of the module; programs fill them in order."""
        return kernel_sizes(self.num_programs, self.sites_per_kernel)

    def subset(self, start: int, stop: int) -> CompileRequest:
        """The request for programs `start` to `stop` - 1."""
        lengths = np.frombuffer(self.lengths, "<u4")
        ends = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]) * 8
        return replace(
            self,
            words=self.words[ends[start] : ends[stop]],
            lengths=lengths[start:stop].tobytes(),
            hashes=self.hashes[start * _HASH_BYTES : stop * _HASH_BYTES],
        )

    def cache_key(self) -> str:
        """Hex digits, equal for requests whose cubins mean the same.

        They hash everything but the words, which the programs' hashes stand for.
        """
        digest = hashlib.sha256()
        version = f"nvPTXCompiler {_compiler_version()}"
        texts = [version, _STUBS, self.target, str(self.sites_per_kernel), *self.options]
        for part in [*(text.encode() for text in texts), self.template, self.language, self.hashes]:
            digest.update(len(part).to_bytes(8, "little"))
            digest.update(part)
        return digest.hexdigest()


@dataclass(frozen=True)
class Compiled:
    """A module. compiler_s: seconds inside nvPTXCompiler; emission_s: seconds spent on the PTX before."""

    cubin: bytes
    compiler_s: float = field(default=0.0, compare=False)
    emission_s: float = field(default=0.0, compare=False)


@dataclass(frozen=True)
class CompileFailure:
    """Why there is no module. log: the compiler's messages, if there are any."""

    kind: FailureKind
    log: str


Outcome: TypeAlias = Compiled | CompileFailure
Fulfil: TypeAlias = Callable[[CompileRequest], Outcome]


class CompileExecutor(Executor, ABC):
    """Executor of compile requests, of concurrent.futures.

    Its futures raise TimeoutError after a time limit and BrokenExecutor after the death of a process. fills_cache: whether its
    cubins may be kept for later runs.
    """

    fills_cache = True

    @property
    @abstractmethod
    def num_workers(self) -> int:
        """Requests that it fulfils at once, now."""

    def status(self) -> dict[str, int]:
        """Status of the workers, if they are elsewhere."""
        return {}

    def __exit__(self, exception_type: type[BaseException] | None, *_: object) -> None:
        # After an exception, such as Ctrl-C, nobody waits for the results.
        self.shutdown(cancel_futures=exception_type is not None)


class InLine(CompileExecutor):
    """Fulfils a request when it is submitted, on the calling thread."""

    num_workers = 1

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """Makes the call."""
        future: Future[_T] = Future()
        future.set_running_or_notify_cancel()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - an executor hands on whatever a call raises
            future.set_exception(error)
        return future


def toolchain() -> dict[str, str]:
    """Versions of all that decides a request's cubin. Machines with the same ones make the same."""
    return {
        "nvPTXCompiler": _compiler_version(),
        "stubs": _STUBS,
        "kernel template": pointwise.TEMPLATE,
        "instruction sets": str(ABI_VERSION),
        "program hashes": str(HASH_VERSION),
    }


def compile_request(request: CompileRequest) -> Outcome:
    """Emits the stubs, puts them into the template and assembles it."""
    start = time.perf_counter()
    ptx = render(request)
    rendered = time.perf_counter()
    try:
        cubin = assemble(ptx, request.target, request.options)
    except nvptxcompiler.CompileError as error:
        return CompileFailure(FailureKind.REJECTED, str(error))
    return Compiled(cubin, time.perf_counter() - rendered, rendered - start)


def assemble(ptx: bytes, target: str, options: tuple[str, ...]) -> bytes:
    """Assemble the image that a driver loads: a cubin, or PTX for a target that the driver assembles.

    Raises:
        CompileError: of nvPTXCompiler. It reads PTX for the driver as well, so that what it refuses is not a fault of the device.
    """
    cubin = nvptxcompiler.compile(ptx, compiler_options(target, options))
    if not is_assembled_by_driver(target):
        return cubin
    # The driver has no --fmad=false, but does not fuse instructions that say how they round.
    return _UNROUNDED.sub(rb"\1.rn\2", ptx) + b"\0"


def render(request: CompileRequest) -> bytes:
    """The PTX of a request's module."""
    stubs = _lowering(request.language).emit(_rows(request))
    if request.template == POINTWISE.content:
        return fill_sites(_pointwise_sites(request.language, request.kernel_sizes, architecture(request.target)), stubs)
    return fill_sites(_task_sites(request.template), stubs)


def pack_programs(words: np.ndarray, hashes: np.ndarray) -> tuple[bytes, bytes, bytes]:
    """The `words`, `lengths` and `hashes` of a request.

    Args:
        words: `(num_programs, max_length)` uint64; hashes: `(num_programs, 2)` uint64, of `Lowering.analyze`.
    """
    returns = (words & np.uint64(0xFFFF)) == WordType.RETURN
    lengths = np.where(returns.any(1), returns.argmax(1), words.shape[1])
    used = words[np.arange(words.shape[1]) < lengths[:, None]]
    return used.astype("<u8").tobytes(), lengths.astype("<u4").tobytes(), hashes.astype("<u8").tobytes()


def kernel_sizes(num_programs: int, sites_per_kernel: int) -> tuple[int, ...]:
    """Sites of each kernel: as few kernels as possible, with sizes that differ by at most one."""
    num_kernels = -(-num_programs // sites_per_kernel)
    return tuple(num_programs // num_kernels + (i < num_programs % num_kernels) for i in range(num_kernels))


def _compiler_version() -> str:
    return ".".join(map(str, nvptxcompiler.version()))


def _rows(request: CompileRequest) -> np.ndarray:
    lengths = np.frombuffer(request.lengths, "<u4")
    rows = np.full((len(lengths), int(lengths.max()) + 1), WordType.RETURN, np.uint64)
    rows[np.arange(rows.shape[1]) < lengths[:, None]] = np.frombuffer(request.words, "<u8")
    return rows


@lru_cache(maxsize=16)
def _lowering(language: bytes) -> Lowering:
    return pointwise.site_lowering(decode_language(language))


# A search uses few sizes over and over; a template of 1,024 sites is about 400 KB.
@lru_cache(maxsize=16)
def _pointwise_sites(language: bytes, sizes: tuple[int, ...], target: str) -> AnnotatedPtx:
    return AnnotatedPtx(pointwise.annotated_ptx(decode_language(language), sizes, target))


@lru_cache(maxsize=2)
def _task_sites(template: bytes) -> AnnotatedPtx:
    return AnnotatedPtx(task_ptx(template))
