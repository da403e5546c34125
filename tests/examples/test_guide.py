"""docs/guide: its code runs, and prints what stands below it; its commands do what they say; its configs load.

Longer than most modules: each page's commands have their test.
"""

import contextlib
import io
import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import yaml
from click.testing import CliRunner

from evo.cli import main
from evo.config import load_config
from evo.ptx_inject import PTXInject
from evo.ptx_inject.cli import main as ptxinject
from evo.run.checkpoint import decode_checkpoint
from evo.shipped import shipped
from evo.task import Task

REPOSITORY = Path(__file__).parents[2]
GUIDE = REPOSITORY / "docs" / "guide"
PAGES = [*sorted(GUIDE.glob("*.md")), REPOSITORY / "README.md"]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block. language: after the fence; line: of its first line of text."""

    page: str
    language: str
    text: str
    line: int


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text()
    return [Block(page.name, m[1], m[2], text.count("\n", 0, m.start(2)) + 1) for m in FENCE.finditer(text)]


def block(page: str, language: str, number: int = 0) -> str:
    return [b.text for b in blocks_of(GUIDE / page) if b.language == language][number]


def commands_of(page: Path) -> list[list[str]]:
    """The words of each command in the page's shell blocks, without comments."""
    lines = [line for b in blocks_of(page) if b.language == "bash" for line in b.text.replace("\\\n", "").splitlines()]
    parts = [part for line in lines for part in re.split(r" && ", line.partition(" #")[0])]
    return [shlex.split(part) for part in parts if part.strip()]


@pytest.fixture
def empty(tmp_path, monkeypatch):
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    # Drawing is not what is tested here, and takes the most time.
    monkeypatch.setattr("evo.report.plot.pictures.NUM_FRAMES", 4)
    monkeypatch.setattr("evo.report.plot.pictures.BEST_SIZE", 64)
    return tmp_path


