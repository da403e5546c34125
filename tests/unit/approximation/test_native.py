"""Programs in native halves: intervals against every result that the bounds allow, figures, forms and tuning."""

from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import pytest
from click.testing import CliRunner

from evo.approximation.certificate import certified
from evo.approximation.formats import FORMATS, Format
from evo.approximation.functions import Function
from evo.approximation.intervals import interval_program
from evo.approximation.task import ApproximationTask
from evo.cli import main
from evo.errors import UserError
from evo.evaluate.tuning import ConstantTuner
from evo.instructions import shipped_instruction_set
from evo.language.infix import parse_infix
from evo.language.program import Language, format_program, parse_program
from evo.native.proof import intervals
from evo.native.ptx_vm import VirtualMachine

SET = shipped_instruction_set("halves")
NAMES = [each.name for each in SET.instructions if each.semantics.vm]
LANGUAGES = {name: Language(SET, (("x", name),), (("y", name),)) for name in ("f16", "bf16")}
EX2 = {"f16": "ex2_approx_f16", "bf16": "ex2_approx_ftz_bf16"}
TO_F32 = {"f16": "f16_to_f32", "bf16": "cvt_f32_bf16"}


@cache
def values_of(form: Format) -> np.ndarray:
    """All finite ones, in their order."""
    last = form.key(form.largest)
    return form.of_keys(np.arange(-last, last + 1))


