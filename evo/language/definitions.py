"""Definitions of PTX instructions for a CPU, in Python and C: the functions of exported text.

Owns the translation of the table's `code`, which is written once for both languages. It has locals and ends with a value:

    x = wide(a); y = wide(b); rounded(select(x < y, x, y))

Operands are a, b, c and d; operators are + - * / & | ^ ~ << >> and comparisons; `select` takes a condition and two values, and
`abs`, `sqrt`, `rint` and `floor` are those of libm. Everything else is a function of primitives.py and primitives.h, a helper of
the table or an instruction, whose name is its PTX with dots as underscores. Floats are f32 unless `wide` makes them f64; the
numbers of the code are f32. Knows nothing of programs.
"""

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from evo.instructions import Function, shipped_functions

_C_TYPES = {"f32": "float", "f64": "double", "u32": "uint32_t", "s32": "int32_t", "u64": "uint64_t", "pred": "bool"}
_FROM_C = {name: kind for kind, name in _C_TYPES.items()}
_LIBM = {"abs": {"f32": "fabsf", "f64": "fabs"}, "rint": {"f32": "rintf", "f64": "rint"}}
_LIBM |= {name: {"f64": name} for name in ("floor", "sqrt")}
_OPERATORS: dict[type[ast.AST], tuple[str, int]] = {  # precedence as in C; higher binds tighter
    ast.Mult: ("*", 7), ast.Div: ("/", 7), ast.Add: ("+", 6), ast.Sub: ("-", 6), ast.LShift: ("<<", 5), ast.RShift: (">>", 5),
    ast.Lt: ("<", 4), ast.LtE: ("<=", 4), ast.Gt: (">", 4), ast.GtE: (">=", 4), ast.Eq: ("==", 4), ast.NotEq: ("!=", 4),
    ast.BitAnd: ("&", 3), ast.BitXor: ("^", 2), ast.BitOr: ("|", 1), ast.USub: ("-", 8), ast.Invert: ("~", 8),
}  # fmt: skip
_ATOM, _PRODUCT, _SUM, _TERNARY = 9, 7, 6, 0
_DTYPES = {"f32": "float32", "f64": "float32", "u32": "uint32", "s32": "int32", "pred": "bool_"}

# Names that exported Python may refer to.
NUMPY: dict[str, Any] = {"Any": Any} | {
    f"np.{name}": getattr(np, name)
    for name in """abs asarray bool_ copysign cos errstate exp exp2 float32 float64 floor fmax fmin inf int32 int64 isfinite isnan
    log log10 log2 nan nextafter power rint signbit sin sqrt tanh uint32 uint64 where""".split()
}


@dataclass(frozen=True)
class Definitions:
    """Definitions that a source may copy. texts: by name, in order; uses: the names of others that each one needs."""

    texts: Mapping[str, str]
    uses: Mapping[str, frozenset[str]]

    def closure(self, names: Iterable[str]) -> list[str]:
        """The texts of these definitions and of those that they need, in order. Other names are left out."""
        needed: set[str] = set()
        waiting = [name for name in names if name in self.texts]
        while waiting:
            name = waiting.pop()
            if name not in needed:
                needed.add(name)
                waiting += self.uses[name]
        return [text for name, text in self.texts.items() if name in needed]


def function_name(ptx: str) -> str:
    """Name of an instruction's definition."""
    return re.sub(r"\W", "_", ptx)


@cache
def python_definitions() -> Definitions:
    """The functions of primitives.py, and a function for each instruction."""
    source = _source("primitives.py")
    texts, uses = {}, {}
    for node in ast.parse(source).body:
        names = [node.name] if isinstance(node, ast.FunctionDef) else [t.id for t in getattr(node, "targets", ())]
        for name in names:
            texts[name] = "\n".join(source.splitlines()[node.lineno - 1 : node.end_lineno])
            uses[name] = {child.id for child in ast.walk(node) if isinstance(child, ast.Name)}
    return _with_functions(texts, uses, _python_function, {"Array"})


