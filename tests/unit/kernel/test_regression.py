"""The reduction on the GPU: its launches, and that it assembles for every target. What it computes: tests/emulated_gpu."""

import os

import pytest

if not os.environ.get("CI"):  # in CI a build without the wheel is a failure
    pytest.importorskip("evo.native.nvptxcompiler", reason="built without the wheel nvidia-nvptxcompiler")

from evo.kernel.regression import FIELDS, launches, regression_ptx, result_bytes, scratch_bytes
from evo.native.nvptxcompiler import compile
from evo.native.ptx_vm import SUMS_DTYPE


@pytest.mark.parametrize("target", ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_103", "sm_120", "sm_121"])
def test_both_kernels_assemble_for_every_target(target):
    cubin = compile(regression_ptx(target), (f"--gpu-name={target}",))
    names = [name for name, _, _ in launches(1, 1)]
    assert len(names) == 2
    assert all(f".text.{name}\0".encode() in cubin for name in names)


def test_the_fields_are_those_of_the_cpu():
    assert ("num_points", *FIELDS) == SUMS_DTYPE.names


@pytest.mark.parametrize(
    ("num_rows", "num_points", "block_threads", "row_threads"),
    [(1, 1, 8, 256), (1, 1024, 8, 256), (1, 1025, 16, 256), (128, 4096, 4096, 32768), (3, 2**32 - 1, 3 * 8 * 2**22, 768)],
)
def test_eight_threads_sum_a_block_and_a_warp_a_field(num_rows, num_points, block_threads, row_threads):
    for (_, grid, block_size), threads in zip(launches(num_rows, num_points), (block_threads, row_threads), strict=True):
        assert grid == (-(-threads // block_size), 1)
        assert block_size % 32 == 0


def test_memory_is_a_float64_for_each_field_of_a_block_and_of_a_row():
    assert scratch_bytes(10, 1024) == 10 * 8 * 8
    assert scratch_bytes(10, 1025) == 2 * scratch_bytes(10, 1024)
    assert result_bytes(10) == 10 * 8 * 8


@pytest.mark.parametrize(("num_rows", "num_points"), [(0, 1), (1, 0), (1, 2**32), (2**24, 1), (200, 2**32 - 1)])
def test_more_than_one_launch_can_hold_is_refused(num_rows, num_points):
    with pytest.raises(ValueError, match=f"{num_rows} rows of {num_points} points"):
        launches(num_rows, num_points)
