"""Sweeps of a program and an exact function over words: all of them, or those of parts that suffice.

Owns which inputs are tried and how far a sweep came. Knows nothing of certificates.

A part is a set of bits of the inputs. If a bit of the function and that of the program depend on these bits only, they agree at
every input as soon as they agree at all values of the part, the other bits being 0.
"""

import hashlib
import json
import math
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from threading import local
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.approximation.bits import ExactFunction, Words
from evo.approximation.dependence import UNKNOWN, Bits, of_program, of_terms
from evo.approximation.graph import Term, as_word, conjuncts, evaluate
from evo.approximation.process import check_float_mode, sources
from evo.approximation.samples import drawn, sample, special_words
from evo.approximation.trace import trace
from evo.approximation.traced import UntraceableError, refusing
from evo.errors import UserError
from evo.language.program import Language, format_program
from evo.native.ptx_vm import VirtualMachine
from evo.storage.files import write_atomically

SEMANTICS = "evo-bits-1"  # of the instructions; another number wherever a result of one changes
EVERY, PARTS, TESTED = "every input", "every input, in parts", "tested"
TILE = 1 << 18  # inputs that a thread takes at once: with fewer, threads wait for each other in Python
MOST_BITS = 32  # of a part
MOST_INPUTS = 1 << 35  # of all parts
NUM_TESTED = 1 << 26
NUM_MIXED = 1 << 20  # inputs of all bits that a proof in parts is checked at
SAVE_S = 5.0
_TRACED = 1 << 11  # inputs at which a function's graph is compared with it
_REFERENCES = 1 << 12
_MOST_LENGTHS = 100
_LENGTHS = (1, 2, 8, 16, 1031, 1 << 14)  # of arrays at which graphs are compared with functions
Progress = Callable[[int, int], None]


@dataclass
class Proven:
    """Result of a sweep.

    num_valid: None: not counted. wrong: the first inputs at which a result is wrong. is_open: the parts cannot decide.
    """

    method: str
    num_inputs: int = 0
    num_valid: int | None = 0
    wrong: tuple[int, ...] | None = None
    is_open: bool = False


@dataclass(frozen=True)
class Part:
    """Bits of the inputs, bit k of input i being 32i + k.

    care: bits of each output that are compared; none: valid inputs are counted only. condition: the precondition on these bits.
    """

    mask: int
    care: tuple[int, ...]
    condition: Callable[..., Any] | None
    is_counted: bool


def reference_of(function: ExactFunction) -> str:
    """SHA-256 of a function's results at fixed inputs."""
    words = [drawn(_REFERENCES, 0, k, width) for k, width in enumerate(function.widths)]
    is_valid = function.condition(*words)
    results = np.stack(function(*words)) & np.array(function.care, np.uint32)[:, None]
    return hashlib.sha256(results[:, is_valid].astype("<u4").tobytes()).hexdigest()


def traced(function: ExactFunction) -> tuple[list[Term], list[Term]]:
    """Graphs of the outputs as words, and of the conditions that the precondition consists of.

    They are the function's at arrays of one word if its code is plain.

    Raises:
        UntraceableError: they are none.
    """
    try:
        words = sample(function, _TRACED, 0)
    except UserError as error:
        raise UntraceableError(error.reason) from error
    results = trace(function.call, function.arguments(words))
    if wide := [result.dtype for result in results if result.width > 32]:
        raise UntraceableError(f"it gives {wide[0]}, which may be above 32 bits somewhere")
    outputs = [as_word(result) for result in results]
    if not function.condition.text:
        return outputs, []
    names = function.inputs
    [condition] = trace(lambda *words: function.condition.value(dict(zip(names, words, strict=True))), words)
    return outputs, conjuncts(condition)


