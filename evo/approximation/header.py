"""Proven programs as a CUDA header: device functions by inline PTX, each with its proven bounds.

Owns the text, and native programs for two values at once. Knows nothing of proofs.
"""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evo.approximation.certificate import Certificate
from evo.approximation.formats import FORMATS
from evo.approximation.functions import RIGOROUS
from evo.escape import comment_lines, identifier
from evo.instructions import HALVES, StackType
from evo.language.program import Language
from evo.native.stack_ptx import NodeKind

# Of two halves in a word: how they become floats.
_HALVES = {
    "bf16": "const float a = __uint_as_float(x << 16), b = __uint_as_float(x & 0xFFFF0000u);",
    "f16": """float a, b;
    asm("{ .reg .b16 p, q; mov.b32 {p, q}, %2; cvt.f32.f16 %0, p; cvt.f32.f16 %1, q; }" : "=f"(a), "=f"(b) : "r"(x));""",
}
# ptxas fuses instructions that do not say how they round.
_CONTRACTED = re.compile(r"\b(add|sub|mul)\.(?=ftz\.f32|f16|bf16)")
_PAIRS = {"f16": "half2", "bf16": "__nv_bfloat162"}


def cuda_header(language: Language, proven: Sequence[tuple[Certificate, NDArray[np.uint64]]]) -> str:
    """The header of certificates and their programs, `(max_length,)` words each, whose input is x and output y."""
    first = proven[0][0]
    lines = [
        *_remark(f"Approximations of {first.function}, found and proven by evo: the cheapest first."),
        "// Bounds hold for each value of the format in the interval, on any GPU that keeps the PTX ISA's bounds.",
        "#pragma once",
        "",
    ]
    for proof, words in proven:
        [stub] = language.lowering.emit(words[None])
        is_native, name = proof.arithmetic == "native", function_name(proof)
        rounded = "" if proof.format == "f32" or is_native else f"; x is a value of {proof.format}, round the result to it"
        shared = " a value, of two at once" if is_native else ""
        lines += [
            *_remark(f"{proof.format} in [{proof.interval[0]}, {proof.interval[1]}], {proof.num_inputs} inputs{rounded}."),
            *_remark(
                f"{proof.num_instructions} instructions, {float(proof.slots):g} issue slots of a warp{shared} on {proof.target}."
            ),
            *(line for text in _bounds(proof) for line in _remark(f"error at most {text}")),
        ]
        if is_native:
            lines += [
                f"// x and the result are the bits of a {proof.format}.",
                *_function(f"unsigned short {name}", "b16", "h", stub.splitlines()),
                f"// Two of them: x and the result are the bits of a {_PAIRS[proof.format]}.",
                *_function(f"unsigned int {name}_x2", "b32", "r", paired(language, words)),
                "",
            ]
        else:
            lines += [*_function(f"float {name}", "f32", "f", stub.splitlines()), *_of_two(proof.format, name), ""]
    return "\n".join(lines)


def _remark(text: str) -> list[str]:
    return comment_lines(" ".join(text.split()), "// ")


def _function(head: str, kind: str, letter: str, stub: Sequence[str]) -> list[str]:
    """A device function of one type, whose result a stub leaves in %y, of %x."""
    c_type = head.rpartition(" ")[0]
    text = (_CONTRACTED.sub(r"\1.rn.", line).replace("%", "%%") for line in stub)
    return [
        f"__device__ __forceinline__ {head}({c_type} x) {{",
        f"    {c_type} y;",
        '    asm("{\\n\\t"',
        f'        ".reg .{kind} %%x, %%y;\\n\\t"',
        f'        "mov.{kind} %%x, %1;\\n\\t"',
        *(f'        "{line}\\n\\t"' for line in text),
        f'        "mov.{kind} %0, %%y;\\n\\t"',
        '        "}"',
        f'        : "={letter}"(y)',
        f'        : "{letter}"(x));',
        "    return y;",
        "}",
    ]


