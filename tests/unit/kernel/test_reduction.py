"""The reduction on the GPU: that it assembles for every target, its launches, and that its sums are the CPU's bit by bit."""

import os
import struct

import numpy as np
import pytest
from emulated_gpu.ptx_machine import launch
from emulated_gpu.ptx_memory import Memory
from emulated_gpu.ptx_text import Module

if not os.environ.get("CI"):  # in CI a build without the wheel is a failure
    pytest.importorskip("evo.native.nvptxcompiler", reason="built without the wheel nvidia-nvptxcompiler")

from evo.instructions import shipped_instruction_set
from evo.kernel.reduction import FIELDS, launches, regression_ptx, result_bytes, scratch_bytes
from evo.language.program import Language, parse_program
from evo.native.nvptxcompiler import compile as assemble
from evo.native.ptx_vm import Targets, VirtualMachine

MODULES = [Module(regression_ptx("sm_90", is_weighted)) for is_weighted in (False, True)]


@pytest.mark.parametrize("target", ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_103", "sm_120", "sm_121"])
def test_both_kernels_assemble_for_every_target(target):
    cubin = assemble(regression_ptx(target, is_weighted=True), (f"--gpu-name={target}",))
    names = [name for name, _, _ in launches(1, 1)]
    assert len(names) == 2
    assert all(f".text.{name}\0".encode() in cubin for name in names)


@pytest.mark.parametrize(
    ("num_rows", "num_points", "block_threads", "row_threads"),
    [(1, 1, 8, 32), (1, 1024, 8, 32), (1, 1025, 16, 32), (128, 4096, 4096, 4096), (3, 2**32 - 1, 3 * 8 * 2**22, 96)],
)
def test_eight_threads_sum_a_block_and_a_warp_a_row(num_rows, num_points, block_threads, row_threads):
    for (_, grid, block_size), threads in zip(launches(num_rows, num_points), (block_threads, row_threads), strict=True):
        assert grid == (-(-threads // block_size), 1)
        assert block_size % 32 == 0


@pytest.mark.parametrize(("num_rows", "num_points"), [(0, 1), (1, 0), (1, 2**32), (2**27, 1), (200, 2**32 - 1)])
def test_what_does_not_fit_into_one_launch_is_refused(num_rows, num_points):
    with pytest.raises(ValueError, match=f"{num_rows} rows of {num_points} points"):
        launches(num_rows, num_points)


def sums_on_gpu(
    outputs: np.ndarray, targets: np.ndarray, order: str = "together", weights: np.ndarray | None = None
) -> np.ndarray:
    """`(num_programs, num_outputs, NUM_FIELDS)` by the kernels, on an emulated GPU whose memory holds just what they need."""
    num_programs, num_outputs, num_points = outputs.shape
    num_rows = num_programs * num_outputs
    sums, scratch = (np.full(size // 8, np.nan) for size in (result_bytes(num_rows), scratch_bytes(num_rows, num_points)))
    memory = Memory.of_arrays(outputs, targets, sums, scratch, *([] if weights is None else [weights]))
    addresses = (outputs.ctypes.data, targets.ctypes.data, 0 if weights is None else weights.ctypes.data, scratch.ctypes.data)
    parameters = [
        struct.pack("<4Q3I", *addresses, num_rows, num_outputs, num_points),
        struct.pack("<2Q2I", scratch.ctypes.data, sums.ctypes.data, num_rows, num_points),
    ]
    for (name, grid, block_size), block in zip(launches(num_rows, num_points), parameters, strict=True):
        launch(MODULES[weights is not None], name, grid, (block_size,), block, memory, order=order)
    return sums.reshape(num_programs, num_outputs, len(FIELDS))


def sums_on_cpu(outputs: np.ndarray, targets: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """The same by programs that leave their inputs as outputs."""
    num_outputs = outputs.shape[1]
    names = [(f"{kind}{i}", "f32") for kind in "xy" for i in range(num_outputs)]
    language = Language(shipped_instruction_set("default"), tuple(names[:num_outputs]), tuple(names[num_outputs:]))
    copy = parse_program(language, " ".join(f"%x{i}" for i in reversed(range(num_outputs))), "here")[None]
    machine = VirtualMachine(language.lowering)
    sums = [machine.reduce(copy, [*rows, *[None] * num_outputs], Targets(targets, weights))[0] for rows in outputs]
    return np.array([[[float(row[field]) for field in FIELDS] for row in program] for program in sums])


def some_values(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Float32 of all magnitudes, in which sums depend on the order of addition and squares of errors are rounded."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=shape) * 2.0 ** rng.integers(-30, 30, shape)
    return values.astype(np.float32)


@pytest.mark.parametrize("num_points", [1, 7, 8, 9, 1000, 1024, 1025, 5000, 32 * 1024, 33 * 1024 + 1, 70000, 2**20 + 1])
def test_sums_equal_those_of_the_cpu_bit_by_bit(num_points):
    outputs, targets = some_values((2, 2, num_points), 1), some_values((2, num_points), 2)
    np.testing.assert_array_equal(sums_on_gpu(outputs, targets).view(np.uint64), sums_on_cpu(outputs, targets).view(np.uint64))


@pytest.mark.parametrize("num_points", [9, 3000])
def test_weighted_sums_equal_those_of_the_cpu_bit_by_bit(num_points):
    outputs, targets = some_values((2, 2, num_points), 1), some_values((2, num_points), 2)
    outputs[1, 0, ::7] = np.nan
    weights = np.abs(some_values((num_points,), 3))
    expected = sums_on_cpu(outputs, targets, weights)
    np.testing.assert_array_equal(sums_on_gpu(outputs, targets, weights=weights).view(np.uint64), expected.view(np.uint64))
    assert not np.array_equal(expected, sums_on_cpu(outputs, targets))


SPECIAL = np.array([np.nan, -np.nan, np.inf, -np.inf, 1e-40, -1e-40, -0.0, 0.0, 3.4028235e38, -3.4028235e38], np.float32)


def test_points_that_are_not_finite_and_the_ends_of_the_range_are_as_on_the_cpu():
    num_points = 2500
    outputs, targets = some_values((4, 3, num_points), 5), some_values((3, num_points), 6)
    rng = np.random.default_rng(7)
    for values, share in ((outputs[0], 0.05), (outputs[1], 0.9), (targets[1:2], 0.05)):
        chosen = rng.random(values.shape) < share
        values[chosen] = rng.choice(SPECIAL, chosen.sum())
    outputs[2] = np.nan
    outputs[3] = targets
    expected = sums_on_cpu(outputs, targets)
    assert expected[2, 0].tolist() == [num_points, 0, targets[0, 0], targets[0, 0], 0, 0, 0, 0, 0, 0, 0]
    assert expected[3, 0, FIELDS.index("sum_squared_error")] == 0
    assert np.isfinite(expected).all()
    np.testing.assert_array_equal(sums_on_gpu(outputs, targets).view(np.uint64), expected.view(np.uint64))


def test_every_pair_of_special_values_is_as_on_the_cpu():
    y, t = (grid.ravel() for grid in np.meshgrid(SPECIAL, SPECIAL))
    outputs, targets = y[None, :, None].copy(), t[:, None].copy()  # each pair a row of its own, of one point
    np.testing.assert_array_equal(sums_on_gpu(outputs, targets).view(np.uint64), sums_on_cpu(outputs, targets).view(np.uint64))
