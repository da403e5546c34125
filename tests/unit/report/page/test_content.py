"""evo.report.page.content: what is told of each elite, of its curve (evo.report.page.fits), and what is drawn."""

import base64
import io
import json

import numpy as np
import pytest
from PIL import Image, ImageSequence

from evo.report.page import content, pictures
from evo.report.page.content import run_content
from evo.report.page.pictures import FRAME_MS, NUM_FILMS, NUM_FRAMES
from evo.run.loaded_task import Problem

RED, GREEN, BLUE = "1.0", "-1.0", "0.0"  # fill the plane task's pictures
COLORS = {RED: (255, 0, 0), GREEN: (0, 255, 0), BLUE: (0, 0, 255)}
ELITES = [(RED, 0.25, (-0.9, 0.1)), (GREEN, 0.75, (0.9, 0.1)), (BLUE, 0.5, (0.9, 1.9))]

CURVE = """\
import numpy as np

import evo


class Curve(evo.Task):
    inputs = {"b": "f32", "x": "f32"}
    outputs = {"y": "f32"}
    measures = {"mean": (-1.0, 1.0), "deviation": (0.0, 2.0)}

    def points(self):
        return {"b": np.float32(3.0), "x": np.array([4.0, 0.0, 2.0], np.float32)}

    def targets(self):
        return {"y": np.array([10.0, 0.0, 5.0])}

    def scaling(self, outputs):
        count = len(outputs["y"])
        return {"y": (np.full(count, 1.0), np.full(count, 2.0))}

    def score(self, outputs, programs):
        n = len(programs.num_instructions)
        return evo.Scores(np.zeros(n), np.zeros((n, 2)))
"""


def decoded(text: str) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(text)))


def levels(text: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), "<u2")


def test_elites_come_by_rank_with_their_cells_scores_and_texts(new_run):
    found = run_content(new_run(ELITES))
    assert found["quantities"] == ["objective", "mean", "deviation", "num_instructions", "generation"]
    assert [each["cell"] for each in found["elites"]] == ["5,0", "5,4", "0,0"]  # of 6 x 5 cells
    assert [each["values"] for each in found["elites"]] == [
        [0.75, 0.9, 0.1, 0.0, 0.0],
        [0.5, 0.9, 1.9, 0.0, 0.0],
        [0.25, -0.9, 0.1, 0.0, 0.0],
    ]
    assert [[found["tokens"][i] for i in each["program"]] for each in found["elites"]] == [[GREEN], [BLUE], [RED]]
    assert found["elites"][0]["expression"].strip() == "v = -1"
    assert found["elites"][2]["outline"] == pytest.approx([0, 0, 1 / 6, 0, 1 / 6, 0.2, 0, 0.2], abs=1e-5)
    assert found["counts"]["elites"] == 3 and found["counts"]["cells"] == 30


def test_a_measure_that_is_not_finite_is_null(new_run):
    found = run_content(new_run([(RED, 0.5, (0.1, np.inf))]))
    assert found["elites"][0]["values"][2] is None
    assert json.loads(json.dumps(found, allow_nan=False))["elites"][0]["values"][1] == 0.1


def test_pictures_are_webp_and_thumbnails_lie_in_rows(new_run):
    found = run_content(new_run(ELITES))["pictures"]
    for text, program in zip(found["stills"], (GREEN, BLUE, RED), strict=True):
        image = decoded(text)
        assert image.format == "WEBP" and image.n_frames == 1
        assert np.abs(np.asarray(image.convert("RGB"), int) - COLORS[program]).max() < 12
    atlas = np.asarray(decoded(found["atlas"]).convert("RGB"), int)
    assert found["columns"] == 2 and atlas.shape == (128, 128, 3)
    for (row, column), program in {(0, 0): GREEN, (0, 1): BLUE, (1, 0): RED}.items():
        tile = atlas[64 * row + 8 : 64 * row + 56, 64 * column + 8 : 64 * column + 56]
        assert np.abs(tile - COLORS[program]).max() < 12
    assert [decoded(film).format for film in found["films"]] == ["WEBP"] * 3
    assert decoded(run_content(new_run(ELITES[:1]))["pictures"]["atlas"]).size == (64, 64)


