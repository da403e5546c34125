"""Writes each library as one file that needs no other: what a project copies to vendor it.

    python csrc/single_headers.py              into dist/
    python csrc/single_headers.py third_party  into another folder

A single header is the header itself with the text of each header that it includes. Include guards stay, so single headers can be
included together, in any order. Copy all of them from one version.

Owns what goes into single headers. ptx_vm.h is left out, since its kernels are compiled once for each SIMD level, each in a file
with flags of its own, and so are derive.h, tune.h and itll_features.h, which work with it, and device_code.h, which is for a
kernel of the Python package. To use these, copy the folder csrc/.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from pathlib import Path

CSRC = Path(__file__).resolve().parent
REPOSITORY = CSRC.parent
HEADERS = (
    "stack_ptx.h",
    "stack_ptx_default_info.h",
    "generated/stack_ptx_descriptions.h",
    "generated/stack_ptx_descriptions.hpp",
    "ast_ptx.h",
    "ast_ptx_instructions.h",
    "ast_ptx_interpreter.h",
    "ptx_inject.h",
    "check_result_helper.h",
    "vary.h",
    "itll.h",
)
_INCLUDE = re.compile(r'^#include "([^"]+)"[^\n]*\n', re.MULTILINE)


def main() -> int:
    """Writes the headers. Returns the exit code."""
    parser = argparse.ArgumentParser(description="Writes each library of csrc/ as one file.")
    parser.add_argument("output", nargs="?", type=Path, default=REPOSITORY / "dist", help="folder, made if it is missing")
    output = parser.parse_args().output
    try:
        for name in HEADERS:
            (output / name).parent.mkdir(parents=True, exist_ok=True)
            (output / name).write_text(single_header(CSRC / name))
    except OSError as error:
        print(f"{error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    return 0


def single_header(path: Path) -> str:
    """The text of a header that needs no other."""
    version = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["version"]
    licence = (REPOSITORY / "LICENSE").read_text().strip()
    origin = f"{path.name} of evo {version} in one file, written by csrc/single_headers.py.\n\n{licence}"
    comment = "\n".join(f" * {line}".rstrip() for line in origin.splitlines())
    return f"/*\n{comment}\n */\n\n{_whole(path, set())}"


def _whole(path: Path, written: set[Path]) -> str:
    """A header with what it includes in place. What is already written is left out: guards would skip it."""
    if path in written:
        return ""
    written.add(path)
    return _INCLUDE.sub(lambda match: _whole(_found(match[1], path), written), path.read_text())


def _found(name: str, including: Path) -> Path:
    """The file of an include: beside the header that includes it, or in csrc/."""
    beside = including.parent / name
    return beside if beside.exists() else CSRC / name


if __name__ == "__main__":
    sys.exit(main())