@cache
def c_definitions() -> Definitions:
    """The functions of primitives.h, and a function for each instruction."""
    texts = dict(_c_primitives())
    uses = {name: set(re.findall(r"\w+", re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL))) for name, text in texts.items()}
    return _with_functions(texts, uses, _c_function, set())


def _source(name: str) -> str:
    return files("evo.language").joinpath(name).read_text(encoding="utf-8")


def _c_primitives() -> Iterator[tuple[str, str]]:
    for block in _source("primitives.h").split("\n\n"):
        if match := re.search(r"^static inline \w+ (\w+)", block, re.MULTILINE):
            yield match[1], block.strip("\n")


@cache
def _signatures() -> dict[str, tuple[str, tuple[str, ...]]]:
    """By name of a primitive, helper or instruction: the type of its result and those of its operands."""
    signatures = {}
    for name, block in _c_primitives():
        match = re.search(rf"^static inline (\w+) {name}\((.*?)\)", block, re.MULTILINE)
        assert match is not None
        signatures[name] = (_FROM_C[match[1]], tuple(_FROM_C.get(parameter.split()[0], "") for parameter in match[2].split(", ")))
    return signatures | {function.name: (function.result, function.operands) for function in shipped_functions()}


def _with_functions(
    texts: dict[str, str], uses: dict[str, set[str]], written: Callable[[Function], str], always: set[str]
) -> Definitions:
    waiting = {function.name: function for function in shipped_functions()}

    def add(name: str) -> None:
        """Adds a function after those that it calls: C wants them first."""
        function = waiting.pop(name)
        uses[name] = {child.id for child in ast.walk(ast.parse(function.code)) if isinstance(child, ast.Name)} | always
        for dependency in sorted(uses[name] & waiting.keys()):
            add(dependency)
        texts[name] = written(function)

    while waiting:
        add(next(iter(waiting)))
    return Definitions(texts, {name: frozenset(names & texts.keys() - {name}) for name, names in uses.items()})


# ---- text of functions ---------------------------------------------------------------------------------------------------


def _python_function(function: Function) -> str:
    *lines, (_, _, result) = _lines(function, is_c=False)
    head = f"def {function.name}({', '.join(f'{name}: Array' for name in 'abcd'[: len(function.operands)])}) -> Array:"
    body = [f'"""{_sentence(function)}"""', *(f"{local} = {text}" for local, _, text in lines), f"return {result}"]
    return "\n    ".join([head, *body])


def _c_function(function: Function) -> str:
    *lines, (_, _, result) = _lines(function, is_c=True)
    operands = ", ".join(f"{_C_TYPES[kind]} {name}" for kind, name in zip(function.operands, "abcd", strict=False))
    head = f"/* {_sentence(function)} */\nstatic inline {_C_TYPES[function.result]} {function.name}({operands}) {{"
    if not lines:
        return f"{head} return {result}; }}"
    body = [*(f"const {_C_TYPES[kind]} {local} = {text};" for local, kind, text in lines), f"return {result};"]
    return "\n    ".join([head, *body]) + "\n}"


def _sentence(function: Function) -> str:
    return f"{function.meaning[0].upper()}{function.meaning[1:]}."


def _lines(function: Function, is_c: bool) -> list[tuple[str, str, str]]:
    """(local, its type, text) of each statement; the last has no local."""
    types = dict(zip("abcd", function.operands, strict=False))
    lines = []
    for statement in function.code.split("; "):
        local, _, value = statement.rpartition(" = ")
        text, kind, _ = _written(ast.parse(value, mode="eval").body, types, is_c)
        types[local] = kind
        lines.append((local, kind, text))
    return lines