def test_the_twenty_best_are_animated(new_run):
    # Over t their pictures turn from red to green; frames that are the same are one in the file.
    places = [(-0.9 + 0.35 * (i % 6), 0.1 + 0.4 * (i // 6)) for i in range(24)]
    run = new_run([("%t 0.5 sub_ftz_f32", 24.0 - i, place) for i, place in enumerate(places)])
    films = run_content(run)["pictures"]["films"]
    assert len(films) == NUM_FILMS
    film = decoded(films[0])
    colors, duration_ms = [], 0
    for frame in ImageSequence.Iterator(film):
        colors.append(tuple(np.asarray(frame.convert("RGB"))[100, 100] // 200))
        duration_ms += frame.info["duration"]
    assert duration_ms == NUM_FRAMES * FRAME_MS
    assert list(dict.fromkeys(colors)) == [(1, 0, 0), (0, 0, 1), (0, 1, 0)]


def test_of_a_large_archive_the_best_have_texts_and_larger_pictures_and_all_have_small_thumbnails(new_run, monkeypatch):
    drawn = []
    draw = Problem.draw

    def record(self, words, size, t):
        drawn.extend([size] * len(words))
        return draw(self, words, size, t)

    run = new_run(ELITES)
    monkeypatch.setattr(pictures, "NUM_STILLS", 1)
    monkeypatch.setattr(content, "NUM_TEXTS", 1)
    monkeypatch.setattr(pictures, "SIZES", {1: 96})
    monkeypatch.setattr(Problem, "draw", record)
    found = run_content(run)
    assert (found["pictures"]["large"], *decoded(found["pictures"]["stills"][0]).size) == (1, 512, 512)
    assert [len(found["pictures"]["stills"]), *decoded(found["pictures"]["atlas"]).size] == [1, 96, 96]
    assert {size: drawn.count(size) for size in drawn} == {512: 1, 48: 2, 128: 3 * NUM_FRAMES}  # each is drawn once
    assert [each["expression"].strip() for each in found["elites"]] == ["v = -1", "", ""]
    assert [bool(each["ptx"]) for each in found["elites"]] == [True, False, False]
    assert [len(each["program"]) for each in found["elites"]] == [1, 1, 1]


def test_curves_lie_along_the_input_that_varies_and_are_scaled(new_run, make_task):
    task = str(make_task(CURVE))
    found = run_content(new_run([("%x", 1.0, (0.1, 0.1)), ("%b", 0.5, (0.9, 0.1))], {"task": task}))["fits"]
    assert (found["output"], found["input"], found["x"], found["places"]) == ("y", "x", [0.0, 4.0], [0.0, 0.5, 1.0])
    low, high = found["y"]
    assert (low, high) == (-1.5, 11.5)  # 15 % around the target
    for text, values in ((found["target"], [0, 5, 10]), (found["curves"][0], [0, 5, 10]), (found["curves"][1], [5, 5, 5])):
        assert levels(text) / 65534 == pytest.approx((np.array(values) - low) / (high - low), abs=1e-4)


def test_curves_leave_out_what_is_not_finite_and_stay_within_their_picture(new_run, make_task):
    run = new_run([("%x 4.0 sub_ftz_f32 rcp_approx_ftz_f32", 1.0, (0.1, 0.1))], {"task": str(make_task(CURVE))})
    curve = levels(run_content(run)["fits"]["curves"][0])  # 1 / (4 - x) at 0, 2 and 4, scaled to 0, 5 and 10
    assert curve[:2] / 65534 == pytest.approx((np.array([0.0, 5.0]) + 1.5) / 13.0, abs=1e-4)
    assert curve[2] == 65535


def test_of_elites_that_differ_in_a_third_measure_the_map_shows_the_best(new_run, make_task):
    task = CURVE.replace('"deviation": (0.0, 2.0)', '"deviation": (0.0, 2.0), "third": (0.0, 1.0)').replace("(n, 2)", "(n, 3)")
    changes = {"task": str(make_task(task)), "search": {"archive": {"dims": [3, 3, 2]}}}
    elites = [("%x", 1.0, (0.1, 0.1, 0.9)), ("1.0", 2.0, (0.1, 0.1, 0.1)), ("2.0", 0.5, (0.9, 0.1, 0.1))]
    found = run_content(new_run(elites, changes))
    assert (found["map"]["columns"], found["map"]["rows"], len(found["map"]["axes"])) == (3, 3, 2)
    assert [(each["cell"], each["on_map"], each["level"]) for each in found["elites"]] == [
        ("1,0,0", True, 0),
        ("1,0,1", False, 1),
        ("2,0,0", True, 0),
    ]
    assert found["map"]["levels"] == ["third 0 to 0.5", "third 0.5 to 1"]