@pytest.fixture
def workplace(empty):
    """A folder to work in, with the repository's configs, tasks and examples; the smoke config is made smaller."""
    for name in ("configs", "tasks"):
        shutil.copytree(REPOSITORY / name, empty / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("csrc", "docs"):
        (empty / name).symlink_to(REPOSITORY / name)
    smoke = empty / "configs" / "domain_coloring_smoke.yaml"
    smoke.write_text(smoke.read_text() + "\noutput:\n  plots: [heatmap]\n")
    return empty


SHORT = {  # overrides of the pages for users, so that their commands take seconds
    "run": ("stop={generations: 2}", "search.initial.num_programs=256", "search.batch_size=64", "output.plots=[heatmap]"),
    "sweep": ("stop={generations: 2}", "search.initial.num_programs=64"),
}


def run_commands(page: str) -> list[Path]:
    """Runs the commands of a page in the working folder, shortened; RUN is the newest run, and a cell one that it has.

    Returns the runs, the oldest first.
    """
    start = Path.cwd()
    runs: list[Path] = []
    for command in commands_of(GUIDE / page):
        if command[0] == "cd":
            os.chdir(command[1])
            continue
        assert command[0] == "evo"
        words = [{"1-10": "1"}.get(word, re.sub(r"^stop\.evaluations=\d+$", "stop.generations=3", word)) for word in command[1:]]
        if "RUN" in words:
            words[words.index("RUN")] = os.path.relpath(runs[-1])
        if "--cell" in words:
            dims = load_config(runs[-1] / "config.yaml").search.archive.dims
            with np.load(runs[-1] / "archive.npz") as archive:
                best = int(archive["cell"][archive["objective"].argmax()])
                words[words.index("--cell") + 1] = ",".join(map(str, np.unravel_index(best, dims)))
        evo(*words, *(option for short in SHORT.get(words[0], ()) for option in ("--set", short)))
        if words[0] == "run":
            runs.append(max(Path("runs").absolute().glob("*/*"), key=lambda path: path.stat().st_ctime_ns))
    os.chdir(start)
    return runs


def evo(*args: str) -> str:
    """The output of a verb that ends well."""
    done = CliRunner().invoke(main, args, catch_exceptions=False)
    assert done.exit_code == 0, f"evo {' '.join(args)}\n{done.output}"
    return done.output


def run_python(page: str, names: dict) -> None:
    """Runs a page's Python blocks in order; a text block that follows one is what it prints, unless it is another block's."""
    printed = None
    page_blocks = blocks_of(GUIDE / page)
    for before, b in zip([None, *page_blocks], page_blocks, strict=False):
        if b.language == "python":
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(compile("\n" * (b.line - 1) + b.text, str(GUIDE / page), "exec"), names)
            printed = output.getvalue()
        elif b.language == "text" and before is not None and before.language not in ("c", "yaml"):
            assert printed is not None
            assert printed.strip() == b.text.strip(), f"{page}:{b.line}"
            printed = None


def run_c(page: str, folder: Path, include: Path, arguments: tuple[str, ...] = ()) -> int:
    """Compiles and runs a page's C blocks; a text block that follows one is what it prints. Returns how many there were."""
    gcc = shutil.which("gcc") or pytest.skip("gcc is not installed")
    page_blocks = blocks_of(GUIDE / page)
    found = [(b, after) for b, after in itertools.pairwise(page_blocks) if b.language == "c"]
    for b, after in found:
        source, program = folder / f"line_{b.line}.c", folder / f"line_{b.line}"
        source.write_text(b.text)
        command = [gcc, "-std=c99", "-Wall", "-Wextra", "-Werror", "-I", include, source, "-o", program, "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{page}:{b.line}\n{done.stderr}"
        done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, f"{page}:{b.line}\n{done.stderr}"
        assert after.language == "text" and done.stdout.strip() == after.text.strip(), f"{page}:{after.line}\n{done.stdout}"
    return len(found)


def assert_files_are_as_documented(run: Path) -> None:
    """The files of a run folder with cubins, against docs/api/files.md."""
    text = (REPOSITORY / "docs" / "api" / "files.md").read_text()
    sections = dict(zip(*[iter(re.split(r"^## (.*)$", text, flags=re.MULTILINE)[1:])] * 2, strict=True))
    row = json.loads((run / "metrics.jsonl").read_text().splitlines()[-1])
    # Parts that only some runs have begin by naming these.
    assert re.findall(r"^\| `(\w+)` \| (?!with |on a GPU)", sections["metrics.jsonl"], re.MULTILINE) == list(row)
    told = re.findall(r"^\| `(\w+)` \| (\w+)(?!.*: with )", sections["archive.npz"], re.MULTILINE)
    with np.load(run / "archive.npz") as archive:
        assert [(name, archive[name].dtype.name) for name in archive.files] == told
        columns = set(archive.files)
    _, arrays = decode_checkpoint(max((run / "checkpoints").iterdir()).read_bytes())
    assert {name.removeprefix("elites.") for name in arrays if name.startswith("elites.")} == columns
    assert {name.removeprefix("tidy.") for name in arrays if name.startswith("tidy.")} <= columns
    others = {name for name in arrays if not name.startswith(("elites.", "tidy."))}
    assert others == set(re.findall(r"`((?:memory|lineages|ancestry|emitters)\.\w+)`", sections["Checkpoints"]))
    index = json.loads((run / "cubins" / "index.json").read_text())
    for key in (*index, *index["programs"][0]):
        assert f"`{key}`" in sections["index.json of `evo compile`"], key


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "made"),
    [
        ("art.md", ["mine.txt", "mine.png", "mine.gif", "film.gif", "runs/domain_coloring_random", "sunset/runs/picture"]),
        ("kernels.md", ["erf.txt", "formulas", "runs/erf/*/cubins/index.json", "fast/runs/kernel"]),
        ("research.md", ["runs/umad", "elites.csv"]),
    ],
)
def test_the_commands_of_a_page_for_users_run_in_an_empty_folder(empty, page, made):
    runs = run_commands(page)
    assert [name for name in made if not list(empty.glob(name))] == []
    if page == "research.md":
        run_python(page, {"RUN": str(runs[-1])})


