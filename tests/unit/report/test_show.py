"""evo.report.show and evo.report.elites: finds cells of every kind of archive by name, and reads programs from files."""

import csv
import io
import re

import numpy as np
import pytest
from click.testing import CliRunner

from evo.cli import main
from evo.errors import UserError
from evo.language.batch import Batch
from evo.language.program import parse_program
from evo.report.elites_csv import elites_csv
from evo.report.show import describe_elite, describe_program, read_program
from evo.run.run import Run


@pytest.fixture
def run(new_run):
    """Makes runs with one elite in each of the given places of the measure space."""

    def make(archive: dict, places: list[tuple[float, float]]) -> Run:
        count = len(places)
        return new_run(
            [("%x %x mul_ftz_f32 0.5 drop.f32", (row + 1) / 8, place) for row, place in enumerate(places)],
            {"search": {"archive": archive}},
            parents=np.array([[3, -1], [-1, -1], [1, 2]])[:count],
            operator=np.array([0, -1, 1])[:count],
            generation=np.arange(count) + 5,
            slot=np.arange(count) + 70,
            hash=np.array([[1, 2], [3, 4], [2**64 - 1, 0]], np.uint64)[:count],
            num_instructions=np.ones(count, int),
        )

    return make


GRID = {"dims": [6, 5]}
CVT = {"type": "CVTArchive", "dims": None, "centroids": 5}
PLACES = [(-0.9, 0.1), (0.9, 0.1), (0.9, 1.9)]


def test_without_a_cell_the_best_elite_is_described(run):
    text = describe_elite(run(GRID, PLACES), None)
    assert text.startswith("# program: 5 words, 1 live PTX instruction\n%x %x mul_ftz_f32 0.5 drop.f32\n")
    assert "cell       5,4\nborn       generation 7, slot 72\noperator   alternation\nparents    0,1, 0,2\n" in text
    assert f"hash       {0:016x}{2**64 - 1:016x}\n" in text
    assert "\n(alternation: words of two parents, read in turns)\n" in text
    assert "objective  0.375\n" in text


def test_cells_of_a_grid_are_named_by_indices_or_number(run):
    made = run(GRID, PLACES)
    assert "operator   umad\nparents    0,3\n" in describe_elite(made, "0,0")
    assert describe_elite(made, "0,0") == describe_elite(made, "0") == describe_elite(made, " 0 , 0 ")
    assert "operator   none (random program)\nparents    none\n" in describe_elite(made, "5,0")
    assert describe_elite(made, "25") == describe_elite(made, "5,0")


def test_the_nearest_elite_is_nearest_in_the_grid_and_not_by_number(run):
    made = run(GRID, [(-0.9, 1.9), (0.9, 0.1)])  # cells 0,4 (number 4) and 5,0 (number 25)
    with pytest.raises(UserError, match=r"this cell is empty; the nearest elite is in 5,0$"):
        describe_elite(made, "3,0")
    with pytest.raises(UserError, match=r"this cell is empty; the nearest elite is in 0,4$"):
        describe_elite(made, "2,4")


def test_cells_of_a_cvt_are_named_by_number(run):
    made = run(CVT, PLACES[:1])
    (cell,) = made.search.archive.index_of(np.array(PLACES[:1])).tolist()
    assert f"cell       {cell}\n" in describe_elite(made, str(cell))
    with pytest.raises(UserError, match=r"--cell 0,0: write a cell number"):
        describe_elite(made, "0,0")
    with pytest.raises(UserError, match=r"--cell 5: no such cell; the archive has 5 cells"):
        describe_elite(made, "5")
    with pytest.raises(UserError, match=rf"this cell is empty; the nearest elite is in {cell}$"):
        describe_elite(made, str((cell + 1) % 5))


def test_a_program_is_described_with_fresh_scores(run):
    problem = run(GRID, PLACES).search.problem
    words = parse_program(problem.language, "%t %x %y mul_ftz_f32 add_ftz_f32", "text", 24)
    text = describe_program(problem, words)
    assert "# origin" not in text
    assert "status: ok\nobjective  1\nmean       0.5  (range -1 to 1)\n" in text


