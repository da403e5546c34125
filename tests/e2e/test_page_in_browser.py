"""The page of a run in a real browser: each control by mouse and by keyboard, and what it shows.

Longer than most modules: its tests share one browser and one page, which take seconds to make.
"""

import base64
import csv
import io
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from PIL import Image

from evo.report.lineage import LinesOfDescent
from evo.run.checkpoint import decode_checkpoint
from evo.run.run import Run

from .browser import CASES, CELL, COLUMNS, FACT, IMAGE, LEVELS, NAME, PHONE, ROWS, SCRIPT, button, expect_shown, focused
from .conftest import state_of
from .test_verbs import sections

pytestmark = pytest.mark.slow


def order_shown(page) -> list[str]:
    return [each.get_attribute("data-cell") for each in page.locator(CELL).all()]


def click_at(page, slider, share: float) -> None:
    """Clicks into a slider, at a share of its length."""
    box = slider.bounding_box()
    page.mouse.click(box["x"] + share * box["width"], box["y"] + box["height"] / 2)


def coarse(element) -> np.ndarray:
    """What an element looks like, in 8 x 8 pixels."""
    shot = Image.open(io.BytesIO(element.screenshot())).convert("RGB")
    return np.asarray(shot.resize((8, 8), Image.Resampling.BOX), int)


# ---- what is shown


@pytest.mark.parametrize("case", CASES)
def test_names_of_tasks_and_files_are_shown_and_never_become_markup(visit, archive, case):
    page = visit(case)
    assert page.title() == f"{NAME} · evo"
    assert page.locator("h1").inner_text() == NAME
    assert page.locator("script").count() == 2 and page.locator("body img").count() == 0
    legends = page.locator("legend").evaluate_all("all => all.map((each) => each.firstChild.textContent)")
    assert legends[1:3] == [f"{SCRIPT} ", f"{IMAGE} "]
    assert page.locator(CELL).count() == len(archive(case)["cell"])
    page.locator(CELL).first.click()
    names = page.locator("#cards tbody th").all_text_contents()
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


def test_the_axis_is_as_wide_as_a_map_that_is_wider_than_its_box(visit):
    page = visit("pictures", viewport=PHONE)
    page.locator("#size").fill("96")
    stage, axis = (page.locator(name).bounding_box() for name in ("#stage", "#horizontal"))
    assert stage["width"] == COLUMNS * 96 > PHONE["width"]
    assert (axis["x"], axis["width"]) == (stage["x"], stage["width"])
    middle = page.locator("#horizontal span").filter(has_text=re.compile("^0$")).bounding_box()  # of a range from -1 to 1
    assert middle["x"] + middle["width"] / 2 == pytest.approx(stage["x"] + stage["width"] / 2, abs=1)


def test_a_map_that_is_wider_than_its_box_begins_at_its_left_edge(visit):
    page = visit("pictures", viewport={"width": 200, "height": 844})
    assert page.locator("#scroll").evaluate(
        "({scrollLeft, scrollWidth, clientWidth}) => [scrollLeft, scrollWidth > clientWidth]"
    ) == [0, True]


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
    page.locator("#size").focus()
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
    told = sections(fork_evo("show", hostile_run(case), "--cell", cell).stdout)
    blocks = dict(zip(["expression", "program", "ptx"], page.locator("#cards pre").all_inner_texts(), strict=True))
    (heading,) = [name for name in told if name.startswith("# program")]
    assert blocks["program"].split() == told[heading].split()
    assert blocks["expression"].strip() == told["# expression"].strip()
    assert blocks["ptx"].split() == told["# PTX stub"].split()
    text = page.locator("#cards").inner_text()
    assert f"Rank 2 of {len(elites['cell'])} by objective" in text
    born = re.search(r"generation (\d+), slot (\d+)\noperator +(.*)\nparents +(.*)\nhash +(\w+)", told["# origin"])
    assert f"Made in generation {born[1]} (slot {born[2]}) by {born[3]}" in text and born[5] in text
    for parent in born[4].split(", ") if born[4] != "none" and case != "polygons" else []:
        assert f"cell {parent}" in text