def _written(node: ast.expr, types: Mapping[str, str], is_c: bool, hint: str = "") -> tuple[str, str, int]:
    """(text, type, precedence) of an expression. hint: the type that a number has to have; empty: any."""
    match node:
        case ast.Name(name):
            return name, types[name], _ATOM
        case ast.Constant() | ast.UnaryOp(ast.USub(), ast.Constant()):
            number = ast.literal_eval(node)
            kind = hint or ("f32" if isinstance(number, float) else "u32")
            return (_number(number, kind) if is_c else f"np.{_DTYPES[kind]}({_digits(number)})"), kind, _ATOM
        case ast.UnaryOp(operator, operand):
            text, kind, inner = _written(operand, types, is_c)
            symbol, precedence = _OPERATORS[type(operator)]
            return f"{symbol}{text if inner >= precedence else f'({text})'}", kind, precedence
        case ast.BinOp(left, operator, right) | ast.Compare(left, [operator], [right]):
            symbol, precedence = _OPERATORS[type(operator)]
            kind = _common_type(left, right, types, is_c)
            texts = []
            for side in (left, right):
                text, _, inner = _written(side, types, is_c, kind)
                if _is_number(side) and not is_c and (kind != "f64" or _is_exact(side)):
                    text = _digits(ast.literal_eval(side))  # takes the type of the other operand
                is_plain = (
                    inner > _PRODUCT or (inner == _PRODUCT and precedence == _SUM) or (side is left and inner == precedence)
                )
                texts.append(text if is_plain else f"({text})")
            space = "" if precedence == _PRODUCT else " "
            return f"{texts[0]}{space}{symbol}{space}{texts[1]}", "pred" if isinstance(node, ast.Compare) else kind, precedence
        case ast.Call(ast.Name("select"), [condition, first, second]):
            kind = _common_type(first, second, types, is_c)
            parts = [_written(argument, types, is_c, kind) for argument in (condition, first, second)]
            if not is_c:
                return f"np.where({', '.join(text for text, _, _ in parts)})", kind, _ATOM
            texts = [text if inner or part is parts[2] else f"({text})" for part in parts for text, _, inner in [part]]
            return f"{texts[0]} ? {texts[1]} : {texts[2]}", kind, _TERNARY
        case ast.Call(ast.Name("polynomial"), [x, *coefficients]):
            numbers = [ast.literal_eval(coefficient) for coefficient in coefficients]
            in_c = f"{len(numbers)}, (const float[]){{{', '.join(_number(number, 'f32') for number in numbers)}}}"
            return f"polynomial({ast.unparse(x)}, {in_c if is_c else ', '.join(map(_digits, numbers))})", "f32", _ATOM
        case ast.Call(ast.Name(name), [operand]) if name in _LIBM:
            text, kind, _ = _written(operand, types, is_c)
            return f"{_LIBM[name][kind] if is_c else f'np.{name}'}({text})", kind, _ATOM
        case ast.Call(ast.Name(name), operands):
            result, kinds = _signatures()[name]
            texts = [_written(argument, types, is_c, kind)[0] for argument, kind in zip(operands, kinds, strict=True)]
            return f"{name}({', '.join(texts)})", result, _ATOM
    raise ValueError(f"no part of an instruction's code: {ast.unparse(node)}")


def _common_type(first: ast.expr, second: ast.expr, types: Mapping[str, str], is_c: bool) -> str:
    """A number has the type of the other operand."""
    return _written(second if _is_number(first) else first, types, is_c)[1]


def _is_number(node: ast.expr) -> bool:
    return isinstance(node.operand if isinstance(node, ast.UnaryOp) else node, ast.Constant)


def _is_exact(node: ast.expr) -> bool:
    number = ast.literal_eval(node)
    return bool(float(np.float32(number)) == number)


def _number(number: float, kind: str) -> str:
    """In C. A number beside an f64 is an f32 too."""
    suffix = "f" if isinstance(number, float) else "" if kind == "s32" else "u"
    return f"{_digits(number)}{suffix}"


def _digits(number: float) -> str:
    return f"0x{number:08x}" if isinstance(number, int) and number > 255 else repr(number)
