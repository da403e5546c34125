"""evo.SymbolicDynamics: it finds laws from noise, gaps and several trajectories, and says what is wrong with data."""

import pickle

import numpy as np
import pandas as pd
import pytest
from law_texts import law_of
from scipy.integrate import solve_ivp
from sklearn.base import clone

import evo
from evo.dynamics.records import MIN_PIECE, Record
from evo.dynamics.refinement import Refinement
from evo.dynamics.selection import Selection
from evo.dynamics.shooting import Fit, Shooting
from evo.dynamics.terms import divided_by, inner_numbers, polynomial_terms, product_of


def recorded(times, states) -> Record:
    """A trajectory without inputs."""
    return Record(times, states, np.zeros((len(times), 0)), np.zeros(0, bool))


def polynomials(**parameters) -> evo.SymbolicDynamics:
    return evo.SymbolicDynamics(max_time=0, **parameters)


def course(slope, start, times):
    return solve_ivp(slope, (times[0], times[-1]), start, t_eval=times, rtol=1e-10, atol=1e-12).y.T


def with_noise(states, share, seed):
    return states + share * states.std(axis=0) * np.random.default_rng(seed).normal(size=states.shape)


def predator_and_prey(_, x):
    return [1.1 * x[0] - 0.4 * x[0] * x[1], 0.1 * x[0] * x[1] - 0.4 * x[1]]


def oscillator(_, x):
    return [x[1], -2.0 * x[0] - 0.3 * x[1]]


def lorenz(_, x):
    return [10.0 * (x[1] - x[0]), x[0] * (28.0 - x[2]) - x[1], x[0] * x[1] - 2.5 * x[2]]


def test_it_finds_the_lorenz_system_in_chaos_and_noise():
    times = np.linspace(0.0, 4.0, 400)
    model = polynomials(degree=2).fit(times, with_noise(course(lorenz, [-8.0, 8.0, 27.0], times), 0.01, 1))
    laws = [law_of(line.split(" = ")[1], ["x0", "x1", "x2"]) for line in model.equations()]
    for law, formula in zip(laws, ["-10*x0 + 10*x1", "28*x0 - x1 - x0*x2", "x0*x1 - 2.5*x2"], strict=True):
        true = {term: number for number, term in law_of(formula, ["x0", "x1", "x2"])}
        assert {term for _, term in law} == true.keys()
        for number, term in law:
            assert number == pytest.approx(true[term], rel=0.01)


def test_no_number_stands_for_the_error_of_a_coarse_integration():
    times = np.linspace(0.0, 30.0, 60)
    spike = course(lambda _, x: [x[0] - x[0] ** 3 / 3 - x[1] + 0.5, 0.08 * x[0] + 0.056 - 0.064 * x[1]], [-1.0, 1.0], times)
    assert polynomials().fit(times, spike).equations() == ["x0' = 0.5 + x0 - x1 - 1/3*x0**3", "x1' = 0.056 + 0.08*x0 - 0.064*x1"]


@pytest.fixture(scope="module")
def uneven() -> tuple[list, list]:
    """Two trajectories at uneven times, with gaps."""
    times, tables, rng = [], [], np.random.default_rng(3)
    for start in ([10.0, 5.0], [3.0, 2.0]):
        times.append(np.sort(rng.uniform(0.0, 15.0, 200)))
        states = with_noise(course(predator_and_prey, start, times[-1]), 0.01, 4)
        states[rng.uniform(size=states.shape) < 0.1] = np.nan
        tables.append(pd.DataFrame(states, columns=["prey", "predators"]))
    return times, tables


@pytest.fixture(scope="module")
def fitted(uneven) -> evo.SymbolicDynamics:
    return polynomials().fit(*uneven)


def test_uneven_times_gaps_and_several_trajectories_do_not_hide_a_law(fitted, uneven):
    assert fitted.state_names_ == ["prey", "predators"]
    slopes = fitted.predict([[4.0, 2.0], [1.0, 5.0]])
    np.testing.assert_allclose(slopes, [predator_and_prey(0, x) for x in ([4.0, 2.0], [1.0, 5.0])], rtol=0.02, atol=0.01)
    assert [line.count("*") for line in fitted.equations()] == [3, 3], fitted.equations()
    assert fitted.equations()[0].startswith("prey' = ")
    deviations = np.nanstd(np.concatenate([table.to_numpy() for table in uneven[1]]), axis=0)
    np.testing.assert_allclose(fitted.noise_, 0.01 * deviations, rtol=0.3)


