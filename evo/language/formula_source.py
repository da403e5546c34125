"""Formulas of real numbers as text for Excel and other spreadsheets.

Owns the functions of spreadsheets. Knows nothing of runs, tasks or files. Programs without a form in real numbers have none.
"""

import re
from itertools import accumulate

from evo.errors import UserError
from evo.escape import cell, printable
from evo.language.dag import REAL, Dag, number_of
from evo.language.formula import formula_of
from evo.language.printer import Style, Unsupported, lines_of

MAX_CHARACTERS, MAX_DEPTH = 8192, 64  # of a formula and its parentheses in Excel; LibreOffice takes about 90 of these
_FORMS = {form: form for form in ("a + b", "a - b", "a*b", "a/b", "-a", "1/a", "a < b")}
_FORMS |= {f"{name}(a)": f"{name.upper()}(a)" for name in ("abs", "cos", "exp", "log10", "sin", "sqrt", "tanh")}
_FORMS |= {
    "1/sqrt(a)": "1/SQRT(a)",
    "copysign(b, a)": "ABS(b)*IF(a < 0, -1, 1)",
    "exp2(a)": "POWER(2, a)",
    "floor(a)": "INT(a)",
    "log(a)": "LN(a)",
    "log2(a)": "LOG(a, 2)",
    "max(a, b)": "MAX(a, b)",
    "min(a, b)": "MIN(a, b)",
    "pow(a, b)": "POWER(a, b)",
    "round(a)": "INT(a + 0.5) - INT(0.25 - 0.5*a) - INT(0.5*a - 0.25) - 1",
    "select(c, a, b)": "IF(c, a, b)",
}


def excel_source(expression: Dag, comment: str) -> str:
    """Formulas for row 2, one a column; the inputs stand in columns A, B, and so on.

    Raises:
        Unsupported: spreadsheets lack a function or constant of the program.
        UserError: a formula is too long or too deep for Excel.
    """
    if any(kind != REAL for _, kind in expression.outputs):
        expression = formula_of(expression, {}, {}, usual_names=False)
    lines = lines_of(expression, Style(lambda value: "" if value.ptx else _FORMS.get(value.semantics.infix, ""), None, _number))
    *cells, target = (f"{_column(number)}2" for number in range(len(expression.inputs) + 1))
    texts = dict(zip(lines.inputs, cells, strict=True))

    def written_out(text: str) -> str:
        expanded = re.sub(r"\b[^\W\d]\w*\b(?!\()", lambda name: texts[name[0]], text)
        depth = max(accumulate((character == "(") - (character == ")") for character in expanded))
        if len(expanded) >= MAX_CHARACTERS or depth > MAX_DEPTH:
            limits = f"{MAX_CHARACTERS} characters and {MAX_DEPTH} levels of parentheses"
            raise UserError(f"Excel takes {limits}, and the formula has more; export a shorter one")
        return expanded

    for name, _, text in lines.locals:
        texts[name] = f"({written_out(text)})"
    formulas = [f"={written_out(text)}" for text in lines.outputs]
    inputs = ", ".join(f"{reference} = {printable(name)}" for reference, (name, _) in zip(cells, expression.inputs, strict=True))
    how = f"For row 2: {inputs}. Paste into {target}, and fill down."
    return "\n".join([*map(cell, printable(comment).splitlines()), how, "\t".join(formulas), ""])


def _number(type_name: str, bits: int) -> str:
    text = repr(number_of(bits)) if type_name == REAL else type_name
    if type_name != REAL or text in ("inf", "-inf", "nan"):
        raise Unsupported(f"the constant {text}")
    return text.removesuffix(".0")


def _column(number: int) -> str:
    """The letters of a column of a spreadsheet: A, ..., Z, AA, ..."""
    return (_column(number // 26 - 1) if number >= 26 else "") + chr(ord("A") + number % 26)
