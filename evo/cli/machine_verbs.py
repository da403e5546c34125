"""The verbs about machines and single programs: doctor, instructions, prove, eval and worker."""

import signal
import sys
from pathlib import Path

import click

from evo.cli import terminal
from evo.cli.terminal import PATH, verb, view, warn
from evo.compile.targets import ASSEMBLED
from evo.errors import UserError, os_errors_as
from evo.escape import echo
from evo.exit_codes import EXIT_CHECK_FAILED
from evo.storage.files import exists
from evo.workers import MAX_WORKERS


@verb()
@click.argument("run_folder", metavar="[RUN]", type=PATH, required=False)
@click.option("--test", is_flag=True, help="Test each GPU first, even if it was tested before.")
@terminal.set_shown_key
def doctor(run_folder: Path | None, test: bool, overrides: tuple[str, ...]) -> None:
    """Say what this machine offers, and what it lacks.

    Each missing piece stands with what it means. With RUN, score its elites on CPU and GPU instead; exit
    code 1 says that they disagree.
    """
    from evo.cli.doctor import report, test_gpus

    for line in test_gpus() if test else []:
        warn(line)
    if run_folder is None:
        if overrides:
            raise UserError("--set: overrides a key of a run; name its folder")
        echo(report(), nl=False)
        return
    from evo.report.check import check_elites

    agreement = check_elites(view(run_folder, overrides))
    echo(agreement.text(), nl=False)
    if not agreement.passed:
        sys.exit(EXIT_CHECK_FAILED)


@verb()
@click.argument("word", required=False)
@click.option("--config", "config", metavar="CONFIG", type=terminal.CONFIG_PATH, help="Only the vocabulary of this config.")
@click.option("--instruction-set", metavar="SET", help="default, wide, or a JSON file.  [default: default]")
@click.option(
    "--target",
    type=click.Choice([f"sm_{number}" for number in ASSEMBLED]),
    metavar="SM",
    default="sm_90",
    show_default=True,
    help="Architecture of the GPU, for slots.",
)
@terminal.set_option("Override a key of --config.")
def instructions(
    word: str | None, config: Path | None, instruction_set: str | None, target: str, overrides: tuple[str, ...]
) -> None:
    """List the instructions that programs may use.

    With WORD, those that have it in their name or meaning.
    """
    from evo.cli.instruction_table import describe_instructions
    from evo.instructions import check_names, open_instruction_set

    if config and instruction_set:
        raise UserError(
            "--config and --instruction-set: give one of them; --set program.instruction_set=SET overrides the config's"
        )
    if config is None:
        if overrides:
            raise UserError("--set: overrides a key of a config; name it with --config")
        chosen = open_instruction_set(instruction_set or "default")
        names = [instruction.name for instruction in chosen.instructions]
    else:
        from evo.config import load_config

        program = load_config(config, overrides).program
        chosen = open_instruction_set(program.instruction_set)
        names = list(program.vocabulary.instructions)
        check_names(chosen, names, "program.vocabulary.instructions")
    echo(describe_instructions(chosen, names, word, target), nl=False)


@verb()
@click.argument("run_folder", metavar="RUN", type=PATH, required=False)
@terminal.elite_options
@terminal.front_option
@click.option("--tune", is_flag=True, help="Tune constants first, at many more inputs than the search saw.")
@click.option("--interval", nargs=2, type=float, metavar="LOW HIGH", help="Where it is proven.  [default: the task's interval]")
@click.option("--check", "certificate", type=PATH, metavar="FILE", help="Compute a certificate anew, in place of RUN.")
@click.option(
    "--code", metavar="MODULE:FUNCTION", help="With --check: import this, or read FILE.cu:NAME, if the certificate names it."
)
@click.option("--precondition", default="", metavar="TEXT", help="With --check: the condition that an exact certificate may add.")
@click.option("--output", type=PATH, help="Folder of the certificates.  [default: RUN/proofs]")
@terminal.set_shown_key
def prove(
    run_folder: Path | None,
    elite: str | None,
    front: bool,
    tune: bool,
    interval: tuple[float, float] | None,
    certificate: Path | None,
    code: str | None,
    precondition: str,
    output: Path | None,
    overrides: tuple[str, ...],
) -> None:
    """Prove an approximation's errors over every input, or that an exact program is right.

    An elite of folder RUN is compared with the function at each float of the interval, and what any GPU may give is bounded. An
    exact program is proven if its inputs have at most 32 bits, or fall into parts of as many, or a solver can, and else only
    tested. A proof that was interrupted goes on.
    """
    from evo.approximation.certificate import FOLDER, check_certificate
    from evo.approximation.prove import prove_elites

    if (run_folder is None) == (certificate is None):
        raise UserError("prove: name a run, or a certificate with --check FILE")
    if certificate is not None:
        with terminal.bar(str(certificate)) as progress:
            proof = check_certificate(certificate, progress, code=code, precondition=precondition)
        echo(f"{certificate}: holds\n{proof.description()}", nl=False)
        return
    assert run_folder is not None
    terminal.check_one_of({"--front": front}, elite)
    folder = output or run_folder / FOLDER
    target = folder.absolute()  # before the task's code runs, which may change the working folder
    proofs = prove_elites(
        view(run_folder, overrides),
        name=elite,
        front=front,
        tune=tune,
        interval=interval,
        folder=target,
        bar=terminal.bar,
    )
    for path, text in proofs:
        echo(f"{text}{folder / path.name}")


