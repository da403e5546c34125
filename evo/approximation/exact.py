"""Proofs that a program computes an exact function, as certificates, and their check.

Owns the sweep over words, the certificate's form and what is compared. Knows nothing of runs.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from evo.approximation.bits import ExactFunction, Words
from evo.approximation.functions import shortened
from evo.approximation.samples import drawn, special_words
from evo.errors import UserError, located, plural
from evo.evaluate.slots import slots_of
from evo.instructions import shipped_instruction_set
from evo.language.program import Language, format_program, parse_program
from evo.native.ptx_vm import VirtualMachine
from evo.native.stack_ptx import NodeKind
from evo.storage.files import write_atomically

INSTRUCTION_SET = "bits"
SEMANTICS = "evo-bits-1"  # of the instructions; another number wherever a result of one changes
EVERY, TESTED = "every input", "tested"
PART = 1 << 16
MOST_BITS = 32
NUM_TESTED = 1 << 26
SAVE_S = 5.0
_MAX_WORDS = 4096
_REFERENCES = 1 << 12
Progress = Callable[[int, int], None]
_Text = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.%+:&|^~*()<>=!, -]*$", max_length=1 << 16)]


class ExactCertificate(BaseModel):
    """Certificate of a program for an exact function.

    method: `every input` under the precondition; `tested`, which proves nothing. num_valid: inputs that meet the precondition.
    reference: SHA-256 of the function's results at fixed inputs.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    exact: Literal[1] = 1
    semantics: _Text = SEMANTICS
    function: _Text
    inputs: list[_Text]
    types: list[_Text]
    precondition: _Text
    care: list[Annotated[int, Field(ge=1, lt=1 << 32)]]
    program: _Text
    num_instructions: int
    target: _Text
    slots: float
    method: _Text
    num_inputs: int
    num_valid: int
    reference: _Text

    def text(self) -> str:
        """Text of the file."""
        return json.dumps(self.model_dump(mode="json"), indent=2) + "\n"

    def claim(self) -> str:
        """Statement of the proof, in words."""
        where = f" where {self.precondition}" if self.precondition else ""
        count = plural(self.num_valid, "input")
        return f"tested on {count}{where}, not proven" if self.method == TESTED else f"proven for {self.method}: {count}{where}"

    def description(self) -> str:
        """The certificate, for people."""
        cost = f"{plural(self.num_instructions, 'instruction')}, {self.slots:g} slots on {self.target}"
        return f"{shortened(self.function)}; {cost}\n{self.claim()}\n"


@dataclass
class Proven:
    """Result of a sweep. wrong: the first inputs at which a result is wrong."""

    method: str
    num_inputs: int = 0
    num_valid: int = 0
    wrong: tuple[int, ...] | None = None


def exact_language(function: ExactFunction) -> Language:
    """The language of programs for a function."""
    kinds = tuple((name, "b32") for name in function.inputs), tuple((name, "b32") for name in function.outputs)
    return Language(shipped_instruction_set(INSTRUCTION_SET), *kinds)


def wrong_bits(function: ExactFunction, results: NDArray[np.uint32], expected: list[Words]) -> NDArray[np.uint32]:
    """Bits that matter and differ, `(..., num_outputs, num_points)`."""
    care = np.array(function.care, np.uint32)[:, None]
    return (results ^ np.stack(expected)) & care


