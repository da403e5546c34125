"""Visual differences of pictures, and a choice of several whose neighbours differ.

Owns the space of features. Knows nothing of tasks, archives or files.
"""

import numpy as np
from numpy.typing import NDArray

NUM_ORIENTATIONS = 6
CENTRES = (1 / 4, 1 / 8, 1 / 16)  # of the filters' bands, in cycles a pixel
LOG_WIDTH = 0.55  # standard deviation of a filter over the log of frequency: bands, an octave apart, meet at 0.82 of their height
ANGLE_WIDTH = 0.45  # and over orientation, in radians; neighbours, 30 degrees apart, meet at 0.84
NUM_REGIONS = 4  # along a side
NUM_STRUCTURE = len(CENTRES) * NUM_ORIENTATIONS * NUM_REGIONS**2  # the first features: the others are colours
REACH = 2  # cells: how far neighbours are apart along each axis, at most
_NUM_SWEEPS = 8  # at most; three or four usually change nothing more
_BATCH_PIXELS = 1 << 18  # at once


def features(pictures: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Features of pictures, `(n, 336)`: structure and colours of 4 x 4 regions. Distances are Euclidean.

    Structure is the gist of Oliva & Torralba (2001, Modeling the shape of the scene): the mean amplitude, in each region, of
    luminance filtered by log-Gabor functions (Field 1987) of three scales and six orientations. Its square root keeps the
    strongest edges from deciding alone. Colours are the means of luminance and of both opponent colours.

    Args:
        pictures: `(n, size, size, 3)`; size is a multiple of 4.
    """
    size = pictures.shape[1]
    step = max(1, _BATCH_PIXELS // size**2)
    filters = _filters(size)
    parts = [_features(pictures[i : i + step].astype(np.float32) / 255.0, filters) for i in range(0, len(pictures), step)]
    return np.concatenate([np.zeros((0, NUM_STRUCTURE + 3 * NUM_REGIONS**2), np.float32), *parts])


def _features(rgb: NDArray[np.float32], filters: NDArray[np.float32]) -> NDArray[np.float32]:
    from scipy import fft  # late: only pictures need it

    luminance = rgb @ np.array([0.299, 0.587, 0.114], np.float32)  # ITU-R BT.601
    spectrum = fft.fft2(luminance)
    structure = [np.sqrt(_regions(np.abs(fft.ifft2(spectrum * kernel)))) for kernel in filters]
    red, green, blue = np.moveaxis(rgb, -1, 0)
    colours = [_regions(plane) for plane in (luminance, red - green, (red + green) / 2.0 - blue)]
    return np.concatenate(structure + colours, axis=1)


def _regions(planes: NDArray[np.float32]) -> NDArray[np.float32]:
    """Means of regions, `(n, NUM_REGIONS**2)`."""
    size = planes.shape[1] // NUM_REGIONS
    means: NDArray[np.float32] = planes.reshape(-1, NUM_REGIONS, size, NUM_REGIONS, size).mean(axis=(2, 4))
    return means.reshape(len(planes), -1)


def _filters(size: int) -> NDArray[np.float32]:
    """Their transfer functions, `(n, size, size)`: on one side of the spectrum, so that what passes is the analytic signal."""
    across, down = np.meshgrid(np.fft.fftfreq(size), np.fft.fftfreq(size))
    frequency, angle = np.hypot(across, down), np.arctan2(down, across)
    frequency[0, 0] = 1e-9  # no filter passes the mean
    filters = []
    for centre in CENTRES:
        for index in range(NUM_ORIENTATIONS):
            turn = np.angle(np.exp(1j * (angle - np.pi * index / NUM_ORIENTATIONS)))
            ratio = np.log(frequency / centre)
            filters.append(np.exp(-0.5 * ((ratio / LOG_WIDTH) ** 2 + (turn / ANGLE_WIDTH) ** 2)))
    return np.stack(filters).astype(np.float32)


def most_varied(positions: NDArray[np.int64], objective: NDArray[np.float64], looks: NDArray[np.float32]) -> NDArray[np.int64]:
    """The rows to show, one for each position, sorted: good ones that differ from those shown around them.

    At first each position shows its best. Then the positions in turn show the candidate with the greatest product of its distance
    from the nearest look within `REACH` positions and the square of its objective, counted from the least of all to the best of
    the position, until nothing changes. If two are equal, the better one is shown, then the first.

    Args:
        positions: `(n, 2)`, not negative.
        looks: `(n, num_features)`.
    """
    order = np.argsort(-objective, kind="stable")
    candidates: dict[tuple[int, int], list[int]] = {}
    for row in order.tolist():
        candidates.setdefault((int(positions[row, 0]), int(positions[row, 1])), []).append(row)
    shown = {position: rows[0] for position, rows in candidates.items()}
    least = objective.min(initial=np.inf)
    around = range(-REACH, REACH + 1)
    for _ in range(_NUM_SWEEPS):
        has_changed = False
        for (column, row), rows in sorted(candidates.items()):
            near = [(column + i, row + j) for i in around for j in around if (i or j) and (column + i, row + j) in shown]
            if len(rows) == 1 or not near:
                continue
            theirs = looks[[shown[position] for position in near]]
            distance = np.linalg.norm(looks[rows][:, None] - theirs, axis=2).min(axis=1)
            above = objective[rows] - least
            chosen = rows[int(np.argmax(distance * (above / max(above[0], np.finfo(float).tiny)) ** 2))]
            has_changed |= chosen != shown[column, row]
            shown[column, row] = chosen
        if not has_changed:
            break
    return np.sort(np.fromiter(shown.values(), np.int64))
