"""Programs as formulas that people type and read, and for SymPy.

Owns these two styles of text. Knows nothing of runs, tasks or files.
"""

import re
from dataclasses import replace

import numpy as np

from evo.instructions import HALVES
from evo.instructions.description import SYMPY_CALLS, Semantics
from evo.language.dag import REAL, Dag, f32_bits, number_of
from evo.language.formula import moves
from evo.language.printer import Style, Unsupported, lines_of, short_number
from evo.language.simple_numbers import F32_STEP, F64_STEP, exact_text
from evo.language.textbook import textbook
from evo.native.stack_ptx import NodeKind

SYMPY_NAMES = ("E", "Float", "Integer", "Rational", "pi", *SYMPY_CALLS)


def plain_constant(type_name: str, bits: int) -> str:
    """A number as people write it: the shortest that gives the same float32 or, of a real number, float64."""
    if type_name in ("f32", *HALVES):
        return str(np.uint32(bits).view(np.float32)).removesuffix(".0")
    if type_name == REAL:
        return short_number(number_of(bits))
    if type_name == "pred":
        return "true" if bits else "false"
    return str(bits - (1 << 32) if type_name == "s32" and bits >> 31 else bits)


def _sympy_constant(type_name: str, bits: int) -> str:
    text = plain_constant(type_name, bits)
    if type_name in ("f32", REAL):
        value = float(text)
        if not np.isfinite(value):
            raise Unsupported(f"the constant {text}")
        return exact_text(value, (F32_STEP if type_name == "f32" else F64_STEP) * abs(value)) or f"Float('{text}')"
    return text if type_name == "pred" else f"Integer({text})"


def _sympy_form(semantics: Semantics) -> str:
    return semantics.infix if {*re.findall(r"\w+(?=\()", semantics.infix)} <= {*SYMPY_CALLS} else ""


_WRITTEN = {"pow(a, b)": "a**b"}
INFIX = Style(
    lambda value: _WRITTEN.get(value.semantics.infix, value.semantics.infix),
    lambda value: f"{value.name}_{value.row.result}" if value.row.num_results > 1 else value.name,
    plain_constant,
)
SYMPY = Style(
    lambda value: value.semantics.sympy or _sympy_form(value.semantics),
    None,
    _sympy_constant,
    reserved=frozenset({*SYMPY_NAMES, "Symbol", "distribute", "outputs", "sympy", "true", "false"}),
)


def infix(expression: Dag) -> str:
    """A program as lines that people read: local variables, then outputs."""
    lines = lines_of(textbook(expression), INFIX)
    pairs = [(name, text) for name, _, text in lines.locals]
    pairs += [(name, text) for (name, _), text in zip(expression.outputs, lines.outputs, strict=True)]
    return "".join(f"{name} = {text}\n" for name, text in pairs)


def infix_line(expression: Dag) -> str:
    """As `infix`, on one line, for tables."""
    return "; ".join(infix(expression).splitlines())


def rounded(formula: Dag, digits: int | None) -> Dag:
    """The formula for display: its numbers rounded to `digits` significant digits, except offsets of inputs; None: as it is."""
    if digits is None:
        return formula
    formula = textbook(formula)
    kept, nodes = moves(formula), list(formula.nodes)
    for index, node in enumerate(nodes):
        if node.kind == NodeKind.CONSTANT and node.type in ("f32", REAL) and index not in kept:
            short = f"{node.number:.{digits - 1}e}"
            bits = int(np.float64(short).view(np.uint64)) if node.type == REAL else f32_bits(np.float32(short))
            nodes[index] = replace(node, payload=bits)
    return replace(formula, nodes=tuple(nodes))


def display_note(digits: int | None) -> str:
    """Note in a heading for a formula that was rounded."""
    return "" if digits is None else f" (rounded to {digits} digits for display; predictions use all)"
