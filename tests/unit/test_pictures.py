"""Sums and colours of pictures: same bits at every SIMD level and in every batch. tests/unit/tasks holds the statistics."""

import pickle

import numpy as np
import pytest

from evo.native.picture import NUM_LEVELS
from evo.pictures import FIRST_BAND, SUMS, Coloring, PictureStatistics


def outputs(seed, size, batch_size=9):
    """Outputs of all kinds: smooth, rough, huge, tiny, with holes, and any bits at all."""
    rng = np.random.default_rng(seed)
    x, y = (axis.ravel() for axis in np.meshgrid(*[np.linspace(0, 4, size)] * 2))
    f = np.sin(x * rng.normal(size=(batch_size, 1)) * 3 + y**2) * 10.0 ** rng.uniform(-2, 3, (batch_size, 1))
    g = np.cos(y * rng.normal(size=(batch_size, 1)) * 5 + x) * 10.0 ** rng.uniform(-2, 3, (batch_size, 1))
    f[::4] += rng.normal(size=f[::4].shape)
    f[3, ::100], g[5, ::7], g[6] = np.nan, np.inf, 0.0
    f, g = np.float32(f), np.float32(g)
    g[7] = rng.integers(0, 2**32, g[7].shape, dtype=np.uint32).view(np.float32)
    return f, g


@pytest.mark.parametrize("size", [32, 64, 128])
def test_sums_have_the_same_bits_at_every_level_alone_in_views_and_of_the_picture(size):
    f, g = outputs(1, size)
    coloring = Coloring()
    sums = PictureStatistics(size).sums_of_complex(f, g, coloring)
    assert np.isfinite(sums).all()
    np.testing.assert_array_equal(sums[:, -1], (np.isfinite(f) & np.isfinite(g)).sum(axis=1))
    np.testing.assert_array_equal(sums[:, len(SUMS) : FIRST_BAND].sum(axis=1), size * size)
    together = np.stack([f, g], axis=1)
    for level in range(NUM_LEVELS):
        at_level = PictureStatistics(size, level)
        np.testing.assert_array_equal(at_level.sums_of_complex(together[:, 0], together[:, 1], coloring), sums)
        np.testing.assert_array_equal(at_level.sums_of_complex(f[5:6], g[5:6], coloring), sums[5:6])
        np.testing.assert_array_equal(at_level.sums(coloring.rgb(f, g))[:, :-1], sums[:, :-1])


@pytest.mark.parametrize("size", [32, 64, 128])
def test_bands_have_the_power_of_numpys_transform(size):
    f, g = outputs(2, size)
    rgb = Coloring().rgb(f, g)
    sums = PictureStatistics(size).sums(rgb)
    luminance = np.tensordot([0.299, 0.587, 0.114], np.float64(rgb), 1).reshape(-1, size, size)
    taper = np.sin(np.pi * (np.arange(size) + 0.5) / size) ** 2
    tapered = (luminance - luminance.mean(axis=(1, 2), keepdims=True)) * np.outer(taper, taper)
    power = np.abs(np.fft.fft2(tapered)) ** 2
    squares = np.add.outer(*[(np.fft.fftfreq(size) * size) ** 2] * 2)
    for band in range(sums.shape[1] - FIRST_BAND - 1):
        expected = power[:, (squares >= 2 ** (band + 1)) & (squares < 2 ** (band + 2))].sum(axis=1)
        np.testing.assert_allclose(sums[:, FIRST_BAND + band], expected, rtol=1e-4, atol=1e-7)


def test_statistics_and_colourings_travel_to_other_processes():
    f, g = outputs(3, 32)
    coloring, statistics = Coloring(0.3, 5.0), PictureStatistics(32)
    other_coloring, other_statistics = pickle.loads(pickle.dumps((coloring, statistics)))
    sums = statistics.sums_of_complex(f, g, coloring)
    np.testing.assert_array_equal(other_statistics.sums_of_complex(f, g, other_coloring), sums)
    np.testing.assert_array_equal(other_statistics.statistics(sums), statistics.statistics(sums))


@pytest.mark.parametrize(
    "wrong",
    [(np.zeros((2, 100), np.float32),) * 2, (np.zeros((2, 1024)),) * 2, (np.zeros((2, 1024), "f4"), np.zeros((1, 1024), "f4"))],
)
def test_arrays_of_another_shape_or_type_are_refused(wrong):
    with pytest.raises(ValueError, match=r"expected float32 of shape \(2, 1024\), got"):
        PictureStatistics(32).sums_of_complex(*wrong, Coloring())
    with pytest.raises(ValueError, match="expected 58 sums of each picture, got 3"):
        PictureStatistics(32).statistics(np.zeros((1, 3)))
