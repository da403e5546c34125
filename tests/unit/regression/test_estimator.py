"""evo.SymbolicRegressor: scikit-learn's own checks, and what it promises beyond them."""

import gc
import pickle
import re
import signal
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

import evo
from evo.language.formula import evaluate
from evo.run.search import Search

RNG = np.random.default_rng(1)
X = RNG.uniform(0.5, 2.0, (120, 3)).astype(np.float32)
Y = 3.0 + 2.0 * X[:, 0].astype(np.float64) * X[:, 1]


def regressor(max_evaluations: int = 6000, **parameters) -> evo.SymbolicRegressor:
    return evo.SymbolicRegressor(max_time=None, max_evaluations=max_evaluations, random_state=1, **parameters)


pytestmark = pytest.mark.usefixtures("searched_only")


@pytest.fixture(scope="module")
def fitted(searched_only) -> evo.SymbolicRegressor:
    noisy = Y + 0.3 * np.random.default_rng(2).normal(size=len(Y)) + np.sin(3.0 * X[:, 2])
    return regressor(20_000).fit(X, noisy)


@pytest.mark.slow
@parametrize_with_checks([regressor(200)])
def test_scikit_learn_accepts_it(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


def test_it_finds_a_product_and_says_so():
    model = regressor().fit(X, Y)
    assert model.get_best().equation == "3 + 2*x0*x1"
    assert model.get_best().complexity == 1
    assert model.score(X, Y) == pytest.approx(1.0, abs=1e-10)


def test_the_table_is_a_front_and_its_losses_are_those_of_the_predictions(fitted):
    noisy = Y + 0.3 * np.random.default_rng(2).normal(size=len(Y)) + np.sin(3.0 * X[:, 2])
    table = fitted.equations_
    assert list(table.columns) == ["complexity", "loss", "score", "equation"] and len(table) >= 4
    assert (np.diff(table.complexity[1:]) > 0).all() and (np.diff(table.loss) < 0).all()
    assert (table.complexity[0], float(table.equation[0])) == (0, pytest.approx(noisy.mean(), rel=0.01))
    for row in table.index:
        assert np.mean((fitted.predict(X, row) - noisy) ** 2) == pytest.approx(table.loss[row], rel=1e-9)
    rise = np.log(table.loss[2] / table.loss[3]) / (table.complexity[3] - table.complexity[2])
    assert table.score[0] == 0.0 and table.score[3] == pytest.approx(rise)


def check_texts(model, columns: np.ndarray, deviation: float) -> None:
    """Each equation as text and in SymPy gives the predictions, to a millionth of the target's deviation."""
    import sympy

    functions = {name: getattr(np, name) for name in "exp log log10 exp2 log2 sin cos sqrt tanh".split()}
    functions |= {"pow": np.power, "max": np.maximum, "min": np.minimum}
    inputs = {f"x{i}": column.astype(np.float64) for i, column in enumerate(columns.T)}
    for row, text in model.equations_.equation.items():
        *locals_, formula = text.split("; ")
        values = functions | inputs
        for line in locals_:
            name, _, value = line.partition(" = ")
            values[name] = eval(value, values)
        predicted = model.predict(columns, row)
        np.testing.assert_allclose(eval(formula, values), predicted, rtol=0, atol=1e-6 * deviation)
        expression = model.sympy(row)
        compute = sympy.lambdify([sympy.Symbol(name, real=True) for name in inputs], expression)
        np.testing.assert_allclose(compute(*inputs.values()), predicted, rtol=0, atol=1e-6 * deviation)
        assert model.latex(row) == sympy.latex(expression)


def test_equations_as_text_and_in_sympy_compute_the_predictions(fitted):
    check_texts(fitted, X, Y.std())


def test_functions_without_an_instruction_have_their_usual_names():
    y = np.exp(X[:, 0].astype(float))
    model = regressor(2000, functions=["exp"]).fit(X, y)  # exp and its constant alone: no other program is this exact
    np.testing.assert_allclose(model.predict(X), y, rtol=1e-6)
    assert regressor(500, functions={"square": 1.0, "add": 2.0}).fit(X, X[:, 0] ** 2 + X[:, 1]).equations_["loss"].min() < 1e-9


def test_functions_that_instructions_approximate_are_the_real_ones():
    model = regressor(2000, functions=["tanh", "mul"]).fit(X, np.tanh(X[:, 0].astype(float)) * X[:, 1])
    assert model.equations_.equation.str.contains("tanh").any()
    assert model.equations_.loss.min() < 1e-25  # tanh.approx is off by 1e-4
    check_texts(model, X, 0.5)


def test_time_stamps_are_read_as_they_are():
    seconds = np.arange(0.0, 400.0, 2.0)
    x, y = 1.7e9 + seconds[:, None], 3.0 + 0.37 * seconds
    with pytest.warns(UserWarning, match=r"x0: float32 cannot hold its values, so programs read \(x0 - 1\.7e9\)"):
        model = regressor(500).fit(x, y)
    assert model.equations_.equation[1:].tolist() == ["3 + 0.37*(x0 - 1.7e9)"]
    np.testing.assert_allclose(model.predict([[1.7e9 + 1000.5]]), 3.0 + 0.37 * 1000.5, rtol=1e-12)
    check_texts(model, x, y.std())


@pytest.mark.parametrize("size", [1e-120, 1e40])
def test_inputs_and_targets_of_any_size_are_held(size):
    u = np.random.default_rng(1).uniform(1.0, 3.0, (80, 1))
    with pytest.warns(UserWarning, match="x0: float32 cannot hold its values"):
        model = regressor(1000).fit(size * u, u[:, 0] ** 2 / size)
    np.testing.assert_allclose(model.predict(size * u), u[:, 0] ** 2 / size, rtol=1e-12)


def test_columns_of_one_size_are_scaled_alike():
    rng = np.random.default_rng(1)
    day = rng.uniform(0.0, 86400.0, (3, 99))
    columns = {"begin": 1.7e9 + day[0], "end": 1.7e9 + day[1], "far": 2e15 * day[0] + 1e15, "farther": 9e15 * day[1] + 1e15}
    scaling = evo.RegressionTask(columns, rng.normal(size=99)).input_scaling()
    assert scaling == {"begin": (1.7e9, 1.0), "end": (1.7e9, 1.0), "far": (0.0, 1e21), "farther": (0.0, 1e21)}


def test_a_precision_rounds_for_display_alone():
    import sympy

    fitted = regressor(500).fit(X, 0.73912345 * X[:, 0].astype(float))
    row = len(fitted.equations_) - 1
    before = fitted.predict(X, row)
    shown = fitted.sympy(row, precision=2)
    assert all(len(str(number).strip("-.0").replace(".", "").partition("e")[0]) <= 2 for number in shown.atoms(sympy.Float))
    assert shown != fitted.sympy(row) and len(fitted.latex(row, precision=2)) < len(fitted.latex(row))
    assert fitted.predict(X, row).tolist() == before.tolist()
    complexity = fitted.equations_.complexity[row]
    lines = fitted.latex_table([0, row], precision=2).split("\n")
    assert (lines[0], lines[-1]) == (r"\begin{tabular}{rll}", r"\end{tabular}")
    cells = re.fullmatch(rf"{complexity} & \$(\d\.?\d?)(?: \\times 10\^\{{(-\d+)\}})?\$ & \$(.*)\$ \\\\", lines[-3])
    assert cells and cells[3] == fitted.latex(row, precision=2)
    assert float(f"{cells[1]}e{cells[2] or 0}") == pytest.approx(fitted.equations_.loss[row], rel=0.05)
    assert len(fitted.latex_table().split("\n")) == 6 + len(fitted.equations_)
    with pytest.warns(UserWarning, match="x0: float32 cannot hold its values"):
        moved = regressor(500).fit(1.70000012e9 + X[:, :1].astype(float), X[:, 0])
    assert float(min(moved.sympy(precision=1).atoms(sympy.Float))) == pytest.approx(-1_700_000_121.0, abs=2.0)
    with pytest.raises(ValueError, match="precision is 0, must be an integer from 1 to 17, or None"):
        fitted.latex(row, precision=0)


def share(column: pd.Series) -> pd.Series:
    """A column's place between its ends."""
    return (column - column.min()) / (column.max() - column.min())


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        ("accuracy", lambda table: table.loss.idxmin()),
        ("score", lambda table: table.score.idxmax()),
        ("best", lambda table: table.score[table.loss <= 1.5 * table.loss.min()].idxmax()),
        # 120 rows; of 16 functions or 3 inputs.
        ("shortest", lambda table: (60 * np.log2(table.loss) + 1.5 * np.log2(19) * table.complexity).idxmin()),
        ("knee", lambda table: (share(table.complexity) + share(np.log(table.loss))).idxmin()),
    ],
)
def test_the_selection_says_which_equation_predicts(fitted, selection, expected):
    data = pickle.dumps(fitted)
    assert len(data) < 30_000
    model = pickle.loads(data).set_params(model_selection=selection)
    row = expected(model.equations_)
    assert model.get_best().equation == model.equations_.equation[row]
    assert model.predict(X).tolist() == fitted.predict(X, row).tolist()


