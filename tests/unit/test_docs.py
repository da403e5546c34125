"""Links and facts of the documentation's pages are held to the code; test_public_api.py has the reference."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from evo.about import DISTRIBUTION
from evo.compile import farm
from evo.evaluate import dask_client
from evo.report.export import sympy_text

REPOSITORY = Path(__file__).parents[2]
CSRC = REPOSITORY / "csrc"
PAGES = sorted(
    [
        *REPOSITORY.glob("*.md"),
        *REPOSITORY.glob("runs/README.md"),
        *REPOSITORY.glob("docs/**/*.md"),
        *REPOSITORY.glob("tasks/**/*.md"),
    ]
)
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def anchors_of(page: Path) -> set[str]:
    """The fragments that GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_relative_links_lead_somewhere():
    links = [(page, link) for page in PAGES for link in re.findall(r"\]\(([^)\s]+)\)", CODE.sub("", page.read_text()))]
    for page, link in links:
        if "://" in link:
            continue
        name, _, fragment = link.partition("#")
        linked = (page.parent / name).resolve() if name else page
        assert linked.exists(), (page, link)
        assert not fragment or fragment in anchors_of(linked), (page, link)


def test_paths_in_a_page_exist():
    """Files of this repository that a page names in full, NAME standing for any. A changelog also names those of the past."""
    for page in PAGES:
        if page.name == "CHANGELOG.md":
            continue
        for span in re.findall(r"`((?:evo|csrc|docs|tests|tasks|configs)/[\w./*]+)`", page.read_text()):
            assert list(REPOSITORY.glob(span.replace("NAME", "*").rstrip("/"))), (page, span)


@pytest.mark.parametrize("notebook", sorted(REPOSITORY.glob("docs/tutorials/*.ipynb")), ids=lambda path: path.name)
def test_notebooks_are_kept_without_what_they_print(notebook):
    cells = json.loads(notebook.read_text())["cells"]
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in cells if cell["cell_type"] == "code")
    assert f"]({notebook.name})" in (notebook.parent / "README.md").read_text()


def test_the_name_and_version_of_pyproject_are_those_that_the_code_and_cmake_say():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    assert project["name"] == DISTRIBUTION
    assert all(f"{DISTRIBUTION}[" in text for text in (farm.INSTALL_FARM, dask_client.INSTALL, sympy_text.INSTALL))
    assert f'set(PACKAGE_VERSION "{project["version"]}")' in (CSRC / "cmake" / "evo-config-version.cmake").read_text()
