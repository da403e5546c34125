"""The page of a run in a real browser: what it shows."""

import base64
import io
import re

import numpy as np
import pytest
from PIL import Image

from evo.run.checkpoint import decode_checkpoint

from .browser import (
    CASES,
    CELL,
    COLUMNS,
    FACT,
    IMAGE,
    LEVELS,
    NAME,
    ROWS,
    SCRIPT,
    button,
    coarse,
    expect_shown,
    focused,
    order_shown,
)
from .conftest import state_of
from .test_verbs import sections

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("case", CASES)
def test_names_of_tasks_and_files_are_shown_and_never_become_markup(visit, archive, case):
    page = visit(case)
    assert page.title() == f"{NAME} · evo"
    assert page.locator("h1").inner_text() == NAME
    assert page.locator("script").count() == 2 and page.locator("body img").count() == 0
    assert page.locator(CELL).count() == len(archive(case)["cell"])
    page.locator(CELL).first.click()
    names = page.locator("#card tbody th").all_text_contents()
    assert {SCRIPT, IMAGE, FACT} <= set(names)
    assert page.locator("script").count() == 2 and page.title() == f"{NAME} · evo"


def test_cells_of_a_grid_lie_where_their_measures_are(visit, archive):
    page = visit("pictures")
    stage = page.locator("#stage").bounding_box()
    for cell in archive()["cell"]:
        i, j = map(int, cell.split(","))
        box = button(page, cell).bounding_box()
        assert box["x"] + box["width"] / 2 == pytest.approx(stage["x"] + (i + 0.5) / COLUMNS * stage["width"], abs=1)
        assert box["y"] + box["height"] / 2 == pytest.approx(stage["y"] + (1 - (j + 0.5) / ROWS) * stage["height"], abs=1)


def test_cells_of_a_cvt_archive_are_the_polygons_around_their_centroids(visit, hostile_run):
    page = visit("polygons")
    run = hostile_run("polygons")
    _, arrays = decode_checkpoint(max((run / "checkpoints").glob("*.ckpt")).read_bytes())
    centroids, cells = arrays["archive.centroids"], set(arrays["elites.cell"].tolist())
    stage = page.locator("#stage").bounding_box()
    rng = np.random.default_rng(1)
    for x, y in rng.uniform(0.01, 0.99, (200, 2)):
        units = (centroids - [-1.0, 0.0]) / 2.0
        distances = np.hypot(*(units - [x, y]).T)
        nearest, next_one = np.argsort(distances)[:2]
        if distances[next_one] - distances[nearest] < 0.02:  # at an edge rounding decides
            continue
        at = [stage["x"] + x * stage["width"], stage["y"] + (1 - y) * stage["height"]]
        hit = page.evaluate("([x, y]) => document.elementFromPoint(x, y).closest('.cell')?.dataset.cell ?? null", at)
        assert hit == (str(nearest) if int(nearest) in cells else None)


def test_hover_and_focus_show_the_scores_of_a_cell(visit, archive):
    page, elites = visit("pictures"), archive()
    cell = elites["cell"][2]
    expected = [f"{float(f'{elites[name][2]:.6g}'):g}" for name in ("objective",)]
    button(page, cell).hover()
    text = page.locator("#tip").inner_text()
    assert f"Cell {cell} · rank 3" in text and all(value in text for value in expected)
    page.locator("h1").hover()
    assert not page.locator("#tip").is_visible()
    page.locator("#direction").focus()
    page.keyboard.press("Tab")  # to the map, which is one stop
    assert focused(page) == elites["cell"][0]
    assert f"Cell {elites['cell'][0]} · rank 1" in page.locator("#tip").inner_text()
    page.keyboard.press("Escape")
    assert not page.locator("#tip").is_visible()


