"""A task's own kernel: `kernel.cu` in the task's folder, compiled to annotated PTX.

Owns the contract with that file and the messages about errors in it. A task with its own kernel is scored on the GPU, and its
outputs are not copied back for `Task.score`:

    #include "evo.cuh"

    extern "C" __global__ void evaluate(EvoPoints points, const int* num_instructions, double* scores) {
        const unsigned int site = blockIdx.y;
        for (unsigned int i = threadIdx.x; i < points.num_points; i += EVO_BLOCK_SIZE) {
            float v;
            evo_program(site, points.x(i), points.y(i), v);
            ...
        }
        if (threadIdx.x == 0) scores[(1 + EVO_NUM_MEASURES) * site] = ...;
    }

Launch: grid (1, number of programs), blocks of EVO_BLOCK_SIZE threads, no dynamic shared memory. The block of a program writes
1 + EVO_NUM_MEASURES values: the objective, then the measures in the task's order. They equal those of the task's `score` within a
tolerance that the task states, and are summed in an order that depends on the points alone. A value that is not finite rejects
the program. `num_instructions` has one value for each program. A task with `kernel_sums` gets that many values instead, and its
`score_sums` makes the scores.

evo.cuh (`evo.kernel.cuda_header`) is generated for the task and defines

    EVO_BLOCK_SIZE, EVO_NUM_MEASURES    and EVO_NUM_RESULTS, the values of a program; EVO_NUM_SITES, the most programs of a launch
    EvoPoints      `num_points`, and for each input a function of the same name that returns its value at a point
    evo_program(site, inputs..., outputs&...)    runs the site's program; inputs and outputs in the task's order. It may be called
                   anywhere and any number of times, even in loops that the compiler unrolls. Outputs that a program leaves no
                   value for are zero

The task's `kernel_defines` become macros. Beside evo.cuh the file may include the `.cuh` files of its folder, by their paths from
there, and nothing else: everything that decides the outcome is known before compilation.
"""

import hashlib
import math
import re
from collections.abc import Collection, Mapping
from numbers import Integral, Real
from pathlib import Path

from evo.errors import UserError, os_errors_as
from evo.kernel import nvrtc
from evo.kernel.cuda_header import HEADER_NAME, header
from evo.kernel.interpreted_program import CODE
from evo.kernel.interpreter import Interpreter
from evo.kernel.interpreter_cases import cases_of
from evo.kernel.interpreter_layout import layout_of
from evo.kernel.template import ENTRY, POINTWISE, KernelTemplate, task_template
from evo.language.program import Language
from evo.native import nvptxcompiler
from evo.native.ptx_inject import AnnotatedPtx
from evo.storage.disk_cache import DiskCache
from evo.storage.files import read_file
from evo.task import Task
from evo.tasks.answers import num_kernel_results, task_kernel

# Without --fmad=false the compiler would fuse a kernel's multiplications and additions: other bits than in `score`.
_OPTIONS = ("--fmad=false",)

_ERROR = re.compile(r"^(?P<file>[^\n]+?)\((?P<line>\d+)\): (?:catastrophic )?error(?: #[\w-]+)?: (?P<message>.+)$", re.MULTILINE)
_ABSOLUTE = re.compile(rb"^[ \t]*#[ \t]*include[ \t]*[\"<](/[^\">\n]*)", re.MULTILINE)
# NVRTC hides variables of a module that it knows as a whole.
_CODE = re.compile(rf"^\.global [^\n]*\b{CODE};$", re.MULTILINE)
_MACRO = re.compile(r"(?!evo_|EVO_)[A-Za-z_][A-Za-z0-9_]*")


def template_of(task: Task, language: Language, target: str, num_sites: int, cache: DiskCache | None = None) -> KernelTemplate:
    """The template for evaluating a task on the GPU: the task's own kernel, or the pointwise one if it has none
    that serves its options, or does not need one and NVRTC is missing.

    Args:
        target: such as `sm_90`, or `compute_90`.
        num_sites: most programs of a module with the task's own kernel.
        cache: of PTX; None: nothing is kept.

    Raises:
        UserError: kernel.cu or `kernel_defines` is wrong, or NVRTC is missing and the task needs it.
    """
    kernel = task_kernel(task)
    if kernel is None or why_left_out(task):
        return POINTWISE
    path, _ = kernel
    ptx = _ptx(*kernel, header(language, num_sites, len(task.measures), num_kernel_results(task)), target, cache)
    if len(AnnotatedPtx(ptx).injects) < num_sites:
        raise _no_program(path)
    return task_template(ptx, num_sites)


def why_left_out(task: Task) -> str | None:
    """Why a task's own kernel, which it does not need, is not used; None: it is, or there is none."""
    kernel = task_kernel(task)
    if kernel is None or task.needs_kernel:
        return None
    try:
        nvrtc.version()
    except nvrtc.NvrtcMissing as error:
        return f"{kernel[0]}: {error}; without it all outputs are copied back and scored on the CPU, which takes longer"
    return None


