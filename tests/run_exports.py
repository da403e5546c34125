"""Runs the exports that evo writes: Python, C, SymPy, PyTorch, Triton by NumPy, JSON and spreadsheets."""

import csv
import ctypes
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from functools import cache, reduce
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from processes import LIMIT_S

from evo.errors import UserError
from evo.language.definitions import NUMPY, function_name, python_definitions
from evo.language.parsed import statements
from evo.report.export import sympy_text

MOVE = "mov.b32"
_OTHER_NAMES = {"max": "fmax", "min": "fmin", "pow": "power", "round": "rint", "select": "where"}
_SAME_NAMES = ("abs", "copysign", "cos", "exp", "exp2", "floor", "log", "log10", "log2", "rint", "sin", "sqrt", "tanh")
OF_FORMULAS = {name: getattr(np, name) for name in _SAME_NAMES} | {name: getattr(np, own) for name, own in _OTHER_NAMES.items()}


@cache
def python_functions() -> dict[str, Any]:
    """The definitions that exported Python consists of."""
    found: dict[str, Any] = {}
    exec("\n\n".join(["import numpy as np\nfrom typing import Any", *python_definitions().texts.values()]), found)
    return found


def as_c(text: str) -> str:
    """CUDA without instructions, for a compiler of C."""
    return "#include <math.h>\n#include <stdbool.h>\n#include <stdint.h>\n" + text.replace("__device__ __forceinline__", "inline")


def _outputs(text: str, names: dict[str, Any], inputs: list[Any]) -> list[Any]:
    exec(text, names)
    with np.errstate(all="ignore"):
        outputs = names["program"](*inputs)
    return [*outputs] if isinstance(outputs, tuple) else [outputs]


