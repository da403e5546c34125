"""The page of a run in a real browser: each control by mouse and by keyboard, and what it does."""

import re

import numpy as np
import pytest

from evo.report.elites import OPERATOR_MEANINGS

from .browser import CELL, SCRIPT, button, expect_shown, focused, order_shown

pytestmark = pytest.mark.slow


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
        assert page.locator("#card tbody tr").first.inner_text().split() == ["objective", objective]


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


def test_colours_follow_the_browsers_scheme_and_the_face_of_cells_is_chosen(visit):
    page = visit("pictures", color_scheme="light")
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(background) != light
    before = page.locator(CELL).first.screenshot()
    page.locator("#face").select_option("objective")
    assert page.locator(CELL).first.screenshot() != before
