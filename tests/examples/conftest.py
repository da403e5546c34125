"""Fixtures of the examples: their folders, how to build and run one in each language, and the PTX of their CUDA.

An example is the same in C, C++ and Python, and prints the text in docs/examples/expected.
"""

import importlib.util
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from compilers import CSRC, WARNINGS, compiler

from evo.ptx_inject import process_cuda
from evo.ptx_inject.types import load_types

REPOSITORY = Path(__file__).parent.parent.parent
EXAMPLES = REPOSITORY / "docs" / "examples"


def load_example(path: str):
    """The module of a Python example, by its path in docs/examples."""
    file = EXAMPLES / path
    # As when the example is run: what lies beside it can be imported.
    sys.path.insert(0, str(file.parent))
    try:
        spec = importlib.util.spec_from_file_location(file.stem, file)
        module = importlib.util.module_from_spec(spec)
        sys.modules[file.stem] = module  # dataclasses look their module up
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(file.parent))


@pytest.fixture(scope="session")
def example():
    """Imports a Python example by its path in docs/examples."""
    return load_example


def run(*command: str | Path) -> str:
    """The output of a command that succeeds and prints no errors."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, ""), f"{' '.join(map(str, command))}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def annotated_ptx():
    """Gives the PTX that NVRTC makes of docs/examples/cuda/NAME.cu."""
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    nvrtc = load_example("cuda/nvrtc.py")

    @cache
    def compile_once(name: str) -> str:
        types = load_types(EXAMPLES / "custom_types" / "data_types.json") if name == "custom_types" else None
        # Sources of the macro form have no annotations in comments, and stay as they are.
        return nvrtc.compile_cuda(process_cuda((EXAMPLES / "cuda" / f"{name}.cu").read_text(), types)).decode()

    return compile_once


@pytest.fixture(scope="session")
def headers(tmp_path_factory):
    """A folder with the headers that the C and C++ examples say how to make."""
    folder = tmp_path_factory.mktemp("headers")
    sets = {"stack_ptx_descriptions": "default", "custom_instructions": EXAMPLES / "custom_types" / "instructions.json"}
    for name, source in sets.items():
        for suffix, language in (("h", "c"), ("hpp", "cpp")):
            command = ("-m", "evo.instructions", "generate", "--input", source, "--output", folder / f"{name}.{suffix}")
            run(sys.executable, *command, "--lang", language)
    types = EXAMPLES / "custom_types" / "data_types.json"
    run(sys.executable, "-m", "evo.ptx_inject", "generate", "--input", types, "--output", folder / "custom_data_types.h")
    return folder


@pytest.fixture(scope="session")
def embedded_ptx(headers, annotated_ptx):
    """The folder of `headers`, with inject_ptx.h besides."""
    source = headers / "inject.ptx"
    source.write_text(annotated_ptx("inject"))
    options = ("--input", source, "--output", headers / "inject_ptx.h", "--name", "annotated_ptx")
    run(sys.executable, "-m", "evo.ptx_inject", "embed", *options)
    return headers


@pytest.fixture
def run_example(request, headers, tmp_path):
    """Builds an example in a language, under all warnings, and runs it; gives what it prints."""

    def build_and_run(language: str, name: str, *args: str | Path) -> str:
        if language == "python":
            return run(sys.executable, EXAMPLES / "python" / f"{name}.py", *args)
        if name == "inject":
            request.getfixturevalue("embedded_ptx")
            args = args[1:]  # it has its input inside
        source = EXAMPLES / language / f"{name}.{language}"
        program = tmp_path / f"{name}_{language}"
        if language == "c":
            build = (compiler("gcc"), "-std=c99", *WARNINGS)
            run(compiler("clang"), "-std=c99", *WARNINGS, "-fsyntax-only", "-I", CSRC, "-I", headers, source)
        else:
            build = (compiler("g++"), "-std=c++11", *WARNINGS)
        run(*build, "-I", CSRC, "-I", headers, source, "-o", program, "-lm")
        return run(program, *args)

    return build_and_run