class ExactSweep:
    """A program at all inputs of a function.

    Args:
        words: `(max_length,)` uint64.
        num_threads: None: one for each core that this process may use.
    """

    def __init__(self, language: Language, words: NDArray[np.uint64], function: ExactFunction, num_threads: int | None = None):
        self._machine, self._words, self._function = VirtualMachine(language.lowering), words[None], function
        self._unused = [None] * (len(language.registers) - len(function.inputs))
        self._num_threads = num_threads or len(os.sched_getaffinity(0))
        self.method = EVERY if sum(function.widths) <= MOST_BITS else TESTED
        total = NUM_TESTED if self.method == TESTED else 1 << sum(function.widths)
        self._parts = [(start, min(PART, total - start)) for start in range(0, total, PART)]
        asked = (function.text, function.condition.text, function.care, function.types, function.widths, function.code)
        how = (SEMANTICS, PART, self.method, total, _reference(function))
        self.key = hashlib.sha256(repr((format_program(language, words), asked, how)).encode()).hexdigest()

    def _inputs(self, start: int, count: int) -> list[Words]:
        if self.method == TESTED:
            words = [drawn(count, start, k, width) for k, width in enumerate(self._function.widths)]
            for each, some in zip(words, special_words(self._function), strict=True):
                each[: len(some)] = some
            return words
        numbers = np.arange(start, start + count, dtype=np.uint64)
        found = []
        for width in self._function.widths:
            found.append((numbers & np.uint64((1 << width) - 1)).astype(np.uint32))
            numbers = numbers >> np.uint64(width)
        return found

    def _part(self, part: tuple[int, int]) -> tuple[int, int, tuple[int, ...] | None]:
        words = self._inputs(*part)
        is_valid = self._function.condition(*words)
        num_valid = int(is_valid.sum())
        if not num_valid:
            return part[1], 0, None
        results = self._machine.store(self._words, [*words, *self._unused])[0].view(np.uint32)
        is_wrong = np.zeros(part[1], np.bool_)
        for result, expected, care in zip(results, self._function(*words), self._function.care, strict=True):
            is_wrong |= (result ^ expected) & np.uint32(care) != 0
        is_wrong &= is_valid
        first = tuple(int(each[is_wrong.argmax()]) for each in words) if is_wrong.any() else None
        return part[1], num_valid, first

    def _restored(self, state: Path | None) -> tuple[int, int, int]:
        """Parts, inputs and valid inputs that are done, by a state of this very proof."""
        with suppress(OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
            kept = json.loads(state.read_text()) if state else {}
            done, num_inputs, num_valid = (int(kept[name]) for name in ("parts", "inputs", "valid"))
            fits = 0 <= done <= len(self._parts) and num_inputs == sum(count for _, count in self._parts[:done])
            if kept["key"] == self.key and fits and 0 <= num_valid <= num_inputs:
                return done, num_inputs, num_valid
        return 0, 0, 0

    def run(self, state: Path | None = None, progress: Progress = lambda _, __: None) -> Proven:
        """Sweeps up to the first wrong input. state: where it is kept how far it came; it begins there."""
        parts, total = self._parts, sum(count for _, count in self._parts)
        done, num_inputs, num_valid_before = self._restored(state)
        found = Proven(self.method, num_inputs, num_valid_before)
        saved_s = time.monotonic()
        with ThreadPoolExecutor(self._num_threads) as threads:
            ahead = 4 * self._num_threads
            waiting = [threads.submit(self._part, part) for part in parts[done : done + ahead]]
            while waiting:
                count, num_valid, wrong = waiting.pop(0).result()
                done += 1
                found.num_inputs += count
                found.num_valid += num_valid
                if wrong is not None:
                    found.wrong = wrong
                    threads.shutdown(cancel_futures=True)
                    break
                if done + len(waiting) < len(parts):
                    waiting.append(threads.submit(self._part, parts[done + len(waiting)]))
                progress(found.num_inputs, total)
                if state and time.monotonic() > saved_s + SAVE_S:
                    kept = {"key": self.key, "parts": done, "inputs": found.num_inputs, "valid": found.num_valid}
                    write_atomically(state, json.dumps(kept).encode())
                    saved_s = time.monotonic()
        if state:
            state.unlink(missing_ok=True)
        return found


def certified_exact(
    language: Language,
    words: NDArray[np.uint64],
    function: ExactFunction,
    *,
    target: str,
    state: Path | None = None,
    progress: Progress = lambda _, __: None,
) -> ExactCertificate:
    """Certify a program by a sweep. state: as of `ExactSweep.run`; `.part` and a digest of what is proven are added.

    Raises:
        UserError: a result is wrong somewhere, or the program reads beyond the inputs, or
            no input meets the precondition, or an instruction is not the target's.
    """
    lowered = language.lowering.analyze(words[None])
    slots = float(language.lowering.sums(words[None], slots_of(language.instruction_set, target))[0])
    program = " ".join(format_program(language, words).split())
    if math.isnan(slots):
        raise UserError(f"{shortened(function.text)}: the program has an instruction that {target} lacks: {shortened(program)}")
    nodes = language.lowering.lower(words).nodes
    read = nodes["payload"][nodes["kind"] == NodeKind.INPUT]
    if (beyond := read[read >= len(function.inputs)]).size:
        name = language.registers[int(beyond[0])][0]
        raise UserError(
            f"the program reads %{name}, must read inputs of {shortened(function.text)} only: {', '.join(function.inputs)}"
        )
    sweep = ExactSweep(language, words, function)
    found = sweep.run(state and state.with_suffix(f".{sweep.key[:16]}.part"), progress)
    if found.wrong is not None:
        at = ", ".join(f"{name} = 0x{word:08x}" for name, word in zip(function.inputs, found.wrong, strict=True))
        raise UserError(f"{shortened(function.text)}: the program is wrong at {at}; no certificate is written")
    if not found.num_valid:
        raise UserError(f"{shortened(function.text)}: no input meets the precondition {function.condition.text!r}")
    return ExactCertificate(
        function=function.text,
        inputs=list(function.inputs),
        types=list(function.types),
        precondition=function.condition.text,
        care=list(function.care),
        program=program,
        num_instructions=int(lowered[1][0]),
        target=target,
        slots=slots,
        method=found.method,
        num_inputs=found.num_inputs,
        num_valid=found.num_valid,
        reference=_reference(function),
    )


def _reference(function: ExactFunction) -> str:
    words = [drawn(_REFERENCES, 0, k, width) for k, width in enumerate(function.widths)]
    is_valid = function.condition(*words)
    results = np.stack(function(*words)) & np.array(function.care, np.uint32)[:, None]
    return hashlib.sha256(results[:, is_valid].astype("<u4").tobytes()).hexdigest()


def check_exact(path: Path, told: ExactCertificate, function: ExactFunction, progress: Progress) -> ExactCertificate:
    """The certificate, all of which is computed anew for a function that the caller names.

    Raises:
        UserError: it says something else than what is computed.
    """
    quick = {"semantics": SEMANTICS, "inputs": list(function.inputs), "types": list(function.types), "care": list(function.care)}
    quick |= {"precondition": function.condition.text, "reference": _reference(function)}
    for key, value in quick.items():
        _same(path, key, getattr(told, key), value)
    language = exact_language(function)
    words = parse_program(language, told.program, f"{path}: key 'program'", _MAX_WORDS)
    with located(path, "refused"):
        computed = certified_exact(language, words, function, target=told.target, progress=progress)
    for key, value in computed.model_dump().items():
        _same(path, key, getattr(told, key), value)
    return computed


def _same(path: Path, key: str, told: Any, computed: Any) -> None:
    if told != computed:
        raise UserError(f"{key!r} is {shortened(repr(told))}, computed: {shortened(repr(computed))}", path, "refused")
