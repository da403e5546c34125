"""Pictures of programs: contact sheet, best elite, animations.

Owns layout and file formats. Knows nothing of how a task draws its pictures.
"""

import io
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from evo.errors import plural
from evo.report.pareto import default_row
from evo.report.plot.charts import PLAIN_TEXT, label_axis, written
from evo.report.plot.palette import Palette
from evo.report.plot.variety import features, most_varied
from evo.run.loaded_task import Problem
from evo.run.run import Run
from evo.search.archives.elites import Elites

# Sides of pictures and the gaps between them, in pixels.
THUMBNAIL_SIZE = 56  # in the contact sheet, if there is room
SMALLEST_THUMBNAIL_SIZE = 12
MAX_SHEET_SIDE = 4096  # of the contact sheet's pictures together
NUM_CANDIDATES = 12  # elites that one place of the contact sheet may show
LOOK_SIZE = 32  # of the pictures by which they are compared
BEST_SIZE = 768
SINGLE_SIZE = 384  # in the animation of one program
TILE_SIZE = 176  # in the animation of elites
GALLERY_TILE_SIZE = 80
GAP = 2
POSTER_DPI, POSTER_SIZE = 300, (3508, 4961)  # A3: width and height
POSTER_MARGIN, POSTER_GAP = 254, 30
POSTER_PLACES = (3, 4)  # columns and rows
GALLERY_SIDE = 8  # the gallery shows 8 x 8 programs
NUM_FRAMES = 40
FRAME_MS = 60
STILL_T = 0.0  # the time t of still pictures
_BATCH_PIXELS = 1 << 19  # drawn at once
_SHEET_BATCH = 2048  # thumbnails in memory at once
_DPI = 100
_MARGINS = (80, 20, 60, 40)  # of the contact sheet, for labels: left, right, bottom and top
_MIN_WIDTH = 480  # of the contact sheet with its title
BACKGROUND = (24, 24, 28)


