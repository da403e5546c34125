"""A film of an archive that fills up.

Owns which elites a frame shows, and where. `evo.report.plot.film` owns file formats.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from evo.errors import UserError, plural
from evo.report.plot.frames import Frame
from evo.report.plot.pictures import BACKGROUND, GAP, STILL_T, render
from evo.report.recompute import problem_here
from evo.run.run import Run
from evo.search.lineage_records import NONE, RECORD_DTYPE

HOLD = 0.1  # share of the film that shows the archive as it is now
SMALLEST_TILE = 8  # pixels
_TITLE = 36  # pixels below the sheet
_TEXT = (200, 200, 206)


class ArchiveFilm:
    """Frames that show elites in the order in which they came, at even steps of their number.

    Elites that have been replaced are shown as far as they are remembered.

    Args:
        width, height: in pixels.

    Raises:
        UserError: the task draws no pictures, there are too many cells for the size, or nothing is known of earlier elites.
    """

    def __init__(self, run: Run, width: int, height: int):
        problem, layout = run.search.problem, run.search.layout
        if not problem.task.has_pictures():
            raise UserError("the task draws no pictures (it must define picture_points and picture)")
        records = run.records()
        rows = np.flatnonzero(records.facts["in_archive"])
        if not len(rows):
            raise UserError("no elites are remembered (output.lineage_megabytes)", run.run_dir.path)
        self._run = run
        max_length = problem.config.program.max_length
        facts, words = _with_unrecorded(run, records.facts[rows], records.programs(rows, max_length))
        self._facts, self._words = facts, words
        num_cells = layout.num_cells
        if shape := layout.grid_shape():
            columns, num_rows = shape
            column, row = np.asarray(layout.coordinates(self._facts["cell"]), int)[:, :2].T
            row = num_rows - 1 - row
        else:
            columns = int(np.ceil(np.sqrt(num_cells * width / max(height - _TITLE, 1))))
            num_rows = -(-num_cells // columns)
            row, column = np.divmod(self._facts["cell"].astype(int), columns)
        self._tile = min((width - GAP) // columns, (height - _TITLE - GAP) // num_rows) - GAP
        if self._tile < SMALLEST_TILE:
            raise UserError(f"{width}x{height}: too small for {columns} x {num_rows} cells")
        self._size = (width, height)
        step = self._tile + GAP
        self._left = (width - columns * step - GAP) // 2 + GAP + column * step
        self._top = (height - _TITLE - num_rows * step - GAP) // 2 + GAP + row * step
        self._num_cells = num_cells
        self._tile_number = row * columns + column
        self._is_best = _is_best_so_far(self._tile_number, self._facts["objective"])

    def frames(self, num_frames: int) -> Iterator[Frame]:
        """The film, frame by frame. Raises UserError if the task's drawing fails."""
        width, height = self._size
        sheet = np.empty((height, width, 3), np.uint8)
        sheet[:] = BACKGROUND
        num_growing = max(1, round(num_frames * (1.0 - HOLD)))
        total, shown = len(self._facts), 0
        occupied: set[int] = set()
        with problem_here(self._run) as (problem, _):
            for index in range(num_frames):
                end = min(total, -(-total * (index + 1) // num_growing))
                if end > shown:
                    cells = self._facts["cell"][shown:end]
                    occupied.update(cells.tolist())
                    best = shown + np.flatnonzero(self._is_best[shown:end])[::-1]
                    newest = best[np.unique(self._tile_number[best], return_index=True)[1]]
                    if len(newest):  # cells of a third measure share places, whose best may be older
                        pictures = render(problem, np.ascontiguousarray(self._words[newest]), self._tile, STILL_T)
                        self._paste(sheet, pictures, newest)
                    shown = end
                    titled = self._with_title(sheet, int(self._facts["generation"][end - 1]), len(occupied))
                yield titled

    def last(self) -> Frame:
        """The film's last frame."""
        [frame] = self.frames(1)
        return frame

    def _paste(self, sheet: Frame, pictures: NDArray[np.uint8], rows: NDArray[np.int64]) -> None:
        for picture, left, top in zip(pictures, self._left[rows].tolist(), self._top[rows].tolist(), strict=True):
            sheet[top : top + self._tile, left : left + self._tile] = picture

    def _with_title(self, sheet: Frame, generation: int, num_elites: int) -> Frame:
        image = Image.fromarray(sheet)
        text = f"generation {generation:,}   {plural(num_elites, 'elite')} in {plural(self._num_cells, 'cell')}"
        center = (self._size[0] // 2, self._size[1] - _TITLE // 2)
        ImageDraw.Draw(image).text(center, text, fill=_TEXT, font=ImageFont.load_default(16), anchor="mm")
        return np.asarray(image)


def _is_best_so_far(tiles: NDArray[np.int64], objective: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Mask of the elites that beat all before them at their tile. In a grid of over two measures, cells share tiles."""
    best: dict[int, float] = {}
    is_best = np.zeros(len(tiles), bool)
    for index, (tile, value) in enumerate(zip(tiles.tolist(), objective.tolist(), strict=True)):
        if value > best.get(tile, -np.inf):
            best[tile] = value
            is_best[index] = True
    return is_best


def _with_unrecorded(run: Run, facts: NDArray[Any], words: NDArray[np.uint64]) -> tuple[NDArray[Any], NDArray[np.uint64]]:
    """Records and their programs, and the elites whose records are forgotten, by generation: the film ends with all elites."""
    elites = run.search.elites()
    missing = ~np.isin(run.search.record_numbers(), facts["number"])
    more = np.zeros(int(missing.sum()), RECORD_DTYPE)
    more["number"] = NONE
    more["objective"] = elites.objective[missing]
    more["generation"], more["cell"] = elites.generation[missing], elites.cell[missing]
    all_facts, all_words = np.concatenate([facts, more]), np.concatenate([words, elites.solution[missing]])
    order = np.argsort(all_facts["generation"], kind="stable")
    return all_facts[order], all_words[order]
