"""docs/examples/cute_gemm: one CuTe kernel, compiled once, becomes a correct kernel for each semiring by injection alone."""

import re
import struct
from collections import Counter

import numpy as np
import pytest
from emulated_gpu.ptx_machine import launch
from emulated_gpu.ptx_memory import Memory
from emulated_gpu.ptx_text import Module

pytest.importorskip("evo.native.nvptxcompiler", reason="built without the wheel nvidia-nvptxcompiler")
pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
pytest.importorskip("cutlass_library", reason="the wheel nvidia-cutlass is not installed")

pytestmark = pytest.mark.slow  # NVRTC takes six seconds for CuTe

NAMES = ["plus-times", "min-plus", "max-plus", "L1", "L2"]

# Instructions of a multiply-add and an epilogue of each semiring, with 512 and 64 of them, in the hardware: it has
# absolute values and negations as modifiers of operands, min and max as FMNMX.
ARITHMETIC = {
    "plus-times": {"FFMA": 512},
    "min-plus": {"FADD": 512, "FMNMX": 512},
    "max-plus": {"FADD": 512, "FMNMX": 512},
    "L1": {"FADD": 1024},
    "L2": {"FADD": 512, "FFMA": 512, "MUFU.SQRT": 64},
}

# The same in NumPy: the sum's start, one more term, the epilogue.
REFERENCE = {
    "plus-times": (0.0, lambda total, a, b: total + a * b, lambda x: x),
    "min-plus": (np.inf, lambda total, a, b: np.minimum(total, a + b), lambda x: x),
    "max-plus": (-np.inf, lambda total, a, b: np.maximum(total, a + b), lambda x: x),
    "L1": (0.0, lambda total, a, b: total + np.abs(a - b), lambda x: x),
    "L2": (0.0, lambda total, a, b: total + (a - b) ** 2, np.sqrt),
}


@pytest.fixture(scope="module")
def gemm(example):
    """The example's module."""
    return example("cute_gemm/cute_gemm.py")


@pytest.fixture(scope="module")
def ptx(gemm):
    """The kernel, compiled once."""
    return gemm.annotated_ptx()


@pytest.fixture(scope="module")
def inject(gemm, ptx):
    """The kernel, prepared once."""
    return gemm.PTXInject(ptx)


@pytest.fixture(scope="module")
def cubin_from_cuda(gemm):
    """The kernel with a semiring written as C++."""
    return gemm.cubin_from_cuda(gemm.SEMIRINGS["L2"], "sm_90")


def arithmetic(sass: list[str]) -> dict[str, int]:
    """Counts of f32 instructions, without their modifiers but for the function of the special function unit."""
    opcodes = re.findall(r"\b(FADD|FMUL|FFMA|FMNMX3?|FSEL|FSETP|MUFU\.\w+)\b", "\n".join(sass))
    return dict(Counter(opcodes))


def test_every_multiply_add_and_every_element_of_a_thread_is_a_site(inject):
    sites = {name: (one.num_sites, [(v.name, v.mutability, v.register) for v in one.values()]) for name, one in inject.items()}
    assert sites == {
        "mma": (8 * 8 * 8, [("sum", "mod", "_x0"), ("a", "in", "_x1"), ("b", "in", "_x2")]),
        "epilogue": (8 * 8, [("y", "out", "_x0"), ("x", "in", "_x1")]),
    }


@pytest.mark.parametrize(("name", "target"), [*((name, "sm_90") for name in NAMES), ("L2", "sm_120")])
def test_every_site_is_live_and_holds_the_semirings_arithmetic(gemm, inject, disassemble, name, target):
    rendered = inject.render(gemm.stubs_of(gemm.SEMIRINGS[name], inject))
    [sass] = disassemble(gemm.compile_ptx(rendered, (f"--gpu-name={target}",))).values()
    assert arithmetic(sass) == ARITHMETIC[name]
    assert not any("LDL" in line or "STL" in line for line in sass), "all sums are in registers"


def test_the_injected_kernel_has_the_arithmetic_of_the_one_written_in_cuda(cubin_from_cuda, disassemble):
    sass = disassemble(cubin_from_cuda)
    assert arithmetic(sass["semiring_gemm_128x128x8"]) == ARITHMETIC["L2"]


@pytest.mark.parametrize(
    ("name", "grid", "num_tiles", "order"),
    [*((name, (1, 1), 2, "warps") for name in NAMES), ("L2", (2, 1), 3, "warps reversed")],
)
def test_the_kernel_computes_the_semirings_product(gemm, inject, name, grid, num_tiles, order):
    """Emulated: sums in another order and with fused multiply-adds differ by rounding alone; minimum and maximum do not."""
    semiring = gemm.SEMIRINGS[name]
    zero, plus_times, epilogue = REFERENCE[name]
    m_size, n_size, k_size = grid[0] * 128, grid[1] * 128, num_tiles * 8
    random = np.random.default_rng(1)
    a = random.normal(size=(k_size, m_size)).astype(np.float32)
    b = random.normal(size=(k_size, n_size)).astype(np.float32)
    c = np.full((n_size, m_size), np.nan, np.float32)
    total = np.full((n_size, m_size), zero)
    for k in range(k_size):
        total = plus_times(total, a[k][None, :].astype(np.float64), b[k][:, None].astype(np.float64))

    module = Module(inject.render(gemm.stubs_of(semiring, inject)))
    addresses = (array.ctypes.data for array in (a, b, c))
    parameters = struct.pack("=3i4x3Qf", m_size, n_size, k_size, *addresses, semiring.zero)
    launch(module, "semiring_gemm_128x128x8", grid, (256,), parameters, Memory.of_arrays(a, b, c), order=order)
    np.testing.assert_allclose(c, epilogue(total), rtol=1e-5, atol=1e-5)


def test_the_script_prints_a_row_for_each_semiring(gemm, ptx, cubin_from_cuda, monkeypatch, capsys):
    monkeypatch.setattr(gemm, "annotated_ptx", lambda: ptx)  # the same once more takes twelve seconds
    monkeypatch.setattr(gemm, "cubin_from_cuda", lambda semiring, architecture: cubin_from_cuda)
    gemm.main("sm_80")
    printed = capsys.readouterr().out
    assert "512 of mma, 64 of epilogue" in printed
    rows = {line.split()[0]: line for line in printed.splitlines() if "%_x0" in line}
    assert list(rows) == NAMES
    assert rows["min-plus"].endswith("add.ftz.f32 %_s0_0, %_x1, %_x2; min.ftz.f32 %_s0_1, %_s0_0, %_x0; mov.f32 %_x0, %_s0_1;")
