"""Runs exported Python, C, PyTorch, JAX, Triton, Julia, Excel and JSON at given points, to see what they compute.

Owns the compiler's call, the loop around exported C, and stand-ins for Triton, which needs a GPU, for JAX, Julia and Excel.
`evo.language.parsed` walks exports, so only C becomes machine code. Knows nothing of archives.
"""

import ast
import ctypes
import json
import math
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.errors import UserError
from evo.instructions import MOVE
from evo.language.definitions import NUMPY, function_name, python_functions
from evo.language.expression import REAL
from evo.language.formula import FUNCTIONS, compiled
from evo.language.parsed import closure, statements

_TORCH, _TRITON, _JULIA, _EXCEL = 2, 3, 4, 5  # columns of FUNCTIONS
_COMPILERS = ("cc", "gcc", "clang")
# No fused arithmetic: the bits of the archive.
_OPTIONS = ("-std=c99", "-O2", "-ffp-contract=off", "-shared", "-fPIC")
_COMPILE_SECONDS = 300.0
_ROUNDED = re.compile(r"(?<=^add|^sub|^mul)\.rn\.")  # which exports add


def run_python(text: str, inputs: list[NDArray[Any]]) -> list[NDArray[Any]]:
    """The outputs of an exported module."""
    with np.errstate(all="ignore"):
        return [np.asarray(output) for output in _program(text, NUMPY)(*inputs)]


def _program(text: str, names: dict[str, Any]) -> Callable[..., Any]:
    variables: dict[str, Any] = {}
    statements(text, names)(variables)
    program: Callable[..., Any] = variables["program"]
    return program


def run_torch(text: str, inputs: list[NDArray[Any]]) -> list[NDArray[Any]] | None:
    """The outputs of an exported module for PyTorch, in float64; None if there is no PyTorch."""
    if find_spec("torch") is None:
        return None
    import torch

    own = [row[_TORCH] for row in FUNCTIONS.values() if row[_TORCH].startswith("torch.")]
    own += [f"torch.{name}" for name in ("Tensor", "copysign", "float32", "full_like", "promote_types", "zeros_like")]
    names = {name: getattr(torch, name.removeprefix("torch.")) for name in own}
    names |= {"abs": abs, "float": float, "isinstance": isinstance, "math.copysign": math.copysign}
    return [each.numpy() for each in _program(text, names)(*(torch.from_numpy(array.astype(np.float64)) for array in inputs))]


def run_jax(text: str, inputs: list[NDArray[Any]]) -> list[NDArray[Any]]:
    """The outputs of an exported module for JAX, by NumPy's functions of the same names, in float64."""
    return run_python(text.replace("jnp.", "np."), [each.astype(np.float64) for each in inputs])


def run_julia(text: str, inputs: list[NDArray[Any]]) -> list[NDArray[Any]]:
    """The outputs of an exported function for Julia: Python reads its lines too, and NumPy's functions stand in for Julia's."""
    body = text.rpartition("\nfunction program(")[2]
    names = dict(zip(body.partition(")")[0].split(", "), (each.astype(np.float64) for each in inputs), strict=True))
    *lines, returned = (line.strip() for line in body.partition("\n")[2].removesuffix("end\n").splitlines())
    [found] = statements("\n".join([*lines, f"{returned},"]), _stand_ins(_JULIA))(names)
    return [np.asarray(each) for each in found]


def run_excel(text: str, inputs: list[NDArray[Any]]) -> list[NDArray[Any]]:
    """The outputs of exported formulas for Excel: NumPy's functions stand in for Excel's."""
    pairs = re.findall(r"(\w+2) = ", text.rpartition("For row 2: ")[2].partition(". Paste")[0])
    cells = dict(zip(pairs, (each.astype(np.float64) for each in inputs), strict=True))
    functions = _stand_ins(_EXCEL) | {"LOG": lambda a, base: np.log2(a) / np.log2(base)}
    for name in ("COPYSIGN", "EXP2", "LOG2"):  # which Excel lacks
        del functions[name]
    found = []
    for formula in text.splitlines()[-1].split("\t"):
        tree = ast.parse(formula.removeprefix("="), mode="eval").body
        parts = tree.args if isinstance(tree, ast.Call) and ast.unparse(tree.func) == "LET" else [tree]
        names = dict(cells)
        for variable, value in zip(parts[:-1:2], parts[1:-1:2], strict=True):
            names[ast.unparse(variable)] = closure(value, functions)(names)
        found.append(np.asarray(closure(parts[-1], functions)(names)))
    return found


