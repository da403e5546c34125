"""Certificates: what is proven of a program, as JSON, and the check that computes all of it anew.

Owns their form and what is compared. Knows nothing of runs.
"""

import hashlib
import json
import math
from collections.abc import Callable
from contextlib import closing, nullcontext
from decimal import ROUND_CEILING, Context
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints, ValidationError

from evo.approximation.formats import FORMATS, Format
from evo.approximation.functions import Function, to_odd
from evo.approximation.pieces import pieces_of
from evo.approximation.sweep import KINDS, Found, Sweep, Worst
from evo.errors import UserError, plural
from evo.evaluate.backends import why_no_compiler
from evo.evaluate.slots import slots_of
from evo.instructions import HALVES, SHIPPED, open_instruction_set
from evo.language.program import Language, format_program, parse_program
from evo.report.table import table
from evo.storage.json_file import first_mistake, read_json

if TYPE_CHECKING:
    from evo.approximation.gpu_sweep import GpuSweep

FOLDER = "proofs"  # of a run
_WHAT = "certificate"
_MAX_WORDS = 4096
_NUM_REFERENCES = 1025  # correctly rounded values that the hash is of
_TABLE_ULPS = 2.0**-28  # which values in tables and their comparison may add to the reference's error
_COMPARED = 1.0 + 2.0**-50  # what the rounding of a comparison may make of an error
_SIX_DIGITS = Context(prec=6, rounding=ROUND_CEILING)
_SAME = 1e-9  # relative, of numbers that libm decides
_STEPS = "steps against the function"
_SPECIAL = {"0": 0.0, "-0": -0.0, "inf": math.inf, "-inf": -math.inf, "nan": math.nan, "1e-40": 1e-40, "-1e-40": -1e-40}


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def _number(text: str) -> str:
    if text != repr(float(text)):
        raise ValueError("must be a float64 as Python writes it")
    return text


_Number = Annotated[str, AfterValidator(_number)]
_Line = Annotated[str, StringConstraints(pattern=r"^[ -~]{1,200}$")]


class Error(_Strict):
    """worst: the largest error found, and at which input. bound: what no error exceeds; `inf` where nothing is known."""

    worst: _Number
    at: _Number
    bound: _Number

    def at_most(self) -> str:
        """The bound in six digits, rounded up."""
        return f"{float(_SIX_DIGITS.create_decimal(self.bound)):.6g}"


class OnGpu(_Strict):
    """What one GPU gave, with the errors that a kernel found there at every input. driver: as `driver_name` tells it."""

    device: _Line
    capability: _Line
    driver: _Line
    errors: dict[_Line, Error]
    num_nans: int
    num_wrong_signs: int
    num_falls: int

    def description(self) -> str:
        """In one line."""
        errors = ", ".join(f"{error.at_most()} {kind} at x = {error.at}" for kind, error in self.errors.items())
        counts = f"NaN results: {self.num_nans:,}, wrong signs: {self.num_wrong_signs:,}, {_STEPS}: {self.num_falls:,}"
        return f"{self.device} (compute capability {self.capability}, driver {self.driver}): {errors}; {counts}"


