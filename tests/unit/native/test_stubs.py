"""Type stubs agree with the compiled modules: names, parameters, defaults."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import evo.native

REPOSITORY = Path(__file__).parents[3]
CONFIG = REPOSITORY / "pyproject.toml"  # says which libraries have no types

# Stubs leave out Cython's own additions and the names that a module imports, and need not say that a C class cannot be a second
# base.
IGNORED = re.compile(
    r"__(reduce_cython|setstate_cython|test)__ is not present in stub"
    r"|^evo\.native\.\w+\.\w+ is not present in stub"
    r"|is a disjoint base"
)


@pytest.mark.slow
def test_every_compiled_module_has_stubs_that_agree_with_it():
    folder = Path(evo.native.__file__).parent
    stubs = {path.stem for path in folder.glob("*.pyi")}
    compiled = {path.stem for path in (REPOSITORY / "evo" / "native").glob("*.pyx")}
    assert stubs == compiled
    modules = sorted(f"evo.native.{name}" for name in stubs if find_spec(f"evo.native.{name}"))
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "--concise", "--mypy-config-file", CONFIG, *modules],
        capture_output=True,
        text=True,
        check=False,
    )
    wrong = [line for line in done.stdout.splitlines() if line.startswith("evo.") and not IGNORED.search(line)]
    assert not wrong, "\n".join(wrong)
    assert "evo.native.stack_ptx" in done.stdout, done.stdout + done.stderr  # stubtest did look: it reports Cython's additions
