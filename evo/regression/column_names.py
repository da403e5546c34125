"""Names of columns: the user's own in texts, and names that registers and code may have.

Owns both ways between them. Knows nothing of tables and searches.
"""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Mapping, Sequence

from evo.escape import greek_letter
from evo.native.stack_ptx import check_name

_QUOTED = re.compile(r"`([^`]+)`")
_WORD = re.compile(r"[^\W\d²³][^\W²³]*")  # x² is the square of x


def input_name(name: str) -> str:
    """The name of an input whose column has this name: letters, digits and underscores, Greek letters in full; empty if none are
    left.
    """
    letters = "".join(greek_letter(character) or character for character in unicodedata.normalize("NFKD", name))
    plain = re.sub(r"\W+", "_", letters.encode("ascii", "ignore").decode()).strip("_")
    if not plain:
        return ""
    plain = f"x{plain}" if plain[0].isdigit() else f"{plain}_in" if keyword.iskeyword(plain) else plain
    try:
        check_name(plain)
    except ValueError:  # such as r1, which PTX uses itself
        plain += "_in"
    return plain


def identifiers(names: Sequence[str]) -> list[str]:
    """A different name for each column, that a register may have."""
    taken: dict[str, None] = {}
    for name in names:
        plain = input_name(str(name)) or "x"
        free, number = plain, 2
        while free in taken:
            free, number = f"{plain}_{number}", number + 1
        taken[free] = None
    return list(taken)


def printed_name(name: object) -> str:
    """A column's name in texts: on one line."""
    return re.sub(r"\s*[\r\n\t]+\s*", " ", str(name))


def symbol_names(names: Mapping[str, str]) -> dict[str, str]:
    """A different name for the symbol of each input: the user's own, or the input's if that is not an identifier.

    Args:
        names: input -> the user's name of it.
    """
    from evo.language.printer import identifier  # loaded only if needed

    symbols = {
        name: user_name for name, user_name in names.items() if user_name.isidentifier() and not keyword.iskeyword(user_name)
    }
    taken = set(symbols.values())
    return symbols | {name: identifier(name, taken) for name in names if name not in symbols}


def with_identifiers(text: str, names: Mapping[str, str]) -> str:
    """A formula that a user wrote, with the names of inputs in place of the user's own.

    Args:
        names: input -> the user's name of it.

    Raises:
        ValueError: there is no column that a name in backticks says.
    """
    exact = {unicodedata.normalize("NFC", user_name): name for name, user_name in names.items()}
    inputs = {unicodedata.normalize("NFKC", user_name): name for name, user_name in names.items()}

    def quoted(match: re.Match[str]) -> str:
        user_name = printed_name(match[1])
        if user_name not in exact:
            raise ValueError(f"no column '{user_name}', the columns are: {', '.join(names.values())}")
        return exact[user_name]

    def word(match: re.Match[str]) -> str:
        called = unicodedata.normalize("NFKC", match[0])
        return match[0] if keyword.iskeyword(called) else exact.get(match[0], inputs.get(called, match[0]))

    parts = re.split(r"(`[^`]+`)", unicodedata.normalize("NFC", text))
    return "".join(_QUOTED.sub(quoted, part) if part.startswith("`") else _WORD.sub(word, part) for part in parts)
