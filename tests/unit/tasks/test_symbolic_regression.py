"""tasks/symbolic_regression: the sets, what tables are refused, scale-free scores, the guard against poles, the test error."""

import gzip
import sys
from pathlib import Path

import numpy as np
import pytest

from evo.config import load_config
from evo.errors import UserError
from evo.evaluate import Status
from evo.evaluate.cpu import CpuEvaluator
from evo.instructions import shipped_instruction_set
from evo.language.batch import Batch
from evo.language.program import Language, parse_program
from evo.report.show import read_program
from evo.run.loaded_task import load_problem
from evo.run.search import Search
from evo.shipped import shipped
from evo.tasks.folder import declared_files, load_task

FOLDER = Path(__file__).parents[3] / "tasks" / "symbolic_regression"


def task_of(**options):
    return load_task(FOLDER, options)


def refusal(**options) -> str:
    with pytest.raises(UserError) as caught:
        task_of(**options)
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


def evaluate(task, *texts: str):
    language = Language(shipped_instruction_set("default"), tuple(task.inputs.items()), tuple(task.outputs.items()))
    batch = Batch.analyze(language.lowering, np.stack([parse_program(language, text, "test", 32) for text in texts]))
    evaluator = CpuEvaluator(language, task, 1)
    outputs = evaluator.outputs(batch.words, task.report_points())
    with np.errstate(all="ignore"):
        return evaluator.evaluate(batch), {name: values.tolist() for name, values in task.report(outputs).items()}


# The sets


# Training points, test points, and the target at one point, worked out by hand or from a table.
SETS = {
    "Koza-1": (20, 1000, {"x": 0.5}, 0.9375),
    "Koza-3": (20, 1000, {"x": 0.5}, 0.140625),
    "Nguyen-5": (20, 1000, {"x": 1.0}, -0.5453513),
    "Nguyen-7": (20, 1000, {"x": 1.0}, 1.3862944),
    "Nguyen-10": (100, 1000, {"x": 1.0, "y": 0.0}, 1.6829420),
    "Keijzer-4": (201, 201, {"x": 1.0}, -0.1032682),
    "Keijzer-6": (50, 120, {"x": 4.0}, 2.0833333),
    "Keijzer-12": (20, 601 * 601, {"x": 2.0, "y": 4.0}, 12.0),
    "Korns-12": (10_000, 10_000, {"x": 0.0, "y": 9.0, "z": 9.0, "v": 9.0, "w": 1.0}, -0.0234721),
    "Pagie-1": (676, 1000, {"x": 1.0, "y": 2.0}, 0.5 + 16 / 17),
    "Vladislavleva-4": (1024, 5000, {f"x{i}": 4.0 for i in range(1, 6)}, 1.0),
    "Poly-10": (250, 250, {f"x{i}": float(i) for i in range(1, 11)}, 2 + 12 + 30 + 63 + 180),
}


@pytest.mark.parametrize("name", SETS)
def test_a_set_has_the_points_and_the_values_of_its_source(name):
    datasets = sys.modules[type(task_of()).__module__.replace(".task", ".datasets")]
    assert set(datasets.DATASETS) == set(SETS)
    num_train, num_test, point, value = SETS[name]
    found = datasets.sample(name, 3)
    assert (len(found.train_target), len(found.test_target)) == (num_train, num_test)
    assert list(found.train) == list(found.test) == list(point)
    at = datasets.DATASETS[name][0](**{key: np.array([number]) for key, number in point.items()})
    assert at[0] == pytest.approx(value, abs=1e-6)
    assert np.isfinite(found.train_target).all() and np.isfinite(found.test_target).all()


# Tables


