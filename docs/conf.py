"""The site: `sphinx-build -c docs . site` writes it, `python -m http.server -d site` shows it. It needs `pip install '.[docs]'`.

The repository is the source, so that pages and their links are the same here and on a site of code. README.md is the first page.
"""

import os
from pathlib import Path

from sphinx.application import Sphinx

from evo.about import VERSION

REPOSITORY = Path(__file__).parents[1]

project = "evo"
author = "the authors of evo"
version = release = VERSION
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "README"
include_patterns = ["*.md", "docs/**.md", "docs/tutorials/*.ipynb", "runs/README.md", "tasks/*/README.md"]
default_role = "code"  # docstrings quote code once, as Markdown does
suppress_warnings = ["misc.copy_overwrite"]

myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4
nb_execution_in_temp = True
nb_execution_mode = "cache"  # a notebook runs again when its code has changed
nb_execution_raise_on_error = True
nb_execution_timeout = 300  # seconds, of a cell
nb_merge_streams = True
os.environ["TTY_COMPATIBLE"] = "0"  # commands in notebooks draw no progress bars

autodoc_default_options = {
    "members": True,
    "member-order": "bysource",
    "exclude-members": "set_fit_request, set_predict_request, set_score_request",  # scikit-learn's
}
autodoc_typehints = "none"  # signatures have them
napoleon_google_docstring = True

html_theme = "pydata_sphinx_theme"
html_title = "evo"
html_static_path = ["_static"]
html_css_files = ["evo.css"]
html_search_scorer = str(Path(__file__).parent / "_static" / "scorer.js")
html_context = {"default_mode": "auto"}  # light or dark, as the reader's system says
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "navigation_depth": 2,
    "show_toc_level": 2,
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "footer_end": [],
}
html_sidebars = {"README": []}


# Entries below a page in the site's navigation; sites of code have no use for it, so that pages do not say it themselves.
CONTENTS = {
    "docs/tutorials/README": [
        f"docs/tutorials/{name}" for name in ("formula", "gelu", "int4", "pictures", "controller", "map", "kernel")
    ],
    "README": ["docs/tutorials/README", "docs/guide/README", "docs/results", "docs/api/README", "ARCHITECTURE"],
    "docs/guide/README": [
        *(
            f"docs/guide/{name}"
            for name in ("regression", "regression-migrating", "dynamics", "art", "kernels", "semirings", "research")
        ),
        *(
            f"docs/guide/{name}"
            for name in ("stack-programs", "running", "writing-a-task", "rollouts", "task-kernels", "in-the-loop-learning")
        ),
        *("docs/gpu", "docs/cluster", "docs/farm"),
        *("docs/guide/libraries", "docs/guide/migrating-from-mm-ptx", "docs/examples/README", "docs/examples/dynamics/README"),
        *(f"tasks/{path.name}/README" for path in sorted(REPOSITORY.glob("tasks/*")) if (path / "README.md").exists()),
    ],
    "docs/results": [
        "docs/approximations",
        "docs/exact",
        "docs/examples/approximations/README",
        "docs/regression",
        "docs/benchmarks",
    ],
    "docs/api/README": ["docs/api/python", "docs/api/classes", "docs/api/c", "docs/api/files", "runs/README"],
    "ARCHITECTURE": ["CONTRIBUTING", "CHANGELOG", "SECURITY", "docs/releasing", "docs/licences"],
}


def add_contents(_app: Sphinx, docname: str, source: list[str]) -> None:
    """Adds to a page what stands below it."""
    if docname in CONTENTS:
        source[0] += "\n```{toctree}\n:hidden:\n\n" + "\n".join(f"/{page}" for page in CONTENTS[docname]) + "\n```\n"


def add_front_door(app: Sphinx, error: Exception | None) -> None:
    """A page that servers open by default, and leads to the first one."""
    if not error:
        page = f'<!doctype html><title>evo</title><meta http-equiv="refresh" content="0; url={root_doc}.html">\n'
        (Path(app.outdir) / "index.html").write_text(page)


def setup(app: Sphinx) -> None:
    """Registers what this file adds."""
    app.connect("source-read", add_contents)
    app.connect("build-finished", add_front_door)
