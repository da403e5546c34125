"""What an installed evo offers besides its modules: the C headers, their CMake package, and `python -m evo`.

Held for the evo under test and for a wheel. If the one under test is an editable install, as contributors have it, a wheel is
built and installed in a new environment; in CI the one under test is a wheel. A missing compiler is a skip, in CI a failure.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import evo

from .conftest import borrow_packages, run

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


@dataclass(frozen=True)
class Install:
    """An installed evo: its interpreter, and where its headers should be."""

    python: Path
    include: Path

    def output(self, *args: str) -> str:
        """What a command of the interpreter prints that ends well. It runs where there is no other evo to import."""
        return run(self.python, *args, cwd=self.python.parent).stdout


def tool(name: str) -> str:
    path = shutil.which(name, path=PATH)
    if path is None:
        assert not os.environ.get("CI"), f"{name} is not installed; CI does not skip for that"
        pytest.skip(f"{name} is not installed")
    return path


@pytest.fixture(scope="module")
def this_install() -> Install:
    """The evo under test."""
    package = Path(evo.__file__).parent
    return Install(Path(sys.executable), REPOSITORY / "csrc" if package.parent == REPOSITORY else package / "include")


@pytest.fixture(scope="module")
def wheel_install(tmp_path_factory, this_install) -> Install:
    """A wheel of this repository. A new one is in an environment of its own, which borrows the dependencies of this one."""
    if this_install.include.parent != REPOSITORY:
        return this_install
    folder = tmp_path_factory.mktemp("wheel")
    build = ("-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps", "--wheel-dir", folder, REPOSITORY)
    run(sys.executable, *build, env={**os.environ, "PATH": PATH})
    [wheel] = folder.glob("evo_ptx-*.whl")
    run(sys.executable, "-m", "venv", folder / "venv")
    python = folder / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel)
    return Install(python, borrow_packages(python) / "evo" / "include")


@pytest.fixture(params=["this_install", pytest.param("wheel_install", marks=pytest.mark.slow)])
def install(request) -> Install:
    """The evo under test, and one from a wheel."""
    return request.getfixturevalue(request.param)


def test_python_and_the_command_line_name_the_folder_of_the_headers(install):
    assert install.output("-c", "import evo; print(evo.get_include())").strip() == str(install.include)
    assert install.output("-m", "evo", "--include").strip() == str(install.include)


def test_the_folder_has_what_programs_include(install, tmp_path):
    include = Path(install.output("-m", "evo", "--include").strip())
    (tmp_path / "main.c").write_text(PROGRAM)
    kernels = include / "detail" / "ptx_vm_baseline.c"
    run(tool("gcc"), "-std=c99", "-ffp-contract=off", "-I", include, tmp_path / "main.c", kernels, "-o", tmp_path / "main")
    assert subprocess.run([tmp_path / "main"], check=False).returncode == 42


def test_cmake_finds_the_package_and_builds_with_its_target(install, tmp_path):
    (tmp_path / "main.c").write_text(PROGRAM)
    (tmp_path / "CMakeLists.txt").write_text(CMAKE_PROJECT)
    include = install.output("-m", "evo", "--include").strip()
    run(tool("cmake"), "-S", tmp_path, "-B", tmp_path / "build", f"-Devo_ROOT={include}")
    run(tool("cmake"), "--build", tmp_path / "build")
    assert subprocess.run([tmp_path / "build" / "main"], check=False).returncode == 42


@pytest.mark.parametrize(
    ("asked", "is_found"),
    [("0.2", True), ("0.2.0 EXACT", True), ("0.1...0.3", True), ("0.1", False), ("0.2.99", False), ("1", False)],
)
def test_cmake_takes_the_package_if_the_version_fits(install, tmp_path, asked, is_found):
    project = f"cmake_minimum_required(VERSION 3.20)\nproject(asks LANGUAGES NONE)\nfind_package(evo {asked} CONFIG)\n"
    (tmp_path / "CMakeLists.txt").write_text(project + 'file(WRITE found "${evo_FOUND} ${evo_VERSION}")\n')
    include = install.output("-m", "evo", "--include").strip()
    run(tool("cmake"), "-S", tmp_path, "-B", tmp_path / "build", f"-Devo_ROOT={include}")
    found = (tmp_path / "found").read_text()
    assert found.startswith("1 ") == is_found
    assert not is_found or found == f"1 {evo.__version__}"


def test_python_m_evo_is_the_command_line(install):
    assert install.output("-m", "evo", "--version") == f"evo, version {evo.__version__}\n"
    wrong = subprocess.run([install.python, "-m", "evo", "nosuch"], capture_output=True, text=True, check=False)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr.startswith("evo: No such command 'nosuch'")


@pytest.mark.slow
def test_a_wheel_has_headers_and_no_scripts_of_csrc(wheel_install):
    installed = {path.relative_to(wheel_install.include) for path in wheel_install.include.rglob("*") if path.is_file()}
    sources = [path for pattern in ("*.h", "*.hpp", "*.c", "*.cmake") for path in (REPOSITORY / "csrc").rglob(pattern)]
    assert installed == {path.relative_to(REPOSITORY / "csrc") for path in sources}