def test_a_simulation_follows_the_law(fitted):
    times = np.linspace(2.0, 12.0, 50)
    found = fitted.simulate([10.0, 5.0], times)
    np.testing.assert_allclose(found, course(predator_and_prey, [10.0, 5.0], times), rtol=0.1, atol=0.1)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).simulate([10.0, 5.0], times), found)


def test_a_wrong_start_of_a_simulation_is_named(fitted):
    with pytest.raises(ValueError, match="x0: expected an array of shape"):
        fitted.simulate([[10.0, 5.0]], [0.0, 1.0])


def test_a_simulation_that_leaves_the_finite_numbers_is_nan_from_there_on():
    times = np.linspace(0.0, 0.9, 60)
    states = course(lambda _, x: [x[0] ** 2], [1.0], times)  # 1 / (1 - t)
    model = polynomials(degree=2).fit(times, states)
    found = model.simulate([1.0], [0.0, 0.5, 2.0, 3.0])
    np.testing.assert_allclose(found[:2, 0], [1.0, 2.0], rtol=1e-3)
    assert np.isnan(found[2:]).all()


def test_known_inputs_are_part_of_laws():
    times = np.linspace(0.0, 20.0, 400)
    force = np.sin(1.7 * times)
    states = course(lambda t, x: [x[1], -x[0] - 0.2 * x[1] + 0.5 * np.sin(1.7 * t)], [1.0, 0.0], times)
    model = polynomials(degree=2).fit(times, with_noise(states, 0.01, 5), force)
    laws = [law_of(line.split(" = ")[1], ["x0", "x1", "u0"]) for line in model.equations()]
    assert [[term for _, term in law] for law in laws] == [[((1, 1.0),)], [((0, 1.0),), ((1, 1.0),), ((2, 1.0),)]]
    assert laws[1][2][0] == pytest.approx(0.5, rel=0.01)
    np.testing.assert_allclose(model.simulate(states[0], times, force), states, atol=0.1)


def test_a_break_in_the_recording_makes_only_its_own_integral_finer():
    times = np.linspace(0.0, 10.0, 101)
    with_break = np.append(times[:-1], 50.0)
    records = [recorded(each, course(oscillator, [1.0, 0.0], each)) for each in (times, with_break)]
    evenly, broken = (Shooting([record], 101) for record in records)
    assert broken.num_substeps[-1] > 100 * evenly.num_substeps[-1]
    assert broken.num_substeps[:-1] == evenly.num_substeps[:-1]


def test_a_number_has_no_digits_that_the_samples_do_not_support():
    times = np.linspace(0.0, 10.0, 100)
    record = recorded(times, course(oscillator, [1.0, 0.0], times))
    laws = (law_of("0.015313042096384663*x1", ["x0", "x1"]), ())
    fit = Fit(laws, np.array([[0.02**2]]), 0.0, np.ones(2), np.zeros((2, 1)))
    assert Refinement([record], 6).rounded(fit).laws[0][0][0] == 0.0153


def test_constants_are_fitted_through_the_course_of_the_states():
    times = np.linspace(0.0, 10.0, 300)
    record = recorded(times, with_noise(course(oscillator, [1.0, 0.0], times), 0.02, 8))
    fit = Shooting([record], 100).fit([law_of("x1", ["x0", "x1"]), law_of("-1.5*x0 - 0.1*x1", ["x0", "x1"])])
    numbers = dict(zip(["velocity", "spring", "friction"], [law[0] for laws in fit.laws for law in laws], strict=True))
    truth = {"velocity": 1.0, "spring": -2.0, "friction": -0.3}
    for (name, number), deviation in zip(numbers.items(), fit.deviations, strict=True):
        assert abs(number - truth[name]) < 4.0 * deviation < 0.2, name


def monod(_, x):
    return [0.3 * (5.0 - x[0]) - 2.0 * x[0] * x[1] / (1.5 + x[0]), 0.8 * x[0] * x[1] / (1.5 + x[0]) - 0.3 * x[1]]


def test_quotients_are_found_and_written_in_one_form():
    times = np.linspace(0.0, 40.0, 600)
    record = recorded(times, with_noise(course(monod, [1.0, 0.1], times), 0.01, 1))
    selection = Selection([record], polynomial_terms(2, 3))
    best = min(selection.quotients(1), key=lambda choice: choice.cost)
    assert best.cost < min(choice.cost for choice in selection.choices(1))
    (friction, plain), (gain, quotient) = best.law
    assert (plain, friction) == (((1, 1.0),), pytest.approx(-0.3, rel=0.1))
    [share] = inner_numbers(quotient)
    assert quotient == product_of(((0, 1.0), (1, 1.0)), divided_by(((share, ((0, 1.0),)),)))
    assert (gain, share) == (pytest.approx(0.8 / 1.5, rel=0.1), pytest.approx(1.0 / 1.5, rel=0.1))


