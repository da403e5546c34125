"""docs/examples/ast_ptx: each example runs, in C, C++ and Python, and prints what lies beside it."""

import subprocess
import sys
from pathlib import Path

import pytest
from compilers import CSRC, WARNINGS, compiler, run

REPOSITORY = Path(__file__).parent.parent.parent
EXAMPLES = REPOSITORY / "docs" / "examples" / "ast_ptx"
C_EXAMPLES = sorted(EXAMPLES.glob("*.c"))
LANGUAGES = {"c": ("gcc", "-std=c99"), "cpp": ("g++", "-std=c++11", "-x", "c++")}


def expected(example: Path) -> str:
    return example.with_suffix(".txt").read_text()


def test_there_are_the_same_examples_in_c_and_python():
    names = {path.stem for path in C_EXAMPLES}
    assert names == {"simple", "routines"}
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {*names, "inject"}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("example", C_EXAMPLES, ids=lambda path: path.stem)
def test_example_in_c_and_cpp(tmp_path, example, language):
    command, *options = LANGUAGES[language]
    program = tmp_path / example.stem
    run(compiler(command), *options, *WARNINGS, "-I", CSRC, example, "-o", program, "-lm")
    assert run(program).stdout == expected(example)


@pytest.mark.parametrize("name", ["simple", "routines"])
def test_example_in_python(name):
    example = EXAMPLES / f"{name}.py"
    assert subprocess.run([sys.executable, example], capture_output=True, text=True, check=True).stdout == expected(example)


def test_an_expression_is_injected_into_a_kernel(tmp_path, disassemble):
    pytest.importorskip("evo.native.nvptxcompiler", reason="built without the wheel nvidia-nvptxcompiler")
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    example, cubin = EXAMPLES / "inject.py", tmp_path / "kernel.cubin"
    done = subprocess.run([sys.executable, example, cubin], capture_output=True, text=True, check=True)
    assert done.stdout == expected(example)
    [sass] = disassemble(cubin.read_bytes()).values()
    # The assembler may fuse what the stub leaves apart.
    assert sum("FFMA" in line or "FMUL" in line for line in sass) == 1