def test_the_best_elites_have_animations_and_all_have_pictures(visit, archive):
    page, elites = visit("pictures"), archive()
    assert len(elites["cell"]) > 20

    def picture() -> Image.Image:
        return Image.open(io.BytesIO(base64.b64decode(page.locator("#cards img").get_attribute("src").partition(",")[2])))

    button(page, elites["cell"][19]).click()
    assert (picture().format, picture().n_frames) == ("WEBP", 30)
    page.locator("#cards .play").click()
    assert (picture().format, picture().n_frames, page.locator("#cards .play").inner_text()) == ("WEBP", 1, "Play")
    page.keyboard.press("Enter")
    assert picture().n_frames == 30
    button(page, elites["cell"][20]).click()
    assert (picture().n_frames, page.locator("#cards .play").count()) == (1, 0)
    still = visit("pictures", reduced_motion="reduce")
    button(still, elites["cell"][0]).click()
    assert still.locator("#cards .play").inner_text() == "Play"


def test_a_thumbnail_is_its_own_elites_picture(visit, archive):
    page, elites = visit("pictures", reduced_motion="reduce"), archive()
    page.locator("#size").fill("96")
    for row in (0, 7, len(elites["cell"]) - 1):
        cell = button(page, elites["cell"][row])
        small = coarse(cell)
        cell.click()
        large = coarse(page.locator("#cards img"))
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


def test_a_scale_says_what_colours_mean(visit, archive):
    page, objective = visit("curves"), archive("curves")["objective"]
    low, high = page.locator("#scale span").all_inner_texts()
    assert float(high) == pytest.approx(objective.max(), rel=1e-5) and low.startswith("objective ")
    assert "rgb(68, 1, 84)" in page.locator("#scale i").evaluate("each => each.style.background")  # viridis begins so
    assert not visit("pictures").locator("#scale").is_visible()


def test_an_open_panel_covers_no_filter_and_upscales_no_picture(visit, archive):
    page = visit("pictures", viewport={"width": 1280, "height": 900})
    button(page, archive()["cell"][0]).click()
    panel = page.locator("#panel").bounding_box()
    for name in ("#controls", "#stage"):
        box = page.locator(name).bounding_box()
        assert box["x"] + box["width"] <= panel["x"]
    page.locator("#cards .play").click()
    assert page.locator("#cards img").evaluate("each => each.decode().then(() => each.width <= each.naturalWidth)")
    with page.expect_download() as download:
        page.get_by_role("link", name="Save picture").click()
    with Image.open(download.value.path()) as saved:
        assert saved.format == "WEBP" and download.value.suggested_filename.endswith(".webp")


def test_the_front_leads_to_its_elites_which_can_be_copied_as_formulas(visit, fork_evo, hostile_run):
    page = visit("curves", permissions=["clipboard-read", "clipboard-write"])
    front = fork_evo("show", hostile_run("curves"), "--front").stdout.splitlines()[1:]
    points = page.locator("#graphs .point")
    assert points.count() == len(front) > 1
    assert page.locator("#graphs h3").first.inner_text() == f"front: objective by {SCRIPT}"
    [chosen] = [line.split()[1] for line in front if line.startswith(">")]
    page.locator("#graphs .point", has_text="chosen").press("Enter")
    expect_shown(page, chosen)
    assert "on the front: " in page.locator("#cards .rank").inner_text()
    for name, begins in (("Python", '"""Cell'), ("LaTeX", "\\begin{aligned}")):
        page.get_by_role("button", name=f"Copy as {name}").click()
        page.locator("#panel-state", has_text="Copied.").wait_for()
        exported = fork_evo("export", hostile_run("curves"), "--cell", chosen, "--format", name.lower()).stdout
        assert page.evaluate("navigator.clipboard.readText()").strip() == exported.strip()
        assert exported.startswith(begins)
    *_, off = (cell for cell in order_shown(page) if cell not in {line.removeprefix(">").split()[0] for line in front})
    button(page, off).click()
    expect_shown(page, off)
    assert page.get_by_role("button", name="Copy as").count() == 0


def test_curves_have_names_and_are_saved_with_them(visit):
    page = visit("curves")
    names = page.locator("#legend span").all_inner_texts()
    assert names[:2] == ["v", "target"]
    page.locator("#face").select_option("objective")
    assert page.locator("#legend span").count() == 0
    page.locator(CELL).first.click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Save picture").click()
    assert download.value.suggested_filename.endswith(".svg")
    root = ET.parse(download.value.path()).getroot()
    namespace = "{http://www.w3.org/2000/svg}"
    assert [each.text for each in root.iter(f"{namespace}text")] == names
    lines = [(each.get("stroke"), each.get("d")) for each in root.iter(f"{namespace}path")]
    assert len({color for color, _ in lines if color}) == 2 and all(d.startswith("M") for _, d in lines)


