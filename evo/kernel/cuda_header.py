"""`evo.cuh`, the header that a task's own kernel.cu includes: points, sites and sizes, generated for the task's language.

Owns its text and the bytes of the `EvoPoints` that kernels take; `evo.kernel.cuda_source` has the contract with kernel.cu. Sites
are inline assembly in the marker format of ptx_inject.h over the registers of `pointwise.site_variables`, so that one lowering
emits stubs for both kinds of templates.
"""

import re
import struct
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evo.c_text import KEYWORDS
from evo.errors import UserError
from evo.kernel.interpreted_program import program_text
from evo.kernel.interpreter_cases import Cases
from evo.kernel.interpreter_layout import Layout
from evo.kernel.pointwise import SiteVariable, site_variables
from evo.language.program import Language

HEADER_NAME = "evo.cuh"
BLOCK_SIZE = 256

_Integers: TypeAlias = Sequence[int] | NDArray[np.integer[Any]]

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# C++ type and constraint of inline assembly for each type of a register.
_TYPES = {"f32": ("float", "f"), "u32": ("unsigned int", "r"), "s32": ("int", "r"), "b32": ("unsigned int", "r")}


def header(
    language: Language, num_sites: int, num_measures: int, num_results: int, interpreted: tuple[Layout, Cases] | None = None
) -> str:
    """The text of evo.cuh.

    Args:
        num_results: values that the kernel writes for each program.
        interpreted: what evo_program interprets; None: programs are compiled into its sites.

    Raises:
        UserError: an input's name is not possible in C++.
    """
    inputs = [name for name, _ in language.inputs]
    for name in inputs:
        is_taken = name in KEYWORDS or name == "num_points" or name.lower().startswith("evo_")
        if is_taken or not _IDENTIFIER.fullmatch(name):
            raise UserError(f"input '{name}': kernel.cu would call it points.{name}(i), which C++ or evo.cuh refuses: rename it")
    variables = site_variables(language)
    types = {variable.name: _TYPES[variable.register_type][0] for variable in variables}
    outputs = [name for name, _ in language.outputs]
    lines = ["#ifndef EVO_CUH", "#define EVO_CUH", f"#define EVO_BLOCK_SIZE {BLOCK_SIZE}", f"#define EVO_NUM_SITES {num_sites}"]
    lines += [f"#define EVO_NUM_MEASURES {num_measures}", f"#define EVO_NUM_RESULTS {num_results}", "struct EvoPoints {"]
    lines += [f"    const char* evo_values_{i};" for i in range(len(inputs))]
    lines += [f"    unsigned int evo_stride_{i};" for i in range(len(inputs))] + ["    unsigned int num_points;"]
    for i, name in enumerate(inputs):
        lines += [f"    __device__ __forceinline__ {types[name]} {name}(unsigned int i) const {{"]
        address = f"evo_values_{i} + (unsigned long long)i * evo_stride_{i}"
        lines += [f"        return __ldg(reinterpret_cast<const {types[name]}*>({address}));", "    }"]
    # This declaration makes any other signature, and C++ linkage, an error at the kernel's definition.
    lines += ["};", 'extern "C" __global__ void __launch_bounds__(EVO_BLOCK_SIZE)']
    lines += ["evaluate(EvoPoints points, const int* num_instructions, double* scores);"]
    if interpreted:
        lines += program_text(*interpreted, [types[name] for name in inputs], [types[name] for name in outputs])
    else:
        lines += _sites(variables, inputs, outputs, num_sites)
    return "\n".join([*lines, "#endif"]) + "\n"


def points_argument(addresses: _Integers, strides: _Integers, num_points: int) -> NDArray[np.uint8]:
    """The bytes of an `EvoPoints`, uint8.

    Args:
        addresses: device addresses of each input's values.
        strides: bytes from a point to the next: 4, or 0 for an input that is the same at all points.
    """
    num_inputs = len(addresses)
    packed = struct.pack(f"<{num_inputs}Q{num_inputs + 1}I", *map(int, addresses), *map(int, strides), num_points)
    return np.frombuffer(packed + bytes(-len(packed) % 8), np.uint8)


def _sites(variables: tuple[SiteVariable, ...], inputs: list[str], outputs: list[str], num_sites: int) -> list[str]:
    """evo_program with a site for each program."""
    types = {variable.name: _TYPES[variable.register_type][0] for variable in variables}
    parameters = [f"{types[name]} in_{i}" for i, name in enumerate(inputs)]
    parameters += [f"{types[name]}& out_{i}" for i, name in enumerate(outputs)]
    lines = _site_macro(variables, inputs, outputs)
    lines += [f"static __device__ __forceinline__ void evo_program(unsigned int site, {', '.join(parameters)}) {{"]
    # A register that is both input and output is passed as the output.
    lines += [f"    out_{i} = {f'in_{inputs.index(name)}' if name in inputs else 0};" for i, name in enumerate(outputs)]
    return [*lines, "    switch (site) {", *(f"    EVO__SITE({site})" for site in range(num_sites)), "    }", "}"]


def _site_macro(variables: tuple[SiteVariable, ...], inputs: list[str], outputs: list[str]) -> list[str]:
    """EVO__SITE(number): the case of a site. Not volatile, since a program depends on its operands alone."""
    text = ["{"]
    for i, v in enumerate(variables):
        text += [f".reg .{v.register_type} %%{v.register};"]
        text += [f"mov.{v.register_type} %%{v.register}, %{i};"] if v.kind != "o" else []
    text += ['// PTX_INJECT_START site_" #number "']
    text += [f"// {v.register} {v.kind} {v.register_type} {v.data_type} {v.name}" for v in variables]
    text += ["// PTX_INJECT_END"]
    text += [f"mov.{v.register_type} %{i}, %%{v.register};" for i, v in enumerate(variables) if v.kind != "i"]
    text += ["}"]
    modes = {"m": "+", "o": "=", "i": ""}
    operands: dict[str, list[str]] = {kind: [] for kind in modes}
    for v in variables:
        operand = f"in_{inputs.index(v.name)}" if v.kind == "i" else f"out_{outputs.index(v.name)}"
        operands[v.kind].append(f'"{modes[v.kind]}{_TYPES[v.register_type][1]}"({operand})')
    lines = ["#define EVO__SITE(number) case number: asm( \\", *(f'    "{line}\\n\\t" \\' for line in text)]
    return [*lines, f"    : {', '.join(operands['m'] + operands['o'])} : {', '.join(operands['i'])}); break;"]
