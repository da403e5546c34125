"""Runs every benchmark of this folder and prints one table (markdown).

    python tests/bench/run.py [NAME ...]        all of them, or only bench_NAME.py

A benchmark is a module bench_*.py with `rows()`, which yields (what, measured, at least, aim) as text. Each pins itself to
one core where it says so, warms up outside the timed part and reports the best of many.
"""

import importlib.util
import os
import platform
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).parent


def cpu_name() -> str:
    """The processor's name as the kernel tells it."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def main(names: list[str]) -> None:
    """Prints the table of the benchmarks named, or of all."""
    paths = [FOLDER / f"bench_{name}.py" for name in names] or sorted(FOLDER.glob("bench_*.py"))
    for path in paths:
        if not path.is_file():
            known = ", ".join(sorted(p.stem.removeprefix("bench_") for p in FOLDER.glob("bench_*.py")))
            sys.exit(f"no benchmark '{path.stem.removeprefix('bench_')}', one of: {known}")
    print(
        f"{time.strftime('%Y-%m-%d')}, {cpu_name()}, {len(os.sched_getaffinity(0))} cores, Python {platform.python_version()}\n"
    )
    print("| what | measured | at least | aim |\n|---|---|---|---|")
    for path in paths:
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for row in module.rows():
            print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
