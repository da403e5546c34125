"""Pictures of one program at any size and shape, drawn in tiles.

Owns how a frame is divided, so that memory stays bounded and all cores draw. Knows nothing of files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager

import numpy as np
from numpy.typing import NDArray

from evo.errors import UserError
from evo.evaluate.backends import CPU
from evo.report.pareto import row_of_elite
from evo.report.recompute import problem_here
from evo.run.loaded_task import Problem
from evo.run.run import Run
from evo.task import Window

Frame = NDArray[np.uint8]
"""`(height, width, 3)` RGB."""

TILES = range(128, 257, 8)  # sides of a tile in pixels: the largest lets the arrays of a tile stay in a core's cache
MIN_SIDE, MAX_SIDE = 16, 16384  # pixels


def parse_size(text: str) -> tuple[int, int]:
    """Width and height of `1920x1080`, or of `512` for a square. Raises UserError."""
    match = re.fullmatch(r"(\d{1,6})(?:x(\d{1,6}))?", text.strip().lower())
    width, height = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
    if not (MIN_SIDE <= width <= MAX_SIDE and MIN_SIDE <= height <= MAX_SIDE):
        raise UserError(f"--size {text}: must be width x height from {MIN_SIDE} to {MAX_SIDE} pixels, such as 1920x1080")
    return width, height


@contextmanager
def frames_of(run: Run, name: str | None, width: int, height: int) -> Iterator[Frames]:
    """Draws an elite on this machine.

    Args:
        name: of the elite, as in `row_of_elite`.

    Raises:
        UserError: there is no such elite, or the task cannot draw it so.
    """
    words = run.search.elites().solution[row_of_elite(run, name)]
    with problem_here(run) as (problem, _), Frames(problem, words, width, height) as frames:
        yield frames


class Frames(AbstractContextManager["Frames"]):
    """Draws frames of one program. The task's picture fills the shorter side; beyond it the longer side shows what lies beside.

    Args:
        problem: evaluated on this machine.
        words: `(max_length,)`.
        width, height: in pixels.

    Raises:
        UserError: the task draws no pictures, or only square ones and the frame is not square.
    """

    def __init__(self, problem: Problem, words: NDArray[np.uint64], width: int, height: int):
        task_class = type(problem.task)
        if not problem.task.has_pictures():
            raise UserError("the task draws no pictures (it must define picture_points and picture)")
        if width != height and not problem.task.has_windows():
            raise UserError(
                f"{width}x{height}: class {task_class.__name__} draws square pictures only: its picture_points takes no window"
            )
        self._problem, self._words = problem, words[None]
        self._width, self._height = width, height
        self._tile = min(TILES, key=lambda tile: (-(-width // tile) * -(-height // tile) * tile * tile, -tile))
        # A GPU draws one tile after the other.
        threads = problem.config.evaluation.threads or len(os.sched_getaffinity(0)) if problem.backend is CPU else 1
        self._threads = ThreadPoolExecutor(threads, "frames")

    def draw(self, t: float) -> Frame:
        """The frame at time t in [0, 1). Raises UserError if the task's drawing fails."""
        if not self._problem.task.has_windows():
            frame: Frame = self._problem.draw(self._words, self._width, t)[0]
            return frame
        frame = np.empty((self._height, self._width, 3), np.uint8)
        # All are asked for, so that whatever is raised is raised here.
        for _ in self._threads.map(lambda corner: self._draw_tile(frame, corner, t), self._corners()):
            pass
        return frame

    def loop(self, num_frames: int) -> Iterator[Frame]:
        """Frames at even steps of t from 0 to 1, of which 1 is left out: what moves in a loop goes on."""
        return (self.draw(index / num_frames) for index in range(num_frames))

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown(cancel_futures=True)

    def _corners(self) -> Iterator[tuple[int, int]]:
        for top in range(0, self._height, self._tile):
            for left in range(0, self._width, self._tile):
                yield left, top

    def _draw_tile(self, frame: Frame, corner: tuple[int, int], t: float) -> None:
        left, top = corner
        side = min(self._width, self._height)
        window = Window(side, left - (self._width - side) // 2, top - (self._height - side) // 2)
        [tile] = self._problem.draw(self._words, self._tile, t, window)
        part = frame[top : top + self._tile, left : left + self._tile]
        part[:] = tile[: part.shape[0], : part.shape[1]]
