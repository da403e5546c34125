"""The pictures of a page, as WebP: a sheet of thumbnails of elites, larger pictures and animations of the best.

Owns their sizes, and remembers what was drawn, so that the page of a run in progress costs only its new elites. Encodes in
threads while the task draws. Knows nothing of how a task draws.
"""

import base64
import io
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, features

from evo.errors import UserError
from evo.report.plot.pictures import STILL_T, render
from evo.run.loaded_task import Problem

NUM_FILMS = 20  # the best elites are animated
NUM_STILLS = 1024  # the best elites; of all others there are thumbnails alone
NUM_LARGE = 8  # the best elites have stills of this size
LARGE = 512
SIZES = {64: 320, 256: 192, NUM_STILLS: 128}  # of other stills, in pixels, by how many elites there are at most
FILM_SIZE = 128
NUM_FRAMES = 30
FRAME_MS = 80
TILE = 64  # side of a thumbnail in pixels: a multiple of 16, WebP's blocks, so that neighbours do not bleed into each other
SMALL_TILE = 48  # where there are more than NUM_STILLS elites
_QUALITY = 60  # of WebP, from 0 to 100
_FILM_QUALITY = 50
_METHOD = 2  # of WebP, from 0 to 6: 3 takes twice the time and saves 3 % of the bytes
_BATCH = 64  # pictures in memory at once


class Pictures:
    """The pictures of elites of one task. most: upper limit of the number of elites, which decides the size of their pictures."""

    def __init__(self, most: int):
        if not features.check("webp"):
            raise UserError("Pillow here was built without WebP, which the page's pictures are; install Pillow's own wheel")
        self._side = TILE if most <= NUM_STILLS else SMALL_TILE
        self._size = next(size for count, size in SIZES.items() if min(most, NUM_STILLS) <= count)
        self._stills: dict[tuple[bytes, int], bytes] = {}  # by hash and size
        self._tiles: dict[bytes, NDArray[np.uint8]] = {}
        self._films: dict[bytes, bytes] = {}

    def draw(self, problem: Problem, words: NDArray[np.uint64], hashes: NDArray[np.uint64]) -> dict[str, Any]:
        """The pictures of `(n, max_length)` programs, the best first, as JSON data: all WebP, in base64.

        Returns:
            `stills` and `films`, of the first; `large`: how many stills have `LARGE` pixels; `atlas`, a sheet of all thumbnails,
            of `side` pixels, in rows of `columns`.
        """
        keys = [digest.tobytes() for digest in hashes]
        stills = [(key, LARGE if row < NUM_LARGE else self._size) for row, key in enumerate(keys[:NUM_STILLS])]
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            for size in (LARGE, self._size):
                missing = [row for row, still in enumerate(stills) if still[1] == size and still not in self._stills]
                encoded = _encoded(pool, _batches(problem, words[missing], size), self._side)
                for row, (picture, tile) in zip(missing, encoded, strict=True):
                    self._stills[stills[row]], self._tiles[keys[row]] = picture, tile
            missing = [row for row, key in enumerate(keys) if key not in self._tiles]
            tiles = chain.from_iterable(_batches(problem, words[missing], self._side))
            self._tiles |= {keys[row]: tile for row, tile in zip(missing, tiles, strict=True)}
            sheet = pool.submit(_sheet, [self._tiles[key] for key in keys], self._side)
            missing = [row for row, key in enumerate(keys[:NUM_FILMS]) if key not in self._films]
            films = pool.map(_encode_film, (_frames(problem, words[row]) for row in missing))
            self._films |= {keys[row]: film for row, film in zip(missing, films, strict=True)}
        self._stills = {still: self._stills[still] for still in stills}
        self._tiles = {key: self._tiles[key] for key in keys}
        self._films = {key: self._films[key] for key in keys[:NUM_FILMS]}
        return {
            "stills": [_base64(self._stills[still]) for still in stills],
            "large": min(NUM_LARGE, len(stills)),
            "films": [_base64(self._films[key]) for key in keys[:NUM_FILMS]],
            **sheet.result(),
        }


def _batches(problem: Problem, words: NDArray[np.uint64], size: int) -> Iterator[NDArray[np.uint8]]:
    """The stills of programs, some at a time."""
    return (render(problem, words[start : start + _BATCH], size, STILL_T) for start in range(0, len(words), _BATCH))


def _encoded(
    pool: ThreadPoolExecutor, batches: Iterable[NDArray[np.uint8]], side: int
) -> Iterator[tuple[bytes, NDArray[np.uint8]]]:
    """Encode each picture as a file, and its thumbnail of this side. One batch is encoded while the next is drawn."""
    started: Iterator[tuple[bytes, NDArray[np.uint8]]] = iter(())
    for pictures in batches:
        before, started = started, pool.map(partial(_encode_still, side=side), pictures)
        yield from before
    yield from started


def _frames(problem: Problem, words: NDArray[np.uint64]) -> list[NDArray[np.uint8]]:
    return [render(problem, words[None], FILM_SIZE, frame / NUM_FRAMES)[0] for frame in range(NUM_FRAMES)]


def _encode_still(pixels: NDArray[np.uint8], side: int) -> tuple[bytes, NDArray[np.uint8]]:
    image = Image.fromarray(pixels)
    return _webp(image, quality=_QUALITY), np.asarray(image.resize((side, side), Image.Resampling.LANCZOS))


def _encode_film(frames: list[NDArray[np.uint8]]) -> bytes:
    first, *rest = map(Image.fromarray, frames)
    return _webp(first, quality=_FILM_QUALITY, save_all=True, append_images=rest, duration=FRAME_MS, loop=0)


def _sheet(tiles: list[NDArray[np.uint8]], side: int) -> dict[str, Any]:
    """Thumbnails of this `side` in rows of `columns` as one picture, `atlas`."""
    columns = max(1, int(np.ceil(np.sqrt(len(tiles)))))
    rows = max(1, -(-len(tiles) // columns))
    sheet = np.zeros((rows * side, columns * side, 3), np.uint8)
    for number, tile in enumerate(tiles):
        top, left = side * (number // columns), side * (number % columns)
        sheet[top : top + side, left : left + side] = tile
    return {"atlas": _base64(_webp(Image.fromarray(sheet), quality=_QUALITY)), "columns": columns, "side": side}


def _webp(image: Image.Image, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, "WEBP", method=_METHOD, **options)
    return file.getvalue()


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
