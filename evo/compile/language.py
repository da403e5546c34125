"""A language as bytes, for compile requests: workers rebuild it, and equal languages have equal bytes.

Owns this encoding, which is not a file format: both sides are always the same version of evo.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict
from functools import lru_cache

from evo.instructions import ArgType, Instruction, InstructionSet, SpecialRegister, StackType
from evo.language.program import Language, Limits


def encode_language(language: Language) -> bytes:
    """About 1 KiB for the default instruction set."""
    fields = {
        "instruction_set": asdict(language.instruction_set),
        "inputs": language.inputs,
        "outputs": language.outputs,
        "limits": language.limits.model_dump(),
    }
    return zlib.compress(json.dumps(fields, sort_keys=True, separators=(",", ":")).encode())


@lru_cache(maxsize=16)
def decode_language(encoded: bytes) -> Language:
    """The encoded language; the same object for the same bytes."""
    fields = json.loads(zlib.decompress(encoded))
    description = fields["instruction_set"]
    instruction_set = InstructionSet(
        stacks=tuple(StackType(**stack) for stack in description["stacks"]),
        arg_types=tuple(ArgType(**arg_type) for arg_type in description["arg_types"]),
        instructions=tuple(
            Instruction(**{**entry, "args": tuple(entry["args"]), "rets": tuple(entry["rets"])})
            for entry in description["instructions"]
        ),
        special_registers=tuple(SpecialRegister(**special) for special in description["special_registers"]),
    )
    inputs, outputs = (tuple((name, type_name) for name, type_name in fields[key]) for key in ("inputs", "outputs"))
    return Language(instruction_set, inputs, outputs, Limits(**fields["limits"]))
