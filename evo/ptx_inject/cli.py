"""The command `ptxinject`: CUDA with annotations in comments to CUDA with markers.

Owns its command line. Errors are `file:line:column: error: message`, which editors understand. All inputs are processed before
anything is written, so that all errors are reported and no call leaves half of its outputs. The exit code is 2 after errors.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from evo.about import VERSION
from evo.errors import UserError
from evo.escape import echo
from evo.native.ptx_inject import AnnotationError, DataType, process_cuda
from evo.storage.files import read_input, write_outputs

EXIT_USER_ERROR = 2


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.argument("inputs", nargs=-1, required=True, metavar="FILE.cu...", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", required=True, metavar="PATH", help="Folder, made if it is missing; for a single input also a file."
)
@click.option(
    "--types", "types_path", metavar="FILE.json", type=click.Path(path_type=Path), help="Types instead of the default ones."
)
@click.version_option(VERSION, prog_name="ptxinject")
def main(inputs: tuple[Path, ...], output: str, types_path: Path | None) -> None:
    """Turns the PTX_INJECT annotations of CUDA files into inline assembly that marks their sites.

    PATH is a folder if it is an existing one, ends in a slash, or there are several inputs; otherwise it is the file to write.
    ptx_inject.h describes annotations, and evo/ptx_inject/types.py the JSON of types.
    """
    try:
        types = None
        if types_path is not None:
            from evo.ptx_inject.types import load_types

            types = load_types(types_path)
        outputs = _output_paths(inputs, output)
        processed = _process_all(inputs, types)
        read = inputs if types_path is None else (*inputs, types_path)
        write_outputs(dict(zip(outputs, processed, strict=True)), read)
    except UserError as error:
        echo(str(error), err=True)
        sys.exit(EXIT_USER_ERROR)


def _output_paths(inputs: tuple[Path, ...], output: str) -> list[Path]:
    """The output of each input."""
    path = Path(output)
    if len(inputs) == 1 and not output.endswith(os.sep) and not path.is_dir():
        return [path]
    if path.exists() and not path.is_dir():
        raise UserError(f"error: is a file, must be a folder for {len(inputs)} input{'s' * (len(inputs) > 1)}", path)
    first: dict[str, Path] = {}
    for source in inputs:
        if source.name in first:
            raise UserError(f"error: would be written to {path / source.name}, where {first[source.name]} goes", source)
        first[source.name] = source
    return [path / source.name for source in inputs]


def _process_all(inputs: tuple[Path, ...], types: Sequence[DataType] | None) -> list[bytes]:
    """The processed inputs. Raises one UserError with a line for each error."""
    processed, errors = [], []
    for source in inputs:
        try:
            processed.append(process_cuda(read_input(source), types))
        except AnnotationError as error:
            errors.append(f"{source}:{error.line}:{error.column}: error: {error.reason}")
        except UserError as error:
            errors.append(str(error))
    if errors:
        raise UserError("\n".join(errors))
    return processed
