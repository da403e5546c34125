"""Functions of words in files of CUDA C or PTX: a device function as one over NumPy arrays.

Owns how the file is read. `evo.approximation.ptx_run` follows its statements.
"""

import inspect
import os
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.approximation.ptx_run import PtxError, Run
from evo.approximation.traced import Traced, UntraceableError
from evo.kernel import nvrtc
from evo.storage.files import read_file

_FILE = re.compile(r"(?P<path>.+\.(?:cu|ptx))(?::(?P<name>\w+))?")
_OPTIONS = (
    "--gpu-architecture=compute_90",
    "--relocatable-device-code=true",  # keeps functions that nothing calls
    "--device-as-default-execution-space",
    "--fmad=false",  # fusion depends on the compiler
)
_INTEGERS = {8: "char", 16: "short", 32: "int", 64: "long long"}
_TYPES = "".join(
    f"typedef {sign} {name} {prefix}int{width}_t;\n"
    for width, name in _INTEGERS.items()
    for sign, prefix in (("signed", ""), ("unsigned", "u"))
).encode()
_HEADERS = dict.fromkeys(("stdint.h", "cstdint"), b"#pragma once\n" + _TYPES)  # NVRTC has none
_HEAD = re.compile(r"\.(?P<kind>func|entry)\s*(?:\((?P<result>[^)]*)\))?\s*(?P<name>[\w$]+)\s*(?:\((?P<given>[^)]*)\))?[^;{}]*\{")
_PARAMETER = re.compile(r"\.param\s+(?:\.align\s+\d+\s+)?\.[bsuf](\d+)\s+([\w$]+)(?:\[(\d+)\])?")
_MEMORY = re.compile(r"(?:@\S+ )?(?:st|ld)\.(?!param)")
_BLANK = re.compile(r"\s*")
_LABEL = re.compile(r"([\w$]+):(?!:)")
_C_TYPES = {
    "f32": {"float", "float2", "float3", "float4"},
    "f16x2": {"half2", "__half2"},
    "bf16x2": {"nv_bfloat162", "__nv_bfloat162"},
}
_NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)
_LINES = re.compile(r"^\s*\.(?:loc|file)\b[^\n]*", re.MULTILINE)  # of the source, for debuggers
MOST_STATEMENTS = 4096


def is_file(text: str) -> bool:
    """Return whether a function's text names a file of CUDA C or PTX."""
    return _FILE.fullmatch(text) is not None


def path_and_name(text: str) -> tuple[Path, str | None]:
    """The file that such a text names, and the function."""
    matched = _FILE.fullmatch(text)
    assert matched is not None
    return Path(matched["path"]), matched["name"]


