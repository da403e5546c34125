"""evo.report.lineage, its pictures and the archive's film: they show the ancestors that a run recorded."""

import numpy as np
import pytest
from PIL import Image

from evo.config import load_config
from evo.errors import UserError
from evo.report.lineage import LinesOfDescent, describe_lineage
from evo.report.plot.archive_film import ArchiveFilm, _is_best_so_far
from evo.report.plot.pictures import GAP, LINE_LENGTH, LINE_TILE_SIZE
from evo.report.plots import draw_plots
from evo.run.run import Run
from evo.search.ancestry import NONE


@pytest.fixture(scope="module")
def finished(tmp_path_factory, plane_folder):
    """A run of the plane task to its end, looked at."""
    import yaml

    folder = tmp_path_factory.mktemp("lineage")
    config = {
        "task": str(plane_folder),
        "program": {"max_length": 24, "vocabulary": {"instructions": ["add_ftz_f32", "mul_ftz_f32"]}},
        "search": {"archive": {"dims": [12, 10]}, "batch_size": 48, "initial": {"num_programs": 64, "max_length": 20}},
        "stop": {"generations": 12},
        "output": {"runs": str(folder / "runs"), "plots": []},
    }
    (folder / "small.yaml").write_text(yaml.safe_dump(config))
    run = Run.start(load_config(folder / "small.yaml"), "small")
    run.execute(lambda *_: None, lambda _: False)
    run.close()
    return Run.view(run.run_dir.path)[0]


def test_the_table_leads_from_a_random_program_to_the_elite(finished):
    elites = finished.search.elites()
    lines = LinesOfDescent(finished)
    row = max(range(len(elites)), key=lambda row: len(lines.of(row)))
    cell = finished.search.layout.cell_name(int(elites.cell[row]))
    title, header, *rows = describe_lineage(finished, cell).splitlines()
    assert title == f"# lineage of cell {cell}: {len(rows)} programs, from a random program on"
    assert header.split()[:4] == ["generation", "slot", "cell", "objective"]
    assert len(rows) > 2
    assert rows[0].split()[4:7] == ["none", "(random", "program)"]
    assert rows[-1].split()[:4] == [
        str(elites.generation[row]),
        str(elites.slot[row]),
        cell,
        f"{elites.objective[row]:.6g}",
    ]
    generations = [int(text.split()[0]) for text in rows]
    assert generations == sorted(set(generations))


def test_an_ancestor_computes_what_it_did(finished):
    """Its objective comes out again when it is evaluated anew."""
    from evo.language.batch import Batch

    lines, problem = LinesOfDescent(finished), finished.search.problem
    line = lines.of(int(finished.search.elites().generation.argmax()))
    batch = Batch.analyze(problem.language.lowering, np.stack([each.words for each in line]))
    np.testing.assert_array_equal(problem.evaluator.evaluate(batch).objective, [each.objective for each in line])


def test_where_cells_share_a_place_the_film_shows_the_best_so_far():
    places, objective = np.array([3, 5, 3, 3, 5, 3]), np.array([0.5, -1.0, 0.4, 0.5, -0.5, 0.6])
    assert _is_best_so_far(places, objective).tolist() == [True, True, False, False, True, True]


def test_a_run_without_records_says_so(new_run):
    run = new_run([("1.0", 0.5, (0.0, 0.5))])
    assert "not known" in describe_lineage(run, None)
    assert run.search.record_numbers().tolist() == [NONE]
    [path] = draw_plots(run, ["lineage"])  # the elite alone
    with Image.open(path) as image:
        assert image.getpixel((image.width - GAP - 5, GAP + 5)) == (255, 0, 0)
    with pytest.raises(UserError, match="no elites are remembered"):
        ArchiveFilm(run, 320, 240)


