"""Draws the pictures in docs: contact sheet and page of the shipped run of domain colouring, and a poster's pictures of shapes.

python docs/pictures.py                     # makes the runs first; needs Chromium, and Playwright of the extra `test`
python docs/pictures.py COLORING SHAPES     # of two runs that there are
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image, ImageOps
from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
QUALITY = 82  # of JPEG
WINDOW = {"width": 1280, "height": 860}
SHAPES_WIDTH = 720
SHAPES_ROWS = 2  # of the poster's, which has three pictures in a row
RANK = 40  # of the cell whose scores the page shows: the best lie at the edge


def main(coloring: Path, shapes: Path) -> None:
    draw_shapes(shapes)
    draw_coloring(coloring)


def draw_shapes(run: Path) -> None:
    """The poster without its margins and its text, cut below the first rows."""
    subprocess.run(["evo", "plot", run, "--plot", "poster"], check=True)
    poster = Image.open(run / "plots" / "poster.png").convert("RGB")
    left, top, right, _ = ImageOps.invert(poster).getbbox()
    poster = poster.crop((left, top, right, top + (right - left) * SHAPES_ROWS // 3))
    poster.thumbnail((SHAPES_WIDTH, SHAPES_WIDTH))
    poster.save(HERE / "shapes.jpg", quality=QUALITY)


def draw_coloring(run: Path) -> None:
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
        main(*map(Path, sys.argv[1:]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            for config in ("domain_coloring", "shapes"):
                subprocess.run(["evo", "run", config, "--set", f"output.runs={folder}"], check=True)
            main(*(next(Path(folder, task).iterdir()) for task in ("domain_coloring", "shapes")))
