"""Programs as source text of Python, C and CUDA.

Owns these texts. Knows nothing of runs, tasks or files, and runs nothing; definitions.py has what they copy.

A program becomes a function `program`. In Python it takes an array or a number for each input and returns the outputs in order;
in C and CUDA it takes a value for each input and a pointer for each output, and signed integers are passed as unsigned ones.
Formulas of real numbers (formula.py) are computed in float64.
"""

import re
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from evo.escape import comment_lines, docstring
from evo.instructions import MOVE
from evo.language.dag import CAST, REAL, Dag, Node, number_of
from evo.language.definitions import c_definitions, function_name, python_definitions
from evo.language.formula import FUNCTIONS, real_form
from evo.language.printer import Lines, Style, Unsupported, lines_of
from evo.native.stack_ptx import NodeKind


def python_source(expression: Dag, comment: str) -> str:
    """A Python module with the function `program`; it needs NumPy 2. Raises Unsupported."""
    definitions = python_definitions()
    lines = lines_of(expression, calls(definitions.texts, _python_constant, "Any", _PYTHON))
    as_array = {"f32": "np.asarray({}, np.float32)", REAL: "np.asarray({}, np.float64)"}
    as_array |= dict.fromkeys(("u32", "b32"), "np.asarray({}, np.uint32)")
    as_array["s32"] = "np.asarray({}, np.int32).view(np.uint32)"
    body = [
        f"{name} = {as_array[type_name].format(name)}"
        for name, (_, type_name) in zip(lines.inputs, expression.inputs, strict=True)
    ]
    body += ['with np.errstate(all="ignore"):']
    body += [f"    {name} = {text}" for name, _, text in lines.locals]
    results = [
        f"np.asarray({text}).view(np.int32)" if type_name == "s32" else text
        for text, (_, type_name) in zip(lines.outputs, expression.outputs, strict=True)
    ]
    body += [f"    return ({', '.join(results)},)" if len(results) == 1 else f"    return {', '.join(results)}"]
    outputs = ", ".join(name for name, _ in expression.outputs)
    parts = [
        docstring(comment),
        "from typing import Any\n\nimport numpy as np",
        *definitions.closure(_words(lines)),
        f"def program({', '.join(lines.inputs)}):\n    {docstring(f'Returns the outputs: {outputs}.')}\n"
        + "".join(f"    {line}\n" for line in body).rstrip("\n"),
    ]
    return "\n\n".join(parts) + "\n"


def c_source(expression: Dag, comment: str) -> str:
    """A C99 file with the function `program`. Raises Unsupported."""
    definitions = c_definitions()
    lines = lines_of(expression, calls(definitions.texts, _c_constant, _C_NAMES, _C))
    parts = [
        "\n".join(["/*", *comment_lines(comment, " * "), " */"]),
        "#include <math.h>\n#include <stdbool.h>\n#include <stdint.h>\n#include <string.h>",
        *definitions.closure(_words(lines)),
        *_chooses(lines, "static inline"),
        _c_function("void", expression, lines, _C_TYPES),
    ]
    return "\n\n".join(parts) + "\n"


def cuda_source(expression: Dag, comment: str) -> str:
    """CUDA with the device function `program`: each instruction is inline PTX. Raises Unsupported."""
    wrappers = {wrapper_name(value): _wrapper(value, expression) for value in expression.nodes if value.ptx}
    lines = lines_of(expression, calls(wrappers, _cuda_constant, f"float bool {_C_NAMES}", _C, wrapper_name))
    inlined = "static __device__ __forceinline__"
    parts = [
        "\n".join(["/*", *comment_lines(comment, " * "), " */"]),
        *wrappers.values(),
        *_chooses(lines, inlined),
        _c_function(f"{inlined} void", expression, lines, _CUDA_TYPES),
    ]
    return "\n\n".join(parts) + "\n"


def _words(lines: Lines) -> list[str]:
    return re.findall(r"\w+", " ".join([*(text for _, _, text in lines.locals), *lines.outputs]))


_PYTHON, _C = 0, 1
_CASTS = {"f32": ("np.float32", "(float)"), REAL: ("np.float64", "(double)")}
_CONTRACTED = re.compile(r"^(add|sub|mul)\.(?=(ftz\.)?(sat\.)?b?f\d)")  # ptxas fuses those that do not say how they round
_C_NAMES = " ".join(row[_C] for row in FUNCTIONS.values())


def calls(
    known: Iterable[str],
    constant: Callable[[str, int], str],
    reserved: str,
    language: int,
    name_of: Callable[[Node], str] = lambda value: value.name if value.ptx == MOVE else function_name(value.ptx),
) -> Style:
    """Calls of definitions; what has none is refused. Values that are not instructions call the language's own functions."""
    names = frozenset(known)

    def form(value: Node) -> str:
        return "" if value.ptx or value.name == CAST else real_form(value.semantics, language)

    def call(value: Node) -> str:
        if value.name == CAST and language <= _C:
            return _CASTS[value.type][language]
        if value.kind != NodeKind.PTX or value.row.has_vectors or name_of(value) not in names:
            raise Unsupported(value.name)
        return name_of(value)

    return Style(form, call, constant, names | {*reserved.split()})


def _chooses(lines: Lines, head: str) -> list[str]:
    """Function for a choice, which C has an operator for."""
    text = f"{head} double choose(bool condition, double a, double b) {{ return condition ? a : b; }}"
    return [text] if "choose" in _words(lines) else []


# ---- C and CUDA ----


