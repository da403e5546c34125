"""evo.semiring on a GPU, over the stand-in: results and gradients against those of the CPU, launches, cubins and tiles."""

from pathlib import Path

import numpy as np
import pytest
from gpu.parts.semirings import Gpu

import evo.semiring.device_fold as device_fold
from evo.errors import UserError
from evo.native import nvptxcompiler
from evo.semiring import Semiring, fold_kernel, zoo
from evo.semiring.contraction import run
from evo.semiring.device_fold import Launcher
from evo.semiring.fold_kernel import ELEMENTS
from evo.storage.disk_cache import DiskCache

REPOSITORY = Path(__file__).parents[3]
RANDOM = np.random.default_rng(4)


def rows(*shape, dtype=np.float32):
    return RANDOM.normal(size=shape).astype(dtype)


@pytest.fixture
def gpu(emulated_gpu):
    yield Gpu(0)
    assert not emulated_gpu.messages


EXACT = ["l1", "squared_l2", "min_plus", "max_times", "chebyshev", "hamming"]


@pytest.mark.parametrize("elements", ELEMENTS)
@pytest.mark.parametrize("name", ["l1", "min_plus"])
def test_tiles_of_every_size_give_the_bits_of_the_cpu(gpu, name, elements):
    fold = getattr(zoo, name).fold
    m, n = 16 * elements + 3, 16 * elements - 5  # more than one tile, and less
    arrays = [rows(m, 11), rows(n, 11)]  # more than one tile of k, whose last is not full
    for found, wanted in zip(gpu.run(fold, arrays, elements), run(fold, arrays), strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", EXACT)
def test_exact_semirings_have_the_bits_of_the_cpu(gpu, name):
    arrays = [rows(5, 9), rows(40, 9)]
    arrays[0][1] = arrays[1][2]
    for fold in (getattr(zoo, name).fold, getattr(zoo, name).whole):
        for found, wanted in zip(gpu.run(fold, arrays), run(fold, arrays), strict=True):
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", ["l2", "log_sum_exp", "lp", "gaussian", "laplace", "matern_12", "matern_32", "matern_52"])
def test_others_agree_within_the_bounds_of_their_functions(gpu, name):
    semiring = getattr(zoo, name)
    arrays = [rows(5, 9), rows(40, 9), *(np.asarray(1.7, np.float32) for _ in semiring.hyper)]
    np.testing.assert_allclose(gpu.run(semiring.whole, arrays)[0], run(semiring.whole, arrays)[0], rtol=4e-6)


def test_views_and_batches_are_read_where_they_are(gpu, emulated_gpu, monkeypatch):
    monkeypatch.setattr(device_fold, "_MAX_GRID_Y", 2)
    a = rows(3, 1, 2, 8, 30)[..., 5:, ::-3][..., :2]
    b = rows(4, 6, 2, 10).transpose(0, 2, 3, 1)[..., 1:5:2]
    scale = rows(4, 1)
    fold = Semiring("abs(a - b)*scale").whole
    (found,) = gpu.run(fold, [a, b, scale])
    assert found.shape == (3, 4, 2, 3, 10)
    np.testing.assert_array_equal(found, run(fold, [a, b, scale])[0])
    assert emulated_gpu.num_calls("launch") == 3 * 4  # by the first axis, and two matrices at once


def test_minimum_and_sum_treat_nan_as_on_the_cpu(gpu):
    a, b = np.float32([[np.nan, 1.0], [np.nan, np.nan]]), np.float32([[0.0, 2.0]])
    for fold in (zoo.min_plus.fold, zoo.l1.fold, zoo.log_sum_exp.whole):
        for found, wanted in zip(gpu.run(fold, [a, b]), run(fold, [a, b]), strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_large_calls_try_all_tiles_once_and_remember_the_fastest(emulated_gpu, tmp_path, monkeypatch):
    monkeypatch.setattr(device_fold, "_MIN_MEASURED", 1)
    monkeypatch.setattr(device_fold, "_ROUNDS", 0)
    times, tried, seconds = {8: 2.0, 4: 1.0, 2: 3.0}, [], Launcher._seconds

    def timed(launcher, launch, elements, stream):
        assert seconds(launcher, launch, elements, stream) > 0
        tried.append(elements)
        return times[elements]

    monkeypatch.setattr(Launcher, "_seconds", timed)
    for size, num_tried in ((40, 3), (45, 3), (70, 6)):  # the first two are of one class
        gpu = Gpu(0, DiskCache(tmp_path))  # as in a new process
        arrays = [rows(size, 1), rows(5, 1)]
        np.testing.assert_array_equal(gpu.run(zoo.l1.fold, arrays)[0], run(zoo.l1.fold, arrays)[0])
        assert len(tried) == num_tried
        assert 4 in [elements for _, _, elements in gpu.launcher._functions]
    assert tried == [8, 4, 2] * 2


def test_too_many_operands_are_refused(gpu):
    names = [f"scale{i}" for i in range(9)]
    with pytest.raises(UserError, match="at most 8 numbers, this one 9: derivatives of third order"):
        gpu.run(Semiring("+".join(["a*b", *names])).fold, [rows(2, 3), rows(2, 3), *(np.asarray(1.0, np.float32) for _ in names)])


@pytest.mark.parametrize("elements", ELEMENTS)
def test_the_shipped_kernels_are_those_of_their_source(elements):
    from evo.kernel import nvrtc

    try:
        ptx = fold_kernel.compiled(REPOSITORY / "csrc", elements)
    except nvrtc.NvrtcMissing:
        pytest.skip("NVRTC is not installed")
    assert fold_kernel._template(elements)._source[0] == ptx.decode(), "python -m evo.semiring.fold_kernel writes them"


def test_the_assembler_leaves_out_what_a_fold_does_not_use(disassemble):
    for fold, most in ((zoo.l1.whole, 2.2), (zoo.min_plus.fold, 4.3)):
        ptx = fold_kernel.kernel_ptx(fold, (1, 1), 8, "sm_90")
        code = disassemble(nvptxcompiler.compile(ptx.encode(), ("--gpu-name=sm_90", "--fmad=false", "--opt-level=3")))["fold"]
        first, *_, last = (place for place, line in enumerate(code) if line.startswith("LDS"))
        end = next(place for place in range(last, len(code)) if "BRA" in code[place])
        assert (end - first) / 64 < most  # instructions of a step of a pair
        assert not any("STL" in line or "LDL" in line for line in code)  # registers that have no room