def ends(name: str, text: str, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    program = interval_program(LANGUAGES[name], parse_program(LANGUAGES[name], text, "test"))
    return intervals(program.steps, program.constants, np.asarray(x, np.float32))


@mpmath.workprec(200)
def allowed(name: str, function: str, x: float, slack: float = 0.0) -> np.ndarray:
    """The halves within the bound of an approximate instruction, by mpmath; of what is no normal number, a unit about it.

    Args:
        slack: of the bound, relative.
    """
    form = FORMATS[name]
    exact = mpmath.tanh(mpmath.mpf(x)) if function == "tanh" else mpmath.mpf(2) ** mpmath.mpf(x)
    if function == "tanh":
        bound = mpmath.mpf(2) ** (-10.987 if name == "f16" else -8)
    else:
        bound = abs(exact) * mpmath.mpf(2) ** (-9.9 if name == "f16" else -7)
    if abs(exact) < mpmath.mpf(2) ** form.least:
        bound = max(bound, mpmath.mpf(2) ** (form.least - form.digits + 1))
    bound *= 1 + mpmath.mpf(slack)
    every = values_of(form)
    first, last = np.searchsorted(every, [float(exact - bound) * (1 - 1e-12) - 1e-300, float(exact + bound)])
    near = every[max(first - 2, 0) : last + 3]
    is_end = np.minimum(np.arange(len(near)), np.arange(len(near))[::-1]) < 6
    found = np.array([y for y, end in zip(near, is_end, strict=True) if not end or abs(mpmath.mpf(float(y)) - exact) <= bound])
    return np.where(np.abs(found) < 2.0**-126, 0.0, found) if (name, function) == ("bf16", "ex2") else found


@pytest.mark.parametrize("name", ["f16", "bf16"])
@pytest.mark.parametrize("function", ["tanh", "ex2"])
def test_an_approximate_instruction_may_give_each_half_within_its_bound_and_no_other(name, function):
    """But for what float64 rounds an end by."""
    instruction = f"tanh_approx_{name}" if function == "tanh" else EX2[name]
    every = values_of(FORMATS[name])
    every = every[np.abs(every) < (14.0 if name == "f16" or function == "tanh" else 126.0)]
    x = np.concatenate([every[:: len(every) // 100], [0.0, 1.0, -1.0, 2.0, 0.5, -13.0]])
    low, high = ends(name, f"%x {instruction}", x)
    for each, least, most in zip(x.tolist(), low.tolist(), high.tolist(), strict=True):
        within, nearly = allowed(name, function, each), allowed(name, function, each, 2.0**-40)
        assert nearly.min() <= least <= within.min() and within.max() <= most <= nearly.max(), each


@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_a_power_of_two_overflows_with_its_operand(name):
    largest = float(FORMATS[name].largest)
    assert np.isposinf(ends(name, f"%x %x add_{name} {EX2[name]}", np.array([largest]))).all()


@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_exact_instructions_after_it_have_the_results_at_its_ends(name):
    """A sum of a product is rounded once: by exact arithmetic, of each half that tanh may give."""
    form, draw = FORMATS[name], np.random.default_rng(11)
    x = form.round(draw.normal(0.0, 1.5, 40).astype(np.float32))
    machine = VirtualMachine(Language(SET, (("t", name), ("x", name)), (("y", name),)).lowering)
    for tail in (f"%x 0.3:{name} fma_rn_{name}", f"%x mul_{name}", f"%x sub_{name}", f"0.7:{name} min_{name} abs_{name}"):
        head = f"%x tanh_approx_{name}"
        text = f"0.3:{name} %x {head} fma_rn_{name}" if tail.endswith(f"fma_rn_{name}") else f"{head} {tail}"
        low, high = ends(name, text, x)
        for each, least, most in zip(x, low, high, strict=True):
            within = allowed(name, "tanh", float(each))
            words = parse_program(Language(SET, (("t", name), ("x", name)), (("y", name),)), text.replace(head, "%t"), "test")
            found = machine.store(words[None], [within, np.full_like(within, each), None])[0, 0]
            assert (least, most) == (found.min(), found.max()), (text, each)


@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_programs_without_approximate_instructions_have_one_figure(name):
    form, language = FORMATS[name], LANGUAGES[name]
    words = parse_program(language, f"0.25:{name} %x 1.0009765625:{name} fma_rn_{name} %x abs_{name} mul_{name}", "test")
    found = certified(language, words, Function("x*x"), form, (-3.0, 3.0), instruction_set="halves", target="sm_90")
    assert (found.arithmetic, found.why_not, found.any_gpu) == ("native", "", found.cpu)
    x = form.of_keys(np.arange(form.key(-3.0), form.key(3.0) + 1))
    slope = Fraction(float(form.round(np.float32(1.0009765625))))

    def once(value: Fraction) -> float:
        nearest = form.round(np.float32(float(value)))
        around = [form.of_keys(np.array([form.key(float(nearest)) + step]))[0] for step in (-1, 0, 1)]
        return min(around, key=lambda y: (abs(Fraction(float(y)) - value), form.bits(y) & 1))

    sums = [once(slope * Fraction(float(v)) + Fraction(1, 4)) for v in x[::37]]
    y = [once(Fraction(float(s)) * abs(Fraction(float(v)))) for s, v in zip(sums, x[::37], strict=True)]
    worst = max(abs(float(each) - float(v) ** 2) for each, v in zip(y, x[::37], strict=True))
    assert worst <= float(found.cpu["absolute"].worst) <= 2 * worst


@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_formulas_are_native_as_far_as_they_can_be(name):
    language = LANGUAGES[name]

    def text(formula: str) -> list[str]:
        return format_program(language, parse_infix(language, formula, "test", 64, NAMES)).split()

    native = text("tanh(x*0.5)*0.5 + 0.5")
    assert {f"mul_{name}", f"add_{name}", f"tanh_approx_{name}", f"0.5:{name}"} <= set(native)
    assert not any("f32" in token for token in native)
    mixed = text("x/(exp2(x) + 1)")
    assert {f"add_{name}", EX2[name], TO_F32[name], "div_approx_ftz_f32", f"cvt_rn_{name}_f32"} <= set(mixed)
    assert f"mul_{name}" not in text(f"t = {TO_F32[name]}(x); y = t*0.5 + t")
    with pytest.raises(UserError, match="takes f32, got"):
        parse_infix(language, "1/x", "test", 64, ["rcp_approx_ftz_f32"])


def test_native_tasks_read_and_give_halves_and_begin_with_forms_of_both_kinds():
    name = "bf16"
    task = ApproximationTask("sigmoid", (-8.0, 8.0), name, "absolute", num_points=512, arithmetic="native")
    assert (task.inputs, task.outputs) == ({"x": name}, {"y": name})
    programs = [parse_infix(LANGUAGES[name], each, "test", 256, NAMES) for each in task.programs()]
    texts = [format_program(LANGUAGES[name], each) for each in programs]
    assert any(f"_{name}" in each and "_f32" not in each for each in texts)
    assert any(f"fma_rn_{name}" not in each and "fma_rn_ftz_f32" in each for each in texts)
    for options in ({"format": "f32"}, {"arithmetic": "half"}):
        with pytest.raises(UserError, match=r"task_options\.arithmetic"):
            ApproximationTask("sigmoid", (-8.0, 8.0), **({"format": name, "arithmetic": "native"} | options))


def test_constants_of_halves_are_tuned_by_their_own_last_digits():
    """Every pair of bf16 about the best is tried here; the tuner comes as far."""
    name, form = "bf16", FORMATS["bf16"]
    task = ApproximationTask("sigmoid", (-2.0, 2.0), name, "absolute", num_points=512, arithmetic="native")
    language = LANGUAGES[name]
    words = parse_program(language, f"0.45:{name} %x 0.2:{name} fma_rn_{name}", "test", 16)
    tuner = ConstantTuner(language, task, iterations=8, linear_scale=False, trials=300)
    tuned = tuner.finish(words[None])[0][0]
    tuner.close()
    machine, points = VirtualMachine(language.lowering), task.points()["x"]

    def worst(programs: np.ndarray) -> np.ndarray:
        return task.errors(machine.store(programs, [points, None])[:, 0]).max(axis=1)

    around = form.of_keys(np.arange(form.key(0.18), form.key(0.24))), form.of_keys(np.arange(form.key(0.48), form.key(0.52)))
    trials = [
        parse_program(language, f"{float(c)!r}:{name} %x {float(a)!r}:{name} fma_rn_{name}", "test", 16)
        for a in around[0]
        for c in around[1]
    ]
    before, after = worst(np.stack([words, tuned]))
    assert after == worst(np.stack(trials)).min() < before


def test_a_vocabulary_of_another_format_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["run", "approximation_bf16", "--set", "task_options.format=f16"])
    assert done.exit_code == 2 and "none takes f16, the type of the task's inputs" in done.output
    assert not list(tmp_path.glob("runs/*"))
