"""The stand-in's approximate instructions with the largest documented errors: near the bounds, and within them."""

import numpy as np
import pytest
from emulated_gpu.ptx_decode import operation

from evo.evaluate.cuda.agreement import BOUNDS

RNG = np.random.default_rng(5)
EXACT = {
    "div": np.divide,
    "rcp": np.reciprocal,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sin": np.sin,
    "cos": np.cos,
    "lg2": np.log2,
    "ex2": np.exp2,
    "tanh": np.tanh,
}


def unit_of(kind: str, exact: np.ndarray, x: np.ndarray) -> np.ndarray:
    if kind == "either":
        return np.where((x > 0.5) & (x < 2), 1.0, np.abs(exact))
    return {"absolute": np.ones_like(exact), "relative": np.abs(exact), "ulp": np.ldexp(1.0, np.frexp(exact)[1] - 24)}[kind]


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("errors", ["up", "down", "mixed"])
def test_errors_are_the_largest_within_the_documented_bounds(monkeypatch, name, errors):
    kind, bound, *_ = BOUNDS[name]
    short = name.split("_")[0]
    opcode = name.replace("_", ".")
    operands = [RNG.uniform(0.1, 6.0, 5000).astype(np.float32) for _ in range(2 if short == "div" else 1)]
    monkeypatch.setenv("EVO_EMULATED_GPU_ERRORS", errors)
    found = operation(opcode, 1 + len(operands)).function(*operands).astype(np.float64)
    exact = EXACT[short](*(each.astype(np.float64) for each in operands))
    error = (found - exact) / (bound * unit_of(kind, exact, operands[0].astype(np.float64)))
    assert np.abs(error).max() <= 1.0 + 1e-9
    assert np.median(np.abs(error)) > 0.4
    signs = {"up": {1.0}, "down": {-1.0}, "mixed": {1.0, -1.0}}[errors]
    assert set(np.sign(error[np.abs(error) > 0.5])) == signs


def test_zeros_infinities_and_nan_stay_as_they_are(monkeypatch):
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan], np.float32)
    monkeypatch.delenv("EVO_EMULATED_GPU_ERRORS", raising=False)
    with np.errstate(all="ignore"):
        plain = [operation(f"{name}.approx.ftz.f32", 2).function(special) for name in ("rcp", "sqrt", "ex2", "lg2")]
        monkeypatch.setenv("EVO_EMULATED_GPU_ERRORS", "up")
        found = [operation(f"{name}.approx.ftz.f32", 2).function(special) for name in ("rcp", "sqrt", "ex2", "lg2")]
    for one, two in zip(plain, found, strict=True):
        is_special = ~np.isfinite(one) | (one == 0)
        assert one[is_special].tobytes() == two[is_special].tobytes()
