"""The page of a run in a real browser: each control by mouse and by keyboard, and what it does."""

import csv
import io
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from evo.report.elites import OPERATOR_MEANINGS
from evo.report.lineage import LinesOfDescent
from evo.run.run import Run

from .browser import CELL, COLUMNS, ROWS, SCRIPT, button, coarse, expect_shown, focused, order_shown

pytestmark = pytest.mark.slow


def click_at(page, slider, share: float) -> None:
    """Clicks into a slider, at a share of its length."""
    box = slider.bounding_box()
    page.mouse.click(box["x"] + share * box["width"], box["y"] + box["height"] / 2)


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
    assert page.locator('#tabular [data-sort="3"]').inner_text() == "number of instructions"
    explained = dict(page.eval_on_selector_all("#tabular abbr", "all => all.map((each) => [each.innerText, each.title])"))
    assert explained and set(explained.items()) <= set(OPERATOR_MEANINGS.items())
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
    by_name = {run.search.layout.cell_name(cell): lines.line(row) for row, cell in enumerate(cells)}
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
