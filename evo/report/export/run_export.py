"""Runs exported Python, C and JSON at given points, to see what they compute.

Owns the compiler's call and the loop around exported C. Runs only text that evo has just written. Knows nothing of archives.
"""

from __future__ import annotations

import ctypes
import json
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.errors import UserError
from evo.language.definitions import function_name, python_functions

_COMPILERS = ("cc", "gcc", "clang")
# No fused arithmetic: the bits of the archive.
_OPTIONS = ("-std=c99", "-O2", "-ffp-contract=off", "-shared", "-fPIC")
_COMPILE_SECONDS = 300.0


def run_python(text: str, inputs: list[NDArray[Any]]) -> list[NDArray[Any]]:
    """The outputs of an exported module."""
    namespace: dict[str, Any] = {}
    exec(compile(text, "<export>", "exec"), namespace)
    return [np.asarray(output) for output in namespace["program"](*inputs)]


def run_c(text: str, inputs: list[NDArray[Any]], num_points: int, dtypes: Sequence[Any]) -> list[NDArray[Any]] | None:
    """The outputs of an exported C file; None if there is no compiler.

    Args:
        dtypes: of each output: float64, or any of 4 bytes.

    Raises:
        UserError: the compiler rejects it.
    """
    compiler = next(filter(None, map(shutil.which, _COMPILERS)), None)
    if compiler is None:
        return None
    types = ["float" if array.dtype == np.float32 else "uint32_t" for array in inputs]
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
            raise UserError(f"{compiler}: cannot compile the C export: {error}") from error
        if done.returncode:
            raise UserError(f"{compiler}: rejects the C export: {done.stderr.strip()}")
        run_all = ctypes.CDLL(str(library)).run_all
    arrays = [*(np.ascontiguousarray(array) for array in inputs), *outputs]
    run_all(ctypes.c_uint64(num_points), (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays)))
    return outputs


def run_json(text: str, inputs: list[NDArray[Any]]) -> list[NDArray[Any]]:
    """The outputs of an exported record: bits, or float64 of scaled ones."""
    record = json.loads(text)
    given = {
        name: array.view(np.uint32) if array.dtype == np.int32 else array
        for name, array in zip(record["inputs"], inputs, strict=True)
    }
    values: list[Any] = []
    outputs = []
    with np.errstate(all="ignore"):
        for value in record["values"]:
            if "input" in value:
                values.append(given[value["input"]])
            elif "bits" in value:
                bits = np.uint32(value["bits"])
                as_type = {"f32": bits.view(np.float32), "pred": np.bool_(bits)}
                values.append(as_type.get(value["type"], bits))
            else:
                function = python_functions()[function_name(value["ptx"])]
                values.append(function(*(values[operand] for operand in value["operands"])))
        for name, index in record["outputs"].items():
            output = np.asarray(np.float32(0) if index is None else values[index])
            if scaling := record["scaling"].get(name):
                outputs.append(np.asarray(scaling["offset"] + scaling["scale"] * output.astype(np.float64)))
            else:
                outputs.append(output.view(np.float32))
    return outputs