def test_a_model_is_printed_as_its_table_with_an_arrow_at_what_predicts(fitted):
    assert str(regressor()).startswith("SymbolicRegressor(")
    for selection in ("accuracy", "shortest"):
        model = pickle.loads(pickle.dumps(fitted)).set_params(model_selection=selection)
        header, *lines = str(model).splitlines()
        assert header.split() == ["complexity", "loss", "score", "equation"] and len(lines) == len(model.equations_)
        [chosen] = [line for line in lines if line[0] == ">"]
        assert chosen.split()[1:3] == [f"{model.get_best().complexity}", f"{model.get_best().loss:.6g}"]


def values_at_zero(model: evo.SymbolicRegressor) -> np.ndarray:
    """The value at 0 of each equation of one feature."""
    return np.array([evaluate(model._formula(row), [np.zeros(1)])[0][0] for row in model.equations_.index])


def test_a_formula_with_a_gap_is_not_handed_over_if_another_is_nearly_as_good(monkeypatch):
    x = np.arange(-4.9, 5.0, 0.2)[:, None]
    law = np.log2(x[:, 0] ** 2)
    noisy = law + 0.3 * np.random.default_rng(1).normal(size=50)
    options = {"functions": ["add", "mul", "log2"], "max_evaluations": 3000}
    assert np.isfinite(values_at_zero(regressor(**options).fit(x, noisy))).all()
    assert np.isinf(values_at_zero(regressor(**options).fit(x, law)))[-1]  # no other is nearly as good
    monkeypatch.setattr(evo.RegressionTask, "handicap", lambda self, facts: np.zeros_like(facts["undefined"]))
    model = regressor(**options).fit(x, noisy)
    assert not np.isfinite(values_at_zero(model)[model._row(None)])


