"""Programs for an exact function, put together from both ends: the beginning of its search.

Forward from the inputs, there are words that few instructions make, one row for all that are equal on the sample. Backward from
each output, there are goals from which an instruction leads to it: fields moved by shifts, numbers whose digits are bits.
Between them, `evo.approximation.solvers` finds the instruction and its constants. Outputs share what they can. A wrong result
adds its input to the sample, and the synthesis begins again.
Owns which words and goals there are. Knows nothing of proofs.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from heapq import heappop, heappush
from itertools import islice, product
from typing import Any

import numpy as np

from evo.approximation import solvers
from evo.approximation.bits import ExactFunction
from evo.approximation.exact import exact_language, wrong_bits
from evo.approximation.forward import SHIFTS, expand
from evo.approximation.graph import Term, evaluate
from evo.approximation.lookups import looked_up
from evo.approximation.networks import permutations
from evo.approximation.nodes import Node, Shared, parts_of, program_text
from evo.approximation.numbers import integer_goals, number_goals
from evo.approximation.samples import sample
from evo.approximation.shorter import shortened_nodes
from evo.approximation.solvers import Goal, Words
from evo.approximation.translation import translated
from evo.approximation.wide import WideRows
from evo.approximation.word_machine import INSTRUCTION_SET, apply
from evo.evaluate.slots import slots_of
from evo.instructions import shipped_instruction_set
from evo.language.program import parse_program
from evo.native.ptx_vm import VirtualMachine

_Wrap = Callable[[Any], Any]  # makes a node of one that gives an earlier goal
NUM_POINTS, NUM_CHECKED = 128, 1 << 16
NUM_ROUNDS, NUM_ALONE, MOST_DEPTH = 12, 2, 2  # NUM_ALONE: rounds in which a solution comes before the function's own graph
MOST_BYTES, MOST_PAIRED, MOST_OF_LOGIC = 500, 400, 260  # of rows, by their use
MOST_GOALS, MOST_THOROUGH, MOST_SOLUTIONS, MOST_OF_SOLVER = 300, 25, 64, 32
LEAST_COST, PAIR_COST, SLACK = 1.0, 2.0, 2.0  # issue slots: of an instruction, of one of integers, above the cheapest solution
MOST_WIDE, MOST_GIVEN, MOST_OF_THREE, MOST_OF_NUMBERS = 10, 16, 4, 10
MOST_SHORTENED, MOST_OF_DOTS, MOST_TRANSLATED, MOST_JOINED = 3, 60, 64, 48  # MOST_JOINED: choices of outputs' solutions
NUM_CHEAPER, MUCH_CHEAPER = 2, 0.75  # rounds that a wrong program of that part of the slots gives another one
MOST_FIELDS, MANY_FIELDS = 240, 120  # by whose threes a goal is solved; from which on only the output itself is
_MOST_OF_FIELD = 2
# Bits of a result of an instruction that converts two numbers, and its third operand.
PACKED = {"pack_s8": (8, 0), "pack_u8": (8, 0), "e4m3x2_of_f32": (8,), "e5m2x2_of_f32": (8,)}
PACKED |= {"f16x2_of_f32": (16,), "bf16x2_of_f32": (16,)}


class Synthesis:
    """Values at the points of a sample."""

    def __init__(self, function: ExactFunction, target: str, points: Sequence[Words]):
        self.function, self.points, self.num_inputs = function, list(points), len(points)
        instruction_set = shipped_instruction_set(INSTRUCTION_SET)
        costs = slots_of(instruction_set, target)
        self.slots = {
            instruction.name: float(cost)
            for instruction, cost in zip(instruction_set.instructions, costs, strict=True)
            if cost >= 0
        }
        self._values: dict[Node, Words] = {("%", k): words for k, words in enumerate(points)}
        self._parts: dict[Node, frozenset[Node]] = {}
        self._shared: dict[Node, Node] = {}
        self.rows: list[Node] = []
        self.fields: list[Node] = []  # by the arithmetic of fields
        self._known: set[bytes] = set()
        self._costs: list[float] = []

    def has(self, name: str) -> bool:
        """Return whether the target has an instruction."""
        return name in self.slots

    def values(self, node: Node | int) -> Words:
        """A node's words at the points."""
        if not isinstance(node, tuple):
            return np.full(len(self.points[0]), node, np.uint32)
        words = self._values.get(node)
        if words is None:
            operands = [self.values(operand) if isinstance(operand, tuple) else np.uint32(operand) for operand in node[1:]]
            words = apply(str(node[0]), *operands)
            if np.size(words) == 1:
                words = np.full(len(self.points[0]), words, np.uint32)
            self._values[node] = words
        return words

    def parts(self, node: Node | int) -> frozenset[Node]:
        """A node and all that it consists of, without inputs and constants."""
        if not isinstance(node, tuple) or node[0] == "%":
            return frozenset()
        if node not in self._parts:
            self._parts[node] = frozenset([node]).union(*map(self.parts, node[1:]))
        return self._parts[node]

    def shared(self, node: Node) -> Node:
        """A node that is the same object whenever it is equal, as its operands are: to compare two of them takes no time."""
        return self._shared.setdefault(node, Shared(node))

    def runs(self, node: Node | int) -> bool:
        """Return whether the target has all instructions of a node."""
        return all(self.has(str(part[0])) for part in self.parts(node))

    def cost(self, nodes: Sequence[Node | int]) -> float:
        """Issue slots of nodes together."""
        return sum(self.slots[part[0]] for part in frozenset().union(*map(self.parts, nodes)))

    def add(self, node: Node) -> bool:
        """Makes a row of a node, unless there is one with its words or it takes an instruction that the target lacks."""
        if not self.runs(node):
            return False
        words = self.values(node)
        if (key := words.tobytes()) in self._known or (words == words[0]).all():
            return False
        self._known.add(key)
        self.rows.append(node)
        self._costs.append(self.cost([node]))
        return True

    def goals(self, goal: Goal) -> Iterator[tuple[Callable[[Node], Node], Goal, float]]:
        """Goals from which one instruction leads to a goal: how, and its cost."""
        values, care = goal
        yield from integer_goals(self, goal)
        is_signed = (values >> np.uint32(31)).any() and (care == solvers.ALL).all()
        for k in SHIFTS:
            high, low = np.uint32(0xFFFFFFFF << (32 - k) & 0xFFFFFFFF), np.uint32((1 << k) - 1)
            if not (values & care & high).any() and (care << np.uint32(k)).any():
                yield partial(_shifted, "shr", k), Goal(values << np.uint32(k), care << np.uint32(k)), self.slots["shr"]
            if not (values & care & low).any() and (care >> np.uint32(k)).any():
                yield partial(_shifted, "shl", k), Goal(values >> np.uint32(k), care >> np.uint32(k)), self.slots["shl"]
            if k < 31 and is_signed and (values.view(np.int32) >> (31 - k) == values.view(np.int32) >> 31).all():
                yield partial(_shifted, "sar", k), Goal(values << np.uint32(k), care << np.uint32(k)), self.slots["sar"]
        yield from number_goals(self, goal)
        for selector in (0x0123, 0x1032, 0x2301):  # each undoes itself
            before = Goal(*(apply("prmt", words, np.uint32(0), np.uint32(selector)) for words in goal))
            yield partial(_permuted, selector), before, self.slots["prmt"]

    @cached_property
    def _wide(self) -> WideRows:
        return WideRows(self)

    @cached_property
    def _sorted(self) -> tuple[list[Node], Words]:
        """Rows by rising cost, and their words."""
        order = np.argsort(self._costs, kind="stable")
        return [self.rows[i] for i in order], np.stack([self.values(self.rows[i]) for i in order])

    def solutions(self, goal: Goal) -> Iterator[Node]:
        """Nodes that give a goal by one more instruction than a row, as far as they are soon found."""
        nodes, rows = self._sorted
        yield from (nodes[i] for i in solvers.copies(rows, goal))
        finders = (
            solvers.logic_of_one(rows, goal),
            solvers.bytes_of_two(rows[:MOST_BYTES], goal),
            solvers.high_products(rows, goal),
            solvers.merged(rows, goal),
            solvers.covered(rows, goal),
        )
        yield from self._nodes(finders)
        yield from self._packed(goal)
        yield from permutations(self, goal)

    def further_solutions(self, goal: Goal) -> Iterator[Node]:
        """As `solutions`, by pairs of rows and products."""
        _, rows = self._sorted
        yield from self._nodes(
            (
                solvers.products(rows, goal),
                solvers.sums(rows[:MOST_PAIRED], goal),
                solvers.dots(rows[:MOST_OF_DOTS], goal),
                solvers.scaled(rows[:MOST_PAIRED], goal),
                solvers.logic_of_two(rows[:MOST_OF_LOGIC], goal),
            )
        )

    def _of_fields(self, goal: Goal) -> Iterator[Node]:
        rows = np.stack([self.values(node) for node in self.fields[:MOST_FIELDS]])
        yield from self._nodes((solvers.logic_of_three(rows, goal),), self.fields)

    def _nodes(self, finders: Sequence[Iterator[solvers.Solution]], nodes: Sequence[Node] = ()) -> Iterator[Node]:
        for solutions in finders:
            for solution in islice(solutions, MOST_OF_SOLVER):
                yield from solvers.nodes_of(solution, lambda i: [(nodes or self._sorted[0])[i]])

    @cached_property
    def _converted(self) -> dict[str, Words]:
        """Results of the instructions of PACKED for each row, in the lowest field."""
        converted = {}
        for name, (width, *more) in PACKED.items():
            if self.has(name):
                words = self._sorted[1]
                made = apply(name, words.ravel(), words.ravel(), *map(np.uint32, more)).reshape(words.shape)
                converted[name] = made & np.uint32((1 << width) - 1)
        return converted

    def _packed(self, goal: Goal) -> Iterator[Node]:
        """Two numbers that an instruction converts and packs; as bytes, beside two more."""
        for name, small in self._converted.items():
            width, *more = PACKED[name]
            fields: list[list[Node | int]] = []
            for k in range(0, 32, width):
                care = goal.care & np.uint32((1 << width) - 1 << k)
                is_right = (((small << np.uint32(k) ^ goal.values) & care) == 0).all(axis=1)
                right = [self._sorted[0][i] for i in np.flatnonzero(is_right)[:_MOST_OF_FIELD]]
                fields.append(right if (goal.values & care).any() else [0])
            for lowest, second in product(*fields[:2]):
                if not lowest == second == 0:
                    yield (name, second, lowest, *more)
            for nodes in product(*fields) if len(fields) > 2 else ():
                lowest, second, *upper = nodes
                if not lowest == second == 0:
                    yield (name, second, lowest, (name, *upper[::-1], 0)) if more else _joined(name, nodes)

    def solve(self, goal: Goal) -> Sequence[Node | int]:
        """The cheapest nodes that give an output, and some that cost little more, which may share more."""
        ones, zeros = np.bitwise_or.reduce(goal.values & goal.care), np.bitwise_or.reduce(~goal.values & goal.care)
        if not ones & zeros:
            return [int(ones)]
        costs: dict[Node, float] = {}

        def take(node: Node) -> None:
            if node not in costs and self.runs(node) and not ((self.values(node) ^ goal.values) & goal.care).any():
                costs[node] = self.cost([node])

        start: tuple[int, float, int, int, _Wrap, Any, Goal] = (0, 0.0, 0, 0, lambda node: node, None, goal)
        waiting, number = [start], 0
        seen: dict[bytes, tuple[float, _Wrap, Goal]] = {}
        while waiting and len(seen) < MOST_GOALS:
            depth, spent, _, _, wrap, last, here = heappop(waiting)
            if spent + LEAST_COST > min(costs.values(), default=np.inf) + SLACK:
                continue
            key = (here.values & here.care).tobytes() + here.care.tobytes()
            if key in seen:
                continue
            if not _is(last, _permuted):
                seen[key] = spent, wrap, here
            for node in self.solutions(here):
                take(wrap(node))
            for outer, before, cost in self.goals(here) if depth < MOST_DEPTH else ():
                if (_is(outer, _shifted) and _is(last, _shifted)) or (_is(outer, _permuted) and depth):  # one shift, or a mask
                    continue
                number += 1
                before_wrap: _Wrap = partial(_nested, wrap, outer)
                depth_before = MOST_DEPTH if _is(outer, _permuted) else depth + 1
                heappush(waiting, (depth_before, spent + cost, _num_varying(before), number, before_wrap, outer, before))
        num_wide, num_of_three = 0, MOST_OF_THREE if len(self.fields) < MANY_FIELDS else 1
        of_integers = [entry for entry in seen.values() if entry[0] != LEAST_COST][:MOST_THOROUGH]
        of_numbers = [entry for entry in seen.values() if entry[0] == LEAST_COST][:MOST_OF_NUMBERS]
        for number, (spent, wrap, here) in enumerate(of_integers + of_numbers):
            if spent + 2 * PAIR_COST > min(costs.values(), default=np.inf):
                continue
            for node in self._of_fields(here) if number < num_of_three else ():
                take(wrap(node))
            for node in self.further_solutions(here):
                take(wrap(node))
            if spent != LEAST_COST and num_wide < MOST_WIDE:  # a goal of integers
                num_wide += 1
                for node in self._wide.solutions(here):
                    take(wrap(node))
        return sorted(costs, key=lambda node: costs[node])[:MOST_SOLUTIONS]


