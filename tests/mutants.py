"""The share of small faults that the tests notice.

    python tests/mutants.py --rebuild 'pip install --no-build-isolation --no-deps -e .' -- tests/unit

Each mutant changes one token of a condition or value, half of them in Python, half in C, spread over `AREAS`. All are compiled in
at once, and a byte of a shared file switches one on. First the tests run with none on, which shows what each reaches and costs;
then, for each mutant, those that reach it, the most specific first, until one fails or `--seconds` is spent: the share is a lower
bound. Those of C meet the C tests first, whose sanitizers see what changes no result; what runs while a module loads meets only
the test that loaded it. A test that fails without the mutant too is flaky, and kills nothing. `--folder` keeps what is known: the
same command goes on where it was stopped. The tree is changed in place and put back: run it in a clone.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import functools
import importlib
import json
import mmap
import operator
import os
import random
import re
import resource
import runpy
import select
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import pytest

ROOT = Path(__file__).parents[1]
AREAS = {
    "core": ("csrc/", "evo/native/", "evo/ptx_inject/", "evo/stack_ptx/", "evo/compile/"),
    "search": ("evo/search/", "evo/run/", "evo/evaluate/", "csrc/vary"),
    "language": ("evo/language/", "evo/instructions/", "evo/kernel/"),
    "regression": ("evo/regression/", "evo/dynamics/", "csrc/tune", "csrc/derive"),
    "proofs": ("evo/approximation/", "csrc/detail/proof"),
}
_LEFT_OUT = re.compile(r"generated|primitives\.(py|h)$")  # whose text is data
_SWAPS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "+": "-", "-": "+", "*": "+", "//": "*", "&&": "||"}
_SWAPS |= {"||": "&&", "and": "or", "or": "and", "True": "False", "False": "True", "true": "false", "false": "true", "min": "max"}
_SWAPS |= {"max": "min", "any": "all", "all": "any", "<<": ">>", ">>": "<<", "0": "1", "1": "2", "2": "3", "not": ""}
_TOKEN = re.compile(r"&&|\|\||<<|>>|<=|>=|==|!=|//|(?<![\w.])\w+(?![\w.(])|\b(?:min|max|any|all)\b(?=\()|(?<=\s)[<>+*-](?=\s)")
_TEXT = re.compile(r"strict=True|\"[^\"]*\"|'[^']*'")
_PYTHON = re.compile(r"\s*(?:return (.+)|(?:el)?(?:if|while) (.+):|[\w.\[\]]+(?:: [^=]+)? [+*|-]?= (.+?),?)")  # no final comma
_C = re.compile(
    r"\s+(?:return ([^;{}]+);|(?:\} else )?(?:if|while) \((.*)\)(?: \{| .*;)?"
    r"|for \([^;]*; ([^;]+);.*|(?!static|for|case)[\w\s*\[\].>()+-]* [+-]?= ([^;{}]+);)"
)
_PRELOADED = "blas_threads hypothesis numpy pandas pydantic scipy.optimize sklearn.base xdist yaml"  # in this order
_NUM_SWITCHES = 4096  # bytes of the file: bit 0 says that a mutant was reached, bit 1 that it is on
_C_SWITCH = """#ifndef EVO_MUTANT
#ifdef __cplusplus
#define EVO_MUTANT(n) 0
#else
#define EVO_MUTANT(n) evo_mutant(n)
extern char *getenv(const char *);
extern int open(const char *, int, ...);
extern void *mmap(void *, unsigned long, int, int, int, long);
static inline int evo_mutant(int n) {
    static unsigned char none[4096], *map;
    if (map == 0) map = getenv("EVO_MUTANTS") ? (unsigned char *)mmap(0, 4096, 3, 1, open(getenv("EVO_MUTANTS"), 2), 0) : none;
    map[n] |= 1;
    return map[n] & 2;
}
#endif
#endif
#pragma GCC system_header
"""  # the last line: without warnings
_PYTHON_SWITCH = """import mmap, os
_path = os.environ.get("EVO_MUTANTS")
_map = mmap.mmap(os.open(_path, os.O_RDWR), 4096) if _path else bytearray(4096)
def evo_mutant(n):
    _map[n] |= 1
    return _map[n] & 2
