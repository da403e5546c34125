"""Proofs of a run's elites: their choice, the files of certificates, and the lines of `evo prove`.

Owns these. `evo.approximation.certificate` proves.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.approximation.certificate import Certificate, certified
from evo.approximation.exact import ExactCertificate, certified_exact
from evo.approximation.exact_header import exact_header
from evo.approximation.exact_task import ExactTask
from evo.approximation.header import cuda_header
from evo.approximation.task import ApproximationTask, checked_interval
from evo.errors import UserError
from evo.evaluate.tuning import ConstantTuner
from evo.instructions import SHIPPED
from evo.language.program import Language
from evo.native.ptx_vm import VirtualMachine
from evo.report.elites import cell_names
from evo.report.pareto import file_names, front_of, row_of_elite
from evo.run.run import Run
from evo.storage.files import write_atomically

HEADER, EXACT_HEADER = "approximations.cuh", "exact.cuh"
NUM_TUNED, NUM_SWEPT = 1 << 14, 1 << 18  # groups of neighbours at which constants are tuned before a proof, and then looked at
NUM_WORST, NUM_SWEEPS = 256, 2  # points of these where a program's error is largest, which join those at which it is tuned
NUM_TRIALS = 600  # of last bits
Bar = Callable[[str], AbstractContextManager[Callable[[int, int], None]]]  # of a title: gives the callback of the progress


def prove_elites(
    run: Run,
    *,
    name: str | None,
    front: bool,
    tune: bool,
    interval: tuple[float, float] | None,
    folder: Path,
    bar: Bar,
) -> Iterator[tuple[Path, str]]:
    """Proves an elite, or each on the front; gives the file of each certificate and its statement; then that of a CUDA header.

    Args:
        name: of the elite, as in `row_of_elite`.
        tune: constants as `tuned` gives them.
        interval: None: the task's.
        folder: of the certificates.

    Raises:
        UserError: it is not a run of approximations, there is no such elite, or the function has no value somewhere.
    """
    task, problem = run.search.problem.task, run.search.problem
    language, elites = problem.language, run.search.elites()
    prove: Callable[..., Certificate | ExactCertificate]
    header: tuple[str, Callable[..., str]]
    notes, proven = list[str](), list[Any]()
    if isinstance(task, ExactTask):
        if tune or interval is not None:
            raise UserError(f"{'--tune' if tune else '--interval'}: is for approximations; an exact function has no errors")
        prove = partial(certified_exact, function=task.function, note=notes.append)
        header = EXACT_HEADER, exact_header
    elif isinstance(task, ApproximationTask):
        instruction_set = problem.config.program.instruction_set
        if instruction_set not in SHIPPED:
            raise UserError(f"program.instruction_set: a proof knows the instructions of {' and '.join(SHIPPED)} only")
        ends = task.interval if interval is None else checked_interval(interval, "--interval")
        prove = partial(certified, function=task.function, form=task.format, interval=ends, instruction_set=instruction_set)
        header = HEADER, cuda_header
    else:
        raise UserError(f"{run.run_dir.path}: evo prove is for runs of evo.ApproximationTask and evo.ExactTask")
    rows = front_of(run).rows.tolist() if front else [row_of_elite(run, name)]
    if isinstance(task, ExactTask) and not (rows := [row for row in rows if elites.objective[row] == 0.0]):
        raise UserError(f"{run.run_dir.path}: no program is right on the sample yet; search longer")
    folder.mkdir(parents=True, exist_ok=True)
    names, programs = cell_names(run, rows), elites.solution[rows]
    if tune and isinstance(task, ApproximationTask):
        programs = tuned(language, task, programs)
    for cell, file_name, words in zip(names, file_names(names, ".json"), programs, strict=True):
        path = folder / file_name
        notes.clear()
        with bar(f"cell {cell}") as progress:
            certificate = prove(language, words, target=str(task.slots), state=path, progress=progress)
        write_atomically(path, certificate.text().encode())
        proven.append((certificate, words))
        yield path, f"cell {cell}: {certificate.description()}" + "".join(f"{line}\n" for line in notes)
    write_atomically(folder / header[0], header[1](language, proven).encode())
    yield folder / header[0], ""


def tuned(language: Language, task: ApproximationTask, words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Programs, `(num_programs, max_length)`, with constants of the least largest error at many more points than a search sees.

    Raises:
        UserError: the task's norm is not max, or its function is too complicated.
    """
    if task.norm != "max":
        raise UserError(f"--tune: constants are tuned to the largest error, and the run's task_options.norm is {task.norm!r}")
    points, swept = task.denser(NUM_TUNED), task.denser(NUM_SWEPT)
    machine, unused = VirtualMachine(language.lowering), [None] * (len(language.registers) - 1)
    least, best = np.full(len(words), np.inf), words.copy()
    for _ in range(NUM_SWEEPS):
        tuner = ConstantTuner(language, points, iterations=1, linear_scale=False, trials=NUM_TRIALS)
        words, worst = tuner.finish(words)[0], []
        tuner.close()
        for i, program in enumerate(words):
            errors = swept.errors(machine.store(program[None], [swept.points()["x"], *unused])[0, 0])
            worst.append(np.argpartition(errors, -NUM_WORST)[-NUM_WORST:])
            if errors[worst[-1]].max() < least[i]:
                least[i], best[i] = errors[worst[-1]].max(), program
        points = points.joined(swept, np.concatenate(worst))
    return best
