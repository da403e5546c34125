"""Cubins of a run's elites or of a config's random programs, as files with an index.

Owns the layout of their folder. Knows nothing of how the cubins run and needs no GPU; `evo.kernel.pointwise` has the launch
contract.
"""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evo.compile.assembler import assembler_options
from evo.compile.compiler import FailedProgram, Module, PackCompiler
from evo.compile.pool import CompilePool
from evo.compile.targets import architecture, is_assembled_by_driver
from evo.config import load_config
from evo.errors import UserError, os_errors_as, plural
from evo.evaluate.backends import why_no_compiler
from evo.evaluate.compilers import open_compilers
from evo.evaluate.options import EvaluationOptions
from evo.kernel.pointwise import TEMPLATE, kernel_name
from evo.language.batch import Batch
from evo.language.program import Language
from evo.report.elites import batch_of, cell_names
from evo.run.loaded_task import load_problem
from evo.run.run import Run
from evo.run.search import Search
from evo.storage.disk_cache import open_cache
from evo.storage.files import write_outputs

# These cubins are compiled once and launched often.
_OPT_LEVEL = 3


@dataclass(frozen=True)
class CubinReport:
    """Result of a compilation. failed: one line for each failed program. seconds: wall time. compiler_s: seconds inside
    nvPTXCompiler, summed over workers.
    """

    arch: str
    folder: Path
    num_modules: int
    num_programs: int
    num_bytes: int
    failed: list[str]
    seconds: float
    compiler_s: float

    def text(self) -> str:
        """The report that `evo compile` prints."""
        done = f"{plural(self.num_programs, 'program')} in {plural(self.num_modules, 'cubin')}"
        times = f"{self.seconds:.1f} s; {self.compiler_s:.1f} s inside nvPTXCompiler, summed over workers"
        return f"{done} ({self.num_bytes / 2**20:.1f} MiB) for {self.arch}: {self.folder}\n{times}\n"


def compile_run(run: Run, arch: str, folder: Path) -> CubinReport:
    """Compiles a run's elites into a folder. Raises UserError as `write_cubins`."""
    problem, names = run.search.problem, [f"cell {name}" for name in cell_names(run)]
    return write_cubins(problem.language, batch_of(run), names, arch, folder, problem.config.evaluation)


def compile_config(path: Path, overrides: tuple[str, ...], arch: str, folder: Path, num_random: int) -> CubinReport:
    """Compiles the first random programs of a config's seed into a folder.

    Raises:
        UserError: as `load_config`, `load_problem` and `write_cubins`.
    """
    search = Search(load_problem(load_config(path, overrides)))
    language = search.problem.language
    batch = Batch.analyze(language.lowering, search.emitter.random_programs(num_random))
    names = [f"slot {slot}" for slot in range(num_random)]
    return write_cubins(language, batch, names, arch, folder, search.problem.config.evaluation)


def write_cubins(
    language: Language, batch: Batch, names: list[str], arch: str, folder: Path, evaluation: EvaluationOptions
) -> CubinReport:
    """Compiles programs to `module_0000.cubin`, ... with an `index.json` that locates each program.

    Args:
        names: each program's name in the index, such as `cell 3,4`.
        arch: GPU architecture such as `sm_90`.
        evaluation: its cache is looked up before anything is compiled, and its farm compiles. Without one, each core does.

    Raises:
        UserError: cache or farm cannot be used, there is no compiler, the architecture is unknown or one of PTX, or the folder
            cannot be written.
    """
    if is_assembled_by_driver(arch):
        raise UserError(f"--arch {arch}: the driver assembles this, there is no cubin; name a GPU, such as {architecture(arch)}")
    cache = open_cache(evaluation.cache_megabytes)
    if problem := why_no_compiler():
        raise UserError(problem)
    start = time.perf_counter()
    with open_compilers(evaluation) if evaluation.farm else CompilePool() as executor:
        with os_errors_as(f"{folder}: cannot create the folder"):
            folder.mkdir(parents=True, exist_ok=True)
        compiler = PackCompiler(language, arch, executor, options=assembler_options(_OPT_LEVEL), cache=cache)
        results = list(compiler.compile(batch))
    # Modules come in the order of completion. Sorting them by their first program makes the files' numbers reproducible.
    modules = sorted((r for r in results if isinstance(r, Module)), key=lambda module: int(module.rows[0][0]))
    files = [f"module_{number:04d}.cubin" for number in range(len(modules))]
    failures = [r for r in results if isinstance(r, FailedProgram)]
    with os_errors_as(f"{folder}: cannot write the cubins"):
        index = {"arch": arch, "template": TEMPLATE, "programs": _index(modules, files, names)}
        outputs = {folder / file: module.cubin for file, module in zip(files, modules, strict=True)}
        write_outputs({**outputs, folder / "index.json": (json.dumps(index, indent=1) + "\n").encode()}, inputs=())
        for stale in set(folder.glob("module_*.cubin")) - outputs.keys():  # from an earlier call
            stale.unlink()
    return CubinReport(
        arch=arch,
        folder=folder,
        num_modules=len(modules),
        num_programs=sum(len(rows) for module in modules for rows in module.rows),
        num_bytes=sum(len(module.cubin) for module in modules),
        failed=[f"{names[row]}: {failure.failure.kind}" for failure in failures for row in failure.rows],
        seconds=time.perf_counter() - start,
        compiler_s=sum(module.compiler_s for module in modules),
    )


def _index(modules: list[Module], files: list[str], names: list[str]) -> list[dict[str, Any]]:
    """File, kernel and site of each program. Equivalent programs share a site."""
    entries = []
    for file, module in zip(files, modules, strict=True):
        sites = [(kernel, site) for kernel, size in enumerate(module.kernel_sizes) for site in range(size)]
        for rows, (kernel, site) in zip(module.rows, sites, strict=True):
            for row in rows:
                location = {"file": file, "kernel": kernel_name(kernel), "site": site}
                entries.append((int(row), {"program": names[row], **location}))
    return [entry for _, entry in sorted(entries, key=lambda pair: pair[0])]
