"""The command line: verbs and messages.

Owns what a person sees. A user's mistake is one line on standard error, never a traceback. Each verb imports the heavy parts that
it needs. Long, since every verb stands here with its options and help.
"""

from __future__ import annotations

import functools
import glob
import os
import shlex
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import click
from click.shell_completion import CompletionItem

from evo import get_include
from evo.about import DISTRIBUTION
from evo.errors import DeviceFailure, UserError, did_you_mean
from evo.exit_codes import EXIT_CHECK_FAILED, EXIT_DEVICE_FAILED, EXIT_INTERRUPTED, EXIT_USER_ERROR, Interrupt, end_at_once
from evo.shipped import shipped

if TYPE_CHECKING:
    from evo.run.run import Run
    from evo.run.sweep import Sweep

P = ParamSpec("P")
T = TypeVar("T")

EXPORT_FORMATS = ("ptx", "cuda", "c", "python", "sympy", "latex", "json")

_QUIET = "evo.quiet"  # in click's `Context.meta`
_SET_HELP = "Override a key of the config: --set search.batch_size=256. May be given many times."


class _UsageError(click.ClickException):
    """A mistake in the options or arguments, as one line."""

    exit_code = EXIT_USER_ERROR

    def __init__(self, error: click.UsageError):
        command = error.ctx.command_path if error.ctx else "evo"
        super().__init__(f"{' '.join(error.format_message().split()).rstrip('.')}; see: {command} --help")

    def show(self, file: Any = None) -> None:
        click.echo(f"evo: {self.message}", err=True)


@contextmanager
def _usage_in_one_line() -> Iterator[None]:
    try:
        yield
    except click.exceptions.NoArgsIsHelpError:
        raise
    except click.UsageError as error:
        raise _UsageError(error) from error


class _Main(click.Group):
    """The group of verbs. Click's own messages for wrong usage have several lines."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name[:1].isalnum() and self.get_command(ctx, name) is None and not ctx.resilient_parsing:
            ctx.fail(f"No such command '{name}', {did_you_mean(name, self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        with _usage_in_one_line():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        with _usage_in_one_line():
            return super().invoke(ctx)


class _ConfigPath(click.Path):
    """A config's file, or the name of one of evo's. Tab offers both."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        files = sorted(glob.glob(f"{glob.escape(incomplete)}*.yaml"))
        names = [name for name in shipped("configs") if name.startswith(incomplete)]
        return [CompletionItem(value) for value in [*files, *names]] or super().shell_complete(ctx, param, incomplete)


def _print_include(ctx: click.Context, _: click.Parameter, is_given: bool) -> None:
    if is_given:
        click.echo(get_include())
        ctx.exit()


@click.group(cls=_Main, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name=DISTRIBUTION, prog_name="evo")
@click.option(
    "--include",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_include,
    help="Show the folder of the C headers and exit.",
)
def main() -> None:
    """Evolutionary search for GPU programs: MAP-Elites over Stack PTX."""
    # Before NumPy is loaded. Sums of a library depend on its threads, and worker processes have one.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"):
        os.environ.setdefault(name, "1")


def _be_quiet(ctx: click.Context, _: click.Parameter, is_given: bool) -> None:
    ctx.meta[_QUIET] = is_given


_quiet_option = click.option(
    "--quiet",
    "-q",
    is_flag=True,
    expose_value=False,
    callback=_be_quiet,
    help="Print errors only: no progress, summary or warning.",
)


def _verb(function: Callable[P, T]) -> Callable[P, T]:
    """Turns a UserError into its line and exit code 2, a DeviceFailure into its line and 3."""

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except UserError as error:
            click.echo(f"evo: {' '.join(str(error).splitlines())}", err=True)
            if os.environ.get("EVO_TRACEBACK"):
                raise
            sys.exit(EXIT_USER_ERROR)
        except DeviceFailure as failure:
            end_at_once(f"the GPU failed: {failure}", EXIT_DEVICE_FAILED)
        except KeyboardInterrupt:
            click.echo("evo: interrupted", err=True)
            sys.exit(EXIT_INTERRUPTED)

    return wrapped


