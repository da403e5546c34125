"""The vocabulary: which words variation draws, and how often.

Owns the way from a config's names and weights to the table that vary.h draws from. Knows nothing of the archive.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evo.config import ProgramConfig, SearchConfig
from evo.errors import UserError
from evo.native.stack_ptx import META_OPERATIONS, WordType
from evo.native.vary import OPERATORS, Draw, Variation
from evo.program import Language, word


@dataclass
class _Entry:
    group: str
    word: int
    weight: float
    draw: Draw = Draw.LITERAL
    params: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True)
class _Options:
    """What vary.h calls VaryOptions."""

    operator_weights: tuple[float, ...]
    umad_addition_rate: float
    umad_deletion_rate: float
    alternation_rate: float
    alignment_deviation: float
    perturbation_rate: float
    perturbation_relative: float
    perturbation_absolute: float
    replacement_rate: float
    initial_min_length: int
    initial_max_length: int
    float_stacks: int
    unsigned_stacks: int
    signed_stacks: int


def make_variation(language: Language, program: ProgramConfig, search: SearchConfig) -> Variation:
    """The native operators for programs of `language`, with the config's vocabulary, rates and weights.

    Raises:
        UserError: a name in the vocabulary is unknown, nothing has a weight, or a rate is refused.
    """
    entries = _weigh_groups(_entries(language, program), program)
    try:
        return Variation(
            np.array([entry.word for entry in entries], np.uint64),
            np.array([entry.weight for entry in entries], np.float64),
            np.array([entry.draw for entry in entries], np.uint32),
            np.array([entry.params for entry in entries], np.float64),
            _options(language, program, search),
        )
    except ValueError as error:
        raise UserError(f"search.variation: {error}") from error


def _entries(language: Language, program: ProgramConfig) -> list[_Entry]:
    vocabulary, instruction_set = program.vocabulary, language.instruction_set
    indices = {name: instruction_set.instruction_index(name) for name in vocabulary.instructions}
    entries = [
        _Entry("instructions", word(WordType.PTX, payload=indices[name]), weight)
        for name, weight in vocabulary.instructions.items()
    ]
    entries += [_Entry("inputs", word(WordType.INPUT, payload=i), 1.0) for i in range(len(language.inputs))]
    stacks = _used_stacks(language, list(indices.values()))
    entries += _constants(language, stacks, program)
    for name, weight in vocabulary.meta.items():
        if name == "constant":
            meta_max = float(vocabulary.constants.meta_max)
            entries.append(_Entry("meta", word(WordType.META_CONSTANT), weight, Draw.INTEGER, (0.0, meta_max + 1)))
        elif name in META_OPERATIONS:
            operation = META_OPERATIONS.index(name)
            entries += [_Entry("meta", word(WordType.META, stack, operation), weight / len(stacks)) for stack in stacks]
        else:
            names = ", ".join((*META_OPERATIONS, "constant"))
            raise UserError(f"program.vocabulary.meta: unknown operation '{name}', one of: {names}")
    slots = (0.0, float(language.limits.store_size))
    if language.limits.store_size:
        entries += [_Entry("slots", word(WordType.STORE, s), 1.0 / len(stacks), Draw.INTEGER, slots) for s in stacks]
        entries.append(_Entry("slots", word(WordType.LOAD), 1.0, Draw.INTEGER, slots))
    return entries


def _used_stacks(language: Language, instructions: list[int]) -> list[int]:
    instruction_set = language.instruction_set
    used = {stack for _, stack in language.registers}
    for index in instructions:
        instruction = instruction_set.instructions[index]
        used |= {instruction_set.arg_types[arg].stack_idx for arg in (*instruction.args, *instruction.rets)}
    return sorted(used)


def _constants(language: Language, stacks: list[int], program: ProgramConfig) -> list[_Entry]:
    constants, entries = program.vocabulary.constants, []
    for stack in stacks:
        constant_type = language.instruction_set.stacks[stack].constant_type
        literal = word(WordType.CONSTANT, stack)
        if constant_type == "f32":
            entries.append(_Entry("constants", literal, 1.0, Draw.GAUSSIAN, (0.0, constants.f32_sigma)))
        elif constant_type is not None:
            entries.append(_Entry("constants", literal, 1.0, Draw.INTEGER, (0.0, float(constants.u32_max) + 1)))
    return entries


def _weigh_groups(entries: list[_Entry], program: ProgramConfig) -> list[_Entry]:
    """Scales the weights of each group to the group's own; groups without entries or weight fall out."""
    groups = program.vocabulary.groups
    totals: dict[str, float] = {}
    for entry in entries:
        totals[entry.group] = totals.get(entry.group, 0.0) + entry.weight
    kept = [entry for entry in entries if entry.weight * groups.get(entry.group, 0.0) > 0]
    for entry in kept:
        entry.weight *= groups[entry.group] / totals[entry.group]
    if not kept:
        raise UserError("program.vocabulary: no word has a weight above 0")
    return kept


def _options(language: Language, program: ProgramConfig, search: SearchConfig) -> _Options:
    variation = search.variation
    if search.initial.max_length > program.max_length:
        raise UserError(
            f"search.initial.max_length: {search.initial.max_length} is more than program.max_length {program.max_length}"
        )
    stacks = language.instruction_set.stacks
    masks = {kind: sum(1 << i for i, s in enumerate(stacks) if s.constant_type == kind) for kind in ("f32", "u32", "s32")}
    return _Options(
        operator_weights=tuple(variation.operators.get(name, 0.0) for name in OPERATORS),
        umad_addition_rate=variation.umad.addition_rate,
        umad_deletion_rate=variation.umad.deletion_rate,
        alternation_rate=variation.alternation.rate,
        alignment_deviation=variation.alternation.deviation,
        perturbation_rate=variation.perturbation.rate,
        perturbation_relative=variation.perturbation.relative,
        perturbation_absolute=variation.perturbation.absolute,
        replacement_rate=variation.replacement.rate,
        initial_min_length=search.initial.min_length,
        initial_max_length=search.initial.max_length,
        float_stacks=masks["f32"],
        unsigned_stacks=masks["u32"],
        signed_stacks=masks["s32"],
    )