def write(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


GOOD = "speed (m/s),2019,y\n" + "".join(f"{i},{i * i % 7},{3 * i + 1}\n" for i in range(20))


def test_columns_become_inputs_and_rows_are_split_by_seed(tmp_path):
    data = write(tmp_path / "t.csv", GOOD)
    task, other = task_of(data=data, target="y"), task_of(data=data, target="y", split_seed=2)
    assert list(task.inputs) == ["speed_m_s", "x2019"]
    train = task.points()["speed_m_s"].tolist()
    assert len(train) == 15 and train == sorted(train)
    assert sorted(task.report_points()["speed_m_s"][:20].tolist()) == list(range(20))
    assert other.points()["speed_m_s"].tolist() != train
    assert declared_files(task, FOLDER) == [tmp_path / "t.csv"]
    assert list(task_of(data=data, target="y", drop=["2019", "y"]).inputs) == ["speed_m_s"]
    _, facts = evaluate(task, "%speed_m_s")
    assert (facts["scale"], facts["offset"]) == (pytest.approx([3.0]), pytest.approx([1.0]))
    assert facts["test_nmse"][0] < 1e-12


ROWS = "".join(f"{i},{i % 3}\n" for i in range(12))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ": the file is empty"),
        ("a,y\n1,2\n3,4\n", ": 2 rows of data, needs at least 10"),
        ("y\n" + "1\n2\n" * 6, ": no column but the target 'y' is left; at least one must be an input"),
        ("a,y\n,3\n" + ROWS, ":2: column 'a': the value is missing; fill it in or delete the row, or leave the column out"),
        ("a,y\n" + ROWS + "7,NaN\n", ":14: column 'y': the value is missing; fill it in or delete the row"),
        ("a,y\n" + ROWS + ",\n7,1\n", ":14: column 'a': the value is missing; fill it in or delete the row"),
        ("a,y\n1,2\nlow,3\n" + ROWS, ":3: column 'a': 'low' is not a number; write it as one, or leave the column out with"),
        ("a,y\n" + ROWS + "inf,1\n", ":14: column 'a': inf is beyond 1e150; correct it or delete the row, or leave"),
        ("a,y\n1,2\n1,2,3\n", ":3: 3 cells, but line 1 has 2 names; with decimal commas, columns are separated by semicolons"),
        ("a,y\n" + "1,5,2,5\n" * 12, ":2: 4 cells, but line 1 has 2 names; with decimal commas, columns are separated by"),
        ("a,y\n" + ROWS + '"1,2\n3,4\n', ":14: quotes do not match: unexpected end of data"),
        ("1.5,2\n" + ROWS, ":1: has numbers where the names of the columns belong; write the names above them"),
        ("1,5;2,5\n3,5;4,5\n", ":1: has numbers where the names of the columns belong; write the names above them"),
        (
            "x, m;y, s\n" + "1,5;2,5\n" * 12,
            ": columns may be separated by comma or by semicolon; say which by task_options.separator=",
        ),
        (
            'a,y\n"1,234",2\n' + ROWS,
            ":2: column 'a': '1,234' may be 1.234 or 1234, and no other cell tells which; write it plainly",
        ),
        ("a;y\n1.234;2\n" + ROWS.replace(",", ";"), ":2: column 'a': '1.234' may be 1.234 or 1234, and no other cell tells"),
        ("a;y\n1,5;2.5\n" + ROWS.replace(",", ";"), ":2: column 'a': '1,5' has a decimal comma, but '2.5' ("),
        ("# a comment\n\n# another\n", ": the file has comments alone"),
        ("PK\3\4", ": is a spreadsheet; save the table as CSV"),
        ("a\0,y\n", ": has NUL characters, so it is not a text file; save the table as CSV in UTF-8"),
        ("a,y\n" + "5,1\n5,2\n" * 6, ": no column but the target 'y' is left; at least one must be an input; column 'a' is 5 in"),
        ("a,y\n" + "1,yes\n2,no\n" * 6, ":2: column 'y': 'yes' is not a number; write it as one"),
        ("a,y\n" + "1,7\n2,7\n" * 6, ": column 'y' is 7 in every row, so there is nothing to find"),
        ("a,a,y\n", ":1: two columns are named 'a'"),
    ],
)
def test_a_table_that_cannot_be_used_is_one_line_with_its_place(tmp_path, text, message):
    data = write(tmp_path / "t.csv", text)
    assert refusal(data=data, target="y").startswith(data + message)


A, Y = [1234.5 + i for i in range(12)], [float(i * i) for i in range(12)]


def table(separator: str, number, before: str = "") -> str:
    """A and Y as a table, each number written by a function."""
    rows = "".join(f"{number(a)}{separator}{number(y)}\n" for a, y in zip(A, Y, strict=True))
    return f"{before}a{separator}y\n{rows}"