def test_a_fit_ends_soon_after_a_formula_is_exact():
    model = regressor(10**6).fit(X, 3.0 * X[:, 0])
    assert model.n_evaluations_ < 5000 and model.score(X, 3.0 * X[:, 0]) > 1 - 1e-12


@pytest.fixture
def interrupt(monkeypatch):
    """Has SIGINT come after two generations."""
    generations = Search.generations

    def interrupted(self):
        for generation in generations(self):
            if generation.counters.generations == 2:
                signal.raise_signal(signal.SIGINT)
            yield generation

    monkeypatch.setattr(Search, "generations", interrupted)
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)


def test_an_interrupt_ends_a_fit_with_what_it_has_found(interrupt):
    with pytest.warns(UserWarning, match="interrupted: this is what the search has found so far"):
        model = regressor(10**6).fit(X, np.sin(3.0 * X[:, 2]) + Y + X[:, 0])
    assert model.n_generations_ == 2 and model.interrupted_ and model.score(X, Y) > 0
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_of_the_search_for_groups_ends_the_fit(interrupt):
    target = np.sin(3.0 * X[:, 2]) + Y
    with pytest.warns(UserWarning, match="interrupted"):
        model = regressor(10**6).fit(X, target)
    assert model.n_generations_ <= 1 and model.score(X, target) > 0.5


