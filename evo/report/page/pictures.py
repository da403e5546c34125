"""The pictures of a page, as WebP: sheets of thumbnails of elites and of ancestors, larger pictures and animations of the
best.

Owns their sizes, which depend on how much room the page has, and remembers what was drawn, so that the page of a run in progress
costs only its new elites. Encodes in threads while the task draws. Knows nothing of how a task draws.
"""

import base64
import io
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain, takewhile
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, features

from evo.errors import UserError
from evo.report.plot.pictures import STILL_T, render
from evo.run.loaded_task import Problem

NUM_FILMS = 20  # the best elites are animated
NUM_STILLS = 1024  # the best elites; of all others there are thumbnails alone
NUM_LARGE = 8  # the best elites have stills of this size in place of one of SIZES
LARGE = 512
NUM_FRAMES = 30
FRAME_MS = 80
TILE = 64  # side of a thumbnail in pixels: a multiple of 16, WebP's blocks, so that neighbours do not bleed into each other
SMALL_TILE = 48  # where there are more than NUM_STILLS elites
ANCESTOR_TILE = 40
SIZES = (96, 112, 128, 160, 192, 224, 256, 320, 384)  # of a still, in pixels; the largest for which there is room
FILM_SIZES = (96, 128, 160)
STILL_BYTES = 1_150_000  # of all stills together, before base64 makes them a third longer
FILM_BYTES = 600_000
_QUALITY = 60  # of WebP, from 0 to 100
_FILM_QUALITY = 50
_ANCESTOR_QUALITY = 50
_METHOD = 2  # of WebP, from 0 to 6: 3 takes twice the time and saves 3 % of the bytes
_NUM_TRIED = 16  # pictures to estimate the lengths of all
_NUM_TRIED_FILMS = 2
_NUM_TRIED_FRAMES = 6
_BATCH = 64  # pictures in memory at once


