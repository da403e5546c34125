"""What a picture scores by: statistics that natural scenes and works of art share.

Owns objective and measures of RGB pictures. Knows nothing of programs or of complex numbers. The README gives each formula and
its source, under the same names.

kernels.py computes sums over pixels. Here are the tables it needs, the Fourier transform, and the statistics that follow from a
picture's sums. Everything is computed picture by picture in a fixed order, so a picture's bits do not depend on the rest of its
batch. Nothing here may call BLAS.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from . import kernels
from .kernels import BLOCK, NUM_LUMINANCE_LEVELS, REGION, TINY
from .scratch import Scratch

EDGE_SLOPE = 5.0  # an edge: luminance changes faster than from black to white over a fifth of the picture's width
_HISTOGRAM = len(kernels.SUMS)  # the first column of the histogram, and of the bands
_BANDS = _HISTOGRAM + NUM_LUMINANCE_LEVELS


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
    seam: the greatest share of a row or column of pixels that is an edge along it, from 0 to 1.
    hue_variety: roundness of the cloud of opponent colours, from 0 (two-tone) to 1.
    colourfulness: that of Hasler & Suesstrunk, for colours in [0, 1].
    detail: share of the pixels that lie on an edge.
    hue: angle of the mean opponent colour in degrees, from 0 to 360: 0 for more red than green, 90 for more yellow than blue.
    orientation: the main direction of edges in degrees, from 0 to 180: 0 for level ones, 90 for upright ones.
    """

    brightness: np.ndarray
    contrast: np.ndarray
    entropy: np.ndarray
    spectral_deviation: np.ndarray
    coherence: np.ndarray
    anisotropy: np.ndarray
    squareness: np.ndarray
    spread: np.ndarray
    seam: np.ndarray
    hue_variety: np.ndarray
    colourfulness: np.ndarray
    detail: np.ndarray
    hue: np.ndarray
    orientation: np.ndarray

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
            * _ramp(self.seam, 1.0, 0.7)
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
        starts = np.flatnonzero(np.diff(band[order], prepend=0))
        self._band_order = order
        self._band_ends = np.append(starts[1:], len(order))
        self._copies = copies.astype(np.float32)
        num_samples = np.add.reduceat(copies[order], starts)
        mean_frequency = np.add.reduceat(copies[order] * frequency[order], starts) / num_samples
        self._band_whitening = mean_frequency**2 / num_samples  # the power sum of a band -> power density x f^2

    def __call__(self, rgb: np.ndarray) -> Statistics:
        """Statistics of `(3, batch_size, size * size)` float32 pictures with values in [0, 1], rows from the top."""
        return self.statistics(self.sums(rgb, Scratch()))

    def sums(self, rgb: np.ndarray, scratch: Scratch) -> np.ndarray:
        """What `statistics` needs of pictures as above, `(batch_size, num_sums)` float64.

        Columns are `kernels.SUMS`, the levels of the histogram of luminance, and the power of each band.
        """
        from scipy import fft  # late: loading it takes longer than loading the task

        size, batch_size = self._size, rgb.shape[1]
        sums = np.empty((batch_size, _BANDS + len(self._band_ends)))
        windowed = scratch("windowed", (batch_size, size, size))
        edge_energy = np.float32((EDGE_SLOPE / size) ** 2)
        kernels.summarize(rgb, self._window, edge_energy, sums[:, :_HISTOGRAM], sums[:, _HISTOGRAM:_BANDS], windowed)
        spectrum = fft.rfft2(windowed).view(np.float32).reshape(batch_size, -1)
        kernels.sum_bands(spectrum, self._band_order, self._band_ends, self._copies, sums[:, _BANDS:])
        return sums

    def statistics(self, sums: np.ndarray) -> Statistics:
        """Statistics of the pictures that have these sums."""
        size, num_pixels = self._size, self._size**2
        of = dict(zip(kernels.SUMS, sums.T, strict=False))
        share = sums[:, _HISTOGRAM:_BANDS] / num_pixels
        octaves = np.log2(sums[:, _BANDS:] * self._band_whitening + TINY)
        aa, bb, ab = (of[name] / num_pixels for name in ("aa", "bb", "ab"))
        amplitude = of["amplitude"] + TINY
        num_regions = (size // (BLOCK * REGION)) ** 2
        return Statistics(
            brightness=of["mean"],
            contrast=np.sqrt(of["yy"] / num_pixels),
            entropy=-(share * np.log2(np.maximum(share, TINY))).sum(axis=1) / np.log2(NUM_LUMINANCE_LEVELS),
            spectral_deviation=octaves.std(axis=1),
            coherence=of["oriented"] / (of["energy"] + TINY),
            anisotropy=np.hypot(of["twice_real"], of["twice_imaginary"]) / amplitude,
            squareness=np.hypot(of["fourfold_real"], of["fourfold_imaginary"]) / amplitude,
            spread=of["region_amplitude"] ** 2 / (num_regions * of["region_energy"] + TINY),
            seam=of["seam"] / (size - 1),
            hue_variety=2.0 * np.sqrt(np.maximum(aa * bb - ab * ab, 0.0)) / (aa + bb + TINY),
            colourfulness=np.sqrt(aa + bb) + 0.3 * np.hypot(of["mean_a"], of["mean_b"]),
            detail=of["edges"] / (size - 1) ** 2,
            hue=np.degrees(np.arctan2(of["mean_b"], of["mean_a"])) % 360.0,
            orientation=(np.degrees(np.arctan2(of["twice_imaginary"], of["twice_real"])) / 2.0 + 90.0) % 180.0,
        )


def _ramp(value: np.ndarray, zero: float, one: float) -> np.ndarray:
    """0 up to `zero`, 1 from `one`, linear between; `one` may be the smaller."""
    return np.clip((value - zero) / (one - zero), 0.0, 1.0)