@main.command()
@click.argument("folder", metavar="[NAME]", required=False, type=click.Path(path_type=Path))
@click.option(
    "--template", type=click.Choice(list(shipped("templates"))), default="picture", show_default=True, help="What it begins with."
)
@_verb
def init(folder: Path | None, template: str) -> None:
    """Make a project: a task of your own, its config and a README, in the new folder NAME (by default, the template's name)."""
    from evo.report.init import make_project

    folder = folder or Path(template)
    files = make_project(folder, template)
    for path in files:
        click.echo(folder / path)
    [config] = [path for path in files if path.suffix == ".yaml"]
    click.echo(f"start with: cd {shlex.quote(str(folder))} && evo run {config}")


@main.command(epilog=f"Shipped configs: {', '.join(shipped('configs'))}.")
@click.argument("config", type=_ConfigPath())
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help=_SET_HELP)
@_quiet_option
@_verb
def run(config: Path, overrides: tuple[str, ...]) -> None:
    """Run the experiment that CONFIG describes, in a new folder under runs/. CONFIG is a file, or the name of a shipped one."""
    _say_loading(config)
    from evo.config import load_config

    loaded = load_config(config, overrides)
    from evo.run.run import Run

    run = Run.start(loaded, config.stem, _warn)
    _execute(run, Path(loaded.output.runs, config.stem, run.run_dir.path.name))


@main.command()
@click.argument("run_folder", metavar="RUN", type=click.Path(path_type=Path))
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override a stop, such as stop.evaluations=200000.")
@_quiet_option
@_verb
def resume(run_folder: Path, overrides: tuple[str, ...]) -> None:
    """Go on with the run in folder RUN from its last checkpoint."""
    from evo.run.run import Run

    run, notes = Run.resume(run_folder, overrides)
    for line in notes:
        _say(f"evo: {line}", err=True)
    _execute(run, run_folder)


@main.command()
@click.argument("run_folder", metavar="RUN", type=click.Path(path_type=Path))
@click.option("--plot", "names", multiple=True, help="Draw only this plot; may be given many times.")
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override a key that changes no result.")
@_verb
def plot(run_folder: Path, names: tuple[str, ...], overrides: tuple[str, ...]) -> None:
    """Draw the plots of the run in folder RUN into RUN/plots."""
    _say_loading(run_folder)
    from evo.report.plot import PLAIN_PLOTS, PLOTS, draw_plots, why_not_drawn

    for name in names:
        if name not in PLOTS:
            raise UserError(f"--plot {name}: unknown plot, {did_you_mean(name, PLOTS)}")
    run = _view(run_folder, overrides, with_task=not names or not PLAIN_PLOTS.issuperset(names))
    for name in names:
        if reason := why_not_drawn(run, name):
            raise UserError(f"--plot {name}: {reason}")
    for path in draw_plots(run, list(names) or run.search.problem.config.output.plots):
        click.echo(run_folder / path.relative_to(run.run_dir.path))


@main.command()
@click.argument("run_folder", metavar="RUN", type=click.Path(path_type=Path))
@click.option("--output", type=click.Path(path_type=Path), help="The HTML file.  [default: RUN/plots/page.html]")
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override a key that changes no result.")
@_verb
def page(run_folder: Path, output: Path | None, overrides: tuple[str, ...]) -> None:
    """Write the archive of the run in folder RUN as one HTML file, to look at in a browser without a network."""
    _say_loading(run_folder)
    from evo.report.page import FILE_NAME, write_page

    shown = output or run_folder / "plots" / FILE_NAME
    target = shown.absolute()  # before the task's code runs, which may change the working folder
    write_page(_view(run_folder, overrides), target)
    click.echo(shown)


