"""Files of an installed evo besides its modules: the C headers, their CMake package, and `python -m evo`.

In CI the evo under test is a wheel; test_distribution.py tries a wheel anywhere. A missing compiler is a skip, in CI a failure.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import evo

from .conftest import run

REPOSITORY = Path(__file__).parents[2]
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
PROGRAM = """\
#define AST_PTX_IMPLEMENTATION
#define PTX_INJECT_IMPLEMENTATION
#define STACK_PTX_IMPLEMENTATION
#define VARY_IMPLEMENTATION
#include <ast_ptx.h>
#include <ast_ptx_instructions.h>
#include <ptx_inject.h>
#include <ptx_vm.h>
#include <stack_ptx.h>
#include <stack_ptx_default_info.h>
#include <vary.h>
#include "generated/stack_ptx_descriptions.h"

int main(void) {
    return ptx_vm_level_is_available(PTX_VM_LEVEL_BASELINE) && stack_ptx_stack_info.num_stacks == 9 ? 42 : 1;
}
"""
CMAKE_PROJECT = """\
cmake_minimum_required(VERSION 3.20)
project(uses_headers LANGUAGES C)
find_package(evo CONFIG REQUIRED)
find_package(evo CONFIG REQUIRED)  # a second user of it in one project
add_executable(main main.c ${evo_INCLUDE_DIR}/detail/ptx_vm_baseline.c)
target_link_libraries(main PRIVATE evo::headers)
"""


PACKAGE = Path(evo.__file__).parent
INCLUDE = REPOSITORY / "csrc" if PACKAGE.parent == REPOSITORY else PACKAGE / "include"


def python(*args: str) -> str:
    """The output of this interpreter, in a folder that holds no other evo to import."""
    return run(sys.executable, *args, cwd=Path(sys.executable).parent).stdout


def tool(name: str) -> str:
    return shutil.which(name, path=PATH) or pytest.skip(f"{name} is not installed")


def test_python_and_the_command_line_name_the_folder_of_the_headers():
    assert python("-c", "import evo; print(evo.get_include())").strip() == str(INCLUDE)
    assert python("-m", "evo", "--include").strip() == str(INCLUDE)


@pytest.mark.slow
def test_cmake_finds_the_package_and_builds_with_its_target(tmp_path):
    (tmp_path / "main.c").write_text(PROGRAM)
    (tmp_path / "CMakeLists.txt").write_text(CMAKE_PROJECT)
    run(tool("cmake"), "-S", tmp_path, "-B", tmp_path / "build", f"-Devo_ROOT={INCLUDE}")
    run(tool("cmake"), "--build", tmp_path / "build")
    assert subprocess.run([tmp_path / "build" / "main"], check=False).returncode == 42


@pytest.mark.parametrize(
    ("asked", "is_found"),
    [("0.1...0.3", True), ("0.2.99", False)],
)
def test_cmake_takes_the_package_if_the_version_fits(tmp_path, asked, is_found):
    project = f"cmake_minimum_required(VERSION 3.20)\nproject(asks LANGUAGES NONE)\nfind_package(evo {asked} CONFIG)\n"
    (tmp_path / "CMakeLists.txt").write_text(project + 'file(WRITE found "${evo_FOUND} ${evo_VERSION}")\n')
    run(tool("cmake"), "-S", tmp_path, "-B", tmp_path / "build", f"-Devo_ROOT={INCLUDE}")
    found = (tmp_path / "found").read_text()
    assert found.startswith("1 ") == is_found
    assert not is_found or found == f"1 {evo.__version__}"


def test_python_m_evo_is_the_command_line():
    assert python("-m", "evo", "--version") == f"evo, version {evo.__version__}\n"
    wrong = subprocess.run([sys.executable, "-m", "evo", "nosuch"], capture_output=True, text=True, check=False)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr.startswith("evo: No such command 'nosuch'")
