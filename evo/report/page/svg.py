"""Matplotlib's SVG, fit to stand within a page: in the page's colours and font, and without styles of its own.

Owns the translation. A page that allows no inline styles ignores those that matplotlib writes, so they become attributes.
"""

from __future__ import annotations

import io
import re
from xml.etree import ElementTree as ET

from matplotlib import rc_context
from matplotlib.figure import Figure

_SVG = "http://www.w3.org/2000/svg"
_LINK = "http://www.w3.org/1999/xlink"
_COLORS = {"#000000": "currentColor", "#b0b0b0": "currentColor"}
_FONT_SIZE = re.compile(r"([\d.]+)px")


def inline_svg(figure: Figure, title: str, colors: dict[str, str]) -> str:
    """The figure as an `<svg>` element that is as wide as its place.

    Args:
        title: what it shows, for those who do not see it.
        colors: of the figure -> of the page, such as `var(--accent)`; black is the colour of text.
    """
    file = io.BytesIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": title}):
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    root = ET.fromstring(file.getvalue())
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.rpartition("}")[2] in ("metadata", "style"):
                parent.remove(child)
    for element in root.iter():
        for declaration in element.attrib.pop("style", "").split(";"):
            name, _, value = (part.strip() for part in declaration.partition(":"))
            if name == "font":
                element.set("font-size", _FONT_SIZE.search(value)[1])  # type: ignore[index]  # matplotlib gives pixels
            elif name and name != "font-family":  # the page's own
                element.set(name, {**_COLORS, **colors}.get(value, value))
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.set("role", "img")
    root.set("aria-label", title)
    ET.register_namespace("", _SVG)
    ET.register_namespace("xlink", _LINK)
    return ET.tostring(root, encoding="unicode")