@main.command()
@click.argument("run_folder", metavar="RUN", type=click.Path(path_type=Path))
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Where to listen; beyond this machine the address has a token."
)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port to listen at.  [default: any that is free]")
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override a key that changes no result.")
@_verb
def watch(run_folder: Path, host: str, port: int, overrides: tuple[str, ...]) -> None:
    """Serve the page of the run in folder RUN to a browser, and renew it with each checkpoint, until Ctrl-C."""
    _say_loading(run_folder)
    from evo.report.watch import Watch

    with Watch(run_folder, overrides, host, port, _warn) as watch:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: watch.stop())
        click.echo(f"watching {run_folder}; Ctrl-C ends\n{watch.url}")
        watch.serve()


@main.command()
@click.argument("run_folder", metavar="RUN", type=click.Path(path_type=Path))
@click.option("--cell", metavar="I,J", help="The elite in this cell of the grid (or with this cell number). Default: the best.")
@click.option("--front", is_flag=True, help="Instead of an elite, the front of objective against complexity.")
@click.option("--lineage", is_flag=True, help="Instead, the ancestors of the elite, back to a random program.")
@click.option("--failed", is_flag=True, help="Instead of an elite, the programs that could not be compiled or run.")
@click.option(
    "--csv", "csv_file", metavar="[FILE]", is_flag=False, flag_value="-", help="All elites as CSV.  [FILE: standard output]"
)
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override a key that changes no result.")
@_verb
def show(
    run_folder: Path,
    cell: str | None,
    front: bool,
    lineage: bool,
    failed: bool,
    csv_file: str | None,
    overrides: tuple[str, ...],
) -> None:
    """Print an elite of the run in folder RUN: its program, its expression, its PTX stub, its origin and its scores."""
    from evo.report.front import describe_front
    from evo.report.lineage import describe_lineage
    from evo.report.show import describe_elite, describe_failed

    asked = {
        "--failed": failed,
        "--cell": cell is not None,
        "--front": front,
        "--lineage": lineage,
        "--csv": csv_file is not None,
    }
    given = [name for name, is_given in asked.items() if is_given]
    if len(given) > 1 and given != ["--cell", "--lineage"]:
        raise UserError(f"{' and '.join(given)}: give one of them")
    target = (
        None if csv_file is None else Path(csv_file).absolute()
    )  # before the task's code runs, which may change the working folder
    run = _view(run_folder, overrides, with_task=target is None and not failed)
    if target is not None:
        from evo.report.elites_csv import elites_csv
        from evo.storage.files import write_outputs

        table = elites_csv(run)
        if csv_file == "-":
            click.echo(table, nl=False)
        else:
            write_outputs({target: table.encode()}, [])
            click.echo(csv_file)
        return
    if lineage:
        text = describe_lineage(run, cell)
    else:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        text = describe_failed(run) if failed else describe_front(run, width) if front else describe_elite(run, cell)
    click.echo(text, nl=False)


@main.command()
@click.argument("run_folder", metavar="RUN", type=click.Path(path_type=Path))
@click.option("--cell", metavar="I,J", help="The elite in this cell of the grid (or with this cell number). Default: the best.")
@click.option("--archive", is_flag=True, help="Instead of an elite, the archive as it filled up.")
@click.option("--size", default="1920x1080", show_default=True, metavar="WxH", help="Width and height in pixels.")
@click.option("--seconds", type=click.FloatRange(0.0, 3600.0, min_open=True), default=20.0, show_default=True, help="Length.")
@click.option("--fps", type=click.IntRange(1, 240), help="Frames a second.  [default: 60; of a GIF 25]")
@click.option("--at", type=click.FloatRange(0.0, 1.0, max_open=True), default=0.0, help="Of a still: its time in the film.")
@click.option(
    "--output", "-o", required=True, type=click.Path(path_type=Path), help="A film: .mp4, .webm or .gif; a still: .png."
)
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override a key that changes no result.")
@_quiet_option
@_verb
def film(
    run_folder: Path,
    cell: str | None,
    archive: bool,
    size: str,
    seconds: float,
    fps: int | None,
    at: float,
    output: Path,
    overrides: tuple[str, ...],
) -> None:
    """Draw an elite of the run in folder RUN at any size: as a film that moves in a loop, or as a still."""
    from evo.report.archive_film import ArchiveFilm
    from evo.report.film import STILL, check_output, write_film, write_frames, write_still
    from evo.report.frames import frames_of, parse_size
    from evo.report.progress import counting

    if archive and cell is not None:
        raise UserError("--archive and --cell: give one of them")
    width, height = parse_size(size)
    is_still = output.suffix.lower() == STILL
    if archive and is_still:
        raise UserError(f"--archive: {output}: for a still of the archive: evo plot RUN --plot contact_sheet")
    rate = fps or (25 if output.suffix.lower() == ".gif" else 60)
    num_frames = max(1, round(seconds * rate))
    target = output.absolute()  # before the task's code runs, which may change the working folder
    check_output(output, width, height, rate)
    run = _view(run_folder, overrides)
    with counting(1 if is_still else num_frames, "frames", quiet=_is_quiet()) as on_frame:
        if archive:
            shown = ArchiveFilm(run, width, height)
            write_frames(target, shown.frames(num_frames), lambda: [shown.last()], rate, on_frame)
        else:
            with frames_of(run, cell, width, height) as frames:
                if is_still:
                    write_still(target, frames.draw(at))
                else:
                    write_film(target, frames.draw, num_frames, rate, on_frame)
    _say(output)


