"""Templates: the formula that functions make together, computed beside what NumPy says, and what is refused."""

import numpy as np
import pytest

from evo.errors import UserError
from evo.instructions import shipped_instruction_set
from evo.language.dag import dag_of
from evo.language.formula import evaluate, formula_of
from evo.language.program import Language, Limits, parse_program, word
from evo.language.template import by_category, read_template
from evo.native.ptx_vm import VirtualMachine
from evo.native.stack_ptx_words import TEMPLATE_DERIVATIVE
from evo.native.tune import Tuner

SET = shipped_instruction_set("default")
INPUTS = ("x0", "x1", "x2")
X = np.random.default_rng(0).uniform(0.5, 2.0, (3, 50))
MUL, SIN, DIVIDE, MEET = "mul_ftz_f32", "sin_approx_ftz_f32", " clear.f32 ", " %x0 %x1 mul_ftz_f32 "


def language_of(text: str, limits: Limits | None = None) -> Language:
    limits = limits or Limits()
    inputs = tuple((name, "f32") for name in INPUTS)
    return Language(SET, inputs, (("y", "f32"),), limits, read_template(text, INPUTS).words(SET, limits))


def computed(language: Language, program: str) -> np.ndarray:
    words = parse_program(language, program, "program")
    return np.broadcast_to(evaluate(formula_of(dag_of(language, words), {}, {}), X)[0], X[0].shape)


@pytest.mark.parametrize(
    ("text", "program", "expected"),
    [
        ("f(x0, x1) + g(x2)*h(x0)", f"{MEET}{DIVIDE} %x0 {SIN} {DIVIDE} %x2 3.0 {MUL}", X[0] * X[1] + np.sin(X[2]) * 3 * X[0]),
        ("f(x1, x2)", MEET, X[1] * X[2]),
        ("f(x1)", MEET, X[1] * X[1]),
        ("f(x0) - f(x1*x2)", f"%x0 {SIN} 2.0 {MUL}", 2 * np.sin(X[0]) - 2 * np.sin(X[1] * X[2])),
        ("f(g(x0), 2*g(x1))", f"{MEET}{DIVIDE} %x0 {SIN}", 2 * np.sin(X[0]) * np.sin(X[1])),
        ("x1/sqrt(f(x0)) + 0.5", f"%x0 %x0 {MUL}", X[1] / X[0] + 0.5),
        ("c()*x0 + f(x1)", f"4.0 %x0 {MUL} {DIVIDE} %x2 {SIN}", 4.0 * X[0] + np.sin(X[1])),
        ("f(x0) + g(x1)", f"%x0 {SIN}", np.sin(X[0])),  # the second function has no words
        ("f(x0) + x1", f"%x0 {SIN} {DIVIDE} %x1 {DIVIDE} 5.0", np.sin(X[0]) + X[1]),  # words of functions that there are not
        (
            "f(x0) + g(x0)",
            f"load:0 {SIN} store.f32:0 %x0 {DIVIDE} load:0 %x0 store.f32:0",
            X[0],
        ),  # no function sees the other's store
        ("f(x0) + g(x0)", f"%x0 %x0 %x0 {DIVIDE} {MUL} {MUL} 2.0", X[0] + 2.0),  # nor its stack
        ("x1 - d(f(x0, x1), x0)", f"{MEET} %x0 {SIN} add_ftz_f32", -np.cos(X[0])),
        ("d(f(x0, x1), x2) + x2", MEET, X[2]),
        ("f(x0, x1) + d(f, x0) + g(x2)", MEET, X[0] * X[1] + X[1]),
        ("d(f(x0), x0) + g(x0)", f"{DIVIDE} %x0", X[0]),
        ("d(x2*f(x0*x0), x0) - f(x0)", f"%x0 {SIN}", X[2] * np.cos(X[0] ** 2) * 2 * X[0] - np.sin(X[0])),
        ("d(f(g(x0)), x0)", f"%x0 {SIN} {DIVIDE} %x0 %x0 {MUL}", np.cos(X[0] ** 2) * 2 * X[0]),
        ("d(d(f(x0), x0), x0) + 2*f(x1)", f"%x0 {SIN}", -np.sin(X[0]) + 2 * np.sin(X[1])),
        ("d(f(x0)*d(g(x0), x0), x1) + d(x0, x0)", f"%x0 {SIN} {DIVIDE} %x0", np.ones(50)),
    ],
)
def test_a_program_is_the_functions_of_a_template(text, program, expected):
    np.testing.assert_allclose(computed(language_of(text), program), expected, rtol=1e-12)


