"""The stand-in driver under a command: `python -m emulated_gpu run CONFIG` for `evo run CONFIG`, `... FILE.py`, `... pytest`.

The environment's EVO_EMULATED_GPU has the options, which `libcuda.c` reads, and EVO_EMULATED_GPU_FATAL a `fatal_text`. Cubins
are cached in a folder apart: those of the stand-in are for it alone, and it can use no others.
"""

import os
import runpy
import sys

from emulated_gpu import compiling, driver


def prepare() -> None:
    """Gives this process the stand-in for the rest of its life."""
    driver.install()
    os.environ["XDG_CACHE_HOME"] = os.path.join(os.environ.get("XDG_CACHE_HOME") or driver.build().parent, "emulated")
    for owner, name, value in compiling.replacements():
        setattr(owner, name, value)


def main() -> None:
    prepare()
    if len(sys.argv) > 1 and sys.argv[1].endswith(".py"):
        sys.argv = sys.argv[1:]
        sys.path.insert(0, os.path.dirname(sys.argv[0]))  # as Python does
        runpy.run_path(sys.argv[0], run_name="__main__")
        return
    if sys.argv[1:2] == ["pytest"]:
        import pytest

        sys.exit(pytest.main(sys.argv[2:]))
    sys.argv[0] = "evo"
    from evo.cli import main as evo

    evo()


if __name__ == "__main__":
    main()
