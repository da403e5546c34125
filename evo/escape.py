"""Text that a task, a file or a user wrote, made safe where it goes: one function for each kind of place.

Owns these functions. HTML has `html.escape`, and a page's data is packed JSON.
"""

import re
import unicodedata
from typing import Any


def printable(text: str) -> str:
    """Text for terminals, which the others build on: control characters, and those that hide or turn text, become codes."""
    return "".join(character if character.isprintable() or character in "\n\t" else ascii(character)[1:-1] for character in text)


def comment_lines(text: str, mark: str) -> list[str]:
    """Write lines of a comment, each after a mark, of C, CUDA, PTX or LaTeX: none ends it or goes on in the next."""
    lines = re.sub(r"\?(?=\?)", "? ", printable(text)).replace("*/", "* /").replace("/*", "/ *").splitlines()
    return [f"{mark}{line} .".rstrip() if line.rstrip().endswith("\\") else f"{mark}{line}".rstrip() for line in lines]


def docstring(text: str) -> str:
    """Write a docstring of Python, with its quotes."""
    escaped = printable(text).replace("\\", "\\\\")
    return '"""' + re.sub(r'"(?="|\Z)', r"\"", escaped) + '"""'


def identifier(text: str) -> str:
    """Make a name of Python, C and LaTeX's formulas."""
    name = re.sub(r"[^A-Za-z0-9_]+", "_", text) or "_"
    return f"_{name}" if name[0].isdigit() else name


def greek_letter(letter: str) -> str:
    """The English name of a Greek letter, with a capital for a capital one; empty: it has none."""
    called = re.fullmatch(r"GREEK (SMALL|CAPITAL) LETTER (?:FINAL )?(\w+)", unicodedata.name(letter, ""))
    if not called:
        return ""
    return called[2].lower() if called[1] == "SMALL" else called[2].capitalize()


def cell(value: Any) -> Any:
    """For a spreadsheet, where a text that begins like a formula would be one. Numbers stay."""
    text = printable(value) if isinstance(value, str) else value
    return f"'{text}" if isinstance(value, str) and value[:1] in tuple("=+-@\t\r") else text


def cut(text: str, most: int) -> str:
    """A text of at most this many characters, without its middle if it is longer."""
    return text if len(text) <= most else f"{text[: most // 2]} ... {text[len(text) - most // 2 + 5 :]}"


def echo(message: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Prints a text, however it came about."""
    import click

    click.echo(printable(str(message)), err=err, nl=nl)
