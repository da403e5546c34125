"""Expressions of instructions as nested tuples, and the programs that they stand for.

Owns this form. Knows nothing of searches.
"""

from collections.abc import Sequence
from typing import Any

from evo.approximation.bits import ExactFunction
from evo.language.program import Limits

_NUM_ENTRIES, _MOST_WORDS = Limits().store_size, 800
Node = tuple[Any, ...]  # an instruction and operands, nodes or constants; ("%", k): an input; an output may be a constant, too


class Shared(tuple[Any, ...]):
    """A node whose hash is computed once: as a tree, a graph may have more nodes than can be hashed."""

    def __hash__(self) -> int:
        known: dict[str, int] = vars(self)
        if "hash" not in known:
            known["hash"] = super().__hash__()
        return known["hash"]


def parts_of(outputs: Sequence[Node | int]) -> list[Node]:
    """Nodes that outputs consist of, without inputs and constants: operands first, in the same order in each process."""
    parts: dict[Node, None] = {}

    def visit(node: Any) -> None:
        if isinstance(node, tuple) and node[0] != "%" and node not in parts:
            for operand in node[1:]:
                visit(operand)
            parts[node] = None

    for node in outputs:
        visit(node)
    return list(parts)


def program_text(outputs: Sequence[Node | int], function: ExactFunction) -> str:
    """A program's words: nodes with several uses are stored until the last of these, as far as there are entries.

    Raises:
        OverflowError: these are too few for it to have _MOST_WORDS at most.
    """
    num_words = 0
    uses: dict[Node, int] = {}

    def count(node: Node | int) -> None:
        if isinstance(node, tuple):
            uses[node] = uses.get(node, 0) + 1
            for operand in node[1:] if uses[node] == 1 else ():
                count(operand)

    for node in outputs:
        count(node)
    entries: dict[Node, int] = {}
    free = [*range(_NUM_ENTRIES)]

    def tokens(node: Any) -> list[str]:
        nonlocal num_words
        if (num_words := num_words + 1) > _MOST_WORDS:
            raise OverflowError("a program is too long")
        if not isinstance(node, tuple):
            return [f"0x{node:08x}:b32"]
        if node[0] == "%":
            return [f"%{function.inputs[node[1]]}"]
        if node in entries:
            entry, uses[node] = entries[node], uses[node] - 1
            if uses[node] < 1:  # later uses, for lack of an entry, compute it again
                free.append(entries.pop(node))
            return [f"load:{entry}"]
        made = [token for operand in reversed(node[1:]) for token in tokens(operand)] + [str(node[0])]
        if uses[node] > 1 and free:
            entries[node] = min(free)
            free.remove(entries[node])
            uses[node] -= 1
            made += [f"store.b32:{entries[node]}", f"load:{entries[node]}"]
        return made

    return " ".join(token for node in reversed(outputs) for token in tokens(node))
