"""The loops over pixels, which numba compiles.

Owns the arithmetic of single pixels and the order of every sum. Knows nothing of points, of programs or of good pictures.

Each inner loop runs along a line of pixels, which the compiler turns into vectors. Sums are taken for each column, then over the
columns in order, so their bits depend neither on the width of the machine's vectors nor on the other pictures of the batch.
Nothing here calls a library but for sqrt, which rounds correctly.
"""

from __future__ import annotations

import numpy as np

from .compiled import compiled

BLOCK = 4  # pixels: side of the blocks in which a gradient's orientation is taken
REGION = 2  # blocks: side of the regions over which structure is spread
NUM_LUMINANCE_LEVELS = 32
ALONG = np.float32(0.17157288)  # tan(pi / 8)^2: an edge lies along an axis if it turns from it by less than pi / 8
TINY = 1e-12
# What `summarize` computes: means of luminance y and of the opponent colours a = red - green and b = (red + green) / 2 - blue,
# sums of products of their differences from the mean, the number of edges, sums over blocks, sums over regions, and the number of
# edges along the row or column that has most.
SUMS = (
    *("mean", "yy", "mean_a", "mean_b", "aa", "bb", "ab", "edges"),
    *("energy", "oriented", "amplitude", "twice_real", "twice_imaginary", "fourfold_real", "fourfold_imaginary"),
    *("region_amplitude", "region_energy", "seam"),
)

_ZERO, _HALF, _ONE, _TWO = np.float32(0.0), np.float32(0.5), np.float32(1.0), np.float32(2.0)
_THREE_HALVES, _QUARTER_OF_255 = np.float32(1.5), np.float32(0.25 * 255.0)
_LUMA_RED, _LUMA_GREEN, _LUMA_BLUE = np.float32(0.299), np.float32(0.587), np.float32(0.114)  # ITU-R BT.601
# A hair less than the number of levels: 1.0, or a rounding error beyond it, belongs to the top level.
_LEVELS = np.float32(NUM_LUMINANCE_LEVELS * (1.0 - 1e-6))
_WHITE = np.float32(1e30)  # squared magnitude beyond which everything is white; keeps infinities and NaN out of what follows
_SMALLEST = np.finfo(np.float32).tiny
# Minimax fit of (6 / pi) atan(r) = r P(r^2) on [0, 1]: twice an angle, in sixths of a turn; error below 2.3e-5.
_ATAN_0, _ATAN_1, _ATAN_2 = np.float32(1.90960407), np.float32(-0.630835652), np.float32(0.344078898)
_ATAN_3, _ATAN_4 = np.float32(-0.162636623), np.float32(0.0398112237)
# log(1 + r) = r - r^2 / 2 + r^3 P(r) on [sqrt(1/2) - 1, sqrt(2) - 1], from Cephes' logf.
_LOG_0, _LOG_1, _LOG_2 = np.float32(3.3333331174e-1), np.float32(-2.4999993993e-1), np.float32(2.0000714765e-1)
_LOG_3, _LOG_4, _LOG_5 = np.float32(-1.6668057665e-1), np.float32(1.4249322787e-1), np.float32(-1.2420140846e-1)
_LOG_6, _LOG_7, _LOG_8 = np.float32(1.1676998740e-1), np.float32(-1.1514610310e-1), np.float32(7.0376836292e-2)
_LOG_OF_2 = np.float32(0.693147181)
_ROOT_OF_2 = np.float32(1.41421356)
_MANTISSA, _EXPONENT, _EXPONENT_OF_1 = np.int32(0x007FFFFF), np.int32(0x7F800000), np.int32(0x3F800000)
_BITS_OF_2_TO_23, _BIASED_2_TO_23 = np.int32(0x4B000000), np.float32(2.0**23 + 127.0)