@pytest.mark.slow
def test_the_commands_of_running_md_run_and_so_does_its_python(empty):
    workplace = empty
    shutil.copy(shipped("tasks")["domain_coloring"] / "programs" / "glass.txt", empty)
    evo("run", "domain_coloring_smoke", "--set", "seed=5", "--set", "output.plots=[heatmap]")
    [run] = (workplace / "runs" / "domain_coloring_smoke").iterdir()
    with np.load(run / "archive.npz") as archive:
        cell = int(archive["cell"][0])
    for command in commands_of(GUIDE / "running.md"):
        shorter = {"5,3": f"{cell // 10},{cell % 10}", "1-3": "1"}
        words = [shorter.get(word, re.sub(r"^RUN\b", str(run), word)) for word in command]
        words = [re.sub(r"\$\((.*)\)", lambda m: subprocess.getoutput(m[1]), word) for word in words]
        if words[0] == "evo":
            evo(*words[1:])
        else:
            subprocess.run(words, check=True)
    assert list((workplace / "pictures").iterdir())
    assert (run / "cubins" / "index.json").is_file()
    assert (workplace / "cubins" / "index.json").is_file()
    run_python("running.md", {"RUN": str(run)})
    assert_files_are_as_documented(run)


@pytest.mark.slow
def test_the_commands_of_regression_md_run(workplace):
    (workplace / "my.csv").write_text("x,id,y\n" + "".join(f"{i},{i}a,{i * i}\n" for i in range(20)))
    smaller = ["--set", "task_options.drop=[id]", "--set", "stop.generations=3", "--set", "search.initial.num_programs=512"]
    first, *others = commands_of(GUIDE / "regression.md")
    assert "front.png" in evo(*first[1:], *smaller)
    [run] = (workplace / "runs" / "symbolic_regression").iterdir()
    with np.load(run / "archive.npz") as archive:
        cell = int(archive["cell"][0])
    (workplace / "new.csv").write_text("x\n2.5\n3.5\n")
    for command in others:
        words = [{"RUN": str(run), "5,3": f"{cell // 16},{cell % 16}"}.get(word, word) for word in command[1:]]
        printed = evo(*words)
        if words[0] in ("show", "simplify"):
            assert "test_nmse" in printed
    assert len((workplace / "predictions.csv").read_text().splitlines()) == 3
    assert any("test_nmse" in path.read_text() for path in (workplace / "formulas").iterdir())


@pytest.mark.parametrize("page", ["regression.md", "in-the-loop-learning.md", "libraries.md", "rollouts.md"])
def test_the_python_of_a_page_prints_what_stands_below_it(page):
    run_python(page, {})


def test_the_python_of_the_page_on_semirings_prints_what_stands_below_it():
    pytest.importorskip("torch", reason="PyTorch is not installed")
    run_python("semirings.md", {})


def test_the_commands_of_libraries_md_end_well(workplace):
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    ran = 0
    for command in commands_of(GUIDE / "libraries.md"):
        if command[0] == "gcc" and shutil.which("gcc") is None:
            pytest.skip("gcc is not installed")
        if command[0] == "ptxinject":
            done = CliRunner().invoke(ptxinject, command[1:], catch_exceptions=False)
            assert done.exit_code == 0, done.output
        else:
            words = [sys.executable if word == "python" else word for word in command]
            subprocess.run(words, check=True, capture_output=True, env=environment, timeout=120)
        ran += 1
    assert ran >= 5
    printed = subprocess.run(["./simple"], capture_output=True, text=True, check=True).stdout
    assert printed == (REPOSITORY / "docs" / "examples" / "expected" / "simple.txt").read_text()


MIGRATION = "migrating-from-mm-ptx.md"