def test_a_fit_shows_its_progress_and_saves_its_front_as_it_goes(monkeypatch, capsys, tmp_path):
    file = tmp_path / "folder" / "front.csv"
    texts = []
    monkeypatch.setattr("evo.regression.estimator.SAVE_SECONDS", 0.0)
    monkeypatch.setattr("evo.report.table.write_outputs", lambda outputs, _: texts.extend(outputs.values()))
    regressor(2000, output=file).fit(X, np.sin(3.0 * X[:, 2]) + Y + X[:, 0])
    assert len(texts) > 2 and capsys.readouterr().out == ""
    monkeypatch.undo()
    model = regressor(2000, output=file, verbose=1).fit(X, np.sin(3.0 * X[:, 2]) + Y + X[:, 0])
    assert "evaluations 2," in capsys.readouterr().out
    assert file.read_bytes() == texts[-1] != texts[0]
    pd.testing.assert_frame_equal(pd.read_csv(file), model.equations_, check_dtype=False)
    with pytest.raises(ValueError, match=f"^output: {tmp_path}: exists and is not a file$"):
        regressor(400, output=tmp_path).fit(X, Y)


@pytest.mark.parametrize("is_frozen", [False, True])
def test_a_fit_leaves_older_objects_out_of_garbage_collections_and_then_all_as_it_was(is_frozen, monkeypatch):
    seen, insert = [], Search.elites
    monkeypatch.setattr(Search, "elites", lambda self: (seen.append(gc.get_freeze_count()), insert(self))[1])
    if is_frozen:
        gc.freeze()
    try:
        regressor(300).fit(X, Y)
        assert min(seen) > 1000
        assert (gc.get_freeze_count() > 0) == is_frozen
    finally:
        gc.unfreeze()


@pytest.mark.parametrize("size", [1e-300, 1e304])
def test_a_target_whose_squares_float64_cannot_hold_is_fitted(size):
    with pytest.warns(UserWarning, match="y: float64 cannot hold its squares; losses are those of y/"):
        model = regressor(400).fit(X, Y * size)
    np.testing.assert_allclose(model.predict(X) / size, Y, rtol=1e-6)


def test_what_does_not_vary_is_predicted_as_it_is():
    model = regressor().fit(X, np.full(len(Y), 7.5))
    assert model.equations_.to_dict("records") == [{"complexity": 0, "loss": 0.0, "score": 0.0, "equation": "7.5"}]
    assert model.predict(X[:2]).tolist() == [7.5, 7.5]
    assert model.sympy() == 7.5
    with pytest.warns(ConvergenceWarning, match="no formula was accepted"):
        flat = regressor(500).fit(np.ones((50, 2)), np.arange(50.0))
    assert flat.predict(np.ones((3, 2))).tolist() == [24.5] * 3


