"""Names of columns: the user's own in texts, and names that registers and code may have.

Owns both ways between them. Knows nothing of tables and searches.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence

from evo.native.stack_ptx import check_name

_QUOTED = re.compile(r"`([^`]+)`")
_WORD = re.compile(r"[^\W\d]\w*")


def input_name(name: str) -> str:
    """The name of an input whose column has this name: letters, digits and underscores, Greek letters in full; empty if none are
    left.
    """
    letters = "".join(_letter(each) for each in unicodedata.normalize("NFKD", name))
    plain = re.sub(r"\W+", "_", letters.encode("ascii", "ignore").decode()).strip("_")
    if not plain:
        return ""
    plain = f"x{plain}" if plain[0].isdigit() else plain
    try:
        check_name(plain)
    except ValueError:  # such as r1, which PTX uses itself
        plain += "_in"
    return plain


def _letter(letter: str) -> str:
    """A letter, or what a Greek one is called."""
    called = re.fullmatch(r"GREEK (SMALL|CAPITAL) LETTER (?:FINAL )?(\w+)", unicodedata.name(letter, ""))
    if not called:
        return letter
    return called[2].lower() if called[1] == "SMALL" else called[2].capitalize()


def identifiers(names: Sequence[str]) -> list[str]:
    """A different name for each column, that a register may have."""
    found: dict[str, None] = {}
    for name in names:
        plain = input_name(str(name)) or "x"
        identifier, number = plain, 2
        while identifier in found:
            identifier, number = f"{plain}_{number}", number + 1
        found[identifier] = None
    return list(found)


def with_identifiers(text: str, names: Mapping[str, str]) -> str:
    """A formula that a user wrote, with the names of inputs in place of the user's own.

    Args:
        names: input -> the user's name of it.

    Raises:
        ValueError: there is no column that a name in backticks says.
    """
    inputs = {unicodedata.normalize("NFKC", own): name for name, own in names.items()}

    def quoted(found: re.Match[str]) -> str:
        if found[1] not in names.values():
            raise ValueError(f"no column '{found[1]}', the columns are: {', '.join(names.values())}")
        return inputs[unicodedata.normalize("NFKC", found[1])]

    def word(found: re.Match[str]) -> str:
        return inputs.get(unicodedata.normalize("NFKC", found[0]), found[0])

    parts = re.split(r"(`[^`]+`)", text)
    return "".join(_QUOTED.sub(quoted, part) if part.startswith("`") else _WORD.sub(word, part) for part in parts)
