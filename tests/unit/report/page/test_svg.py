"""evo.report.page.svg: matplotlib's figures without styles of their own, in the page's colours."""

from xml.etree import ElementTree as ET

from matplotlib.figure import Figure

from evo.report.page.svg import inline_svg

NAMESPACE = "{http://www.w3.org/2000/svg}"


def figure() -> Figure:
    made = Figure(figsize=(4, 3))
    axes = made.subplots()
    axes.plot([1, 2, 4], [3, 1, 2], color="#31688e")
    axes.set_title("a < b & c")
    return made


def test_an_inline_figure_has_attributes_in_place_of_styles():
    root = ET.fromstring(inline_svg(figure(), 'the "title"', {"#31688e": "var(--accent)"}))
    elements = list(root.iter())
    assert not [each for each in elements if "style" in each.attrib or each.tag in (f"{NAMESPACE}style", f"{NAMESPACE}metadata")]
    assert (root.get("role"), root.get("aria-label")) == ("img", 'the "title"')
    assert root.get("width") is None and root.get("viewBox") == "0 0 288 216"
    lines = [each for each in elements if each.get("stroke") == "var(--accent)"]
    assert len(lines) == 1 and lines[0].get("fill") == "none" and lines[0].get("stroke-width") == "1.5"
    texts = {each.text: each for each in elements if each.tag == f"{NAMESPACE}text"}
    assert texts["a < b & c"].get("font-size") == "12px"
    assert not [each for each in elements if "#000000" in each.attrib.values()]
