"""evo.report.plot.film and frames: a film shows the right picture at the right time, in its colours, and fails in one line."""

import sys

import av
import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image, ImageSequence

from evo.cli import main
from evo.config import load_config
from evo.errors import UserError
from evo.report.plot.film import FORMATS, GIF, check_output, write_film
from evo.report.plot.frames import Frames, parse_size
from evo.report.show import read_program
from evo.run.loaded_task import load_problem

WIDTH, HEIGHT, FPS, NUM_FRAMES = 160, 96, 10, 20
COLORS = np.array([(220, 40, 60), (40, 200, 90), (50, 70, 210), (240, 240, 30)], np.uint8)


def quarters(t: float) -> np.ndarray:
    """A picture of four colours, one in each quarter of its width; from the middle of the film on in reverse order."""
    frame = np.empty((HEIGHT, WIDTH, 3), np.uint8)
    for index, color in enumerate(COLORS[::-1] if t >= 0.5 else COLORS):
        frame[:, index * WIDTH // 4 : (index + 1) * WIDTH // 4] = color
    return frame


def write(path, draw) -> None:
    write_film(path, (draw(index / NUM_FRAMES) for index in range(NUM_FRAMES)), [draw(0.0), draw(0.5)], FPS)


def decoded(path) -> list[np.ndarray]:
    """The frames, after a look at size and rate."""
    if path.suffix == ".webp":  # of equal frames it has one; many versions of FFmpeg write such films and do not read them
        frames = []
        with Image.open(path) as film:
            assert (film.size, film.info["loop"]) == ((WIDTH, HEIGHT), 0)
            for frame in ImageSequence.Iterator(film):
                pixels = np.asarray(frame.convert("RGB")).astype(int)
                frames += [pixels] * (film.info["duration"] * FPS // 1000)
        return frames
    with av.open(str(path)) as container:
        video = container.streams.video[0]
        assert (video.width, video.height, video.average_rate) == (WIDTH, HEIGHT, FPS)
        return [frame.to_ndarray(format="rgb24").astype(int) for frame in container.decode(video=0)]


@pytest.fixture(scope="module")
def glass(repository):
    problem = load_problem(load_config(repository / "configs/domain_coloring_smoke.yaml")).here()
    yield problem, read_program(problem, str(repository / "tasks/domain_coloring/programs/glass.txt"))
    problem.close()


@pytest.mark.parametrize("suffix", [*FORMATS, GIF])
def test_a_film_has_the_frames_in_their_colours(tmp_path, suffix):
    path = tmp_path / f"film{suffix}"
    write(path, quarters)
    frames = decoded(path)
    assert len(frames) == NUM_FRAMES
    for index, frame in enumerate(frames):
        wanted = quarters(index / NUM_FRAMES).astype(int)
        inside = np.arange(WIDTH) % (WIDTH // 4)
        inside = (inside > 4) & (inside < WIDTH // 4 - 4)  # chroma is stored at half the resolution
        assert abs(frame - wanted)[:, inside].mean() < 6, f"frame {index}"
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize(("width", "height"), [(300, 300), (333, 150), (150, 333)])
def test_tiles_make_the_picture_that_is_drawn_whole(glass, width, height):
    problem, words = glass
    side, larger = min(width, height), max(width, height)
    [whole] = problem.draw(words[None], side, 0.25)
    with Frames(problem, words, width, height) as frames:
        frame = frames.draw(0.25)
    before = (larger - side) // 2
    middle = frame[:, before : before + side] if width > height else frame[before : before + side]
    np.testing.assert_array_equal(middle, whole)
    assert len(np.unique(frame.reshape(-1, 3), axis=0)) > 1000, "the picture goes on beside its square"


@pytest.mark.parametrize("text", ["1920x", "8x8", "20000x100", "-5x5"])
def test_a_wrong_size_is_refused(text):
    with pytest.raises(UserError, match=f"--size {text}: must be width x height from 16 to 16384 pixels"):
        parse_size(text)


def test_a_wrong_output_is_refused_before_anything_is_drawn(tmp_path, monkeypatch):
    (tmp_path / "folder.mp4").mkdir()
    for name, size, message in (
        ("film.avi", (64, 64), "unknown kind of file '.avi', one of: .mp4, .webm, .webp, .gif, .png"),
        ("none/film.mp4", (64, 64), "no such folder"),
        ("folder.mp4", (64, 64), "exists and is not a file"),
        ("film.mp4", (65, 64), "65x64: .mp4 films need even sides, such as 66x64"),
    ):
        with pytest.raises(UserError, match=message):
            check_output(tmp_path / name, *size)
    check_output(tmp_path / "film.gif", 65, 64)
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(UserError, match=r"such films need PyAV: pip install 'evo-ptx\[film\]'"):
        check_output(tmp_path / "film.mp4", 64, 64)
    check_output(tmp_path / "still.png", 65, 64)
    check_output(tmp_path / "film.gif", 65, 64)
    write(tmp_path / "film.gif", quarters)
    with Image.open(tmp_path / "film.gif") as film:
        assert (film.n_frames, film.info["duration"], film.info["loop"]) == (NUM_FRAMES, 1000 // FPS, 0)


def test_the_command_draws_the_elite_of_a_cell(new_run, tmp_path, monkeypatch):
    # The plane task draws these programs in one colour.
    run = new_run([("1.0", 0.5, (-0.9, 0.1)), ("-1.0", 0.9, (0.9, 1.9))])
    run._save()
    run.close()
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()
    for options, color in (([], (0, 255, 0)), (["--cell", "0,0"], (255, 0, 0))):
        result = runner.invoke(main, ["film", str(run.run_dir.path), "--size", "32", "-o", "still.png", *options])
        assert result.exit_code == 0, result.output
        with Image.open("still.png") as image:
            assert image.size == (32, 32)
            assert image.getpixel((16, 16)) == color
    result = runner.invoke(main, ["film", str(run.run_dir.path), "--size", "32x16", "-o", "still.png"])
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert "draws square pictures only" in result.stderr