@pytest.mark.parametrize(
    ("y", "at", "expected"),
    [
        (lambda x: np.sin(x) / x, [0.0, 1.0], [1.0, np.sin(1.0)]),
        (np.exp, [1000.0, 1.0], [np.nan, np.e]),
    ],
)
def test_where_a_formula_is_undefined_it_has_its_limit_or_nan_and_a_warning(y, at, expected):
    x = np.linspace(-3.0, 3.0, 80)[:, None]
    model = regressor(20_000).fit(x, y(x[:, 0]))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        np.testing.assert_allclose(model.predict(np.array(at)[:, None]), expected, rtol=1e-6)
        filled = model.set_params(undefined="mean").predict(np.array(at)[:, None])
    is_lost = np.isnan(expected)
    assert ["in 1 of 2 rows, the first is row 0" in str(each.message) for each in told] == [True, True][: 2 * is_lost.any()]
    np.testing.assert_allclose(filled, np.where(is_lost, y(x).mean(), expected), rtol=1e-6)


@pytest.mark.parametrize(
    "y",
    [
        lambda x: x,
        lambda x: 1e-20 * x * x,
        lambda x: np.exp(30.0 * x),
        lambda x: 3.0 - 0.5 / x,
        lambda x: 2.0**-1000 * x,
    ],
)
def test_exact_data_of_any_kind_is_fitted(y):
    x = np.linspace(-3.0, 3.0, 80)
    model = regressor().fit(x[:, None], y(x))
    np.testing.assert_allclose(model.predict(x[:, None]), y(x), atol=1e-5 * np.ptp(y(x)))


def test_a_law_with_noise_in_proportion_is_found():
    generator = np.random.default_rng(0)
    mass = np.exp(generator.uniform(0.0, 7.0, 225))[:, None]
    y = 3.4 * mass[:, 0] ** 0.75
    with pytest.warns(UserWarning, match="noise is in proportion to it"):
        model = regressor(40_000).fit(mass, y * (1.0 + 0.1 * generator.normal(size=225)))
    np.testing.assert_allclose(model.predict(mass), y, rtol=0.05)


def test_a_search_ends_at_a_loss():
    x = np.random.default_rng(3).uniform(0.5, 3.0, (100, 2))
    y = np.sin(3.0 * x[:, 0] * x[:, 1]) / (x[:, 1] + np.exp(x[:, 0]))
    model, longer = (regressor(20_000, early_stop=each).fit(x, y) for each in (0.5 * y.var(), None))
    assert model.equations_.loss.min() <= 0.5 * y.var() and model.n_evaluations_ < longer.n_evaluations_


def test_texts_have_the_names_of_columns_and_guesses_may():
    frame = pd.DataFrame(X, columns=["speed (m/s)", "Δt", "E"])
    y = Y + np.sin(X[:, 2])
    model = regressor(guesses=["`speed (m/s)`*Δt + 0.5*sin(E)"]).fit(frame, y)
    assert model.get_best().equation == "3 + 2*`speed (m/s)`*Δt + sin(E)"
    assert {str(each) for each in model.sympy().free_symbols} == {"speed_m_s", "Δt", "E"}
    assert model.symbols_ == {"speed_m_s": "speed (m/s)"}
    assert r"\text{speed (m/s)}" in model.latex() and r"\Delta t" in model.latex()
    assert model._inputs == ["speed_m_s", "Deltat", "E"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"E": "x"}))
    with pytest.raises(ValueError, match="no column 'speed', the columns are: speed"):
        regressor(guesses=["`speed`*Δt"]).fit(frame, y)


@pytest.mark.parametrize(
    ("names", "texts", "latex"),
    [
        (("lambda", "main"), ("`lambda`", "`main`"), (r"\lambda", "main")),  # words of Python and of C
        (("x-1", "μ_x"), ("`x-1`", "μ_x"), (r"\text{x-1}", r"\mu_{x}")),
        (("50 %_{a}", "x_1_2"), ("`50 %_{a}`", "x_1_2"), (r"\text{50 \%\_\{a\}}", r"\mathrm{x\_1\_2}")),
        (("two\nlines", "温度"), ("`two lines`", "温度"), (r"\text{two lines}", r"\text{温度}")),
    ],
)
def test_names_are_the_columns_own_in_texts_guesses_and_latex(names, texts, latex):
    frame = pd.DataFrame(X[:, :2], columns=list(names))
    model = regressor(100, guesses=["2*{}*{}".format(*texts)]).fit(frame, 2.0 * X[:, 0] * X[:, 1])
    assert model.get_best().equation == "2*{}*{}".format(*texts)
    assert model.latex() in ("2 {} {}".format(*latex), "2 {} {}".format(*latex[::-1]))


