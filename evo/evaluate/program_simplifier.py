"""Programs made simpler: instructions and digits that a score does not need go.

Owns which changes are tried and which are kept. Every change is scored by the evaluator, many in one batch. Knows nothing of
archives, runs or texts.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evo.errors import UserError
from evo.evaluate import Evaluation, Status
from evo.language.batch import Batch
from evo.language.dag import Dag, Node, dag_of
from evo.language.program import Language, program_length, word
from evo.native.stack_ptx import NodeKind
from evo.native.stack_ptx_words import WordType

TOLERANCE = 1e-3  # of max(1, |objective|)
_PLAIN = (0.0, 1.0)  # constants that are tried in place of an instruction


@dataclass(frozen=True)
class Simplified:
    """A program of one row, and the scores of the given one and of this."""

    program: Batch
    before: Evaluation
    after: Evaluation


def simplify(
    language: Language, evaluate: Callable[[Batch], Evaluation], words: NDArray[np.uint64], tolerance: float = TOLERANCE
) -> Simplified:
    """The program without the instructions and the digits of f32 constants that its objective does not need.

    An instruction is tried without: a value that it is computed from, an input, 0 or 1 takes its place. The change that leaves
    the fewest instructions is kept, then the one with the best objective, and so on until none is left. Then constants lose
    digits in the same way. The same program, evaluator and tolerance always give the same result.

    Args:
        evaluate: scores a batch, such as `Evaluator.evaluate`.
        words: `(max_length,)`; the result is as long.
        tolerance: the objective that may be lost in all, times max(1, |objective|).

    Raises:
        UserError: the tolerance is not a number from 0 on, the program has no finite score, or the evaluator raises.
    """
    if not tolerance >= 0.0:
        raise UserError(f"tolerance: must be a number from 0 on, got {tolerance}")
    current = Batch.analyze(language.lowering, words[None])
    before = evaluate(current)
    if before.status[0] != Status.OK:
        raise UserError("the program has no finite score here, so there is nothing to hold a simpler one to")
    objective = float(before.objective[0])
    search = _Search(language, evaluate, objective - tolerance * max(1.0, abs(objective)))
    while True:
        current = search.without_instructions(current)
        shorter = search.with_fewer_digits(current)
        if np.array_equal(shorter.words, current.words):
            break
        current = shorter
    current = search.without_dead_words(current)
    return Simplified(current, before, evaluate(current))


@dataclass(frozen=True)
class _Search:
    language: Language
    evaluate: Callable[[Batch], Evaluation]
    floor: float  # the least objective

    def without_instructions(self, current: Batch) -> Batch:
        while (graph := dag_of(self.language, current.words[0])).is_writable:
            rows = (changed.words(self.language, current.words.shape[1]) for changed in without_one(self.language, graph))
            tried = self._analyze(row for row in rows if row is not None)
            tried = tried[tried.num_instructions < current.num_instructions[0]]
            best = self._best(tried, tried.num_instructions)
            if best is None:
                break
            current = best
        return current

    def with_fewer_digits(self, current: Batch) -> Batch:
        while True:
            words = current.words[0]
            rows, saved = [], []
            for value in self._constants(words):
                bits = np.uint32(value >> np.uint64(32)).view(np.float32)
                digits = _num_digits(bits)
                for fewer in range(1, digits):
                    with np.errstate(over="ignore"):
                        rounded = np.float32(f"{bits:.{fewer - 1}e}")
                    if not np.isfinite(rounded):
                        continue
                    shorter = value & np.uint64(0xFFFFFFFF) | np.uint64(rounded.view(np.uint32)) << np.uint64(32)
                    rows.append(np.where(words == value, shorter, words))
                    saved.append(fewer - digits)
            tried = self._analyze(rows)
            keep = (tried.num_instructions <= current.num_instructions[0]) & (tried.hashes != current.hashes).any(axis=1)
            best = self._best(tried[keep], np.array(saved, np.int64)[keep])
            if best is None:
                return current
            current = best

    def without_dead_words(self, current: Batch) -> Batch:
        """The same program in fewer words, if the graph has them."""
        words, [length] = self.language.lowering.rewritten(current.words, current.words.shape[1])
        if not 0 <= length < program_length(current.words[0]):
            return current
        words[0, length] = word(WordType.RETURN)
        rewritten = self._analyze(words)
        return rewritten if np.array_equal(rewritten.hashes, current.hashes) else current

    def _constants(self, words: NDArray[np.uint64]) -> list[np.uint64]:
        """The words of f32 constants, each once, in the order of the program."""
        stacks = self.language.instruction_set.stacks
        kinds = {word(WordType.CONSTANT, index) for index, stack in enumerate(stacks) if stack.constant_type == "f32"}
        used = words[: program_length(words)]
        return list(dict.fromkeys(value for value in used if int(value & np.uint64(0xFFFFFFFF)) in kinds))

    def _analyze(self, rows: Iterable[NDArray[np.uint64]]) -> Batch:
        listed = list(rows)
        words = np.array(listed, np.uint64) if listed else np.zeros((0, 1), np.uint64)
        return Batch.analyze(self.language.lowering, words)

    def _best(self, tried: Batch, cost: NDArray[np.integer]) -> Batch | None:
        """The cheapest program that scores enough; if several are as cheap, the best of them, then the first."""
        _, first = np.unique(tried.hashes, axis=0, return_index=True)
        rows = np.sort(first)
        if not len(rows):
            return None
        scores = self.evaluate(tried[rows])
        enough = np.flatnonzero((scores.status == Status.OK) & (scores.objective >= self.floor))
        if not len(enough):
            return None
        order = np.lexsort((enough, -scores.objective[enough], cost[rows][enough]))
        return tried[rows[enough[order[:1]]]]


def without_one(language: Language, graph: Dag) -> Iterator[Dag]:
    """All graphs with something simpler in place of an instruction."""
    for index, substitutes in simpler_ones(language, graph):
        yield from (graph.replaced(index, substitute) for substitute in substitutes)


def simpler_ones(language: Language, graph: Dag) -> Iterator[tuple[int, list[int | Node]]]:
    """For each instruction its possible substitutes: the nodes that it is computed from, and leaves."""
    stacks = language.instruction_set.stacks
    inputs = language.registers[: len(language.inputs)]
    for index in graph.instructions():
        stack = graph.nodes[index].stack
        substitutes: list[int | Node] = [node for node in graph.needed_by(index) if graph.nodes[node].stack == stack]
        substitutes += [Node(NodeKind.INPUT, number, kind) for number, (_, kind) in enumerate(inputs) if kind == stack]
        if stacks[stack].constant_type == "f32":
            substitutes += [Node(NodeKind.CONSTANT, int(np.float32(value).view(np.uint32)), stack) for value in _PLAIN]
        yield index, substitutes


def _num_digits(value: np.float32) -> int:
    """Significant digits of the shortest decimal; 0 of what is not finite."""
    if not np.isfinite(value):
        return 0
    mantissa = np.format_float_scientific(value, trim="-").partition("e")[0]
    return len(mantissa.lstrip("-").replace(".", ""))
