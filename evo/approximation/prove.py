"""Proofs of a run's elites: which are proven, where certificates go, and what `evo prove` prints.

Owns where they go. `evo.approximation.certificate` proves.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from evo.approximation.certificate import certified
from evo.approximation.header import cuda_header
from evo.approximation.task import ApproximationTask, checked_interval
from evo.errors import UserError
from evo.instructions import SHIPPED
from evo.report.elites import cell_names
from evo.report.pareto import file_names, front_of, row_of_elite
from evo.run.run import Run
from evo.storage.files import write_atomically

HEADER = "approximations.cuh"
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
        yield path, f"cell {cell}: {found.description()}"
    header = folder / HEADER
    write_atomically(header, cuda_header(problem.language, proven).encode())
    yield header, ""
