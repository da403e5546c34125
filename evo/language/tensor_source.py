"""Programs as functions of tensors: Python for PyTorch, and for Triton, whose instructions are inline PTX.

Owns these texts. Knows nothing of runs, tasks or files, and runs nothing.

Both return the outputs in order. PyTorch computes with its own functions, and Triton formulas of real numbers too; Triton's
instructions are those of the program.
"""

import re

import numpy as np

from evo.escape import docstring
from evo.language.dag import REAL, Dag, number_of
from evo.language.formula import formula_of
from evo.language.printer import Lines, Unsupported, lines_of
from evo.language.source import CONSTRAINTS, assembly, calls, number_text, wrapper_name
from evo.native.stack_ptx import NodeKind

_TORCH, _TRITON = 2, 3  # columns of `evo.language.formula.FUNCTIONS`
_TORCH_DEFINITIONS = {
    "smaller": '''def smaller(a, b):
    """The smaller of two, of which one may be a number; a number beats NaN."""
    return torch.where((a < b) | (b != b), a, b)''',
    "larger": '''def larger(a, b):
    """The larger of two, of which one may be a number; a number beats NaN."""
    return torch.where((a > b) | (b != b), a, b)''',
    "copysign": '''def copysign(a, b):
    """The size of a with the sign of b."""
    if isinstance(b, torch.Tensor):
        return torch.copysign(torch.zeros_like(b) + a, b)
    return abs(a) * math.copysign(1.0, b)''',
}
_TRITON_TYPES = {
    "float": "tl.float32",
    "double": "tl.float64",
    "unsigned int": "tl.uint32",
    "unsigned long long": "tl.uint64",
}
_INPUT_TYPES = {"f32": "tl.float32", "u32": "tl.uint32", "s32": "tl.uint32"}
_OUTPUT_TYPES = {**_INPUT_TYPES, REAL: "tl.float64"}
_NUMBERS = {"inf": 'float("inf")', "-inf": '-float("inf")', "nan": 'float("nan")'}


def torch_source(expression: Dag, comment: str) -> str:
    """A Python module with the function `program`, which `torch.compile` takes. Raises Unsupported."""
    if any(kind != REAL for _, kind in expression.outputs):
        expression = formula_of(expression, {}, {}, usual_names=False)
    lines = lines_of(expression, calls((), _constant, " ".join(["torch math kind", *_TORCH_DEFINITIONS]), _TORCH))
    outputs = [
        f"torch.full_like({lines.inputs[0]}, {text})" if is_same else text for text, is_same in _outputs(expression, lines)
    ]
    body = [f"kind = {lines.inputs[0]}.dtype"]
    body += [f"{name} = {name}.to(torch.promote_types({name}.dtype, torch.float32))" for name in lines.inputs]
    body += [f"{name} = {text}" for name, _, text in lines.locals]
    body.append(f"return {', '.join(f'({text}).to(kind)' for text in outputs)}{',' * (len(outputs) == 1)}")
    summary = f"Returns the outputs, of the first input's type: {', '.join(name for name, _ in expression.outputs)}."
    used = set(re.findall(r"\w+", "\n".join(body)))
    needed = [text for name, text in _TORCH_DEFINITIONS.items() if name in used]
    imports = "import math\n\nimport torch" if "copysign" in used else "import torch"
    return _module(comment, [imports, *needed, _function(lines.inputs, summary, body)])


def triton_source(expression: Dag, comment: str) -> str:
    """A Python module with Triton's function `program`, for use in kernels. Raises Unsupported."""
    wrappers: dict[str, str] = {}
    for value in expression.nodes:
        if value.ptx and wrapper_name(value) not in wrappers:
            code, [result, *kinds] = assembly(value, expression, "$")
            names = [f"a{i}" for i in range(len(kinds))]
            constraints = ",".join([f"={CONSTRAINTS[result]}", *(CONSTRAINTS[kind] for kind in kinds)])
            text = f'"{code}", "{constraints}", [{", ".join(names)}], dtype={_TRITON_TYPES[result]}, is_pure=True, pack=1'
            wrappers[wrapper_name(value)] = (
                f"@triton.jit\ndef {wrapper_name(value)}({', '.join(names)}):\n    return tl.inline_asm_elementwise({text})"
            )
    lines = lines_of(expression, calls(wrappers, _constant, "triton tl libdevice", _TRITON, wrapper_name))
    body = [
        f"{name} = tl.cast({name}, {_INPUT_TYPES[kind]})"
        for name, (_, kind) in zip(lines.inputs, expression.inputs, strict=True)
        if kind in _INPUT_TYPES
    ]
    body += [f"{name} = {text}" for name, _, text in lines.locals]
    outputs = [
        f"tl.cast({text}, {_OUTPUT_TYPES[kind]})" if is_same else text
        for (text, is_same), (_, kind) in zip(_outputs(expression, lines), expression.outputs, strict=True)
    ]
    body.append(f"return {', '.join(outputs)}")
    summary = f"Returns the outputs: {', '.join(name for name, _ in expression.outputs)}."
    imports = "import triton\nimport triton.language as tl"
    if "libdevice" in "".join(body):
        imports += "\nfrom triton.language.extra import libdevice"
    return _module(comment, [imports, *wrappers.values(), "@triton.jit\n" + _function(lines.inputs, summary, body)])


def _module(comment: str, parts: list[str]) -> str:
    return "\n\n".join([docstring(comment), *parts]) + "\n"


def _function(inputs: tuple[str, ...], summary: str, body: list[str]) -> str:
    return f"def program({', '.join(inputs)}):\n    {docstring(summary)}\n" + "\n".join(f"    {line}" for line in body)


def _outputs(expression: Dag, lines: Lines) -> list[tuple[str, bool]]:
    """The text of each output, and whether it is a number rather than a tensor."""
    numbers = [result is None or expression.nodes[result].kind == NodeKind.CONSTANT for result in expression.results]
    return [*zip(lines.outputs, numbers, strict=True)]


def _constant(type_name: str, bits: int) -> str:
    if type_name not in (REAL, "f32"):
        if type_name in ("f64", "u64", "s64"):
            raise Unsupported(f"a constant of type {type_name}")
        return str(bits)
    text = repr(number_of(bits)) if type_name == REAL else number_text(bits) or repr(float(np.uint32(bits).view(np.float32)))
    return _NUMBERS.get(text, text)
