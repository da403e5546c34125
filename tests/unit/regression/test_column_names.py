"""Names of columns in formulas that users write."""

import pytest

from evo.regression.column_names import with_identifiers

SQUARES = {"x2": "x²", "x2_2": "x2"}
MICRO = {"mu": "\N{MICRO SIGN}", "mu_2": "\N{GREEK SMALL LETTER MU}"}


@pytest.mark.parametrize(
    ("text", "names", "expected"),
    [
        ("x² + x2", {"x": "x", "x2": "x2"}, "x² + x2"),
        ("höhe²*2", {"hohe": "höhe"}, "hohe²*2"),
        ("`x²` + x2", SQUARES, "x2 + x2_2"),
        ("\N{MICRO SIGN} - \N{GREEK SMALL LETTER MU}", MICRO, "mu - mu_2"),
        ("`\N{MICRO SIGN}` - `\N{GREEK SMALL LETTER MU}`", MICRO, "mu - mu_2"),
        ("\N{LATIN SMALL LETTER H}o\N{COMBINING DIAERESIS}he", {"hohe": "höhe"}, "hohe"),
        ("x1 if x1 else `if`", {"x1": "x1", "if_": "if"}, "x1 if x1 else if_"),
    ],
)
def test_a_name_is_that_of_its_own_column(text, names, expected):
    assert with_identifiers(text, names) == expected