@main.command()
@click.argument("run_folder", metavar="RUN", type=click.Path(path_type=Path))
@click.option("--format", "format_name", required=True, type=click.Choice(EXPORT_FORMATS), help="Language of the export.")
@click.option("--cell", metavar="I,J", help="The elite in this cell of the grid (or with this cell number).")
@click.option("--best", is_flag=True, help="The elite with the highest objective; the default.")
@click.option("--front", is_flag=True, help="Each elite of the front, as evo show --front lists them.")
@click.option("--arch", default="sm_90", show_default=True, help="GPU architecture of PTX and CUDA.")
@click.option("--output", type=click.Path(path_type=Path), help="File, or folder of a front.  [default: standard output]")
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override a key that changes no result.")
@_verb
def export(
    run_folder: Path,
    format_name: str,
    cell: str | None,
    best: bool,
    front: bool,
    arch: str,
    output: Path | None,
    overrides: tuple[str, ...],
) -> None:
    """Write an elite of the run in folder RUN in another language, once it scores what the archive says."""
    from evo.report.export import export_elites, write_export

    if (cell is not None) + best + front > 1:
        raise UserError("--cell, --best and --front: give one of them")
    if front and output is None and format_name != "json":
        raise UserError("--front: name the folder of its files: --output FOLDER")
    target = output and output.absolute()  # before the task's code runs, which may change the working folder
    exported = export_elites(_view(run_folder, overrides), format_name, cell=cell, front=front, arch=arch)
    for note in exported.notes:
        _warn(note)
    if output is None or target is None:
        click.echo("".join(exported.texts.values()), nl=False)
        return
    for path in write_export(exported, target, front=front):
        click.echo(output if path == target else output / path.name)


@main.command()
@click.argument("run_folder", metavar="RUN", type=click.Path(path_type=Path))
@click.option("--data", required=True, type=click.Path(path_type=Path), help="What to predict: for tables, a CSV file.")
@click.option("--cell", metavar="I,J", help="The elite in this cell of the grid (or with this cell number).")
@click.option("--best", is_flag=True, help="The elite with the highest objective; the default, as of evo show and export.")
@click.option("--output", type=click.Path(path_type=Path), help="The CSV file to write.  [default: standard output]")
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override a key that changes no result.")
@_verb
def predict(run_folder: Path, data: Path, cell: str | None, best: bool, output: Path | None, overrides: tuple[str, ...]) -> None:
    """Write what an elite of the run in folder RUN predicts for new data, as CSV with a row for each row of the data."""
    from evo.report.predict import predictions
    from evo.storage.files import write_outputs

    if cell is not None and best:
        raise UserError("--cell and --best: give one of them")
    source, target = data.absolute(), output and output.absolute()  # before the task's code runs
    text, note = predictions(_view(run_folder, overrides), source, cell)
    if note:
        _warn(note)
    if target is None:
        click.echo(text, nl=False)
    else:
        write_outputs({target: text.encode()}, [source])
        click.echo(output)


