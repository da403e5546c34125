"""Proven programs for exact functions as a CUDA header: device functions by inline PTX.

Owns the text. Knows nothing of proofs.
"""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evo.approximation.exact import ExactCertificate
from evo.escape import comment_lines, identifier
from evo.language.printer import identifier as free_name
from evo.language.program import Language

_MACROS = frozenset("NULL EOF I linux unix assert errno".split())  # which no parameter may be called
# Of instructions whose operand or result has 16 bits: replacement of `%d, ...`.
_LOW = "{{.reg .b16 %%l, %%h; mov.b32 {{%%l, %%h}}, {a}; {ptx} {d}, %%l;}}"
_HALF = "{{.reg .b16 %%l; {ptx} %%l, {a}; mov.b32 {d}, {{%%l, 0}};}}"
_SMALL = re.compile(r"^\s*(cvt\.rn\.\S*e[45]m[32]x2\S*|cvt\.f32\.f16) (%\w+), (.*);$")


def exact_header(language: Language, proven: Sequence[tuple[ExactCertificate, NDArray[np.uint64]]]) -> str:
    """The header of certificates and their programs, `(max_length,)` words each."""
    lines = [*comment_lines(f"{proven[0][0].function}, found by evo.", "// "), "#pragma once", ""]
    arguments, results = (
        [(f"{letter}{k}", "b32") for k in range(len(pairs))]
        for letter, pairs in (("in", language.inputs), ("out", language.outputs))
    )
    numbered = Language(language.instruction_set, tuple(arguments), tuple(results))  # no name of an input is one of PTX
    for proof, words in proven:
        [stub] = numbered.lowering.emit(words[None])
        taken = {*_MACROS, function_name(proof)}
        inputs, outputs = ([free_name(name, taken) for name, _ in pairs] for pairs in (language.inputs, language.outputs))
        cost = f"{proof.num_instructions} instructions, {proof.slots:g} issue slots of a warp on {proof.target}."
        lines += comment_lines(f"{proof.claim()[0].upper()}{proof.claim()[1:]}.", "// ") + comment_lines(cost, "// ")
        if any(mask != 0xFFFFFFFF for mask in proof.care):
            lines += comment_lines(f"Bits that matter: {', '.join(f'0x{mask:08X}' for mask in proof.care)}.", "// ")
        is_value = len(outputs) == 1
        takes = [f"{'float' if kind == 'f32' else 'unsigned int'} {name}" for name, kind in zip(inputs, proof.types, strict=True)]
        takes += [] if is_value else [f"unsigned int& {name}" for name in outputs]
        inside = [line for text in stub.splitlines() for line in _ptx(text)]
        letters = ["f" if kind == "f32" else "r" for kind in proof.types]
        lines += [
            f"__device__ __forceinline__ {'unsigned int' if is_value else 'void'} {function_name(proof)}({', '.join(takes)}) {{",
            *([f"    unsigned int {outputs[0]};"] if is_value else []),
            '    asm("{\\n\\t"',
            f'        ".reg .b32 {", ".join(f"%%{name}" for name, _ in (*arguments, *results))};\\n\\t"',
            *(f'        "mov.b32 %%{name}, %{len(outputs) + k};\\n\\t"' for k, (name, _) in enumerate(arguments)),
            *(f'        "{line}\\n\\t"' for line in inside),
            *(f'        "mov.b32 %{k}, %%{name};\\n\\t"' for k, (name, _) in enumerate(results)),
            '        "}"',
            "        : " + ", ".join(f'"=r"({name})' for name in outputs),
            "        : " + ", ".join(f'"{letter}"({name})' for letter, name in zip(letters, inputs, strict=True)) + ");",
            *([f"    return {outputs[0]};"] if is_value else []),
            "}",
            "",
        ]
    return "\n".join(lines)


def _ptx(line: str) -> list[str]:
    """A line of a stub with registers of 16 bits where an instruction wants them."""
    match = _SMALL.match(line)
    if not match:
        return [line.replace("%", "%%")]
    ptx, result, operands = (part.replace("%", "%%") for part in match.groups())
    is_read = ptx.endswith(("e4m3x2", "e5m2x2", ".f16"))
    form = _LOW if is_read else _HALF
    return [form.format(ptx=ptx, d=result, a=operands)]


def function_name(proof: ExactCertificate) -> str:
    """Name of a program in the header, such as `u4x8_f16x2x4_14`, by its slots."""
    return identifier(f"{proof.function.partition(':')[2] or proof.function}_{proof.slots:g}")
