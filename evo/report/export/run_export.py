"""Runs exported Python and C at given points, to see what they compute.

Owns the compiler's call and the loop around exported C. `evo.language.parsed` walks Python, so only C becomes machine code. Knows
nothing of archives.
"""

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.errors import UserError
from evo.language.definitions import NUMPY
from evo.language.parsed import statements

_COMPILERS = ("cc", "gcc", "clang")
# No fused arithmetic: the bits of the archive.
_OPTIONS = ("-std=c99", "-O2", "-ffp-contract=off", "-shared", "-fPIC")
_COMPILE_SECONDS = 300.0


def run_python(text: str, inputs: list[NDArray[Any]]) -> list[NDArray[Any]]:
    """The outputs of an exported module."""
    variables: dict[str, Any] = {}
    statements(text, NUMPY)(variables)
    with np.errstate(all="ignore"):
        return [np.asarray(output) for output in variables["program"](*inputs)]


def run_c(text: str, inputs: list[NDArray[Any]], num_points: int, dtypes: Sequence[Any]) -> list[NDArray[Any]] | None:
    """The outputs of an exported C file; None if there is no compiler.

    Args:
        inputs: each float64, float32 or of integers.
        dtypes: of each output: float64, or any of 4 bytes.

    Raises:
        UserError: the compiler rejects it.
    """
    compiler = next(filter(None, map(shutil.which, _COMPILERS)), None)
    if compiler is None:
        return None
    types = [{"float32": "float", "float64": "double"}.get(array.dtype.name, "uint32_t") for array in inputs]
    arguments = [f"(({kind} *)a[{i}])[i]" for i, kind in enumerate(types)]
    outputs = [np.zeros(num_points, dtype) for dtype in dtypes]
    arguments += [f"(void *)((char *)a[{len(inputs) + i}] + {array.itemsize} * i)" for i, array in enumerate(outputs)]
    loop = f"void run_all(uint64_t n, void **a) {{ for (uint64_t i = 0; i < n; i++) program({', '.join(arguments)}); }}\n"
    # A library that is loaded stays loaded; its file may go.
    with tempfile.TemporaryDirectory(prefix="evo-export-") as folder:
        source, library = Path(folder, "export.c"), Path(folder, "export.so")
        source.write_text(f"{text}\n{loop}")
        command = [compiler, *_OPTIONS, str(source), "-o", str(library), "-lm"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_COMPILE_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise UserError(f"cannot compile the C export: {error}", compiler) from error
        if done.returncode:
            raise UserError(f"rejects the C export: {done.stderr.strip()}", compiler)
        run_all = ctypes.CDLL(str(library)).run_all
    arrays = [*(np.ascontiguousarray(array) for array in inputs), *outputs]
    run_all(ctypes.c_uint64(num_points), (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays)))
    return outputs