# ---- what is done


def test_a_copied_program_scores_what_the_page_says(visit, archive, fork_evo, hostile_run, tmp_path):
    page, elites = visit("pictures", permissions=["clipboard-read", "clipboard-write"]), archive()
    for row in (0, 5):
        button(page, elites["cell"][row]).click()
        page.get_by_role("button", name="Copy program").click()
        page.locator("#panel-state", has_text="Copied.").wait_for()
        program = tmp_path / "copied.txt"
        program.write_text(page.evaluate("navigator.clipboard.readText()"))
        told = fork_evo("eval", hostile_run("pictures") / "config.yaml", program)
        assert told.returncode == 0, told.stderr
        objective = re.search(r"^objective +(\S+)$", told.stdout, re.M)[1]
        assert objective == f"{elites['objective'][row]:.6g}"
        assert page.locator("#cards tbody tr").first.inner_text().split() == ["objective", objective]
        with page.expect_download() as download:
            page.get_by_role("link", name="Save program").click()
        assert Path(download.value.path()).read_text() == program.read_text()


def test_arrow_keys_move_through_the_map_and_enter_opens(visit, archive):
    page, elites = visit("pictures"), archive()
    cells = {tuple(map(int, cell.split(","))) for cell in elites["cell"]}
    pairs = [(i, j) for i, j in sorted(cells) if (i + 1, j) in cells and (i, j + 1) in cells]
    i, j = pairs[len(pairs) // 2]
    button(page, f"{i},{j}").focus()
    for key, expected in (("ArrowRight", (i + 1, j)), ("ArrowLeft", (i, j)), ("ArrowUp", (i, j + 1)), ("ArrowDown", (i, j))):
        page.keyboard.press(key)
        assert focused(page) == f"{expected[0]},{expected[1]}"
        assert f"Cell {expected[0]},{expected[1]} " in page.locator("#tip").inner_text()
    assert page.locator(f'{CELL}[tabindex="0"]').count() == 1
    page.keyboard.press("Enter")
    expect_shown(page, f"{i},{j}")
    assert focused(page) != f"{i},{j}"
    page.keyboard.press("Escape")
    expect_shown(page)
    assert focused(page) == f"{i},{j}"
    row = [across for across, up in cells if up == j]
    page.keyboard.press("Home")
    assert focused(page) == f"{min(row)},{j}"
    page.keyboard.press("End")
    assert focused(page) == f"{max(row)},{j}"


def test_views_and_sorting_by_mouse_and_by_keyboard(visit, archive):
    page, elites = visit("pictures"), archive()
    page.get_by_role("button", name="Gallery").click()
    assert order_shown(page) == elites["cell"].tolist()
    page.locator("#direction").click()
    assert [elites["objective"][elites["cell"].tolist().index(cell)] for cell in order_shown(page)] == sorted(elites["objective"])
    page.locator("#direction").press("Space")
    page.locator("#sort").select_option(label=SCRIPT)
    by_mean = elites["cell"][np.argsort(-elites["measures"][:, 0], kind="stable")]
    assert order_shown(page) == by_mean.tolist()
    page.locator("#sort").focus()
    page.keyboard.press("Home")
    assert order_shown(page) == elites["cell"].tolist()
    page.locator(CELL).first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert focused(page) == elites["cell"][2]
    columns = page.evaluate("getComputedStyle(document.getElementById('stage')).gridTemplateColumns.split(' ').length")
    page.keyboard.press("ArrowDown")
    assert focused(page) == elites["cell"][2 + columns]
    page.get_by_role("button", name="Table").focus()
    page.keyboard.press("Enter")
    assert [row.split("\t")[0] for row in page.locator("#tabular tbody tr").all_inner_texts()] == elites["cell"].tolist()
    page.locator('#tabular [data-sort="1"]').click()
    assert page.locator("#tabular tbody th").all_inner_texts() == by_mean.tolist()
    assert page.locator('th:has([data-sort="1"])').get_attribute("aria-sort") == "descending"
    page.keyboard.press("Enter")
    assert page.locator('th:has([data-sort="1"])').get_attribute("aria-sort") == "ascending"
    means = dict(zip(elites["cell"].tolist(), elites["measures"][:, 0], strict=True))
    assert [means[cell] for cell in page.locator("#tabular tbody th").all_inner_texts()] == sorted(means.values())
    page.locator("#tabular tbody a").first.focus()
    page.keyboard.press("Enter")
    lowest = page.locator("#tabular tbody a").first.inner_text()
    expect_shown(page, lowest)
    page.locator("#close").click()
    assert focused(page) == lowest
    page.get_by_role("button", name="Map").click()
    assert page.locator("#stage").get_attribute("class") == "map"


def test_filters_keep_the_elites_within_their_bounds(visit, archive):
    page, elites = visit("pictures"), archive()
    total = len(elites["cell"])
    at_least = page.get_by_role("slider", name="objective, at least")
    at_least.focus()
    for _ in range(20):
        page.keyboard.press("ArrowRight")
    low, high = elites["objective"].min(), elites["objective"].max()
    bound = low + 20 / 200 * (high - low)
    kept = elites["cell"][elites["objective"] >= bound]
    assert 0 < len(kept) < total
    assert sorted(order_shown(page)) == sorted(kept)
    assert page.locator("#count").inner_text() == f"{len(kept)} of {total} elites"
    click_at(page, page.get_by_role("slider", name=f"{SCRIPT}, at most"), 0.5)
    assert {*order_shown(page)} < {*kept}
    for cell in order_shown(page):
        assert elites["measures"][elites["cell"].tolist().index(cell), 0] < np.median([*elites["measures"][:, 0]]) + 1.0
    page.locator("#reset").click()
    assert len(order_shown(page)) == total
    click_at(page, page.get_by_role("slider", name="generation, at least"), 0.98)
    latest = elites["generation"].max()
    assert sorted(order_shown(page)) == sorted(elites["cell"][elites["generation"] == latest])
    page.locator("#reset").focus()
    page.keyboard.press("Enter")
    assert len(order_shown(page)) == total


def test_search_finds_the_elites_whose_live_code_has_the_instructions(visit, fork_evo, hostile_run):
    page = visit("pictures")
    rows = list(csv.DictReader(io.StringIO(fork_evo("show", hostile_run("pictures"), "--csv").stdout)))
    with_sine = [row for row in rows if "sin(" in row["expression"]]
    assert 0 < len(with_sine) < len(rows)
    page.locator("#search").click()
    page.keyboard.type("SIN")
    assert len(order_shown(page)) == len(with_sine)
    both = [row for row in with_sine if " - " in row["expression"]]
    page.keyboard.type(" sub_ftz")
    assert len(order_shown(page)) == len(both)
    page.locator("#search").fill("nothing")
    assert page.locator("#count").inner_text() == f"0 of {len(rows)} elites"


def test_two_cells_are_compared_side_by_side(visit, archive):
    page, elites = visit("pictures"), archive()
    button(page, elites["cell"][0]).click()
    page.get_by_role("button", name="Compare with").click()
    expect_shown(page)
    assert elites["cell"][0] in page.locator("#comparing").inner_text()
    button(page, elites["cell"][3]).focus()
    page.keyboard.press("Enter")
    expect_shown(page, elites["cell"][0], elites["cell"][3])
    one, two = (page.locator("#cards article").nth(i).bounding_box() for i in (0, 1))
    assert one["y"] == two["y"] and one["x"] + one["width"] <= two["x"]
    first = page.locator("#comparison tbody tr").first.inner_text().split("\t")
    difference = elites["objective"][3] - elites["objective"][0]
    assert -float(first[3].removeprefix("\N{MINUS SIGN}")) == pytest.approx(difference, rel=1e-5)
    page.get_by_role("button", name=f"Take cell {elites['cell'][0]} away").click()
    expect_shown(page, elites["cell"][3])
    page.get_by_role("button", name="Compare with").press("Enter")
    page.get_by_role("button", name="Cancel").click()
    button(page, elites["cell"][1]).click()
    expect_shown(page, elites["cell"][1])


def test_a_cell_chosen_before_the_browser_tells_that_the_panel_closed_stays_shown(visit, archive):
    """A dialog's `close` event comes some time after the call that closes it."""
    page, elites = visit("pictures"), archive()
    button(page, elites["cell"][0]).click()
    compare = page.get_by_role("button", name="Compare with").element_handle()
    button(page, elites["cell"][3]).evaluate("(cell, compare) => { compare.click(); cell.click(); }", compare)
    page.evaluate("() => new Promise((done) => setTimeout(done, 0))")  # the event has come
    expect_shown(page, elites["cell"][0], elites["cell"][3])
    page.get_by_role("button", name=f"Take cell {elites['cell'][0]} away").click()
    expect_shown(page, elites["cell"][3])


def test_origins_lead_to_parents_that_are_still_there(visit, archive):
    page, elites = visit("pictures"), archive()
    born = dict(zip(elites["cell"].tolist(), elites["generation"].tolist(), strict=True))
    numbers = {f"{n // ROWS},{n % ROWS}": n for n in range(COLUMNS * ROWS)}
    names = {n: name for name, n in numbers.items()}
    followed = 0
    for row, cell in enumerate(elites["cell"]):
        parents = {names[n] for n in elites["parents"][row] if n >= 0}
        there = {name for name in parents if born.get(name, born[cell]) < born[cell]}
        page.goto(f"{page.url.partition('#')[0]}#{cell}")
        expect_shown(page, cell)
        links = page.locator("#cards p a[href^='#']")
        assert {text.removeprefix("cell ") for text in links.all_inner_texts()} == there
        if there and not followed:
            parent = links.first.inner_text().removeprefix("cell ")
            links.first.click()
            expect_shown(page, parent)
            page.go_back()
            expect_shown(page, cell)
            followed += 1
    assert followed


def test_an_elites_ancestors_are_shown_with_their_own_pictures(visit, hostile_run):
    page = visit("pictures", reduced_motion="reduce")
    run, _ = Run.view(hostile_run("pictures"))
    lines, cells = LinesOfDescent(run), run.search.elites().cell.tolist()
    by_name = {run.search.layout.cell_name(cell): lines.of(row) for row, cell in enumerate(cells)}
    cell = max(by_name, key=lambda name: len(by_name[name]))
    page.goto(f"{page.url.partition('#')[0]}#{cell}")
    expect_shown(page, cell)
    line, items = by_name[cell], page.locator(".descent li")
    assert 3 < len(line) == items.count() <= 12
    assert f"{len(line)} programs; back to one without parents" in page.locator("#cards").inner_text()
    drawn = run.search.problem.draw(np.stack([each.words for each in line]), 96, 0.0)
    for number, (each, picture) in enumerate(zip(line, drawn, strict=True)):
        lines_of_text = items.nth(number).inner_text().split("\n")
        made = each.operator.removeprefix("none (").removesuffix(")")
        assert lines_of_text[:2] == [f"gen. {each.generation}", made]
        assert float(lines_of_text[2].replace("\N{MINUS SIGN}", "-")) == pytest.approx(each.objective, rel=1e-5)
        expected = np.asarray(Image.fromarray(picture).resize((8, 8), Image.Resampling.BOX), int)
        assert abs(coarse(items.nth(number).locator(".cell")) - expected)[1:-1, 1:-1].mean() < 12
    links = page.locator(".descent a")
    assert page.locator(".descent .past").count() + links.count() + 1 == len(line)
    for name, its_line in by_name.items():
        page.goto(f"{page.url.partition('#')[0]}#{name}")
        expect_shown(page, name)
        if page.locator(".descent a").count():
            ancestor = page.locator(".descent a").first.get_attribute("aria-label").removeprefix("Ancestor in cell ")
            assert any(each.cell == ancestor for each in its_line)
            page.locator(".descent a").first.press("Enter")
            expect_shown(page, ancestor)
            break
    else:
        raise AssertionError("no ancestor is an elite")


def test_size_theme_and_what_cells_show(visit):
    page = visit("pictures", color_scheme="light")
    width = page.locator("#stage").bounding_box()["width"]
    page.locator("#size").focus()
    page.keyboard.press("End")
    assert page.locator("#stage").bounding_box()["width"] == COLUMNS * 192 > width
    click_at(page, page.locator("#size"), 0.3)
    assert page.locator("#stage").bounding_box()["width"] < COLUMNS * 192
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.locator("#theme").select_option("dark")
    dark = page.evaluate(background)
    assert light != dark
    page.locator("#theme").focus()
    page.keyboard.press("Home")
    assert page.evaluate(background) == light
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(background) == dark
    before = page.locator(CELL).first.screenshot()
    page.locator("#face").select_option("objective")
    assert page.locator(CELL).first.screenshot() != before
    page.locator("summary").click()
    assert not page.locator("#search").is_visible()
    page.locator("summary").press("Enter")
    assert page.locator("#search").is_visible()
