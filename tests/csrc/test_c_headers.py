"""The C headers: they compile without warnings as C and C++, and their C tests and fuzz targets pass under sanitizers.

Public headers are those of csrc/ itself; the folders below have parts of them.
"""

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest
from compilers import CSRC, WARNINGS, build, compiler, run

HERE = Path(__file__).parent
SANITIZERS = ("-g1", "-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer")


def switch_of(header: Path) -> str:
    """The macro that makes a header hold its implementation."""
    return f"{header.stem.upper()}_IMPLEMENTATION"


HEADERS = sorted(CSRC.glob("*.h"))
C_TESTS = sorted(HERE.glob("test_*.c"))
CPP_TESTS = sorted(HERE.glob("test_*.cpp"))
FUZZ_TARGETS = sorted(HERE.glob("fuzz_*.c"))


def name_of(path: Path) -> str:
    return path.name


def num_fuzz_runs(target: Path) -> int:
    return 1_000 if target.name == "fuzz_programs.c" else 5_000  # it tunes each program, at 45 points


# Only gcc has warnings, such as -Wmaybe-uninitialized, that come from its optimizer; it is the same one for each language.
@pytest.mark.parametrize(
    ("command", "standard", "debug", "stop"),
    [
        ("gcc", "c99", False, ("-O1", "-S")),
        *((*language, False, ("-fsyntax-only",)) for language in (("clang", "c2x"), ("g++", "c++11"), ("clang++", "c++2b"))),
        *((*language, True, ("-fsyntax-only",)) for language in (("gcc", "c99"), ("clang++", "c++2b"))),
        *(
            pytest.param(*language, False, ("-fsyntax-only",), marks=pytest.mark.slow)
            for language in (("gcc", "c2x"), ("clang", "c99"), ("g++", "c++2b"), ("clang++", "c++11"))
        ),
    ],
)
def test_headers_compile_without_warnings(tmp_path, command, standard, debug, stop):
    for header in HEADERS:
        source = tmp_path / f"{header.stem}.{'cpp' if '++' in command else 'c'}"
        # Once for its declarations, then twice for its implementation: every order of inclusion has to work.
        source.write_text(
            f'#include "{header.name}"\n#define {switch_of(header)}\n#include "{header.name}"\n#include "{header.name}"\n'
        )
        debug_switch = [f"-D{header.stem.upper()}_DEBUG"] if debug else []
        run(
            *(compiler(command), f"-std={standard}", *WARNINGS, "-Wpedantic", *debug_switch),
            *(*stop, "-I", CSRC, source, "-o", tmp_path / "out.s"),
        )


@pytest.mark.parametrize("name", sorted({header.stem for header in HEADERS if "_API " in header.read_text()}))
def test_static_switch_keeps_functions_to_their_file(tmp_path, name):
    library = name.upper()
    run(
        *(compiler("gcc"), "-std=c99", *WARNINGS, f"-D{library}_STATIC", f"-D{library}_IMPLEMENTATION", "-I", CSRC),
        *("-include", "stddef.h", "-x", "c", "-c", CSRC / f"{name}.h", "-o", tmp_path / "out.o"),
    )
    symbols = run("nm", "--defined-only", "--extern-only", tmp_path / "out.o").stdout
    assert f" {name}_" not in symbols


# Headers that take longer to compile than the tests that use them -> the headers by which they do.
SHARED = {
    ("detail/ptx_vm_baseline.c",): "ptx_vm|tuning",
    ("-DSTACK_PTX_IMPLEMENTATION", "stack_ptx.h"): r"stack_ptx(_bench|_default_info)?|tuning",
}


def shared_by(source: Path) -> list[tuple[str, ...]]:
    included = re.findall(r'^#include "(\w+)\.h"', source.read_text(), re.MULTILINE)
    return [shared for shared, names in SHARED.items() if any(re.fullmatch(names, name) for name in included)]


@pytest.fixture(scope="session")
def objects_for(tmp_path_factory):
    """Gives the objects, made by a compiler, that a source needs."""
    folder = tmp_path_factory.mktemp("objects")

    @cache
    def make(command: str, *source: str) -> Path:
        path = folder / f"{len(list(folder.iterdir()))}.o"
        options = (*source[:-1], *(["-fsanitize=fuzzer-no-link"] if command == "clang" else []))
        run(compiler(command), "-std=c99", *SANITIZERS, *options, "-I", CSRC, "-x", "c", "-c", CSRC / source[-1], "-o", path)
        return path

    return lambda source, command: [make(command, *shared) for shared in shared_by(source)]


