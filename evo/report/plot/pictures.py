"""What programs draw: contact sheet, best elite, animations.

Owns layout and file formats. Knows nothing of how a task draws its pictures.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

from evo.run.problem import Problem
from evo.run.run import Run
from evo.task import task_errors

# Sides of pictures and the gaps between them, in pixels.
THUMBNAIL_SIZE = 56  # in the contact sheet
BEST_SIZE = 768
SINGLE_SIZE = 384  # in the animation of one program
TILE_SIZE = 176  # in the animation of elites
GALLERY_TILE_SIZE = 80
GAP = 2
GALLERY_SIDE = 8  # the gallery shows 8 x 8 programs
NUM_FRAMES = 40
FRAME_MS = 60
STILL_T = 0.0  # the time t of still pictures
_BATCH_SIZE = 16  # pictures drawn at once
_DPI = 100
_BACKGROUND = (24, 24, 28)


def render(problem: Problem, words: NDArray[np.uint64], size: int, t: float) -> NDArray[np.uint8]:
    """`(batch_size, size, size, 3)` uint8 pictures of `(batch_size, max_length)` programs at time t."""
    with task_errors(type(problem.task), "picture_points"):
        points = problem.task.picture_points(size, t)
    parts = []
    for start in range(0, len(words), _BATCH_SIZE):
        batch = words[start : start + _BATCH_SIZE]
        outputs = problem.evaluator.outputs(batch, points)
        with np.errstate(all="ignore"), task_errors(type(problem.task), "picture"):
            drawn = np.asarray(problem.task.picture(outputs, size))
            shape = (len(batch), size, size, 3)
            if drawn.shape != shape or drawn.dtype != np.uint8:
                raise TypeError(f"must return {shape} uint8, got {drawn.shape} {drawn.dtype}")
            parts.append(drawn)
    return np.concatenate(parts)


def contact_sheet(run: Run) -> Path:
    """Each elite's picture in its cell, the first measure to the right, the second upwards; without a grid, in cell order."""
    layout, elites = run.search.layout, run.search.archive.elites()
    pictures = render(run.search.problem, elites.solution, THUMBNAIL_SIZE, STILL_T)
    if shape := layout.grid_shape():
        columns, rows = shape
        places = [(rows - 1 - int(j), int(i)) for i, j in layout.places(elites.cell)]
        return _with_axes(_mosaic(pictures, places, rows, columns), run)
    columns = int(np.ceil(np.sqrt(len(elites))))
    rows = -(-len(elites) // columns)
    sheet = _mosaic(pictures, [divmod(i, columns) for i in range(len(elites))], rows, columns)
    path = run.run_dir.plot_path("contact_sheet.png")
    Image.fromarray(sheet).save(path)
    return path


def best(run: Run) -> Path:
    """The elite with the highest objective, large."""
    elites = run.search.archive.elites()
    words = elites.solution[[np.argmax(elites.objective)]]
    path = run.run_dir.plot_path("best.png")
    Image.fromarray(render(run.search.problem, words, BEST_SIZE, STILL_T)[0]).save(path)
    return path


def animation(run: Run) -> Path:
    """Nine elites over time t: the best of each of nine regions of the archive."""
    problem, elites = run.search.problem, run.search.archive.elites()
    chosen = _best_of_regions(elites.measures[:, :2], elites.objective, problem.ranges[:2])
    return _animate(problem, elites.solution[chosen], 3, TILE_SIZE, run.run_dir.plot_path("animation.gif"))


def gallery(run: Run) -> Path:
    """The first 64 random programs of the run's seed as one animated sheet."""
    words = run.search.emitter.random_programs(GALLERY_SIDE**2)
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
    places = [divmod(i, columns) for i in range(len(words))]
    frames = [
        Image.fromarray(_mosaic(render(problem, words, size, frame / NUM_FRAMES), places, rows, columns))
        for frame in range(NUM_FRAMES)
    ]
    # All frames share one palette, taken from a few of them, so colours do not flicker. Dithering avoids banding.
    sample = Image.fromarray(np.concatenate([np.asarray(frame) for frame in frames[:: NUM_FRAMES // 4]], axis=1))
    palette = sample.quantize(256, Image.Quantize.MEDIANCUT)
    frames = [frame.quantize(palette=palette, dither=Image.Dither.FLOYDSTEINBERG) for frame in frames]
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=FRAME_MS, loop=0)
    return path


def _mosaic(pictures: NDArray[np.uint8], places: list[tuple[int, int]], rows: int, columns: int) -> NDArray[np.uint8]:
    size = pictures.shape[1]
    step = size + GAP
    sheet = np.empty((rows * step + GAP, columns * step + GAP, 3), np.uint8)
    sheet[:] = _BACKGROUND
    for picture, (row, column) in zip(pictures, places, strict=True):
        top, left = GAP + row * step, GAP + column * step
        sheet[top : top + size, left : left + size] = picture
    return sheet


def _with_axes(sheet: NDArray[np.uint8], run: Run) -> Path:
    """Writes the sheet with the measures' names and values along its edges."""
    problem = run.search.problem
    (left, right), (bottom, top) = problem.ranges
    names = list(problem.task.measures)
    height, width = sheet.shape[:2]
    figure = Figure(figsize=(width / _DPI + 1.2, height / _DPI + 1.0), layout="constrained")  # inches; the rest holds the labels
    axes = figure.subplots()
    axes.imshow(sheet, extent=(left, right, bottom, top), aspect="auto", interpolation="antialiased")
    axes.set_xlabel(names[0])
    axes.set_ylabel(names[1])
    axes.set_title(f"{len(run.search.archive)} elites after {run.search.counters.evaluations:,} evaluations", loc="left")
    path = run.run_dir.plot_path("contact_sheet.png")
    figure.savefig(path, dpi=_DPI)
    return path