def test_all_that_runs_programs_derives_them():
    language = language_of("d(f(x0), x0)")
    words = parse_program(language, f"%x0 %x0 {MUL} 0.25 {MUL} {SIN}", "program")
    machine = VirtualMachine(language.lowering)
    [[found]] = machine.store(words[None], [*X.astype(np.float32), None])
    np.testing.assert_allclose(found, 0.5 * X[0] * np.cos(0.25 * X[0] ** 2), rtol=1e-5, atol=1e-6)
    assert "cos.approx.ftz.f32" in language.lowering.emit(words[None])[0]


def test_a_derivative_beyond_the_node_limit_ends_the_program():
    program = f"%x0 {f'%x0 {SIN} {MUL} ' * 8}"
    assert computed(language_of("d(f(x0), x0)", Limits(max_nodes=100)), program).any()
    assert not computed(language_of("d(f(x0), x0)", Limits(max_nodes=40)), program).any()


def test_a_program_has_no_derivative_of_its_own():
    language = language_of("f(x0) + d(g(x0), x0)")
    words = parse_program(language, f"%x0 {SIN} {DIVIDE} %x0", "program")
    forged = np.insert(words, 1, word(TEMPLATE_DERIVATIVE, 0, 15))[:-1]
    hashes, _ = language.lowering.analyze(np.array([words, forged]))
    assert (hashes[0] == hashes[1]).all()


def test_an_instance_beyond_the_execution_limit_is_empty():
    program = f"%x0 {SIN} " * 20
    assert computed(language_of("f(x0)"), program).any()
    assert not computed(language_of("f(x0)", Limits(execution_limit=60)), program).any()


def test_a_function_by_itself_has_its_own_arguments():
    template = read_template("f(x0) + g(x2, x1)*g(x0, x1)", INPUTS)
    assert [str(function) for function in template.functions] == ["f(x0)", "g(g_0, g_1)"]
    alone = template.alone(1)
    language = Language(SET, tuple((name, "f32") for name in alone.inputs), (("y", "f32"),), Limits(), alone.words(SET, Limits()))
    formula = formula_of(dag_of(language, parse_program(language, f"1.0 {DIVIDE} %g_0 {SIN} %g_1 {MUL}", "p")), {}, {})
    np.testing.assert_allclose(evaluate(formula, [np.full(3, 2.0), np.full(3, 5.0)])[0], 5.0 * np.sin(2.0))


def test_constants_of_functions_are_tuned_together_and_those_of_the_template_are_not():
    language = language_of("f(x0) - 3*f(x1) + g(x2)")
    x = X.astype(np.float32)
    target = (0.7 * np.sin(x[0]) - 2.1 * np.sin(x[1]) + 1.6 * x[2]).astype(np.float32)
    tuner = Tuner(VirtualMachine(language.lowering), [*x, None], target, iterations=20, is_scaled=False)
    words = parse_program(language, f"%x0 {SIN} 0.5 {MUL} {DIVIDE} %x0 1.0 {MUL}", "program")
    [tuned], [outcome] = tuner.tune(words[None])
    assert outcome["num_parameters"] == 2
    found = computed(language, " ".join(language.decode(int(word)) for word in tuned[:-1]))
    np.testing.assert_allclose(found, 0.7 * np.sin(X[0]) - 2.1 * np.sin(X[1]) + 1.6 * X[2], rtol=1e-5, atol=1e-5)


def test_constants_are_tuned_through_a_derivative():
    language = language_of("d(f(x0, x1), x0)")
    x = X.astype(np.float32)
    target = (1.7 * x[1] * np.cos(1.7 * x[0])).astype(np.float32)  # of sin(1.7 x0) x1
    words = parse_program(language, f"%x0 1.5 {MUL} {SIN} %x1 {MUL}", "program")
    tuner = Tuner(VirtualMachine(language.lowering), [*x, None], target, iterations=30, is_scaled=False)
    [tuned], _ = tuner.tune(words[None])
    assert np.uint32(tuned[1] >> np.uint64(32)).view(np.float32) == pytest.approx(1.7, rel=1e-5)


def test_a_scale_without_an_offset_is_projected_out():
    language = language_of("f(x0)*g(x1)")
    x = X.astype(np.float32)
    target = (5.0 * np.sin(1.5 * x[0]) * x[1]).astype(np.float32)
    words = parse_program(language, f"%x0 1.3 {MUL} {SIN} {DIVIDE} %x0", "program")
    options = {"iterations": 30, "is_scaled": True, "is_through_origin": True}
    [tuned], [outcome] = Tuner(VirtualMachine(language.lowering), [*x, None], target, **options).tune(words[None])
    y = np.sin(np.float64(np.uint32(tuned[1] >> np.uint64(32)).view(np.float32)) * x[0].astype(np.float64)) * x[1]
    t = target.astype(np.float64)
    assert np.uint32(tuned[1] >> np.uint64(32)).view(np.float32) == pytest.approx(1.5, rel=1e-5)
    y0 = np.sin(np.float64(np.float32(1.3)) * x[0].astype(np.float64)) * x[1]
    assert outcome["error_before"] == pytest.approx(t @ t - (t @ y0) ** 2 / (y0 @ y0), rel=1e-3)
    assert outcome["error_after"] == pytest.approx(t @ t - (t @ y) ** 2 / (y @ y), abs=1e-6)


