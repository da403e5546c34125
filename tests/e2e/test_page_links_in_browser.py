"""The page of a run in a real browser: views that mark the same elite, and the address that holds its cell."""

import re

import pytest

from .browser import COLUMNS, ROWS, button, expect_shown

pytestmark = pytest.mark.slow
GENERATIONS = 12  # of the runs
EVENTS_CAME = "() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)))"
MARKED = "all => [...new Set(all.map((each) => each.dataset.cell))]"


def marked(page, how: str = "[aria-current]") -> list[str]:
    return page.locator(f"[data-cell]{how}").evaluate_all(MARKED)


def drawn(page, place: str) -> str:
    return page.locator(place).first.get_attribute("d")


def middle(cell: str) -> tuple[float, float]:
    """Of a cell, in the units of the map's ring."""
    i, j = map(int, cell.split(","))
    return 1000 * (i + 0.5) / COLUMNS, 1000 * (1 - (j + 0.5) / ROWS)


def test_an_elite_that_is_opened_anywhere_is_marked_everywhere(visit, archive):
    page, elites = visit("curves"), archive("curves")
    point = page.locator("#graphs .point").first
    cell = point.get_attribute("data-cell")
    point.press("Enter")
    expect_shown(page, cell)
    assert marked(page) == [cell]
    assert point.get_attribute("aria-current") == button(page, cell).get_attribute("aria-current") == "true"
    corners = [float(each) for each in re.findall(r"[\d.]+", drawn(page, ".ring .chosen"))]
    x, y = middle(cell)
    assert min(corners[::2]) < x < max(corners[::2]) and min(corners[1::2]) < y < max(corners[1::2])
    born = elites["generation"][elites["cell"].tolist().index(cell)]
    at = float(drawn(page, "#graphs li:nth-child(2) .marks").removeprefix("M").split()[0])
    assert at == pytest.approx(1000 * born / (GENERATIONS - 1))  # from the end of the first generation on
    page.get_by_role("button", name="Table").click()
    assert page.locator("tr[aria-current] th").all_inner_texts() == [cell]
    page.locator("#close").click()
    page.evaluate(EVENTS_CAME)
    assert marked(page) == [] and drawn(page, "#graphs .marks") == ""


def test_the_address_holds_the_cell_of_the_panel(visit, archive):
    from playwright.sync_api import expect

    page, [first, second, *_] = visit("pictures"), archive()["cell"]
    bare = page.url
    for cell in (first, second):
        button(page, cell).click()
        expect(page).to_have_url(f"{bare}#{cell}")
    page.reload()
    page.evaluate("begun")
    expect_shown(page, second)
    assert marked(page) == [second]
    page.go_back()
    expect_shown(page, first)
    page.evaluate("location.hash = '#nowhere'")
    expect_shown(page)
    expect(page).to_have_url(bare)
