"""Certificates: the proven facts of a program, as JSON, and the check that computes all of them anew.

Owns their form and the comparison. Knows nothing of runs.
"""

import hashlib
import json
import math
from collections.abc import Callable
from decimal import ROUND_CEILING, Context
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from evo.approximation.bits import ExactFunction
from evo.approximation.exact import ExactCertificate, check_exact
from evo.approximation.formats import FORMATS, Format
from evo.approximation.functions import CHARACTERS, MAX_CHARACTERS, RIGOROUS, Function, is_code, shortened
from evo.approximation.process import sources
from evo.approximation.ptx_function import is_file
from evo.approximation.sweep import KINDS, Kind, Sweep, SweepResult, Worst
from evo.errors import UserError, located, plural
from evo.evaluate.slots import slots_of
from evo.instructions import HALVES, SHIPPED, open_instruction_set
from evo.language.program import Language, format_program, parse_program
from evo.report.table import table
from evo.storage.json_file import first_mistake, read_json

FOLDER = "proofs"  # of a run
_WHAT = "certificate"
_MAX_WORDS = 4096
_NUM_REFERENCES = 1025  # correctly rounded values that the hash is of
_COMPARED = 1.0 + 2.0**-50  # largest factor by which the rounding of a comparison changes an error
_SIX_DIGITS = Context(prec=6, rounding=ROUND_CEILING)
_SAME = 1e-9  # relative, of numbers that libm decides
_STEPS = "steps against the function"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def _number(text: str) -> str:
    if text != repr(float(text)):
        raise ValueError("must be a float64 as Python writes it")
    return text


_Number = Annotated[str, StringConstraints(max_length=32), AfterValidator(_number)]
_Count = Annotated[int, Field(ge=0, le=1 << 33)]
_Formula = Annotated[str, StringConstraints(pattern=rf"^{CHARACTERS}+$", max_length=MAX_CHARACTERS)]
_Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.: ]+$", max_length=200)]
_Program = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.%+: -]+$", max_length=1 << 17)]
_Special = Literal["0", "-0", "inf", "-inf", "nan", "1e-40", "-1e-40"]
_SPECIAL: dict[_Special, float] = {
    "0": 0.0,
    "-0": -0.0,
    "inf": math.inf,
    "-inf": -math.inf,
    "nan": math.nan,
    "1e-40": 1e-40,
    "-1e-40": -1e-40,
}


class Error(_Strict):
    """worst: the largest error found, and at which input. bound: an upper bound of all errors; `inf` if none is known."""

    worst: _Number
    at: _Number
    bound: _Number

    def at_most(self) -> str:
        """The bound in six digits, rounded up."""
        return f"{float(_SIX_DIGITS.create_decimal(self.bound)):.6g}"


