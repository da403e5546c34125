"""Choice of the equations that a fit keeps, and of the one that predicts.

Owns the rules that `model_selection` names, and tables for people. Knows nothing of how equations are found.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evo.language.dag import Dag, dag_of
from evo.language.formula import evaluate, formula_of
from evo.language.program import Language
from evo.native.stack_ptx import NodeKind
from evo.native.vary import program_lengths
from evo.regression.tables import Table
from evo.regression.task import RegressionTask
from evo.report.pareto import KNEE, SHORTEST, Front, front_text, make_front, sound_rows

if TYPE_CHECKING:
    from evo.evaluate.constraints import Constraints
    from evo.search.archives.elites import Elites

WORST_LOSS = 1.5  # times the least: of an equation that may be "best", as in PySR
LEAST_LOSS = 1e-300  # below which logarithms of losses end
LINE = 130  # characters of a printed table where there is no terminal

SELECTIONS = (SHORTEST, "accuracy", KNEE, "best", "score")


def front_programs(elites: Elites, task: RegressionTask, language: Language) -> NDArray[np.uint64]:
    """The programs on the front, the simplest first."""
    words = elites.solution[:, : int(program_lengths(elites.solution).max()) + 1]
    count = len(next(iter(task.points().values())))
    dense = [values[count:] for values in task.report_points().values()]

    def handicap(rows: NDArray[np.int64]) -> NDArray[np.float64]:
        outputs = [evaluate(formula_of(dag_of(language, words[row]), {}, {}), dense)[0] for row in rows]
        undefined = np.array([1.0 - np.isfinite(values).mean() for values in outputs])
        return task.handicap({"undefined": undefined, "objective": elites.objective[rows]})

    return words[sound_rows(elites.measures[:, 0], elites.objective, handicap)]


def joined(
    earlier: NDArray[np.uint64], words: NDArray[np.uint64], constraints: Constraints | None, language: Language
) -> NDArray[np.uint64]:
    """The programs of two tables; of the earlier one those that keep to constraints."""
    if constraints:
        earlier = earlier[constraints.admitted(language, earlier)]
    programs = np.zeros((len(earlier) + len(words), max(earlier.shape[1], words.shape[1])), np.uint64)
    programs[: len(earlier), : earlier.shape[1]], programs[len(earlier) :, : words.shape[1]] = earlier, words
    return programs


def complexity_of(words: NDArray[np.uint64], constraints: Constraints | None, language: Language) -> NDArray[Any]:
    """Instructions of programs, or the sums of their costs."""
    if constraints and constraints.costs:
        return constraints.cost_of(language, words)
    complexity: NDArray[Any] = language.lowering.analyze(words)[1]
    return complexity


def fitted(program: Dag, task: RegressionTask | None, table: Table, mean: float, has_offset: bool) -> tuple[float, float, float]:
    """Offset, scale and loss of a program's values. task: None if the target is the same everywhere. mean: the prediction where a
    value is not finite.
    """
    columns, target, weights = table
    offset, scale, predicted = mean, 0.0, np.zeros(len(target))
    if task:
        values = evaluate(program, columns.T)[0]
        [(offsets, scales)] = task.scaling({"": values[None]}).values()
        offset, scale = float(offsets[0]), float(scales[0])
        if offset and not has_offset:
            known = np.where(np.isfinite(values), values, 0.0)
            factors = known if weights is None else known * weights
            offset, scale = 0.0, float(factors @ target / (factors @ known))
        if scale:
            predicted = np.multiply(values, scale, out=values)
    predicted += offset
    np.copyto(predicted, mean, where=~np.isfinite(predicted))
    loss = task.mean_loss(predicted) if task else None
    return offset, scale, float(np.average((predicted - target) ** 2, weights=weights)) if loss is None else loss


def scores(complexity: NDArray[np.int32], losses: NDArray[np.float64]) -> NDArray[np.float64]:
    """Fall of ln(loss), or of a loss that may be below 0, for each further instruction; after the mean, a line is one."""
    logs = np.log(np.maximum(losses, LEAST_LOSS)) if (losses >= 0.0).all() else losses
    return np.append(0.0, -np.diff(logs) / np.maximum(np.diff(complexity), 1))


def front_of_losses(
    task: RegressionTask, complexity: NDArray[np.int32], losses: NDArray[np.float64], variance: float, scales: NDArray[np.float64]
) -> Front:
    """The front of equations with its marked positions. An equation with a scale is one term longer than a constant."""
    digits = task.digits(losses, variance)
    front = make_front(task, complexity.astype(np.float64), digits, np.arange(len(digits)))
    bits = task.description_length(digits, complexity + (scales != 0.0))
    return replace(front, positions={**front.positions, SHORTEST: int(np.argmin(bits))})


def chosen_row(selection: str, table: pd.DataFrame, front: Front) -> int:
    """The row of a table of equations that predicts."""
    if selection in (SHORTEST, KNEE):
        return front.positions[selection]
    if selection == "accuracy":
        return int(table.loss.argmin())
    if selection == "score":
        return int(table.score.argmax())
    return int(table.score.where(table.loss - table.loss.min() <= (WORST_LOSS - 1.0) * abs(table.loss.min())).argmax())


def table_text(table: pd.DataFrame, front: Front, chosen: int) -> str:
    """A table of equations as text, `>` before the chosen one."""
    columns = {name: [f"{value:.6g}" for value in table[name]] for name in ("complexity", "loss", "score")}
    return front_text(front, chosen, columns, "equation", table.equation, shutil.get_terminal_size((LINE, 24)).columns).rstrip(
        "\n"
    )


def latex_table(rows: Iterable[tuple[int, float, str]], digits: int) -> str:
    """A LaTeX table, for the package booktabs.

    Args:
        rows: complexity, loss and formula of each equation.
        digits: of the losses.
    """
    lines = [r"\begin{tabular}{rll}", r"\toprule", r"Complexity & Loss & Equation \\", r"\midrule"]
    for complexity, loss, formula in rows:
        mantissa, _, exponent = f"{loss:.{digits}g}".partition("e")
        power = rf" \times 10^{{{int(exponent)}}}" if exponent else ""
        lines.append(rf"{complexity} & ${mantissa}{power}$ & ${formula}$ \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])


def written_size(expression: Dag) -> int:
    """Operations of the first output, if values that are used more than once are written as often."""
    sizes: list[int] = []
    for value in expression.nodes:
        sizes.append((value.kind == NodeKind.PTX) + sum(sizes[operand] for operand in value.operands))
    return sizes[expression.results[0]] if expression.results[0] is not None else 0