@main.command()
@click.argument("run_folder", metavar="RUN", type=click.Path(path_type=Path))
@click.option("--cell", metavar="I,J", help="The elite in this cell of the grid (or with this cell number).")
@click.option("--best", is_flag=True, help="The elite with the highest objective; the default.")
@click.option("--front", is_flag=True, help="Each elite of the front, as evo show --front lists them.")
@click.option(
    "--tolerance",
    type=click.FloatRange(0.0, 1.0),
    default=1e-3,
    show_default=True,
    help="Objective that may be lost, times max(1, |objective|).",
)
@click.option("--output", type=click.Path(path_type=Path), help="File for the program in text form, or folder of a front.")
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override a key that changes no result.")
@_verb
def simplify(
    run_folder: Path,
    cell: str | None,
    best: bool,
    front: bool,
    tolerance: float,
    output: Path | None,
    overrides: tuple[str, ...],
) -> None:
    """Take from an elite of the run in folder RUN the instructions and digits that its objective does not need."""
    from evo.report.simplify import simplify_elites
    from evo.storage.files import write_outputs

    if (cell is not None) + best + front > 1:
        raise UserError("--cell, --best and --front: give one of them")
    target = output and output.absolute()  # before the task's code runs, which may change the working folder
    found = simplify_elites(_view(run_folder, overrides), cell=cell, front=front, tolerance=tolerance)
    for note in found.notes:
        _warn(note)
    paths: dict[Path, bytes] = {}
    if target is not None:
        into_folder = front or target.is_dir()
        paths = {(target / name if into_folder else target): text.encode() for name, text in found.programs.items()}
        write_outputs(paths, inputs=())
    click.echo("\n".join(found.descriptions), nl=False)
    for path in paths:
        click.echo(output if output is None or path == target else output / path.name)


@main.command()
@click.argument("run_folder", metavar="RUN", type=click.Path(path_type=Path))
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override a key that changes no result.")
@_verb
def check(run_folder: Path, overrides: tuple[str, ...]) -> None:
    """Score all elites of the run in folder RUN on the CPU and on the GPU, and say how far they agree."""
    from evo.report.check import check_elites

    report = check_elites(_view(run_folder, overrides))
    click.echo(report.text(), nl=False)
    if not report.passed:
        sys.exit(EXIT_CHECK_FAILED)


@main.command(name="eval")
@click.argument("config", type=_ConfigPath())
@click.option("--program", "program", required=True, type=click.Path(path_type=Path), help="A program in text form.")
@click.option("--output", default=Path(), type=click.Path(path_type=Path), help="Folder for its pictures.  [default: .]")
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help=_SET_HELP)
@_verb
def evaluate(config: Path, program: Path, output: Path, overrides: tuple[str, ...]) -> None:
    """Score, and picture, a program written by hand for the task of CONFIG."""
    from evo.config import load_config

    loaded = load_config(config, overrides)
    from evo.report.show import describe_program, read_program
    from evo.run.loaded_task import load_problem

    folder = output.absolute()  # before the task's code runs, which may change the working folder
    problem = load_problem(loaded).here()
    words = read_program(problem, program)
    click.echo(describe_program(problem, words), nl=False)
    if problem.task.has_pictures():
        from evo.report.plot.pictures import picture_program

        try:
            folder.mkdir(parents=True, exist_ok=True)
            for path in picture_program(problem, words, folder / program.stem):
                click.echo(output / path.name)
        except OSError as error:
            raise UserError(f"{output}: cannot write the pictures: {error.strerror}") from error


