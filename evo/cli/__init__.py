"""The command line: `main`, and the verbs that it has.

`*_verbs.py` have the verbs, one file a group; terminal.py has what they share. A verb imports the heavy parts that it needs.
"""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from evo import get_include
from evo.about import DISTRIBUTION
from evo.cli import export_verbs, machine_verbs, search_verbs, view_verbs
from evo.errors import did_you_mean
from evo.escape import echo, printable
from evo.exit_codes import EXIT_USER_ERROR


class _UsageError(click.ClickException):
    """A mistake in the options or arguments, as one line."""

    exit_code = EXIT_USER_ERROR

    def __init__(self, error: click.UsageError):
        command = error.ctx.command_path if error.ctx else "evo"
        super().__init__(f"{' '.join(error.format_message().split()).rstrip('.')}; see: {command} --help")

    def show(self, file: Any = None) -> None:
        echo(f"evo: {self.message}", err=True)


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

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Verbs with all of their first sentences, which click would cut at 45 characters."""
        with formatter.section("Commands"):
            commands = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
            formatter.write_dl([(name, command.get_short_help_str(limit=1000)) for name, command in commands if command])

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        with _usage_in_one_line():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        with _usage_in_one_line():
            return super().invoke(ctx)


def _print_include(ctx: click.Context, _: click.Parameter, is_given: bool) -> None:
    if is_given:
        echo(get_include())
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
    # A notebook's kernel names a backend that only it has, and matplotlib refuses to load with an unknown one.
    os.environ["MPLBACKEND"] = "Agg"
    # joblib, which pyribs imports, says this where it cannot make a semaphore. Nothing of evo's depends on it.
    written = warnings.formatwarning  # a task's own warnings
    warnings.formatwarning = lambda *args, **kwargs: printable(written(*args, **kwargs))
    warnings.filterwarnings("ignore", ".*joblib will operate in serial mode")


for _module in (search_verbs, view_verbs, export_verbs, machine_verbs):
    for _verb in _module.VERBS:
        main.add_command(_verb)
