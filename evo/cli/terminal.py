"""Shared parts of the command line's verbs: arguments, options, messages, and reports of mistakes.

A user's mistake is one line on standard error, never a traceback. Knows no verb.
"""

from __future__ import annotations

import functools
import glob
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from evo.errors import DeviceFailure, UserError, one_line, os_errors_as, refusal, refuse_scipy_without_room, shortage
from evo.escape import echo
from evo.exit_codes import EXIT_DEVICE_FAILED, EXIT_INTERRUPTED, EXIT_USER_ERROR, end_at_once, exits_told
from evo.report.screen import is_terminal
from evo.shipped import shipped

if TYPE_CHECKING:
    from evo.run.run import Run

_QUIET = "evo.quiet"  # in click's `Context.meta`


def verb(name: str | None = None, **settings: Any) -> Callable[[Callable[..., None]], click.Command]:
    """Makes a command of a function. A UserError, or what the machine lacks, becomes its line and exit code 2; a DeviceFailure
    becomes its line and 3.

    Args:
        name: of the verb; None: the function's.
        settings: of `click.command`.
    """

    def made(function: Callable[..., None]) -> click.Command:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> None:
            try:
                _check_surroundings()
                refuse_scipy_without_room()
                with exits_told():
                    function(*args, **kwargs)
            except Exception as error:
                lacking = shortage(error)
                line = str(error) if isinstance(error, UserError) else lacking or refusal(error)
                if line is None:
                    raise
                echo(f"evo: {one_line(line)}", err=True)
                if os.environ.get("EVO_TRACEBACK"):
                    raise
                if lacking:  # Python's own end may hang then
                    end_at_once(EXIT_USER_ERROR)
                sys.exit(EXIT_USER_ERROR)
            except DeviceFailure as failure:
                end_at_once(EXIT_DEVICE_FAILED, f"the GPU failed: {failure}")
            except KeyboardInterrupt:
                end_at_once(EXIT_INTERRUPTED, "interrupted")  # Python's own end waits for hundreds of threads

        decorate: Callable[[Callable[..., None]], click.Command] = click.command(name, **settings)
        return decorate(wrapped)

    return made


def _check_surroundings() -> None:
    """Raises UserError where a command cannot print, or relative paths lead nowhere."""
    if sys.stdout is None:  # the next file that is opened would take its place, and what is printed
        raise UserError("standard output is closed; send it to a file or to /dev/null")
    with os_errors_as("the working folder is gone, or cannot be entered; change to another one"):
        os.getcwd()


PATH = click.Path(path_type=Path)


class _ConfigPath(click.Path):
    """A config's file, or the name of one of evo's. Tab offers both."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        files = sorted(glob.glob(f"{glob.escape(incomplete)}*.yaml"))
        names = [name for name in shipped("configs") if name.startswith(incomplete)]
        return [CompletionItem(value) for value in [*files, *names]] or super().shell_complete(ctx, param, incomplete)


CONFIG_PATH = _ConfigPath()


def _be_quiet(ctx: click.Context, _: click.Parameter, is_given: bool) -> None:
    ctx.meta[_QUIET] = is_given


def set_option(help_text: str) -> Callable[..., Any]:
    """`--set`, whose values are `overrides`."""
    return click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help=help_text)


run_argument = click.argument("run_folder", metavar="RUN", type=PATH)
config_argument = click.argument("config", type=CONFIG_PATH)
set_key = set_option("Override a key of the config: --set search.batch_size=256. May be given many times.")
set_shown_key = set_option("Override a key that changes no result.")
_ELITE_OPTIONS = (
    click.option("--cell", metavar="I,J", help="The elite in this cell of the grid (or with this cell number)."),
    click.option("--shortest", is_flag=True, help="The elite with the shortest description; the default where a task knows it."),
    click.option("--knee", is_flag=True, help="The knee of the front: beyond it, more complexity gains less."),
    click.option("--best", is_flag=True, help="The elite with the highest objective; the default of other tasks."),
)
front_option = click.option("--front", is_flag=True, help="Each elite of the front, as evo show --front lists them.")
precision_option = click.option(
    "--precision", type=click.IntRange(1, 17), help="Significant digits of numbers in formulas, for display.  [default: all]"
)
quiet_option = click.option(
    "--quiet",
    "-q",
    is_flag=True,
    expose_value=False,
    callback=_be_quiet,
    help="Print errors only: no progress, summary or warning.",
)


def elite_options(function: Callable[..., None]) -> Callable[..., None]:
    """`--cell`, `--shortest`, `--knee` and `--best`, whose value is `elite`: a name as `evo.report.pareto.row_of_elite` knows it.

    Raises UserError where several are given.
    """

    @functools.wraps(function)
    def wrapped(cell: str | None, *, shortest: bool, knee: bool, best: bool, **options: Any) -> None:
        names = {"shortest": shortest, "knee": knee, "best": best}
        check_one_of({"--cell": cell is not None, **{f"--{name}": is_given for name, is_given in names.items()}})
        function(elite=next((name for name, is_given in names.items() if is_given), cell), **options)

    for option in reversed(_ELITE_OPTIONS):
        wrapped = option(wrapped)
    return wrapped


def check_one_of(options: Mapping[str, bool], elite: str | None = None) -> None:
    """Raises UserError if more than one of these options is given: name -> whether it is.

    Args:
        elite: the value of `elite_options`, which is one more.
    """
    chosen = [name for name, is_given in options.items() if is_given]
    if elite is not None:
        chosen.insert(0, f"--{elite}" if elite in ("shortest", "knee", "best") else "--cell")
    if len(chosen) > 1:
        raise UserError("give one of them", " and ".join(chosen))


def is_quiet() -> bool:
    """Return whether the user wants errors only."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(_QUIET))


def say(message: object, *, err: bool = False) -> None:
    """Prints a remark, neither error nor result, unless the user wants errors only."""
    if not is_quiet():
        echo(message, err=err)


def warn(message: str) -> None:
    """Prints a warning, unless the user wants errors only."""
    say(f"warning: {message}", err=True)


def width() -> int | None:
    """Characters of a line on the terminal; None: the output goes elsewhere."""
    return shutil.get_terminal_size().columns if is_terminal() else None


@contextmanager
def bar(title: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on a terminal; yields a function that takes the amount done and the total."""
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, transient=True, disable=is_quiet() or not is_terminal()) as shown:
        task = shown.add_task(title, total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)


def say_loading(path: Path) -> None:
    """Announces on a terminal a step that may take seconds. Elsewhere an error stays the only line."""
    if is_terminal():
        say(f"loading {path}")


def view(run_folder: Path, overrides: tuple[str, ...], *, with_task: bool = True) -> Run:
    """The run in a folder, to look at. Warns of what would keep it from going on."""
    from evo.run.run import Run

    run, notes = Run.view(run_folder, overrides, with_task=with_task)
    for line in notes:
        warn(line)
    return run
