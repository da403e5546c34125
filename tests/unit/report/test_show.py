"""evo.report.show: finds cells of every kind of archive by name, and reads programs from files."""

import numpy as np
import pytest

from evo.config import load_config
from evo.errors import UserError
from evo.language.program import parse_program
from evo.report.show import describe_elite, describe_program, read_program
from evo.run.run import Run


@pytest.fixture
def run(small_config):
    """Makes runs with one elite in each of the given places of the measure space."""
    runs = []

    def make(archive: dict, measures: list[tuple[float, float]]) -> Run:
        made = Run.start(load_config(small_config({"search": {"archive": archive}})), "small")
        runs.append(made)
        words = parse_program(made.search.problem.language, "%x %x mul_ftz_f32 0.5 drop.f32", "text", 24)
        count = len(measures)
        made.search.archive.add(
            np.stack([words] * count),
            np.arange(1.0, count + 1) / 8,
            np.array(measures),
            parents=np.array([[3, -1], [-1, -1], [1, 2]])[:count],
            operator=np.array([0, -1, 1])[:count],
            generation=np.arange(count) + 5,
            slot=np.arange(count) + 70,
            hash=np.array([[1, 2], [3, 4], [2**64 - 1, 0]], np.uint64)[:count],
            num_instructions=np.ones(count, int),
        )
        return made

    yield make
    for each in runs:
        each.close()


GRID = {"dims": [6, 5]}
CVT = {"type": "CVTArchive", "dims": None, "centroids": 5}
PLACES = [(-0.9, 0.1), (0.9, 0.1), (0.9, 1.9)]


def test_without_a_cell_the_best_elite_is_described(run):
    text = describe_elite(run(GRID, PLACES), None)
    assert text.startswith("# program: 5 words, 1 live PTX instructions\n%x %x mul_ftz_f32 0.5 drop.f32\n")
    assert "cell       5,4\nborn       generation 7, slot 72\noperator   alternation\nparents    0,1, 0,2\n" in text
    assert f"hash       {0:016x}{2**64 - 1:016x}\n" in text
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
    assert read_program(problem, tmp_path / "é.txt").tolist()[:2] == [3 | 1 << 32, 10]
    with pytest.raises(UserError, match="cannot read the program: No such file"):
        read_program(problem, tmp_path / "none.txt")
