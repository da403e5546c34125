"""Fixtures of compiling: a place from which worker processes can import what fails in them."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("evo.native.nvptxcompiler", reason="built without the wheel nvidia-nvptxcompiler")

# compile_cases.py is imported by name, here and in worker processes, which get this process's path.
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def in_process():
    """An executor that runs requests in this process."""
    from evo.compile.request import InLine

    return InLine()
