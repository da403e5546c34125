"""evo.evaluate.cuda.agreement and device_tests: a difference between CPU and GPU is found, wherever it is."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings is not installed")
pytest.importorskip("evo.native.nvptxcompiler", reason="built without the wheel nvidia-nvptxcompiler")

from evo.evaluate.cpu import CpuEvaluator
from evo.evaluate.cuda import device_tests
from evo.evaluate.cuda.agreement import (
    BOUNDS,
    EXACT,
    LANGUAGE,
    NAMES,
    Operands,
    compare,
    different_rows,
    edge_columns,
    output_of,
    points_of,
    programs_of,
)
from evo.evaluate.cuda.device import Device
from evo.instructions import shipped_instruction_set
from evo.native.ptx_vm import VirtualMachine

POINTS = points_of(edge_columns())


def bits_of(*values: float) -> np.ndarray:
    return np.array(values, np.float32).view(np.uint32)


def result_of(name: str) -> np.ndarray:
    """Bits of an instruction's results at the edges, on the CPU."""
    outputs = CpuEvaluator(LANGUAGE, Operands(POINTS), 1).outputs(programs_of([name]), POINTS)
    return np.ascontiguousarray(outputs[output_of(name)][0]).view(np.uint32)


def test_every_instruction_of_the_default_set_that_the_cpu_knows_is_tested():
    instruction_set = shipped_instruction_set("default")
    unsupported = VirtualMachine(LANGUAGE.lowering).unsupported
    known = {instruction.name for instruction in instruction_set.instructions} - unsupported - {"f16_to_f32"}  # of halves
    assert len(known) >= 30
    assert known | set(BOUNDS) | set(EXACT) <= set(NAMES)
    assert {name for name in NAMES if "approx" in name} == set(BOUNDS)


def test_rows_differ_by_their_bits_wherever_they_lie():
    one = [np.float64([0.0, np.nan, 1.0, 2.0]), np.zeros((4, 3, 2), np.float32), np.uint8([0, 1, 2, 3])]
    other = [each.copy() for each in one]
    assert different_rows(one, other).tolist() == []
    other[0][0], other[1][3, 1, 1] = -0.0, np.nextafter(np.float32(0), np.float32(1))
    assert different_rows(one, other).tolist() == [0, 3]
    other[2] = other[2][::-1]
    assert different_rows(one[2:], other[2:]).tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="zip"):
        different_rows(one, other[:2])


@pytest.mark.parametrize("name", ["add_ftz_f32", "setp_lt_ftz_f32", "mul_lo_u32", "mul_hi_philox"])
def test_one_wrong_bit_of_an_exact_instruction_is_found(name):
    expected = result_of(name)
    assert compare(name, POINTS, expected, expected).problem is None
    wrong = expected.copy()
    wrong[4321] ^= 1
    problem = compare(name, POINTS, expected, wrong).problem
    assert problem is not None
    a = POINTS["a"][4321]
    assert problem.startswith(f"{name} differs at 1 of 8,100 points, such as a {a.view(np.uint32):08x} ({a}), b ")
    values = [bits.view(np.float32) if name == "add_ftz_f32" else bits for bits in (expected[4321], wrong[4321])]
    assert problem.endswith(f": CPU {expected[4321]:08x} ({values[0]}), GPU {wrong[4321]:08x} ({values[1]})")


def test_a_result_between_subnormal_and_normal_may_be_flushed_or_not():
    smallest, zero = np.array([0x00800000, 0x80800000], np.uint32), np.array([0, 0x80000000], np.uint32)
    points = {"a": np.ones(2, np.float32)}
    assert compare("mul_ftz_f32", points, smallest, zero).problem is None
    assert compare("mul_ftz_f32", points, smallest, zero[::-1]).problem is not None


# The PTX ISA's bounds, 9.7.3: twice of each is allowed between two that keep them.
@pytest.mark.parametrize(
    ("name", "at", "value", "allowed"),
    [
        ("rcp_approx_ftz_f32", 1.0, 1.0, 3 * 2.0**-23),
        ("ex2_approx_ftz_f32", 1.0, 2.0, 4 * 2.0**-22),
        ("sin_approx_ftz_f32", 1.0, 0.84147096, 2 * 2.0**-20.5),
        ("lg2_approx_ftz_f32", 1.5, 0.5849625, 2 * 2.0**-22),
        ("sqrt_approx_ftz_f32", 4.0, 2.0, 4 * 2.0**-23),
        ("rsqrt_approx_ftz_f32", 0.0625, 4.0, 8 * 2.0**-22.9),
        ("tanh_approx_f32", 1.0, 0.7615942, 2 * 0.7615942 * 2.0**-11),
    ],
)
def test_an_approximate_instruction_may_differ_by_twice_its_bound_and_no_more(name, at, value, allowed):
    points = {"a": np.float32([at]), "b": np.float32([1.0])}
    cpu = bits_of(value)
    near, far = (bits_of(value + factor * allowed) for factor in (0.75, 1.5))
    assert compare(name, points, cpu, near).problem is None
    assert compare(name, points, cpu, far).problem is not None
    assert compare(name, points, cpu, cpu).num_compared == 1


@pytest.mark.parametrize(("cpu", "gpu"), [(np.nan, 1.0), (1.0, np.nan), (np.inf, -np.inf), (np.inf, 3.0e38), (1.0, np.inf)])
def test_special_values_of_an_approximate_instruction_must_agree(cpu, gpu):
    points = {"a": np.ones(1, np.float32)}
    assert compare("rcp_approx_ftz_f32", points, bits_of(cpu), bits_of(cpu)).problem is None
    assert compare("rcp_approx_ftz_f32", points, bits_of(cpu), bits_of(gpu)).problem is not None


class WrongOnce(CpuEvaluator):
    """Differs from the CPU evaluator in one program: in a bit of each output at one point, or of a score."""

    def evaluate(self, batch):
        evaluation = super().evaluate(batch)
        measures = evaluation.measures.copy()
        row = np.flatnonzero(np.isfinite(measures[:, 1]) & (measures[:, 1] > 0))[0]
        measures[row, 1] = np.nextafter(measures[row, 1], 0)
        return replace(evaluation, measures=measures)

    def outputs(self, words, points):
        found = {name: values.copy() for name, values in super().outputs(words, points).items()}
        for values in found.values():
            values.view(np.uint32)[0, 99] ^= 1
        return found


@pytest.mark.parametrize("step", [name for name in device_tests.STEPS if name != "the interpreter"])
def test_each_step_passes_on_a_gpu_without_fault_and_finds_one_wrong_bit(emulated_gpu, monkeypatch, step):
    assert device_tests.STEPS[step](0) is None
    monkeypatch.setattr(device_tests, "CpuEvaluator", WrongOnce)
    assert device_tests.STEPS[step](0) is not None


def test_a_module_is_unloaded_between_the_launches_of_another_and_their_end(emulated_gpu, monkeypatch):
    calls = []
    for name in ("launch", "unload", "wait"):
        call = getattr(Device, name)
        monkeypatch.setattr(Device, name, lambda self, *args, n=name, c=call: calls.append(n) or c(self, *args))
    emulated_gpu.configure("deferred=1")
    assert device_tests.STEPS["a module unloaded while another runs"](0) is None
    assert calls == ["launch", "wait", *["launch"] * 4, "unload", "wait"]
