"""The verbs that look at runs: list, show, plot, page, watch and film."""

import signal
from itertools import count
from pathlib import Path

import click

from evo.cli import terminal
from evo.cli.terminal import PATH, say, verb, view, warn
from evo.errors import UserError, did_you_mean
from evo.escape import echo


@verb("list")
@click.argument("folder", metavar="[RUNS]", default="runs", type=PATH)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
def list_runs_below(folder: Path, as_json: bool) -> None:
    """List the runs in folder RUNS, the newest first.

    Each with its state, best objective, coverage, evaluations, age and size.
    """
    from evo.report.run_list import list_runs, runs_json, runs_text

    rows = list_runs(folder)
    echo(runs_json(rows) if as_json else runs_text(rows), nl=False)


@verb()
@terminal.run_argument
@terminal.elite_options
@click.option("--front", is_flag=True, help="Instead of an elite, the front of objective against complexity.")
@click.option("--lineage", is_flag=True, help="Instead, the ancestors of the elite, back to a random program.")
@click.option("--failed", is_flag=True, help="Instead of an elite, the programs that could not be compiled or run.")
@click.option(
    "--csv", "csv_file", metavar="[FILE]", is_flag=False, flag_value="-", help="All elites as CSV.  [FILE: standard output]"
)
@click.option("--ptx", is_flag=True, help="With its PTX stub, which a picture is shown without.")
@terminal.precision_option
@terminal.set_shown_key
def show(
    run_folder: Path,
    elite: str | None,
    front: bool,
    lineage: bool,
    failed: bool,
    csv_file: str | None,
    ptx: bool,
    precision: int | None,
    overrides: tuple[str, ...],
) -> None:
    """Print an elite of the run in folder RUN.

    Its program, its expression, its PTX stub unless it is a picture, its origin and its scores.
    """
    from evo.report.elites_csv import elites_csv
    from evo.report.lineage import describe_lineage
    from evo.report.pareto import describe_front
    from evo.report.show import describe_elite, describe_failed
    from evo.storage.files import write_outputs

    alternatives = {"--failed": failed, "--front": front, "--lineage": lineage, "--csv": csv_file is not None}
    terminal.check_one_of(alternatives, None if lineage else elite)
    target = None if csv_file in (None, "-") else Path(str(csv_file)).absolute()  # the task's code may change the working folder
    run = view(run_folder, overrides, with_task=csv_file is None and not failed)
    if target:
        write_outputs({target: elites_csv(run).encode()}, [])
        echo(csv_file)
        return
    if csv_file:
        text = elites_csv(run)
    elif lineage:
        text = describe_lineage(run, elite)
    elif front:
        text = describe_front(run, terminal.width(), precision)
    else:
        text = describe_failed(run) if failed else describe_elite(run, elite, precision, with_ptx=ptx)
    echo(text, nl=False)


@verb()
@terminal.run_argument
@click.option("--plot", "names", multiple=True, help="Draw only this plot; may be given many times.")
@terminal.set_shown_key
def plot(run_folder: Path, names: tuple[str, ...], overrides: tuple[str, ...]) -> None:
    """Draw the plots of the run in folder RUN into RUN/plots."""
    terminal.say_loading(run_folder)
    from evo.report.plots import PLAIN_PLOTS, PLOTS, draw_plots, why_not_drawn

    for name in names:
        if name not in PLOTS:
            raise UserError(f"--plot {name}: unknown plot, {did_you_mean(name, PLOTS)}")
    run = view(run_folder, overrides, with_task=not names or not PLAIN_PLOTS.issuperset(names))
    for name in names:
        if reason := why_not_drawn(run, name):
            raise UserError(f"--plot {name}: {reason}")
    for path in draw_plots(run, list(names) or run.search.problem.config.output.plots):
        echo(run_folder / path.relative_to(run.run_dir.path))


@verb()
@terminal.run_argument
@click.option("--output", type=PATH, help="The HTML file.  [default: RUN/plots/page.html]")
@terminal.set_shown_key
def page(run_folder: Path, output: Path | None, overrides: tuple[str, ...]) -> None:
    """Write the archive of the run as one HTML file.

    RUN is the run's folder. The file opens in a browser without a network.
    """
    terminal.say_loading(run_folder)
    from evo.report.page import FILE_NAME, write_page

    shown = output or run_folder / "plots" / FILE_NAME
    target = shown.absolute()  # before the task's code runs, which may change the working folder
    write_page(view(run_folder, overrides), target)
    echo(shown)


@verb()
@terminal.run_argument
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port to listen at.  [default: any that is free]")
@terminal.set_shown_key
def watch(run_folder: Path, port: int, overrides: tuple[str, ...]) -> None:
    """Serve the page of the run in folder RUN to a browser.

    The page is renewed with each checkpoint, until Ctrl-C.
    """
    terminal.say_loading(run_folder)
    from evo.report.page.server import PageServer

    with PageServer(run_folder, overrides, port, warn) as server:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: server.stop())
        echo(f"watching {run_folder}; Ctrl-C ends\n{server.url}")
        server.serve()


@verb()
@terminal.run_argument
@terminal.elite_options
@click.option("--size", default="1920x1080", show_default=True, metavar="WxH", help="Width and height in pixels.")
@click.option("--seconds", type=click.FloatRange(0.0, 3600.0, min_open=True), default=20.0, show_default=True, help="Length.")
@click.option("--at", type=click.FloatRange(0.0, 1.0, max_open=True), default=0.0, help="Time in the loop (0 to 1) of a still.")
@click.option("--output", "-o", required=True, type=PATH, help="A film: .mp4, .webm, .webp or .gif; a still: .png.")
@terminal.set_shown_key
@terminal.quiet_option
def film(
    run_folder: Path,
    elite: str | None,
    size: str,
    seconds: float,
    at: float,
    output: Path,
    overrides: tuple[str, ...],
) -> None:
    """Draw an elite of the run in folder RUN at any size.

    As a film that moves in a loop, or as a still.
    """
    from evo.report.plot.film import GIF, NUM_SAMPLED, STILL, check_output, write_film, write_still
    from evo.report.plot.frames import frames_of, parse_size

    width, height = parse_size(size)
    rate = 25 if output.suffix.lower() == GIF else 60  # a GIF counts hundredths of a second
    num_frames = max(1, round(seconds * rate))
    target = output.absolute()  # before the task's code runs, which may change the working folder
    check_output(output, width, height)
    run = view(run_folder, overrides)
    with terminal.bar("frames") as progress, frames_of(run, elite, width, height) as frames:
        if output.suffix.lower() == STILL:
            write_still(target, frames.draw(at))
        else:
            done = count(1)
            sampled = frames.loop(min(NUM_SAMPLED, num_frames))
            write_film(target, frames.loop(num_frames), sampled, rate, lambda: progress(next(done), num_frames))
    say(output)


VERBS = (list_runs_below, show, plot, page, watch, film)