@pytest.mark.parametrize(
    ("data", "options"),
    [
        (table(";", lambda x: f"{x}".replace(".", ",")), {}),
        (table("\t", lambda x: f" {x} "), {}),
        (table("|", lambda x: f"{x:+.6e}"), {}),
        (table("  ", str), {}),
        (table(";", lambda x: f"{x:,}".translate(str.maketrans(",.", ".,"))), {}),
        (table(", ", lambda x: f'"{x:,}"'), {}),
        (table(",", lambda x: f'"{x:,}"'.translate(str.maketrans(",.", ".,"))), {}),
        (table("\t", lambda x: f"{x:,}".replace(",", "\u202f").replace(".", ",")), {}),
        (table(";", lambda x: f"{x:,}".replace(",", "'")), {}),
        (table(";", str, "sep=;\n"), {}),
        (table(",", str, "# made by a, b\n\n").replace("\n1236", "\n\n# a pause\n1236") + ",\n,\n", {}),
        ("# a y\n" + table(" ", str).partition("\n")[2], {}),
        (table(";", str).replace("\n", ";\n"), {}),
        (table(",", str).encode("utf-16"), {}),
        (table(";", str).encode("utf-8-sig"), {}),
        (gzip.compress(table(",", str).encode(), mtime=0), {}),
        (table(";", lambda x: f"{x:.3f}"), {"decimal": "point"}),
        (
            table(";", lambda x: f"{x}".replace(".", ",")).replace("a;y", "a, m;y, s"),
            {"separator": "semicolon", "target": "y, s"},
        ),
    ],
)
def test_a_table_is_read_as_it_was_written(tmp_path, data, options):
    (tmp_path / "t.csv").write_bytes(data if isinstance(data, bytes) else data.encode())
    task = task_of(**{"data": str(tmp_path / "t.csv"), "target": "y", "test_share": 0.0, **options})
    [values], target = task.points().values(), task.targets()["f"]
    assert values.tolist() == A
    np.testing.assert_allclose((target - target[0]) / (target[-1] - target[0]), np.array(Y) / Y[-1], atol=1e-12)
    assert not any("left out" in note for note in task.notes)


def test_what_can_be_no_input_is_left_out_with_a_note_and_refused_if_it_is_asked_for(tmp_path):
    rows = [[i, f"n{i}", i % 2 == 0, 7, "", i * i, "x"] for i in range(12)]
    text = "\n".join(",".join(map(str, row)) for row in [["", "Gr\u00f6\u00dfe", "flag", "k", "none", "y", "Unnamed: 6"], *rows])
    (tmp_path / "t.csv").write_bytes(text.encode("latin-1"))
    path = str(tmp_path / "t.csv")
    task = task_of(data=path, target="y", test_share=0.0)
    assert {name: values.tolist() for name, values in task.points().items()} == {"flag": [1.0, 0.0] * 6}
    assert list(task.notes) == [
        f"{path}:1: is not UTF-8, so it is read as Windows-1252; check this line: ,Gr\u00f6\u00dfe,flag,k,none,y,Unnamed: 6",
        f"{path}: left out column 1, which has no name",
        f"{path}: left out column 'Gr\u00f6\u00dfe', which is text, such as 'n0'",
        f"{path}: left out column 'none', which has no values",
        f"{path}: left out column 'Unnamed: 6', which has no name",
        f"{path}: left out column 'k', which is 7 in every row",
    ]
    assert task_of(data=path, target="flag", drop=["Gr\u00f6\u00dfe", "none", "k", "Unnamed: 6"]).notes == task.notes[:2]
    message = "task_options.ranges: 'k' is not an input, because the column is 7 in every row; the inputs are: flag"
    assert refusal(data=path, target="y", ranges={"k": [0, 9]}) == message
    assert refusal(data=path, target="k").startswith(f"{path}: column 'k' is 7 in every row, so there is nothing to find")
    with pytest.raises(UserError, match="column 'flag': 'maybe' is neither True nor False"):
        task.read_points(Path(write(tmp_path / "new.csv", "flag\nTrue\nmaybe\n")), ["flag"])


def test_new_rows_may_be_written_in_another_way_than_the_table_and_are_read_alike_where_nothing_tells(tmp_path):
    task = task_of(data=write(tmp_path / "t.csv", table(";", lambda x: f"{x}".replace(".", ","))), target="y")
    for text, expected in (("b,a\n1,2.5\n", 2.5), ("a (m)\ta\n2\t1,234\n", 1.234), ("a\n5\n", 5.0), ('a\n"1.234"\n', 1234.0)):
        assert task.read_points(Path(write(tmp_path / "new.csv", text)), ["a"])["a"].tolist() == [expected]
    task = task_of(data=write(tmp_path / "t.csv", "a;y\n" + ROWS.replace(",", ";")), target="y")
    unclear = Path(write(tmp_path / "new.csv", 'a\n"1,234"\n'))
    with pytest.raises(UserError, match=r"'1,234' may be 1\.234 or 1234"):
        task.read_points(unclear, ["a"])