def proof_graphs(function: ExactFunction) -> tuple[list[Term], list[Term]]:
    """Graphs as of `traced`, of plain code.

    As a second check they are compared with the function at the numbers in its code, in arrays of other lengths.
    """
    if (numbers := function.numbers) is None:
        raise UntraceableError("its code is not plain")
    outputs, demands = traced(function)
    of_code = numbers[(numbers > 0) & (numbers < _LENGTHS[-1])][:_MOST_LENGTHS]  # with which a state may change
    for length in (*_LENGTHS, *of_code.tolist()):
        words = [numbers[drawn(8 * length, length, k, 32) % len(numbers)] for k in range(len(function.inputs))]
        words = [column & np.uint32((1 << width) - 1) for column, width in zip(words, function.widths, strict=True)]
        keep = np.flatnonzero(function.condition(*words))[:length]
        if not len(keep):
            continue
        words = [np.ascontiguousarray(column[keep]) for column in words]
        with refusing(), np.errstate(all="ignore"):
            results, expected = evaluate(outputs, function.arguments(words)), function(*words)
        for result, one, care in zip(results, expected, function.care, strict=True):
            if ((result ^ one) & np.uint32(care)).any():
                raise UntraceableError("its results at numbers of its code differ from those of its operations")
    return outputs, demands


def parts_of(language: Language, words: NDArray[np.uint64], function: ExactFunction) -> tuple[list[Part], list[Term]]:
    """Parts that suffice in place of all inputs, and the function's graphs; none if they would not be smaller."""
    try:
        outputs, demands = proof_graphs(function)
    except UntraceableError:
        return [], []
    widths = [*function.widths, *[0] * (len(language.registers) - len(function.inputs))]
    both = of_terms(outputs, widths), of_program(language, language.lowering.lower(words), widths)
    needs = [
        [(x | y) & (UNKNOWN - 1) if care >> k & 1 else 0 for k, (x, y) in enumerate(zip(_masks(a), _masks(b), strict=True))]
        for a, b, care in zip(*both, function.care, strict=True)
    ]
    of_demands = [_masks(bits)[0] & (UNKNOWN - 1) for bits in of_terms(demands, widths)]
    parts, taken = [], [0] * len(needs)
    for mask in sorted({need for bits in needs for need in bits}, key=lambda mask: (-mask.bit_count(), mask)):
        care = [
            sum(1 << k for k, need in enumerate(bits) if not need & ~mask) & want & ~known
            for bits, want, known in zip(needs, function.care, taken, strict=True)
        ]
        if any(care):
            taken = [a | b for a, b in zip(taken, care, strict=True)]
            parts.append(Part(mask, tuple(care), _all_of(demands, of_demands, mask), False))
    counted: list[int] = []
    for need in of_demands:
        joined = [mask for mask in counted if mask & need]
        counted = [mask for mask in counted if not mask & need] + [need | sum(joined)]
    parts += [Part(mask, (), _all_of(demands, of_demands, mask), True) for mask in counted]
    sizes = [part.mask.bit_count() for part in parts]
    total = sum(1 << size for size in sizes)
    is_worth_it = max(sizes) <= MOST_BITS and total <= MOST_INPUTS and total < 1 << sum(function.widths)
    return (parts, outputs) if is_worth_it else ([], [])


def _masks(bits: Bits) -> Bits:
    return tuple(max(bit, 0) for bit in bits)


def _all_of(demands: list[Term], needs: list[int], mask: int) -> Callable[..., Any] | None:
    relevant = [demand for demand, need in zip(demands, needs, strict=True) if not need & ~mask]
    return (lambda *words: reduce(np.logical_and, evaluate(relevant, words))) if relevant else None