@verb("eval")
@terminal.config_argument
@click.argument("program")
@click.option("--output", default=Path(), type=PATH, help="Folder for its pictures.  [default: .]")
@terminal.set_key
def evaluate(config: Path, program: str, output: Path, overrides: tuple[str, ...]) -> None:
    """Score, and picture, a program for the task of CONFIG.

    PROGRAM is a formula such as 'x*x + 1', or a file with one or with a program's text. After -- it may begin with a minus.
    """
    from evo.config import load_config

    loaded = load_config(config, overrides)
    from evo.report.show import describe_program, read_program
    from evo.run.loaded_task import load_problem

    folder = output.absolute()  # before the task's code runs, which may change the working folder
    name = Path(program).stem if exists(Path(program)) else "program"
    problem = load_problem(loaded).here()
    words = read_program(problem, program)
    echo(describe_program(problem, words), nl=False)
    if problem.task.has_pictures():
        from evo.report.plot.pictures import picture_program

        with os_errors_as(f"{output}: cannot write the pictures"):
            folder.mkdir(parents=True, exist_ok=True)
            for path in picture_program(problem, words, folder / name):
                echo(output / path.name)


@verb()
@click.option("--connect", metavar="ADDRESS", help="Where the run listens: tcp://HOST:PORT.")
@click.option("--server-file", type=PATH, help="In place of --connect: the file of the run's evaluation.farm.server_file.")
@click.option("--workers", "num_workers", type=click.IntRange(1, MAX_WORKERS), help="Compile processes.  [default: one per core]")
@click.option("--keys", type=PATH, help="Folder of this worker's keys.")
@click.option(
    "--new-keys", "new_keys", type=PATH, metavar="FOLDER", help="Instead, make keys of a run and a worker, or a further worker."
)
@click.option("--name", default="worker", show_default=True, help="With --new-keys: name of the worker and of its folder.")
@click.option("--idle", "idle_s", type=click.FloatRange(0.0), metavar="SECONDS", help="End after so long without a run.")
@click.option("--json", "as_json", is_flag=True, help="Print the status as a JSON object each second.")
def worker(
    connect: str | None,
    server_file: Path | None,
    num_workers: int | None,
    keys: Path | None,
    new_keys: Path | None,
    name: str,
    idle_s: float | None,
    as_json: bool,
) -> None:
    """Compile for the run at an address, until Ctrl-C.

    One run after the other. Needs no GPU.
    """
    from evo.compile.farm import why_no_farm
    from evo.evaluate.backends import why_no_compiler

    if problem := why_no_farm() or (None if new_keys else why_no_compiler()):
        raise UserError(problem)
    if new_keys:
        _make_keys(new_keys, name)
        return
    run_address = connect or server_file
    if not run_address or (connect and server_file):
        raise UserError("worker: give --connect ADDRESS or --server-file FILE")
    from evo.cli.worker_status import StatusLine
    from evo.compile.farm.farm_worker import Worker

    with StatusLine(str(run_address), as_json=as_json) as line:
        worker = Worker(run_address, keys, num_workers, idle_s, line, line.say)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: worker.stop())
        worker.serve()


VERBS = (doctor, instructions, prove, evaluate, worker)


def _make_keys(folder: Path, name: str) -> None:
    """Makes the keys of a run and of a worker in a folder. Where the run has keys already, those of another worker."""
    from evo.compile.farm.keys import make_keys

    run_folder, worker_folder = make_keys(folder, name)
    echo(f"the run's keys:    {run_folder}  (evaluation.farm.keys)")
    echo(f"the worker's keys: {worker_folder}  (copy the folder to its machine: evo worker --keys)")
