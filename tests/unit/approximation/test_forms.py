"""Forms that a search begins with: what undoes them does, their cost is the table's, and they reach what people need."""

import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import evo
from evo.approximation import fitting, forms
from evo.config import load_config
from evo.evaluate.slots import slots_of
from evo.language.batch import Batch
from evo.report.show import read_program
from evo.run.loaded_task import load_problem

X = np.array([-3.7, -1.2, -0.3, 0.4, 0.9, 2.6])
CONFIG = load_config(Path("approximation"))


def names_at(x: np.ndarray) -> dict:
    return {**fitting._names(np.float64), "x": x, "a": np.abs(x), "c": np.copysign(1.0, x), "p": 0.3 + 0.1 * np.arange(len(x))}


@pytest.mark.parametrize("outer", forms.OUTERS)
def test_what_undoes_a_form_gives_its_polynomial(outer):
    tried = 0
    for variable, (kernel, undo_kernel) in product(forms.VARIABLES[:3], forms.KERNELS.items()):
        names = names_at(X)
        with np.errstate(all="ignore"):
            exec(f"{variable}; {kernel}; {outer}", names)
            found = eval(undo_kernel.replace("G", f"({forms.OUTERS[outer]})"), names)
        is_defined = np.isfinite(found)
        if "copysign(G" in outer or "copysign(1.0 - G" in outer:  # which take a size
            is_defined &= (names["G"] > 0) & (names["G"] < 1)
        np.testing.assert_allclose(found[is_defined], names["p"][is_defined], rtol=1e-5)
        tried += int(is_defined.sum())
    assert tried > 20


@pytest.mark.parametrize(("name", "variable", "end", "undo"), forms.PARTS)
def test_what_undoes_a_reduction_gives_its_polynomial(name, variable, end, undo):
    x = np.array([-0.24, -0.1, 0.1, 0.2], np.float32) + np.float32(1.0 if name in ("log", "log2", "cbrt") else 0.0)
    singles = {**fitting._names(np.float32), "x": x}
    exec(variable, singles)
    names = names_at(x.astype(np.float64)) | {key: np.float64(value) for key, value in singles.items() if key in "bdekrsuvwz"}
    names["p"] *= -1.0 if name == "atan" else 1.0  # which adds it to what is larger
    exec(end, names)
    np.testing.assert_allclose(eval(undo, names), names["p"], rtol=1e-6)


def test_the_cost_of_a_formula_is_the_tables():
    problem = load_problem(CONFIG)
    slots = slots_of(problem.language.instruction_set, "sm_90")
    bits = "u32_to_f32(shl_b32(sub_u32(f32_to_u32(x), and_b32(f32_to_u32(x + 1.0), 255)), 23))"
    for text in (
        "fma(x, 0.5, 2.0)*x",
        "exp2(x*x)/(x + 2)",
        "copysign(log2(abs(x)), x)",
        "select(x < 0.5, tanh(x), min(x, 3.0))",
        bits,
    ):
        batch = Batch.analyze(problem.language.lowering, read_program(problem, text)[None])
        assert fitting.slots_of(text) == problem.language.lowering.sums(batch.programs, slots)[0], text


def begun(**options) -> evo.Result:
    """The first generation of the shipped search."""
    vocabulary = CONFIG.program.vocabulary.model_dump()
    search = {"initial": {"num_programs": 8}, "tuning": {"share": 0.25, "finished": 1}}
    task = evo.ApproximationTask(**options, num_points=2048)
    program = {"instruction_set": CONFIG.program.instruction_set}
    return evo.evolve(task, program=program, vocabulary=vocabulary, archive=[32, 64], search=search, generations=1)


def best_within(result: evo.Result, slots: int) -> int:
    archive = result.archive
    return int(archive.objective.where(archive.slots <= slots).idxmax())


def test_gelu_in_bf16_is_within_one_ulp_everywhere_at_20_slots():
    """By libm's erfc in float64. PyTorch's formula takes 43 slots."""
    result = begun(function="gelu", interval=[-20, 20], format="bf16", error="ulp")
    bits = np.arange(1 << 16, dtype=np.uint32) << 16
    x = bits.view(np.float32)
    x = np.sort(x[np.abs(x) <= 20])
    y = result.outputs({"x": x}, best_within(result, 20))["y"].astype(np.float32)
    rounded = (y.view(np.uint32) + 0x7FFF + (y.view(np.uint32) >> 16 & 1) & 0xFFFF0000).view(np.float32).astype(np.float64)
    exact = np.array([value * math.erfc(-value / math.sqrt(2)) / 2 for value in x.tolist()])
    ulp = 2.0 ** np.maximum(np.frexp(exact)[1] - 8, -133)
    is_normal = np.abs(exact) > 2.0**-126  # which libm rounds half of -2^-125 less to
    assert (np.abs(rounded - exact) <= ulp)[is_normal].all()
    assert (np.abs(rounded[~is_normal]) <= 2.0**-126).all()


def test_erf_has_twenty_bits_before_the_search_begins():
    """By libm, at other points than the search's."""
    result = begun(function="erf", interval=[-4, 4], error="absolute")
    x = np.random.default_rng(1).uniform(-4, 4, 20_000).astype(np.float32)
    y = result.outputs({"x": x}, best_within(result, 18))["y"]
    assert np.abs(y.astype(np.float64) - [math.erf(value) for value in x.tolist()]).max() < 2.0**-20


def test_points_come_close_to_roots():
    x = evo.ApproximationTask("log", [0.5, 3], error="ulp", num_points=64).points()["x"]
    assert {1 - 2.0**-24, 1.0, 1 + 2.0**-23, 1 + 2.0**-20} <= set(x.tolist())


def test_intervals_that_reach_far_have_points_where_functions_change():
    x = evo.ApproximationTask("gelu", [-3e38, 3e38], "bf16", "ulp", num_points=1024).points()["x"]
    inner = np.sort(x[np.abs(x) < 8])
    assert np.diff(inner).max() < 0.3
