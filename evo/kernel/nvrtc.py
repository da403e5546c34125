"""CUDA to PTX by NVRTC, NVIDIA's compiler as a library: no driver and no GPU are needed.

Owns the calls to that library, which is loaded at the first and need not be there, and that no file is read: all that a source
may include is given with it. Knows nothing of tasks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType

INSTALL = "pip install 'cuda-bindings==13.0.*' 'nvidia-cuda-nvrtc==13.0.*'"

# The folder of a source is no place to look for what it includes.
_NO_FILES = "--no-source-include"


class CompileError(Exception):
    """CUDA or options that NVRTC did not accept; the message is its log, `file(line): error: ...` for each error."""


class NvrtcMissing(Exception):
    """NVRTC or its bindings are not installed; the message says what to install."""


def version() -> tuple[int, int]:
    """Version of NVRTC, (major, minor). Raises NvrtcMissing."""
    nvrtc = _library()
    return tuple(_ask(nvrtc, nvrtc.nvrtcVersion()))


def compile(source: bytes, name: str, headers: Mapping[str, bytes], options: Sequence[str]) -> bytes:
    """The PTX of a source.

    Args:
        name: what errors call the source. headers: name -> content of all that may be included.

    Raises:
        CompileError: NVRTC does not accept this.
        NvrtcMissing: there is no NVRTC.
        ValueError: a NUL in source, name, header or option.
    """
    nvrtc = _library()
    names = [header.encode() for header in headers]
    arguments = [option.encode() for option in (*options, _NO_FILES)]
    if any(b"\0" in text for text in (source, name.encode(), *headers.values(), *names, *arguments)):
        raise ValueError("a NUL in CUDA source or options")
    program = _ask(nvrtc, nvrtc.nvrtcCreateProgram(source, name.encode(), len(headers), list(headers.values()), names))
    try:
        (result,) = nvrtc.nvrtcCompileProgram(program, len(arguments), arguments)
        log = _text(nvrtc, program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog)
        if result != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise CompileError(log.decode(errors="replace").strip() or result.name)
        return _text(nvrtc, program, nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _library() -> ModuleType:
    try:
        from cuda.bindings import nvrtc

        nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError) as error:  # RuntimeError: how cuda.bindings says that it finds no libnvrtc.so.13
        raise NvrtcMissing(f"NVRTC is missing: {INSTALL}") from error
    return nvrtc


def _text(nvrtc: ModuleType, program, size, get) -> bytes:
    """What NVRTC gives in two calls, without the NUL at its end."""
    content = bytes(_ask(nvrtc, size(program)))
    _ask(nvrtc, get(program, content))
    return content.rstrip(b"\0")


def _ask(nvrtc: ModuleType, results: tuple):
    """The values of a call that cannot fail for what a user gives."""
    result, *values = results
    if result != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise RuntimeError(f"NVRTC: {result.name}")
    return values[0] if len(values) == 1 else values
