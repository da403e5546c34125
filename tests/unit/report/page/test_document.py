"""evo.report.page.document: whatever data says stays data, and a browser may do no more than the page needs."""

import base64
import gzip
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest

from evo.report.page.document import html_of, packed

NASTY = [
    "</script><script>alert(1)</script>",
    "<!-- <script>",
    "]]>&lt;&amp;\u2028\u2029\x00",
    "{{data}} {{script}} \\1 \\g<0>",
    "\ud800 lone surrogate",
]


class Elements(HTMLParser):
    """Every start tag with its attributes, and the text of scripts and styles."""

    def __init__(self, text: str):
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.is_over = False
        if tag in ("script", "style", "title"):
            self.texts.append((tag, ""))

    def handle_data(self, data):
        if self.texts and self.tags[-1][0] == self.texts[-1][0] and not self.is_over:
            self.texts[-1] = (self.texts[-1][0], self.texts[-1][1] + data)

    def handle_endtag(self, tag):
        self.is_over = True


def page(name: str = "run", **options) -> Elements:
    return Elements(html_of({"name": name, "elites": [name]}, **options).decode())


def policy_of(elements: Elements) -> dict[str, list[str]]:
    (content,) = [a["content"] for tag, a in elements.tags if tag == "meta" and a.get("http-equiv") == "Content-Security-Policy"]
    return {part.split()[0]: part.split()[1:] for part in content.split(";")}


@pytest.mark.parametrize("name", NASTY)
def test_data_that_looks_like_markup_is_read_back_and_adds_no_element(name):
    plain, nasty = page(), page(name)
    assert [tag for tag, _ in nasty.tags] == [tag for tag, _ in plain.tags]
    data = json.loads(gzip.decompress(base64.b64decode(nasty.texts[-2][1], validate=True)))
    assert data["name"] == name and data["elites"] == [name]


def test_numbers_that_json_does_not_have_are_refused():
    with pytest.raises(ValueError, match="Out of range"):
        packed([float("nan")])


def test_only_the_pages_own_script_and_style_may_run_and_nobody_is_asked():
    elements = page()
    policy = policy_of(elements)
    assert policy["default-src"] == ["'none'"] and policy["connect-src"] == ["'none'"]
    for tag, directive in (("script", "script-src"), ("style", "style-src")):
        text = [text for name, text in elements.texts if name == tag][-1]
        assert policy[directive] == [f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"]
    assert "unsafe" not in str(policy)
    assert policy_of(page(live="1"))["connect-src"] == ["'self'"]


def test_the_page_names_no_other_place():
    text = html_of({"name": "run"}).decode()
    places = re.findall(r"""(?:src|href|action)=["']?([^"'\s>]*)""", text.partition("<script>")[0])
    assert places == ["data:,"]
    assert set(re.findall(r"https?://[\w./]+", text)) <= {"http://www.w3.org/2000/svg"}
