"""Defaults of a search for formulas: the sections `program` and `search` of a config.

configs/symbolic_regression.yaml says the same; a test holds them together.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from evo.language.functions import named_functions

FUNCTIONS = named_functions()
OWN_WEIGHT = 2.0  # of a function that the user defines, which the law is likely to have
SEPARATOR_WEIGHT = 0.1  # of words that divide programs into functions, relative to all others
DEFAULT_FUNCTIONS = ("add", "sub", "mul", "div", "rcp", "sin", "cos", "exp2", "log2", "sqrt")

VOCABULARY: dict[str, Any] = {
    # Weights of 0: of first formulas alone.
    "instructions": dict(FUNCTIONS[name] for name in DEFAULT_FUNCTIONS) | {"max_ftz_f32": 0.0, "min_ftz_f32": 0.0},
    "meta": {"dup": 1, "swap": 1, "yank_dup": 0.5, "rotate": 0.5, "constant": 0.5},
    # A weighted input; a term more or a factor more; a scaled, shifted or squared value; a power of any exponent.
    "phrases": {
        "input constant mul_ftz_f32": 1,
        "input constant mul_ftz_f32 add_ftz_f32": 2,
        "input input mul_ftz_f32 add_ftz_f32": 2,
        "input mul_ftz_f32": 2,
        "constant mul_ftz_f32": 1,
        "constant add_ftz_f32": 2,
        "dup.f32 mul_ftz_f32": 1,
        "lg2_approx_ftz_f32 constant mul_ftz_f32 ex2_approx_ftz_f32": 0.5,
    },
    "groups": {"instructions": 0.4, "inputs": 0.15, "constants": 0.05, "phrases": 0.4},
    "constants": {"f32_sigma": 2.0},
}
PROGRAM: dict[str, Any] = {"max_length": 48, "vocabulary": VOCABULARY}
SEARCH: dict[str, Any] = {
    "archive": {"type": "GridArchive", "dims": [48, 16]},
    "batch_size": 512,
    "initial": {"num_programs": 1024, "min_length": 8, "max_length": 32},
    "starts": {"count": 6, "generations": 60},  # a search finds a law soon, or is stuck
    "parents": [1.0, 0.3, 0.1],
    "combination": 0.05,
    "variation": {
        "operators": {"umad": 0.4, "subprogram": 0.4, "perturbation": 0.05, "replacement": 0.15},
        "umad": {"addition_rate": 0.025, "deletion_rate": 0.0244},
    },
    "tuning": {"share": 0.25},
}


def with_phrases(vocabulary: dict[str, Any], phrases: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """A vocabulary with more phrases, each with the instructions in it, which are never drawn by themselves."""
    if not phrases:
        return vocabulary
    parts = dict.fromkeys((name for names in phrases.values() for name in names), 0.0)
    groups = {"phrases": VOCABULARY["groups"]["phrases"], **vocabulary["groups"]}
    drawn = dict.fromkeys(phrases, OWN_WEIGHT)
    alone = {words: weight for words, weight in drawn.items() if " " not in words}  # is an instruction
    drawn = {**vocabulary["phrases"], **{words: weight for words, weight in drawn.items() if " " in words}}
    return {**vocabulary, "instructions": parts | vocabulary["instructions"] | alone, "phrases": drawn, "groups": groups}


def with_separators(vocabulary: dict[str, Any]) -> dict[str, Any]:
    """A vocabulary for the functions of a template."""
    return {**vocabulary, "meta": {"clear": 1}, "groups": {**vocabulary["groups"], "meta": SEPARATOR_WEIGHT}}


def vocabulary_of(functions: Sequence[str] | Mapping[str, float] | None) -> dict[str, Any]:
    """The vocabulary of formulas that consist of these functions, by name or with how often each is drawn; None: the default."""
    if functions is None:
        return VOCABULARY
    weights = functions if isinstance(functions, Mapping) else {name: FUNCTIONS[name][1] for name in functions}
    drawn = {FUNCTIONS[name][0]: weight for name, weight in weights.items()}
    instructions = {words: weight for words, weight in drawn.items() if " " not in words}
    missing = {words for words, _ in FUNCTIONS.values() if " " not in words} - instructions.keys()
    phrases = {words: weight for words, weight in VOCABULARY["phrases"].items() if not missing & set(words.split())}
    phrases |= {words: weight for words, weight in drawn.items() if " " in words}
    parts = missing & {word for words in phrases for word in words.split()}  # never drawn by themselves
    drawn_from = {"phrases": bool(phrases), "instructions": any(instructions.values())}
    groups = {name: weight for name, weight in VOCABULARY["groups"].items() if drawn_from.get(name, True)}
    return {**VOCABULARY, "instructions": instructions | dict.fromkeys(sorted(parts), 0.0), "phrases": phrases, "groups": groups}