@pytest.mark.parametrize("case", CASES)
def test_the_panel_says_what_evo_show_says(visit, archive, fork_evo, hostile_run, case):
    page, elites = visit(case), archive(case)
    row = 1
    cell = elites["cell"][row]
    button(page, cell).click()
    told = sections(fork_evo("show", hostile_run(case), "--cell", cell, "--ptx").stdout)
    blocks = dict(zip(["expression", "program", "ptx"], page.locator("#card pre").all_inner_texts(), strict=True))
    (heading,) = [name for name in told if name.startswith("# program")]
    assert blocks["program"].split() == told[heading].split()
    assert blocks["expression"].strip() == told["# expression"].strip()
    assert blocks["ptx"].split() == told["# PTX stub"].split()
    text = page.locator("#card").inner_text()
    assert f"Rank 2 of {len(elites['cell'])} by objective" in text
    born = re.search(r"generation (\d+), slot (\d+)\noperator +(.*)\nparents +(.*)\nhash +(\w+)", told["# origin"])
    assert f"Made in generation {born[1]} (slot {born[2]}) by {born[3]}" in text and born[5] in text
    for parent in born[4].split(", ") if born[4] != "none" else []:
        assert parent in text


def test_the_best_elites_have_animations_and_all_have_pictures(visit, archive):
    page, elites = visit("pictures"), archive()
    assert len(elites["cell"]) > 20

    def picture() -> Image.Image:
        return Image.open(io.BytesIO(base64.b64decode(page.locator("#card img").get_attribute("src").partition(",")[2])))

    button(page, elites["cell"][19]).click()
    assert (picture().format, picture().n_frames, page.locator("#card .play").inner_text()) == ("WEBP", 1, "Play")
    page.locator("#card .play").click()
    assert (picture().format, picture().n_frames, page.locator("#card .play").inner_text()) == ("WEBP", 30, "Pause")
    page.keyboard.press("Enter")
    assert picture().n_frames == 1
    button(page, elites["cell"][20]).click()
    assert (picture().n_frames, page.locator("#card .play").count()) == (1, 0)


def test_a_thumbnail_is_its_own_elites_picture(visit, archive):
    page, elites = visit("pictures", reduced_motion="reduce"), archive()
    for row in (0, 7, len(elites["cell"]) - 1):
        cell = button(page, elites["cell"][row])
        small = coarse(cell)
        cell.click()
        large = coarse(page.locator("#card img"))
        page.locator("#close").click()
        inner = np.s_[1:-1, 1:-1]  # the focus has a ring, the large picture round corners
        assert abs(small - large)[inner].mean() < 12


def test_the_map_shows_each_level_of_a_third_measure(visit, hostile_run):
    page, found = visit(LEVELS), state_of(hostile_run(LEVELS)).archive
    places = [(*divmod(number // 2, ROWS), number % 2) for number in found["cell"].tolist()]
    assert len({place[:2] for place in places}) < len(places)  # some levels share a place
    for level, name in enumerate(("third 0 to 0.5", "third 0.5 to 1")):
        page.locator("#level").select_option(label=name)
        assert sorted(order_shown(page)) == sorted(f"{i},{j},{k}" for i, j, k in places if k == level)
    page.locator("#level").select_option(label="best of all")
    assert len(order_shown(page)) == len({place[:2] for place in places})


def test_the_front_leads_to_its_elites(visit, fork_evo, hostile_run):
    page = visit("curves")
    front = fork_evo("show", hostile_run("curves"), "--front").stdout.splitlines()[1:]
    points = page.locator("#graphs .point")
    assert points.count() == len(front) > 1
    assert page.locator("#graphs h3").first.inner_text() == f"front: objective by {SCRIPT}"
    [chosen] = [line.split()[1] for line in front if line.startswith(">")]
    page.locator("#graphs .point", has_text="chosen").press("Enter")
    expect_shown(page, chosen)
    assert "on the front: " in page.locator("#card .rank").inner_text()


def test_curves_have_names(visit):
    page = visit("curves")
    names = page.locator("#legend span").all_inner_texts()
    assert names[:2] == ["v", "target"]
    page.locator("#face").select_option("objective")
    assert page.locator("#legend span").count() == 0