def run_torch(text: str, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """The outputs in float64."""
    torch = pytest.importorskip("torch")
    return [each.numpy() for each in _outputs(text, {}, [torch.from_numpy(each.astype(np.float64)) for each in inputs])]


def _assembly(code: str, _constraints: str, operands: list[Any], *, dtype: Any, **_options: Any) -> Any:
    values: dict[str, Any] = {f"${i}": operand for i, operand in enumerate(operands, 1)}
    for statement in code.strip("{} ").split(";")[:-1]:
        opcode, _, rest = statement.strip().partition(" ")
        if opcode != ".reg":
            target, *names = rest.split(", ")
            immediates = [f" {name}" for name in names if name.startswith("0x")]
            given = [values[n] if n in values else np.uint32(n) for n in names[: len(names) - len(immediates)]]
            opcode = re.sub(r"(?<=^add|^sub|^mul)\.rn\.", ".", opcode)  # which exports add
            function = python_functions().get(function_name(opcode + "".join(immediates)))
            values[target] = given[0].view(dtype) if opcode == MOVE else function(*given)
    return np.asarray(values["$0"], dtype)


def run_triton(text: str, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """The outputs by NumPy in place of Triton."""
    tl = SimpleNamespace(inline_asm_elementwise=_assembly, cast=lambda a, kind: np.asarray(a).astype(kind))
    vars(tl).update({name: getattr(np, name) for name in "float32 float64 uint32 uint64 where".split()})
    vars(tl).update(OF_FORMULAS | {"maximum": np.fmax, "minimum": np.fmin})
    names = {"tl": tl, "libdevice": tl, "triton": SimpleNamespace(jit=lambda function: function)}
    outputs = _outputs(re.sub(r"^(import|from) .*$", "", text, flags=re.MULTILINE), names, inputs)
    return [np.asarray(each) for each in outputs]


def run_json(text: str, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """The outputs of a record: bits, or float64 of real numbers."""
    record = json.loads(text)
    as_words = [array.view(np.uint32) if array.dtype == np.int32 else array for array in inputs]
    given = dict(zip(record["inputs"], as_words, strict=True))
    dtypes = {"real": np.float64, "f32": np.float32, "pred": np.bool_}
    values: list[Any] = []
    with np.errstate(all="ignore"):
        for value in record["values"]:
            kind = dtypes.get(value["type"], np.uint32)
            operands = [values[operand] for operand in value.get("operands", ())]
            match value:
                case {"input": name}:
                    found = given[name].astype(kind)
                case {"bits": bits}:
                    found = np.uint32(bits).view(kind) if kind is np.float32 else kind(bits)
                case {"formula": text}:
                    found = np.asarray(eval(text, OF_FORMULAS | dict(zip("abc", operands, strict=False))), kind)
                case {"ptx": text}:
                    found = operands[0].view(kind) if text == MOVE else python_functions()[function_name(text)](*operands)
                case {"value": number}:
                    found = np.float64(number)
            values.append(found)
    outputs = [np.asarray(np.float32(0) if index is None else values[index]) for index in record["outputs"].values()]
    return [output if output.dtype == np.float64 else output.view(np.float32) for output in outputs]


def run_excel(texts: list[str], inputs: list[np.ndarray], folder: Path) -> list[np.ndarray]:
    """The outputs of all texts by LibreOffice, with their formulas filled down beside the inputs; NaN for an error."""
    if shutil.which("soffice") is None:
        pytest.skip("needs LibreOffice: apt-get install libreoffice-calc")
    formulas = [formula for text in texts for formula in text.splitlines()[-1].split("\t")]
    with (folder / "sheet.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["head"] * (len(inputs) + len(formulas)))
        for row, numbers in enumerate(zip(*(each.tolist() for each in inputs), strict=True), 2):
            table.writerow([*numbers, *(re.sub(r"\b([A-Z]+)2\b", rf"\g<1>{row}", formula) for formula in formulas)])
    reads, writes = "CSV:44,34,76,1,,0,false,true,false,false", "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,false,false"
    command = ["soffice", f"-env:UserInstallation={(folder / 'profile').as_uri()}", "--headless", f"--infilter={reads}"]
    command += ["--convert-to", writes, "--outdir", "computed", "sheet.csv"]
    subprocess.run(command, cwd=folder, check=True, timeout=LIMIT_S, capture_output=True)
    with (folder / "computed" / "sheet.csv").open(newline="") as file:
        rows = [*csv.reader(file)][1:]
    columns = [*zip(*rows, strict=True)][len(inputs) :]
    return [np.array([np.nan if re.match("#|Err:", each) else float(each) for each in column]) for column in columns]


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


def run_sympy(text: str, inputs: list[NDArray[Any]], num_points: int) -> list[NDArray[np.float64]]:
    """The outputs of a module of `sympy_text` in float64. Local variables are computed one by one: a formula without them can be
    far too long.
    """
    names, variables, outputs = sympy_text._read(text)
    values: dict[str, NDArray[Any]] = dict(zip(names, (array.astype(np.float64) for array in inputs), strict=True))

    def computed(expression: Any) -> NDArray[np.float64]:
        numbers = np.asarray(_numbers(expression, values))
        if np.iscomplexobj(numbers):
            numbers = np.where(numbers.imag == 0, numbers.real, np.nan)
        return np.broadcast_to(numbers.astype(np.float64), num_points)  # conditions of different shapes cannot be combined

    with np.errstate(all="ignore"):
        for name, expression in variables.items():
            values[name] = computed(expression)
        return [computed(output) for output in outputs.values()]


# Functions that compute the kinds of SymPy's expressions. A number beats NaN, as in PTX.
_OPERATIONS: dict[str, Any] = {
    "Add": np.add,
    "And": np.logical_and,
    "Max": np.fmax,
    "Min": np.fmin,
    "Mul": np.multiply,
    "Or": np.logical_or,
}
_COMPUTED: dict[str, Callable[..., Any]] = {
    name: lambda *parts, operation=operation: reduce(operation, parts) for name, operation in _OPERATIONS.items()
}
_COMPUTED |= {name: getattr(np, name) for name in ("cos", "cosh", "exp", "floor", "log", "sign", "sin", "sinh", "tan", "tanh")}
_COMPUTED |= {"Abs": np.abs, "Not": np.logical_not, "Pow": np.power, "Equality": np.equal, "Unequality": np.not_equal}
_COMPUTED |= {"StrictLessThan": np.less, "LessThan": np.less_equal, "StrictGreaterThan": np.greater}
_COMPUTED |= {"GreaterThan": np.greater_equal, "ExprCondPair": lambda *pair: pair, "Piecewise": lambda *pairs: _first_of(pairs)}


def _first_of(pairs: tuple[Any, ...]) -> Any:
    chosen: Any = np.nan
    for value, condition in reversed(pairs):
        chosen = np.where(condition, value, chosen)
    return chosen


def _numbers(expression: Any, values: dict[str, NDArray[Any]]) -> Any:
    """Evaluates an expression of SymPy with NumPy: `lambdify` would write Python and run it."""
    if expression.is_Symbol:
        return values[expression.name]
    if not expression.args:
        number = bool(expression) if expression.is_Boolean else complex(expression)
        return number.real if isinstance(number, complex) and not number.imag else number
    if expression.func.__name__ not in _COMPUTED:
        raise UserError(f"SymPy writes this program with {expression.func.__name__}, which evo cannot check")
    return _COMPUTED[expression.func.__name__](*(_numbers(part, values) for part in expression.args))
