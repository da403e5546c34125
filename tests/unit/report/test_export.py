"""evo export: what is written computes what the archive says, and what does not is never written."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from evo.cli import EXPORT_FORMATS
from evo.config import load_config
from evo.errors import UserError
from evo.language.program import parse_program
from evo.report.export import FORMATS, export_elites, write_export
from evo.run.run import Run

CONFIGS = Path(__file__).parents[3] / "configs"


@pytest.fixture(scope="module")
def finished(tmp_path_factory, evo_command):
    """Folders of a small run of each kind: outputs scored in Python, and a reduction."""
    folder = tmp_path_factory.mktemp("runs")
    runs = []
    for config, stop in [("domain_coloring_smoke", "stop.generations=2"), ("erf", "stop.evaluations=6000")]:
        settings = [f"output.runs={folder}", "output.plots=[]", stop, "evaluation.backend=cpu"]
        arguments = [argument for setting in settings for argument in ("--set", setting)]
        subprocess.run([evo_command, "run", CONFIGS / f"{config}.yaml", *arguments], check=True, capture_output=True)
        runs.append(next((folder / config).iterdir()))
    return dict(zip(("outputs", "reduction"), runs, strict=True))


@pytest.fixture(params=["outputs", "reduction"])
def run(request, finished):
    made, _ = Run.view(finished[request.param], ())
    return made


def test_the_command_line_offers_the_formats_that_there_are():
    assert tuple(FORMATS) == EXPORT_FORMATS


@pytest.mark.parametrize("format_name", EXPORT_FORMATS)
def test_the_best_elite_of_a_run_can_be_exported(finished, fork_evo, tmp_path, format_name):
    for kind, folder in finished.items():
        done = fork_evo("export", folder, "--format", format_name, "--output", kind)
        assert (done.returncode, done.stdout) == (0, f"{kind}\n"), done.stderr
        assert (tmp_path / kind).stat().st_size > 100


def test_an_exported_module_runs_without_evo_and_gives_the_bits_of_the_evaluator(run, tmp_path):
    (text,) = export_elites(run, "python").texts.values()
    (tmp_path / "elite.py").write_text(text)
    problem = run.search.problem
    points = {name: np.broadcast_to(np.asarray(values, np.float32), 7) for name, values in _seven_points(problem.task)}
    np.savez(tmp_path / "points.npz", **points)
    script = (
        "import sys, numpy as np, elite; p = np.load('points.npz'); out = elite.program(**p); assert 'evo' not in sys.modules"
    )
    script += "\nnp.save('out.npy', np.stack([np.broadcast_to(o, 7) for o in out]))"
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
    elites = run.search.elites()
    best = elites.solution[np.argmax(elites.objective)][None]
    expected = np.stack([array[0] for array in problem.evaluator.outputs(best, points).values()])
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy").view(np.uint32), expected.view(np.uint32))


def _seven_points(task):
    for i, name in enumerate(task.inputs):
        yield name, np.linspace(-3 + i, 2, 7)


def test_a_front_has_a_better_objective_for_each_further_instruction(run, tmp_path):
    export = export_elites(run, "json", front=True)
    (path,) = write_export(export, tmp_path / "front.json", front=True)
    records = json.loads(path.read_text())["programs"]
    counts, objectives = ([record[key] for record in records] for key in ("num_instructions", "objective"))
    assert counts == sorted(set(counts)) and objectives == sorted(set(objectives))
    elites = run.search.elites()
    for count, objective in zip(elites.num_instructions, elites.objective, strict=True):
        assert max(o for c, o in zip(counts, objectives, strict=True) if c <= count) >= objective
    files = write_export(export_elites(run, "c", front=True), tmp_path / "front", front=True)
    assert [file.name for file in files] == [f"{count:03d}_instructions.c" for count in counts]


@pytest.fixture
def false_run(small_config):
    """Its only elite's objective is not what its program scores."""
    made = Run.start(load_config(small_config()), "small")
    words = parse_program(made.search.problem.language, "%x %x mul_ftz_f32", "text", 24)
    origin = {"parents": np.array([[-1, -1]]), "operator": np.array([-1]), "generation": np.array([0]), "slot": np.array([0])}
    hashes, counts = made.search.problem.language.lowering.analyze(words[None])
    values = np.array([0.9]), np.array([[0.3809524, 0.31]])
    made.search.archive.add(words[None], *values, **origin, hash=hashes, num_instructions=counts)
    yield made
    made.close()


@pytest.mark.parametrize("format_name", EXPORT_FORMATS)
def test_an_export_that_disagrees_with_its_archive_is_an_error(false_run, format_name):
    with pytest.raises(
        UserError, match=r"cell 4,0: the \w+ export has objective 0\.\d+, the archive 0\.9; .*nothing was written"
    ):
        export_elites(false_run, format_name)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--format", "fortran"], "'fortran' is not one of 'ptx', 'cuda'"),
        (["--format", "c", "--best", "--front"], "--cell, --best and --front: give one of them"),
        (["--format", "c", "--front"], "--front: name the folder of its files: --output FOLDER"),
        (["--format", "c", "--cell", "99,99"], "--cell 99,99: "),
        (["--format", "ptx", "--arch", "sm_1"], "--arch sm_1: "),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_written(finished, fork_evo, tmp_path, options, message):
    done = fork_evo("export", finished["reduction"], *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1 and message in done.stderr, done.stderr


def test_without_sympy_its_formats_say_what_to_install(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "sympy", None)
    for format_name in ("sympy", "latex"):
        with pytest.raises(UserError, match=r"need SymPy: pip install 'evo\[sympy\]'"):
            export_elites(run, format_name)


def test_without_a_compiler_c_is_written_with_a_note(run, monkeypatch):
    monkeypatch.setenv("PATH", "")
    export = export_elites(run, "c")
    assert export.notes == ["C not compiled: no cc, gcc or clang here; install one to have the export checked"]
    assert "void program(" in next(iter(export.texts.values()))
