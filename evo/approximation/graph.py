"""Graphs of elementwise operations of NumPy and of instructions: the terms of functions of words, and of programs.

Owns their values at arrays, and their order. Knows nothing of how functions are recorded.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.approximation.word_machine import apply
from evo.language.program import Language
from evo.native.stack_ptx import Lowered, NodeKind


@dataclass(frozen=True, eq=False)
class Term:
    """A value at each point.

    op: a ufunc's name, whose operands have the types of its loop; or `input` (value: which), `constant` (value), `cast`, `view`,
    `part` (of a word; value: which), `join` (of parts, the lowest first), `where`, `take` (value: the table), `instruction` (of
    words; value: its name), `special` (a register of the GPU).
    """

    op: str
    operands: tuple["Term", ...]
    dtype: np.dtype[Any]
    value: Any = None

    @property
    def width(self) -> int:
        """Bits of the type."""
        return 1 if self.dtype == np.bool_ else 8 * self.dtype.itemsize

    def bits(self) -> int:
        """Bits of a constant."""
        return int.from_bytes(np.asarray(self.value, self.dtype).tobytes(), "little")


def cast(term: Term, dtype: np.dtype[Any]) -> Term:
    """A term as one of a type."""
    return term if term.dtype == dtype else Term("cast", (term,), dtype)


def as_word(term: Term) -> Term:
    """A result as a word: of floats the bits, of integers those of u32."""
    word = np.dtype(np.uint32)
    return Term("view", (term,), word) if term.dtype == np.float32 else cast(term, word)


def conjuncts(term: Term) -> list[Term]:
    """Terms all of which hold where a term holds."""
    if term.op in ("logical_and", "bitwise_and") and all(operand.dtype == np.bool_ for operand in term.operands):
        return [part for operand in term.operands for part in conjuncts(operand)]
    return [term]


def evaluate(terms: Sequence[Term], inputs: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """Values of terms."""
    known: dict[Term, Any] = {}
    for term in ordered(terms):
        values = [known[operand] for operand in term.operands]
        match term.op:
            case "input":
                known[term] = inputs[term.value]
            case "constant":
                known[term] = term.value
            case "cast":
                is_wide = values[0].dtype.kind == "f" and term.dtype == np.uint32  # whose values beyond it depend on lengths
                known[term] = (values[0].astype(np.int64) if is_wide else values[0]).astype(term.dtype)
            case "view":
                known[term] = values[0].view(term.dtype)
            case "part":
                parts = np.ascontiguousarray(values[0])[..., None].view(term.dtype)
                known[term] = parts[..., term.value]
            case "join":
                known[term] = np.stack(np.broadcast_arrays(*values), axis=-1).view(term.dtype)[..., 0]
            case "take":
                known[term] = np.take(term.value, values[0])
            case "where":
                known[term] = np.where(*values)
            case "instruction":
                known[term] = apply(term.value, *values)
            case _:
                known[term] = getattr(np, term.op)(*values)
    return [known[term] for term in terms]


def ordered(terms: Sequence[Term]) -> list[Term]:
    """Terms and all that they are made of, operands first."""
    done: dict[Term, None] = {}
    waiting = [(term, False) for term in reversed(terms)]
    while waiting:
        term, is_ready = waiting.pop()
        if is_ready:
            done[term] = None
        elif term not in done:
            waiting.append((term, True))
            waiting.extend((operand, False) for operand in term.operands)
    return list(done)


def program_terms(language: Language, lowered: Lowered) -> list[Term]:
    """A program's outputs."""
    known: list[Term] = []
    word = np.dtype(np.uint32)
    for node in lowered.nodes:
        payload = int(node["payload"])
        match node["kind"]:
            case NodeKind.INPUT:
                known.append(Term("input", (), word, payload))
            case NodeKind.CONSTANT:
                known.append(Term("constant", (), word, payload))
            case NodeKind.SPECIAL:
                known.append(Term("special", (), word))
            case _:
                first, count = int(node["first_operand"]), int(node["num_operands"])
                operands = tuple(known[lowered.value_nodes[operand]] for operand in lowered.operands[first : first + count])
                known.append(Term("instruction", operands, word, language.instruction_set.instructions[payload].name))
    return [known[lowered.value_nodes[value]] for value in lowered.request_values]
