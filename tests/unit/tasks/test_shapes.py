"""tasks/shapes: outlines lie where fields are 0 whatever their scale, shapes cover each other, shadows fall down to the right."""

import numpy as np
import pytest

from evo.errors import UserError
from evo.shipped import shipped
from evo.task import Programs
from evo.tasks.folder import load_task

SIZE = 128
PAPER, LOW, MIDDLE, HIGH = np.array([[0, 0, 0], [100, 50, 25], [200, 100, 50], [250, 240, 30]], np.uint8)
COLOURS = [bytes(colour).hex() for colour in (PAPER, LOW, MIDDLE, HIGH)]
WHITE = ["ffffff", *COLOURS[1:]]
PROGRAMS = Programs(num_instructions=np.zeros(0, np.int32))


def task_of(**options):
    return load_task(shipped("tasks")["shapes"], options)


def fields(points, low, middle, high):
    """Outputs of one program whose fields are functions of x and y; None: a shape nowhere."""
    x, y = points["x"].astype(np.float64), points["y"].astype(np.float64)
    values = [np.ones_like(x) if field is None else field(x, y) for field in (low, middle, high)]
    return {name: np.float32(value)[None] for name, value in zip(("low", "middle", "high"), values, strict=True)}


def drawn(low=None, middle=None, high=None, colours=COLOURS):
    """The picture, `(SIZE, SIZE, 3)`, as float."""
    task = task_of(colours=colours)
    (picture,) = task.picture(fields(task.picture_points(SIZE, 0.0), low, middle, high), SIZE)
    return picture.astype(float)


def scored(low=None, middle=None, high=None):
    task = task_of()
    return task.score(fields(task.points(), low, middle, high), PROGRAMS)


def disc(x, y):
    return np.hypot(x, y) - 1


def place(x, y):
    """Row and column of a point."""
    return int((1 - (y + 1.146) / 3) * SIZE), int((x + 1.5) / 3 * SIZE)


def test_a_shape_is_where_its_field_is_below_0():
    picture = drawn(middle=disc)
    assert (picture[place(0, 0)] == MIDDLE).all() and (picture[place(-1.4, 1.7)] == PAPER).all()
    covered = (picture.max(axis=2) > 100).mean()
    assert covered == pytest.approx(np.pi / 9, abs=0.01)  # of a plane 3 wide
    assert scored(middle=disc).measures[0, 2] == pytest.approx(1 - np.pi / 9, abs=0.01)


@pytest.mark.parametrize("scale", [0.01, 1000.0])
def test_the_outline_its_rim_and_its_shadow_are_as_wide_whatever_the_fields_scale(scale):
    once, scaled = (drawn(middle=lambda x, y, by=by: by * disc(x, y), colours=WHITE) for by in (1.0, scale))
    assert np.abs(scaled - once).mean() < 0.5 and np.abs(scaled - once).max() < 25


def test_what_is_higher_covers_what_is_lower():
    everywhere = {"low": lambda x, y: -1 - 0 * x, "middle": lambda x, y: disc(x, y) + 0.2, "high": lambda x, y: disc(x, y) + 0.6}
    picture = drawn(**everywhere)
    assert (picture[place(0, 0)] == HIGH).all()
    assert (picture[place(-0.6, 0)] == MIDDLE).all()
    assert (picture[place(-1.4, 1.7)] == LOW).all()


def test_mirror_images_are_symmetric_and_what_is_not_finite_is_no_picture():
    mirrored = scored(lambda x, y: y, disc, lambda x, y: np.abs(x) - 0.2)
    sloping = scored(lambda x, y: y - x, lambda x, y: disc(x - 0.5, y), lambda x, y: x + 0.5 * y)
    assert mirrored.measures[0, 0] > 0.9 > 0.5 > sloping.measures[0, 0]
    assert mirrored.objective[0] > 0
    assert np.isnan(scored(lambda x, y: np.where(x > 1, np.inf, x), disc).objective[0])


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"size": 60}, "task_options: .*60.*power of two"),
        ({"colours": ["ffffff"] * 3}, "task_options.colours: .*: must be four of six hexadecimal digits"),
        ({"colours": ["ffffff"] * 3 + ["red"]}, "task_options.colours: .*'red'"),
        ({"colours": [1, 2, 3, 4]}, "task_options.colours: .*: must be four"),
    ],
)
def test_wrong_options_are_refused(options, reason):
    with pytest.raises(UserError, match=reason):
        task_of(**options)