def test_columns_are_known_by_the_files_names_and_inputs_by_names_that_ptx_does_not_use(tmp_path):
    task = task_of(data=write(tmp_path / "t.csv", GOOD.replace("2019", "r1")), target="y", ranges={"speed (m/s)": [-40.0, 40.0]})
    assert list(task.inputs) == ["speed_m_s", "r1_in"]
    assert task.check_points()["speed_m_s"].min() == -40.0


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        ([0, 1], "must be like {x: [0, 10]}, got [0, 1]"),
        ({"z": [0, 1]}, "'z' is not an input; the inputs are: speed (m/s), 2019"),
        ({"x2019": [0.0, 1.0]}, "x2019 must be [low, high] around its data, 0 to "),
    ],
)
def test_ranges_that_make_no_sense_are_one_line(tmp_path, ranges, message):
    data = write(tmp_path / "t.csv", GOOD)
    assert refusal(data=data, target="y", ranges=ranges).startswith(f"task_options.ranges: {message}")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dataset": "Koza-2"}, "task_options.dataset: no set 'Koza-2', one of: Koza-1, "),
        ({"target": "y"}, "task_options.target needs task_options.data"),
        ({"data": "none.csv"}, "task_options.data needs task_options.target"),
        ({"data": "/none/t.csv", "target": "y"}, "/none/t.csv: cannot read the data: No such file or directory"),
        ({"data": "/dev/zero", "target": "y"}, "/dev/zero: cannot read the data: not a regular file"),
        ({"data": "t.csv", "target": "y", "drop": "a"}, "task_options.drop: must be a list of columns, such as [id, date]"),
        ({"separator": "tab"}, "task_options.separator needs task_options.data"),
        ({"data": "t.csv", "target": "y", "separator": ";"}, "task_options.separator: must be one of comma, semicolon, tab, "),
        (
            {"data": "t.csv", "target": "y", "decimal": ["point"]},
            "task_options.decimal: must be one of point, comma; got ['point']",
        ),
        ({"data": "t.csv", "target": "y", "test_share": 0.6}, "task_options.test_share: must be between 0 and 0.5, got 0.6"),
        ({"split_seed": True}, "task_options.split_seed: must be an integer from 0 on, got True"),
        ({"max_spread": float("inf")}, "task_options.max_spread: must be a number from 0 on, got inf"),
    ],
)
def test_an_option_that_makes_no_sense_is_one_line(options, message):
    assert refusal(**options).startswith(message)


# Scores


def test_a_copy_that_is_scaled_and_shifted_has_the_score_and_the_cell_of_the_original():
    task = task_of(dataset="Koza-1")
    text = "%x %x mul_ftz_f32 %x add_ftz_f32"
    found, facts = evaluate(task, text, f"{text} -37.0 mul_ftz_f32", f"{text} 5.0 add_ftz_f32 0.01 mul_ftz_f32")
    assert found.status.tolist() == [Status.OK] * 3
    np.testing.assert_allclose(found.objective, found.objective[0], rtol=1e-4)
    np.testing.assert_allclose(found.measures[:, 1], found.measures[0, 1], rtol=1e-3)
    # Scale and offset are rounded within their standard errors: 3.5 % of the scale.
    np.testing.assert_allclose(facts["test_nmse"], facts["test_nmse"][0], rtol=0.05)
    assert facts["scale"][0] / facts["scale"][1] == pytest.approx(-37.0, rel=0.05)


def test_the_objective_is_minus_log10_of_the_nmse_of_the_best_linear_function():
    task = task_of(dataset="Keijzer-12")
    x, y = (task.points()[name].astype(float) for name in ("x", "y"))
    t = x**4 - x**3 + y**2 / 2 - y
    design = np.column_stack([np.ones(20), x])
    residual = t - design @ np.linalg.lstsq(design, t, rcond=None)[0]
    found, facts = evaluate(task, "%x")
    assert found.objective[0] == pytest.approx(-np.log10((residual**2).mean() / t.var()), rel=1e-5)
    assert facts["test_nmse"][0] > 0.1


def test_an_exact_formula_has_all_digits_and_no_test_error():
    square = "%x %x mul_ftz_f32"
    exact = f"{square} {square} mul_ftz_f32 {square} %x mul_ftz_f32 add_ftz_f32 {square} add_ftz_f32 %x add_ftz_f32"
    found, facts = evaluate(task_of(dataset="Koza-1"), exact, "3.0", "%x 1e9 add_ftz_f32")
    assert found.objective[0] > 11 and facts["test_nmse"][0] < 1e-11
    assert found.status.tolist() == [Status.OK, Status.REJECTED, Status.REJECTED]  # constants have no score


