"""`python -m evo.instructions`: an instruction set, or the table of them, as headers for C or C++.

Owns the command line. A mistake in the description gives one line on stderr and exit code 2, and no file is written.
"""

import sys
from pathlib import Path

import click

from evo.errors import UserError, one_line
from evo.escape import echo
from evo.instructions import SHIPPED, open_instruction_set
from evo.instructions.header import render_header
from evo.instructions.tables import rendered_tables
from evo.storage.files import write_outputs


@click.group()
def main() -> None:
    """Instruction sets of Stack PTX."""


@main.command()
@click.option("--input", "source", required=True, help=f"JSON description, or the name of a shipped set: {', '.join(SHIPPED)}.")
@click.option("--output", required=True, type=click.Path(dir_okay=False, path_type=Path), help="Header to write.")
@click.option("--lang", required=True, type=click.Choice(["c", "cpp"]), help="C99, or C++11.")
def generate(source: str, output: Path, lang: str) -> None:
    """Writes the header of an instruction set, for use with stack_ptx.h."""
    try:
        instruction_set = open_instruction_set(source)
        header = render_header(instruction_set, lang, output.name)
        write_outputs({output: header.encode("ascii", "replace")}, [] if source in SHIPPED else [Path(source)])
    except UserError as error:
        echo(one_line(error), err=True)
        sys.exit(2)


@main.command()
@click.argument("folder", type=click.Path(file_okay=False, exists=True, path_type=Path))
def tables(folder: Path) -> None:
    """Writes the generated headers of csrc/ into a FOLDER: csrc/generated."""
    write_outputs({folder / name: text.encode("ascii") for name, text in rendered_tables().items()}, [])


if __name__ == "__main__":
    main(prog_name="python -m evo.instructions")