def render(problem: Problem, words: NDArray[np.uint64], size: int, t: float) -> NDArray[np.uint8]:
    """`(batch_size, size, size, 3)` uint8 pictures of `(batch_size, max_length)` programs at time t."""
    batch_size = max(1, _BATCH_PIXELS // size**2)
    return np.concatenate(
        [problem.draw(words[start : start + batch_size], size, t) for start in range(0, len(words), batch_size)]
    )


def contact_sheet(run: Run) -> Path:
    """Draw each elite's picture in its cell, the first measure to the right, the second upwards; without a grid, in cell order.

    In a grid of more measures, several cells share one place, which shows one of their elites, chosen so that neighbours differ
    (`most_varied`). If there are too many cells for pictures of the usual size, pictures are smaller; if they would be too small,
    still more cells share one place, which shows their best elite. The title says so.
    """
    layout, elites = run.search.layout, run.search.elites()
    title = f"{plural(len(elites), 'elite')} after {plural(run.search.counters.evaluations, 'evaluation')}"
    most = (MAX_SHEET_SIDE - GAP) // (SMALLEST_THUMBNAIL_SIZE + GAP)  # places along a side
    if shape := layout.grid_shape():
        merged = -(-max(shape) // most)  # cells along the side of a place
        columns, rows = (-(-cells // merged) for cells in shape)
        indices = np.asarray(layout.coordinates(elites.cell), int)
        column, row = indices[:, :2].T // merged
        row = rows - 1 - row
        shown = best_of_places(np.stack([row, column], axis=1), elites.objective)
        if merged > 1:
            title += f"\n{len(shown):,} of them shown: the best of each {merged} x {merged} cells"
        elif indices.shape[1] > 2:
            shown = varied(run, elites, indices[:, :2])
            title += f"\n{len(shown):,} of them shown: of each place a good one unlike its neighbours"
    else:
        shown = np.sort(np.argsort(-elites.objective, kind="stable")[: most**2])
        columns = int(np.ceil(np.sqrt(len(shown))))
        rows = -(-len(shown) // columns)
        row, column = np.zeros((2, len(elites)), int)
        row[shown], column[shown] = np.divmod(np.arange(len(shown)), columns)
        if len(shown) < len(elites):
            title += f"\n{len(shown):,} of them shown: the best"
    size = min(THUMBNAIL_SIZE, (MAX_SHEET_SIDE - GAP) // max(columns, rows) - GAP)
    if size < THUMBNAIL_SIZE:
        title += f"\npictures reduced to {size} x {size} pixels"
    sheet = _empty_mosaic(size, rows, columns)
    for start in range(0, len(shown), _SHEET_BATCH):
        part = shown[start : start + _SHEET_BATCH]
        positions = list(zip(row[part].tolist(), column[part].tolist(), strict=True))
        _paste(sheet, render(run.search.problem, elites.solution[part], size, STILL_T), positions)
    path = run.run_dir.plot_path("contact_sheet.png")
    if shape:
        ends = (columns * merged / shape[0], rows * merged / shape[1])
        _with_axes(sheet, title, run, ends).save(path)
    else:
        (_with_title(sheet, title) if "\n" in title else Image.fromarray(sheet)).save(path)
    return path


def varied(run: Run, elites: Elites, positions: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows of the elites to show at the positions of a grid, sorted; at each position, the best few are candidates."""
    order = np.lexsort((-elites.objective, *positions.T))
    is_first = np.any(np.diff(positions[order], axis=0, prepend=-1) != 0, axis=1)
    first = np.maximum.accumulate(np.where(is_first, np.arange(len(order)), 0))
    rows = np.sort(order[np.arange(len(order)) - first < NUM_CANDIDATES])
    looks = [
        features(render(run.search.problem, elites.solution[rows[start : start + _SHEET_BATCH]], LOOK_SIZE, STILL_T))
        for start in range(0, len(rows), _SHEET_BATCH)
    ]
    return rows[most_varied(positions[rows], elites.objective[rows], np.concatenate(looks))]


def best_of_places(positions: NDArray[np.int64], objective: NDArray[np.float64]) -> NDArray[np.int64]:
    """Rows of the best elite at each position, `(n, 2)`, sorted."""
    order = np.argsort(-objective, kind="stable")
    _, first = np.unique(positions[order], axis=0, return_index=True)
    return np.sort(order[first])


def best(run: Run) -> Path:
    """The elite that reports take by default, large."""
    words = run.search.elites().solution[[default_row(run)]]
    path = run.run_dir.plot_path("best.png")
    Image.fromarray(render(run.search.problem, words, BEST_SIZE, STILL_T)[0]).save(path)
    return path


def animation(run: Run) -> Path:
    """Nine elites over time t: the best of each of nine regions of the archive."""
    problem, elites = run.search.problem, run.search.elites()
    chosen = _best_of_regions(elites.measures[:, :2], elites.objective, problem.ranges[:2])
    return _animate(problem, elites.solution[chosen], 3, TILE_SIZE, run.run_dir.plot_path("animation.gif"))


def poster(run: Run) -> Path:
    """Twelve elites for an A3 print, the first measure to the right, the second upwards.

    Columns hold equally many elites, and so do the rows of each; a place shows one of its elites, as `varied` chooses.
    """
    problem, elites = run.search.problem, run.search.elites()
    columns, rows = POSTER_PLACES
    names = [written(name) for name in problem.task.measures][:2]
    column = _ranks(elites.measures[:, 0]) * columns // len(elites)
    row = np.empty_like(column)
    for here in (column == index for index in range(columns)):
        row[here] = _ranks(elites.measures[here, len(names) - 1]) * rows // max(1, here.sum())
    positions = np.stack([column, row], axis=1)
    width, height = POSTER_SIZE
    side = (width - 2 * POSTER_MARGIN + POSTER_GAP) // columns - POSTER_GAP
    image = Image.new("RGB", POSTER_SIZE, "white")
    for index in varied(run, elites, positions):  # one at a time, for the sake of memory
        left, top = (POSTER_MARGIN + (side + POSTER_GAP) * (positions[index] * (1, -1) + (0, rows - 1))).tolist()
        image.paste(Image.fromarray(render(problem, elites.solution[[index]], side, STILL_T)[0]), (left, top))
    evaluations, seed = run.search.counters.evaluations, problem.config.seed
    caption = (
        f"Each picture is a program, one of {len(elites):,} that evolved in {evaluations:,} evaluations (evo, seed {seed}).\n"
        f"{names[0].capitalize()} grows to the right{''.join(f', {name} upwards' for name in names[1:])}."
    )
    below = (POSTER_MARGIN, POSTER_MARGIN + rows * (side + POSTER_GAP) + POSTER_GAP)
    ImageDraw.Draw(image).multiline_text(
        below, caption, (60, 60, 60), ImageFont.load_default(height // 120), spacing=height // 200
    )
    path = run.run_dir.plot_path("poster.png")
    image.save(path, dpi=(POSTER_DPI, POSTER_DPI))
    return path


def _ranks(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """The place of each value among all, from 0."""
    return np.argsort(np.argsort(values, kind="stable"), kind="stable")


def gallery(run: Run) -> Path:
    """The first 64 random programs of the run's seed as one animated sheet."""
    words = run.search.random_programs(GALLERY_SIDE**2)
    return _animate(run.search.problem, words, GALLERY_SIDE, GALLERY_TILE_SIZE, run.run_dir.plot_path("gallery.gif"))


def picture_program(problem: Problem, words: NDArray[np.uint64], stem: Path) -> list[Path]:
    """Draws one program, `(max_length,)`, to `<stem>.png` and `<stem>.gif`."""
    still = stem.with_name(stem.name + ".png")
    Image.fromarray(render(problem, words[None], BEST_SIZE, STILL_T)[0]).save(still)
    return [still, _animate(problem, words[None], 1, SINGLE_SIZE, stem.with_name(stem.name + ".gif"))]


def _best_of_regions(
    measures: NDArray[np.float64], objective: NDArray[np.float64], ranges: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Rows of the best elite in each of 3 x 3 regions of the measure space, topped up to nine with the best others."""
    scaled = (measures - ranges[:, 0]) / (ranges[:, 1] - ranges[:, 0])
    region = np.clip((scaled * 3).astype(int), 0, 2) @ np.array([1, 3])[: measures.shape[1]]
    order = np.argsort(-objective, kind="stable")
    _, first = np.unique(region[order], return_index=True)
    chosen = order[np.sort(first)]
    rest = order[~np.isin(order, chosen)]
    return np.concatenate([chosen, rest])[:9]


def _animate(problem: Problem, words: NDArray[np.uint64], columns: int, size: int, path: Path) -> Path:
    rows = -(-len(words) // columns)
    positions = [divmod(i, columns) for i in range(len(words))]
    drawn = [_mosaic(render(problem, words, size, frame / NUM_FRAMES), positions, rows, columns) for frame in range(NUM_FRAMES)]
    palette = Palette(drawn[:: NUM_FRAMES // 4])
    frames = [palette(frame) for frame in drawn]
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=FRAME_MS, loop=0)
    return path


def _mosaic(pictures: NDArray[np.uint8], positions: list[tuple[int, int]], rows: int, columns: int) -> NDArray[np.uint8]:
    sheet = _empty_mosaic(pictures.shape[1], rows, columns)
    _paste(sheet, pictures, positions)
    return sheet


def _empty_mosaic(size: int, rows: int, columns: int) -> NDArray[np.uint8]:
    sheet = np.empty((rows * (size + GAP) + GAP, columns * (size + GAP) + GAP, 3), np.uint8)
    sheet[:] = BACKGROUND
    return sheet


def _paste(sheet: NDArray[np.uint8], pictures: NDArray[np.uint8], positions: list[tuple[int, int]]) -> None:
    size = pictures.shape[1]
    for picture, (row, column) in zip(pictures, positions, strict=True):
        top, left = GAP + row * (size + GAP), GAP + column * (size + GAP)
        sheet[top : top + size, left : left + size] = picture


def _with_title(sheet: NDArray[np.uint8], title: str) -> Image.Image:
    """The sheet below its title."""
    height, width = sheet.shape[:2]
    image = Image.new("RGB", (max(width, _MIN_WIDTH), height + _MARGINS[3]), "white")
    ImageDraw.Draw(image).multiline_text((GAP, GAP), title, fill="black", font=ImageFont.load_default(14))
    image.paste(Image.fromarray(sheet), (0, _MARGINS[3]))
    return image


@rc_context(PLAIN_TEXT)
def _with_axes(sheet: NDArray[np.uint8], title: str, run: Run, ends: tuple[float, float]) -> Image.Image:
    """The sheet with a title, and the measures' names and values along its edges; it ends at these fractions of their ranges.

    Matplotlib draws only the frame: the sheet is pasted, which keeps its pixels and takes a fraction of the memory.
    """
    problem = run.search.problem
    names = list(problem.task.measures)
    height, width = sheet.shape[:2]
    left, right, bottom, top = _MARGINS
    top += 18 * title.count("\n")
    full = (max(width + left + right, _MIN_WIDTH), height + bottom + top)
    figure = Figure(figsize=(full[0] / _DPI, full[1] / _DPI), dpi=_DPI)
    axes = figure.add_axes((left / full[0], bottom / full[1], width / full[0], height / full[1]))
    axes.set_xlim(0.0, ends[0])
    axes.set_ylim(0.0, ends[1])
    edges = zip((axes.xaxis, axes.yaxis), names[:2], problem.ranges[:2], (width, height), strict=True)
    for axis, name, (low, high), pixels in edges:
        label_axis(axis, name, low, high, max(2, min(20, pixels // 70)))
    axes.set_title(title, loc="left")
    file = io.BytesIO()
    figure.savefig(file, dpi=_DPI)
    image = Image.open(file).convert("RGB")
    image.paste(Image.fromarray(sheet), (left, top))
    return image