"""


class Mutant(NamedTuple):
    """Characters `start` to `end` of a file, and their replacement."""

    name: str
    start: int
    end: int
    text: str


def main() -> None:
    """Print a line of JSON for each mutant, in random order, and the share at the end."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rebuild", default="", help="builds the extensions; without it, only Python is mutated")
    parser.add_argument("--area", choices=AREAS, action="append", help="only mutants of this area; may be repeated")
    parser.add_argument("--leave-out", default="$^", help="regular expression: names of files that are not mutated")
    parser.add_argument("--seconds", type=float, default=60.0, help="processor time of the tests for a mutant")
    parser.add_argument("--folder", type=Path, help="keeps reach and verdicts, so that the same command goes on")
    parser.add_argument("tests", nargs="*", help="arguments of pytest")
    options = parser.parse_args()
    areas = {area: AREAS[area] for area in options.area or AREAS}
    drawn = mutants(options.number, options.seed, areas, options.leave_out, with_c=bool(options.rebuild))
    texts = {name: (ROOT / name).read_text() for name in {mutant.name for mutant in drawn}}
    folder = options.folder.resolve() if options.folder else Path(tempfile.mkdtemp(prefix="mutants-"))
    folder.mkdir(exist_ok=True)
    for name in _PRELOADED.split():
        importlib.import_module(name)
    verdicts = {number: line for number, *line in _lines(folder / "verdicts")}
    try:
        drawn = compiled_in(drawn, texts, options.rebuild)
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests"), "EVO_MUTANTS_FOLDER": str(folder)}
        command = [sys.executable, "-m", "pytest", "-q", "-p", "mutants", *options.tests]
        if not (folder / "all_ran").exists():
            subprocess.run(command, cwd=ROOT, env=environment, check=False)
            (folder / "all_ran").touch()
        tests = [line for file in folder.glob("*.jsonl") for line in _lines(file)]
        for number, mutant in random.Random(options.seed).sample(list(enumerate(drawn)), len(drawn)):
            if number not in verdicts:
                old, line = texts[mutant.name][mutant.start : mutant.end], line_of(mutant, texts)
                first = "tests/csrc/" if mutant.name.startswith("csrc/") else ""
                verdict = verdict_of(number, tests, folder, first, options.seconds)
                verdicts[number] = [*verdict, f"{mutant.name}:{line}", old, mutant.text]
                with (folder / "verdicts").open("a") as file:
                    file.write(json.dumps([number, *verdicts[number]]) + "\n")
            print(json.dumps(verdicts[number]), flush=True)
    finally:
        for name, text in texts.items():
            (ROOT / name).write_text(text)
        (ROOT / "evo/_mutant.py").unlink(missing_ok=True)
        subprocess.run(options.rebuild, shell=True, cwd=ROOT, capture_output=True, check=False)
    counts = Counter(line[0] for line in verdicts.values())
    reached = counts.total() - counts["unreached"]
    print(f"{dict(counts)}: killed {counts['killed'] / max(1, reached):.3f} of the {reached} that a test reaches")


def _lines(file: Path) -> list[Any]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def line_of(mutant: Mutant, texts: dict[str, str]) -> int:
    """Return the number of a mutant's line, from 1."""
    return texts[mutant.name].count("\n", 0, mutant.start) + 1


