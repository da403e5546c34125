"""evo predict and evo simplify (evo.cli.export_verbs, evo.report.simplified) on a run that found a formula in a table."""

import csv
import io
import re

import numpy as np
import pytest

from evo.evaluate.program_simplifier import TOLERANCE

from .conftest import run_folders

NEW = [(0.5, -1.25), (1 / 3, 0.1), (-2.0, 7.0)]


def run_arguments(repository, task_options: str, generations: int, *more: str) -> list[str]:
    """Of a short run on the CPU."""
    stop = f"stop={{generations: {generations}, seconds: null, objective: null}}"
    settings = (f"task_options={task_options}", stop, "evaluation={backend: cpu, executor: threads}", "output.plots=[]", *more)
    config = str(repository / "configs" / "symbolic_regression.yaml")
    return ["run", config, *(argument for setting in settings for argument in ("--set", setting))]


@pytest.fixture(scope="session")
def regression_run(fork_server, repository, tmp_path_factory):
    """A short run for y = 1000 + 3 u v, of columns whose names are not identifiers. Tests look at it, none may change it."""
    folder = tmp_path_factory.mktemp("regression")
    rng = np.random.default_rng(1)
    rows = "".join(f"{u!r},a{i},{1000 + 3 * u * v!r},{v!r}\n" for i, (u, v) in enumerate(rng.uniform(-2, 2, (40, 2)).tolist()))
    (folder / "table.csv").write_text("speed (m/s),id,y,2019\n" + rows)
    options = f"{{data: {folder}/table.csv, target: y}}"
    arguments = run_arguments(repository, options, 4, "search.initial.num_programs=2048", "search.batch_size=256")
    stdout, stderr = folder / "stdout.txt", folder / "stderr.txt"
    process = fork_server.start(arguments, folder, {}, stdout, stderr)
    assert fork_server.wait(process) == 0, stderr.read_text()
    assert f"warning: {folder}/table.csv: left out column 'id', which is text, such as 'a0'\n" in stderr.read_text()
    (run,) = run_folders(folder / "runs")
    return run


@pytest.fixture
def data(tmp_path):
    """New rows: no target, other columns, another order, a blank line at the end."""
    lines = [f"{v!r},x,{u!r}\n" for u, v in NEW]
    (tmp_path / "new.csv").write_text("2019,name,speed (m/s)\n" + "".join(lines) + "\n")
    return "new.csv"


def numbers(text: str) -> list[float]:
    header, *rows = csv.reader(io.StringIO(text))
    assert header == ["y"] and all(len(row) == 1 for row in rows)
    return [float(row[0]) for row in rows]


def exported(fork_evo, run, tmp_path, *options: str) -> list[float]:
    """Predictions of the exported Python module for the new rows."""
    text = fork_evo("export", run, "--format", "python", *options).stdout
    namespace: dict = {}
    exec(text, namespace)
    u, v = np.array(NEW).T
    return namespace["program"](speed_m_s=u, x2019=v)[0].tolist()


def test_predictions_are_those_of_the_exported_formula_digit_for_digit(fork_evo, regression_run, data, tmp_path):
    done = fork_evo("predict", regression_run, "--data", data)
    assert (done.returncode, done.stderr) == (0, "")
    assert numbers(done.stdout) == exported(fork_evo, regression_run, tmp_path)
    np.testing.assert_allclose(numbers(done.stdout), [1000 + 3 * u * v for u, v in NEW], rtol=1e-4)
    assert fork_evo("predict", regression_run, "--data", data, "--shortest").stdout == done.stdout
    best = fork_evo("predict", regression_run, "--data", data, "--best")
    assert numbers(best.stdout) == exported(fork_evo, regression_run, tmp_path, "--best")
    written = fork_evo("predict", regression_run, "--data", data, "--output", "out/predictions.csv")
    assert (written.returncode, written.stdout) == (0, "out/predictions.csv\n")
    assert (tmp_path / "out" / "predictions.csv").read_text() == done.stdout
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["predictions.csv"]
    cell = fork_evo("show", regression_run, "--front").stdout.splitlines()[1][1:].split()[0]
    of_cell = fork_evo("predict", regression_run, "--data", data, "--cell", cell)
    assert numbers(of_cell.stdout) == exported(fork_evo, regression_run, tmp_path, "--cell", cell) != numbers(done.stdout)