def _stand_ins(language: int) -> dict[str, Any]:
    """NumPy's functions by their names in a language (a column of `evo.language.formula.FUNCTIONS`)."""
    return {names[language]: getattr(np, names[0].removeprefix("np.")) for names in FUNCTIONS.values()}


def run_triton(text: str, inputs: list[NDArray[Any]]) -> list[NDArray[Any]]:
    """The outputs of an exported module for Triton: NumPy's functions and instructions' definitions stand in for it."""

    def inline_asm_elementwise(code: str, _constraints: str, operands: list[Any], *, dtype: Any, **_options: Any) -> Any:
        values: dict[str, Any] = {f"${i}": operand for i, operand in enumerate(operands, 1)}
        for statement in code.strip("{} ").split(";")[:-1]:
            opcode, _, rest = statement.strip().partition(" ")
            if opcode != ".reg":
                target, *names = rest.split(", ")
                immediates = [f" {name}" for name in names if name.startswith("0x")]
                given = [values[n] if n in values else np.uint32(n) for n in names[: len(names) - len(immediates)]]
                function = function_name(_ROUNDED.sub(".", opcode) + "".join(immediates))
                values[target] = given[0].view(dtype) if opcode == MOVE else python_functions()[function](*given)
        return np.asarray(values["$0"], dtype)

    names = _stand_ins(_TRITON) | {f"tl.{name}": getattr(np, name) for name in ("float32", "float64", "uint32", "uint64")}
    names |= {"tl.inline_asm_elementwise": inline_asm_elementwise, "tl.cast": lambda a, kind: np.asarray(a).astype(kind)}
    names["float"] = float
    with np.errstate(all="ignore"):
        outputs = _program(text.replace("@triton.jit\n", ""), names)(*inputs)
    return [np.asarray(each) for each in (outputs if isinstance(outputs, tuple) else (outputs,))]


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
            raise UserError(f"{compiler}: cannot compile the C export: {error}") from error
        if done.returncode:
            raise UserError(f"{compiler}: rejects the C export: {done.stderr.strip()}")
        run_all = ctypes.CDLL(str(library)).run_all
    arrays = [*(np.ascontiguousarray(array) for array in inputs), *outputs]
    run_all(ctypes.c_uint64(num_points), (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays)))
    return outputs


def run_json(text: str, inputs: list[NDArray[Any]]) -> list[NDArray[Any]]:
    """The outputs of an exported record: bits, or float64 of real numbers."""
    record = json.loads(text)
    given = {
        name: array.view(np.uint32) if array.dtype == np.int32 else array
        for name, array in zip(record["inputs"], inputs, strict=True)
    }
    dtypes = {REAL: np.float64, "f32": np.float32, "pred": np.bool_}
    values: list[Any] = []
    with np.errstate(all="ignore"):
        for value in record["values"]:
            as_type = dtypes.get(value["type"], np.uint32)
            if "input" in value:
                values.append(given[value["input"]].astype(as_type))
            elif "bits" in value:
                bits = np.uint32(value["bits"])
                values.append(bits.view(np.float32) if value["type"] == "f32" else as_type(bits))
            elif "value" in value:
                values.append(np.float64(value["value"]))
            else:
                operands, is_real = [values[operand] for operand in value["operands"]], "formula" in value
                if is_real:
                    found = compiled(value["formula"])(*operands)
                elif value["ptx"] == MOVE:
                    found = operands[0].view(as_type)
                else:
                    found = python_functions()[function_name(value["ptx"])](*operands)
                values.append(np.asarray(found, as_type) if is_real else found)
    outputs = [np.asarray(np.float32(0) if index is None else values[index]) for index in record["outputs"].values()]
    return [output if output.dtype == np.float64 else output.view(np.float32) for output in outputs]