def mutants(number: int, seed: int, areas: dict[str, tuple[str, ...]], left_out: str, *, with_c: bool) -> list[Mutant]:
    """Draw mutants of different lines: equally many of each area, half of them in C where an area has so many."""
    generator = random.Random(seed)
    files = subprocess.run(["git", "ls-files", "evo", "csrc"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = [name for name in files.split() if not re.search(left_out, name)]
    drawn: dict[tuple[str, int], Mutant] = {}
    for index, area in enumerate(areas.values(), 1):
        for kind, part in (((".h", ".c"), 0.5 * with_c), (".py", 1)):
            wanted = len(drawn) + round(part * (number * index // len(areas) - len(drawn)))
            pool = [[*changes] for name in names if name.startswith(area) and name.endswith(kind) for changes in lines_of(name)]
            for changes in generator.sample(pool, len(pool)):
                if changes and len(drawn) < wanted:
                    mutant = generator.choice(changes)
                    drawn[mutant.name, mutant.start] = mutant
    return [*drawn.values()]


def lines_of(name: str) -> Iterator[Iterator[Mutant]]:
    """All mutants of each line of a file whose condition or value a conditional expression can hold."""
    start, is_python, text = 0, name.endswith(".py"), (ROOT / name).read_text()
    nodes = ast.walk(ast.parse(text)) if is_python else ()
    strings = [node for node in nodes if isinstance(node, ast.Constant | ast.JoinedStr)]
    of_text = {line for node in strings for line in range(node.lineno + 1, (node.end_lineno or 0) + 1)}  # which is no code
    for number, line in enumerate([] if _LEFT_OUT.search(name) else text.splitlines(keepends=True), 1):
        match = (_PYTHON if is_python else _C).fullmatch(line.rstrip("\n"))
        if match and number not in of_text:
            yield _changes(name, start + match.start(match.lastindex), match[match.lastindex])
        start += len(line)


def _changes(name: str, start: int, old: str) -> Iterator[Mutant]:
    for token in _TOKEN.finditer(_TEXT.sub(lambda text: " " * len(text[0]), old)):
        is_of_text = '"' in old[max(0, token.start() - 2) : token.end() + 2]  # which has no difference
        if token[0] in _SWAPS and not is_of_text:
            new = old[: token.start()] + _SWAPS[token[0]] + old[token.end() :]
            if _is_whole(old, new, is_python=name.endswith(".py")):
                yield Mutant(name, start, start + len(old), new)


def _is_whole(old: str, new: str, *, is_python: bool) -> bool:
    """Say whether an expression can stand in brackets: one of C has no comma outside of its own."""
    if is_python:
        with contextlib.suppress(SyntaxError):
            return bool(ast.parse(f"({old})\n({new})"))
        return False
    while (shorter := re.sub(r"[(\[][^()\[\]]*[)\]]", "", old)) != old:
        old = shorter
    return not set('()[],"') & set(old)


def compiled_in(drawn: list[Mutant], texts: dict[str, str], rebuild: str) -> list[Mutant]:
    """Write the files with all mutants in them; leave out those that do not compile."""
    (ROOT / "evo/_mutant.py").write_text(_PYTHON_SWITCH)
    while True:
        for name, text in texts.items():
            (ROOT / name).write_text(_with_switches(name, text, drawn))
        built = subprocess.run(rebuild, shell=True, cwd=ROOT, capture_output=True, text=True, check=False)
        if not built.returncode:
            return drawn
        errors = re.findall(r"(csrc/\S+?):(\d+):\d+: error", built.stdout + built.stderr)
        wrong = {(name, int(line) - _C_SWITCH.count("\n")) for name, line in errors}
        kept = [mutant for mutant in drawn if (mutant.name, line_of(mutant, texts)) not in wrong]
        assert len(kept) < len(drawn), built.stdout + built.stderr
        drawn = kept


def _with_switches(name: str, text: str, drawn: list[Mutant]) -> str:
    form = "(({new}) if evo_mutant({n}) else ({old}))" if name.endswith(".py") else "(EVO_MUTANT({n}) ? ({new}) : ({old}))"
    for number, (other, start, end, new) in sorted(enumerate(drawn), key=lambda pair: -pair[1].start):
        if other == name:
            text = text[:start] + form.format(n=number, old=text[start:end], new=new) + text[end:]
    if not name.endswith(".py"):
        return _C_SWITCH + text
    head = (
        node for node in ast.parse(text).body if not isinstance(node, ast.Expr) and getattr(node, "module", "") != "__future__"
    )
    lines = text.splitlines(keepends=True)
    lines.insert(next(head).lineno - 1, "from evo._mutant import evo_mutant\n")
    return "".join(lines)


def verdict_of(
    number: int, tests: list[tuple[str, float, list[int]]], folder: Path, first: str, limit_s: float
) -> tuple[str, list[str]]:
    """Return killed, survives or unreached, as is what runs only while modules load; and the tests that failed."""
    costs_s: dict[str, float] = {}
    tests = sorted(tests, key=lambda test: (not test[0].startswith(first), len(test[2]) * (0.1 + test[1]), test[0]))
    for name, test_s, reached in tests:
        if number in reached and sum(costs_s.values()) + test_s < limit_s:
            costs_s[name] = test_s
    if not costs_s:
        return "unreached", []
    flaky: list[str] = []
    while costs_s and (failed := _failed(costs_s, folder, number)):
        if not _failed({name: costs_s[name] for name in failed}, folder):
            return "killed", failed[:1]
        flaky += failed
        costs_s = {name: cost_s for name, cost_s in costs_s.items() if name not in flaky}
    return "survives", flaky


def _failed(costs_s: dict[str, float], folder: Path, number: int | None = None) -> list[str]:
    """Return the first of these tests that fails with a mutant or none; all of them if the process crashes or hangs."""
    switches = bytearray(_NUM_SWITCHES)
    if number is not None:
        switches[number] = 2
    (folder / "switches").write_bytes(switches)
    if not (child := os.fork()):
        _run_pytest([*costs_s], folder, 60 + 3 * int(sum(costs_s.values())))
    with open(os.pidfd_open(child)) as process:
        select.select([process], [], [], 1200)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # and what it started
    code, output = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), (folder / "output").read_text(errors="replace")
    is_found = code not in {pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.NO_TESTS_COLLECTED}
    assert is_found or number is not None, output  # a mutant may keep its tests from loading
    named = [name for name in costs_s if re.search(rf"^(FAILED|ERROR) {re.escape(name)}( - |$)", output, re.MULTILINE)]
    return (named or [*costs_s]) if code else []


def _run_pytest(names: list[str], folder: Path, cpu_s: int) -> NoReturn:
    """Become pytest, in a fork of the process that has done the imports."""
    code = 1
    try:
        os.setsid()
        os.chdir(ROOT)
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
        os.dup2(os.open(folder / "output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
        os.dup2(1, 2)
        os.environ["EVO_MUTANTS"] = str(folder / "switches")
        sys.argv[1:] = ["-q", "-x", "-n", "0", "-m", "", "-p", "no:cacheprovider", "--timeout=100", *names]
        runpy.run_module("pytest", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        sys.stdout.flush()
        os._exit(code)


if shared_folder := os.environ.get("EVO_MUTANTS_FOLDER"):  # as a plugin of pytest: what each test that passes costs and reaches
    own = Path(shared_folder) / str(os.getpid())
    own.write_bytes(bytes(_NUM_SWITCHES))
    shared = mmap.mmap(os.open(own, os.O_RDWR), _NUM_SWITCHES)
    os.environ["EVO_MUTANTS"] = str(own)
    passed: list[bool] = []
    of_fixtures: dict[Any, bytes] = {}  # what those of modules and sessions reach, which counts for each test that uses them

    def _either(first: bytes, second: bytes) -> bytes:
        return bytes(map(operator.or_, first, second))

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Iterator[None]:
        before = shared[:]
        shared[:] = bytes(_NUM_SWITCHES)
        result = yield
        if fixturedef.scope != "function":
            of_fixtures[fixturedef] = shared[:]
        shared[:] = _either(before, shared[:])
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(item: pytest.Function) -> Iterator[None]:
        before_s = sum(os.times()[:4])
        shared[:] = bytes(_NUM_SWITCHES)
        passed.clear()
        result = yield
        reached = [number for number, byte in enumerate(shared[:]) if byte]
        if all(passed) and reached:
            with own.with_suffix(".jsonl").open("a") as file:
                file.write(json.dumps([item.nodeid, sum(os.times()[:4]) - before_s, reached]) + "\n")
        return result

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_teardown(item: pytest.Function) -> None:
        used = (of_fixtures[fixture] for fixture in item._request._fixture_defs.values() if fixture in of_fixtures)
        shared[:] = functools.reduce(_either, used, shared[:])

    def pytest_runtest_logreport(report: pytest.TestReport) -> None:
        passed.append(report.outcome == "passed")


if __name__ == "__main__":
    main()