def paired(language: Language, words: NDArray[np.uint64]) -> list[str]:
    """The stub of a native program for the two halves of %x: instructions of halves take both at once, others are there twice."""
    lowered, instruction_set = language.lowering.lower(words), language.instruction_set
    names: dict[int, tuple[str, ...]] = {}  # of each value: the register of both, or that of each, or a literal
    lines = []

    def registers(value: int, stack: StackType) -> tuple[str, ...]:
        names[value] = (f"%v{value}",) if stack.constant_type in HALVES else (f"%v{value}a", f"%v{value}b")
        lines.append(f".reg .{'b32' if stack.constant_type in HALVES else stack.literal_prefix} {', '.join(names[value])};")
        return names[value]

    for node in lowered.nodes:
        value, payload, stack = int(node["first_value"]), int(node["payload"]), instruction_set.stacks[node["stack_idx"]]
        if node["kind"] == NodeKind.INPUT:
            names[value] = ("%x",)
        elif node["kind"] == NodeKind.CONSTANT and stack.constant_type in HALVES:
            bits = FORMATS[stack.constant_type].bits(np.uint32(payload).view(np.float32))
            lines.append(f"mov.b32 {registers(value, stack)[0]}, 0x{bits:04X}{bits:04X};")
        elif node["kind"] == NodeKind.CONSTANT:
            names[value] = (f"0f{payload:08X}" if stack.constant_type == "f32" else f"0x{payload:08X}",) * 2
        else:
            first, count = int(node["first_operand"]), int(node["num_operands"])
            operands = [names[int(operand)] for operand in lowered.operands[first : first + count]]
            ptx, results = instruction_set.instructions[payload].ptx, registers(value, stack)
            if ptx in ("cvt.rn.bf16.f32", "cvt.rn.f16.f32"):  # the first operand is the upper half
                lines.append(f"{ptx.replace('16.f32', '16x2.f32')} {results[0]}, {operands[0][1]}, {operands[0][0]};")
            elif ptx == "cvt.f32.bf16":
                parts = f".reg .b32 %l{value}, %h{value}; shl.b32 %l{value}, {{0}}, 16; and.b32 %h{value}, {{0}}, 0xFFFF0000;"
                lines.append(parts.format(operands[0][0]))
                lines += [f"mov.b32 {name}, %{part}{value};" for name, part in zip(results, "lh", strict=True)]
            elif ptx == "cvt.f32.f16":
                lines.append(f".reg .b16 %l{value}, %h{value}; mov.b32 {{%l{value}, %h{value}}}, {operands[0][0]};")
                lines += [f"{ptx} {name}, %{part}{value};" for name, part in zip(results, "lh", strict=True)]
            elif len(results) == 1:
                lines.append(f"{ptx}x2 {results[0]}, {', '.join(operand[0] for operand in operands)};")
            else:
                name, _, immediates = ptx.partition(" ")
                rest = f", {immediates}" if immediates else ""
                lines += [
                    f"{name} {result}, {', '.join(operand[k] for operand in operands)}{rest};" for k, result in enumerate(results)
                ]
    return ["{", *lines, f"mov.b32 %y, {names[int(lowered.request_values[0])][0]};", "}"]


def _of_two(form: str, name: str) -> list[str]:
    """Merge two conversions of one result each into one of two, as the formats' arithmetic wants."""
    if form not in _HALVES:
        return []
    return [
        f"// Two of them, rounded: x and the result are the bits of a {_PAIRS[form]}. From sm_80 on.",
        f"__device__ __forceinline__ unsigned int {name}_x2(unsigned int x) {{",
        f"    {_HALVES[form]}",
        "    unsigned int y;",
        f'    asm("cvt.rn.{form}x2.f32 %0, %1, %2;" : "=r"(y) : "f"({name}(b)), "f"({name}(a)));',
        "    return y;",
        "}",
    ]


def function_name(proof: Certificate) -> str:
    """Name of a program in the header, such as `gelu_f32_14`, by its slots."""
    name = identifier(proof.function).strip("_") or "f"
    kind = f"native_{proof.format}" if proof.arithmetic == "native" else proof.format
    return identifier(f"{'f' if name[0].isdigit() else ''}{name}_{kind}_{float(proof.slots):g}")


def _bounds(proof: Certificate) -> list[str]:
    errors = proof.any_gpu or proof.cpu
    where = "" if proof.any_gpu else f" (by the CPU's arithmetic: no bound of {proof.why_not} is known)"
    where += "" if proof.enclosure == RIGOROUS else f" (an estimate: values of the function are {proof.enclosure})"
    return [f"{error.at_most()} {'ulp' if kind == 'ulp' else kind}{where}" for kind, error in errors.items()]