@compiled("void(float32[::1], float32[::1], float32, float32, float32[:, ::1])")
def color(f, g, saturation, lightness_scale, rgb):
    """Red, green and blue of f + ig; see `Coloring`."""
    for i in range(f.shape[0]):
        real, imaginary = f[i], g[i]
        square = real * real + imaginary * imaginary
        square = square if square < _WHITE else _WHITE  # NaN too
        magnitude = np.sqrt(square)
        # |angle| in sixths of a turn, from 0 to 3; an arbitrary value in that range where f or g is not finite. The tangent of
        # half the angle to the nearer half of the real axis lies in [0, 1], so no octants are needed.
        tangent = abs(imaginary) / (abs(real) + magnitude + _SMALLEST)
        tangent = tangent if tangent < _ONE else _ONE
        r = tangent * tangent
        angle = (((_ATAN_4 * r + _ATAN_3) * r + _ATAN_2) * r + _ATAN_1) * r + _ATAN_0
        angle = _THREE_HALVES - angle * tangent
        sixths = _THREE_HALVES + (angle if real < _ZERO else -angle)
        # log(1 + 2 |f + ig|)
        grown = magnitude * _TWO + _ONE
        bits = np.float32(grown).view(np.int32)
        exponent = np.int32(((bits & _EXPONENT) >> 23) | _BITS_OF_2_TO_23).view(np.float32) - _BIASED_2_TO_23
        mantissa = np.int32((bits & _MANTISSA) | _EXPONENT_OF_1).view(np.float32)
        exponent = exponent + _ONE if mantissa > _ROOT_OF_2 else exponent
        r = (mantissa * _HALF if mantissa > _ROOT_OF_2 else mantissa) - _ONE
        p = ((((((((_LOG_8 * r + _LOG_7) * r + _LOG_6) * r + _LOG_5) * r + _LOG_4) * r + _LOG_3) * r + _LOG_2) * r) + _LOG_1) * r
        logarithm = (p + _LOG_0) * r * r * r - _HALF * r * r + r + exponent * _LOG_OF_2
        lightness = logarithm * lightness_scale
        lightness = lightness if lightness < _ONE else _ONE
        # Each channel is a trapezoid over the hue. Green and blue mirror each other in the real axis.
        red = _TWO - sixths
        red = red if red > _ZERO else _ZERO
        red = red if red < _ONE else _ONE
        near = sixths if sixths < _ONE else _ONE
        far = sixths - _TWO
        far = far if far > _ZERO else _ZERO
        green = far if imaginary < _ZERO else near
        blue = near if imaginary < _ZERO else far
        other = _ONE - lightness
        chroma = _TWO * saturation * (lightness if lightness < other else other)
        rgb[0, i] = (red - _HALF) * chroma + lightness
        rgb[1, i] = (green - _HALF) * chroma + lightness
        rgb[2, i] = (blue - _HALF) * chroma + lightness


@compiled("void(float32[:, ::1], uint8[:, :, ::1])")
def shrink(samples, picture):
    """The pixels of a square picture, each the mean of two by two of the samples."""
    size = picture.shape[0]
    for row in range(size):
        for column in range(size):
            upper = (2 * row) * (2 * size) + 2 * column
            lower = upper + 2 * size
            for channel in range(3):
                left = samples[channel, upper] + samples[channel, lower]
                right = samples[channel, upper + 1] + samples[channel, lower + 1]
                picture[row, column, channel] = np.uint8((left + right) * _QUARTER_OF_255 + _HALF)


@compiled("void(float32[:, ::1], float32[:, ::1], int64[::1])")
def count_finite(f, g, counts):
    """The number of pixels of each picture where f and g are finite."""
    for picture in range(counts.shape[0]):
        count = 0
        for i in range(f.shape[1]):
            undefined = (f[picture, i] - f[picture, i]) + (g[picture, i] - g[picture, i])
            count += 1 if undefined == _ZERO else 0
        counts[picture] = count