def test_a_damaged_log_is_named_and_a_resumed_run_goes_on(finished, tmp_path):
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(finished.run_dir.path, copy)
    [log] = (copy / "lineage").iterdir()
    log.write_bytes(log.read_bytes()[:-3])
    run, _ = Run.view(copy)
    with pytest.raises(UserError, match=r"\.log: cannot read how the elites came about: cut short"):
        describe_lineage(run, None)
    resumed, notes = Run.resume(copy, ("stop.generations=15",))
    assert any("lines of descent begin anew" in note for note in notes)
    resumed.execute(lambda *_: None, lambda _: False)
    resumed.close()
    viewed = Run.view(copy)[0]
    elites, again = viewed.search.elites(), LinesOfDescent(viewed)
    born = elites.generation < 12  # before the log was lost
    lengths = np.array([len(again.of(row)) for row in range(len(elites))])
    assert (lengths[born] == 0).all() and (lengths[~born] > 0).all() and born.any()
    bred = [row for row in np.flatnonzero(~born) if elites.operator[row] >= 0]
    assert bred
    for row in bred:  # their parents are of before, or their parents' parents
        told = describe_lineage(viewed, viewed.search.layout.cell_name(int(elites.cell[row])))
        is_from_random = "(random program)" in told.splitlines()[2]
        assert ("from a random program on" in told) == is_from_random
        assert ("its beginning is forgotten" in told) != is_from_random
    frames = [*ArchiveFilm(viewed, 400, 400).frames(4)]
    assert num_tiles(frames[-1], viewed) == len(elites)  # also those of before


def num_tiles(frame, run):
    """How many cells of an archive's frame are not empty."""
    columns, rows = run.search.layout.grid_shape()
    tile = min((400 - GAP) // columns, (400 - 36 - GAP) // rows) - GAP
    left = (400 - columns * (tile + GAP) - GAP) // 2 + GAP + tile // 2
    top = (400 - 36 - rows * (tile + GAP) - GAP) // 2 + GAP + tile // 2
    middles = frame[top : top + rows * (tile + GAP) : tile + GAP, left : left + columns * (tile + GAP) : tile + GAP]
    assert middles.shape[:2] == (rows, columns)
    return int((middles != (24, 24, 28)).any(axis=2).sum())


def test_pictures_of_a_line_end_with_the_elite(finished):
    [path] = draw_plots(finished, ["lineage"])
    with Image.open(path) as image:
        sheet = np.asarray(image.convert("RGB"))
    elites, problem = finished.search.elites(), finished.search.problem
    drawn = problem.draw(elites.solution, LINE_TILE_SIZE, 0.0)
    left = GAP + (LINE_LENGTH - 1) * (LINE_TILE_SIZE + GAP)
    for number in range(9):
        top = GAP + number * (LINE_TILE_SIZE + GAP)
        last = sheet[top : top + LINE_TILE_SIZE, left : left + LINE_TILE_SIZE]
        assert (drawn == last).all(axis=(1, 2, 3)).any()


def test_the_archives_film_begins_with_the_first_elites_and_ends_with_all(finished):
    frames = list(ArchiveFilm(finished, 400, 400).frames(20))
    assert len(frames) == 20
    assert all(frame.shape == (400, 400, 3) for frame in frames)
    shown = [int((frame[:360] != (24, 24, 28)).any(axis=2).sum()) for frame in frames]
    assert 0 < shown[0] < shown[9] < shown[19]
    elites, problem, layout = finished.search.elites(), finished.search.problem, finished.search.layout
    columns, rows = layout.grid_shape()
    tile = min((400 - GAP) // columns, (400 - 36 - GAP) // rows) - GAP
    left = (400 - columns * (tile + GAP) - GAP) // 2 + GAP
    top = (400 - 36 - rows * (tile + GAP) - GAP) // 2 + GAP
    pictures = problem.draw(elites.solution, tile, 0.0)
    for picture, (column, row) in zip(pictures, layout.places(elites.cell).astype(int).tolist(), strict=True):
        x, y = left + column * (tile + GAP), top + (rows - 1 - row) * (tile + GAP)
        np.testing.assert_array_equal(frames[-1][y : y + tile, x : x + tile], picture)
    with pytest.raises(UserError, match="64x48: too small for 12 x 10 cells"):
        ArchiveFilm(finished, 64, 48)
