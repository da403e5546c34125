"""`python -m evo.instructions generate`: an instruction set as a header for C or C++.

Owns the command line. A mistake in the description is one line on stderr and exit code 2, and nothing is written.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from evo.errors import UserError
from evo.instructions import SHIPPED, load_instruction_set, shipped_instruction_set
from evo.instructions.header import render_header


@click.group()
def main() -> None:
    """Instruction sets of Stack PTX."""


@main.command()
@click.option("--input", "source", required=True, help=f"JSON description, or the name of a shipped set: {', '.join(SHIPPED)}.")
@click.option("--output", required=True, type=click.Path(dir_okay=False, path_type=Path), help="Header to write.")
@click.option("--lang", required=True, type=click.Choice(["c", "cpp"]), help="C99, or C++11.")
def generate(source: str, output: Path, lang: str) -> None:
    """Writes the header of an instruction set, to be used with stack_ptx.h."""
    try:
        instruction_set = shipped_instruction_set(source) if source in SHIPPED else load_instruction_set(source)
        _write_whole(output, render_header(instruction_set, lang, output.name))
    except UserError as error:
        click.echo(f"error: {' '.join(str(error).splitlines())}", err=True)
        sys.exit(2)


def _write_whole(path: Path, text: str) -> None:
    """The file appears whole or not at all."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        partial.write_text(text, encoding="ascii")
        os.replace(partial, path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise UserError(f"{path}: cannot write the header: {error.strerror}") from error


if __name__ == "__main__":
    main(prog_name="python -m evo.instructions")
