"""Proofs that a program computes an exact function, as certificates, and their check.

Owns the certificate's form and the comparison. Knows nothing of runs.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from evo.approximation.bit_vectors import UnsolvedError
from evo.approximation.bits import ExactFunction, Words
from evo.approximation.exact_sweep import SEMANTICS, TESTED, ExactSweep, Progress, Proven, reference_of
from evo.approximation.functions import shortened
from evo.approximation.smt import SOLVED, solved
from evo.approximation.word_machine import INSTRUCTION_SET
from evo.errors import UserError, located, plural
from evo.evaluate.slots import slots_of
from evo.instructions import shipped_instruction_set
from evo.language.program import Language, format_program, parse_program
from evo.native.stack_ptx import NodeKind

_MAX_WORDS = 4096
_Text = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.%+:&|^~*()<>=!, -]*$", max_length=1 << 16)]


class ExactCertificate(BaseModel):
    """Certificate of a program for an exact function.

    method: `every input` under the precondition, or `every input, in parts` or `by a solver`; `tested`, which proves nothing.
    num_valid: inputs that meet the precondition; None: a solver does not count these.
    reference: SHA-256 of the function's results at fixed inputs.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    exact: Annotated[int, Field(ge=1, le=1)] = 1
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
    num_valid: int | None
    reference: _Text

    def text(self) -> str:
        """Text of the file."""
        return json.dumps(self.model_dump(mode="json"), indent=2) + "\n"

    def claim(self) -> str:
        """Statement of the proof, in words."""
        where = f" where {self.precondition}" if self.precondition else ""
        count = "" if self.num_valid is None else plural(self.num_valid, "input")
        if self.method == TESTED:
            return f"tested on {count}{where}, not proven"
        return f"proven for {self.method}{count and ': '}{count}{where}"

    def description(self) -> str:
        """The certificate, for people."""
        cost = f"{plural(self.num_instructions, 'instruction')}, {self.slots:g} slots on {self.target}"
        return f"{shortened(self.function)}; {cost}\n{self.claim()}\n"


def exact_language(function: ExactFunction) -> Language:
    """The language of programs for a function."""
    kinds = tuple((name, "b32") for name in function.inputs), tuple((name, "b32") for name in function.outputs)
    return Language(shipped_instruction_set(INSTRUCTION_SET), *kinds)


def wrong_bits(function: ExactFunction, results: NDArray[np.uint32], expected: list[Words]) -> NDArray[np.uint32]:
    """Bits that matter and differ, `(..., num_outputs, num_points)`."""
    care = np.array(function.care, np.uint32)[:, None]
    return (results ^ np.stack(expected)) & care


def certified_exact(
    language: Language,
    words: NDArray[np.uint64],
    function: ExactFunction,
    *,
    target: str,
    state: Path | None = None,
    progress: Progress = lambda _, __: None,
    method: str = "",
    note: Callable[[str], None] = lambda _: None,
) -> ExactCertificate:
    """Certify a program by a sweep, or a solver where inputs are too many.

    Args:
        state: as of `ExactSweep.run`; `.part` and a digest of the claim are added.
        method: of a certificate that is computed anew; empty: any.
        note: gets the reason why a program is tested only.

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
    proof = _compared(language, words, function, state, progress, method, note)
    if proof.wrong is not None:
        at = ", ".join(f"{name} = 0x{word:08x}" for name, word in zip(function.inputs, proof.wrong, strict=True))
        raise UserError(f"{shortened(function.text)}: the program is wrong at {at}; no certificate is written")
    if proof.num_valid == 0:
        raise UserError(f"{shortened(function.text)}: no input meets the precondition {function.condition.text!r}")
    return ExactCertificate(
        function=function.name,
        inputs=list(function.inputs),
        types=list(function.types),
        precondition=function.condition.text,
        care=list(function.care),
        program=program,
        num_instructions=int(lowered[1][0]),
        target=target,
        slots=slots,
        method=proof.method,
        num_inputs=proof.num_inputs,
        num_valid=proof.num_valid,
        reference=reference_of(function),
    )


def _compared(
    language: Language,
    words: NDArray[np.uint64],
    function: ExactFunction,
    state: Path | None,
    progress: Progress,
    method: str,
    note: Callable[[str], None],
) -> Proven:
    for in_parts in (True, False):
        sweep = ExactSweep(language, words, function, in_parts=in_parts)
        if sweep.method == TESTED != method:
            try:
                wrong = sweep.wrong_of_mixed() or solved(language, words, function)
            except UnsolvedError as error:
                if method == SOLVED:
                    raise UserError(f"{shortened(function.text)}: not proven here: {error}") from error
                note(f"not proven: {error}")
            else:
                num_inputs = 1 << sum(function.widths)
                return Proven(SOLVED, num_inputs, None if function.condition.text else num_inputs, wrong)
        proof = sweep.run(state and state.with_suffix(f".{sweep.key[:16]}.part"), progress)
        if not proof.is_open:
            break
    return proof


def check_exact(path: Path, stated: ExactCertificate, function: ExactFunction, progress: Progress) -> ExactCertificate:
    """The certificate, computed anew for a function that the caller names, and compared.

    Raises:
        UserError: it differs from the computed one.
    """
    quick = {"semantics": SEMANTICS, "inputs": list(function.inputs), "types": list(function.types), "care": list(function.care)}
    quick |= {"precondition": function.condition.text, "reference": reference_of(function)}
    for key, value in quick.items():
        _same(path, key, getattr(stated, key), value)
    language = exact_language(function)
    words = parse_program(language, stated.program, f"{path}: key 'program'", _MAX_WORDS)
    with located(path, "refused"):
        computed = certified_exact(language, words, function, target=stated.target, progress=progress, method=stated.method)
    for key, value in computed.model_dump().items():
        _same(path, key, getattr(stated, key), value)
    return computed


def _same(path: Path, key: str, stated: Any, computed: Any) -> None:
    if stated != computed:
        raise UserError(f"{key!r} is {shortened(repr(stated))}, computed: {shortened(repr(computed))}", path, "refused")