@pytest.mark.slow
def test_columns_that_f32_cannot_hold_are_read_as_they_are(fork_evo, repository, tmp_path):
    """Time stamps, and lengths of 1e-30: y = u (5 + 0.25 t), of the seconds t and the units u."""
    t, u = np.arange(0.0, 400.0, 4.0), np.random.default_rng(1).uniform(1.0, 3.0, 100)
    target = 1e12 * u * (5.0 + 0.25 * t)
    rows = "".join(
        f"{a!r},{b!r},{c!r}\n" for a, b, c in zip((1.7e9 + t).tolist(), (1e-30 * u).tolist(), target.tolist(), strict=True)
    )
    (tmp_path / "table.csv").write_text("time,length,y\n" + rows)
    options = f"{{data: {tmp_path}/table.csv, target: y, test_share: 0}}"
    done = fork_evo(*run_arguments(repository, options, 6))
    assert done.returncode == 0, done.stderr
    assert "time: float32 cannot hold its values, so programs read (time - 1.7e9); formulas" in done.stderr
    assert "length: float32 cannot hold its values, so programs read length/1e-30; formulas" in done.stderr
    (run,) = run_folders(tmp_path / "runs")
    predictions = np.array(numbers(fork_evo("predict", run, "--data", "table.csv").stdout))
    deviation = target.std()
    assert np.sqrt(np.mean((predictions - target) ** 2)) < 1e-6 * deviation
    texts = {name: fork_evo("export", run, "--format", name).stdout for name in ("python", "c", "sympy", "json", "latex", "ptx")}
    # SymPy makes one number of time - 1.7e9 + 20.
    assert all(any(number in text for number in ("1.7e9", "1700000000.0", "1699999980.0")) for text in texts.values())
    shown = fork_evo("show", run, "--precision", "3").stdout
    assert "# expression (rounded to 3 digits for display; predictions use all)\n" in shown and "(time - 1.7e9" in shown
    assert fork_evo("export", run, "--format", "latex", "--precision", "3").stdout.startswith(
        "% (rounded to 3 digits for display;"
    )
    assert "(time - 1.7e9" in fork_evo("show", run, "--csv").stdout
    refused = fork_evo("export", run, "--format", "c", "--precision", "3")
    assert refused.returncode == 2 and "--precision: rounds sympy and latex for display" in refused.stderr


def test_predictions_need_the_columns_that_the_formula_uses(fork_evo, regression_run, tmp_path):
    _, simplest, *_ = fork_evo("show", regression_run, "--front").stdout.splitlines()
    cell, used = simplest[1:].split()[0], "2019" if "`2019`" in simplest else "speed (m/s)"
    assert ("`2019`" in simplest) != ("`speed (m/s)`" in simplest)
    (tmp_path / "new.csv").write_text(f"{used}\n1\n2\n")
    done = fork_evo("predict", regression_run, "--data", "new.csv", "--cell", cell)
    assert (done.returncode, len(numbers(done.stdout))) == (0, 2)
    refused = fork_evo("predict", regression_run, "--data", "new.csv")
    assert refused.returncode == 2 and ":1: no column" in refused.stderr