@pytest.mark.parametrize("names", [["f", "f_out", "sin"], ["r1", "tid", "%"], ["x", "x_2", " x"], ["t0", "r1_in", "r1"]])
def test_any_name_will_do_for_a_feature(names):
    frame = pd.DataFrame(X, columns=names)
    model = regressor(100).fit(frame, Y)
    np.testing.assert_allclose(model.predict(frame), Y, rtol=1e-5)
    assert len(model.sympy().free_symbols) == 2


def test_a_warm_start_goes_on_where_the_last_fit_ended():
    target = np.sin(3.0 * X[:, 2]) * np.exp(X[:, 0] * X[:, 1]) + np.cos(Y + X[:, 0])
    model = regressor(1000, warm_start=True).fit(X, target)
    before, generations = model.equations_.loss.min(), model.n_generations_
    model = pickle.loads(pickle.dumps(model))
    cold = clone(model).fit(X, target)
    assert cold.equations_.loss.min() == before
    model.set_params(max_evaluations=16_000).fit(X, target)
    assert model.n_generations_ > generations
    assert model.equations_.loss.min() < before
    model.fit(X[:, :2], target)  # other features: a new beginning
    assert model.n_generations_ == clone(model).fit(X[:, :2], target).n_generations_


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_evaluations": None}, "max_time and max_evaluations are None"),
        ({"max_rows": 9}, "max_rows is 9, must be an integer from 10 on"),
        ({"max_evaluations": 0}, "max_evaluations is 0, must be an integer from 1 on"),
        ({"max_time": -1.0}, "max_time is -1.0, must be a number above 0, or None"),
        ({"max_evaluations": True}, "max_evaluations is True, must be an integer from 1 on"),
        ({"functions": {"add": -1}}, "functions: add has -1, must be a number from 0 on"),
        ({"max_length": 10**6}, "max_length is 1000000, must be an integer from 1 on, at most 4096"),
        ({"template": 5}, "template is 5, must be a formula such as 'f(x0) + g(x1)', or None"),
        ({"output": 5}, "output is 5, must be the path of a CSV file, or None"),
        ({"verbose": "much"}, "verbose is 'much', must be an integer"),
        ({"warm_start": "yes"}, "warm_start is 'yes', must be True or False"),
        ({"n_jobs": 0}, "n_jobs is 0, must be an integer other than 0, or None"),
        ({"functions": ["add", "gamma"]}, "unknown function 'gamma', one of: add, sub"),
        ({"functions": []}, "functions is [], must be a list of names"),
        ({"max_spread": -1.0}, "max_spread is -1.0"),
        ({"model_selection": "worst"}, "model_selection is 'worst', must be one of: shortest, accuracy, knee, best, score"),
        ({"random_state": -1}, "random_state is -1, must be an integer from 0 on"),
    ],
)
def test_wrong_parameters_are_told(parameters, message):
    with pytest.raises(ValueError, match=r"^[^\n]*$") as caught:
        regressor().set_params(**parameters).fit(X, Y)
    assert message in str(caught.value)


