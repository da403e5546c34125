"""Accessibility of a run's page: with a keyboard alone, with a screen reader, on a phone and on paper."""

import pytest

from .browser import DESKTOP, PHONE, button, expect_shown, focused, panel

pytestmark = pytest.mark.slow


def test_every_control_can_be_reached_by_tab_alone(visit, archive):
    page = visit("pictures")
    controls = "button, select, input, summary, a[href], #tabular"
    for opened in (False, True):
        if opened:
            button(page, archive()["cell"][0]).click()
        page.evaluate(
            f"[...document.querySelectorAll('{controls}')].filter((each) => each.checkVisibility() && !each.disabled"
            " && !each.matches('#stage .cell')).forEach((each, i) => (each.dataset.number = i))"
        )
        number = page.locator("[data-number]").count()
        page.evaluate("document.activeElement.blur()")
        reached = set()
        for _ in range(number + 12):  # program, expression and PTX can be scrolled, and so take the focus too
            page.keyboard.press("Tab")
            reached.add(page.evaluate("document.activeElement.dataset.number ?? null"))
        assert reached >= {str(each) for each in range(number)}


@pytest.mark.parametrize(
    ("case", "scheme", "viewport"),
    [("pictures", "light", DESKTOP), ("pictures", "dark", PHONE), ("curves", "dark", DESKTOP), ("curves", "light", PHONE)],
    ids=["pictures", "pictures dark on a phone", "curves dark", "curves on a phone"],
)
def test_axe_finds_no_serious_fault(visit, archive, case, scheme, viewport):
    from axe_playwright_python.sync_playwright import Axe

    page, cells = visit(case, viewport=viewport, color_scheme=scheme, reduced_motion="reduce"), archive(case)["cell"]

    def check(place: str) -> None:
        found = Axe().run(page).response["violations"]
        serious = [each for each in found if each["impact"] in ("serious", "critical")]
        assert not [f"{place}: {each['id']}: {each['nodes'][0]['html'][:200]}" for each in serious]

    for view in ("Map", "Gallery", "Table"):
        page.get_by_role("button", name=view).click()
        check(view)
    page.get_by_role("button", name="Map").click()
    page.evaluate("location.hash = '#" + cells[0] + "'")
    check("panel")


def test_a_phone_shows_all_without_scrolling_sideways(visit, archive):
    page = visit("pictures", viewport=PHONE, has_touch=True, is_mobile=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    cell = archive()["cell"][0]
    button(page, cell).tap()
    box = panel(page).bounding_box()
    assert (box["x"], box["width"]) == (0, PHONE["width"])
    assert page.evaluate("document.querySelector('#panel').scrollWidth") <= PHONE["width"]
    page.keyboard.press("Escape")
    expect_shown(page)
    assert focused(page) == cell
