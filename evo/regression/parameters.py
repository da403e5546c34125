"""Parameters of a search for formulas, of every estimator.

Owns the parameters, their checks, and the config of the search that follows from them. `SymbolicRegressor` documents them.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from evo.errors import UserError
from evo.evaluate.constraints import ANY, Constraints
from evo.evaluate.sampling import MANY
from evo.instructions import shipped_instruction_set
from evo.language.functions import DEFINED
from evo.regression.defaults import FUNCTIONS, PROGRAM, SEARCH, vocabulary_of, with_phrases, with_separators
from evo.regression.equations import SELECTIONS
from evo.report.pareto import SHORTEST

if TYPE_CHECKING:
    from evo.regression.own_functions import OwnFunction
    from evo.regression.units import Units

MIN_ROWS = 10  # of a table
LEAST_SECONDS = 1e-3  # of a fit whose time others have taken
MAX_LENGTH = 4096  # of `program.max_length`
MAX_SIZES = 1024  # cells for complexities, where functions have costs
MIN_BATCH, MAX_POINTS = 128, 1 << 27  # programs of a generation, if their number times that of rows exceeds MAX_POINTS


class SearchParameters(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Parameters of a search for formulas."""

    def __init__(
        self,
        *,
        max_time: float | None = 10.0,
        max_evaluations: int | None = None,
        functions: Sequence[str] | Mapping[str, float | str] | None = None,
        max_length: int = 48,
        max_size: float | None = None,
        max_depth: int | None = None,
        nesting: Mapping[str, Mapping[str, int]] | None = None,
        costs: Mapping[str, float] | None = None,
        units: Mapping[str, str] | None = None,
        y_units: str | Sequence[str] | None = None,
        dimensionless_constants_only: bool = False,
        max_spread: float = 3.0,
        loss: str | None = None,
        template: str | None = None,
        guesses: Sequence[str] | None = None,
        select_k_features: int | None = None,
        max_rows: int = MANY,
        model_selection: str = SHORTEST,
        output: str | None = None,
        undefined: str = "nan",
        early_stop: float | None = None,
        verbose: int = 0,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
    ):
        self.max_time = max_time
        self.max_evaluations = max_evaluations
        self.functions = functions
        self.max_length = max_length
        self.max_size = max_size
        self.max_depth = max_depth
        self.nesting = nesting
        self.costs = costs
        self.units = units
        self.y_units = y_units
        self.dimensionless_constants_only = dimensionless_constants_only
        self.max_spread = max_spread
        self.loss = loss
        self.template = template
        self.guesses = guesses
        self.select_k_features = select_k_features
        self.max_rows = max_rows
        self.model_selection = model_selection
        self.output = output
        self.undefined = undefined
        self.early_stop = early_stop
        self.verbose = verbose
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state

    @property
    def _known(self) -> Sequence[str]:
        """The features that `fit` had, if they have names."""
        return getattr(self, "feature_names_in_", ())

    def _check_parameters(self) -> None:
        """Raises ValueError if one is wrong; the config checks those that it has unchanged."""
        for name, (is_right, right) in _RIGHT.items():
            if not is_right(value := getattr(self, name)):
                raise ValueError(f"{name} is {value!r}, must be {right}")
        if self.max_time is None and self.max_evaluations is None:
            raise ValueError("max_time and max_evaluations are None; one of them must end the search")
        if unknown := [name for name in drawn(self.functions) or () if name not in FUNCTIONS]:
            raise ValueError(
                f"functions: unknown function {unknown[0]!r}, one of: {', '.join([*FUNCTIONS, *DEFINED])}; or a definition "
                "such as {'sq(x)': 'x*x'}"
            )
        for name, value in self.functions.items() if isinstance(self.functions, Mapping) else ():
            if not isinstance(value, str):
                _number("functions", name, value, least=0)
        if self.guesses and self.template is not None:
            raise ValueError("guesses: a search with a template has none; leave out guesses or the template")
        self._check_selection()
        self._constraints()

    def _own_functions(self) -> dict[str, OwnFunction]:
        """The functions that `functions` defines. Raises ValueError if one is wrong."""
        from evo.regression.own_functions import own_function  # loaded only if needed

        try:
            functions = [own_function(head, body) for head, body in defined(self.functions).items()]
        except UserError as error:
            raise ValueError(str(error)) from error
        names = [function.name for function in functions]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"functions: {twice[0]!r} is defined twice")
        return {function.name: function for function in functions}

    def _units_of(self, columns: Sequence[str], inputs: Mapping[str, str]) -> Units | None:
        """The units of inputs in use, by the names of their columns; None: none are given. Raises ValueError if one is wrong."""
        if self.units is None:
            if self.y_units is not None:
                raise ValueError("y_units: is given without units; give those of the features too")
            return None
        if not isinstance(self.units, Mapping):
            raise ValueError(f"units is {self.units!r}, must be a mapping such as {{'x0': 'm/s'}}")
        if lacking := [name for name in columns if name not in self.units]:
            raise ValueError(f"units: feature {lacking[0]!r} has none; give each one, '1' if it has no dimension")
        if surplus := [name for name in self.units if name not in columns]:
            raise ValueError(f"units: X has no feature {surplus[0]!r}")
        from evo.regression.units import Units  # loaded only if needed

        try:
            units = {name: self.units[column] for name, column in inputs.items()}
            return Units(units, self.y_units, only_dimensionless=self.dimensionless_constants_only)
        except UserError as error:
            raise ValueError(str(error)) from error

    def _constraints(self) -> Constraints | None:
        """Constraints on programs; None: none. Raises ValueError if a parameter is wrong."""
        parameters = (self.max_size, self.max_depth, self.nesting, self.costs)
        if all(parameter is None for parameter in parameters):
            return None
        if not isinstance(self.costs, Mapping | None):
            raise ValueError(f"costs is {self.costs!r}, must be a mapping such as {{'sin': 4}}")
        limits = self.nesting.values() if isinstance(self.nesting, Mapping) else [self.nesting]
        if self.nesting is not None and not all(isinstance(limit, Mapping) for limit in limits):
            raise ValueError(f"nesting is {self.nesting!r}, must be a mapping such as {{'sin': {{'sin': 0}}}}")
        costs = {_instruction("costs", name): _number("costs", name, cost) for name, cost in (self.costs or {}).items()}
        nesting = {
            _instruction("nesting", outer): {
                inner if inner == ANY else _instruction("nesting", inner): int(_number("nesting", inner, most, least=0))
                for inner, most in limits.items()
            }
            for outer, limits in (self.nesting or {}).items()
        }
        return Constraints(self.max_size, self.max_depth, nesting, costs)

    def _check_selection(self) -> None:
        if self.model_selection not in SELECTIONS:
            raise ValueError(f"model_selection is {self.model_selection!r}, must be one of: {', '.join(SELECTIONS)}")

    def _config(self, num_rows: int, share: float = 1.0) -> dict[str, Any]:
        """The config of the search. share: of the time and evaluations that it may take."""
        if isinstance(self.random_state, Integral):
            seed = int(self.random_state)
        else:
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        initial = SEARCH["initial"]
        phrases = {function.phrase: function.instructions for function in self._own_functions().values()}
        vocabulary = with_phrases(vocabulary_of(drawn(self.functions)), phrases)
        if self.template is not None:
            vocabulary = with_separators(vocabulary)
        # A cell for each complexity.
        size, *more_dims = SEARCH["archive"]["dims"]
        greatest = max([1.0, *constraints.costs.values()] if (constraints := self._constraints()) else [1.0])
        archive = {**SEARCH["archive"], "dims": [min(math.ceil(size * greatest), MAX_SIZES), *more_dims]}
        # So that a generation of much data ends in time.
        most = min(self.max_evaluations or initial["num_programs"], max(MIN_BATCH, MAX_POINTS // num_rows))
        lengths = {name: min(initial[name], self.max_length) for name in ("min_length", "max_length")}
        program = {**PROGRAM, "max_length": self.max_length, "vocabulary": vocabulary}
        if not vocabulary["instructions"].keys() <= _DEFAULT_INSTRUCTIONS:
            program["instruction_set"] = "wide"
        return {
            "task": type(self).__name__,
            "seed": seed,
            "program": program,
            "search": {
                **SEARCH,
                "archive": archive,
                "batch_size": min(SEARCH["batch_size"], most),
                "combination": SEARCH["combination"] if self.template is None else 0.0,  # programs are several functions
                "initial": {
                    "num_programs": min(initial["num_programs"], most),
                    **lengths,
                },
            },
            "evaluation": {"backend": "cpu", "executor": "threads", "threads": effective_n_jobs(self.n_jobs)},
            "stop": {
                "seconds": self.max_time and self.max_time * share,
                "evaluations": self.max_evaluations and max(1, round(self.max_evaluations * share)),
            },
        }


def shared_seconds(max_time: float | None, count: int) -> Iterator[float | None]:
    """Yield the time of each of several fits, one after the other: their shares of the time left."""
    until_s = time.monotonic() + (max_time or 0.0)
    for left in range(count, 0, -1):
        yield max_time and max((until_s - time.monotonic()) / left, LEAST_SECONDS)


def _is_count(value: Any, least: int = 1, most: int = 2**53) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and least <= int(value) <= most


def is_real(value: Any, least: float = -math.inf) -> bool:
    """Return whether a value is a number of float64, from `least` on."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    return is_number and bool(least <= value <= sys.float_info.max)


def _is_flag(value: Any) -> bool:
    return isinstance(value, (bool, np.bool_, Integral)) and value in (0, 1)


def _are_texts(value: Any) -> bool:
    is_list = isinstance(value, (Sequence, Set, Mapping)) and not isinstance(value, str)
    return is_list and bool(value) and all(isinstance(text, str) and text.strip() for text in value)


LEAST = 5e-324  # above 0
_LIST = "a list of formulas such as ['x0*sin(x1)']"
# Parameter -> whether a value is right, and what would be; the others have checks of their own.
_RIGHT: dict[str, tuple[Callable[[Any], bool], str]] = {
    "max_time": (lambda value: value is None or is_real(value, LEAST), "a number above 0, or None"),
    "max_evaluations": (lambda value: value is None or _is_count(value), "an integer from 1 on, or None"),
    "max_length": (lambda value: _is_count(value, most=MAX_LENGTH), f"an integer from 1 on, at most {MAX_LENGTH}"),
    "max_rows": (lambda value: _is_count(value, MIN_ROWS), f"an integer from {MIN_ROWS} on"),
    "select_k_features": (lambda value: value is None or _is_count(value), "an integer from 1 on, or None"),
    "max_size": (lambda value: value is None or is_real(value, LEAST), "a number above 0, or None"),
    "max_depth": (lambda value: value is None or is_real(value, LEAST), "a number above 0, or None"),
    "max_spread": (lambda value: is_real(value, 0.0), "a number from 0 on"),
    "early_stop": (lambda value: value is None or is_real(value), "a number, or None"),
    "functions": (lambda value: value is None or _are_texts(value), "a list of names or a mapping from names to numbers"),
    "guesses": (lambda value: not value or (_are_texts(value) and not isinstance(value, Mapping)), _LIST),
    "template": (lambda value: value is None or isinstance(value, str), "a formula such as 'f(x0) + g(x1)', or None"),
    "output": (
        lambda value: value is None or isinstance(value, str) or hasattr(value, "__fspath__"),
        "the path of a CSV file, or None",
    ),
    "undefined": (lambda value: value in ("nan", "mean"), "one of: nan, mean"),
    "dimensionless_constants_only": (_is_flag, "True or False"),
    "warm_start": (_is_flag, "True or False"),
    "verbose": (lambda value: isinstance(value, (Integral, np.bool_)), "an integer"),
    "n_jobs": (lambda value: value is None or (isinstance(value, Integral) and value != 0), "an integer other than 0, or None"),
    "random_state": (
        lambda value: value is None or type(value).__name__ == "RandomState" or _is_count(value, 0, 2**64 - 1),
        "an integer from 0 on, a numpy.random.RandomState, or None",
    ),
}


_DEFAULT_INSTRUCTIONS = {instruction.name for instruction in shipped_instruction_set("default").instructions}
_BY_OTHER_NAME = {"exp": "exp2", "log": "log2", "log10": "log2"}


def _instruction(parameter: str, name: str) -> str:
    """The instruction that a function is. Raises ValueError if it is several, or none."""
    words = FUNCTIONS.get(_BY_OTHER_NAME.get(name, name), ("",))[0]
    if not words or " " in words:
        single = [function for function, (text, _) in FUNCTIONS.items() if " " not in text]
        raise ValueError(
            f"{parameter}: {name!r} is not a function of one instruction, one of: {', '.join([*single, *_BY_OTHER_NAME])}"
        )
    return words


def _number(parameter: str, name: str, value: Any, least: float = np.nextafter(0.0, 1.0)) -> float:
    if not (isinstance(value, Real) and least <= float(value) < np.inf):
        raise ValueError(f"{parameter}: {name} has {value!r}, must be a number {'from 0 on' if least == 0 else 'above 0'}")
    return float(value)


OTHER_NAMES = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "/": "div",
    "^": "pow",
    "**": "pow",
    "inv": "rcp",
    "ln": "log",
}  # of other systems


def defined(functions: Any) -> dict[str, str]:
    """The definitions among the parameter `functions`: the user's, and those of names in `DEFINED`."""
    if functions is None:
        return {}
    known = {f"{name}({', '.join(DEFINED[name][0])})": DEFINED[name][1] for name in functions if name in DEFINED}
    definitions = (
        {str(head): body for head, body in functions.items() if isinstance(body, str)} if isinstance(functions, Mapping) else {}
    )
    return known | definitions


def drawn(functions: Any) -> Any:
    """The parameter `functions` without definitions, by our names; None: the default ones."""
    if functions is None:
        return None
    named = functions if isinstance(functions, Mapping) else dict.fromkeys(functions)
    kept = {
        OTHER_NAMES.get(name, name): weight
        for name, weight in named.items()
        if name not in DEFINED and not isinstance(weight, str)
    }
    return (kept if isinstance(functions, Mapping) else [*kept]) or None
