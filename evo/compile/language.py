"""A language as bytes, for compile requests: workers rebuild it, and equal languages have equal bytes.

Owns this encoding, which is not a file format: both sides are always the same version of evo.
"""

import zlib
from functools import lru_cache

from pydantic import TypeAdapter

from evo.language.program import Language

_LANGUAGES = TypeAdapter(Language)
# Lowering, emission and the virtual machine go by an instruction's PTX.
_LEFT_OUT = {"instruction_set": {"instructions": {"__all__": {"semantics"}}}}


def encode_language(language: Language) -> bytes:
    """About 1 KiB for the default instruction set. Descriptions of instructions stay here: lowering does not need them."""
    return zlib.compress(_LANGUAGES.dump_json(language, exclude=_LEFT_OUT))


@lru_cache(maxsize=16)
def decode_language(encoded: bytes) -> Language:
    """The encoded language; the same object for the same bytes."""
    return _LANGUAGES.validate_json(zlib.decompress(encoded))
