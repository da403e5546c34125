"""Expressions of instructions as nested tuples, and the programs that they stand for.

Owns this form. Knows nothing of searches.
"""

from collections.abc import Sequence
from typing import Any

from evo.approximation.bits import ExactFunction
from evo.language.program import Limits

_NUM_ENTRIES = Limits().store_size
Node = tuple[Any, ...]  # an instruction and operands, nodes or constants; ("%", k): an input; an output may be a constant, too


def parts_of(outputs: Sequence[Node | int]) -> list[Node]:
    """Nodes that outputs consist of, without inputs and constants: operands first, in the same order in each process."""
    found: dict[Node, None] = {}

    def visit(node: Any) -> None:
        if isinstance(node, tuple) and node[0] != "%" and node not in found:
            for each in node[1:]:
                visit(each)
            found[node] = None

    for node in outputs:
        visit(node)
    return list(found)


def program_text(outputs: Sequence[Node | int], function: ExactFunction) -> str:
    """A program's words: what is used more than once is stored, for as long as it is used, as far as there are entries."""
    uses: dict[Node, int] = {}

    def count(node: Node | int) -> None:
        if isinstance(node, tuple):
            uses[node] = uses.get(node, 0) + 1
            for each in node[1:] if uses[node] == 1 else ():
                count(each)

    for node in outputs:
        count(node)
    places: dict[Node, int] = {}
    free = [*range(_NUM_ENTRIES)]

    def tokens(node: Any) -> list[str]:
        if not isinstance(node, tuple):
            return [f"0x{node:08x}:b32"]
        if node[0] == "%":
            return [f"%{function.inputs[node[1]]}"]
        if node in places:
            place, uses[node] = places[node], uses[node] - 1
            if uses[node] < 1:  # what needs it later, as another entry was missing, computes it again
                free.append(places.pop(node))
            return [f"load:{place}"]
        made = [token for each in reversed(node[1:]) for token in tokens(each)] + [str(node[0])]
        if uses[node] > 1 and free:
            places[node] = min(free)
            free.remove(places[node])
            uses[node] -= 1
            made += [f"store.b32:{places[node]}", f"load:{places[node]}"]
        return made

    return " ".join(token for node in reversed(outputs) for token in tokens(node))
