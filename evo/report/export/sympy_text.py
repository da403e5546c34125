"""Programs for SymPy: as its source, and as LaTeX.

Owns the calls to SymPy, which is optional. SymPy computes in real numbers: without rounding to float32, flushing or PTX's rules
for NaN. Knows nothing of archives.
"""

import ast
import json
import math
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from evo.errors import UserError
from evo.escape import docstring, greek_letter, identifier
from evo.language.dag import Dag
from evo.language.formula import moves
from evo.language.formula_text import SYMPY, SYMPY_NAMES
from evo.language.parsed import statements
from evo.language.printer import lines_of
from evo.language.textbook import textbook

INSTALL = "pip install 'evo-ptx[sympy]'"


def sympy_text(expression: Dag, comment: str) -> str:
    """A Python module: `outputs` maps each output's name to its expression."""
    lines = lines_of(textbook(expression), SYMPY)
    body = [f'{name} = Symbol("{name}", real=True)' for name in lines.inputs]
    code = [f"{name} = {text}" for name, _, text in lines.locals]
    code += ["outputs = {"]
    code += [f"    {json.dumps(name)}: {text}," for (name, _), text in zip(expression.outputs, lines.outputs, strict=True)]
    code += ["}"]
    if moves(expression):
        body += ["with distribute(False):  # written out, 2*(x - 1.7e9) would lose digits"]
        code = [f"    {line}" for line in code]
    body += code
    used = set(re.findall(r"\w+", "\n".join(body)))
    names = [name for name in (*SYMPY_NAMES, "Symbol", "true", "false") if name in used]
    imports = [f"from sympy import {', '.join(names)}"] if names else []
    imports += ["from sympy.core.parameters import distribute"] if "distribute" in used else []
    return "\n".join([docstring(comment), "", *imports, *([""] if imports else []), *body, ""])


def latex_text(expression: Dag, precision: int | None = None, user_names: Mapping[str, str] = MappingProxyType({})) -> str:
    """A LaTeX `aligned` block: local variables, then outputs. precision: significant digits of numbers; None: all. user_names: of
    inputs.
    """
    sympy = _sympy()
    _, variables, outputs = _read(sympy_text(expression, ""))
    rows = []
    for name, value in (variables | outputs).items():
        rows.append(
            f"{latex_of(sympy.Symbol(identifier(name)))} &= {latex_of(shortened(expression, value, precision), user_names)}"
        )
    return "\\begin{aligned}\n" + " \\\\\n".join(rows) + "\n\\end{aligned}\n"


def shortened(formula: Dag, expression: Any, precision: int | None) -> Any:
    """SymPy's expression of a formula, or of a part, rounded to `precision` digits, except offsets of inputs."""
    if precision is None:
        return expression
    sympy, kept = _sympy(), {abs(number) for number in moves(formula).values()}
    floats = {atom: abs(float(atom)) for atom in expression.atoms(sympy.Float)}  # SymPy may have added an offset to one
    is_kept = {atom: any(math.isclose(number, move, rel_tol=1e-3) for move in kept) for atom, number in floats.items()}
    numbers = {atom: sympy.Float(atom, precision) for atom in floats if not is_kept[atom]}
    with _as_written(bool(kept)):
        return expression.xreplace(numbers)


def latex_of(expression: Any, user_names: Mapping[str, str] = MappingProxyType({})) -> str:
    """LaTeX of SymPy's expression. user_names: of its symbols."""
    called = {symbol: user_names.get(symbol.name, symbol.name) for symbol in expression.free_symbols}
    names = {
        symbol: _sympy().latex(symbol_of(name)) if _WITH_INDEX.fullmatch(name) else latex_name(name)
        for symbol, name in called.items()
        if name != symbol.name or not _WITH_INDEX.fullmatch(name)
    }
    return str(_sympy().latex(expression, symbol_names=names))


_WITH_INDEX = re.compile(r"[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9]+)?")  # SymPy sets these
_ESCAPED = {character: f"\\{character}" for character in "&%$#_{}"}
_ESCAPED |= {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"}


def latex_name(name: str) -> str:
    """A name that is not a word with an index: with commands for Greek letters, or as text."""
    sympy, letters = _sympy(), [(character, greek_letter(character)) for character in name]
    parts = (f"{sympy.latex(sympy.Symbol(greek))} " if greek else character for character, greek in letters)
    base, line, index = "".join(parts).partition("_")
    if _WITH_INDEX.fullmatch("".join("x" if greek else character for character, greek in letters)):
        return f"{base.strip()}_{{{index.strip()}}}" if line else base.strip()
    text = "".join(_ESCAPED.get(character, character) for character in " ".join(name.split()))
    return f"\\mathrm{{{text}}}" if name.isascii() and name.isidentifier() else f"\\text{{{text}}}"


def sympy_outputs(expression: Dag) -> list[Any]:
    """SymPy's expression of each output, written out in full.

    Raises:
        UserError: SymPy is missing, or cannot hold the program.
        Unsupported: the program has an instruction that SymPy has no text for.
    """
    return [*_read(sympy_text(expression, ""), is_whole=True)[2].values()]


def symbol_of(name: str) -> Any:
    """SymPy's symbol of a real input."""
    return _sympy().Symbol(name, real=True)


def _read(text: str, *, is_whole: bool = False) -> tuple[list[str], dict[str, Any], dict[str, Any]]:
    """Names of the inputs, local variables and outputs of a module of `sympy_text`.

    is_whole: the outputs are written out in full; otherwise, local variables are symbols in the lines after their own.
    """
    sympy = _sympy()
    from sympy.core.parameters import distribute

    names: dict[str, Any] = {name: getattr(sympy, name) for name in (*SYMPY_NAMES, "Symbol", "true", "false")}
    names["distribute"] = distribute
    namespace: dict[str, Any] = {}
    inputs, variables = [], {}
    for statement in ast.parse(text).body:
        for line in statement.body if isinstance(statement, ast.With) else [statement]:
            try:
                with _as_written(statement is not line):
                    statements([line], names)(namespace)
                    if wrong := [value for value in namespace.values() if not isinstance(value, (sympy.Basic, dict))]:
                        raise TypeError(f"SymPy does not compute with {wrong[0]!r}")
            except (TypeError, ValueError, ArithmeticError, RecursionError) as error:
                raise UserError(f"SymPy cannot hold this program: {ast.unparse(line)}: {error}") from error
            if not isinstance(line, ast.Assign) or not isinstance(line.targets[0], ast.Name):
                continue  # an import
            name = line.targets[0].id
            if ast.unparse(line.value).startswith("Symbol("):
                inputs.append(name)
            elif name != "outputs":
                variables[name] = namespace[name]
                namespace[name] = namespace[name] if is_whole else sympy.Symbol(name, real=True)
    return inputs, variables, namespace["outputs"]


def _as_written(is_kept: bool) -> Any:
    """A context in which SymPy leaves `2*(x - 1.7e9)` as it is: written out it would lose digits. Otherwise it is left to itself,
    since its signs of sums then go in circles: `sin(-x - y - 1)**2` never ends.
    """
    _sympy()
    from sympy.core.parameters import distribute

    return distribute(not is_kept)


def _sympy() -> Any:
    try:
        import sympy
    except ImportError as error:
        raise UserError(f"SymPy and LaTeX expressions need SymPy: {INSTALL}") from error
    return sympy