class PtxFunction:
    """A device function over NumPy arrays of words. Inputs are the words of its parameters, outputs those of its result, then the
    words that it stores through its parameters. Parameters of 64 bits are pointers if it stores anything.

    Args:
        text: `FILE.cu` or `FILE.ptx`, and `:NAME` where the file has several functions.

    Attributes:
        ptx: the file's, or NVRTC's output, without comments.
        types, care: as `ExactFunction` has them; bytes of outputs that it does not write do not matter.

    Raises:
        PtxError: the file cannot be read or has no such function, or NVRTC refuses it.
    """

    def __init__(self, text: str):
        path, name = path_and_name(text)
        try:
            content = read_file(path)
        except OSError as error:
            raise PtxError(error.strerror) from error
        source = content.decode(errors="replace") if path.suffix == ".cu" else ""
        try:
            ptx = nvrtc.compile(content, path.name, _HEADERS, (*_OPTIONS, *_include_paths())) if source else content
        except (nvrtc.CompileError, nvrtc.NvrtcMissing, ValueError) as error:
            lines = str(error).splitlines()
            raise PtxError(next((line for line in lines if " error" in line), lines[0])) from error
        self.ptx = _LINES.sub("", _without_comments(ptx.decode(errors="replace")))
        head = self._head(name)
        self.__name__ = _plain_name(head["name"])
        self._statements = [*_statements(self.ptx, head.end())]
        if len(self._statements) > MOST_STATEMENTS:
            raise PtxError(f"it has more than {MOST_STATEMENTS:,} statements")
        results, sizes = (
            {match[2]: int(match[1]) // 8 * int(match[3] or 1) for match in _PARAMETER.finditer(head[part] or "")}
            for part in ("result", "given")
        )
        self._result = next(iter(results), "")
        has_pointers = any(map(_MEMORY.match, self._statements))
        scalars = {match[2] for match in _PARAMETER.finditer(head["given"] or "") if not match[3]}
        self._pointers = [name for name, size in sizes.items() if size == 8 and name in scalars and has_pointers]
        self._order = ["", *sizes]
        keys = {(name, k) for name, size in sizes.items() if name not in self._pointers for k in range(-(-size // 4))}
        self._sizes = results | {name: size for name, size in sizes.items() if name not in self._pointers}
        run = self._run(lambda *key: keys.add(key) or np.uint32(0))  # type: ignore[func-returns-value]
        self._outputs = sorted(run.outputs, key=self._key)
        self.care = tuple(
            sum(0xFF << 8 * k for k in range(4) if (name, 4 * word + k) in run.written) for name, word in self._outputs
        )
        self._input_keys = sorted(keys, key=self._key)
        known = [*_parameters(self.__name__, _without_comments(source))]
        known = [*[("", "u32")] * (len(sizes) - len(known)), *known]  # an address of the result is the first
        named = dict(zip(sizes, known, strict=False))
        self.types = tuple(named[name][1] for name, _ in self._input_keys)
        names = [named[name][0] or name for name, _ in self._input_keys]
        names = [name if names.count(name) == 1 else f"{name}_{k}" for name, (_, k) in zip(names, self._input_keys, strict=True)]
        if len({*names}) < len(names) or not all(map(_NAME.fullmatch, names)):
            names = [*"abcdefgh"[: len(names)], *(f"x{k}" for k in range(8, len(names)))]
        self.__signature__ = inspect.Signature([inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in names])

    def _key(self, key: tuple[str, int]) -> tuple[int, int]:
        return self._order.index(key[0]), key[1]

    def _run(self, word: Any) -> Run:
        run = Run(word, self._sizes, self._pointers, self._result)
        with np.errstate(all="ignore"):
            for statement in self._statements:
                run.statement(statement)
        run.end()
        return run

    def __call__(self, *words: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        """The outputs at words.

        Raises:
            PtxError: a statement has no meaning here, or an output is not written everywhere.
        """
        columns = [column if column.dtype == np.uint32 else column.view(np.uint32) for column in words]
        values = dict(zip(self._input_keys, columns, strict=True))
        run = self._run(lambda *key: values[key])
        if not run.outputs:
            raise PtxError("it gives no result")
        for where in run.written.values():
            if isinstance(where, Traced):
                raise UntraceableError("an output is written under conditions")
            if where is not None and not np.all(where):
                raise PtxError("there are inputs at which it does not write each of its outputs")
        return tuple(_spread(run.outputs[key], columns[0]) for key in self._outputs)

    def _head(self, name: str | None) -> re.Match[str]:
        heads = [match for match in _HEAD.finditer(self.ptx) if name in (None, match["name"], _plain_name(match["name"]))]
        if len(heads) != 1:
            known = ", ".join(_plain_name(match["name"]) for match in _HEAD.finditer(self.ptx)) or "none"
            raise PtxError(f"it must name one function, as FILE:NAME; the file has: {known}")
        if heads[0]["kind"] == "entry":
            raise PtxError(f"{heads[0]['name']} is a kernel, must be a device function")
        return heads[0]


def _include_paths() -> list[str]:
    """NVRTC's options for CUDA's own headers, such as cuda_fp16.h, of packages and of an installed toolkit."""
    packages = find_spec("nvidia")
    folders = [Path(folder, "cu13") for folder in (packages and packages.submodule_search_locations) or ()]
    folders += [Path(os.environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    return [f"--include-path={folder / 'include'}" for folder in folders if (folder / "include" / "cuda_fp16.h").exists()]


def _without_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.DOTALL)


def _parameters(name: str, source: str) -> Iterator[tuple[str, str]]:
    """Names and types of a function's parameters as CUDA C has them."""
    declared = re.search(rf"\b{name}\s*\(([^{{;]*)\)\s*\{{", source)
    for part in declared[1].split(",") if declared else ():
        words = re.findall(r"\w+", re.sub(r"\[[^]]*\]", "", part))
        if words:
            yield words[-1], next((kind for kind, known in _C_TYPES.items() if {*words[:-1]} & known), "u32")


def _spread(values: Any, like: NDArray[np.uint32]) -> Any:
    """An output that may be one number, as an array."""
    return like & np.uint32(0) | values if type(values) in (np.uint32, np.ndarray) and not values.ndim else values


def _plain_name(name: str) -> str:
    """A function's name as C++ has it, of one that it has mangled."""
    matched = re.match(r"_Z(\d+)", name)
    return name[matched.end() : matched.end() + int(matched[1])] if matched else name


def _statements(text: str, start: int) -> Iterator[str]:
    """Statements from a place up to the brace that ends a function, as `Run.statement` takes them."""
    depth, i = 1, start
    while depth:
        i = _BLANK.match(text, i).end()  # type: ignore[union-attr]
        if i == len(text):
            raise PtxError("its text ends within a function")
        if text[i] in "{}":
            depth += 1 if text[i] == "{" else -1
            if depth:
                yield text[i]
            i += 1
        elif label := _LABEL.match(text, i):
            yield f"{label[1]}:"
            i = label.end()
        else:
            end = text.find(";", i)
            if end < 0:
                raise PtxError("its text ends within a statement")
            if end > i:
                yield " ".join(text[i:end].split())
            i = end + 1