@main.command(name="compile")
@click.argument("source", metavar="RUN|CONFIG", type=_ConfigPath())
@click.option("--arch", default="sm_90", show_default=True, help="GPU architecture to compile for.")
@click.option("--output", type=click.Path(path_type=Path), help="Folder for the cubins.  [default: RUN/cubins or ./cubins]")
@click.option("--random", "num_random", type=click.IntRange(1), default=256, show_default=True, help="Programs of a CONFIG.")
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help=_SET_HELP)
@_verb
def compile_cubins(source: Path, arch: str, output: Path | None, num_random: int, overrides: tuple[str, ...]) -> None:
    """Compile the elites of folder RUN, or random programs of CONFIG, to cubins. Needs no GPU."""
    from evo.report.compile import compile_config, compile_run

    if source.is_dir():
        report = compile_run(_view(source, overrides), arch, output or source / "cubins")
    else:
        report = compile_config(source, overrides, arch, output or Path("cubins"), num_random)
    for line in report.failed:
        click.echo(f"failed: {line}", err=True)
    click.echo(report.text(), nl=False)


@main.command()
@click.option("--connect", required=True, metavar="ADDRESS", help="Where the run listens: tcp://HOST:PORT.")
@click.option("--workers", "num_workers", type=click.IntRange(1), help="Compile processes.  [default: one per core]")
@click.option("--keys", type=click.Path(path_type=Path), help="Folder of this worker's keys; see: evo keys new --help")
@click.option("--json", "as_json", is_flag=True, help="Print the status as a JSON object each second.")
@_verb
def worker(connect: str, num_workers: int | None, keys: Path | None, as_json: bool) -> None:
    """Compile for the run at an address, one run after the other, until Ctrl-C. Needs no GPU."""
    from evo.compile.executor import why_no_farm
    from evo.evaluate.backends import why_no_compiler

    if problem := why_no_compiler() or why_no_farm():
        raise UserError(problem)
    from evo.compile.farm.worker import Worker
    from evo.report.farm import StatusLine

    with StatusLine(connect, as_json=as_json) as line:
        worker = Worker(connect, keys, num_workers, line, line.say)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: worker.stop())
        worker.serve()


@main.group()
def keys() -> None:
    """Keys by which a run and the workers of its farm know each other."""


@keys.command(name="new")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--worker", "name", default="worker", show_default=True, help="The worker's name, and its folder's.")
@_verb
def new_keys(folder: Path, name: str) -> None:
    """Make the keys of a run and of a worker in FOLDER, or of another worker of the same run."""
    from evo.compile.executor import why_no_farm

    if problem := why_no_farm():
        raise UserError(problem)
    from evo.compile.farm.keys import make_keys

    run_folder, worker_folder = make_keys(folder, name)
    click.echo(f"the run's keys:    {run_folder}  (evaluation.farm.keys)")
    click.echo(f"the worker's keys: {worker_folder}  (copy the folder to its machine: evo worker --keys)")


@main.command()
@click.argument("config", type=_ConfigPath())
@click.option("--seeds", default="1-10", show_default=True, help="Seeds and ranges: 1-20 or 1,3,7-9.")
@click.option("--grid", multiple=True, metavar="KEY=A,B", help="Try each value of a key: --grid search.batch_size=256,1024.")
@click.option("--output", type=click.Path(path_type=Path), help="Folder of the sweep.  [default: runs/<config>-sweep]")
@click.option("--jobs", type=click.IntRange(1), help="Runs at the same time.  [default: one per core]")
@click.option("--on", "scheduler", metavar="ADDRESS", help="Address of a Dask scheduler whose workers execute the runs.")
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help=_SET_HELP)
@_quiet_option
@_verb
def sweep(
    config: Path,
    seeds: str,
    grid: tuple[str, ...],
    output: Path | None,
    jobs: int | None,
    scheduler: str | None,
    overrides: tuple[str, ...],
) -> None:
    """Run CONFIG with many seeds, and with each combination of the values in a grid; compare the results.

    The same command goes on with a sweep that was interrupted.
    """
    from evo.run.sweep import locked, plan_sweep

    if jobs and scheduler:
        raise UserError("--jobs and --on: give one of them; the number of Dask workers is that of runs at the same time")
    plan = plan_sweep(config, seeds, grid, overrides, output)
    if scheduler and any(run.config.evaluation.cluster for run in plan.runs):
        raise UserError(
            "--on and evaluation.cluster: give one of them; the runs would wait for the workers that execute them: "
            "--set evaluation.cluster=null"
        )
    folder = Path(os.path.relpath(plan.folder))
    with locked(plan.folder):
        num_failed = _execute_sweep(plan, folder, jobs, scheduler)
    if not num_failed:
        _compare([folder], folder / "sweep.png")
        return
    click.echo(f"evo: {num_failed} of {len(plan.runs)} runs failed; the same command tries again", err=True)
    if num_failed < len(plan.runs):
        try:
            _compare([folder], folder / "sweep.png")
        except UserError as error:
            _warn(f"no comparison: {' '.join(str(error).splitlines())}")
    sys.exit(EXIT_CHECK_FAILED)