@compiled("void(float32[:, :, ::1], float32[:, ::1], float32, float64[:, :], float64[:, :], float32[:, :, ::1])")
def summarize(rgb, window, edge_energy, sums, histogram, windowed):
    """Sums over each picture, as `SUMS` names them; the histogram of luminance; and luminance minus its mean, tapered."""
    size = window.shape[0]
    num_pixels = size * size
    scale = np.float32(1.0 / num_pixels)
    luminance = np.empty((size, size), np.float32)
    a = np.empty((size, size), np.float32)
    b = np.empty((size, size), np.float32)
    columns = np.empty((4, size), np.float32)
    levels = np.empty((4, NUM_LUMINANCE_LEVELS), np.int32)
    side = size // BLOCK
    gradients = np.empty((4, size), np.float32)
    regions = np.empty(side // REGION, np.float64)
    blocks = np.empty((7, side), np.float64)
    for picture in range(rgb.shape[1]):
        # Luminance, and the opponent colours: red against green, and yellow against blue.
        columns[:] = _ZERO
        for row in range(size):
            start = row * size
            for i in range(size):
                red, green, blue = rgb[0, picture, start + i], rgb[1, picture, start + i], rgb[2, picture, start + i]
                y = red * _LUMA_RED + green * _LUMA_GREEN + blue * _LUMA_BLUE
                red_green = red - green
                yellow_blue = (red + green) * _HALF - blue
                luminance[row, i] = y
                a[row, i] = red_green
                b[row, i] = yellow_blue
                columns[0, i] += y
                columns[1, i] += red_green
                columns[2, i] += yellow_blue
        total = total_a = total_b = 0.0
        for i in range(size):
            total += columns[0, i]
            total_a += columns[1, i]
            total_b += columns[2, i]
        mean, mean_a, mean_b = np.float32(total * scale), np.float32(total_a * scale), np.float32(total_b * scale)

        levels[:] = 0
        for row in range(size):
            for i in range(0, size, 4):  # four histograms, so that equal pixels do not wait for each other
                levels[0, np.int32(luminance[row, i] * _LEVELS)] += 1
                levels[1, np.int32(luminance[row, i + 1] * _LEVELS)] += 1
                levels[2, np.int32(luminance[row, i + 2] * _LEVELS)] += 1
                levels[3, np.int32(luminance[row, i + 3] * _LEVELS)] += 1
        for level in range(NUM_LUMINANCE_LEVELS):
            histogram[picture, level] = levels[0, level] + levels[1, level] + levels[2, level] + levels[3, level]

        columns[:] = _ZERO
        for row in range(size):
            for i in range(size):
                y = luminance[row, i] - mean
                red_green = a[row, i] - mean_a
                yellow_blue = b[row, i] - mean_b
                luminance[row, i] = y
                windowed[picture, row, i] = y * window[row, i]
                columns[0, i] += y * y
                columns[1, i] += red_green * red_green
                columns[2, i] += yellow_blue * yellow_blue
                columns[3, i] += red_green * yellow_blue
        total = total_a = total_b = total_ab = 0.0
        for i in range(size):
            total += columns[0, i]
            total_a += columns[1, i]
            total_b += columns[2, i]
            total_ab += columns[3, i]
        sums[picture, 0], sums[picture, 1] = mean, total
        sums[picture, 2], sums[picture, 3] = mean_a, mean_b
        sums[picture, 4], sums[picture, 5], sums[picture, 6] = total_a, total_b, total_ab

        # Squared gradients over 2 x 2 pixels, so the last row and column have none: energy, real and imaginary part.
        blocks[:] = 0.0
        columns[:] = _ZERO  # of these the first counts edges, the second those along their column
        most_along = _ZERO
        spread = spread_squares = 0.0
        for block_row in range(side):
            gradients[:] = _ZERO
            for row in range(block_row * BLOCK, min((block_row + 1) * BLOCK, size - 1)):
                columns[2] = _ZERO  # edges along this row
                for i in range(size - 1):
                    falling = luminance[row + 1, i + 1] - luminance[row, i]
                    rising = luminance[row, i + 1] - luminance[row + 1, i]
                    across = (falling + rising) * _HALF
                    down = (rising - falling) * _HALF
                    product = across * down
                    energy = across * across + down * down
                    is_edge = _ONE if energy > edge_energy else _ZERO
                    columns[0, i] += is_edge
                    columns[1, i] += is_edge if down * down < ALONG * across * across else _ZERO
                    columns[2, i] += is_edge if across * across < ALONG * down * down else _ZERO
                    gradients[0, i] += energy
                    gradients[1, i] += across * across - down * down
                    gradients[2, i] += product + product
                along = _ZERO
                for i in range(size - 1):
                    along += columns[2, i]
                most_along = along if along > most_along else most_along
            if block_row % REGION == 0:
                regions[:] = 0.0
            for i in range(side):
                j = i * BLOCK
                energy = np.float64((gradients[0, j] + gradients[0, j + 1]) + (gradients[0, j + 2] + gradients[0, j + 3]))
                real = np.float64((gradients[1, j] + gradients[1, j + 1]) + (gradients[1, j + 2] + gradients[1, j + 3]))
                imaginary = np.float64((gradients[2, j] + gradients[2, j + 1]) + (gradients[2, j + 2] + gradients[2, j + 3]))
                oriented = np.sqrt(real * real + imaginary * imaginary)
                amplitude = np.sqrt(energy)
                weight = amplitude / (energy + TINY)
                fourfold = weight / (oriented + TINY)
                blocks[0, i] += energy
                blocks[1, i] += oriented
                blocks[2, i] += amplitude
                # Vectors at twice and four times the angle of a block's gradient, weighted by amplitude and coherence.
                blocks[3, i] += weight * real
                blocks[4, i] += weight * imaginary
                blocks[5, i] += fourfold * (real * real - imaginary * imaginary)
                blocks[6, i] += fourfold * 2.0 * real * imaginary
                regions[i // REGION] += energy
            if block_row % REGION == REGION - 1:
                for i in range(side // REGION):
                    spread += np.sqrt(regions[i])
                    spread_squares += regions[i]
        total = 0.0
        for i in range(size):
            total += columns[0, i]
            most_along = columns[1, i] if columns[1, i] > most_along else most_along
        sums[picture, 7], sums[picture, 17] = total, most_along
        for k in range(7):
            total = 0.0
            for i in range(side):
                total += blocks[k, i]
            sums[picture, 8 + k] = total
        sums[picture, 15], sums[picture, 16] = spread, spread_squares


@compiled("void(float32[:, ::1], int64[::1], int64[::1], float32[::1], float64[:, :])")
def sum_bands(spectrum, order, ends, copies, bands):
    """The power of each band of frequencies: `spectrum` has real and imaginary parts side by side.

    The places of a band lie together in `order`; four sums take them in turn.
    """
    power = np.empty(copies.shape[0], np.float32)
    for picture in range(spectrum.shape[0]):
        for k in range(power.shape[0]):
            real, imaginary = spectrum[picture, 2 * k], spectrum[picture, 2 * k + 1]
            power[k] = (real * real + imaginary * imaginary) * copies[k]
        start = 0
        for band in range(ends.shape[0]):
            end = ends[band]
            sum_0 = sum_1 = sum_2 = sum_3 = _ZERO
            even_end = start + (end - start) // 4 * 4
            for k in range(start, even_end, 4):
                sum_0 += power[order[k]]
                sum_1 += power[order[k + 1]]
                sum_2 += power[order[k + 2]]
                sum_3 += power[order[k + 3]]
            for k in range(even_end, end):
                sum_0 += power[order[k]]
            bands[picture, band] = (np.float64(sum_0) + sum_1) + (np.float64(sum_2) + sum_3)
            start = end
