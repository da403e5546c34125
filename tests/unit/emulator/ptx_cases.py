"""Kernels of one instruction, applied to arrays."""

from __future__ import annotations

import struct

import numpy as np
from emulated_gpu.ptx_machine import launch
from emulated_gpu.ptx_memory import Memory
from emulated_gpu.ptx_text import Module

HEADER = ".version 9.0\n.target sm_90\n.address_size 64\n"


def run_kernel(body: str, arrays: list[np.ndarray], threads: int = 32, blocks: int = 1, **options) -> None:
    """Runs a kernel whose parameters %p0, %p1, ... are the addresses of these arrays, and its memory nothing else."""
    parameters = ", ".join(f".param .u64 p{i}" for i in range(len(arrays)))
    loads = "".join(f".reg .u64 %p{i}; ld.param.u64 %p{i}, [p{i}];\n" for i in range(len(arrays)))
    module = Module(f"{HEADER}.visible .entry kernel({parameters})\n{{\n{loads}{body}\n}}\n")
    addresses = struct.pack(f"<{len(arrays)}Q", *(array.ctypes.data for array in arrays))
    launch(module, "kernel", (blocks,), (threads,), addresses, Memory.of_arrays(*arrays), **options)


def _memory_type(kind: str) -> str:
    return {"pred": "u32", "b8": "u8", "f16": "b16"}.get(kind, kind)


def apply(instruction: str, result: np.dtype, result_kind: str, *sources: tuple[str, np.ndarray]) -> np.ndarray:
    """Results of `instruction` (with %d for its result, %a, %b, ... for its operands) gives for each element of the sources.

    Args:
        result: element type of what is returned.
        sources: PTX type and `(count,)` values of each operand.
    """
    count = len(sources[0][1])
    out = np.zeros(count, result)
    arrays = [out, *(np.ascontiguousarray(values) for _, values in sources)]
    lines = [".reg .u32 %i; .reg .u64 %q; mov.u32 %i, %tid.x;", f".reg .{result_kind} %d;"]
    for number, (kind, values) in enumerate(sources, 1):
        name = "abcde"[number - 1]
        lines += [f".reg .{kind} %{name};", f"mad.wide.u32 %q, %i, {values.itemsize}, %p{number};"]
        if kind == "pred":
            lines += [f".reg .u32 %w{name}; ld.global.u32 %w{name}, [%q]; setp.ne.u32 %{name}, %w{name}, 0;"]
        else:
            lines += [f"ld.global.{_memory_type(kind)} %{name}, [%q];"]
    lines += [f"{instruction};", f"mad.wide.u32 %q, %i, {out.itemsize}, %p0;"]
    if result_kind == "pred":
        lines += [".reg .u32 %w; selp.u32 %w, 1, 0, %d; st.global.u32 [%q], %w;"]
    else:
        lines += [f"st.global.{_memory_type(result_kind)} [%q], %d;"]
    run_kernel("\n".join([*lines, "ret;"]), arrays, threads=count)
    return out
