"""What a picture scores by: statistics that natural scenes and works of art share.

Owns objective and measures of RGB pictures. Knows nothing of programs or of complex numbers. The README gives each formula and
its source, under the same names.

Everything is computed row by row in a fixed order, so that a picture's bits do not depend on the pictures beside it. Nothing here
may call BLAS.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .scratch import Scratch

NUM_LUMINANCE_LEVELS = 32
BLOCK = 4  # pixels: side of the blocks in which a gradient's orientation is taken
REGION = 2  # blocks: side of the regions over which structure is spread
EDGE_SLOPE = 5.0  # an edge: luminance changes faster than from black to white over a fifth of the picture's width
_LUMA = (0.299, 0.587, 0.114)  # ITU-R BT.601
_TINY = 1e-12


@dataclass(frozen=True)
class Statistics:
    """Statistics of a batch of pictures, each `(batch_size,)` float64.

    brightness: mean of luminance.
    contrast: standard deviation of luminance.
    entropy: of the luminance histogram, from 0 to 1.
    spectral_deviation: root mean square distance, in octaves of power, of the radial power spectrum from the 1/f^2 line.
    coherence: how much of the gradients' energy has one orientation within a block, from 0 to 1; 1/3 for white noise.
    anisotropy: how much one orientation prevails in the whole picture, from 0 to 1 (stripes).
    squareness: how much two orthogonal orientations prevail, from 0 to 1 (grids).
    spread: share of the picture that its structure covers, from 0 to 1.
    hue_variety: roundness of the cloud of opponent colours, from 0 (two-tone) to 1.
    colourfulness: that of Hasler & Suesstrunk, for colours in [0, 1].
    detail: share of the pixels that lie on an edge.
    """

    brightness: np.ndarray
    contrast: np.ndarray
    entropy: np.ndarray
    spectral_deviation: np.ndarray
    coherence: np.ndarray
    anisotropy: np.ndarray
    squareness: np.ndarray
    spread: np.ndarray
    hue_variety: np.ndarray
    colourfulness: np.ndarray
    detail: np.ndarray

    def objective(self) -> np.ndarray:
        """`(batch_size,)` float64 in [0, 1]: a product of factors, each 1 over the range of natural scenes and art."""
        return (
            np.exp(-0.5 * (self.spectral_deviation / 1.2) ** 2)
            * _ramp(self.brightness, 0.1, 0.35)
            * _ramp(self.brightness, 1.0, 0.75)
            * _ramp(self.contrast, 0.0, 0.18)
            * _ramp(self.entropy, 0.3, 0.85)
            * _ramp(self.coherence, 1.0 / 3.0, 0.8)
            * _ramp(self.anisotropy, 1.0, 0.3)
            * _ramp(self.squareness, 1.0, 0.3)
            * _ramp(self.spread, 0.2, 0.65)
            * (0.3 + 0.7 * _ramp(self.hue_variety, 0.0, 0.5))
        )


class PictureStatistics:
    """Computes `Statistics` of pictures of `size` x `size` pixels. It holds only tables, so threads may share one."""

    def __init__(self, size: int):
        if size < 32 or size > 1024 or size & (size - 1):
            raise ValueError(f"size is {size}, must be a power of two from 32 to 1024")
        self._size = size
        taper = np.sin(np.pi * (np.arange(size) + 0.5) / size) ** 2  # Hann window, so that the picture's border adds no power
        self._window = np.outer(taper, taper).astype(np.float32)
        self._set_up_bands()

    def _set_up_bands(self) -> None:
        """Half-octave bands of spatial frequency from 2^0.5 cycles a picture to the Nyquist frequency."""
        size = self._size
        rows, columns = np.fft.fftfreq(size, 1 / size)[:, None], np.fft.rfftfreq(size, 1 / size)[None, :]
        frequency = np.hypot(rows, columns).ravel()
        copies = np.broadcast_to(np.where((columns == 0) | (columns == size // 2), 1.0, 2.0), (size, size // 2 + 1)).ravel()
        edges = 2.0 ** np.arange(0.5, np.log2(size / 2) + 0.25, 0.5)
        band = np.digitize(frequency, edges)  # 0: below the first edge
        order = np.argsort(band, kind="stable")
        order = order[(band[order] > 0) & (band[order] < len(edges))]
        self._band_order = order
        self._band_copies = copies[order].astype(np.float32)
        self._band_starts = np.flatnonzero(np.diff(band[order], prepend=0))
        num_samples = np.add.reduceat(copies[order], self._band_starts)
        mean_frequency = np.add.reduceat(copies[order] * frequency[order], self._band_starts) / num_samples
        self._band_whitening = mean_frequency**2 / num_samples  # the power sum of a band -> power density x f^2

    def __call__(self, rgb: np.ndarray, scratch: Scratch | None = None) -> Statistics:
        """Statistics of `(3, batch_size, size * size)` float32 pictures with values in [0, 1], rows from the top."""
        scratch = scratch or Scratch()
        red, green, blue = rgb
        luminance = np.multiply(red, np.float32(_LUMA[0]), out=scratch("luminance", red.shape))
        term = scratch("term", red.shape)
        luminance += np.multiply(green, np.float32(_LUMA[1]), out=term)
        luminance += np.multiply(blue, np.float32(_LUMA[2]), out=term)
        entropy = _entropy(luminance, scratch)
        mean = np.add.reduce(luminance, axis=1, keepdims=True) * np.float32(1.0 / luminance.shape[1])
        luminance -= mean
        variance = np.einsum("ij,ij->i", luminance, luminance).astype(np.float64) / luminance.shape[1]
        hue_variety, colourfulness = _color(red, green, blue, scratch)
        return Statistics(
            brightness=mean[:, 0].astype(np.float64),
            contrast=np.sqrt(variance),
            entropy=entropy,
            spectral_deviation=self._spectral_deviation(luminance, scratch),
            **self._structure(luminance, scratch),
            hue_variety=hue_variety,
            colourfulness=colourfulness,
        )

    def _spectral_deviation(self, luminance: np.ndarray, scratch: Scratch) -> np.ndarray:
        size, batch_size = self._size, len(luminance)
        windowed = scratch("windowed", (batch_size, size, size))
        np.multiply(luminance.reshape(windowed.shape), self._window, out=windowed)
        # With its default norm NumPy transforms in float64; a constant factor makes no difference here.
        spectrum = scratch("spectrum", (batch_size, size, size // 2 + 1), np.complex64)
        np.fft.rfft2(windowed, norm="ortho", out=spectrum)
        # Squares of real and imaginary parts, side by side, then their sum.
        squares = spectrum.view(np.float32).reshape(batch_size, -1, 2)
        squares *= squares
        power = np.add(squares[:, :, 0], squares[:, :, 1], out=scratch("power", squares.shape[:2]))
        power = power.take(self._band_order, axis=1)
        power *= self._band_copies
        bands = np.add.reduceat(power, self._band_starts, axis=1).astype(np.float64)
        octaves = np.log2(bands * self._band_whitening + _TINY)
        return octaves.std(axis=1)

    def _structure(self, luminance: np.ndarray, scratch: Scratch) -> dict[str, np.ndarray]:
        """The statistics of the gradients of luminance."""
        energy, real, imaginary = tensor = self._structure_tensor(luminance, scratch)
        num_gradients = (self._size - 1) ** 2
        detail = np.count_nonzero(energy > np.float32((EDGE_SLOPE / self._size) ** 2), axis=1) / num_gradients
        energy, real, imaginary = _block_sums(tensor, self._size, BLOCK).astype(np.float64)
        oriented = np.hypot(real, imaginary)
        amplitude = np.sqrt(energy)
        total = energy.sum(axis=1) + _TINY
        total_amplitude = amplitude.sum(axis=1) + _TINY
        # Unit vectors at twice and four times the angle of a block's gradient, weighted by amplitude and coherence.
        weight = amplitude / (energy + _TINY)
        twice = np.hypot((weight * real).sum(axis=1), (weight * imaginary).sum(axis=1))
        weight /= oriented + _TINY
        fourfold = np.hypot((weight * (real**2 - imaginary**2)).sum(axis=1), (weight * 2.0 * real * imaginary).sum(axis=1))
        side = self._size // BLOCK
        regions = np.sqrt(_block_sums(energy[None], side, REGION)[0])
        return {
            "detail": detail,
            "coherence": oriented.sum(axis=1) / total,
            "anisotropy": twice / total_amplitude,
            "squareness": fourfold / total_amplitude,
            "spread": regions.sum(axis=1) ** 2 / (regions.shape[1] * (regions**2).sum(axis=1) + _TINY),
        }

    def _structure_tensor(self, luminance: np.ndarray, scratch: Scratch) -> np.ndarray:
        """`(3, batch_size, size * size)`: energy, real and imaginary part of the squared gradient, per pixel step.

        Gradients span 2 x 2 pixels, so the last row and column have none and are zero.
        """
        size, num_pixels = self._size, self._size**2
        # Differences run over the flat picture, which is fastest; those that cross from one line to the next are zeroed.
        step = scratch("step", (len(luminance), num_pixels - 1))
        across, down = scratch("gradient", (2, len(luminance), num_pixels - size - 1))
        np.subtract(luminance[:, 1:], luminance[:, :-1], out=step)
        np.add(step[:, size:], step[:, :-size], out=across)
        np.add(luminance[:, 1:], luminance[:, :-1], out=step)
        np.subtract(step[:, :-size], step[:, size:], out=down)
        across *= np.float32(0.5)
        down *= np.float32(0.5)
        tensor = scratch("tensor", (3, len(luminance), num_pixels))
        tensor[:, :, num_pixels - size :] = 0.0
        energy, real, imaginary = tensor[:, :, : num_pixels - size - 1]
        np.multiply(across, down, out=imaginary)
        imaginary += imaginary
        across *= across
        down *= down
        np.add(across, down, out=energy)
        np.subtract(across, down, out=real)
        tensor[:, :, size - 1 :: size] = 0.0
        return tensor


def _color(red: np.ndarray, green: np.ndarray, blue: np.ndarray, scratch: Scratch) -> tuple[np.ndarray, np.ndarray]:
    """Hue variety and colourfulness."""
    a, b = scratch("opponents", (2, *red.shape))  # red against green, and yellow against blue
    np.subtract(red, green, out=a)
    np.add(red, green, out=b)
    b *= np.float32(0.5)
    b -= blue
    num_pixels = a.shape[1]
    mean_a, mean_b = (np.add.reduce(x, axis=1, keepdims=True) * np.float32(1.0 / num_pixels) for x in (a, b))
    a -= mean_a
    b -= mean_b
    aa, bb, ab = (np.einsum("ij,ij->i", x, y).astype(np.float64) / num_pixels for x, y in ((a, a), (b, b), (a, b)))
    hue_variety = 2.0 * np.sqrt(np.maximum(aa * bb - ab * ab, 0.0)) / (aa + bb + _TINY)
    means = np.hypot(mean_a[:, 0].astype(np.float64), mean_b[:, 0])
    return hue_variety, np.sqrt(aa + bb) + 0.3 * means


def _entropy(luminance: np.ndarray, scratch: Scratch) -> np.ndarray:
    """Entropy of the histogram of luminance, 1 if all levels are equally frequent."""
    levels = NUM_LUMINANCE_LEVELS
    # A hair less than `levels`: 1.0, or a rounding error beyond it, belongs to the top level.
    index = scratch("index", luminance.shape, np.intp)
    np.multiply(luminance, np.float32(levels * (1.0 - 1e-6)), out=index, casting="unsafe")
    index += np.arange(len(luminance))[:, None] * levels
    counts = np.bincount(index.ravel(), minlength=len(luminance) * levels).reshape(-1, levels)
    share = counts / luminance.shape[1]
    return -(share * np.log2(np.maximum(share, _TINY))).sum(axis=1) / np.log2(levels)


def _block_sums(maps: np.ndarray, side: int, block: int) -> np.ndarray:
    """Sums of `(num_maps, batch_size, side * side)` over `block` x `block` cells: `(num_maps, batch_size, (side/block)^2)`."""
    num_maps, batch_size = maps.shape[:2]
    rows = maps.reshape(num_maps, batch_size, side // block, block, side)
    rows = sum((rows[:, :, :, i] for i in range(1, block)), start=rows[:, :, :, 0])
    columns = rows.reshape(num_maps, batch_size, -1, block)
    return sum((columns[..., i] for i in range(1, block)), start=columns[..., 0])


def _ramp(value: np.ndarray, zero: float, one: float) -> np.ndarray:
    """0 up to `zero`, 1 from `one`, linear between; `one` may be the smaller."""
    return np.clip((value - zero) / (one - zero), 0.0, 1.0)