@pytest.fixture(scope="module")
def single_headers(tmp_path_factory) -> Path:
    """A folder with the single headers, as the page on migration makes it."""
    folder = tmp_path_factory.mktemp("single_headers")
    subprocess.run([sys.executable, REPOSITORY / "csrc" / "single_headers.py", folder], check=True)
    return folder


@pytest.fixture(scope="module")
def kernel_ptx(tmp_path_factory, single_headers, nvrtc) -> Path:
    """The PTX of the kernel of the page on migration."""
    headers = {"ptx_inject.h": (single_headers / "ptx_inject.h").read_bytes()}
    ptx = nvrtc.compile(block(MIGRATION, "cuda").encode(), "kernel.cu", headers, ["--gpu-architecture=compute_80"])
    path = tmp_path_factory.mktemp("kernel") / "kernel.ptx"
    path.write_bytes(ptx.rstrip(b"\0"))
    return path


def test_the_c_of_the_page_on_migration_prints_what_stands_below_it(tmp_path, single_headers, kernel_ptx):
    assert run_c(MIGRATION, tmp_path, single_headers, (str(kernel_ptx),)) == 4


def test_the_python_of_the_page_on_migration_runs_and_so_do_the_names_in_its_table(kernel_ptx):
    import evo as package
    from evo import ptx_inject

    names = {"ptx": kernel_ptx.read_text()}
    run_python(MIGRATION, names)
    section = (GUIDE / MIGRATION).read_text().partition("\n## Python names\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `.* \| (.*) \|$", section, re.MULTILINE)
    expressions = [span for row in rows for span in re.findall(r"`([^`]+)`", row) if span != "close"]
    assert len(expressions) >= 25
    around = {"evo": package, "ptx_inject": ptx_inject, "cuda": "", "func": PTXInject(names["ptx"])["func"]}
    with contextlib.redirect_stdout(io.StringIO()):
        for expression in expressions:
            assert eval(expression, {**names, **around}) is not False, expression


def test_the_commands_and_the_cmake_of_the_page_on_migration_work(workplace):
    (workplace / "program.c").write_text(block(MIGRATION, "c"))
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    outputs = []
    for command in commands_of(GUIDE / MIGRATION):
        if shutil.which(command[0], path=environment["PATH"]) is None:
            pytest.skip(f"{command[0]} is not installed")
        words = [sys.executable if word == "python" else word for word in command]
        done = subprocess.run(words, check=True, capture_output=True, text=True, env=environment, timeout=120)
        outputs.append(done.stdout)
    [include, *_] = [Path(output.strip()) for output in outputs]
    assert (include / "stack_ptx.h").is_file()
    printed = block(MIGRATION, "text")
    assert subprocess.run(["./program"], check=True, capture_output=True, text=True).stdout.strip() == printed.strip()

    (workplace / "CMakeLists.txt").write_text(
        f"cmake_minimum_required(VERSION 3.20)\nproject(page LANGUAGES C)\n{block(MIGRATION, 'cmake')}"
    )
    cmake = shutil.which("cmake", path=environment["PATH"]) or pytest.skip("cmake is not installed")
    subprocess.run([cmake, "-S", ".", "-B", "build", f"-Devo_ROOT={include}"], check=True, capture_output=True)
    subprocess.run([cmake, "--build", "build"], check=True, capture_output=True)
    assert subprocess.run(["build/program"], check=True, capture_output=True, text=True).stdout.strip() == printed.strip()


def test_the_task_of_the_guide_can_be_searched(workplace):
    task = workplace / "ripple"
    task.mkdir()
    source, pictures = (block("writing-a-task.md", "python", number) for number in (0, 3))
    (task / "task.py").write_text(source.rstrip() + "\n\n" + textwrap.indent(pictures, "    "))
    (workplace / "ripple.yaml").write_text(block("writing-a-task.md", "yaml") + "\noutput: {plots: [contact_sheet]}\n")
    assert "contact_sheet.png" in evo("run", "ripple.yaml")
    (run,) = (workplace / "runs" / "ripple").iterdir()
    with np.load(run / "archive.npz") as archive:
        assert len(archive["cell"]) > 10


