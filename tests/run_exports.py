"""Runs exports that evo writes and does not run: its definitions in Python, PyTorch, Triton by NumPy, JSON and spreadsheets."""

import csv
import json
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from processes import LIMIT_S

from evo.language.definitions import function_name, python_definitions

MOVE = "mov.b32"
_OTHER_NAMES = {"max": "fmax", "min": "fmin", "pow": "power", "select": "where"}
_SAME_NAMES = ("abs", "copysign", "cos", "exp", "exp2", "log", "log10", "log2", "sin", "sqrt", "tanh")
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