# The kernels of the virtual machine take gcc and clang most of a minute: clang compiles them for the fuzzer, too.
KERNELS = [source for source in C_TESTS if ("detail/ptx_vm_baseline.c",) in shared_by(source)]


# vary.h has code for SSE2 and code for processors without it.
@pytest.mark.parametrize(
    ("source", "command", "more"),
    [
        *((source, "gcc", "-g1") for source in C_TESTS if source not in KERNELS),
        *(pytest.param(source, "clang", "-g1", marks=pytest.mark.slow) for source in KERNELS),
        pytest.param(HERE / "test_vary.c", "gcc", "-U__SSE2__", marks=pytest.mark.slow),
    ],
    ids=lambda part: getattr(part, "name", part),
)
def test_c_tests_pass_under_sanitizers(tmp_path, objects_for, source, command, more):
    program = tmp_path / source.stem
    objects = objects_for(source, command)
    run(compiler(command), "-std=c99", *WARNINGS, *SANITIZERS, more, "-I", CSRC, source, *objects, "-o", program, "-lm")
    run(program)


@pytest.mark.parametrize(("command", "standard"), [pytest.param("g++", "c++11", marks=pytest.mark.slow), ("clang++", "c++17")])
@pytest.mark.parametrize("source", CPP_TESTS, ids=name_of)
def test_cpp_tests_pass_under_sanitizers(tmp_path, source, command, standard):
    program = tmp_path / source.stem
    run(compiler(command), f"-std={standard}", *WARNINGS, "-Wpedantic", *SANITIZERS, "-I", CSRC, source, "-o", program, "-lm")
    run(program)


@pytest.mark.slow
@pytest.mark.parametrize("source", FUZZ_TARGETS, ids=name_of)
def test_fuzz_target_holds_under_libfuzzer(tmp_path, objects_for, source):
    program = tmp_path / source.stem
    run(
        *(compiler("clang"), "-std=c99", *WARNINGS, *SANITIZERS, "-O1", "-fsanitize=fuzzer"),
        *("-I", CSRC, source, *objects_for(source, "clang"), "-o", program, "-lm"),
    )
    # Long inputs from the first on.
    run(program, f"-runs={num_fuzz_runs(source)}", "-seed=1", "-len_control=0", "-max_len=3000", f"-artifact_prefix={tmp_path}/")


# Where an error arises -> the library, the header that provokes it, a wrong call, and its code.
WRONG_CALLS = {
    "stack_ptx_check_name": ("STACK_PTX", "stack_ptx", 'stack_ptx_check_name("f1")', "INVALID_VALUE"),
    "ast_ptx_check_name": ("AST_PTX", "ast_ptx", 'ast_ptx_check_name("f1")', "INVALID_VALUE"),
    "ast_ptx__check_word": (
        *("AST_PTX", "ast_ptx_interpreter", "ast_ptx_interpret(program, NULL, 0, NULL, 0, &value)"),
        "INPUT_IDX_OUT_OF_BOUNDS",
    ),
    "ptx_inject_num_injects": ("PTX_INJECT", "ptx_inject", "ptx_inject_num_injects(NULL, NULL)", "INVALID_INPUT"),
}


@pytest.mark.parametrize("place", WRONG_CALLS)
def test_debug_switch_turns_an_error_into_an_assert_at_its_place(tmp_path, place):
    library, header, call, code = WRONG_CALLS[place]
    program = build(
        *(tmp_path, "gcc", "c99"),
        f"#define {library}_DEBUG\n#define {header.upper()}_IMPLEMENTATION\n#include <{header}.h>\n"
        "#include <ast_ptx.h>\nstatic const AstPtxInstruction program[] = {ast_ptx_encode_input(0), ast_ptx_encode_return};\n"
        f"int main(void) {{\n    float value = 0.0f;\n    return (int)({call}) + (int)value + (int)program[0].aux;\n}}\n",
    )
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert done.returncode == -6  # SIGABRT
    assert place in done.stderr
    assert f"{library}_ERROR_{code}" in done.stderr
