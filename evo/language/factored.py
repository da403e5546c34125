"""Instructions rewritten from their algebraic form, numbers times powers, so that like terms join and divisors cancel.

Owns this form, and the way back: x^3*(1 - x) for (1/x - 1)*x^4, -0.7*x for x - 1.7*x, x*2^y for 2^(log2(x) + y). Knows nothing of
which way is better.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from evo.language.dag import Builder, Dag, Node, f32_bits
from evo.language.program import Language
from evo.native.stack_ptx import NodeKind

MAX_TERMS, MAX_PARTS = 24, 96  # of a sum, and while it is multiplied out; a value with more is taken as it is
DIVISIONS = ("div", "rcp")
MAX_POWER = 8  # of a logarithm's operand
NOTHING = 1e-12  # of the largest addend: smaller sums count as 0

# (atom, power), sorted: an atom is a node, or a sum or power of 2 by its number behind all nodes
Monomial = tuple[tuple[int, int], ...]
Term = tuple[float, Monomial]  # a number times powers
Sum = tuple[tuple[Monomial, float], ...]  # sorted; the first number is 1, and the terms share no powers


def rewritten(language: Language, graph: Dag, values: Mapping[int, float], allowed: frozenset[str]) -> Iterator[Dag]:
    """Graphs of fewer instructions, or as many but fewer divisions, in which one instruction is written from its factored form:
    with sums multiplied out, and as they are.

    Args:
        values: of the constants, by node.
        allowed: names of instructions that may be used.
    """
    seen: set[Dag] = set()
    for multiplies_out in (True, False):
        forms = _Forms(language, graph, values, allowed, multiplies_out)
        size = forms.size(graph)
        for index in graph.instructions():
            candidate = forms.graph(index)
            if candidate and candidate not in seen and forms.size(candidate) < size:
                seen.add(candidate)
                yield candidate


class _Forms:
    """The factored form of each node of a graph. multiplies_out: sums within sums, too, where they have factors."""

    def __init__(
        self, language: Language, graph: Dag, values: Mapping[int, float], allowed: frozenset[str], multiplies_out: bool
    ):
        instructions = language.instruction_set.instructions
        self._names = [instruction.semantics.function for instruction in instructions]
        self._payloads = {
            instruction.semantics.function: index for index, instruction in enumerate(instructions) if instruction.name in allowed
        }
        self._graph, self._multiplies_out = graph, multiplies_out
        self._sums: dict[Sum, int] = {}
        self._by_number: dict[int, Sum] = {}
        self._exponents: dict[int, Term] = {}  # of powers of 2
        self._builder = Builder()
        self._stack = 0
        self.terms: list[Term] = []
        for index, node in enumerate(graph.nodes):
            term = (values[index], ()) if index in values else self._form(node)
            self.terms.append(term if term and math.isfinite(term[0]) else (1.0, ((index, 1),)))

    def _form(self, node: Node) -> Term | None:
        """The term of an instruction; None: it has no other."""
        if node.kind != NodeKind.PTX:
            return None
        terms = [self.terms[operand] for operand in node.operands]
        match self._names[node.payload], terms:
            case "add", [a, b]:
                return self._sum([a, b])
            case "sub", [a, b]:
                return self._sum([a, _times(b, (-1.0, ()))])
            case "mul", [a, b]:
                return _times(a, b)
            case "div", [a, b] if b[0]:
                return _times(a, _inverse(b))
            case "rcp", [a] if a[0]:
                return _inverse(a)
            case "neg", [a]:
                return _times(a, (-1.0, ()))
            case "fma", [a, b, c]:
                return self._sum([_times(a, b), c])
            case "exp2", [a]:
                return self._without_logarithms(a)
        return None

    def _without_logarithms(self, exponent: Term) -> Term | None:
        """2 to a power of which logarithms are terms: of a positive x, 2^(k log2(x) + y) is x^k 2^y. None: no terms are."""
        number, monomial = exponent
        terms = [exponent]
        if len(monomial) == 1 and monomial[0][1] == 1 and monomial[0][0] in self._by_number:
            terms = [(number * factor, part) for part, factor in self._by_number[monomial[0][0]]]
        factor: Term = (1.0, ())
        rest: list[Term] = []
        for times, part in terms:
            operand = self._operand_of_logarithm(part)
            if operand is None or not times.is_integer() or abs(times) > MAX_POWER:
                rest.append((times, part))
            else:
                inner = self.terms[operand]
                factor = _times(factor, (inner[0] ** int(times), _power(inner[1], int(times))))
        if len(rest) == len(terms) or not rest:
            return None if rest else factor
        left = self._sum(rest)
        if left is None:
            return None
        atom = next((atom for atom, known in self._exponents.items() if known == left), self._next_number())
        self._exponents[atom] = left
        return _times(factor, (1.0, ((atom, 1),)))

    def _operand_of_logarithm(self, monomial: Monomial) -> int | None:
        """The node whose logarithm this is, unless its form is 0."""
        if len(monomial) != 1 or monomial[0][1] != 1 or monomial[0][0] >= len(self._graph.nodes):
            return None
        node = self._graph.nodes[monomial[0][0]]
        if node.kind != NodeKind.PTX or self._names[node.payload] != "log2":
            return None
        return node.operands[0] if self.terms[node.operands[0]][0] else None

    def _next_number(self) -> int:
        return len(self._graph.nodes) + len(self._by_number) + len(self._exponents)

    def _sum(self, terms: list[Term]) -> Term | None:
        """The sum of terms, which sums of sums are not; None: it has too many."""
        total: dict[Monomial, float] = {}
        todo, largest = [*terms], 0.0
        while todo:
            number, monomial = todo.pop()
            inner = next((atom for atom, power in monomial if atom in self._by_number and power > 0), -1)
            if inner >= 0 and (self._multiplies_out or monomial == ((inner, 1),)):
                rest = _product(monomial, ((inner, -1),))
                todo += [(number * factor, _product(rest, part)) for part, factor in self._by_number[inner]]
            else:
                total[monomial] = total.get(monomial, 0.0) + number
                largest = max(largest, abs(number))
            if len(todo) + len(total) > MAX_PARTS:
                return None
        least = NOTHING * largest
        total = {part: number for part, number in total.items() if abs(number) > least}
        if len(total) > MAX_TERMS:
            return None
        if len(total) < 2:
            return next(((number, part) for part, number in total.items()), (0.0, ()))
        content = self._content([*total])
        parts = tuple(sorted((_product(part, _power(content, -1)), number) for part, number in total.items()))
        first = parts[0][1]
        parts = tuple((part, number / first) for part, number in parts)
        number = self._sums.setdefault(parts, self._next_number())
        self._by_number[number] = parts
        return first, _product(content, ((number, 1),))

    def _content(self, monomials: list[Monomial]) -> Monomial:
        """The powers that all monomials share: of a node the least, even if that is negative and other monomials lack it."""
        powers: dict[int, list[int]] = {}
        for monomial in monomials:
            for atom, power in monomial:
                powers.setdefault(atom, []).append(power)
        shared: dict[int, int] = {}
        for atom, exponents in powers.items():
            all_exponents = exponents if len(exponents) == len(monomials) else [*exponents, 0]
            shared[atom] = (
                min(all_exponents) if atom not in self._by_number or min(all_exponents) > 0 else min(max(all_exponents), 0)
            )
        return tuple(sorted((atom, power) for atom, power in shared.items() if power))

    # ---- the way back ----

    def size(self, graph: Dag) -> tuple[int, int]:
        """The numbers of instructions and of divisions that the results need."""
        needed = {index for result in graph.results if result is not None for index in (*graph.needed_by(result), result)}
        names = [self._names[graph.nodes[index].payload] for index in needed.intersection(graph.instructions())]
        return len(names), sum(name in DIVISIONS for name in names)

    def graph(self, index: int) -> Dag | None:
        """With an instruction written from its form; None: it has no other, or one that it asks for is not allowed."""
        nodes = self._graph.nodes
        if self.terms[index][1] == ((index, 1),):
            return None
        self._builder, self._stack = Builder(nodes=nodes[:index]), nodes[index].stack
        moved = [*range(index)]
        try:
            moved.append(self._write(*self.terms[index]))
        except KeyError:
            return None
        for node in nodes[index + 1 :]:
            moved.append(self._builder.put(node.with_operands(tuple(moved[operand] for operand in node.operands))))
        return self._builder.graph(*(None if result is None else moved[result] for result in self._graph.results))

    def _write(self, number: float, monomial: Monomial) -> int:
        """The index of a number times powers."""
        above, below = ([(atom, sign * power) for atom, power in monomial if sign * power > 0] for sign in (1, -1))
        scaled: dict[int, int] = {}
        for atom, power in above:
            if power == 1 and atom in self._by_number and number != 1.0:
                factors = [factor for _, factor in self._by_number[atom]]
                if _num_ones(factors) <= _num_ones(factor * number for factor in factors) + 1:
                    scaled[atom], number = self._write_sum(atom, number), 1.0
        index, divisor = self._write_powers(above, scaled), self._write_powers(below, {})
        if number != 1.0 or index is divisor is None:
            constant = self._constant(number)
            index = constant if index is None else self._put("mul", constant, index)
        if divisor is None:
            assert index is not None
            return index
        if index is None and "rcp" in self._payloads:
            return self._put("rcp", divisor)
        return self._put("div", self._constant(1.0) if index is None else index, divisor)

    def _write_powers(self, pairs: list[tuple[int, int]], indices: dict[int, int]) -> int | None:
        """All powers at once, by squaring. indices: of atoms that are written already."""
        index: int | None = None
        for bit in reversed(range(max((power.bit_length() for _, power in pairs), default=0))):
            index = None if index is None else self._put("mul", index, index)
            for atom, power in pairs:
                if power >> bit & 1:
                    if atom not in indices:
                        indices[atom] = self._write_atom(atom)
                    index = indices[atom] if index is None else self._put("mul", index, indices[atom])
        return index

    def _write_atom(self, atom: int) -> int:
        if atom in self._exponents:
            return self._put("exp2", self._write(*self._exponents[atom]))
        return self._write_sum(atom, 1.0) if atom in self._by_number else atom

    def _write_sum(self, atom: int, number: float) -> int:
        """The index of a sum times a number: the factor that most terms share is taken out of them, again and again (Horner)."""
        terms = [(factor * number, monomial) for monomial, factor in self._by_number[atom]]
        while True:
            shared = Counter(a for _, monomial in terms for a, power in monomial if power > 0)
            [(most, count)] = shared.most_common(1) or [(0, 0)]
            if count < 2:
                break
            with_it = [term for term in terms if most in dict(term[1])]
            if len(with_it) == len(terms) or (joined := self._sum(with_it)) is None:
                break
            terms = [term for term in terms if term not in with_it] + [joined]
        terms.sort(key=lambda term: term[0] < 0.0)
        index = self._write(*terms[0])
        for factor, monomial in terms[1:]:
            name = "sub" if factor < 0.0 and "sub" in self._payloads else "add"
            index = self._put(name, index, self._write(-factor if name == "sub" else factor, monomial))
        return index

    def _constant(self, value: float) -> int:
        return self._builder.node(Node(NodeKind.CONSTANT, f32_bits(value), self._stack))

    def _put(self, name: str, *operands: int) -> int:
        return self._builder.node(Node(NodeKind.PTX, self._payloads[name], self._stack, operands))


def _times(a: Term, b: Term) -> Term:
    return a[0] * b[0], _product(a[1], b[1])


def _inverse(term: Term) -> Term:
    return 1.0 / term[0], _power(term[1], -1)


def _product(a: Monomial, b: Monomial) -> Monomial:
    powers = dict(a)
    for atom, power in b:
        powers[atom] = powers.get(atom, 0) + power
    return tuple(sorted(pair for pair in powers.items() if pair[1]))


def _power(monomial: Monomial, power: int) -> Monomial:
    return tuple((atom, exponent * power) for atom, exponent in monomial)


def _num_ones(numbers: Iterable[float]) -> int:
    return sum(abs(number) == 1.0 for number in numbers)
