"""CUDA to PTX by NVRTC, NVIDIA's compiler as a library: no driver and no GPU are needed.

Owns the calls to that library, which is optional and loaded by the first call. No file is read: everything that a source may
include is passed along with it. Knows nothing of tasks.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

INSTALL = "pip install 'cuda-bindings==13.0.*' 'nvidia-cuda-nvrtc==13.0.*'"

# Includes are not looked up in the source's folder.
_NO_FILES = "--no-source-include"


class CompileError(Exception):
    """NVRTC rejected CUDA or options; the message is its log, with `file(line): error: ...` for each error."""


class NvrtcMissing(Exception):
    """NVRTC or its bindings are not installed; the message says what to install."""


def version() -> tuple[int, int]:
    """Version of NVRTC, (major, minor). Raises NvrtcMissing."""
    nvrtc = _library()
    major, minor = _ask(nvrtc, nvrtc.nvrtcVersion())
    return int(major), int(minor)


def compile(  # noqa: A001 - as in `re`, it is called by its module's name
    source: bytes, name: str, headers: Mapping[str, bytes], options: Sequence[str]
) -> bytes:
    """The PTX of a source.

    Args:
        name: of the source in errors.
        headers: name -> content of everything that may be included.

    Raises:
        CompileError: NVRTC rejects the source or an option.
        NvrtcMissing: NVRTC is not installed.
        ValueError: source, name, a header or an option holds a NUL.
    """
    nvrtc = _library()
    names = [header.encode() for header in headers]
    arguments = [option.encode() for option in (*options, _NO_FILES)]
    if any(b"\0" in text for text in (source, name.encode(), *headers.values(), *names, *arguments)):
        raise ValueError("CUDA source or options hold a NUL")
    program = _ask(nvrtc, nvrtc.nvrtcCreateProgram(source, name.encode(), len(headers), list(headers.values()), names))
    try:
        (result,) = nvrtc.nvrtcCompileProgram(program, len(arguments), arguments)
        log = _text(nvrtc, program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog)
        if result != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise CompileError(log.decode(errors="replace").strip() or result.name)
        return _text(nvrtc, program, nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _library() -> Any:
    try:
        from cuda.bindings import nvrtc

        nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError) as error:  # RuntimeError: cuda.bindings finds no libnvrtc.so.13
        raise NvrtcMissing(f"NVRTC is missing: {INSTALL}") from error
    return nvrtc


def _text(
    nvrtc: Any, program: Any, size: Callable[[Any], tuple[Any, ...]], get: Callable[[Any, bytes], tuple[Any, ...]]
) -> bytes:
    """A text that NVRTC returns in two calls, without its final NUL."""
    content = bytes(_ask(nvrtc, size(program)))
    _ask(nvrtc, get(program, content))
    return content.rstrip(b"\0")


def _ask(nvrtc: Any, results: tuple[Any, ...]) -> Any:
    """The results of a call that no user input can make fail."""
    result, *values = results
    if result != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise RuntimeError(f"NVRTC: {result.name}")
    return values[0] if len(values) == 1 else values