def _joined(name: str, four: Sequence[Any]) -> Node:
    return ("prmt", (name, four[1], four[0]), (name, four[3], four[2]), 0x5410)


def _shifted(name: str, count: int, node: Node) -> Node:
    return (name, node, count)


def _permuted(selector: int, node: Node) -> Node:
    return ("prmt", node, 0, selector)


def _is(outer: Any, kind: Callable[..., Node]) -> bool:
    return getattr(outer, "func", None) is kind


def _nested(outer: Callable[[Node], Node], inner: Callable[[Node], Node], node: Node) -> Node:
    return outer(inner(node))


def _num_varying(goal: Goal) -> int:
    """Bits that matter and are not the same at all points."""
    ones = np.bitwise_or.reduce(goal.values & goal.care)
    return int(np.bitwise_count(ones & np.bitwise_or.reduce(~goal.values & goal.care)))


def _together(known: Synthesis, solutions: Sequence[Sequence[Node | int]]) -> list[tuple[Node | int, ...]]:
    """The cheapest choices of a solution for each output, of MOST_JOINED."""
    chosen: list[tuple[Node | int, ...]] = [()]
    for nodes in solutions:
        options = [(*before, node) for before in chosen for node in nodes]
        chosen = sorted(options, key=known.cost)[:MOST_JOINED]
    return chosen