@main.command()
@click.argument("run_folders", metavar="RUN", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--output", default=Path("compare.png"), show_default=True, type=click.Path(path_type=Path), help="The picture.")
@_verb
def compare(run_folders: tuple[Path, ...], output: Path) -> None:
    """Compare runs in the folders RUN, or in folders of them such as a sweep's: medians, quartiles, and what is no noise."""
    _compare(run_folders, output)


@main.command(name="list")
@click.argument("folder", metavar="[RUNS]", default="runs", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@_verb
def list_runs_below(folder: Path, as_json: bool) -> None:
    """List the runs in folder RUNS, the youngest first: state, best objective, coverage, evaluations, age and size."""
    from evo.report.runs import list_runs, runs_json, runs_text

    rows = list_runs(folder)
    click.echo(runs_json(rows) if as_json else runs_text(rows), nl=False)


@main.command()
@click.argument("word", required=False)
@click.option("--config", "config", metavar="CONFIG", type=_ConfigPath(), help="Only the vocabulary of this config.")
@click.option("--instruction-set", metavar="SET", help="default, wide, or a JSON file.  [default: default]")
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override a key of --config.")
@_verb
def instructions(word: str | None, config: Path | None, instruction_set: str | None, overrides: tuple[str, ...]) -> None:
    """List the instructions that programs may use, or those with WORD in their name or meaning."""
    from evo.instructions import check_names, open_instruction_set
    from evo.report.instructions import describe_instructions

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
    click.echo(describe_instructions(chosen, names, word), nl=False)


@main.command()
@click.option("--test", is_flag=True, help="Test each GPU first, even if it was tested before.")
@click.option("--measure", is_flag=True, help="Measure what programs cost here: some 10 seconds, with a GPU about a minute.")
@_verb
def doctor(test: bool, measure: bool) -> None:
    """Say what this machine offers, and what each missing piece means."""
    from evo.report.doctor import report, test_gpus

    for line in test_gpus() if test else []:
        _warn(line)
    click.echo(report(), nl=False)
    if measure:
        from evo.report import measure as measurement

        for line in measurement.measure(_warn):
            click.echo(line)


def _view(run_folder: Path, overrides: tuple[str, ...], *, with_task: bool = True) -> Run:
    """The run in a folder, to look at. Warns of what would keep it from going on."""
    from evo.run.run import Run

    run, notes = Run.view(run_folder, overrides, with_task=with_task)
    for line in notes:
        _warn(line)
    return run


def _execute_sweep(plan: Sweep, folder: Path, jobs: int | None, scheduler: str | None) -> int:
    """Executes the unfinished runs of a sweep and says what became of each. Returns how many failed."""
    from evo.run.sweep_execute import execute_here, execute_on
    from evo.run.sweep_process import Ending

    unfinished = plan.unfinished
    total, num_done = len(plan.runs), len(plan.runs) - len(unfinished)
    num_started = sum(run.is_finished is False for run in unfinished)
    _say(f"sweep folder: {folder}")
    _say(f"{total} runs: {num_done} finished, {num_started} to go on, {len(unfinished) - num_started} to start")
    counts = dict.fromkeys(Ending, 0)
    interrupted = Interrupt(_Lines(), "finishing the generations in progress and saving")
    with interrupted:
        outcomes = execute_on(scheduler, plan, interrupted) if scheduler else execute_here(plan, jobs, interrupted)
        for run, outcome in outcomes if unfinished else ():
            counts[outcome.ending] += 1
            for note in outcome.notes:
                _warn(f"{run.name}: {note}")
            if outcome.ending is Ending.FAILED:
                click.echo(f"evo: {run.name}: failed: {outcome.text}", err=True)
            elif outcome.ending is Ending.FINISHED:
                _say(f"[{num_done + counts[Ending.FINISHED]}/{total}] {run.name}: stopped by {outcome.text}")
    if interrupted():
        _say(f"{num_done + counts[Ending.FINISHED]} of {total} runs are finished; go on with the same command")
        sys.exit(EXIT_INTERRUPTED)
    return counts[Ending.FAILED]


def _compare(run_folders: Sequence[Path], picture: Path) -> None:
    """Prints a comparison and draws it."""
    from evo.report.compare import compare_text, load_groups
    from evo.report.plot.quartiles import draw_quartiles

    groups, notes = load_groups(run_folders)
    for line in notes:
        _warn(line)
    _say(compare_text(groups).removesuffix("\n"))
    draw_quartiles(groups, picture)
    _say(picture)


def _execute(run: Run, folder: Path) -> None:
    """Runs a search to its end with progress; draws its plots. Messages name the run's folder as its user does: `folder`."""
    from evo.report.progress import prescreen_text, progress_of, success_text

    search = run.search
    progress = progress_of(search, shown=not _is_quiet())
    interrupted = Interrupt(progress)
    _say(f"run folder: {folder}")
    if run.calibration:
        _say(f"measured: {run.calibration}")
    _say(f"programs run on: {search.problem.evaluator.device}")
    try:
        with interrupted, progress:
            reason = run.execute(progress, interrupted)
    except DeviceFailure as failure:
        count = len(failure.failures)
        culprits = (
            f"; programs that fail alone, {count} of them, are in {folder / 'quarantine'} and are left out from now on"
            if count
            else ""
        )
        resume_line = f"the last checkpoint stands, go on with: evo resume {folder}"
        end_at_once(f"the GPU failed: {failure}{culprits}; {resume_line}", EXIT_DEVICE_FAILED)
    _say(f"stopped by {reason}")
    if search.problem.config.search.emitters:
        _say(success_text(search.emitter.success()))
    if search.prescreen and (text := prescreen_text(run.run_dir.metrics())):
        _say(text)
    if reason == "interrupted":
        run.close()
        _say(f"saved; go on with: evo resume {folder}")
        sys.exit(EXIT_INTERRUPTED)
    from evo.report.plot import draw_plots

    for path in draw_plots(run, search.problem.config.output.plots):
        _say(folder / path.relative_to(run.run_dir.path))
    counters = search.counters
    if search.archive.empty:
        _warn(f"none of {counters.evaluations:,} programs got a finite score; the archive is empty")
    if counters.failed:
        _warn(
            f"{counters.failed:,} of {counters.evaluations:,} programs could not be compiled or run; see them with: "
            f"evo show {folder} --failed"
        )
    if counters.out_of_range and not search.problem.config.search.learning.is_spanning:  # where ranges leave some out by design
        _warn(
            f"{counters.out_of_range:,} of {counters.evaluations:,} evaluations had a measure out of its range; "
            "they count to the cells at the edge"
        )
    run.close()


def _say_loading(path: Path) -> None:
    """Says on a terminal what may take seconds. Where nobody watches, a mistake stays the only line."""
    if sys.stdout.isatty():
        _say(f"loading {path}")


def _is_quiet() -> bool:
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(_QUIET))


def _say(message: object, *, err: bool = False) -> None:
    """Prints what is no error and no result of its own, unless the user wants errors only."""
    if not _is_quiet():
        click.echo(message, err=err)


def _warn(message: str) -> None:
    _say(f"warning: {message}", err=True)


class _Lines:
    """Shows what `Interrupt` says where no progress is shown."""

    def say(self, message: str) -> None:
        _say(message, err=True)

    def end(self) -> None:
        pass
