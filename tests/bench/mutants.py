"""How many small faults the tests notice, before and after a change: mutants of lines that both trees have.

    python tests/bench/mutants.py BEFORE AFTER --rebuild 'COMMAND {tree}' --python '{tree}/.venv/bin/python'

Each mutant changes one token of a product line that stands once in either tree, word for word. The tests that name the line's
module run over the tree AFTER; where they pass, those of BEFORE tell whether a test was lost. So the share that is printed is a
lower bound: killed after / (killed after + killed before alone). Both trees are changed in place and put back, one mutant at a
time.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import re
import subprocess
import sys
import tokenize
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

# What a token becomes. A fault that a compiler refuses counts as no mutant.
SWAPS = {
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "==": "!=",
    "!=": "==",
    "+": "-",
    "-": "+",
    "*": "+",
    "//": "*",
    "&&": "||",
    "||": "&&",
    "and": "or",
    "or": "and",
    "True": "False",
    "False": "True",
    "true": "false",
    "false": "true",
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "<<": ">>",
    ">>": "<<",
    "0": "1",
    "1": "2",
    "2": "3",
    "break": "continue",
    "not": "",
}
_TOKEN = re.compile(r"&&|\|\||<<|>>|<=|>=|==|!=|//|\b[A-Za-z_]\w*\b|(?<![\w.])\d+(?![\w.])|(?<=\s)[<>+*-](?=\s)")
_LIMIT_S = 600.0


@dataclass(frozen=True)
class Mutant:
    """A line of both trees, and what becomes of it."""

    line: str
    mutated: str


def main() -> None:
    """Prints a line for each mutant and the share at the end."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--number", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rebuild", required=True, help="builds the extensions of {tree}")
    parser.add_argument("--python", required=True, help="the Python of {tree}")
    parser.add_argument("--only", default="", help="py or c")
    options = parser.parse_args()
    trees = [Tree(options.before, options), Tree(options.after, options)]
    chosen = mutants(trees, options.number, options.seed, options.only)
    counts: Counter[str] = Counter()
    for index, mutant in enumerate(chosen):
        verdict = trees[1].verdict(mutant)
        if verdict == "survives" and trees[0].verdict(mutant) == "killed":
            verdict = "lost"
        counts[verdict] += 1
        print(json.dumps([index, verdict, trees[1].path_of(mutant.line), mutant.line, mutant.mutated]), flush=True)
    print(f"{dict(counts)}: killed after/before at least {counts['killed'] / max(1, counts['killed'] + counts['lost']):.3f}")


