"""The command line: `main`, and the verbs that it has.

`*_verbs.py` have the verbs, one file a group; terminal.py has what they share. A verb imports the heavy parts that it needs.
"""

from __future__ import annotations

import os

import click

from evo import get_include
from evo.about import DISTRIBUTION
from evo.cli import export_verbs, machine_verbs, search_verbs, view_verbs
from evo.cli.terminal import Verbs


def _print_include(ctx: click.Context, _: click.Parameter, is_given: bool) -> None:
    if is_given:
        click.echo(get_include())
        ctx.exit()


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
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


for _module in (search_verbs, view_verbs, export_verbs, machine_verbs):
    for _verb in _module.VERBS:
        main.add_command(_verb)