@pytest.mark.parametrize(
    ("text", "scale", "offset"),
    [
        ("f(x0) + g(x1)*h(x0)", {"f", "g"}, {"f": 1.0}),
        ("x0*g(x1) - f(x0)", {"f", "g"}, {"f": -1.0}),
        ("f(x0) + f(x1)", {"f"}, {}),
        ("f(x0)*f(x1)", set(), {}),
        ("f(x0)*g(x1)", {"f"}, {}),
        ("x0*f(x1)", {"f"}, {}),
        ("sin(f(x0))", set(), {}),
        ("f(x0) + x1", set(), {}),
        ("-f(x0)/x1 + c()", {"f", "c"}, {"c": 1.0}),
        ("f(x0) if x1 < 2 else g(x0)", {"f", "g"}, {}),
        ("f(x0) if f(x1) < 2 else g(x0)", set(), {}),
        ("f(x0) if x1 > 2 else x0", set(), {}),
        ("d(f(x0), x0)/2", {"f"}, {}),
        ("d(f(x0), x0) + g(x1)", {"f", "g"}, {"g": 1.0}),
        ("d(f(x0)*f(x1), x0)", set(), {}),
    ],
)
def test_which_functions_take_up_scale_and_offset(text, scale, offset):
    template = read_template(text, INPUTS)
    assert {function.name for function in template.functions if function.scale} == scale
    assert {function.name: function.offset for function in template.functions if function.offset} == offset


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f(x0", "template: column 2: not a formula: '(' was never closed"),
        (
            "f(x0) + y1",
            "template: column 9: unknown input 'y1', one of: x0, x1, x2; a function to find has arguments, as in y1(x)",
        ),
        ("x0 + x1", "template: 'x0 + x1' has no function to find; write one such as f(x0, x1)"),
        ("f(x0) + f(x0, x1)", "template: column 9: f takes 1 arguments before, here 2"),
        ("1/f(x0, x1, x2, x0*x1)", "template: column 3: f takes 4 arguments, at most as many as there are inputs, 3"),
        ("x0(x1)", "template: column 1: 'x0' is an input; give the function another name"),
        ("1 + d(f(x0), x0*x1)", "template: column 5: 'd(f(x0), x0 * x1)' is not the derivative of a formula by an input"),
        ("d(f(x0))", "template: column 1: 'd(f(x0))' is not the derivative of a formula by an input, such as d(f(x0, x1), x0)"),
        (
            "f(x0) + f(x1) - d(f, x0)",
            "template: column 19: unknown input 'f', one of: x0, x1, x2; a function to find has arguments, as in f(x)",
        ),
        ("1 + f(x0)[1]", "template: column 5: 'f(x0)[1]' cannot be in a template"),
        (7, "template is 7, must be a formula of inputs and functions to find"),
    ],
)
def test_what_is_no_template_is_refused_with_its_place(text, message):
    with pytest.raises(UserError) as error:
        read_template(text, INPUTS)
    assert str(error.value).startswith(message) and "\n" not in str(error.value)


def test_a_number_by_category_is_a_choice_between_numbers():
    columns = {"x": np.linspace(0.0, 1.0, 50), "k": np.array([2.0, -1.0, 0.5, 2.0])}
    choice = "(c__1() if k < -0.25 else c_0_5() if k < 1.25 else c_2())"
    assert by_category("f(x)*c[k] + c[k]", columns) == f"f(x) * {choice} + {choice}"
    assert by_category("f(x)*c[k]", {"k": np.ones(3)}) == "f(x) * c_1()"
    assert by_category("f( x )", columns) == "f( x )"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f(x) + c[x]", "template: column 8: x has 50 values; c[x] needs a column of at most 12"),
        ("c[z]", "template: column 1: 'c[z]' is not a name and an input, as in c[x]"),
        ("f(x)[k]", "template: column 1: 'f(x)[k]' is not a name and an input, as in c[x]"),
    ],
)
def test_what_is_no_category_is_refused_with_its_place(text, message):
    with pytest.raises(UserError) as error:
        by_category(text, {"x": np.linspace(0.0, 1.0, 50), "k": np.ones(3)})
    assert str(error.value) == message


def test_more_calls_than_the_store_has_entries_are_refused():
    text = " + ".join(f"f{number}(x0)" for number in range(13))
    with pytest.raises(UserError, match="template: 13 calls of up to 1 arguments, at most 13 in all are possible"):
        language_of(text)
