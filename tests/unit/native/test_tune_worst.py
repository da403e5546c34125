"""Tuning to the least largest error: against closed forms of best approximations, and against every constant that there is."""

import math

import numpy as np
import pytest

from evo.instructions import shipped_instruction_set
from evo.language.infix import parse_infix
from evo.language.program import Language
from evo.native.ptx_vm import VirtualMachine, levels
from evo.native.tune import PointErrors, Tuner

SET = shipped_instruction_set("default")
LANGUAGE = Language(SET, (("x", "f32"),), (("y", "f32"),))
NAMES = [each.name for each in SET.instructions if each.name.endswith("_f32")]
X = np.linspace(-1, 1, 2001, dtype=np.float32)


def words_of(*texts: str) -> np.ndarray:
    return np.stack([parse_infix(LANGUAGE, text, "text", 64, NAMES) for text in texts])


def tuned(text: str, target, x=X, *, scale=1.0, trials=300, iterations=5, level=None, **form):
    """The words, the largest errors before and after, and the results."""
    target = np.asarray(target, np.float64)
    errors = PointErrors(target, np.broadcast_to(scale, target.shape).astype(np.float64), **form)
    machine = VirtualMachine(LANGUAGE.lowering, level)
    inputs = [np.ascontiguousarray(x), None]
    target = target.astype(np.float32)
    tuner = Tuner(machine, inputs, target, iterations=iterations, is_scaled=False, errors=errors, trials=trials)
    words, outcomes = tuner.tune(words_of(text))
    return words, outcomes["error_before"][0], outcomes["error_after"][0], machine.store(words, inputs)[0].ravel()


def polynomial(degree: int) -> str:
    text = "0.3"
    for number in range(degree):
        text = f"fma({text}, x, {0.1 * number + 0.4})"
    return text


@pytest.mark.parametrize("degree", [2, 3, 5, 7])
def test_polynomials_reach_chebyshevs_error_of_a_pole(degree):
    """Of 1/(x - a) on [-1, 1] it is (a - sqrt(a^2 - 1))^n / (a^2 - 1)."""
    a = 2.0
    root = math.sqrt(a * a - 1)
    _, _, found, y = tuned(polynomial(degree), 1 / (X.astype(np.float64) - a))
    assert found == pytest.approx((a - root) ** degree / (a * a - 1), rel=1e-2)
    assert found == np.abs(y - 1 / (X.astype(np.float64) - a)).max()


def test_a_quotient_reaches_the_best_approximation_of_the_absolute_value():
    """By quotients of quadratics: 0.04368901 (Varga, Ruttan and Carpenter 1991)."""
    x = np.sign(X) * X**2  # closer near 0, where it bends
    _, _, found, _ = tuned("s = x*x; y = fma(s, 1.6, 0.02)/(s + 0.2)", np.abs(x.astype(np.float64)), x, iterations=20)
    assert found == pytest.approx(0.0436890, rel=3e-3)


def test_errors_at_further_points_count_though_no_target_is_there():
    """Of one point alone, a constant half an ulp away would be as good."""
    x = np.linspace(1, 2, 200, dtype=np.float32)
    target = np.float64(x) * math.pi / 3
    ulp = 2.0 ** (np.frexp(target)[1] - 24)
    near = (np.float32(math.pi / 3).view(np.int32) + np.arange(-50, 51, dtype=np.int32)).view(np.float32)
    errors = PointErrors(target, 1 / ulp)
    machine = VirtualMachine(LANGUAGE.lowering)
    few = target[:1].astype(np.float32)
    tuner = Tuner(machine, [x, None], few, iterations=5, is_scaled=False, errors=errors, trials=300)
    _, outcomes = tuner.tune(words_of("x*1.047"))
    assert outcomes["error_after"][0] == min((np.abs(np.float64(each * x) - target) / ulp).max() for each in near)
    with pytest.raises(ValueError, match="errors: expected shape"):
        Tuner(machine, [x, None], np.ones(201, np.float32), iterations=5, is_scaled=False, errors=errors)


@pytest.mark.parametrize(
    ("name", "form"), [("f16", {"num_digits": 11, "least_exponent": -14, "largest": 65504.0}), ("bf16", {"num_digits": 8})]
)
def test_errors_are_those_of_results_in_the_format(name, form):
    """As NumPy rounds to f16; and bf16 by the upper halves of two neighbours."""
    x = np.concatenate([np.linspace(-3, 3, 600), 2.0 ** -np.arange(12, 26), [65503 / 1.25, 70000]]).astype(np.float32)
    if name == "bf16":
        x = np.append(x[:-2], np.float32(2e38 / 1.25))
    y = x * np.float32(1.25)
    if name == "f16":
        x, y = x[:-1], y[:-1]
        rounded = y.astype(np.float16).astype(np.float64)
    else:
        bits = y.view(np.uint32).astype(np.uint64)
        below, above = ((((bits >> 16) + i) << 16).astype(np.uint32).view(np.float32).astype(np.float64) for i in (0, 1))
        is_even = (bits >> 16 & 1) == 0
        low, high = np.abs(below - y), np.abs(above - y)
        rounded = np.where((low < high) | ((low == high) & is_even), below, above)
    target = rounded + 0.25 * np.abs(rounded)
    _, before, _, _ = tuned("x*1.25", target, x, trials=0, scale=1 / np.abs(x.astype(np.float64)), **form)
    assert before == (np.abs(rounded - target) * (1 / np.abs(x.astype(np.float64)))).max()


def test_what_exceeds_a_format_is_infinitely_wrong_and_a_flushed_result_is_right():
    x = np.array([1, 2, 4], np.float32)
    assert tuned("x*32000.0", x, x, trials=0, num_digits=11, least_exponent=-14, largest=65504.0)[1] == math.inf
    tiny = np.array([0.5, 1e-39], np.float32)
    target = np.array([1.0, 1e-30])
    assert tuned("x*2.0", target, tiny, scale=1 / target, trials=0, flushed=1e-29)[1] == 0.0
    assert tuned("x*2.0", target, tiny, scale=1 / target, trials=0, flushed=1e-31)[1] == 1.0


def test_no_program_gets_worse_and_every_level_gives_the_same():
    rng = np.random.default_rng(5)
    target = np.exp(X.astype(np.float64))
    for form in ("exp2(x*{})", "{}/(x + {})", "fma({}, x, {})*x + {}", "sqrt(x + {})", "max(x, {}) + {}*x", "tanh(x*{}) + {}"):
        text = form.format(*rng.normal(1, 1, 3).round(3))
        results = [tuned(text, target, level=level) for level in levels()]
        assert all(after <= before or math.isnan(before) for _, before, after, _ in results)
        assert len({words.tobytes() for words, *_ in results}) == 1