class Certificate(_Strict):
    """Proven figures of a program at each value of a format in an interval.

    Numbers are texts that give each float64 exactly. cpu: with the CPU's arithmetic. any_gpu: with any result that a GPU may give
    within the bounds of its instructions; why_not: the instruction that has no known bound. enclosure: as of `Function`.
    reference: SHA-256 of correctly rounded values. No text can hold code, markup or a control character.
    """

    proof: Literal[2] = 2
    function: _Formula
    formula: _Formula
    enclosure: _Name
    format: Literal["f32", "f16", "bf16"]
    interval: tuple[_Number, _Number]
    num_inputs: _Count
    arithmetic: Literal["f32", "native"] = "f32"
    instruction_set: _Name
    program: _Program
    num_instructions: _Count
    target: _Name
    slots: _Number
    cpu: dict[Kind, Error]
    any_gpu: dict[Kind, Error]
    why_not: Literal[""] | _Name
    num_nans: _Count
    num_wrong_signs: _Count
    num_falls: _Count
    symmetry: Literal["odd", "even", "none"]
    num_asymmetric: _Count
    special: dict[_Special, _Number]
    reference: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]

    @model_validator(mode="after")
    def _whole(self) -> "Certificate":
        num_kinds = 0 if self.why_not else len(KINDS)
        if (len(self.cpu), len(self.any_gpu), len(self.special)) != (len(KINDS), num_kinds, len(_SPECIAL)):
            raise ValueError("'cpu', 'special' and, without a 'why_not', 'any_gpu' must have all their keys")
        return self

    def text(self) -> str:
        """Text in a file: without the arithmetic if it is f32."""
        left_out = {"arithmetic"} if self.arithmetic == "f32" else set()
        return json.dumps(self.model_dump(mode="json", exclude_none=True, exclude=left_out), indent=2) + "\n"

    def description(self) -> str:
        """The figures, for people."""
        low, high = self.interval
        cost = f"{plural(self.num_instructions, 'instruction')}, {float(self.slots):g} slots on {self.target}"
        where = f"{self.format}, [{low}, {high}]: {plural(self.num_inputs, 'input')}"
        lines = [f"{shortened(self.function)}, {where}; {cost}"]
        rows = [("largest error", "CPU", "at x", "any GPU", "at x")]
        for kind in KINDS:
            cpu, gpu = self.cpu[kind], self.any_gpu.get(kind)
            on_gpu = (gpu.at_most(), gpu.at) if gpu else ("unknown", "")
            rows.append((kind, cpu.at_most(), cpu.at, *on_gpu))
        lines.append(table(rows, right=(1, 2, 3, 4)).rstrip("\n"))
        counts = {
            "NaN results": self.num_nans,
            "wrong signs": self.num_wrong_signs,
            _STEPS: self.num_falls,
        }
        if self.symmetry != "none":
            counts[f"results that are not {self.symmetry}"] = self.num_asymmetric
        lines.append(", ".join(f"{name}: {count:,}" for name, count in counts.items()))
        lines.append("special values: " + ", ".join(f"f({x}) = {y}" for x, y in self.special.items()))
        if self.why_not:
            lines.append(f"on GPUs nothing is known of {self.why_not}")
        if self.enclosure != RIGOROUS:
            lines.append(f"values of the function are {self.enclosure}: their errors are estimates")
        return "\n".join(lines) + "\n"


def certified(
    language: Language,
    words: NDArray[np.uint64],
    function: Function,
    form: Format,
    interval: tuple[float, float],
    *,
    instruction_set: str,
    target: str,
    state: Path | None = None,
    progress: Callable[[int, int], None] = lambda _, __: None,
) -> Certificate:
    """Proves a program of `(max_length,)` words, with one input x and one output y.

    Args:
        state: as of `Sweep.run`; `.part` and a digest of the claim are added.

    Raises:
        UserError: the function has no value somewhere, or the interval no number, or the CPU does not know an instruction.
    """
    first, last = form.keys_of(*interval)
    if last < first:
        raise UserError(f"{form.name} has no value in [{interval[0]:g}, {interval[1]:g}]")
    sweep = Sweep(language, words, function, form, first, last)
    try:
        special = sweep.results(np.array(list(_SPECIAL.values()), np.float32))
    except ValueError as error:  # the CPU does not know an instruction or a special register
        raise UserError(f"the program cannot be proven: {error}") from error
    program = " ".join(format_program(language, words).split())
    ends = tuple(repr(float(end)) for end in form.of_keys(np.array([first, last])))
    reference = _reference_hash(function, form, first, last)
    if state:
        content = f"{instruction_set}\n{program}\n{function.formula}\n{reference}\n{form.name}\n{ends}\n{sources()}"
        state = state.with_suffix(f".{hashlib.sha256(content.encode()).hexdigest()[:16]}.part")
    result = sweep.run(state, progress)
    lowered = language.lowering.analyze(words[None])
    on_gpu, why_not = result.gpu, ""
    if isinstance(sweep.on_intervals, str):
        why_not = sweep.on_intervals
    elif result.is_open:
        why_not = "products that may be flushed"
    elif sweep.on_intervals.is_exact or (not sweep.on_intervals.is_approximate and result.gpu.errors == result.cpu.errors):
        on_gpu = result.cpu
    return Certificate(
        function=function.text,
        formula=function.formula,
        enclosure=function.enclosure,
        format=form.name,
        interval=(ends[0], ends[1]),
        num_inputs=result.num_inputs,
        arithmetic="f32" if dict(language.inputs)["x"] == "f32" else "native",
        instruction_set=instruction_set,
        program=program,
        num_instructions=int(lowered[1][0]),
        target=target,
        slots=repr(float(language.lowering.sums(words[None], slots_of(language.instruction_set, target))[0])),
        cpu=_errors(function, form, sweep, result, result.cpu, is_cpu=True),
        any_gpu={} if why_not else _errors(function, form, sweep, result, on_gpu, is_cpu=on_gpu is result.cpu),
        why_not=why_not,
        num_nans=result.num_nans,
        num_wrong_signs=result.num_wrong_signs,
        num_falls=result.num_falls,
        symmetry=sweep.symmetry,
        num_asymmetric=result.num_asymmetric,
        special={name: repr(float(value)) for name, value in zip(_SPECIAL, special, strict=True)},
        reference=reference,
    )


