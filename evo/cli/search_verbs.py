"""The verbs that search: init, run, resume, sweep and compare."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evo.cli import terminal
from evo.cli.terminal import PATH, say, verb, warn
from evo.errors import DeviceFailure, UserError, command_line, one_line, plural
from evo.escape import echo
from evo.exit_codes import EXIT_CHECK_FAILED, EXIT_DEVICE_FAILED, EXIT_INTERRUPTED, Interrupt, end_at_once
from evo.native.crash_line import on_crash
from evo.shipped import shipped
from evo.workers import MAX_WORKERS

if TYPE_CHECKING:
    from evo.run.run import LiveRun
    from evo.run.sweep import Sweep

LINE = 200  # characters of a formula's line where the output is not a terminal
LEAST_PREPARATION_S = 1.0  # before a search, that its user should know of
MAX_OUT_OF_RANGE = 0.05  # of all evaluations; fewer are outliers, for which nobody should widen a range


@verb()
@click.argument("folder", metavar="[NAME]", required=False, type=PATH)
@click.option(
    "--template", type=click.Choice(list(shipped("templates"))), default="picture", show_default=True, help="What it begins with."
)
def init(folder: Path | None, template: str) -> None:
    """Make a project: a task of your own and its config.

    They stand with a README in the new folder NAME (by default, the template's name).
    """
    from evo.cli.new_project import make_project

    folder = folder or Path(template)
    files = make_project(folder, template)
    for path in files:
        echo(folder / path)
    [config] = [path for path in files if path.suffix == ".yaml"]
    echo(f"start with: cd {shlex.quote(str(folder))} && {command_line('run', config)}")


@verb(epilog=f"Shipped configs: {', '.join(shipped('configs'))}.")
@terminal.config_argument
@terminal.set_key
@terminal.quiet_option
def run(config: Path, overrides: tuple[str, ...]) -> None:
    """Run the experiment that CONFIG describes.

    CONFIG is a file, or the name of a shipped one. The run is a new folder under runs/.
    """
    terminal.say_loading(config)
    from evo.config import load_config

    loaded = load_config(config, overrides)
    from evo.run.run import LiveRun

    run = LiveRun.start(loaded, config.stem, warn)
    _execute(run, Path(loaded.output.runs, config.stem, run.run_dir.path.name))


@verb()
@terminal.run_argument
@terminal.set_option("Override a stop, such as stop.evaluations=200000.")
@terminal.quiet_option
def resume(run_folder: Path, overrides: tuple[str, ...]) -> None:
    """Go on with the run in folder RUN.

    It goes on from its last checkpoint.
    """
    from evo.run.run import LiveRun

    run, notes = LiveRun.resume(run_folder, overrides)
    for line in notes:
        say(f"evo: {line}", err=True)
    _execute(run, run_folder)


@verb()
@terminal.config_argument
@click.option("--seeds", default="1-10", show_default=True, help="Seeds and ranges: 1-20 or 1,3,7-9.")
@click.option("--grid", multiple=True, metavar="KEY=A,B", help="Try each value of a key: --grid search.batch_size=256,1024.")
@click.option("--output", type=PATH, help="Folder of the sweep.  [default: runs/<config>-sweep]")
@click.option("--jobs", type=click.IntRange(1, MAX_WORKERS), help="Runs at the same time.  [default: one per core]")
@click.option("--on", "scheduler", metavar="ADDRESS", help="Address of a Dask scheduler whose workers execute the runs.")
@terminal.set_key
@terminal.quiet_option
def sweep(
    config: Path,
    seeds: str,
    grid: tuple[str, ...],
    output: Path | None,
    jobs: int | None,
    scheduler: str | None,
    overrides: tuple[str, ...],
) -> None:
    """Run CONFIG with many seeds and settings; compare them.

    Runs CONFIG with each seed, and with each combination of the values in a grid. The same command goes on with a sweep that was
    interrupted.
    """
    from evo.run.sweep import locked, plan_sweep

    if jobs and scheduler:
        raise UserError("--jobs and --on: give one of them; the number of Dask workers is that of runs at the same time")
    plan = plan_sweep(config, seeds, grid, overrides, output)
    if any(run.config.evaluation.farm for run in plan.runs):
        raise UserError("the runs of a sweep cannot all listen at one address: --set evaluation.farm=null", "evaluation.farm")
    if scheduler and any(run.config.evaluation.cluster for run in plan.runs):
        raise UserError(
            "--on and evaluation.cluster: give one of them; the runs would wait for the workers that execute them: "
            "--set evaluation.cluster=null"
        )
    folder = Path(os.path.relpath(plan.folder))
    with locked(plan.folder):
        num_failed = _execute_sweep(plan, folder, jobs, scheduler)
    if not num_failed:
        _compare([folder])
        return
    echo(f"evo: {num_failed} of {plural(len(plan.runs), 'run')} failed; the same command tries again", err=True)
    if num_failed < len(plan.runs):
        try:
            _compare([folder])
        except UserError as error:
            warn(f"no comparison: {one_line(error)}")
    sys.exit(EXIT_CHECK_FAILED)


@verb()
@click.argument("run_folders", metavar="RUN", nargs=-1, required=True, type=PATH)
def compare(run_folders: tuple[Path, ...]) -> None:
    """Compare runs: medians, quartiles, and which differences are significant.

    The runs are in the folders RUN, or in folders of them such as a sweep's.
    """
    _compare(run_folders)


VERBS = (init, run, resume, sweep, compare)


def _execute(run: LiveRun, folder: Path) -> None:
    """Runs a search to its end with progress; draws its plots. Messages name the run's folder as its user does: `folder`."""
    from evo.report.progress import progress_of, success_text

    search = run.search
    progress = progress_of(search, shown=not terminal.is_quiet())
    interrupted = Interrupt(progress)
    say(f"run folder: {folder}")
    if run.calibration:
        say(f"measured: {run.calibration}")
    say(f"programs run on: {search.problem.evaluator.device}")
    if search.preparation_s >= LEAST_PREPARATION_S:
        say(f"initial programs: took {search.preparation_s:.0f} s, which stop.seconds does not count")
    on_crash(f"evo: the process crashed; the last checkpoint stands, go on with: {command_line('resume', folder)}")
    try:
        with interrupted, progress:
            reason = run.execute(progress, interrupted)
    except DeviceFailure as failure:
        resume_line = f"the last checkpoint stands, go on with: {command_line('resume', folder)}"
        end_at_once(EXIT_DEVICE_FAILED, f"the GPU failed: {failure}; {resume_line}")
    say(reason if reason == "interrupted" else f"stopped by {reason}")
    if search.problem.config.search.emitters:
        say(success_text(search.emitter.success()))
    if reason == "interrupted":
        run.close()
        say(f"saved; go on with: {command_line('resume', folder)}")
        sys.exit(EXIT_INTERRUPTED)
    from evo.report.pareto import describe_front, why_no_front

    if not (terminal.is_quiet() or why_no_front(run)):
        say(describe_front(run, terminal.width() or LINE) + "(> is what evo show, export, predict and simplify take)")
    if plots := search.problem.config.output.plots:
        from evo.report.plots import draw_plots

        for path in draw_plots(run, plots):
            say(folder / path.relative_to(run.run_dir.path))
    _warn_of_losses(run, folder)
    run.close()
    if len(search.archive):
        say(f"look at it with: {command_line('page', folder)}")


def _warn_of_losses(run: LiveRun, folder: Path) -> None:
    """Warns of programs that the archive does not show as they are."""
    search, counters = run.search, run.search.counters
    if not len(search.archive):
        warn(f"none of {plural(counters.evaluations, 'program')} got a finite score; the archive is empty")
    if counters.failed:
        warn(
            f"{counters.failed:,} of {plural(counters.evaluations, 'program')} could not be compiled or run; see them with: "
            f"{command_line('show', folder, '--failed')}"
        )
    if counters.out_of_range > MAX_OUT_OF_RANGE * counters.evaluations:  # where ranges leave some out by design
        warn(
            f"{counters.out_of_range:,} of {plural(counters.evaluations, 'evaluation')} had a measure out of its range; "
            "they count to the cells at the edge; widen the ranges in the task's measures to tell them apart"
        )


def _execute_sweep(plan: Sweep, folder: Path, jobs: int | None, scheduler: str | None) -> int:
    """Executes the unfinished runs of a sweep and prints the outcome of each. Returns how many failed."""
    from evo.run.sweep_execute import execute_here, execute_on
    from evo.run.sweep_process import Ending

    unfinished = plan.unfinished
    total, num_done = len(plan.runs), len(plan.runs) - len(unfinished)
    num_started = sum(run.is_finished is False for run in unfinished)
    say(f"sweep folder: {folder}")
    say(f"{plural(total, 'run')}: {num_done} finished, {num_started} to go on, {len(unfinished) - num_started} to start")
    counts = dict.fromkeys(Ending, 0)
    interrupted = Interrupt(_Lines(), "finishing the generations in progress and saving")
    with interrupted:
        outcomes = execute_on(scheduler, plan, interrupted) if scheduler else execute_here(plan, jobs, interrupted)
        for run, outcome in outcomes if unfinished else ():
            counts[outcome.ending] += 1
            for note in outcome.notes:
                warn(f"{run.name}: {note}")
            if outcome.ending is Ending.FAILED:
                echo(f"evo: {run.name}: failed: {outcome.text}", err=True)
            elif outcome.ending is Ending.FINISHED:
                say(f"[{num_done + counts[Ending.FINISHED]}/{total}] {run.name}: stopped by {outcome.text}")
    if interrupted():
        say(f"{num_done + counts[Ending.FINISHED]} of {plural(total, 'run')} finished; go on with the same command")
        sys.exit(EXIT_INTERRUPTED)
    return counts[Ending.FAILED]


class _Lines:
    """Prints the messages of `Interrupt` where no progress is shown."""

    def say(self, message: str) -> None:
        say(message, err=True)

    def end(self) -> None:
        pass


def _compare(run_folders: Sequence[Path]) -> None:
    """Prints a comparison."""
    from evo.report.compare import compare_text, load_groups

    groups, notes = load_groups(run_folders)
    for line in notes:
        warn(line)
    say(compare_text(groups).removesuffix("\n"))