def test_the_reduction_of_the_guide_gives_the_digits_of_its_error():
    import evo as package

    names = {"np": np, "evo": package}
    exec(block("writing-a-task.md", "python", 2), names)
    found = package.evolve(names["Root"], guesses="x", generations=1, search={"initial": {"num_programs": 8}, "batch_size": 8})
    x = np.linspace(1.0, 4.0, 2048)
    of_x = found.archive[found.archive.num_instructions == 0].objective.max()
    assert of_x == pytest.approx(-0.5 * np.log10(((x - np.sqrt(x)) ** 2).mean()), abs=1e-4)


def test_the_kernel_of_the_guide_does_what_the_tested_kernel_does():
    """It is that of tests/data/own_kernel, whose scores are held to its task's, but for an input that nothing reads."""
    folder = REPOSITORY / "tests" / "data" / "own_kernel"

    def words(*texts: str) -> list[str]:
        text = "\n".join(re.sub(r"//[^\n]*", "", text) for text in texts)
        for dropped in ('#include "sums.cuh"', '#include "evo.cuh"', "#pragma unroll 2", "points.n(i), "):
            text = text.replace(dropped, "")
        return text.split()

    tested = words((folder / "sums.cuh").read_text(), (folder / "kernel.cu").read_text())
    assert words(block("task-kernels.md", "cuda")) == tested


def test_the_search_of_the_readme_runs(tmp_path, monkeypatch, capsys):
    [source] = [b.text for b in blocks_of(REPOSITORY / "README.md") if b.language == "python"]
    monkeypatch.chdir(tmp_path)
    exec(source.replace("seconds=20", "generations=2"), {})
    assert re.search(r"(^|; )f = ", capsys.readouterr().out)
    assert (tmp_path / "found" / "config.yaml").is_file()


@pytest.mark.parametrize("page", PAGES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_configs_in_a_page_load(workplace, page):
    """A part of a config stands for what is changed in another one."""
    other = yaml.safe_load((REPOSITORY / "configs" / "erf.yaml").read_text())
    del other["search"]["parents"], other["search"]["variation"]  # emitters stand in their place
    for b in blocks_of(page):
        if b.language == "yaml":
            config = yaml.safe_load(b.text)
            if "task" not in config:
                config = merged(other, config)
            path = workplace / "configs" / "from_the_page.yaml"
            path.write_text(yaml.safe_dump(config))
            assert load_config(path).stop.model_dump(exclude_none=True)


def merged(config, changes):
    if not (isinstance(config, dict) and isinstance(changes, dict)):
        return changes
    return {**config, **{key: merged(config.get(key), value) for key, value in changes.items()}}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_commands_in_a_page_and_in_its_sentences_exist(workplace, page):
    """Verbs and options of `evo ...` parse, and what --set names is a key of a config."""
    smoke = workplace / "configs" / "domain_coloring_smoke.yaml"
    spans = re.findall(r"`(evo [^`]+)`", FENCE.sub("", page.read_text()))
    quoted = [shlex.split(span.partition(" [")[0].replace("\\|", "|")) for span in spans]
    for command in [*commands_of(page), *quoted]:
        if command[0] == "evo":
            verb = main.commands[command[1]]
            if command[2:]:  # a sentence may name the verb alone
                parsed = verb.make_context(command[1], command[2:])
                load_config(smoke, parsed.params.get("overrides", ()))


def test_every_verb_is_in_the_guides_table():
    rows = re.findall(r"^\|.*", (GUIDE / "README.md").read_text().partition("\n## Commands\n")[2], re.MULTILINE)
    assert set(re.findall(r"`evo ([\w-]+)", "\n".join(rows))) == set(main.commands)


def test_all_names_of_a_task_are_explained():
    text = (GUIDE / "writing-a-task.md").read_text() + (GUIDE / "task-kernels.md").read_text()
    names = {name for name in vars(Task) if not name.startswith(("_", "has_"))}
    assert {name for name in names if name not in text} == set()
