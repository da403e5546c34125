"""Proven programs as a CUDA header: device functions by inline PTX, each with what is proven of it.

Owns the text. Knows nothing of proofs.
"""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evo.approximation.certificate import Certificate
from evo.language.program import Language

# Of two halves in a word: how they become floats.
_HALVES = {
    "bf16": "const float a = __uint_as_float(x << 16), b = __uint_as_float(x & 0xFFFF0000u);",
    "f16": """float a, b;
    asm("{ .reg .b16 p, q; mov.b32 {p, q}, %2; cvt.f32.f16 %0, p; cvt.f32.f16 %1, q; }" : "=f"(a), "=f"(b) : "r"(x));""",
}
_CONTRACTED = re.compile(r"\b(add|sub|mul)\.(?=ftz\.f32)")  # ptxas fuses those that do not say how they round


def cuda_header(language: Language, proven: Sequence[tuple[Certificate, NDArray[np.uint64]]]) -> str:
    """The header of certificates and their programs, `(max_length,)` words each, whose input is x and output y."""
    first = proven[0][0]
    lines = [
        f"// Approximations of {' '.join(first.function.split())}, found and proven by evo: the cheapest first.",
        "// Bounds hold for each value of the format in the interval, on any GPU that keeps the PTX ISA's bounds.",
        "#pragma once",
        "",
    ]
    for found, words in proven:
        [stub] = language.lowering.emit(words[None])
        text = _CONTRACTED.sub(r"\1.rn.", stub).replace("%", "%%")
        rounded = "" if found.format == "f32" else f"; x is a value of {found.format}, round the result to it"
        lines += [
            f"// {found.format} in [{found.interval[0]}, {found.interval[1]}], {found.num_inputs} inputs{rounded}.",
            f"// {found.num_instructions} instructions, {float(found.slots):g} issue slots of a warp on {found.target}.",
            *(f"// error at most {text}" for text in _bounds(found)),
            *([f"// {found.on_gpu.description()}"] if found.on_gpu else []),
            f"__device__ __forceinline__ float {function_name(found)}(float x) {{",
            "    float y;",
            '    asm("{\\n\\t"',
            '        ".reg .f32 %%x, %%y;\\n\\t"',
            '        "mov.f32 %%x, %1;\\n\\t"',
            *(f'        "{line}\\n\\t"' for line in text.splitlines()),
            '        "mov.f32 %0, %%y;\\n\\t"',
            '        "}"',
            '        : "=f"(y)',
            '        : "f"(x));',
            "    return y;",
            "}",
            *_of_two(found.format, function_name(found)),
            "",
        ]
    return "\n".join(lines)


def _of_two(form: str, name: str) -> list[str]:
    """As the formats' arithmetic wants them: two conversions of one result each become one of two."""
    if form not in _HALVES:
        return []
    kind = "half2" if form == "f16" else "__nv_bfloat162"
    return [
        f"// Two of them, rounded: x and the result are the bits of a {kind}. From sm_80 on.",
        f"__device__ __forceinline__ unsigned int {name}_x2(unsigned int x) {{",
        f"    {_HALVES[form]}",
        "    unsigned int y;",
        f'    asm("cvt.rn.{form}x2.f32 %0, %1, %2;" : "=r"(y) : "f"({name}(b)), "f"({name}(a)));',
        "    return y;",
        "}",
    ]


def function_name(found: Certificate) -> str:
    """What a program is called in the header, such as `gelu_f32_14`, by its slots."""
    name = re.sub(r"\W+", "_", found.function).strip("_") or "f"
    return f"{'f' if name[0].isdigit() else ''}{name}_{found.format}_{float(found.slots):g}".replace(".", "_")


def _bounds(found: Certificate) -> list[str]:
    errors = found.any_gpu or found.cpu
    where = "" if found.any_gpu else f" (by the CPU's arithmetic: no bound of {found.why_not} is known)"
    return [f"{error.at_most()} {'ulp' if kind == 'ulp' else kind}{where}" for kind, error in errors.items()]
