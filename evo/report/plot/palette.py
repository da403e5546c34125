"""Pictures in 256 colours.

Owns the choice of a palette for the frames of an animation, and their dithering. Knows nothing of files.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image

_NUM_PIXELS = 80_000  # that colours are chosen by: a million take 20 times as long for an error that is 1 % smaller
_DITHER = 12  # levels of a colour, from the darkest to the lightest pixel of the pattern


class Palette:
    """256 colours for frames of one size, the same in all, so that colours do not flicker.

    Gradients are dithered by a fixed pattern (Bayer 1973) of the strength of a palette's step: it hides their steps, stays where
    it is and is hardly seen, unlike the noise of error diffusion.

    Args:
        sampled: `(height, width, 3)` uint8 frames that have the colours of all frames.
    """

    def __init__(self, sampled: Sequence[NDArray[np.uint8]]):
        step = math.ceil(math.sqrt(sum(frame[..., 0].size for frame in sampled) / _NUM_PIXELS))
        sample = np.concatenate([frame[::step, ::step] for frame in sampled], axis=1)
        self._palette = Image.fromarray(sample).quantize(256, Image.Quantize.MEDIANCUT, kmeans=8)
        bayer = np.zeros((1, 1))
        for _ in range(3):
            bayer = np.block([[4 * bayer, 4 * bayer + 2], [4 * bayer + 3, 4 * bayer + 1]])
        height, width = sampled[0].shape[:2]
        tiled = np.tile((bayer + 0.5) / bayer.size - 0.5, (-(-height // 8), -(-width // 8)))[:height, :width, None]
        self._pattern = np.round(_DITHER * tiled).astype(np.int16)

    def __call__(self, frame: NDArray[np.uint8]) -> Image.Image:
        """The frame with a palette."""
        dithered = Image.fromarray(np.clip(frame + self._pattern, 0, 255).astype(np.uint8))
        return dithered.quantize(palette=self._palette, dither=Image.Dither.NONE)
