"""Packages to publish: an sdist, and the wheel that is built from it and repaired for Linux.

Built in environments of their own, as pip builds them, so the index is needed. docs/releasing.md has the same commands.
"""

import os
import re
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import evo

from .conftest import borrow_packages, run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]  # two builds, each of which fetches what it needs

for tool in ("auditwheel", "build", "twine"):
    pytest.importorskip(tool, reason="evo-ptx[dist] is not installed")

REPOSITORY = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
ASSEMBLER = re.compile(r"evo/native/nvptxcompiler\..*\.so")


def python_m(*arguments: str | Path, **options) -> str:
    return run(sys.executable, "-m", *arguments, env=ENVIRONMENT, **options).stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """A folder with the sdist, and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("dist")
    python_m("build", "--outdir", folder, REPOSITORY)
    return folder


@pytest.fixture(scope="module")
def sdist(built) -> Path:
    [path] = built.glob("evo_ptx-*.tar.gz")
    return path


@pytest.fixture(scope="module")
def wheel(built) -> Path:
    """The repaired wheel."""
    [path] = built.glob("evo_ptx-*-linux_*.whl")
    python_m("auditwheel", "repair", "--wheel-dir", built / "repaired", path)
    [repaired] = (built / "repaired").glob("*.whl")
    return repaired


def below(folder: str, *patterns: str) -> set[str]:
    """Paths of the repository's files in a folder, relative to the repository."""
    found = {path for pattern in patterns for path in (REPOSITORY / folder).rglob(pattern)}
    return {path.relative_to(REPOSITORY).as_posix() for path in found if path.is_file() and "__pycache__" not in path.parts}


def names_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if not name.endswith("/")}


def test_the_wheel_has_the_package_its_data_and_licences_and_nothing_else(wheel):
    names = names_in(wheel)
    info = f"evo_ptx-{evo.__version__}.dist-info/"
    licences = {f"{info}licenses/{name}" for name in ("LICENSE", "NOTICE", "nvptxcompiler.txt")}
    assert licences <= names
    headers = {name.replace("csrc/", "evo/include/", 1) for name in below("csrc", "*.h", "*.hpp", "*.c", "*.cuh", "*.cmake")}
    shipped = {f"evo/shipped/{name}" for folder in ("tasks", "configs", "templates") for name in below(folder, "*")}
    stubs = {f"{name.removesuffix('x')}i" for name in below("evo", "*.pyx")}  # made at the build
    sources = below("evo", "*") - below("evo", "*.pyx", "*.so") | stubs
    extensions = {name for name in names if re.fullmatch(r"evo/native/\w+\..*\.so", name)}
    assert {name.partition("/")[0] for name in names} == {"evo", info.rstrip("/")}
    assert {name for name in names if name.startswith("evo/")} == headers | shipped | sources | extensions
    assert "evo/py.typed" in sources and any(map(ASSEMBLER.fullmatch, extensions))
    assert {Path(name).name.partition(".")[0] for name in extensions} == {Path(name).stem for name in below("evo", "*.pyx")}


def test_the_sdist_has_what_builds_and_tests_it_and_no_runs(sdist):
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    tracked = run("git", "ls-files", cwd=REPOSITORY).stdout.split() if (REPOSITORY / ".git").exists() else []
    assert {name for name in tracked if not name.startswith((".ci/", "runs/"))} <= names
    assert {"LICENSE", "NOTICE", "PKG-INFO", "CMakeLists.txt", "csrc/stack_ptx.h", "evo/native/vary.pyx"} <= names
    assert not [name for name in names if name.startswith(("runs/", "build/", ".ci/")) or name.endswith((".so", ".pyc"))]


def test_the_wheel_runs_on_many_linux_systems(wheel):
    assert re.search(r"-manylinux_2_\d+_\w+\.whl$", wheel.name)
    shown = python_m("auditwheel", "show", wheel)
    assert "manylinux_2_" in shown and "libnvptxcompiler" not in shown


def test_an_index_would_take_both(sdist, wheel):
    assert python_m("twine", "--no-color", "check", "--strict", sdist, wheel).count("PASSED") == 2


def test_an_installed_wheel_runs_an_experiment_by_name_in_an_empty_folder(wheel, tmp_path):
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    python = tmp_path / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel)
    packages = borrow_packages(python)
    empty = tmp_path / "empty"
    empty.mkdir()

    def evo_(*arguments: str) -> str:
        return run(python.with_name("evo"), *arguments, cwd=empty).stdout

    assert run(python, "-c", "import evo; print(evo.__file__)", cwd=empty).stdout.startswith(str(packages))
    evo_("run", "domain_coloring_smoke", "--set", "output.plots=[heatmap]")
    assert [path.name for path in empty.iterdir()] == ["runs"]
    [run_folder] = empty.glob("runs/domain_coloring_smoke/*")
    assert "objective" in evo_("show", str(run_folder))
    assert (packages / "evo" / "include" / "stack_ptx.h").samefile(Path(evo_("--include").strip()) / "stack_ptx.h")
    evo_("init", "mine")
    few = ("--set", "stop.generations=2", "--set", "output.plots=[]")
    run(python.with_name("evo"), "run", "picture.yaml", *few, cwd=empty / "mine")


def test_a_wheel_without_the_assembler_has_nothing_of_nvidia(sdist, tmp_path):
    options = (
        "--config-settings=cmake.define.EVO_ASSEMBLER=OFF",
        "--config-settings=cmake.build-type=None",
    )  # what it consists of does not need optimisation
    command = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path, *options, sdist)
    run(*command, env={**ENVIRONMENT, "CFLAGS": "-O0"})
    [wheel] = tmp_path.glob("*.whl")
    names = names_in(wheel)
    assert any(name.endswith("/NOTICE") for name in names)
    assert not [name for name in names if ASSEMBLER.fullmatch(name) or name.endswith("nvptxcompiler.txt")]
    assert wheel.stat().st_size < 10 << 20  # with it, 12 MB more