def test_a_run_ends_with_its_front_and_says_which_formula_is_taken(fork_evo, regression_run):
    told = (regression_run.parents[2] / "stdout.txt").read_text()
    front = fork_evo("show", regression_run, "--front").stdout.splitlines()
    begin = front[0].index("expression")
    assert front[0] in told and all(line[:begin] in told for line in front[1:])
    [chosen] = [line[1:].split()[0] for line in front if line[0] == ">"]
    assert "shortest description" in next(line for line in front if line[0] == ">")
    assert f"cell       {chosen}\n" in fork_evo("show", regression_run).stdout
    assert "(> is what evo show, export, predict and simplify take)" in told


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2019,speed\n1,2\n", ":1: no column 'speed (m/s)'; the formula's inputs are: speed (m/s), 2019"),
        ("2019,speed (m/s),2019\n1,2,3\n", ":1: two columns are named '2019'; the formula's inputs are: speed (m/s), 2019"),
        ("2019,speed (m/s)\n1,2\n1,fast\n", ":3: column 'speed (m/s)': 'fast' is not a number; write it as one"),
        ("2019,speed (m/s)\n", ": no rows of data below the names of the columns"),
        (None, ": cannot read the data: No such file or directory"),
    ],
)
def test_data_that_cannot_be_used_is_one_line(fork_evo, regression_run, tmp_path, text, message):
    if text is not None:
        (tmp_path / "bad.csv").write_text(text)
    done = fork_evo("predict", regression_run, "--data", "bad.csv", "--output", "out.csv")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"evo: {tmp_path}/bad.csv{message}") and done.stderr.count("\n") == 1, done.stderr
    assert not (tmp_path / "out.csv").exists()


def test_predict_refuses_what_it_cannot_do(fork_evo, regression_run, finished_run, data, tmp_path):
    done = fork_evo("predict", finished_run, "--data", data)
    assert done.returncode == 2 and "class Plane reads no files (it has no read_points)\n" in done.stderr
    assert fork_evo("predict", regression_run, "--data", data, "--cell", "1,1", "--best").stderr == (
        "evo: --cell and --best: give one of them\n"
    )
    before = (tmp_path / data).read_text()
    done = fork_evo("predict", regression_run, "--data", data, "--output", data)
    assert done.returncode == 2 and "would overwrite the input" in done.stderr
    assert (tmp_path / data).read_text() == before


def test_simplify_prints_scores_and_writes_a_program_that_eval_reads(fork_evo, regression_run, tmp_path):
    done = fork_evo("simplify", regression_run, "--output", "simple.txt")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("simple.txt\n")
    table = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if len(line.split()) == 3 and "=" not in line}
    shown = fork_evo("show", regression_run).stdout
    assert table["num_instructions"][0] == re.search(r"^num_instructions +(\d+)", shown, re.M)[1]
    assert int(table["num_instructions"][1]) == 1  # u v, by itself
    before, after = map(float, table["objective"])
    assert after >= before - TOLERANCE * max(1, before)
    assert re.search(r"^f = 1000\.?\d* \+ 3\.?\d*\*(`speed \(m/s\)`\*`2019`|`2019`\*`speed \(m/s\)`)$", done.stdout, re.M), (
        done.stdout
    )
    again = fork_evo("eval", regression_run / "config.yaml", "simple.txt").stdout
    assert f"objective         {after:.6g}\n" in again
    assert fork_evo("simplify", regression_run, "--output", "simple.txt").stdout == done.stdout


def test_simplify_writes_a_front_into_a_folder(fork_evo, regression_run, tmp_path):
    done = fork_evo("simplify", regression_run, "--front", "--tolerance", "0", "--output", "front")
    assert (done.returncode, done.stderr) == (0, "")
    cells = [line[1:].split()[0] for line in fork_evo("show", regression_run, "--front").stdout.splitlines()[1:]]
    names = [f"{i:03d}_cell_{cell.replace(',', '_')}.txt" for i, cell in enumerate(cells, 1)]
    assert done.stdout.splitlines()[-len(names) :] == [f"front/{name}" for name in names]
    assert sorted(path.name for path in (tmp_path / "front").iterdir()) == names
    for line in re.findall(r"^objective .*$", done.stdout, re.M):
        before, after = map(float, line.split()[1:])
        assert after >= before
