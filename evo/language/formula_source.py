"""Formulas of real numbers as text for JAX, Julia and Excel.

Owns these texts. Knows nothing of runs, tasks or files, and runs nothing. Programs without a form in real numbers have none.
"""

import re
from dataclasses import replace

from evo.errors import UserError
from evo.escape import cell, comment_lines, docstring, printable
from evo.language.expression import REAL, Expression, Lines, Style, Unsupported, Value, lines_of, number_of
from evo.language.formula import formula_of
from evo.language.source import calls

_NUMPY, _JULIA, _EXCEL = 0, 4, 5  # columns of `evo.language.formula.FUNCTIONS`
_JULIA_DEFINITIONS = {
    "smaller": "smaller(a, b) = isnan(a) ? b : isnan(b) ? a : min(a, b)",
    "larger": "larger(a, b) = isnan(a) ? b : isnan(b) ? a : max(a, b)",
    "power": "power(a, b) = a^b",
}
_JULIA_WORDS = """abstract baremodule begin catch const do elseif end export false function global let local macro module mutable
primitive quote struct true type using abs copysign cos exp exp2 ifelse log log10 log2 sin sqrt tanh Inf NaN"""
_EXCEL_FORMS = {"EXP2(a)": "POWER(2, a)", "LOG2(a)": "LOG(a, 2)", "COPYSIGN(b, a)": "ABS(b)*IF(a < 0, -1, 1)"}
MAX_CHARACTERS = 8192  # of a formula of Excel


def jax_source(expression: Expression, comment: str) -> str:
    """A Python module with the function `program` of JAX's arrays. Raises Unsupported."""
    lines = _lines(expression, calls((), _number, "jax jnp", _NUMPY))
    body = [f"{name} = {text}" for name, _, text in lines.locals]
    body.append(f"return {', '.join(lines.outputs)}{',' * (len(lines.outputs) == 1)}")
    told = f"Returns the outputs: {', '.join(name for name, _ in expression.outputs)}."
    code = re.sub(r"\bnp\.", "jnp.", "".join(f"    {line}\n" for line in body))
    head = f"{docstring(comment)}\n\nimport jax.numpy as jnp\n\n"
    return f"{head}def program({', '.join(lines.inputs)}):\n    {docstring(told)}\n{code}"


def julia_source(expression: Expression, comment: str) -> str:
    """A function `program` of numbers in Julia, which gives the output or a tuple of them. Raises Unsupported."""
    style = calls((), _number, " ".join([_JULIA_WORDS, *_JULIA_DEFINITIONS]), _JULIA)
    lines = _lines(expression, style)
    body = [f"{name} = {text}" for name, _, text in lines.locals] + [f"return {', '.join(lines.outputs)}"]
    used = set(re.findall(r"\w+", "\n".join(body)))
    head = comment_lines(comment, "# ")
    definitions = [text for name, text in _JULIA_DEFINITIONS.items() if name in used]
    return "\n".join(
        [*head, *definitions, f"function program({', '.join(lines.inputs)})", *(f"    {x}" for x in body), "end", ""]
    )


def excel_source(expression: Expression, comment: str) -> str:
    """Formulas for row 2, one a column; the inputs stand in columns A, B, and so on. Raises Unsupported."""
    columns = [_column(number) for number in range(len(expression.inputs) + 1)]
    cells = {name: f"{column}2" for (name, _), column in zip(expression.inputs, columns, strict=False)}
    style = calls((), _number, "", _EXCEL)

    def form(value: Value) -> str:
        text = style.form(value)
        return _EXCEL_FORMS.get(text, text)

    lines = _lines(expression, replace(style, form=form))
    names = dict(zip(lines.inputs, cells.values(), strict=True))
    names |= {name: f"v_{number}" for number, (name, _, _) in enumerate(lines.locals)}  # t1 would be a cell

    def renamed(text: str) -> str:
        return re.sub(r"[A-Za-z_]\w*(?!\w*\()", lambda word: names.get(word[0], word[0]), text)

    found = []
    for output in lines.outputs:
        local = [part for name, _, text in lines.locals for part in (names[name], renamed(text))]
        found.append(f"=LET({', '.join([*local, renamed(output)])})" if local else f"={renamed(output)}")
        if len(found[-1]) > MAX_CHARACTERS:
            raise UserError(f"Excel takes {MAX_CHARACTERS} characters, the formula has {len(found[-1])}; export a shorter one")
    where = ", ".join(f"{place} = {printable(name)}" for name, place in cells.items())
    where = f"For row 2: {where}. Paste into {columns[-1]}2, and fill down."
    return "\n".join([*map(cell, printable(comment).splitlines()), where, "\t".join(found), ""])


def _lines(expression: Expression, style: Style) -> Lines:
    if any(kind != REAL for _, kind in expression.outputs):
        expression = formula_of(expression, {}, {}, usual_names=False)
    return lines_of(expression, style)


def _number(type_name: str, bits: int) -> str:
    if type_name != REAL:
        raise Unsupported(f"a constant of type {type_name}")
    text = repr(number_of(bits))
    if text in ("inf", "-inf", "nan"):
        raise Unsupported(f"the constant {text}")
    return text.removesuffix(".0")


def _column(number: int) -> str:
    """The letters of a column of a spreadsheet: A, ..., Z, AA, ..."""
    return (_column(number // 26 - 1) if number >= 26 else "") + chr(ord("A") + number % 26)