def _errors(
    function: Function, form: Format, sweep: Sweep, result: SweepResult, worst: Worst, *, is_cpu: bool
) -> dict[Kind, Error]:
    errors: dict[Kind, Error] = {}
    doubt = result.reference_ulps
    ulp_of_largest = float(form.ulp(np.array([result.largest]))[0])
    doubts = {"ulp": doubt, "absolute": doubt * ulp_of_largest, "relative": doubt * 2.0 ** (1 - form.digits)}
    clear = [x if error > 0.0 else at for error, x, at in zip(result.clear.errors, result.clear.at, worst.at, strict=True)]
    for kind, error, at, clear_at in zip(KINDS, worst.errors, worst.at, clear, strict=True):
        here, x = error, at
        if is_cpu and 0.0 < error < math.inf:  # by the function's own values
            here, x = max(((_error_at(function, form, sweep, kind, x), x) for x in (at, clear_at)), key=lambda pair: pair[0])
        bound = error * _COMPARED + doubts[kind]
        if kind == "relative":  # the true value may be smaller
            bound *= 1.0 + 2.0 * doubts[kind]
        errors[kind] = Error(worst=repr(here), at=repr(x), bound=repr(bound))
    return errors


def _error_at(function: Function, form: Format, sweep: Sweep, kind: Kind, x: float) -> float:
    size = np.abs(function.values(np.array([x])))
    units: dict[Kind, float] = {"ulp": form.ulp(size)[0], "absolute": 1.0, "relative": max(size[0], 2.0**form.least)}
    return float(abs(function.exact(x) - float(sweep.results(np.array([x], np.float32))[0]))) / float(units[kind])


def _reference_hash(function: Function, form: Format, first: int, last: int) -> str:
    keys = np.unique(np.linspace(first, last, min(_NUM_REFERENCES, last - first + 1)).round().astype(np.int64))
    with np.errstate(over="ignore"):
        values = form.round(function.values(form.of_keys(keys)).astype(np.float32))
    return hashlib.sha256(values.astype("<f4").tobytes()).hexdigest()


# ---- checks --------------------------------------------------------------------------------------------------------------


def read_certificate(path: Path) -> Certificate | ExactCertificate:
    """The certificate in a file, of an approximation or of an exact function.

    Raises:
        UserError: it cannot be read, or is none.
    """
    try:
        data = read_json(path, _WHAT)
        if isinstance(data, dict) and isinstance(data.get("interval"), list):
            data["interval"] = tuple(data["interval"])
        is_exact = isinstance(data, dict) and "semantics" in data
        return ExactCertificate.model_validate(data) if is_exact else Certificate.model_validate(data)
    except ValidationError as error:
        location, reason = first_mistake(error)
        raise UserError(f"key {'.'.join(map(str, location))!r}: {reason}", path) from error


