"""The verbs that hand programs on: export, predict, simplify and compile."""

from collections.abc import Mapping
from pathlib import Path

import click

from evo.cli import terminal
from evo.cli.terminal import PATH, verb, view, warn
from evo.errors import UserError
from evo.escape import echo

EXPORT_FORMATS = ("ptx", "cuda", "c", "python", "torch", "triton", "excel", "sympy", "latex", "json")


@verb()
@terminal.run_argument
@click.option("--format", "format_name", required=True, type=click.Choice(EXPORT_FORMATS), help="Language of the export.")
@terminal.elite_options
@terminal.front_option
@click.option("--arch", default="sm_90", show_default=True, help="GPU architecture of PTX and CUDA.")
@terminal.precision_option
@click.option("--output", type=PATH, help="File, or folder of a front.  [default: standard output]")
@terminal.set_shown_key
def export(
    run_folder: Path,
    format_name: str,
    elite: str | None,
    front: bool,
    arch: str,
    precision: int | None,
    output: Path | None,
    overrides: tuple[str, ...],
) -> None:
    """Write an elite of the run in folder RUN in another language.

    It is written once it scores what the archive says.
    """
    from evo.report.export.formats import export_elites

    terminal.check_one_of({"--front": front}, elite)
    if precision is not None and format_name not in ("sympy", "latex"):
        raise UserError(
            f"--precision: rounds sympy and latex for display; a {format_name} export computes, so it keeps all digits"
        )
    if front and output is None and format_name != "json":
        raise UserError("--front: name the folder of its files: --output FOLDER")
    target = output and output.absolute()  # before the task's code runs, which may change the working folder
    exported = export_elites(view(run_folder, overrides), format_name, name=elite, front=front, arch=arch, precision=precision)
    for note in exported.notes:
        warn(note)
    if output is None or target is None:
        echo("".join(exported.texts.values()), nl=False)
        return
    for path in _write(exported.texts, output, target, into_folder=front and not exported.is_list):
        echo(path)


@verb()
@terminal.run_argument
@click.option("--data", required=True, type=PATH, help="What to predict: for tables, a CSV file.")
@terminal.elite_options
@click.option("--output", type=PATH, help="The CSV file to write.  [default: standard output]")
@terminal.set_shown_key
def predict(run_folder: Path, data: Path, elite: str | None, output: Path | None, overrides: tuple[str, ...]) -> None:
    """Write what an elite of the run predicts for new data.

    RUN is the run's folder. The predictions are CSV with a row for each row of the data.
    """
    from evo.report.predict import predictions
    from evo.storage.files import write_outputs

    source, target = data.absolute(), output and output.absolute()  # before the task's code runs
    text, note = predictions(view(run_folder, overrides), source, elite)
    if note:
        warn(note)
    if target is None:
        echo(text, nl=False)
    else:
        write_outputs({target: text.encode()}, [source])
        echo(output)


@verb()
@terminal.run_argument
@terminal.elite_options
@terminal.front_option
@click.option(
    "--tolerance",
    type=click.FloatRange(0.0, 1.0),
    default=1e-3,
    show_default=True,
    help="Objective that may be lost, times max(1, |objective|).",
)
@click.option("--output", type=PATH, help="File for the program in text form, or folder of a front.")
@terminal.set_shown_key
def simplify(
    run_folder: Path, elite: str | None, front: bool, tolerance: float, output: Path | None, overrides: tuple[str, ...]
) -> None:
    """Take from an elite what its objective does not need.

    Instructions and digits of an elite of the run in folder RUN go if the objective stays within the tolerance.
    """
    from evo.report.simplified import simplify_elites

    terminal.check_one_of({"--front": front}, elite)
    target = output and output.absolute()  # before the task's code runs, which may change the working folder
    simplified = simplify_elites(view(run_folder, overrides), name=elite, front=front, tolerance=tolerance)
    for note in simplified.notes:
        warn(note)
    paths = _write(simplified.programs, output, target, into_folder=front) if output and target else []
    echo("\n".join(simplified.descriptions), nl=False)
    for path in paths:
        echo(path)


@verb("compile")
@click.argument("source", metavar="RUN|CONFIG", type=terminal.CONFIG_PATH)
@click.option("--arch", default="sm_90", show_default=True, help="GPU architecture to compile for.")
@click.option("--output", type=PATH, help="Folder for the cubins.  [default: RUN/cubins or ./cubins]")
@click.option("--random", "num_random", type=click.IntRange(1), default=256, show_default=True, help="Programs of a CONFIG.")
@terminal.set_key
def compile_cubins(source: Path, arch: str, output: Path | None, num_random: int, overrides: tuple[str, ...]) -> None:
    """Compile elites, or random programs, to cubins.

    The elites of folder RUN, or random programs of CONFIG. Needs no GPU.
    """
    from evo.report.export.cubins import compile_config, compile_run

    if source.is_dir():
        report = compile_run(view(source, overrides), arch, output or source / "cubins")
    else:
        report = compile_config(source, overrides, arch, output or Path("cubins"), num_random)
    for line in report.failed:
        echo(f"failed: {line}", err=True)
    echo(report.text(), nl=False)


VERBS = (export, predict, simplify, compile_cubins)


def _write(texts: Mapping[str, str], output: Path, target: Path, *, into_folder: bool) -> list[Path]:
    """Writes texts by file name into a folder, or the only one to a file; gives the paths as the user names them.

    Args:
        target: `output` made absolute, before the task's code ran.
    """
    from evo.storage.files import write_outputs

    if not (into_folder or target.is_dir()):
        [text] = texts.values()
        write_outputs({target: text.encode()}, inputs=())
        return [output]
    write_outputs({target / name: text.encode() for name, text in texts.items()}, inputs=())
    return [output / name for name in texts]
