"""Packing: which programs share a module.

Owns this choice, which changes no result: a program computes the same in every pack.
"""

import heapq
from typing import Annotated, Self

import numpy as np
from pydantic import Field, model_validator

from evo.options import Integer, Options

# To keep all workers busy, packs shrink down to this many programs: then a pack spends more time on itself than on them.
MIN_PROGRAMS_PER_MODULE = 8
# A site takes as long to compile as this many instructions, measured for sm_90: 0.11 ms and 0.026 ms (docs/benchmarks.md).
SITE_COST = 4
MAX_PROGRAMS = 4096  # of a module, and of a request


class Packing(Options):
    """Programs that are compiled, loaded and run together: sites of a kernel, and kernels of a module. The defaults compile the
    most programs a second (docs/benchmarks.md).
    """

    sites_per_kernel: Annotated[Integer, Field(ge=1, le=MAX_PROGRAMS)] = 64
    kernels_per_module: Annotated[Integer, Field(ge=1, le=MAX_PROGRAMS)] = 2

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if self.programs_per_module > MAX_PROGRAMS:
            raise ValueError(f"sites_per_kernel times kernels_per_module must be at most {MAX_PROGRAMS} programs")
        return self

    @property
    def programs_per_module(self) -> int:
        """Most programs of a module."""
        return self.sites_per_kernel * self.kernels_per_module


def plan_packs(
    hashes: np.ndarray, num_instructions: np.ndarray, packing: Packing, num_workers: int = 1
) -> list[list[np.ndarray]]:
    """Packs that take about as long as each other: each program, the longest first, goes to the pack with the least to do.

    Args:
        hashes: `(num_programs, 2)` uint64, equal for programs that mean the same.
        num_instructions: `(num_programs,)`.
        num_workers: how many packs are compiled at once. The number of packs is a multiple of it, unless packs get too small.

    Returns:
        for each pack, for each of its sites, the rows of all programs that mean the same, ascending: the site serves them all.
        Sites with the most instructions come first.
    """
    if len(hashes) == 0:
        return []
    _, first_rows, groups = np.unique(hashes, axis=0, return_index=True, return_inverse=True)
    rows_by_group = np.argsort(groups.ravel(), kind="stable")
    rows_of = np.split(rows_by_group, np.cumsum(np.bincount(groups.ravel()))[:-1])
    order = np.lexsort((first_rows, -num_instructions[first_rows].astype(np.int64)))
    packs: list[list[np.ndarray]] = [[] for _ in range(_num_packs(len(order), packing, num_workers))]
    open_packs = [(0, number) for number in range(len(packs))]  # the load of each; a heap
    for group in order:
        cost, number = open_packs[0]
        packs[number].append(rows_of[group])
        if len(packs[number]) == packing.programs_per_module:
            heapq.heappop(open_packs)
        else:
            heapq.heapreplace(open_packs, (cost + SITE_COST + int(num_instructions[first_rows[group]]), number))
    return packs


def _num_packs(num_programs: int, packing: Packing, num_workers: int) -> int:
    fewest = -(-num_programs // packing.programs_per_module)
    for_all_workers = -(-fewest // num_workers) * num_workers
    return max(fewest, min(for_all_workers, num_programs // MIN_PROGRAMS_PER_MODULE))
