"""evo.report.plot.pictures: each picture shows the right program at the right place and time."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from evo.errors import UserError
from evo.report.plot import pictures
from evo.report.plot.pictures import BEST_SIZE, GALLERY_TILE_SIZE, GAP, TILE_SIZE
from evo.report.plots import draw_plots, why_not_drawn

from .conftest import BLUE, COLORS, GREEN, RED

BACKGROUND = (24, 24, 28)  # of empty cells
# The plane task: measure 0 from -1 to 1 in 6 columns, measure 1 from 0 to 2 in 5 rows.
AT = {RED: (0, 0), GREEN: (0, 4), BLUE: (5, 1)}


@pytest.fixture
def drawn(monkeypatch):
    """The figures that are saved, to look at their content."""
    figures = []
    savefig = Figure.savefig

    def keep(figure: Figure, *args, **kwargs) -> None:
        figures.append(figure)
        savefig(figure, *args, **kwargs)

    monkeypatch.setattr(Figure, "savefig", keep)
    return figures


def pixels_of(path) -> np.ndarray:
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB")).astype(int)


def measures_at(i: int, j: int) -> tuple[float, float]:
    return -1 + (i + 0.5) * 2 / 6, (j + 0.5) * 2 / 5


def where(pixels: np.ndarray, color: tuple[int, int, int]) -> np.ndarray:
    """(row, column) of all pixels of about this colour."""
    return np.argwhere(abs(pixels - np.array(color)).max(axis=2) < 12)


def tile(pixels: np.ndarray, row: int, column: int, size: int) -> np.ndarray:
    top, left = GAP + row * (size + GAP), GAP + column * (size + GAP)
    return pixels[top : top + size, left : left + size]


def test_the_contact_sheet_has_each_elites_picture_in_its_cell(new_run):
    run = new_run([(text, 0.5, measures_at(*cell)) for text, cell in AT.items()])
    pixels = pixels_of(pictures.contact_sheet(run))
    sheet = np.zeros(pixels.shape[:2], bool)
    for color in [*COLORS.values(), BACKGROUND]:
        sheet[tuple(where(pixels, color).T)] = True
    (top, bottom), (left, right) = (np.flatnonzero(sheet.mean(axis=axis) > 0.5)[[0, -1]] for axis in (1, 0))
    for text, (i, j) in AT.items():
        found = where(pixels, COLORS[text])
        column = (found[:, 1] - left) / (right - left + 1) * 6
        row = (bottom - found[:, 0]) / (bottom - top + 1) * 5  # the second measure grows upwards
        assert i < column.min() < column.max() < i + 1
        assert j < row.min() < row.max() < j + 1
        assert len(found) > 0.8 * (right - left) / 6 * (bottom - top) / 5, "it fills its cell"


def test_a_large_grid_has_a_sheet_of_bounded_size_that_says_what_it_leaves_out(new_run, drawn, monkeypatch):
    monkeypatch.setattr(pictures, "_SHEET_BATCH", 1)
    monkeypatch.setattr(pictures, "MAX_SHEET_SIDE", 600)

    def at(i, j):
        return -1 + (i + 0.5) * 2 / 44, (j + 0.5) * 2 / 20

    # Red and the better green share a place; both blues have their own.
    elites = [(RED, 0.1, at(20, 10)), (GREEN, 0.2, at(21, 11)), (BLUE, 0.1, at(43, 0)), (BLUE, 0.1, at(42, 0))]
    pixels = pixels_of(pictures.contact_sheet(new_run(elites, {"search": {"archive": {"dims": [44, 20]}}})))
    assert max(pixels.shape) < 600 + 200
    title = drawn[0].axes[0].get_title(loc="left")
    assert title.startswith("4 elites")
    assert "2 of them shown: the best of each 2 x 2 cells" in title
    assert "pictures reduced to 25 x 25 pixels" in title
    assert not len(where(pixels, COLORS[RED]))
    bottom = np.flatnonzero((pixels == BACKGROUND).all(axis=2).mean(axis=1) > 0.5).max()
    left = np.flatnonzero((pixels == BACKGROUND).all(axis=2).mean(axis=0) > 0.5).min()
    for text, i, j in ((GREEN, 10, 5), (BLUE, 21, 0)):
        found = where(pixels, COLORS[text])
        assert len(found) == 25 * 25
        assert ((found[:, 1] - left - GAP) // 27 == i).all()
        assert ((bottom - found[:, 0] - GAP) // 27 == j).all()


def test_the_best_elite_is_drawn_large(new_run):
    run = new_run([(RED, 0.1, measures_at(0, 0)), (BLUE, 0.9, measures_at(1, 1)), (GREEN, 0.5, measures_at(2, 2))])
    pixels = pixels_of(pictures.best(run))
    assert pixels.shape == (BEST_SIZE, BEST_SIZE, 3)
    assert (pixels == COLORS[BLUE]).all()


def frames_of(path) -> list[np.ndarray]:
    frames = []
    with Image.open(path) as image:
        assert image.info["loop"] == 0
        for number in range(image.n_frames):
            image.seek(number)
            frames.append(np.asarray(image.convert("RGB")).astype(int))
    return frames


def test_the_animation_shows_elites_over_time(new_run):
    # t grows from 0 to 1. About zero the picture is blue, later red.
    run = new_run([("%t", 0.9, measures_at(0, 0)), (GREEN, 0.5, measures_at(5, 4))])
    frames = frames_of(pictures.animation(run))
    assert frames[0].shape == (TILE_SIZE + 2 * GAP, 3 * (TILE_SIZE + GAP) + GAP, 3)
    assert len(frames) >= 2
    assert abs(tile(frames[0], 0, 0, TILE_SIZE) - COLORS[BLUE]).max() < 16
    assert abs(tile(frames[-1], 0, 0, TILE_SIZE) - COLORS[RED]).max() < 16
    for frame in frames:
        assert abs(tile(frame, 0, 1, TILE_SIZE) - COLORS[GREEN]).max() < 16


def test_a_poster_has_equally_many_elites_behind_each_column_and_a_caption_below(new_run, monkeypatch):
    monkeypatch.setattr(pictures, "POSTER_SIZE", (350, 500))
    monkeypatch.setattr(pictures, "POSTER_MARGIN", 25)
    monkeypatch.setattr(pictures, "POSTER_GAP", 3)
    near = [(RED, 0.9, measures_at(0, 0)), (GREEN, 0.1, measures_at(1, 4)), (BLUE, 0.5, measures_at(2, 2))]
    path = pictures.poster(new_run([*near, (RED, 0.2, measures_at(1, 0))]))  # the columns of 2, 1 and 1 elites, by rank
    with Image.open(path) as image:
        assert image.info["dpi"] == pytest.approx((300, 300), abs=0.01)
    pixels = pixels_of(path)
    assert pixels.shape == (500, 350, 3)
    side, step = 98, 101
    colors = [[pixels[25 + step * row + side // 2, 25 + step * column + side // 2] for column in range(3)] for row in range(4)]
    white = (255, 255, 255)
    expected = [[white, white, white], [COLORS[RED], white, white], [white, white, white]]
    expected.append([COLORS[RED], COLORS[GREEN], COLORS[BLUE]])
    np.testing.assert_array_equal(colors, expected)
    assert (pixels[25 + 4 * step :] < 255).any()


def test_the_gallery_shows_the_first_random_programs_of_the_seed(new_run):
    run = new_run([])
    frames = frames_of(pictures.gallery(run))
    side = 8 * (GALLERY_TILE_SIZE + GAP) + GAP
    assert frames[0].shape == (side, side, 3)
    words = run.search.emitter.random_programs(64)
    expected = pictures.render(run.search.problem, words, GALLERY_TILE_SIZE, 0.0).astype(int)
    for number, picture in enumerate(expected):
        shown = tile(frames[0], *divmod(number, 8), GALLERY_TILE_SIZE)
        assert abs(shown.mean(axis=(0, 1)) - picture.mean(axis=(0, 1))).max() < 12


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "(rgb * 255).astype(np.uint8)",
            "rgb * 255",
            r"picture\(\) raised TypeError: must return \(1, 16, 16, 3\) uint8, got .* int64",
        ),
        ("v > 0.1", "w > 0.1", r"picture\(\) raised NameError: name 'w' is not defined"),
        ('"x": x.ravel()', '"z": x.ravel()', r"picture_points\(\): must return a dict of exactly t, x, y; got t, z, y"),
    ],
)
def test_a_picture_that_fails_is_a_user_error_with_its_place(new_run, make_task, plane_folder, old, new, message):
    source = (plane_folder / "task.py").read_text()
    assert old in source
    # Scoring keeps its correct points: only the pictures are wrong.
    source = (
        source.replace(old, f"({new}) if size != SIDE else ({old})")
        if ":" not in old
        else source.replace('"x": x.ravel()', '("x" if size == SIDE else "z"): x.ravel()')
    )
    run = new_run([], {"task": str(make_task(source))})
    with pytest.raises(UserError, match=message) as caught:
        pictures.render(run.search.problem, np.zeros((1, 24), np.uint64), 16, 0.0)
    assert "a_task/task.py" in str(caught.value)


def test_plots_without_their_pictures_or_elites_are_left_out(new_run, make_task, plane_folder):
    everything = ["heatmap", "contact_sheet", "curves", "best", "animation", "gallery"]
    empty = new_run([])
    assert [path.name for path in draw_plots(empty, everything)] == ["curves.png", "gallery.gif"]
    source = (plane_folder / "task.py").read_text().replace("def picture(", "def no_picture(")
    plain = new_run([(RED, 0.5, (0.0, 1.0))], {"task": str(make_task(source))})
    assert [path.name for path in draw_plots(plain, everything)] == ["heatmap.png", "curves.png"]
    assert why_not_drawn(empty, "best") == "the archive is empty"
    assert why_not_drawn(plain, "best").startswith("the task draws no pictures")
    assert why_not_drawn(plain, "heatmap") is None


def test_plots_that_cannot_be_written_are_a_user_error(new_run):
    run = new_run([(RED, 0.5, (0.0, 1.0))])
    (run.run_dir.path / "plots").write_text("in the way")
    with pytest.raises(UserError, match=r"/plots: cannot write"):
        list(draw_plots(run, ["best"]))
