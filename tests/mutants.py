"""The share of small faults that the tests notice.

    python tests/mutants.py --number 300 --seed 1 --rebuild 'pip install --no-build-isolation --no-deps -e .'

Each mutant changes one token of a product line, half of them in Python, half in C and Cython, spread over the areas of `AREAS`.
The tests near the line's module run; where they pass, those that name it; then the mutant survives. So the share is a lower
bound. The tree is changed in place and put back, one mutant at a time: run it in a clone.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import random
import re
import subprocess
import sys
import tokenize
from collections import Counter
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
AREAS = {
    "core": ("csrc/", "evo/native/", "evo/ptx_inject/", "evo/stack_ptx/", "evo/compile/"),
    "search": ("evo/search/", "evo/run/", "evo/evaluate/", "csrc/vary"),
    "language": ("evo/language/", "evo/instructions/", "evo/kernel/"),
    "regression": ("evo/regression/", "evo/dynamics/", "csrc/tune"),
    "proofs": ("evo/approximation/", "csrc/detail/proof"),
}
_SWAPS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "+": "-", "-": "+", "*": "+", "//": "*", "&&": "||"}
_SWAPS |= {"||": "&&", "and": "or", "or": "and", "True": "False", "False": "True", "true": "false", "false": "true", "min": "max"}
_SWAPS |= {"max": "min", "any": "all", "all": "any", "<<": ">>", ">>": "<<", "0": "1", "1": "2", "2": "3", "not": ""}
_SWAPS |= {"break": "continue", "continue": "break"}
_TOKEN = re.compile(r"&&|\|\||<<|>>|<=|>=|==|!=|//|\b[A-Za-z_]\w*\b|(?<![\w.])\d+(?![\w.])|(?<=\s)[<>+*-](?=\s)")
_NO_CODE = re.compile(r"\s*(#|//|/?\*|import |from |@|def |class |case |\"|raise |cdef extern|assert )")
_LIMIT_S = 600.0


class Mutant(NamedTuple):
    """A changed line of a file. number: from 0."""

    name: str
    number: int
    line: str
    mutated: str


def main() -> None:
    """Print a line of JSON for each mutant, and the share at the end."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rebuild", default="", help="builds the extensions; without it, only Python is mutated")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    for mutant in mutants(options.number, options.seed, with_c=bool(options.rebuild)):
        verdict = verdict_of(mutant, options.rebuild)
        counts[verdict] += 1
        print(json.dumps([verdict, f"{mutant.name}:{mutant.number + 1}", mutant.line, mutant.mutated]), flush=True)
    print(f"{dict(counts)}: killed {counts['killed'] / max(1, counts['killed'] + counts['survives']):.3f}")


def mutants(number: int, seed: int, *, with_c: bool) -> list[Mutant]:
    """Draw mutants, equally many of each area and kind of file where there are so many."""
    generator = random.Random(seed)
    names = subprocess.run(
        ["git", "ls-files", "evo", "csrc"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    kinds = (".py", (".pyx", ".h", ".c")) if with_c else (".py",)
    pools = [
        [
            (name, line)
            for name in names
            if name.startswith(area) and name.endswith(kind) and "generated" not in name
            for line in _code_lines(name)
        ]
        for area in AREAS.values()
        for kind in kinds
    ]
    pools = [pool for pool in pools if pool]
    drawn = []
    for index, pool in enumerate(pools):
        share = number // len(pools) + (index < number % len(pools))
        for name, (line_number, line) in generator.sample(pool, min(share, len(pool))):
            start, end, new = generator.choice(_sites(line))
            drawn.append(Mutant(name, line_number, line, line[:start] + new + line[end:]))
    return drawn


def verdict_of(mutant: Mutant, rebuild: str) -> str:
    """Return killed, survives, or stillborn: it does not compile."""
    path = ROOT / mutant.name
    text = path.read_text()
    lines = text.splitlines(keepends=True)
    lines[mutant.number] = mutant.mutated + "\n"
    is_python = path.suffix == ".py"
    try:
        path.write_text("".join(lines))
        if is_python:
            ast.parse("".join(lines))
        elif subprocess.run(rebuild, shell=True, cwd=ROOT, capture_output=True, check=False).returncode:
            return "stillborn"
        return "killed" if any(_fails(tests) for tests in _tests_of(mutant.name)) else "survives"
    except SyntaxError:
        return "stillborn"
    finally:
        path.write_text(text)
        if not is_python:
            subprocess.run(rebuild, shell=True, cwd=ROOT, capture_output=True, check=True)


def _fails(tests: list[str]) -> bool:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-m", "not slow", *tests]
    try:
        code = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=_LIMIT_S, check=False).returncode if tests else 0
    except subprocess.TimeoutExpired:
        return True
    return code not in (0, 5)  # 5: no test was chosen


def _tests_of(name: str) -> list[list[str]]:
    """The test files of a module's name, then the others that name the module, or of a C header its library."""
    path = Path(name)
    stem = path.stem if path.suffix != ".h" else re.sub(r"^(ptx_vm|itll|stack_ptx|tune|proof)_.*", r"\1", path.stem)
    module = ".".join(path.with_suffix("").parts)
    words = (module, f"{'.'.join(path.parent.parts)} import {stem}", f"native.{stem}", f"native import {stem}", f"/{path.name}")
    tests = {
        str(test.relative_to(ROOT)): test.read_text() for test in (ROOT / "tests").rglob("test_*.py") if "gpu" not in test.parts
    }
    near = [test for test in tests if Path(test).stem.startswith(f"test_{stem}")]
    far = [test for test, text in tests.items() if test not in near and any(word in text for word in words)]
    folder = [test for test in tests if path.parts[0] == "evo" and test.startswith(f"tests/unit/{path.parts[1]}/")]
    further = far or [test for test in folder if test not in near] or [test for test in tests if test.startswith("tests/csrc/")]
    return [sorted(chosen, key=lambda test: len(tests[test])) for chosen in (near, further)]


def _sites(line: str) -> list[tuple[int, int, str]]:
    code = re.sub(r'strict=True|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|#.*|//.*|/\*.*', lambda part: " " * len(part[0]), line)
    return [(m.start(), m.end(), _SWAPS[m[0]]) for m in _TOKEN.finditer(code) if m[0] in _SWAPS]


def _code_lines(name: str) -> list[tuple[int, str]]:
    """Number and text of the lines that a swap can change: no comment, docstring, import or message."""
    text = (ROOT / name).read_text()
    hidden: set[int] = set()
    if name.endswith(".py"):
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.STRING and token.start[0] != token.end[0]:
                hidden |= set(range(token.start[0] - 1, token.end[0]))
    else:
        for part in re.finditer(r'/\*.*?\*/|""".*?"""', text, re.DOTALL):
            first = text.count("\n", 0, part.start())
            hidden |= set(range(first, first + part[0].count("\n") + 1))
    lines = enumerate(text.splitlines())
    return [(i, line) for i, line in lines if i not in hidden and not _NO_CODE.match(line) and _sites(line)]


if __name__ == "__main__":
    main()
