"""Lineage of an elite, as text.

Owns what is said of its ancestors, by the run's lineage log. `evo.search.lineage` owns which are remembered.
"""

from typing import Any

from evo.errors import plural
from evo.language.formula_text import infix_line
from evo.report.elites import cell_names, operator_name
from evo.report.pareto import row_of_elite
from evo.report.recompute import program_expression
from evo.report.table import shortened, table
from evo.run.run import Run
from evo.search.emitter import GIVEN, RANDOM
from evo.search.lineage_records import lines_of

MAX_TEXT = 100  # characters of an expression


def describe_lineage(run: Run, name: str | None) -> str:
    """The ancestors of an elite as a table, oldest first, itself last.

    Args:
        name: of the elite, as in `row_of_elite`.

    Raises:
        UserError: there is no such elite, or the lineage log is damaged.
    """
    row, records, search = row_of_elite(run, name), run.records(), run.search
    facts, [cell] = records.facts, cell_names(run, [row])
    [line] = lines_of(facts, search.record_numbers()[[row]])
    if not len(line):
        return f"# lineage of cell {cell}: not known (output.lineage_megabytes, or a run of an earlier version)\n"
    forgotten = "its beginning is forgotten (output.lineage_megabytes)"
    begins = {RANDOM: "from a random program on", GIVEN: "from a given program on"}.get(facts["operator"][line[0]], forgotten)
    row_of = {number: row for row, number in enumerate(facts["number"].tolist())}

    def cell_of(record: Any) -> str:
        return search.layout.cell_name(int(record["cell"]))

    rows = [("generation", "slot", "cell", "objective", "operator", "second parent", "expression")]
    for record, words in zip(facts[line], records.programs(line, search.problem.config.program.max_length), strict=True):
        partner = row_of.get(int(record["parents"][1]))
        second = "" if partner is None else f"{cell_of(facts[partner])} of {facts[partner]['generation']}"
        text = shortened(infix_line(program_expression(search.problem, words)), MAX_TEXT)
        numbers = str(record["generation"]), str(record["slot"]), cell_of(record), f"{record['objective']:.6g}"
        rows.append((*numbers, operator_name(int(record["operator"])), second, text))
    return f"# lineage of cell {cell}: {plural(len(line), 'program')}, {begins}\n" + table(rows)
