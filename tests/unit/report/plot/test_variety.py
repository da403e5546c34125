"""evo.report.plot.variety: what pictures look like, and which of several to show."""

import numpy as np
import pytest

from evo.report.plot.variety import CENTRES, NUM_ORIENTATIONS, NUM_REGIONS, NUM_STRUCTURE, features, most_varied

SIZE = 64


def waves(cycles_a_pixel, degrees, inside=True):
    """A grey picture of plane waves that run at this angle, where `inside`."""
    x, y = np.meshgrid(np.arange(SIZE), np.arange(SIZE))
    phase = 2 * np.pi * cycles_a_pixel * (x * np.cos(np.radians(degrees)) + y * np.sin(np.radians(degrees)))
    grey = 127.5 + 100 * np.where(inside, np.sin(phase), 0)
    return np.repeat(grey[..., None], 3, axis=-1).astype(np.uint8)


def structure(pictures):
    shape = (len(pictures), len(CENTRES), NUM_ORIENTATIONS, NUM_REGIONS, NUM_REGIONS)
    return features(np.stack(pictures))[:, :NUM_STRUCTURE].reshape(shape)


@pytest.mark.parametrize("scale", range(3))
@pytest.mark.parametrize("orientation", range(6))
def test_waves_are_strongest_in_the_filter_of_their_scale_and_orientation(scale, orientation):
    [energies] = structure([waves((1 / 4, 1 / 8, 1 / 16)[scale], 30 * orientation)]).mean(axis=(3, 4))
    assert np.unravel_index(np.argmax(energies), energies.shape) == (scale, orientation)


def test_colours_are_the_means_of_luminance_and_opponent_colours_in_each_region():
    picture = np.zeros((1, 8, 8, 3), np.uint8)
    picture[0, :2, 2:4] = 255, 102, 51  # the second region
    picture[0, 6:, 6:] = 0, 255, 0  # the last one
    colours = features(picture)[0, NUM_STRUCTURE:].reshape(3, 16)
    np.testing.assert_allclose(colours[:, 1], [0.299 + 0.587 * 0.4 + 0.114 * 0.2, 0.6, 0.5])
    np.testing.assert_allclose(colours[:, 15], [0.587, -1.0, 0.5])
    np.testing.assert_array_equal(np.delete(colours, [1, 15], axis=1), 0)


def test_brightness_is_no_structure_and_a_turned_picture_is_farther_than_a_shifted_one():
    flat = np.full((SIZE, SIZE, 3), 90, np.uint8)
    picture = waves(1 / 8, 30)
    dark, shifted, turned = structure([flat, np.roll(picture, 3, axis=1), waves(1 / 8, 90)]).reshape(3, -1)
    [own] = structure([picture]).reshape(1, -1)
    assert abs(dark).max() < 1e-6
    assert np.linalg.norm(own - turned) > 5 * np.linalg.norm(own - shifted)


def shown(rows):
    """Rows that are shown, of (column, row, objective, look)."""
    places, objective, looks = np.array([row[:2] for row in rows]), np.array([row[2] for row in rows]), [[row[3]] for row in rows]
    return most_varied(places, objective, np.array(looks, float)).tolist()


def test_neighbours_show_what_differs_if_it_is_nearly_as_good():
    alike = [(0, 0, 0.9, 1.0), (1, 0, 0.9, 1.1), (5, 5, 0.0, 0.0)]
    assert shown([*alike, (1, 0, 0.8, 5.0)]) == [0, 2, 3]
    assert shown([*alike, (1, 0, 0.05, 5.0)]) == [0, 1, 2], "far worse"
    assert shown([*alike, (1, 0, 0.9, 1.1)]) == [0, 1, 2], "of equals the first"


def test_objectives_count_from_the_least_of_all():
    rows = [(0, 0, 0.9, 1.0), (1, 0, 0.9, 1.1), (1, 0, 0.8, 5.0), (5, 5, 0.0, 0.0)]
    assert shown([(i, j, 100 * objective - 1000, look) for i, j, objective, look in rows]) == shown(rows) == [0, 2, 3]


def test_equal_objectives_are_no_error():
    assert len(shown([(0, 0, -1.0, 0.0), (0, 0, -1.0, 2.0), (1, 1, -1.0, 0.0)])) == 2
    assert most_varied(np.zeros((0, 2), int), np.zeros(0), np.zeros((0, 3))).tolist() == []
