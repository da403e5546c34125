"""Units: their text, which formulas are consistent, what dimensional analysis gives, and searches with them."""

import re

import numpy as np
import pandas as pd
import pytest

import evo
from evo.errors import UserError
from evo.language.dag import dag_of
from evo.language.infix import parse_infix
from evo.language.real_programs import _instruction_names, language
from evo.regression.units import Units, dimension_of, unit_text

# The SI brochure (9th edition): derived units in base units.
SAME = [
    ("N", "kg*m/s^2"),
    ("J", "N m"),
    ("W", "J/s"),
    ("Pa", "N/m**2"),
    ("V", "W/A"),
    ("F", "C/V"),
    ("ohm", "V/A"),
    ("S", "1/ohm"),
    ("Wb", "V s"),
    ("T", "Wb/m^2"),
    ("H", "Wb/A"),
    ("lx", "lm m**-2"),
    ("kat", "mol/s"),
    ("Gy", "J/kg"),
    ("mm", "m"),
    ("µs", "second"),
    ("kPa", "bar"),
    ("min", "hours"),
    ("L", "(10*cm)^3"),
    ("1/m**(1/2)", "m**-0.5"),
    ("rad/s", "Hz"),
    ("", "1"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_units_have_the_dimensions_of_the_si_brochure(one, other):
    assert dimension_of(one) == dimension_of(other)
    assert dimension_of(unit_text(dimension_of(one))) == dimension_of(one)


@pytest.mark.parametrize(
    ("unit", "message"),
    [
        ("metre/sek", "unknown unit 'sek'"),
        ("m + s", "'m + s' is not a unit; write products and powers such as 'kg*m/s**2', or '1'"),
        ("m**x", "'m**x' is not a unit"),
        ("m/", "'m/' is not a unit"),
        ("-m", "'-m' is not a unit"),
        ("m**(1/0)", "is not a unit"),
    ],
)
def test_a_wrong_unit_is_refused_in_one_line(unit, message):
    with pytest.raises(UserError, match=re.escape(message)):
        dimension_of(unit)


COLUMNS = {"m": "kg", "v": "m/s", "x": "m", "t": "s", "n": "1", "E": "J"}


@pytest.mark.parametrize(
    ("formula", "target", "with_free_constants", "with_numbers"),
    [
        ("m*v*v", "J", True, True),
        ("v*t + x", "m", True, True),
        ("v + x", "m", False, False),
        ("3*v + x", "m", True, False),  # 3 may be a time
        ("x", "s", True, False),  # times a speed
        ("sin(x)", "1", False, False),
        ("sin(2*x)", "1", True, False),
        ("sin(x/(v*t))", "1", True, True),
        ("exp2(E/(m*v*v))*x", "m", True, True),
        ("exp2(E)", "1", False, False),
        ("sqrt(E/m)", "m/s", True, True),
        ("exp2(0.5*log2(E) - 0.5*log2(m))", "m/s", True, True),  # the same root
        ("exp2(0.25*log2(E) - 0.5*log2(m))", "m/s", True, False),
        ("log2(x)", "1", True, False),  # an offset is of any unit
        ("v*log2(x)", "m/s", False, False),
        ("x + v*exp2(log2(t) + 3)", "m", True, True),  # the same as 8*t
        ("v + exp2(log2(t) + 3)", "m/s", True, False),
        ("log2(x) - log2(v*t)", "1", True, True),  # of a quotient
        ("n + 1", "1", True, True),
        ("v + 1", "m/s", True, False),
        ("max(v, x/t)", "m/s", True, True),
        ("max(v, x)", "m/s", False, False),
        ("1/t + v/x", "1/s", True, True),
        ("tanh(n)*abs(x)", "m", True, True),
    ],
)
def test_formulas_are_consistent_as_a_physicist_says(formula, target, with_free_constants, with_numbers):
    spoken = language(tuple(COLUMNS), ("f",))
    program = dag_of(spoken, parse_infix(spoken, formula, "test", 64, _instruction_names()))
    assert Units(COLUMNS, target).is_consistent(program) == with_free_constants
    assert Units(COLUMNS, target, only_dimensionless=True).is_consistent(program) == with_numbers


def powers(units: Units, found) -> set[str]:
    return {"*".join(f"{name}^{each}" for name, each in zip(units.inputs, row, strict=True) if each) for row in found}


def test_groups_of_a_pipe_are_the_reynolds_number_and_its_roughness():
    units = Units({"rho": "kg/m^3", "v": "m/s", "d": "m", "mu": "Pa s", "eps": "m"}, "Pa")
    assert powers(units, units.groups()) >= {"d^1*eps^-1"} or powers(units, units.groups()) >= {"d^-1*eps^1"}
    assert len(units.groups()) == 2  # Buckingham: five columns, three dimensions
    assert "rho^1*v^2" in powers(units, units.products())


def barometric(seed: int = 1) -> tuple[pd.DataFrame, np.ndarray, dict]:
    x = pd.DataFrame(np.random.default_rng(seed).uniform(1.0, 5.0, (300, 6)), columns=["n0", "m", "x", "T", "g", "kb"])
    units = {"n0": "1/m^3", "m": "kg", "x": "m", "T": "K", "g": "m/s^2", "kb": "J/K"}
    return x, x.n0 * np.exp(-x.m * x.g * x.x / (x.kb * x["T"])), {"units": units, "y_units": "1/m^3"}


@pytest.mark.parametrize("only_dimensionless", [False, True])
def test_units_find_the_barometric_formula(only_dimensionless):
    x, y, units = barometric()
    known = evo.SymbolicRegressor(
        max_time=None, max_evaluations=4_000, random_state=1, dimensionless_constants_only=only_dimensionless, **units
    ).fit(x, y)
    assert np.abs(known.predict(x) / y - 1.0).max() < 1e-6
    assert known.n_evaluations_ < 5_500


def test_formulas_of_the_front_are_consistent():
    generator = np.random.default_rng(2)
    x = pd.DataFrame(generator.uniform(1.0, 3.0, (120, 3)), columns=["a", "b", "t"])
    y = np.sqrt(x.a**2 + x.b**2) * np.tanh(x.a * x.b) + generator.normal(0.0, 0.05, 120)  # no law in these units
    units = Units({"a": "m", "b": "m", "t": "s"}, "m", only_dimensionless=True)
    model = evo.SymbolicRegressor(
        max_time=None,
        max_evaluations=4_000,
        random_state=1,
        units={"a": "m", "b": "m", "t": "s"},
        y_units="m",
        dimensionless_constants_only=True,
    ).fit(x, y)
    spoken, _, words, scaling = model.found()
    assert all(units.is_consistent(dag_of(spoken, each)) for each in words)
    assert len(words) > 2
    assert (scaling[:, 0] == 0.0).all()  # no number is added to a length


@pytest.mark.filterwarnings("ignore:.*float32 cannot hold")
def test_a_mass_in_kilograms_of_1e_minus_27_is_no_obstacle():
    x, y, units = barometric()
    small = x.assign(m=x.m * 1e-27, kb=x.kb * 1e-27)
    model = evo.SymbolicRegressor(max_time=None, max_evaluations=4_000, random_state=1, **units).fit(small, y)
    assert np.abs(model.predict(small) / y - 1.0).max() < 1e-5


def test_each_of_several_targets_has_its_unit():
    x, y, units = barometric()
    given = {**units, "y_units": ["1/m^3", "J"]}
    model = evo.SymbolicRegressor(max_time=None, max_evaluations=3_000, random_state=1, **given)
    model.fit(x, np.stack([y, x.m * x.g * x.x + x.kb * x["T"]], axis=1))
    assert model.score(x, np.stack([y, x.m * x.g * x.x + x.kb * x["T"]], axis=1)) > 1.0 - 1e-9
    with pytest.raises(ValueError, match="y_units has 1 units, but y has 2 columns"):
        model.set_params(y_units=["J"]).fit(x, np.stack([y, y], axis=1))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"units": {"x0": "m", "x1": "sek"}}, "units: x1: unknown unit 'sek', "),
        ({"units": {"x0": "m", "x1": 2}}, "units: x1 has 2, must be a text such as 'm/s'"),
        ({"units": {"x0": "m"}}, "units: feature 'x1' has none; give each one, '1' if it has no dimension"),
        ({"units": {"x0": "m", "x1": "s", "x2": "s"}}, "units: X has no feature 'x2'"),
        ({"units": ["m", "s"]}, "units is ['m', 's'], must be a mapping such as {'x0': 'm/s'}"),
        ({"y_units": "m"}, "y_units: is given without units; give those of the features too"),
        ({"units": {"x0": "m", "x1": "s"}, "y_units": "kg*s^2+1"}, "y_units: y: 'kg*s^2+1' is not a unit; write products"),
        (
            {"units": {"x0": "m", "x1": "s"}, "y_units": "J", "dimensionless_constants_only": True},
            "y_units: no product of powers of the inputs has the unit m**(2)*kg*s**(-2); add the column of a constant that is",
        ),
    ],
)
def test_wrong_units_are_refused_in_one_line(given, message):
    x = np.random.default_rng(1).uniform(1.0, 2.0, (20, 2))
    with pytest.raises(ValueError, match=re.escape(message)) as refused:
        evo.SymbolicRegressor(max_time=None, max_evaluations=100, **given).fit(x, x[:, 0])
    assert "\n" not in str(refused.value)