def test_a_program_is_read_with_its_comments(run, tmp_path):
    problem = run(GRID, PLACES).search.problem
    (tmp_path / "é.txt").write_text("# größer\n%x # x\n", encoding="utf-8")
    assert read_program(problem, str(tmp_path / "é.txt")).tolist()[:2] == [3 | 1 << 32, 10]
    for given, reason in (
        ("none.txt", "the formula: there is no file or folder 'none.txt', and it is not a formula: "),
        (str(tmp_path), f"{tmp_path}: cannot read the program: Is a directory"),
        ("x*", "the formula:1: not a formula: "),
        ("", "the formula: no formula for the output 'v'"),
    ):
        with pytest.raises(UserError, match=re.escape(reason)):
            read_program(problem, given)


def test_a_formula_may_use_instructions_that_the_config_does_not_breed_with(run, tmp_path):
    problem = run(GRID, PLACES).search.problem
    assert "tanh_approx_f32" not in problem.config.program.vocabulary.instructions
    (tmp_path / "line.txt").write_text("v = tanh(x) + t\n", encoding="utf-8")
    by_hand = parse_program(problem.language, "%x tanh_approx_f32 %t add_ftz_f32", "text", 24)
    for given in ("tanh(x) + t", str(tmp_path / "line.txt")):
        found = Batch.analyze(problem.language.lowering, np.stack([read_program(problem, given), by_hand]))
        assert found.hashes[0].tolist() == found.hashes[1].tolist()


def test_a_program_that_score_rejects_is_said_to_be_and_where_it_is_not_finite(run):
    problem = run(GRID, PLACES).search.problem
    text = describe_program(problem, read_program(problem, "1/(x - x)"))
    assert "status: rejected by score" in text and "objective  " not in text
    count = len(problem.task.points()["x"])
    assert f"\nv is not finite at {count:,} of {count:,} points\n" in text


def test_elites_are_rows_of_csv_with_their_cells_in_a_grid(run):
    table = list(csv.DictReader(io.StringIO(elites_csv(run(GRID, PLACES)))))
    assert list(table[0]) == [
        *("cell_mean", "cell_deviation", "objective", "measure_mean", "measure_deviation", "num_instructions"),
        *("hash", "expression", "program"),
    ]
    assert [(row["cell_mean"], row["cell_deviation"]) for row in table] == [("0", "0"), ("5", "0"), ("5", "4")]
    assert [float(row["objective"]) for row in table] == [0.125, 0.25, 0.375]
    assert [(float(row["measure_mean"]), float(row["measure_deviation"])) for row in table] == PLACES
    assert {row["num_instructions"] for row in table} == {"1"}
    assert table[0]["hash"] == f"{2:016x}{1:016x}"
    assert table[0]["program"] == "%x %x mul_ftz_f32 0.5 drop.f32"
    assert table[0]["expression"] == "v = 0.5"  # `drop` finds no number of values to drop


def test_elites_of_other_archives_have_the_number_of_their_cell(run):
    made = run(CVT, PLACES)
    table = list(csv.DictReader(io.StringIO(elites_csv(made))))
    assert [int(row["cell"]) for row in table] == made.search.elites().cell.tolist()


def test_an_empty_archive_is_csv_without_rows(new_run):
    [line] = elites_csv(new_run([])).splitlines()
    assert line.startswith("cell_mean,cell_deviation,objective,")


def test_csv_goes_to_standard_output_or_whole_to_a_file(finish, tmp_path):
    made, _ = Run.view(finish([6, 5], 3))
    folder = str(made.run_dir.path)
    printed = CliRunner().invoke(main, ["show", folder, "--csv"])
    assert printed.exit_code == 0 and printed.stdout == elites_csv(made)
    path = tmp_path / "tables" / "elites.csv"
    written = CliRunner().invoke(main, ["show", folder, "--csv", str(path)])
    assert (written.exit_code, written.stdout) == (0, f"{path}\n")
    assert path.read_text() == printed.stdout and [each.name for each in path.parent.iterdir()] == ["elites.csv"]
    refused = CliRunner().invoke(main, ["show", folder, "--csv", str(tmp_path)])
    assert refused.exit_code == 2 and refused.stderr.startswith(f"evo: {tmp_path}: exists and is not a file")


@pytest.mark.parametrize(
    "options", [("--front", "--csv"), ("--failed", "--cell=1,1"), ("--failed", "--lineage"), ("--front", "--cell=0")]
)
def test_show_shows_one_thing(options):
    result = CliRunner().invoke(main, ["show", "RUN", *options])
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert all(option.partition("=")[0] in result.stderr for option in options) and result.stderr.endswith(": give one of them\n")