def test_a_divisor_may_have_a_square_beside_the_column():
    times = np.linspace(0.0, 12.0, 200)
    record = recorded(times, course(lambda _, x: [-2.0 * x[0] / (1.0 + x[0] + 0.5 * x[0] ** 2)], [6.0], times))  # Haldane's law
    best = min(Selection([record], polynomial_terms(1, 3)).quotients(0), key=lambda choice: choice.cost)
    [(number, quotient)] = best.law
    assert quotient[0] == (0, 1.0) or quotient[1] == (0, 1.0)
    np.testing.assert_allclose([number, *inner_numbers(quotient)], [-2.0, 1.0, 0.5], rtol=1e-3)


@pytest.mark.slow
def test_a_search_finds_a_function_that_is_no_polynomial():
    times = np.linspace(0.0, 12.0, 800)
    states = course(lambda _, x: [x[1], -9.81 * np.sin(x[0]) - 0.3 * x[1]], [2.8, 0.0], times)
    model = evo.SymbolicDynamics(max_time=None, max_evaluations=60_000, random_state=1)
    model.fit(times, with_noise(states, 0.01, 9))
    assert model.equations()[0] == "x0' = x1"
    assert "sin(x0)" in model.equations()[1], model.equations()


TIMES, STATES = np.linspace(0.0, 1.0, 30), np.random.default_rng(0).normal(size=(30, 2))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((TIMES[::-1], STATES), "t: row 1 is 0.965517, after 1; times must be finite, each later"),
        ((np.repeat(TIMES[::2], 2), STATES), "t: row 1 is 0, after 0; times must be finite, each later"),
        ((TIMES[:1], STATES[:1]), r"t: expected at least 10 times, \(num_samples,\), got an array of shape \(1,\)"),
        (([], []), "t, X and u: lists of 0, 0 and 0 trajectories"),
        ((TIMES, pd.DataFrame(STATES).astype(str) + "m"), r"X: expected real numbers, .*\(could not convert"),
        ((TIMES, pd.DataFrame(STATES, columns=["a", "a"])), "X and u: a is the name of two columns"),
        (([*TIMES.astype(str).tolist()[:-1], "noon"], STATES), "t: expected real numbers, .* pandas.to_datetime"),
        ((TIMES[:20], STATES), "t has 20 times, X has 30 rows"),
        ((TIMES, STATES[:, 0]), "X: expected an array of shape"),
        ((TIMES, np.where(TIMES[:, None] > 0.2, np.nan, STATES)), "x0 has 6 samples, at least 10"),
        ((TIMES, np.full((30, 2), np.inf)), r"X: row 0 has infinite values"),
        ((TIMES, STATES, np.where(TIMES > 0.5, np.nan, TIMES)), "u: row 15 .* inputs are all known"),
        (([TIMES], [STATES, STATES]), "lists of 1, 2 and 2 trajectories"),
        ((TIMES, STATES[:, :0]), "X: expected an array of shape"),
        (([TIMES] * 2, [pd.DataFrame(STATES, columns=list(order)) for order in ("ab", "ba")]), r"X\[1\] .* in the same order"),
        ((np.append(TIMES[:-1], 1e6), STATES), r"999999 passes between two samples, more than 10000 times as much as usual"),
        ((TIMES, 1e200 * STATES), r"numbers must be below 1e\+100"),
        ((TIMES, STATES, np.ones(7)), r"u: expected an array of shape \(30, num_inputs\)"),
        ((TIMES, [[1, 2], [3]]), "X: expected real numbers, all rows of equal length"),
        ((TIMES, 3.0), r"X: expected real numbers, all rows of equal length \(a single value\)"),
        ((TIMES, [STATES] * 2, [TIMES, None]), r"X\[1\] and u\[1\]: all trajectories must have the same states and inputs"),
    ],
)
def test_wrong_data_is_named(arguments, words):
    with pytest.raises(ValueError, match=words):
        polynomials().fit(*arguments)


def test_wrong_parameters_are_named():
    with pytest.raises(ValueError, match="degree is -1"):
        polynomials(degree=-1).fit(TIMES, STATES)
    for wrong in ({"max_time": "5"}, {"max_time": float("nan")}, {"hold": "x"}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))} is .*, must be "):
            evo.SymbolicDynamics(**({"max_time": 0} | wrong)).fit(TIMES, STATES)
    with pytest.raises(ValueError, match="at most 400"):
        polynomials(degree=30).fit(TIMES, STATES)
    assert clone(polynomials(degree=2)).degree == 2


