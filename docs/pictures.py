"""Draws the pictures in docs: contact sheet and page of the shipped run of domain colouring, a poster's pictures of shapes, and
a stack program word by word.

python docs/pictures.py             # makes the runs, a minute; needs Chromium, and Playwright of the extra `test`
python docs/pictures.py --check     # draws them elsewhere, and fails if those in docs are out of date
"""

from __future__ import annotations

import math
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image, ImageChops, ImageOps, ImageStat
from playwright.sync_api import sync_playwright
from stack_program import drawing

ANIMATION = "stack_program.svg"
HERE = Path(__file__).parent
COMPARED = (160, 120)  # size at which pictures are compared
MOST_DISTANCE = 2.0
QUALITY = 82  # of JPEG
WINDOW = {"width": 1280, "height": 860}
SHAPES_WIDTH = 720
SHAPES_ROWS = 2  # of the poster's, which has three pictures in a row
RANK = 40  # of the cell whose scores the page shows: the best lie at the edge


def main(*, check: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for config in ("domain_coloring", "shapes"):
            subprocess.run(["evo", "run", config, "--quiet", "--set", f"output.runs={folder}"], check=True)
        coloring, shapes = (next((folder / config).iterdir()) for config in ("domain_coloring", "shapes"))
        draw_shapes(shapes, folder)
        draw_coloring(coloring, folder)
        (folder / ANIMATION).write_text(drawing())
        drawn = [folder / ANIMATION, *sorted(folder.glob("*.jpg"))]
        if not check:
            for path in drawn:
                shutil.copy(path, HERE)
        elif stale := [path.name for path in drawn if distance(path, HERE / path.name) > MOST_DISTANCE]:
            sys.exit(f"docs: {', '.join(stale)}: out of date: draw them with python docs/pictures.py")


def distance(drawn: Path, kept: Path) -> float:
    """Mean difference of a channel, 0 to 255, where text is too small to be read: fonts differ between machines."""
    if not kept.is_file():
        return math.inf
    if drawn.name == ANIMATION:
        return 0.0 if drawn.read_text() == kept.read_text() else math.inf
    images = [Image.open(path).convert("RGB") for path in (drawn, kept)]
    if images[0].size != images[1].size:
        return math.inf
    difference = ImageChops.difference(*(image.resize(COMPARED, Image.Resampling.BOX) for image in images))
    return sum(ImageStat.Stat(difference).mean) / 3


def draw_shapes(run: Path, folder: Path) -> None:
    """The poster without its margins and its text, cut below the first rows."""
    subprocess.run(["evo", "plot", run, "--plot", "poster"], check=True)
    poster = Image.open(run / "plots" / "poster.png").convert("RGB")
    left, top, right, _ = ImageOps.invert(poster).getbbox()
    poster = poster.crop((left, top, right, top + (right - left) * SHAPES_ROWS // 3))
    poster.thumbnail((SHAPES_WIDTH, SHAPES_WIDTH))
    poster.save(folder / "shapes.jpg", quality=QUALITY)


def draw_coloring(run: Path, folder: Path) -> None:
    Image.open(run / "plots" / "contact_sheet.png").convert("RGB").save(folder / "contact_sheet.jpg", quality=QUALITY)
    page_file = run / "plots" / "page.html"
    subprocess.run(["evo", "page", run, "--output", page_file], check=True)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport=WINDOW, color_scheme="light")
        page.goto(page_file.resolve().as_uri())
        page.evaluate("begun")
        page.locator("#stage .cell").nth(RANK).hover()
        page.screenshot(path=folder / "page.jpg", type="jpeg", quality=QUALITY)
        browser.close()


if __name__ == "__main__":
    main(check=sys.argv[1:] == ["--check"])
