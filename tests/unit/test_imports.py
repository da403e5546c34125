"""The architecture's rules of who may import whom, held by walking every import of the package."""

import ast
import re
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest

import evo

PACKAGE = Path(evo.__file__).parent
REPOSITORY = Path(__file__).parents[2]

# ARCHITECTURE.md has the figure. A module may import its own layer and the ones before it. Those named last are everybody's.
LAYERS = [
    ("native",),
    (
        *("options", "c_text", "storage", "shipped", "workers", "instructions", "language", "pictures"),
        *("ast_ptx", "ptx_inject", "stack_ptx", "itll"),
    ),
    ("task", "tasks", "kernel"),
    ("compile",),
    ("evaluate",),
    ("search",),
    ("config", "run"),
    ("report",),
    ("evolution",),
    ("regression", "approximation", "semiring"),
    ("dynamics",),
    ("exit_codes",),
    ("cli", "__main__"),
]
LAYER = {name: layer for layer, names in enumerate(LAYERS) for name in names}
EVERYBODYS = ("about", "errors", "escape")


@cache
def modules() -> dict[str, Path]:
    """Dotted name -> file of every module, Cython ones included."""
    found = {}
    for path in sorted([*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.pyx")]):
        if PACKAGE / "shipped" in path.parents[1:]:  # tasks and templates, in a wheel: no modules of evo
            continue
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def tree_of(path: Path) -> ast.Module:
    """A Python file, parsed."""
    return ast.parse(path.read_text())


@cache
def imports(path: Path) -> frozenset[str]:
    """Dotted names that a Python module imports. `from evo.x import y` gives `evo.x`, and `evo.x.y` if that is a module; `from
    cuda.bindings import y` always gives both."""
    found = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: write absolute imports"
            found.add(node.module)
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name for name in inner if name in modules() or name.startswith("cuda.")}
    return frozenset(found)


def part_of(module: str) -> str | None:
    """`evo.search.archive` -> `search`; None for `evo` itself and for what is not ours."""
    parts = module.split(".")
    return parts[1] if parts[0] == "evo" and len(parts) > 1 else None


PYTHON_MODULES = {name: path for name, path in modules().items() if path.suffix == ".py"}


def test_a_module_imports_only_its_own_layer_and_those_before():
    allowed = "about errors task tasks report evolution regression approximation dynamics".split()
    assert {part_of(name) for name in imports(PYTHON_MODULES["evo"])} - {None} <= {*allowed}
    for module in PYTHON_MODULES.keys() - {"evo"}:
        own = LAYER.get(part_of(module), -1)
        for imported in imports(PYTHON_MODULES[module]):
            part = part_of(imported)
            assert part is None or part in EVERYBODYS or LAYER[part] <= own, f"{module} imports {imported}"


def needs(path: Path) -> set[str]:
    """The modules that a file imports, at once, late or for types; a package only where a name of its own is meant."""
    if path.suffix == ".pyx":
        return set(re.findall(r"^\s*(?:from|c?import) (evo[\w.]*)", path.read_text(), re.MULTILINE)) & set(modules())
    nodes = list(ast.walk(tree_of(path)))
    found = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            inner = (f"{node.module}.{alias.name}" for alias in node.names)
            found |= {name if name in modules() else node.module for name in inner}
    return found & set(modules())


def test_no_files_of_evo_import_each_other_in_a_circle():
    assert [
        *TopologicalSorter({name: needs(path) for name, path in modules().items()}).static_order()
    ]  # or CycleError names them


def test_no_headers_include_each_other_in_a_circle():
    csrc = REPOSITORY / "csrc"
    graph = {
        path: {
            found.resolve()
            for name in re.findall(r'^\s*#\s*include\s+"(.+)"', path.read_text(), re.MULTILINE)
            for found in (path.parent / name, csrc / name)
            if found.exists()
        }
        for path in csrc.resolve().rglob("*.[ch]")
    }
    assert [*TopologicalSorter(graph).static_order()]


FORBIDDEN = {
    "search": ("yaml", "pathlib", "os", "io", "shutil", "tempfile", "cuda", "evo.native.ptx_vm", "evo.native.nvptxcompiler"),
    "evaluate": ("ribs", "yaml"),
    "native": ("ribs", "yaml", "matplotlib"),
    "instructions": ("ribs", "yaml", "matplotlib", "numpy"),
    "language": ("ribs", "yaml", "matplotlib"),
    "task": ("ribs", "yaml", "matplotlib", "pydantic"),
    "compile": ("cuda.core", "cuda.bindings.driver"),
    "compile.farm.protocol": ("zmq", "threading", "time"),
    "compile.farm": ("pickle", "yaml", "click"),
    "storage": ("ribs", "matplotlib"),
    "run.run_dir": ("yaml", "ribs"),
    "run.checkpoint": ("pathlib", "os", "yaml", "pickle"),
    "run": ("yaml", "click", "rich", "matplotlib"),
    "report": ("yaml",),
    "evolution": ("yaml",),
    "regression": ("yaml", "matplotlib", "pathlib", "os"),
    "regression.task": ("sklearn", "pandas"),
    "semiring": ("ribs", "yaml", "matplotlib", "cuda"),
}


def test_every_part_has_its_layer_and_every_rule_its_part():
    assert {f"evo.{place}" for place in FORBIDDEN} <= set(modules())
    parts = {part_of(name) for name in modules()} - {None, *EVERYBODYS}
    assert set(LAYER) == parts, "give the new part its place in LAYERS and in ARCHITECTURE.md"


def test_a_module_does_not_know_what_it_must_not_know():
    for module, path in PYTHON_MODULES.items():
        forbidden = {name for part, names in FORBIDDEN.items() if f"{module}.".startswith(f"evo.{part}.") for name in names}
        wrong = [name for name in imports(path) if any(f"{name}.".startswith(f"{root}.") for root in forbidden)]
        assert not wrong, f"{module} imports {wrong}"


def test_one_module_reads_yaml_and_only_the_cuda_evaluator_opens_devices():
    users = {name for name, path in PYTHON_MODULES.items() if "yaml" in imports(path)}
    assert users == {"evo.storage.yaml_text"}
    users = {
        (name, imported)
        for name, path in PYTHON_MODULES.items()
        for imported in imports(path)
        if imported.split(".")[0] == "cuda"
    }
    assert users - {(name, "cuda.bindings") for name, _ in users} == {
        ("evo.evaluate.cuda.device", "cuda.bindings.driver"),
        ("evo.kernel.nvrtc", "cuda.bindings.nvrtc"),
    }


def test_only_the_farm_uses_the_network_and_loads_only_where_it_is_used():
    users = {name for name, path in PYTHON_MODULES.items() if {"zmq", "msgpack"} & {i.split(".")[0] for i in imports(path)}}
    assert users == {f"evo.compile.farm.{name}" for name in ("farm_worker", "keys", "protocol", "sockets")}
    loaded = loaded_after("import evo.evaluate.cuda.evaluator, evo.report.export.cubins, evo.config, evo.run.run")
    assert "numpy" in loaded and not loaded & {"zmq", "msgpack"}


def test_nothing_draws_random_numbers_of_its_own():
    for name, path in PYTHON_MODULES.items():
        assert "random" not in imports(path), name
        assert "numpy.random" not in imports(path), name
        assert not [n for n in ast.walk(tree_of(path)) if isinstance(n, ast.Attribute) and n.attr in ("random", "default_rng")], (
            name
        )


def test_no_module_of_the_package_names_a_task():
    names = {path.parent.name for path in (REPOSITORY / "tasks").glob("*/task.py")}
    assert names, "no tasks found"
    for name, path in PYTHON_MODULES.items():
        strings = {n.value for n in ast.walk(tree_of(path)) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
        assert not names & strings, name
        assert not [i for i in imports(path) if i.split(".")[0] == "tasks"], name


SHIPPED_TASKS = sorted([*REPOSITORY.glob("tasks/*/task.py"), *REPOSITORY.glob("templates/*/task/task.py")])


@pytest.mark.parametrize("task", SHIPPED_TASKS, ids=lambda path: str(path.parent.relative_to(REPOSITORY)))
def test_tasks_use_the_public_names_only(task):
    for path in task.parent.rglob("*.py"):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Import):
                assert not [a.name for a in node.names if a.name.startswith("evo.")], f"{path}:{node.lineno}"
            if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module.split(".")[0] == "evo":
                assert node.module in ("evo", "evo.pictures"), f"{path}:{node.lineno}"
                assert {alias.name for alias in node.names} <= set(import_module(node.module).__all__), f"{path}:{node.lineno}"
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "evo":
                assert node.attr in evo.__all__, f"{path}:{node.lineno}"


def test_semirings_load_pytorch_only_where_tensors_are():
    assert "torch" not in loaded_after("import numpy, evo.semiring\nevo.semiring.zoo.l1(numpy.eye(3), numpy.eye(3))")


EXTRAS = "av bitwuzla distributed flint mpmath msgpack sympy torch zmq".split()
LACKING = """
import importlib, sys
class Lacking:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in EXTRAS:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Lacking)
for name in NAMES:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        print(name)
"""


def test_without_extras_all_but_their_own_modules_can_be_imported():
    names = sorted(name for name in PYTHON_MODULES if not name.endswith("__main__"))
    script = f"EXTRAS, NAMES = {EXTRAS}, {names}\n{LACKING}"
    failed = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert {name for name in failed if not name.startswith("evo.compile.farm.")} == {
        "evo.approximation.formulas",
        "evo.approximation.second_check",
        "evo.cli.worker_status",
        "evo.semiring.torch_operator",
        "evo.semiring.torch_transforms",
    }


HEAVY = tuple("cuda matplotlib ribs numba pydantic yaml rich PIL scipy distributed dask pandas sklearn torch".split())


def loaded_after(statement: str) -> set[str]:
    script = f"import sys\n{statement}\nprint(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    return set(subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True).stdout.split())


def test_importing_evo_loads_nothing_heavy():
    loaded = loaded_after("import evo; evo.__version__; evo.Task; evo.RegressionTask")
    assert "evo" in loaded
    assert not loaded & set(HEAVY)


@pytest.mark.parametrize(("part", "may_load"), [("stack_ptx", {"pydantic", "rich"}), ("ast_ptx", set()), ("ptx_inject", set())])
def test_importing_what_stands_alone_loads_nothing_heavy(part, may_load):
    assert not loaded_after(f"import evo.{part}") & {*HEAVY, "nvidia"} - may_load


def test_the_command_line_answers_for_help_without_loading_anything_heavy():
    loaded = loaded_after("from evo.cli import main\nmain(['run', '--help'], standalone_mode=False)")
    assert "click" in loaded
    assert not loaded & set(HEAVY)


def test_a_search_over_a_grid_loads_neither_pyribs_nor_pytorch():
    archive = "make_archive('GridArchive', 8, [(0.0, 1.0)], 1, {'dims': [4]}).elites()"
    statement = f"import evo.evolution, evo.search.map_elites\nfrom evo.search.archives import make_archive\n{archive}"
    assert not loaded_after(statement) & {"ribs", "torch", "numba", "sklearn"}


def test_no_plot_library_loads_for_a_run_before_it_draws():
    assert not loaded_after("import evo.run.run") & {"matplotlib", "PIL", "cuda", "ribs", "numba", "distributed"}
