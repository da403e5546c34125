"""evo.report.export.verify and the formats: what is written computes what the archive says, what does not is never written."""

import json
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from run_exports import as_c, run_c, run_excel, run_json, run_python, run_torch, run_triton

from evo.cli.export_verbs import EXPORT_FORMATS
from evo.config import load_config
from evo.errors import UserError
from evo.language.formula import evaluate
from evo.report.export.formats import export_elites
from evo.report.pareto import describe_front, front_of
from evo.report.recompute import predicted as predicted_by
from evo.report.recompute import whole_expression
from evo.report.show import describe_elite
from evo.run.checkpoint import decode_checkpoint, encode_checkpoint
from evo.run.run import LiveRun, Run

CONFIGS = Path(__file__).parents[4] / "configs"
REDUCTION = Path(__file__).parents[3] / "data" / "erf"
HAS_TORCH = find_spec("torch") is not None
SCALED = (
    "symbolic_regression",
    "stop.evaluations=3000",
    "stop.objective=null",
    "search.initial.num_programs=512",
    "task_options.dataset=Keijzer-6",
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Folders of a small run of each kind: outputs scored in Python, a reduction, and one with check points and a scaling."""
    folder = tmp_path_factory.mktemp("runs")
    runs = []
    erf = ("erf", f"task={REDUCTION}", "task_options={}", "stop.evaluations=6000")
    for config, *stop in [("domain_coloring_smoke", "stop.generations=2"), erf, SCALED]:
        settings = (f"output.runs={folder}", "output.plots=[]", *stop, "evaluation.backend=cpu")
        run = LiveRun.start(load_config(CONFIGS / f"{config}.yaml", settings), config)
        run.execute()
        run.close()
        runs.append(run.run_dir.path)
    return dict(zip(("outputs", "reduction", "scaled"), runs, strict=True))


@pytest.fixture(params=["outputs", "reduction"])
def run(request, finished):
    made, _ = Run.view(finished[request.param], ())
    return made


@pytest.mark.parametrize("format_name", EXPORT_FORMATS)
def test_the_best_elite_of_a_run_can_be_exported(finished, format_name):
    for folder in finished.values():
        [text] = export_elites(Run.view(folder)[0], format_name).texts.values()
        assert len(text) > 10


def test_an_export_is_written_to_a_file_or_into_a_folder(finished, fork_evo, tmp_path):
    (tmp_path / "folder").mkdir()
    for output, shown in (("elite.c", "elite.c"), ("folder", "folder/001_cell_")):
        done = fork_evo("export", finished["reduction"], "--format", "c", "--output", output)
        assert done.returncode == 0 and done.stdout.startswith(shown), done.stderr
        assert (tmp_path / done.stdout.strip()).stat().st_size > 100


@pytest.mark.parametrize("kind", ["outputs", "reduction"])
def test_an_exported_module_runs_without_evo_and_gives_the_bits_of_the_evaluator(finished, kind, tmp_path):
    run, _ = Run.view(finished[kind])
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


def test_a_front_is_exported_as_it_is_shown(finished):
    run, _ = Run.view(finished["scaled"])
    cells = [line[1:].split()[0] for line in describe_front(run).splitlines()[1:]]
    assert len(cells) > 3
    [text] = export_elites(run, "json", front=True).texts.values()
    assert [record["cell"] for record in json.loads(text)["programs"]] == cells
    files = export_elites(run, "python", front=True).texts
    assert list(files) == [f"{i:03d}_cell_{cell.replace(',', '_')}.py" for i, cell in enumerate(cells, 1)]


def test_without_a_complexity_there_is_no_front_to_export(finished):
    run, _ = Run.view(finished["outputs"])
    with pytest.raises(UserError, match="no front: the task does not say which measure is its complexity"):
        export_elites(run, "c", front=True)


# ---- scaled outputs


def predicted(run) -> tuple[np.ndarray, np.ndarray]:
    """Three new points, and what the best elite predicts there: its text, as Python reads it."""
    x = np.array([2.5, 17.0, 119.0])
    names = {"x": x} | {name: getattr(np, name) for name in "sqrt log2 exp2 sin cos exp log".split()}
    for line in describe_elite(run, None).partition("# expression\n")[2].partition("\n\n")[0].splitlines():
        exec(line, names)
    return x, names["f"]


@pytest.fixture
def scaled_run(finished):
    run, _ = Run.view(finished["scaled"])
    return run


def test_all_formats_compute_the_whole_formula_that_is_shown(scaled_run):
    x, expected = predicted(scaled_run)
    n = np.arange(1.0, 51.0)
    (shown,) = evaluate(whole_expression(scaled_run.search.problem, best_words(scaled_run)), [n])
    slope, offset = np.polyfit(shown, np.cumsum(1.0 / n), 1)  # Keijzer-6
    assert (slope, offset) == pytest.approx((1.0, 0.0), abs=1e-6)
    texts = {name: next(iter(export_elites(scaled_run, name).texts.values())) for name in EXPORT_FORMATS}
    (record,) = json.loads(texts["json"])["programs"]
    namespace: dict = {}
    exec(texts["sympy"], namespace)
    expression = namespace["outputs"]["f"]
    found = {
        "python": run_python(texts["python"], [x])[0],
        "c": run_c(texts["c"], [x], 3, [np.float64])[0],
        "cuda": run_c(as_c(texts["cuda"]), [x], 3, [np.float64])[0],
        "json": run_json(json.dumps(record), [x])[0],
        **({"torch": run_torch(texts["torch"], [x])[0]} if HAS_TORCH else {}),
        "triton": run_triton(texts["triton"], [x])[0],
        "sympy": [float(expression.subs({namespace["x"]: float(each)})) for each in x],
    }
    for name, values in found.items():
        np.testing.assert_allclose(values, expected, rtol=1e-12, err_msg=name)


def best_words(run) -> np.ndarray:
    elites = run.search.elites()
    return elites.solution[np.argmax(elites.objective)]


def test_a_formula_that_is_not_what_its_program_computes_is_an_error(scaled_run, monkeypatch):
    words = best_words(scaled_run)
    wrong = whole_expression(scaled_run.search.problem, words)  # scaled, where the program's own outputs are not
    monkeypatch.setattr("evo.report.export.verify.formula_of", lambda *_, **__: wrong)
    with pytest.raises(UserError, match=r"the formula in real numbers gives another f, by .*; nothing was written"):
        export_elites(scaled_run, "sympy")


def run_of(new_run, program, compute):
    """A run with one elite, whose scores NumPy computes."""
    x, y = (each.ravel().astype(np.float32) for each in np.meshgrid(np.linspace(-1, 1, 8), np.linspace(-1, 1, 8)))
    v = compute(x, y).astype(np.float64)
    objective = 1.0 / (1.0 + ((v - (np.float32(0.5) + x * y)) ** 2).mean())
    return new_run([(program, objective, (v.mean(), v.std()))])


@pytest.mark.parametrize("part", ["lg2_approx_ftz_f32 rcp_approx_ftz_f32", "-2000.0 add_ftz_f32 ex2_approx_ftz_f32"])
def test_a_formula_that_a_sheet_cannot_compute_is_not_for_excel(new_run, part):
    """y + 1/log2(x - x) and y + exp2(x - x - 2000): LibreOffice has errors for both."""
    run = run_of(new_run, f"%y %x dup.f32 sub_ftz_f32 {part} add_ftz_f32", lambda x, y: y)
    assert export_elites(run, "python").texts
    with pytest.raises(UserError, match="excel: at a point of the task, a part of the formula is infinite"):
        export_elites(run, "excel")


# ---- the run's backend


def test_exports_of_a_run_that_a_gpu_scored_may_differ_as_its_instructions_do(finished, tmp_path):
    folder = shutil.copytree(finished["reduction"], tmp_path / "run")
    (folder / "config.yaml").write_text((folder / "config.yaml").read_text().replace("backend: cpu", "backend: auto"))
    path = max((folder / "checkpoints").glob("*.ckpt"))
    meta, arrays = decode_checkpoint(path.read_bytes())
    arrays |= {name: arrays[name] + 1e-4 for name in ("elites.objective", "tidy.objective") if name in arrays}
    for backend, agrees in (("cpu", False), ("cuda", True)):
        path.write_bytes(b"".join(bytes(part) for part in encode_checkpoint({**meta, "backend": backend}, arrays)))
        run, _ = Run.view(folder)
        if agrees:
            assert export_elites(run, "python").texts
        else:
            with pytest.raises(UserError, match=r"the archive .*; they may differ by [\d.]+e-09; "):
                export_elites(run, "python")


@pytest.mark.parametrize("format_name", EXPORT_FORMATS)
def test_an_export_that_disagrees_with_its_archive_is_an_error(new_run, format_name):
    false_run = new_run([("%x %x mul_ftz_f32", 0.9, (0.3809524, 0.31))])
    with pytest.raises(UserError, match=r"cell 4,0: the program has objective 0\.\d+, the archive 0\.9; .*nothing was written"):
        export_elites(false_run, format_name)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--format", "fortran"], "'fortran' is not one of 'ptx', 'cuda'"),
        (["--format", "c", "--best", "--front"], "--best and --front: give one of them"),
        (["--format", "c", "--front"], "--front: name the folder of its files: --output FOLDER"),
        (["--format", "c", "--cell", "99,99"], "--cell 99,99: "),
        (["--format", "ptx", "--arch", "sm_1"], "--arch sm_1: "),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_written(finished, fork_evo, tmp_path, options, message):
    done = fork_evo("export", finished["reduction"], *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1 and message in done.stderr, done.stderr


def test_without_sympy_latex_says_what_to_install(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "sympy", None)
    assert export_elites(run, "sympy").texts
    with pytest.raises(UserError, match=r"need SymPy: pip install 'evo-ptx\[sympy\]'"):
        export_elites(run, "latex")


@pytest.mark.slow
def test_libreoffice_gives_what_the_archives_formulas_predict(scaled_run, tmp_path):
    """Within a step of float32 of `evo predict`, at the task's points."""
    [x] = scaled_run.search.problem.task.points().values()
    rows = front_of(scaled_run).rows.tolist()
    words = scaled_run.search.elites().solution[rows]
    found = run_excel([*export_elites(scaled_run, "excel", front=True).texts.values()], [x.astype(np.float64)], tmp_path)
    assert len(found) == len(rows) > 3
    for each, own in zip(found, words, strict=True):
        expected = predicted_by(scaled_run.search.problem, own, {"x": x}, len(x))["f"]
        np.testing.assert_allclose(each, expected, rtol=2.0**-23)


def test_a_program_that_reads_a_special_register_has_no_form_but_ptx(new_run):
    run = new_run([("%x special:laneid cvt_rn_f32_u32 add_ftz_f32", 0.5, (0.0, 0.5))])
    with pytest.raises(UserError, match="laneid"):
        export_elites(run, "json")
