"""What tests of compiling share: disassembly, and a place from which worker processes can import what fails in them."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

if not os.environ.get("CI"):  # in CI a build without the wheel is a failure
    pytest.importorskip("evo.native.nvptxcompiler", reason="built without the wheel nvidia-nvptxcompiler")

# compile_cases.py is imported by name, here and in worker processes, which get this process's path.
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def disassemble(tmp_path_factory):
    """Gives for a cubin the SASS of each kernel, by its name: instructions without addresses, and labels."""
    package = importlib.util.find_spec("nvidia.cu13") if importlib.util.find_spec("nvidia") else None
    found = [Path(folder) / "bin" / "nvdisasm" for folder in (package.submodule_search_locations if package else [])]
    tool = next((path for path in found if path.is_file()), None)
    if tool is None:
        assert not os.environ.get("CI"), "in CI a missing disassembler is a failure: pip install '.[test]'"
        pytest.skip("the wheel nvidia-cuda-nvdisasm is not installed")
    folder = tmp_path_factory.mktemp("cubins")

    def run(cubin: bytes) -> dict[str, list[str]]:
        path = folder / "module.cubin"
        path.write_bytes(cubin)
        text = subprocess.run([tool, "-c", path], capture_output=True, text=True, check=True).stdout
        sections = re.split(r"^\s*\.section\s+\.text\.(\w+),.*$", text, flags=re.MULTILINE)
        line = re.compile(r"^(\.L_x_\d+):|/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;", re.MULTILINE)
        return {
            name: [label or instruction for label, instruction in line.findall(body)]
            for name, body in zip(sections[1::2], sections[2::2], strict=True)
        }

    return run


@pytest.fixture
def in_process():
    """An executor that runs requests in this process."""
    with ThreadPoolExecutor(1) as executor:
        yield executor
