"""The page of a run in a real browser: views that mark the same elite, and the address that holds the view."""

import re

import numpy as np
import pytest

from .browser import COLUMNS, DESKTOP, PHONE, ROWS, button, expect_shown, order_shown

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


def test_an_elite_that_is_looked_at_is_marked_everywhere_with_its_line(visit, archive):
    page = visit("curves")
    hover = ".on"
    cell = page.locator("#graphs .point").last.get_attribute("data-cell")
    button(page, cell).hover()
    assert marked(page, hover) == [cell]
    assert page.locator("#graphs .point.on").count() == 1 and drawn(page, ".front .marks").startswith("M")
    page.locator("h1").hover()
    assert marked(page, hover) == [] and drawn(page, ".front .marks") == ""
    page.locator("#graphs .point").last.focus()
    page.keyboard.press("Shift+Tab")  # to the point before it
    assert marked(page, hover) == [page.locator("#graphs .point").nth(-2).get_attribute("data-cell")]
    for cell in archive("curves")["cell"]:
        page.goto(f"{page.url.partition('#')[0]}#{cell}")
        expect_shown(page, cell)
        if page.locator(".descent a").count():
            break
    ancestor = page.locator(".descent a").first
    ancestor.hover()
    assert marked(page, hover) == [ancestor.get_attribute("data-cell")] and marked(page) == [cell]
    ends = re.findall(r"([\d.]+) ([\d.]+)(?=M|$)", drawn(page, ".ring .descends"))
    assert [float(each) for each in ends[0]] == pytest.approx(middle(cell), abs=0.01)


def test_a_click_beside_the_points_of_the_front_opens_the_elite_there(visit):
    page = visit("curves")
    on_front = page.locator(".front .point").evaluate_all(MARKED)
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    page.evaluate(EVENTS_CAME)  # scrolling hides what is looked at
    box = page.locator(".front").bounding_box()
    dots = [(float(x), float(y)) for x, y in re.findall(r"M([\d.]+) ([\d.]+)h0", drawn(page, ".dots"))]
    line = [(float(x), float(y)) for x, y in re.findall(r"([\d.]+) ([\d.]+)", drawn(page, ".dots + path"))]
    x, y = max(dots, key=lambda dot: min(np.hypot(dot[0] - x, dot[1] - y) for x, y in line))
    at = box["x"] + box["width"] * x / 1000, box["y"] + box["height"] * y / 1000
    page.mouse.move(*at)
    [cell] = marked(page, ".on")
    assert cell not in on_front and f"Cell {cell} " in page.locator("#tip").inner_text()
    page.mouse.click(*at)
    expect_shown(page, cell)


def test_the_address_holds_the_view_and_restores_it(visit, archive):
    from playwright.sync_api import expect

    page, elites = visit("pictures"), archive()
    bare = page.url
    page.get_by_role("button", name="Gallery").click()
    page.locator("#face").select_option("objective")
    page.locator("#sort").select_option("generation")
    page.locator("#direction").click()
    cell = order_shown(page)[0]
    button(page, cell).click()
    expect(page).to_have_url(f"{bare}#{cell}?view=gallery&face=objective&sort=4&descending=false")
    order = order_shown(page)
    generation = dict(zip(elites["cell"].tolist(), elites["generation"].tolist(), strict=True))
    assert [generation[cell] for cell in order] == sorted(generation.values())
    page.reload()
    page.evaluate("begun")
    expect_shown(page, cell)
    assert order_shown(page) == order and marked(page) == [cell]
    assert page.locator("#face").input_value() == "objective"
    assert page.locator("#direction").inner_text() == "Ascending"
    page.locator("#close").click()
    expect(page).to_have_url(f"{bare}#?view=gallery&face=objective&sort=4&descending=false")
    page.evaluate("location.hash = '#nowhere?view=film&face=x&level=9&sort=99&descending=no'")
    expect(page).to_have_url(bare)  # what makes no sense is as usual
    assert len(order_shown(page)) == len(elites["cell"]) and page.locator("#stage").get_attribute("class") == "map"


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE])
def test_a_printed_page_has_the_map_the_charts_and_the_open_elite(visit, archive, viewport):
    page = visit("pictures", viewport=viewport, color_scheme="dark")
    button(page, archive()["cell"][0]).click()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    hidden = ("#toolbar", "#controls", "#hint", "#theme", "#close", ".actions")
    assert not any(page.locator(place).is_visible() for place in hidden)
    boxes = [page.locator(place).bounding_box() for place in ("#stage", "#graphs", "#panel")]
    assert all(100 < box["width"] <= viewport["width"] for box in boxes)
    assert boxes == sorted(boxes, key=lambda box: box["y"]) and boxes[1]["y"] + boxes[1]["height"] <= boxes[2]["y"]
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.pdf().startswith(b"%PDF")
