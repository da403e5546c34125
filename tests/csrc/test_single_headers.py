"""csrc/single_headers.py: what it writes compiles alone, in the oldest and the newest standard, and means what
the headers of csrc/ mean.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from compilers import CSRC, WARNINGS, compiler, run

pytestmark = pytest.mark.slow

SCRIPT = CSRC / "single_headers.py"
# Header -> what it implements, before _IMPLEMENTATION and _STATIC, and an expression that is 0.
HEADERS = {
    "stack_ptx.h": (("STACK_PTX",), 'stack_ptx_check_name("x")'),
    "stack_ptx_default_info.h": (("STACK_PTX",), 'compiler_info.stack_size - 128 + stack_ptx_check_name("x")'),
    "generated/stack_ptx_descriptions.h": (("STACK_PTX",), 'stack_ptx_stack_info.num_stacks - 9 + stack_ptx_check_name("x")'),
    "generated/stack_ptx_descriptions.hpp": (("STACK_PTX",), 'stack_ptx::stack_info.num_stacks - 9 + stack_ptx_check_name("x")'),
    "ast_ptx.h": (("AST_PTX",), 'ast_ptx_check_name("x")'),
    "ast_ptx_instructions.h": (("AST_PTX",), 'ast_ptx_ptx_instruction_num_args[0] - 2 + ast_ptx_check_name("x")'),
    "ast_ptx_interpreter.h": (
        ("AST_PTX",),
        "ast_ptx_interpret(NULL, NULL, 0, NULL, 0, NULL) - AST_PTX_ERROR_INVALID_VALUE",
    ),
    "check_result_helper.h": ((), "sizeof(EXIT_SUCCESS) - sizeof(int)"),
    "ptx_inject.h": (("PTX_INJECT",), "ptx_inject_destroy(NULL)"),
    "vary.h": (("VARY",), "vary_operator_to_string(0)[0] - 'u'"),
    "itll.h": (("ITLL",), "itll_level_to_string(itll_best_level())[0] - 'b'"),
}


def language_of(command: str) -> str:
    return "cpp" if command.endswith("++") else "c"


def headers_for(command: str) -> list[str]:
    """The headers that a compiler's language can include."""
    return [name for name in HEADERS if language_of(command) == "cpp" or not name.endswith(".hpp")]


def implementation(header: str) -> str:
    """The lines that ask for a header's implementation."""
    return "".join(f"#define {switch}_IMPLEMENTATION\n" for switch in HEADERS[header][0])


@pytest.fixture(scope="module")
def single_headers(tmp_path_factory) -> Path:
    """A folder with what the script writes."""
    folder = tmp_path_factory.mktemp("single") / "made" / "dist"
    run(sys.executable, SCRIPT, folder)
    return folder


def write_two_files(folder: Path, single_headers: Path, header: str, suffix: str, is_static: bool) -> list[Path]:
    """A folder with the header alone and a program of two files that both call it. Returns the files."""
    shutil.copy(single_headers / header, folder)
    statics = "".join(f"#define {switch}_STATIC\n" for switch in HEADERS[header][0]) if is_static else ""
    include = f'#include <stddef.h>\n#include "{Path(header).name}"\n'
    call = f"return (int)({HEADERS[header][1]});"
    first, second = folder / f"first.{suffix}", folder / f"second.{suffix}"
    first.write_text(
        f"{statics}{implementation(header)}{include}int second(void);\nint main(void) {{\n    if (second()) {{ return 1; }}\n"
        f"    {call}\n}}\n"
    )
    second.write_text(
        f"{statics}{implementation(header) if is_static else ''}{include}int second(void);\nint second(void) {{ {call} }}\n"
    )
    return [first, second]


@pytest.mark.parametrize(
    ("command", "standard", "is_static"),
    [("gcc", "c99", False), ("clang++", "c++2b", False), ("clang", "c2x", True), ("g++", "c++11", True)],
)
def test_each_single_header_compiles_alone_and_links_in_two_files(tmp_path, single_headers, command, standard, is_static):
    for header in headers_for(command):
        folder = tmp_path / header
        folder.mkdir(parents=True)
        files = write_two_files(folder, single_headers, header, language_of(command), is_static)
        run(compiler(command), f"-std={standard}", *WARNINGS, *files, "-o", folder / "program", "-lm")
        run(folder / "program")


@pytest.mark.parametrize(("command", "standard"), [("gcc", "c99"), ("g++", "c++11")])
def test_all_single_headers_go_together_in_any_order(tmp_path, single_headers, command, standard):
    names = headers_for(command)
    switches = sorted({f"{switch}_IMPLEMENTATION" for switches, _ in HEADERS.values() for switch in switches})
    undefine = "".join(f"#undef {switch}\n" for switch in switches)
    for number, order in enumerate([names, names[::-1]]):  # every two headers in either order
        declared = "".join(f'#include "{name}"\n' for name in order)
        implemented = "".join(f'{undefine}{implementation(name)}#include "{name}"\n' for name in order)
        used = "".join(f"    if ((int)({HEADERS[name][1]})) {{ return 1; }}\n" for name in order)
        source, program = tmp_path / f"order_{number}.{language_of(command)}", tmp_path / f"order_{number}"
        source.write_text(f"#include <stddef.h>\n{declared}{implemented}int main(void) {{\n{used}    return 0;\n}}\n")
        run(compiler(command), f"-std={standard}", *WARNINGS, "-I", single_headers, source, "-o", program, "-lm")
        run(program)


def test_a_c_implementation_serves_a_cpp_file(tmp_path, single_headers):
    [first, _] = write_two_files(tmp_path, single_headers, "ptx_inject.h", "c", is_static=False)
    [_, second] = write_two_files(tmp_path, single_headers, "ptx_inject.h", "cpp", is_static=False)
    second.write_text(second.read_text().replace("int second(void);", 'extern "C" int second(void);'))
    run(compiler("gcc"), "-std=c99", "-c", first, "-o", tmp_path / "first.o")
    run(compiler("g++"), "-std=c++11", first.with_suffix(".o"), second, "-o", tmp_path / "program")
    run(tmp_path / "program")


def test_single_headers_include_only_the_standard_library(single_headers):
    written = {str(path.relative_to(single_headers)): path for path in single_headers.rglob("*.h*")}
    assert set(written) == set(HEADERS)
    for name, path in written.items():
        assert '\n#include "' not in path.read_text(), name


def test_every_public_header_is_written_but_for_those_of_the_virtual_machine():
    public = {path.name for path in CSRC.glob("*.h")} | {f"generated/{path.name}" for path in (CSRC / "generated").iterdir()}
    tables = {"generated/instruction_table.h", "generated/ast_ptx_instructions.h"}
    assert public - set(HEADERS) - tables == {"ptx_vm.h", "device_code.h", "derive.h", "tune.h", "itll_features.h"}


def test_an_output_that_is_a_file_is_one_line(tmp_path):
    (tmp_path / "taken").write_text("")
    done = subprocess.run([sys.executable, SCRIPT, tmp_path / "taken"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, f"{tmp_path / 'taken'}: File exists\n")
