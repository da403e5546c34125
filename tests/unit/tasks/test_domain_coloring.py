"""The domain colouring task: colours, statistics, objective, points and pictures."""

import colorsys
import importlib
import math
from pathlib import Path

import numpy as np
import pytest

from evo.errors import UserError
from evo.pictures import STATISTICS, Coloring, PictureStatistics
from evo.task import Programs
from evo.tasks.answers import point_arrays
from evo.tasks.folder import load_task

FOLDER = Path(__file__).parents[3] / "tasks" / "domain_coloring"
SIZE = 64
LOW, HIGH = -0.75, 2.25
PROGRAMS = Programs(num_instructions=np.zeros(0, np.int32))


@pytest.fixture(scope="module")
def task():
    return load_task(FOLDER, {})


def objective(statistics):
    package = type(load_task(FOLDER, {})).__module__.rpartition(".")[0]
    return importlib.import_module(f"{package}.objective").objective(statistics)


def score(task, f, g):
    return task.score({"f": np.atleast_2d(np.float32(f)), "g": np.atleast_2d(np.float32(g))}, PROGRAMS)


def statistics(*pictures):
    """Statistics of `(size, size, 3)` pictures with values in [0, 1]."""
    return statistics_of(np.float32(np.stack([picture.reshape(-1, 3).T for picture in pictures], axis=1)))


def statistics_of(rgb):
    all_of_them = PictureStatistics(math.isqrt(rgb.shape[2]))
    return all_of_them.statistics(all_of_them.sums(rgb))


def coordinates():
    """Columns and rows of the pixels' centres, in pictures."""
    centre = (np.arange(SIZE) + 0.5) / SIZE
    return np.meshgrid(centre, centre)


def power_law_noise(exponent, seed, shape=(SIZE, SIZE)):
    """Grey noise of power density 1 / f^exponent, with random phases, around 1/2."""
    rng = np.random.default_rng(seed)
    frequency = np.hypot(*np.meshgrid(np.fft.fftfreq(shape[1]), np.fft.fftfreq(shape[0])))
    frequency.flat[0] = np.inf
    noise = np.fft.ifft2(np.fft.fft2(rng.normal(size=shape)) * frequency ** (-exponent / 2)).real
    return np.clip(0.5 + 0.2 * noise / noise.std(), 0, 1)


# Colours


def reference_rgb(f, g, saturation=0.65, pure_magnitude=2.0):
    lightness = min(0.5 * math.log(1 + 2 * math.hypot(f, g)) / math.log(1 + 2 * pure_magnitude), 1.0)
    return colorsys.hls_to_rgb(math.atan2(g, f) / (2 * math.pi) % 1.0, lightness, saturation)


def test_colours_are_hsl_with_the_angle_as_hue_and_log_magnitude_as_lightness():
    rng = np.random.default_rng(1)
    angle, magnitude = rng.uniform(-np.pi, np.pi, 2000), 10.0 ** rng.uniform(-3, 3, 2000)
    f, g = np.float32(magnitude * np.cos(angle)), np.float32(magnitude * np.sin(angle))
    expected = np.array([reference_rgb(*pair) for pair in zip(f.tolist(), g.tolist(), strict=True)])
    np.testing.assert_allclose(Coloring().rgb(f, g).T, expected, atol=3e-5)


