"""Data never runs: calls that could run what a file says are few, and SECURITY.md has a row for each."""

import ast
import re
from pathlib import Path

import pytest

import evo

PACKAGE = Path(evo.__file__).parent
SECURITY = Path(__file__).parents[2] / "SECURITY.md"
BUILTINS = {"eval", "exec", "compile", "__import__"}  # as names alone: `re.compile` is another function
# By the last part of what is called.
RUNNING = set(
    """eval exec import_module exec_module spec_from_file_location unsafe_load full_load read_pickle Unpickler recv sympify
    parse_expr lambdify CDLL""".split()
)
LOADERS = {
    f"{module}.{name}"
    for module in ("pickle", "cloudpickle", "yaml", "torch", "joblib")
    for name in ("load", "loads", "load_all")
}
MODULES = {"builtins", "code", "codeop", "dill", "marshal", "numexpr", "runpy", "shelve"}  # nobody needs them
ALIASED = MODULES | {"pickle", "cloudpickle", "yaml"}  # whose functions keep their module's name


def called(text: str, *, is_cython: bool = False) -> set[str]:
    """Names in a module that could run data; the text of Cython is only searched."""
    if is_cython:
        names = (re.findall(rf"(?<!def )(?<!\.)\b({name})\(", text) for name in BUILTINS)
        others = (re.findall(rf"\.({name})\(", text) for name in RUNNING)
        return {found for some in (*names, *others) for found in some} | {name for name in LOADERS if f"{name}(" in text}
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            last = name.rpartition(".")[2]
            allows_pickle = [ast.unparse(each.value) for each in node.keywords if each.arg == "allow_pickle"]
            if name in BUILTINS | LOADERS or last in RUNNING:
                found.add(name if name in LOADERS else last)
            elif allows_pickle not in ([], ["False"]):
                found.add("allow_pickle")
        elif isinstance(node, ast.Import):
            found |= {each.name for each in node.names if each.name in MODULES or (each.asname and each.name in ALIASED)}
        elif isinstance(node, ast.ImportFrom) and node.module in ALIASED:
            found |= {f"{node.module}.{each.name}" for each in node.names}
        elif isinstance(node, ast.Name | ast.Attribute):  # handed on without a call
            name = ast.unparse(node)
            found |= {name} & ({"eval", "exec", "__import__"} | LOADERS)
    return found


def test_each_call_that_could_run_data_has_its_row_in_security_md():
    found = {}
    for path in sorted([*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.pyx")]):
        if PACKAGE / "shipped" in path.parents[1:]:  # tasks, which are Python
            continue
        if names := called(path.read_text(), is_cython=path.suffix == ".pyx"):
            found[path.relative_to(PACKAGE.parent).as_posix()] = names
    rows = re.findall(r"^\| `(evo/[\w/.]+)` \| (.+?) \|", SECURITY.read_text(), re.MULTILINE)
    assert {path: set(re.findall(r"`([\w.]+)`", names)) for path, names in rows} == found


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("eval(x)", "eval"),
        ("run = exec", "exec"),
        ("pd.eval(x)", "eval"),
        ("from pickle import loads", "pickle.loads"),
        ("import pickle as p", "pickle"),
        ("np.load(x, allow_pickle=True)", "allow_pickle"),
        ("sympy.sympify(x)", "sympify"),
        ("import numexpr", "numexpr"),
    ],
)
def test_the_walk_sees_each_way_to_run_data(text, name):
    assert name in called(text)
    assert not called("re.compile(x); json.loads(x); np.load(x, allow_pickle=False); self.evaluate(x)")