STEPS = np.repeat([0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0], 25)


def stepped(slope, start, times, inputs):
    """The course under inputs that hold until the next time."""
    states = [np.array(start)]
    for begin, end, value in zip(times[:-1], times[1:], inputs[:-1], strict=True):
        states.append(solve_ivp(slope, (begin, end), states[-1], args=(value,), rtol=1e-10, atol=1e-12).y[:, -1])
    return np.array(states)


@pytest.mark.parametrize("levels", [(0.0, 1.0), (-1.0, 2.0)])
def test_steps_are_held_and_their_powers_are_not_taken_for_other_terms(levels):
    times = np.linspace(0.0, 20.0, 200)
    inputs = np.where(STEPS > 0.0, *levels[::-1])
    states = stepped(lambda _, x, u: [x[1], -4.0 * x[0] - 0.5 * x[1] + 2.0 * u], [1.0, 0.0], times, inputs)
    with pytest.warns(UserWarning, match="u: u0: values repeat, so they hold"):
        model = polynomials().fit(times, states, inputs)
    assert model.equations() == ["x0' = x1", "x1' = -4*x0 - 0.5*x1 + 2*u0"]
    np.testing.assert_allclose(model.simulate(states[0], times, inputs), states, atol=1e-3)


def test_a_simulation_takes_a_function_of_time():
    times = np.linspace(0.0, 20.0, 400)
    states = course(lambda t, x: [-0.5 * x[0] + np.sin(t)], [1.0], times)
    model = polynomials(degree=1).fit(times, states, np.sin(times))
    np.testing.assert_allclose(model.simulate([1.0], times[::40], np.sin), states[::40], atol=1e-3)
    with pytest.raises(ValueError, match="1 states and 2 inputs given; the laws have 1 and 1"):
        model.simulate([1.0], times, lambda t: [t, t])


def test_a_missing_state_is_named_with_the_remedy():
    times = np.linspace(0.0, 20.0, 200)
    states = with_noise(course(oscillator, [1.0, 0.0], times), 0.01, 1)
    with pytest.warns(UserWarning, match=r"^x0: slopes differ at equal states, .* velocity, add it .*derivative\(\)\(t\)$"):
        polynomials(degree=1).fit(times, np.column_stack([states[:, 0], np.exp(-0.3 * times)]))


def test_pieces_of_a_record_have_equally_many_samples():
    times = np.arange(3.0 * MIN_PIECE + 1.0)
    pieces = Record(times, times[:, None], np.empty((len(times), 0)), np.empty(0, bool)).pieces(1.0)
    assert np.bincount(pieces).tolist() == [MIN_PIECE, MIN_PIECE, MIN_PIECE + 1]


def test_dates_become_seconds():
    times = np.arange(0.0, 20.0, 0.125)
    states = course(lambda _, x: [-0.5 * x[0]], [1.0], times)
    dates = pd.to_datetime("2024-03-01") + pd.to_timedelta(times, unit="s")
    for given in (
        dates.astype("datetime64[ns]"),
        pd.Series(dates).dt.tz_localize("UTC"),
        list(dates),
    ):
        with pytest.warns(UserWarning, match="t: dates and durations become seconds"):
            assert polynomials(degree=1).fit(given, states).equations() == ["x0' = -0.5*x0"]


def test_laws_are_expressions_of_sympy_and_latex():
    sympy = pytest.importorskip("sympy")
    times = np.linspace(0.0, 3.0, 100)
    model = polynomials(degree=1).fit(times, pd.DataFrame({"x-1": course(lambda _, x: [-x[0] / 3.0], [1.0], times)[:, 0]}))
    assert model.equations() == ["`x-1`' = -1/3*`x-1`"]
    assert model.sympy() == [-sympy.Rational(1, 3) * sympy.Symbol("x-1", real=True)]
    assert model.latex() == [r"\frac{d}{dt} \text{x-1} = - \frac{\text{x-1}}{3}"]


def test_a_recording_without_trouble_warns_of_nothing(recwarn):
    times = np.linspace(0.0, 10.0, 200)
    states = np.column_stack([course(oscillator, [1.0, 0.0], times), np.full(200, 3.0)])
    model = polynomials().fit([times, times[:50]], [states, states[:50]])
    assert model.equations() == ["x0' = x1", "x1' = -2*x0 - 0.3*x1", "x2' = 0"]
    assert not recwarn.list