@pytest.mark.parametrize("f", [1.0, np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("g", [np.inf, -np.inf, np.nan])
def test_what_is_not_finite_is_white(f, g):
    coloring = Coloring()
    for pair in ((f, g), (g, f)):
        np.testing.assert_array_equal(coloring.rgb(np.float32([pair[0]]), np.float32([pair[1]])), 1.0)


# Statistics


def reference_statistics(picture):
    """The measures of README.md, in NumPy and float64, for one `(size, size, 3)` picture."""
    red, green, blue = (np.float32(picture[..., i]).astype(np.float64) for i in range(3))
    size = len(red)
    luminance = 0.299 * red + 0.587 * green + 0.114 * blue
    share = np.histogram(luminance, bins=32, range=(0.0, 1.0 + 1e-6))[0] / size**2
    a, b = red - green, (red + green) / 2 - blue
    covariance = np.cov(a.ravel(), b.ravel(), bias=True)
    # The gradient over 2 x 2 pixels as a complex number: the mean of both differences along each axis.
    right, down = np.diff(luminance, axis=1), np.diff(luminance, axis=0)
    gradient = (right[1:] + right[:-1]) / 2 - 1j * (down[:, 1:] + down[:, :-1]) / 2
    padded = np.zeros((size, size), complex)
    padded[:-1, :-1] = gradient
    blocks = padded.reshape(size // 4, 4, size // 4, 4)
    squares, energy = (blocks**2).sum(axis=(1, 3)), (abs(blocks) ** 2).sum(axis=(1, 3))
    coherence = abs(squares) / np.maximum(energy, 1e-300)
    unit = squares / np.maximum(abs(squares), 1e-300)
    weight = np.sqrt(energy) * coherence
    amplitude = np.sqrt(energy.reshape(size // 8, 2, size // 8, 2).sum(axis=(1, 3)))
    steepness = np.degrees(np.arctan2(abs(gradient.imag), abs(gradient.real)))  # of the gradient: edges are at right angles to it
    is_edge = abs(gradient) > 5 / size
    along = [(is_edge & (steepness < 22.5)).mean(axis=0).max(), (is_edge & (steepness > 67.5)).mean(axis=1).max()]
    return {
        "brightness": luminance.mean(),
        "contrast": luminance.std(),
        "entropy": -sum(p * math.log2(p) for p in share if p > 0) / 5,
        "coherence": abs(squares).sum() / energy.sum(),
        "anisotropy": abs((weight * unit).sum()) / np.sqrt(energy).sum(),
        "squareness": abs((weight * unit**2).sum()) / np.sqrt(energy).sum(),
        "spread": amplitude.sum() ** 2 / (amplitude.size * (amplitude**2).sum()),
        "seam": max(along),
        "hue_variety": 2 * math.sqrt(np.linalg.det(covariance)) / np.trace(covariance),
        "colourfulness": math.sqrt(np.trace(covariance)) + 0.3 * math.hypot(a.mean(), b.mean()),
        "detail": is_edge.mean(),
        "hue": math.degrees(math.atan2(b.mean(), a.mean())) % 360,
        "orientation": math.degrees(np.angle((weight * unit).sum()) / 2 + math.pi / 2) % 180,
    }


@pytest.mark.parametrize("size", [32, 64, 128])
def test_statistics_are_those_of_the_readme(size):
    rng = np.random.default_rng(17)
    noise = [np.stack([power_law_noise(k, 10 * k + i, (size, size)) for i in range(3)], axis=-1) for k in range(1, 4)]
    pictures = [*noise, rng.random((size, size, 3)) * rng.random(3)]
    measured = statistics(*pictures)
    for number, picture in enumerate(pictures):
        for name, expected in reference_statistics(picture).items():
            # One pixel more or less may lie on an edge, or in another level, where float32 rounds.
            tolerances = {
                "detail": 2 / (size - 1) ** 2,
                "seam": 1 / (size - 1),
                "entropy": 2e-3,
                "orientation": 1e-2,
                "hue": 1e-2,
            }
            found = measured[name][number]
            assert found == pytest.approx(expected, abs=tolerances.get(name, 2e-5)), (name, number)


def test_spectral_deviation_is_the_rms_distance_of_half_octave_bands_from_the_1_over_f_squared_line():
    picture = np.stack([power_law_noise(2.5, seed) for seed in (3, 4, 5)], axis=-1)
    luminance = np.float32(picture).astype(np.float64) @ [0.299, 0.587, 0.114]
    taper = [0.5 - 0.5 * math.cos(2 * math.pi * (i + 0.5) / SIZE) for i in range(SIZE)]
    power = np.abs(np.fft.fft2((luminance - luminance.mean()) * np.outer(taper, taper))) ** 2
    cycles = np.fft.fftfreq(SIZE) * SIZE
    frequency = np.array([[math.hypot(u, v) for u in cycles] for v in cycles])
    octaves = []
    for band in range(1, 10):
        inside = (frequency >= 2 ** (band / 2)) & (frequency < 2 ** ((band + 1) / 2))
        octaves.append(math.log2(power[inside].mean() * frequency[inside].mean() ** 2))
    assert statistics(picture)["spectral_deviation"] == pytest.approx([np.std(octaves)], rel=1e-3)


# Objective

IDEAL = {
    "brightness": 0.5,
    "contrast": 0.2,
    "entropy": 0.9,
    "spectral_deviation": 0.0,
    "coherence": 0.9,
    "anisotropy": 0.1,
    "squareness": 0.1,
    "spread": 0.8,
    "seam": 0.3,
    "hue_variety": 0.8,
    "colourfulness": 0.4,
    "detail": 0.3,
    "hue": 0.0,
    "orientation": 90.0,
    "finite": 1.0,
}


# The factor of a statistic at some values, where all others are ideal.
FACTORS = {
    "spectral_deviation": {1.2: math.exp(-0.5), 2.4: math.exp(-2.0)},
    "coherence": {1 / 3: 0.0, 17 / 30: 0.5},
    "anisotropy": {0.65: 0.5, 1.0: 0.0},
    "squareness": {0.65: 0.5, 1.0: 0.0},
    "spread": {0.2: 0.0, 0.425: 0.5},
    "seam": {0.7: 1.0, 0.85: 0.5, 1.0: 0.0},
    "contrast": {0.0: 0.0, 0.09: 0.5},
    "brightness": {0.1: 0.0, 0.225: 0.5, 0.875: 0.5, 1.0: 0.0},
    "entropy": {0.3: 0.0, 0.575: 0.5},
    "hue_variety": {0.0: 0.3, 0.25: 0.65},
    "colourfulness": {0.0: 1.0},
    "detail": {0.0: 1.0},
    "hue": {180.0: 1.0},
    "orientation": {0.0: 1.0},
    "finite": {0.9: 0.6, 0.75: 0.0},
}


@pytest.mark.parametrize("name", FACTORS)
def test_objective_is_the_product_of_the_factors_in_the_readme(name):
    values = {key: np.full(1 + len(FACTORS[name]), ideal) for key, ideal in IDEAL.items()}
    values[name][1:] = list(FACTORS[name])
    rows = np.array([*zip(*(values[key] for key in STATISTICS), strict=True)], [(key, float) for key in STATISTICS])
    assert objective(rows) == pytest.approx([1.0, *FACTORS[name].values()])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_mostly_non_finite_picture_is_rejected(task, value):
    points = task.points()
    f, g = 3 * np.sin(points["x"] * 3), 3 * np.cos(points["y"] * 4 + points["x"])
    objective = [
        score(task, np.where(np.arange(f.size) < part * f.size, value, f), g).objective[0] for part in (0.01, 0.3, 0.6, 1)
    ]
    assert objective[0] > 0.01
    assert objective[1] == 0.0
    assert np.isnan(objective[2:]).all()


def random_outputs(seed, batch_size):
    """Outputs of all kinds: smooth, rough, huge, tiny, with holes."""
    rng = np.random.default_rng(seed)
    x, y = (axis.ravel() * 4 for axis in coordinates())
    f = np.sin(x * rng.normal(size=(batch_size, 1)) * 3 + y**2) * 10.0 ** rng.uniform(-2, 3, (batch_size, 1))
    g = np.cos(y * rng.normal(size=(batch_size, 1)) * 5 + x) * 10.0 ** rng.uniform(-2, 3, (batch_size, 1))
    f[::5] += rng.normal(size=f[::5].shape)
    f[3::11, ::100] = np.nan
    f, g = np.float32(f), np.float32(g)
    g[::7] = rng.integers(0, 2**32, g[::7].shape, dtype=np.uint32).view(np.float32)
    return f, g


def test_measures_are_those_of_the_option_in_its_order():
    names = ["orientation", "detail", "colourfulness"]
    task = load_task(FOLDER, {"measures": names})
    assert list(task.measures) == names
    f, g = random_outputs(12, 50)
    measures = score(task, f, g).measures
    np.testing.assert_array_equal(measures[:, :0:-1], score(load_task(FOLDER, {}), f, g).measures)
    rising = np.sin(5 * (task.points()["x"] - task.points()["y"]))  # its edges rise from left to right
    assert score(task, rising + 1.5, 0 * rising + 1).measures[0, 0] == pytest.approx(45, abs=2)
    with pytest.raises(UserError, match=r"task_options\.measures: no 'size', these are: colourfulness, detail, hue, orientation"):
        load_task(FOLDER, {"measures": ["size", "detail"]})


def test_points_are_one_a_pixel_and_t_is_the_same_for_all(task):
    points = task.points()
    assert point_arrays(task, points, "points()")[1] == SIZE * SIZE
    assert np.ndim(points["t"]) == 0 and points["t"] == 1.0
    pixel = (HIGH - LOW) / SIZE
    column = np.floor((points["x"] - LOW) / pixel).reshape(SIZE, SIZE)
    row = np.floor((HIGH - points["y"]) / pixel).reshape(SIZE, SIZE)
    np.testing.assert_array_equal(column, np.tile(np.arange(SIZE), (SIZE, 1)))
    np.testing.assert_array_equal(row, np.tile(np.arange(SIZE)[:, None], (1, SIZE)))


# Points and pictures


def test_animation_is_a_loop_that_begins_with_the_scored_time(task):
    times = [task.picture_points(8, t)["t"] for t in (0.0, 0.25, 0.5, 0.75, 1.0)]
    np.testing.assert_allclose(times, [1.0, 1.4, 1.0, 0.6, 1.0], atol=1e-6)


def test_pictures_are_square_and_have_y_upwards():
    task = load_task(FOLDER, {"low": -1.0, "high": 1.0})
    size = 32
    points = task.picture_points(size, 0.0)
    outputs = {"f": 5 * np.stack([points["x"], points["y"]]), "g": 5 * np.stack([points["y"], points["x"]])}
    pictures = task.picture(outputs, size)
    assert pictures.shape == (2, size, size, 3) and pictures.dtype == np.uint8
    middle = size // 2
    for place, hue in (((middle, -1), 0), ((0, middle), 90), ((middle, 0), 180), ((-1, middle), 270)):
        assert abs((colorsys.rgb_to_hls(*(pictures[0][place] / 255.0))[0] * 360 - hue + 180) % 360 - 180) < 6
    assert (pictures[0, middle - 1 : middle + 1, middle - 1 : middle + 1] < 50).all()
    mirrored = pictures[0, ::-1, ::-1].transpose(1, 0, 2)  # in the line x = y
    np.testing.assert_allclose(np.int32(pictures[1]), np.int32(mirrored), atol=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 60}, "size is 60, must be a power of two from 32 to 1024"),
        ({"low": 1.0, "high": 1.0}, "low is 1.0 and high is 1.0"),
        ({"saturation": 2.0}, "saturation is 2.0, must be from 0 to 1"),
        ({"pure_magnitude": 0.0}, "pure_magnitude is 0.0, must be above 0"),
        ({"colour": 1}, "colour"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(UserError, match="task_options") as error:
        load_task(FOLDER, options)
    assert message in str(error.value)
