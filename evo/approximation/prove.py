"""Proofs of a run's elites: which are proven, where certificates go, and what `evo prove` prints.

Owns the texts. `evo.approximation.certificate` proves.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from evo.approximation.certificate import Certificate, certified
from evo.approximation.header import cuda_header
from evo.approximation.sweep import KINDS
from evo.approximation.task import ApproximationTask, checked_interval
from evo.errors import UserError
from evo.instructions import SHIPPED
from evo.report.elites import cell_names
from evo.report.pareto import file_names, front_of, row_of_elite
from evo.report.table import table
from evo.run.run import Run
from evo.storage.files import write_atomically

FOLDER, HEADER = "proofs", "approximations.cuh"  # of a run; of what was proven
Bar = Callable[[str], AbstractContextManager[Callable[[int, int], None]]]  # of a title: gives what is told of the progress


def prove_elites(
    run: Run,
    *,
    name: str | None,
    front: bool,
    interval: tuple[float, float] | None,
    folder: Path,
    bar: Bar,
) -> Iterator[tuple[Path, str]]:
    """Proves an elite, or each on the front; gives the file of each certificate, and what it says; then that of a CUDA header.

    Args:
        name: of the elite, as in `row_of_elite`.
        interval: None: the task's.
        folder: of the certificates.

    Raises:
        UserError: it is no run of approximations, there is no such elite, or the function has no value somewhere.
    """
    task, problem = run.search.problem.task, run.search.problem
    if not isinstance(task, ApproximationTask):
        raise UserError(f"{run.run_dir.path}: evo prove is for runs of approximations (evo.ApproximationTask)")
    instruction_set = problem.config.program.instruction_set
    if instruction_set not in SHIPPED:
        raise UserError(f"program.instruction_set: a proof knows the instructions of {' and '.join(SHIPPED)} only")
    ends = task.interval if interval is None else checked_interval(interval, "--interval")
    rows = front_of(run).rows.tolist() if front else [row_of_elite(run, name)]
    names = cell_names(run, rows)
    folder.mkdir(parents=True, exist_ok=True)
    proven = []
    for cell, file_name, row in zip(names, file_names(names, ".json"), rows, strict=True):
        path = folder / file_name
        with bar(f"cell {cell}") as progress:
            found = certified(
                problem.language,
                run.search.elites().solution[row],
                task.function,
                task.format,
                ends,
                instruction_set=instruction_set,
                target=str(task.slots),
                state=path,
                progress=progress,
            )
        write_atomically(path, found.text().encode())
        proven.append((found, run.search.elites().solution[row]))
        yield path, f"cell {cell}: {description(found)}"
    header = folder / HEADER
    write_atomically(header, cuda_header(problem.language, proven).encode())
    yield header, ""


def description(found: Certificate) -> str:
    """What a certificate says, for people."""
    low, high = found.interval
    cost = f"{found.num_instructions} instructions, {float(found.slots):g} slots on {found.target}"
    lines = [f"{found.function}, {found.format}, [{low}, {high}]: {found.num_inputs:,} inputs; {cost}"]
    rows = [("largest error", "CPU", "at x", "any GPU", "at x")]
    for kind in KINDS:
        cpu, gpu = found.cpu[kind], found.any_gpu.get(kind)
        on_gpu = (gpu.at_most(), gpu.at) if gpu else ("unknown", "")
        rows.append((kind, cpu.at_most(), cpu.at, *on_gpu))
    lines.append(table(rows, right=(1, 2, 3, 4)).rstrip("\n"))
    counts = {
        "NaN results": found.num_nans,
        "wrong signs": found.num_wrong_signs,
        "steps against the function": found.num_falls,
    }
    if found.symmetry != "none":
        counts[f"results that are not {found.symmetry}"] = found.num_asymmetric
    lines.append(", ".join(f"{name}: {count:,}" for name, count in counts.items()))
    lines.append("special values: " + ", ".join(f"f({x}) = {y}" for x, y in found.special.items()))
    if found.why_not:
        lines.append(f"on GPUs nothing is known of {found.why_not}")
    return "\n".join(lines) + "\n"