class ExactSweep:
    """A program at all inputs of a function, or at parts that suffice; at a sample if there are too many.

    Args:
        words: `(max_length,)` uint64.
        num_threads: None: one for each core that this process may use.
        in_parts: False: not by parts.
    """

    def __init__(
        self,
        language: Language,
        words: NDArray[np.uint64],
        function: ExactFunction,
        num_threads: int | None = None,
        in_parts: bool = True,
    ):
        self._machine, self._words, self._function = VirtualMachine(language.lowering), words[None], function
        self._unused = [None] * (len(language.registers) - len(function.inputs))
        self._num_threads, self._own = num_threads or len(os.sched_getaffinity(0)), local()
        self._parts, self._graphs = parts_of(language, words, function) if in_parts else ([], [])
        all_bits = sum(((1 << width) - 1) << 32 * k for k, width in enumerate(function.widths))
        self._free = 0  # bits that no condition reads
        self.method = PARTS
        if self._parts:
            self._free = (all_bits & ~sum(part.mask for part in self._parts if part.is_counted)).bit_count()
        else:
            self.method = EVERY if all_bits.bit_count() <= MOST_BITS else TESTED
            self._parts = [Part(all_bits, function.care, function.condition if function.condition.text else None, True)]
        self._tiles: list[tuple[int, int, int]] = []  # part, first number, count
        for k, part in enumerate(self._parts):
            total = NUM_TESTED if self.method == TESTED else 1 << part.mask.bit_count()
            self._tiles += [(k, start, min(TILE, total - start)) for start in range(0, total, TILE)]
        asked = (
            function.name,
            getattr(function.call, "ptx", ""),
            function.condition.text,
            function.care,
            function.types,
            function.widths,
            sources(),
        )
        masks = [(part.mask, part.care, part.is_counted) for part in self._parts]
        how = (SEMANTICS, TILE, self.method, len(self._tiles), masks, reference_of(function))
        self.key = hashlib.sha256(repr((format_program(language, words), asked, how)).encode()).hexdigest()

    def _drawn(self, start: int, count: int) -> list[Words]:
        words = [drawn(count, start, k, width) for k, width in enumerate(self._function.widths)]
        for column, special in zip(words, special_words(self._function), strict=True):
            column[: len(special)] = special[:count]
        return words

    def wrong_of_mixed(self) -> tuple[int, ...] | None:
        """An input with all bits at which the program is wrong, out of `NUM_MIXED`: a second check of shorter proofs."""
        for start in range(0, NUM_MIXED, TILE):
            words = self._drawn(start, TILE)
            is_wrong = np.zeros(TILE, np.bool_)
            results = self._machine.store(self._words, [*words, *self._unused])[0].view(np.uint32)
            for result, expected, care in zip(results, self._function(*words), self._function.care, strict=True):
                is_wrong |= (result ^ expected) & np.uint32(care) != 0
            if (is_wrong := is_wrong & self._function.condition(*words)).any():
                return tuple(int(column[is_wrong.argmax()]) for column in words)
        return None

    def _inputs(self, part: Part, start: int, count: int) -> list[Words]:
        if self.method == TESTED:
            return self._drawn(start, count)
        numbers = np.arange(start, start + count, dtype=np.uint32)
        if part.mask == (1 << part.mask.bit_length()) - 1 and len(self._function.inputs) == 1:
            return [numbers]
        words = [np.zeros(count, np.uint32) for _ in self._function.inputs]
        done = 0
        for first, length in _runs(part.mask):
            piece = numbers >> np.uint32(done) & np.uint32((1 << length) - 1)
            words[first // 32] |= piece << np.uint32(first % 32)
            done += length
        return words

    def _tile(self, tile: tuple[int, int, int]) -> tuple[int, int, tuple[int, ...] | None, bool]:
        """Number of inputs and of valid ones; the first wrong one; whether there is one that the parts cannot decide about."""
        check_float_mode()  # in the thread that computes
        part, count = self._parts[tile[0]], tile[2]
        words = self._inputs(part, *tile[1:])
        is_valid = None if part.condition is None else np.broadcast_to(part.condition(*words), count)
        num_valid = count if is_valid is None else int(np.count_nonzero(is_valid))
        if not any(part.care) or not num_valid:
            return count, num_valid, None, False
        results = self._machine.store(self._words, [*words, *self._unused], self._room(count))[0]
        is_wrong = None
        for result, expected, care in zip(results, self._expected(words), part.care, strict=True):
            if not np.array_equal(result, expected):  # most often equal
                differs = (result ^ expected) & np.uint32(care) != 0
                is_wrong = differs if is_wrong is None else is_wrong | differs
        if is_wrong is None or not (is_wrong := is_wrong if is_valid is None else is_wrong & is_valid).any():
            return count, num_valid, None, False
        wrong = np.flatnonzero(is_wrong & self._function.condition(*words))
        first = tuple(int(column[wrong[0]]) for column in words) if wrong.size else None
        return count, num_valid, first, first is None

    def _expected(self, words: list[Words]) -> list[Words]:
        if not self._graphs:
            return self._function(*words)
        with np.errstate(all="ignore"):
            return evaluate(self._graphs, self._function.arguments(words))

    def _room(self, count: int) -> NDArray[np.uint32]:
        room: NDArray[np.uint32] | None = getattr(self._own, "room", None)
        if room is None or room.shape[2] != count:
            self._own.room = room = np.empty((1, len(self._function.outputs), count), np.uint32)
        return room

    def _restored(self, state: Path | None) -> tuple[int, list[int]]:
        """Tiles that are done, and valid inputs of each part, by a state of this very proof."""
        with suppress(OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
            kept = json.loads(state.read_text()) if state else {}
            done, valid = int(kept["tiles"]), [int(num) for num in kept["valid"]]
            counts = [0] * len(self._parts)
            for part, _, count in self._tiles[: max(done, 0)]:
                counts[part] += count
            fits = 0 <= done <= len(self._tiles) and len(valid) == len(counts)
            if kept["key"] == self.key and fits and all(0 <= a <= b for a, b in zip(valid, counts, strict=True)):
                return done, valid
        return 0, [0] * len(self._parts)

    def run(self, state: Path | None = None, progress: Progress = lambda _, __: None) -> Proven:
        """Sweeps up to the first wrong input. state: file of the progress, from which it resumes."""
        tiles, total = self._tiles, sum(count for _, _, count in self._tiles)
        done, valid = self._restored(state)
        proof = Proven(self.method, sum(count for _, _, count in tiles[:done]))
        if self.method == PARTS and (wrong := self.wrong_of_mixed()):
            return Proven(self.method, wrong=wrong)
        saved_s = time.monotonic()
        with ThreadPoolExecutor(self._num_threads) as threads:
            ahead = 4 * self._num_threads
            waiting = [threads.submit(self._tile, tile) for tile in tiles[done : done + ahead]]
            while waiting:
                count, num_valid, wrong, is_open = waiting.pop(0).result()
                valid[tiles[done][0]] += num_valid
                done += 1
                proof.num_inputs += count
                if wrong is not None or is_open:
                    proof.wrong, proof.is_open = wrong, is_open
                    threads.shutdown(cancel_futures=True)
                    break
                if done + len(waiting) < len(tiles):
                    waiting.append(threads.submit(self._tile, tiles[done + len(waiting)]))
                progress(proof.num_inputs, total)
                if state and time.monotonic() > saved_s + SAVE_S:
                    write_atomically(state, json.dumps({"key": self.key, "tiles": done, "valid": valid}).encode())
                    saved_s = time.monotonic()
        factors = (count for count, part in zip(valid, self._parts, strict=True) if part.is_counted)
        proof.num_valid = math.prod(factors) << self._free
        if state:
            state.unlink(missing_ok=True)
        return proof


def _runs(mask: int) -> list[tuple[int, int]]:
    """First bit and length of each run of ones within a word."""
    runs: list[tuple[int, int]] = []
    for bit in range(mask.bit_length()):
        if mask >> bit & 1:
            if runs and sum(runs[-1]) == bit and bit % 32:
                runs[-1] = (runs[-1][0], runs[-1][1] + 1)
            else:
                runs.append((bit, 1))
    return runs
