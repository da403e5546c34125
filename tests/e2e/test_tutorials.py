"""The notebook about int4 weights: its cells run, and what its text says is what they print."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from evo.instructions import shipped_instruction_set
from evo.language.program import Language, parse_program
from evo.native.ptx_vm import VirtualMachine

INT4 = Path(__file__).parents[2] / "docs/tutorials/int4.ipynb"


def run_cell(source: str, environment: dict[str, str]) -> str:
    """Runs a cell of shell commands and these magics as IPython does; gives what its commands print."""
    if source.startswith("%%writefile "):
        first, _, text = source.partition("\n")
        Path(first.split()[1]).write_text(text)
        return ""
    printed = ""
    for line in source.split("\n"):
        if line.startswith("%env "):
            environment.update([line.removeprefix("%env ").split("=")])
            continue
        assert line.startswith("!"), line
        done = subprocess.run(line[1:], shell=True, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
        printed += done.stdout
    return printed


@pytest.mark.slow
def test_int4_weights_are_unpacked_as_the_notebook_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cells = [("".join(cell["source"]), cell["cell_type"]) for cell in json.loads(INT4.read_text())["cells"]]
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    printed = "\n".join(run_cell(source, environment) for source, kind in cells if kind == "code")
    text = "\n".join(source for source, kind in cells if kind == "markdown")
    assert "18 issue slots" in text and "18 slots on sm_90" in printed
    assert "4,294,967,296" in text and printed.count("proven for every input, in parts: 4,294,967,296 inputs") == 2
    stub = printed[printed.index("#pragma once") :]
    assert [stub.count(name) for name in ("shr.u32", "lop3.b32", "add.rn.bf16x2")] == [3, 4, 4]
    [certificate] = tmp_path.glob("runs/exact/*/proofs/*.json")
    outputs = tuple((f"y{k}", "b32") for k in range(4))
    language = Language(shipped_instruction_set("bits"), (("q", "b32"),), outputs)
    words = parse_program(language, json.loads(certificate.read_text())["program"], "certificate")
    weights = np.random.default_rng(1).integers(0, 16, (8, 4096))
    q = (weights << 4 * np.arange(8)[:, None]).sum(axis=0).astype(np.uint32)
    found = VirtualMachine(language.lowering).store(words[None], [q, None, None, None, None])[0].view(np.uint32)
    for k in range(8):
        halves = found[k % 4] << 16 if k < 4 else found[k % 4] & 0xFFFF0000
        np.testing.assert_array_equal(halves.astype(np.uint32).view(np.float32), weights[k] - 8)
