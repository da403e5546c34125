"""C and C++ compilers for tests of headers. A missing one is a skip; conftest.py sees to it that CI has all."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

CSRC = Path(__file__).parent.parent / "csrc"
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Werror")


def compiler(name: str) -> str:
    """The path of a compiler."""
    return shutil.which(name) or pytest.skip(f"{name} is not installed")


def run(*command: str | Path, **environment: str) -> subprocess.CompletedProcess:
    """Runs a command to its end; a failure shows what it printed."""
    done = subprocess.run(
        [*map(str, command)], capture_output=True, text=True, timeout=600, env={**os.environ, **environment}, check=False
    )
    assert done.returncode == 0, f"{' '.join(map(str, command))}\nended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def build(folder: Path, command: str, standard: str, source: str, *options: str | Path) -> Path:
    """The program made of a source, without a warning."""
    file, program = folder / ("main.cpp" if "+" in standard else "main.c"), folder / "main"
    file.write_text(source)
    run(compiler(command), f"-std={standard}", *WARNINGS, *options, "-I", CSRC, file, "-o", program, "-lm")
    return program
