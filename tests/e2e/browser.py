"""Fixtures of pages in a browser: a browser, runs of a task that names things as an attacker would, and visits to pages.

The browser is the system's Chromium, driven by Playwright. Without it such tests are skipped; in CI they fail.
"""

import io
import shutil
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image

NAME = "a<b>&amp;<script>document.title='hit'<"
SCRIPT = "mean</script><script>document.title='hit'</script>"
IMAGE = "<img src=x onerror=\"document.title='hit'\">\u2028&amp;{{data}}"
FACT = "<svg onload=\"document.title='hit'\">"
TASK = f"""\
import numpy as np

import evo

SIDE = 8


class Hostile(evo.Task):
    inputs = {{"t": "f32", "x": "f32", "y": "f32"}}
    outputs = {{"v": "f32"}}
    measures = {{{SCRIPT!r}: (-1.0, 1.0), {IMAGE!r}: (0.0, 2.0)}}

    def points(self):
        return self.grid(SIDE, 0.5)

    def score(self, outputs, programs):
        v = outputs["v"].astype(np.float64)
        objective = 1.0 / (1.0 + ((v - self.saddle()) ** 2).mean(axis=1))
        objective[~np.isfinite(v).all(axis=1)] = np.nan
        return evo.Scores(objective, np.stack([v.mean(axis=1), v.std(axis=1)], axis=1))

    def report_points(self):
        return self.points()

    def report(self, outputs):
        return {{{FACT!r}: outputs["v"].max(axis=1)}}

    def saddle(self):
        points = self.points()
        return points["t"] + points["x"] * points["y"]

    def grid(self, size, t):
        y, x = np.meshgrid(np.linspace(-1, 1, size), np.linspace(-1, 1, size), indexing="ij")
        return {{"t": np.float32(t), "x": x.ravel().astype(np.float32), "y": y.ravel().astype(np.float32)}}
"""
PICTURES = """
    def picture_points(self, size, t):
        return self.grid(size, t)

    def picture(self, outputs, size):
        v = np.nan_to_num(outputs["v"].reshape(-1, size, size))
        return (127.5 * (1.0 + np.tanh(np.stack([v, -v, 3.0 * v], axis=-1)))).astype(np.uint8)
"""
CURVES = """
    complexity = next(iter(measures))

    def targets(self):
        return {"v": self.saddle()}
"""
COLUMNS, ROWS = 9, 6
GRID = {"dims": [COLUMNS, ROWS]}
THIRD = """
    measures = {**measures, "third": (0.0, 1.0)}
    of_two = score

    def score(self, outputs, programs):
        found = self.of_two(outputs, programs)
        return evo.Scores(found.objective, np.column_stack([found.measures, found.measures[:, 0] > 0.0]))
"""
# By what cells show or are: what the task has beside its scores, and the archive.
CASES = {
    "pictures": (PICTURES, GRID),
    "polygons": (PICTURES, {"type": "CVTArchive", "centroids": 40}),
    "curves": (CURVES, GRID),
    "swatches": ("", GRID),
}
LEVELS = "levels"  # the case of three measures
INSTRUCTIONS = ["add_ftz_f32", "sub_ftz_f32", "mul_ftz_f32", "rcp_approx_ftz_f32", "sin_approx_ftz_f32"]
CELL = "#stage .cell"
LIMIT_MS = 300_000  # far beyond what any step takes, on a busy machine too: it ends a test that hangs
DESKTOP = {"width": 1440, "height": 1200}
PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="session")
def hostile_run(fork_server, tmp_path_factory):
    """Finished runs of the hostile task with their pages, by case. Their folders' name is hostile too; none may be changed."""
    made = {}

    def run(case: str) -> Path:
        if case not in made:
            folder = tmp_path_factory.mktemp(case)
            more, archive = {**CASES, LEVELS: (CURVES + THIRD, {"dims": [COLUMNS, ROWS, 2]})}[case]
            (folder / "task").mkdir()
            (folder / "task" / "task.py").write_text(TASK + more)
            config = {
                "task": "task",
                "seed": 3,
                "program": {"max_length": 24, "vocabulary": {"instructions": INSTRUCTIONS}},
                "search": {"archive": archive, "batch_size": 64, "initial": {"num_programs": 96, "max_length": 16}},
                "evaluation": {"backend": "cpu", "executor": "threads"},
                "stop": {"generations": 12},
                "output": {"plots": ["page"]},
            }
            (folder / f"{NAME}.yaml").write_text(yaml.safe_dump(config))
            code = fork_server.wait(fork_server.start(["run", f"{NAME}.yaml"], folder, {}, folder / "out", folder / "err"))
            assert code == 0, (folder / "err").read_text()
            (made[case],) = (folder / "runs").glob("*/*")
        return made[case]

    return run