def test_wrong_data_is_told():
    with pytest.raises(ValueError, match="X has 5000 features, SymbolicRegressor takes at most 1024"):
        regressor().fit(np.zeros((10, 5000)), np.arange(10.0))
    with pytest.raises(ValueError, match=r"with 9 sample.* minimum of 10 is required"):
        regressor().fit(X[:9], Y[:9])
    for weights in (np.zeros(len(Y)), -np.ones(len(Y))):
        with pytest.raises(ValueError, match=r"(?i)sample[_ ]weight"):
            regressor().fit(X, Y, sample_weight=weights)
    model = regressor(100).fit(X, Y)
    with pytest.raises(ValueError, match="index is 99, but there are"):
        model.predict(X, 99)


def test_dates_text_masks_and_infinities_are_refused_in_one_line():
    days = np.arange(len(Y)).astype("datetime64[s]")
    wrong = {
        "X is datetime64[s]; make it numbers, such as seconds: (X - X.min())/np.timedelta64(1, 's')": (days[:, None], Y),
        "y is datetime64[s]; make it numbers, such as seconds: (y - y.min())/np.timedelta64(1, 's')": (X, days),
        "y: row 3 is 'many', no number": (X, [*Y[:3], "many", *Y[4:]]),
        "X: Expected 2D array, got 120 values; Reshape your data: X.reshape(-1, 1) is one feature": (X[:, 0], Y),
        "X: column 1 contains infinity, the first in row 7; drop these rows": (np.where(X[7, 1] == X, np.inf, X), Y),
        "X: 2 columns are called 'a'; rename all but one": (pd.DataFrame(X, columns=["a", "b", "a"]), Y),
        "y contains NaN: 1 missing values, the first in row 5; drop these rows": (X, np.ma.masked_equal(Y, Y[5])),
    }
    for message, (columns, target) in wrong.items():
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            regressor().fit(columns, target)
    with pytest.raises(ValueError, match=r"^sample_weight: 9 rows have a weight above 0, SymbolicRegressor needs at least 10$"):
        regressor().fit(X, Y, np.arange(len(Y)) < 9)


def test_a_law_with_a_pole_between_the_rows_is_found():
    x = np.linspace(-3.1, 3.0, 80)[:, None]
    model = regressor(2000).fit(x, 1.0 / x[:, 0])
    assert model.get_best().equation == "1/x0"


def test_a_search_begins_with_guesses():
    x = np.random.default_rng(3).uniform(0.5, 3.0, (100, 3))
    y = np.sin(x[:, 0] * x[:, 1]) / (x[:, 2] + np.exp(x[:, 0])) + np.cos(x[:, 1] / x[:, 2])
    guess = "sin(x0*x1)/(x2 + exp(x0)) + cos(x1/x2)"
    given = {"max_time": None, "max_evaluations": 600, "random_state": 1}
    found, unaided = (evo.SymbolicRegressor(guesses=each, **given).fit(x, y) for each in ([guess], None))
    assert found.get_best().loss < 1e-12 < 1e-6 < unaided.equations_.loss.min()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"guesses": "x0"}, r"guesses is 'x0', must be a list of formulas such as \['x0\*sin\(x1\)'\]"),
        (
            {"guesses": ["x0"], "template": "f(x0)"},
            "guesses: a search with a template has none; leave out guesses or the template",
        ),
        ({"guesses": ["x0*y7"]}, r"^guesses\[0\]: unknown name 'y7', one of: x0, x1, x2$"),
        ({"guesses": ["."]}, r"^guesses\[0\]: not a formula: invalid syntax$"),  # no folder of a run
        ({"guesses": ["abs(x0)"], "functions": ["add"]}, r"^guesses\[0\]: 'abs\(x0\)': `functions` has no abs; or "),
        ({"guesses": ["x0*(x1 > 1)"]}, r"^guesses\[0\]: 'x1 > 1': `functions` has no greater$"),
    ],
)
def test_what_is_no_guess_is_refused(given, message):
    with pytest.raises(ValueError, match=message) as error:
        evo.SymbolicRegressor(**given).fit(np.eye(20)[:, :3] + 1.0, np.arange(20.0))
    assert "\n" not in str(error.value)