def test_a_pole_between_the_training_points_is_rejected():
    """All 20 points are fitted well; the pole lies in the middle of the widest gap between them."""
    task = task_of(dataset="Koza-1")
    x = np.sort(task.points()["x"].astype(float))
    gap = int(np.argmax(np.diff(x)))
    pole = (x[gap] + x[gap + 1]) / 2
    quartic = "%x 1 add_ftz_f32 %x mul_ftz_f32 1 add_ftz_f32 %x mul_ftz_f32 1 add_ftz_f32 %x mul_ftz_f32"
    text = f"{quartic} %x {-pole:.6f} add_ftz_f32 rcp_approx_ftz_f32 0.1 mul_ftz_f32 add_ftz_f32"
    found, _ = evaluate(task, text, quartic)
    assert found.status.tolist() == [Status.REJECTED, Status.OK]
    loose, _ = evaluate(task_of(dataset="Koza-1", max_spread=0.0), text)
    assert loose.status.tolist() == [Status.OK]  # finite at all check points: the pole is only near them


@pytest.mark.parametrize("max_spread", [0.0, 3.0])
def test_a_program_without_a_value_at_a_check_point_is_rejected(max_spread):
    """x1 is at least 0.05 at the training points, and predictions are asked for from -0.25 on."""
    task = task_of(dataset="Vladislavleva-4", max_spread=max_spread)
    assert task.points()["x1"].min() > 0.05
    found, _ = evaluate(task, "%x1 lg2_approx_ftz_f32", "%x1 0.5 add_ftz_f32 lg2_approx_ftz_f32")
    assert found.status.tolist() == [Status.REJECTED, Status.OK]


def test_check_points_lie_between_rows_unless_a_range_is_given(tmp_path):
    data = write(tmp_path / "t.csv", "a,b,y\n" + "".join(f"{i},{i * i},{i * i * i}\n" for i in range(1, 31)))
    points = task_of(data=data, target="y", test_share=0.0).check_points()
    a, b = points["a"].astype(float), points["b"].astype(float)
    assert a.min() >= 1 and a.max() <= 30 and len(np.unique(a)) > 100
    assert (np.abs(b - a * a) <= 4.0).all()  # chords between near rows of a parabola: the corners of the box stay empty
    given = task_of(data=data, target="y", ranges={"a": [-100, 300.0]}).check_points()
    assert (given["a"].min(), given["a"].max()) == (-100, 300)


# Laws that a guard which looks at the corners of the box refuses: Coulomb's, and a population along its trajectory.
LAWS = {
    "coulomb": (
        lambda rng: rng.uniform(1.0, 5.0, (4, 300)),
        lambda q, p, e, r: q * p / (12.566371 * e * r * r),
        "%a %b mul_ftz_f32 %c 12.566371 mul_ftz_f32 %d mul_ftz_f32 %d mul_ftz_f32 rcp_approx_ftz_f32 mul_ftz_f32",
    ),
    "logistic": (
        lambda rng: np.stack([(t := np.linspace(0.0, 6.0, 100)), 5.0 / (1.0 + 50.0 * np.exp(-2.0 * t))]),
        lambda t, x: 2.0 * x - 0.4 * x * x,
        "%b -0.4 mul_ftz_f32 2 add_ftz_f32 %b mul_ftz_f32",
    ),
}


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("seed", range(2))
def test_laws_are_accepted(name, seed, tmp_path):
    draw, law, text = LAWS[name]
    columns = draw(np.random.default_rng(seed))
    rows = np.column_stack([*columns, law(*columns)])
    header = ",".join([*"abcd"[: len(columns)], "y"])
    data = write(tmp_path / "law.csv", "\n".join([header, *(",".join(f"{v:.9g}" for v in row) for row in rows)]) + "\n")
    found, _ = evaluate(task_of(data=data, target="y", test_share=0.0), text)
    assert found.status.tolist() == [Status.OK] and found.objective[0] > 10


@pytest.mark.slow
def test_the_shipped_run_finds_the_law_of_its_set():
    stop = ("stop={evaluations: 600000, objective: 12}", "evaluation.backend=cpu", "evaluation.executor=threads")
    problem = load_problem(load_config(shipped("configs")["symbolic_regression"], stop))
    by_hand = read_program(problem, "x1*x2 + x3*x4 + x5*x6 + x1*x7*x9 + x3*x6*x10")
    [size] = Batch.analyze(problem.language.lowering, by_hand[None]).num_instructions
    search = Search(problem)
    for _ in search.generations():
        pass
    search.tidy()
    elites = search.elites()
    problem.close()
    assert elites.objective[elites.num_instructions <= size].max() > 11
