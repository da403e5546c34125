"""evo watch in a real browser: the page follows its run, and who reads it stays where they are."""

import shutil
import signal

import pytest

from .conftest import num_rows

pytestmark = pytest.mark.slow


def test_the_page_follows_the_run_and_keeps_the_readers_place(
    visit,
    hostile_run,
    start_evo,
    fork_evo,
    tmp_path,
):
    from playwright.sync_api import expect

    run = tmp_path / "run"
    shutil.copytree(hostile_run("pictures"), run)
    watch = start_evo("watch", run)
    watch.wait_until(lambda: watch.stdout.count("\n") == 2)
    page = visit(watch.stdout.splitlines()[1])
    expect(page.locator("#live")).to_have_text("generation 12")
    page.get_by_role("button", name="Gallery").click()
    page.locator("#sort").select_option("generation")
    page.locator("#stage .cell").first.click()
    cell = page.locator("#card h2").inner_text()
    scrolled = page.evaluate("(scrollTo(0, 120), scrollY)")

    def go_on(generations: int) -> None:
        task = run.parent / "task"
        if not task.exists():
            shutil.copytree(hostile_run("pictures").parents[2] / "task", task)
        told = fork_evo("resume", run, "--set", f"stop.generations={generations}", "--set", "output.plots=[]")
        assert told.returncode == 0, told.stderr

    go_on(20)
    assert num_rows(run) == 20
    expect(page.locator("#live")).to_have_text("generation 20")
    facts = page.locator("#facts div").all_inner_texts()
    assert any("20" in text and "generations" in text for text in facts)
    assert page.get_by_role("button", name="Gallery").get_attribute("aria-pressed") == "true"
    assert page.locator("#sort").input_value() == str(page.locator("#sort option", has_text="generation").get_attribute("value"))
    assert page.locator("#card h2").inner_text() == cell and page.locator("#panel").is_visible()
    assert page.evaluate("scrollY") == scrolled
    assert page.evaluate("document.querySelector('#panel').contains(document.activeElement)")

    watch.signal(signal.SIGINT)
    assert watch.wait() == 0