@pytest.fixture(scope="session")
def browser():
    """A headless Chromium."""
    program = shutil.which("chromium")
    lacking = [name for name, found in (("chromium", program), ("playwright", find_spec("playwright"))) if not found]
    if lacking:
        pytest.skip(f"{', '.join(lacking)} is not installed")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=LIMIT_MS)
    with sync_playwright() as driver:
        options = ["--no-sandbox"]  # a container's root has no sandbox
        started = driver.chromium.launch(executable_path=program, args=options, timeout=LIMIT_MS)
        yield started
        started.close()


@pytest.fixture
def visit(browser, hostile_run):
    """Opens the page of a case, or of an address, in a context of its own.

    Afterwards nothing may have been asked for but that page, and nothing said in the console.
    """
    contexts, asked, said = [], [], []

    def open_page(case: str, *, viewport: dict | None = None, **options):
        address = case if "://" in case else (hostile_run(case) / "plots" / "page.html").as_uri()
        context = browser.new_context(viewport=viewport or DESKTOP, **options)
        contexts.append(context)
        context.set_default_timeout(LIMIT_MS)
        page = context.new_page()
        page.on("request", lambda request: asked.append((request.url, address)))
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(address)
        page.evaluate("begun")  # all is drawn
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not said
    strangers = {url for url, address in asked if url.partition("#")[0] != address and not url.startswith(("data:", "blob:"))}
    assert not strangers


@pytest.fixture
def archive(hostile_run):
    """The elites of a grid as a table: `cell` is a name, and the best comes first."""

    from .conftest import state_of  # which has these fixtures, and so needs this module first

    def read(case: str = "pictures") -> dict[str, np.ndarray]:
        found = state_of(hostile_run(case)).archive
        order = np.argsort(-found["objective"], kind="stable")
        cells = [str(number) if case == "polygons" else f"{number // ROWS},{number % ROWS}" for number in found["cell"]]
        return {name: array[order] for name, array in found.items()} | {"cell": np.array(cells)[order]}

    return read


def button(page, cell: str):
    return page.locator(f'{CELL}[data-cell="{cell}"]')


def panel(page):
    return page.locator("#panel")


def expect_shown(page, *cells: str) -> None:
    """The panel shows these cells, or will at once; none: it is closed."""
    from playwright.sync_api import expect

    expect(panel(page)).to_be_visible(visible=bool(cells))
    if cells:
        expect(page.locator("#card h2")).to_have_text([f"Cell {cell}" for cell in cells])


def focused(page) -> str:
    """The element with the focus: its id, cell, view or text."""
    return page.evaluate(
        "(({id, dataset, textContent}) => id || dataset.cell || dataset.view || dataset.bound || dataset.sort || textContent)"
        "(document.activeElement)"
    )


def order_shown(page) -> list[str]:
    return [each.get_attribute("data-cell") for each in page.locator(CELL).all()]


def coarse(element) -> np.ndarray:
    """A picture of an element, in 8 x 8 pixels."""
    shot = Image.open(io.BytesIO(element.screenshot())).convert("RGB")
    return np.asarray(shot.resize((8, 8), Image.Resampling.BOX), int)