def interpreting(
    task: Task,
    language: Language,
    target: str,
    num_sites: int,
    instructions: Collection[str] | None = None,
    cache: DiskCache | None = None,
) -> Interpreter | None:
    """The task's own kernel, with an `evo_program` that interprets (`evo.kernel.interpreted_program`).

    Args:
        target, cache: as of `template_of`.
        num_sites: most programs of a launch.
        instructions: names of those that programs may use; None: the whole set.

    Returns:
        None if there are too many inputs and outputs.

    Raises:
        UserError: as of `template_of`.
    """
    kernel, layout = task_kernel(task), layout_of(language, sums=False)
    assert kernel, "the task has a kernel"
    if layout is None:
        return None
    cases = cases_of(language.instruction_set, instructions)
    text = header(language, num_sites, len(task.measures), num_kernel_results(task), (layout, cases))
    ptx = _ptx(*kernel, text, target, cache).decode()
    if "brx.idx" not in ptx:  # NVRTC drops functions without calls
        raise _no_program(kernel[0])
    return Interpreter(_CODE.sub(r".visible \g<0>", ptx), layout, cases)


def _ptx(path: Path, defines: Mapping[str, int | float | str], header: str, target: str, cache: DiskCache | None) -> bytes:
    texts = {**_folder_headers(path), HEADER_NAME: header.encode()}
    options = (f"--gpu-architecture={target.replace('sm_', 'compute_')}", *_OPTIONS, *_macros(path, defines))
    ptx = compiled(path, _read(path), texts, options, cache)
    if f".entry {ENTRY}(".encode() not in ptx:
        raise UserError(f"must define {ENTRY}, which {HEADER_NAME} declares", path)
    return ptx


def _no_program(path: Path) -> UserError:
    return UserError(f"{ENTRY} must call evo_program, and its scores must depend on the outputs", path)


def compiled(path: Path, source: bytes, headers: Mapping[str, bytes], options: tuple[str, ...], cache: DiskCache | None) -> bytes:
    """The PTX of a source, which may include the headers. Raises UserError: it is wrong, or NVRTC is missing or too new."""
    try:
        compiler_version = nvrtc.version()
        _check_version(path, compiler_version)
        key = _key(source, headers, options, compiler_version)
        ptx = cache.get(key) if cache else None
        if ptx is None:
            ptx = nvrtc.compile(source, path.name, headers, options)
            if cache:
                cache.put(key, ptx)
        return ptx
    except nvrtc.NvrtcMissing as error:
        raise UserError(error, path) from error
    except nvrtc.CompileError as error:
        raise _user_error(path, str(error)) from error


def _user_error(path: Path, log: str) -> UserError:
    """The first error as `file:line: message`, with the whole log as a note."""
    match = _ERROR.search(log)
    if match is None:
        message = f"{path}: {log.splitlines()[0]}"
    else:
        file = match["file"] if match["file"] == HEADER_NAME else path.parent / match["file"]
        message = f"{file}:{match['line']}: {match['message']}"
    error = UserError(message)
    error.add_note(log)
    return error


def _key(source: bytes, headers: Mapping[str, bytes], options: tuple[str, ...], compiler_version: tuple[int, int]) -> str:
    digest = hashlib.sha256()
    parts = [f"NVRTC {compiler_version}".encode(), source, *(option.encode() for option in options), b"headers"]
    for part in [*parts, *(part for name in sorted(headers) for part in (name.encode(), headers[name]))]:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()


def _check_version(path: Path, compiler_version: tuple[int, int]) -> None:
    """An assembler does not understand the PTX of a newer compiler."""
    if compiler_version > nvptxcompiler.version():
        newer, older = (".".join(map(str, version)) for version in (compiler_version, nvptxcompiler.version()))
        raise UserError(f"NVRTC {newer} is newer than the assembler, {older}: {nvrtc.INSTALL}", path)


def _folder_headers(path: Path) -> dict[str, bytes]:
    files = sorted(file for file in path.parent.rglob("*.cuh") if file.is_file())
    return {file.relative_to(path.parent).as_posix(): _read(file) for file in files}


def _read(path: Path) -> bytes:
    with os_errors_as(f"{path}: cannot be read"):
        content = read_file(path)
    if b"\0" in content:
        raise UserError(f"{path}:{_line(content, content.index(0))}: holds a NUL, must be text")
    absolute = _ABSOLUTE.search(content)
    if absolute:  # NVRTC would read such a file
        location = f"{path}:{_line(content, absolute.start(1))}"
        name = absolute[1].decode(errors="replace")
        raise UserError(f"'{name}' is not among {HEADER_NAME} and the .cuh files of the folder", location)
    return content


def _line(content: bytes, position: int) -> int:
    return content.count(b"\n", 0, position) + 1


def _macros(path: Path, defines: Mapping[str, int | float | str]) -> list[str]:
    """Write macros as options of NVRTC."""
    if not isinstance(defines, Mapping):
        raise UserError(f"kernel_defines() must return a dict of name -> number or text, got {type(defines).__name__}", path)
    options = []
    for name, value in defines.items():
        if not isinstance(name, str) or not _MACRO.fullmatch(name):
            raise UserError(
                f"kernel_defines()[{name!r}]: not a macro name (letters, digits and _; not beginning with EVO_)", path
            )
        if isinstance(value, Integral):
            text = str(int(value))
        elif isinstance(value, Real) and math.isfinite(value):
            text = repr(float(value))
        elif isinstance(value, str) and value.isprintable():
            text = value
        else:
            raise UserError(f"kernel_defines()['{name}'] is {value!r}, must be a finite number or one line of text", path)
        options.append(f"--define-macro={name}={text}")
    return options