def check_certificate(
    path: Path,
    progress: Callable[[int, int], None] = lambda _, __: None,
    *,
    code: str | None = None,
    precondition: str = "",
) -> Certificate | ExactCertificate:
    """The certificate in a file, computed anew and compared.

    Args:
        code: the `module:function` that a certificate may name, which is then imported; None: none.
        precondition: the one beside the function's own that the certificate of an exact function may have.

    Raises:
        UserError: it cannot be read, or differs from the computed one.
    """
    certificate = read_certificate(path)
    named = ExactFunction(code).name if code and is_file(code) else code
    if (is_code(certificate.function) or is_file(certificate.function)) and certificate.function != named:
        raise UserError(
            f"key 'function': {certificate.function!r} is code, which a check runs only with --code {certificate.function}", path
        )
    if isinstance(certificate, ExactCertificate):
        with located(path):
            exact = ExactFunction(
                code or certificate.function if is_file(certificate.function) else certificate.function, precondition
            )
        return check_exact(path, certificate, exact, progress)
    if certificate.instruction_set not in SHIPPED:
        raise UserError(f"key 'instruction_set': {certificate.instruction_set!r}, must be one of: {', '.join(SHIPPED)}", path)
    low, high = map(float, certificate.interval)
    if not (low <= high and math.isfinite(high - low)):
        raise UserError("key 'interval': must be two finite numbers, the lower first", path)
    is_native = certificate.arithmetic == "native"
    if is_native and (certificate.format not in HALVES or certificate.instruction_set != "halves"):
        raise UserError("key 'arithmetic': 'native' needs format f16 or bf16, and instruction_set halves", path)
    kind = certificate.format if is_native else "f32"
    language = Language(open_instruction_set(certificate.instruction_set), (("x", kind),), (("y", kind),))
    words = parse_program(language, certificate.program, f"{path}: key 'program'", _MAX_WORDS)
    try:
        key = "function"
        function, form = Function(certificate.function), FORMATS[certificate.format]
        key = "target"
        slots_of(language.instruction_set, certificate.target)
    except UserError as error:
        raise UserError(error.reason, path, f"key {key!r}") from error
    first, last = form.keys_of(low, high)
    quick = {"formula": function.formula, "num_inputs": last - first + 1, "reference": ""}
    if last >= first and certificate.num_inputs == last - first + 1:  # before a sweep of hours
        quick["reference"] = _reference_hash(function, form, first, last)
    if difference := _difference({name: getattr(certificate, name) for name in quick}, quick):
        raise UserError(f"refused: {difference}", path)
    with located(path, "refused"):
        computed = certified(
            language,
            words,
            function,
            form,
            (low, high),
            instruction_set=certificate.instruction_set,
            target=certificate.target,
            progress=progress,
        )
    if difference := _difference(certificate.model_dump(), computed.model_dump()):
        raise UserError(f"refused: {difference}", path)
    return computed


def _difference(stated: Any, computed: Any, key: str = "") -> str | None:
    """The first difference between a certificate and the computed one; None: they agree."""
    if isinstance(stated, dict) and isinstance(computed, dict):
        for name in [*computed, *(name for name in stated if name not in computed)]:
            if difference := _difference(stated.get(name), computed.get(name), f"{key}.{name}".strip(".")):
                return difference
        return None
    is_same = stated == computed
    if not is_same and key.endswith((".worst", ".bound")) and isinstance(stated, str):
        try:
            is_same = math.isclose(float(stated), float(computed), rel_tol=_SAME)
            is_same &= key.endswith(".worst") or float(stated) >= float(computed)  # no bound is too small
        except ValueError:
            is_same = False
    return None if is_same else f"'{key}' is {shortened(repr(stated))}, computed: {shortened(repr(computed))}"
