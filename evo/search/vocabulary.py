"""The vocabulary: which words variation draws, and how often.

Owns the conversion of names and weights to the table that vary.h draws from. Knows nothing of the archive.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import numpy as np
from pydantic import BeforeValidator, Field, create_model, model_validator

from evo.errors import UserError, did_you_mean
from evo.instructions import FLOATS, Instruction
from evo.language.program import Language, word
from evo.native.stack_ptx_words import META_OPERATIONS, WordType
from evo.native.vary import MAX_PHRASE, OPERATORS, RATES, Draw, Variation
from evo.options import Integer, Options, Weight


@dataclass
class _Entry:
    group: str
    word: int
    weight: float
    draw: Draw = Draw.LITERAL
    params: tuple[float, float] = (0.0, 0.0)
    followers: tuple[_Entry, ...] = ()  # of a phrase


def _names_to_weights(value: Any) -> Any:
    """A plain list of names means that each has weight 1."""
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return dict.fromkeys(value, 1.0)
    return value


def _tables(value: Any) -> Any:
    """`lop3_*` means each of the 256 tables."""
    names = _names_to_weights(value)
    if isinstance(names, dict) and isinstance(weight := names.get("lop3_*"), int | float):
        rest = {name: share for name, share in names.items() if name != "lop3_*"}
        return rest | {f"lop3_{table:02x}": weight / 256 for table in range(256)}
    return names


Weights = Annotated[dict[str, Weight], BeforeValidator(_names_to_weights)]


class ConstantOptions(Options):
    """Constants in new words: f32 ones are drawn from a normal distribution, u32 ones uniformly from 0 to `u32_max`."""

    f32_sigma: Annotated[float, Field(gt=0.0, le=3.4e38)] = 1.0
    u32_max: Annotated[Integer, Field(ge=0, le=2**32 - 1)] = 255
    meta_max: Annotated[Integer, Field(ge=0, le=2**16)] = 4


class VocabularyOptions(Options):
    """Vocabulary of new words. Weights are relative within a group; `groups` weighs the groups.

    Words are drawn for the stacks that inputs, outputs and instructions use. In `meta`, `constant` is a push onto the meta
    stack; in `groups`, `store` weighs the words that store and load values.
    The name `lop3_*` stands for all 256 tables of lop3 together.
    A phrase is several words that are drawn as one: tokens of the text form of programs (`evo.language.program`), `input` for any
    input, and `constant` or `constant.STACK` for one with a value drawn anew.
    """

    instructions: Annotated[Weights, BeforeValidator(_tables)] = Field(min_length=1)
    meta: Weights = {"dup": 1.0, "swap": 1.0, "yank_dup": 0.5, "rotate": 0.5, "constant": 0.5}
    phrases: Weights = {}
    groups: dict[Literal["instructions", "inputs", "constants", "meta", "store", "phrases"], Weight] = {
        "instructions": 0.6,
        "inputs": 0.28,
        "constants": 0.07,
        "meta": 0.05,
    }
    constants: ConstantOptions = ConstantOptions()

    @model_validator(mode="after")
    def _some_instruction(self) -> Self:
        if self.groups.get("instructions") and not sum(self.instructions.values()) > 0:
            raise ValueError("at least one of the instructions needs a weight above 0, or groups.instructions is 0")
        return self


OPERATOR_WEIGHTS = {"umad": 0.5, "alternation": 0.1, "crossover": 0.1, "perturbation": 0.2, "replacement": 0.1}
"""The default mix; an operator that is not named here has weight 0."""


class _VariationOptions(Options):
    """Operators: one is drawn for each offspring by weight. Each operator with rates has a section of its own."""

    operators: dict[str, Weight] = OPERATOR_WEIGHTS

    @property
    def rates(self) -> dict[str, float]:
        """All rates by `Rate.key`."""
        return {rate.key: getattr(getattr(self, rate.operator), rate.name) for rate in RATES}

    @model_validator(mode="after")
    def _some_operator(self) -> Self:
        if not sum(self.operators.values()) > 0:
            raise ValueError("at least one of the operators needs a weight above 0")
        return self


def _variation_options() -> type[_VariationOptions]:
    """The options with the operators, rates, defaults and bounds of vary.h."""
    rates: dict[str, dict[str, Any]] = {}
    for rate in RATES:
        # A lowest value that is refused is left to vary.h.
        number = Annotated[float, Field(ge=rate.lowest, le=rate.highest)]
        rates.setdefault(rate.operator, {})[rate.name] = (number, rate.default)
    literal: Any = Literal
    fields: dict[str, Any] = {"operators": (dict[literal[OPERATORS], Weight], OPERATOR_WEIGHTS)}
    for operator, section in rates.items():
        model = create_model(f"{operator.capitalize()}Options", __base__=Options, **section)
        fields[operator] = (model, model())
    return create_model("VariationOptions", __base__=_VariationOptions, **fields)


if TYPE_CHECKING:
    VariationOptions = _VariationOptions
else:
    VariationOptions = _variation_options()


def make_variation(
    language: Language,
    vocabulary: VocabularyOptions,
    options: VariationOptions,
    initial_lengths: tuple[int, int],
    source: str = "search.variation",
) -> Variation:
    """The native operators on programs of `language`.

    Args:
        initial_lengths: the least and the greatest length of random programs, in words.
        source: the options' key in messages.

    Raises:
        UserError: a name is unknown, nothing has a weight, or a rate is out of range.
    """
    drawn = _weigh_groups(_entries(language, vocabulary), {str(name): weight for name, weight in vocabulary.groups.items()})
    entries = [part for entry in drawn for part in (entry, *entry.followers)]
    try:
        return Variation(
            np.array([entry.word for entry in entries], np.uint64),
            np.array([entry.weight for entry in entries], np.float64),
            np.array([entry.draw for entry in entries], np.uint32),
            np.array([entry.params for entry in entries], np.float64),
            _native_options(language, options, initial_lengths),
            np.array([1 + len(entry.followers) for entry in entries], np.uint32),
        )
    except ValueError as error:
        raise UserError(error, source) from error


def _entries(language: Language, vocabulary: VocabularyOptions) -> list[_Entry]:
    instruction_set = language.instruction_set
    indices = {name: instruction_set.instruction_index(name) for name in vocabulary.instructions}
    taken = {stack for index in indices.values() for stack in _effect(language, instruction_set.instructions[index])[0]}
    if language.inputs and not any(instruction_set.stack_index(kind) in taken for _, kind in language.inputs):
        kinds = " or ".join(dict.fromkeys(kind for _, kind in language.inputs))
        raise UserError(
            f"none takes {kinds}, the type of the task's inputs; name some that do", "program.vocabulary.instructions"
        )
    entries = [
        _Entry("instructions", word(WordType.PTX, payload=indices[name]), weight)
        for name, weight in vocabulary.instructions.items()
    ]
    entries += [_Entry("inputs", word(WordType.INPUT, payload=i), 1.0) for i in range(len(language.inputs))]
    stacks = _used_stacks(language, list(indices.values()))
    entries += _constants(language, stacks, vocabulary)
    for name, weight in vocabulary.meta.items():
        if name == "constant":
            meta_max = float(vocabulary.constants.meta_max)
            entries.append(_Entry("meta", word(WordType.META_CONSTANT), weight, Draw.INTEGER, (0.0, meta_max + 1)))
        elif name in META_OPERATIONS:
            operation = META_OPERATIONS.index(name)
            entries += [_Entry("meta", word(WordType.META, stack, operation), weight / len(stacks)) for stack in stacks]
        else:
            known = (*META_OPERATIONS, "constant")
            raise UserError(f"unknown operation '{name}', {did_you_mean(name, known)}", "program.vocabulary.meta")
    store = (0.0, float(language.limits.store_size))
    if language.limits.store_size:
        entries += [_Entry("store", word(WordType.STORE, s), 1.0 / len(stacks), Draw.INTEGER, store) for s in stacks]
        entries.append(_Entry("store", word(WordType.LOAD), 1.0, Draw.INTEGER, store))
    return entries + [_phrase(language, vocabulary, text, weight) for text, weight in vocabulary.phrases.items()]


def _phrase(language: Language, vocabulary: VocabularyOptions, text: str, weight: float) -> _Entry:
    """Raises UserError for a phrase that cannot be read."""
    location, tokens = f"program.vocabulary.phrases: '{text}'", text.split()
    if not 2 <= len(tokens) <= MAX_PHRASE:
        raise UserError(f"{len(tokens)} words, expected 2 to {MAX_PHRASE}, such as 'input constant mul_ftz_f32'", location)
    try:
        first, *followers = (_phrase_word(language, vocabulary, token) for token in tokens)
    except ValueError as error:
        raise UserError(f"{error}; 'input' is any input, 'constant' or 'constant.STACK' one drawn anew", location) from None
    first.weight, first.followers = weight, tuple(followers)
    return first


def _phrase_word(language: Language, vocabulary: VocabularyOptions, token: str) -> _Entry:
    """Raises ValueError with what is wrong. The weight is 0."""
    head, _, stack_name = token.partition(".")
    if token == "input" and language.inputs:
        return _Entry("phrases", word(WordType.INPUT), 0.0, Draw.INTEGER, (0.0, float(len(language.inputs))))
    if head == "constant":
        try:
            [entry] = _constants(language, [language.instruction_set.stack_index(stack_name or "f32")], vocabulary)
        except (KeyError, ValueError):
            names = [stack.name.lower() for stack in language.instruction_set.stacks if stack.constant_type]
            raise ValueError(f"no constants of '{stack_name}', stacks that have some: {', '.join(names)}") from None
        return replace(entry, group="phrases", weight=0.0)
    if token == "return":
        raise ValueError("'return' ends a program and is not a word of a phrase")
    return _Entry("phrases", language.encode(token), 0.0)


def _used_stacks(language: Language, instructions: list[int]) -> list[int]:
    instruction_set = language.instruction_set
    used = {stack for _, stack in language.registers}
    for index in instructions:
        instruction = instruction_set.instructions[index]
        used |= {instruction_set.arg_types[arg].stack_idx for arg in (*instruction.args, *instruction.rets)}
    return sorted(used)


def _constants(language: Language, stacks: list[int], vocabulary: VocabularyOptions) -> list[_Entry]:
    entries = []
    for stack in stacks:
        constant_type = language.instruction_set.stacks[stack].constant_type
        literal = word(WordType.CONSTANT, stack)
        if constant_type in FLOATS:
            entries.append(_Entry("constants", literal, 1.0, Draw.GAUSSIAN, (0.0, vocabulary.constants.f32_sigma)))
        elif constant_type is not None:
            entries.append(_Entry("constants", literal, 1.0, Draw.INTEGER, (0.0, float(vocabulary.constants.u32_max) + 1)))
    return entries


def _weigh_groups(entries: list[_Entry], groups: dict[str, float]) -> list[_Entry]:
    """Scales the weights of each group to sum to the group's weight; drops groups without entries or weight."""
    totals: dict[str, float] = {}
    for entry in entries:
        totals[entry.group] = totals.get(entry.group, 0.0) + entry.weight
    kept = [entry for entry in entries if entry.weight * groups.get(entry.group, 0.0) > 0]
    for entry in kept:
        entry.weight *= groups[entry.group] / totals[entry.group]
    if not kept:
        raise UserError("no word has a weight above 0", "program.vocabulary")
    return kept


