"""PTX's special registers: who a thread is, and how large its block and grid are.

Owns their values. Clocks count nanoseconds of this machine. Which multiprocessor runs a thread is not known here.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from emulated_gpu.ptx_text import Unsupported


def special_register(name: str) -> Callable:
    """(group, threads) -> its values, `(1,)` where all threads have the same. Raises Unsupported."""
    base, _, axis = name.partition(".")
    if base in ("tid", "ntid", "ctaid", "nctaid") and axis in tuple("xyzw"):
        return _axis(base, "xyzw".index(axis))
    if name == "laneid":
        return _each(lambda group: group.lane)
    if name == "warpid":
        return _each(lambda group: group.thread // 32)
    if name == "nwarpid":
        return _same(lambda group: -(-group.block_threads // 32))
    if name.startswith("lanemask_"):
        return _lane_mask(name.removeprefix("lanemask_"))
    if name == "dynamic_smem_size":
        return _same(lambda group: group.dynamic_shared_bytes)
    if name == "total_smem_size":
        return _same(lambda group: group.dynamic_shared_bytes + group.code.shared_bytes)
    if name in ("clock64", "globaltimer"):
        return lambda group, threads: np.array([time.perf_counter_ns()], np.uint64)
    if name == "WARP_SZ":
        return _same(lambda group: 32)
    raise Unsupported(f"special register %{name}")


def _same(value: Callable) -> Callable:
    return lambda group, threads: np.array([value(group)], np.uint32)


def _each(values: Callable) -> Callable:
    def read(group, threads):
        every = values(group).astype(np.uint32)
        return every if threads is None else every[threads]

    return read


def _axis(base: str, axis: int) -> Callable:
    if axis == 3:
        return _same(lambda group: 0 if base in ("tid", "ctaid") else 1)
    if base == "ntid":
        return _same(lambda group: group.block[axis])
    if base == "nctaid":
        return _same(lambda group: group.grid[axis])
    if base == "ctaid":
        if axis:
            return _same(lambda group: group.y if axis == 1 else group.z)
        return _each(lambda group: group.first_block + group.block_index)
    divisor = {0: lambda block: 1, 1: lambda block: block[0], 2: lambda block: block[0] * block[1]}[axis]
    return _each(lambda group: group.thread // divisor(group.block) % group.block[axis])


def _lane_mask(comparison: str) -> Callable:
    def masks(group):
        bit = np.int64(1) << group.lane
        known = {"eq": bit, "lt": bit - 1, "le": 2 * bit - 1, "gt": 0xFFFFFFFF & ~(2 * bit - 1), "ge": 0xFFFFFFFF & ~(bit - 1)}
        if comparison not in known:
            raise Unsupported(f"special register %lanemask_{comparison}")
        return known[comparison]

    return _each(masks)