class Certificate(_Strict):
    """What holds for a program at each value of a format in an interval.

    Numbers are texts that give each float64 exactly. cpu: with the CPU's arithmetic. any_gpu: with whatever a GPU gives within
    the bounds of its instructions; why_not: of what no bound is known. reference: SHA-256 of correctly rounded
    values. on_gpu: with what a GPU gave.
    """

    proof: Literal[1] = 1
    function: str
    formula: str
    format: str
    interval: tuple[str, str]
    num_inputs: int
    arithmetic: Literal["f32", "native"] = "f32"
    instruction_set: str
    program: str
    num_instructions: int
    target: str
    slots: str
    cpu: dict[str, Error]
    any_gpu: dict[str, Error]
    why_not: str
    num_nans: int
    num_wrong_signs: int
    num_falls: int
    symmetry: str
    num_asymmetric: int
    special: dict[str, str]
    reference: str
    on_gpu: OnGpu | None = None

    def text(self) -> str:
        """As a file has it: without the arithmetic if it is f32."""
        left_out = {"arithmetic"} if self.arithmetic == "f32" else set()
        return json.dumps(self.model_dump(mode="json", exclude_none=True, exclude=left_out), indent=2) + "\n"

    def description(self) -> str:
        """What it says, for people."""
        low, high = self.interval
        cost = f"{plural(self.num_instructions, 'instruction')}, {float(self.slots):g} slots on {self.target}"
        lines = [f"{self.function}, {self.format}, [{low}, {high}]: {plural(self.num_inputs, 'input')}; {cost}"]
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
        if self.on_gpu:
            lines.append(self.on_gpu.description())
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
    gpu: "GpuSweep | None" = None,
) -> Certificate:
    """Proves a program of `(max_length,)` words, with one input x and one output y.

    Args:
        gpu: where it runs at every input too.
        state: as of `Sweep.run`; `.part` and a digest of what is proven are added.

    Raises:
        UserError: the function has no value somewhere, or the interval no number.
    """
    first, last = form.keys_of(*interval)
    if last < first:
        raise UserError(f"{form.name} has no value in [{interval[0]:g}, {interval[1]:g}]")
    sweep = Sweep(language, words, function, form, first, last)
    program = " ".join(format_program(language, words).split())
    ends = tuple(repr(float(end)) for end in form.of_keys(np.array([first, last])))
    reference = _reference_hash(function, form, first, last)
    if state:
        told = f"{instruction_set}\n{program}\n{function.formula}\n{reference}\n{form.name}\n{ends}"
        state = state.with_suffix(f".{hashlib.sha256(told.encode()).hexdigest()[:16]}.part")
    seen = gpu.run(language, words, pieces_of(function, form, first, last), form) if gpu else None
    found = sweep.run(state, progress)
    lowered = language.lowering.analyze(words[None])
    on_gpu, why_not = found.gpu, ""
    if isinstance(sweep.on_intervals, str):
        why_not = sweep.on_intervals
    elif sweep.on_intervals.is_exact:
        on_gpu = found.cpu
    on_gpu_found = None
    if gpu and seen:
        on_gpu_found = OnGpu(
            device=gpu.info.name,
            capability="{}.{}".format(*gpu.info.capability),
            driver=gpu.driver,
            errors=_errors(function, form, sweep, found, seen.cpu, is_cpu=False),
            num_nans=seen.num_nans,
            num_wrong_signs=seen.num_wrong_signs,
            num_falls=seen.num_falls,
        )
    special = sweep.results(np.array(list(_SPECIAL.values()), np.float32))
    return Certificate(
        function=function.text,
        formula=function.formula,
        format=form.name,
        interval=(ends[0], ends[1]),
        num_inputs=found.num_inputs,
        arithmetic="f32" if dict(language.inputs)["x"] == "f32" else "native",
        instruction_set=instruction_set,
        program=program,
        num_instructions=int(lowered[1][0]),
        target=target,
        slots=repr(float(language.lowering.sums(words[None], slots_of(language.instruction_set, target))[0])),
        cpu=_errors(function, form, sweep, found, found.cpu, is_cpu=True),
        any_gpu={} if why_not else _errors(function, form, sweep, found, on_gpu, is_cpu=on_gpu is found.cpu),
        why_not=why_not,
        num_nans=found.num_nans,
        num_wrong_signs=found.num_wrong_signs,
        num_falls=found.num_falls,
        symmetry=sweep.symmetry,
        num_asymmetric=found.num_asymmetric,
        special={name: repr(float(value)) for name, value in zip(_SPECIAL, special, strict=True)},
        reference=reference,
        on_gpu=on_gpu_found,
    )


def open_gpu(ordinal: int | None = None) -> "GpuSweep":
    """A GPU for `certified`; None: the first that can be used. Raises UserError: there is none, or something is missing."""
    if problem := why_no_compiler():
        raise UserError(problem)
    from evo.approximation.gpu_sweep import GpuSweep

    return GpuSweep(ordinal)


def _errors(function: Function, form: Format, sweep: Sweep, found: Found, worst: Worst, *, is_cpu: bool) -> dict[str, Error]:
    errors = {}
    doubt = found.reference_ulps + _TABLE_ULPS
    ulp_of_largest = float(form.ulp(np.array([found.largest]))[0])
    doubts = {"ulp": doubt, "absolute": doubt * ulp_of_largest, "relative": doubt * 2.0 ** (1 - form.digits)}
    for kind, error, at in zip(KINDS, worst.errors, worst.at, strict=True):
        value, here = function.exact(at), error
        if is_cpu and 0.0 < error < math.inf:  # by mpmath
            size = np.array([abs(to_odd(value))])
            unit = {"ulp": form.ulp(size)[0], "absolute": 1.0, "relative": max(size[0], 2.0**form.least)}[kind]
            here = float(abs(value - float(sweep.results(np.array([at], np.float32))[0]))) / float(unit)
        bound = error * _COMPARED + doubts[kind]
        if kind == "relative":  # what it is relative to may be less
            bound *= 1.0 + 2.0 * doubts[kind]
        errors[kind] = Error(worst=repr(here), at=repr(at), bound=repr(bound))
    return errors