class Pictures:
    """The pictures of elites of one task. most: upper limit of the number of elites, which decides the size of their pictures."""

    def __init__(self, most: int):
        if not features.check("webp"):
            raise UserError("Pillow here was built without WebP, which the page's pictures are; install Pillow's own wheel")
        self._most = min(max(1, most), NUM_STILLS)
        self._side = TILE if most <= NUM_STILLS else SMALL_TILE
        self._sizes: tuple[int, int] | None = None
        self._stills: dict[bytes, bytes] = {}
        self._large: dict[bytes, bytes] = {}
        self._tiles: dict[bytes, NDArray[np.uint8]] = {}
        self._films: dict[bytes, bytes] = {}
        self._ancestors: dict[bytes, NDArray[np.uint8]] = {}  # thumbnails

    def draw(self, problem: Problem, words: NDArray[np.uint64], hashes: NDArray[np.uint64]) -> dict[str, Any]:
        """The pictures of `(n, max_length)` programs, the best first, as JSON data: all WebP, in base64.

        Returns:
            `stills` and `films`, of the first; `large`: how many stills have `LARGE` pixels; `atlas`, a sheet of all thumbnails,
            of `side` pixels, in rows of `columns`.
        """
        keys = [digest.tobytes() for digest in hashes]
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            size, film_size = self._sizes = self._sizes or self._choose(problem, words, pool)
            missing = [row for row, key in enumerate(keys[:NUM_STILLS]) if key not in self._stills]
            for row, (still, tile) in zip(
                missing, _encoded(pool, _batches(problem, words[missing], size), self._side), strict=True
            ):
                self._stills[keys[row]], self._tiles[keys[row]] = still, tile
            best = keys[: min(NUM_LARGE, NUM_STILLS)]
            missing = [row for row, key in enumerate(best) if key not in self._large]
            large = _encoded(pool, _batches(problem, words[missing], LARGE), self._side)
            self._large |= {keys[row]: still for row, (still, _) in zip(missing, large, strict=True)}
            missing = [row for row, key in enumerate(keys) if key not in self._tiles]
            tiles = chain.from_iterable(_batches(problem, words[missing], self._side))
            self._tiles |= {keys[row]: tile for row, tile in zip(missing, tiles, strict=True)}
            self._tiles = {key: self._tiles[key] for key in keys}
            sheet = pool.submit(_sheet, [self._tiles[key] for key in keys], self._side, _QUALITY)
            missing = [row for row, key in enumerate(keys[:NUM_FILMS]) if key not in self._films]
            films = pool.map(_encode_film, (_frames(problem, words[row], film_size) for row in missing))
            self._films |= {keys[row]: film for row, film in zip(missing, films, strict=True)}
        self._stills = {key: self._stills[key] for key in keys[:NUM_STILLS]}
        self._films = {key: self._films[key] for key in keys[:NUM_FILMS]}
        self._large = {key: self._large[key] for key in best}
        return {
            "stills": [_base64(self._large.get(key) or self._stills[key]) for key in keys[:NUM_STILLS]],
            "large": len(self._large),
            "films": [_base64(self._films[key]) for key in keys[:NUM_FILMS]],
            **sheet.result(),
        }

    def ancestors(self, problem: Problem, words: NDArray[np.uint64], hashes: NDArray[np.uint64]) -> dict[str, Any] | None:
        """Thumbnails of `(n, max_length)` programs: `atlas`, `columns` and `side` as `draw` gives them, or None without any."""
        keys = [digest.tobytes() for digest in hashes]
        missing = [row for row, key in enumerate(keys) if key not in self._ancestors]
        pictures = chain.from_iterable(_batches(problem, words[missing], ANCESTOR_TILE))
        self._ancestors |= {keys[row]: picture for row, picture in zip(missing, pictures, strict=True)}
        self._ancestors = {key: self._ancestors[key] for key in keys}
        return _sheet([self._ancestors[key] for key in keys], ANCESTOR_TILE, _ANCESTOR_QUALITY) if keys else None

    def _choose(self, problem: Problem, words: NDArray[np.uint64], pool: ThreadPoolExecutor) -> tuple[int, int]:
        """The sizes of stills and films."""

        def num_bytes(size: int) -> float:
            tried = words[:: max(1, len(words) // _NUM_TRIED)][:_NUM_TRIED]
            stills = _encoded(pool, _batches(problem, tried, size), self._side)
            return self._most * float(np.mean([len(still) for still, _ in stills]))

        def film_bytes(size: int) -> float:
            tried = words[:_NUM_TRIED_FILMS]
            films = [_encode_film(_frames(problem, program, size, _NUM_TRIED_FRAMES)) for program in tried]
            return NUM_FILMS * NUM_FRAMES / _NUM_TRIED_FRAMES * float(np.mean([len(film) for film in films]))

        return _largest(SIZES, num_bytes, STILL_BYTES), _largest(FILM_SIZES, film_bytes, FILM_BYTES)


def _largest(sizes: Sequence[int], num_bytes: Callable[[int], float], room: int) -> int:
    """The greatest of rising sizes for which there is room, or the first."""
    return [sizes[0], *takewhile(lambda size: num_bytes(size) <= room, sizes[1:])][-1]


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


def _frames(problem: Problem, words: NDArray[np.uint64], size: int, count: int = NUM_FRAMES) -> list[NDArray[np.uint8]]:
    return [render(problem, words[None], size, frame / NUM_FRAMES)[0] for frame in range(count)]


def _encode_still(pixels: NDArray[np.uint8], side: int) -> tuple[bytes, NDArray[np.uint8]]:
    image = Image.fromarray(pixels)
    return _webp(image, quality=_QUALITY), np.asarray(image.resize((side, side), Image.Resampling.LANCZOS))


def _encode_film(frames: list[NDArray[np.uint8]]) -> bytes:
    first, *rest = map(Image.fromarray, frames)
    return _webp(first, quality=_FILM_QUALITY, save_all=True, append_images=rest, duration=FRAME_MS, loop=0)


def _sheet(tiles: list[NDArray[np.uint8]], side: int, quality: int) -> dict[str, Any]:
    """Thumbnails of this `side` in rows of `columns` as one picture, `atlas`."""
    columns = max(1, int(np.ceil(np.sqrt(len(tiles)))))
    rows = max(1, -(-len(tiles) // columns))
    sheet = np.zeros((rows * side, columns * side, 3), np.uint8)
    for number, tile in enumerate(tiles):
        top, left = side * (number // columns), side * (number % columns)
        sheet[top : top + side, left : left + side] = tile
    return {"atlas": _base64(_webp(Image.fromarray(sheet), quality=quality)), "columns": columns, "side": side}


def picture(problem: Problem, words: NDArray[np.uint64], size: int) -> bytes:
    """A program's picture as WebP, of `size` x `size` pixels."""
    return _webp(Image.fromarray(render(problem, words[None], size, STILL_T)[0]), quality=_QUALITY)


def _webp(image: Image.Image, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, "WEBP", method=_METHOD, **options)
    return file.getvalue()


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
