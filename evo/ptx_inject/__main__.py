"""`python -m evo.ptx_inject`: headers for C, with types or with embedded PTX.

Owns the command line. A mistake in the input gives one line on stderr and exit code 2, and no file is written.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import click

from evo.errors import UserError, one_line
from evo.escape import echo
from evo.ptx_inject.header import render_embedded_text, render_types_header
from evo.ptx_inject.types import load_types
from evo.storage.files import read_input, write_outputs

_INPUT = click.option("--input", "source", required=True, metavar="FILE", type=click.Path(path_type=Path))
_OUTPUT = click.option("--output", required=True, metavar="HEADER", type=click.Path(path_type=Path), help="Header to write.")


@click.group()
def main() -> None:
    """Headers of PTX Inject for C and C++. The command that processes CUDA is ptxinject."""


@main.command()
@_INPUT
@_OUTPUT
def generate(source: Path, output: Path) -> None:
    """Write the types of a JSON file as a header.

    It has macros for device code and a table for the host.
    """
    _write(source, output, lambda: render_types_header(load_types(source), output.name).encode("ascii", "replace"))


@main.command()
@_INPUT
@_OUTPUT
@click.option("--name", required=True, help="Name of the array; NAME_size is its length.")
def embed(source: Path, output: Path, name: str) -> None:
    """Write a text as a header with a C array.

    The text may be annotated PTX.
    """
    _write(
        source,
        output,
        lambda: render_embedded_text(read_input(source), name, output.name, source.name).encode("ascii", "replace"),
    )


def _write(source: Path, output: Path, render: Callable[[], bytes]) -> None:
    try:
        write_outputs({output: render()}, [source])
    except UserError as error:
        echo(one_line(error), err=True)
        sys.exit(2)


if __name__ == "__main__":
    main(prog_name="python -m evo.ptx_inject")
