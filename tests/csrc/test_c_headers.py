"""The C headers: they compile without warnings as C and C++, and their C tests and fuzz targets pass under sanitizers.

Public headers are those of csrc/ itself; the folders below have parts of them. In CI a missing compiler
is a failure, elsewhere a skip.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CSRC = HERE.parent.parent / "csrc"
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Werror")
SANITIZERS = ("-g1", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer")
NUM_FUZZ_RUNS = 20_000


def switch_of(header: Path) -> str:
    """The macro that makes a header hold its implementation."""
    return f"{header.stem.upper()}_IMPLEMENTATION"


HEADERS = sorted(CSRC.glob("*.h"))
C_TESTS = sorted(HERE.glob("test_*.c"))
FUZZ_TARGETS = sorted(HERE.glob("fuzz_*.c"))


def name_of(path: Path) -> str:
    return path.name


def compiler(name: str) -> str:
    """The path of a compiler."""
    path = shutil.which(name)
    if path is None:
        if os.environ.get("CI"):
            pytest.fail(f"{name} is not installed; CI does not skip for that")
        pytest.skip(f"{name} is not installed")
    return path


def run(*command: str | Path, **environment: str) -> subprocess.CompletedProcess:
    """Runs a command to its end; a failure shows what it printed."""
    done = subprocess.run(
        [*map(str, command)], capture_output=True, text=True, timeout=600, env={**os.environ, **environment}, check=False
    )
    assert done.returncode == 0, f"{' '.join(map(str, command))}\nended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def test_there_are_headers_tests_and_fuzz_targets():
    assert "stack_ptx.h" in map(name_of, HEADERS)
    assert "test_stack_ptx_stacks.c" in map(name_of, C_TESTS)
    assert "fuzz_stack_ptx_lower.c" in map(name_of, FUZZ_TARGETS)


# Only gcc has warnings, such as -Wmaybe-uninitialized, that come from its optimizer; it is the same one for each language.
@pytest.mark.parametrize("debug", [False, True], ids=["release", "debug"])
@pytest.mark.parametrize(
    ("command", "standard", "stop"),
    [
        ("gcc", "c99", ("-O2", "-S")),
        *((command, standard, ("-fsyntax-only",)) for command, standard in [("gcc", "c2x"), ("clang", "c99"), ("clang", "c2x")]),
        *((command, standard, ("-fsyntax-only",)) for command in ("g++", "clang++") for standard in ("c++11", "c++2b")),
    ],
)
def test_headers_compile_without_warnings(tmp_path, debug, command, standard, stop):
    for header in HEADERS:
        source = tmp_path / f"{header.stem}.{'cpp' if '++' in command else 'c'}"
        # Once for its declarations, then twice for its implementation: every order of inclusion has to work.
        source.write_text(
            f'#include "{header.name}"\n#define {switch_of(header)}\n#include "{header.name}"\n#include "{header.name}"\n'
        )
        debug_switch = [f"-D{header.stem.upper()}_DEBUG"] if debug else []
        run(
            *(compiler(command), f"-std={standard}", *WARNINGS, "-Wpedantic", *debug_switch, *stop),
            *("-I", CSRC, source, "-o", tmp_path / "out.s"),
        )


# vary.h has code for SSE2 and code for processors without it.
@pytest.mark.parametrize(
    ("source", "more"),
    [*((source, "-g1") for source in C_TESTS), (HERE / "test_vary.c", "-U__SSE2__")],
    ids=lambda part: getattr(part, "name", part),
)
def test_c_tests_pass_under_sanitizers(tmp_path, source, more):
    program = tmp_path / source.stem
    run(compiler("gcc"), "-std=c99", *WARNINGS, *SANITIZERS, more, "-I", CSRC, source, "-o", program, "-lm")
    run(program)


@pytest.mark.slow
@pytest.mark.parametrize("source", FUZZ_TARGETS, ids=name_of)
def test_fuzz_target_holds_on_generated_inputs(tmp_path, source):
    program = tmp_path / source.stem
    run(compiler("gcc"), "-std=c99", *WARNINGS, *SANITIZERS, "-I", CSRC, source, "-o", program, "-lm")
    run(program, str(NUM_FUZZ_RUNS))


@pytest.mark.slow
@pytest.mark.parametrize("source", FUZZ_TARGETS, ids=name_of)
def test_fuzz_target_holds_under_libfuzzer(tmp_path, source):
    program = tmp_path / source.stem
    run(
        *(compiler("clang"), "-std=c99", *WARNINGS, *SANITIZERS, "-fsanitize=fuzzer", "-DUSE_LIBFUZZER"),
        *("-I", CSRC, source, "-o", program, "-lm"),
    )
    run(program, f"-runs={NUM_FUZZ_RUNS}", "-seed=1", "-max_len=3000", f"-artifact_prefix={tmp_path}/")


def test_debug_switch_turns_an_error_into_an_assert_at_its_place(tmp_path):
    source = tmp_path / "main.c"
    source.write_text(
        "#define STACK_PTX_DEBUG\n#define STACK_PTX_IMPLEMENTATION\n#include <stack_ptx.h>\n"
        'int main(void) { return stack_ptx_check_name("f1") == STACK_PTX_ERROR_INVALID_VALUE ? 3 : 4; }\n'
    )
    program = tmp_path / "main"
    run(compiler("gcc"), "-std=c99", "-I", CSRC, source, "-o", program)
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert done.returncode == -6  # SIGABRT
    assert "stack_ptx_check_name" in done.stderr
    assert "STACK_PTX_ERROR_INVALID_VALUE" in done.stderr
