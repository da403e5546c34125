"""Laws of motion from the text of formulas, for tests."""

from evo.dynamics import terms
from evo.instructions import shipped_instruction_set
from evo.language.dag import dag_of
from evo.language.formula import formula_of
from evo.language.infix import parse_infix
from evo.language.program import Language

_SET = shipped_instruction_set("default")


def law_of(text: str, names: list[str]) -> terms.Law:
    """The law of a formula, in which lines end with a semicolon."""
    language = Language(_SET, tuple((name, "f32") for name in names), (("y_", "f32"),))
    words = parse_infix(language, text.replace("; ", "\n"), "formula", 400, {each.name for each in _SET.instructions})
    return terms.law_of(formula_of(dag_of(language, words), {}, {}), names)
