"""Draws docs/contact_sheet.jpg and docs/page.jpg: the contact sheet and the page of the shipped run of domain colouring.

python docs/pictures.py         # makes that run first; needs Chromium, and Playwright of the extra `test`
python docs/pictures.py RUN     # of a run that there is
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
QUALITY = 82  # of JPEG
WINDOW = {"width": 1280, "height": 860}
RANK = 40  # of the cell whose scores the page shows: the best lie at the edge


def main(run: Path) -> None:
    Image.open(run / "plots" / "contact_sheet.png").convert("RGB").save(HERE / "contact_sheet.jpg", quality=QUALITY)
    page_file = run / "plots" / "page.html"
    subprocess.run(["evo", "page", run, "--output", page_file], check=True)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport=WINDOW, color_scheme="light")
        page.goto(page_file.resolve().as_uri())
        page.evaluate("begun")
        page.locator("#stage .cell").nth(RANK).hover()
        page.screenshot(path=HERE / "page.jpg", type="jpeg", quality=QUALITY)
        browser.close()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["evo", "run", "domain_coloring", "--set", f"output.runs={folder}"], check=True)
            main(*Path(folder).glob("*/*"))
