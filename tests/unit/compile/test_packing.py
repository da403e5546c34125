"""Packing: every program once, in packs that take about as long as each other."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evo.compile.packing import Packing, plan_packs
from evo.compile.request import kernel_sizes


@st.composite
def batches(draw):
    """Hashes from a small range, so that some are equal, and numbers of instructions that follow from them."""
    keys = draw(st.lists(st.integers(0, 40), max_size=60))
    hashes = np.array([[key, key * 7 % 5] for key in keys], np.uint64).reshape(-1, 2)
    return hashes, np.array([key * 13 % 11 for key in keys], np.int32)


@given(batch=batches(), packing=st.builds(Packing, sites_per_kernel=st.integers(1, 5), kernels_per_module=st.integers(1, 3)))
def test_every_row_is_at_one_site_with_all_rows_that_mean_the_same(batch, packing):
    hashes, num_instructions = batch
    packs = plan_packs(hashes, num_instructions, packing)
    sites = [rows for pack in packs for rows in pack]
    assert sorted(row for rows in sites for row in rows.tolist()) == list(range(len(hashes)))
    assert len(sites) == len(set(map(tuple, hashes.tolist())))
    for rows in sites:
        assert len(set(map(tuple, hashes[rows].tolist()))) == 1
        assert rows.tolist() == sorted(rows.tolist())


@given(batch=batches(), packing=st.builds(Packing, sites_per_kernel=st.integers(1, 5), kernels_per_module=st.integers(1, 3)))
def test_packs_are_few_and_hold_the_longest_programs_first(batch, packing):
    hashes, num_instructions = batch
    packs = plan_packs(hashes, num_instructions, packing)
    sizes = [len(pack) for pack in packs]
    assert len(packs) == -(-sum(sizes) // packing.programs_per_module)
    assert not sizes or (min(sizes) >= 1 and max(sizes) <= packing.programs_per_module)
    for pack in packs:
        lengths = [num_instructions[rows[0]] for rows in pack]
        assert lengths == sorted(lengths, reverse=True)


@pytest.mark.parametrize(
    ("num_programs", "num_workers", "num_packs"),
    [
        (2048, 1, 16),
        (2048, 12, 24),
        (2048, 40, 40),
        (256, 16, 16),
        (256, 64, 32),
        (14, 2, 1),
        (40, 2, 2),
        (1, 8, 1),
        (3000, 64, 64),
    ],
)
def test_all_workers_have_the_same_number_of_packs_unless_packs_get_too_small(num_programs, num_workers, num_packs):
    hashes = np.arange(2 * num_programs, dtype=np.uint64).reshape(-1, 2)
    packs = plan_packs(hashes, np.zeros(num_programs, np.int32), Packing(sites_per_kernel=64, kernels_per_module=2), num_workers)
    assert len(packs) == num_packs


@given(num_programs=st.integers(1, 300), sites_per_kernel=st.integers(1, 130))
def test_kernels_are_few_and_even(num_programs, sites_per_kernel):
    sizes = kernel_sizes(num_programs, sites_per_kernel)
    assert sum(sizes) == num_programs
    assert max(sizes) <= sites_per_kernel
    assert max(sizes) - min(sizes) <= 1
    assert len(sizes) == -(-num_programs // sites_per_kernel)