def _solved(known: Synthesis, term: Term) -> Node | None:
    """The cheapest node of a term of a function, if there is one."""
    with np.errstate(all="ignore"):
        [values] = evaluate([term], known.function.arguments(known.points))
    if values.dtype.itemsize > 4 or values.shape != known.points[0].shape:
        return None
    words = (values.view(f"u{values.dtype.itemsize}") if values.dtype.kind == "f" else values).astype(np.uint32)
    return next((node for node in known.solve(Goal(words, np.full_like(words, solvers.ALL))) if isinstance(node, tuple)), None)


def synthesized(function: ExactFunction, target: str, seed: int, counterexamples: Sequence[Any] = ()) -> list[str]:
    """Programs that are right at counterexamples and NUM_CHECKED points, the cheapest first. If not all outputs are solved, they
    give the others.
    """
    language = exact_language(function)
    machine = VirtualMachine(language.lowering)
    checked = sample(function, NUM_CHECKED, seed + 1, counterexamples)
    expected = function(*checked)
    more = [*counterexamples]
    best: dict[str, float] = {}
    for number in range(NUM_ROUNDS):
        points = sample(function, NUM_POINTS, seed, more)
        translation = translated(function, more)
        synthesis = Synthesis(function, target, points)
        goals = [Goal(values, np.full_like(values, care)) for values, care in zip(function(*points), function.care, strict=True)]
        for node in looked_up(synthesis, goals):
            synthesis.add(node)
        expand(synthesis)
        parts = [node for node in parts_of(translation) if node not in translation]
        for node in sorted(parts, key=lambda node: synthesis.cost([node]))[:MOST_TRANSLATED]:
            synthesis.add(node)
        solutions = [[*synthesis.solve(goal)] for goal in goals]
        if not translation and not all(solutions):
            translation = translated(function, more, partial(_solved, synthesis))
        are_right = [
            synthesis.runs(a) and not ((synthesis.values(a) ^ b.values) & b.care).any()
            for a, b in zip(translation, goals, strict=False)
        ]
        for whole, is_right, nodes in zip(translation, are_right, solutions, strict=False):
            if is_right and (not nodes or number >= NUM_ALONE):
                nodes.append(whole)
        is_solved = [bool(nodes) for nodes in solutions]
        waiting = _together(synthesis, [nodes or [0] for nodes in solutions])
        if translation and all(are_right):
            waiting.append(tuple(translation))
        waiting.sort(key=synthesis.cost)
        right: dict[str, float] = {}
        wrong, wrong_cost, num_shortened = None, 0.0, 0
        while waiting:
            outputs = waiting.pop(0)
            try:
                text = program_text(outputs, function)
            except OverflowError:
                continue
            words = parse_program(language, text, "synthesis")
            results = machine.store(words[None], [*checked, *[None] * len(function.outputs)])[0].view(np.uint32)
            bad = wrong_bits(function, results, expected)[is_solved].any(axis=0)
            if bad.any():
                if wrong is None:
                    wrong, wrong_cost = [int(word[bad.argmax()]) for word in checked], synthesis.cost(outputs)
                continue
            shorter = shortened_nodes(synthesis, outputs) if num_shortened < MOST_SHORTENED else outputs
            num_shortened += 1
            if shorter != outputs:
                waiting.insert(0, shorter)
            right[text] = synthesis.cost(outputs)
        if all(is_solved) or not best:
            best |= right
        is_promising = all(is_solved) and number < NUM_CHEAPER and wrong_cost < MUCH_CHEAPER * min(best.values(), default=np.inf)
        if wrong is None or (best and not is_promising):
            break
        more.append(wrong)
    return sorted(best, key=lambda text: best[text])[:MOST_GIVEN]
