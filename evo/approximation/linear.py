"""Nodes that are sums of multiples of others, as few products with an addend.

Owns these sums, modulo 2^32. Bits that never meet at a sample are taken for a sum; the program is compared later.
"""

from collections import Counter
from typing import Any

_ALL = 0xFFFFFFFF


class Linear:
    """Nodes anew, by their sums. known: has the words of nodes at a sample."""

    def __init__(self, known: Any):
        self._known = known
        self._sums: dict[Any, Counter[Any]] = {}
        self._made: dict[Any, Any] = {}

    def node(self, node: Any) -> Any:
        """A node with the same words at the sample, its sums put together."""
        if not isinstance(node, tuple) or node[0] == "%":
            return node
        if node not in self._made:
            self._made[node] = self._joined(self._sum(node))
        return self._made[node]

    def _joined(self, multiples: Counter[Any]) -> Any:
        factors = {part: factor & _ALL for part, factor in multiples.items() if factor & _ALL and part != 1}
        total: Any = multiples[1] & _ALL
        for part, factor in sorted(factors.items(), key=lambda item: item[1] != 1):
            if total == 0:
                total = part if factor == 1 else ("mul", part, factor)
            else:
                name = {1: "add", _ALL: "sub"}.get(factor)
                total = (name, total, part) if name else ("mad", part, factor, total)
        return total

    def _sum(self, node: Any) -> Counter[Any]:
        """Factors of nodes, and of 1, whose sum is a node."""
        if not isinstance(node, tuple):
            return Counter({1: node})
        if node not in self._sums:
            self._sums[node] = self._new_sum(node)
        return self._sums[node]

    def _new_sum(self, node: Any) -> Counter[Any]:
        values = self._known.values
        match node:
            case ("add", a, b):
                return _plus(self._sum(a), self._sum(b), 1)
            case ("sub", a, b):
                return _plus(self._sum(a), self._sum(b), -1)
            case ("mul", a, int(factor)) | ("mul", int(factor), a):
                return _plus(Counter(), self._sum(a), factor)
            case ("mad", a, int(factor), b):
                return _plus(self._sum(b), self._sum(a), factor)
            case ("shl", a, int(count)) if count < 32:
                return _plus(Counter(), self._sum(a), 1 << count)
            case ("lop3_fc" | "lop3_3c", a, b, 0) if not (values(a) & values(b)).any():
                return _plus(self._sum(a), self._sum(b), 1)
            case ("lop3_c0", a, int(mask), 0) if not (values(a) & (~mask & _ALL)).any():
                return self._sum(a)
        return Counter({node if node[0] == "%" else (node[0], *map(self.node, node[1:])): 1})


def _plus(a: Counter[Any], b: Counter[Any], factor: int) -> Counter[Any]:
    total = Counter(a)
    for part, count in b.items():
        total[part] += count * factor
    return total
