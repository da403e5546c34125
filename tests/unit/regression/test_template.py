"""Formulas of a template: laws that are known, by the functions that they consist of."""

import pickle

import numpy as np
import pytest

import evo
from evo.instructions import shipped_instruction_set
from evo.language.program import Language, Limits

X = np.random.default_rng(0).uniform(0.5, 3.0, (200, 3))


def fitted(template: str, y: np.ndarray, **parameters) -> evo.SymbolicRegressor:
    given = {"max_evaluations": 8000, "random_state": 1, "max_time": None} | parameters
    return evo.SymbolicRegressor(template=template, **given).fit(X, y)


def value_of(text: str, x: np.ndarray) -> np.ndarray:
    """Values at rows by the text of an equation or of a function."""
    names = {f"x{k}": x[:, k] for k in range(x.shape[1])} | {"f_0": x[:, 0]}
    names |= {name: getattr(np, name) for name in ("sin", "cos", "sqrt", "exp", "log", "exp2", "log2")}
    for line in text.split("; "):
        name, divider, formula = line.rpartition(" = ")
        value = eval(formula, names)
        if divider:
            names[name] = value
    return value


@pytest.mark.parametrize(
    ("template", "law"),
    [
        ("sqrt(f(x0) + g(x1))", lambda x: np.sqrt(x[:, 0] ** 2 + 2 * x[:, 1] ** 2)),
        ("c()*x0 + f(x1)", lambda x: 2.5 * x[:, 0] + np.cos(x[:, 1])),
        ("x2*d(f(x0), x0)", lambda x: x[:, 2] * (np.sin(x[:, 0]) + x[:, 0] * np.cos(x[:, 0]))),
    ],
)
def test_a_law_is_found_in_its_template(template, law):
    model = fitted(template, law(X))
    new = np.random.default_rng(1).uniform(0.5, 3.0, (100, 3))
    np.testing.assert_allclose(model.predict(new), law(new), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(value_of(model.get_best().equation, new), model.predict(new), rtol=1e-5)


def test_each_category_has_a_number_of_its_own():
    numbers, category = np.array([0.7, 2.5, 1.6]), np.random.default_rng(2).integers(0, 3, 200)
    x = np.column_stack([X[:, 0], category])
    law = numbers[category] * np.sin(X[:, 0])
    model = evo.SymbolicRegressor(template="c[x1]*f(x0)", max_evaluations=4000, random_state=1, max_time=None).fit(x, law)
    np.testing.assert_allclose(model.predict(x), law, rtol=1e-5)
    np.testing.assert_allclose(model.predict([[1.0, -3.0], [1.0, 1.2]]), numbers[:2] * np.sin(1.0), rtol=1e-5)  # the nearest
    assert [line.partition(" = ")[0] for line in model.get_best().functions.split("; ")] == ["c_0()", "c_1()", "c_2()", "f(x0)"]


def test_each_equation_is_the_template_of_its_functions():
    model = fitted("f(x0) + g(x2)*h(x1)", X[:, 0] ** 2 + 3.0 * np.exp(-X[:, 2]) * np.sin(X[:, 1]) + 1.0, max_evaluations=3000)
    assert len(model.equations_) > 2
    for row, text in enumerate(model.equations_.functions):
        parts, locals_ = {}, ""
        for line in text.split("; "):
            name, _, formula = line.partition(" = ")
            locals_ = locals_ + f"{line}; " if "(" not in name else locals_
            if "(" in name:
                parts[name], locals_ = value_of(f"{locals_}{formula}", X), ""
        assert [*parts] == ["f(x0)", "g(x2)", "h(x1)"]
        together = parts["f(x0)"] + parts["g(x2)"] * parts["h(x1)"]
        np.testing.assert_allclose(together, model.predict(X, row), rtol=2e-5, atol=1e-6)


def test_a_model_is_pickled_and_written_for_sympy():
    model = fitted("f(x0) - f(x1)", np.sin(X[:, 0]) - np.sin(X[:, 1]), max_evaluations=2000)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(X), model.predict(X))
    assert str(model.sympy()) == "sin(x0) - sin(x1)"
    assert model.latex().count("sin") == 2


def test_threads_do_not_matter():
    y = np.exp(-X[:, 0]) * (X[:, 1] ** 2 + 1.0)
    one, two = (fitted("f(x0)*g(x1)", y, max_evaluations=2000, n_jobs=n) for n in (1, 2))
    assert one.equations_.equals(two.equations_)


def test_a_loss_needs_functions_that_take_up_offset_and_scale():
    y = np.sin(X[:, 0]) + X[:, 1] ** 2
    model = fitted("f(x0) + g(x1)", y, loss="absolute")
    assert np.abs(model.predict(X) - y).mean() < 1e-2
    with pytest.raises(
        ValueError, match="template: its functions cannot take up an offset and a scale, so the loss must be squared"
    ):
        fitted("f(x0)*g(x1)", y, loss="absolute")


def test_inputs_that_float32_cannot_hold_are_refused():
    with pytest.raises(ValueError, match="template: float32 cannot hold the input x0; subtract its mean or divide it"):
        evo.SymbolicRegressor(template="f(x0)").fit(1.7e9 + X, X[:, 0])


def test_units_are_refused():
    with pytest.raises(ValueError, match="template: a search with units has none"):
        fitted("f(x0)", X[:, 0], units=dict.fromkeys(("x0", "x1", "x2"), "m"))


def test_what_is_no_template_is_refused():
    with pytest.raises(ValueError, match=r"template: column 9: unknown input 'x7'"):
        fitted("f(x0) + x7", X[:, 0])


def test_a_run_of_a_template_is_saved_and_goes_on(tmp_path):
    y = X[:, 0] * X[:, 1] + np.sin(X[:, 2])
    task = evo.RegressionTask({f"x{k}": X[:, k] for k in range(3)}, y, template="f(x0, x1) + g(x2)")
    names = ["add_ftz_f32", "mul_ftz_f32", "sin_approx_ftz_f32"]
    vocabulary = {"instructions": names, "meta": {"clear": 1}}
    result = evo.evolve(task, vocabulary=vocabulary, evaluations=2000, progress=False)
    assert result.search.archive.best_objective > 6.0
    language = result.search.problem.language
    assert language == Language(
        shipped_instruction_set("default"),
        tuple(task.inputs.items()),
        tuple(task.outputs.items()),
        Limits(),
        task.template.words(shipped_instruction_set("default"), Limits()),
    )
    result.save(tmp_path / "run")
    again = evo.resume(task, tmp_path / "run", evaluations=3000, progress=False)
    assert again.search.archive.best_objective >= result.search.archive.best_objective