_C_TYPES = {"f32": "float", "u32": "uint32_t", "s32": "uint32_t", "b32": "uint32_t", "pred": "bool", REAL: "double"}
_CUDA_TYPES = {
    **dict.fromkeys(("u32", "s32", "b32"), "unsigned int"),
    **dict.fromkeys(("u64", "s64", "b64"), "unsigned long long"),
    "f32": "float",
    "f64": "double",
    REAL: "double",
    "pred": "bool",
}
CONSTRAINTS = {"float": "f", "double": "d", "unsigned int": "r", "unsigned long long": "l"}


def _c_function(head: str, expression: Dag, lines: Lines, types: Mapping[str, str]) -> str:
    parameter_types = [types[type_name] for _, type_name in expression.inputs]
    parameters = [f"{type_name} {name}" for type_name, name in zip(parameter_types, lines.inputs, strict=True)]
    taken = {*lines.inputs, *(name for name, _, _ in lines.locals)}
    targets = []
    for name, type_name in expression.outputs:
        target = re.sub(r"\W", "_", f"{name}_out")
        while target in taken:
            target += "_"
        taken.add(target)
        targets.append(target)
        parameters.append(f"{types[type_name]} *{target}")
    body = [f"const {types[type_name]} {name} = {text};" for name, type_name, text in lines.locals]
    body += [f"*{target} = {text};" for target, text in zip(targets, lines.outputs, strict=True)]
    unused = [f"(void){name};" for name in lines.inputs if not any(re.search(rf"\b{name}\b", line) for line in body)]
    return f"{head} program({', '.join(parameters)}) {{\n" + "".join(f"    {line}\n" for line in [*unused, *body]) + "}"


def wrapper_name(value: Node) -> str:
    """Name of the function around a value's PTX instruction."""
    return "ptx_" + re.sub(r"\W", "_", value.name)


def assembly(value: Node, expression: Dag, mark: str = "%") -> tuple[str, list[str]]:
    """Inline assembly of a value's instruction, and the CUDA types of its result and operands; predicates pass as integers.

    Args:
        mark: before the number of the result, 0, and of each operand, from 1 on.

    Raises:
        Unsupported: inline assembly cannot pass its types.
    """
    kinds = [value.type, *(expression.nodes[operand].type for operand in value.operands)]
    if value.row.has_vectors or not set(kinds) <= _CUDA_TYPES.keys():
        raise Unsupported(value.name)
    opcode, _, immediates = value.ptx.partition(" ")
    before, after, operands = [], [], []
    for i, kind in enumerate(kinds[1:], 1):
        if kind == "pred":
            before.append(f".reg .pred p{i}; setp.ne.u32 p{i}, {mark}{i}, 0;")
        operands.append(f"p{i}" if kind == "pred" else f"{mark}{i}")
    if value.type == "pred":
        before.append(".reg .pred q;")
        after.append(f"selp.u32 {mark}0, 1, 0, q;")
    result = "q" if value.type == "pred" else f"{mark}0"
    opcode = _CONTRACTED.sub(r"\1.rn.", opcode)
    instruction = f"{opcode} {', '.join([result, *operands, *([immediates] if immediates else [])])};"
    code = " ".join(["{", *before, instruction, *after, "}"]) if before else instruction
    return code, ["unsigned int" if kind == "pred" else _CUDA_TYPES[kind] for kind in kinds]


def _wrapper(value: Node, expression: Dag) -> str:
    """A device function around one PTX instruction."""
    code, [result_type, *types] = assembly(value, expression)
    kinds = [_CUDA_TYPES[expression.nodes[operand].type] for operand in value.operands]
    parameters = ", ".join(f"{kind} a{i}" for i, kind in enumerate(kinds))
    cast = ["(unsigned int)" if kind == "bool" else "" for kind in kinds]
    passed = ", ".join(f'"{CONSTRAINTS[kind]}"({cast[i]}a{i})' for i, kind in enumerate(types))
    returned = "result != 0" if value.type == "pred" else "result"
    return (
        f"static __device__ __forceinline__ {_CUDA_TYPES[value.type]} {wrapper_name(value)}({parameters}) {{\n"
        f'    {result_type} result;\n    asm("{code}" : "={CONSTRAINTS[result_type]}"(result) : {passed});\n'
        f"    return {returned};\n}}"
    )


def number_text(bits: int) -> str | None:
    """The shortest decimal of a finite float32, or None."""
    value = np.uint32(bits).view(np.float32)
    return str(value) if np.isfinite(value) and np.float32(float(str(value))).view(np.uint32) == bits else None


def _python_constant(type_name: str, bits: int) -> str:
    if type_name == REAL:
        shortest = repr(number_of(bits))
        return shortest.replace("inf", "np.inf").replace("nan", "np.nan")
    if type_name == "f32":
        number = number_text(bits)
        return f"np.float32({number})" if number else f"f32(0x{bits:08x})"
    return f"np.bool_({bool(bits)})" if type_name == "pred" else f"np.uint32({bits})"


def _c_constant(type_name: str, bits: int) -> str:
    if type_name == REAL:
        shortest = repr(number_of(bits))
        return {"inf": "(1.0/0.0)", "-inf": "(-1.0/0.0)", "nan": "(0.0/0.0)"}.get(shortest, shortest)
    if type_name == "f32":
        number = number_text(bits)
        return f"{number}f" if number else f"f32(0x{bits:08x}u)"
    return ("true" if bits else "false") if type_name == "pred" else f"{bits}u"


def _cuda_constant(type_name: str, bits: int) -> str:
    if type_name not in _C_TYPES:
        raise Unsupported(f"a constant of type {type_name}")
    text = _c_constant(type_name, bits)
    return text.replace("f32(", "__uint_as_float(")
