"""Derivatives of a graph, by csrc/derive.h.

Owns the way there and back. Knows nothing of what is derived.
"""

from __future__ import annotations

import numpy as np

from evo.errors import UserError
from evo.language.dag import Dag, Node, dag_of_arrays
from evo.language.program import Language
from evo.native.semiring import derivatives
from evo.native.stack_ptx import NodeKind

MAX_WORDS = 4096  # of a program; that of a second derivative has hundreds
_PARAMETER_BITS = 0x7FC0_0001  # NaNs with a payload, which no program has as a constant


def derived(graph: Dag, num_inputs: int, language: Language) -> Dag:
    """The derivatives of a graph's one result by each of its inputs, all f32; no result where it is zero everywhere.

    Args:
        language: of the graph's instructions, without inputs and with one output.

    Raises:
        UserError: the graph's program would have more than MAX_WORDS words.
    """
    used = sorted({node.payload for node in graph.nodes if node.kind == NodeKind.INPUT})
    fixed = Dag(
        tuple(
            Node(NodeKind.CONSTANT, _PARAMETER_BITS + node.payload, node.stack) if node.kind == NodeKind.INPUT else node
            for node in graph.nodes
        ),
        graph.results,
    )
    needed = {fixed.nodes[index].payload for index in (*fixed.needed_by(fixed.results[0] or 0), fixed.results[0] or 0)}
    used = [index for index in used if _PARAMETER_BITS + index in needed]
    words = fixed.words(language, MAX_WORDS)
    if words is None:
        raise UserError(f"a program to derive has more than {MAX_WORDS} words")
    by = np.array(used, np.uint32) + np.uint32(_PARAMETER_BITS)
    derivative = dag_of_arrays(language, *derivatives(language.lowering, words, by))
    nodes = tuple(
        Node(node.kind, used[node.payload], node.stack) if node.kind == NodeKind.INPUT else node for node in derivative.nodes
    )
    results: list[int | None] = [None] * num_inputs
    for index, result in zip(used, derivative.results[1:], strict=True):
        results[index] = result
    return Dag(nodes, tuple(results))