def _native_options(language: Language, options: VariationOptions, initial_lengths: tuple[int, int]) -> SimpleNamespace:
    stacks = language.instruction_set.stacks
    # Constants of 64-bit types are widened from 32 bits, and those of halves rounded: they vary like those of the 32-bit type.
    alike = {"f32": FLOATS, "u32": ("u32", "u64"), "s32": ("s32", "s64")}
    masks = {kind: sum(1 << i for i, stack in enumerate(stacks) if stack.constant_type in types) for kind, types in alike.items()}
    return SimpleNamespace(
        operator_weights=tuple(options.operators.get(name, 0.0) for name in OPERATORS),
        **options.rates,
        initial_min_length=initial_lengths[0],
        initial_max_length=initial_lengths[1],
        float_stacks=masks["f32"],
        unsigned_stacks=masks["u32"],
        signed_stacks=masks["s32"],
        effects=[_effect(language, instruction) for instruction in language.instruction_set.instructions],
        input_stacks=[language.instruction_set.stack_index(type_name) for _, type_name in language.inputs],
    )


def _effect(language: Language, instruction: Instruction) -> tuple[list[int], list[int]]:
    """The stacks of the values that it pops, and of those that it pushes."""

    def stacks(arg_types: tuple[int, ...]) -> list[int]:
        types = [language.instruction_set.arg_types[arg] for arg in arg_types]
        return [kind.stack_idx for kind in types for _ in range(max(kind.num_vec_elems, 1))]

    return stacks(instruction.args), stacks(instruction.rets)