def _reference_hash(function: Function, form: Format, first: int, last: int) -> str:
    keys = np.unique(np.linspace(first, last, min(_NUM_REFERENCES, last - first + 1)).round().astype(np.int64))
    with np.errstate(over="ignore"):
        values = form.round(function.values(form.of_keys(keys)).astype(np.float32))
    return hashlib.sha256(values.astype("<f4").tobytes()).hexdigest()


# ---- checks --------------------------------------------------------------------------------------------------------------


def read_certificate(path: Path) -> Certificate:
    """The certificate in a file.

    Raises:
        UserError: it cannot be read, or is none.
    """
    try:
        data = read_json(path, _WHAT)
        if isinstance(data, dict) and isinstance(data.get("interval"), list):
            data["interval"] = tuple(data["interval"])
        return Certificate.model_validate(data)
    except ValidationError as error:
        place, reason = first_mistake(error)
        raise UserError(f"{path}: key {'.'.join(map(str, place))!r}: {reason}") from error


def check_certificate(path: Path, progress: Callable[[int, int], None] = lambda _, __: None) -> Certificate:
    """The certificate in a file, all of which is computed anew; but `on_gpu` is None where this machine has no such GPU.

    Raises:
        UserError: it cannot be read, or says something else than what is computed.
    """
    told = read_certificate(path)
    if told.instruction_set not in SHIPPED:
        raise UserError(f"{path}: key 'instruction_set': {told.instruction_set!r}, must be one of: {', '.join(SHIPPED)}")
    if told.format not in FORMATS:
        raise UserError(f"{path}: key 'format': {told.format!r}, must be one of: {', '.join(FORMATS)}")
    try:
        low, high = (float(end) for end in told.interval)
        if not (low <= high and math.isfinite(high - low)):
            raise ValueError("must be two finite numbers, the lower first")
    except ValueError as error:
        raise UserError(f"{path}: key 'interval': {error}") from error
    is_native = told.arithmetic == "native"
    if is_native and (told.format not in HALVES or told.instruction_set != "halves"):
        raise UserError(f"{path}: key 'arithmetic': 'native' needs format f16 or bf16, and instruction_set halves")
    kind = told.format if is_native else "f32"
    language = Language(open_instruction_set(told.instruction_set), (("x", kind),), (("y", kind),))
    words = parse_program(language, told.program, f"{path}: key 'program'", _MAX_WORDS)
    try:
        function, form = Function(told.function), FORMATS[told.format]
    except UserError as error:
        raise UserError(f"{path}: key 'function': {str(error).removeprefix('task_options.function: ')}") from error
    first, last = form.keys_of(low, high)
    quick = {"formula": function.formula, "num_inputs": last - first + 1, "reference": ""}
    if last >= first and told.num_inputs == last - first + 1:  # before a sweep of hours
        quick["reference"] = _reference_hash(function, form, first, last)
    if difference := _difference({name: getattr(told, name) for name in quick}, quick):
        raise UserError(f"{path}: refused: {difference}")
    if told.on_gpu and told.arithmetic == "native":
        raise UserError(f"{path}: refused: on_gpu: no GPU has run it, since its arithmetic is native")
    same = _same_gpu(told.on_gpu) if told.on_gpu else None
    with nullcontext() if same is None else closing(open_gpu(same)) as gpu:
        computed = certified(
            language,
            words,
            function,
            form,
            (low, high),
            instruction_set=told.instruction_set,
            target=told.target,
            progress=progress,
            gpu=gpu,
        )
    # The driver may be another one.
    anew = told.on_gpu and computed.on_gpu and told.on_gpu.model_copy(update={"driver": computed.on_gpu.driver})
    if difference := _difference(told.model_copy(update={"on_gpu": anew}).model_dump(), computed.model_dump()):
        raise UserError(f"{path}: refused: {difference}")
    return computed


def _same_gpu(told: OnGpu) -> int | None:
    """The ordinal of a GPU of this machine that is called so."""
    from evo.evaluate.cuda.device import probe

    names = {(info.name, "{}.{}".format(*info.capability)): info.ordinal for info in probe().devices}
    return names.get((told.device, told.capability))


def _difference(told: Any, computed: Any, place: str = "") -> str | None:
    """The first place at which a certificate says something else; None: there is none."""
    if isinstance(told, dict) and isinstance(computed, dict):
        for name in [*computed, *(name for name in told if name not in computed)]:
            if found := _difference(told.get(name), computed.get(name), f"{place}.{name}".strip(".")):
                return found
        return None
    is_same = told == computed
    if not is_same and place.endswith((".worst", ".bound")) and isinstance(told, str):
        try:
            is_same = math.isclose(float(told), float(computed), rel_tol=_SAME)
        except ValueError:
            is_same = False
    return None if is_same else f"'{place}' is {told!r}, computed: {computed!r}"
