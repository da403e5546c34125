"""Cubins of a run's elites, or of a config's random programs, as files with an index.

Owns the layout of that folder. Needs no GPU; how the kernels are launched is said in `evo.kernel.pointwise`.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evo.compile.compiler import FailedProgram, Module, PackCompiler
from evo.compile.pool import CompilePool
from evo.compile.request import assembler_options
from evo.errors import UserError
from evo.kernel.pointwise import TEMPLATE, kernel_name
from evo.language.program import Language
from evo.storage.disk_cache import DiskCache

# These cubins are compiled once and launched often.
_OPT_LEVEL = 3


@dataclass(frozen=True)
class CubinReport:
    """What `write_cubins` did. seconds: wall time; compiler_s: seconds inside nvPTXCompiler, summed over workers."""

    num_modules: int
    num_programs: int
    num_bytes: int
    failed: list[str]
    seconds: float
    compiler_s: float


def write_cubins(
    language: Language, words: np.ndarray, names: list[str], arch: str, folder: Path, cache: DiskCache
) -> CubinReport:
    """Compiles programs and writes `module_0000.cubin`, ... and `index.json`, which says where each program is.

    Args:
        words: `(num_programs, max_length)` uint64.
        names: what each program is called in the index, such as `cell 3,4`.
        arch: GPU architecture such as `sm_90`.
        cache: asked before anything is compiled.

    Raises:
        UserError: the architecture is unknown, or the folder cannot be written.
    """
    start = time.perf_counter()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder}: cannot create the folder: {error.strerror}") from error
    with CompilePool() as pool:
        compiler = PackCompiler(language, arch, pool, options=assembler_options(_OPT_LEVEL), cache=cache)
        results = list(compiler.compile(words))
    # Modules come in the order of completion; their files are numbered by the first program that they hold.
    modules = sorted((r for r in results if isinstance(r, Module)), key=lambda module: int(module.rows[0][0]))
    failures = [r for r in results if isinstance(r, FailedProgram)]
    try:
        for number, module in enumerate(modules):
            (folder / f"module_{number:04d}.cubin").write_bytes(module.cubin)
        for left in set(folder.glob("module_*.cubin")) - {
            folder / f"module_{number:04d}.cubin" for number in range(len(modules))
        }:
            left.unlink()  # of an earlier call
        index = {"arch": arch, "template": TEMPLATE, "programs": _index(modules, names)}
        (folder / "index.json").write_text(json.dumps(index, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise UserError(f"{folder}: cannot write the cubins: {error.strerror}") from error
    return CubinReport(
        num_modules=len(modules),
        num_programs=sum(len(rows) for module in modules for rows in module.rows),
        num_bytes=sum(len(module.cubin) for module in modules),
        failed=[f"{names[row]}: {failure.failure.kind}" for failure in failures for row in failure.rows],
        seconds=time.perf_counter() - start,
        compiler_s=sum(module.compiler_s for module in modules),
    )


def _index(modules: list[Module], names: list[str]) -> list[dict]:
    """File, kernel and site of each program; those that mean the same share a site."""
    entries = []
    for number, module in enumerate(modules):
        places = [(kernel, site) for kernel, size in enumerate(module.kernel_sizes) for site in range(size)]
        for rows, (kernel, site) in zip(module.rows, places, strict=True):
            for row in rows:
                place = {"file": f"module_{number:04d}.cubin", "kernel": kernel_name(kernel), "site": site}
                entries.append((int(row), {"program": names[row], **place}))
    return [entry for _, entry in sorted(entries, key=lambda pair: pair[0])]