class Tree:
    """A checkout with its environment."""

    def __init__(self, root: Path, options: argparse.Namespace):
        self.root = root.resolve()
        self._rebuild = options.rebuild.format(tree=self.root)
        self._python = options.python.format(tree=self.root, name=self.root.name)
        names = subprocess.run(["git", "ls-files", "evo", "csrc"], cwd=root, capture_output=True, text=True, check=True).stdout
        self.lines: dict[str, list[tuple[str, int]]] = {}
        for name in names.split():
            if name.endswith((".py", ".pyx", ".h", ".c")) and "generated" not in name:
                for number, line in code_lines(self.root / name):
                    self.lines.setdefault(line, []).append((name, number))
        tests = subprocess.run(["git", "ls-files", "tests"], cwd=root, capture_output=True, text=True, check=True).stdout.split()
        self._tests = {name: (self.root / name).read_text() for name in tests if re.search(r"/test_\w+\.py$", name)}

    def path_of(self, line: str) -> str:
        """The file with this line."""
        return self.lines[line][0][0]

    def verdict(self, mutant: Mutant) -> str:
        """killed, survives, or stillborn: it does not compile."""
        name, number = self.lines[mutant.line][0]
        path = self.root / name
        text = path.read_text()
        lines = text.splitlines(keepends=True)
        indent = lines[number][: len(lines[number]) - len(lines[number].lstrip())]
        lines[number] = f"{indent}{mutant.mutated}\n"
        is_python = name.endswith(".py")
        try:
            path.write_text("".join(lines))
            if is_python:
                compile("".join(lines), name, "exec")
            elif subprocess.run(self._rebuild, shell=True, capture_output=True, check=False).returncode:
                return "stillborn"
            return "killed" if self._fails(name) else "survives"
        except SyntaxError:
            return "stillborn"
        finally:
            path.write_text(text)
            if not is_python:
                subprocess.run(self._rebuild, shell=True, capture_output=True, check=True)

    def _fails(self, name: str) -> bool:
        command = [self._python, "-m", "pytest", "-q", "-x", "-n", "0", "-m", "not slow", *self._tests_of(name)]
        try:
            code = subprocess.run(command, cwd=self.root, capture_output=True, timeout=_LIMIT_S, check=False).returncode
        except subprocess.TimeoutExpired:
            return True
        return code not in (0, 5)  # 5: no test was chosen

    def _tests_of(self, name: str) -> list[str]:
        """The tests that name a module, and those of its folder. Of a C header, those that name it or its extension."""
        path = Path(name)
        stem = re.sub(r"^(ptx_vm|itll|stack_ptx)_.*", r"\1", path.stem) if path.suffix == ".h" else path.stem
        module = ".".join(path.with_suffix("").parts)
        words = (module, f"{path.parent.name} import {stem}", f"native.{stem}", f"/{path.name}", f'"{path.name}"')
        folder = f"tests/unit/{'/'.join(path.parts[1:-1])}/" if path.parts[0] == "evo" else "tests/csrc/"
        near = stem if path.parts[0] == "evo" else stem.split("_")[0]
        chosen = [
            test
            for test, text in self._tests.items()
            if any(word in text for word in words) or (test.startswith(folder) and near in test)
        ]
        chosen = chosen or [test for test in self._tests if test.startswith((folder, "tests/contract/"))]
        return sorted(chosen, key=lambda test: (not test.startswith("tests/unit"), len(self._tests[test])))


def mutants(trees: list[Tree], number: int, seed: int, only: str) -> list[Mutant]:
    """Mutants of lines that stand once in each tree, half of them Python, half C and Cython."""
    generator = random.Random(seed)
    kinds: dict[str, list[str]] = {"py": [], "c": []}
    for line, places in sorted(trees[1].lines.items()):
        if len(places) == len(trees[0].lines.get(line, ())) == 1 and len(line) > 20 and _sites(line):
            kinds["py" if places[0][0].endswith(".py") else "c"].append(line)
    chosen = []
    wanted = [only] if only else ["py", "c"]
    for kind in wanted:
        for line in generator.sample(kinds[kind], min(number // len(wanted), len(kinds[kind]))):
            start, end, new = generator.choice(_sites(line))
            chosen.append(Mutant(line, line[:start] + new + line[end:]))
    return chosen


def _sites(line: str) -> list[tuple[int, int, str]]:
    code = re.sub(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|#.*|//.*|/\*.*', lambda found: " " * len(found[0]), line)
    return [(m.start(), m.end(), SWAPS[m[0]]) for m in _TOKEN.finditer(code) if m[0] in SWAPS]


def code_lines(path: Path) -> list[tuple[int, str]]:
    """Number from 0 and text of the lines that are code: no comment, docstring, import or declaration of a constant's name."""
    text = path.read_text()
    hidden: set[int] = set()
    if path.suffix == ".py":
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.STRING and token.start[0] != token.end[0]:
                hidden |= set(range(token.start[0] - 1, token.end[0]))
    else:
        for found in re.finditer(r'/\*.*?\*/|""".*?"""', text, re.DOTALL):
            first = text.count("\n", 0, found.start())
            hidden |= set(range(first, first + found[0].count("\n") + 1))
    skipped = re.compile(r"\s*(#|//|\*|import |from |@|def |class |case |\"|raise |cdef extern)")
    return [
        (i, line.strip())
        for i, line in enumerate(text.splitlines())
        if i not in hidden and line.strip() and not skipped.match(line)
    ]


if __name__ == "__main__":
    sys.exit(main())
