"""Looks at the built site in a browser, as a phone and a screen show it: `python docs/check_site.py SITE`.

Code and tables fit their pages (outputs of notebooks scroll), the browser reports no error of the site's own files, pictures are
as bright in the dark, and a search lists the page of changes last. Needs Chromium and Playwright; prints a line for each fault.
"""

import functools
import http.server
import shutil
import sys
import threading
from pathlib import Path

from playwright.sync_api import ConsoleMessage, Page, sync_playwright

WIDTHS = (390, 1440)  # CSS pixels
WORDS = ("resume", "table", "GELU", "sweep", "compile farm")
FAULTS = """() => {
  const isWide = (each) => each.scrollWidth > each.clientWidth + 1;
  const all = (what) => [...document.querySelectorAll(`.bd-article ${what}`)];
  const texts = all(":is(table, pre)").filter((each) => !each.closest(".cell_output"));
  const wide = texts.filter((each) => isWide(each) || isWide(each.parentElement));
  const dim = all("img").filter((each) => getComputedStyle(each).filter !== "none");
  return [
    ...wide.map((each) => `too wide: ${each.innerText.slice(0, 40)}`),
    ...dim.map((each) => `dimmed: ${each.src}`),
    ...(isWide(document.documentElement) ? ["the page is too wide"] : []),
  ];
}"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    def log_message(self, *_: object) -> None:
        """Prints nothing."""


def faults(page: Page, address: str, folder: Path) -> list[str]:
    """A line for each fault of the site that is served at an address, in the size and colours of a page."""
    found: list[str] = []

    def console(line: ConsoleMessage) -> None:
        place = line.location.get("url", "")
        if line.type == "error" and "favicon" not in place and (not place or place.startswith(address)):
            found.append(line.text)

    page.on("console", console)
    page.on("pageerror", lambda error: found.append(str(error)))
    lines = []
    pages = {*folder.rglob("*.html")} - {*folder.glob("_*/**/*"), folder / "index.html"}  # the last leads on to the first page
    for path in sorted(pages):
        page.goto(f"{address}/{path.relative_to(folder)}", wait_until="load")
        found += page.evaluate(FAULTS)
        lines += [f"{path.relative_to(folder)}: {fault!r}" for fault in found]
        found.clear()
    for words in WORDS:
        page.goto(f"{address}/search.html?q={words}")
        page.get_by_role("heading", name="Search Results").wait_for()
        hits = page.eval_on_selector_all("#search-results li > a", "all => all.map((each) => each.pathname)")
        changes = ["/CHANGELOG.html" in each for each in hits]
        if not hits or changes != sorted(changes):
            lines.append(f"search for {words}: {hits}")
    return lines


def main() -> int:
    """Returns the exit code: 1 if there is a fault."""
    folder = Path(sys.argv[1]).resolve()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    lines = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for width in WIDTHS:
            for scheme in ("light", "dark"):
                page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
                lines += [f"{width} {scheme}: {line}" for line in faults(page, f"http://127.0.0.1:{server.server_port}", folder)]
        browser.close()
    print("\n".join(lines) or "the site is as it should be")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
